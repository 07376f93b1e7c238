# SPDX-License-Identifier: Apache-2.0
"""cli_same_bytes.py FLYBALL ROOT [--record]: the same seed gives the same bytes, on whatever build.

Compares what simulations of a made-up trace write with digests recorded in
same_bytes.json. They hold for every compiler, optimisation level, sanitizer and
number of threads. A change that is meant to change decisions or formats records
them anew with --record and says why in its commit.
"""
import hashlib
import json
import os
import pathlib
import sys
import tempfile

import tap

FLYBALL, ROOT = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
RECORDED = pathlib.Path(__file__).parent / "same_bytes.json"
SIMULATE = ("sim", "job", "--quiet", "--traces", ".", "--jobs", "jobs.ini", "--gpu", "made-up", "--workload",
            "made-up", "--seeds", "1-5", "--policy", "zeus,grid,oracle,default", "--tries", "tries.csv")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("FLYBALL_")}
PATIENCE_S = 600  # a sanitizer takes its time
RUNS = {
    "philox": ("--bootstrap", "100"),
    "numpy": ("--generator", "numpy"),
    "eta and window": ("--eta", "0.9", "--window", "5", "--beta", "1.5"),
    "many recurrences": ("--recurrences", "2000", "--seeds", "1-2"),
    "bayes": ("--policy", "bayes", "--recurrences", "200"),
    "bayes in short profiles": ("--policy", "bayes", "--profile-window", "10%"),
    "bayes within a bound": ("--policy", "bayes", "--objective", "energy", "--max-slowdown", "3%"),
}

OVER_THREADS = ("numpy", "bayes within a bound")


def digest(content):
    return hashlib.sha256(content).hexdigest()


def simulate(directory, options):
    """Digests of the report and the tries; later options win over SIMULATE's."""
    arguments = dict(zip(SIMULATE[3::2], SIMULATE[4::2]))
    arguments.update(zip(options[::2], options[1::2]))
    flat = [word for pair in arguments.items() for word in pair]
    result = tap.run([FLYBALL, *SIMULATE[:3], *flat, "--format", "json"], cwd=directory, env=ENVIRONMENT,
                     timeout=PATIENCE_S)
    tap.equal((result.returncode, result.stderr), (0, ""))
    return {"report": digest(result.stdout.encode()), "tries": digest((directory / "tries.csv").read_bytes())}


def observed(runs=tuple(RUNS), extra=()):
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        tap.equal(tap.run([FLYBALL, "sim", "make-trace", ".", "--quiet"], cwd=directory).returncode, 0)
        digests = {file.name: digest(file.read_bytes()) for file in sorted(directory.iterdir())}
        for run in runs:
            digests[run] = simulate(directory, (*RUNS[run], *extra))
    return digests


def test_bytes_are_the_recorded_ones():
    digests = observed()
    if "--record" in sys.argv[3:]:
        RECORDED.write_text(json.dumps(digests, indent=2) + "\n", encoding="utf-8")
    tap.equal(digests, json.loads(RECORDED.read_text(encoding="utf-8")))


def test_threads_do_not_matter():
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    for threads in ("1", "5"):
        for what, found in observed(OVER_THREADS, ("--threads", threads)).items():
            tap.equal(found, recorded[what], f"{what}, {threads} threads")


if __name__ == "__main__":
    tap.main(globals())
