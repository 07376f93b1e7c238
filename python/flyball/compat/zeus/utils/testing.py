# SPDX-License-Identifier: Apache-2.0
"""A monitor that tells what another one once measured."""

from __future__ import annotations

import csv
import os
from typing import Literal

from flyball.compat.zeus.monitor.energy import Measurement, ZeusMonitor
from flyball.compat.zeus.utils.framework import sync_execution as sync_execution_fn

_BEFORE_GPUS = 3  # the first columns: start_time, window_name, elapsed_time


class ReplayZeusMonitor(ZeusMonitor):
    """Gives the windows of a log file, as ZeusMonitor wrote it, in the order in which they ended.

    gpu_indices            None: those of the file
    approx_instant_energy  is not looked at
    ignore_sync_execution  never waits for the framework
    match_window_name      a window has to have the name that is next in the file

    Raises ValueError without a file.
    """

    def __init__(
        self,
        gpu_indices: list[int] | None = None,
        approx_instant_energy: bool = False,
        log_file: str | os.PathLike[str] | None = None,
        ignore_sync_execution: bool = False,
        match_window_name: bool = True,
    ) -> None:
        if log_file is None:
            raise ValueError("give the log_file that is to be replayed")
        self.approx_instant_energy = approx_instant_energy
        self.sync_with: Literal["torch", "jax", "cupy"] = "torch"
        self.ignore_sync_execution = ignore_sync_execution
        self.match_window_name = match_window_name
        self.log_file = None
        with open(log_file, encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        inside = [int(column[len("gpu") : -len("_energy")]) for column in header[_BEFORE_GPUS:] if column]
        self.gpu_indices = list(gpu_indices) if gpu_indices is not None else inside
        self.nvml_gpu_indices = self.gpu_indices
        self.cpu_indices: list[int] = []
        self.ongoing_windows: list[str] = []
        self._rows = iter(rows)

    def begin_window(self, key: str, sync_execution: bool = True, restart: bool = False) -> None:
        """Begins a window of that name. Raises RuntimeError for one that is open, unless with `restart`."""
        if key in self.ongoing_windows:
            if not restart:
                raise RuntimeError(f"the window '{key}' is already ongoing")
            self.ongoing_windows.remove(key)
        self.ongoing_windows.append(key)
        self._wait(sync_execution)

    def end_window(self, key: str, sync_execution: bool = True, cancel: bool = False) -> Measurement:
        """What the file has next; with `cancel` zeros, and the file's line is left for another window.

        Raises RuntimeError for a window that is not open, at the end of the file, and for a line that does not fit.
        """
        if key not in self.ongoing_windows:
            raise RuntimeError(f"the window '{key}' is not ongoing")
        self.ongoing_windows.remove(key)
        self._wait(sync_execution)
        if cancel:
            return Measurement(0.0, dict.fromkeys(self.gpu_indices, 0.0))
        row = next(self._rows, None)
        if row is None:
            raise RuntimeError("the log file has no more windows")
        if self.match_window_name and row[1] != key:
            raise RuntimeError(f"the log file goes on with the window '{row[1]}', not with '{key}'")
        time_s, *energies_j = (float(figure) for figure in row[_BEFORE_GPUS - 1 :])
        if len(energies_j) != len(self.gpu_indices):
            raise RuntimeError(f"the log file has {len(energies_j)} GPUs in the window '{row[1]}', not {len(self.gpu_indices)}")
        return Measurement(time_s, dict(zip(self.gpu_indices, energies_j)))

    def reset_windows(self) -> None:
        """Drops all windows that are open."""
        self.ongoing_windows.clear()

    def _wait(self, sync_execution: bool) -> None:
        if sync_execution and not self.ignore_sync_execution:
            sync_execution_fn(self.gpu_indices)
