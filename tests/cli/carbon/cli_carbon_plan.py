# SPDX-License-Identifier: Apache-2.0
"""`flyball carbon plan` from outside.

usage: cli_carbon_plan.py FLYBALL

A start in the past has to be what the simulator does; totals are computed here a second time.
"""
import csv
import datetime
import io
import json
import math
import pathlib
import random
import tempfile
import time

import standin_grid
import svg_texts
import tap
from sim_fixture import CLEAN, FLYBALL

PROFILE = ((100, 98.4, 1.929), (150, 144.6, 1.18), (200, 184.9, 1.053), (225, 205.4, 1.02), (250, 220.3, 1.0))
HOUR = 3600
PAST = 1_262_304_000  # 2010-01-01
SVG = "{http://www.w3.org/2000/svg}"


def stamp(second):
    return datetime.datetime.fromtimestamp(second, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def second_of(text):
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.timezone.utc).timestamp()


def series(first, hours, column="g_per_kwh", seed=1, mean=250.0):
    source = random.Random(seed)
    rows = [(first + i * HOUR, mean * (1 + 0.6 * math.sin(i / 24 * 2 * math.pi) + source.uniform(-0.2, 0.2))) for i in range(hours)]
    return f"timestamp,{column}\n" + "".join(f"{stamp(start)},{value!r}\n" for start, value in rows)


class Place:
    """A directory with a profile and grids, in which the program runs."""

    def __init__(self, grid=None):
        self.kept = tempfile.TemporaryDirectory(prefix="flyball-carbon-plan-")
        self.home = pathlib.Path(self.kept.name)
        self.write("profile.csv", "limit_w,power_w,step_time_s\n" + "".join(f"{a},{b},{c}\n" for a, b, c in PROFILE))
        if grid:
            self.write("grid.csv", grid)

    def write(self, name, text):
        (self.home / name).write_text(text, encoding="utf-8")

    def call(self, *arguments, words=("carbon", "plan"), **variables):
        return tap.run([FLYBALL, *words, *arguments], cwd=self.home, env={**CLEAN, **variables})

    def document(self, *arguments, **options):
        result = self.call("--profile=profile.csv", "--format=json", "--quiet", *arguments, **options)
        tap.equal(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)


def ways_of(document):
    return {way["way"]: way for way in document["statement"]["ways"]}


def close(actual, expected, what, relative=1e-9):
    if actual is None or not math.isclose(actual, expected, rel_tol=relative, abs_tol=1e-12):
        raise AssertionError(f"{what}: {actual!r}, expected {expected!r}")


def test_a_start_in_the_past_is_what_the_simulator_does():
    place = Place(series(PAST, 20 * 24))
    place.write("price.csv", series(PAST, 20 * 24, "price_per_kwh", 5, 0.2))
    grams = ("time_s_mean", "energy_j_mean", "gpu_energy_j_mean", "carbon_g_mean")
    for arguments, keys in ((("--work=24h",), grams), (("--work=96h", "--max-slowdown=10%"), grams),
                            (("--work=20h", "--deadline=30h", "--host-power=120", "--pue=1.4"), grams),
                            (("--work=24h", "--deadline=40h", "--pause=idle=25,checkpoint=2min,on=1h,off=1h"), grams),
                            (("--work=24h", "--deadline=40h", "--pause=idle=0"), grams),
                            (("--work=24h", "--max-slowdown=20%", "--price=price.csv", "--objective=carbon=0.001,money=1"),
                             (*grams, "money_mean"))):
        sim = place.document("--intensity=grid.csv", "--starts=1", "--policy=max,static,plan", *arguments, words=("sim", "carbon"))
        rows = {row["policy"]: row for row in sim["rows"]}
        plan = place.document("grid.csv", f"--from={sim['first_start']}", *arguments)
        tap.equal(plan["from"], sim["first_start"])
        for policy, name in (("plan", "as planned"), ("max", "highest limit"), ("static", "best single limit")):
            way = ways_of(plan)[name]
            found = {"time_s_mean": way["time_s"], "energy_j_mean": way["energy_j"]["all"],
                     "gpu_energy_j_mean": way["energy_j"]["gpus"], "carbon_g_mean": way["carbon_g"]["all"],
                     "money_mean": way["money"]["all"] if way["money"] else None}
            for key in keys:
                close(found[key], rows[policy][key], f"{arguments}, {policy}, {key}")
        tap.equal(plan["limit_changes"], rows["plan"]["limit_changes_mean"], str(arguments))
        tap.equal(plan["late"], False)


def test_totals_are_those_of_the_periods():
    place = Place(series(PAST, 20 * 24))
    document = place.document("grid.csv", f"--from={stamp(PAST + 10 * 86400 + 1234)}", "--work=24h", "--max-slowdown=5%")
    run, rows = ways_of(document)["as planned"], document["rows"]
    close(math.fsum(row["energy_j"] for row in rows), run["energy_j"]["all"], "energy")
    close(math.fsum(row["energy_j"] / 3.6e6 * row["intensity_g_per_kwh"] for row in rows), run["carbon_g"]["all"], "grams")
    close(math.fsum(row["time_s"] for row in rows), run["time_s"], "time")
    work = math.fsum(row["steps"] for row in rows)  # of a plan: seconds at the fastest limit
    close(work, 24 * HOUR, "work")
    powers = {limit: (power, step) for limit, power, step in PROFILE}
    for row in rows:
        if row["first_limit_w"] == row["last_limit_w"] == row["limit_w"]:
            close(row["energy_j"], powers[row["limit_w"]][0] * row["time_s"], "energy of a period")
            close(row["steps"], row["time_s"] / powers[row["limit_w"]][1], "work of a period")
        tap.equal(row["first_limit_w"] in powers and row["last_limit_w"] in powers, True)
    tap.equal(all(a["end"] == b["start"] for a, b in zip(rows, rows[1:])), True)
    tap.equal(document["finish_s"] <= document["bound_s"] * (1 + 1e-9), True)
    tap.equal(sum(document["reasons"].values()), document["decisions"])
    highest, single = ways_of(document)["highest limit"], ways_of(document)["best single limit"]
    close(highest["energy_j"]["all"], 24 * HOUR * 220.3, "energy at the highest")
    tap.equal(single["limit_w"], 225)
    close(single["energy_j"]["all"], 24 * HOUR * 1.02 * 205.4, "energy at the single limit")
    saved = document["statement"]
    close(saved["saved"]["carbon_g"], highest["carbon_g"]["all"] - run["carbon_g"]["all"], "saved")
    mixture = ways_of(document)["best mixture"]
    close(mixture["time_s"], document["bound_s"], "the mixture uses the bound up")
    close(saved["by_following"]["carbon_g"], mixture["carbon_g"]["all"] - run["carbon_g"]["all"], "by following", 1e-6)
    tap.equal(run["carbon_g"]["all"] < mixture["carbon_g"]["all"] < single["carbon_g"]["all"], True, "following gains here")


def test_what_is_to_come_is_a_forecast():
    now = int(time.time())
    place = Place(series(now // HOUR * HOUR - 20 * 24 * HOUR, 20 * 24))
    document = place.document("grid.csv", "--work=12h", "--max-slowdown=20%")
    rows = document["rows"]
    tap.equal({row["intensity_quality"] for row in rows}, {"own forecast"})
    tap.equal(abs(second_of(document["from"]) - now) < 120, True)
    tap.equal(document["from"], document["known_until"])
    coverage = ways_of(document)["as planned"]["coverage_percent"]["intensity"]
    close(coverage["own forecast"], 100, "coverage")
    tap.equal(ways_of(document)["as planned"]["estimated"], True)
    result = place.call("grid.csv", "--profile=profile.csv", "--work=12h", "--max-slowdown=20%")
    for words in ("A plan on paper: 12 h", "as planned", "highest limit, 250 W", "own forecast 100 %", "decision", "based on"):
        tap.contains(result.stdout, words)

    # It begins when it is to begin, and nothing more is known then.
    later = now // HOUR * HOUR + 7 * HOUR
    document = place.document("grid.csv", f"--from={stamp(later)}", "--steps=7200", "--deadline=4h")
    tap.equal((document["rows"][0]["start"], document["work_s"], document["bound_s"]), (stamp(later), 7200, 4 * HOUR))
    tap.equal({row["intensity_quality"] for row in document["rows"]}, {"own forecast"})

    # What began an hour ago knows the hour since; the rest is a forecast.
    place.write("grid.csv", series(now // HOUR * HOUR - 20 * 24 * HOUR, 20 * 24 + 1))
    document = place.document("grid.csv", f"--from={stamp(now - 5 * HOUR)}", "--work=12h")
    found = [row["intensity_quality"] for row in document["rows"]]
    tap.equal((found[0], found[-1]), ("measured", "own forecast"))
    tap.equal(found, sorted(found))


def test_published_forecasts_go_before_own_ones():
    place = Place()
    with standin_grid.Grid() as grid:
        environment = grid.environment(place.home / "cache")
        document = place.document("electricity-maps:DE", "--work=30h", "--max-slowdown=10%", **environment)
        tap.equal((document["source"], document["statement"]["intensity"]["zone"]), ("electricity-maps:DE", "DE"))
        published = [row for row in document["rows"] if row["intensity_quality"] == "forecast"]
        tap.equal(len(published) >= 22, True, "a day is published")
        for row in published[1:-1]:
            close(row["intensity_g_per_kwh"], standin_grid.value_at(second_of(row["start"])) + 50, row["start"])
        tap.equal(document["rows"][-1]["intensity_quality"], "own forecast")
        asked = len(grid.log)
        again = place.document("electricity-maps:DE", "--work=30h", "--cached", **environment)
        tap.equal(len(grid.log), asked, "the cache alone")
        tap.equal(again["rows"][5]["intensity_quality"], "forecast")
    result = place.call("gb:national", "--profile=profile.csv", "--work=2h", **{**environment, "FLYBALL_CARBON_CACHE": str(place.home / "new")})
    tap.equal((result.returncode, result.stdout), (69, ""), result.stderr)


def test_what_a_file_says_of_the_coming_day_is_followed():
    now = int(time.time()) // HOUR * HOUR
    prices = (100, 700, 50, 600, 300, 900, 80, 400)
    rows = [(stamp(now + i * HOUR), prices[i % len(prices)]) for i in range(24)]
    place = Place()
    for name, unit in (("price", "price_per_mwh"), ("grid", "g_per_kwh")):
        place.write(f"{name}.csv", f"timestamp,{unit}\n" + "".join(f"{start},{value}\n" for start, value in rows))
        place.write(f"{name}-copied.csv", f"timestamp,{unit},forecast_{unit}\n" +
                    "".join(f"{start},{value},{value}\n" for start, value in rows))
    for known, copied in ((("--price=price.csv",), ("--price=price-copied.csv",)), (("grid.csv",), ("grid-copied.csv",))):
        found, expected = (place.document(*words, "--work=8h", "--max-slowdown=10%") for words in (known, copied))
        told, wanted = ([row["limit_w"] for row in document["rows"]] for document in (found, expected))
        # The second plan begins a little later, which moves the mean of an hour with two limits.
        tap.equal(len(told) == len(wanted) and all(abs(a - b) < 5 for a, b in zip(told, wanted)), True, f"{known[0]}: {told}, {wanted}")
        tap.equal(list(found["reasons"]), ["follows the grid"], "of the whole plan, its last hour too")
        tap.equal(found["limit_changes"] > 2, True, f"{found['limit_changes']} changes")


def test_without_a_grid_the_static_limit_stands():
    place = Place(series(PAST, 20 * 24))
    for arguments, words in ((("grid.csv",), "nothing is known of the grid"), (("constant:360",), "the same all the time")):
        document = place.document(*arguments, "--work=10h", "--max-slowdown=2%")
        tap.equal(len(document["reasons"]) == 1 and words in next(iter(document["reasons"])), True, str(document["reasons"]))
        tap.equal({row["limit_w"] for row in document["rows"]}, {225})
    close(ways_of(document)["as planned"]["carbon_g"]["all"], 36000 * 1.02 * 205.4 / 3.6e6 * 360, "grams")
    mixture = ways_of(document)["best mixture"]
    close(document["statement"]["by_following"]["energy_j"], mixture["energy_j"]["all"] - 36000 * 1.02 * 205.4, "nothing is gained")
    # Three hours, the newest a minute old, are too little and not too old.
    place.write("short.csv", series(int(time.time()) - 3 * 3600 - 60, 3))
    document = place.document("short.csv", "--work=10h", "--max-slowdown=2%")
    tap.equal(list(document["reasons"]), ["static limit: too little is known of the grid to foretell it"])
    # With the work as long as the time there is nothing to choose.
    document = place.document("constant:360", "--work=10h", "--deadline=10h")
    tap.equal({row["limit_w"] for row in document["rows"]}, {250})
    # Prices alone, and the source from a variable.
    place.write("price.csv", series(PAST, 20 * 24, "price_per_kwh"))
    document = place.document("--price=price.csv", "--work=10h", f"--from={stamp(PAST + 9 * 86400)}", "--max-slowdown=10%")
    tap.equal((document["statement"]["intensity"], document["rows"][0]["carbon_g"]), (None, None))
    tap.equal(document["statement"]["saved"]["money"] > 0, True)
    document = place.document("--work=10h", FLYBALL_CARBON_SOURCE="constant:360", FLYBALL_CARBON_PUE="1.5", FLYBALL_CARBON_HOST_POWER="20")
    run = ways_of(document)["highest limit"]["energy_j"]
    close(run["pue"], 36000 * (220.3 + 20) / 2, "PUE")
    close(run["host"], 36000 * 20, "host")


def test_rows_and_pictures():
    place = Place(series(PAST, 20 * 24))
    start = f"--from={stamp(PAST + 10 * 86400)}"
    arguments = ("grid.csv", "--profile=profile.csv", "--work=24h", start, "--svg=plan.svg")
    rows = list(csv.DictReader(io.StringIO(place.call(*arguments, "--format=csv").stdout)))
    tap.equal(rows[0]["schema"], "flyball.carbon.plan/2")
    tap.equal(len(rows), 25)
    root = svg_texts.check(place.home / "plan.svg")
    tap.equal((root.tag, root.get("role")), (f"{SVG}svg", "img"))
    shown = "\n".join(element.text or "" for element in root.iter())
    for words in ("A plan on paper for profile.csv", "carbon intensity (g/kWh)", "power limit (W)", "energy of each period (kWh)",
                  "carbon of each period (g)", "measured"):
        tap.contains(shown, words)
    first = (place.home / "plan.svg").read_bytes()
    place.call(*arguments)
    tap.equal((place.home / "plan.svg").read_bytes() == first, True, "the same bytes again")


def test_what_cannot_be_planned():
    place = Place(series(PAST, 20 * 24))
    place.write("price.csv", series(PAST, 48, "price_per_kwh"))
    for arguments, status, words in (
            (("grid.csv", "--work=1h"), 64, "--profile"),
            (("grid.csv", "--profile=none.csv", "--work=1h"), 66, "none.csv"),
            (("grid.csv", "--profile=profile.csv"), 64, "--work and --steps"),
            (("grid.csv", "--profile=profile.csv", "--work=1h", "--steps=5"), 64, "--work and --steps"),
            (("grid.csv", "--profile=profile.csv", "--work=soon"), 64, "soon"),
            (("grid.csv", "--profile=profile.csv", "--work=2h", "--deadline=1h"), 64, "cannot end"),
            (("grid.csv", "--profile=profile.csv", "--work=2h", "--deadline=3h", "--max-slowdown=5%"), 64, "one of them"),
            (("grid.csv", "--profile=profile.csv", "--work=2h", "--finish-by=never"), 64, "never"),
            (("grid.csv", "--profile=profile.csv", "--work=2h", "--finish-by=2001-01-01T00:00Z"), 64, "cannot end"),
            (("grid.csv", "--profile=profile.csv", "--work=300d", "--max-slowdown=50%"), 64, "366 days"),
            (("grid.csv", "--profile=profile.csv", "--work=2h", "--from=tomorrow"), 64, "tomorrow"),
            (("grid.csv", "--profile=profile.csv", "--work=2h", "--objective=money"), 64, "money"),
            (("grid.csv", "--profile=profile.csv", "--work=2h", "--pause=often"), 64, "often"),
            (("--price=price.csv", "--profile=profile.csv", "--work=2h", "--objective=carbon"), 64, "carbon"),
            (("--profile=profile.csv", "--work=2h"), 64, "no source"),
            (("nowhere.csv", "--profile=profile.csv", "--work=2h"), 66, "nowhere.csv")):
        result = place.call(*arguments)
        tap.equal((result.returncode, result.stdout), (status, ""), str(arguments))
        tap.contains(result.stderr, words, str(arguments))


tap.main(globals())
