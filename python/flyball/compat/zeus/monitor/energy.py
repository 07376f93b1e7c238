# SPDX-License-Identifier: Apache-2.0
"""The time and energy of windows of a program, by name."""

from __future__ import annotations

import csv
import os
import time
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from flyball.compat.zeus.monitor.visible import open_monitor
from flyball.compat.zeus.utils.framework import sync_execution as sync_execution_fn

if TYPE_CHECKING:
    import flyball

_WINDOWS_MAX = 4096


@dataclass
class Measurement:
    """What a window held.

    time         s
    gpu_energy   J of each GPU, by the number that the framework gives it; NaN where it is not known
    cpu_energy   J of each CPU package; None: no package can be read
    dram_energy  J of the memory at each package; None: none can be read
    soc_energy   None: no such device is read
    """

    time: float
    gpu_energy: dict[int, float]
    cpu_energy: dict[int, float] | None = None
    dram_energy: dict[int, float] | None = None
    soc_energy: Any = None

    @cached_property
    def total_energy(self) -> float:
        """J of all GPUs together."""
        return sum(self.gpu_energy.values())


@dataclass
class MeasurementState:
    """A window that is open. Its energies count from its begin, so they are 0 here.

    time  s since 1970, when it began
    """

    time: float
    gpu_energy: dict[int, float]
    cpu_energy: dict[int, float] | None = None
    dram_energy: dict[int, float] | None = None
    window: flyball.Window | None = field(default=None, repr=False, compare=False)

    @cached_property
    def total_energy(self) -> float:
        """J of all GPUs together."""
        return sum(self.gpu_energy.values())


def _known_j(energy: flyball.DeviceEnergy) -> float:
    """The energy; of a window too short for one the counter's plain difference; NaN without any."""
    known = energy.energy_j if energy.energy_j is not None else energy.counter_j
    return known if known is not None else float("nan")


def _readable(monitor: flyball.Monitor, kind: str) -> tuple[dict[int, int], dict[int, str]]:
    """The places of a kind's devices that can be read, and why the others cannot, by their index."""
    probe = monitor.begin("probe").end()
    energies = [(place, energy) for place, energy in enumerate(probe.devices) if energy.device.kind == kind]
    places = {energy.device.index: place for place, energy in energies if energy.counter_j is not None}
    return places, {energy.device.index: energy.note for _, energy in energies if energy.counter_j is None}


class ZeusMonitor:
    """Measures the time and energy of named windows, any number of them at once.

    gpu_indices            numbers of GPUs as the framework counts them, after CUDA_VISIBLE_DEVICES; None: all
    cpu_indices            CPU packages; None: all that can be read
    approx_instant_energy  a window so short that the counter shows 0 J gets its power now times its time
    log_file               a CSV file that is written anew, a line for each window that ends; directories are made
    sync_execution_with    whose work a window's edges wait for; a framework that is not imported has none

    Devices that cannot be read are left out. Raises RuntimeError if CPUs were asked for and reading them is not
    permitted, ValueError for a GPU that does not exist.
    """

    def __init__(
        self,
        gpu_indices: list[int] | None = None,
        cpu_indices: list[int] | None = None,
        approx_instant_energy: bool = False,
        log_file: str | os.PathLike[str] | None = None,
        sync_execution_with: Literal["torch", "jax", "cupy"] = "torch",
    ) -> None:
        self.approx_instant_energy = approx_instant_energy
        self.sync_with: Literal["torch", "jax", "cupy"] = sync_execution_with
        self._monitor, self._gpus = open_monitor(gpu_indices, windows_max=_WINDOWS_MAX)
        self._open_cpus(cpu_indices)
        self.gpu_indices = list(self._gpus)
        self.cpu_indices = list(self._cpus)
        self.measurement_states: dict[str, MeasurementState] = {}
        self.log_file = None
        if log_file is not None:
            os.makedirs(os.path.dirname(os.path.abspath(log_file)), exist_ok=True)
            self.log_file = open(log_file, "w", newline="")
            energies = [f"gpu{index}_energy" for index in self.gpu_indices]
            self._write_row(["start_time", "window_name", "elapsed_time", *energies])

    def _open_cpus(self, wanted: list[int] | None) -> None:
        self._cpus, refusals = _readable(self._monitor, "CPU")
        self._drams, _ = _readable(self._monitor, "DRAM")
        if wanted is not None:
            for index in set(wanted) & set(refusals):
                raise RuntimeError(f"the energy of CPU {index} cannot be read: {refusals[index]}")
            self._cpus = {index: place for index, place in self._cpus.items() if index in wanted}
            self._drams = {index: place for index, place in self._drams.items() if index in wanted}

    def _write_row(self, row: list[Any]) -> None:
        if self.log_file is not None:
            csv.writer(self.log_file, lineterminator="\n").writerow(row)
            self.log_file.flush()

    def begin_window(self, key: str, sync_execution: bool = True, restart: bool = False) -> None:
        """Begins a window of that name.

        sync_execution  first waits until the GPUs have done what they were asked to
        restart         an open window of that name is dropped; else it is a ValueError
        """
        if key in self.measurement_states and not restart:
            raise ValueError(f"the window '{key}' already exists; end it, or give restart=True")
        self.measurement_states.pop(key, None)
        if sync_execution:
            sync_execution_fn(self.gpu_indices, sync_with=self.sync_with)
        state = MeasurementState(time.time(), *self._zeros())
        state.window = self._monitor.begin(str(key))
        self.measurement_states[key] = state

    def end_window(self, key: str, sync_execution: bool = True, cancel: bool = False) -> Measurement:
        """Ends the window of that name and returns what it held.

        sync_execution  as of begin_window
        cancel          the window is dropped: returns zeros, and writes no line

        Raises ValueError if no window of that name is open.
        """
        measured = self._end(key, sync_execution, cancel)
        if not cancel and not self.approx_instant_energy and 0.0 in measured.gpu_energy.values():
            advice = "it was too short for the GPU's counter to move; see approx_instant_energy"
            warnings.warn(f"the energy of the window '{key}' was measured as zero: {advice}", stacklevel=2)
        return measured

    def _end(self, key: str, sync_execution: bool, cancel: bool = False) -> Measurement:
        if key not in self.measurement_states:
            raise ValueError(f"the window '{key}' does not exist")
        state = self.measurement_states.pop(key)
        if cancel or state.window is None:
            return Measurement(0.0, *self._zeros())
        if sync_execution:
            sync_execution_fn(self.gpu_indices, sync_with=self.sync_with)
        ended = state.window.end()
        time_s = ended.time_s if ended.time_s is not None else float("nan")
        energies = [_known_j(energy) for energy in ended.devices]
        gpu_energy = {index: self._settled_j(place, energies[place], time_s) for index, place in self._gpus.items()}
        self._write_row([state.time, key, time_s, *gpu_energy.values()])
        return Measurement(
            time_s,
            gpu_energy,
            {index: energies[place] for index, place in self._cpus.items()} or None,
            {index: energies[place] for index, place in self._drams.items()} or None,
        )

    def reset_windows(self) -> None:
        """Drops all windows that are open."""
        self.measurement_states.clear()

    def _zeros(self) -> tuple[dict[int, float], dict[int, float] | None, dict[int, float] | None]:
        return dict.fromkeys(self._gpus, 0.0), dict.fromkeys(self._cpus, 0.0) or None, dict.fromkeys(self._drams, 0.0) or None

    def _settled_j(self, place: int, energy_j: float, time_s: float) -> float:
        """Without movement of the counter, the power now times the time, if that was asked for."""
        if energy_j != 0.0 or not self.approx_instant_energy:
            return energy_j
        power_w = self._monitor.read(place).power_w
        return power_w * time_s if power_w is not None else energy_j
