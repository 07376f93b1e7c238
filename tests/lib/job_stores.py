# SPDX-License-Identifier: Apache-2.0
"""Stores that a client filled in virtual time, and `flyball job ...` over them.

The program under test is the first argument of the test. All stands in a directory of its own.
"""
import csv
import io
import json
import math
import os
import pathlib
import sys
import tempfile

import tap

FLYBALL = os.path.abspath(sys.argv[1])
CLIENT = pathlib.Path(os.environ["FLYBALL_TEST_BUILD"]) / "job_client"
WORK = tempfile.TemporaryDirectory(prefix="flyball-job-stores-", dir=tap.quick_place())
BOX = pathlib.Path(WORK.name)
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("FLYBALL_", "XDG_", "NO_COLOR"))}
CLEAN["HOME"] = WORK.name
STORE = BOX / "store.sqlite"  # what is asked where no store is named


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


def fill_digits():
    """The job that most tests look at: 30 recurrences, a control in each sixth, and a trial that runs."""
    fill(STORE, "digits", 30, "control=6", "noise=0.05", "open=1")


def close(actual, expected):
    if not math.isclose(actual, expected, rel_tol=1e-6):
        raise AssertionError(f"{actual} is not {expected}")
