# SPDX-License-Identifier: Apache-2.0
"""Samples of GPUs over time, which the library takes in the background."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Optional

import flyball
from flyball.compat.zeus.monitor.visible import open_monitor

_SAMPLES_MAX = 1 << 20

Timeline = list[tuple[float, float]]
Figure = Callable[[flyball.Sample], Optional[float]]


def cut(timeline: Timeline, start_time: float | None, end_time: float | None) -> Timeline:
    """What lies from the one time to the other; None: no bound."""
    first = 0 if start_time is None else bisect_left(timeline, (start_time,))
    last = len(timeline) if end_time is None else bisect_right(timeline, (end_time, float("inf")))
    return timeline[first:last]


def value_at(timeline: Timeline, when: float | None) -> float | None:
    """The value at that time, on the line between two samples; the newest for None and later. None before the first."""
    if not timeline or (when is not None and when < timeline[0][0]):
        return None
    after = len(timeline) if when is None else bisect_right(timeline, (when, float("inf")))
    if after == len(timeline) or when is None:
        return timeline[-1][1]
    (time0, value0), (time1, value1) = timeline[after - 1 : after + 1]
    return value0 + (value1 - value0) * (when - time0) / (time1 - time0)


def integral(timeline: Timeline, start_time: float, end_time: float) -> float | None:
    """The values times time, by the trapezoidal rule, from the first sample at the earliest; None without any."""
    if not timeline or end_time < timeline[0][0]:
        return None
    edges = [max(start_time, timeline[0][0]), end_time]
    inside = [point for point in cut(timeline, *edges) if edges[0] < point[0] < edges[1]]
    first, last = ((edge, value_at(timeline, edge) or 0.0) for edge in edges)
    points = [first, *inside, last]
    return sum(0.5 * (before[1] + after[1]) * (after[0] - before[0]) for before, after in zip(points, points[1:]))


class SampledMonitor:
    """GPUs that are sampled from now on, until `stop`.

    gpu_indices          numbers of GPUs as the framework counts them, after CUDA_VISIBLE_DEVICES; None: all
    update_period        s between two samples; None: 0.1, or the sensor's own period if that is longer
    max_samples_per_gpu  the newest so many are kept; None: 1048576, or 29 hours of ten a second
    """

    def __init__(
        self, gpu_indices: list[int] | None = None, update_period: float | None = None, max_samples_per_gpu: int | None = None
    ) -> None:
        if update_period is not None and not update_period > 0.0:
            raise ValueError(f"update_period is {update_period}; give seconds above 0")
        self._samples: dict[int, list[flyball.Sample]] | None = None  # once it has stopped
        self._monitor, self._gpus = open_monitor(gpu_indices, sample_hz=1.0 / update_period if update_period else 0.0)
        self._monitor.keep(max_samples_per_gpu if max_samples_per_gpu is not None else _SAMPLES_MAX)
        self.gpu_indices = list(self._gpus)
        self.update_period = update_period if update_period is not None else 0.1

    def stop(self) -> None:
        """Ends sampling; what was sampled can still be asked for. May be called again."""
        if self._samples is None:
            self._samples = {index: self._monitor.samples(place) for index, place in self._gpus.items()}
            self._monitor.close()

    def _of(self, index: int) -> list[flyball.Sample]:
        return self._samples[index] if self._samples is not None else self._monitor.samples(self._gpus[index])

    def _timelines(self, figure: Figure, gpu_index: int | None = None) -> dict[int, Timeline]:
        """What is known of that figure, by GPU. Raises ValueError for a GPU that is not sampled."""
        if gpu_index is not None and gpu_index not in self._gpus:
            raise ValueError(f"GPU {gpu_index} is not monitored: {', '.join(map(str, self._gpus)) or 'none'} is")
        timelines: dict[int, Timeline] = {}
        for index in self._gpus if gpu_index is None else [gpu_index]:
            points = ((sample.unix_s, figure(sample)) for sample in self._of(index))
            timelines[index] = [(unix_s, value) for unix_s, value in points if value is not None]
        return timelines

    def _values(self, figure: Figure, when: float | None) -> dict[int, float] | None:
        """That figure at one time, by GPU; None if it is not known of one of them."""
        values = {index: value_at(timeline, when) for index, timeline in self._timelines(figure).items()}
        if when is None and self._samples is None:
            fresh = {index: figure(self._monitor.read(self._gpus[index])) for index, value in values.items() if value is None}
            values.update(fresh)
        known = {index: value for index, value in values.items() if value is not None}
        return known if known and len(known) == len(values) else None
