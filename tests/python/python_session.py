# SPDX-License-Identifier: Apache-2.0
"""The Python package's Session on emulated GPUs and a log in a file: what a training calls, and what it is told.

usage: python_session.py FLYBALL SOURCE_ROOT
"""

import contextlib
import gc
import io
import logging
import os
import pathlib
import pickle
import re
import sys
import threading
import weakref

import tap
from session_machine import (
    back_within,
    DEFAULT_W,
    ends,
    events,
    EXACT,
    flyball,
    forget,
    HOME,
    log_and_machine,
    machine,
    names,
    outcomes,
    raised,
    session,
    told,
    train,
)

def test_trains_to_the_target():
    with log_and_machine():
        with session() as training:
            tap.equal((training.batch_size, training.local_batch_size, training.status.trial), (64, 64, 1))
            tap.equal(training.status.text, "")
            tap.equal(train(training), [0, 1])
            status = training.status
            tap.equal((status.epoch, status.answer, training.is_over), (2, "reached", True))
            tap.equal(status.energy_j > 0 and status.time_s > 0, True, status)
            tap.contains(training._repr_html_(), "<td>answer</td><td>reached</td>")
            tap.contains(repr(training), "'job' batch_size=64 epoch=2 reached")
        tap.equal((training.closed, training.batch_size, training.status.answer, training.exit_status), (True, 64, "reached", 0))
        told(ends, [(1, "reached")])
        told(lambda: [body["steps"] for _, body in events("epoch")], [5, 5])


def test_the_last_line():
    """One on stderr, with what came of it; none where it is unwanted, of another rank, or a second time."""
    def said(ends=lambda training: training.close(), epochs=2, **options):
        with contextlib.redirect_stderr(io.StringIO()) as talk:
            training = session(f"last-{next(names)}", **options)
            for epoch in training.epochs(max=epochs or None):
                if epochs == 0:
                    break
                training.report(0.95 if epoch == 1 else 0.1)
            ends(training)
            training.close()
        return training, talk.getvalue()

    with log_and_machine():
        training, talk = said()
        tap.equal(talk, f"flyball: {training.summary}\n")
        tap.equal(re.sub(r"[\d.]+ [kmµ]?[sJ]\b", "N", talk), f"flyball: job '{training.job}': batch size 64 at {training.status.limit_w:g} W, 2 epochs: N, N; the target was reached\n"
                  if training.status.limit_w is not None else f"flyball: job '{training.job}': batch size 64, 2 epochs: N, N; the target was reached\n")
        tap.contains(said(epochs=1)[1], ", 1 epoch: ")
        tap.equal(said(epochs=0)[1].endswith(", and no epoch ended\n"), True)
        tap.equal((said(quiet=True)[1], said(world_size=1, rank=0)[1].count("\n")), ("", 1))
        os.environ["FLYBALL_QUIET"] = "1"
        try:
            tap.equal(said()[1], "")
        finally:
            del os.environ["FLYBALL_QUIET"]


def test_ends_of_a_training():
    """Of epochs that reach nothing, by the job's number of them and by one of the program's own."""
    with log_and_machine():
        with session("few") as training:
            tap.equal(train(training, reached_after=99), list(range(6)))
        with session("fewer", tries=2) as training:
            seen = []
            for epoch in training.epochs(max=3):
                seen.append(epoch)  # without a report: the epoch is reported without a metric
            tap.equal((seen, training.status.epoch, training.exit_status), ([0, 1, 2], 3, 75))
        told(outcomes, ["not_reached", "not_reached"])
        with session("fewer") as training:
            tap.contains(str(raised(flyball.UsageError, training.epochs, 7)), "max_epochs=6")
            for _ in training.epochs():
                break
        with session("samples", report_every_samples=640, samples_per_epoch=640) as training:
            for epoch in training.epochs():
                for _ in training.steps(range(20)):
                    pass
                training.report(0.95 if epoch == 2 else 0.1)
            tap.equal((epoch, training.status.epoch), (2, 6))


def test_attempts():
    """A program that trains again by itself, until it has a model."""
    with log_and_machine():
        sizes = []
        for _ in range(4):
            with session(tries=4, policy="zeus", beta=1e6) as training:  # no try is stopped for its cost
                for attempt in training.attempts():
                    sizes.append(attempt.batch_size)
                    train(attempt, reached_after=99 if attempt.batch_size == 16 else 2)
                tap.equal(training.status.answer, "reached")
            told(lambda: len(ends()), len(sizes))
        tap.equal(sorted(set(sizes)), [16, 32, 64], sizes)
        tap.equal(outcomes().count("reached"), 4, ends())


class OutOfMemoryError(RuntimeError):
    """As a framework's."""


def exceptions_of_memory():
    chained = ValueError("the training failed")
    chained.__cause__ = MemoryError()
    return [
        OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total capacity)"),
        RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes."),
        MemoryError(),
        chained,
    ]


def test_out_of_memory():
    with log_and_machine():
        for error in exceptions_of_memory():
            training = session(f"memory-{next(names)}", tries=2)
            try:
                with training:
                    for _ in training.steps(range(3)):
                        raise error
                raise AssertionError("the exception is lost")
            except type(error) as caught:
                tap.equal(caught is error, True)
            tap.equal((training.is_over, training.exit_status), (True, 75))
        told(outcomes, ["out_of_memory"] * len(exceptions_of_memory()))


def test_out_of_memory_and_again():
    """A program that catches the exception and trains again with what fits."""
    with log_and_machine():
        sizes = []
        with session(tries=3, default=64) as training:
            for attempt in training.attempts():
                sizes.append(attempt.batch_size)
                try:
                    if len(sizes) == 1:
                        raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
                    train(attempt)
                except RuntimeError as error:
                    tap.equal(attempt.out_of_memory(ValueError("shapes differ")), False)
                    tap.equal(attempt.out_of_memory(error), True)
        told(ends, [(1, "out_of_memory"), (2, "reached")])
        tap.equal((sizes[0], sizes[1] < 64, len(sizes)), (64, True, 2), sizes)


class Odd:
    """What is neither a number nor has a text."""

    def __float__(self):
        raise ZeroDivisionError

    __str__ = __repr__ = __float__


def test_reporting_raises_nothing():
    messages = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.levelname)
    logging.getLogger("flyball").addHandler(handler)
    with log_and_machine(), session(max_epochs=20) as training:
        wrong = ["high", {"loss": 1}, [1, 2], object(), Odd()]
        for metric in wrong:
            tap.equal(training.report(metric), "go on")
        tap.equal(messages, ["WARNING"])
        tap.equal((training.report(None), training.report(float("nan")), training.report({"accuracy": 0.1})), ("go on",) * 3)
        told(lambda: [body.get("metric") for _, body in events("epoch")][-1:], [0.1])
        tap.equal(training.report(True), "reached")
    tap.equal((training.report(0.5), training.step_begin(), training.is_over), ("reached", False, True))


def test_misuse():
    with log_and_machine():
        wrong = {
            "default": [0, 65, -1, 1 << 32], "target": ["high", ">0.9", float("nan")], "max_slowdown": ["3", 3, "fast", -0.1],
            "objective": ["speed"], "eta": [2], "max_epochs": [0, -1], "tries": [-1], "wait_s": [-1], "job": ["a b"],
            "batch_sizes": [[], [64, 32]], "rank": [3], "world_size": [2], "replicas": [2, -1],
        }
        for name, values in wrong.items():
            for value in values:
                error = raised(flyball.UsageError, session, **{"job": "job", name: value})
                tap.equal(error.code, "FLY_EUSAGE", (name, value))
        for name, value in {"batch_sizes": 32, "default": 3.5, "store": 3, "carbon": {"no": 1}, "all_reduce": 3, "nothing": 1}.items():
            try:
                session(**{name: value})
                raise AssertionError(f"TypeError expected of {name}")
            except TypeError:
                pass
        with session(target="<=0.1") as training:
            tap.equal((training.report(0.5), training.report(0.05)), ("go on", "reached"))
        for loop in (training.epochs, training.attempts, lambda: training.steps([1]), training.__enter__):
            tap.contains(str(raised(flyball.StateError, loop)), "closed")
        tap.equal(raised(flyball.UsageError, training.close, "broken").code, "FLY_EUSAGE")
        training.close()
        try:
            pickle.dumps(training)
            raise AssertionError("TypeError expected")
        except TypeError:
            pass


def test_learning_rates():
    class AdamW:
        pass

    with log_and_machine(), session(default=16, batch_sizes=[16]) as training:
        for optimizer in ("sgd", "linear", AdamW, AdamW(), "torch.optim.Adam"):
            tap.equal(training.scale_lr(0.1, optimizer), 0.1)
        tap.equal(training.scale_lr(0.1), 0.1)
        tap.contains(str(raised(flyball.UsageError, training.scale_lr, 0.1, "LBFGS")), "square-root")


def test_splits():
    with log_and_machine(), session() as training:
        split = training.split(max_micro=24)
        micro, times = split
        tap.equal((micro, times, split.micro_batch_size, split.accumulation), (16, 4, 16, 4))
        tap.equal((tuple(training.split()), tuple(training.split(8, replicas=4)), training.replicas), ((64, 1), (8, 2), 1))
        tap.contains(str(raised(flyball.UsageError, training.split, 8, replicas=5)), "64 for 5 replicas")
        begun = 0
        for _ in training.steps(range(10), accumulation=times):
            begun += 1
        training.report(0.1)
        tap.equal(begun, 10)
        told(lambda: [body["steps"] for _, body in events("epoch")], [3])


def test_directories():
    """New for each try, the same for each attempt, and refused to another batch size's checkpoint."""
    places = []
    with log_and_machine():
        for attempt in (1, 2):
            with session(run="requeued", tries_directory=HOME / "tries", tries=3) as training:
                places.append(training.directory)
                pathlib.Path(training.directory, f"checkpoint-{attempt}").touch()
                tap.contains(str(raised(flyball.Error, training.resumed, 3, batch_size=32)), "batch size 32, and this try has 64")
                training.resumed(attempt, batch_size=64)
                tap.equal(next(training.epochs()), attempt)
                training.close("interrupted" if attempt == 1 else "finished")
        with session(tries_directory=HOME / "tries") as training:
            places.append(training.directory)
        raised(flyball.StateError, lambda: training.directory)
        with session("other", tries_directory="/dev/null") as training:
            tap.equal(raised(flyball.Error, lambda: training.directory).code, "FLY_EWRITE")
        tap.equal((places[0] == places[1], places[0] == places[2]), (True, False), places)
        tap.equal(sorted(os.listdir(places[0])), ["checkpoint-1", "checkpoint-2"])
        with session(report_every_samples=64):
            tap.equal(os.path.exists("flyball-tries"), False)


class Loader:
    """As torch's DataLoader."""

    def __init__(self, batch_size):
        self.batch_size = batch_size

    def __iter__(self):
        yield from range(3)


def test_a_program_that_lowers_its_batch_size():
    """As find_executable_batch_size of accelerate and auto_find_batch_size of transformers do."""
    with log_and_machine():
        with session() as training:
            for batch_size in (64, 32, 16):
                try:
                    for _ in training.steps(Loader(batch_size)):
                        if batch_size > 16:
                            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
                except RuntimeError:
                    pass
            training.report(0.95)
        with session("told") as training:
            training.trains_with(64)
            tap.equal(training.is_over, False)
            training.trains_with(16)
            tap.equal(training.is_over, True)
        with session("micro") as training:
            for _ in range(2):
                for _ in training.steps(Loader(16), accumulation=4):
                    pass
            for _ in training.steps(Loader(8)):  # not what it began with
                pass
            training.report(0.95)
        with session("own") as training:
            for batch_size in (8, 4):
                for _ in training.steps(Loader(batch_size)):
                    pass
            training.report(0.95)
        told(outcomes, ["out_of_memory", "out_of_memory", "out_of_memory", "reached"])


def test_ranks_of_the_environment():
    text = "import flyball\ntry:\n    flyball.Session('job', default=1)\nexcept flyball.UsageError as error:\n    print(error)"
    done = tap.run([sys.executable, "-c", text], env={**os.environ, "RANK": "1", "WORLD_SIZE": "4"})
    tap.contains(done.stdout, "rank 1 of 4")
    tap.contains(done.stdout, "world_size=1")


def test_no_log():
    with log_and_machine(), session(store=HOME / "no" / "where" / "s.sqlite", wait_s=0.1) as training:
        tap.equal((training.batch_size, train(training)), (64, [0, 1]))
        tap.equal(training.status.text != "", True)


def test_own_monitor():
    """Its meter stays open as long as the session needs it, and what waits for the device is asked."""
    waits = []
    with log_and_machine():
        with flyball.Monitor(gpus=[0], synchronize=lambda: waits.append(0)) as monitor:
            with session(monitor=monitor) as training:
                monitor.close()
                tap.equal(train(training), [0, 1])
                tap.equal((training.status.energy_j > 0, len(waits) > 0, training.carbon), (True, True, None))
        raised(flyball.StateError, session, monitor=monitor)
        try:
            session(monitor=3)
            raise AssertionError("TypeError expected")
        except TypeError:
            pass
        cycle = flyball.Monitor(gpus=[0], synchronize=lambda: cycle)
        cycle_session = session("cycle", monitor=cycle)
        gone = weakref.ref(cycle_session)
        del cycle, cycle_session
        gc.collect()
        tap.equal(gone(), None)
        told(ends, [(1, "reached")])


def test_follows_the_grid():
    grid = HOME / "grid.csv"
    grid.write_text("time,g_per_kwh\n2020-01-01T00:00Z,100\n2020-01-01T01:00Z,200\n")
    with log_and_machine(), session(carbon={"source": str(grid), "directory": HOME / "accounts"}) as training:
        train(training)
        tap.equal(type(training.carbon), flyball.CarbonReport)
    tap.equal(type(training.carbon), flyball.CarbonReport)


def test_ranks():
    """Two ranks on threads: one of them decides, both are told the same."""
    barrier, sums, maxima = threading.Barrier(2), [[], []], [[], []]
    answers = [[], []]

    def joined(rank):
        def all_reduce(own_sums, own_maxima):
            sums[rank], maxima[rank] = list(own_sums), list(own_maxima)
            barrier.wait()
            own_sums[:] = [left + right for left, right in zip(*sums)]
            own_maxima[:] = [max(pair) for pair in zip(*maxima)]
            barrier.wait()

        return all_reduce

    def rank(number):
        with session(world_size=2, rank=number, all_reduce=joined(number), gpus=[number]) as training:
            answers[number].append((training.batch_size, training.local_batch_size))
            for epoch in training.epochs():
                for _ in training.steps(range(3)):
                    pass
                answers[number].append(training.report(0.95 if epoch == 1 and number == 0 else 0.1))

    forget()
    with machine(*EXACT, gpus=2):
        threads = [threading.Thread(target=rank, args=(number,)) for number in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        back_within([DEFAULT_W] * 2, "both ranks are closed")
        told(ends, [(1, "reached")])
    tap.equal(answers, [[(64, 32), "go on", "reached"]] * 2)


tap.main(globals())
