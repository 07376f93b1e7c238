# SPDX-License-Identifier: Apache-2.0
"""`flyball job ...` from outside, over stores that a client filled in virtual time.

usage: cli_job.py FLYBALL

Figures are worked out a second time from the exported log.
"""
import csv
import io
import json
import math
import os
import pathlib
import re
import shlex
import statistics
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

import svg_texts
import tap

FLYBALL = os.path.abspath(sys.argv[1])
CLIENT = pathlib.Path(os.environ["FLYBALL_TEST_BUILD"]) / "job_client"
WORK = tempfile.TemporaryDirectory(prefix="flyball-cli-job-", dir=tap.quick_place())
BOX = pathlib.Path(WORK.name)
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("FLYBALL_", "XDG_", "NO_COLOR"))}
CLEAN["HOME"] = WORK.name
STORE = BOX / "store.sqlite"  # digits: 30 recurrences, a control in each sixth, and a trial that runs
QUIET = BOX / "quiet.sqlite"  # nightly: no controls
EMPTY = BOX / "empty.sqlite"


def fill(store, job, recurrences, *settings):
    result = tap.run([CLIENT, store, job, str(recurrences), *settings])
    tap.equal(result.returncode, 0, result.stderr)
    return [line.split() for line in result.stdout.splitlines()]


def job(*arguments, store=STORE, env=CLEAN, **options):
    where = [f"--store={store}"] if store else []
    return tap.run([FLYBALL, "job", *arguments, *where], env=env, cwd=BOX, **options)


def good(*arguments, **options):
    result = job(*arguments, **options)
    tap.equal(result.returncode, 0, f"{arguments}: {result.stderr}")
    return result


def document(*arguments, **options):
    return json.loads(good(*arguments, "--format=json", **options).stdout)


def rows(*arguments, **options):
    return list(csv.DictReader(io.StringIO(good(*arguments, "--format=csv", **options).stdout)))


def refused(status, words, *arguments, **options):
    result = job(*arguments, **options)
    tap.equal(result.returncode, status, f"{arguments}: {result.stdout}{result.stderr}")
    tap.contains(result.stderr, words, str(arguments))
    tap.equal(result.stdout, "", str(arguments))


def log(name, store=STORE):
    return [json.loads(line) for line in good("export", name, store=store).stdout.splitlines()]


def setup():
    fill(STORE, "digits", 30, "control=6", "noise=0.05", "open=1")
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
    refused(66, "which has 0; --store names another", "show", "digits", store=EMPTY)


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
    ]:
        refused(64, words, "set", "words", *arguments)
    tap.equal(log("words"), before)


# -- What a job is --


def test_show():
    text = good("show", "digits").stdout
    for words in ("Job 'digits', policy zeus: 31 recurrences", "1 running", "32 (default)", "a metric of at least 0.9",
                  "Each 6 recurrences one runs the default", "Hardware 1: 1 x Test GPU, 16 GiB", "Saving for each model delivered: ",
                  "less energy", "95 % intervals", "Searching: ", "Paid off: since recurrence"):
        tap.contains(text, words)
    shown = document("show", "digits")
    tap.equal(shown["definition"]["batch_sizes"], [8, 16, 32, 64, 128])
    tap.equal((shown["control_every"], shown["pin"]), (6, None))
    tap.equal(rows("show", "digits")[0]["gpu_model"], "Test GPU")


def test_figures_of_show():
    """Means and counts once more; tests/test_savings.c holds the intervals."""
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
    text = good("show", "failing", store=store).stdout
    tap.contains(text, f"  Without a model: {len(failed)} run")
    for row in failed:
        what = "the default," if row["reason"] == "control" else "batch size"
        tap.contains(text, f"recurrence {row['recurrence'] + 1} ({what} {row['batch_size']}, {row['outcome']})")


def close(actual, expected):
    if not math.isclose(actual, expected, rel_tol=1e-6):
        raise AssertionError(f"{actual} is not {expected}")


def test_saving_not_yet_known():
    text = good("show", "nightly", store=QUIET).stdout
    tap.contains(text, "Saving: not yet known; it takes four runs of the default at the highest limit, with runs of what was chosen beside each, and there are 0")
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
            tap.equal((row["user"], row["account"], row["host"], row["gpus"]), ("ada", "physics", "node1", "GPU-1"))
        else:
            tap.contains(row["ended_unavailable"], "it runs")
    tap.equal(len(rows("history", "digits", "--last=4")), 4)
    counted_from_one()
    tap.equal(len(good("history", "digits", "--last=4").stdout.splitlines()), 4 + 1 + 2)


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
        tap.contains(good("why", "digits", f"--trial={trial}").stdout, f"Trial {trial} of job 'digits' (recurrence {recurrence}, try {number}, ")
        found = document("why", "digits", f"--trial={trial}")
        tap.equal((found["trial"], found["recurrence"], found["try"]), (trial, recurrence - 1, number - 1))
    paid, since = document("show", "digits")["rows"][0]["paid_off_since_recurrence"], "Paid off: since recurrence "
    tap.contains(good("show", "digits").stdout, f"{since}{paid + 1} ")


def test_why():
    text = good("why", "digits").stdout
    tap.contains(text, "a control: each 6th recurrence runs the default batch size 32 at the highest power limit")
    tap.contains(text, "Its power limit of 200 W comes with that choice")
    first = document("why", "digits", "--trial=2")
    proposed = [event["body"] for event in log("digits") if event["kind"] == "proposed"]
    tap.equal((first["why"], first["reason"]), (proposed[1]["why"], proposed[1]["reason"]))
    tap.equal(first["numbers"], proposed[1]["numbers"])
    sampled = next(number for number, body in enumerate(proposed, 1) if body["reason"] == "sampled")
    text = good("why", "digits", f"--trial={sampled}").stdout
    tap.contains(text, "won a draw from what is believed of each batch size")
    tap.contains(text, "What was known of each batch size then")
    tap.contains(text, "the best of the batch size's profile")
    tap.equal(len(rows("why", "digits", f"--trial={sampled}")), len(proposed[sampled - 1]["numbers"]["known"]))


def test_a_grid():
    store = BOX / "grid.sqlite"
    fill(store, "clean", 20, "grid=gb:national", "control=4")
    text = good("show", "clean", store=store).stdout
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
    tap.contains(good("why", "clean", store=store).stdout, "A kWh came to 400 g of CO2 then")
    tap.equal("carbon_g" in document("show", "digits") and document("show", "digits")["carbon_g"], None)
    refused(64, "its grid 'gb:national' gives intensities", "set", "clean", "--objective=money", store=store)
    refused(64, "the job names none", "set", "words", "--objective=carbon")
    good("set", "clean", "--objective=energy", store=store)


# -- The frontier --


def test_pareto():
    shown = document("pareto", "digits", "--all", "--svg=digits.svg")
    tap.equal(shown["schema"], "flyball.job.pareto/2")
    tap.equal((shown["job"], shown["store"], shown["gpu"]), ("digits", str(STORE), "1 x Test GPU, 16 GiB"))
    known = {row["batch_size"] for row in document("history", "digits")["rows"] if row["outcome"] == "reached"}
    tap.equal({row["batch_size"] for row in shown["rows"]}, known)
    tap.equal(sorted({row["power_limit_w"] for row in shown["rows"]}), [100.0, 150.0, 200.0])
    points = [(row["time_s"], row["energy_j"]) for row in shown["rows"]]
    for row, point in zip(shown["rows"], points):
        better = any(one <= point[0] and other <= point[1] and (one, other) != point for one, other in points)
        tap.equal(row["on_frontier"], int(not better), str(row))
    tap.equal([row["batch_size"] for row in shown["rows"] if row["default"]], [32])
    cheapest = min(shown["rows"], key=lambda row: 0.5 * row["energy_j"] + 0.5 * 200 * row["time_s"])
    tap.equal(shown["chosen"]["batch_size"], cheapest["batch_size"])
    picture = svg_texts.check(BOX / "digits.svg")
    tap.equal(picture.tag, "{http://www.w3.org/2000/svg}svg")
    tap.contains(ElementTree.tostring(picture, encoding="unicode"), "from the job's own trials")
    text = good("pareto", "digits").stdout
    tap.contains(text, "The choice of least cost (eta 0.5)")
    tap.contains(text, "no trial of it has reached the target yet")


def test_pareto_and_show_say_the_same():
    """One default, one saving, and one set of words, whether it is known or not."""
    found, shown = document("pareto", "digits", "--all"), document("show", "digits")["rows"][0]
    tap.equal((found["default"]["energy_j"], found["default"]["time_s"], found["default"]["trials"]),
              (shown["baseline_energy_per_model_j"], shown["baseline_time_per_model_s"], shown["baseline_runs"]))
    tap.equal([found["measured"][f"energy_saving{part}_percent"] for part in ("", "_low", "_high")],
              [shown[f"energy_saving{part}_percent"] for part in ("", "_low", "_high")])
    for row in found["rows"]:
        few = row["trials"] < 4
        tap.equal([row[key] is None for key in ("time_low_s", "time_high_s", "energy_low_j", "energy_high_j")], [few] * 4, str(row))
        tap.equal([row[key] is None for key in ("energy_change_low_percent", "time_change_high_percent")],
                  [few or row["batch_size"] == 32 and row["power_limit_w"] == 200] * 2, str(row))
        if row["energy_change_low_percent"] is not None:
            tap.equal(row["energy_change_low_percent"] < row["energy_change_percent"] < row["energy_change_high_percent"], True)
        if not few:
            tap.equal(row["energy_low_j"] < row["energy_j"] < row["energy_high_j"], True)
    good("pareto", "digits", "--all", "--svg=spread.svg")
    tips = [element.text for element in ElementTree.parse(BOX / "spread.svg").getroot().iter("{http://www.w3.org/2000/svg}title")]
    tap.equal(sum("; 95 %: " in tip for tip in tips) > 0, True, str(tips))
    text = good("pareto", "digits").stdout
    tap.contains(text, f"What the job really saves ('flyball job show'): {shown['energy_saving_percent']:.1f} % less energy (")
    text = good("pareto", "nightly", store=QUIET).stdout
    tap.contains(text, "the default batch size is not known to reach the target" if "not known: " in text else "it takes four runs of the default")
    # A job of which nothing can be told but that it differs.
    store = BOX / "chance.sqlite"
    fill(store, "chance", 40, "control=9", "target=0", "noise=0.3")
    shown = document("show", "chance", store=store)["rows"][0]
    tap.equal(shown["energy_saving_low_percent"] < 0 < shown["energy_saving_high_percent"], True)
    words = "Whether any energy is saved cannot be told from chance."
    for command in ("show", "pareto"):
        tap.contains(good(command, "chance", store=store).stdout, words)
    tap.equal("Paid off" in good("show", "chance", store=store).stdout, False)


def test_pareto_has_digits():
    """Short trainings are told apart: at least three digits."""
    store = BOX / "short.sqlite"
    fill(store, "short", 20, "control=5", "scale=0.004")
    rows_of = [line.split() for line in good("pareto", "short", "--all", store=store).stdout.splitlines() if line[:5].strip().isdigit()]
    tap.equal(len(rows_of) > 3, True)
    for row in rows_of:
        for figure in row[3:6]:
            tap.equal(len(figure.replace(".", "").lstrip("0")) >= 3, True, f"{figure} in {row}")


def test_infinite_figures():
    """Numbers at the end of the range: each document is one, with null and a reason where nothing can be said."""
    lines = [json.loads(line) for line in good("export", "digits").stdout.splitlines()]
    for key, value in (("max_power_w", 1e308), ("energy_j", 1e308), ("energy_j", 1e-320), ("time_s", 1e308)):
        store = BOX / "ends.sqlite"
        store.unlink(missing_ok=True)
        (BOX / "ends.jsonl").write_text("".join(json.dumps(replaced(line, key, value)) + "\n" for line in lines))
        good("import", "ends", BOX / "ends.jsonl", store=store)
        for command in ("pareto", "show", "history", "why"):
            result = job(command, "ends", "--format=json", store=store)
            tap.equal(result.returncode in (0, 69), True, f"{command} {key}: {result.stderr}")
            if result.returncode == 0:
                found = json.loads(result.stdout, parse_constant=lambda word: tap.equal(word, "a number"))
            if command == "pareto" and key == "max_power_w":
                tap.equal((found["chosen"]["cost_j"], found["chosen"]["cost_j_unavailable"]), (None, "it is out of the range of numbers"))
            result = job(command, "ends", store=store)
            tap.equal(re.search(r"\b(inf|nan)\b", result.stdout), None, result.stdout)
        (BOX / "ends.svg").unlink(missing_ok=True)
        if job("pareto", "ends", "--svg=ends.svg", store=store).returncode == 0:
            svg_texts.check(BOX / "ends.svg")


def replaced(value, key, by):
    """The same, with each number of that key replaced."""
    if isinstance(value, dict):
        return {name: by if name == key and isinstance(entry, (int, float)) else replaced(entry, key, by) for name, entry in value.items()}
    return [replaced(entry, key, by) for entry in value] if isinstance(value, list) else value


def test_pareto_of_nothing():
    fill(BOX / "new.sqlite", "new", 0)
    refused(69, "job 'new' has not run yet", "pareto", "new", store=BOX / "new.sqlite")
    refused(69, "job 'new' has not run yet", "why", "new", store=BOX / "new.sqlite")
    tap.contains(good("history", "new", store=BOX / "new.sqlite").stderr, "has not run yet")
    fill(BOX / "new.sqlite", "new", 0, "open=1")
    refused(69, "has reached its target yet", "pareto", "new", store=BOX / "new.sqlite")
    tap.contains(good("why", "new", store=BOX / "new.sqlite").stdout, "follows from a profile that it measures first")


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
    tap.contains(good("show", "wishes", store=store).stdout, f"Since {shown['wanted_since']} another choice is wanted")
    fill(store, "wishes", 0, "open=1")
    newest = document("why", "wishes", store=store)
    tap.equal((newest["reason"], newest["batch_size"]), ("pinned", chosen["batch_size"]))
    tap.contains(good("show", "wishes", store=store).stdout, "Chosen for: least energy in at most 1.5 times")
    result = good("set", "wishes", "--pin=none", "--max-slowdown=none", "--eta=0.2", "--control-every=0", store=store)
    tap.contains(result.stderr, "job 'wishes' has no pin")
    shown = document("show", "wishes", store=store)
    tap.equal((shown["pin"], shown["objective"]["eta"], shown["objective"]["max_slowdown"]), (None, 0.2, None))
    good("set", "wishes", "--pin=64", store=store)
    tap.equal(document("show", "wishes", store=store)["pin"], {"batch_size": 64, "power_limit_w": None})


def keep(home, name, store, *calls):
    """A file of reports that a session of an earlier night left, as train/spool.h has it."""
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


# -- Taken along --


def test_export_and_import():
    lines = good("export", "digits").stdout
    good("export", "digits", "--output=digits.jsonl")
    tap.equal((BOX / "digits.jsonl").read_text(), lines)
    other = BOX / "other.sqlite"
    good("import", "digits", "digits.jsonl", store=other)
    tap.equal(good("export", "digits", store=other).stdout, lines)
    for command in ("show", "history", "why"):
        tap.equal(document(command, "digits", store=other), document(command, "digits"), command)
    good("import", "copy", "-", store=other, input=lines)
    tap.equal(good("export", "copy", store=other).stdout, lines.replace('"name":"digits"', '"name":"copy"'))
    refused(65, "is there already", "import", "digits", "digits.jsonl", store=other)


def test_import_of_what_does_not_fit():
    lines = good("export", "words").stdout.splitlines(keepends=True)
    third = json.loads(lines[2])
    for wrong, words in [
        (["nonsense\n"], "line 1"),
        ([], "there are no events"),
        (lines[1:], "line 1"),
        (lines[:2] + lines[3:], "line 3: 'number'"),
        (lines[:2] + [json.dumps({**third, "kind": "made-up"}) + "\n"], "'made-up' is not known here"),
        (lines[:2] + [lines[2][:-9] + "\n"], "line 3"),
    ]:
        (BOX / "wrong.jsonl").write_text("".join(wrong))
        result = job("import", "wrong", "wrong.jsonl")
        tap.equal(result.returncode in (65, 69), True, result.stderr)
        tap.contains(result.stderr, words)
    tap.equal([row["job"] for row in rows("list")], ["digits", "words"])


def test_a_full_disk():
    if not os.path.exists("/dev/full"):
        raise tap.Skip("there is no /dev/full")
    refused(74, "No space left on device", "export", "digits", "--output=/dev/full")


# -- The loop --


def replay(name, *settings, recurrences=40):
    """The tries of a live job, and of the simulator on what it exported."""
    store, traces, tries = BOX / f"{name}.sqlite", BOX / name, BOX / f"{name}.csv"
    lived = fill(store, name, recurrences, *settings)
    notes = good("export", name, "--format=trace", f"--output={traces}", store=store).stderr
    command = next(line.partition("replay it: ")[2] for line in notes.splitlines() if "replay it: " in line)
    result = tap.run([FLYBALL, *shlex.split(command)[1:], f"--tries={tries}"], env=CLEAN)
    tap.equal(result.returncode, 0, result.stderr)
    with tries.open() as stream:
        simulated = [[row["recurrence"], row["try"], row["batch_size"], row["power_limit_w"].removesuffix(".0"),
                      row["reached"]] for row in csv.DictReader(stream)]
    return lived, simulated, notes


def knobs(tries):
    return [(size, float(limit), reached) for _, _, size, limit, reached in tries]


def decided_again(name, store):
    """What `sim replay` says of a job's log."""
    log = BOX / f"{name}.jsonl"
    good("export", name, f"--output={log}", store=store)
    result = tap.run([FLYBALL, "sim", "replay", str(log), "--all", "--format=json"], env=CLEAN)
    tap.equal(result.returncode, 0, (name, result.stderr))
    return json.loads(result.stdout)


def test_every_decision_is_taken_again():
    """By construction, also where a trace has no words: crashes, last tries, controls, bounds, other objectives."""
    for name, settings in {"again": ("crash=4", "tries=2", "control=5"), "again2": ("apart=1", "crash=9", "seed=5"),
                           "again3": ("policy=grid", "control=3"), "again4": ("target=0",)}.items():
        store = BOX / f"{name}.sqlite"
        fill(store, name, 25, *settings)
        if name == "again2":
            good("set", name, "--objective=energy", "--max-slowdown=3%", store=store)
            fill(store, name, 15, *settings)
        found, history = decided_again(name, store), document("history", name, store=store)["rows"]
        tap.equal((found["schema"], found["job"]), ("flyball.sim.replay/1", name))
        tap.equal((found["trials"]["compared"], found["trials"]["different"]), (len(history), 0), name)
        tap.equal((found["reports"]["compared"] > 0, found["reports"]["different"], found["limits"]["different"]), (True, 0, 0))
        rows = [row for row in found["rows"] if row["decision"] == "trial"]
        tap.equal([row["batch_size"] for row in rows], [row["batch_size"] for row in history], name)
        tap.equal({row["same"] for row in found["rows"]}, {"yes"}, name)


def test_a_log_that_was_tampered_with():
    store, log = BOX / "tampered.sqlite", BOX / "tampered.jsonl"
    fill(store, "tampered", 12)
    good("export", "tampered", f"--output={log}", store=store)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    changed = [line for line in lines if line["kind"] == "proposed" and line["body"]["reason"] == "sampled"][-1]
    sizes = sorted({line["body"]["batch_size"] for line in lines if line["kind"] == "proposed"})
    changed["body"]["batch_size"] = next(size for size in sizes if size != changed["body"]["batch_size"])
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = tap.run([FLYBALL, "sim", "replay", str(log)], env=CLEAN)
    tap.equal(result.returncode, 65, result.stderr)
    tap.contains(result.stdout, f"batch_size {changed['body']['batch_size']} on record")
    first = next(line for line in lines if line["kind"] == "proposed")
    del first["body"]["hardware"]
    bare = "".join(json.dumps(line) + "\n" for line in lines)
    for text, piece in (("", "there are no events"), ("nonsense\n", "line 1 is no JSON object"),
                        (bare, f"line {first['number']}: "), (bare, "'recurrence, line'"),
                        ('{"number": 2}\n', "line 1: 'time_us'")):
        log.write_text(text)
        result = tap.run([FLYBALL, "sim", "replay", str(log)], env=CLEAN)
        tap.equal((result.returncode, result.stdout), (65, ""), result.stderr)
        tap.contains(result.stderr, piece)


def test_the_simulator_repeats_a_live_job():
    for name, settings in {"loop": (), "loop2": ("seed=2", "eta=1"), "alone": ("apart=1", "seed=3"),
                           "grid": ("policy=grid", "apart=1"), "carbon": ("grid=gb:national", "seed=6")}.items():
        lived, simulated, _ = replay(name, *settings)
        tap.equal(len({size for _, _, size, _, _ in lived}) > 2, True, name)
        tap.equal(knobs(simulated), knobs(lived), name)


def test_the_simulator_leaves_out_controls():
    lived, simulated, notes = replay("controls", "control=5")
    controls = {str(row["trial"]) for row in document("history", "controls", store=BOX / "controls.sqlite")["rows"]
                if row["reason"] == "control"}
    own = [row for number, row in enumerate(lived, 1) if str(number) not in controls]
    tap.equal(knobs(simulated), knobs(own))
    tap.contains(notes, f"{len(controls)} trials that the policy had no say in")


def test_what_a_trace_cannot_tell():
    store, traces = BOX / "gaps.sqlite", BOX / "gaps"
    fill(store, "gaps", 40, "crash=4", "tries=2")
    notes = good("export", "gaps", "--format=trace", f"--output={traces}", store=store).stderr
    tap.contains(notes, "crashed, expired or did not fit into memory")
    tap.contains(notes, "last tries")
    command = shlex.split(next(line.partition("simulate it: ")[2] for line in notes.splitlines() if "simulate it: " in line))
    tap.equal(tap.run([FLYBALL, *command[1:]], env=CLEAN).returncode, 0)
    result = tap.run([FLYBALL, *command[1:], "--order=recorded"], env=CLEAN)
    tap.equal((result.returncode, result.stdout), (69, ""))
    tap.contains(result.stderr, "its trace has no words for")
    command = shlex.split(next(line.partition("its log: ")[2] for line in notes.splitlines() if "its log: " in line))
    tap.equal(tap.run([FLYBALL, *command[1:]], env=CLEAN).returncode, 0)
    fill(BOX / "fixed.sqlite", "fixed", 5, "target=0", "control=2")
    refused(69, "job 'fixed' has no target", "export", "fixed", "--format=trace", "--output=never",
            store=BOX / "fixed.sqlite")
    tap.contains(good("show", "fixed", store=BOX / "fixed.sqlite").stdout, "no target: only the power limit is chosen")
    tap.equal(document("show", "fixed", store=BOX / "fixed.sqlite")["rows"][0]["baseline_runs"], 3)


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


setup()
tap.main(globals())
