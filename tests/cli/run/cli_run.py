# SPDX-License-Identifier: Apache-2.0
"""flyball run from outside: the program runs as if nothing were around it, and the report says what it took.

usage: cli_run.py FLYBALL SOURCE_ROOT
"""

import csv
import fcntl
import hashlib
import json
import os
import pathlib
import pty
import re
import resource
import signal
import subprocess
import sys
import tempfile
import termios
import time

import tap

FLYBALL = os.path.abspath(sys.argv[1])
EMULATOR = os.path.join(os.environ.get("FLYBALL_TEST_EMULATOR", os.path.join(os.path.dirname(FLYBALL), "emulator")),
                        "libnvidia-ml.so.1")
WORK = tempfile.TemporaryDirectory(prefix="flyball-run-")
HOME = pathlib.Path(WORK.name)

# Nothing of the developer's own settings, devices and jobs reaches the tests.
CLEAN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("FLYBALL_", "XDG_", "SLURM", "OMPI_", "PMI", "CUDA_", "LC_", "LANG"))
}
CLEAN.update(HOME=str(HOME), XDG_RUNTIME_DIR=str(HOME))
# Without a driver, and without the sensors that the machine may have.
NOTHING = ["--nvml", str(HOME / "none.so"), "--amdsmi", str(HOME / "none.so"), "--sysfs-root", str(HOME)]
GPUS = ["--nvml", EMULATOR, "--amdsmi", str(HOME / "none.so"), "--sysfs-root", str(HOME)]
EMULATED = {"FLYBALL_EMULATOR": "gpus=2,model=a100,sensor=exact", "FLYBALL_EMULATOR_STATE": str(HOME / "state")}


def run(program, *options, environment=None, **keywords):
    """flyball run with no device, unless options say otherwise; output as bytes."""
    options = options or NOTHING
    return subprocess.run([FLYBALL, "run", "-v", *options, "--", *program], env={**CLEAN, **(environment or {})}, cwd=HOME,
                          stderr=keywords.pop("stderr", subprocess.PIPE), stdout=keywords.pop("stdout", subprocess.PIPE),
                          timeout=tap.PATIENCE_S, check=False, **keywords)


def start(program, *options, **keywords):
    return subprocess.Popen([FLYBALL, "run", "-v", *(options or NOTHING), "--", *program], env=CLEAN, cwd=HOME,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **keywords)


def need_emulator():
    if not os.path.exists(EMULATOR):
        raise tap.Skip("the emulator's driver library is not built")


def report_of(program, *options, environment=None):
    path = HOME / "report.json"
    result = run(program, *options, "--output", str(path), environment={**EMULATED, **(environment or {})})
    return result, json.loads(path.read_text())


def test_statuses():
    plain = HOME / "plain"
    plain.write_text("exit 7\n")
    script = HOME / "script"
    script.write_text("exit 7\n")
    script.chmod(0o755)
    for program, status in (
        (["true"], 0),
        (["false"], 1),
        (["sh", "-c", "exit 255"], 255),
        ([str(script)], 7),  # without #! the shell runs it
        ([str(plain)], 126),
        (["/"], 126),
        (["no-such-program"], 127),
        (["./no-such-program"], 127),
        (["sh", "-c", "kill -TERM $$"], 128 + signal.SIGTERM),
        (["sh", "-c", "kill -KILL $$"], 128 + signal.SIGKILL),
        (["sh", "-c", "ulimit -c 0; kill -SEGV $$"], 128 + signal.SIGSEGV),
    ):
        result = run(program)
        tap.equal((result.returncode, result.stdout), (status, b""), " ".join(program))


def test_what_cannot_be_run_says_so():
    tap.equal(run(["no-such-program"]).stderr.decode(),
              "flyball: 'no-such-program' cannot be run: there is no such command\n")
    tap.equal(run(["./none"]).stderr.decode(), "flyball: './none' cannot be run: No such file or directory\n")
    tap.equal(run(["/"]).stderr.decode(), "flyball: '/' cannot be run: Permission denied\n")


def test_words_of_the_program_are_its_own():
    for arguments, expected in (
        (["--", "echo", "-h", "--help", "--", "-i"], b"-h --help -- -i\n"),
        (["echo", "--output", "x", "--quiet"], b"--output x --quiet\n"),
        (["--quiet", "echo", "-h"], b"-h\n"),
        (["--", "printf", "%s|", "a b", "", "*"], b"a b||*|"),
    ):
        result = subprocess.run([FLYBALL, "run", *NOTHING, *arguments], env=CLEAN, cwd=HOME, capture_output=True, check=False)
        tap.equal((result.returncode, result.stdout), (0, expected), arguments)
    many = ["word"] * 20000
    tap.equal(run(["sh", "-c", "echo $#", "sh", *many]).stdout, b"20000\n")
    result = tap.run([FLYBALL, "run"], env=CLEAN)
    tap.equal((result.returncode, result.stdout), (64, ""))
    tap.contains(result.stderr, "no program to run; name one behind --")


def test_standard_streams_pass_unchanged():
    data = bytes(range(256)) * 4096
    result = run(["cat"], input=data)
    tap.equal((result.returncode, result.stdout == data), (0, True))
    result = run(["sh", "-c", "cat; echo talk >&2"], input=b"in\0put")
    tap.equal(result.stdout, b"in\0put")
    tap.equal(result.stderr.startswith(b"talk\nflyball: sh -c"), True, result.stderr)


def test_much_output():
    code = "import sys\nfor i in range(400): sys.stdout.buffer.write(bytes([i % 256]) * 131072)"
    result = run([sys.executable, "-c", code])
    expected = hashlib.sha256(b"".join(bytes([i % 256]) * 131072 for i in range(400))).hexdigest()
    tap.equal((result.returncode, hashlib.sha256(result.stdout).hexdigest()), (0, expected))


def test_process_is_as_it_would_be_alone():
    """Signals, descriptors, limits, directory: the same as without flyball, but for one variable."""
    show = "grep -E '^Sig(Ign|Blk|Cgt)' /proc/self/status; ls /proc/self/fd; pwd; ulimit -a; umask"
    for prelude in ("", "trap '' HUP USR1 PIPE CHLD XFSZ; ", "exec 0<&-; ", "exec 2>&-; ", "exec 5</dev/null; "):
        program = ["sh", "-c", show]
        alone = subprocess.run(["sh", "-c", prelude + 'exec "$@"', "sh", *program], env=CLEAN, cwd=HOME, check=False,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        inside = subprocess.run(["sh", "-c", prelude + 'exec "$@"', "sh", FLYBALL, "run", *NOTHING, "--", *program], env=CLEAN,
                                cwd=HOME, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        tap.equal((inside.returncode, inside.stdout.decode()), (alone.returncode, alone.stdout.decode()), prelude)
    names = {line.split("=")[0] for line in run(["env"]).stdout.decode().splitlines()}
    tap.equal(names - set(CLEAN) - {"_", "PWD", "OLDPWD", "SHLVL"}, {"FLYBALL_COUNTED_BY"})


def test_closed_and_broken_stderr():
    result = run(["sh", "-c", "exit 3"], stderr=None, preexec_fn=lambda: os.close(2))
    tap.equal(result.returncode, 3)
    reader, writer = os.pipe()
    os.close(reader)
    result = run(["sh", "-c", "exit 3"], stderr=writer)
    os.close(writer)
    tap.equal(result.returncode, 3)
    if os.path.exists("/dev/full"):
        with open("/dev/full", "w") as full:
            tap.equal(run(["sh", "-c", "exit 3"], stderr=full).returncode, 3)


def test_broken_pipe_ends_the_program():
    script = f'"$@" | head -n 1 >/dev/null; exit "${{PIPESTATUS[0]}}"'
    result = tap.run(["bash", "-c", script, "bash", FLYBALL, "run", *NOTHING, "--", "yes"], env=CLEAN)
    tap.equal(result.returncode, 128 + signal.SIGPIPE)


COUNTER = """
import os, signal, sys, time
counts = {}
def count(number, frame):
    counts[number] = counts.get(number, 0) + 1
for name in sys.argv[2:]:
    signal.signal(getattr(signal, name), count)
print(os.getpid(), flush=True)
while len(counts) < len(sys.argv) - 2:
    time.sleep(0.01)
time.sleep(float(sys.argv[1]))  # for what comes twice
print(sorted((signal.Signals(n).name, c) for n, c in counts.items()), flush=True)
"""


def test_signals_are_passed_on():
    names = ["SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM"]
    process = start([sys.executable, "-c", COUNTER, "0.3", *names])
    process.stdout.readline()
    for name in names:
        os.kill(process.pid, getattr(signal, name))
        time.sleep(0.02)
    output, _ = process.communicate(timeout=tap.PATIENCE_S)
    tap.equal(output, f"{sorted((name, 1) for name in names)}\n")
    tap.equal(process.returncode, 0)


def test_signal_ends_the_program():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        process = start(["sh", "-c", "echo ready; exec sleep 3600"])
        process.stdout.readline()
        process.send_signal(number)
        _, talk = process.communicate(timeout=tap.PATIENCE_S)
        tap.equal(process.returncode, 128 + number)
        tap.contains(talk, f"signal {int(number)} (")


def on_terminal(command):
    """Starts the command as the foreground job of a new terminal; returns its process and the terminal."""
    main, terminal = pty.openpty()

    def lead():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    # A shell would stay leader of the session, so that a stopped job is not orphaned.
    process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=CLEAN, cwd=HOME, preexec_fn=lead)
    os.close(terminal)
    return process, main


def read_until(main, pattern, seconds=tap.PATIENCE_S):
    text = ""
    end = time.monotonic() + seconds
    os.set_blocking(main, False)
    while time.monotonic() < end:
        try:
            text += os.read(main, 65536).decode(errors="replace")
        except BlockingIOError:
            time.sleep(0.01)
        except OSError:
            break
        if re.search(pattern, text):
            return text
    raise AssertionError(f"no {pattern!r} on the terminal: {text!r}")


def test_ctrl_c_reaches_the_program_once():
    process, main = on_terminal([FLYBALL, "run", "-v", *NOTHING, "--", sys.executable, "-c", COUNTER, "0.3", "SIGINT"])
    read_until(main, r"\d+\r\n")
    os.write(main, b"\x03")
    tap.contains(read_until(main, "flyball's own use"), "[('SIGINT', 1)]")
    tap.equal(process.wait(tap.PATIENCE_S), 0)
    os.close(main)


def test_ctrl_c_ends_a_script_around():
    """Which goes on when a command merely ends with 130."""
    script = f"for i in 1 2 3; do echo round $i; {FLYBALL} run {' '.join(NOTHING)} -- sh -c 'echo inside; exec sleep 3600'; done; echo went on"
    process, main = on_terminal(["bash", "-c", script])
    read_until(main, "inside")
    os.write(main, b"\x03")
    text = read_until(main, "energy unavailable")
    tap.equal(process.wait(tap.PATIENCE_S), -signal.SIGINT)
    tap.contains(text, "signal 2 (Interrupt)")
    if "round 2" in text or "went on" in text:
        raise AssertionError(f"the script went on: {text!r}")
    os.close(main)


def state_of(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def until_released(name):
    """A shell's words that wait, in one process, and what lets them end. (A shell that starts others cannot be stopped meanwhile.)"""
    path = HOME / name
    os.mkfifo(path)
    return f"exec cat {path}", lambda: os.close(os.open(path, os.O_WRONLY))


def test_ctrl_z_stops_both():
    """Under a shell with job control, that sees its job stop and continues it."""
    waiting, release = until_released("continued")
    shell, main = on_terminal(["bash", "--norc", "--noprofile", "-i"])
    os.write(main, f"PS1='ready> '; {FLYBALL} run {' '.join(NOTHING)} -- sh -c 'echo $$ is $PPID; {waiting}'\n".encode())
    child, wrapper = map(int, re.search(r"(\d+) is (\d+)\r", read_until(main, r"\d+ is \d+\r")).groups())
    os.write(main, b"\x1a")
    tap.eventually(lambda: state_of(child) == "T" and state_of(wrapper) == "T", "program and wrapper are stopped")
    os.write(main, b"fg; echo status $?\n")
    release()
    text = read_until(main, r"status \d+\r\n")
    tap.contains(text, "status 0\r\n")
    tap.contains(text, ", exit 0")
    os.write(main, b"exit\n")
    shell.wait(tap.PATIENCE_S)
    os.close(main)


def test_stop_sent_by_kill():
    # In a group of its own: the kernel keeps orphaned groups from stopping, and this test may lead one.
    waiting, release = until_released("gone-on")
    process = start(["sh", "-c", f"echo $$; {waiting}"], process_group=0)
    child = int(process.stdout.readline())
    os.kill(process.pid, signal.SIGTSTP)
    tap.eventually(lambda: state_of(child) == "T" and state_of(process.pid) == "T", "both are stopped")
    os.kill(process.pid, signal.SIGCONT)
    tap.eventually(lambda: state_of(child) != "T", "the program goes on")
    release()
    process.communicate(timeout=tap.PATIENCE_S)
    tap.equal(process.returncode, 0)


def test_program_survives_a_killed_wrapper():
    mark = HOME / "survived"
    process = start(["sh", "-c", f"echo $$; sleep 0.5; echo yes > {mark}"])
    process.stdout.readline()
    process.kill()
    process.wait()
    tap.eventually(mark.exists, "the program has written its file")


def test_what_the_program_left_behind_is_not_waited_for():
    process = start(["sh", "-c", "sleep 3600 >/dev/null 2>&1 & echo $!; exit 4"])
    sleeping = int(process.stdout.readline())
    try:
        tap.equal(process.wait(tap.PATIENCE_S), 4)
    finally:
        os.kill(sleeping, signal.SIGKILL)
    process.communicate()


def test_disabled_takes_no_part():
    """The program has this very process, whatever else is broken."""
    (HOME / "flyball.ini").write_text("nonsense = 1\n")
    try:
        environment = {**CLEAN, "FLYBALL_DISABLE": "1", "FLYBALL_FORMAT": "broken"}
        process = subprocess.Popen([FLYBALL, "run", "--output", "x.json", "--", "sh", "-c", "echo $$; exit 5"], env=environment,
                                   cwd=HOME, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        output, talk = process.communicate(timeout=tap.PATIENCE_S)
        tap.equal((process.returncode, output, talk), (5, f"{process.pid}\n", ""))
        tap.equal((HOME / "x.json").exists(), False)
        for program, status in ((["no-such-program"], 127), (["/"], 126)):
            tap.equal(run(program, environment=environment).returncode, status)
        refused = run(["true"])
        tap.equal((refused.returncode, refused.stdout), (78, b""))
    finally:
        (HOME / "flyball.ini").unlink()


def test_no_device():
    result = run(["sh", "-c", "exit 9"])
    tap.equal(result.returncode, 9)
    tap.contains(result.stderr.decode(), "energy unavailable: no device here can be measured; 'flyball doctor'")
    path = HOME / "none.json"
    run(["true"], *NOTHING, "--output", str(path))
    report = json.loads(path.read_text())
    tap.equal((report["devices"], report["total"]["energy_j"]), ([], None))
    tap.contains(report["total"]["energy_j_unavailable"], "no device")
    tap.contains(report["fault"], "no device here can be measured")


def test_quiet_and_formats():
    tap.equal(run(["true"], *NOTHING, "--quiet").stderr, b"")
    need_emulator()
    document = json.loads(run(["sleep", "0.3"], *GPUS, "--format", "json", environment=EMULATED).stderr)
    tap.equal(document["schema"], "flyball.run/2")
    lines = run(["sleep", "0.3"], *GPUS, "--format", "csv", environment=EMULATED).stderr.decode().splitlines()
    rows = list(csv.DictReader(lines))
    tap.equal([(row["schema"], row["window_name"], row["uuid"]) for row in rows],
              [("flyball.window.csv/2", "sleep", device["uuid"]) for device in document["devices"]])


def test_output_that_cannot_be_written():
    for path in (str(HOME), str(HOME / "no" / "such" / "directory.json"), "/proc/none.json"):
        result = run(["sh", "-c", "echo out; exit 6"], *NOTHING, "--output", path)
        tap.equal((result.returncode, result.stdout), (6, b"out\n"), path)
        tap.contains(result.stderr.decode(), "there will be no report, and the program runs without: ")
        tap.contains(result.stderr.decode(), path)
        tap.contains(result.stderr.decode(), "exit 6")


def test_report_of_emulated_gpus():
    need_emulator()
    result, report = report_of(["sh", "-c", "sleep 1.2; exit 2"], *GPUS)
    tap.equal((result.returncode, report["exit_status"], report["signal"]), (2, 2, None))
    tap.equal(report["command"], ["sh", "-c", "sleep 1.2; exit 2"])
    tap.equal(report["time_s"] >= 1.2, True, report["time_s"])
    tap.equal([device["kind"] for device in report["devices"]], ["GPU", "GPU"])
    for device in report["devices"]:
        tap.equal((device["source"], device["emulated"], device["counted"], device["counted_by"]), ("counter", True, True, None))
        tap.equal(0 < device["uncertainty_j"] < device["energy_j"], True, device)
        tap.equal(abs(device["energy_j"] / device["time_s"] - device["mean_power_w"]) < 1e-6 * device["mean_power_w"], True)
        tap.equal(device["idle_share"], 1.0)
        tap.equal(device["gain_error"], 0.05)
    total = report["total"]
    tap.equal(abs(total["energy_j"] - sum(device["energy_j"] for device in report["devices"])) < 1e-9 * total["energy_j"], True)
    tap.equal((total["devices"], total["devices_unavailable"]), (2, 0))
    tap.equal(set(report["not_included"]) >= {"CPUs", "DRAM", "fans"}, True)
    # What a sanitizer keeps beside is not ours.
    memory = (200 if tap.sanitizers(FLYBALL) else 20) << 20
    tap.equal(0 < report["own"]["cpu_s"] < 1 and report["own"]["memory_bytes"] < memory, True, report["own"])
    text = result.stderr.decode()
    for piece in ("(emulated) in 1.2", ", exit 2\n", "GPU 0 ", "counter ", "emulated", ", all of it emulated", "board gain +/- 5 % not included", "counted ", "GPUs idle 100 %",
                  f"report: {HOME / 'report.json'}"):
        tap.contains(text, piece)


def test_short_run_is_not_zero():
    need_emulator()
    environment = {"FLYBALL_EMULATOR": "gpus=1,model=a100,counter-period-ms=1000", "FLYBALL_EMULATOR_STATE": str(HOME / "slow")}
    result, report = report_of(["true"], *GPUS, environment=environment)
    device = report["devices"][0]
    tap.equal((device["energy_j"], device["source"], report["total"]["energy_j"]), (None, "unavailable", None))
    tap.contains(device["energy_j_unavailable"], "too short")
    tap.contains(result.stderr.decode(), "unavailable")
    tap.contains(result.stderr.decode(), "too short")


def test_plus_minus_follows_the_locale():
    need_emulator()
    for environment, sign in (({"LANG": "C.UTF-8"}, "\u00b1"), ({"LC_ALL": "C", "LANG": "C.UTF-8"}, "+/-"), ({}, "+/-")):
        text = run(["sleep", "0.3"], *GPUS, environment={**EMULATED, **environment}).stderr.decode()
        tap.contains(text, f" J {sign} ", environment)


def test_slow_driver_does_not_hold_the_program_up():
    need_emulator()
    script = HOME / "slow.faults"
    script.write_text("call nvmlInit_v2 slow 6s\ncall nvmlInitWithFlags slow 6s\n")
    environment = {"FLYBALL_EMULATOR": f"gpus=1,model=a100,faults={script}", "FLYBALL_EMULATOR_STATE": str(HOME / "slow-driver")}
    for patience, early in (("0.2", True), ("300", False)):
        begin = time.time()
        result, report = report_of([sys.executable, "-c", f"import time; print(time.time(), flush=True); time.sleep({10 if early else 2})"], *GPUS,
                                   "--start-within", patience, environment=environment)
        started_s = float(result.stdout) - begin
        tap.equal((result.returncode, started_s < 5), (0, early), f"{patience}: started after {started_s} s")
        tap.equal(report["unmeasured_s"] > 0.5, early, report["unmeasured_s"])
        tap.equal("are not measured" in result.stderr.decode(), early)
        tap.equal(report["devices"][0]["energy_j"] > 0, True)


def test_driver_that_never_answers():
    """The program runs and ends as ever, and so does flyball, when a call of the driver does not come back."""
    need_emulator()
    if "thread" in tap.sanitizers(FLYBALL):
        raise tap.Skip("its sanitizer keeps signals back until calls return")
    for number, (faults, words) in enumerate((
        (("call nvmlInit_v2 slow 3600s", "call nvmlInitWithFlags slow 3600s"), "could not be opened while the program ran"),
        (("at 0.5s slow 3600s",), "did not answer after the program had ended"),
    )):
        script = HOME / f"hang{number}.faults"
        script.write_text("\n".join(faults) + "\n")
        environment = {"FLYBALL_EMULATOR": f"gpus=1,model=a100,faults={script}", "FLYBALL_EMULATOR_STATE": str(HOME / f"hang{number}")}
        result = run(["sh", "-c", "sleep 0.7; echo out; exit 5"], *GPUS, "--start-within", "0.4", environment=environment)
        tap.equal((result.returncode, result.stdout), (5, b"out\n"), result.stderr)
        tap.contains(result.stderr.decode(), words)


def test_csv_gathers_runs():
    need_emulator()
    path = HOME / "runs.csv"
    for _ in range(2):
        run(["sleep", "0.2"], *GPUS, "--csv", str(path), environment=EMULATED)
    lines = path.read_text().splitlines()
    tap.equal(lines[0], "start_time,window_name,elapsed_time,gpu0_energy,gpu1_energy")
    tap.equal(len(lines), 3)
    for row in csv.DictReader(lines):
        tap.equal(row["window_name"], "sleep")
        tap.equal(float(row["elapsed_time"]) >= 0.2 and float(row["gpu1_energy"]) > 0, True, row)
    before = path.read_text()
    full = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, resource.RLIM_INFINITY))}
    result = run(["sleep", "0.2"], *GPUS, "--csv", str(path), environment=EMULATED, **full)
    tap.equal(path.read_text(), before, f"a whole line or none: {result.stderr.decode()}")
    path.write_text("something,else\n")
    result = run(["sh", "-c", "echo started; exit 3"], *GPUS, "--csv", str(path), environment=EMULATED)
    tap.equal((result.returncode, result.stdout, path.read_text()), (65, b"", "something,else\n"))
    tap.contains(result.stderr.decode(), "its heading is not")
    result = run(["sh", "-c", "exit 3"], *NOTHING, "--csv", str(path))
    tap.equal((result.returncode, path.read_text()), (3, "something,else\n"))
    tap.contains(result.stderr.decode(), "no line is added, since nothing was measured")


def test_nested_runs_count_once():
    need_emulator()
    outer, inner = HOME / "outer.json", HOME / "inner.json"
    result = run([FLYBALL, "run", *GPUS, "--output", str(inner), "--", "sh", "-c", "sleep 0.6; exit 8"], *GPUS, "--output",
                 str(outer), environment=EMULATED)
    tap.equal(result.returncode, 8)
    outer, inner = (json.loads(path.read_text()) for path in (outer, inner))
    tap.equal([device["counted"] for device in outer["devices"] + inner["devices"]], [True, True, False, False])
    tap.equal(inner["job"]["id"], outer["job"]["id"])
    tap.equal(inner["total"]["energy_j"], None)
    tap.equal(inner["devices"][0]["energy_j"] > 0, True)
    tap.contains(result.stderr.decode(), f"counted by {inner['devices'][0]['counted_by']}")


def test_choice_of_gpus():
    """A list that cannot be read, or names a GPU that is not there, is refused."""
    need_emulator()
    for gpus in ("0,,1", "0,0"):
        result = run(["sh", "-c", "echo started"], *GPUS, "-i", gpus, environment=EMULATED)
        tap.equal((result.returncode, result.stdout), (64, b""), gpus)
        tap.contains(result.stderr.decode(), f"bad value '{gpus}' of '-i'")
    for gpus, indices, environment in (("1", [1], {}), ("all", [0, 1], {"CUDA_VISIBLE_DEVICES": "1"}), (None, [1], {"CUDA_VISIBLE_DEVICES": "1"}),
                                       (None, [0, 1], {}), (None, [], {"CUDA_VISIBLE_DEVICES": ""})):
        options = [] if gpus is None else ["-i", gpus]
        everywhere = json.loads(subprocess.run([FLYBALL, "devices", *GPUS, "--format", "json"], env={**CLEAN, **EMULATED},
                                               capture_output=True, check=True).stdout)["rows"]
        _, report = report_of(["sleep", "0.2"], *GPUS, *options, environment=environment)
        tap.equal([device["uuid"] for device in report["devices"]], [everywhere[index]["uuid"] for index in indices], gpus)


tap.main(globals())
