# SPDX-License-Identifier: Apache-2.0
"""What flyball run says first: the answer, in a sentence, and few other lines without -v.

usage: cli_first_lines.py FLYBALL SOURCE_ROOT
"""

import json
import re

import tap
from power_machine import CLEAN, EMULATOR, FLYBALL, HOME, WHERE, machine

EXACT = ["--sensor", "exact", "--counter-period-ms", "0"]
TUNE = ["--tune", "--energy-tolerance", "1"]


def lines(*words):
    """What the command says on standard error."""
    gpus = [] if "-i" in words else ["-i", "0"]
    return tap.run([FLYBALL, "run", *gpus, *WHERE, *map(str, words)], env=CLEAN, cwd=HOME).stderr.splitlines()


def train(steps):
    return ["--", EMULATOR, "train", "--gpu", "0", "--sample-ms", "0.01", "--step-ms", "5.5", "--batch-size", "256", "--steps", steps]


def test_energy_and_time():
    with machine(*EXACT, gpus=1):
        first, *rest = lines("--", "sleep", "0.6")
        if not re.fullmatch(r"flyball: sleep 0\.6: [0-9.]+ J \+/- [0-9.]+ J \(emulated\) in 0\.[0-9]+ s, exit 0 \(details: -v\)", first):
            raise AssertionError(first)
        tap.equal(rest, ["  GPUs idle 100 % of the time"])
        whole = lines("-v", "--", "sleep", "0.6")
        tap.equal((whole[0].endswith(", exit 0"), len(whole) > 6), (True, True), str(whole))
        tap.contains(lines("-i", "none", "--", "sh", "-c", "exit 3")[0], "s, exit 3; energy unavailable: ")


def test_nothing_saved_and_why():
    with machine(*EXACT, gpus=1):
        first, help_, took = lines(*TUNE, "--", "true")
        tap.equal(first, "flyball: nothing saved: the program reported no step")
        tap.contains(help_, "two lines in the program tell its steps: 'tuner = flyball.Tuner()'")
        tap.contains(took, "  true: ")
        first = lines(*TUNE, *train(3))[0]
        tap.contains(first, "flyball: nothing saved")


def test_what_was_chosen():
    """Enough steps on a quiet machine choose, few on a busy one do not; either is said, in five lines at most."""
    with machine(*EXACT, gpus=1):
        path = HOME / "report.json"
        said = lines(*TUNE, "--max-slowdown", "5%", "--objective", "energy", "--output", path, *train(600))
        tune = json.loads(path.read_text())["tune"]
        if tune["chosen_limit_w"] is None:
            tap.contains(said[0], "flyball: nothing saved yet: ")
        elif tune["chosen_limit_w"] == 400:
            tap.contains(said[0], "flyball: 400 W kept: ")
        else:
            tap.contains(said[0], f"flyball: {tune['chosen_limit_w']:g} W chosen: steps take ")
        tap.equal((len(said) <= 5, said[-1].endswith(f"exit 0 (details: -v); report: {path}")), (True, True), str(said))


tap.main(globals())
