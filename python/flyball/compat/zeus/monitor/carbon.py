# SPDX-License-Identifier: Apache-2.0
"""What windows of a program emit, by the carbon intensity of the grid in each hour of theirs."""

from __future__ import annotations

import abc
import json
import math
import os
import urllib.error
import urllib.parse
import urllib.request
import warnings
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import Any, Literal

from flyball.compat.zeus.exception import ZeusBaseError
from flyball.compat.zeus.monitor.periods import PeriodMonitor

_TIMEOUT_S = 30.0


class ZeusCarbonIntensityHTTPError(ZeusBaseError):
    """The provider cannot be reached, or refuses."""


class ZeusCarbonIntensityNotFoundError(ZeusBaseError):
    """The provider has no carbon intensity for this place."""


class CarbonIntensityProvider(abc.ABC):
    """Who knows the carbon intensity of a grid, in g of CO2 equivalent per kWh."""

    @abc.abstractmethod
    def get_current_carbon_intensity(self) -> float:
        """That of now."""

    @abc.abstractmethod
    def get_recent_carbon_intensity(self) -> dict[datetime, float]:
        """Those of the last `history_length` periods, by the begin of each; a date without a zone is UTC."""

    @property
    @abc.abstractmethod
    def update_period(self) -> timedelta:
        """How long each one holds."""

    @property
    @abc.abstractmethod
    def history_length(self) -> int:
        """How many of the past are told."""


class ElectrictyMapsClient(CarbonIntensityProvider):
    """Electricity Maps.

    location              latitude and longitude, in degrees
    estimate              whether estimates will do while nothing is measured
    emission_factor_type  'direct', or 'lifecycle' with what building and fuel emit

    FLYBALL_ELECTRICITY_MAPS_KEY is sent as the key, and FLYBALL_ELECTRICITY_MAPS_URL names another address.
    """

    def __init__(
        self, location: tuple[float, float], estimate: bool = False, emission_factor_type: Literal["direct", "lifecycle"] = "direct"
    ) -> None:
        self.lat, self.long = location
        self.estimate = estimate
        self.emission_factor_type = emission_factor_type

    def get_current_carbon_intensity(self) -> float:
        """That of now. Raises ZeusCarbonIntensityHTTPError, ZeusCarbonIntensityNotFoundError."""
        return _intensity_of(self._ask("latest"))

    def get_recent_carbon_intensity(self) -> dict[datetime, float]:
        """Those of the last 24 hours. Raises as above."""
        answer = self._ask("history")
        if "history" not in answer:
            raise ZeusCarbonIntensityNotFoundError(f"no history for {self.lat}, {self.long}: {answer}")
        return {
            datetime.fromisoformat(item["datetime"].replace("Z", "+00:00")): float(item["carbonIntensity"])
            for item in answer["history"]
            if item["carbonIntensity"] is not None
        }

    @property
    def update_period(self) -> timedelta:
        """An hour."""
        return timedelta(hours=1)

    @property
    def history_length(self) -> int:
        """24 hours."""
        return 24

    def _ask(self, what: str) -> dict[str, Any]:
        address = os.environ.get("FLYBALL_ELECTRICITY_MAPS_URL", "https://api.electricitymap.org/v3").rstrip("/")
        query = {
            "lat": self.lat,
            "lon": self.long,
            "disableEstimations": str(not self.estimate).lower(),
            "emissionFactorType": self.emission_factor_type,
        }
        key = os.environ.get("FLYBALL_ELECTRICITY_MAPS_KEY")
        request = urllib.request.Request(
            f"{address}/carbon-intensity/{what}?{urllib.parse.urlencode(query)}", headers={"auth-token": key} if key else {}
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
                content = json.load(answer)
        except urllib.error.HTTPError as error:
            raise ZeusCarbonIntensityHTTPError(f"Electricity Maps answers {error.code}: {error.read().decode(errors='replace')}") from error
        except (OSError, ValueError) as error:
            raise ZeusCarbonIntensityHTTPError(f"no answer from Electricity Maps: {error}") from error
        return content if isinstance(content, dict) else {}


def _intensity_of(answer: dict[str, Any]) -> float:
    if answer.get("carbonIntensity") is None:
        raise ZeusCarbonIntensityNotFoundError(f"no carbon intensity for this place: {answer}")
    return float(answer["carbonIntensity"])


@dataclass
class CarbonEmissionMeasurement:
    """What a window held: s, J by device, and g of CO2 equivalent by device; NaN where it is not known."""

    time: float
    gpu_energy: dict[int, float]
    gpu_carbon_emission: dict[int, float]
    cpu_energy: dict[int, float] | None = None
    cpu_carbon_emission: dict[int, float] | None = None
    dram_energy: dict[int, float] | None = None
    dram_carbon_emission: dict[int, float] | None = None


class Op(Enum):
    """What happens to a window; nothing here takes one."""

    BEGIN = 0
    END = 1
    NEXTITER = 2


class CarbonEmissionMonitor(PeriodMonitor):
    """Measures what named windows emit, any number of them at once.

    carbon_intensity_provider  whose figures count; it is asked when a window ends
    gpu_indices, cpu_indices, sync_execution_with  as of ZeusMonitor

    Each device's energy is divided over the provider's periods by the samples that the library takes, ten a second.
    Emissions are NaN, with a warning, for a period that the provider does not tell, such as one longer ago than its
    history.
    """

    def __init__(
        self,
        carbon_intensity_provider: CarbonIntensityProvider,
        gpu_indices: list[int] | None = None,
        cpu_indices: list[int] | None = None,
        sync_execution_with: Literal["torch", "jax", "cupy"] = "torch",
    ) -> None:
        super().__init__(gpu_indices, cpu_indices, sync_execution_with, carbon_intensity_provider.update_period.total_seconds())
        self.carbon_intensity_provider = carbon_intensity_provider
        self._known: dict[int, float] = {}  # g/kWh by the number of the period since 1970

    def end_window(self, key: str, sync_execution: bool = True) -> CarbonEmissionMeasurement:
        """Ends the window of that name and returns what it held. Raises ValueError if no window of that name is open."""
        measured, edges = self._end(key, sync_execution)
        self._ask(edges)
        intensities = [self._known.get(number, math.nan) for number in self._numbers(edges)]
        monitor = self.zeus_monitor
        return CarbonEmissionMeasurement(
            measured.time,
            measured.gpu_energy,
            self._weighed(measured.gpu_energy, monitor._gpus, edges, intensities),
            measured.cpu_energy,
            self._weighed(measured.cpu_energy, monitor._cpus, edges, intensities) or None,
            measured.dram_energy,
            self._weighed(measured.dram_energy, monitor._drams, edges, intensities) or None,
        )

    def _ask(self, edges: list[float]) -> None:
        """Hears of the periods between the edges what is not known yet."""
        *past, newest = self._numbers(edges)
        try:
            if any(number not in self._known for number in past):
                for date, intensity in self.carbon_intensity_provider.get_recent_carbon_intensity().items():
                    aware = date if date.tzinfo is not None else date.replace(tzinfo=timezone.utc)
                    self._known[self._number(aware.timestamp())] = intensity
            if newest not in self._known:
                self._known[newest] = self.carbon_intensity_provider.get_current_carbon_intensity()
        except Exception as error:  # the provider's own, which must not end a training
            warnings.warn(f"the carbon intensity is not known: {error}", RuntimeWarning, stacklevel=3)
