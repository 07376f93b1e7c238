# SPDX-License-Identifier: Apache-2.0
"""`flyball selftest` on emulated GPUs, under a load that a stand-in of CUDA's driver puts on them.

usage: cli_selftest.py FLYBALL SOURCE_ROOT
"""

import concurrent.futures
import csv
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

import tap

FLYBALL = os.path.abspath(sys.argv[1])
EMULATOR = pathlib.Path(os.environ["FLYBALL_TEST_EMULATOR"])
STANDIN = pathlib.Path(os.environ["FLYBALL_TEST_BUILD"]) / "cuda" / "cuda_standin.so"
WORK = tempfile.TemporaryDirectory(prefix="flyball-selftest-")
HOME = pathlib.Path(WORK.name)
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith(("FLYBALL_", "XDG_", "NO_COLOR", "CUDA_", "STANDIN_"))}
CLEAN |= {"HOME": str(HOME)}
DURATION_S = 2
SHORT = "--duration=0.7"
EMULATED = ["--nvml", str(EMULATOR / "libnvidia-ml.so.1"), "--sysfs-root", str(HOME)]


def flyball(*arguments, machine="gpus=1,model=a100,noise-w=1", **environment):
    """On GPUs of its own: the state is new in every call."""
    with tempfile.TemporaryDirectory(dir=HOME) as directory:
        environment = {**CLEAN, "FLYBALL_EMULATOR_STATE": f"{directory}/state", "FLYBALL_EMULATOR": machine,
                       **environment}
        if not any(argument.startswith("--duration") for argument in arguments):
            arguments += (SHORT,)
        return tap.run([FLYBALL, "selftest", *EMULATED, *arguments], env=environment, cwd=HOME)


def report(*arguments, **environment):
    result = flyball("--format", "json", *arguments, **environment)
    tap.equal(result.returncode, 0, result.stderr)
    document = json.loads(result.stdout)
    tap.equal(document["schema"], "flyball.selftest/1")
    check_unknown(document, "")
    return document


def check_unknown(value, path):
    """A figure that is not known is null, and beside it stands why."""
    if isinstance(value, dict):
        for key, member in value.items():
            if member is None and not key.endswith(("note", "name", "driver", "source")):
                tap.contains(value, f"{key}_unavailable", path)
                if len(value[f"{key}_unavailable"]) < 5:
                    raise AssertionError(f"{path}.{key}: {value}")
            check_unknown(member, f"{path}.{key}")
    elif isinstance(value, list):
        for index, member in enumerate(value):
            check_unknown(member, f"{path}[{index}]")


def findings(device):
    return {finding["check"]: finding["outcome"] for finding in device["findings"]}


def close(value, expected, share, what):
    if value is None or abs(value - expected) > share * expected:
        raise AssertionError(f"{what}: expected about {expected}, got {value}")


def test_under_a_load_of_its_own():
    document = report("--cuda", str(STANDIN), f"--duration={DURATION_S}", STANDIN_CUDA_WATTS="330")
    tap.equal((document["emulated"], document["duration_s"], len(document["devices"])), (True, DURATION_S, 1))
    device = document["devices"][0]
    tap.equal((device["kind"], device["emulated"], device["backend"]), ("GPU", True, "nvml"))
    idle, loaded = device["windows"]
    tap.equal([idle["stage"], idle["under"], loaded["stage"], loaded["under"]],
              ["idle", "whatever_ran", "loaded", "cuda_kernel"])
    close(loaded["mean_power_w"], 330, 0.05, "power under load")
    close(loaded["integral_j"], loaded["counter_j"], 0.05, "integral")
    close(loaded["utilization"], 1, 0.1, "utilisation")
    for window in (idle, loaded):
        close(window["time_s"], DURATION_S, 0.5, "time")
        close(window["updates"]["energy_uj"]["period_s"], 0.1, 0.1, "period of the counter")
        close(window["updates"]["power_mw"]["period_s"], 0.1, 0.1, "period of the power")
        tap.equal(window["updates"]["power_average_mw"]["polls"], 0)
    outcomes = findings(device)
    # Updates cannot be followed while the machine keeps the test from polling.
    for check in ("counter_tracked", "counter_step", "counter_against_power"):
        tap.equal(outcomes.pop(check) in ("as_expected", "not_known"), True, check)
    tap.equal(set(outcomes.values()), {"as_expected"}, str(outcomes))


def test_latencies():
    device = report("--load", "none", machine="gpus=1,latency-us=300")["devices"][0]
    latencies = {row["quantity"]: row for row in device["latencies"]}
    tap.equal((latencies["energy_uj"]["state"], latencies["energy_uj"]["calls"]), ("ok", 200))
    for key in ("lowest_us", "median_us", "p99_us", "highest_us"):
        if not 300 <= latencies["energy_uj"][key] < 50000:
            raise AssertionError(latencies["energy_uj"])
    tap.equal(latencies["power_average_mw"]["state"], "unsupported")


def test_without_cuda_whatever_runs():
    device = report("--cuda", str(HOME / "libcuda.so.1"))["devices"][0]
    tap.equal(device["windows"][1]["under"], "whatever_ran")
    tap.contains(device["windows"][1]["load_note"], "no CUDA driver: ")
    tap.equal(findings(device)["load_raises_power"], "not_known")
    device = report()["devices"][0]
    tap.contains(device["windows"][1]["load_note"], "an emulated GPU is loaded only through a library that --cuda")


def test_a_machine_that_is_at_work():
    """What runs already is measured in both stages, and the report says that it was there."""
    state = {"FLYBALL_EMULATOR_STATE": str(HOME / "busy"), "FLYBALL_EMULATOR": "gpus=1,model=a100,noise-w=1"}
    with tap.Program([EMULATOR / "flyball-emulator", "train", "--epochs", "1000", "--state", str(HOME / "busy")],
                     env={**CLEAN, **state}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as training:
        shown = [EMULATOR / "flyball-emulator", "show", "--json", "--state", str(HOME / "busy")]
        tap.eventually(lambda: any(gpu["utilization"] > 0.5 and gpu["true_power_w"] > 100
                                   for gpu in json.loads(tap.run(shown, env={**CLEAN, **state}).stdout or '{"gpus": []}')["gpus"]), "it is at work")
        device = report("--load", "none", **state)["devices"][0]
        running = training.poll() is None
        training.kill()
    tap.equal(running, True, "the training runs on")
    for window in device["windows"]:
        if window["mean_power_w"] < 100 or window["utilization"] < 0.5:
            raise AssertionError(window)
    tap.equal((findings(device)["idle_at_first"], findings(device)["load_raises_power"]), ("differs", "not_known"))


def test_a_load_that_fails_is_told():
    for habit, note in (("crash", "ended by signal 6"), ("launch_fails", "'cuLaunchKernel' of the CUDA driver failed")):
        device = report("--cuda", str(STANDIN), STANDIN_CUDA_WATTS="330", STANDIN_CUDA=habit)["devices"][0]
        tap.contains(device["windows"][1]["load_note"], note)


def test_a_constant_power_hides_its_updates():
    device = report("--load", "none", machine="gpus=1,model=a100,ideal")["devices"][0]
    updates = device["windows"][1]["updates"]["power_mw"]
    tap.equal((updates["changes"], updates["period_s"]), (0, None))
    tap.contains(updates["period_s_unavailable"], "hides updates")
    tap.equal(findings(device)["power_period"], "not_known")


def test_what_differs_is_said():
    machine = "gpus=1,model=a100,noise-w=1,counter-period-ms=300"
    device = report("--load", "none", "--duration=2.5", machine=machine)["devices"][0]
    outcome = {finding["check"]: finding for finding in device["findings"]}["counter_period"]
    tap.equal(outcome["outcome"], "differs")
    tap.contains(outcome["text"], "stated uncertainties are too small")


def test_faults_leave_no_zero():
    (HOME / "faults").write_text("call nvmlDeviceGetTotalEnergyConsumption return 3\n"
                                 "call nvmlDeviceGetFieldValues return 3\n"
                                 "call nvmlDeviceGetTemperatureV return 999\n"
                                 "call nvmlDeviceGetTemperature return 999\n")
    device = report("--load", "none", machine=f"gpus=1,faults={HOME}/faults")["devices"][0]
    window = device["windows"][0]
    tap.equal([window[key] for key in ("counter_j", "counter_uncertainty_j", "integral_excess", "temperature_max_c")],
              [None] * 4)
    if not window["integral_j"] > 0:
        raise AssertionError(window)
    tap.equal(findings(device)["counter_against_integral_idle"], "not_known")


def test_forms_of_the_output():
    result = flyball("--load", "none", "--output", "report-%t.json", machine="gpus=2")
    tap.equal(result.returncode, 0, result.stderr)
    for piece in ("GPU 1", "energy counter", "median (us)", "idle", "loaded", "integral (J)", "as expected",
                  "(emulated)"):
        tap.contains(result.stdout, piece)
    document = json.loads((HOME / "report-0.json").read_text())
    tap.equal((document["schema"], len(document["devices"])), ("flyball.selftest/1", 2))
    for name in (rf"\b{re.escape(os.uname().nodename)}\b", "GPU-f1eba11", r":00\.0"):
        if re.search(name, (HOME / "report-0.json").read_text()):
            raise AssertionError(f"the report names {name}")
    result = flyball("--load", "none", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    tap.equal((rows[0]["schema"], rows[0]["kind"], len(rows)), ("flyball.selftest.findings/1", "GPU", 9))


def test_nothing_is_ever_set():
    """The counts of the emulator's own faults tell: a setting that were called would be refused, and be seen."""
    (HOME / "never").write_text("".join(f"call {name} lost\n" for name in (
        "nvmlDeviceSetPowerManagementLimit", "nvmlDeviceSetPersistenceMode", "nvmlDeviceSetGpuLockedClocks",
        "nvmlDeviceResetGpuLockedClocks", "nvmlDeviceSetMemoryLockedClocks")))
    machine = f"gpus=1,faults={HOME}/never"
    device = report("--cuda", str(STANDIN), machine=machine, STANDIN_CUDA_WATTS="200")["devices"][0]
    tap.equal({row["state"] for row in device["latencies"]} & {"device_lost"}, set())


def blocked(status, number):
    masks = re.search(r"^SigBlk:\s*(\w+)", status.read_text(), re.MULTILINE)
    return int(masks[1], 16) >> number - 1 & 1


def test_interruption():
    environment = {**CLEAN, "FLYBALL_EMULATOR_STATE": str(HOME / "interrupted"), "FLYBALL_EMULATOR": "gpus=1"}
    with tap.Program([FLYBALL, "selftest", *EMULATED, "--duration=600", "--output=never.json"], env=environment,
                     cwd=HOME, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        status = pathlib.Path(f"/proc/{process.pid}/status")
        # While it measures it keeps these back, to look at them itself. Every signal is kept back for a moment by
        # whatever begins a thread.
        tap.eventually(lambda: blocked(status, signal.SIGINT) and not blocked(status, signal.SIGUSR1), "it measures")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=tap.PATIENCE_S)
    tap.equal((process.returncode, out, (HOME / "never.json").exists()), (130, "", False), err)
    tap.contains(err, "interrupted; nothing is reported")


def test_nothing_to_test():
    result = flyball("-i", "none")
    tap.equal((result.returncode, result.stdout), (69, ""), result.stderr)
    tap.contains(result.stderr, "there is no device to test")


def at_once(names):
    """The tests, already under way: most of their time is waiting."""
    pool = concurrent.futures.ThreadPoolExecutor(4)
    return {name: pool.submit(test).result for name, test in names.items() if name.startswith("test_")}


def named(name, function):
    def test():
        function()

    test.__name__ = name
    return test


tap.main({name: named(name, function) for name, function in at_once(globals()).items()})
