# SPDX-License-Identifier: Apache-2.0
"""`flyball carbon report` from outside: accounts made by hand, figures computed here a second time.

usage: cli_carbon_report.py FLYBALL
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

START = 1_700_000_000  # 2023-11-14T22:13:20Z
PROFILE = ((200, 150.0, 1.25), (250, 200.0, 1.1), (300, 300.0, 1.0))
SVG = "{http://www.w3.org/2000/svg}"
QUALITIES = ("measured", "estimated", "forecast", "own forecast", "fall-back", "unknown")
HEAD = {"flyball_carbon": 1, "run": "night", "job": "resnet", "host": "n17", "program": "flyball run", "source": "grid.csv",
        "price": "price.csv", "per_g": 1, "per_money": 0, "per_kwh": 0, "host_w": 0, "pue": 1, "max_slowdown": 1.1,
        "finish_by_s": 0, "steps": 0, "start_s": START, "gpus": 2, "rank": 0}


def stamp(second):
    return datetime.datetime.fromtimestamp(second, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def piece(start, length, gpu, limit, steps=0.0, host=None):
    return {"start_s": start, "end_s": start + length, "gpu_j": gpu, "host_j": host, "limit_w": limit, "steps": steps,
            "jumped": False}


def series(values, step, column, first=None):
    first = (START // step - 24 * 3600 // step) * step if first is None else first
    rows = [(first + i * step, first + (i + 1) * step, value) for i, value in enumerate(values)]
    text = f"timestamp,{column}\n" + "".join(f"{stamp(start)},{'' if value is None else repr(value)}\n" for start, _, value in rows)
    return rows, text


class Place:
    """A directory with accounts and grids, in which the program runs."""

    def __init__(self):
        self.kept = tempfile.TemporaryDirectory(prefix="flyball-carbon-report-")
        self.home = pathlib.Path(self.kept.name)
        self.accounts = self.home / "state" / "flyball" / "carbon"
        self.accounts.mkdir(parents=True)
        self.environment = {**CLEAN, "XDG_STATE_HOME": str(self.home / "state"), "XDG_CACHE_HOME": str(self.home / "cache")}

    def account(self, slices, profile=PROFILE, name="20231114T221320Z-n17-1-001", tail="", **head):
        lines = [{**HEAD, **head}, *({"slice": slice} for slice in slices)]
        if profile:
            lines.insert(1, {"profile": profile})
        path = self.accounts / f"{name}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines) + tail, encoding="utf-8")
        return path

    def write(self, name, text):
        (self.home / name).write_text(text, encoding="utf-8")

    def call(self, *arguments):
        return tap.run([FLYBALL, "carbon", "report", *arguments], cwd=self.home, env=self.environment)

    def document(self, *arguments):
        result = self.call("--format=json", *arguments)
        tap.equal(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)


def close(actual, expected, what, relative=1e-9):
    if actual is None or not math.isclose(actual, expected, rel_tol=relative, abs_tol=1e-12):
        raise AssertionError(f"{what}: {actual!r}, expected {expected!r}")


def amount(rows, start, end, energy):
    """Of energy spread evenly over a time."""
    return math.fsum(energy * (min(end, high) - max(start, low)) / (end - start) / 3.6e6 * value
                     for low, high, value in rows if min(end, high) > max(start, low))


def way(slices, limit, host_w, pue, grid, price):
    """Time, and energy, grams and money of GPUs and host, of a run at one limit; None: as it was."""
    points = {point[0]: point for point in PROFILE}
    late, time, parts = 0.0, 0.0, {"gpus": [0.0, 0.0, 0.0], "host": [0.0, 0.0, 0.0]}
    for slice in slices:
        length, gpu = slice["end_s"] - slice["start_s"], slice["gpu_j"]
        start, taken = slice["start_s"] + late, length
        if limit is not None and slice["limit_w"] in points and slice["steps"] > 0:
            _, old_w, old_s = points[slice["limit_w"]]
            _, new_w, new_s = points[limit] if isinstance(limit, int) else limit
            taken, gpu = length * new_s / old_s, gpu * new_w * new_s / (old_w * old_s)
        for part, energy in (("gpus", gpu), ("host", host_w * taken)):
            for i, value in enumerate((energy, amount(grid, start, start + taken, energy), amount(price, start, start + taken, energy))):
                parts[part][i] += value
        late, time = late + taken - length, time + taken
    parts["pue"] = [(pue - 1) * (gpu + host) for gpu, host in zip(parts["gpus"], parts["host"])]
    parts["all"] = [sum(parts[part][i] for part in ("gpus", "host", "pue")) for i in range(3)]
    return time, parts


def mixed(mixture):
    """The best constant speed as a point: power over its time, and what a step takes."""
    points = {point[0]: point for point in PROFILE}
    low, high, share = points[mixture["low_limit_w"]], points[mixture["high_limit_w"]], mixture["high_share"]
    return low[0] + share * (high[0] - low[0]), low[1] + share * (high[1] - low[1]), 1 / ((1 - share) / low[2] + share / high[2])


def random_run(seed):
    source, at, slices = random.Random(seed), float(START), []
    for _ in range(80):
        length = source.uniform(100, 300)
        limit = source.choice((200, 250, 300, 300, None))
        slices.append(piece(at, length, length * source.uniform(80, 330), limit, source.choice((0, 5, 9, 12))))
        at += length + source.choice((0, 0, 0, 0, 0, 700, -150))  # at times the clock jumps
    return slices


def grids(seed):
    source = random.Random(seed)
    grid, grid_text = series([source.uniform(40, 500) for _ in range(400)], 1800, "g_per_kwh")
    price, price_text = series([source.uniform(-0.1, 0.5) for _ in range(800)], 900, "price_per_kwh")
    return grid, grid_text, price, price_text


def test_figures_are_those_of_a_second_computation():
    for seed in range(6):
        place, slices = Place(), random_run(seed)
        grid, grid_text, price, price_text = grids(seed)
        place.account(slices, host_w=60, pue=1.25)
        place.write("grid.csv", grid_text)
        place.write("price.csv", price_text)
        document = place.document()
        statement = document["statement"]
        ways = {row["way"]: row for row in statement["ways"]}
        expected = {}
        mixture = mixed(statement["best_mixture"])
        close(mixture[2], min(statement["bound"], 9) * min(point[2] for point in PROFILE), "the mixture uses the bound up")
        for name, limit in (("as run", None), ("highest limit", 300), ("best single limit", 250), ("best mixture", mixture)):
            time, parts = expected[name] = way(slices, limit, 60, 1.25, grid, price)
            tap.equal(ways[name]["limit_w"], limit[0] if name == "best mixture" else limit, name)
            tap.equal(ways[name]["estimated"], limit is not None)
            close(ways[name]["time_s"], time, f"{name}, time")
            for part, values in parts.items():
                for key, value in zip(("energy_j", "carbon_g", "money"), values):
                    close(ways[name][key][part], value, f"{name}, {key} of {part}")
            tap.equal(ways[name]["coverage_percent"]["intensity"]["measured"] > 99.999999, True)
        for name, dear, cheap in (("saved", "highest limit", "as run"), ("by_lower_limit", "highest limit", "best mixture"),
                                  ("by_following", "best mixture", "as run")):
            for i, key in enumerate(("energy_j", "carbon_g", "money")):
                difference = expected[dear][1]["all"][i] - expected[cheap][1]["all"][i]
                scale = abs(expected[dear][1]["all"][i])
                tap.equal(abs(statement[name][key] - difference) <= 1e-9 * scale, True, f"{name}, {key}")
        for i, key in enumerate(("energy_j", "carbon_g", "money")):
            close(math.fsum(row[key] for row in document["rows"]), expected["as run"][1]["all"][i], f"rows, {key}")
        close(math.fsum(row["time_s"] for row in document["rows"]), expected["as run"][0], "rows, time")


def test_rows_are_cut_at_the_grids_borders():
    place = Place()
    place.account([piece(START, 400, 80e3, 250, 10), piece(START + 400, 1400, 420e3, 300, 10)])
    _, text = series([100.0] * 48 + [200.0] + [300.0] * 20, 1800, "g_per_kwh", START - 48 * 1800 - 800)
    place.write("grid.csv", text)
    place.write("price.csv", "timestamp,price_per_kwh\n" + "".join(f"{stamp(START - 800 + i * 3600)},0.36\n" for i in range(3)))
    document = place.document()
    rows = document["rows"]
    tap.equal([(row["start"], row["end"]) for row in rows],
              [(stamp(START), stamp(START + 1000)), (stamp(START + 1000), stamp(START + 1800))])
    tap.equal([(row["intensity_g_per_kwh"], row["intensity_quality"]) for row in rows], [(200, "measured"), (300, "measured")])
    close(rows[0]["limit_w"], (400 * 250 + 600 * 300) / 1000, "limit")
    tap.equal([(row["first_limit_w"], row["last_limit_w"]) for row in rows], [(250, 300), (300, 300)])
    close(rows[0]["energy_j"], 80e3 + 180e3, "energy")
    close(rows[0]["carbon_g"], 260e3 / 3.6e6 * 200, "grams")
    close(rows[1]["money"], 240e3 / 3.6e6 * 0.36, "money")
    tap.equal(document["statement"]["limit_changes"], 1)
    table = list(csv.DictReader(io.StringIO(place.call("--format=csv").stdout)))
    tap.equal([float(row["energy_j"]) for row in table], [row["energy_j"] for row in rows])
    tap.equal({row["schema"] for row in table}, {"flyball.carbon.report/2"})


def test_what_people_see():
    place = Place()
    slices = random_run(1)
    place.account(slices, pue=1.5, tail='{"slice":{"start_s"')
    _, grid_text, _, price_text = grids(1)
    place.write("grid.csv", grid_text)
    place.write("price.csv", price_text)
    result = place.call()
    tap.equal((result.returncode, result.stderr), (0, ""))
    for words in ("Run night of job resnet, on n17, 2 GPUs", "its last line is not whole", "as run", "highest limit, 300 W",
                  "best single limit, 250 W", "best mixture, ", "PUE", "by the lower limit", "by following the grid", "estimated",
                  "measured 100 %", "20231114T221320Z-n17-1-001.jsonl"):
        tap.contains(result.stdout, words)
    tap.equal("based on" in result.stdout, False)
    result = place.call("--periods", "--svg=night.svg")
    tap.equal(result.returncode, 0, result.stderr)
    tap.contains(result.stdout, "based on")
    root = svg_texts.check(place.home / "night.svg")
    tap.equal((root.tag, root.get("role")), (f"{SVG}svg", "img"))
    shown = "\n".join(element.text or "" for element in root.iter())
    for words in ("carbon intensity (g/kWh)", "price (money/kWh)", "power limit (W)", "energy of each period (kWh)",
                  "carbon of each period (g)", "cost of each period (money)", "hours since 2023-11-14T22:1", "measured"):
        tap.contains(shown, words)
    tap.equal(len(list(root.iter(f"{SVG}path"))) >= 6, True)
    first = (place.home / "night.svg").read_bytes()
    place.call("--svg=night.svg")
    tap.equal((place.home / "night.svg").read_bytes() == first, True, "the same bytes again")


def test_what_is_not_known_is_said():
    place = Place()
    place.account([piece(START, 1000, 100e3, None), piece(START + 1000, 1000, None, 300), piece(START + 2000, 1000, 300e3, 300)],
                  price="", host_w=0)
    place.write("grid.csv", "timestamp,g_per_kwh\n" + "".join(f"{stamp(START + 2000 + i * 600)},360\n" for i in range(4)))
    document = place.document()
    run = document["statement"]["ways"][0]
    close(run["energy_j"]["gpus"], 400e3, "energy")
    tap.equal((run["energy_j"]["host"], run["money"], run["unmeasured_s"]), (None, None, 1000))
    close(run["carbon_g"]["all"], 30, "grams of what is known")
    shares = run["coverage_percent"]["intensity"]
    tap.equal({name: round(shares[name], 9) for name in QUALITIES},
              {"measured": 75, "estimated": 0, "forecast": 0, "own forecast": 0, "fall-back": 0, "unknown": 25})
    tap.equal(document["statement"]["saved"]["carbon_g"], None)
    close(document["statement"]["modelled_percent"], 75, "modelled")
    first = document["rows"][0]
    tap.equal((first["intensity_g_per_kwh"], first["limit_w"], first["carbon_g"]), (None, 300, None))
    tap.contains(place.call("--periods").stdout, "unknown")

    # A run without a profile, and one without the grid's figures.
    place.account([piece(START, 1000, 100e3, 300)], profile=None, source="", price="")
    document = place.document()
    tap.equal([row["way"] for row in document["statement"]["ways"]], ["as run"])
    tap.contains(document["statement"]["nothing_to_compare"], "no power profile")
    tap.equal(document["statement"]["ways"][0]["carbon_g"], None)
    tap.equal([(row["start"][11:], row["end"][11:]) for row in document["rows"]], [("22:13:20Z", "22:30:00Z")])
    result = place.call("--svg=empty.svg")
    tap.equal(result.returncode, 0, result.stderr)
    svg_texts.check(place.home / "empty.svg")

    # A source that cannot be read costs its figures and no more.
    place.account([piece(START, 1000, 100e3, 300)], source="nowhere.csv", price="")
    result = place.call()
    tap.equal(result.returncode, 0, result.stderr)
    tap.contains(result.stderr, "nowhere.csv")
    place.account([piece(START, 1000, 100e3, 300)], source="gb:national", price="")
    document = place.document("--cached")
    tap.equal(document["statement"]["intensity"], None)
    tap.equal(document["source_remark"] is None, False)


def test_a_revision_changes_the_account():
    place = Place()
    place.account([piece(START, 3000, 3.6e6, 300, 9)], price="")
    for value in (100.0, 140.0):
        place.write("grid.csv", series([value] * 80, 1800, "g_per_kwh")[1])
        close(place.document()["statement"]["ways"][0]["carbon_g"]["all"], value, "grams")
    place.write("other.csv", series([7.0] * 80, 1800, "g_per_kwh")[1])
    close(place.document("--intensity=other.csv")["statement"]["ways"][0]["carbon_g"]["all"], 7, "another source")
    place.write("money.csv", series([7.0] * 80, 1800, "price_per_kwh")[1])
    close(place.document("--price=money.csv")["statement"]["ways"][0]["money"]["all"], 7, "a price that the run did not have")
    document = place.document("--intensity=money.csv")
    tap.contains(document["source_remark"], "money.csv")
    tap.equal(document["statement"]["ways"][0]["carbon_g"], None)


def test_runs_are_found_by_name_and_ranks_joined():
    place = Place()
    place.write("grid.csv", series([360.0] * 80, 1800, "g_per_kwh")[1])
    place.account([piece(START, 1100, 110e3, 250, 9)], price="")
    place.account([piece(START + 3, 1105, 121e3, 250, 9)], price="", name="20231114T221323Z-n17-2-001", start_s=START + 3, rank=1, profile=None)
    old = place.account([piece(START - 90000, 300, 1e3, 250, 9)], price="", name="20231113T211320Z-n17-3-001", start_s=START - 90000, run="other", job="old")
    place.account([piece(START - 93000, 300, 2e3, 250, 9)], price="", name="20231113T202320Z-n17-4-001", start_s=START - 93000)
    for arguments in ((), ("night",), ("resnet",), ("20231114T221320Z-n17-1-001",), ("20231114T221323Z-n17-2-001.jsonl",)):
        document = place.document(*arguments)
        tap.equal([pathlib.Path(path).name for path in document["accounts"]],
                  ["20231114T221320Z-n17-1-001.jsonl", "20231114T221323Z-n17-2-001.jsonl"], str(arguments))
        close(document["statement"]["ways"][0]["energy_j"]["gpus"], 231e3, "energy of both")
        close(document["statement"]["ways"][0]["time_s"], 1105, "time of the longer")
        close(document["statement"]["ways"][1]["energy_j"]["gpus"], 231e3 * 300 / 220, "at the highest limit")
        tap.equal(document["gpus"], 4)
    for arguments in (("other",), ("old",), (str(old),), ("--directory=state/flyball/carbon", "old")):
        tap.equal(place.document(*arguments)["run"], "other", str(arguments))
    close(place.document(str(old), "20231113T202320Z-n17-4-001")["statement"]["ways"][0]["energy_j"]["gpus"], 3e3, "named ones")
    listed = place.document("--list")
    tap.equal([(row["run"], row["rank"], row["gpu_energy_j"], row["slices"]) for row in listed["rows"]],
              [("night", 1, 121e3, 1), ("night", 0, 110e3, 1), ("other", 0, 1e3, 1), ("night", 0, 2e3, 1)])
    (place.accounts / "20231115T000000Z-n17-9-001.jsonl").write_text("nonsense\n", encoding="utf-8")
    result = place.call("--list")
    tap.equal(result.returncode, 0, result.stderr)
    tap.contains(result.stdout, "? [")
    tap.equal(len(result.stdout.splitlines()) > 5, True)


def test_services_are_asked_and_then_the_cache():
    start = (int(time.time()) // 86400 - 20) * 86400
    slices = [piece(start + i * 300, 300, 3.6e5, 250 if i % 3 else 300, 9) for i in range(48)]
    for source, step, shift in (("gb:national", 1800, 0), ("electricity-maps:DE", 3600, 50)):
        place = Place()
        place.account(slices, source=source, price="", start_s=start)
        with standin_grid.Grid() as grid:
            place.environment.update(grid.environment(place.home / "cache"))
            result = place.call("--format=json")
            tap.equal((result.returncode, result.stderr), (0, ""), source)
            found = json.loads(result.stdout)["statement"]["ways"]
            expected = math.fsum(0.1 * (standin_grid.value_at(slice["start_s"] // step * step) + shift) for slice in slices)
            close(found[0]["carbon_g"]["all"], expected, f"grams by {source}")
            tap.equal(len(found), 4, source)
            asked = len(grid.log)
            tap.equal(asked > 0, True)
            tap.equal(place.document("--cached")["statement"]["ways"], found, source)
            tap.equal(len(grid.log), asked, "the cache alone")
            tap.equal(standin_grid.KEY in result.stdout + result.stderr, False, "the key is told to nobody")
        place.environment["FLYBALL_CARBON_CACHE"] = str(place.home / "empty")
        lost = place.document()
        tap.equal(lost["source_remark"] is None or lost["statement"]["intensity"] is not None, False, "the service is gone")
        close(lost["statement"]["ways"][0]["energy_j"]["gpus"], 48 * 3.6e5, "energy without a service")


def test_what_cannot_be_shown():
    place = Place()
    for arguments, status, words in ((("--list",), 0, "no account of energy yet"), ((), None, "no account of energy yet"),
                                     (("nobody",), None, "'nobody'"), (("no/such.jsonl",), None, "no/such.jsonl")):
        result = place.call(*arguments)
        tap.equal(result.returncode == 0, status == 0, str(arguments))
        tap.contains(result.stderr, words, str(arguments))
    place.account([])
    result = place.call()
    tap.equal(result.returncode != 0, True)
    tap.contains(result.stderr, "no energy yet")
    path = place.account([piece(START, 1000, 100e3, 300)])
    path.write_text(path.read_text(encoding="utf-8").replace('"gpu_j": 100000.0', '"gpu_j": -1'), encoding="utf-8")
    tap.contains(place.call().stderr, path.name)
    place.account([piece(START, 1000, 100e3, 300)], source="", price="", run="\x1b[2Jnight", host="\x7f\u00fc<&")
    result = place.call("--svg=odd.svg", "--periods")
    tap.contains(result.stdout, "?[2Jnight")
    tap.equal("\x1b" in result.stdout or "\x7f" in result.stdout, False)
    svg_texts.check(place.home / "odd.svg")
    place.account([piece(START, 1000, 100e3, 300)], source="", price="")
    result = place.call("--svg=nowhere/r.svg")
    tap.equal(result.returncode != 0, True)
    tap.contains(result.stderr, "nowhere/r.svg")


tap.main(globals())
