# SPDX-License-Identifier: Apache-2.0
"""The program flyball-emulator: machines that come and go, training that a limit slows, and broken libraries.

usage: emulator_program.py FLYBALL ROOT
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import tap

FLYBALL = pathlib.Path(sys.argv[1]).resolve()
EMULATOR = FLYBALL.parent / "emulator" / "flyball-emulator"
SANITIZED = bool(tap.sanitizers(FLYBALL))
HOME = tempfile.TemporaryDirectory()
os.environ["FLYBALL_EMULATOR_STATE"] = str(pathlib.Path(HOME.name) / "state")
os.environ.pop("FLYBALL_EMULATOR", None)


def emulator(*arguments, **options):
    return tap.run([EMULATOR, *arguments], **options)


def show():
    result = emulator("show", "--json")
    tap.equal((result.returncode, result.stderr), (0, ""))
    return json.loads(result.stdout)


class Machine:
    """Emulated GPUs for the length of a with statement."""

    def __init__(self, *arguments):
        self.arguments = arguments

    def __enter__(self):
        started = emulator("start", *self.arguments)
        tap.equal(started.returncode, 0, started.stderr)
        tap.contains(started.stderr, "no hardware answers")
        return started.stdout

    def __exit__(self, *_):
        tap.equal(emulator("stop").returncode, 0)


def test_life():
    tap.equal(emulator("show").returncode, 66)
    with Machine("--gpus", "3", "--model=h100") as exports:
        tap.contains(exports, f"export FLYBALL_EMULATOR_STATE='{os.environ['FLYBALL_EMULATOR_STATE']}'\n")
        tap.contains(exports, f"export LD_LIBRARY_PATH='{EMULATOR.parent}'" + '"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"\n')
        tap.contains(exports, f"export PATH='{EMULATOR.parent}'" + '"${PATH:+:$PATH}"\n')
        tap.equal(emulator("start").returncode, 70)
        shown = show()
        tap.equal((shown["schema"], shown["emulated"], shown["virtual_time"]), ("flyball.emulator.show/1", True, False))
        tap.equal([gpu["name"] for gpu in shown["gpus"]], ["Emulated H100-SXM5-80GB (Flyball)"] * 3)
        tap.equal([gpu["limit_w"] for gpu in shown["gpus"]], [700.0] * 3)
        tap.contains(emulator("show").stdout, "no hardware answers")
    stopped = emulator("stop")
    tap.equal(stopped.returncode, 66)
    tap.contains(stopped.stderr, "'flyball-emulator start' makes one")


def test_gpus_of_machines_are_told_apart():
    """Two emulators at once: neither's GPUs count as the other's."""
    other = {**os.environ, "FLYBALL_EMULATOR_STATE": os.environ["FLYBALL_EMULATOR_STATE"] + "-other"}
    with Machine("--gpus", "2"):
        first = {gpu["uuid"] for gpu in show()["gpus"]}
        tap.equal({gpu["uuid"] for gpu in show()["gpus"]}, first)
        tap.equal(emulator("start", "--gpus", "2", env=other).returncode, 0)
        second = {gpu["uuid"] for gpu in json.loads(emulator("show", "--json", env=other).stdout)["gpus"]}
        tap.equal(emulator("stop", env=other).returncode, 0)
    tap.equal(len(first | second), 4)


def test_bad_command_lines():
    for arguments, status, words in (
            ([], 64, "a command is missing"), (["strat"], 64, "did you mean 'start'?"),
            (["start", "--gpsu=3"], 64, "unknown option '--gpsu'"), (["start", "--gpus"], 64, "needs a value"),
            (["start", "--gpus=99"], 64, "expected a number from 0 to 16"), (["stop", "now"], 64, "unexpected operand"),
            (["run", "--gpus=1"], 64, "no command given"), (["start", "--faults=/nowhere"], 66, "fault script '/nowhere'"),
            (["train", "--steps=0"], 64, "expected a number from 1"), (["help", "me"], 64, "unknown command 'me'")):
        result = emulator(*arguments)
        tap.equal((result.returncode, result.stdout), (status, ""), f"{arguments} {result.stderr}")
        tap.contains(result.stderr, words)
        tap.equal(result.stderr.count("\n"), 1)


def test_help_names_every_option():
    tap.contains(emulator("help").stdout, "train")
    for command in ("start", "run", "train", "show", "set", "stop", "library"):
        tap.contains(emulator("help", command).stdout, f"flyball-emulator {command}")
        tap.equal(emulator(command, "--help").stdout, emulator("help", command).stdout)
    tap.contains(emulator("help", "run").stdout, "--counter-period-ms MS")


def test_manual_names_every_setting():
    manual = (pathlib.Path(sys.argv[2]) / "docs/howto/emulator.md").read_text(encoding="utf-8")
    own = [line.split()[0][2:] for line in emulator("help", "start").stdout.splitlines() if line.startswith("  --")]
    tap.equal(len(own) > 14, True)
    for name in set(own) - {"state", "help"}:
        tap.contains(manual, f"`{name}`")


def test_virtual_time_and_truth():
    with Machine("--gpus=2", "--time=virtual", "--model=a100", "--settle-ms=1", "--counter-period-ms=0", "--ideal"):
        tap.equal(emulator("set", "--gpu=1", "--load-w=300").returncode, 0)
        tap.equal(emulator("set", "--advance-s=100").returncode, 0)
        gpus = show()["gpus"]
        tap.equal(round(gpus[0]["true_energy_j"], 1), 6000.0)
        tap.equal(round(gpus[1]["true_energy_j"]), 30000)
        tap.equal(round(gpus[1]["counter_j"] - 2000), 30000, "the counter")
        emulator("set", "--gpu=1", "--limit-w=200", "--reset-counter")
        emulator("set", "--advance-s=10")
        tap.equal(round(show()["gpus"][1]["true_power_w"], 3), 200.0)
        tap.equal(emulator("set", "--gpu=1", "--limit-w=20").returncode, 64)
        tap.equal(emulator("set", "--gpu=2", "--load-w=20").returncode, 66)
        tap.equal(emulator("set", "--gpu=0", "--lost").returncode, 0)
        tap.equal([gpu["lost"] for gpu in show()["gpus"]], [True, False])


def training_time(*arguments):
    """Seconds of 1000 steps in virtual time, and the energy of GPU 0."""
    before = show()["gpus"][0]["true_energy_j"]
    result = emulator("train", "--steps=1000", *arguments)
    tap.equal(result.returncode, 0, result.stderr)
    return float(result.stdout.split("done: ")[1].split()[0]), show()["gpus"][0]["true_energy_j"] - before


def test_training_follows_batch_size_and_limit():
    with Machine("--time=virtual", "--model=a100", "--ideal"):
        time_s, energy_j = training_time("--batch-size=32")
        tap.equal(round(time_s, 3), 1000 * (0.0002 * 32 + 0.005))
        tap.equal(abs(energy_j / time_s - 230) < 1, True, f"half busy, of 60 .. 400 W: {energy_j / time_s}")
        emulator("set", "--limit-w=145")
        slow_s, low_j = training_time("--batch-size=32")
        # Above its floor the voltage follows the clock.
        static_w = 60 + 15 * (230 - 60) / (400 - 60)
        expected = 0.7 * ((230 - static_w) / (145 - static_w)) ** (1 / 3) + 0.3
        tap.equal(abs(slow_s / time_s - expected) < 3e-4, True, f"{slow_s / time_s}, expected {expected}")
        tap.equal(low_j < energy_j, True)
        larger_s, _ = training_time("--batch-size=64", "--epochs=2", "--evaluation-steps=10", "--step-gap-ms=1")
        tap.equal(larger_s > 2 * slow_s, True)


PROFILE = """limit_w,power_w,time_s
300,250,0.1
250,240,0.102
200,198,0.11
150,149,0.16
100,105,0.3
"""


def test_a_recorded_profile_is_a_board():
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "NVIDIA A40.csv"
        path.write_text(PROFILE, encoding="utf-8")
        with Machine("--time=virtual", "--gpus=1", "--profile", str(path)):
            tap.contains(show()["gpus"][0]["name"], "A40")
            for line in PROFILE.split()[1:]:
                limit_w, power_w, time_s = map(float, line.split(","))
                emulator("set", f"--limit-w={limit_w}")
                took_s, energy_j = training_time()
                tap.equal(abs(took_s / (1000 * time_s) - 1) < 0.05, True, f"{limit_w} W: {took_s / 1000} s a step, recorded {time_s}")
                tap.equal(abs(energy_j / (1000 * time_s * power_w) - 1) < 0.05, True, f"{limit_w} W: {energy_j / took_s} W, recorded {power_w}")
            took_s, _ = training_time("--batch-size=32", "--clock-share=0")
            tap.equal(round(took_s, 3), 1000 * (0.0002 * 32 + 0.005), "what is given comes before the profile")
        path.write_text(PROFILE + "90,none,0.4\n", encoding="utf-8")
        refused = emulator("start", "--profile", str(path))
        tap.equal(refused.returncode, 65, refused.stderr)
        tap.contains(refused.stderr, f"{path}:7: column 'power_w': expected a number above 0, found 'none'")
        tap.equal(emulator("run", "--profile", str(path) + "x", "--", "true").returncode, 66)


def test_a_board_may_enforce_less():
    with Machine("--time=virtual", "--model=h100", "--ideal", "--enforced-w=500"):
        emulator("set", "--load-w=650")
        emulator("set", "--advance-s=10")
        gpu = show()["gpus"][0]
        tap.equal((gpu["limit_w"], gpu["enforced_w"], round(gpu["true_power_w"], 3)), (700.0, 500.0, 500.0))
        tap.contains(emulator("show").stdout, "[enforced 500 W]")
        emulator("set", "--gpu=0", "--enforced-w=0")
        tap.equal([gpu["enforced_w"] for gpu in show()["gpus"]], [700.0, 500.0])


def test_training_ends_with_its_process():
    with Machine("--model=v100"):
        trainer = subprocess.Popen([EMULATOR, "train", "--gpu=0,1", "--epochs=1000"], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + tap.PATIENCE_S
        while not show()["gpus"][1]["processes"] and time.monotonic() < deadline:
            time.sleep(0.01)
        tap.equal([gpu["processes"] for gpu in show()["gpus"]], [[trainer.pid]] * 2)
        tap.equal(show()["gpus"][0]["utilization"], 1.0)
        trainer.kill()
        trainer.wait()
        tap.eventually(lambda: [gpu["processes"] for gpu in show()["gpus"]] == [[], []])
        tap.eventually(lambda: [round(gpu["true_power_w"], 1) for gpu in show()["gpus"]] == [40.0, 40.0])


def test_run_gives_a_machine_of_its_own():
    script = f"test -e $FLYBALL_EMULATOR_STATE && '{EMULATOR}' show --json && exit 7"
    result = emulator("run", "--gpus=4", "--load-w=300", "--", "sh", "-c", script)
    tap.equal(result.returncode, 7)
    shown = json.loads(result.stdout)
    tap.equal(len(shown["gpus"]), 4)
    tap.equal(os.path.exists(shown["state"]), False, "the state is left behind")
    tap.equal(emulator("run", "/nonexistent").returncode, 127)
    tap.equal(emulator("run", "/etc").returncode, 126)
    tap.equal(emulator("run", "sh", "-c", "kill -9 $$").returncode, 128 + signal.SIGKILL)
    waiting = subprocess.Popen([EMULATOR, "run", "sh", "-c", "trap 'exit 5' TERM; echo; while :; do sleep 0.01; done"],
                               stdout=subprocess.PIPE)
    waiting.stdout.readline()
    waiting.send_signal(signal.SIGTERM)
    tap.equal(waiting.wait(timeout=tap.PATIENCE_S), 5)


def states():
    """Every file and process of an emulator of this test that there is."""
    return sorted(path.name for path in pathlib.Path(HOME.name).iterdir())


def wait_until(question, seconds=tap.PATIENCE_S):
    deadline = time.monotonic() + seconds
    while not question() and time.monotonic() < deadline:
        time.sleep(0.02)
    return question()


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def running_command(*arguments):
    """A run whose command prints its number and sleeps; both processes."""
    runner = subprocess.Popen([EMULATOR, "run", *arguments, "--", "sh", "-c", "echo $$; exec sleep 600"],
                              stdout=subprocess.PIPE, text=True, start_new_session=True)
    return runner, int(runner.stdout.readline())


def test_a_killed_run_leaves_nothing():
    """Neither file nor process, whether its program alone is killed or its whole group."""
    for kill in (os.kill, os.killpg):
        runner, command = running_command("--gpus=2")
        tap.equal(states(), [f"state.{runner.pid}"])
        kill(runner.pid, signal.SIGKILL)
        tap.equal(runner.wait(timeout=tap.PATIENCE_S), -signal.SIGKILL)
        tap.equal(wait_until(lambda: not states()), True, states())
        tap.equal(wait_until(lambda process=command: not is_running(process)), True, "the command stays")


def watcher_of(runner, command):
    """The process that waits for a run's end: its other child."""
    children = pathlib.Path(f"/proc/{runner.pid}/task/{runner.pid}/children").read_text(encoding="ascii").split()
    return next(int(child) for child in children if int(child) != command)


def test_a_state_without_owner_is_reclaimed():
    """Where even the process that waits for the run's end was killed, the next start removes the state."""
    if not pathlib.Path(f"/proc/self/task/{os.getpid()}/children").exists():
        raise tap.Skip("the kernel does not list children")
    alive, sleeper = running_command()
    for settings in ([], ["--state", os.environ["FLYBALL_EMULATOR_STATE"] + "-named"]):
        runner, command = running_command(*settings)
        processes = [watcher_of(runner, command), runner.pid]
        for process in processes:
            os.kill(process, signal.SIGKILL)
        runner.wait(timeout=tap.PATIENCE_S)
        tap.equal(wait_until(lambda ended=processes[0]: not is_running(ended)), True)
        tap.equal(len(states()), 2, f"{states()}: a state that its owner left")
        tap.equal(emulator("start", *settings).returncode, 0)
        tap.equal(len(states()), 2, f"{states()}: the run's that is alive, and the new one")
        tap.equal(emulator("stop", *settings).returncode, 0)
    tap.equal(is_running(sleeper), True)
    alive.terminate()
    alive.wait(timeout=tap.PATIENCE_S)
    tap.equal(states(), [])


def test_what_is_kept_stays():
    kept = emulator("run", "--keep", "true")
    path = kept.stderr.split("'")[1]
    tap.equal(emulator("start").returncode, 0)
    tap.equal(os.path.exists(path), True, "a start takes what was to be kept for a leftover")
    tap.equal([emulator("stop").returncode, emulator("stop", "--state", path).returncode], [0, 0])
    tap.equal(states(), [])


def test_a_killed_start_leaves_nothing():
    """It has no file before that is complete: killed at any moment, it leaves a whole one or none."""
    for attempt in range(40):
        starter = subprocess.Popen([EMULATOR, "start", "--gpus=16"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.0003 * (attempt % 10))
        starter.kill()
        starter.wait()
        tap.equal([name for name in states() if name != "state"], [])
        if states():
            tap.equal(emulator("stop").returncode, 0)


LOOK_UP = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1] + "/libnvidia-ml.so.1")
print([hasattr(library, name) for name in sys.argv[2:]], library.nvmlInit_v2())
"""


def test_library_without_functions():
    if SANITIZED:
        raise tap.Skip("Python cannot load a library that is built with a sanitizer")
    names = ["nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"]
    with tempfile.TemporaryDirectory() as directory, Machine("--gpus=1"):
        tap.equal(emulator("library").stdout.strip(), str(EMULATOR.parent))
        made = emulator("library", "--output", directory, "--without", ",".join([names[0], names[2]]))
        tap.equal((made.returncode, made.stderr), (0, ""))
        tap.equal(sorted(os.listdir(directory)), ["libnvidia-ml.so", "libnvidia-ml.so.1"])
        looked = tap.run([sys.executable, "-c", LOOK_UP, directory, *names])
        tap.equal(looked.stdout, "[False, True, False, True] 0\n", looked.stderr)
        wrong = emulator("library", "--output", directory, "--without", "nvmlDeviceGetPower")
        tap.equal(wrong.returncode, 66)
        tap.contains(wrong.stderr, "no function 'nvmlDeviceGetPower'")


def test_library_makes_a_machine_where_there_is_none():
    if SANITIZED:
        raise tap.Skip("Python cannot load a library that is built with a sanitizer")
    text = ("import ctypes, sys; l = ctypes.CDLL(sys.argv[1]); n = ctypes.c_uint(); l.nvmlInit_v2(); "
            "l.nvmlDeviceGetCount_v2(ctypes.byref(n)); print(n.value)")
    for settings, count in (("", "2"), ("gpus=5,model=v100", "5")):
        environment = {**os.environ, "FLYBALL_EMULATOR": settings}
        found = tap.run([sys.executable, "-c", text, EMULATOR.parent / "libnvidia-ml.so"], env=environment)
        tap.equal(found.stdout.strip(), count, found.stderr)
        tap.equal(len(show()["gpus"]), int(count))
        tap.equal(emulator("stop").returncode, 0)
    broken = tap.run([sys.executable, "-c", text.replace("l.nvmlInit_v2()", "print(l.nvmlInit_v2())"),
                      EMULATOR.parent / "libnvidia-ml.so"], env={**os.environ, "FLYBALL_EMULATOR": "gpus=many"})
    tap.equal(broken.stdout.split()[0], "9", "a driver that is not loaded")


tap.main(globals())
