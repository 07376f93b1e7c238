# SPDX-License-Identifier: Apache-2.0
"""The power limit optimizer of flyball.compat.zeus, and flyball.PowerKnob, on emulated GPUs in this process.

usage: python_compat_power_limit.py FLYBALL SOURCE_ROOT
"""

import gc
import json
import os
import pathlib
import pickle
import sys
import types
import warnings

import tap
from zeus_machine import HOME, clocks, emulator, flyball, limits, machine, raised, variables

from flyball.compat.zeus.monitor import ZeusMonitor
from flyball.compat.zeus.monitor.energy import Measurement
from flyball.compat.zeus.optimizer import power_limit
from flyball.compat.zeus.optimizer.power_limit import Energy, GlobalPowerLimitOptimizer, PowerLimitMeasurement, Time, ZeusCost


class Steps:
    """A training whose steps each take 10 s, or longer under low limits, by a monitor that only counts."""

    def __init__(self, gpus=1):
        self.gpu_indices = list(range(gpus))
        self.log, self.names, self.open = [], [], None

    def begin_window(self, key, sync_execution=True, restart=False):
        tap.equal(self.open, None)
        self.open = key

    def end_window(self, key, sync_execution=True, cancel=False):
        tap.equal(self.open, key)
        self.open = None
        if cancel:
            return Measurement(0.0, {0: 0.0})
        limit_w = limits()[0]
        self.log.append(limit_w)
        self.names.append(key)
        return Measurement(10.0 + max(0.0, 250.0 - limit_w) / 10.0, {0: 10.0 * limit_w})


def test_limits_are_tried_in_turn():
    path = os.path.join(HOME.name, "profile.json")
    with machine(gpus=2, settings=("--any-user=yes",)):
        monitor = Steps(gpus=2)
        tuner = GlobalPowerLimitOptimizer(monitor, optimum_selector=Energy(), pl_step=50, profile_path=path)
        tap.equal((limits(), repr(tuner.state)), ([400, 400], "Ready(next_power_limit=400000, steps=2)"))
        seen = []
        for _ in range(2 + 7 * 50 - 1):
            tuner.on_step_begin()
            seen.append(limits()[1])
        tap.equal(repr(tuner.state), "Profiling(current_power_limit=100000, steps=1)")
        tuner.on_step_begin()
        tap.equal(repr(tuner.state), "Done(optimal_power_limit=100000)")
        tap.equal(seen, [400.0] + [limit for limit in (400.0, 350.0, 300.0, 250.0, 200.0, 150.0, 100.0) for _ in range(50)])
        tap.equal((limits(), monitor.log), ([100, 100], [400, 350, 300, 250, 200, 150, 100]))
        tap.equal(monitor.names, [f"__GlobalPowerLimitOptimizer_{limit:.0f}" for limit in monitor.log])
        tuner.on_step_begin()
        tuner.on_epoch_end()
        tap.equal(limits(), [100, 100])
        with open(path, encoding="utf-8") as file:
            saved = file.read()
        tap.equal(json.loads(saved)["measurements"][0], {"power_limit": 400, "energy": 4000.0, "time": 10.0})
        tap.contains(saved, '{\n    "measurements": [\n        {')
        del tuner
        gc.collect()
        tap.equal(limits(), [400, 400])
        tuner = GlobalPowerLimitOptimizer(Steps(gpus=2), power_limit.MaxSlowdownConstraint(1.5), profile_path=path)
        tap.equal((tuner.state, limits()), (power_limit.Done(optimal_power_limit=200000), [200, 200]))


def test_an_epochs_end_starts_a_limit_over():
    with machine(gpus=1, settings=("--any-user=yes",)):
        monitor = Steps()
        tuner = GlobalPowerLimitOptimizer(monitor, Time(), wait_steps=0, warmup_steps=1, profile_steps=2, pl_step=150)
        for _ in range(4):
            tuner.on_step_begin()
        tap.equal((monitor.log, limits(), repr(tuner.state)), ([400], [250], "Warmup(current_power_limit=250000, steps=1)"))
        tuner.on_step_begin()
        tuner.on_epoch_end()
        tap.equal((monitor.open, limits(), repr(tuner.state)), (None, [400], "Ready(next_power_limit=250000, steps=1)"))
        for _ in range(4 + 3):
            tuner.on_step_begin()
        tap.equal((monitor.log, repr(tuner.state)), ([400, 250, 100], "Done(optimal_power_limit=400000)"))
        tap.equal([measured.power_limit for measured in tuner.measurements], [400, 250, 100])


def test_limits_of_a_real_monitor():
    with machine(gpus=2, settings=("--any-user=yes", "--counter-period-ms", "0")):
        monitor = ZeusMonitor(gpu_indices=[1])
        tuner = GlobalPowerLimitOptimizer(monitor, wait_steps=0, warmup_steps=0, profile_steps=1, pl_step=150)
        tap.equal((tuner.optimum_selector.eta_knob, tuner.optimum_selector.world_size), (0.5, 1))
        for _ in range(4):
            tuner.on_step_begin()
        tap.equal(type(tuner.state), power_limit.Done)
        tap.equal([measured.power_limit for measured in tuner.measurements], [400, 250, 100])
        tap.equal(limits()[0], 400)


def held():
    """Whether others are kept from turning the GPU."""
    try:
        flyball.PowerKnob(flyball.Monitor()).close()
    except flyball.StateError:
        return True
    return False


def interrupted(optimizer, steps):
    """So many steps, and an exception; the optimizer lives on, as in a notebook."""
    for _ in range(steps):
        optimizer.on_step_begin()


def test_a_training_that_ends_in_the_middle():
    """The limit goes back by itself; with the next step it is set again, and its window begins again."""
    with machine(gpus=1, settings=("--any-user=yes",)):
        emulator("set", "--limit-w", "380")
        monitor = Steps()
        # Long enough to be looked at on a busy machine.
        optimizer = GlobalPowerLimitOptimizer(monitor, Energy(), wait_steps=0, warmup_steps=1, profile_steps=2, pl_step=100, give_back_s=5)
        tap.equal(limits(), [400])
        tap.eventually(lambda: limits() == [380], "the limit is back though no step came")
        interrupted(optimizer, steps=5)
        tap.equal((limits(), type(optimizer.state), monitor.log), ([300], power_limit.Profiling, [400]))
        tap.eventually(lambda: limits() == [380], "the limit is back after the last step")
        interrupted(optimizer, steps=1)
        tap.equal(limits(), [300])
        while not isinstance(optimizer.state, power_limit.Done):
            optimizer.on_step_begin()
        tap.equal((monitor.log, [measured.power_limit for measured in optimizer.measurements]), ([400, 300, 300, 200, 100], [400, 300, 200, 100]))
        tap.equal(limits(), [100])
        tap.eventually(lambda: limits() == [380], "the chosen limit is not kept either")
        tap.eventually(lambda: not held(), "others can turn the GPU")
        optimizer.on_step_begin()
        tap.equal(limits(), [100])
        optimizer.on_train_end()
        tap.equal(limits(), [380])


def test_a_limit_that_somebody_else_sets_in_between():
    with machine(gpus=1, settings=("--any-user=yes",)), warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        optimizer = GlobalPowerLimitOptimizer(Steps(), wait_steps=0, warmup_steps=1, profile_steps=1, pl_step=100, give_back_s=0.5)
        emulator("set", "--limit-w", "222")
        tap.eventually(lambda: not held(), "the GPU is released before the first step")
        while not isinstance(optimizer.state, power_limit.Done):
            optimizer.on_step_begin()
        tap.equal(([str(warning.message)[:31] for warning in heard], limits()), (["power limits are left alone fro"], [222]))


def test_a_cell_that_ends():
    """In IPython the limit is back with the end of the cell, and the next cell may make another optimizer."""
    ended = []
    events = types.SimpleNamespace(register=lambda name, call: ended.append(call), unregister=lambda name, call: ended.remove(call))
    sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(events=events))
    try:
        with machine(gpus=1, settings=("--any-user=yes",)):
            for _ in range(2):
                kept = GlobalPowerLimitOptimizer(Steps(), wait_steps=0, warmup_steps=1, profile_steps=1, pl_step=100)
                for cell in range(2):
                    interrupted(kept, steps=4)
                    tap.equal((limits() == [400], len(ended)), (False, 1))
                    ended[0](types.SimpleNamespace(error_in_exec=ZeroDivisionError()))
                    tap.equal((limits(), ended), ([400], []))
            del kept
    finally:
        del sys.modules["IPython"]


def test_misuse_of_limits():
    with machine(gpus=1, settings=("--any-user=yes",)):
        for numbers in ({"wait_steps": -1}, {"warmup_steps": -1}, {"profile_steps": 0}, {"pl_step": 0}):
            raised(ValueError, GlobalPowerLimitOptimizer, Steps(), **numbers)
        path = os.path.join(HOME.name, "broken.json")
        for text in ("", "{}", '{"measurements": []}', '{"measurements": [{"power_limit": 0, "energy": 1, "time": 1}]}'):
            pathlib.Path(path).write_text(text, encoding="utf-8")
            tap.contains(str(raised(ValueError, GlobalPowerLimitOptimizer, Steps(), profile_path=path)), "broken.json")
        gc.collect()
        first = GlobalPowerLimitOptimizer(Steps())
        raised(flyball.StateError, GlobalPowerLimitOptimizer, Steps())
        del first
    with variables(FLYBALL_DISABLE="1"):
        raised(flyball.Error, GlobalPowerLimitOptimizer, ZeusMonitor())
    faults = pathlib.Path(HOME.name, "faults")
    faults.write_text("call nvmlDeviceSetPowerManagementLimit no-permission\n", encoding="utf-8")
    with machine(gpus=1, settings=("--faults", str(faults))):
        emulator("set", "--limit-w", "222")
        tap.equal(isinstance(raised(RuntimeError, GlobalPowerLimitOptimizer, Steps()), flyball.Error), True)
    with variables(FLYBALL_DISABLE="1"):
        raised(RuntimeError, GlobalPowerLimitOptimizer, ZeusMonitor())


def test_selectors():
    measured = [
        PowerLimitMeasurement(power_limit=limit_w, energy=energy_j, time=time_s)
        for limit_w, energy_j, time_s in ((300, 100.0, 1.0), (250, 80.0, 1.0), (200, 75.0, 1.2), (150, 75.0, 2.0))
    ]
    for selector, limit_w in (
        (Energy(), 200),
        (Time(), 300),
        (ZeusCost(eta_knob=1.0), 200),
        (ZeusCost(eta_knob=0.0, world_size=4), 300),
        (ZeusCost(eta_knob=0.5), 250),
        (power_limit.MaxSlowdownConstraint(1.0), 250),
        (power_limit.MaxSlowdownConstraint(1.3), 200),
    ):
        tap.equal(selector.select(measured), limit_w, type(selector).__name__)
    raised(ValueError, power_limit.MaxSlowdownConstraint, 0.9)
    raised(ValueError, ZeusCost, 1.5)
    raised(ValueError, PowerLimitMeasurement, power_limit=0, energy=1.0, time=1.0)
    raised(ValueError, PowerLimitMeasurement, power_limit=100, energy=float("nan"), time=1.0)
    raised(TypeError, power_limit.OptimumSelector)


def test_limits_under_a_trainer():
    sys.modules["transformers"] = types.SimpleNamespace(TrainerCallback=type("TrainerCallback", (), {}))
    try:
        from flyball.compat.zeus.optimizer import HFGlobalPowerLimitOptimizer
    finally:
        del sys.modules["transformers"]
    tap.equal([base.__name__ for base in HFGlobalPowerLimitOptimizer.__mro__[:2]], ["HFGlobalPowerLimitOptimizer", "TrainerCallback"])
    with machine(gpus=1, settings=("--any-user=yes",)):
        callback = HFGlobalPowerLimitOptimizer(Steps(), wait_steps=0, warmup_steps=1, profile_steps=1, pl_step=300)
        for _ in range(5):
            callback.on_step_begin(None, None, None, model=None)
        callback.on_epoch_end(None, None, None, model=None)
        tap.equal(type(callback.optimizer.state), power_limit.Done)
        callback.on_step_begin(None, None, None, model=None)
        callback.on_train_end(None, None, None, model=None)
        raised(flyball.UsageError, HFGlobalPowerLimitOptimizer, Steps(), give_back_s=-1)
        flyball.PowerKnob(flyball.Monitor()).close()  # the GPU is released


def test_limits_that_somebody_else_sets():
    with machine(gpus=1, settings=("--any-user=yes",)), warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        tuner = GlobalPowerLimitOptimizer(Steps(), wait_steps=0, warmup_steps=1, profile_steps=1, pl_step=100)
        for _ in range(4):
            tuner.on_step_begin()
        emulator("set", "--limit-w", "222")
        while not isinstance(tuner.state, power_limit.Done):
            tuner.on_step_begin()
        tap.equal(([str(warning.message)[:31] for warning in heard], limits()), (["power limits are left alone fro"], [222]))
        tap.equal([measured.power_limit for measured in tuner.measurements][:1], [400])
        del tuner
        gc.collect()
        tap.equal(limits(), [222])


def test_knob():
    with machine(gpus=2, settings=("--any-user=yes",)):
        with flyball.Monitor([1]) as monitor, flyball.PowerKnob(monitor) as knob:
            tap.equal((knob.range_w, knob.limit_w), ((100.0, 400.0), 400.0))
            knob.set(300)
            tap.equal((limits(), knob.limit_w), ([400, 300], 300.0))
            low_mhz, high_mhz = monitor.clocks_mhz(0)[5], monitor.clocks_mhz(0)[2]
            knob.hold_clock(low_mhz, high_mhz)
            tap.equal(clocks(), [(None, None), (low_mhz, high_mhz)])
            raised(flyball.UsageError, knob.hold_clock, 1, 100000)
            raised(flyball.UsageError, knob.hold_clock, -1, high_mhz)
            knob.hold_clock(0, 0)
            tap.equal(clocks(), [(None, None), (None, None)])
            knob.hold_clock(0, high_mhz)
            raised(flyball.UsageError, knob.set, 1000)
            raised(flyball.UsageError, knob.set, 0)
            raised(TypeError, knob.set, "300")
            raised(TypeError, pickle.dumps, knob)
            raised(TypeError, flyball.PowerKnob, None)
            raised(flyball.StateError, flyball.PowerKnob, monitor)
            monitor.close()
            knob.set(200)
            pid = os.fork()
            if pid == 0:
                try:
                    knob.set(150)
                except flyball.StateError:
                    os._exit(0)
                os._exit(1)
            tap.equal((os.waitpid(pid, 0)[1], limits()), (0, [400, 200]))
        tap.equal((limits(), clocks()), ([400, 400], [(None, None), (None, None)]))
        knob.close()
        raised(flyball.StateError, knob.set, 300)
        raised(flyball.StateError, lambda: knob.range_w)
        with flyball.Monitor() as monitor:
            lost = flyball.PowerKnob(monitor)
            lost.set(250)
        tap.equal(limits(), [250, 250])
        del lost
        gc.collect()
        tap.equal(limits(), [400, 400])


def test_knob_at_the_end_of_the_interpreter():
    program = """if True:
        import flyball
        monitor = flyball.Monitor()
        knob = flyball.PowerKnob(monitor)
        knob.set(250)
        """
    with machine(gpus=1, settings=("--any-user=yes",)):
        done = tap.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": sys.path[0]})
        tap.equal((done.returncode, done.stderr, limits()), (0, "", [400]))


tap.main(globals())
