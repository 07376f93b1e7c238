# SPDX-License-Identifier: Apache-2.0
"""The devices of flyball.compat.zeus one by one, on emulated GPUs in this process.

usage: python_compat_device.py FLYBALL SOURCE_ROOT
"""

import collections
import contextlib
import math
import os
import pathlib
import sys
import warnings

import tap
from zeus_machine import HOME, LOAD_W, clocks, flyball, limits, machine, raised, variables, wait_for_sensors

from flyball.compat.zeus import device
from flyball.compat.zeus.device import cpu, gpu
from flyball.compat.zeus.device.cpu import common
from flyball.compat.zeus.device.exception import ZeusBaseGPUError
from flyball.compat.zeus.exception import ZeusBaseError

FREE = [(None, None), (None, None)]


@contextlib.contextmanager
def seen(gpus=2, settings=("--any-user=yes", "--counter-period-ms", "0")):
    """The GPUs of a machine that is there for the length of a with statement; what they were set to goes back before."""
    with machine(gpus=gpus, settings=settings):
        gpus = device.get_gpus()
        try:
            yield gpus
        finally:
            gpu._of.clear()
            for one in gpus.gpus:
                if one._knob is not None:
                    one._knob.close()
                one._monitor.close()


def test_limits():
    with seen() as gpus:
        tap.equal((len(gpus), gpus is gpu.get_gpus(ensure_homogeneous=True)), (2, True))
        tap.equal(gpus.get_power_management_limit_constraints(1), (100000, 400000))
        tap.equal([one.get_power_management_limit() for one in gpus.gpus], [400000, 400000])
        gpus.set_power_management_limit(1, 250000)
        gpus.gpus[0].set_power_management_limit(power_limit_mw=300500, block=False)
        tap.equal((limits(), gpus.get_power_management_limit(0)), ([300.5, 250], 300500))
        error = raised(gpu.ZeusGPUInvalidArgError, gpus.set_power_management_limit, 0, 9000000)
        tap.equal((isinstance(error, ZeusBaseGPUError), isinstance(error, ZeusBaseError), error.message == str(error)), (True, True, True))
        gpus.set_power_management_limit(0, 9000000, block=False)
        raised(gpu.ZeusGPUNotFoundError, gpus.get_power_management_limit, 2)
        raised(gpu.ZeusGPUNotFoundError, gpus.get_name, -1)
        gpus.reset_power_management_limit(0)
        tap.equal(limits(), [400, 250])
        gpus.set_persistence_mode(0, enabled=True)
        raised(gpu.ZeusGPUNotSupportedError, gpus.get_persistence_mode, 0)
        raised(flyball.StateError, flyball.PowerKnob, flyball.Monitor())


def test_clocks():
    with seen() as gpus:
        all_mhz, memory_mhz = gpus.get_supported_graphics_clocks(0), gpus.get_supported_memory_clocks(0)
        tap.equal((len(all_mhz) > 5, gpus.get_supported_graphics_clocks(0, memory_mhz[0])), (True, all_mhz))
        raised(gpu.ZeusGPUInvalidArgError, gpus.get_supported_graphics_clocks, 0, memory_clock_mhz=1)
        gpus.reset_gpu_locked_clocks(0)
        gpus.set_gpu_locked_clocks(1, all_mhz[4], all_mhz[2])
        tap.equal(clocks(), [(None, None), (all_mhz[4], all_mhz[2])])
        gpus.set_memory_locked_clocks(1, memory_mhz[-1], memory_mhz[0])
        tap.equal(clocks("memory_clock"), [(None, None), (memory_mhz[-1], memory_mhz[0])])
        raised(gpu.ZeusGPUInvalidArgError, gpus.set_gpu_locked_clocks, 1, 1, 100000)
        gpus.reset_memory_locked_clocks(1)
        tap.equal((clocks("memory_clock"), clocks()[1]), (FREE, (all_mhz[4], all_mhz[2])))
        gpus.set_memory_locked_clocks(1, memory_mhz[0], memory_mhz[0])
        gpus.reset_locked_clocks(1)
        tap.equal((clocks("memory_clock"), clocks()), (FREE, FREE))
        gpus.set_gpu_locked_clocks(0, all_mhz[1], all_mhz[1])
        gpus.gpus[0]._knob.close()
        tap.equal(clocks(), FREE)


def test_readings():
    with seen() as gpus:
        wait_for_sensors()
        tap.equal((gpus.get_instant_power_usage(0), gpus.supports_get_total_energy_consumption(1)), (LOAD_W * 1000, True))
        first_mj = gpus.get_total_energy_consumption(1)
        tap.eventually(lambda: gpus.get_total_energy_consumption(1) > first_mj)
        tap.equal((type(first_mj), 0 < gpus.get_gpu_temperature(0) < 120, "A100" in gpus.get_name(0)), (int, True, True))
        raised(gpu.ZeusGPUNotSupportedError, gpus.get_average_memory_power_usage, 0)
        tap.equal(gpus.gpus[0].supports_nonblocking_setters, False)
    with seen(settings=("--counter", "none")) as gpus:
        tap.equal(gpus.supports_get_total_energy_consumption(0), False)
        raised(gpu.ZeusGPUNotSupportedError, gpus.get_total_energy_consumption, 0)


def test_older_names():
    with seen() as gpus, warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        gpus.setPowerManagementLimit(0, 300000)
        tap.equal((gpus.getName(1), gpus.gpus[0].getPowerManagementLimit()), (gpus.get_name(1), 300000))
        tap.equal([(warning.category, os.path.basename(warning.filename)) for warning in heard], [(DeprecationWarning, os.path.basename(__file__))] * 3)
        for of in (gpus, gpus.gpus[0]):
            for name in ("getColour", "_Lift", "no_such_method"):
                raised(AttributeError, getattr, of, name)


def test_gpus_as_the_framework_counts_them():
    with variables(CUDA_VISIBLE_DEVICES="1"), seen() as gpus:
        tap.equal(len(gpus), 1)
        gpus.set_power_management_limit(0, 300000)
        tap.equal(limits(), [400, 300])


def test_refusals():
    with variables(FLYBALL_DISABLE="1"):
        raised(gpu.ZeusGPUInitError, gpu.get_gpus)
    with seen() as gpus, flyball.PowerKnob(flyball.Monitor([0])):
        raised(gpu.ZeusGPUNoPermissionError, gpus.set_power_management_limit, 0, 300000)
        gpus.set_power_management_limit(1, 300000)
        tap.equal(limits(), [400, 300])
    faults = pathlib.Path(HOME.name, "faults")
    faults.write_text("call nvmlDeviceSetPowerManagementLimit no-permission\n", encoding="utf-8")
    with seen(settings=("--faults", str(faults))) as gpus:
        raised(gpu.ZeusGPUNoPermissionError, gpus.set_power_management_limit, 0, 300000)
        tap.equal(limits(), [400, 400])
    with seen() as gpus:
        gpus.gpus[1].get_name = lambda: "another"
        raised(gpu.ZeusGPUHeterogeneousError, gpu.get_gpus, ensure_homogeneous=True)


def test_forks():
    """A child has GPUs of its own, and leaves its parent's."""
    with seen() as gpus:
        gpus.set_power_management_limit(0, 300000)
        pid = os.fork()
        if pid == 0:
            other = gpu.get_gpus()
            os._exit(0 if other is not gpus and other.get_power_management_limit(0) == 300000 else 1)
        tap.equal((os.waitpid(pid, 0)[1], limits()), (0, [300, 400]))


def test_end_of_the_interpreter():
    program = """if True:
        from flyball.compat.zeus.device import get_gpus
        gpus = get_gpus()
        gpus.set_power_management_limit(0, 250000)
        gpus.set_gpu_locked_clocks(0, 1110, 1110)
        """
    with machine(settings=("--any-user=yes",)):
        done = tap.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": sys.path[0]})
        tap.equal((done.returncode, done.stderr, limits(), clocks()), (0, "", [400, 400], FREE))


class Node:
    """A monitor of two CPU packages, of which the second may not be read, and the memory at the first."""

    Device = collections.namedtuple("Device", "kind index")
    Energy = collections.namedtuple("Energy", "device energy_j counter_j note")
    Sample = collections.namedtuple("Sample", "energy_j")
    counters = {0: 5.0, 1: None, 2: 1.5}

    def __init__(self, gpus, sample_hz):
        self.devices = [self.Device("CPU", 0), self.Device("CPU", 1), self.Device("DRAM", 0)]

    def begin(self, name):
        return self

    def end(self):
        energies = [self.Energy(of, None, self.counters[place], "closed to this user") for place, of in enumerate(self.devices)]
        return type("Measured", (), {"devices": energies})

    def read(self, place):
        return self.Sample(self.counters[place])


@contextlib.contextmanager
def node(**counters):
    """Packages whose counters are these, in place of the machine's."""
    original, common.flyball = common.flyball, type("Flyball", (), {"Monitor": type("Node", (Node,), counters)})
    try:
        yield
    finally:
        common.flyball = original
        cpu._of.clear()


def test_cpus():
    with node():
        cpus = device.get_cpus()
        tap.equal((len(cpus), cpus is cpu.get_cpus()), (1, True))
        tap.equal(cpus.get_total_energy_consumption(0), cpu.CpuDramMeasurement(cpu_mj=5000.0, dram_mj=1500.0))
        tap.equal(cpus.supports_get_dram_energy_consumption(0), True)
        tap.contains(str(raised(cpu.ZeusCPUNotFoundError, cpus.get_total_energy_consumption, 1)), "no CPU 1")
        cpus._monitor.counters = {0: None, 2: None}
        measured = cpus.get_total_energy_consumption(0)
        tap.equal((math.isnan(measured.cpu_mj), measured.dram_mj), (True, None))
    with node(counters={0: None, 1: None, 2: None}):
        tap.contains(str(raised(cpu.ZeusCPUNoPermissionError, cpu.get_cpus)), "closed to this user")
    with variables(FLYBALL_DISABLE="1"):
        raised(cpu.ZeusCPUInitError, cpu.get_cpus)


def test_environment():
    command = [sys.executable, "-m", "flyball.compat.zeus.show_env"]
    with machine():
        done = tap.run(command, env={**os.environ, "PYTHONPATH": sys.path[0]})
        tap.equal((done.returncode, done.stderr), (0, ""), done.stdout)
        for words in (f"Flyball: {flyball.__version__}", "torch: ", "GPU 1: ", "limit 400 W of 100 to 400 W, with a counter of energy"):
            tap.contains(done.stdout, words)
        done = tap.run(command, env={**os.environ, "PYTHONPATH": sys.path[0], "FLYBALL_DISABLE": "1"})
        tap.equal((done.returncode, done.stderr), (0, ""), done.stdout)
        tap.contains(done.stdout, "GPUs: none: ")


tap.main(globals())
