# SPDX-License-Identifier: Apache-2.0
"""The Python package's Monitor on emulated GPUs, in this process.

usage: python_monitor.py FLYBALL SOURCE_ROOT
"""

import ast
import asyncio
import gc
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import threading
import time
import weakref

import tap

ROOT = pathlib.Path(sys.argv[2])
BUILD = pathlib.Path(sys.argv[1]).resolve().parent
PACKAGE = pathlib.Path(os.environ.get("FLYBALL_TEST_PYTHON", BUILD / "python"))
DIRECTORY = os.environ.get("FLYBALL_TEST_EMULATOR", str(BUILD / "emulator"))
HOME = tempfile.TemporaryDirectory(prefix="flyball-python-")
LIBRARY = os.path.join(DIRECTORY, "libnvidia-ml.so.1")
NOWHERE = os.path.join(HOME.name, "none")
LOAD_W = 300.0

for name in [name for name in os.environ if name.startswith(("FLYBALL_", "CUDA_", "XDG_"))]:
    del os.environ[name]
os.environ.update(HOME=HOME.name, XDG_RUNTIME_DIR=HOME.name, FLYBALL_EMULATOR_STATE=os.path.join(HOME.name, "state"))
sys.path.insert(0, str(PACKAGE))

import flyball  # noqa: E402  (the package of the build, which the lines above lead to)


def emulator(*arguments):
    done = tap.run([os.path.join(DIRECTORY, "flyball-emulator"), *arguments])
    tap.equal(done.returncode, 0, done.stderr)


class Machine:
    """Two emulated GPUs under a constant load for the length of a with statement."""

    def __init__(self, *settings):
        self.settings = ("--gpus", "2", "--ideal", "--counter-period-ms", "0", "--settle-ms", "0.001", *settings)

    def __enter__(self):
        emulator("start", *self.settings)
        emulator("set", "--load-w", str(LOAD_W))

    def __exit__(self, *_):
        emulator("stop")


def monitor(**options):
    return flyball.Monitor(**{"nvml_path": LIBRARY, "amdsmi_path": NOWHERE, **options})


def gpus_of(measurement):
    return [device for device in measurement.devices if device.device.kind == "GPU"]


def raised(kind, call, *arguments, **keywords):
    """The exception of that kind, and of no other, that a call raises."""
    try:
        call(*arguments, **keywords)
    except flyball.Error as error:
        tap.equal(type(error), kind, str(error))
        return error
    raise AssertionError(f"{kind.__name__} expected")


def check_energy(measurement):
    """A constant load leaves no doubt, however long the window took."""
    for gpu in gpus_of(measurement):
        true_j = LOAD_W * gpu.time_s
        if not abs(gpu.energy_j - true_j) <= gpu.uncertainty_j + 0.02 * true_j:
            raise AssertionError(f"expected {true_j} J within {gpu.uncertainty_j} J, got {gpu}")


def test_windows():
    with Machine(), monitor() as meter:
        tap.equal([(device.kind, device.index) for device in meter.devices if device.kind == "GPU"], [("GPU", 0), ("GPU", 1)])
        tap.contains(meter.devices[0].name, "Emulated")
        with meter.window("outer") as outer:
            inner = meter.begin("inner")
            tap.equal((repr(inner), inner.measurement), ("<flyball.Window 'inner', open>", None))
            time.sleep(0.3)
            so_far = inner.peek()
            ended = inner.end()
            time.sleep(0.1)
        for measurement in (so_far, ended, outer.measurement):
            check_energy(measurement)
        tap.equal((ended.name, outer.measurement.name), ("inner", "outer"))
        tap.equal(inner.measurement is ended, True)
        tap.equal(so_far.time_s <= ended.time_s <= outer.measurement.time_s, True)
        device, source, energy_j, uncertainty_j = gpus_of(ended)[0]
        tap.equal((device, source), (meter.devices[0], "counter"))
        tap.equal((energy_j, uncertainty_j), (gpus_of(ended)[0].energy_j, gpus_of(ended)[0].uncertainty_j))
        tap.contains(repr(ended), "source='counter'")
        tap.equal(meter.counted_by(0), "")


def test_unknown_is_none():
    with Machine("--counter", "none"), monitor() as meter:
        gpu = gpus_of(meter.begin("short").end())[0]
        tap.equal((gpu.source, gpu.energy_j, gpu.uncertainty_j), ("unavailable", None, None))
        tap.equal(gpu.note != "", True)

        def measured():  # as samples have fallen into it
            with meter.window("long") as window:
                time.sleep(0.5)
            return window.measurement if gpus_of(window.measurement)[0].source == "integrated" else None

        measurement = tap.eventually(measured)
        tap.equal(gpus_of(measurement)[0].counter_j, None)
        check_energy(measurement)


def test_samples():
    with Machine(), monitor(sample_hz=100) as meter:
        now = meter.read(1)
        tap.equal((now.power_average_w is None or now.power_average_w > 0, now.energy_j >= 0, now.temperature_c > 0), (True, True, True))
        tap.equal((meter.max_power_w(0), meter.max_power_w(99), meter.samples(0)), (400.0, None, []))
        tap.equal(meter.power_limits_w(1), (400.0, 100.0, 400.0, 400.0))
        clocks_mhz = meter.clocks_mhz(0)
        tap.equal((clocks_mhz == sorted(set(clocks_mhz), reverse=True), len(clocks_mhz) > 2, len(meter.clocks_mhz(0, memory=True)) > 0), (True, True, True))
        tap.equal((meter.clocks_mhz(99), meter.clocks_mhz(-1)), ([], []))
        raised(flyball.UsageError, meter.power_limits_w, 99)
        meter.keep(4)
        raised(flyball.StateError, meter.keep, 4)
        until = time.monotonic() + tap.PATIENCE_S
        while len(meter.samples(0)) < 4 and time.monotonic() < until:
            time.sleep(0.01)
        samples = meter.samples(0)
        dates = [sample.unix_s for sample in samples]
        tap.equal((len(samples), dates), (4, sorted(dates)))
        tap.equal(meter.samples(0, since_unix_s=time.time() + 3600), [])
        tap.equal(meter.samples(99), [])
        raised(flyball.UsageError, meter.read, 99)
        raised(flyball.UsageError, monitor().keep, 0)
    raised(flyball.StateError, meter.read, 0)


def test_decorator():
    with Machine(), monitor() as meter:

        @meter.window("step")
        def step(left, right=0):
            """Adds."""
            if right is None:
                raise KeyError(left)
            return left + right

        tap.equal((step.__name__, step.__doc__, step.measurement), ("step", "Adds.", None))
        tap.equal(step(1, right=2), 3)
        first = step.measurement
        tap.equal(first.name, "step")
        try:
            step("left", None)
            raise AssertionError("the function's exception is lost")
        except KeyError as error:
            tap.equal(error.args, ("left",))
        tap.equal(step(2), 2)
        tap.equal(step.measurement is first, False)

        @meter.window("later")
        async def later():
            await asyncio.sleep(0.2)
            return 7

        tap.equal(asyncio.run(later()), 7)
        tap.equal(later.measurement.time_s >= 0.2, True)
        for wrong in (lambda: (yield), 3):
            try:
                meter.window("wrong")(wrong)
                raise AssertionError("TypeError expected")
            except TypeError:
                pass


def test_misuse():
    with Machine():
        wrong = raised(flyball.UsageError, monitor, windows_max=-1)
        tap.equal((wrong.code, isinstance(wrong, ValueError)), ("FLY_EUSAGE", True))
        missing = raised(flyball.NotFoundError, monitor, gpus=[0, 9])
        tap.equal((missing.code, isinstance(missing, LookupError)), ("FLY_ENOTFOUND", True))
        tap.contains(str(missing), "9")
        tap.equal([device.index for device in monitor(gpus=[1]).devices if device.kind == "GPU"], [1])
        with monitor(gpus="0") as meter:
            window = meter.window("once")
            tap.contains(str(raised(flyball.StateError, window.end)), "has not begun")
            with window:
                raised(flyball.StateError, window.__call__(lambda: window.__exit__(None) or window.end()))
            tap.contains(str(raised(flyball.StateError, window.__enter__)), "has ended")
        tap.equal(meter.closed, True)
        tap.contains(str(raised(flyball.StateError, meter.begin, "late")), "closed")
        meter.close()
        for call in (lambda: meter.begin(3), lambda: meter.begin(), lambda: flyball.Window(), lambda: monitor(synchronize=3)):
            try:
                call()
                raise AssertionError("TypeError expected")
            except TypeError:
                pass


def test_exceptions_pass():
    with Machine(), monitor() as meter:
        for late in (False, True):
            window = meter.window("raises")
            try:
                with window:
                    if late:
                        meter.close()
                    raise KeyboardInterrupt
            except KeyboardInterrupt:
                pass
            tap.equal(window.measurement is None, late)


def test_collected_windows_take_no_room():
    with Machine(), monitor(windows_max=4) as meter:
        for _ in range(100):
            meter.begin("dropped")
        held = [meter.begin("held") for _ in range(4)]
        tap.equal(raised(flyball.Error, meter.begin, "one more").code, "FLY_ELIMIT")
        held.pop().end()
        held.append(meter.begin("again"))


def test_cycles_are_collected():
    class Callable:
        def __call__(self):
            pass

    with Machine():
        waits = Callable()
        waits.meter = monitor(synchronize=waits)
        waits.window = waits.meter.begin("in the cycle")
        gone = weakref.ref(waits)
        del waits
        gc.collect()
        tap.equal(gone(), None)


def test_synchronize():
    calls = []

    def wait():
        calls.append(len(calls))
        if len(calls) == 3:
            raise ZeroDivisionError

    with Machine(), monitor(synchronize=wait) as meter:
        window = meter.begin("edges")
        window.peek()
        try:
            window.end()
            raise AssertionError("what synchronize raises is lost")
        except ZeroDivisionError:
            pass
        tap.equal(window.end().name, "edges")
        tap.equal(calls, [0, 1, 2, 3])


def test_threads():
    """Windows on many threads while the monitor is closed under them."""
    with Machine():
        meter = monitor()
        ended, others = [], []

        def work():
            try:
                while True:
                    ended.append(meter.begin("thread").end().time_s)
            except flyball.StateError:
                pass
            except BaseException as error:  # what else comes is the test's failure
                others.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        while len(ended) < 200:
            time.sleep(0.01)
        meter.close()
        for thread in threads:
            thread.join()
        tap.equal(others, [])


def test_fork():
    with Machine(), monitor() as meter:
        window = meter.begin("before")
        child = os.fork()
        if child == 0:
            try:
                inert = [raised(flyball.StateError, call) for call in (window.end, lambda: meter.begin("after"))]
                meter.close()
                os._exit(len(inert) + 40)
            finally:
                os._exit(1)
        tap.equal(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 42)
        window.end()


def test_handles_are_not_pickled():
    with Machine(), monitor() as meter:
        for handle in (meter, meter.window("pickled")):
            try:
                pickle.dumps(handle)
                raise AssertionError("TypeError expected")
            except TypeError:
                pass
        device = meter.devices[0]
        tap.equal(pickle.loads(pickle.dumps(device)), device)


ENDS = {
    "an open window": "window = meter.begin('open')",
    "a cycle": "cycle = [meter.begin('open')]; cycle.append(cycle)",
    "a thread in a window": "import threading; threading.Thread(target=lambda: [meter.begin('x').end() for _ in iter(int, 1)], daemon=True).start()",
    "os._exit": "import os; window = meter.begin('open'); os._exit(0)",
}


def test_ends_of_the_interpreter():
    with Machine():
        for name, ending in ENDS.items():
            text = f"import flyball; meter = flyball.Monitor(nvml_path={LIBRARY!r}); {ending}"
            done = tap.run([sys.executable, "-c", text], env={**os.environ, "PYTHONPATH": str(PACKAGE)})
            tap.equal((done.returncode, done.stdout, done.stderr), (0, "", ""), name)


def test_disabled():
    text = "import flyball; m = flyball.Monitor(); w = m.begin('x'); print(m.devices, w.end().devices)"
    done = tap.run([sys.executable, "-c", text], env={**os.environ, "PYTHONPATH": str(PACKAGE), "FLYBALL_DISABLE": "1"})
    tap.equal((done.returncode, done.stdout, done.stderr), (0, "() ()\n", ""))


def test_nothing_is_left():
    """After many windows the interpreter holds as many blocks of memory as before."""
    with Machine(), monitor() as meter:

        def once():
            with meter.window("leak") as window:
                pass
            repr(window.measurement)
            meter.begin("dropped")
            raised(flyball.StateError, window.end)

        for _ in range(100):
            once()
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(5000):
            once()
        gc.collect()
        tap.equal(sys.getallocatedblocks() - before < 500, True, f"{before} blocks, then {sys.getallocatedblocks()}")


def members(classes):
    return {name: {item for item in dir(kind) if not item.startswith("_")} for name, kind in classes.items()}


def test_stubs_name_what_is_there():
    tree = ast.parse((ROOT / "python" / "flyball" / "_flyball.pyi").read_text())
    stubs = {node.name: {item.name for item in node.body if isinstance(item, ast.FunctionDef) and not item.name.startswith("_")}
             for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")}
    real = members({name: getattr(flyball, name) for name in flyball.__all__ if getattr(getattr(flyball, name), "__module__", "") == "flyball"})
    tap.equal(sorted(stubs), sorted(real))
    base = {"n_fields", "n_sequence_fields", "n_unnamed_fields", "count"} | (set(dir(BaseException)) - {"code"})
    for name, told in stubs.items():
        # A tuple's own method `index` gives way to the field of that name.
        tap.equal(sorted(told), sorted(real[name] - base - ({"index"} - told)), name)
        for item in told:
            tap.equal(bool(getattr(getattr(flyball, name), item).__doc__), True, f"{name}.{item} has no docstring")


def test_version():
    done = subprocess.run([sys.argv[1], "--version"], stdout=subprocess.PIPE, text=True, check=True)
    tap.contains(done.stdout, flyball.__version__)


tap.main(globals())
