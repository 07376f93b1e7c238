# SPDX-License-Identifier: Apache-2.0
"""flyball run --tune with other knobs than the limit, on emulated GPUs: what is chosen, and that all is put back afterwards.

usage: cli_tune_clock.py FLYBALL SOURCE_ROOT
"""

import contextlib
import json
import math
import subprocess

import tap
from power_machine import (CLEAN, DEFAULT_W, EMULATOR, FLYBALL, HOME, WHERE, again_and_again, emulator, ended, entries, gone, guard_of,
                           kill_program, limits, machine, no_more, power, until_settled, wait_for)

SHORT = ["--energy-tolerance", "1"]
EXACT = ["--sensor", "exact", "--counter-period-ms", "0"]
# A step of 8 ms at full clock that wants most of what the board gives.
STEPS = ["--sample-ms", "0.01", "--step-ms", "5.5", "--batch-size", "256"]
CEILINGS = list(range(1410, 569, -60))


def train(steps):
    return [str(EMULATOR), "train", "--gpu", "0", *STEPS, "--steps", str(steps)]


def ceiling():
    return json.loads(emulator("show", "--json"))["gpus"][0]["clock_ceiling_mhz"]


def command(program, *options, knob="clock"):
    return [FLYBALL, "run", "-v", "--tune", "--knob", knob, "-i", "0", *WHERE, *SHORT, "--output", str(HOME / "clock.json"), *options, "--",
            *program]


def said():
    return json.loads((HOME / "clock.json").read_text())["tune"]


def tuned(steps, *options, knob="clock"):
    """The result and the report of a run, after which all is as it was."""
    result = subprocess.run(command(train(steps), *options, knob=knob), env=CLEAN, cwd=HOME, capture_output=True, text=True,
                            timeout=tap.PATIENCE_S, check=False)
    tap.equal((result.returncode, ceiling(), limits()), (0, None, [DEFAULT_W]), result.stderr)
    return result, said()


@contextlib.contextmanager
def tuning(program, *options, knob="clock"):
    """A run whose first ceiling stands."""
    with tap.Program(command(program, *options, knob=knob), env=CLEAN, cwd=HOME, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                     text=True) as process:
        try:
            wait_for(lambda: ceiling() is not None, "a ceiling is tried")
            yield process
        finally:
            process.kill()


def test_chooses_by_its_own_figures():
    with machine(*EXACT, gpus=1):
        result, report = until_settled(lambda steps: tuned(steps, "--objective", "energy", "--max-slowdown", "none"), 1600)
        tap.equal((report["knob"], report["start_ceiling_mhz"]), ("clock", 1410.0), result.stderr)
        tap.equal([point["ceiling_mhz"] for point in report["points"]], [float(mhz) for mhz in CEILINGS])
        tap.equal("limit_w" in report["points"][0] or "chosen_limit_w" in report, False)
        valid = [point for point in report["points"] if point["mark"] == "valid"]
        chosen = next(point for point in valid if point["ceiling_mhz"] == report["chosen_ceiling_mhz"])
        least = min(point["step_energy_j"] for point in valid)
        tap.equal(chosen["step_energy_j"] <= 1.03 * least, True, f"{chosen} of {valid}")
        tap.equal(chosen["ceiling_mhz"] < 1000, True, str(chosen))
        for piece in (f"tuning: a ceiling of {report['chosen_ceiling_mhz']:g} MHz on the clock for the least energy, no ceiling",
                      "ceilings measured", f"{report['chosen_ceiling_mhz']:g} MHz  ", "GPU 0: no ceiling on its clock again"):
            tap.contains(result.stderr, piece)
        tap.equal((report["gpus"][0]["end"], math.isfinite(report["measured_slowdown"])), ("put back", True))


def test_killed_in_the_search():
    """The guard lifts the ceiling; the program goes on without it."""
    with machine(*EXACT, gpus=1), tuning(train(3000)) as process:
        guard = guard_of(process)
        process.kill()
        wait_for(lambda: ceiling() is None, "the ceiling is lifted")
        wait_for(lambda: gone(guard), "the guard is gone")
        tap.equal(ceiling(), None)


def test_another_program_sets_the_clock():
    with machine(*EXACT, gpus=1), tuning(again_and_again(train(100))) as process:
        emulator("set", "--gpu", 0, "--ceiling-mhz", 1395)
        wait_for(lambda: entries() == [], "it is left to the other program")
        no_more()
        status, _, talk = ended(process)
        tap.equal((status, ceiling()), (0, 1395), talk)
        tap.contains(talk, "another program")
        tap.equal(said()["state"] in ("off", "stopped"), True, talk)
        emulator("set", "--gpu", 0, "--ceiling-mhz", 0)


# Limits are few, so that ceilings come soon.
FEW = ["--max-slowdown", "1%", "--objective", "energy"]


def test_both():
    """The limit first, and ceilings under it; all is put back."""
    with machine(*EXACT, gpus=1):
        result, report = until_settled(lambda steps: tuned(steps, *FEW, knob="both"), 1900)
        tap.equal((report["knob"], report["knob_note"], report["start_limit_w"], report["start_ceiling_mhz"]), ("both", None, 400.0, 1410.0))
        own = [point for point in report["points"] if "ceiling_mhz" in point]
        tap.equal([point["ceiling_mhz"] for point in own], [float(mhz) for mhz in CEILINGS])
        tap.equal({point["limit_w"] for point in own}, {report["chosen_limit_w"]})
        for piece in (f"tuning: {report['chosen_limit_w']:g} W and ", "on the clock for the least energy within 1 % more time, 400 W and no ceiling",
                      "limits and ceilings measured", f"under {report['chosen_limit_w']:g} W:"):
            tap.contains(result.stderr, piece)
        tap.equal((report["gpus"][0]["end"], math.isfinite(report["measured_slowdown"])), ("put back", True))


def test_both_killed():
    """While both stand: the guard puts both back; when it is killed too, the next command does."""
    for guarded in (True, False):
        with machine(*EXACT, gpus=1):
            emulator("set", "--gpu", 0, "--limit-w", 390)
            with tuning(train(6000), *FEW, "--profile-steps", "15", knob="both") as process:
                guard = guard_of(process)
                tap.equal(limits()[0] != 390, True, "a limit stands under the ceiling")
                if not guarded:
                    kill_program(guard)
                process.kill()
                process.wait()
                if not guarded:
                    wait_for(lambda: gone(guard), "the guard is gone")
                    power("restore")
                wait_for(lambda: (ceiling(), limits(), entries()) == (None, [390], []), "both are back")


def test_clock_where_limits_may_not_be_set():
    script = HOME / "refuses.faults"
    script.write_text("call nvmlDeviceSetPowerManagementLimit no-permission\n")
    with machine(*EXACT, "--faults", str(script), gpus=1):
        result = subprocess.run(command(train(1500), "--objective", "energy", knob="auto"), env=CLEAN, cwd=HOME, capture_output=True,
                                text=True, timeout=tap.PATIENCE_S, check=False)
        report = said()
        tap.equal((result.returncode, ceiling(), limits(), report["knob"]), (0, None, [DEFAULT_W], "clock"), result.stderr)
        tap.contains(report["knob_note"], "the clock is tuned alone, since the power limit may not be set: ")
        tap.contains(report["knob_note"], "the clock is tuned alone")
        if report["state"] == "settled":
            tap.contains(result.stderr, f"  tuning: {report['knob_note']}\n")
        tap.equal("GPU 0: 400 W again" in result.stderr, False, result.stderr)


def test_needs_tune():
    result = subprocess.run([FLYBALL, "run", "--knob", "clock", "--", "true"], env=CLEAN, cwd=HOME, capture_output=True, text=True,
                            timeout=tap.PATIENCE_S, check=False)
    tap.equal(result.returncode, 64, result.stderr)
    tap.contains(result.stderr, "--knob is about --tune")


tap.main(globals())
