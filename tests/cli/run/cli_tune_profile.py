# SPDX-License-Identifier: Apache-2.0
"""flyball run --tune --knob profile on an emulated B200: what is chosen, and that what was requested comes back.

usage: cli_tune_profile.py FLYBALL SOURCE_ROOT
"""

import contextlib
import json
import math
import subprocess

import tap
from power_machine import (CLEAN, EMULATOR, FLYBALL, HOME, WHERE, again_and_again, emulator, ended, entries, gone, guard_of, kill_program,
                           machine, no_more, power, until_settled, wait_for)

EXACT = ["--sensor", "exact", "--counter-period-ms", "0"]
# A step of 8 ms at full clock that wants most of what the board gives.
STEPS = ["--sample-ms", "0.01", "--step-ms", "5.5", "--batch-size", "256"]
PROFILES = ["none", "MAX_P", "MAX_Q", "COMPUTE", "MEMORY_BOUND", "LLM_TRAINING", "HPC", "TRAINING"]


def train(steps):
    return [str(EMULATOR), "train", "--gpu", "0", *STEPS, "--steps", str(steps)]


def requested():
    return json.loads(emulator("show", "--json"))["gpus"][0]["workload_profiles_requested"]


def command(program, *options):
    return [FLYBALL, "run", "-v", "--tune", "--knob", "profile", "-i", "0", *WHERE, "--energy-tolerance", "1", "--output",
            str(HOME / "profile.json"), *options, "--", *program]


def said():
    return json.loads((HOME / "profile.json").read_text())["tune"]


def tuned(steps, *options):
    """The result and the report of a run, after which all is as it was."""
    result = subprocess.run(command(train(steps), *options), env=CLEAN, cwd=HOME, capture_output=True, text=True, timeout=tap.PATIENCE_S, check=False)
    tap.equal((result.returncode, requested(), entries()), (0, [], []), result.stderr)
    return result, said()


@contextlib.contextmanager
def tuning(program, *options):
    """A run that has requested its first profile."""
    with tap.Program(command(program, *options), env=CLEAN, cwd=HOME, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_for(lambda: requested() not in ([], ["HPC", "TRAINING"]), "a profile is tried")
            yield process
        finally:
            process.kill()


def test_chooses_by_its_own_figures():
    with machine(*EXACT, gpus=1, model="b200"):
        result, report = until_settled(lambda steps: tuned(steps, "--objective", "energy", "--max-slowdown", "none"), 1000)
        tap.equal((report["knob"], report["start_profile"]), ("profile", "none"), result.stderr)
        tap.equal([point["profile"] for point in report["points"]], PROFILES)
        tap.equal([name for name in ("limit_w", "ceiling_mhz") if name in report["points"][0]], [])
        tap.equal([name for name in ("chosen_limit_w", "chosen_ceiling_mhz") if name in report], [])
        valid = [point for point in report["points"] if point["mark"] == "valid"]
        chosen = next(point for point in valid if point["profile"] == report["chosen_profile"])
        least = min(point["step_energy_j"] for point in valid)
        tap.equal(chosen["step_energy_j"] <= 1.03 * least, True, f"{chosen} of {valid}")
        for piece in (f"tuning: profile {report['chosen_profile']} for the least energy, profile none before; ", "profiles measured",
                      "a step against one without a profile: ", "    LLM_TRAINING  ", "GPU 0: workload profiles none again"):
            tap.contains(result.stderr, piece)
        tap.equal((report["gpus"][0]["end"], math.isfinite(report["measured_slowdown"])), ("put back", True))


def test_killed_in_the_search():
    """The guard puts back what was requested before; when it is killed too, the next command does."""
    for guarded in (True, False):
        with machine(*EXACT, gpus=1, model="b200"):
            emulator("set", "--workload-profiles", "HPC,TRAINING")
            with tuning(train(6000)) as process:
                guard = guard_of(process)
                if not guarded:
                    kill_program(guard)
                process.kill()
                process.wait()
                if not guarded:
                    wait_for(lambda: gone(guard), "the guard is gone")
                    power("restore")
                wait_for(lambda: (requested(), entries()) == (["HPC", "TRAINING"], []), "the profiles are back")


def test_another_program_requests():
    with machine(*EXACT, gpus=1, model="b200"), tuning(again_and_again(train(100))) as process:
        emulator("set", "--workload-profiles", "COMPUTE,TRAINING")
        wait_for(lambda: entries() == [], "it is left to the other program")
        no_more()
        status, _, talk = ended(process)
        tap.equal((status, requested()), (0, ["COMPUTE", "TRAINING"]), talk)
        tap.contains(talk, "another program")
        tap.equal(said()["state"] in ("off", "stopped"), True, talk)


def test_older_boards():
    """The program runs as it is, and the report says why nothing was tuned."""
    with machine(*EXACT, gpus=1):
        result = subprocess.run(command(train(50)), env=CLEAN, cwd=HOME, capture_output=True, text=True, timeout=tap.PATIENCE_S, check=False)
        tap.equal((result.returncode, said()["state"]), (0, "off"), result.stderr)
        tap.contains(result.stderr, "nothing saved: GPU 0 has no workload power profiles")


def test_not_along_the_grid():
    result = subprocess.run(command(["true"], "--carbon", "gb:national", "--epochs", "3"), env=CLEAN, cwd=HOME, capture_output=True,
                            text=True, timeout=tap.PATIENCE_S, check=False)
    tap.equal(result.returncode, 64, result.stderr)
    tap.contains(result.stderr, "leave --knob power")


tap.main(globals())
