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
        told = good("why", "zeus", f"--trial={row['trial']}", store=store).stdout
        tap.contains(told, "the default batch size 32 runs without a cap, ")
    anew = [row for row in guarded if "learning begins anew" in document("why", "zeus", f"--trial={row['trial']}", store=store)["why"]]
    tap.equal(len(anew) >= 1, True)



tap.main(globals())
