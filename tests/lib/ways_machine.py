# SPDX-License-Identifier: Apache-2.0
"""Emulated GPUs whose driver lets root alone set anything, a daemon that turns them, and a user: sys.argv[1] is the program."""

import contextlib
import json
import os
import signal
import subprocess

import tap
import reach
from nvml_root import Driver
from power_machine import (CLEAN, DEFAULT_W, DRIVER, EMULATOR, FLYBALL, HOME, KNOBS, NOBODY, RUNTIME, SANITIZED, WHERE,
                           command, emulator, ended, entries, guard_of, kill_program, limits, machine, wait_for)
from standin_daemon import Daemon

ROOT = os.geteuid() == 0
USER = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if ROOT else {}


def power(*arguments, environment=None, **keywords):
    """flyball power as a user to whom the driver lets nothing be set."""
    return subprocess.run(command(*arguments), env={**CLEAN, **(environment or {})}, cwd=HOME, capture_output=True, text=True,
                          timeout=tap.PATIENCE_S, check=False, **USER, **keywords)


def start(*arguments, environment):
    return subprocess.Popen(command(*arguments), env={**CLEAN, **environment}, cwd=HOME, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **USER)


@contextlib.contextmanager
def locked_machine(*settings, gpus=2):
    """Emulated GPUs whose driver lets root alone set anything."""
    HOME.chmod(0o755)
    if ROOT and (not os.access(FLYBALL, os.X_OK) or subprocess.run([FLYBALL, "version"], capture_output=True, check=False, **USER).returncode):
        raise tap.Skip("another user cannot run the program from here")
    with reach.runtime_of(RUNTIME, NOBODY), machine("--any-user=no", *settings, gpus=gpus):
        yield


def gpu_rows():
    result = subprocess.run([FLYBALL, "devices", "--format", "json", *WHERE], env=CLEAN, capture_output=True, text=True, check=True)
    return [row for row in json.loads(result.stdout)["rows"] if row["kind"] == "GPU"]


def turn_by_hand(operation, index, values):
    if operation != "set_power_limit":
        raise RuntimeError("not stood in for here")
    emulator("set", "--gpu", index, "--limit-w", int(values["power_limit_mw"]) / 1000)


@contextlib.contextmanager
def daemon(tcp=False):
    turn = Driver(DRIVER, HOME / "state").turn if ROOT and not SANITIZED else turn_by_hand
    with Daemon(None if tcp else str(HOME / "daemon.sock"), gpu_rows(), turn) as running:
        yield running


def at(running):
    return {"FLYBALL_KNOB_DAEMON": running.address}


def journal():
    return "".join(path.read_text() for path in KNOBS.iterdir() if path.suffix in (".turned", ".kept"))


def killed_and_back(ways, entry, signals):
    """Limits that a way turned are back after a signal; the guard uses the same way."""
    for number in signals:
        process = start("set", 150, "--for", "1h", environment=ways)
        wait_for(lambda: limits() == [150, 150], "both are set")
        wait_for(lambda: journal().count("150000 150000") == 2, "both are written down")
        tap.contains(journal(), entry)
        process.send_signal(number)
        wait_for(lambda: limits() == [DEFAULT_W] * 2, f"signal {number} turned back")
        ended(process)
        wait_for(lambda: entries() == [], "the journal is empty")


def both_killed(ways, *again):
    """Session and guard: the next start puts back by the way of the journal, in any environment."""
    process = start("set", 150, "--for", "1h", environment=ways)
    wait_for(lambda: limits() == [150, 150], "both are set")
    wait_for(lambda: journal().count("150000 150000") == 2, "both are written down")
    guard = guard_of(process)
    os.kill(process.pid, signal.SIGSTOP)  # it would notice that its guard is gone
    kill_program(guard)
    kill_program(process.pid)
    ended(process)
    tap.equal((limits(), entries()), ([150, 150], ["turned", "turned"]))
    result = power("restore", *again)
    tap.equal((result.returncode, limits(), entries()), (0, [DEFAULT_W] * 2, []), result.stderr)


# Steps of 8 ms at full clock that want most of what the board gives.
TRAIN = [str(EMULATOR), "train", "--gpu", "0", "--sample-ms", "0.01", "--step-ms", "5.5", "--batch-size", "256", "--steps", "100000"]


def tune(ways, enough, what):
    """flyball run --tune over a program that works until enough has happened; what was said, and the report's part."""
    report, happened = HOME / "open" / "report.json", False
    report.parent.mkdir(exist_ok=True)
    report.parent.chmod(0o777)
    words = [FLYBALL, "run", "--tune", "-i", "0", *WHERE, "--output", str(report), "--", *TRAIN]
    with tap.Program(words, env={**CLEAN, **ways}, cwd=HOME, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **USER) as process:
        try:
            with contextlib.suppress(AssertionError):
                wait_for(enough, what, 40)
                happened = True
            process.send_signal(signal.SIGTERM)
            status, _, talk = ended(process)
        finally:
            process.kill()
    tap.equal((status, limits(), entries()), (143, [DEFAULT_W], []), talk)
    found = json.loads(report.read_text())["tune"]
    if not happened and [point["mark"] for point in found["points"]].count("not measured") == len(found["points"]):
        raise tap.Skip("this machine is too busy for a window to be measured")
    tap.equal(happened, True, f"{what}: {talk}{found}")
    return talk, found
