# SPDX-License-Identifier: Apache-2.0
"""The temperature of GPUs over time."""

from __future__ import annotations

from dataclasses import dataclass

import flyball
from flyball.compat.zeus.monitor.sampled import SampledMonitor, cut


@dataclass
class TemperatureSample:
    """A reading of temperature.

    timestamp      s since 1970
    temperature_c  degrees Celsius
    """

    timestamp: float
    gpu_index: int
    temperature_c: int


def _temperature(sample: flyball.Sample) -> float | None:
    return sample.temperature_c


class TemperatureMonitor(SampledMonitor):
    """Samples the temperature of GPUs in the background, in a thread of the library.

    gpu_indices          numbers of GPUs as the framework counts them, after CUDA_VISIBLE_DEVICES; None: all
    update_period        s between two samples
    max_samples_per_gpu  the newest so many are kept; None: 1048576
    """

    def __init__(
        self, gpu_indices: list[int] | None = None, update_period: float = 1.0, max_samples_per_gpu: int | None = None
    ) -> None:
        super().__init__(gpu_indices, update_period, max_samples_per_gpu)

    def get_temperature_timeline(
        self, gpu_index: int | None = None, start_time: float | None = None, end_time: float | None = None
    ) -> dict[int, list[tuple[float, int]]]:
        """(s since 1970, degrees Celsius) of each GPU or of one, oldest first."""
        cuts = {index: cut(line, start_time, end_time) for index, line in self._timelines(_temperature, gpu_index).items()}
        return {index: [(unix_s, round(value)) for unix_s, value in line] for index, line in cuts.items()}

    def get_temperature(self, time: float | None = None) -> dict[int, int] | None:
        """Degrees Celsius of each GPU at a time, or now; None if it is not known of one of them."""
        values = self._values(_temperature, time)
        return {index: round(value) for index, value in values.items()} if values is not None else None
