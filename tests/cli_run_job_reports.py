# SPDX-License-Identifier: Apache-2.0
"""What `flyball run --job` makes of a program's reports: an early stopping of its own, noisy metrics, evaluations after so many steps.

usage: cli_run_job_reports.py FLYBALL SOURCE_ROOT
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import tap
from power_machine import CLEAN, FLYBALL, HOME, WHERE, machine

EXACT = ["--sensor", "exact", "--counter-period-ms", "0"]
TRAINER = str(pathlib.Path(__file__).parent.resolve() / "job_trainer.py")
STATES = tempfile.TemporaryDirectory(prefix="flyball-run-reports-", dir=tap.quick_place())
STATE = pathlib.Path(STATES.name) / "state"
DEFINITION = ["--batch-sizes", "16,32,64", "--default-batch-size", "32", "--target-metric", "1", "--max-epochs", "12", "--objective",
              "energy", "--leave-limits"]


def fresh():
    shutil.rmtree(STATE, ignore_errors=True)


def environment():
    return {**CLEAN, "XDG_STATE_HOME": str(STATE)}


def run(*words, definition=tuple(DEFINITION), options=()):
    """The finished process, and what its document says of the recurrence."""
    path = HOME / "report.json"
    path.unlink(missing_ok=True)
    command = [FLYBALL, "run", "--job", "job", "-i", "0", *WHERE, *definition, *options, "--output", str(path), "--", sys.executable, TRAINER,
               "{batch_size}", *words]
    result = subprocess.run(command, env=environment(), cwd=HOME, capture_output=True, text=True, timeout=tap.PATIENCE_S, check=False)
    document = json.loads(path.read_text()) if path.exists() else None
    return result, document and document["recurrence"]


def tries(said):
    return [(attempt["batch_size"], attempt["end"]) for attempt in said["tries"]]


def test_ends_by_itself():
    """A program with an early stopping of its own has not failed: its batch size is tried again."""
    fresh()
    with machine(*EXACT, gpus=1):
        result, said = run("epochs=32:0,16:0,64:0", "patience=3", options=["--tries", "2", "--policy", "bayes"])
        tap.equal((result.returncode, [(attempt["end"], attempt["epochs"]) for attempt in said["tries"]]), (0, [("not_reached", 3)] * 2), result.stderr)
        tap.contains(result.stderr, ": target not reached, it ended by itself after epoch 3 of 12\n")


def test_target_hold():
    """The target has to hold for so many reports; a later submission by the job's name alone says the same."""
    fresh()
    with machine(*EXACT, gpus=1):
        result, _ = run(definition=[*DEFINITION, "--max-metric-loss", "0.1"])
        tap.contains(result.stderr, "max_metric_loss: expected a job that trains on after its target")
        fresh()
        for definition in ([*DEFINITION, "--target-hold", "3", "--best-so-far"], ["--leave-limits"]):
            result, said = run("epochs=32:2", definition=definition)
            tap.equal((result.returncode, tries(said), said["tries"][0]["epochs"], said["log_unavailable"]), (0, [(32, "reached")], 4, None), result.stderr)
        result, said = run("epochs=32:2")
        tap.contains(said["log_unavailable"], "target_hold (3, now none)")
        shown = subprocess.run([FLYBALL, "job", "show", "job"], env=environment(), capture_output=True, text=True, check=False)
        tap.contains(shown.stdout, "; a metric of at least 1 in 3 reports in a row within 12 epochs, where the best so far counts.\n")


def test_report_every_samples():
    """Of evaluations every four steps, those count that end so many samples: at 32 each second one, at 64 each."""
    fresh()
    with machine(*EXACT, gpus=1):
        for size, epochs in ((32, 2), (64, 4)):
            fresh()
            result, said = run("epochs=32:4,64:4", definition=["--batch-sizes", "32,64", "--default-batch-size", str(size), *DEFINITION[4:],
                                                               "--report-every-samples", "256"])
            tap.equal((result.returncode, tries(said), said["tries"][0]["epochs"], said["log_unavailable"]), (0, [(size, "reached")], epochs, None),
                      result.stderr)


def test_report_every_steps():
    """Evaluations every four steps, which nobody tells: at 64, the default, each is an epoch, and at 32 each second one; so later by the name alone."""
    fresh()
    with machine(*EXACT, gpus=1):
        words = ("epochs=32:4,64:4", "untold=1")
        result, said = run(*words, definition=["--batch-sizes", "32,64", "--default-batch-size", "64", *DEFINITION[4:], "--report-every-steps", "4"])
        tap.equal((result.returncode, tries(said), said["tries"][0]["epochs"], said["log_unavailable"]), (0, [(64, "reached")], 4, None), result.stderr)
        shown = subprocess.run([FLYBALL, "job", "show", "job"], env=environment(), capture_output=True, text=True, check=False)
        tap.contains(shown.stdout, "\nAn epoch is 256 samples; the program evaluates after every 4 steps.\n")
        subprocess.run([FLYBALL, "job", "set", "job", "--pin", "32"], env=environment(), capture_output=True, check=True)
        result, said = run(*words, definition=["--leave-limits"])
        tap.equal((result.returncode, tries(said), said["tries"][0]["epochs"]), (0, [(32, "reached")], 2), result.stderr)


def test_directories():
    """Each try has one of its own, and every attempt of a try has the same."""
    script = 'echo "$1 $FLYBALL_TRY_DIRECTORY" >> "$2" && touch "$1/checkpoint" && [ "$3" = 2 ] || exit 3'

    def started(*words, run):
        out = HOME / "directories"
        out.unlink(missing_ok=True)
        subprocess.run([FLYBALL, "run", "--job", "job", "-i", "0", *WHERE, *DEFINITION, *words, "--", "sh", "-c", script, "sh", "{try_directory}", out,
                        str(len(list(HOME.glob("flyball-tries/job/*"))))],
                       env={**environment(), "FLYBALL_RUN_ID": run}, cwd=HOME, stdout=subprocess.DEVNULL, timeout=tap.PATIENCE_S, check=False)
        lines = [line.split() for line in out.read_text().splitlines()]
        tap.equal([argument == variable for argument, variable in lines], [True] * len(lines), lines)
        return [pathlib.Path(argument) for argument, _ in lines]

    fresh()
    shutil.rmtree(HOME / "flyball-tries", ignore_errors=True)
    with machine(*EXACT, gpus=1):
        places = started("--tries", "2", run="one")
        tap.equal([place.relative_to(HOME) for place in places], [pathlib.Path("flyball-tries/job", f"trial-{trial}") for trial in (1, 2)])
        tap.equal([(place / "checkpoint").exists() for place in places], [True, True])
        elsewhere = started("--tries-directory", str(HOME / "elsewhere"), run="two")
        tap.equal([place.parent for place in elsewhere], [HOME / "elsewhere" / "job"])
        env = {**environment(), "FLYBALL_DISABLE": "1"}
        plain = subprocess.run([FLYBALL, "run", "--job", "job", *DEFINITION, "--", "test", "-d", "{try_directory}"], env=env, cwd=HOME, check=False)
        tap.equal(plain.returncode, 0)


tap.main(globals())
