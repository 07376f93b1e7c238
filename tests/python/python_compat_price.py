# SPDX-License-Identifier: Apache-2.0
"""The cost monitor of flyball.compat.zeus, on emulated GPUs, with tariffs made up here.

usage: python_compat_price.py FLYBALL SOURCE_ROOT
"""

import http.server
import json
import math
import threading
import time
import urllib.parse
import warnings
from datetime import datetime

import tap
from zeus_machine import machine, raised, variables

from flyball.compat.zeus.monitor import price
from flyball.compat.zeus.monitor.price import ElectricityPriceProvider, EnergyCostMonitor, OpenEIClient

FLAT = [[0] * 24 for _ in range(12)]


def tariff(day_rate, night_rate=0.0):
    """Nights end at six on weekdays; weekends are all day. July's noon is at the night's rate."""
    weekday = [[1] * 6 + [0] * 18 for _ in range(12)]
    weekday[6][12] = 1
    return {
        "energy_rate_structure": [[{"rate": day_rate, "adj": 5.0}, {"rate": 9.0}], [{"rate": night_rate}]],
        "energy_weekday_schedule": weekday,
        "energy_weekend_schedule": FLAT,
    }


class Provider(ElectricityPriceProvider):
    def __init__(self, prices):
        self.prices, self.asked = prices, 0

    def get_current_electricity_prices(self):
        self.asked += 1
        if self.prices is None:
            raise RuntimeError("closed on Mondays")
        return self.prices


def test_rates():
    prices = tariff(0.25, 0.125)
    for when, rate in (
        (datetime(2024, 11, 29, 5, 59), 0.125),
        (datetime(2024, 11, 29, 6, 0), 0.25),
        (datetime(2024, 11, 30, 5, 59), 0.25),
        (datetime(2024, 12, 1, 0, 0), 0.25),
        (datetime(2024, 7, 1, 12, 30), 0.125),
        (datetime(2024, 8, 1, 12, 30), 0.25),
    ):
        tap.equal(price.rate_at(prices, when), rate, when)
    month, day, hour = price.get_time_info()
    tap.equal((month in {datetime(2024, number, 1).strftime("%B") for number in range(1, 13)}, day in ("Weekday", "Weekend")), (True, True))
    tap.equal(0 <= hour < 24, True)


def test_costs():
    provider = Provider({**tariff(0.3), "energy_weekday_schedule": FLAT})
    with machine():
        monitor = EnergyCostMonitor(provider, gpu_indices=[1])
        for _ in range(2):
            monitor.begin_window("epoch")
            raised(ValueError, monitor.begin_window, "epoch")
            time.sleep(0.1)
            window = monitor.end_window("epoch")
            raised(ValueError, monitor.end_window, "epoch")
            tap.equal((list(window.gpu_energy_cost), window.gpu_energy[1] > 0, window.time > 0), ([1], True, True))
            tap.equal(math.isclose(window.gpu_energy_cost[1], window.gpu_energy[1] / 3.6e6 * 0.3, rel_tol=1e-9), True, window)
            tap.equal((window.cpu_energy_cost is None, window.dram_energy_cost is None), (window.cpu_energy is None, window.dram_energy is None))
        tap.equal(provider.asked, 1)


def test_unknown_is_no_number():
    wrong = {"energy_rate_structure": [], "energy_weekday_schedule": FLAT, "energy_weekend_schedule": FLAT}
    for prices, words in ((None, "closed on Mondays"), (wrong, "the price of electricity is not known")):
        with machine(), warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            monitor = EnergyCostMonitor(Provider(prices), gpu_indices=[0])
            monitor.begin_window("epoch")
            window = monitor.end_window("epoch")
        tap.equal((math.isnan(window.gpu_energy_cost[0]), len(heard)), (True, 1))
        tap.contains(str(heard[0].message), words)


class Rates(http.server.BaseHTTPRequestHandler):
    """OpenEI, with an answer of the test's choice."""

    answer, asked = (200, {}), []

    def do_GET(self):
        self.asked.append(self.path)
        self.send_response(self.answer[0])
        self.end_headers()
        self.wfile.write(json.dumps(self.answer[1]).encode())

    def log_message(self, *_):
        pass


def test_openei():
    server = http.server.HTTPServer(("127.0.0.1", 0), Rates)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        client = OpenEIClient((42.28, -83.74), "b", radius=2)
        with variables(FLYBALL_OPENEI_URL=f"http://127.0.0.1:{server.server_port}/"):
            tap.contains(str(raised(price.ZeusElectricityPriceHTTPError, client.get_current_electricity_prices)), "FLYBALL_OPENEI_KEY")
        with variables(FLYBALL_OPENEI_URL=f"http://127.0.0.1:{server.server_port}/", FLYBALL_OPENEI_KEY="secret"):
            items = [{"label": name, "energyratestructure": [[{"rate": rate}]], "energyweekdayschedule": FLAT, "energyweekendschedule": FLAT}
                     for name, rate in (("a", 1), ("b", 2))]
            Rates.answer = (200, {"items": items})
            prices = client.get_current_electricity_prices()
            tap.equal((prices["energy_rate_structure"], prices["energy_weekend_schedule"]), ([[{"rate": 2}]], FLAT))
            parts = urllib.parse.urlsplit(Rates.asked[0])
            tap.equal((parts.path, urllib.parse.parse_qs(parts.query)), ("/utility_rates", {
                "version": ["latest"], "format": ["json"], "api_key": ["secret"], "lat": ["42.28"], "lon": ["-83.74"], "radius": ["2"],
                "detail": ["full"], "sector": ["Residential"]}))
            del items[1]["energyweekendschedule"]
            raised(price.ZeusElectricityPriceNotFoundError, client.get_current_electricity_prices)
            Rates.answer = (200, {"items": []})
            raised(price.ZeusElectricityPriceNotFoundError, client.get_current_electricity_prices)
            Rates.answer = (403, {"error": "API_KEY_INVALID"})
            tap.contains(str(raised(price.ZeusElectricityPriceHTTPError, client.get_current_electricity_prices)), "API_KEY_INVALID")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


tap.main(globals())
