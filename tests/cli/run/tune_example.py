# SPDX-License-Identifier: Apache-2.0
"""examples/tune.c on emulated GPUs: a training in C needs no more than a meter, and its limits are always turned back.

usage: tune_example.py FLYBALL SOURCE_ROOT
"""

import json
import os
import pathlib
import re
import signal
import subprocess

import tap
from power_machine import (BUILT, CLEAN, DEFAULT_W, EMULATOR, FLYBALL, HOME, KNOBS, LIBRARIES, WHERE, back_within, emulator,
                           ended, gone, guard_of, kill_program, limits, machine, wait_for)

TUNE = pathlib.Path(BUILT).parent / "examples" / "tune"
GUARD = pathlib.Path(BUILT).parent / "flyball-guard"
ENVIRONMENT = {**CLEAN, "LD_LIBRARY_PATH": str(LIBRARIES), "FLYBALL_GUARD": str(GUARD)}
FOREVER, STEP_MS = 10**6, 5


def start(steps, environment=None):
    if not TUNE.exists():
        raise tap.Skip("the example is not built")
    return subprocess.Popen([str(TUNE), str(steps), str(STEP_MS), "time"], env={**ENVIRONMENT, **(environment or {})}, cwd=HOME,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(steps, environment=None):
    status, output, talk = ended(start(steps, environment))
    tap.equal((status, talk), (0, ""), output)
    return output


def turned():
    """All of them: a program that dies between two leaves the journal's entry of the second to the next start."""
    return max(limits()) < DEFAULT_W


def load():
    """Without any, no limit would bind, and none would be tried."""
    emulator("set", "--load-w", 390)


def test_a_training_is_tuned_and_turned_back():
    with machine(gpus=1):
        load()
        process = start(700)
        wait_for(lambda: turned() or process.poll() is not None, "a limit is tried")
        if process.poll() is not None:
            ended(process)
            raise tap.Skip("the machine is too busy for steps of 5 ms")
        status, output, talk = ended(process)
        tap.equal((status, talk, limits()), (0, "", [DEFAULT_W]))
        tap.contains(output, "400 W before")
        tap.contains(output, "J a step")


def test_killed():
    with machine(gpus=2):
        load()
        for number in (signal.SIGTERM, signal.SIGKILL):
            process = start(FOREVER)
            wait_for(turned, "a limit is tried")
            guard = guard_of(process)
            process.send_signal(number)
            back_within([DEFAULT_W] * 2, f"signal {number} turned back")
            wait_for(lambda: gone(guard), "the guard has ended")
            ended(process)


def test_the_guard_is_killed():
    with machine(gpus=1):
        load()
        process = start(FOREVER)
        wait_for(turned, "a limit is tried")
        kill_program(guard_of(process))
        # At the next end of a window.
        back_within([DEFAULT_W], "the training has turned back")
        kill_program(process.pid)
        ended(process)


def test_not_ours_to_turn():
    with machine(gpus=1):
        other = subprocess.Popen([EMULATOR, "train", "--gpu", "0", "--epochs", "100000"], env=CLEAN, stdout=subprocess.DEVNULL)
        try:
            wait_for(lambda: json.loads(emulator("show", "--json"))["gpus"][0]["processes"], "another program trains")
            output = run(3)
            tap.contains(output, "not tuned (no knob): ")
            tap.equal(limits(), [DEFAULT_W])
        finally:
            other.kill()
            other.wait()


def test_without_a_guard():
    with machine(gpus=1):
        output = run(3, {"FLYBALL_GUARD": str(HOME / "no-guard")})
        tap.contains(output, "not tuned (no knob): the guard '" + str(HOME / "no-guard"))
        tap.equal(limits(), [DEFAULT_W])


def test_under_a_command_that_tunes():
    """The training's own hooks report to it, and it alone turns the limit."""
    if not TUNE.exists():
        raise tap.Skip("the example is not built")
    with machine(gpus=1):
        load()
        for steps in (700, 2800, 11200):  # the first limit is measured sooner or later
            result = subprocess.run([FLYBALL, "run", "-v", "--tune", "--objective", "time", "-i", "0", *WHERE, "--", str(TUNE), str(steps), str(STEP_MS)],
                                    env=ENVIRONMENT, cwd=HOME, capture_output=True, text=True, timeout=tap.PATIENCE_S, check=False)
            tap.equal((result.returncode, limits()), (0, [DEFAULT_W]), result.stderr)
            tap.contains(result.stdout, "not tuned (steered): the command around this program tunes")
            found = re.search(r"^ +400 W  [0-9.]+ ms ", result.stderr, re.M)
            if found:
                break
        tap.equal(found is not None, True, result.stderr)
        tap.contains(result.stderr, "GPU 0: 400 W again")
        tap.equal("unknown variable" in result.stderr, False, result.stderr)


def test_disabled_and_without_gpus():
    with machine(gpus=1):
        tap.contains(run(3, {"FLYBALL_DISABLE": "1"}), "not tuned (disabled)")
        tap.contains(run(3, {"CUDA_VISIBLE_DEVICES": ""}), "not tuned (no knob): the meter has no GPU")
        tap.equal(sorted(os.listdir(KNOBS)), [])


tap.main(globals())
