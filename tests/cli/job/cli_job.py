# SPDX-License-Identifier: Apache-2.0
"""`flyball job ...` from outside: what it lists, shows, tells and sets of jobs, and what it refuses.

usage: cli_job.py FLYBALL

Figures are worked out a second time from the exported log; cli_job_why.py has the reasons,
cli_job_pareto.py the frontier, cli_job_export.py what is taken along.
"""
import json
import math
import pathlib
import re
import statistics

import tap
from job_stores import BOX, CLEAN, FLYBALL, STORE, close, document, fill, fill_digits, good, log, refused, rows

QUIET = BOX / "quiet.sqlite"  # nightly: no controls
EMPTY = BOX / "empty.sqlite"


def setup():
    fill_digits()
    fill(STORE, "words", 3)
    fill(QUIET, "nightly", 12)


# -- Lists --


def test_list():
    tap.equal([row["job"] for row in rows("list")], ["digits", "words"])
    tap.equal([row["job"] for row in rows("list", store=QUIET)], ["nightly"], "another store")
    shown = document("list")
    tap.equal(shown["schema"], "flyball.job.list/1")
    digits = shown["rows"][0]
    tap.equal((digits["recurrences"], digits["running"], digits["events"]), (31, 1, len(log("digits"))))
    tap.contains(good("list").stdout, "recurrences")
    tap.equal([row["job"] for row in rows("list", store=None, env={**CLEAN, "FLYBALL_STORE": str(QUIET)})], ["nightly"])


def test_empty_store():
    fill(EMPTY, "soon-gone", 1)
    good("delete", "soon-gone", "--yes", store=EMPTY)
    result = good("list", store=EMPTY)
    tap.equal(result.stdout, "")
    tap.contains(result.stderr, "there are no jobs in the store")
    tap.equal(document("list", store=EMPTY)["rows"], [])
    refused(66, "which has 0; name another store", "show", "digits", store=EMPTY)


def test_the_own_store():
    home = BOX / "home"
    home.mkdir()
    result = good("list", "--format=csv", store=None, env={**CLEAN, "HOME": str(home)})
    tap.equal(len(result.stdout.splitlines()), 1, "a head without rows")
    tap.contains(result.stderr, "there is no store of your own yet")
    refused(66, "there is no store", "show", "digits", store=None, env={**CLEAN, "HOME": str(home)})
    tap.equal(list(home.iterdir()), [], "reading makes nothing")


def test_reading_makes_nothing():
    """No store is made by looking at it, and no job by asking for it."""
    place = BOX / "nothing"
    place.mkdir()
    (place / "blank.sqlite").touch()
    words = {"set": ["--eta=1"], "delete": ["--yes"]}
    for name in ("typo.sqlite", "blank.sqlite", "no/such/directory.sqlite"):
        for command in ("show", "history", "why", "pareto", "export", "set", "delete"):
            refused(66, "there is no store", command, "digits", *words.get(command, []), store=place / name)
        refused(66, "there is no store", "list", store=place / name)
        result = tap.run([FLYBALL, "report", f"--store={place / name}"], env=CLEAN)
        tap.equal(result.returncode, 66, result.stderr)
    tap.equal([path.name for path in place.iterdir()], ["blank.sqlite"])
    tap.equal((place / "blank.sqlite").stat().st_size, 0)
    before = QUIET.read_bytes()
    for command in ("show", "history", "why", "pareto", "export", "set", "delete"):
        refused(66, "no job 'nosuch'", command, "nosuch", *words.get(command, []), store=QUIET)
    tap.equal([row["job"] for row in rows("list", store=QUIET)], ["nightly"])
    tap.equal(QUIET.read_bytes() == before, True, "the same bytes")


# -- Refusals --


def test_unknown_jobs():
    for command in ("show", "history", "why", "pareto", "delete", "export"):
        refused(66, "no job 'digit' in the store; did you mean 'digits'?", command, "digit")
        refused(66, "no job 'xyz' in the store, which has 2; 'flyball job list' shows them", command, "xyz")
        refused(64, "no job was named", command)
    refused(66, "did you mean 'digits'?", "set", "digit", "--eta=1")
    refused(66, "did you mean 'words'?", "export", "wrods", "--format=trace", "--output=never")
    tap.equal((BOX / "never").exists(), False)


def test_wrong_options():
    refused(64, "unknown command 'job lits'; did you mean 'job list'?", "lits")
    refused(64, "unknown option", "show", "digits", "--hardwear=1")
    refused(64, "unexpected operand 'words'", "show", "digits", "words")
    refused(64, "kinds of hardware, and there is no number 2", "pareto", "digits", "--hardware=2")
    refused(66, "has no trial 1000; its newest is", "why", "digits", "--trial=1000")
    refused(64, "expected", "export", "digits", "--format=xml")
    refused(64, "name a directory with --output", "export", "digits", "--format=trace")
    refused(64, "no file was named", "import", "other")
    refused(66, "cannot be read", "import", "other", "missing.jsonl")
    refused(69, "nobody answers", "list", store="http://127.0.0.1:1")


def test_wrong_settings():
    before = log("words")
    for arguments, words in [
        ((), "nothing to set was given"),
        (("--eta=2",), "a number from 0 to 1"),
        (("--objective=speed",), "energy, time, cost:ETA, lowest-limit, carbon or money"),
        (("--objective=energy", "--eta=1"), "give one"),
        (("--max-slowdown=3",), "3% or 1.03x, or none"),
        (("--pin=64,",), "as in 64,150"),
        (("--pin=64,150,3",), "as in 64,150"),
        (("--pin=0",), "as in 64,150"),
        (("--pin=48",), "batch size 48 is not one of its batch sizes"),
        (("--pin=64,-150",), "as in 64,150"),
        (("--control-every=-1",), "a whole number"),
        (("--recurrences-left=-1",), "a whole number"),
        (("--policy=zues",), "did you mean 'zeus'?"),
    ]:
        refused(64, words, "set", "words", *arguments)
    tap.equal(log("words"), before)


# -- What a job is --


def test_first_lines():
    """What it saves, what runs now and what that took; the rest with -v."""
    lines = good("show", "digits").stdout.splitlines()
    now = next(line for line in lines if line.startswith("Now: "))
    trials = [row for row in document("history", "digits")["rows"] if row["outcome"] != "running" and not row["profiled"]]
    chosen = [row for row in document("history", "digits")["rows"] if row["reason"] in ("sampled", "best_seen", "last_try") and not row["profiled"]][-1]
    same = [row for row in trials if all(row[key] == chosen[key] for key in ("batch_size", "power_limit_w")) and row["outcome"] == "reached"]
    tap.contains(now, f"Now: batch {chosen['batch_size']}, {chosen['power_limit_w']:.0f} W. Mean of {len(same)} runs: ")
    tap.equal((lines[0][:8], lines[-1][-31:]), ("Saving: ", "More: flyball job show digits -v"[-31:]))
    tap.equal("Hardware 1" in "\n".join(lines), False)
    tap.contains(good("list").stdout.splitlines()[0], " running; last heard of '")
    tap.equal(len(good("why", "digits").stdout) < len(good("why", "-v", "digits").stdout), True)


def test_show():
    text = good("show", "-v", "digits").stdout
    for words in ("Job 'digits', policy zeus: 31 recurrences", "1 running", "32 (default)", "a metric of at least 0.9",
                  "Each 6 recurrences one runs the default", "Hardware 1: 1 x Test GPU, 16 GiB", "Saving for each model delivered: ",
                  "less energy", "95 % intervals", "Searching: ", "Whether it has paid off cannot be told from chance"):
        tap.contains(text, words)
    shown = document("show", "digits")
    tap.equal(shown["definition"]["batch_sizes"], [8, 16, 32, 64, 128])
    tap.equal((shown["control_every"], shown["pin"]), (6, None))
    tap.equal(rows("show", "digits")[0]["gpu_model"], "Test GPU")


def test_figures_of_show():
    """Means and counts once more; tests/job/test_savings.c holds the intervals."""
    shown = document("show", "digits")["rows"][0]
    recurrences = {}
    for row in document("history", "digits")["rows"]:
        recurrences.setdefault(row["recurrence"], []).append(row)
    controls, tuned, searching = [], [], []
    for tries in recurrences.values():
        if tries[-1]["outcome"] == "running":
            continue
        tap.equal(tries[-1]["outcome"], "reached", "each has a model")
        search = any(row["reason"] == "explore" or row["profiled"] for row in tries)
        plain = tries[0]["reason"] == "control"
        (controls if plain else searching if search else tuned).append(math.fsum(row["energy_j"] for row in tries))
    tap.equal((shown["baseline_runs"], shown["tuned_runs"], shown["searching_recurrences"]),
              (len(controls), len(tuned), len(searching)))
    tap.equal([shown[f"{of}_failed"] for of in ("baseline", "tuned", "searching")] + [shown["failed_runs"], shown["unknown_runs"]], [0] * 5)
    close(shown["baseline_energy_per_model_j"], statistics.mean(controls))
    close(shown["baseline_energy_spread"], statistics.stdev(controls) / statistics.mean(controls))
    close(shown["tuned_energy_per_model_j"], statistics.mean(tuned))
    close(shown["exploration_energy_j"], math.fsum(searching) - len(searching) * statistics.mean(tuned))
    low, middle, high = (shown[f"energy_saving{part}_percent"] for part in ("_low", "", "_high"))
    tap.equal(low < middle < high, True)
    tap.equal(abs(middle - 100 * (1 - statistics.mean(tuned) / statistics.mean(controls))) < 10, True)


def test_failures_are_named():
    """A recurrence without a model is named from 1 for people and from 0 for programs, and what it took counts."""
    store = BOX / "failing.sqlite"
    fill(store, "failing", 60, "control=6", "tries=1", "crash=7")
    found = document("show", "failing", store=store)
    failed = [row for row in document("history", "failing", store=store)["rows"] if row["outcome"] not in ("reached", "running")]
    tap.equal(len(failed) > 0, True, "each seventh crashes")
    tap.equal([(entry["recurrence"], entry["trial"], entry["outcome"]) for entry in found["newest_failures"]],
              [(row["recurrence"], row["trial"], row["outcome"]) for row in failed])
    text = good("show", "-v", "failing", store=store).stdout
    tap.contains(text, f"  Without a model: {len(failed)} run")
    for row in failed:
        what = "the default," if row["reason"] == "control" else "batch size"
        tap.contains(text, f"recurrence {row['recurrence'] + 1} ({what} {row['batch_size']}, {row['outcome']})")


def test_saving_not_yet_known():
    text = good("show", "-v", "nightly", store=QUIET).stdout
    tap.contains(text, "Saving: unknown; your default was measured in 0 of 4 runs needed")
    tap.contains(text, "what that took beyond others is not known")
    row = document("show", "nightly", store=QUIET)["rows"][0]
    tap.equal((row["energy_saving_percent"], row["baseline_energy_per_model_j"]), (None, None))
    tap.contains(row["energy_saving_percent_unavailable"], "it takes four runs")
    tap.equal(rows("show", "nightly", store=QUIET)[0]["energy_saving_percent"], "")


def test_history():
    shown = document("history", "digits")
    events = log("digits")
    tap.equal([row["trial"] for row in shown["rows"]],
              [event["trial"] for event in events if event["kind"] == "proposed"])
    ends = {event["trial"]: event["body"] for event in events if event["kind"] == "ended"}
    for row in shown["rows"]:
        end = ends.get(row["trial"])
        tap.equal(row["outcome"], end["outcome"] if end else "running", str(row))
        if end:
            tap.equal((row["energy_j"], row["time_s"], row["epochs"]), (end["energy_j"], end["time_s"], end["epochs"]))
            tap.equal((row["user"], row["account"], row["host"], row["gpus"]), ("said:ada", "physics", "node1", "GPU-1"))
        else:
            tap.contains(row["ended_unavailable"], "it runs")
            tap.equal([row[taken] for taken in ("epochs", "energy_j", "time_s", "cost_j", "whole_energy_j", "whole_time_s")], [0, *[None] * 5])
            tap.contains(row["energy_j_unavailable"], "it has reported no epoch yet")
    tap.equal(len(rows("history", "digits", "--last=4")), 4)
    counted_from_one()
    tap.equal(len(good("history", "digits", "--last=4").stdout.splitlines()), 4 + 1 + 3)


PAST = BOX / "past.sqlite"  # jobs that brought something; filled once, by the first test that asks


def fill_past():
    """A job like another one; after 20 recurrences it is revised and all costs triple, and after 40 it moves to another GPU."""
    if PAST.exists():
        return
    usual = ("policy=bayes", "control=4", "noise=0.05")
    fill(PAST, "source", 8, *usual)
    fill(PAST, "moved", 20, *usual, "like=source")
    fill(PAST, "moved", 20, *usual, "revision=new data", "scale=3", "day=25")
    fill(PAST, "moved", 2, *usual, "gpu=Another GPU", "day=50")


def test_history_tells_what_came_along():
    fill_past()
    shown = document("history", "moved", store=PAST)
    like, revised, other = shown["brought"]
    tap.equal((shown["schema"], like["from"], like["source"], like["before_trial"]), ("flyball.job.history/2", "job", "source", 1))
    tap.equal((like["revision"], like["gpu_model"]), (None, None))
    tap.equal((revised["from"], revised["revision"], revised["date"][:10]), ("revision", "new data", "2023-12-09"))
    tap.equal((other["from"], other["source"], other["gpu_model"]), ("hardware", "Test GPU", "Another GPU"))
    events = [event for event in log("moved", store=PAST) if event["kind"] in ("brought", "proposed")]
    befores = [event["trial"] for last, event in zip(events, events[1:]) if last["kind"] == "brought"]
    tap.equal([past["before_trial"] for past in shown["brought"]], befores)
    runs = [sum(batch["reached"] + batch["stopped"] for batch in event["body"]["batches"]) for event in events if event["kind"] == "brought"]
    tap.equal([past["runs"] for past in shown["brought"]], runs)
    for lines in (shown["rows"], rows("history", "moved", store=PAST)):
        tap.equal([int(row["trial"]) for row in lines if row["brought"]], befores)
        tap.equal([row["revision"] for row in lines], ["" if int(row["trial"]) < befores[1] else "new data" for row in lines])
    text = good("history", "moved", store=PAST).stdout
    sizes = revised["batch_sizes"]
    tap.contains(text, f"\nBefore trial 1, on {like['date']}: {like['runs']} runs of {like['batch_sizes']} batch sizes of the job 'source' came along.\n")
    tap.contains(text, f"\nBefore trial {befores[1]}, on {revised['date']}: the revision 'new data' began, and {runs[1]} runs of {sizes} batch sizes before it came along.\n")
    tap.contains(text, " on Test GPU came along to Another GPU.\n")
    newest = good("history", "moved", "--last=1", store=PAST).stdout
    tap.equal("Before trial" in newest, False, newest)
    tap.equal("Before trial" in good("history", "source", store=PAST).stdout, False)
    tap.equal(document("history", "source", store=PAST)["brought"], [])


def test_savings_count_from_a_revision():
    """Runs from before it took a third: they enter nothing but a total of their own."""
    fill_past()
    shown = document("show", "moved", store=PAST)
    row = shown["rows"][0]
    trials = [trial for trial in document("history", "moved", store=PAST)["rows"] if trial["hardware"] == 1]
    new = [trial for trial in trials if trial["revision"] == "new data"]
    controls = {name: [trial for trial in some if trial["reason"] == "control"] for name, some in (("new", new), ("all", trials))}
    tap.equal((row["baseline_runs"], len(controls["all"])), (len(controls["new"]), 10))
    close(row["baseline_energy_per_model_j"], sum(trial["whole_energy_j"] for trial in controls["new"]) / len(controls["new"]))
    tap.equal((row["earlier_recurrences"], row["earlier_unknown_recurrences"], row["earlier_ahead_energy_j"] > 0.0), (15, 0, True))
    tap.equal((shown["revision"], shown["revision_since"][:10]), ("new data", "2023-12-09"))
    tap.equal(row["energy_saving_low_percent"] < row["energy_saving_percent"] < row["energy_saving_high_percent"], True)
    ahead = f"{row['earlier_ahead_energy_j'] / 1000:.1f} kJ less than as many models of the default of then. What stands here counts from the revision on.\n"
    tap.contains(good("show", "-v", "moved", store=PAST).stdout, f"  Before the revision: 15 recurrences took {ahead}")
    frontier = document("pareto", "moved", "--hardware=1", store=PAST)["rows"]
    chosen = sum(trial["batch_size"] == 64 and trial["outcome"] != "running" for trial in new)
    tap.equal({point["trials"] for point in frontier if point["batch_size"] == 64}, {chosen})
    other = shown["rows"][1]
    tap.contains(other["earlier_ahead_energy_j_unavailable"], "nothing ran before the revision that holds")
    tap.equal(document("show", "source", store=PAST)["revision_since"], None)


def counted_from_one():
    """The same trials for people and for programs: these count recurrences and tries from 0, those from 1."""
    lines = [line.split()[:4] for line in good("history", "digits").stdout.splitlines() if line.split()[:1] and line.split()[0].isdigit()]
    counted = [[int(word) for word in line] for line in lines]
    tap.equal(counted[0][:3], [1, 1, 1])
    tap.equal(counted, [[row["trial"], row["recurrence"] + 1, row["try"] + 1, row["batch_size"]] for row in document("history", "digits")["rows"]])
    tap.equal([[int(row[key]) for key in ("recurrence", "try")] for row in rows("history", "digits")],
              [[row["recurrence"], row["try"]] for row in document("history", "digits")["rows"]])
    proposed = [event["body"] for event in log("digits") if event["kind"] == "proposed"]
    tap.equal([[body["recurrence"], body["try"]] for body in proposed], [[recurrence - 1, number - 1] for _, recurrence, number, _ in counted])
    for trial, recurrence, number, _ in counted[:6]:
        tap.contains(good("why", "-v", "digits", f"--trial={trial}").stdout, f"This is trial {trial} of job 'digits' (recurrence {recurrence}, try {number}, ")
        found = document("why", "digits", f"--trial={trial}")
        tap.equal((found["trial"], found["recurrence"], found["try"]), (trial, recurrence - 1, number - 1))
    store = BOX / "paid.sqlite"
    fill(store, "paid", 60, "control=6")
    paid = document("show", "paid", store=store)["rows"][0]["paid_off_since_recurrence"]
    tap.equal(paid > 0, True)
    tap.contains(good("show", "-v", "paid", store=store).stdout, f"Paid off: since recurrence {paid + 1} ")


def test_a_grid():
    store = BOX / "grid.sqlite"
    fill(store, "clean", 20, "grid=gb:national", "control=4")
    text = good("show", "-v", "clean", store=store).stdout
    tap.contains(text, "Chosen for: least carbon, counted by the intensities of 'gb:national'.")
    tap.contains(text, "the newest at 400 g/kWh; of ")
    tap.contains(text, "g of CO2 at the newest reference")
    shown = document("show", "clean", store=store)
    history = document("history", "clean", store=store)["rows"]
    ends = [event["body"] for event in log("clean", store) if event["kind"] == "ended"]
    for row, end in zip(history, ends):
        known = end.get("reference_per_kwh")
        tap.equal((row["reference_per_kwh"], row["cost_j"]), (known, row["energy_j"]))
        tap.equal(known is None, row["trial"] % 3 == 0)
        if known is None:
            tap.equal((row["carbon_g"], row["whole_carbon_g"]), (None, None))
            tap.contains(row["carbon_g_unavailable"], "what a kWh came to in its grid was not known")
        else:
            close(row["carbon_g"], row["energy_j"] / 3.6e6 * known)
        tap.contains(row["money_unavailable"], "does not count money")
    close(shown["carbon_g"], math.fsum(row["whole_carbon_g"] for row in history if row["whole_carbon_g"] is not None))
    unknown = sum(row["trial"] % 3 == 0 for row in history)
    tap.equal((shown["trials_with_reference"], shown["trials_without_reference"]), (len(history) - unknown, unknown))
    tap.equal((shown["definition"]["grid"], shown["reference_per_kwh"]), ("gb:national", 400.0))
    text = good("history", "clean", store=store).stdout
    tap.equal(text.splitlines()[0].split()[-2:], ["CO2", "(g)"])
    tap.contains(text, "what a kWh came to in its grid was not known")
    tap.contains(good("why", "-v", "clean", store=store).stdout, "A kWh came to 400 g of CO2 then")
    tap.equal("carbon_g" in document("show", "digits") and document("show", "digits")["carbon_g"], None)
    refused(64, "its grid 'gb:national' gives intensities", "set", "clean", "--objective=money", store=store)
    refused(64, "the job names none", "set", "words", "--objective=carbon")
    good("set", "clean", "--objective=energy", store=store)


def test_two_kinds_of_hardware():
    store = BOX / "two.sqlite"
    fill(store, "two", 6, "gpu=Old GPU")
    fill(store, "two", 9)
    shown = document("show", "two", store=store)["rows"]
    tap.equal([(row["hardware"], row["gpu_model"]) for row in shown], [(1, "Old GPU"), (2, "Test GPU")])
    tap.equal(document("pareto", "two", store=store)["gpu"], "1 x Test GPU, 16 GiB")
    tap.equal(document("pareto", "two", "--hardware=1", store=store)["gpu"], "1 x Old GPU, 16 GiB")
    good("export", "two", "--format=trace", "--output=old", "--hardware=1", store=store)
    tap.equal((BOX / "old" / "summary_power_old-gpu.csv").is_file(), True)


def test_scores_are_told_in_plain_digits_without_a_unit():
    sentences = [event["body"]["why"] for event in log("digits") if event["kind"] == "proposed"]
    tap.equal([sentence for sentence in sentences if "e+" in sentence], [])
    tap.equal([sentence for sentence in sentences if " J" in sentence or "cost" in sentence], [])
    tap.equal(any(re.search(r" at a score of \d+ each", sentence) is not None for sentence in sentences), True)


# -- Wishes --


def test_set():
    store = BOX / "wishes.sqlite"
    fill(store, "wishes", 8)
    chosen = document("pareto", "wishes", store=store)["chosen"]
    good("set", "wishes", f"--pin={chosen['batch_size']},{chosen['power_limit_w']:g}", "--control-every=5",
         "--objective=energy", "--max-slowdown=1.5x", store=store)
    shown = document("show", "wishes", store=store)
    tap.equal(shown["pin"], {"batch_size": chosen["batch_size"], "power_limit_w": chosen["power_limit_w"]})
    tap.equal((shown["objective"]["kind"], shown["objective"]["max_slowdown"], shown["control_every"]),
              ("energy", 1.5, 5))
    last = log("wishes", store)[-1]
    tap.equal((last["kind"], sorted(last["body"])), ("set", ["control_every", "objective", "pin"]))
    tap.equal((shown["rows"][0]["tuned_runs"], shown["rows"][0]["outdated_runs"] > 0, len(shown["wanted_since"])),
              (0, True, len("2026-01-01T00:00:00Z")))
    tap.contains(good("show", "-v", "wishes", store=store).stdout, f"Since {shown['wanted_since']} another choice is wanted")
    fill(store, "wishes", 0, "open=1")
    newest = document("why", "wishes", store=store)
    tap.equal((newest["reason"], newest["batch_size"]), ("pinned", chosen["batch_size"]))
    tap.contains(good("show", "-v", "wishes", store=store).stdout, "Chosen for: least energy in at most 1.5 times")
    result = good("set", "wishes", "--pin=none", "--max-slowdown=none", "--eta=0.2", "--control-every=0", store=store)
    tap.contains(result.stderr, "job 'wishes' has no pin")
    shown = document("show", "wishes", store=store)
    tap.equal((shown["pin"], shown["objective"]["eta"], shown["objective"]["max_slowdown"]), (None, 0.2, None))
    tap.contains(good("set", "wishes", "--pin=64,333.3333333", "--control-every=2", store=store).stderr, "at 333.3333333 W")
    text = good("show", "-v", "wishes", store=store).stdout
    tap.contains(text, "Pinned: batch size 64 at 333.3333333 W.")
    for policy, name in (("auto", "bayes"), ("zeus", "zeus")):
        tap.contains(good("set", "wishes", f"--policy={policy}", store=store).stderr, f"by the policy '{name}', which has learnt")
    tap.contains(text, "The pin leaves out the controls")
    tap.contains(text, "--pin none' lets the job measure the default")
    tap.equal("one runs the default" in text, False, text)
    good("set", "wishes", "--pin=64", store=store)
    tap.equal(document("show", "wishes", store=store)["pin"], {"batch_size": 64, "power_limit_w": None})


def keep(home, name, store, *calls):
    """A file of reports that a session of an earlier night left, as job/remote/spool.h has it."""
    spool = home / ".local/state/flyball/spool"
    spool.mkdir(parents=True, exist_ok=True)
    (spool / name).write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in
                                      ({"flyball_calls": 1, "store": str(store)}, *calls)))
    return spool / name


def test_reports_that_wait():
    store, home = BOX / "late.sqlite", BOX / "late"
    fill(store, "late", 2, "open=1")
    before = log("late", store)
    trial = before[-1]["trial"]
    env = {**CLEAN, "HOME": str(home)}
    report = {"call": "report", "job": "late", "trial": trial, "attempt": 1, "metric": 0.1}
    kept = keep(home, "1-1.calls", store, {**report, "epoch": 1, "energy_j": 10.0, "time_s": 1.0},
                {**report, "epoch": 2, "energy_j": 20.0, "time_s": 2.0})
    other = keep(home, "1-2.calls", "elsewhere.sqlite", {**report, "epoch": 3, "energy_j": 30.0, "time_s": 3.0})
    for command, waits in ((("history", "late"), 2), (("list",), 0), (("show", "late"), 1), (("why", "late"), 0)):
        if waits == 1:
            kept = keep(home, "1-3.calls", store, {**report, "epoch": 4, "energy_j": 40.0, "time_s": 4.0})
        result = good(*command, store=store, env=env)
        if waits:
            tap.contains(result.stderr, f"{waits} report{'s wait' if waits > 1 else ' waits'} on this machine")
        else:
            tap.equal(result.stderr, "", str(command))
        tap.equal((kept.exists(), other.exists()), (False, True), str(command))
    epochs = [event["body"]["epoch"] for event in log("late", store) if event["kind"] == "epoch" and event["trial"] == trial]
    tap.equal(epochs[-3:], [1, 2, 4])
    # What belongs to no trial of the log is put aside, for a person.
    kept = keep(home, "1-4.calls", store, {**report, "trial": 99, "epoch": 1, "energy_j": 1.0, "time_s": 1.0})
    good("list", store=None, env={**env, "FLYBALL_STORE": str(store)})
    tap.equal((kept.exists(), pathlib.Path(f"{kept}.refused").exists()), (False, True))
    keep(home, "1-5.calls", "", {**report, "epoch": 5, "energy_j": 50.0, "time_s": 5.0})
    tap.contains(good("list", store=None, env={**env, "FLYBALL_STORE": str(store)}).stderr, "1 report waits")


def test_delete():
    store = BOX / "away.sqlite"
    fill(store, "away", 2)
    refused(64, "which nothing brings back; export it first, and delete it with --yes", "delete", "away", store=store)
    tap.equal(len(rows("list", store=store)), 1)
    tap.contains(good("delete", "away", "--yes", store=store).stderr, "is deleted")
    tap.equal(rows("list", store=store), [])
    refused(66, "no job 'away'", "delete", "away", "--yes", store=store)


setup()
tap.main(globals())
