# SPDX-License-Identifier: Apache-2.0
"""A job's log in a file and an emulated GPU, for the tests of the Python package's Session: sys.argv[1] is the program."""

import contextlib
import itertools
import json
import os
import pathlib
import shutil
import sqlite3
import sys
import time

BUILD = pathlib.Path(sys.argv[1]).resolve().parent
PACKAGE = pathlib.Path(os.environ.get("FLYBALL_TEST_PYTHON", BUILD / "python"))
DRIVERS = os.environ.get("FLYBALL_TEST_EMULATOR", str(BUILD / "emulator"))

# The driver library is found where the loader looks, which asks only at the start.
if DRIVERS not in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
    os.environ["LD_LIBRARY_PATH"] = ":".join([DRIVERS, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])
    os.execv(sys.executable, [sys.executable, *sys.argv])

import tap  # noqa: E402
from power_machine import BUILT, CLEAN, DEFAULT_W, HOME, KNOBS, back_within, emulator, machine, wait_for  # noqa: E402, F401

for name in set(os.environ) - set(CLEAN):
    del os.environ[name]
STORE = HOME / "store.sqlite"
os.environ.update({**CLEAN, "LD_LIBRARY_PATH": DRIVERS, "FLYBALL_STORE": str(STORE), "XDG_STATE_HOME": str(HOME / "state-home"),
                   "FLYBALL_GUARD": str(pathlib.Path(BUILT).parent / "flyball-guard"), "PYTHONPATH": str(PACKAGE)})
sys.path.insert(0, str(PACKAGE))

import flyball  # noqa: E402  (the package of the build, which the lines above lead to)

EXACT = ["--sensor", "exact", "--counter-period-ms", "0", "--settle-ms", "0.001"]
DELIVERS = "delivers"
names = itertools.count(1)


def forget():
    """Removes the log, and what could not be delivered to it."""
    for path in HOME.glob("store.sqlite*"):
        path.unlink()
    shutil.rmtree(HOME / "state-home", ignore_errors=True)


@contextlib.contextmanager
def log_and_machine():
    """A job's log without anything in it, and an emulated GPU with work whose limit stands again afterwards."""
    forget()
    with machine(*EXACT, gpus=1):
        emulator("set", "--gpu", 0, "--load-w", 300)
        yield
        back_within([DEFAULT_W], "all sessions are closed")


def session(job="job", **options):
    return flyball.Session(job, **{"batch_sizes": [16, 32, 64], "default": 64, "metric": "accuracy", "target": 0.9, "max_epochs": 6,
                                   "wait_s": 60, **options})


def events(kind):
    """The trials and bodies of the log's events of a kind, as far as it has heard of them (see told)."""
    query = "SELECT trial, body FROM event JOIN job ON event.job = job.id WHERE kind = ? AND name <> ? ORDER BY event.rowid"
    with contextlib.closing(sqlite3.connect(STORE)) as store, contextlib.suppress(sqlite3.OperationalError):  # it is not made yet
        return [(trial, json.loads(body)) for trial, body in store.execute(query, (kind, DELIVERS))]
    return []


def ends():
    return [(trial, body["outcome"]) for trial, body in events("ended")]


def outcomes():
    """Of all jobs, which may be heard of in any order."""
    return sorted(outcome for _, outcome in ends())


def told(call, expected, context=""):
    """Fails unless the log tells that in the end: what a busy machine could not deliver in time, a later session does."""
    begin = time.monotonic()
    while call() != expected and time.monotonic() < begin + tap.PATIENCE_S:
        if any((HOME / "state-home").rglob("*.calls")):
            with session(DELIVERS, leave_limits=True):
                time.sleep(0.2)
        time.sleep(0.02)
    tap.equal(call(), expected, context)


def train(training, reached_after=2, steps=5):
    """Trains, and returns the numbers of its epochs."""
    epochs = []
    for epoch in training.epochs():
        for _ in training.steps(range(steps)):
            pass
        with training.evaluation():
            training.report(0.95 if epoch + 1 >= reached_after else 0.5)
        epochs.append(epoch)
    return epochs


def raised(kind, call, *arguments, **keywords):
    """The exception of that kind, and of no other, that a call raises."""
    try:
        call(*arguments, **keywords)
    except flyball.Error as error:
        tap.equal(type(error), kind, str(error))
        return error
    raise AssertionError(f"{kind.__name__} expected")
