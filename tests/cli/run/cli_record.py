# SPDX-License-Identifier: Apache-2.0
"""`flyball record` on emulated GPUs, and what is played back.

usage: cli_record.py FLYBALL SOURCE_ROOT
"""

import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

import tap

FLYBALL = os.path.abspath(sys.argv[1])
LIBRARY = pathlib.Path(os.environ["FLYBALL_TEST_EMULATOR"]) / "libnvidia-ml.so.1"
WORK = tempfile.TemporaryDirectory(prefix="flyball-record-")
HOME = pathlib.Path(WORK.name)
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith(("FLYBALL_", "XDG_", "NO_COLOR", "CUDA_"))}
CLEAN |= {"HOME": str(HOME), "FLYBALL_EMULATOR_STATE": str(HOME / "state"), "FLYBALL_EMULATOR": "gpus=2,model=a40"}
# Nothing of this machine's own sensors, so that every machine records the same.
EMULATED = ["--nvml", str(LIBRARY), "--sysfs-root", str(HOME)]


def flyball(*arguments, **options):
    return tap.run([FLYBALL, *arguments], env=CLEAN, cwd=HOME, **options)


def record(name, *arguments):
    result = flyball("record", name, *EMULATED, *arguments)
    tap.equal((result.returncode, result.stdout), (0, ""), result.stderr)
    return [json.loads(line) for line in (HOME / name).read_text().splitlines()]


def devices(*arguments):
    result = flyball("devices", "--format", "json", *arguments)
    tap.equal(result.returncode, 0, result.stderr)
    return json.loads(result.stdout)["rows"]


def test_a_recording_describes_itself():
    lines = record("whole.jsonl", "--duration", "0.5", "--interval", "0.05")
    tap.equal((lines[0]["schema"], lines[0]["interval_s"], lines[0]["devices"]), ("flyball.recording/1", 0.05, 2))
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", lines[0]["date"]):
        raise AssertionError(lines[0])
    for index, device in enumerate(lines[1:3]):
        tap.equal((device["device"], device["kind"], device["emulated"]), (index, "GPU", True))
        if not 0 < device["sensor"]["gain_error"] < 1:
            raise AssertionError(device)
    readings = lines[3:-1]
    tap.equal({reading["d"] for reading in readings}, {0, 1})
    tap.equal(all(before["t"] <= after["t"] for before, after in zip(readings, readings[2:])), True)
    if not 6 <= len(readings) <= 20:  # fewer on a machine that is busy
        raise AssertionError(f"{len(readings)} readings in half a second at 20 Hz of 2 devices")
    tap.equal(lines[-1]["end"], True)
    if not 0.5 <= lines[-1]["t"] / 1e9 < 2:
        raise AssertionError(lines[-1])
    tap.contains(" ".join(readings[0]), "power_mw")


def test_the_same_devices_are_played_back():
    live = devices(*EMULATED)
    played = devices("--replay", "whole.jsonl")
    for key in ("kind", "index", "name", "uuid", "pci", "driver", "label", "power_limit_w", "power_limit_min_w",
                "power_limit_max_w", "power_limit_default_w", "clock_gpu_max_mhz", "persistence_mode", "mig_mode",
                "energy_counter"):
        tap.equal([row[key] for row in played], [row[key] for row in live], key)
    for row in played:
        tap.equal(row["backend"], "replay")
        tap.contains(row["note"], "a recording of ")
        if not 0 < row["power_w"] < 400:
            raise AssertionError(row)


def test_what_was_refused_stays_refused():
    (HOME / "faults").write_text("call nvmlDeviceGetPowerManagementLimit return 4\n"
                                 "call nvmlDeviceGetTemperatureV return 999\n"
                                 "call nvmlDeviceGetTemperature return 999\n")
    (HOME / "state").unlink()
    CLEAN["FLYBALL_EMULATOR"] = f"gpus=1,faults={HOME}/faults"
    lines = record("refused.jsonl", "--duration", "0.2")
    tap.equal((lines[2]["power_limit_mw"], lines[2]["temperature_c"]), (["no_permission", 4], ["failed", 999]))
    live, played = devices(*EMULATED)[0], devices("--replay", "refused.jsonl")[0]
    for key in ("temperature_c", "temperature_c_unavailable"):
        tap.equal(played[key], live[key], key)
    tap.equal(played["temperature_c"], None)
    (HOME / "state").unlink()
    CLEAN["FLYBALL_EMULATOR"] = "gpus=2,model=a40"


def test_chosen_gpus():
    lines = record("one.jsonl", "-i", "1", "--duration", "0")
    tap.equal([line.get("uuid") for line in lines], [None, devices(*EMULATED)[1]["uuid"], None, None])


def test_files_are_never_overwritten():
    before = (HOME / "whole.jsonl").read_bytes()
    result = flyball("record", "whole.jsonl", *EMULATED, "--duration", "0")
    tap.equal((result.returncode, result.stdout), (64, ""))
    tap.contains(result.stderr, "'whole.jsonl' exists; name another file, or remove it")
    tap.equal((HOME / "whole.jsonl").read_bytes(), before)
    piped = flyball("record", "/dev/stdout", *EMULATED, "--duration", "0", "--quiet")
    tap.equal((piped.returncode, len(piped.stdout.splitlines())), (0, 6), piped.stderr)


def start(name, number):
    """A recording that runs, after its first few readings, ended by that signal."""
    with tap.Program([FLYBALL, "record", name, *EMULATED, "--interval", "0.02"], env=CLEAN, cwd=HOME,
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + tap.PATIENCE_S
        while time.monotonic() < end and (not (HOME / name).exists() or
                                          (HOME / name).read_bytes().count(b"\n") < 12):
            time.sleep(0.02)
        process.send_signal(number)
        out, err = process.communicate(timeout=tap.PATIENCE_S)
    tap.equal(out, "")
    return process.returncode, err


def test_signals_end_a_recording_in_good_order():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        name = f"signal{int(number)}.jsonl"
        status, err = start(name, number)
        tap.equal(status, 0, err)
        tap.contains(err, f"recording 2 devices into '{name}'; stop with Ctrl-C")
        tap.equal(json.loads((HOME / name).read_text().splitlines()[-1])["end"], True)
        if "cut off" in devices("--replay", name)[0]["note"]:
            raise AssertionError("a whole recording is said to be cut off")


def test_what_was_recorded_before_a_kill_is_kept():
    status, _ = start("killed.jsonl", signal.SIGKILL)
    tap.equal(status, -9)
    whole = (HOME / "killed.jsonl").read_text()
    if whole.count("\n") < 12:
        raise AssertionError(whole)
    tap.contains(devices("--replay", "killed.jsonl")[0]["note"], "cut off at its end")
    (HOME / "torn.jsonl").write_text(whole + '{"t":99999999999,"d":0,"ener')
    tap.contains(devices("--replay", "torn.jsonl")[1]["note"], "cut off at its end")


def test_bad_recordings_are_refused():
    lines = (HOME / "whole.jsonl").read_text().splitlines()
    (HOME / "bad.jsonl").write_text("\n".join(lines[:5] + ['{"t":1,"d":7}'] + lines[5:]) + "\n")
    for name, status, message in (("bad.jsonl", 65, "bad.jsonl:6: field 'd': expected one of the devices above"),
                                  ("nowhere.jsonl", 66, "'nowhere.jsonl' cannot be read: No such file"),
                                  ("state", 65, "state:1")):
        result = flyball("devices", "--replay", name)
        tap.equal((result.returncode, result.stdout), (status, ""), result.stderr)
        tap.contains(result.stderr, message)


def test_a_full_disk_is_an_error():
    if not os.path.exists("/dev/full"):
        raise tap.Skip("there is no /dev/full")
    result = flyball("record", "/dev/full", *EMULATED, "--duration", "0.1")
    tap.equal((result.returncode, result.stdout), (74, ""))
    tap.contains(result.stderr, "'/dev/full': writing failed: No space left on device")
    # What fits of it is whole lines, and is played back.
    for room in (5000, 5001, 5100, 5300):
        name = f"full-{room}.jsonl"
        result = flyball("record", name, *EMULATED, "--interval", "0.01", "--duration", "60",
                         preexec_fn=lambda most=room: resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY)))
        tap.equal(result.returncode, 74, result.stderr)
        tap.equal([json.loads(line) for line in (HOME / name).read_text().splitlines()] != [], True)
        tap.equal((HOME / name).read_text()[-1:], "\n")


def test_nothing_to_record():
    result = flyball("record", "none.jsonl", "-i", "none", *EMULATED)
    tap.equal((result.returncode, (HOME / "none.jsonl").exists()), (69, False), result.stderr)
    tap.contains(result.stderr, "there is no device to record; see 'flyball doctor'")
    result = flyball("record", *EMULATED)
    tap.equal(result.returncode, 64)
    tap.contains(result.stderr, "no file given")


tap.main(globals())
