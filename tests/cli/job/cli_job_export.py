# SPDX-License-Identifier: Apache-2.0
"""`flyball job export` and `import` from outside: a log taken along, and the simulator on what was exported.

usage: cli_job_export.py FLYBALL
"""
import csv
import json
import os
import pathlib
import shlex

import tap
from job_stores import BOX, CLEAN, CLIENT, FLYBALL, STORE, close, document, fill, fill_digits, good, job, refused, rows

CLIMB = pathlib.Path(FLYBALL).parent / "examples" / "policy_plugin.so"


# -- Taken along --


def test_export_and_import():
    lines = good("export", "digits").stdout
    good("export", "digits", "--output=digits.jsonl")
    tap.equal((BOX / "digits.jsonl").read_text(), lines)
    other = BOX / "other.sqlite"
    good("import", "digits", "digits.jsonl", store=other)
    tap.equal(good("export", "digits", store=other).stdout, lines)
    for command in ("show", "history", "why"):
        tap.equal(document(command, "digits", store=other), document(command, "digits"), command)
    good("import", "copy", "-", store=other, input=lines)
    tap.equal(good("export", "copy", store=other).stdout, lines.replace('"name":"digits"', '"name":"copy"'))
    refused(65, "is there already", "import", "digits", "digits.jsonl", store=other)


def test_import_of_what_does_not_fit():
    lines = good("export", "words").stdout.splitlines(keepends=True)
    third = json.loads(lines[2])
    for wrong, words in [
        (["nonsense\n"], "line 1"),
        ([], "there are no events"),
        (lines[1:], "line 1"),
        (lines[:2] + lines[3:], "line 3: member 'number'"),
        (lines[:2] + [json.dumps({**third, "kind": "made-up"}) + "\n"], "'made-up' is not known here"),
        (lines[:2] + [lines[2][:-9] + "\n"], "line 3"),
    ]:
        (BOX / "wrong.jsonl").write_text("".join(wrong))
        result = job("import", "wrong", "wrong.jsonl")
        tap.equal(result.returncode in (65, 69), True, result.stderr)
        tap.contains(result.stderr, words)
    tap.equal([row["job"] for row in rows("list")], ["digits", "words"])


def test_a_full_disk():
    if not os.path.exists("/dev/full"):
        raise tap.Skip("there is no /dev/full")
    refused(74, "No space left on device", "export", "digits", "--output=/dev/full")


# -- The loop --


def replay(name, *settings, recurrences=40):
    """The tries of a live job, and of the simulator on what it exported."""
    store, traces, tries = BOX / f"{name}.sqlite", BOX / name, BOX / f"{name}.csv"
    lived = fill(store, name, recurrences, *settings)
    notes = good("export", name, "--format=trace", f"--output={traces}", store=store).stderr
    command = next(line.partition("replay it: ")[2] for line in notes.splitlines() if "replay it: " in line)
    result = tap.run([FLYBALL, *shlex.split(command)[1:], f"--tries={tries}"], env=CLEAN)
    tap.equal(result.returncode, 0, result.stderr)
    with tries.open() as stream:
        simulated = [[row["recurrence"], row["try"], row["batch_size"], row["power_limit_w"].removesuffix(".0"),
                      row["reached"]] for row in csv.DictReader(stream)]
    return lived, simulated, notes


def knobs(tries):
    return [(size, float(limit), reached) for _, _, size, limit, reached in tries]


def decided_again(name, store):
    """What `sim replay` says of a job's log."""
    log = BOX / f"{name}.jsonl"
    good("export", name, f"--output={log}", store=store)
    result = tap.run([FLYBALL, "sim", "replay", str(log), "--all", "--format=json"], env=CLEAN)
    tap.equal(result.returncode, 0, (name, result.stderr))
    return json.loads(result.stdout)


def test_every_decision_is_taken_again():
    """By construction, also where a trace has no words: crashes, last tries, controls, bounds, other objectives."""
    for name, settings in {"again": ("crash=4", "tries=2", "control=5"), "again2": ("apart=1", "crash=9", "seed=5"),
                           "again3": ("policy=grid", "control=3"), "again4": ("target=0",)}.items():
        store = BOX / f"{name}.sqlite"
        fill(store, name, 25, *settings)
        if name == "again2":
            good("set", name, "--objective=energy", "--max-slowdown=3%", store=store)
            fill(store, name, 15, *settings)
        found, history = decided_again(name, store), document("history", name, store=store)["rows"]
        tap.equal((found["schema"], found["job"]), ("flyball.sim.replay/1", name))
        tap.equal((found["trials"]["compared"], found["trials"]["different"]), (len(history), 0), name)
        tap.equal((found["reports"]["compared"] > 0, found["reports"]["different"], found["limits"]["different"]), (True, 0, 0))
        rows = [row for row in found["rows"] if row["decision"] == "trial"]
        tap.equal([row["batch_size"] for row in rows], [row["batch_size"] for row in history], name)
        tap.equal({row["same"] for row in found["rows"]}, {"yes"}, name)


def test_a_log_that_was_tampered_with():
    store, log = BOX / "tampered.sqlite", BOX / "tampered.jsonl"
    fill(store, "tampered", 40)
    good("export", "tampered", f"--output={log}", store=store)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    changed = [line for line in lines if line["kind"] == "proposed" and line["body"]["reason"] == "sampled"][-1]
    sizes = sorted({line["body"]["batch_size"] for line in lines if line["kind"] == "proposed"})
    changed["body"]["batch_size"] = next(size for size in sizes if size != changed["body"]["batch_size"])
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = tap.run([FLYBALL, "sim", "replay", str(log)], env=CLEAN)
    tap.equal(result.returncode, 65, result.stderr)
    tap.contains(result.stdout, f"batch_size {changed['body']['batch_size']} on record")
    first = next(line for line in lines if line["kind"] == "proposed")
    del first["body"]["hardware"]
    bare = "".join(json.dumps(line) + "\n" for line in lines)
    for text, piece in (("", "there are no events"), ("nonsense\n", "line 1 is no JSON object"),
                        (bare, f"line {first['number']}: "), (bare, "'recurrence, line'"),
                        ('{"number": 2}\n', "line 1: member 'time_us'")):
        log.write_text(text)
        result = tap.run([FLYBALL, "sim", "replay", str(log)], env=CLEAN)
        tap.equal((result.returncode, result.stdout), (65, ""), result.stderr)
        tap.contains(result.stderr, piece)


def test_the_simulator_repeats_a_live_job():
    for name, settings in {"loop": (), "loop2": ("seed=2", "eta=1"), "alone": ("apart=1", "seed=3"),
                           "grid": ("policy=grid", "apart=1"), "carbon": ("grid=gb:national", "seed=6"), "bayes": ("policy=bayes",), "bayes2": ("policy=bayes", "seed=2", "noise=0.05")}.items():
        lived, simulated, _ = replay(name, *settings)
        tap.equal(len({size for _, _, size, _, _ in lived}) > 2, True, name)
        tap.equal(knobs(simulated), knobs(lived), name)


def test_the_simulator_leaves_out_controls():
    for name, settings in {"controls": ("control=4", "seed=0"), "controls2": ("control=5", "policy=bayes")}.items():
        lived, simulated, notes = replay(name, *settings)
        reasons = {str(row["trial"]): row["reason"] for row in document("history", name, store=BOX / f"{name}.sqlite")["rows"]}
        own = [row for number, row in enumerate(lived, 1) if reasons[str(number)] != "control"]
        tap.equal([reason for reason in reasons.values() if reason.startswith("guard")], [], "the guard says nothing in these jobs")
        tap.equal(knobs(simulated), knobs(own), name)
        tap.contains(notes, f"{list(reasons.values()).count('control')} trials that the policy had no say in")
        tap.contains(notes, "--guard off")


def test_a_guard_that_knew_controls():
    """The trace has no controls, so the simulator's guard would know less; the log repeats every decision."""
    store, traces = BOX / "guarded.sqlite", BOX / "guarded"
    fill(store, "guarded", 40, "control=5", "seed=1")
    guarded = [row for row in document("history", "guarded", store=store)["rows"] if row["reason"].startswith("guard")]
    tap.equal({row["batch_size"] for row in guarded}, {32}, "the default is what the guard has run")
    notes = good("export", "guarded", "--format=trace", f"--output={traces}", store=store).stderr
    tap.contains(notes, f"({len(guarded)} choices of a guard that knew trials which are left out)")
    command = shlex.split(next(line.partition("simulate it: ")[2] for line in notes.splitlines() if "simulate it: " in line))
    tap.equal(command[-2:], ["--guard", "on"])
    tap.equal(tap.run([FLYBALL, *command[1:]], env=CLEAN).returncode, 0)
    result = tap.run([FLYBALL, *command[1:], "--order=recorded"], env=CLEAN)
    tap.equal((result.returncode, result.stdout), (69, ""))
    found = decided_again("guarded", store)
    tap.equal((found["trials"]["compared"] > 40, found["trials"]["different"]), (True, 0))


def test_a_trace_begins_with_the_revision():
    """What ran before it took a third; a policy that learns from that cannot be repeated from the trace."""
    for policy in ("zeus", "bayes"):
        name, store, traces, tries = f"revised-{policy}", BOX / f"revised-{policy}.sqlite", BOX / f"revised-{policy}", BOX / f"{policy}.csv"
        before = fill(store, name, 25, f"policy={policy}", "apart=1")
        lived = fill(store, name, 25, f"policy={policy}", "apart=1", "revision=two", "scale=3", "day=30")
        notes = good("export", name, "--format=trace", f"--output={traces}", store=store).stderr
        tap.contains(notes, f"{len(before)} trials from before the revision are left out\n")
        with (traces / "summary_train.csv").open() as stream:
            tap.equal(len(list(csv.DictReader(stream))), len(lived), policy)
        with (traces / "summary_power_test-gpu.csv").open() as stream:
            power = list(csv.DictReader(stream))
        tap.equal(len({(row["batch_size"], row["power_limit"]) for row in power}), len(power), "no limit twice")
        close([float(row["time_per_epoch"]) for row in power if row["batch_size"] == "32" and row["power_limit"] == "200"][0], 30.0)
        simulate(notes)
        if policy == "bayes":
            tap.contains(notes, "(1 past that came along)")
            continue
        command = next(line.partition("replay it: ")[2] for line in notes.splitlines() if "replay it: " in line)
        tap.equal(tap.run([FLYBALL, *shlex.split(command)[1:], f"--tries={tries}"], env=CLEAN).returncode, 0)
        with tries.open() as stream:
            simulated = [(row["batch_size"], float(row["power_limit_w"]), row["reached"]) for row in csv.DictReader(stream)]
        tap.equal(simulated, knobs(lived))


def test_what_a_trace_cannot_tell():
    store, traces = BOX / "gaps.sqlite", BOX / "gaps"
    fill(store, "gaps", 40, "crash=4", "tries=2")
    notes = good("export", "gaps", "--format=trace", f"--output={traces}", store=store).stderr
    tap.contains(notes, "crashed, expired or did not fit into memory")
    tap.contains(notes, "last tries")
    command = shlex.split(next(line.partition("simulate it: ")[2] for line in notes.splitlines() if "simulate it: " in line))
    tap.equal(tap.run([FLYBALL, *command[1:]], env=CLEAN).returncode, 0)
    result = tap.run([FLYBALL, *command[1:], "--order=recorded"], env=CLEAN)
    tap.equal((result.returncode, result.stdout), (69, ""))
    tap.contains(result.stderr, "its trace has no words for")
    command = shlex.split(next(line.partition("its log: ")[2] for line in notes.splitlines() if "its log: " in line))
    tap.equal(tap.run([FLYBALL, *command[1:]], env=CLEAN).returncode, 0)
    fill(BOX / "slow.sqlite", "slow", 20, "slow=16")
    notes = good("export", "slow", "--format=trace", f"--output={BOX / 'slow'}", store=BOX / "slow.sqlite").stderr
    tap.contains(notes, "1 trial that its power profile ended")
    simulate(notes)
    fill(BOX / "fixed.sqlite", "fixed", 5, "target=0", "control=2")
    refused(69, "job 'fixed' has no target", "export", "fixed", "--format=trace", "--output=never",
            store=BOX / "fixed.sqlite")
    tap.contains(good("show", "-v", "fixed", store=BOX / "fixed.sqlite").stdout, "no target: only the power limit is chosen")
    tap.equal(document("show", "fixed", store=BOX / "fixed.sqlite")["rows"][0]["baseline_runs"], 3)


def simulate(notes, env=CLEAN):
    """Every command that an export printed works as it stands."""
    for piece in ("its log: ", "it: "):
        words = shlex.split(next(line.partition(piece)[2] for line in notes.splitlines() if f"{piece}flyball" in line))
        result = tap.run([FLYBALL, *words[1:]], env=env)
        tap.equal(result.returncode, 0, f"{words}: {result.stderr}")
    return words


def test_a_trace_without_profiles():
    """Trials that ran at the limit that stood tell the highest; where no limit is known there is no trace."""
    for name, settings in (("alone", ("profile=0",)), ("fixed", ("limits=0", "power=200"))):
        store, traces = BOX / f"unset-{name}.sqlite", BOX / f"unset-{name}"
        fill(store, "unset", 12, *settings)
        simulate(good("export", "unset", "--format=trace", f"--output={traces}", store=store).stderr)
        with (traces / "summary_power_test-gpu.csv").open() as stream:
            tap.equal({row["power_limit"] for row in csv.DictReader(stream)}, {"200"}, name)
    fill(BOX / "one.sqlite", "one", 1, "limits=0", "power=200")
    tap.contains(good("export", "one", "--format=trace", f"--output={BOX / 'one'}", store=BOX / "one.sqlite").stderr, "note: 1 run in")
    tap.contains(good("pareto", "one", store=BOX / "one.sqlite").stdout, ": 1 choice of batch size")
    lines = good("export", "one", store=BOX / "one.sqlite").stdout.replace('"default_batch_size":32', '"default_batch_size":64')
    good("import", "other", "-", store=BOX / "one.sqlite", input=lines)
    refused(69, "of its default batch size 64 no trial", "export", "other", "--format=trace", "--output=untold", store=BOX / "one.sqlite")
    fill(BOX / "blind.sqlite", "blind", 5, "limits=0", "eta=1")
    refused(69, "a trace cannot tell its power", "export", "blind", "--format=trace", "--output=blind", store=BOX / "blind.sqlite")
    tap.equal((BOX / "blind").exists(), False)


def test_a_trace_of_a_plugin():
    """By the path of its file, where that is known."""
    if not CLIMB.exists():
        raise tap.Skip("the example is not built")
    store, traces, env = BOX / "climb.sqlite", BOX / "climb", {**CLEAN, "FLYBALL_PLUGINS": str(CLIMB)}
    result = tap.run([CLIENT, store, "climb", "12", "policy=climb"], env=env)
    tap.equal(result.returncode, 0, result.stderr)
    words = simulate(good("export", "climb", "--format=trace", f"--output={traces}", store=store, env=env).stderr, env)
    tap.equal(words[words.index("--policy") + 1], str(CLIMB))


fill_digits()
fill(STORE, "words", 3)
tap.main(globals())
