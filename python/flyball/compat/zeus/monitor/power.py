# SPDX-License-Identifier: Apache-2.0
"""The power of GPUs over time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal, Union

import flyball
from flyball.compat.zeus.monitor.sampled import Figure, SampledMonitor, Timeline, cut, integral


class PowerDomain(Enum):
    """What a power reading covers."""

    DEVICE_INSTANT = "device_instant"  # the device, over the sensor's own short window
    DEVICE_AVERAGE = "device_average"  # the device, over about a second
    MEMORY_AVERAGE = "memory_average"  # the memory alone, over about a second; no driver is asked for it


_DomainName = Literal["device_instant", "device_average", "memory_average"]
_Domain = Union[PowerDomain, _DomainName]


@dataclass
class PowerSample:
    """A reading of power.

    timestamp  s since 1970
    power_mw   mW
    """

    timestamp: float
    gpu_index: int
    power_mw: float


def _instant(sample: flyball.Sample) -> float | None:
    return sample.power_w


def _average(sample: flyball.Sample) -> float | None:
    return sample.power_average_w


def _nothing(sample: flyball.Sample) -> float | None:
    return None


_FIGURES: dict[PowerDomain, Figure] = {
    PowerDomain.DEVICE_INSTANT: _instant,
    PowerDomain.DEVICE_AVERAGE: _average,
    PowerDomain.MEMORY_AVERAGE: _nothing,
}


def infer_counter_update_period(gpu_indicies: list[int]) -> float:
    """The s between two samples where none are given; a sensor that is slower is sampled at its own pace."""
    return 0.1


class PowerMonitor(SampledMonitor):
    """Samples the power of GPUs in the background, in a thread of the library.

    gpu_indices          numbers of GPUs as the framework counts them, after CUDA_VISIBLE_DEVICES; None: all
    update_period        s between two samples; None: 0.1, or the sensor's own period if that is longer
    max_samples_per_gpu  the newest so many are kept; None: 1048576, or 29 hours of ten a second
    power_domains        what is read; None: all that the GPUs offer
    """

    def __init__(
        self,
        gpu_indices: list[int] | None = None,
        update_period: float | None = None,
        max_samples_per_gpu: int | None = None,
        power_domains: list[_Domain] | None = None,
    ) -> None:
        wanted = None if power_domains is None else [PowerDomain(domain) for domain in power_domains]
        super().__init__(gpu_indices, update_period, max_samples_per_gpu)
        self.power_domains = wanted if wanted is not None else self._offered()

    def _offered(self) -> list[PowerDomain]:
        now = [self._monitor.read(place) for place in self._gpus.values()]
        return [domain for domain, figure in _FIGURES.items() if any(figure(sample) is not None for sample in now)]

    def _figure(self, power_domain: _Domain) -> Figure:
        domain = PowerDomain(power_domain)
        if domain not in self.power_domains:
            offered = ", ".join(offered.value for offered in self.power_domains) or "none"
            raise ValueError(f"power domain '{domain.value}' is not monitored: {offered} is")
        return _FIGURES[domain]

    def get_power_timeline(
        self, power_domain: _Domain, gpu_index: int | None = None, start_time: float | None = None, end_time: float | None = None
    ) -> dict[int, Timeline]:
        """(s since 1970, W) of each GPU or of one, oldest first. Raises ValueError for a domain that is not monitored."""
        timelines = self._timelines(self._figure(power_domain), gpu_index)
        return {index: cut(timeline, start_time, end_time) for index, timeline in timelines.items()}

    def get_all_power_timelines(
        self, gpu_index: int | None = None, start_time: float | None = None, end_time: float | None = None
    ) -> dict[str, dict[int, Timeline]]:
        """The timelines of all domains, by their names."""
        return {domain.value: self.get_power_timeline(domain, gpu_index, start_time, end_time) for domain in self.power_domains}

    def get_energy(
        self, start_time: float, end_time: float, power_domain: _Domain | None = None
    ) -> dict[int, float] | None:
        """J of each GPU between two times, by the trapezoidal rule; None where no power is known.

        power_domain  None: the first that is monitored
        """
        if power_domain is None and not self.power_domains:
            return None
        figure = self._figure(power_domain if power_domain is not None else self.power_domains[0])
        energies = {index: integral(line, start_time, end_time) for index, line in self._timelines(figure).items()}
        known = {index: energy_j for index, energy_j in energies.items() if energy_j is not None}
        return known if known and len(known) == len(energies) else None

    def get_power(
        self, time: float | None = None, power_domain: _Domain = PowerDomain.DEVICE_INSTANT
    ) -> dict[int, float] | None:
        """W of each GPU at a time, or now; None if it is not known of one of them."""
        if PowerDomain(power_domain) not in self.power_domains:
            return None
        return self._values(self._figure(power_domain), time)
