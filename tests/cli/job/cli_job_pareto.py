# SPDX-License-Identifier: Apache-2.0
"""`flyball job pareto` from outside: the frontier of a job, its picture, and figures at the end of the range.

usage: cli_job_pareto.py FLYBALL
"""
import json
import re
import xml.etree.ElementTree as ElementTree

import svg_texts
import tap
from job_stores import BOX, STORE, document, fill, fill_digits, good, job, refused

QUIET = BOX / "quiet.sqlite"  # nightly: no controls


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
    tap.equal(text.startswith("The choice of lowest score (eta 0.5): batch "), True, text)
    tap.equal([len(re.findall(r"  lowest score(, default)?$", text, re.M)), "cost" in text], [1, False], text)
    for form in ("json", "csv"):
        tap.equal("The choice of" in good("pareto", "nightly", f"--format={form}", store=QUIET).stdout, False)
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
    tap.contains(text, "the default batch size is not known to reach the target" if "not known: " in text else "your default was measured in 0 of 4 runs needed")
    # What is not known is claimed nowhere.
    doubt = "unknown; your default was measured in 0 of 4 runs needed"
    fill(BOX / "few.sqlite", "few", 25)
    tap.contains(good("show", "-v", "few", store=BOX / "few.sqlite").stdout, f"Saving: {doubt}")
    text = good("pareto", "few", store=BOX / "few.sqlite").stdout
    tap.contains(text, f"; against the default: {doubt}.\n")
    tap.equal(" less energy" in text, False, text)
    found = document("pareto", "few", "--all", store=BOX / "few.sqlite")
    for row in found["rows"]:
        tap.equal([row[key] is None for key in ("time_change_percent", "energy_change_percent")], [not row["default"]] * 2, str(row))
    tap.contains(found["rows"][0]["energy_change_percent_unavailable"], "it takes four runs of the default")
    # A job of which nothing can be told but that it differs.
    store = BOX / "chance.sqlite"
    fill(store, "chance", 40, "control=9", "target=0", "noise=0.3")
    shown = document("show", "chance", store=store)["rows"][0]
    tap.equal(shown["energy_saving_low_percent"] < 0 < shown["energy_saving_high_percent"], True)
    words = "Whether any energy is saved cannot be told from chance."
    for command in ("show", "pareto"):
        tap.contains(good(command, "chance", store=store).stdout, words)
    tap.equal("Paid off" in good("show", "-v", "chance", store=store).stdout, False)


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


def test_what_does_not_run_any_more_is_no_choice():
    """The log says so with the newest choice: worse models, crashes, memory. The default is never left out."""
    lines = [json.loads(line) for line in good("export", "digits").stdout.splitlines()]
    best = document("pareto", "digits")["chosen"]["batch_size"]
    newest = [line for line in lines if line["kind"] == "proposed"][-1]["body"]["numbers"]
    known = newest["known"]
    tap.equal(best != 32, True)
    for number, (batch, member, value, words) in enumerate([
            (best, "worse", True, "its models are worse than allowed"),
            (best, "given_up", True, "it is given up: its trials crashed again and again"),
            (best, None, best, "it does not fit into the GPUs' memory"),
            (32, "given_up", True, None)]):
        newest["known"] = [{**row, **({member: value} if member and row["batch_size"] == batch else {})} for row in known]
        newest["does_not_fit_from"] = 0 if member else value
        (BOX / "barred.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        good("import", f"barred{number}", "barred.jsonl")
        found = document("pareto", f"barred{number}", "--all")
        reasons = {row["batch_size"]: row["reason"] for row in found["left_out_batch_sizes"]}
        tap.equal(reasons.get(batch), words)
        tap.equal((batch in {row["batch_size"] for row in found["rows"]}, found["chosen"]["batch_size"] == best), (words is None,) * 2)
        good("delete", f"barred{number}", "--yes")


def test_what_runs_until_the_bound_is_sure():
    store = BOX / "bounded.sqlite"
    fill(store, "bounded", 12, "policy=bayes", "control=4", "eta=1")
    good("set", "bounded", "--objective=energy", "--max-slowdown=10%", store=store)
    fill(store, "bounded", 3, "policy=bayes", "control=4", "eta=1")
    tap.equal("until it is sure" in good("pareto", "bounded", store=store).stdout, False)
    chosen = document("pareto", "bounded", store=store)["chosen"]
    lines = [json.loads(line) for line in good("export", "bounded", store=store).stdout.splitlines()]
    newest = [line["body"] for line in lines if line["kind"] == "proposed" and line["body"]["reason"] == "best_seen"][-1]
    tap.equal((newest["batch_size"], newest["limit_w"]), (chosen["batch_size"], chosen["power_limit_w"]))
    newest["limit_w"] = 200.0
    (BOX / "bounded.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    good("import", "careful", "bounded.jsonl", store=store)
    tap.contains(good("pareto", "careful", store=store).stdout,
                 f"The job runs batch {newest['batch_size']} at 200 W, until it is sure enough that the other keeps the bound.\n")


def test_a_job_without_a_default():
    lines = [json.loads(line) for line in good("export", "digits").stdout.splitlines()]
    lines[0]["body"].update(no_default=True, control_every=0)
    (BOX / "bare.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    good("import", "bare", "bare.jsonl")
    text = good("pareto", "bare", "--svg=bare.svg").stdout
    tap.contains(text, "Nothing is compared with a default, since the job has none.")
    tap.equal(("against the default" in text.splitlines()[0], "Default: batch" in text), (False, False), text)
    tap.equal("default" in (BOX / "bare.svg").read_text(), False, "the picture has no default")
    tap.contains(good("show", "-v", "bare").stdout, "Saving: unknown; the job has no default to compare with.")
    good("delete", "bare", "--yes")


def test_pareto_of_nothing():
    fill(BOX / "new.sqlite", "new", 0)
    refused(69, "job 'new' has not run yet", "pareto", "new", store=BOX / "new.sqlite")
    refused(69, "job 'new' has not run yet", "why", "new", store=BOX / "new.sqlite")
    tap.contains(good("history", "new", store=BOX / "new.sqlite").stderr, "has not run yet")
    fill(BOX / "new.sqlite", "new", 0, "open=1")
    refused(69, "has reached its target yet", "pareto", "new", store=BOX / "new.sqlite")
    tap.contains(good("why", "-v", "new", store=BOX / "new.sqlite").stdout, "follows from a profile that it measures first")


fill_digits()
fill(QUIET, "nightly", 12)
tap.main(globals())
