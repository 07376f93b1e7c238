# SPDX-License-Identifier: Apache-2.0
"""The page of verify_gpu, from its figures. What is not known says so; names of machines and cards never come here."""
import re

from hardware_stages import STANDS

READINGS = {"energy": "energy counter (mJ)", "power": "nvmlDeviceGetPowerUsage (mW)", "power_instant": "field 186 (mW)",
            "power_average": "field 185 (mW)"}
CALLS = {"energy": "nvmlDeviceGetTotalEnergyConsumption", "power": "nvmlDeviceGetPowerUsage",
         "power_instant": "nvmlDeviceGetFieldValues, field 186", "power_average": "the same, field 185",
         "fields": "the same, fields 83, 185 and 186 at once"}
FIELDS = {"energy": "83, energy", "power_instant": "186, instant power", "power_average": "185, average power"}
ON_OFF = {0: "off", 1: "on"}
LACKING = -1


def is_emulated(gpu):
    return gpu.get("label") == "emulated" or "emulat" in gpu["name"].lower()


def slug(text):
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")


def file_name(gpu):
    return ("EMULATED-" if is_emulated(gpu) else "") + f"{slug(gpu['name'])}-{slug(gpu['driver'])}.md"


def shown(value, digits=3):
    """A figure with so many significant digits."""
    if value is None:
        return "not known"
    if isinstance(value, str):
        return value
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e+" in text else text


def several(*values):
    """Figures of one cell."""
    return ", ".join(map(shown, values)) if None not in values else None


def table(head, rows, words=False):
    """`words`: of texts, which stand on the left."""
    lines = ["| " + " | ".join(head) + " |", "| --- |" + (" --- |" if words else " ---: |") * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(shown(cell).replace("|", "/") for cell in row) + " |" for row in rows])


def section(title, *paragraphs):
    return "\n\n".join([f"## {title}", *(paragraph for paragraph in paragraphs if paragraph)])


def about_gpu(facts):
    gpu, power = facts["gpu"], (facts["found"].get("devices") or {}).get("power", {})
    memory = gpu.get("memory_bytes")
    rows = [("model", gpu["name"]), ("driver", gpu["driver"]), ("memory (GiB)", memory / 2**30 if memory else None),
            ("power limit (W)", power.get("power_limit_w")), ("enforced (W)", power.get("power_limit_enforced_w")),
            ("its default (W)", gpu.get("power_limit_default_w")), ("lowest limit (W)", gpu.get("power_limit_min_w")),
            ("highest limit (W)", gpu.get("power_limit_max_w")), ("highest clock (MHz)", gpu.get("clock_gpu_max_mhz")),
            ("memory clock (MHz)", gpu.get("clock_memory_mhz")), ("energy counter", gpu.get("energy_counter")),
            ("persistence mode", ON_OFF.get(gpu.get("persistence_mode"))), ("MIG mode", ON_OFF.get(gpu.get("mig_mode"))),
            ("limits may be set by this user", power.get("may_be_set"))]
    return section("The GPU", table(("fact", "value"), rows, words=True))


def stages_of(facts):
    """(name on the page, figures) of the two stages that polled."""
    return [(title, facts["found"][name]) for name, title in (("idle", "as it was"), ("loaded", "training"))
            if name in facts["found"]]


def update_rows(facts):
    for title, found in stages_of(facts):
        for name, words in READINGS.items():
            seen = found["updates"].get(name)
            if seen is None or seen["polls"] == 0:
                yield (words, title, "refused" if seen else None, *[None] * 7)
                continue
            yield (words, title, seen["polls"], seen["poll_us"], seen["changes"],
                   "at most " + shown(seen["period_ms"]) if seen["at_most"] else seen["period_ms"],
                   several(seen["jitter_ms"]["median"], seen["jitter_ms"]["p95"]),
                   several(seen["gap_ms"]["lowest"], seen["gap_ms"]["highest"]), seen["skipped"], seen["divisor"])


def tracking_text(title, found):
    tracked = found["tracking"]
    if tracked is None:
        return f"{title}: the counter showed too few changes for a phase."
    bursts = "; ".join(f"{shown(burst['offset_ms'])} ms after {shown(burst['after_s'])} s" for burst in tracked["bursts"])
    residual = tracked["residual_ms"]
    text = (f"{title}: one period of {shown(tracked['period_ms'], 7)} ms and one phase, fitted to {residual['count']} changes in "
            f"bursts over {shown(tracked['span_s'])} s, leave {shown(residual['median'])} ms at the median, "
            f"{shown(residual['p95'])} ms at p95. Later bursts lay off the grid as it was known before them by: {bursts}.")
    if found["sparse"]:
        text += (f" {found['sparse']['readings']} readings at random moments lay off a line by "
                 f"{shown(found['sparse']['updates'])} updates (0.29 if the counter keeps its period when nobody reads it, 0 "
                 "if reading updates it).")
    return text


def counter(facts):
    if not stages_of(facts):
        return ""
    head = ("reading", "machine", "polls", "a poll (us)", "changes", "period (ms)", "jitter (ms): median, p95",
            "gaps (ms): least, most", "skipped", "divides all steps")
    why = (facts["found"].get("loaded") or {}).get("without_load")
    return section("How the readings change",
                   "Each reading was polled without a pause. The period is that of the grid that fits the changes best; the "
                   "jitter is how far changes lie off it, half a poll included.",
                   f"**No training ran in the rows that say training:** {why}" if why else "",
                   table(head, list(update_rows(facts))),
                   *(tracking_text(title, found) for title, found in stages_of(facts)))


def timestamps(facts):
    rows, texts = [], []
    for title, found in stages_of(facts):
        for name, seen in found["fields"].items():
            age = seen["age_ms"]
            rows.append((FIELDS[name], title, f"{seen['answered']} of {seen['calls']}", seen["value_changes"],
                         seen["stamp_changes"], seen["both"],
                         several(age["lowest"], age["median"], age["highest"]), seen["latency_us"]["median"]))
        if found["together"]:
            both = found["together"]
            low, middle, high = (shown(share, 4) for share in both["ratio"])
            texts.append(f"{title}: of {both['changes']} changes of the counter {both['at_once']} came in the same call as one of "
                         f"field 186, the others up to {shown(both['apart_ms']['highest'])} ms apart. From one change to the next "
                         f"the counter gained {middle} times its period times the new reading of field 186 ({low} to {high} in 90 "
                         "of 100).")
        kept = found["samples"]
        if kept is None or kept["code"] != 0:
            texts.append(f"{title}: nvmlDeviceGetSamples " + ("was not asked." if kept is None else
                         "is not in the driver's library." if kept["code"] == LACKING else f"is refused ({kept['code']})."))
        else:
            texts.append(f"{title}: nvmlDeviceGetSamples gave {', '.join(map(str, kept['counts']))} power samples, "
                         f"{shown(kept['gap_ms']['median'])} ms apart at the median ({shown(kept['gap_ms']['lowest'])} to "
                         f"{shown(kept['gap_ms']['highest'])}); the newest was {shown(kept['newest_age_ms']['median'])} ms "
                         f"old; a call took {shown(max(kept['call_us']))} us at most.")
    if not rows and not texts:
        return ""
    head = ("field", "machine", "answered", "value changed", "stamp changed", "both", "age (ms): least, median, most",
            "latency (us)")
    return section("The driver's own timestamps",
                   "Three fields in one call, a millisecond apart. A stamp that changes as often as the value, and with it, "
                   "says when the value was made; one that changes in each call says when it was asked for. The age is the "
                   "wall clock's time in the middle of the call, less the stamp.", table(head, rows), *texts)


def calls(facts):
    rows, texts = [], []
    for title, found in stages_of(facts):
        for name, words in CALLS.items():
            took = found["calls"].get(name)
            if took and took["count"]:
                rows.append((words, title, took["count"], took["lowest"], took["median"], took["p99"], took["highest"]))
            elif took:
                rows.append((words, title, "not there" if took["code"] == LACKING else f"refused ({took['code']})", *[None] * 4))
        if found["costs"]:
            both = found["costs"]
            texts.append(f"{title}: a window's begin and end took {shown(both['meter']['median'])} us at the median of "
                         f"{both['meter']['count']} (p95 {shown(both['meter']['p95'])}), two bare readings of the counter "
                         f"{shown(both['bare']['median'])} us (p95 {shown(both['bare']['p95'])}): {shown(both['ratio'])} times.")
    if not rows:
        return ""
    return section("What calls cost", table(("call (us)", "machine", "calls", "shortest", "median", "p99", "longest"), rows), *texts)


def response(facts):
    found = facts["found"].get("response")
    if found is None:
        return ""
    rows = [(READINGS[name], {"rise": "begins", "fall": "ends"}[edge], seen["count"], *seen["ms"])
            for name, edges in found.items() for edge, seen in edges.items()]
    return section("How readings follow a load",
                   "A training works and pauses for 1.5 s in turn, and the readings are taken a millisecond apart: the median time "
                   "from the work's begin or end until a reading has gone a share of its way.",
                   table(("reading", "the load", "times", "10 % (ms)", "50 % (ms)", "90 % (ms)"), rows))


def training_text(told):
    """What a training did, of its words."""
    time_s, done = told.get("time_s"), told.get("steps")
    if not time_s or not done:
        return "The training did not get to a step."
    return (f"{done:.0f} steps in {shown(time_s, 4)} s, {shown(1000 * time_s / done)} ms each: {told['rounds']:.0f} times two products "
            f"of matrices of {told['matrix_rows']:.0f} rows, {told['updates']:.0f} updates of {told['parameters']:.0f} parameters; "
            f"{shown(done * told['step_flop'] / time_s / 1e12)} TFLOP/s and {shown(done * told['step_bytes'] / time_s / 1e9)} GB/s "
            f"over all; kernels as PTX {told['kernels']}. The loss fell from {shown(told['loss_first'])} to "
            f"{shown(told['loss_last'])}.")


def steps(facts):
    found = facts["found"].get("steps")
    if found is None:
        return ""
    run = found["run"]
    told = found["training"]
    counter_j = told.get("counter_j")
    return section("A training, measured from outside", training_text(told),
                   f"Its step lines: {found['lines']}, of {shown(told.get('steps'))} steps. `flyball run` around it, with the "
                   f"compilation and the steps that fitted it to the GPU: {shown(run.get('energy_j'), 5)} J ± "
                   f"{shown(run.get('uncertainty_j'))} J by {run.get('source')}, {shown(run.get('integral_j'), 5)} J by sampled "
                   f"power, in {shown(run.get('time_s'), 4)} s. The counter over the steps alone: {shown(counter_j, 5)} J.")


def windows(facts, name, title, text):
    found = facts["found"].get(name)
    if found is None:
        return ""
    rows = []
    for row in found["lengths"]:
        cells = [f"{row['length_s']:g}", shown(row["time_s"]), row["windows"]]
        for key in ("energy", "counter", "integral"):
            off = row[key]
            cells.append(f"{shown(off['median'], 2)}, {shown(off['p95'], 2)}" if off["count"] else None)
        rows.append((*cells, f"{100 * row['energy']['share']:.0f}", shown(row["stated"], 2), shown(row["held"])))
    head = ("length (s)", "took (s)", "windows", "Flyball (%): median, p95", "bare counter (%)", "sampled power (%)",
            "with a figure (%)", "stated ± (%)", "held (%)")
    return section(title, text, training_text(found["training"]), table(head, rows) if rows else "There are no windows.")


def findings(device, beginning=""):
    """Those whose check begins so."""
    return table(("check", "outcome", "what was seen"),
                 [(row["check"], row["outcome"].replace("_", " "), row["text"]) for row in device["findings"]
                  if row["check"].startswith(beginning)], words=True)


def selftest(facts):
    device = facts["found"].get("selftest")
    return section("Self-test", findings(device)) if device else ""


def tuned(found, key, unit):
    tune = found["tune"]
    if not tune.get("points"):
        return f"Nothing was tried: {tune.get('off') or tune.get('reason_text') or tune.get('reason') or tune['state']}."
    rows = [(shown(point.get(key)), point["mark"], point["bound"], point["power_w"],
             1000 * point["step_time_s"] if point["step_time_s"] else None, point["step_energy_j"])
            for point in tune["points"] if point["mark"] != "not measured"]
    chosen = tune.get(f"chosen_{key}")
    return "\n\n".join([table((unit, "mark", "bound", "power (W)", "step (ms)", "energy of a step (J)"), rows),
                        f"{len(tune['points']) - len(rows)} others were not measured. Chosen: {shown(chosen)}; "
                        f"{shown(tune['steps'])} steps were counted, of "
                        f"{shown(found['training'].get('steps'))}. State: {tune['state']}."])


def knobs(facts):
    found, parts = facts["found"], []
    if "turning" in found:
        parts.append(findings(found["turning"], "limit"))
    if "limit" in found:
        limit = found["limit"]
        both = [(title, told.get("counter_j") / told["steps"] if told.get("counter_j") and told.get("steps") else None,
                 1000 * told["time_s"] / told["steps"] if told.get("steps") else None)
                for title, told in ((f"{shown(limit['before']['power_limit_w'])} W", limit["at_first"]),
                                    (f"{limit['limit_w']} W", limit["lowered"]))]
        parts.append(table(("limit", "energy of a step (J)", "step (ms)"), both) +
                     f"\n\nAfterwards the limit was {shown(limit['after']['power_limit_w'])} W, enforced "
                     f"{shown(limit['after']['power_limit_enforced_w'])} W.")
    for name, key, unit in (("tune_power", "limit_w", "limit (W)"), ("tune_clock", "ceiling_mhz", "ceiling (MHz)")):
        if name in found:
            parts.append(tuned(found[name], key, unit))
    return section("Knobs", *parts) if parts else ""


def ending(facts):
    before = (facts["found"].get("devices") or {}).get("power")
    after = (facts["found"].get("unchanged") or {}).get("power")
    if before is None or after is None:
        text = "Whether all stands as before is not known."
    elif all(before[key] == after[key] for key in STANDS):
        text = "Power limits and persistence mode stand as before."
    else:
        text = "Not as before: " + ", ".join(f"{key} was {shown(before[key])} and is {shown(after[key])}"
                                             for key in STANDS if before[key] != after[key]) + "."
    return section("At the end", text)


def page(facts):
    gpu = facts["gpu"]
    emulated = is_emulated(gpu)
    title = f"# {'EMULATED: ' if emulated else ''}{gpu['name']}, driver {gpu['driver']}"
    knob_text = ("Power limits and clocks were set and put back (`TURN_KNOBS=1`)." if facts["turn_knobs"]
                 else "Nothing was set.")
    head = (f"Made by `make verify-gpu` on {facts['date']} with {facts['version']}, at {facts['scale']:g} times the usual length. "
            f"{knob_text} " + ("**No hardware was measured: an emulator answered.** " if emulated else "") +
            "What the figures mean: docs/reference/hardware/README.md.")
    failed = facts["failed"]
    steady_text = ("Each step is the same work, so all windows of as many steps took the same energy, but for drift with heat, "
                   "which is taken out by a line. What a figure differs from that line is its error; the gain of the board's "
                   "sensor is in both. `held` is the share of stated intervals that hold the line.")
    uneven_text = "The same with eight steps and a pause of 97 ms in turn: the load changes within windows and at their edges."
    parts = [title, head,
             section("Not measured", "\n".join(f"- {name}: {why}" for name, why in failed.items())) if failed else "",
             about_gpu(facts), counter(facts), timestamps(facts), calls(facts), response(facts), steps(facts),
             windows(facts, "steady", "Windows of a steady training", steady_text),
             windows(facts, "uneven", "Windows of a training with pauses", uneven_text), selftest(facts), knobs(facts),
             ending(facts)]
    return "\n\n".join(part for part in parts if part) + "\n"
