# SPDX-License-Identifier: Apache-2.0
"""Programs of the Python package that fork while a disk does not answer.

usage: python_forks.py FLYBALL SOURCE_ROOT
"""

import os
import pathlib
import subprocess
import sys

import tap
from session_machine import BUILT, HOME, KNOBS, STORE, log_and_machine

FORKS = """
import flyball, multiprocessing, os, pathlib, sys, threading, time
mark, held = map(pathlib.Path, sys.argv[1:3])
kind = sys.argv[3]

def make():
    if kind == "session":
        return flyball.Session("job", batch_sizes=[16, 32], default=32, target=0.9, max_epochs=6, leave_limits=True)
    tuner = flyball.Tuner(flyball.Monitor(), limits_w=[400, 200], warmup_steps=1, profile_steps=5)
    for _ in tuner.steps(range(20)):
        time.sleep(0.01)
    print(tuner.report, file=sys.stderr)
    return tuner

def work(items, results):
    made[0] and made[0].step_begin()
    for item in iter(items.get, None):
        results.put(item * item)

def load(when):
    "As a data loader with one worker does, and then with os.fork alone."
    context = multiprocessing.get_context("fork")
    items, results = context.SimpleQueue(), context.SimpleQueue()
    worker = context.Process(target=work, args=(items, results))
    worker.start()
    for item in (3, 4, None):
        items.put(item)
    answers = [results.get(), results.get()]
    worker.join()
    child = os.fork()
    if child == 0:
        os._exit(7)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(when, answers, worker.exitcode, status, "hangs" if mark.exists() else "answers", flush=True)

made = [None]
thread = threading.Thread(target=lambda: made.__setitem__(0, make()))
thread.start()
while not held.exists():
    assert thread.is_alive(), "nothing hangs"
    time.sleep(0.005)
load("while it opens")
thread.join()
load("afterwards")
for _ in made[0].steps(range(5)):
    pass
load("after steps")
made[0].close()
"""


def test_forks_while_a_disk_hangs():
    """A file that a session or a tuner opens does not answer: data loaders start their workers all the same, at once."""
    build = pathlib.Path(os.environ.get("FLYBALL_TEST_BUILD", pathlib.Path(BUILT).parent / "tests"))
    mark, held = HOME / "hangs", HOME / "held"
    definition = ["--batch-sizes", "16,32", "--default-batch-size", "32", "--target-metric", "0.9", "--max-epochs", "6", "--leave-limits", "--tries", "1"]
    for kind, place, around in (("session", STORE.name, []), ("tuner", str(KNOBS), []), ("session", STORE.name, [BUILT, "run", "--job", "job", *definition, "--"])):
        mark.touch()
        held.unlink(missing_ok=True)
        with log_and_machine():
            with tap.Program([build / "slow_calls", mark, held, place, "open", *around, sys.executable, "-c", FORKS, mark, held, kind], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
                try:
                    out, talk = process.communicate(timeout=120)
                except subprocess.TimeoutExpired:
                    mark.unlink()
                    process.terminate()
                    raise AssertionError(f"{kind}: not ended while the disk hangs: {process.communicate()}") from None
            mark.unlink()
            if process.returncode == 77:
                raise tap.Skip("the kernel hands no calls over")
            tap.equal((process.returncode, out.splitlines()), (0, [f"{when} [9, 16] 0 7 hangs" for when in ("while it opens", "afterwards", "after steps")]), (kind, around, talk))


tap.main(globals())
