# SPDX-License-Identifier: Apache-2.0
"""The Prometheus metrics of flyball.compat.zeus, on emulated GPUs, with a stand-in for prometheus_client.

usage: python_compat_metric.py FLYBALL SOURCE_ROOT
"""

import contextlib
import sys
import threading
import time
import types
import warnings

import tap
from zeus_machine import LOAD_W, Stretch, machine, raised, wait_for_sensors

from flyball.compat.zeus.metric import EnergyCumulativeCounter, EnergyHistogram, PowerGauge

WHERE = {"pushgateway_url": "http://gateway:9091", "job": "training"}


class Registry:
    def __init__(self):
        self.series = {}


class Series:
    """A metric that keeps what was said of it, by its labels."""

    def __init__(self, name, words, labels, registry=None, **options):
        tap.equal((labels, bool(words)), (["window", "index"], True))
        self.options, self.said = options, {}
        registry.series[name] = self

    def labels(self, window, index):
        said = self.said.setdefault((window, index), [])
        return types.SimpleNamespace(observe=said.append, inc=said.append, set=said.append)


class Client(types.ModuleType):
    """prometheus_client, with a gateway that keeps a copy of what was pushed, or is away."""

    CollectorRegistry, Histogram, Counter, Gauge = Registry, Series, Series, Series

    def __init__(self):
        super().__init__("prometheus_client")
        self.pushed, self.away, self.changed = [], False, threading.Condition()

    def push_to_gateway(self, gateway, job, registry):
        tap.equal((gateway, job), tuple(WHERE.values()))
        with self.changed:
            self.pushed.append({name: {key: list(said) for key, said in series.said.items()} for name, series in registry.series.items()})
            self.changed.notify_all()
        if self.away:
            raise OSError("the gateway is away")

    def wait(self, pushes):
        with self.changed:
            tap.equal(self.changed.wait_for(lambda: len(self.pushed) >= pushes, tap.PATIENCE_S), True)


@contextlib.contextmanager
def client():
    sys.modules["prometheus_client"] = made = Client()
    try:
        with machine():
            yield made
    finally:
        del sys.modules["prometheus_client"]


def test_histogram():
    with client() as prometheus, warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        metric = EnergyHistogram(cpu_indices=[], gpu_indices=[1], gpu_bucket_range=[0.001, 1e9], **WHERE)
        tap.equal((metric.gpu_histograms.options, metric.cpu_histograms), ({"buckets": [0.001, 1e9]}, None))
        stretch = Stretch(lambda: metric.begin_window("epoch"))
        raised(ValueError, metric.begin_window, "epoch")
        time.sleep(0.1)
        stretch.end(lambda: metric.end_window("epoch"))
        tap.equal((list(prometheus.pushed[0]), heard), (["energy_monitor_gpu_energy_joules"], []))
        (energy_j,) = prometheus.pushed[0]["energy_monitor_gpu_energy_joules"]["epoch", 1]
        tap.equal(0.98 * LOAD_W * stretch.bounds_s[0] <= energy_j <= 1.02 * LOAD_W * stretch.bounds_s[1], True)
        raised(ValueError, metric.end_window, "epoch")
        metric = EnergyHistogram([], [0, 1], gpu_bucket_range=[1e8, 1e9], **WHERE)
        metric.begin_window("epoch")
        time.sleep(0.1)
        metric.end_window("epoch")
        tap.equal([str(warning.message)[:12] for warning in heard], ["GPU 0 energy", "GPU 1 energy"])
        for kind in ("gpu", "cpu", "dram"):
            tap.contains(str(raised(ValueError, EnergyHistogram, [], [0], **WHERE, **{f"{kind}_bucket_range": []})), kind)


def test_counter():
    with client() as prometheus:
        metric = EnergyCumulativeCounter(cpu_indices=[], gpu_indices=[0], update_period=0.05, **WHERE)
        stretch = Stretch(lambda: metric.begin_window("epoch"))
        raised(ValueError, metric.begin_window, "epoch")
        prometheus.wait(3)
        stretch.end(lambda: metric.end_window("epoch"))
        parts = prometheus.pushed[-1]["energy_monitor_gpu_energy_joules"]["epoch", 0]
        tap.equal((len(parts) >= 3, sum(parts) <= 1.02 * LOAD_W * stretch.bounds_s[1]), (True, True))
        raised(ValueError, metric.end_window, "epoch")
        pushes = len(prometheus.pushed)
        time.sleep(0.15)
        tap.equal(len(prometheus.pushed), pushes)
        raised(ValueError, EnergyCumulativeCounter, [], [0], 0, **WHERE)


def test_gauge():
    with client() as prometheus:
        wait_for_sensors()
        metric = PowerGauge(gpu_indices=[0, 1], update_period=1000, **WHERE)
        metric.begin_window("epoch", sync_execution=True)
        prometheus.wait(1)
        metric.end_window("epoch", sync_execution=True)
        for pushed in prometheus.pushed:
            tap.equal({key: said[-1] for key, said in pushed["power_monitor_gpu_power_watts"].items()},
                      {("epoch", 0): LOAD_W, ("epoch", 1): LOAD_W})
        tap.equal((len(prometheus.pushed), metric.window_state), (2, {}))


def test_a_gateway_that_is_away():
    with client() as prometheus, warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        prometheus.away = True
        metric = PowerGauge([0], 0.05, **WHERE)
        metric.begin_window("epoch")
        prometheus.wait(3)
        metric.end_window("epoch")
        tap.equal({str(warning.message) for warning in heard}, {"a metric was not pushed: the gateway is away"})
        histogram = EnergyHistogram([], [0], **WHERE)
        histogram.begin_window("epoch")
        raised(OSError, histogram.end_window, "epoch")


def test_without_the_package():
    sys.modules["prometheus_client"] = None
    try:
        tap.contains(str(raised(ImportError, PowerGauge, [0], 1, **WHERE)), "install it")
        raised(ImportError, EnergyHistogram, [], [0], **WHERE)
    finally:
        del sys.modules["prometheus_client"]


tap.main(globals())
