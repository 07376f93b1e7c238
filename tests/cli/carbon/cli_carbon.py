# SPDX-License-Identifier: Apache-2.0
"""`flyball carbon` from outside, against stand-ins of every service: right answers, wrong ones, and none.

usage: cli_carbon.py FLYBALL
"""
import concurrent.futures
import contextlib
import csv
import io
import json
import os
import pathlib
import sys
import tempfile
import time

import standin_grid
import svg_texts
import tap
from standin_grid import stamp, value_at

FLYBALL = os.path.abspath(sys.argv[1])
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith(("FLYBALL_", "XDG_", "NO_COLOR")) and not name.lower().endswith("_proxy")}
DAY = 86400

# source, options, length of a period, what is added to the course, signal, scope, qualities of old values
SERVICES = (
    ("gb:national", (), 1800, 0, "average", "direct", "estimated"),
    ("electricity-maps:DE", (), 3600, 50, "average", "life cycle", "measured"),
    ("electricity-maps:DE", ("--scope=direct",), 3600, 0, "average", "direct", "measured"),
    ("watttime:CAISO_NORTH", (), 300, 0, "marginal", "direct", "estimated"),
    ("watttime:CAISO_NORTH", ("--signal=average",), 300, 0, "average", "direct", "estimated"),
    ("carbon-aware:eastus", (), 300, 0.25, "unknown", "unknown", "measured"),
    ("carbon-aware:eastus", ("--signal=marginal", "--scope=direct"), 300, 0.25, "marginal", "direct", "measured"),
)


@contextlib.contextmanager
def machine():
    """A stand-in, a directory for the cache, and a way to call the program with both."""
    with standin_grid.Grid() as grid, tempfile.TemporaryDirectory(prefix="flyball-carbon-") as home:
        cache = pathlib.Path(home, "cache")

        def call(*arguments, **environment):
            everything = {**CLEAN, "HOME": home, **grid.environment(cache), **environment}
            return tap.run([FLYBALL, "carbon", *arguments], cwd=home,
                           env={name: value for name, value in everything.items() if value is not None})

        def document(*arguments, **environment):
            result = call(*arguments, "--format=json", "--quiet", **environment)
            tap.equal(result.returncode, 0, result.stderr)
            return json.loads(result.stdout)
        yield grid, cache, call, document


def old_day(days=20):
    """A day that nobody revises any more, as two options and two seconds."""
    start = (int(time.time()) // DAY - days) * DAY
    return (f"--from={stamp(start)}", f"--to={stamp(start + DAY)}"), start


def in_one_period(step, check):
    """Runs a check anew until no period of that length ended during it."""
    while True:
        period = time.time() // step
        try:
            check()
        except AssertionError:
            if time.time() // step == period:
                raise
        else:
            return


def test_history_of_every_service():
    with machine() as (grid, _cache, _call, document):
        for source, options, step, shift, signal, scope, quality in SERVICES:
            times, start = old_day()
            found = document("history", source, *options, *times)
            tap.equal((found["signal"], found["scope"], found["remark"]), (signal, scope, None), source)
            tap.equal(len(found["rows"]), DAY // step, source)
            for i, row in enumerate(found["rows"]):
                at = start + i * step
                tap.equal((row["start"], row["end"], row["quality"]), (stamp(at), stamp(at + step), quality), source)
                assert abs(row["intensity_g_per_kwh"] - value_at(at) - shift) < 1e-9 * 400, (source, row)
            tap.equal(found["coverage_percent"][quality], 100.0)
            # Nothing of it can change any more: the cache has it for good.
            count = len(grid.log)
            tap.equal(document("history", source, *options, *times)["rows"], found["rows"], source)
            tap.equal(len(grid.log), count, source)


def test_questions():
    with machine() as (grid, _cache, _call, document):
        times, start = old_day()
        for source, *_rest in SERVICES[:2] + SERVICES[3:4] + SERVICES[5:6]:
            document("history", source, *times)
        end = start + DAY
        tap.equal([(path, query) for path, query, _headers in grid.log], [
            (f"/gb/intensity/{standin_grid.minute(start)}/{standin_grid.minute(end)}", {}),
            ("/em/v4/carbon-intensity/past-range", {"zone": "DE", "emissionFactorType": "lifecycle", "temporalGranularity": "hourly",
                                                    "start": stamp(start), "end": stamp(end)}),
            ("/wt/login", {}),
            ("/wt/v3/historical", {"region": "CAISO_NORTH", "signal_type": "co2_moer", "start": stamp(start),
                                   "end": stamp(end)}),
            ("/sdk/emissions/bylocation", {"location": "eastus", "time": stamp(start), "toTime": stamp(end)})])
        # Long histories come in parts.
        del grid.log[:]
        document("history", "gb:national", f"--from={stamp(start - 40 * DAY)}", f"--to={stamp(start - 10 * DAY)}")
        tap.equal(len(grid.log), 3)


def check_forecast(source, step, shift):
    with machine() as (grid, _cache, _call, document):
        found = document("forecast", source)
        published = [row for row in found["rows"] if row["quality"] == "forecast"]
        assert len(published) >= 22 * 3600 // step, (source, len(published))
        for row in published[1:-1]:
            at = standin_grid.utc(row["start"])
            tap.equal(standin_grid.utc(row["end"]) - at, step, source)
            assert abs(row["intensity_g_per_kwh"] - value_at(at) - shift) < 1e-6, (source, row)
        count = len(grid.log)
        again = document("forecast", source)
        tap.equal(len(grid.log), count, f"{source} was asked twice in one period")
        tap.equal(again["rows"][2], found["rows"][2], source)
        assert document("now", source)["rows"][0]["quality"] != "unknown", source


def test_forecast_of_every_service():
    for source, step, shift in (("gb:national", 1800, 3), ("electricity-maps:DE", 3600, 50),
                                ("watttime:CAISO_NORTH", 300, 0), ("carbon-aware:eastus", 300, 0.5)):
        in_one_period(300, lambda of=(source, step, shift): check_forecast(*of))


def test_regions_have_forecasts_alone():
    with machine() as (_grid, _cache, call, document):
        for place in ("gb:13", "gb:RG10"):
            found = document("history", place, *old_day()[0])
            tap.equal({row["quality"] for row in found["rows"]}, {"forecast"}, place)
            rows = document("forecast", place)["rows"]
            tap.equal({row["quality"] for row in rows[:40]}, {"forecast"}, place)
            for row in rows[:40]:
                tap.equal(row["intensity_g_per_kwh"], value_at(standin_grid.utc(row["start"]) // 1800 * 1800) + 3, place)
        result = call("now", "gb:london")
        tap.equal(result.returncode, 64, result.stderr)
        tap.contains(result.stderr, "gb:national")


def test_kinds_are_never_mixed():
    with machine() as (grid, _cache, call, _document):
        for source, option, words in (("gb:national", "--signal=marginal", "no marginal"),
                                      ("gb:national", "--scope=life-cycle", "no life cycle"),
                                      ("electricity-maps:DE", "--signal=marginal", "no marginal"),
                                      ("watttime:CAISO_NORTH", "--scope=life-cycle", "no life cycle")):
            result = call("now", source, option)
            tap.equal(result.returncode, 69, result.stderr)
            tap.contains(result.stderr, words)
        tap.equal(grid.log, [])


def test_faults():
    """What each fault is called, and whether the service is left alone afterwards."""
    faults = (
        ("400", 66, "refuses the question", False), ("401", 77, "refuses the key", False),
        ("410", 69, "set FLYBALL_GB_URL", False), ("403", 77, "does not give this", False), ("404", 66, "knows no such place", False),
        ("429:120", 69, "asked too often", True), ("500", 69, "not well", True), ("503:7", 69, "not well", True),
        ("501", 69, "does not have this", False), ("html", 65, "not JSON", True), ("malformed", 65, "not JSON", True),
        ("cut", 69, "no whole answer", True), ("hang", 69, "did not answer within", True),
        ("moved", 65, "has moved", False), ("204", 66, "no data", False), ({}, 65, "'data'", False),
        ([], 65, "'data'", False), ({"data": {}}, 65, "'data'", False), ({"data": []}, 66, "no data", False),
        ({"data": [{}]}, 65, "'from, to'", False), ({"data": [None]}, 65, "'data[0]'", False),
        ({"data": [{"from": "2026-01-01T00:00Z", "to": "2026-01-01T00:30Z"}]}, 65, "'intensity'", False),
        ({"data": [{"from": "2026-01-01T00:00Z", "to": "2026-01-01T00:30Z", "intensity": {"actual": "9"}}]}, 65,
         "'data[0].intensity.actual'", False),
        ({"data": [{"from": "2026-01-01T00:30Z", "to": "2026-01-01T00:00Z",
                    "intensity": {"actual": 9, "forecast": None}}]}, 65, "not after its start", False),
    )
    for mood, status, words, left_alone in faults:
        with machine() as (grid, cache, call, _document):
            grid.mood = mood
            times = old_day()[0]
            timeout = "0.5" if mood == "hang" else None
            begun = int(time.time())
            result = call("history", "gb:national", *times, FLYBALL_CARBON_TIMEOUT=timeout)
            tap.equal(result.returncode, status, f"{mood}: {result.stderr}")
            tap.contains(result.stderr, words, str(mood))
            state = [json.loads(path.read_text(encoding="utf-8").partition("\n")[2])
                     for path in cache.iterdir() if path.suffix == ".service"]
            tap.equal([body["failures"] for body in state], [1] * left_alone, str(mood))
            if left_alone:
                assert state[0]["blocked_until"] >= begun + 15, (mood, state)
            else:
                count = len(grid.log)
                call("history", "gb:13", *times)
                tap.equal(len(grid.log), count + 1, str(mood))
                call("history", "gb:national", *times)
                tap.equal(len(grid.log), count + 1, f"{mood}: a refusal was asked for again at once")


def test_retry_after_is_kept_to():
    with machine() as (grid, _cache, call, _document):
        grid.mood = "429:5000"
        call("now", "gb:national")
        result = call("now", "gb:national")
        seconds = int(result.stderr.split("left alone for another ")[1].split()[0])
        assert 4900 <= seconds <= 5001, seconds


def test_recovers():
    with machine() as (grid, cache, call, document):
        grid.mood = "500"
        times = old_day()[0]
        call("history", "gb:national", *times)
        grid.mood = None
        (state,) = [path for path in cache.iterdir() if path.suffix == ".service"]
        state.unlink()  # as after the wait
        tap.equal(len(document("history", "gb:national", *times)["rows"]), 48)


def test_old_figures_outlive_an_outage():
    with machine() as (grid, _cache, call, document):
        (first, last), start = old_day()
        before = document("history", "gb:national", first, last)
        grid.mood = "500"
        found = document("history", "gb:national", first, f"--to={stamp(start + 2 * DAY)}")
        tap.equal(found["rows"][:48], before["rows"])
        tap.equal([row["quality"] for row in found["rows"][48:]], ["unknown"])
        tap.equal(found["rows"][48]["intensity_g_per_kwh"], None)
        tap.equal(found["coverage_percent"]["unknown"], 50.0)
        tap.contains(found["remark"], "not well")
        result = call("history", "gb:national", first, f"--to={stamp(start + 2 * DAY)}")
        tap.contains(result.stderr, "warning: 'gb:national' gives a part")


def test_nulls_zeros_and_absurd_values():
    with machine() as (grid, _cache, _call, document):
        times, start = old_day()
        values = [100, None, 0, -5, 9000, 120.5]
        rows = [{"from": standin_grid.minute(start + 1800 * i), "to": standin_grid.minute(start + 1800 * (i + 1)),
                 "intensity": {"actual": value, "forecast": None}} for i, value in enumerate(values)]
        grid.mood = {"data": [rows[5], *rows, rows[0]]}  # unordered and doubled
        found = document("history", "gb:national", times[0], f"--to={stamp(start + 6 * 1800)}")
        tap.equal([row["intensity_g_per_kwh"] for row in found["rows"]], [100, None, None, None, None, 120.5])
        tap.equal([row["quality"] for row in found["rows"]],
                  ["estimated", "unknown", "unknown", "unknown", "unknown", "estimated"])


def test_answers_of_another_kind_are_refused():
    now = int(time.time())
    row = {"zone": "DE", "carbonIntensity": 5, "datetime": stamp(now - 7200), "emissionFactorType": "direct"}
    meta = {"data_point_period_seconds": 300, "region": "CAISO_NORTH", "signal_type": "co2_moer",
            "units": "lbs_co2_per_mwh"}
    cases = (
        ("electricity-maps:DE", {"zone": "FR", "history": []}, "'zone' is 'FR'"),
        ("electricity-maps:DE", {"zone": "DE", "history": [row]}, "'emissionFactorType' is 'direct'"),
        ("electricity-maps:DE", {"zone": "DE", "temporalGranularity": "weekly", "history": []}, "temporalGranularity"),
        ("watttime:CAISO_NORTH", {"data": [], "meta": {**meta, "region": "PJM"}}, "'region' is 'PJM'"),
        ("watttime:CAISO_NORTH", {"data": [], "meta": {**meta, "signal_type": "co2_aoer"}}, "'signal_type'"),
        ("watttime:CAISO_NORTH", {"data": [], "meta": {**meta, "units": "furlongs"}}, "'units'"),
        ("watttime:CAISO_NORTH", {"data": [], "meta": {**meta, "data_point_period_seconds": 0}}, "period_seconds"),
        ("watttime:CAISO_NORTH", {"data": []}, "'region'"),
        ("carbon-aware:eastus", [{"location": region, "time": stamp(now - late), "rating": 1, "duration": "00:05:00"}
                                 for region, late in (("PJM_ROANOKE", 600), ("CAISO_NORTH", 900))],
         "'PJM_ROANOKE' and of 'CAISO_NORTH'"),
        ("carbon-aware:eastus", [{"location": "eastus", "time": stamp(now), "rating": 1}], "'duration'"),
        ("carbon-aware:eastus", {"location": "eastus"}, "expected an array"),
    )
    for source, answer, words in cases:
        with machine() as (grid, _cache, call, _document):
            grid.mood = answer
            result = call("history", source)
            tap.equal(result.returncode, 65, result.stderr)
            tap.contains(result.stderr, words, source)
    with machine() as (grid, _cache, call, document):
        grid.window = 30
        found = document("forecast", "carbon-aware:eastus")
        tap.contains(found["remark"], "windows that overlap")
        tap.equal("forecast" in {row["quality"] for row in found["rows"]}, False)


def test_a_trials_key_goes_in_the_gateways_header():
    with machine() as (grid, _cache, call, document):
        grid.key_header = "X-BLOBR-KEY"
        refused = call("now", "electricity-maps:FR")
        tap.equal(refused.returncode, 77, refused.stderr)
        trial = {"FLYBALL_ELECTRICITY_MAPS_URL": grid.environment("")["FLYBALL_ELECTRICITY_MAPS_URL"] + "2w97h07r/",
                 "FLYBALL_ELECTRICITY_MAPS_HEADER": "X-BLOBR-KEY"}
        result = call("now", "electricity-maps:DE", **trial)
        tap.equal(result.returncode, 0, result.stderr)
        path, _query, headers = grid.log[-1]
        tap.equal(path.startswith("/em/v4/2w97h07r/carbon-intensity/"), True, path)
        tap.equal(("auth-token" in headers, standin_grid.KEY in result.stdout + result.stderr), (False, False))
        for word in ("X KEY", "X-KEY: 1", "X\n", "K" * 64):
            result = call("now", "electricity-maps:PL", FLYBALL_ELECTRICITY_MAPS_HEADER=word)
            tap.equal(result.returncode, 78, result.stderr)
            tap.contains(result.stderr, "FLYBALL_ELECTRICITY_MAPS_HEADER")


def test_keys_are_kept_secret():
    with machine() as (grid, cache, call, _document):
        secrets = (standin_grid.KEY, standin_grid.PASSWORD, "wrong-key", "token-1")
        said = ""
        key_file = cache.parent / "key"
        key_file.write_text(standin_grid.KEY + "\n", encoding="utf-8")
        for environment in ({}, {"FLYBALL_ELECTRICITY_MAPS_KEY": None, "FLYBALL_ELECTRICITY_MAPS_KEY_FILE": str(key_file)}):
            result = call("now", "electricity-maps:DE", **environment)
            tap.equal(result.returncode, 0, result.stderr)
            said += result.stdout + result.stderr
        result = call("now", "electricity-maps:FR", FLYBALL_ELECTRICITY_MAPS_KEY="wrong-key")
        tap.equal(result.returncode, 77, result.stderr)
        tap.contains(result.stderr, "status 401")
        said += result.stderr
        result = call("now", "watttime:CAISO_NORTH", FLYBALL_WATTTIME_PASSWORD="wrong-key")
        tap.equal(result.returncode, 77, result.stderr)
        said += result.stderr + call("now", "watttime:CAISO_NORTH").stderr
        for path in cache.iterdir():
            said += path.read_text(encoding="utf-8")
            tap.equal(path.stat().st_mode & 0o077 == 0 or (cache.stat().st_mode & 0o077) == 0, True)
        for secret in secrets:
            tap.equal(secret in said, False, secret)
        for path, query, _headers in grid.log:
            tap.equal(any(secret in path + str(query) for secret in secrets), False, path)
        # Without a key, with a bad one, and over a network in the clear nothing is asked.
        count = len(grid.log)
        for environment, words in (({"FLYBALL_ELECTRICITY_MAPS_KEY": None}, "wants a key"),
                                   ({"FLYBALL_ELECTRICITY_MAPS_KEY": "a\nb"}, "one line of text"),
                                   ({"FLYBALL_ELECTRICITY_MAPS_KEY_FILE": "/nowhere"}, "cannot be read"),
                                   ({"FLYBALL_ELECTRICITY_MAPS_URL": "http://192.0.2.1/v3"}, "in the clear"),
                                   ({"FLYBALL_ELECTRICITY_MAPS_URL": "ftp://x"}, "expected http://"),
                                   ({"FLYBALL_CARBON_TIMEOUT": "soon"}, "0.1 to 600")):
            result = call("now", "electricity-maps:PL", **environment)
            assert result.returncode in (66, 78), result
            tap.contains(result.stderr, words)
        tap.equal(len(grid.log), count)
        tap.contains(call("now", "carbon-aware:x", FLYBALL_CARBON_AWARE_URL=None).stderr, "set FLYBALL_CARBON_AWARE_URL")


def test_logs_in_once_more():
    with machine() as (grid, _cache, call, _document):
        grid.good_login = 2  # the first token has run out
        tap.equal(call("history", "watttime:CAISO_NORTH", *old_day()[0]).returncode, 0)
        tap.equal(grid.paths(), ["/wt/login", "/wt/v3/historical"] * 2)
    with machine() as (grid, _cache, call, _document):
        grid.good_login = 99
        result = call("history", "watttime:CAISO_NORTH", *old_day()[0])
        tap.equal(result.returncode, 77, result.stderr)
        tap.equal(grid.paths(), ["/wt/login", "/wt/v3/historical"] * 2)


def check_free_key():
    with machine() as (grid, _cache, _call, document):
        grid.commercial = False
        found = document("forecast", "electricity-maps:DE")
        tap.contains(found["remark"], "Endpoint not available")
        qualities = [row["quality"] for row in found["rows"]]
        tap.equal(qualities[0], "estimated", "the hour that has begun")
        tap.equal(set(qualities[1:]) <= {"own forecast", "fall-back"}, True, str(set(qualities)))
        tap.equal([path.rpartition("/")[2] for path in grid.paths()], ["past-range", "history", "forecast"])
        document("forecast", "electricity-maps:DE")
        tap.equal(len(grid.log), 3, "a refusal was asked for again at once")


def test_a_free_key_gives_a_day():
    in_one_period(300, check_free_key)


def test_revised_values_replace():
    with machine() as (grid, cache, _call, document):
        times, start = old_day(days=3)  # young enough to be revised
        first = document("history", "electricity-maps:DE", *times)["rows"]
        grid.revision = 7
        # As if asked an hour ago: the source's own record says when that was.
        (path,) = [path for path in cache.iterdir() if path.suffix == ".source"]
        body = json.loads(path.read_text(encoding="utf-8").partition("\n")[2])
        for query in body["queries"]:
            query[2] -= 3600
        write_source(path, body)
        second = document("history", "electricity-maps:DE", *times)["rows"]
        tap.equal([row["intensity_g_per_kwh"] + 7 for row in first], [row["intensity_g_per_kwh"] for row in second])


def write_source(path, body):
    text = json.dumps(body, separators=(",", ":")) + "\n"
    low, high = 1, 0
    for byte in text.encode():
        low = (low + byte) % 65521
        high = (high + low) % 65521
    path.write_text(f"flyball-carbon 1 {high << 16 | low:08x}\n{text}", encoding="utf-8")


def test_corrupt_files_are_ignored():
    for spoil in (lambda text: "", lambda text: text[:len(text) // 2], lambda text: text.replace("1", "2", 9),
                  lambda text: "\0" * 100, lambda text: text[:-40] + "x" * 40, lambda text: "{}"):
        with machine() as (grid, cache, call, document):
            times = old_day()[0]
            before = document("history", "gb:national", *times)
            grid.mood = "500"
            call("history", "gb:13", *times)
            grid.mood = None
            for path in cache.iterdir():
                if path.suffix in (".source", ".service"):
                    path.write_text(spoil(path.read_text(encoding="utf-8")), encoding="utf-8")
            count = len(grid.log)
            tap.equal(document("history", "gb:national", *times)["rows"][5]["intensity_g_per_kwh"],
                      before["rows"][5]["intensity_g_per_kwh"])
            tap.equal(len(grid.log), count + 1)


def test_many_processes_ask_once():
    with machine() as (grid, _cache, call, _document):
        grid.delay_s = 0.3
        times = old_day()[0]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            results = list(pool.map(lambda _: call("history", "gb:national", *times), range(8)))
        tap.equal([result.returncode for result in results], [0] * 8, results[0].stderr)
        tap.equal(len({result.stdout for result in results}), 1)
        tap.equal(len(grid.log), 1)


def test_many_processes_try_once():
    """Of many that find a service that failed, one tries whether it is well."""
    with machine() as (grid, cache, call, _document):
        grid.mood = "500"
        times = old_day()[0]
        call("history", "gb:national", *times)
        (path,) = [path for path in cache.iterdir() if path.suffix == ".service"]
        body = json.loads(path.read_text(encoding="utf-8").partition("\n")[2])
        write_source(path, {**body, "failures": 10, "blocked_until": int(time.time()) - 1})
        grid.delay_s = 0.3
        del grid.log[:]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda i: call("history", f"gb:{i + 1}", *times), range(8)))
        tap.equal(len(grid.log), 1)


def test_the_cache_alone():
    with machine() as (grid, _cache, call, document):
        times = old_day()[0]
        result = call("history", "gb:national", "--cached", *times)
        tap.equal(result.returncode, 69, result.stderr)
        tap.equal(grid.log, [])
        before = document("history", "gb:national", *times)
        tap.equal(document("history", "gb:national", "--cached", *times)["rows"], before["rows"])
        tap.equal(len(grid.log), 1)
        blocked = call("now", "gb:national", FLYBALL_CARBON_CACHE="/dev/null/x")
        tap.contains(blocked.stderr, "FLYBALL_CARBON_CACHE")


def test_files_formats_and_pictures():
    with machine() as (grid, cache, call, document):
        home = cache.parent
        (home / "grid.csv").write_text(
            "timestamp,g_per_kwh,quality\n2022-01-01T00:00Z,100,measured\n2022-01-01T01:00Z,,missing\n"
            "2022-01-01T02:00Z,130,estimated\n2022-01-01T05:00Z,140,measured\n", encoding="utf-8")
        found = document("history", "grid.csv")
        tap.equal([(row["start"][11:16], row["end"][11:16], row["intensity_g_per_kwh"], row["quality"])
                   for row in found["rows"]],
                  [("00:00", "01:00", 100, "measured"), ("01:00", "02:00", None, "unknown"),
                   ("02:00", "03:00", 130, "estimated"), ("03:00", "05:00", None, "unknown"),
                   ("05:00", "06:00", 140, "measured")])
        tap.equal({name: round(share, 6) for name, share in found["coverage_percent"].items()},
                  {"measured": 33.333333, "estimated": 16.666667, "forecast": 0, "own forecast": 0, "fall-back": 0,
                   "unknown": 50})
        result = call("history", "grid.csv", "--format=csv", "--svg=grid.svg")
        rows = list(csv.DictReader(io.StringIO(result.stdout)))
        tap.equal([row["intensity_g_per_kwh"] for row in rows], ["100", "", "130", "", "140"])
        tap.equal({row["provider"] for row in rows}, {"csv"})
        picture = (home / "grid.svg").read_text(encoding="utf-8")
        svg_texts.check(picture)
        for words in ("hours since 2022-01-01T00:00:00Z", "measured", "estimated"):
            tap.contains(picture, words)
        tap.equal("fall-back" in picture, False)
        tap.equal(document("now", "constant:380")["rows"][0]["quality"], "fall-back")
        tap.equal(document("forecast", FLYBALL_CARBON_SOURCE="constant:380")["mean_g_per_kwh"], 380)
        tap.equal(call("now").returncode, 64)
        for arguments in (("history", "grid.csv", "--from=yesterday"), ("history", "grid.csv", "--from=2022", "--to=2021"),
                          ("forecast", "constant:1", "--from=2020"), ("forecast", "constant:1", "--to=2099"),
                          ("now", "gb:"), ("now", "gb:a/b"), ("now", "gb:" + "a" * 40)):
            tap.equal(call(*arguments).returncode, 64, str(arguments))
        tap.equal(grid.log, [])


tap.main(globals())
