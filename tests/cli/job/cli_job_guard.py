#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The guard of recurring jobs: all costs triple after eighteen recurrences, and the default takes over where it must."""
import collections

import tap
from job_stores import BOX, document, fill, good

LIVED = 18


def lived(policy):
    """The history of a job whose costs tripled, and its submissions after that, as lists of tries."""
    store = BOX / f"{policy}.sqlite"
    for recurrences, scale in ((LIVED, 1), (40, 3)):
        fill(store, policy, recurrences, f"policy={policy}", "noise=0.05", f"scale={scale}")
    rows = document("history", policy, store=store)["rows"]
    later = collections.defaultdict(list)
    for row in rows:
        if row["recurrence"] >= LIVED:
            later[row["recurrence"]].append(row)
    return store, rows, list(later.values())


def test_no_submission_burns_its_tries_for_ever():
    for policy in ("zeus", "bayes"):
        _, _, later = lived(policy)
        burned = [sum(row["outcome"] != "reached" for row in tries) >= 2 for tries in later]
        tap.equal(len(later), 40)
        tap.equal(sum(burned[-20:]) <= 6, True, (policy, burned))
        tap.equal(max(len(tries) for tries in later) <= 4, True, policy)


def test_the_reason_is_told():
    store, rows, _ = lived("zeus")
    guarded = [row for row in rows if row["reason"] in ("guard", "guard_doubt")]
    tap.equal({row["batch_size"] for row in guarded}, {32})
    tap.equal("guard" in {row["reason"] for row in guarded}, True)
    for row in guarded[:3]:
        told = good("why", "-v", "zeus", f"--trial={row['trial']}", store=store).stdout
        tap.contains(told, "he default batch size 32 runs without a cap, ")
    anew = [row for row in guarded if "learning begins anew" in document("why", "zeus", f"--trial={row['trial']}", store=store)["why"]]
    tap.equal(len(anew) >= 1, True)

def test_show_tells_what_holds_at_present():
    """Submission by submission: what show says before each is what the next one does, and why says the same."""
    store, held, anew = BOX / "present.sqlite", 0, 0
    fill(store, "zeus", LIVED, "policy=zeus", "noise=0.05")
    for _ in range(12):
        before = document("show", "zeus", store=store)["rows"][0]
        text = good("show", "-v", "zeus", store=store).stdout
        fill(store, "zeus", 1, "policy=zeus", "noise=0.05", "scale=3")
        newest = document("history", "zeus", store=store)["rows"]
        first = next(row for row in newest if row["recurrence"] == newest[-1]["recurrence"])
        tap.equal(before["guard"] is not None, first["reason"] in ("guard", "guard_doubt"), f"{before['guard']} and {first}")
        if before["guard"] is None:
            tap.equal((before["guard_unavailable"], "At present" in text), ("the policy chooses what runs", False))
            continue
        held += 1
        tap.contains(text, f"  At present {before['guard']}.\n")
        why = document("why", "zeus", f"--trial={first['trial']}", store=store)["why"]
        tap.equal(why.startswith(before["guard"]), True, why)
        if "learning begins anew" in why:
            anew += 1
            after = document("show", "zeus", store=store)["rows"][0]
            tap.equal((after["anew_since_trial"], after["anew_since"], after["anew_times"]), (first["trial"], first["begun"], anew))
            tap.contains(good("show", "-v", "zeus", store=store).stdout, f"  Learning began anew with trial {first['trial']}, on {first['begun']}")
    tap.equal((held > 0, anew > 0), (True, True))
    quiet = BOX / "quiet.sqlite"
    fill(quiet, "bayes", 4, "policy=bayes")
    row = document("show", "bayes", store=quiet)["rows"][0]
    tap.equal((row["anew_since_trial"], row["anew_since_unavailable"], row["anew_times"]), (None, "it never did", 0))


tap.main(globals())
