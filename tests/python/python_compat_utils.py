# SPDX-License-Identifier: Apache-2.0
"""What programs written for the public project Zeus import besides its classes, over flyball.compat.zeus.

usage: python_compat_utils.py FLYBALL SOURCE_ROOT
"""

import http.server
import os
import pathlib
import re
import socket
import sys
import threading
import time
import warnings

import tap
from zeus_machine import HOME, LOAD_W, Stretch, machine, raised, variables

from flyball.compat.zeus.monitor import ZeusMonitor
from flyball.compat.zeus.monitor.energy import Measurement
from flyball.compat.zeus.optimizer import power_limit
from flyball.compat.zeus.utils import lat_lon, measure
from flyball.compat.zeus.utils.env import get_env
from flyball.compat.zeus.utils.lr_scaler import LinearScaler, SquareRootScaler
from flyball.compat.zeus.utils.metric import zeus_cost
from flyball.compat.zeus.utils.testing import ReplayZeusMonitor


def test_variables():
    with variables(ZT_WHOLE="12", ZT_TEXT="a b", ZT_YES="True", ZT_NO="false", ZT_WRONG="yes"):
        tap.equal((get_env("ZT_WHOLE", int), get_env("ZT_TEXT", str)), (12, "a b"))
        tap.equal((get_env("ZT_YES", bool), get_env("ZT_NO", bool, True)), (True, False))
        raised(ValueError, get_env, "ZT_WRONG", bool)
        raised(ValueError, get_env, "ZT_TEXT", float, 1.0)
        tap.equal(get_env("ZT_WHOLE", int, default=5), 12)
    tap.contains(str(raised(ValueError, get_env, "ZT_WHOLE", int)), "ZT_WHOLE")
    tap.equal(get_env("ZT_WHOLE", int, default=5), 5)


def test_scalers_and_cost():
    tap.equal((LinearScaler(bs=64, lr=0.01).compute_lr(new_bs=256), SquareRootScaler(64, 0.01).compute_lr(256)), (0.04, 0.02))
    tap.equal(zeus_cost(energy=100.0, time=2.0, eta_knob=0.25, max_power=300), 25.0 + 450.0)


class Counted:
    """A monitor that tells one energy of every window."""

    def __init__(self, energy_j):
        self.energy_j, self.calls = energy_j, []

    def begin_window(self, key):
        self.calls.append(("begin", key))

    def end_window(self, key, cancel=False):
        self.calls.append(("cancel" if cancel else "end", key))
        return Measurement(1.0, {0: self.energy_j})


def test_calls_are_measured():
    with machine():
        stretch = Stretch(lambda: None)
        stretch.end(lambda: measure(time.sleep, [0.1], num_repeats=3))
        tap.equal((stretch.measured.time >= 0.3, 0.3 * LOAD_W <= 1.02 * stretch.measured.gpu_energy[1]), (True, True))
    seen, counted = [], Counted(2.0)
    tap.equal(measure(lambda *given, **named: seen.append((given, named)), (1, 2), {"a": 3}, zeus_monitor=counted).time, 1.0)
    tap.equal((seen, [call for call, _ in counted.calls]), ([((1, 2), {"a": 3})], ["begin", "end"]))
    raised(ZeroDivisionError, measure, lambda: 1 / 0, zeus_monitor=counted)
    tap.equal([call for call, _ in counted.calls[2:]], ["begin", "cancel"])
    raised(ValueError, measure, print, num_repeats=0, zeus_monitor=counted)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        measure(int, zeus_monitor=Counted(0.0))
    tap.equal(len(heard), 1)


def test_windows_without_energy():
    with machine(settings=("--counter-period-ms", "60000")), warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for approximate in (False, True):
            monitor = ZeusMonitor([0], approx_instant_energy=approximate)
            monitor.begin_window("moment")
            monitor.end_window("moment")
    tap.equal(["measured as zero" in str(warning.message) for warning in heard], [True])
    tap.equal([os.path.realpath(warning.filename) for warning in heard], [os.path.realpath(__file__)])


def test_words_of_misuse():
    with machine():
        monitor = ZeusMonitor()
        monitor.begin_window("epoch")
        tap.contains(str(raised(ValueError, monitor.begin_window, "epoch")), "already exists")
        tap.contains(str(raised(ValueError, monitor.end_window, "step")), "does not exist")


def test_replay():
    path = os.path.join(HOME.name, "logs", "of", "energy.csv")
    with machine():
        monitor = ZeusMonitor([1], log_file=path)
        measured = []
        for name in ("one, two", "three"):
            monitor.begin_window(name)
            time.sleep(0.05)
            measured.append(monitor.end_window(name))
    replay = ReplayZeusMonitor(log_file=path)
    tap.equal((replay.gpu_indices, isinstance(replay, ZeusMonitor)), ([1], True))
    replay.begin_window("three")
    replay.begin_window("one, two")
    tap.contains(str(raised(RuntimeError, replay.begin_window, "three")), "is already ongoing")
    first = replay.end_window("one, two")
    tap.equal((first.time, first.gpu_energy), (measured[0].time, measured[0].gpu_energy))
    replay.begin_window("dropped")
    tap.equal(replay.end_window("dropped", cancel=True), Measurement(0.0, {1: 0.0}))
    replay.begin_window("four")
    tap.equal(replay.end_window("three").gpu_energy, measured[1].gpu_energy)
    tap.contains(str(raised(RuntimeError, replay.end_window, "four")), "no more windows")
    tap.contains(str(raised(RuntimeError, replay.end_window, "four")), "is not ongoing")
    other = ReplayZeusMonitor(log_file=path)
    other.begin_window("five")
    tap.contains(str(raised(RuntimeError, other.end_window, "five")), "one, two")
    anything = ReplayZeusMonitor([7], log_file=path, match_window_name=False)
    anything.begin_window("five")
    tap.equal(anything.end_window("five").gpu_energy, {7: measured[0].gpu_energy[1]})
    two = ReplayZeusMonitor([0, 1], log_file=path, match_window_name=False)
    two.begin_window("five")
    raised(RuntimeError, two.end_window, "five")
    raised(ValueError, ReplayZeusMonitor)


def test_limits_of_a_replay():
    """A search over a recorded profile ends where its selector says."""
    path = os.path.join(HOME.name, "profile.csv")
    with open(path, "w", encoding="utf-8") as file:
        file.write("start_time,window_name,elapsed_time,gpu0_energy\n")
        for limit_w, time_s, energy_j in ((400, 1.0, 300.0), (300, 1.1, 250.0), (200, 1.4, 230.0), (100, 3.0, 280.0)):
            file.write(f"5.0,__GlobalPowerLimitOptimizer_{limit_w},{time_s},{energy_j}\n")
    for selector, limit_w in ((power_limit.Energy(), 200), (power_limit.Time(), 400), (power_limit.MaxSlowdownConstraint(1.2), 300)):
        with machine(gpus=1, settings=("--any-user=yes",)):
            monitor = ReplayZeusMonitor(log_file=path, ignore_sync_execution=True)
            found = power_limit.GlobalPowerLimitOptimizer(monitor, selector, warmup_steps=2, profile_steps=3, pl_step=100)
            while not isinstance(found.state, power_limit.Done):
                found.on_epoch_begin()
                for _ in range(9):
                    found.on_step_begin()
                    found.on_step_end()
                found.on_epoch_end()
            tap.equal(found.state.optimal_power_limit, limit_w * 1000)
            del found


class Place(http.server.BaseHTTPRequestHandler):
    """Stands in for ipinfo.io: `said` is sent at once, and then nothing, or a byte now and then for ever."""

    said, goes_on, asked = b"", threading.Event(), 0

    def log_message(self, *_):
        pass

    def do_GET(self):
        Place.asked += 1
        self.send_response(200)
        if not Place.goes_on.is_set():
            self.send_header("Content-Length", str(len(Place.said)))
        self.end_headers()
        try:
            self.wfile.write(Place.said)
            while Place.goes_on.is_set():
                self.wfile.write(b" ")
                time.sleep(0.01)
        except OSError:
            pass


def test_place():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Place)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    before, proxies = (lat_lon._SERVICE, lat_lon._TIMEOUT_S), os.environ.pop("http_proxy", None)
    lat_lon._SERVICE = f"http://127.0.0.1:{server.server_address[1]}/json"
    try:
        tap.equal(Place.asked, 0)
        Place.said = b'{"loc": "42.2776,-83.7409"}'
        tap.equal((lat_lon.get_ip_lat_long(), Place.asked), ((42.2776, -83.7409), 1))
        for said in (b'{"bogon": true}', b"<html>", b"", b'{"loc": 7}', b"[1]", b'{"loc": "1,2,3"}', b"\xff"):
            Place.said = said
            tap.contains(str(raised(ValueError, lat_lon.get_ip_lat_long)), "does not know this place")
        lat_lon._TIMEOUT_S = 0.3
        Place.goes_on.set()
        tap.contains(str(raised(OSError, lat_lon.get_ip_lat_long)), "did not say where this machine is: ")
        Place.goes_on.clear()
    finally:
        server.shutdown()
        server.server_close()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        lat_lon._SERVICE = f"http://127.0.0.1:{silent.getsockname()[1]}/json"
        tap.contains(str(raised(OSError, lat_lon.get_ip_lat_long)), "did not say where this machine is: ")
    tap.contains(str(raised(OSError, lat_lon.get_ip_lat_long)), "give latitude and longitude yourself")
    (lat_lon._SERVICE, lat_lon._TIMEOUT_S) = before
    if proxies is not None:
        os.environ["http_proxy"] = proxies


def test_nobody_asks_unless_called():
    """No other file of the package names the function or the service."""
    package = pathlib.Path(sys.argv[2]) / "python" / "flyball"
    named = {path.name for path in package.rglob("*.py") if re.search("get_ip_lat_long|lat_lon|ipinfo", path.read_text())}
    tap.equal(named, {"lat_lon.py"})


tap.main(globals())
