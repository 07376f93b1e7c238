# SPDX-License-Identifier: Apache-2.0
"""Programs written for the public project Zeus, over flyball.compat.zeus on emulated GPUs, in this process.

usage: python_compat_zeus.py FLYBALL SOURCE_ROOT
"""

import collections
import csv
import math
import os
import sys
import time
import types

import tap
from zeus_machine import HOME, LOAD_W, Stretch, emulator, flyball, machine, raised, variables, wait_for_sensors

from flyball.compat.zeus.callback import Callback, CallbackSet
from flyball.compat.zeus.monitor import PowerDomain, PowerMonitor, TemperatureMonitor, ZeusMonitor
from flyball.compat.zeus.monitor import energy
from flyball.compat.zeus.monitor.energy import Measurement
from flyball.compat.zeus.monitor.sampled import cut, integral, value_at
from flyball.compat.zeus.utils import framework


def test_windows():
    with machine():
        monitor = ZeusMonitor(gpu_indices=[0, 1])
        tap.equal(monitor.gpu_indices, [0, 1])
        epoch, steps = Stretch(lambda: monitor.begin_window("epoch")), []
        for _ in range(2):
            steps.append(Stretch(lambda: monitor.begin_window("step")))
            time.sleep(0.2)
            steps[-1].end(lambda: monitor.end_window("step"))
        epoch.end(lambda: monitor.end_window("epoch"))
        for stretch in [*steps, epoch]:
            tap.equal(list(stretch.measured.gpu_energy), [0, 1])
            stretch.check(0)
            tap.equal(stretch.measured.total_energy, sum(stretch.measured.gpu_energy.values()))
        tap.equal(epoch.measured.time >= sum(step.measured.time for step in steps), True)
        tap.equal((epoch.measured.soc_energy, monitor.measurement_states), (None, {}))


def test_misuse():
    with machine():
        monitor = ZeusMonitor()
        tap.contains(str(raised(ValueError, monitor.end_window, "epoch")), "epoch")
        monitor.begin_window("epoch")
        tap.contains(str(raised(ValueError, monitor.begin_window, "epoch")), "epoch")
        again = time.monotonic()
        monitor.begin_window("epoch", restart=True)
        tap.equal(monitor.end_window("epoch").time <= time.monotonic() - again, True)
        raised(ValueError, monitor.end_window, "epoch")
        monitor.begin_window("one")
        monitor.begin_window("two")
        tap.equal(sorted(monitor.measurement_states), ["one", "two"])
        monitor.reset_windows()
        raised(ValueError, monitor.end_window, "one")
        monitor.begin_window("two")
        cancelled = monitor.end_window("two", cancel=True)
        tap.equal((cancelled.time, cancelled.gpu_energy), (0.0, {0: 0.0, 1: 0.0}))
        tap.contains(str(raised(ValueError, ZeusMonitor, gpu_indices=[2])), "no GPU 2")


def test_gpus_as_the_framework_counts_them():
    with machine(gpus=3):
        emulator("set", "--gpu", "2", "--load-w", "100")
        with variables(CUDA_VISIBLE_DEVICES="1,2"):
            all_of_them, second = ZeusMonitor(), ZeusMonitor(gpu_indices=[1])
        tap.equal((all_of_them.gpu_indices, second.gpu_indices), ([0, 1], [1]))
        for monitor, numbers in ((all_of_them, [0, 1]), (second, [1])):
            stretch = Stretch(lambda monitor=monitor: monitor.begin_window("epoch"))
            time.sleep(0.2)
            stretch.end(lambda monitor=monitor: monitor.end_window("epoch"))
            tap.equal(list(stretch.measured.gpu_energy), numbers)
            stretch.check(1, 100.0)
        tap.equal(ZeusMonitor(gpu_indices=[]).gpu_indices, [])


def test_log_file():
    path = os.path.join(HOME.name, "energy.csv")
    with open(path, "w", encoding="utf-8") as file:
        file.write("of an earlier run\n")
    with machine():
        monitor = ZeusMonitor(gpu_indices=[1], log_file=path)
        began = time.time()
        for name in ("epoch 0", "dropped", "a,b"):
            monitor.begin_window(name)
            time.sleep(0.1)
            measured = monitor.end_window(name, cancel=name == "dropped")
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
    tap.equal(rows[0], ["start_time", "window_name", "elapsed_time", "gpu1_energy"])
    tap.equal([row[1] for row in rows[1:]], ["epoch 0", "a,b"])
    tap.equal((float(rows[2][2]), float(rows[2][3])), (measured.time, measured.gpu_energy[1]))
    tap.equal(0 <= float(rows[1][0]) - began < 60, True)


def test_machine_without_gpus():
    with variables(FLYBALL_DISABLE="1"):
        monitor = ZeusMonitor(gpu_indices=[0])
        monitor.begin_window("epoch")
        measured = monitor.end_window("epoch")
    tap.equal((measured.gpu_energy, measured.total_energy, measured.cpu_energy, measured.dram_energy), ({}, 0, None, None))


def moment_joules(monitor):
    monitor.begin_window("moment")
    return monitor.end_window("moment").total_energy


def epoch_joules(monitor):
    monitor.begin_window("epoch")
    time.sleep(0.5)
    return monitor.end_window("epoch").total_energy


def test_unknown_is_no_number():
    with machine(settings=("--counter", "none")):
        monitor = ZeusMonitor(gpu_indices=[0])
        moments = [moment_joules(monitor) for _ in range(20)]
        tap.equal(any(math.isnan(joules) for joules in moments), True)  # a sample can fall into some
        tap.equal(0.0 in moments, False)
        tap.eventually(lambda: epoch_joules(monitor) > 0)


def test_instant_power_of_short_windows():
    with machine(settings=("--counter-period-ms", "60000")):
        wait_for_sensors()
        for approximate in (False, True):
            monitor = ZeusMonitor(gpu_indices=[0], approx_instant_energy=approximate)
            monitor.begin_window("moment")
            measured = monitor.end_window("moment")
            tap.equal(measured.gpu_energy[0], LOAD_W * measured.time if approximate else 0.0)


def wait_for_samples(monitor, count):
    """Waits until each GPU has so many samples."""
    until = time.monotonic() + tap.PATIENCE_S
    while True:
        timelines = monitor._timelines(lambda sample: sample.unix_s)
        if all(len(timeline) >= count for timeline in timelines.values()):
            return
        if time.monotonic() > until:
            raise AssertionError(f"{count} samples did not come within a minute")
        time.sleep(0.05)


def test_power_over_time():
    began = time.time()
    with machine():
        wait_for_sensors()
        monitor = PowerMonitor(update_period=0.02)
        tap.equal((monitor.gpu_indices, monitor.get_power()), ([0, 1], {0: LOAD_W, 1: LOAD_W}))
        wait_for_samples(monitor, 5)
        line = monitor.get_power_timeline(PowerDomain.DEVICE_INSTANT, gpu_index=1)
        tap.equal(list(line), [1])
        tap.equal({power_w for _, power_w in line[1]}, {LOAD_W})
        times = [when for when, _ in line[1]]
        tap.equal((times, times[0] >= began - 1), (sorted(times), True))
        tap.equal(monitor.get_power_timeline("device_instant", 1, times[1], times[3]), {1: line[1][1:4]})
        tap.equal(monitor.get_all_power_timelines(end_time=times[0] - 1)["device_instant"], {0: [], 1: []})
        tap.equal(monitor.get_power(times[2]), {0: LOAD_W, 1: LOAD_W})
        tap.equal(monitor.get_power(began - 60), None)
        energy_j = monitor.get_energy(times[0], times[4])[1]
        tap.equal(math.isclose(energy_j, LOAD_W * (times[4] - times[0]), rel_tol=1e-6), True, energy_j)
        tap.equal(monitor.get_energy(began - 60, began - 50), None)
        tap.equal((monitor.get_power(power_domain="memory_average"), raised(ValueError, PowerDomain, "x") is None), (None, False))
        tap.contains(str(raised(ValueError, monitor.get_power_timeline, "memory_average")), "memory_average")
        tap.contains(str(raised(ValueError, monitor.get_power_timeline, "device_instant", 5)), "GPU 5")
        monitor.stop()
        monitor.stop()
        tap.equal(monitor.get_power_timeline("device_instant", 1)[1][: len(line[1])], line[1])
        tap.equal(PowerMonitor(gpu_indices=[1], power_domains=["device_instant"]).power_domains, [PowerDomain.DEVICE_INSTANT])
        raised(ValueError, PowerMonitor, update_period=0)


def test_newest_samples_are_kept():
    with machine(gpus=1):
        monitor = PowerMonitor(update_period=0.01, max_samples_per_gpu=3)
        wait_for_samples(monitor, 3)
        first = monitor.get_power_timeline("device_instant")[0]
        until = time.monotonic() + tap.PATIENCE_S
        while monitor.get_power_timeline("device_instant")[0][0] <= first[-1] and time.monotonic() < until:
            time.sleep(0.05)
        newest = monitor.get_power_timeline("device_instant")[0]
        tap.equal((len(newest), newest[0] > first[-1]), (3, True))


def test_temperature_over_time():
    with machine():
        monitor = TemperatureMonitor(gpu_indices=[1], update_period=0.02)
        now_c = monitor.get_temperature()
        tap.equal((list(now_c), type(now_c[1]), 0 < now_c[1] < 120), ([1], int, True))
        wait_for_samples(monitor, 3)
        timeline = monitor.get_temperature_timeline()[1]
        tap.equal((len(timeline) >= 3, {type(value) for _, value in timeline}), (True, {int}))
        monitor.stop()


def test_timelines():
    line = [(10.0, 100.0), (11.0, 200.0), (13.0, 0.0)]
    for when, value in ((9.9, None), (10.0, 100.0), (10.5, 150.0), (12.0, 100.0), (13.0, 0.0), (20.0, 0.0), (None, 0.0)):
        tap.equal(value_at(line, when), value, when)
    for start, end, area in ((10, 11, 150.0), (10.5, 12, 237.5), (0, 10.5, 62.5), (13, 14, 0.0), (10.25, 10.75, 75.0), (0, 9, None)):
        tap.equal(integral(line, start, end), area, (start, end))
    tap.equal((cut(line, 10.0, 11.0), cut(line, 11.5, None), cut([], None, 3.0)), (line[:2], line[2:], []))
    tap.equal((value_at([], None), integral([], 0, 1)), (None, None))


def test_edges_wait_for_the_framework():
    waited = []
    cuda = types.SimpleNamespace(is_available=lambda: True, synchronize=waited.append)
    with machine():
        monitor = ZeusMonitor()
        monitor.begin_window("before torch")
        monitor.end_window("before torch")
        sys.modules["torch"] = types.SimpleNamespace(cuda=cuda)
        try:
            monitor.begin_window("epoch")
            tap.equal(waited, [0, 1])
            monitor.begin_window("step", sync_execution=False)
            monitor.end_window("step", sync_execution=False)
            tap.equal(waited, [0, 1])
            monitor.end_window("epoch")
            tap.equal(waited, [0, 1, 0, 1])
            cuda.is_available = lambda: False
            monitor.begin_window("epoch")
            tap.equal(len(waited), 4)
            tap.equal(framework.torch_is_available(ensure_cuda=False), True)
            raised(RuntimeError, framework.torch_is_available, ensure_available=True)
        finally:
            del sys.modules["torch"]
    raised(ValueError, framework.sync_execution, [0], sync_with="caffe")
    tap.equal((framework.is_distributed(), framework.get_rank(), framework.get_world_size()), (False, 0, 1))
    tap.equal((framework.all_reduce([1.5], "sum"), framework.all_reduce([2], "max")), ([1.5], [2]))


class NodeMonitor:
    """A monitor of a GPU, two CPU packages, of which the second may not be read, and the memory at the first."""

    Device = collections.namedtuple("Device", "kind index")
    Energy = collections.namedtuple("Energy", "device energy_j counter_j note")
    devices = (Device("GPU", 0), Device("CPU", 0), Device("CPU", 1), Device("DRAM", 0))

    def begin(self, name):
        return self

    def end(self):
        figures = ((1.0, 1.5, ""), (None, 2.0, "too short"), (None, None, "no permission"), (3.0, 3.0, ""))
        energies = [self.Energy(device, *figure) for device, figure in zip(self.devices, figures)]
        return types.SimpleNamespace(devices=energies, time_s=2.0)


def test_cpus():
    original, energy.open_monitor = energy.open_monitor, lambda gpus, **_: (NodeMonitor(), {0: 0})
    try:
        for cpus, cpu_j, dram_j in ((None, {0: 2.0}, {0: 3.0}), ([0], {0: 2.0}, {0: 3.0}), ([], None, None), ([7], None, None)):
            monitor = ZeusMonitor(cpu_indices=cpus)
            tap.equal(monitor.cpu_indices, list(cpu_j or {}))
            monitor.begin_window("epoch")
            measured = monitor.end_window("epoch")
            tap.equal((measured.gpu_energy, measured.cpu_energy, measured.dram_energy), ({0: 1.0}, cpu_j, dram_j))
            monitor.begin_window("epoch")
            zeros = monitor.end_window("epoch", cancel=True)
            tap.equal((zeros.cpu_energy, zeros.dram_energy), (cpu_j and {0: 0.0}, dram_j and {0: 0.0}))
        tap.contains(str(raised(RuntimeError, ZeusMonitor, cpu_indices=[0, 1])), "no permission")
    finally:
        energy.open_monitor = original


def test_total_is_kept():
    measured = Measurement(time=1.0, gpu_energy={0: 2.0, 1: 3.0})
    tap.equal((measured.total_energy, measured), (5.0, Measurement(1.0, {0: 2.0, 1: 3.0})))


def test_callbacks():
    calls = []

    class Noted(Callback):
        def __init__(self, name):
            self.name = name

        def on_step_begin(self):
            calls.append((self.name, "step"))

        def on_evaluate(self, metric):
            calls.append((self.name, metric))

    both = CallbackSet([Noted("a"), Noted("b")])
    for hook in ("train_begin", "train_end", "epoch_begin", "epoch_end", "step_begin", "step_end"):
        getattr(both, f"on_{hook}")()
    both.on_evaluate(0.5)
    both.on_instruction_begin("forward")
    both.on_instruction_end("forward")
    tap.equal(calls, [("a", "step"), ("b", "step"), ("a", 0.5), ("b", 0.5)])


tap.main(globals())
