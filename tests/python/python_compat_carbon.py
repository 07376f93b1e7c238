# SPDX-License-Identifier: Apache-2.0
"""The carbon monitor of flyball.compat.zeus, on emulated GPUs, with providers made up here.

usage: python_compat_carbon.py FLYBALL SOURCE_ROOT
"""

import http.server
import json
import math
import threading
import time
import urllib.parse
import warnings
from datetime import datetime, timedelta, timezone

import tap
from zeus_machine import machine, raised, variables

from flyball.compat.zeus.monitor import carbon
from flyball.compat.zeus.monitor.carbon import CarbonEmissionMonitor, CarbonIntensityProvider, ElectrictyMapsClient
from flyball.compat.zeus.monitor.periods import split

PERIOD_S = 0.2


class Provider(CarbonIntensityProvider):
    """One intensity for all of the last periods, which are short, or none."""

    def __init__(self, past, now):
        self.past, self.now, self.asked = past, now, []

    def get_current_carbon_intensity(self):
        self.asked.append("now")
        if self.now is None:
            raise RuntimeError("closed on Mondays")
        return self.now

    def get_recent_carbon_intensity(self):
        self.asked.append("past")
        newest = math.floor(time.time() / PERIOD_S)
        dates = (datetime.fromtimestamp((newest - i + 0.01) * PERIOD_S, timezone.utc) for i in range(1, 3000))
        return {date: self.past for date in dates} if self.past is not None else {}

    @property
    def update_period(self):
        return timedelta(seconds=PERIOD_S)

    @property
    def history_length(self):
        return 3000


def measured(provider, length_s):
    with machine(), warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        monitor = CarbonEmissionMonitor(provider, gpu_indices=[1])
        monitor.begin_window("epoch")
        raised(ValueError, monitor.begin_window, "epoch")
        time.sleep(length_s)
        window = monitor.end_window("epoch")
        raised(ValueError, monitor.end_window, "epoch")
    return window, [str(warning.message) for warning in heard]


def test_one_intensity():
    window, heard = measured(Provider(400.0, 400.0), 3 * PERIOD_S)
    tap.equal((list(window.gpu_energy), list(window.gpu_carbon_emission), heard), ([1], [1], []))
    tap.equal(math.isclose(window.gpu_carbon_emission[1], window.gpu_energy[1] / 3.6e6 * 400.0, rel_tol=1e-9), True, window)
    tap.equal((window.cpu_carbon_emission is None, window.dram_carbon_emission is None, window.time > 0),
              (window.cpu_energy is None, window.dram_energy is None, True))


def test_two_intensities():
    """The emission lies between those of the two: the newest part may be too short to be seen."""
    window, _ = measured(Provider(100.0, 900.0), 3 * PERIOD_S)
    kwh = window.gpu_energy[1] / 3.6e6
    tap.equal(99.9 * kwh < window.gpu_carbon_emission[1] < 900.0 * kwh, True, window)


def test_unknown_is_no_number():
    window, heard = measured(Provider(None, 900.0), 3 * PERIOD_S)
    tap.equal((math.isnan(window.gpu_carbon_emission[1]), window.gpu_energy[1] > 0), (True, True))
    window, heard = measured(Provider(100.0, None), 3 * PERIOD_S)
    tap.equal((math.isnan(window.gpu_carbon_emission[1]), heard), (True, ["the carbon intensity is not known: closed on Mondays"]))


def test_parts():
    line = [(0.0, 0.0), (10.0, 100.0), (20.0, 400.0)]
    for energy_j, timeline, edges, parts in (
        (40.0, line, [0.0, 20.0], [40.0]),
        (40.0, line, [0.0, 10.0, 20.0], [10.0, 30.0]),
        (40.0, line, [5.0, 10.0, 15.0], [10.0, 30.0]),
        (40.0, [], [0.0, 10.0, 40.0], [10.0, 30.0]),
        (40.0, [(0.0, 7.0), (40.0, 7.0)], [0.0, 10.0, 40.0], [10.0, 30.0]),
        (40.0, [], [5.0, 5.0], [40.0]),
    ):
        tap.equal(split(energy_j, timeline, edges), parts, (timeline, edges))


class Maps(http.server.BaseHTTPRequestHandler):
    """Electricity Maps, with an answer of the test's choice."""

    answer, asked = (200, {}), []

    def do_GET(self):
        self.asked.append((self.path, self.headers["auth-token"]))
        self.send_response(self.answer[0])
        self.end_headers()
        self.wfile.write(json.dumps(self.answer[1]).encode())

    def log_message(self, *_):
        pass


def test_electricity_maps():
    server = http.server.HTTPServer(("127.0.0.1", 0), Maps)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        with variables(FLYBALL_ELECTRICITY_MAPS_URL=f"http://127.0.0.1:{server.server_port}/v3/", FLYBALL_ELECTRICITY_MAPS_KEY="secret"):
            client = ElectrictyMapsClient((42.28, -83.74), emission_factor_type="lifecycle")
            Maps.answer = (200, {"carbonIntensity": 302, "zone": "DE"})
            tap.equal(client.get_current_carbon_intensity(), 302.0)
            path, key = Maps.asked[0]
            tap.equal((urllib.parse.urlsplit(path).path, key), ("/v3/carbon-intensity/latest", "secret"))
            tap.equal(urllib.parse.parse_qs(urllib.parse.urlsplit(path).query),
                      {"lat": ["42.28"], "lon": ["-83.74"], "disableEstimations": ["true"], "emissionFactorType": ["lifecycle"]})
            hours = [{"datetime": "2024-11-30T06:00:00.000Z", "carbonIntensity": 5}, {"datetime": "2024-11-30T07:00:00.000Z", "carbonIntensity": None}]
            Maps.answer = (200, {"history": hours})
            tap.equal(client.get_recent_carbon_intensity(), {datetime(2024, 11, 30, 6, tzinfo=timezone.utc): 5.0})
            Maps.answer = (200, {"error": "no such place"})
            raised(carbon.ZeusCarbonIntensityNotFoundError, client.get_current_carbon_intensity)
            raised(carbon.ZeusCarbonIntensityNotFoundError, client.get_recent_carbon_intensity)
            Maps.answer = (401, {"error": "Invalid auth-token"})
            tap.contains(str(raised(carbon.ZeusCarbonIntensityHTTPError, client.get_current_carbon_intensity)), "Invalid auth-token")
        tap.equal((client.update_period, client.history_length), (timedelta(hours=1), 24))
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


tap.main(globals())
