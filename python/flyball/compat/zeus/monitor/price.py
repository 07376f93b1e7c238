# SPDX-License-Identifier: Apache-2.0
"""What the energy of windows of a program costs, by a tariff whose rates depend on month, day and hour."""

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
from datetime import datetime
from enum import Enum
from typing import Any, Literal

from flyball.compat.zeus.exception import ZeusBaseError
from flyball.compat.zeus.monitor.periods import PeriodMonitor

_PERIOD_S = 900.0  # hours of all time zones begin at one of these
_SATURDAY = 5
_TIMEOUT_S = 30.0


def get_time_info() -> tuple[str, str, int]:
    """The month's name, 'Weekday' or 'Weekend', and the hour, by the machine's clock and zone."""
    now = datetime.now()
    return now.strftime("%B"), "Weekend" if now.weekday() >= _SATURDAY else "Weekday", now.hour


class ZeusElectricityPriceHTTPError(ZeusBaseError):
    """The provider cannot be reached, or refuses."""


class ZeusElectricityPriceNotFoundError(ZeusBaseError):
    """The provider has no such tariff for this place."""


class ElectricityPriceProvider(abc.ABC):
    """Who knows what electricity costs."""

    @abc.abstractmethod
    def get_current_electricity_prices(self) -> dict[str, list[Any]]:
        """The tariff.

        energy_rate_structure     of each period of the tariff, its tiers, of which the first one's `rate` is per kWh
        energy_weekday_schedule   the period's number by month and hour, from 0
        energy_weekend_schedule   the same of Saturdays and Sundays
        """


class OpenEIClient(ElectricityPriceProvider):
    """The utility rates of OpenEI.

    location  latitude and longitude, in degrees
    label     the tariff's own
    sector    whose tariffs are looked at
    radius    how far around they are looked for, in miles

    FLYBALL_OPENEI_KEY is sent as the key, and FLYBALL_OPENEI_URL names another address.
    """

    def __init__(
        self,
        location: tuple[float, float],
        label: str,
        sector: Literal["Residential", "Commercial", "Industrial", "Lighting"] = "Residential",
        radius: int = 0,
    ) -> None:
        self.lat, self.long = location
        self.label = label
        self.sector = sector
        self.radius = radius

    def search_json(self, data: Any, key_name: str, target_value: str, return_value: str) -> list[Any]:
        """The members `return_value` of all objects whose member `key_name` is `target_value`; None where one lacks it."""
        found: list[Any] = []
        if isinstance(data, dict):
            found += [data.get(return_value)] if key_name in data and data[key_name] == target_value else []
            data = list(data.values())
        for item in data if isinstance(data, list) else []:
            found += self.search_json(item, key_name, target_value, return_value)
        return found

    def get_current_electricity_prices(self) -> dict[str, list[Any]]:
        """The tariff. Raises ZeusElectricityPriceHTTPError, ZeusElectricityPriceNotFoundError."""
        data, prices = self._ask(), {}
        for name, theirs in (
            ("energy_rate_structure", "energyratestructure"),
            ("energy_weekday_schedule", "energyweekdayschedule"),
            ("energy_weekend_schedule", "energyweekendschedule"),
        ):
            found = [value for value in self.search_json(data, "label", self.label, theirs) if value]
            if not found:
                raise ZeusElectricityPriceNotFoundError(f"no {name} of the tariff '{self.label}' at {self.lat}, {self.long}")
            prices[name] = found[0]
        return prices

    def _ask(self) -> Any:
        address = os.environ.get("FLYBALL_OPENEI_URL", "https://api.openei.org").rstrip("/")
        key = os.environ.get("FLYBALL_OPENEI_KEY")
        if key is None:
            raise ZeusElectricityPriceHTTPError("OpenEI wants a key; get one there, and put it into FLYBALL_OPENEI_KEY")
        query = {
            "version": "latest",
            "format": "json",
            "api_key": key,
            "lat": self.lat,
            "lon": self.long,
            "radius": self.radius,
            "detail": "full",
            "sector": self.sector,
        }
        try:
            with urllib.request.urlopen(f"{address}/utility_rates?{urllib.parse.urlencode(query)}", timeout=_TIMEOUT_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")
            raise ZeusElectricityPriceHTTPError(f"OpenEI answers {error.code}: {said}") from error
        except (OSError, ValueError) as error:
            raise ZeusElectricityPriceHTTPError(f"no answer from OpenEI: {error}") from error


@dataclass
class EnergyCostMeasurement:
    """What a window held: s, J by device, and the tariff's currency by device; NaN where it is not known."""

    time: float
    gpu_energy: dict[int, float]
    gpu_energy_cost: dict[int, float]
    cpu_energy: dict[int, float] | None = None
    cpu_energy_cost: dict[int, float] | None = None
    dram_energy: dict[int, float] | None = None
    dram_energy_cost: dict[int, float] | None = None


class Op(Enum):
    """What happens to a window; nothing here takes one."""

    BEGIN = 0
    END = 1
    NEXTITER = 2


def rate_at(prices: dict[str, list[Any]], when: datetime) -> float:
    """The tariff's rate per kWh at that local time."""
    schedule = prices["energy_weekend_schedule" if when.weekday() >= _SATURDAY else "energy_weekday_schedule"]
    return float(prices["energy_rate_structure"][schedule[when.month - 1][when.hour]][0]["rate"])


class EnergyCostMonitor(PeriodMonitor):
    """Measures what the energy of named windows costs, any number of them at once.

    electricity_price_provider  whose tariff counts; it is asked when a window ends, once
    gpu_indices, cpu_indices, sync_execution_with  as of ZeusMonitor

    The tariff's hours are those of the machine's time zone. Costs are NaN, with a warning, while no tariff is known.
    """

    def __init__(
        self,
        electricity_price_provider: ElectricityPriceProvider,
        gpu_indices: list[int] | None = None,
        cpu_indices: list[int] | None = None,
        sync_execution_with: Literal["torch", "jax", "cupy"] = "torch",
    ) -> None:
        super().__init__(gpu_indices, cpu_indices, sync_execution_with, _PERIOD_S)
        self.electricity_price_provider = electricity_price_provider
        self._prices: dict[str, list[Any]] | None = None

    def end_window(self, key: str, sync_execution: bool = True) -> EnergyCostMeasurement:
        """Ends the window of that name and returns what it held. Raises ValueError if no window of that name is open."""
        measured, edges = self._end(key, sync_execution)
        rates = self._rates(edges)
        monitor = self.zeus_monitor
        return EnergyCostMeasurement(
            measured.time,
            measured.gpu_energy,
            self._weighed(measured.gpu_energy, monitor._gpus, edges, rates),
            measured.cpu_energy,
            self._weighed(measured.cpu_energy, monitor._cpus, edges, rates) or None,
            measured.dram_energy,
            self._weighed(measured.dram_energy, monitor._drams, edges, rates) or None,
        )

    def _rates(self, edges: list[float]) -> list[float]:
        """The rate of each part between edges."""
        try:
            if self._prices is None:
                self._prices = self.electricity_price_provider.get_current_electricity_prices()
            middles = (0.5 * (before + after) for before, after in zip(edges, edges[1:]))
            return [rate_at(self._prices, datetime.fromtimestamp(middle)) for middle in middles]
        except Exception as error:  # the provider's own, which must not end a training
            warnings.warn(f"the price of electricity is not known: {error}", RuntimeWarning, stacklevel=3)
            return [math.nan] * (len(edges) - 1)
