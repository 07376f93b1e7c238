# SPDX-License-Identifier: Apache-2.0
"""flyball devices and flyball monitor from outside, on emulated GPUs, on a recording and on nothing.

usage: cli_devices.py FLYBALL SOURCE_ROOT
"""

import csv
import fcntl
import io
import json
import os
import pathlib
import pty
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

import tap

FLYBALL = os.path.abspath(sys.argv[1])
DIRECTORY = os.environ.get("FLYBALL_TEST_EMULATOR", os.path.join(os.path.dirname(FLYBALL), "emulator"))
EMULATOR = os.path.join(DIRECTORY, "libnvidia-ml.so.1")
WORK = tempfile.TemporaryDirectory(prefix="flyball-devices-")
HOME = pathlib.Path(WORK.name)
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith(("FLYBALL_", "XDG_", "CUDA_", "NO_COLOR", "LC_", "LANG", "LD_LIBRARY"))}
CLEAN.update(HOME=str(HOME), FLYBALL_EMULATOR="gpus=2,model=a100", FLYBALL_EMULATOR_STATE=str(HOME / "state"))
PLACES = ["--amdsmi", str(HOME / "none.so"), "--sysfs-root", str(HOME)]
NOTHING = ["--nvml", str(HOME / "none.so"), *PLACES]
GPUS = ["--nvml", EMULATOR, *PLACES]


def flyball(*arguments, environment=None, **options):
    return tap.run([FLYBALL, *arguments], env={**CLEAN, **(environment or {})}, cwd=HOME, **options)


def need_emulator():
    if not os.path.exists(EMULATOR):
        raise tap.Skip("the emulator's driver library is not built")


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_devices_in_three_formats():
    need_emulator()
    table = flyball("devices", *GPUS)
    document = json.loads(flyball("devices", *GPUS, "--format", "json").stdout)
    rows = rows_of(flyball("devices", *GPUS, "--format", "csv").stdout)
    tap.equal(document["schema"], "flyball.devices/1")
    tap.equal([row["uuid"] for row in rows], [row["uuid"] for row in document["rows"]])
    tap.equal(len(rows), 2)
    for row, other in zip(document["rows"], rows):
        tap.contains(table.stdout, row["uuid"])
        tap.contains(table.stdout, row["pci"])
        tap.equal((row["kind"], row["label"], row["backend"], row["energy_counter"]), ("GPU", "emulated", "nvml", "yes"))
        tap.equal((row["power_limit_w"], row["power_limit_min_w"], row["power_limit_max_w"]), (400.0, 100.0, 400.0))
        tap.equal(float(other["power_limit_w"]), 400.0)
        tap.equal(row["power_w"] > 0 and row["temperature_c"] > 0, True, row)
        tap.equal((row["memory_bytes"], int(other["memory_bytes"])), (80 << 30, 80 << 30))
    for line in table.stdout.splitlines():
        if len(line) > 160:
            raise AssertionError(f"a line of {len(line)} columns: {line}")


def test_chosen_gpus_keep_their_order():
    need_emulator()
    every = [row["uuid"] for row in rows_of(flyball("devices", *GPUS, "--format", "csv").stdout)]
    for gpus, expected in (("1", every[1:]), ("1,0", every[::-1]), ("all", every), ("none", []), (every[1], every[1:])):
        rows = rows_of(flyball("devices", *GPUS, "-i", gpus, "--format", "csv").stdout)
        tap.equal([row["uuid"] for row in rows], expected, gpus)
    tap.equal(len(rows_of(flyball("devices", *GPUS, "--format", "csv", environment={"CUDA_VISIBLE_DEVICES": "1"}).stdout)), 2)
    missing = flyball("devices", *GPUS, "-i", "7")
    tap.equal((missing.returncode, missing.stdout), (66, ""))
    tap.equal(flyball("devices", *GPUS, "-i", "0,,1").returncode, 64)


def test_no_devices_says_why():
    result = flyball("devices", *NOTHING)
    tap.equal(result.returncode, 0)
    tap.contains(result.stderr, "flyball: note: NVIDIA GPUs, through NVML: ")
    tap.contains(result.stderr, str(HOME / "none.so"))
    tap.equal(flyball("devices", *NOTHING, "--quiet").stderr, "")
    tap.equal(json.loads(flyball("devices", *NOTHING, "--format", "json").stdout)["rows"], [])


def test_estimated_cpu_is_named_so():
    result = flyball("devices", *NOTHING[:-2], "--cpu-tdp", "90", "-i", "none", "--format", "json")
    rows = [row for row in json.loads(result.stdout)["rows"] if row["label"] == "estimated"]
    if not rows:
        raise tap.Skip("this machine has a CPU sensor")
    tap.equal(rows[0]["energy_counter"], "estimate")
    tap.contains(rows[0]["note"], "estimate")


def faulty(name, *lines):
    """The variables of emulated GPUs with a fault script."""
    script = HOME / f"{name}.faults"
    script.write_text("\n".join(lines) + "\n")
    return {"FLYBALL_EMULATOR_STATE": str(HOME / name), "FLYBALL_EMULATOR": f"gpus=1,model=a100,faults={script}"}


def test_memory_that_is_not_known():
    need_emulator()
    for name, line in (("silent", "call nvmlDeviceGetMemoryInfo return NOT_SUPPORTED"), ("shared", "")):
        environment = faulty(name, line)
        if name == "shared":
            environment["FLYBALL_EMULATOR"] = "gpus=1,model=a100,mig=3"
        row = json.loads(flyball("devices", *GPUS, "--format", "json", environment=environment).stdout)["rows"][0]
        tap.equal((row["memory_bytes"], row["kind"]), (None, "GPU"))
        tap.contains(json.dumps(row), "does not say" if name == "silent" else "MIG shares it")


# The driver has the counter as a function and as fields.
NO_COUNTER = ("call nvmlDeviceGetTotalEnergyConsumption return NOT_SUPPORTED", "call nvmlDeviceGetFieldValues return NOT_SUPPORTED")


def test_unreadable_figures_have_reasons():
    need_emulator()
    environment = faulty("denied", "call nvmlDeviceGetTemperatureV no-permission", "call nvmlDeviceGetTemperature no-permission")
    row = json.loads(flyball("devices", *GPUS, "--format", "json", environment=environment).stdout)["rows"][0]
    tap.equal(row["temperature_c"], None)
    tap.contains(row["temperature_c_unavailable"], "permission")
    tap.equal(row["power_w"] > 0, True)
    table = flyball("devices", *GPUS, environment=environment).stdout
    tap.contains(table, "- [1]")
    tap.contains(table, "permission is missing")


def test_monitor_lines():
    need_emulator()
    result = flyball("monitor", *GPUS, "--count", "4", "--interval", "0.15")
    rows = rows_of(result.stdout)
    tap.equal((result.returncode, result.stderr, len(rows)), (0, "", 8))
    first = [row for row in rows if row["index"] == "0"]
    tap.equal([row["schema"] for row in first], ["flyball.monitor/1"] * 4)
    energies = [float(row["energy_j"]) for row in first]
    tap.equal(energies == sorted(energies) and energies[-1] > energies[0], True, energies)
    times = [float(row["elapsed_s"]) for row in first]
    # A reading may be late, but none is early.
    tap.equal(all(time_s >= 0.15 * i - 0.01 for i, time_s in enumerate(times)), True, times)
    lines = flyball("monitor", *GPUS, "--count", "2", "--interval", "0.1", "--format", "json").stdout.splitlines()
    documents = [json.loads(line) for line in lines]
    tap.equal([(document["schema"], document["index"]) for document in documents], [("flyball.monitor/1", i) for i in (0, 1, 0, 1)])
    tap.equal(documents[0]["throttle"], "none")


def test_monitor_lines_come_as_they_are_read():
    need_emulator()
    process = subprocess.Popen([FLYBALL, "monitor", *GPUS, "--interval", "0.1"], env=CLEAN, stdout=subprocess.PIPE, text=True)
    for _ in range(5):
        tap.equal(process.stdout.readline() != "", True)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=tap.PATIENCE_S)
    tap.equal(process.returncode, 0)


def test_monitor_once():
    need_emulator()
    result = flyball("monitor", *GPUS, "--once")
    tap.equal(result.returncode, 0)
    tap.contains(result.stdout, "power (W)")
    document = json.loads(flyball("monitor", *GPUS, "--once", "--format", "json").stdout)
    tap.equal([row["energy_source"] for row in document["rows"]], ["counter", "counter"])
    nothing = flyball("monitor", *NOTHING, "--once")
    tap.equal((nothing.returncode, nothing.stdout), (69, ""))
    tap.contains(nothing.stderr, "flyball doctor")


def test_monitor_integrates_without_a_counter():
    need_emulator()
    environment = faulty("nocounter", *NO_COUNTER)
    lines = flyball("monitor", *GPUS, "--count", "4", "--interval", "0.1", "--format", "json", environment=environment).stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    tap.equal([row["energy_source"] for row in rows], ["integrated"] * 4)
    # An idle GPU draws the same all the time.
    seconds = rows[-1]["elapsed_s"] - rows[0]["elapsed_s"]
    tap.equal(abs(rows[-1]["energy_j"] - rows[0]["power_w"] * seconds) < 0.1 * rows[-1]["energy_j"], True, rows[-1])
    row = json.loads(flyball("devices", *GPUS, "--format", "json", environment=environment).stdout)["rows"][0]
    tap.equal((row["energy_counter"], row["energy_counter_j"]), ("no", None))


def test_monitor_of_a_gpu_that_is_lost():
    """What was known stays in earlier lines; from then on everything is null, with the reason."""
    need_emulator()
    environment = faulty("lost", "gpu 0 at 4s lost")
    lines = flyball("monitor", *GPUS, "--count", "9", "--interval", "0.6", "--format", "json", environment=environment).stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    tap.equal(rows[0]["energy_j"] is not None and rows[0]["power_w"] > 0, True, rows[0])
    tap.equal((rows[-1]["energy_j"], rows[-1]["power_w"], rows[-1]["temperature_c"]), (None, None, None))
    for key in ("energy_j", "power_w", "temperature_c", "throttle"):
        tap.contains(rows[-1][f"{key}_unavailable"], "gone")


class Screen:
    """The monitor on a terminal of its own; what it writes is kept."""

    def __init__(self, *arguments, lines=14, columns=100, **environment):
        self.main, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.before = termios.tcgetattr(terminal)
        self.terminal = terminal
        environment = {**CLEAN, "TERM": "xterm-256color", **environment}

        def lead():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen([FLYBALL, "monitor", *GPUS, "--interval", "0.1", *arguments], stdin=terminal, stdout=terminal,
                                        stderr=subprocess.PIPE, env=environment, cwd=HOME, preexec_fn=lead)
        self.text = ""
        os.set_blocking(self.main, False)

    def read(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                self.text += os.read(self.main, 65536).decode(errors="replace")
            except BlockingIOError:
                time.sleep(0.01)
            except OSError:
                break

    def until(self, piece, seconds=tap.PATIENCE_S):
        end = time.monotonic() + seconds
        while piece not in self.text and time.monotonic() < end:
            self.read(0.05)
        tap.contains(self.text, piece)

    def end(self):
        """Waits for the end; whether the terminal is as it was before."""
        end = time.monotonic() + tap.PATIENCE_S
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.05)
        self.read(0.1)
        restored = termios.tcgetattr(self.terminal) == self.before
        os.close(self.main)
        os.close(self.terminal)
        return self.process.wait(tap.PATIENCE_S), restored


def test_monitor_screen_and_its_ends():
    need_emulator()
    for name, end in (
        ("q", lambda screen: os.write(screen.main, b"q")),
        ("Ctrl-C", lambda screen: os.write(screen.main, b"\x03")),
        ("SIGTERM", lambda screen: screen.process.terminate()),
        ("SIGINT", lambda screen: screen.process.send_signal(signal.SIGINT)),
        ("SIGHUP", lambda screen: screen.process.send_signal(signal.SIGHUP)),
    ):
        screen = Screen()
        screen.until("q quits")
        screen.until("GPU 1")
        end(screen)
        status, restored = screen.end()
        tap.equal((status, restored), (0, True), name)
        tap.equal("\033[?1049h" in screen.text and screen.text.rindex("\033[?1049l") > screen.text.rindex("GPU"), True, name)


def test_monitor_color():
    need_emulator()
    # Colours are set with "38;5" or "3x" in this terminal's language.
    for environment, expected in (({}, True), ({"NO_COLOR": "1"}, False)):
        screen = Screen(**environment)
        screen.until("GPU 1")
        screen.read(0.3)
        os.write(screen.main, b"q")
        screen.end()
        tap.equal("\033[32m" in screen.text, expected, environment)


def test_monitor_on_a_terminal_that_cannot_be_drawn_on():
    need_emulator()
    screen = Screen(TERM="no-such-terminal")
    status, restored = screen.end()
    tap.equal((status, restored), (69, True))
    tap.contains(screen.process.stderr.read().decode(), "cannot be drawn on")


def test_monitor_memory():
    need_emulator()
    screen = Screen()
    screen.until("GPU 1")
    screen.read(0.5)
    status = pathlib.Path(f"/proc/{screen.process.pid}/status").read_text()
    os.write(screen.main, b"q")
    screen.end()
    most_kib = int(status.split("VmHWM:")[1].split()[0])
    print(f"# {most_kib} KiB", flush=True)
    if tap.sanitizers(FLYBALL):
        raise tap.Skip("a sanitizer's memory is not the program's")
    tap.equal(most_kib < 10 * 1024, True, f"{most_kib} KiB resident")


def test_monitor_as_tmux_shows_it():
    need_emulator()
    tmux = shutil.which("tmux")
    if tmux is None:
        raise tap.Skip("tmux is not installed")
    server = ["-f", "/dev/null", "-S", str(HOME / "tmux")]
    environment = {**CLEAN, "LC_ALL": "C.UTF-8", "TERM": "xterm"}

    def control(*arguments):
        return tap.run([tmux, *server, *arguments], env=environment)

    def capture(piece, whole=False):
        """What is shown once that is; with `whole`, once nothing is unknown: the first frames know no energy."""
        end = time.monotonic() + tap.PATIENCE_S
        while time.monotonic() < end:
            shown = control("capture-pane", "-p").stdout
            if piece in shown and not (whole and "-" in shown.split()):
                return shown
            time.sleep(0.05)
        raise AssertionError(f"no {piece!r}: {shown}")

    command = " ".join([FLYBALL, "monitor", *GPUS, "--interval", "0.1"])
    started = control("new-session", "-d", "-x", "100", "-y", "12", command)
    if started.returncode != 0:
        raise tap.Skip(f"tmux does not start: {started.stderr.strip()}")
    try:
        lines = capture("\u2581").splitlines()
        tap.contains(lines[0], "flyball monitor: ")
        tap.contains(lines[0], "q quits")
        tap.contains(lines[1], "throttled by")
        tap.equal([line.split()[:2] for line in lines[2:6:2]], [["GPU", "0"], ["GPU", "1"]])
        tap.contains(lines[3], "emulated, energy by counter")
        control("resize-window", "-x", "60", "-y", "12")
        capture("power   limit     energy   heat throttled by\n")
        lines = capture("none", whole=True).splitlines()
        for line, gpu in ((lines[2], "0"), (lines[4], "1")):
            words = line.split()
            tap.equal((words[:2], words[3], words[5], words[9], words[10]), (["GPU", gpu], "W", "W", "C", "none"), line)
        control("resize-window", "-x", "60", "-y", "3")
        capture("2 more; enlarge the window")
        control("resize-window", "-x", "70", "-y", "5")
        lines = capture("GPU 1").splitlines()
        tap.equal([line.split()[:2] for line in lines[2:4]], [["GPU", "0"], ["GPU", "1"]])
    finally:
        control("kill-server")


tap.main(globals())
