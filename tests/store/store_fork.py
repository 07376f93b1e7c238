# SPDX-License-Identifier: Apache-2.0
"""A program forks while another of its threads opens a store on a disk that does not answer.

usage: store_fork.py FLYBALL SOURCE_ROOT

Every system call that opening and closing a store makes on its file and its directory is a window: that one call hangs, the
program forks, and the child opens the same store.
"""

import os
import pathlib
import select
import subprocess
import sys
import tempfile

import tap

BUILD = pathlib.Path(os.environ.get("FLYBALL_TEST_BUILD", os.path.join(os.path.dirname(os.path.abspath(sys.argv[1])), "tests")))
KINDS = "open,stat,lock,sync,read,write,close,change"
WINDOWS_MAX, STRIDE = 200, 7  # what comes after the file is locked is much alike


def fork_within(place, window, existing):
    """Which call hung ("" for none), and what opening the store in the child came to, while the call still hung."""
    store, mark, log = place / "store.sqlite", place / "hangs", place / "log"
    for path in place.iterdir():
        path.unlink()
    if existing:
        subprocess.run([BUILD / "store_client"], input=f"open {store} 20\nadd job key\n", stdout=subprocess.DEVNULL, text=True, check=True)
    mark.touch()
    log.touch()
    with tap.Program([BUILD / "slow_calls", mark, log, store, f"{KINDS}@{window}", BUILD / "store_client"], stdin=subprocess.PIPE,
                     stdout=subprocess.PIPE, text=True) as process:
        process.stdin.write(f"fork {store} {log}\n")
        process.stdin.flush()
        tap.equal(len(select.select([process.stdout], [], [], 90)[0]), 1, f"the fork came back, in window {window}: {log.read_text()}")
        answer = process.stdout.readline().split()
        held = log.read_text()
        mark.unlink()
        process.stdin.close()
        status = process.wait(timeout=60)
    if status == 77:
        raise tap.Skip("the kernel hands no calls over")
    tap.equal((status, answer[:1]), (0, ["ok"]), answer)
    return held, answer[1]


def test_each_window():
    """Until SQLite locks the file, the child opens it. Afterwards it does too, or hears at once why not: the parent has the store locked,
    or SQLite waits under a lock of the whole process, which is only so for its shared memory."""
    for existing in (False, True):
        with tempfile.TemporaryDirectory(prefix="flyball-fork-", dir=tap.quick_place()) as name:
            locked = False
            for window in [*range(1, 15), *range(15, WINDOWS_MAX, STRIDE)]:
                held, came_to = fork_within(pathlib.Path(name), window, existing)
                if not held:
                    break
                kind, _, path = held.removesuffix(" (deleted)\n").split()
                locked |= kind == "lock"
                allowed = {"opened"} | ({"FLY_EBUSY"} if locked else set()) | ({"FLY_ESTATE"} if path.endswith("-shm") else set())
                tap.equal(came_to in allowed, True, (window, held, came_to))
            tap.equal((window > 10, held), (True, ""), "the walk reached the end")


if __name__ == "__main__":
    tap.main(globals())
