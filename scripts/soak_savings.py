# SPDX-License-Identifier: Apache-2.0
"""Savings of jobs over recorded runs: how often the stated interval covers the true one.

The simulator takes the live decisions over the recorded traces. Among its recurrences runs of
the default are drawn from the same records, as control runs would be; what a run takes in
the mean is known from the records, and so is the true saving. Needs the recorded traces
(tests/lib/test_data.h says where they are looked for), and the program tests/saving_reader.
"""
import collections
import csv
import math
import os
import pathlib
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / os.environ.get("BUILD_DIR", "build")
TRACES = pathlib.Path(os.environ.get("FLYBALL_TEST_DATA") or ROOT.parent / "shared" / "data") / "zeus_nsdi23"
sys.path[:0] = [str(ROOT / "tests/lib")]
import sim_reference as reference  # noqa: E402

RECURRENCES, CONTROL_EVERY, LEAST = 100, 10, 0.945
BASELINE, SEARCHING, TUNED = range(3)


def mean(job, size):
    """Epochs of a run in the mean, and the share that reaches the target."""
    epochs = [job.max_epochs if math.isnan(one) else one for one in job.epochs[size]]
    return math.fsum(epochs) / len(epochs), len(job.reaching(size)) / len(epochs)


def decisions(gpu, name, seeds, directory):
    """{(seed, recurrence): its tries}, as the simulator took them."""
    subprocess.run([BUILD / "flyball", "sim", "job", "--quiet", "--traces", TRACES, "--gpu", gpu, "--workload", name, "--policy", "zeus", "--seeds",
                    f"1-{seeds}", "--recurrences", str(RECURRENCES), "--tries", "tries.csv"], cwd=directory, stdout=subprocess.DEVNULL, check=True)
    found = collections.defaultdict(list)
    with open(pathlib.Path(directory, "tries.csv"), newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["policy"] == "zeus":
                found[int(row["seed"]), int(row["recurrence"])].append(row)
    return found


def one_job(job, tries, seed, draw):
    """Lines for the reader: a job and its runs."""
    seconds, watts = job.points[job.default][max(job.points[job.default])]
    lines, energy_j, models = [], 0.0, 0.0
    for recurrence in range(RECURRENCES):
        if recurrence % CONTROL_EVERY == 0:
            epochs = draw.choice(job.epochs[job.default])
            taken = job.max_epochs if math.isnan(epochs) else epochs
            lines.append(f"{BASELINE} {int(epochs <= job.max_epochs)} {taken * seconds * watts!r} {seconds * watts!r}")
        rows = tries.get((seed, recurrence))
        if rows is None:
            break
        size, limit = int(rows[0]["batch_size"]), float(rows[0]["power_limit_w"])
        epoch_j = math.prod(job.points[size][limit])
        search = recurrence < 2 * len(job.sizes) + 2 or len(rows) > 1
        taken_j = math.fsum(float(row["energy_j"]) for row in rows)
        lines.append(f"{SEARCHING if search else TUNED} {rows[-1]['reached']} {taken_j!r} {epoch_j!r}")
        if not search:
            epochs, reached = mean(job, size)
            energy_j, models = energy_j + epochs * epoch_j, models + reached
    if models == 0.0:
        return []
    epochs, reached = mean(job, job.default)
    truth = 1 - (energy_j / models) / (epochs * seconds * watts / reached)
    return [f"J {len(lines)} {truth!r}", *lines]


def campaign(seeds, directory):
    """The shares that were covered, of each job; fails where one is too small."""
    shares = []
    for gpu in ("v100", "a40"):
        for name, arguments in reference.JOBS.items():
            job = reference.Job(TRACES, gpu, *arguments)
            tries, draw = decisions(gpu, name, seeds, directory), random.Random(1)
            lines = [line for seed in range(1, seeds + 1) for line in one_job(job, tries, seed, draw)]
            answer = subprocess.run([BUILD / "tests" / "saving_reader"], input="\n".join(lines) + "\n", stdout=subprocess.PIPE, text=True, check=True)
            jobs, stated, covered = map(int, answer.stdout.split())
            if stated == 0 or covered < (LEAST - 3 * math.sqrt(LEAST * (1 - LEAST) / stated)) * stated:
                raise AssertionError(f"{name} on {gpu}: {covered} of {stated} intervals of {jobs} jobs cover the true saving")
            shares.append(100 * covered / stated)
    return shares
