# SPDX-License-Identifier: Apache-2.0
"""`flyball job why` from outside: the sentence, the numbers and the picture of a choice.

usage: cli_job_why.py FLYBALL
"""
import json
import re
import xml.etree.ElementTree as ElementTree

import svg_texts
import tap
from job_stores import BOX, document, fill, fill_digits, good, log, refused, rows


def test_why():
    text = good("why", "-v", "digits").stdout
    tap.contains(text, "A control: each 6th recurrence runs the default batch size 32 at the highest power limit")
    tap.contains(text, "Its power limit of 200 W comes with that choice")
    first = document("why", "digits", "--trial=2")
    proposed = [event["body"] for event in log("digits") if event["kind"] == "proposed"]
    tap.equal((first["why"], first["reason"]), (proposed[1]["why"], proposed[1]["reason"]))
    tap.equal(first["numbers"], proposed[1]["numbers"])
    sampled = next(number for number, body in enumerate(proposed, 1) if body["reason"] == "sampled")
    text = good("why", "-v", "digits", f"--trial={sampled}").stdout
    tap.contains(text, "won a draw from what is believed of each batch size")
    tap.contains(text, "What was known of each batch size then")
    tap.contains(text, "the best of the batch size's profile")
    tap.equal(len(rows("why", "digits", f"--trial={sampled}")), len(proposed[sampled - 1]["numbers"]["known"]))


def test_why_where_no_energy_is_known():
    store = BOX / "blind.sqlite"
    fill(store, "seen", 4)
    lines = log("seen", store)
    newest = [line["body"] for line in lines if line["kind"] == "proposed"][-1]
    for known in newest["numbers"]["known"]:
        known.update(mean_cost_j=None, mean_energy_j=None)
    (BOX / "blind.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    good("import", "blind", "blind.jsonl", store=store)
    text = good("why", "-v", "blind", store=store).stdout
    tap.contains(text, "the energy of none that reached the target is known")


def test_why_of_a_model():
    """What the policy believed and what trials were worth: a sentence, a table, JSON, and a picture."""
    store = BOX / "believed.sqlite"
    fill(store, "believed", 8, "policy=bayes")
    proposed = [event["body"] for event in log("believed", store) if event["kind"] == "proposed"]
    explored = [number for number, body in enumerate(proposed, 1) if "testing batch size" in body["why"] and "; it is stopped at" in body["why"]]
    trial = explored[-1]
    outlook = proposed[trial - 1]["numbers"]["outlook"]
    tap.equal([row["batch_size"] for row in outlook["candidates"]], [8, 16, 32, 64, 128])
    chosen = next(row for row in outlook["candidates"] if row["batch_size"] == proposed[trial - 1]["batch_size"])
    tap.equal((chosen["worth_j"] > 0, chosen["may_run"], outlook["following_recurrences"]), (True, True, 20))
    tap.equal(document("why", "believed", f"--trial={trial}", store=store)["numbers"]["outlook"], outlook)
    text = good("why", "-v", "believed", f"--trial={trial}", "--svg=believed.svg", store=store).stdout
    tap.contains(text, "What was expected of each batch size, and what a trial of it was worth with 20 recurrences to follow")
    tap.contains(text, "the best")
    picture = svg_texts.check(BOX / "believed.svg")
    words = ElementTree.tostring(picture, encoding="unicode")
    for said in (f"believed: what was believed before trial {trial}", f"chosen: batch {chosen['batch_size']}", "90 % of the belief", "50 %",
                 "score to the target", "batch size"):
        tap.contains(words, said)
    tap.equal(len([tip for tip in re.findall("<[^>]*title>trial ([0-9]+), batch", words) if int(tip) < trial]) > 0, True)
    good("set", "believed", "--max-slowdown=10%", store=store)
    fill(store, "believed", 1, "policy=bayes")
    tap.contains(good("why", "-v", "believed", store=store).stdout, "profile for the objective within the bound.\n")
    first = good("why", "-v", "believed", "1", store=store).stdout
    tap.contains(first, "Batch size 32, the default, runs, since none has reached the target here yet: it was not tried yet.\n")
    tap.contains(first, "It may run 20 epochs, as many as the job allows.\n")
    told = "".join(good("why", "-v", "believed", str(number), store=store).stdout for number in range(1, len(proposed) + 1))
    tap.equal(re.findall(r"[0-9]\.[0-9]{4,}", told), [], "a saving that is nothing beside the others has no digits of its own")
    tap.equal(("What was expected" in first, first), (False, good("why", "-v", "believed", "--trial=1", store=store).stdout))
    refused(64, "named twice", "why", "believed", "1", "--trial=1", store=store)
    refused(64, "'x' is no trial's number", "why", "believed", "x", store=store)
    refused(69, "there is no belief to draw", "why", "believed", "--trial=1", "--svg=none.svg", store=store)
    tap.equal((BOX / "none.svg").exists(), False)


def test_a_picture_after_a_revision():
    """What ran before it is no trial that the belief rests on."""
    store = BOX / "revised.sqlite"
    fill(store, "revised", 8, "policy=bayes")
    fill(store, "revised", 6, "policy=bayes", "revision=new data", "scale=3", "day=20")
    trials = document("history", "revised", store=store)["rows"]
    first = next(row["trial"] for row in trials if row["revision"])
    good("why", "-v", "revised", "--svg=revised.svg", store=store)
    shown = {int(tip) for tip in re.findall("<title>trial ([0-9]+), batch", (BOX / "revised.svg").read_text())}
    tap.equal(shown, {row["trial"] for row in trials[first - 1:-1] if row["cost_j"] is not None})


fill_digits()
tap.main(globals())
