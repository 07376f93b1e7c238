# SPDX-License-Identifier: Apache-2.0
"""How tuners of the Python package end: the limit comes back, whatever happens.

usage: python_tuner_ends.py FLYBALL SOURCE_ROOT
"""

import gc
import os
import signal
import sys
import threading
import time
import weakref

import tap
from python_scene import HIGHEST_W, LIBRARY, LOWEST_W, QUICK, Machine, flyball, limit_w, monitor, python, settle


def test_exceptions_put_the_limit_back():
    with Machine(), monitor() as meter:
        for kind in (KeyboardInterrupt, ZeroDivisionError, SystemExit):
            try:
                with flyball.Tuner(meter, **QUICK) as tuner:
                    settle(tuner)
                    tap.equal(limit_w(), LOWEST_W)
                    for _ in tuner.steps([1]):
                        raise kind
            except kind:
                pass
            tap.equal(limit_w(), HIGHEST_W, kind.__name__)


def interrupt(tuner):
    """A cell that Ctrl-C ends: its frames live on with the traceback, and its loop with them."""
    try:
        for _ in tuner.steps(range(9)):
            raise KeyboardInterrupt
    except KeyboardInterrupt as error:
        return error


def test_interrupted_cell():
    """The limit goes back by itself, and comes again with the next cell's steps."""
    with Machine(), monitor() as meter:
        tuner = flyball.Tuner(meter, give_back_s=0.5, **QUICK)
        settle(tuner)
        for _ in range(2):
            earlier = tuner.report.give_backs
            kept = interrupt(tuner)
            tap.eventually(lambda: tuner.report.given_back, "it gives back")
            tap.equal((limit_w(), tuner.report.limit_w, tuner.state), (HIGHEST_W, HIGHEST_W, "settled"))
            tap.equal(tuner.report.give_backs > earlier, True, f"{tuner.report.give_backs} times, {earlier} before")
            tap.eventually(lambda: tuner.step_begin() or limit_w() == LOWEST_W, "the next cell's steps set it again")
        del kept
        tuner.give_back()
        tap.equal(limit_w(), HIGHEST_W)
        tuner.close()
        tuner.give_back()


class Turner:
    """A way of the program's own, which needs the interpreter."""

    def __init__(self):
        self.limit_w, self.threads = HIGHEST_W, set()

    def range(self):
        return LOWEST_W, HIGHEST_W

    def set(self, limit_w):
        self.limit_w = limit_w
        self.threads.add(threading.get_ident())
        time.sleep(0.2)

    def standing(self):
        return self.limit_w


def test_turner_in_python():
    """Another thread gives back, and needs the interpreter while this one takes steps and reads the report."""
    with Machine(), monitor() as meter:
        turner = Turner()
        with flyball.Tuner(meter, turner=turner, give_back_s=0.1, **QUICK) as tuner:
            settle(tuner)
            for _ in range(3):
                for _ in range(600):
                    if turner.limit_w == HIGHEST_W:
                        break
                    time.sleep(0.1)
                tap.equal(turner.limit_w, HIGHEST_W)
                for _ in range(3):
                    tuner.step_begin()
                    tap.equal(tuner.report.reason, "goes on")
        tap.equal((turner.limit_w, len(turner.threads)), (HIGHEST_W, 2))


def test_patience_out_of_range():
    with Machine(), monitor() as meter:
        for wrong in (-1, float("nan"), "soon"):
            try:
                flyball.Tuner(meter, give_back_s=wrong)
            except (flyball.UsageError, TypeError):
                continue
            raise AssertionError("an exception expected")
        flyball.Tuner(meter, give_back_s=0).close()


def test_collected():
    """A tuner that is dropped, also with an open epoch or in a cycle, puts the limit back."""

    class Holder:
        def __call__(self, sums, maxima):
            pass

    with Machine(), monitor() as meter:
        tuner = flyball.Tuner(meter, **QUICK)
        settle(tuner)
        batches = iter(tuner.steps([1, 2]))
        next(batches)
        del tuner
        tap.equal(limit_w(), LOWEST_W)
        del batches
        tap.equal(limit_w(), HIGHEST_W)
        holder = Holder()
        holder.tuner = flyball.Tuner(meter, all_reduce=holder, rank=0, **QUICK)
        settle(holder.tuner)
        holder.batches = iter(holder.tuner.steps([1, 2]))
        next(holder.batches)
        gone = weakref.ref(holder)
        del holder
        gc.collect()
        tap.equal((gone(), limit_w()), (None, HIGHEST_W))


def test_fork():
    """In a child the hooks do nothing and the limit stays."""
    with Machine(), monitor() as meter, flyball.Tuner(meter, **QUICK) as tuner:
        settle(tuner)
        child = os.fork()
        if child == 0:
            try:
                for _ in tuner.steps(range(3)):
                    tuner.step_begin()
                limit = tuner.report.limit_w
                tuner.close()
                os._exit(42 if limit == LOWEST_W and tuner.closed else 3)
            finally:
                os._exit(1)
        tap.equal(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 42)
        tap.equal((limit_w(), tuner.state), (LOWEST_W, "settled"))


SCRIPT = f"""
import os, signal, sys, threading, time
import flyball
meter = flyball.Monitor(nvml_path={LIBRARY!r})
tuner = flyball.Tuner(meter, objective="lowest-limit", max_slowdown=None, limits_w=[{HIGHEST_W}, {LOWEST_W}], warmup_steps=1, profile_steps=5)
while tuner.state not in ("settled", "stopped"):
    tuner.step_begin()
    time.sleep(0.0005)
assert tuner.report.limit_w == {LOWEST_W}, tuner.report
"""
ENDS = {
    "the end": ("", 0),
    "an exception": ("raise SystemExit(3)", 3),
    "an open loop": ("loop = iter(tuner.steps([1, 2])); next(loop)", 0),
    "a cycle": ("cycle = [tuner]; cycle.append(cycle)", 0),
    "os._exit": ("os._exit(4)", 4),
    "a thread that steps": ("threading.Thread(target=lambda: [tuner.step_begin() for _ in iter(int, 1)], daemon=True).start(); time.sleep(0.1)", 0),
    "Ctrl-C": ("os.kill(os.getpid(), signal.SIGINT); time.sleep(60)", -signal.SIGINT),
    "a kill": ("os.kill(os.getpid(), signal.SIGKILL); time.sleep(60)", -signal.SIGKILL),
    "a child": ("child = os.fork(); child or sys.exit(0); os.waitpid(child, 0); assert tuner.state == 'settled'", 0),
}


def test_ends_of_the_interpreter():
    """However a process ends, the limit comes back: at once, or by the guard."""
    with Machine():
        for name, (ending, status) in ENDS.items():
            done = python(SCRIPT + ending)
            tap.equal(done.returncode, status, f"{name}: {done.stderr}")
            until = time.monotonic() + tap.PATIENCE_S
            while limit_w() != HIGHEST_W and time.monotonic() < until:
                time.sleep(0.01)
            tap.equal(limit_w(), HIGHEST_W, name)


def test_all_reduce_that_hangs_at_the_end():
    """A thread that waits for other ranks for ever does not keep the interpreter from ending."""
    text = SCRIPT.replace("tuner = ", "tuner = hangs = ", 1) + f"""
tuner.close()
started = threading.Event()
def all_reduce(sums, maxima):
    if threading.current_thread() is not threading.main_thread():
        started.set()
        time.sleep(3600)
tuner = flyball.Tuner(meter, limits_w=[{HIGHEST_W}, {LOWEST_W}], all_reduce=all_reduce, rank=0)
threading.Thread(target=tuner.step_begin, daemon=True).start()
started.wait()
"""
    with Machine():
        done = python(text, FLYBALL_QUIET="1")
        tap.equal((done.returncode, done.stderr), (0, ""))


def test_nothing_to_set():
    """Without a guard nothing is set, and training goes on."""
    text = SCRIPT[:SCRIPT.index("assert")] + "print(tuner.state, tuner.report.reason, tuner.points)"
    with Machine():
        done = python(text, FLYBALL_GUARD="/nowhere/flyball-guard")
        tap.equal((done.returncode, done.stdout.split(" ", 1)[0], done.stderr.count("\n")), (0, "stopped", 1), done.stderr)
        tap.contains(done.stderr, "flyball: nothing saved: ")
        tap.contains(done.stderr, "/nowhere/flyball-guard")
        done = python(text, FLYBALL_DISABLE="1")
        tap.equal((done.returncode, done.stdout, done.stderr), (0, "stopped disabled ()\n", ""))


tap.main(globals())
