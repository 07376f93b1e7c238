# SPDX-License-Identifier: Apache-2.0
"""The stages of verify_gpu: what is run, and what it came to. Each returns figures, or raises Failed with the reason.

A stage that `turns` sets something, puts it back, and runs only when asked for.
"""
import dataclasses
import json
import os
import typing

import hardware_figures as figures
from hardware_programs import Failed

# Of the GPU: what has to be at the end as it was at first.
STANDS = ("power_limit_w", "power_limit_enforced_w", "power_limit_default_w", "persistence_mode")
NOTHING_FOUND = 69  # status of a `flyball doctor` that sees nothing
STEP_S, RESPONSE_S = 0.02, 1.5
TUNE_SLOWDOWN = "10%"


@dataclasses.dataclass(frozen=True)
class Stage:
    name: str
    title: str
    run: typing.Callable
    turns: bool = False
    always: bool = False  # also when the time is up


def find_gpu(programs):
    """The chosen GPU as `flyball devices` shows it, or None and why."""
    try:
        rows = programs.json(programs.with_driver("devices", "--format", "json"))["rows"]
    except Failed as reason:
        return None, str(reason)
    for row in rows:
        if row["kind"] == "GPU" and row["backend"] == "nvml" and row["index"] == programs.gpu:
            own = {key: value for key, value in row.items() if key not in ("uuid", "pci")}
            return {**own, "driver": row.get("driver") or "unknown"}, ""
    seen = sum(row["kind"] == "GPU" for row in rows)
    return None, f"GPUs there: {seen}" if seen else why_none(programs)


def why_none(programs):
    """Why there is no GPU, by `flyball doctor`."""
    try:
        rows = programs.json(programs.with_driver("doctor", "--format", "json"), also=NOTHING_FOUND)["rows"]
        return next(row["finding"] for row in rows if row["topic"] == "nvidia" and "NVML" in row["subject"])
    except (Failed, StopIteration, KeyError):
        return "'flyball doctor' says more"


def stands(programs):
    """What can be set on the GPU, as it is, and whether this user may."""
    rows = programs.json(programs.with_driver("power", "get", "--format", "json", "-i", str(programs.gpu)))["rows"]
    return {key: rows[0].get(key) for key in STANDS} | {"may_be_set": rows[0]["may_be_set"]}


def devices(programs, _):
    gpu, why = find_gpu(programs)
    if gpu is None:
        raise Failed(why)
    return {"gpu": gpu, "power": stands(programs)}


def facts(programs, _):
    """Facts without names, beside the figures: `flyball doctor --replay` plays them."""
    path = programs.work / "machine.facts"
    path.unlink(missing_ok=True)
    programs.run(programs.with_driver("record", "--facts", "--yes", "-i", str(programs.gpu), path), 90)
    return {"bytes": path.stat().st_size}


def poll(programs, scale, name):
    path = programs.work / f"{name}.csv"
    path.write_text(programs.run(programs.own("verify_poll", "--scale", str(scale)), 60 + 60 * scale), encoding="ascii")
    rows = figures.rows_of(path)
    tracked = figures.tracking(rows)
    return {"calls": figures.calls(rows), "tracking": tracked, "fields": figures.stamps(rows),
            "updates": {reading: figures.updates(rows, reading)
                        for reading in ("energy", "power", "power_instant", "power_average")},
            "together": figures.together(rows, tracked and tracked["period_ms"]), "samples": figures.samples(rows), "costs": figures.costs(rows),
            "sparse": figures.sparse(rows, tracked and tracked["period_ms"])}


def idle(programs, scale):
    """The machine as it is."""
    return poll(programs, 0.3 * scale, "idle")


def loaded(programs, scale):
    """Under a steady training; where there is none, what runs."""
    load = programs.load(60 + 60 * scale)
    try:
        why = load.start()
        return {"without_load": why and programs.clean(why), **poll(programs, scale, "loaded")}
    finally:
        load.end()


def response(programs, scale):
    """Work and pauses of about RESPONSE_S each."""
    path = programs.work / "response.csv"
    units = max(3, round(5 * scale))
    load = programs.load(60 + 60 * scale, "--work-steps", str(round(RESPONSE_S / STEP_S)), "--pause-ms",
                         str(round(1000 * RESPONSE_S)))
    try:
        why = load.start()
        if why:
            raise Failed(why)
        path.write_text(programs.run(programs.own("verify_poll", "--watch", str(2 * units * RESPONSE_S)),
                                     60 + 60 * scale), encoding="ascii")
    finally:
        load.end()
    return figures.response(figures.rows_of(path), figures.units_of(load.begun))


def steps(programs, scale):
    """A training that `flyball run` measures from outside, whose steps are counted by the lines that it writes."""
    lines, report = programs.work / "steps.lines", programs.work / "run.json"
    lines.write_text("", encoding="ascii")
    place = os.stat(lines)
    report.unlink(missing_ok=True)
    training = programs.own("verify_train", "--seconds", str(8 * scale))
    text = programs.run(programs.with_driver("run", "--quiet", "-i", str(programs.gpu), "--output", report, "--", "env",
                                             f"FLYBALL_STEPS={lines}:{place.st_dev}:{place.st_ino}", *training),
                        60 + 30 * scale)
    told = figures.words_of(text)
    written = [line.split() for line in lines.read_text(encoding="ascii").splitlines()]
    counted = sum("step" in words for words in written)
    return {"training": told, "lines": counted, "run": run_energy(report)}


def run_energy(path):
    """The GPU's row of a run's report."""
    document = json.loads(path.read_text(encoding="utf-8"))
    gpus = [device for device in document["devices"] if device.get("kind") == "GPU"]
    keys = ("energy_j", "uncertainty_j", "energy_uncertainty_j", "source", "integral_j", "mean_power_w", "time_s", "note")
    return {key: gpus[0].get(key) for key in keys if key in gpus[0]} if gpus else {}


def windows(programs, seconds, name, *words):
    path = programs.work / f"{name}.csv"
    text = programs.run(programs.own("verify_train", "--seconds", str(seconds), "--windows", path, *words),
                        60 + 3 * seconds)
    told = figures.words_of(text)
    return {"training": told, "lengths": figures.window_errors(figures.windows_of(path), told)}


def steady(programs, scale):
    return windows(programs, 45 * scale, "steady")


def uneven(programs, scale):
    """Work with pauses, at no simple ratio to the periods of sensors."""
    return windows(programs, 30 * scale, "uneven", "--work-steps", "8", "--pause-ms", "97")


def selftest(programs, scale, *words):
    path = programs.work / ("turning.json" if words else "selftest.json")
    cuda = ["--cuda", programs.cuda] if programs.cuda else []
    programs.run(programs.with_driver("selftest", "-i", str(programs.gpu), "--duration", str(max(0.5, 5 * scale)), *cuda,
                                      *words, "--quiet", "--output", path), 120 + 120 * scale)
    found = [device for device in json.loads(path.read_text(encoding="utf-8"))["devices"] if device["kind"] == "GPU"]
    if not found:
        raise Failed("the self-test found no GPU")
    return found[0]


def reads(programs, scale):
    return selftest(programs, scale)


def turns(programs, scale):
    return selftest(programs, scale, "--turn-knobs")


def set_limit(programs, scale):
    """A lower limit around a training: its time and energy, and that the old one comes back."""
    before = stands(programs)
    gpu, _ = find_gpu(programs)
    if gpu is None or gpu["power_limit_max_w"] is None:
        raise Failed("the GPU tells no range of limits")
    lower_w = round((gpu["power_limit_min_w"] + gpu["power_limit_max_w"]) / 2)
    training = programs.own("verify_train", "--seconds", str(8 * scale))
    at_first = figures.words_of(programs.run(training, 60 + 30 * scale))
    lowered = figures.words_of(programs.run(
        programs.with_driver("power", "set", f"{lower_w}", "-i", str(programs.gpu), "--require", "--", *training),
        60 + 30 * scale))
    return {"limit_w": lower_w, "before": before, "after": stands(programs), "at_first": at_first, "lowered": lowered}


def tune(programs, scale, knob):
    path = programs.work / f"tune-{knob}.json"
    path.unlink(missing_ok=True)
    before = stands(programs)
    text = programs.run(programs.with_driver(
        "run", "--quiet", "-i", str(programs.gpu), "--tune", "--knob", knob, "--objective", "energy", "--max-slowdown",
        TUNE_SLOWDOWN, "--profile-steps", "10", "--energy-tolerance", "0.1", "--output", path, "--",
        *programs.own("verify_train", "--seconds", str(60 * scale))), 120 + 120 * scale)
    return {"training": figures.words_of(text), "tune": json.loads(path.read_text(encoding="utf-8"))["tune"],
            "before": before, "after": stands(programs)}


def tune_power(programs, scale):
    return tune(programs, scale, "power")


def tune_clock(programs, scale):
    return tune(programs, scale, "clock")


def unchanged(programs, _):
    """What can be set, compared with what stood at first."""
    return {"power": stands(programs)}


STAGES = (
    Stage("devices", "what the driver says of the GPU", devices),
    Stage("facts", "facts of the machine, without names", facts),
    Stage("idle", "counter and power readings, polled, the machine as it is", idle),
    Stage("loaded", "the same under a training", loaded),
    Stage("response", "how readings of power follow a load", response),
    Stage("steps", "a training measured from outside, its steps counted", steps),
    Stage("steady", "windows of 20 ms to 10 s of a steady training", steady),
    Stage("uneven", "windows of a training with pauses", uneven),
    Stage("selftest", "flyball selftest", reads),
    Stage("turning", "flyball selftest --turn-knobs: limits set and put back", turns, True),
    Stage("limit", "a power limit around a training", set_limit, True),
    Stage("tune_power", "a short tuning of the power limit", tune_power, True),
    Stage("tune_clock", "a short tuning of the clock", tune_clock, True),
    Stage("unchanged", "whether all stands as before", unchanged, always=True),
)
