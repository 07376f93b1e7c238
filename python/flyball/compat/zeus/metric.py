# SPDX-License-Identifier: Apache-2.0
"""Energy and power of windows as metrics of Prometheus, through its push gateway.

These classes need the package prometheus_client, which is imported when one of them is made.
"""

from __future__ import annotations

import abc
import importlib
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from flyball.compat.zeus.monitor.energy import Measurement, ZeusMonitor
from flyball.compat.zeus.monitor.power import PowerMonitor
from flyball.compat.zeus.utils.framework import sync_execution as sync_execution_fn

_LABELS = ["window", "index"]
_JOIN_S = 20.0


def _client() -> Any:
    try:
        return importlib.import_module("prometheus_client")
    except ImportError as error:
        raise ImportError("metrics of Prometheus need the package prometheus_client; install it") from error


def _kinds(monitor: ZeusMonitor) -> list[str]:
    """The kinds of devices whose energy the monitor reads."""
    places = {"gpu": monitor._gpus, "cpu": monitor._cpus, "dram": monitor._drams}
    return [kind for kind, found in places.items() if found]


def _energies(measured: Measurement) -> list[tuple[str, int, float]]:
    """Kind, index and J of each device whose energy is known."""
    kinds = {"gpu": measured.gpu_energy, "cpu": measured.cpu_energy, "dram": measured.dram_energy}
    return [(kind, index, energy_j) for kind, found in kinds.items() for index, energy_j in (found or {}).items() if energy_j >= 0]


class Metric(abc.ABC):
    """A metric of named windows."""

    @abc.abstractmethod
    def begin_window(self, name: str, sync_execution: bool = True) -> None:
        """Begins the window of that name."""

    @abc.abstractmethod
    def end_window(self, name: str, sync_execution: bool = True) -> None:
        """Ends the window of that name."""


class EnergyHistogram(Metric):
    """How often windows of a name took how much energy: energy_monitor_gpu_energy_joules, and of cpu and dram.

    cpu_indices, gpu_indices  as of ZeusMonitor
    pushgateway_url, job      where to, and under which name
    gpu_bucket_range, cpu_bucket_range, dram_bucket_range  upper bounds of the buckets, in J

    Raises ValueError without buckets, ImportError without prometheus_client.
    """

    def __init__(
        self,
        cpu_indices: list[int],
        gpu_indices: list[int],
        pushgateway_url: str,
        job: str,
        gpu_bucket_range: Sequence[float] = (50.0, 100.0, 200.0, 500.0, 1000.0),
        cpu_bucket_range: Sequence[float] = (10.0, 50.0, 100.0, 500.0, 1000.0),
        dram_bucket_range: Sequence[float] = (5.0, 10.0, 20.0, 50.0, 150.0),
    ) -> None:
        self.cpu_indices = cpu_indices
        self.gpu_indices = gpu_indices
        self.pushgateway_url = pushgateway_url
        self.job = job
        self.gpu_bucket_range = gpu_bucket_range
        self.cpu_bucket_range = cpu_bucket_range
        self.dram_bucket_range = dram_bucket_range
        self._buckets = {"gpu": gpu_bucket_range, "cpu": cpu_bucket_range, "dram": dram_bucket_range}
        for kind, bounds in self._buckets.items():
            if not bounds:
                raise ValueError(f"{kind}_bucket_range is empty; give upper bounds in J, or leave it out")
        self._prometheus = _client()
        self.registry = self._prometheus.CollectorRegistry()
        self.energy_monitor = ZeusMonitor(gpu_indices, cpu_indices)
        self._histograms = {kind: self._histogram(kind) for kind in _kinds(self.energy_monitor)}
        self.gpu_histograms = self._histograms.get("gpu")
        self.cpu_histograms = self._histograms.get("cpu")
        self.dram_histograms = self._histograms.get("dram")

    def _histogram(self, kind: str) -> Any:
        name, words = f"energy_monitor_{kind}_energy_joules", f"Energy of a window, {kind.upper()}"
        return self._prometheus.Histogram(name, words, _LABELS, buckets=self._buckets[kind], registry=self.registry)

    def begin_window(self, name: str, sync_execution: bool = True) -> None:
        """Begins a window. Raises ValueError for one that is open."""
        self.energy_monitor.begin_window(f"__EnergyHistogram_{name}", sync_execution)

    def end_window(self, name: str, sync_execution: bool = True) -> None:
        """Counts the window of that name, and pushes. Raises ValueError if it is not open, OSError without a gateway."""
        measured = self.energy_monitor.end_window(f"__EnergyHistogram_{name}", sync_execution)
        for kind, index, energy_j in _energies(measured):
            self._histograms[kind].labels(window=name, index=index).observe(energy_j)
            bounds = self._buckets[kind]
            if not min(bounds) <= energy_j <= max(bounds):
                words = f"{kind.upper()} {index} energy {energy_j} J lies outside of the buckets, {min(bounds)} to {max(bounds)} J"
                warnings.warn(words, stacklevel=2)
        self._prometheus.push_to_gateway(self.pushgateway_url, job=self.job, registry=self.registry)


@dataclass
class _Repeated:
    """What a thread does again and again, and once more at its end."""

    act: Callable[[], None]
    period_s: float
    first_s: float  # until it is first done
    close: Callable[[], None]
    ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        over, wait_s = False, self.first_s
        while not over:
            over, wait_s = self.ended.wait(wait_s), self.period_s
            try:
                self.act()
            except Exception as error:  # such as a gateway that is away, which must not end a training
                warnings.warn(f"a metric was not pushed: {error}", RuntimeWarning, stacklevel=1)
        self.close()

    def end(self) -> None:
        self.ended.set()
        self.thread.join(_JOIN_S)


class _PushedMetric(Metric):
    """What a thread pushes while a window is open."""

    def __init__(self, gpu_indices: list[int], update_period: float, pushgateway_url: str, job: str) -> None:
        if not update_period > 0:
            raise ValueError(f"update_period is {update_period}; give seconds above 0")
        self.gpu_indices = gpu_indices
        self.update_period = update_period
        self.pushgateway_url = pushgateway_url
        self.job = job
        self.window_state: dict[str, _Repeated] = {}
        self._prometheus = _client()

    @abc.abstractmethod
    def _start(self, name: str, registry: Any) -> _Repeated:
        """Starts the window's thread, which pushes what the registry has."""

    def _push(self, registry: Any) -> None:
        self._prometheus.push_to_gateway(self.pushgateway_url, job=self.job, registry=registry)

    def begin_window(self, name: str, sync_execution: bool = False) -> None:
        """Begins a window. Raises ValueError for one that is open."""
        if name in self.window_state:
            raise ValueError(f"the window '{name}' already exists")
        if sync_execution:
            sync_execution_fn(self.gpu_indices)
        self.window_state[name] = self._start(name, self._prometheus.CollectorRegistry())

    def end_window(self, name: str, sync_execution: bool = False) -> None:
        """Ends the window of that name, and pushes once more. Raises ValueError if it is not open."""
        if name not in self.window_state:
            raise ValueError(f"the window '{name}' does not exist")
        if sync_execution:
            sync_execution_fn(self.gpu_indices)
        self.window_state.pop(name).end()


class EnergyCumulativeCounter(_PushedMetric):
    """The energy since a window began: energy_monitor_gpu_energy_joules_total, and of cpu and dram.

    cpu_indices, gpu_indices  as of ZeusMonitor
    update_period             s between two pushes
    pushgateway_url, job      where to, and under which name

    Raises ImportError without prometheus_client.
    """

    def __init__(self, cpu_indices: list[int], gpu_indices: list[int], update_period: float, pushgateway_url: str, job: str) -> None:
        super().__init__(gpu_indices, update_period, pushgateway_url, job)
        self.cpu_indices = cpu_indices

    def _start(self, name: str, registry: Any) -> _Repeated:
        monitor = ZeusMonitor(self.gpu_indices, self.cpu_indices)
        counters = {
            kind: self._prometheus.Counter(
                f"energy_monitor_{kind}_energy_joules", f"Energy since the window began, {kind.upper()}", _LABELS, registry=registry
            )
            for kind in _kinds(monitor)
        }
        window = f"__EnergyCumulativeCounter_{name}"
        monitor.begin_window(window, sync_execution=False)

        def count() -> None:
            measured = monitor._end(window, sync_execution=False)
            monitor.begin_window(window, sync_execution=False)
            for kind, index, energy_j in _energies(measured):
                counters[kind].labels(window=name, index=index).inc(energy_j)
            self._push(registry)

        return _Repeated(count, self.update_period, self.update_period, monitor.reset_windows)


class PowerGauge(_PushedMetric):
    """The power of GPUs while a window is open: power_monitor_gpu_power_watts.

    gpu_indices           as of PowerMonitor
    update_period         s between two pushes
    pushgateway_url, job  where to, and under which name

    Raises ImportError without prometheus_client.
    """

    def _start(self, name: str, registry: Any) -> _Repeated:
        monitor = PowerMonitor(self.gpu_indices)
        gauge = self._prometheus.Gauge("power_monitor_gpu_power_watts", "Power of a GPU", _LABELS, registry=registry)

        def show() -> None:
            for index, power_w in (monitor.get_power() or {}).items():
                gauge.labels(window=name, index=index).set(power_w)
            self._push(registry)

        return _Repeated(show, self.update_period, 0.0, monitor.stop)
