# SPDX-License-Identifier: Apache-2.0
"""Windows of which each part has a rate of its own, by the period of time in which it lies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import flyball
from flyball.compat.zeus.monitor.energy import Measurement, ZeusMonitor
from flyball.compat.zeus.monitor.sampled import Timeline, value_at

_J_PER_KWH = 3.6e6
_SAMPLES_MAX = 1 << 20


def _energy_so_far(samples: Sequence[flyball.Sample]) -> Timeline:
    """(s since 1970, J since the first) by the counter, or where that is not known everywhere by the power."""
    counted = [(sample.unix_s, sample.energy_j) for sample in samples if sample.energy_j is not None]
    if len(counted) == len(samples) and all(after[1] >= before[1] for before, after in zip(counted, counted[1:])):
        return [(unix_s, energy_j) for unix_s, energy_j in counted]
    total_j, timeline = 0.0, Timeline()
    for sample in samples:
        power_w = sample.power_w if sample.power_w is not None else sample.power_average_w
        if power_w is not None:
            total_j += power_w * (sample.unix_s - timeline[-1][0]) if timeline else 0.0
            timeline.append((sample.unix_s, total_j))
    return timeline


def split(energy_j: float, timeline: Timeline, edges: Sequence[float]) -> list[float]:
    """The parts of an energy between edges, in the proportion in which the timeline grows; without one, in that of time."""
    lengths = [after - before for before, after in zip(edges, edges[1:])]
    first_j = timeline[0][1] if timeline else 0.0
    levels = [level if level is not None else first_j for level in (value_at(timeline, edge) for edge in edges)]
    grown = [after - before for before, after in zip(levels, levels[1:])]
    weights = grown if sum(grown) > 0 else lengths if sum(lengths) > 0 else [1.0] * len(lengths)
    return [energy_j * weight / sum(weights) for weight in weights]


class PeriodMonitor:
    """Measures named windows, and divides each device's energy over periods, by the samples that the library takes.

    gpu_indices, cpu_indices, sync_with  as of ZeusMonitor
    period_s                             how long a rate holds; periods count from 1970 on
    """

    def __init__(
        self,
        gpu_indices: list[int] | None,
        cpu_indices: list[int] | None,
        sync_with: Literal["torch", "jax", "cupy"],
        period_s: float,
    ) -> None:
        self.zeus_monitor = ZeusMonitor(gpu_indices, cpu_indices, approx_instant_energy=True, sync_execution_with=sync_with)
        self.gpu_indices = self.zeus_monitor.gpu_indices
        self.cpu_indices = self.zeus_monitor.cpu_indices
        self._meter = self.zeus_monitor._monitor
        self._meter.keep(_SAMPLES_MAX)
        self._period_s = period_s

    def begin_window(self, key: str, sync_execution: bool = True) -> None:
        """Begins a window of that name. Raises ValueError for one that is open."""
        self.zeus_monitor.begin_window(key, sync_execution)

    def _end(self, key: str, sync_execution: bool) -> tuple[Measurement, list[float]]:
        """What the window held, and its begin and end with the changes of periods in between, in s since 1970."""
        state = self.zeus_monitor.measurement_states.get(key)
        measured = self.zeus_monitor.end_window(key, sync_execution)
        begin = state.time if state is not None else math.nan
        end = begin + measured.time
        first, last = math.floor(begin / self._period_s) + 1, math.ceil(end / self._period_s)
        return measured, [begin, *(number * self._period_s for number in range(first, last)), end]

    def _number(self, unix_s: float) -> int:
        return math.floor(unix_s / self._period_s)

    def _numbers(self, edges: list[float]) -> list[int]:
        """The period of each part between edges; its middle cannot be rounded into another one."""
        return [self._number(0.5 * (before + after)) for before, after in zip(edges, edges[1:])]

    def _weighed(
        self, energies: dict[int, float] | None, places: dict[int, int], edges: list[float], rates: list[float]
    ) -> dict[int, float]:
        """The parts of each device's energy times their rates per kWh."""
        weighed = {}
        for index, energy_j in (energies or {}).items():
            timeline = _energy_so_far(self._meter.samples(places[index], since_unix_s=edges[0] - 1.0)) if len(edges) > 2 else []
            parts = split(energy_j, timeline, edges)
            weighed[index] = sum(part_j / _J_PER_KWH * rate for part_j, rate in zip(parts, rates))
        return weighed
