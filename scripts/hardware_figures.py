# SPDX-License-Identifier: Apache-2.0
"""What the lines of verify_poll and verify_train come to (verify/*_program.c). Pure: rows in, figures out.

A figure that cannot be had is None, never 0.
"""
import csv
import math
import statistics

# A counter that changes at more than this share of all readings shows no period of its own.
CHANGES_AT_MOST = 0.5


def quantile(values, share):
    """Linear between the two nearest of the sorted values; None of none."""
    ordered = sorted(values)
    if not ordered:
        return None
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def spread(values):
    """Count, lowest, median, 95th and 99th percentile, highest."""
    values = list(values)
    names = {"lowest": 0.0, "median": 0.5, "p95": 0.95, "p99": 0.99, "highest": 1.0}
    return {"count": len(values), **{name: quantile(values, share) for name, share in names.items()}}


def line_through(points):
    """(offset, slope) of the least squares through (x, y)."""
    mean_x = statistics.fmean(x for x, _ in points)
    mean_y = statistics.fmean(y for _, y in points)
    square = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / square if square > 0 else 0.0
    return mean_y - slope * mean_x, slope


def rows_of(path):
    """The lines of verify_poll by their first word."""
    found = {}
    with open(path, encoding="ascii") as file:
        for row in csv.reader(file):
            found.setdefault(row[0], []).append(row[1:])
    return found


def calls(rows):
    """By name: how long a call takes in us, or the code with which it was refused."""
    names = {}
    for name, code, took_ns in rows.get("call", []):
        names.setdefault(name, []).append((int(code), int(took_ns) / 1000))
    return {name: {"code": made[-1][0], **spread(took_us for code, took_us in made if code == 0)}
            for name, made in names.items()}


def moments(rows, name, burst):
    """(moment, half of what it is uncertain by, value) of each change, in s."""
    found = []
    for of, number, before, _, end, value in rows.get("change", []):
        if (of, number) == (name, str(burst)):
            found.append(((int(before) + int(end)) / 2e9, (int(end) - int(before)) / 2e9, int(value)))
    return found


def grid_fit(times, period):
    """(phase, period, residuals) of times that lie on a grid of about that period, some of its points left out."""
    origin, places = times[0], [0]
    for before, after in zip(times, times[1:]):
        places.append(places[-1] + max(1, round((after - before) / period)))
    offset, period = line_through([(place, time - origin) for place, time in zip(places, times)])
    return origin + offset, period, [time - origin - offset - place * period for place, time in zip(places, times)]


def updates(rows, name, burst=0):
    """How a reading changes while it is polled without a pause."""
    polled = [row for row in rows.get("polls", []) if row[:2] == [name, str(burst)]]
    seen = moments(rows, name, burst)
    if not polled:
        return None
    count = int(polled[0][2])
    figures = {"polls": count, "changes": len(seen), "poll_us": None, "gap_ms": spread([]), "period_ms": None,
               "jitter_ms": spread([]), "skipped": None, "step": spread([]), "divisor": None, "at_most": False}
    if count > 0:
        figures["poll_us"] = (int(polled[0][4]) - int(polled[0][3])) / count / 1000
    if len(seen) < 3:
        return figures
    times = [time for time, _, _ in seen]
    gaps = [after - before for before, after in zip(times, times[1:])]
    steps = [after[2] - before[2] for before, after in zip(seen, seen[1:])]
    figures["gap_ms"] = spread(1000 * gap for gap in gaps)
    figures["step"] = spread(steps)
    figures["divisor"] = math.gcd(*steps)
    figures["at_most"] = len(seen) > CHANGES_AT_MOST * count
    _, period, residuals = grid_fit(times, statistics.median(gaps))
    figures["period_ms"] = 1000 * period
    figures["jitter_ms"] = spread(1000 * abs(residual) for residual in residuals)
    figures["skipped"] = sum(max(0, round(gap / period) - 1) for gap in gaps)
    return figures


def tracking(rows, name="energy"):
    """Whether the grid of the first burst holds in the later ones: one period and phase fitted to all of them."""
    first = [time for time, _, _ in moments(rows, name, 0)]
    if len(first) < 5:
        return None
    gaps = [after - before for before, after in zip(first, first[1:])]
    phase, period, _ = grid_fit(first, statistics.median(gaps))
    points = [(round((time - phase) / period), time) for time in first]
    bursts = []
    for burst in sorted({int(row[1]) for row in rows.get("polls", []) if row[0] == name} - {0}):
        times = [time for time, _, _ in moments(rows, name, burst)]
        if not times:
            continue
        offsets = [time - phase - round((time - phase) / period) * period for time in times]
        bursts.append({"after_s": times[0] - first[-1], "offset_ms": 1000 * statistics.median(offsets)})
        points += [(round((time - phase) / period), time) for time in times]
        offset, period = line_through([(place, time - first[0]) for place, time in points])
        phase = offset + first[0]
    residuals = [time - phase - place * period for place, time in points]
    return {"period_ms": 1000 * period, "bursts": bursts, "span_s": points[-1][1] - points[0][1],
            "residual_ms": spread(1000 * abs(residual) for residual in residuals)}


def stamps(rows):
    """What the driver's own timestamps of fields say, by field."""
    fields = {}
    for name, _, _, date_us, stamp_us, latency_us, code, value in rows.get("field", []):
        fields.setdefault(name, []).append((int(date_us), int(stamp_us), int(latency_us), int(code), int(value)))
    found = {}
    for name, seen in fields.items():
        good = [row for row in seen if row[3] == 0]
        pairs = list(zip(good, good[1:]))
        found[name] = {"calls": len(seen), "answered": len(good), "code": seen[-1][3],
                       "stamp_changes": sum(before[1] != after[1] for before, after in pairs),
                       "value_changes": sum(before[4] != after[4] for before, after in pairs),
                       "both": sum(before[1] != after[1] and before[4] != after[4] for before, after in pairs),
                       "age_ms": spread((row[0] - row[1]) / 1000 for row in good if row[1] > 0),
                       "latency_us": spread(row[2] for row in good)}
    return found


def together(rows, period_ms):
    """Whether counter and instant power change at once, and whether the counter gains what the power reading says.

    By calls for several fields at a time."""
    seen = {}
    for name, begin, end, _, _, _, code, value in rows.get("field", []):
        if int(code) == 0:
            seen.setdefault((int(begin) + int(end)) / 2e9, {})[name] = int(value)
    polled = [(moment, values) for moment, values in sorted(seen.items()) if {"energy", "power_instant"} <= set(values)]
    changes = {name: [(after, values[name], values["power_instant"]) for (_, before), (after, values) in
                      zip(polled, polled[1:]) if before[name] != values[name]] for name in ("energy", "power_instant")}
    if not period_ms or len(changes["energy"]) < 3 or len(changes["power_instant"]) < 3:
        return None
    apart = [min(abs(moment - other) for other, _, _ in changes["power_instant"]) for moment, _, _ in changes["energy"]]
    ratios = [(after - before) / (reading * max(1, round(1000 * (end - begin) / period_ms)) * period_ms / 1000)
              for (begin, before, _), (end, after, reading) in zip(changes["energy"], changes["energy"][1:]) if reading > 0]
    return {"changes": len(apart), "at_once": sum(gap == 0 for gap in apart), "apart_ms": spread(1000 * gap for gap in apart),
            "ratio": [quantile(ratios, share) for share in (0.05, 0.5, 0.95)]}


def samples(rows):
    """The driver's buffer of power samples."""
    asked = [[int(word) for word in row] for row in rows.get("samples", [])]
    if not asked:
        return None
    gaps, ages = [], []
    for number in range(len(asked)):
        own = [row for row in rows.get("sample", []) if int(row[0]) == number]
        times = [int(row[2]) for row in own]
        gaps += [(after - before) / 1000 for before, after in zip(times, times[1:])]
        if own:
            ages.append((int(own[-1][1]) - times[-1]) / 1000)
    return {"code": asked[0][1], "counts": [row[2] for row in asked], "call_us": [row[3] / 1000 for row in asked],
            "gap_ms": spread(gaps), "newest_age_ms": spread(ages)}


def sparse(rows, period_ms):
    """How far rare readings of the counter lie from a line, in updates of it: 0.29 if it has a period, 0 on reading.

    For a steady load."""
    seen = [((int(begin) + int(end)) / 2e9, int(value)) for begin, end, value in rows.get("sparse", [])]
    if len(seen) < 10 or not period_ms:
        return None
    first_s, first = seen[0]
    points = [(time - first_s, value - first) for time, value in seen]
    offset, power_mw = line_through(points)
    if power_mw <= 0:
        return None
    off = statistics.pstdev(value - offset - power_mw * time for time, value in points)
    return {"readings": len(seen), "updates": off / (power_mw * period_ms / 1000)}


def costs(rows):
    """A window's begin and end against the two bare calls, in us."""
    found = {kind: [int(row[1]) / 1000 for row in rows.get("cost", []) if row[0] == kind] for kind in ("bare", "meter")}
    if not found["bare"] or not found["meter"]:
        return None
    figures = {kind: spread(values) for kind, values in found.items()}
    return {**figures, "ratio": figures["meter"]["median"] / figures["bare"]["median"]}


def crossing_ms(seen, begin_s, end_s, low, high, share):
    """How long after begin_s a reading has gone that share of the way from `low` to `high`; None: not before end_s."""
    goal = low + share * (high - low)
    for moment, value in seen:
        if begin_s <= moment < end_s and (value >= goal if high > low else value <= goal):
            return 1000 * (moment - begin_s)
    return None


def response(rows, units):
    """How readings of power follow a load that comes and goes; `units`: (begin, end) of the work, in s."""
    found = {}
    for name in sorted({row[0] for row in rows.get("watch", [])}):
        seen = [((int(begin) + int(end)) / 2e9, int(value)) for of, begin, end, value in rows["watch"] if of == name]
        edges = {"rise": [], "fall": []}
        for (begin, end), (after, _) in zip(units, units[1:]):
            busy = [value for moment, value in seen if end - (end - begin) / 4 <= moment < end]
            rest = [value for moment, value in seen if after - (after - end) / 4 <= moment < after]
            if not busy or not rest or statistics.median(busy) < 1.1 * statistics.median(rest):
                continue
            high, low = statistics.median(busy), statistics.median(rest)
            edges["rise"].append([crossing_ms(seen, begin, end, low, high, share) for share in (0.1, 0.5, 0.9)])
            edges["fall"].append([crossing_ms(seen, end, after, high, low, share) for share in (0.1, 0.5, 0.9)])
        found[name] = {edge: {"count": len(times), "ms": [
            quantile([row[place] for row in times if row[place] is not None], 0.5) for place in range(3)]}
            for edge, times in edges.items()}
    return found


def units_of(path):
    """The lines of verify_train --steps-file, in s."""
    with open(path, encoding="ascii") as file:
        return [(int(begin) / 1e9, int(end) / 1e9) for begin, end in csv.reader(file)]


def number(text):
    return float(text) if text else None


def windows_of(path):
    """The lines of verify_train --windows."""
    with open(path, encoding="ascii") as file:
        return [{key: value if key == "source" else number(value) for key, value in row.items()}
                for row in csv.DictReader(file)]


def unit_energy(rows, training):
    """The energy of a unit as a function of the moment, by the counter over long windows; it may drift with heat."""
    longest = [row for row in rows if row["length_s"] >= 2 and row["counter_j"]]
    if len(longest) >= 6:
        points = [((row["begin_ns"] + row["end_ns"]) / 2e9, row["counter_j"] / row["units"]) for row in longest]
        middle = statistics.fmean(moment for moment, _ in points)
        offset, slope = line_through([(moment - middle, energy) for moment, energy in points])
        return lambda moment: offset + slope * (moment - middle)
    if not training.get("counter_j") or not training.get("units"):
        return None
    mean = training["counter_j"] / training["units"]
    return lambda moment: mean


def errors(rows, key, expected):
    """Of figures against known-equal work, in percent."""
    off = [100 * (row[key] / expected(row) - 1) for row in rows if row[key] is not None]
    return {"count": len(off), "share": len(off) / len(rows), "bias": quantile(off, 0.5),
            "median": quantile(map(abs, off), 0.5), "p95": quantile(map(abs, off), 0.95)}


def window_errors(rows, training):
    """By length: errors of the meter's figure, the bare counter and the integral; and what the interval holds."""
    energy_at = unit_energy(rows, training)
    if energy_at is None:
        return []

    def expected(row):
        return row["units"] * energy_at((row["begin_ns"] + row["end_ns"]) / 2e9)

    found = []
    for length in sorted({row["length_s"] for row in rows}):
        own = [row for row in rows if row["length_s"] == length]
        stated = [row for row in own if row["energy_j"] is not None and row["uncertainty_j"] is not None]
        held = [row for row in stated if abs(row["energy_j"] - expected(row)) <= row["uncertainty_j"]]
        found.append({"length_s": length, "units": int(own[0]["units"]), "windows": len(own),
                      "time_s": statistics.median(row["time_s"] for row in own),
                      **{key: errors(own, f"{key}_j", expected) for key in ("energy", "counter", "integral")},
                      "stated": quantile([100 * row["uncertainty_j"] / row["energy_j"] for row in stated
                                          if row["energy_j"] > 0], 0.5),
                      "held": 100 * len(held) / len(stated) if stated else None})
    return found


def words_of(text):
    """The lines NAME VALUE of verify_train, numbers as numbers."""
    found = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        try:
            found[name] = float(value)
        except ValueError:
            found[name] = value
        if isinstance(found[name], float) and not math.isfinite(found[name]):
            found[name] = None
    return found
