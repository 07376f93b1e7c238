# SPDX-License-Identifier: Apache-2.0
"""flyball run --tune --knob clock from outside, on emulated GPUs: what is chosen, and that the clock is free afterwards.

usage: cli_tune_clock.py FLYBALL SOURCE_ROOT
"""

import contextlib
import json
import math
import subprocess

import tap
from power_machine import CLEAN, EMULATOR, FLYBALL, HOME, WHERE, emulator, ended, gone, guard_of, machine, wait_for

SHORT = ["--energy-tolerance", "1"]
EXACT = ["--sensor", "exact", "--counter-period-ms", "0"]
# A step of 8 ms at full clock that wants most of what the board gives.
STEPS = ["--sample-ms", "0.01", "--step-ms", "5.5", "--batch-size", "256"]
CEILINGS = list(range(1410, 569, -60))
BACK_S = 10.0


def train(steps):
    return [str(EMULATOR), "train", "--gpu", "0", *STEPS, "--steps", str(steps)]


def ceiling():
    return json.loads(emulator("show", "--json"))["gpus"][0]["clock_ceiling_mhz"]


def command(program, *options):
    return [FLYBALL, "run", "--tune", "--knob", "clock", "-i", "0", *WHERE, *SHORT, "--output", str(HOME / "clock.json"), *options, "--",
            *program]


def said():
    return json.loads((HOME / "clock.json").read_text())["tune"]


@contextlib.contextmanager
def tuning(program, *options):
    """A run whose first ceiling stands."""
    with tap.Program(command(program, *options), env=CLEAN, cwd=HOME, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_for(lambda: ceiling() is not None, "a ceiling is tried")
            yield process
        finally:
            process.kill()


def test_chooses_by_its_own_figures():
    with machine(*EXACT, gpus=1):
        result = subprocess.run(command(train(1200), "--objective", "energy"), env=CLEAN, cwd=HOME, capture_output=True, text=True,
                                timeout=120, check=False)
        tap.equal((result.returncode, ceiling()), (0, None), result.stderr)
        report = said()
        tap.equal((report["state"], report["knob"], report["start_ceiling_mhz"]), ("settled", "clock", 1410.0), result.stderr)
        tap.equal([point["ceiling_mhz"] for point in report["points"]], [float(mhz) for mhz in CEILINGS])
        tap.equal("limit_w" in report["points"][0] or "chosen_limit_w" in report, False)
        valid = [point for point in report["points"] if point["mark"] == "valid"]
        chosen = next(point for point in valid if point["ceiling_mhz"] == report["chosen_ceiling_mhz"])
        least = min(point["step_energy_j"] for point in valid)
        tap.equal(chosen["step_energy_j"] <= 1.03 * least, True, f"{chosen} of {valid}")
        tap.equal(chosen["ceiling_mhz"] < 1000, True, str(chosen))
        for piece in (f"tuning: a ceiling of {report['chosen_ceiling_mhz']:g} MHz on the clock for the least energy, no ceiling",
                      "ceilings measured", "1350 MHz  ", "GPU 0: no ceiling on its clock again"):
            tap.contains(result.stderr, piece)
        tap.equal((report["gpus"][0]["end"], math.isfinite(report["measured_slowdown"])), ("put back", True))


def test_killed_in_the_search():
    """The guard lifts the ceiling; the program goes on without it."""
    with machine(*EXACT, gpus=1), tuning(train(3000)) as process:
        guard = guard_of(process)
        process.kill()
        wait_for(lambda: ceiling() is None, "the ceiling is lifted", BACK_S)
        wait_for(lambda: gone(guard), "the guard is gone", BACK_S)
        tap.equal(ceiling(), None)


def test_another_program_sets_the_clock():
    with machine(*EXACT, gpus=1), tuning(train(900)) as process:
        wait_for(lambda: (ceiling() or 9999) < 1200, "a low ceiling is tried")
        emulator("set", "--gpu", 0, "--ceiling-mhz", 1395)
        status, _, talk = ended(process)
        tap.equal((status, ceiling()), (0, 1395), talk)
        tap.contains(talk, "another program")
        tap.equal(said()["state"] in ("off", "stopped"), True, talk)
        emulator("set", "--gpu", 0, "--ceiling-mhz", 0)


def test_needs_tune():
    result = subprocess.run([FLYBALL, "run", "--knob", "clock", "--", "true"], env=CLEAN, cwd=HOME, capture_output=True, text=True,
                            timeout=30, check=False)
    tap.equal(result.returncode, 64, result.stderr)
    tap.contains(result.stderr, "--knob is about --tune")


tap.main(globals())
