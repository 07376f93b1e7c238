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
TRAINER = str(tap.LIB / "job_trainer.py")
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
    command = [FLYBALL, "run", "-v", "--job", "job", "-i", "0", *WHERE, *definition, *options, "--output", str(path), "--", sys.executable, TRAINER,
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
        shown = subprocess.run([FLYBALL, "job", "show", "-v", "job"], env=environment(), capture_output=True, text=True, check=False)
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
        shown = subprocess.run([FLYBALL, "job", "show", "-v", "job"], env=environment(), capture_output=True, text=True, check=False)
        tap.contains(shown.stdout, "\nAn epoch is 256 samples; the program evaluates after every 4 steps.\n")
        subprocess.run([FLYBALL, "job", "set", "job", "--pin", "32"], env=environment(), capture_output=True, check=True)
        result, said = run(*words, definition=["--leave-limits"])
        tap.equal((result.returncode, tries(said), said["tries"][0]["epochs"]), (0, [(32, "reached")], 2), result.stderr)


def job(*words, form="json"):
    result = subprocess.run([FLYBALL, "job", *words, "--format", form], env=environment(), cwd=HOME, capture_output=True, text=True, check=True)
    return json.loads(result.stdout) if form == "json" else result.stdout


def test_start_up():
    """What a try takes before its first step stands apart, and ends no exploration."""
    fresh()
    with machine(*EXACT, gpus=1):
        for _ in range(6):
            # Other batch sizes are worth a trial; a third of a run, as start-up and one epoch, is no reason to leave one.
            result, said = run("load=0.6", "step=0.02", "epochs=16:9,32:6,64:4", options=["--tries", "3", "--policy", "zeus"])
            tap.equal((result.returncode, said["tries"][-1]["end"]), (0, "reached"), result.stderr)
            for attempt in said["tries"]:
                tap.equal((0.6 <= attempt["startup_time_s"] < attempt["time_s"], 0 < attempt["startup_energy_j"] < attempt["energy_j"]), (True, True), attempt)
                tap.equal(attempt["end"] == "stopped" and attempt["epochs"] == 1, False, result.stderr)
                if attempt["end"] == "stopped":
                    tap.contains(attempt["cause"], "its score would be too high after one more epoch: ")
                    tap.contains(attempt["cause"], " each beside a start-up of ")
            tap.contains(result.stderr, ", start-up ")
        rows = job("history", "job")["rows"]
        tap.equal([0.6 <= row["startup_time_s"] < row["time_s"] for row in rows], [True] * len(rows), rows)
        tap.equal([0 < row["startup_energy_j"] < row["energy_j"] for row in rows], [True] * len(rows), rows)
        tap.contains(job("history", "job", form="table"), "start-up (s)")
        tap.contains(job("history", "job", form="csv").splitlines()[0], ",startup_energy_j,startup_time_s")
        why = job("why", "-v", "job")
        tap.equal((why["startup_time_s"], why["startup_energy_j"]), (rows[-1]["startup_time_s"], rows[-1]["startup_energy_j"]))
        tap.contains(job("why", "job", form="table"), ", which counts for no epoch.\n")
        # A program that tells no step, and no epoch before its end, does not say what its start-up was.
        script = 'sleep 0.3; for epoch in 1 2; do echo "epoch $epoch metric 0.5"; sleep 0.1; done; echo "epoch 3 metric 1"'
        result = subprocess.run([FLYBALL, "run", "--job", "plain", "-i", "0", *WHERE, *DEFINITION, "--metric-regex", "epoch ([0-9]+) metric ([0-9.]+)", "--",
                                 "sh", "-c", script], env=environment(), cwd=HOME, capture_output=True, text=True, check=False)
        tap.equal(result.returncode, 0, result.stderr)
        (row,) = job("history", "plain")["rows"]
        tap.equal((row["outcome"], row["startup_time_s"], row["startup_time_s_unavailable"]),
                  ("reached", None, "no report said when its first step began"))
        tap.equal("start-up" in job("history", "plain", form="table"), False)


def test_failed_before_its_first_step():
    """Is no trial of its batch size, and is not tried again; the next submission is as if it had not been."""
    said_so = "your program failed before its first step; nothing learnt, "
    kill = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    regex = ["--metric-regex", "accuracy ([0-9.]+)"]
    no_program = HOME / "no_program"
    no_program.write_text("#!/bin/sh\n", encoding="utf-8")
    no_program.chmod(0o600)
    for program, options, status, cause in (
            ([sys.executable, TRAINER, "{batch_size}", "typo=2"], [], 2, "exit status 2"), ([sys.executable, "-c", "import nothing_like_it"], [], 1, "exit status 1"),
            ([sys.executable, "-c", kill], [], 137, "signal 9"), (["sh", "-c", "echo loading; exit 4"], regex, 4, "exit status 4"),
            (["no-such-program"], [], 127, "it could not be started"), ([str(no_program)], [], 126, "it could not be started"), (["sh", "-c", "exit 75"], [], 75, "exit status 75")):
        fresh()
        with machine(*EXACT, gpus=1):
            for _ in range(3):
                path = HOME / "report.json"
                path.unlink(missing_ok=True)
                command = [FLYBALL, "run", "-v", "--job", "job", "-i", "0", *WHERE, *DEFINITION, "--tries", "3", *options, "--output", str(path), "--", *program]
                result = subprocess.run(command, env=environment(), cwd=HOME, capture_output=True, text=True, timeout=120, check=False)
                said = json.loads(path.read_text())["recurrence"]
                tap.equal((result.returncode, tries(said), said["recurrence"]), (status, [(32, "not_started")], 0), result.stderr)
                tap.contains(said["tries"][0]["cause"], cause)
                tap.contains(result.stderr, said_so + cause)
            ends = [row for row in job("history", "job")["rows"]]
            tap.equal([(row["batch_size"], row["outcome"], row["recurrence"]) for row in ends], [(32, "nothing_learnt", 0)] * 3)
            tap.contains(ends[0]["cause"], "your program failed before its first step; nothing learnt: " + cause)
            tap.contains(job("why", "job", form="table"), "Nothing is learnt from it: your program failed before its first step")
            result, said = run(options=["--tries", "3"])
            tap.equal((result.returncode, tries(said), said["recurrence"]), (0, [(32, "reached")], 0), result.stderr)
            shown = job("show", "-v", "job")
            tap.equal((shown["recurrences"], "crashed" in job("why", "job", form="table").split("\n\n")[0]), (1, False), shown)
    # In logs it is a crash, as older versions know it, and it says what it is.
    log = subprocess.run([FLYBALL, "job", "export", "job"], env=environment(), cwd=HOME, capture_output=True, text=True, check=True).stdout
    bodies = [json.loads(line)["body"] for line in log.splitlines() if '"outcome"' in line]
    tap.equal([(body["outcome"], body.get("nothing_learnt", False)) for body in bodies], [("crashed", True)] * 3 + [("reached", False)])
    replayed = subprocess.run([FLYBALL, "sim", "replay", "-"], input=log, env=environment(), cwd=HOME, capture_output=True, text=True, check=False)
    tap.equal(replayed.returncode, 0, replayed.stderr)


def test_started_and_failed():
    """After a step, an epoch or for lack of the GPU's memory it is what it was: it tells something of its batch size."""
    with machine(*EXACT, gpus=1):
        for script, end, count in (('echo >&$FLYBALL_STEP_FD; exit 3', "crashed", 2), ('echo "epoch 1" >&$FLYBALL_STEP_FD; exit 3', "crashed", 2),
                                   ('echo "epoch 1 metric 0.1" >&$FLYBALL_STEP_FD; exit 3', "crashed", 2),
                                   ('echo "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB" >&2; exit 1', "out_of_memory", 2)):
            fresh()
            path = HOME / "report.json"
            command = [FLYBALL, "run", "-v", "--job", "job", "-i", "0", *WHERE, *DEFINITION, "--tries", "2", "--output", str(path), "--", "sh", "-c", script]
            subprocess.run(command, env=environment(), cwd=HOME, capture_output=True, text=True, timeout=120, check=False)
            made = tries(json.loads(path.read_text())["recurrence"])
            tap.equal([how for _, how in made], [end] * count, script)


def test_directories():
    """Each try has one of its own, and every attempt of a try has the same."""
    script = 'echo "$1 $FLYBALL_TRY_DIRECTORY" >> "$2" && touch "$1/checkpoint" && [ "$3" = 2 ] || { echo >&"$FLYBALL_STEP_FD"; exit 3; }'

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


def test_tries_by_default():
    """As many as are safe: several where the command puts what it saves into the try's own directory, else one, and how to have more is said."""
    fails = "fail=16:crash,32:crash,64:crash"
    with machine(*EXACT, gpus=1):
        for words, options, count, hints in ((["x=1"], [], 1, True), (["x=1"], ["--tries", "2"], 2, False), (["x={try_directory}"], [], 3, False),
                                             (["x={try_directory}"], ["--tries", "1"], 1, True)):
            fresh()
            result, said = run(fails, *words, options=options)
            tap.equal((len(said["tries"]), "no second was made" in result.stderr), (count, hints), result.stderr)


tap.main(globals())
