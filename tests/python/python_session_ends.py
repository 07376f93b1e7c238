# SPDX-License-Identifier: Apache-2.0
"""How sessions of the Python package end: exceptions, signals, threads, forks, and the interpreter's own end.

usage: python_session_ends.py FLYBALL SOURCE_ROOT
"""

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import threading

import tap
from session_machine import (
    back_within,
    BUILT,
    DEFAULT_W,
    ends,
    events,
    flyball,
    HOME,
    log_and_machine,
    names,
    outcomes,
    raised,
    session,
    told,
    train,
    wait_for,
)

def test_exceptions_pass():
    """How the training ended, by what its block raises."""
    cases = [(ZeroDivisionError(), "crashed"), (SystemExit(1), "crashed"), (SystemExit(0), "not_reached"),
             (KeyboardInterrupt(), None), (SystemExit(143), None)]
    with log_and_machine():
        for error, outcome in cases:
            before = ends()
            try:
                with session(f"raises-{next(names)}") as training:
                    for _ in training.epochs():
                        for _ in training.steps(range(3)):
                            raise error
                raise AssertionError("the exception is lost")
            except type(error) as caught:
                tap.equal(caught is error, True)
            told(lambda: [ended for _, ended in ends()[len(before):]], [outcome] if outcome else [], repr(error))


def test_fails_before_its_first_step():
    """Nothing is learnt from it, unless a step, an epoch or a report says that it had begun; the GPU's memory counts."""
    def fail(training, begins):
        with training:
            if begins == "epoch":
                next(iter(training.epochs()))
            elif begins == "step":
                next(iter(training.steps(range(3))))
            elif begins == "report":
                training.report(0.1)
            raise MemoryError if begins == "memory" else ZeroDivisionError

    with log_and_machine():
        for begins, outcome, vain in (("nothing", "crashed", True), ("step", "crashed", False), ("report", "crashed", False), ("memory", "out_of_memory", False)):
            before = len(ends())
            with contextlib.suppress(ZeroDivisionError, MemoryError):
                fail(session(f"fails-{next(names)}"), begins)
            told(lambda: [(body["outcome"], body.get("nothing_learnt", False)) for _, body in events("ended")[before:]], [(outcome, vain)], begins)


def test_fails_inside_flyball_run():
    """Its own session says so, and `flyball run` makes no other try of a program that never began."""
    script = """
import flyball, sys
session = flyball.Session("inside", batch_sizes=[16, 32], default=32, target=0.9, max_epochs=6, wait_s=60, leave_limits=True)
with session as training:
    for _ in range(int(sys.argv[1])):
        for _ in training.steps(range(3)): pass
    raise ZeroDivisionError
"""
    definition = ["--batch-sizes", "16,32", "--default-batch-size", "32", "--target-metric", "0.9", "--max-epochs", "6", "--leave-limits", "--tries", "2"]
    report = HOME / "inside.json"
    for epochs, expected in ((0, ["not_started"]), (1, ["crashed", "crashed"])):
        with log_and_machine():
            done = tap.run([os.path.abspath(sys.argv[1]), "run", "--job", "inside", *definition, "--output", str(report), "--", sys.executable, "-c", script, str(epochs)])
            made = [attempt["end"] for attempt in json.loads(report.read_text())["recurrence"]["tries"]]
            tap.equal((done.returncode, made), (1, expected), done.stderr)
            told(lambda: [body.get("nothing_learnt", False) for _, body in events("ended")], [epochs == 0] * len(expected), done.stderr)


def test_interrupt_within_a_step():
    """Ctrl-C ends it; the next attempt of the run goes on with the same trial."""
    with log_and_machine():
        for attempt in (1, 2):
            try:
                with session(run="requeued") as training:
                    tap.equal((training.status.trial, training.status.attempt), (1, attempt))
                    for epoch in training.epochs():
                        for _ in training.steps(range(3)):
                            if attempt == 1 and epoch == 1:
                                signal.raise_signal(signal.SIGINT)
                        training.report(0.95 if attempt == 2 else 0.1)
                tap.equal(attempt, 2)
            except KeyboardInterrupt:
                tap.equal(attempt, 1)
            back_within([DEFAULT_W], "Ctrl-C")
        told(ends, [(1, "reached")])


def test_a_cell_that_runs_twice():
    with log_and_machine():
        first = session()
        first.report(0.1)
        second = session()
        tap.equal((first.closed, second.closed, second.status.limit_text), (True, False, ""))
        other = session("other", leave_limits=True)
        tap.equal(second.closed, False)
        with second:
            train(second)
        other.close()
        told(lambda: [trial for trial, outcome in ends() if outcome == "reached"], [second.status.trial])


def test_threads():
    """Nothing is counted twice, and nobody waits for ever."""
    with log_and_machine(), session(max_epochs=1000, target=None) as training:
        wrong = []

        def work():
            try:
                for _ in range(40):
                    for _ in range(20):
                        training.step_begin()
                        training.batch_size, training.status
                    training.report(None)
            except BaseException as error:  # what comes is the test's failure
                wrong.append(error)

        threads = [threading.Thread(target=work) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        tap.equal((wrong, training.status.epoch), ([], 200))
        training.close()
        told(lambda: sorted(body["epoch"] for _, body in events("epoch")), list(range(1, 201)))
        tap.equal(sum(body.get("steps", 0) for _, body in events("epoch")), 4000)


def test_closed_by_another_thread():
    with log_and_machine():
        training = session(max_epochs=100000, target=None)

        def work():
            while not training.closed:
                training.step_begin()
                training.report(None)

        thread = threading.Thread(target=work)
        thread.start()
        wait_for(lambda: training.status.epoch > 20, "it trains")
        training.close("interrupted")
        thread.join()


def in_child(function):
    """Runs it in a child of a fork; its result is the exit status."""
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            code = function()
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_fork():
    with log_and_machine(), session() as training:
        training.report(0.1)

        def child():
            training.step_begin()
            inert = training.report(0.99) == "go on" and training.try_again() is False
            with session("of-the-child", leave_limits=True) as own:
                train(own)  # into the log that its parent has open
            training.close()
            return 42 if inert and own.status.epoch == 2 and own.status.text == "" else 2

        tap.equal(in_child(child), 42)
        tap.equal(train(training, reached_after=3), [1, 2])
        training.close()
        told(ends, [(1, "reached")] * 2)
        told(lambda: sorted(body["epoch"] for _, body in events("epoch")), [1, 1, 2, 2, 3])


def test_fork_within_a_call():
    """As a data loader makes workers while another thread reports."""
    with log_and_machine(), session(max_epochs=100000, target=None) as training:
        done = threading.Event()

        def work():
            while not done.is_set():
                training.report(None)

        thread = threading.Thread(target=work)
        thread.start()
        codes = [in_child(lambda: (training.step_begin(), training.status, training.close(), 7)[-1]) for _ in range(20)]
        done.set()
        thread.join()
        tap.equal(codes, [7] * 20)


BEGIN = """
import flyball, os, sys, threading
session = flyball.Session("job", batch_sizes=[16, 32], default=32, target=0.9, max_epochs=1000000, wait_s=60,
                          limits_w=[200, 300])
session.report(0.1)
for _ in session.steps(range(5)): pass
assert session.status.disabled or session.status.limit_w == 300, session.status
"""
ENDS = {
    "an open session": ("", 0),
    "a cycle": ("cycle = [session]; cycle.append(cycle); session.cycle = cycle; del session, cycle", 0),
    "an open loop": ("epochs = session.epochs(); next(epochs); steps = iter(session.steps(range(5))); next(steps)", 0),
    "an exception": ("raise ZeroDivisionError", 1, "crashed"),
    "an exception of memory": ("raise MemoryError", 1, "out_of_memory"),
    "an exception at a prompt": ("sys.ps1 = '>'; raise ZeroDivisionError", 1),
    "an exit status": ("sys.exit(1)", 1),
    "a thread in a report": ("threading.Thread(target=lambda: [session.report(0.1) for _ in iter(int, 1)], daemon=True).start()", 0),
    "Ctrl-C": ("import signal; signal.raise_signal(signal.SIGINT)", -2),
    "a signal": ("import signal; signal.raise_signal(signal.SIGTERM)", -15),
    "os._exit": ("os._exit(5)", 5),
}


def test_ends_of_the_interpreter():
    for name, (ending, status, *outcome) in ENDS.items():
        with log_and_machine():
            done = tap.run([sys.executable, "-c", BEGIN + ending])
            tap.equal((done.returncode, done.stdout), (status, ""), f"{name}: {done.stderr}")
            tap.equal([line for line in done.stderr.splitlines() if not line.startswith(("ZeroDivision", "Memory", "Keyboard", "flyball: job 'job': ")) and not line.startswith((" ", "Trace"))], [], name)
            back_within([DEFAULT_W], name)
            tap.equal([told for _, told in ends()], outcome, name)


def test_ranks_that_fail():
    """What an exchange raises ends the exchange; only what is meant for the program reaches it."""
    raises, seen, inner = [None], [], []

    def all_reduce(sums, maxima):
        if seen and not inner and raises[0] is None:
            inner.append((training.report(0.5), training.step_begin(), training.close()))  # from within a call: nothing
        if raises[0] is not None:
            raise raises[0]

    hook, sys.unraisablehook = sys.unraisablehook, lambda told: seen.append(type(told.exc_value))
    try:
        with log_and_machine():
            with session(world_size=2, rank=0, all_reduce=all_reduce) as training:
                seen.append(None)
                tap.equal((training.report(0.1), inner), ("go on", [("go on", True, None)]))
                raises[0] = ValueError("gone")
                tap.equal((training.report(0.2), seen), ("go on", [None, ValueError]))
                tap.equal(training.report(0.95), "reached")  # alone
            raises[0] = KeyboardInterrupt()
            try:
                session("interrupted", world_size=2, rank=0, all_reduce=all_reduce)
                raise AssertionError("Ctrl-C is lost")
            except KeyboardInterrupt:
                pass
            raises[0] = None
            with session("later", world_size=2, rank=0, all_reduce=all_reduce) as training:
                raises[0] = KeyboardInterrupt()
                try:
                    training.report(0.1)
                    raise AssertionError("Ctrl-C is lost")
                except KeyboardInterrupt:
                    pass
    finally:
        sys.unraisablehook = hook


INSIDE = """
import flyball, os, sys
with flyball.Session("job", batch_sizes=[16, 32, 64], default=64, target=0.9, max_epochs=3, tries="always", wait_s=60) as session:
    same = session.directory == os.environ["FLYBALL_TRY_DIRECTORY"] == sys.argv[1]
    print(os.environ["FLYBALL_TRIAL"] == str(session.status.trial), same, session.status.text, flush=True)
    for epoch in session.epochs():
        for batch in session.steps(range(5)):
            if len(os.listdir(session.directory + "/..")) == 1:
                raise MemoryError
        session.report(0.95)
sys.exit(session.exit_status)
"""


def test_in_a_try_of_flyball_run():
    """One trial for both, and one directory; the command starts the program again after a try without memory."""
    with log_and_machine():
        done = tap.run([BUILT, "run", "--job", "job", "--batch-sizes", "16,32,64", "--default-batch-size", "64", "--target-metric", "0.9",
                        "--max-epochs", "3", "--tries", "3", "--tries-directory", str(HOME / "places"), "--", sys.executable, "-c", INSIDE,
                        "{try_directory}"])
        tap.equal((done.returncode, done.stdout), (0, "True True \n" * 2), done.stderr)
        told(outcomes, ["out_of_memory", "reached"])
        tap.equal(len(list((HOME / "places" / "job").iterdir())), 2)


def test_disabled():
    text = BEGIN + "print(session.batch_size, session.status.disabled, session.report(0.95), session.status.epoch)"
    home = HOME / "untouched"
    done = tap.run([sys.executable, "-c", text], env={**os.environ, "FLYBALL_DISABLE": "1", "FLYBALL_STORE": str(home / "s.sqlite")})
    tap.equal((done.returncode, done.stdout, done.stderr, home.exists()), (0, "32 True reached 2\n", "", False))


def test_nothing_is_left():
    """After many calls the interpreter holds as many blocks of memory as before."""
    with log_and_machine(), session(max_epochs=1000000, target=None) as training:

        def once():
            for _ in training.steps(range(20)):
                pass
            training.status, training.batch_size, training.scale_lr(0.1)
            raised(flyball.UsageError, training.scale_lr, 0.1, "none")
            training.evaluation_end()

        training.report(None)
        for _ in range(100):
            once()
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(5000):
            once()
        gc.collect()
        tap.equal(sys.getallocatedblocks() - before < 500, True, f"{before} blocks, then {sys.getallocatedblocks()}")


def test_sessions_are_freed():
    def once():
        with contextlib.suppress(flyball.UsageError):
            session("no name")
        with session(wait_s=0) as training:
            train(training)
        session(leave_limits=True)

    with log_and_machine():
        for _ in range(3):
            once()
        gc.collect()
        before = sys.getallocatedblocks(), len(os.listdir("/proc/self/fd"))
        for _ in range(10):
            once()
        gc.collect()
        after = sys.getallocatedblocks(), len(os.listdir("/proc/self/fd"))
        tap.equal((after[0] - before[0] < 500, after[1] - before[1] < 5), (True, True), (before, after))
        flyball.Session("job", default=1).close()


def test_loads_nothing_heavy():
    text = "import sys; before = set(sys.modules); import flyball; print(sorted({m.split('.')[0] for m in set(sys.modules) - before}))"
    done = subprocess.run([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True, check=True)
    for module in ("typing", "threading", "datetime", "logging", "torch", "numpy", "html", "inspect"):
        tap.equal(f"'{module}'" in done.stdout, False, done.stdout)


tap.main(globals())
