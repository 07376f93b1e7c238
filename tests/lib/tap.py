# SPDX-License-Identifier: Apache-2.0
"""Tests of whole programs, reported in the Test Anything Protocol.

    import tap

    def test_addition():
        tap.equal(1 + 1, 2)

    tap.main(globals())

Every function whose name begins with "test_" runs, in the order of the file. A
failed check raises AssertionError; Skip ends a test that cannot run here.
"""

import contextlib
import fcntl
import os
import pathlib
import signal
import subprocess
import sys
import time
import traceback


# Whatever started the tests may ignore it (nohup does), and what is ignored is inherited.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


# How long a test waits for anything before it calls that a failure, however busy the machine is.
PATIENCE_S = 300
LIB = pathlib.Path(__file__).resolve().parent  # what the tests of all rooms share


class Skip(Exception):
    """Raised with the reason why a test cannot run here."""


def equal(actual, expected, context=""):
    """Fails with both sides unless they are equal."""
    if actual != expected:
        raise AssertionError(f"{context}\nexpected: {expected!r}\n     got: {actual!r}")


def contains(text, piece, context=""):
    """Fails with both sides unless the piece stands in the text."""
    if piece not in text:
        raise AssertionError(f"{context}\nexpected a text with: {piece!r}\n     got: {text!r}")


def run(command, **options):
    """Runs a program with its output captured as text; only one that hangs reaches the end."""
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("timeout", PATIENCE_S)
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, **options)


def eventually(condition, what="", every_s=0.02):
    """Waits until the condition holds and returns what it gave; fails where it never does."""
    end = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"waited in vain for {PATIENCE_S} s until {what or condition}")
        time.sleep(every_s)
    return found


class Program(subprocess.Popen):
    """A program that is killed where its test fails: Popen alone would wait for its end."""

    def __exit__(self, kind, value, trace):
        if kind is not None:
            self.kill()
        return super().__exit__(kind, value, trace)


def quick_place(mebibytes=64):
    """A directory in memory with so much room, for what is not a test of the disk; None: there is none."""
    place = "/dev/shm"
    if not os.access(place, os.W_OK | os.X_OK):
        return None
    facts = os.statvfs(place)
    return place if facts.f_bavail * facts.f_frsize >= mebibytes << 20 else None


def sanitizers(program):
    """The sanitizers that a program was built with, of "address" and "thread"."""
    content = pathlib.Path(program).read_bytes()
    return {name for name, mark in (("address", b"__asan_init"), ("thread", b"__tsan_init")) if mark in content}


def _run_test(number, function):
    name = function.__name__.removeprefix("test_").replace("_", " ")
    try:
        function()
    except Skip as reason:
        print(f"ok {number} - {name} # SKIP {reason}", flush=True)
    except Exception:  # the report of a failure, whatever it is, is the purpose
        print(f"not ok {number} - {name}", flush=True)
        for line in traceback.format_exc().splitlines():
            print(f"# {line}", flush=True)
        return False
    else:
        print(f"ok {number} - {name}", flush=True)
    return True


def _sweep_steps():
    """Removes the files of steps that killed commands left, as the next command would."""
    for path in pathlib.Path("/dev/shm").glob("flyball-steps-*"):
        with contextlib.suppress(OSError), open(path, "r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def main(names):
    """Runs the tests among `names` and exits with 1 when one failed."""
    tests = [value for name, value in names.items() if name.startswith("test_")]
    print(f"1..{len(tests)}", flush=True)
    results = [_run_test(number, test) for number, test in enumerate(tests, 1)]
    _sweep_steps()
    sys.exit(0 if all(results) else 1)
