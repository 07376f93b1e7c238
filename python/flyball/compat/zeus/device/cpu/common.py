# SPDX-License-Identifier: Apache-2.0
"""The CPU packages that can be read."""

from __future__ import annotations

from dataclasses import dataclass

import flyball
from flyball.compat.zeus.device.exception import ZeusCPUInitError, ZeusCPUNoPermissionError, ZeusCPUNotFoundError
from flyball.compat.zeus.monitor.energy import _readable

_MJ = 1000


@dataclass
class CpuDramMeasurement:
    """Counters of energy in mJ, which began at some moment.

    dram_mj  of the memory at the package; None: it is not known
    """

    cpu_mj: float
    dram_mj: float | None = None


class CPUs:
    """The CPU packages whose energy can be read, by their numbers on the node."""

    def __init__(self) -> None:
        self._monitor = flyball.Monitor("none", sample_hz=1.0)
        self._cpus, refusals = _readable(self._monitor, "CPU")
        self._drams, _ = _readable(self._monitor, "DRAM")
        if not self._cpus and refusals:
            index, why = next(iter(refusals.items()))
            raise ZeusCPUNoPermissionError(f"the energy of CPU {index} cannot be read: {why}")
        if not self._cpus:
            raise ZeusCPUInitError("no CPU tells its energy; 'flyball doctor' tells what was looked for")

    def __len__(self) -> int:
        return len(self._cpus)

    def _energy_mj(self, place: int) -> float | None:
        energy_j = self._monitor.read(place).energy_j
        return energy_j * _MJ if energy_j is not None else None

    def get_total_energy_consumption(self, cpu_index: int) -> CpuDramMeasurement:
        """The counters of a package, and of the memory there. A counter that cannot be read now is NaN."""
        if cpu_index not in self._cpus:
            raise ZeusCPUNotFoundError(f"there is no CPU {cpu_index}: {', '.join(map(str, self._cpus))} can be read")
        cpu_mj = self._energy_mj(self._cpus[cpu_index])
        dram = self._drams.get(cpu_index)
        return CpuDramMeasurement(cpu_mj if cpu_mj is not None else float("nan"), None if dram is None else self._energy_mj(dram))

    def supports_get_dram_energy_consumption(self, cpu_index: int) -> bool:
        """Whether the memory at the package tells its energy."""
        return cpu_index in self._drams
