# SPDX-License-Identifier: Apache-2.0
"""flyball run --job from outside, on emulated GPUs: which tries are made, how they end, and what is written down.

usage: cli_run_job.py FLYBALL SOURCE_ROOT
"""

import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

import tap
from power_machine import BUILT, CLEAN, DEFAULT_W, FLYBALL, HOME, LIBRARIES, WHERE, ended, gone, limits, machine, wait_for

EXACT = ["--sensor", "exact", "--counter-period-ms", "0"]
TRAINER = str(tap.LIB / "job_trainer.py")
STATES = tempfile.TemporaryDirectory(prefix="flyball-run-job-", dir=tap.quick_place())
STATE = pathlib.Path(STATES.name) / "state"
STORE = STATE / "flyball" / "store.sqlite"
DEFINITION = ["--batch-sizes", "16,32,64", "--default-batch-size", "32", "--target-metric", "1", "--max-epochs", "12", "--objective",
              "energy", "--leave-limits"]


def fresh():
    shutil.rmtree(STATE, ignore_errors=True)


def command(*words, options=(), definition=tuple(DEFINITION), job="job", program=None):
    return [FLYBALL, "run", "-v", "--job", job, "-i", "0", *WHERE, *definition, *options, "--", *(program or [sys.executable, TRAINER, "{batch_size}", *words])]


def environment(**more):
    return {**CLEAN, "XDG_STATE_HOME": str(STATE), **more}


def run(*words, env=None, **keywords):
    """The finished process, and what its document says of the recurrence."""
    path = HOME / "report.json"
    path.unlink(missing_ok=True)
    keywords["options"] = [*keywords.get("options", ()), "--output", str(path)]
    result = subprocess.run(command(*words, **keywords), env=environment(**(env or {})), cwd=HOME, capture_output=True, text=True, timeout=tap.PATIENCE_S,
                            check=False)
    document = json.loads(path.read_text()) if path.exists() else None
    return result, document and document["recurrence"]


def rows(query):
    with sqlite3.connect(STORE) as store:
        return store.execute(query).fetchall()


def ends():
    return [json.loads(body)["outcome"] for (body,) in rows("SELECT body FROM event WHERE kind = 'ended' ORDER BY number")]


def tries(said):
    return [(attempt["batch_size"], attempt["end"]) for attempt in said["tries"]]


def test_words_and_variables():
    fresh()
    out = HOME / "starts"
    out.unlink(missing_ok=True)
    with machine(*EXACT, gpus=1):
        first, said = run(f"out={out}", options=["--learning-rate", "0.1", "--seed", "100"], program=[
            sys.executable, TRAINER, "{batch_size}", f"out={out}", "x={learning_rate}/{local_batch_size}/{seed}/{max_epochs}/{other}"])
        tap.equal((first.returncode, tries(said)), (0, [(32, "reached")]), first.stderr)
        again, _ = run(f"out={out}", definition=[], options=["--leave-limits"])
        tap.equal(again.returncode, 0, again.stderr)
    tap.equal(out.read_text().splitlines(), [
        "TRIAL=1 ATTEMPT=1 TRY=0 BATCH_SIZE=32 LOCAL_BATCH_SIZE=32 LEARNING_RATE=0.1 SEED=101 MAX_EPOCHS=12",
        "TRIAL=2 ATTEMPT=1 TRY=0 BATCH_SIZE=32 LOCAL_BATCH_SIZE=32 LEARNING_RATE=- SEED=3 MAX_EPOCHS=12"])
    attempt = said["tries"][0]
    tap.equal((said["job"], said["recurrence"], attempt["trial"], attempt["epochs"], attempt["metric"], attempt["last_try"], attempt["limit_w"],
               attempt["ended_by_flyball"], said["log_unavailable"], said["kept_reports"]), ("job", 0, 1, 3, 1.0, True, None, True, None, 0))
    tap.equal(attempt["energy_j"] > 50 * attempt["time_s"] > 0, True, attempt)
    tap.contains(first.stderr, "job 'job', recurrence 1\n  try 1: trial 1, batch size 32, 3 epochs, metric 1, ")
    tap.contains(first.stderr, ": target reached\n")


def test_explores_and_starts_again():
    """A batch size that never gets there is stopped, and the next try has a model."""
    fresh()
    with machine(*EXACT, gpus=1):
        for policy, nights in (("bayes", 4), ("zeus", 5)):
            seen, stopped = set(), 0
            for night in range(nights):
                result, said = run("epochs=16:0,32:4,64:6", job=policy, options=["--tries", "4", "--policy", policy, "--no-default"])
                tap.equal((result.returncode, said["tries"][-1]["end"], said["recurrence"]), (0, "reached", night), result.stderr)
                seen |= {attempt["batch_size"] for attempt in said["tries"]}
                stopped += sum(attempt["end"] in ("stopped", "not_reached") for attempt in said["tries"])
                tap.equal(sum(attempt["end"] == "reached" for attempt in said["tries"]), 1)
    # What costs of so short trainings lead bayes to is chance; zeus tries them all whatever they cost.
    tap.equal((seen, stopped > 0), ({16, 32, 64}, True))


def flyball(*words, **keywords):
    return subprocess.run([FLYBALL, *words], env=environment(), cwd=HOME, capture_output=True, text=True, timeout=tap.PATIENCE_S, check=False, **keywords)


def test_like_and_revision():
    """The log alone says what was brought: without the source, and elsewhere, the same is decided."""
    fresh()
    epochs = "epochs=16:6,32:5,64:2"
    with machine(*EXACT, gpus=1):
        for _ in range(5):
            tap.equal(run(epochs, job="source", options=["--tries", "3"])[0].returncode, 0)
        refused, _ = run(epochs, options=["--like", "nobody"], env={"FLYBALL_DISABLE": ""})
        tap.contains(refused.stderr, "'nobody', and there is none; 'flyball job list' names")
        first, said = run(epochs, options=["--tries", "3", "--like", "source"])
        tap.equal((first.returncode, tries(said)), (0, [(32, "reached")]), first.stderr)
        tap.equal(flyball("job", "delete", "source", "--yes").returncode, 0)
        again, said = run(epochs, options=["--tries", "3", "--like", "source"])
        tap.equal((again.returncode, tries(said)[-1][1]), (0, "reached"), again.stderr)
        shown = flyball("job", "show", "-v", "job")
        tap.equal(re.search("It learns from [0-9]+ runs? of [0-9] batch sizes? of the job 'source' too[.]", shown.stdout) is not None, True, shown.stdout)
        for night in range(2):
            revised, said = run(epochs, definition=[], options=["--leave-limits", "--tries", "3", "--revision", "new data"])
            tap.equal((revised.returncode, tries(said)[-1][1]), (0, "reached"), revised.stderr)
            if night == 0:
                tap.equal(tries(said), [(32, "reached")], "the default begins a revision")
        log = flyball("job", "export", "job").stdout
        kinds = [json.loads(line) for line in log.splitlines()]
        tap.equal([(event["body"]["from"], event["body"]["source"], event["body"]["revision"]) for event in kinds if event["kind"] == "brought"],
                  [("job", "source", ""), ("revision", "", "new data")])
        tap.contains(flyball("job", "show", "-v", "job").stdout, "Revision 'new data'.")
        (HOME / "job.log").write_text(log)
        replayed = flyball("sim", "replay", "job.log", "--format", "json")
        tap.equal((replayed.returncode, [row for row in json.loads(replayed.stdout)["rows"] if row["same"] == "no"]), (0, []), replayed.stderr)
        tap.equal(flyball("job", "import", "copy", "job.log").returncode, 0)
        firsts = [tries(run(epochs, job=job, definition=[], options=["--leave-limits", "--tries", "3"])[1])[0][0] for job in ("job", "copy")]
        tap.equal(firsts[0], firsts[1])


def test_crashes():
    fresh()
    with machine(*EXACT, gpus=1):
        result, said = run("fail=32:crash,16:kill", options=["--tries", "3"])
        tap.equal((result.returncode, [attempt["end"] for attempt in said["tries"]]), (3, ["crashed"] * 3), result.stderr)
        tap.contains(result.stderr, ": failed, exit status 3\n")
        # After three crashes of the default another batch size is tried.
        result, said = run(program=["no-such-program"], options=["--tries", "3"])
        tap.equal((result.returncode, len(said["tries"])), (127, 1), result.stderr)
        tap.contains(result.stderr, "'no-such-program' cannot be run")
        result, said = run(program=["true"], options=["--tries", "3"])
        tap.equal((result.returncode, tries(said)), (0, [(16, "silent")]), result.stderr)
        tap.contains(result.stderr, "it reported no epoch")
        result, said = run(options=["--tries", "3"])
        tap.equal((result.returncode, tries(said)), (0, [(16, "reached")]), result.stderr)
    tap.equal(set(ends()), {"crashed", "reached"})
    for (body,) in rows("SELECT body FROM event WHERE kind = 'attempt'"):
        tap.equal(re.fullmatch("GPU-[-0-9a-f]+", json.loads(body)["gpus"]) is not None, True, body)


def test_too_short_for_an_energy():
    """A try that ends before a counter moves: its time is on record, and an energy that nobody knows is not zero."""
    fresh()
    with machine("--sensor", "exact", "--counter-period-ms", "60000", gpus=1):
        result, _ = run(program=["sh", "-c", "sleep 0.1; exit 1"])
        tap.equal(result.returncode, 1, result.stderr)
    ((body,),) = rows("SELECT body FROM event WHERE kind = 'ended'")
    ended_row = json.loads(body)
    tap.equal((ended_row["outcome"], ended_row["energy_j"], 0.1 <= ended_row["time_s"] < 3600), ("crashed", None, True), body)


def test_out_of_memory():
    """Said by a line of errors, by status, or by the program: the batch size is not run again, nor a larger one."""
    for how, options in (("memory", ["--oom-regex", "out of memory"]), ("status9", ["--oom-status", "9"]), ("line", [])):
        options = [*options, "--beta", "inf"]
        fresh()
        with machine(*EXACT, gpus=1):
            result, said = run(f"fail=32:{how},64:{how}", options=["--tries", "3", *options])
            tap.equal((result.returncode, tries(said)), (0, [(32, "out_of_memory"), (16, "reached")]), result.stderr)
            tap.equal("CUDA out of memory. Tried to allocate 2 GiB\n" in result.stderr, how == "memory", result.stderr)
            for _ in range(3):
                result, said = run(f"fail=32:{how},64:{how}", options=["--tries", "3", *options])
                tap.equal((result.returncode, tries(said)), (0, [(16, "reached")]), result.stderr)
        tap.equal(ends(), ["out_of_memory"] + ["reached"] * 4)


def test_metric_on_standard_output():
    """The output is passed on as it was written."""
    for by, pattern in (("one", "accuracy ([0-9.]+)"), ("two", "Epoch ([0-9]+): .*accuracy ([0-9.]+)")):
        fresh()
        with machine(*EXACT, gpus=1):
            result, said = run(f"by={by}", options=["--metric-regex", pattern])
            tap.equal((result.returncode, tries(said), said["tries"][0]["epochs"]), (0, [(32, "reached")], 3), result.stderr)
            lines = result.stdout.splitlines()
            tap.equal(lines[0], {"one": "done, accuracy 0.333333", "two": "Epoch 1: loss 0.1, accuracy 0.333333"}[by])
            tap.equal(lines[2][-1], "1")
    with machine(*EXACT, gpus=1):
        noise = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 4000); sys.exit(5)"
        result = subprocess.run(command(program=[sys.executable, "-c", noise], options=["--metric-regex", "accuracy (.*)"]), env=environment(),
                                cwd=HOME, capture_output=True, timeout=tap.PATIENCE_S, check=False)
        tap.equal((result.returncode, result.stdout == bytes(range(256)) * 4000), (5, True))


def test_stubborn():
    """What does not end at SIGTERM is killed after the grace, with what it started; epochs that it does meanwhile are on record, and not the trial's."""
    fresh()
    child = HOME / "child"
    with machine(*EXACT, gpus=1):
        result, said = run(f"stubborn={child}", options=["--grace", "0.3"])
        tap.equal((result.returncode, tries(said)), (0, [(32, "reached")]), result.stderr)
        (attempt,), (ended,) = said["tries"], [json.loads(body) for (body,) in rows("SELECT body FROM event WHERE kind = 'ended'")]
        tap.equal([attempt[what] for what in ("epochs", "metric", "energy_j", "time_s")], [3, *(ended[what] for what in ("metric", "energy_j", "time_s"))])
        wait_for(lambda: gone(int(child.read_text())), "what it started is gone")


def test_all_epochs():
    """A program that has all its epochs ends by itself, and may save its model."""
    fresh()
    marks = ["--batch-sizes", "16,32", "--default-batch-size", "32", "--max-epochs", "4", "--leave-limits", "--objective", "energy"]
    with machine(*EXACT, gpus=1):
        result, said = run("after=1", definition=marks)
        tap.equal((result.returncode, tries(said), said["tries"][0]["epochs"], said["tries"][0]["ended_by_flyball"]), (0, [(32, "reached")], 4, False),
                  result.stderr)
        tap.contains(result.stderr, ": all epochs\n")
        result, said = run(definition=marks, program=["env", "FLYBALL_MAX_EPOCHS=9", sys.executable, TRAINER, "{batch_size}"])
        tap.equal((result.returncode, said["tries"][0]["epochs"], said["tries"][0]["ended_by_flyball"]), (0, 4, True), result.stderr)
        fresh()
        result, said = run("epochs=32:0,16:0,64:0", options=["--tries", "2"])
        tap.equal((result.returncode, [attempt["end"] for attempt in said["tries"]]), (0, ["not_reached"] * 2), result.stderr)


def test_what_the_policy_is_told():
    """Without --policy a new job is searched by bayes, and one on record keeps its own; zeus gets its window."""
    fresh()

    def shown():
        words = [FLYBALL, "job", "show", "-v", "job"]
        text = subprocess.run(words, env=environment(), capture_output=True, text=True, check=True).stdout
        return text, json.loads(subprocess.run([*words, "--format=json"], env=environment(), capture_output=True, text=True, check=True).stdout)

    with machine(*EXACT, gpus=1):
        result, said = run("epochs=32:2", definition=[*DEFINITION, "--no-default"], options=["--recurrences-left", "3"])
        tap.equal((tries(said), said["log_unavailable"]), ([(32, "reached")], None), result.stderr)
        text, job = shown()
        tap.equal([job["policy"], job["recurrences_left"], *(job["definition"].get(name) for name in ("policy", "auto_policy_version", "no_default"))],
                  ["bayes", 2, "bayes", 1, True])
        for words in ("policy bayes: ", "32 (the first)", "2 more recurrences are expected", "the job has no default to compare with"):
            tap.contains(text, words)
        for options, told in ((["--policy", "zeus"], 'policy ("bayes", now "zeus")'), (["--policy", "auto"], None),
                              (["--policy", "grid"], 'policy ("bayes", now "grid")')):
            result, said = run("epochs=32:2", definition=[*DEFINITION, "--no-default"], options=options)
            tap.contains(said["log_unavailable"] or "none", told or "none")
        subprocess.run([FLYBALL, "job", "set", "job", "--policy", "grid", "--recurrences-left", "0"], env=environment(), check=True)
        _, job = shown()
        tap.equal((job["policy"], job["definition"]["policy"], job["recurrences_left"]), ("grid", "bayes", None))
        result, said = run("epochs=32:2", definition=[*DEFINITION, "--policy", "zeus", "--window", "5"], job="other")
        stated = subprocess.run([FLYBALL, "job", "show", "other", "--format=json"], env=environment(), capture_output=True, text=True, check=True)
        tap.equal(json.loads(stated.stdout)["definition"]["window"], 5)


def test_somebody_else_starts_again():
    """With --tries 0 a try that we ended exits with 75, and the next process makes the next try of the same night."""
    fresh()
    statuses, number = [], 1
    with machine(*EXACT, gpus=1):
        for _ in range(8):
            result, said = run("epochs=16:0,32:4,64:30", options=["--tries", "0"], env={"FLYBALL_RUN_ID": f"night {statuses.count(0)}"})
            tap.contains(result.stderr, f"recurrence {statuses.count(0) + 1}\n  try {number}: ")
            tap.equal((len(said["tries"]), result.returncode == 75), (1, said["tries"][0]["end"] != "reached"), result.stderr)
            statuses.append(result.returncode)
            number = 1 if result.returncode == 0 else number + 1
    tap.equal(set(statuses), {0, 75})


def test_preempted():
    """A signal from outside ends no trial: the same run goes on with it."""
    fresh()
    state = HOME / "checkpoint"
    state.unlink(missing_ok=True)
    with machine(*EXACT, gpus=1):
        with tap.Program(command("epochs=32:400", f"state={state}", definition=[*DEFINITION[:6], "--max-epochs", "400", "--objective", "energy"],
                                      options=["--tries", "3"]), env=environment(FLYBALL_RUN_ID="one"), cwd=HOME, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as process:
            wait_for(lambda: state.exists() and int(state.read_text() or 0) >= 3, "some epochs are done")
            process.send_signal(signal.SIGTERM)
            status, _, talk = ended(process)
            tap.equal(status, 128 + signal.SIGTERM, talk)
            tap.contains(talk, "interrupted")
        before = int(state.read_text())
        result, said = run(f"epochs=32:{before + 2}", f"state={state}", definition=[], env={"FLYBALL_RUN_ID": "one"}, options=["--tries", "3"])
        attempt = said["tries"][0]
        tap.equal((result.returncode, attempt["trial"], attempt["attempt"], attempt["epochs"], len(said["tries"])), (0, 1, 2, before + 2, 1),
                  result.stderr)
    tap.equal(ends(), ["reached"])


def test_killed():
    """The program runs on; the next of the same run goes on with the trial, and the limit is back."""
    fresh()
    state = HOME / "checkpoint"
    state.unlink(missing_ok=True)
    with machine(*EXACT, gpus=1):
        with tap.Program(command("epochs=32:400", f"state={state}", definition=[*DEFINITION[:6], "--max-epochs", "40", "--objective", "energy"]),
                         env=environment(FLYBALL_RUN_ID="one"), cwd=HOME, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            wait_for(lambda: state.exists() and int(state.read_text() or 0) >= 3, "some epochs are done")
            process.kill()
        wait_for(lambda: int(state.read_text() or 0) == 40, "the program has done all its epochs")
        wait_for(lambda: limits() == [DEFAULT_W], "the limit is back")
        state.unlink()
        result, said = run("epochs=32:5", definition=[], env={"FLYBALL_RUN_ID": "one"})
        tap.equal((result.returncode, said["tries"][0]["trial"], said["tries"][0]["attempt"]), (0, 1, 2), result.stderr)


def test_without_a_log():
    """The default batch size, once said, and again only after a crash."""
    fresh()
    with machine(*EXACT, gpus=1):
        result, said = run(options=["--store", str(HOME / "no" / "where.sqlite"), "--tries", "3"])
        tap.equal((result.returncode, tries(said), said["tries"][0]["trial"]), (0, [(32, "reached")], None), result.stderr)
        tap.equal(result.stderr.count("the job's log is not used: "), 1, result.stderr)
        result, said = run("fail=32:crash", options=["--store", str(HOME / "no" / "where.sqlite"), "--tries", "2"])
        tap.equal((result.returncode, tries(said)), (3, [(32, "crashed")] * 2), result.stderr)


# Leaves a daemon in a session of its own, whose parent has ended, and says its number; then does what is asked.
DAEMON = """
before=$(wc -l < pids)
for pid in $(cat pids); do test -d /proc/$pid && echo with $pid >> beside; done
(trap "$1" TERM; setsid sh -c 'echo $$ >> pids; exec sleep 300' >/dev/null 2>&1 &)
until test $(wc -l < pids) -gt $before; do sleep 0.01; done
eval "$2"
"""


def test_daemons_end_with_their_try():
    """Of one that was stopped, that failed before another, or was interrupted; what an ordinary end leaves is the user's."""
    reach = "echo 'epoch 1 metric 1' >&$FLYBALL_STEP_FD; sleep 60"
    rows_of_test = (
        ("reached", "-", reach, ["--tries", "1"], 0, [False]),
        ("ignores SIGTERM", "", reach, ["--tries", "1", "--grace", "0.2"], 0, [False]),
        ("failed twice", "-", "echo >&$FLYBALL_STEP_FD; exit 3", ["--tries", "2"], 3, [False, True]),
        ("interrupted", "-", "kill -TERM $PPID; sleep 60", ["--tries", "2"], 143, [False]),
        ("ended by itself", "-", "echo 'epoch 1 metric 1' >&$FLYBALL_STEP_FD; exit 0", ["--tries", "1", "--train-on"], 0, [True]),
    )
    with machine(*EXACT, gpus=1):
        for name, on_term, what, options, status, expected in rows_of_test:
            fresh()
            for file in ("pids", "beside"):
                (HOME / file).write_text("")
            result, _ = run(program=["sh", "-c", DAEMON, "sh", on_term, what], options=options)
            pids = [int(pid) for pid in (HOME / "pids").read_text().split()]
            left = [not gone(pid) for pid in pids]
            for pid in (pid for pid, stands in zip(pids, left) if stands):
                os.kill(pid, signal.SIGKILL)
            tap.equal((result.returncode, left, (HOME / "beside").read_text()), (status, expected, ""), name + result.stderr)


def test_disabled():
    fresh()
    out = HOME / "starts"
    out.unlink(missing_ok=True)
    result, said = run("epochs=32:0", f"out={out}", env={"FLYBALL_DISABLE": "1"})
    tap.equal((result.returncode, said, STATE.exists(), out.read_text().split()[3]), (0, None, False, "BATCH_SIZE=32"), result.stderr)
    result, said = run(env={"FLYBALL_DISABLE": "1"}, definition=[], program=["echo", "as it is"])
    tap.equal((result.returncode, result.stdout), (0, "as it is\n"), result.stderr)
    result, said = run(env={"FLYBALL_DISABLE": "1"}, definition=[])
    tap.equal(result.returncode, 64, result.stderr)
    tap.contains(result.stderr, "--default-batch-size has to be given")


def test_a_session_inside():
    """A program with a session of its own is one trial, not two, and is started again as it asks."""
    digits = pathlib.Path(BUILT).parent / "examples" / "digits"
    if not digits.exists():
        raise tap.Skip("the example is not built")
    fresh()
    marks = ["--batch-sizes", "8,16,32,64,128,256", "--default-batch-size", "128", "--target-metric", "0.95", "--max-epochs", "100", "--beta", "3",
             "--objective", "cost"]
    with machine(*EXACT, gpus=1):
        result, said = run(program=[str(digits), "1"], definition=marks, job="digits", options=["--tries", "3"],
                           env={"LD_LIBRARY_PATH": os.path.abspath(LIBRARIES)})
        tap.equal((result.returncode, tries(said)), (0, [(128, "session")]), result.stderr + result.stdout)
        tap.contains(result.stdout, "trial 1: batch size 128, ")
        tap.equal("not tuned" in result.stdout, False, result.stdout)
    kinds = [kind for (kind,) in rows("SELECT kind FROM event ORDER BY number")]
    tap.equal((kinds.count("proposed"), kinds.count("attempt"), kinds.count("ended"), kinds.count("epoch") >= 3), (1, 1, 1, True), kinds)


def test_tunes_the_limit():
    """From the steps that the program reports."""
    fresh()
    marks = DEFINITION[:-1]
    train = [str(LIBRARIES / "flyball-emulator"), "train", "--gpu", "0", "--sample-ms", "0.01", "--step-ms", "5.5", "--batch-size", "256",
             "--steps", "700", "--epochs", "2"]
    script = f"{' '.join(train)} && echo 'epoch 2 metric 1' >&$FLYBALL_STEP_FD && sleep 60"
    with machine(*EXACT, gpus=1):
        result, said = run(definition=marks, program=["sh", "-c", script], options=["--profile-steps", "10", "--grace", "2", "--power-limits", "400,250",
                                                                                          "--max-slowdown", "none"])
        tap.equal((result.returncode, tries(said)), (0, [(32, "reached")]), result.stderr)
        chosen = said["tries"][0]["limit_w"]
        tap.equal((chosen, limits()), (250, [DEFAULT_W]), result.stderr)
        (profile,) = rows("SELECT body FROM event WHERE kind = 'profiled'")
        tap.equal(json.loads(profile[0])["limit_w"], chosen)


def test_steps_while_a_limit_is_set():
    """They are over when they are heard of: the profile has the time of those that follow, and an epoch has all its steps."""
    fresh()
    step_s, steps = 0.02, 100
    epoch = (f"{LIBRARIES / 'flyball-emulator'} train --gpu 0 --sample-ms 0.001 --step-ms {1e3 * step_s} --batch-size 1 --steps {steps}"
             " && echo 'epoch {} metric {}' >&$FLYBALL_STEP_FD")
    script = f"{epoch.format(1, 0.5)} && {epoch.format(2, 1)} && sleep 60"
    with machine(*EXACT, "--set-ms", "200", gpus=1):
        result, said = run(definition=DEFINITION[:-1], program=["sh", "-c", script], options=["--profile-steps", "10", "--power-limits", "400,300,250"])
        tap.equal((result.returncode, tries(said)), (0, [(32, "reached")]), result.stderr)
    (profile,) = rows("SELECT body FROM event WHERE kind = 'profiled'")
    profile = json.loads(profile[0])
    # A busy machine makes steps longer. The first line after the limit is set may be late by less than a step.
    for limit_w, _, time_s in profile["points"]:
        tap.equal((limit_w, time_s > 0.85 * step_s), (limit_w, True), profile)
    tap.equal(profile["units_per_epoch"], steps)


def test_left_after_its_profile():
    """Whose steps take so long that no epoch is worth it: its profile shows that some steps after it began, and the next try follows."""
    fresh()
    train = f"{LIBRARIES / 'flyball-emulator'} train --gpu 0 --sample-ms 0.01 --batch-size 256 --epochs 1"
    script = (f"if [ {{batch_size}} = 32 ]; then {train} --step-ms 5.5 --steps 300; else {train} --step-ms 60 --steps 600; fi"
              " && echo 'epoch 1 metric 1' >&$FLYBALL_STEP_FD && sleep 60")
    keywords = {"definition": DEFINITION[:-1], "program": ["sh", "-c", script],
                "options": ["--policy", "zeus", "--tries", "3", "--profile-steps", "10", "--grace", "2", "--power-limits", "400,250"]}
    with machine(*EXACT, gpus=1):
        result, said = run(**keywords)
        tap.equal((result.returncode, tries(said)), (0, [(32, "reached")]), result.stderr)
        result, said = run(**keywords)
        tap.equal((result.returncode, tries(said)), (0, [(16, "stopped"), (64, "stopped"), (32, "reached")]), result.stderr)
        tap.contains(result.stderr, "not one epoch fits below its bound")
    tap.equal(ends(), ["reached", "refused", "refused", "reached"])
    for body, attempts in rows("SELECT body, (SELECT count(*) FROM event WHERE kind = 'epoch' AND trial = ended.trial) FROM event AS ended WHERE kind = 'ended'"):
        tap.equal((json.loads(body)["energy_j"] > 0, attempts), (True, json.loads(body)["outcome"] == "reached"), body)


def test_usage():
    for options, piece in ((["--tries", "2"], "--tries is about --job without --tune"), (["--job", "j", "--tune", "--tries", "2"], "--job without --tune"),
                           (["--job", "j", "--knob", "clock"], "--knob is about --tune"), (["--job", "j", "--batch-sizes", "1,2"], "a job is defined by"), (["--job", "j", *DEFINITION, "--metric-regex", "("], "bad value '('"),
                           (["--job", "j", *DEFINITION, "--metric-regex", "x"], "one group, the metric"),
                           (["--job", "j", *DEFINITION, "--finish-by", "soon"], "bad value 'soon'"),
                           (["--job", "j", *DEFINITION, "--policy", "zues"], "no policy 'zues' is known here; choose one of auto, bayes, default, grid, zeus"),
                           (["--job", "j", *DEFINITION, "--policy", "./mine.so"], "plug-in './mine.so' cannot be read: No such file"),
                           (["--job", "j", *DEFINITION, "--policy", "fixed"], "policy 'fixed'"),
                           (["--job", "j", *DEFINITION, "--power-limits", "high"], "bad value 'high'"),
                           (["--job", "j"], "there is no job 'j' yet"), (["--job", "j/k", *DEFINITION], "j/k")):
        fresh()
        with machine(gpus=1):
            result = subprocess.run([FLYBALL, "run", *WHERE, *options, "--", "echo", "ran"], env=environment(), cwd=HOME, capture_output=True,
                                    text=True, check=False)
        tap.equal((result.returncode in (64, 66) or "--policy" not in options, result.returncode > 0, result.stdout), (True, True, ""), f"{options} {result.stderr}")
        tap.contains(result.stderr, piece)
    result = subprocess.run([FLYBALL, "run", *WHERE, "--job", "j", *DEFINITION, "--", "echo", "{learning_rate}"], env=environment(), cwd=HOME,
                            capture_output=True, text=True, check=False)
    tap.equal(result.returncode, 64)
    tap.contains(result.stderr, "give it with --learning-rate")


def test_none_without_a_model():
    """Nights of out of memory, crashes, stops and preemption; each is submitted until it is through."""
    fresh()
    nights = 12 if os.environ.get("FLYBALL_TEST_QUICK") else 25
    models, faults = 0, 0
    # Python's start counts too, and on a busy machine it may take several times as long: an epoch is not short beside it.
    words = ["epochs=16:0,32:2,64:2", "step=0.03", "fail=64:memory", "luck=crash:8,kill:4,preempt:4"]
    options = ["--tries", "20", "--oom-regex", "CUDA out of memory", "--grace", "2", "--beta", "4"]
    with machine(*EXACT, gpus=1):
        for night in range(nights):
            for _ in range(20):
                result, said = run(*words, options=options, env={"FLYBALL_RUN_ID": f"night {night}"})
                tap.equal(said["log_unavailable"], None, result.stderr)
                faults += sum(attempt["end"] != "reached" for attempt in said["tries"])
                if said["tries"][-1]["end"] != "interrupted":
                    break
            tap.equal((result.returncode, said["tries"][-1]["end"]), (0, "reached"), result.stderr)
            models += 1
    print(f"# {models} models, {faults} faults on the way", flush=True)
    tap.equal((models, faults > nights / 10), (nights, True))
    outcomes = ends()
    tap.equal(outcomes.count("reached"), nights)
    tap.equal("stopped" in outcomes or nights < 25, True)


if "address" in tap.sanitizers(FLYBALL) or "thread" in tap.sanitizers(FLYBALL):
    os.environ["FLYBALL_TEST_QUICK"] = "1"
tap.main(globals())
