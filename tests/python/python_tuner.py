# SPDX-License-Identifier: Apache-2.0
"""The Python package's Tuner on emulated GPUs, in this process and in others.

usage: python_tuner.py FLYBALL SOURCE_ROOT
"""

import gc
import io
import os
import pickle
import sys
import threading
import time
import weakref

import tap
from python_scene import DIRECTORY, HIGHEST_W, LOWEST_W, PACKAGE, QUICK, Machine, flyball, limit_w, monitor, python, raised, settle


def test_steps_of_a_loader():
    """A loader's batches come through as they are; the best limit is set, and put back at the end."""
    with Machine(), monitor() as meter:
        with flyball.Tuner(meter, **QUICK) as tuner:
            tap.equal((tuner.state, tuner.monitor is meter, repr(tuner)), ("waiting", True, "<flyball.Tuner, waiting>"))
            raised(flyball.StateError, lambda: tuner.report)
            loader = tuner.steps([1, 2, 3])
            tap.equal((len(loader), list(loader), list(loader)), (3, [1, 2, 3], [1, 2, 3]))
            tap.equal(tuner.state, "searching")
            settle(tuner)
            tap.equal((tuner.report.state, tuner.report.text, tuner.report.limit_w), ("settled", "", LOWEST_W))
            tap.equal([point.limit_w for point in tuner.points], [HIGHEST_W, LOWEST_W])
            chosen = tuner.points[1]
            tap.equal((chosen.mark, chosen.energy_j), ("valid", chosen.power_w * chosen.time_s))
            tap.equal((tuner.points[0].ceiling_mhz, tuner.points[0].workload_profile, tuner.carbon), (None, None, None))
            tap.equal(limit_w(), LOWEST_W)
        tap.equal(limit_w(), HIGHEST_W)
        tap.equal((tuner.state, tuner.closed, tuner.report.state, len(tuner.points)), ("closed", True, "settled", 2))
        raised(flyball.StateError, tuner.step_begin)
        tuner.close()
        tap.equal(meter.closed, False)


def test_own_monitor():
    """Without a monitor the tuner makes one, and closes it."""
    text = """
import flyball
tuner = flyball.Tuner(gpus=[1])
monitor = tuner.monitor
tuner.epoch_begin(), tuner.step_begin(), tuner.epoch_end()
print([device.index for device in monitor.devices if device.kind == "GPU"], monitor.closed, tuner.state)
tuner.close()
print(tuner.closed, monitor.closed)
"""
    with Machine():
        done = python(text, LD_LIBRARY_PATH=DIRECTORY)
        tap.equal((done.returncode, done.stdout, done.stderr), (0, "[1] False searching\nTrue True\n", "flyball: nothing saved yet: 1 step was enough for 0 of 13 limits\n"))


def test_summary():
    """A sentence at any time, and once on stderr at the end: of the first rank alone, and not where it is unwanted."""
    said, sys.stderr = sys.stderr, io.StringIO()
    try:
        with Machine(), monitor() as meter:
            tuner = flyball.Tuner(meter, **QUICK)
            raised(flyball.StateError, lambda: tuner.summary)
            tuner.step_begin()
            tap.contains(tuner.summary, "nothing saved yet: ")
            settle(tuner)
            tap.contains(tuner.summary, f"{LOWEST_W} W chosen")
            tap.equal(sys.stderr.getvalue(), "")
            tuner.close()
            tap.contains(tuner.summary, f"{LOWEST_W} W chosen")
            tap.equal(sys.stderr.getvalue(), f"flyball: {tuner.summary}\n")
            tuner.close()
            flyball.Tuner(meter).close()
            for options in ({"quiet": True}, {"rank": 1, "all_reduce": lambda sums, maxima: None}):
                with flyball.Tuner(meter, **options) as other:
                    other.step_begin()
            os.environ["FLYBALL_QUIET"] = "1"
            with flyball.Tuner(meter) as other:
                other.step_begin()
            tap.equal(sys.stderr.getvalue().count("\n"), 1, sys.stderr.getvalue())
    finally:
        sys.stderr = said
        os.environ.pop("FLYBALL_QUIET", None)


def test_monitor_stays_until_the_end():
    with Machine():
        meter = monitor()
        with flyball.Tuner(meter, **QUICK) as tuner:
            tuner.step_begin()
            meter.close()
            settle(tuner)
            tap.equal(tuner.report.limit_w, LOWEST_W)
        raised(flyball.StateError, meter.begin, "late")
        tap.equal(limit_w(), HIGHEST_W)
        raised(flyball.StateError, flyball.Tuner(meter).step_begin)


def test_arguments():
    with Machine(), monitor() as meter:
        for good in ({"max_slowdown": "3 %"}, {"max_slowdown": "none"}, {"max_slowdown": "auto"}, {"max_slowdown": "1.03 x"}, {"max_slowdown": 0}, {"max_slowdown": 0.03}, {"eta": 1},
                     {"objective": "cost", "eta": 0.5}, {"objective": "cost:0.5"}, {"knob": "auto"}, {"job_name": None, "batch_size": 2**40},
                     {"carbon": {"steps": 100, "source": None}}, {"rank": 0, "all_reduce": None}):
            flyball.Tuner(meter, **good).close()
        for bad in ({"max_slowdown": "3"}, {"max_slowdown": 3}, {"max_slowdown": ""}, {"max_slowdown": "% 3"}, {"max_slowdown": -0.1}, {"eta": 2},
                    {"objective": "time", "eta": 0.5}, {"objective": "enrgy"}, {"knob": "volume"}, {"wait_steps": -1}, {"profile_steps": 2**32},
                    {"gpus": [0]}, {"synchronize": print}):
            tap.equal(raised(flyball.UsageError, flyball.Tuner, meter, **bad).code, "FLY_EUSAGE", bad)
        for wrong in ({"max_slowdown": []}, {"limits_w": 3}, {"limits_w": ["a"]}, {"carbon": []}, {"carbon": {"sauce": "x"}}, {"all_reduce": 3}, {"no": 1},
                      {"job_name": b"x"}, {"wait_steps": 1.5}, {"eta": "x"}):
            try:
                flyball.Tuner(meter, **wrong)
                raise AssertionError(f"TypeError expected of {wrong}")
            except TypeError:
                pass
        for monitors in (3, None):
            try:
                flyball.Tuner(3 if monitors else meter, objective=3)
                raise AssertionError("TypeError expected")
            except TypeError:
                pass
        with flyball.Tuner(meter, limits_w=[9000]) as tuner:
            tap.contains(str(raised(flyball.UsageError, tuner.step_begin)), "9000")


def test_loops_that_end_early():
    with Machine(), monitor() as meter:
        with flyball.Tuner(meter, **QUICK) as tuner:
            for _ in tuner.steps(range(9)):
                break

            def broken():
                yield 1
                raise ZeroDivisionError

            seen = []
            try:
                for batch in tuner.steps(broken()):
                    seen.append(batch)
                raise AssertionError("the loader's exception is lost")
            except ZeroDivisionError:
                pass
            try:
                for _ in tuner.steps([1]):
                    raise KeyError("of the program")
            except KeyError:
                pass
            tap.equal(seen, [1])
            settle(tuner)
            left = iter(tuner.steps([1, 2]))
            tap.equal(next(left), 1)
        try:
            next(left)
            raise AssertionError("StateError expected")
        except flyball.StateError:
            pass
        del left
        try:
            len(tuner.steps(iter([])))
            raise AssertionError("an iterator has no length")
        except TypeError:
            pass


def test_cell_run_twice():
    """A second tuner takes the place of the first one when the name is bound anew, also where that was never closed."""
    with Machine(), monitor() as meter:
        tuner = flyball.Tuner(meter, **QUICK)
        settle(tuner)
        tuner = flyball.Tuner(meter, **QUICK)
        tap.equal(limit_w(), HIGHEST_W)
        settle(tuner)
        tap.equal((tuner.state, limit_w()), ("settled", LOWEST_W))
        tuner.close()


class Turner:
    """A way of the program's own to set limits."""

    def __init__(self, fails=None):
        self.limit_w, self.turns, self.fails = HIGHEST_W, [], fails

    def range(self):
        return LOWEST_W, HIGHEST_W, HIGHEST_W - LOWEST_W

    def set(self, limit_w):
        if self.fails is not None:
            raise self.fails
        self.limit_w = limit_w
        self.turns.append(limit_w)

    def standing(self):
        return self.limit_w


def test_turner():
    """Limits are set by the program itself; its exceptions are in the report, but for those meant for the program."""
    options = {name: value for name, value in QUICK.items() if name != "limits_w"}
    with Machine(), monitor() as meter:
        turner = Turner()
        with flyball.Tuner(meter, turner=turner, **options) as tuner:
            settle(tuner)
            tap.equal((tuner.report.text, tuner.report.limit_w, turner.limit_w), ("", LOWEST_W, LOWEST_W))
            tap.equal([point.limit_w for point in tuner.points], [HIGHEST_W, LOWEST_W])
        tap.equal((turner.limit_w, set(turner.turns)), (HIGHEST_W, {LOWEST_W, HIGHEST_W}))
        with flyball.Tuner(meter, turner=Turner(OSError("the daemon is away")), **options) as tuner:
            settle(tuner)
            tap.equal((tuner.state, tuner.report.reason), ("stopped", "set failed"))
            tap.contains(tuner.report.text, "the daemon is away")
        turner = Turner(KeyboardInterrupt())
        with flyball.Tuner(meter, turner=turner, **options) as tuner:
            try:
                settle(tuner)
                raise AssertionError("KeyboardInterrupt expected")
            except KeyboardInterrupt:
                turner.fails = None
        for wrong in (object(), type("Wrong", (), {"range": lambda self: 3})()):
            with flyball.Tuner(meter, turner=wrong) as tuner:
                tap.equal(raised(flyball.Error, tuner.step_begin).code, "FLY_EREAD")
        turner = Turner()
        turner.tuner = flyball.Tuner(meter, turner=turner, **options)
        settle(turner.tuner)
        turns, gone = turner.turns, weakref.ref(turner)
        del turner
        gc.collect()
        tap.equal((gone(), turns[-1]), (None, HIGHEST_W))


def test_synchronize():
    calls = []
    with Machine(), monitor(synchronize=lambda: calls.append(threading.get_ident())) as meter:
        with flyball.Tuner(meter, **QUICK) as tuner:
            steps = settle(tuner)
            tap.equal((0 < len(calls) < 2 * steps + 2, set(calls)), (True, {threading.get_ident()}), calls)
            del calls[:]
            meter.begin("one").end()
            tap.equal(len(calls), 2)


def test_threads():
    """Others read while one trains, and one closes the tuner under it."""
    with Machine(), monitor() as meter:
        tuner = flyball.Tuner(meter, **QUICK)
        tuner.step_begin()
        read, others, stop = [], [], []

        def look():
            try:
                while not stop:
                    read.append((tuner.report.state, len(tuner.points), tuner.state))
            except BaseException as error:  # what comes is the test's failure
                others.append(error)

        def train():
            try:
                for _ in tuner.steps(iter(int, 1)):
                    time.sleep(0.0002)
                others.append("the loop ended")
            except flyball.StateError:
                pass
            except BaseException as error:
                others.append(error)

        threads = [threading.Thread(target=work) for work in (look, look, train)]
        for thread in threads:
            thread.start()
        while tuner.state not in ("settled", "stopped"):
            time.sleep(0.01)
        tap.equal(tuner.report.text, "")
        tuner.close()
        stop.append(True)
        for thread in threads:
            thread.join()
        tap.equal((others, len(read) > 0, limit_w()), ([], True, HIGHEST_W))


def test_handles_are_not_pickled():
    with Machine(), monitor() as meter, flyball.Tuner(meter, **QUICK) as tuner:
        settle(tuner)
        for handle in (tuner, tuner.steps([1])):
            try:
                pickle.dumps(handle)
                raise AssertionError("TypeError expected")
            except TypeError:
                pass
        tap.equal(pickle.loads(pickle.dumps(tuner.report)), tuner.report)
        tap.equal(pickle.loads(pickle.dumps(tuner.points)), tuner.points)


def test_notebook():
    with Machine(), monitor() as meter, flyball.Tuner(meter, **QUICK) as tuner:
        window = meter.begin("a < b")
        tap.contains(window._repr_html_(), "&lt;flyball.Window")
        tap.contains(window.end()._repr_html_(), "a &lt; b")
        tap.contains(window._repr_html_(), "<td>GPU 1</td>")
        tap.contains(tuner._repr_html_(), "waiting")
        settle(tuner)
        tap.contains(tuner._repr_html_(), f"settled at {LOWEST_W} W")
        tap.contains(tuner.points._repr_html_(), f"<td>{HIGHEST_W} W</td>")


def test_nothing_is_left():
    """After 100,000 steps, and many tuners, the interpreter holds as many blocks of memory as before."""
    with Machine(), monitor() as meter:

        def many():
            for _ in range(10):
                with flyball.Tuner(meter, all_reduce=lambda sums, maxima: None, rank=0, **QUICK) as tuner:
                    for _ in tuner.steps([None] * 3):
                        break
                repr(tuner), tuner.report, tuner.points, tuner.carbon, tuner._repr_html_()
                raised(flyball.StateError, tuner.step_begin)
                raised(flyball.UsageError, flyball.Tuner, meter, max_slowdown="3")

        with flyball.Tuner(meter, **QUICK) as tuner:
            settle(tuner)
        many()
        with flyball.Tuner(meter, **QUICK) as tuner:
            settle(tuner)
            batches = [None] * 100_000
            gc.collect()
            before = sys.getallocatedblocks()
            for _ in tuner.steps(batches):
                tuner.step_begin()
            tuner.report, tuner.points
            gc.collect()
            after = sys.getallocatedblocks()
        tap.equal(after - before < 500, True, f"{before} blocks, then {after}")
        many()
        gc.collect()
        before = sys.getallocatedblocks()
        many()
        gc.collect()
        tap.equal(sys.getallocatedblocks() - before < 50, True, f"{before} blocks, then {sys.getallocatedblocks()}")


def test_package_of_the_build():
    tap.contains(flyball.__file__, str(PACKAGE))


tap.main(globals())
