# SPDX-License-Identifier: Apache-2.0
"""flyball run --tune on emulated GPUs that have no work: their limits stay, and that is what the report says.

usage: cli_tune_idle.py FLYBALL SOURCE_ROOT
"""

import contextlib
import json
import pathlib
import subprocess

import tap
from power_machine import (BUILT, CLEAN, DEFAULT_W, FLYBALL, HOME, LIBRARIES, WHERE, emulator, ended, limits, machine, wait_for)

EXACT = ["--sensor", "exact", "--counter-period-ms", "0"]
TUNE, GUARD = (pathlib.Path(BUILT).parent / name for name in ("examples/tune", "flyball-guard"))

# Reports a step every 5 ms, in epochs of so many, until a file is there; it counts them in another.
TRAINER = """
n=0
until test -e "$1/end"; do
    test $((n % $2)) -eq 0 && echo epoch >&$FLYBALL_STEP_FD
    echo step >&$FLYBALL_STEP_FD
    echo x >> "$1/steps"
    sleep 0.005
    n=$((n + 1))
    test $((n % $2)) -eq 0 && echo epoch end >&$FLYBALL_STEP_FD
done
exit 5
"""


def steps():
    return len((HOME / "steps").read_text()) // 2 if (HOME / "steps").exists() else 0


@contextlib.contextmanager
def training(*options, epoch=30, command=("run", "-v", "--tune")):
    """A run of that trainer; after its end `said` is what the report says of tuning."""
    for name in ("end", "steps", "report.json"):
        (HOME / name).unlink(missing_ok=True)
    with tap.Program([FLYBALL, *command, *WHERE, "--energy-tolerance", "1", *options, "--output", str(HOME / "report.json"), "--", "sh", "-c", TRAINER, "sh",
                      str(HOME), str(epoch)], env=CLEAN, cwd=HOME, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_for(lambda: steps() > 100, "it has made steps")
            yield process
        finally:
            process.kill()


def end(process):
    """How it ended, what it said, and what the report says of tuning."""
    (HOME / "end").touch()
    status, _, talk = ended(process)
    return status, talk, json.loads((HOME / "report.json").read_text())["tune"]


def check_waited(status, talk, said, gpus):
    sentence = f"GPU{'s' if len(gpus) > 1 else ''} {', '.join(map(str, gpus))} had no work"
    tap.equal((status, said["state"], said["reason"], said["reason_text"], said["chosen_limit_w"], said["idle_share"]),
              (5, "searching", "no work", sentence, None, 1.0), talk)
    tap.equal({point["mark"] for point in said["points"]}, {"not measured"})
    tap.equal(said["search"]["steps"], 0)
    tap.contains(talk, f"flyball: {sentence}: nothing to tune\n")
    for piece in ("W again", "chosen", "  tuning:", "searching took"):
        tap.equal(piece in talk, False, talk)


def test_no_work_at_all():
    """Of one GPU and of several, in short epochs and in long ones; and no profile is saved."""
    for gpus, epoch in (([0], 1), ([0], 1000), ([0, 1], 30)):
        profiles = HOME / f"profiles-{len(gpus)}-{epoch}"
        profiles.mkdir()
        with machine(*EXACT, gpus=len(gpus)), training("--profile-directory", str(profiles), epoch=epoch) as process:
            emulator("set", "--gpu", 0, "--limit-w", 390)  # the highest limit would be set first
            check_waited(*end(process), gpus)
            tap.equal((limits()[0], list(profiles.iterdir())), (390, []))


def test_work_begins_later():
    with machine(*EXACT, gpus=1), training("-i", "0") as process:
        tap.equal(limits(), [DEFAULT_W])
        emulator("set", "--gpu", 0, "--load-w", 390)
        wait_for(lambda: limits()[0] < DEFAULT_W, "a limit is tried")
        status, talk, said = end(process)
        tap.equal((status, said["reason"], said["searches"], limits()), (5, "goes on", 1, [DEFAULT_W]), talk)
        tap.contains(talk, "GPU 0: 400 W again")


def test_a_driver_that_does_not_tell():
    """Then a GPU counts as one that has work."""
    faults = HOME / "faults"
    faults.write_text("call nvmlDeviceGetUtilizationRates return NOT_SUPPORTED\n")
    with machine(*EXACT, "--faults", str(faults), gpus=1), training("-i", "0") as process:
        status, talk, said = end(process)
        tap.equal((status, said["reason"], "had no work" in talk), (5, "goes on", False), talk)
        tap.contains(talk, "GPU 0: 400 W again")


def test_one_of_two():
    """The one that idles is left alone, and the other one tuned without it."""
    with machine(*EXACT, gpus=2), training() as process:
        emulator("set", "--gpu", 0, "--load-w", 390)
        wait_for(lambda: limits()[0] < DEFAULT_W, "a limit is tried")
        tap.equal(limits()[1], DEFAULT_W)
        status, talk, said = end(process)
        tap.equal((status, said["knob_note"], limits()), (5, "GPU 1 had no work: left alone", [DEFAULT_W] * 2), talk)
        tap.equal(said["points"][0]["mark"], "valid", talk)
        tap.equal(abs(said["points"][0]["power_w"] - 390) < 15, True, talk)
        tap.contains(talk, "GPU 0: 400 W again")
        tap.equal("GPU 1: " in talk, False, talk)


def test_a_profile():
    with machine(*EXACT, gpus=1), training("-i", "0", command=("profile",)) as process:
        (HOME / "end").touch()
        status, output, talk = ended(process)
        tap.equal(status, 5, talk)
        tap.contains(output + talk, "GPU 0 had no work")
        tap.equal(limits(), [DEFAULT_W])


def test_the_library():
    """A tuner in a program of its own."""
    if not TUNE.exists():
        raise tap.Skip("the example is not built")
    with machine(gpus=1):
        result = subprocess.run([str(TUNE), "200", "5"], env={**CLEAN, "LD_LIBRARY_PATH": str(LIBRARIES), "FLYBALL_GUARD": str(GUARD)}, cwd=HOME,
                                capture_output=True, text=True, timeout=tap.PATIENCE_S, check=False)
        tap.equal((result.returncode, limits()), (0, [DEFAULT_W]), result.stderr)
        tap.contains(result.stdout, "not tuned (no work): GPU 0 had no work\n")


tap.main(globals())
