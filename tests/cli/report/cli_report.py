# SPDX-License-Identifier: Apache-2.0
"""`flyball report`: jobs of two users and a foreign load on emulated GPUs, all of it recorded, added up by each key.

usage: cli_report.py FLYBALL SOURCE_ROOT

What the meters counted is worked out a second time from the recording, and what trials took from the exported logs.
"""

import contextlib
import csv
import io
import json
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time

import tap
from power_machine import CLEAN, FLYBALL, HOME, WHERE, emulator, machine, wait_for

KEYS = ("user", "account", "job", "host", "gpu")
TRAINER = str(tap.LIB / "job_trainer.py")
STATE = HOME / "jobs"
STORE = STATE / "flyball" / "store.sqlite"
RECORDING = HOME / "meters" / "all.jsonl"
HERE = socket.gethostname()
UUIDS = []


def flyball(*words, status=0):
    result = tap.run([FLYBALL, *map(str, words)], env={**CLEAN, "XDG_STATE_HOME": str(STATE)}, cwd=HOME)
    tap.equal(result.returncode, status, f"{words}: {result.stderr}")
    return result


def report(*words):
    result = flyball("report", "--store", STORE, "--format", "json", *words)
    return json.loads(result.stdout), result.stderr


def train(job, gpu, user, account, *words):
    definition = ["--batch-sizes", "32", "--default-batch-size", "32", "--target-metric", "1", "--max-epochs", "12", "--leave-limits"]
    result = subprocess.run([FLYBALL, "run", "--job", job, "-i", str(gpu), *WHERE, *definition, "--", sys.executable, TRAINER, "{batch_size}", *words],
                            env={**CLEAN, "XDG_STATE_HOME": str(STATE), "SLURM_JOB_USER": user, "USER": user, "LOGNAME": user, "SLURM_JOB_ACCOUNT": account}, cwd=HOME,
                            capture_output=True, text=True, timeout=tap.PATIENCE_S, check=False)
    return result.returncode


def readings(path=RECORDING):
    """Of each device: (seconds since 1970, joules of its counter)."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    uuids = [line["uuid"] for line in lines if "uuid" in line]
    found = {uuid: [] for uuid in uuids}
    said = {}
    for line in lines[1 + len(uuids):]:
        if "d" in line:
            said[line["d"]] = line.get("energy_uj", said.get(line["d"]))
            found[uuids[line["d"]]].append((lines[0]["unix_us"] / 1e6 + line["t"] / 1e9, said[line["d"]] / 1e6))
    return found


def counted(path=RECORDING):
    return {uuid: of[-1][1] - of[0][1] for uuid, of in readings(path).items()}


@contextlib.contextmanager
def recording(path, *words):
    path.parent.mkdir(exist_ok=True)
    with tap.Program([FLYBALL, "record", str(path), "--interval", "0.02", *WHERE, *words], env=CLEAN, cwd=HOME, stderr=subprocess.PIPE,
                     text=True) as process:
        try:
            wait_for(lambda: path.exists() and path.read_text().count('"energy_uj"') > 4, "the recording has begun")
            yield
            before = path.read_text().count("\n")
            wait_for(lambda: path.read_text().count("\n") > before + 8, "the recording went on")
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=tap.PATIENCE_S)


def took(job):
    """What the trials of a job took, by the log."""
    return [row["whole_energy_j"] for row in json.loads(flyball("job", "history", job, "--store", STORE, "--format", "json").stdout)["rows"]]


def setup():
    """Two jobs by two users, one of them on either GPU, a crash without a figure, and another program's load."""
    with machine("--sensor", "exact", "--counter-period-ms", "0"):
        with recording(RECORDING), recording(HOME / "second.jsonl", "-i", "1"):
            begin = time.time()
            emulator("set", "--gpu", "1", "--load-w", "300")
            tap.equal(train("digits", 0, "ada", "physics"), 0)
            tap.equal(train("digits", 1, "bob", "physics"), 0)
            tap.equal(train("words", 0, "bob", "maths"), 0)
            tap.equal(train("words", 0, "bob", "maths", "fail=32:crash"), 3)
            emulator("set", "--gpu", "1", "--load-w", "0")
            wait_for(lambda: time.time() > begin + 2.5, "a second's border is well within the period")
    UUIDS.extend(readings())


def close(actual, expected, what=""):
    if abs(actual - expected) > 1e-6 * max(abs(actual), abs(expected), 1):
        raise AssertionError(f"{what}: {actual} is not {expected}")


def test_all_rows_are_what_the_meters_counted():
    setup()
    meters = counted()
    trials = {job: took(job) for job in ("digits", "words")}
    for key in KEYS:
        said, notes = report("--by", key, "--meters", RECORDING)
        used = [row for row in said["rows"] if row["row"] == "used"]
        rest = [row for row in said["rows"] if row["row"] == "unattributed"]
        close(sum(row["energy_j"] for row in said["rows"]), sum(meters.values()), key)
        close(said["meters"]["energy_j"], sum(meters.values()), key)
        close(sum(row["energy_j"] for row in used), sum(trials["digits"] + trials["words"]), key)
        close(said["total"]["energy_j"], sum(trials["digits"] + trials["words"]), key)
        close(sum(row["metered_j"] for row in rest), sum(meters.values()), key)
        close(sum(row["gpu_time_s"] for row in said["rows"]), said["meters"]["time_s"], key)
        tap.equal(sum(row["trials"] for row in used), 4)
        tap.equal((said["total"]["reached"], said["total"]["crashed"], said["total"]["recurrences"]), (3, 1, 4))
        tap.equal(all(row["energy_j"] > 0 for row in rest), True, rest)
        tap.equal("attributed" in notes, False, notes)
        tap.contains(notes, "nothing in them was measured")


def test_each_key():
    meters = counted()
    digits, words = took("digits"), took("words")
    expected = {
        "user": {f"uid:{os.getuid()}": sum(digits + words)},  # whatever variables say
        "account": {"physics": sum(digits), "maths": sum(words)},
        "job": {"digits": sum(digits), "words": sum(words)},
        "host": {HERE: sum(digits + words)},
        "gpu": {UUIDS[0]: digits[0] + sum(words), UUIDS[1]: digits[1]},
    }
    for key, rows in expected.items():
        said, _ = report("--by", key, "--meters", RECORDING)
        found = {row[key]: row["energy_j"] for row in said["rows"] if row["row"] == "used"}
        tap.equal(set(found), set(rows))
        for name, energy_j in rows.items():
            close(found[name], energy_j, f"{key} {name}")
    rest = {row["gpu"]: row["energy_j"] for row in said["rows"] if row["row"] == "unattributed"}
    for uuid in UUIDS:
        close(rest[uuid], meters[uuid] - expected["gpu"][uuid], uuid)
    # The foreign load ran all the while on the second GPU, idling on the first.
    tap.equal(rest[UUIDS[1]] > rest[UUIDS[0]] > 0, True, rest)


def test_borders():
    """Two halves of the period hold what the whole does, of the trials and of the meters."""
    whole, _ = report("--meters", RECORDING)
    begin, end = (int(row[0]) for row in (readings()[UUIDS[0]][0], readings()[UUIDS[0]][-1]))
    border = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime((begin + end + 1) // 2))
    first, _ = report("--until", border, "--meters", RECORDING)
    second, _ = report("--since", border, "--meters", RECORDING)
    for of in (lambda said: said["total"]["energy_j"], lambda said: said["meters"]["energy_j"], lambda said: said["meters"]["time_s"]):
        close(of(first) + of(second), of(whole))
    tap.equal(first["meters"]["energy_j"] > 0 and second["meters"]["energy_j"] > 0, True)
    nothing, notes = report("--until", "1h", "--meters", RECORDING)
    tap.equal((nothing["total"]["trials"], nothing["meters"]["energy_j"]), (0, 0))
    tap.contains(notes, "no GPU within the period")


def test_without_meters():
    for key in KEYS:
        said, _ = report("--by", key)
        row = said["rows"][-1]
        tap.equal((row["row"], row["energy_j"], said["meters"]), ("unattributed", None, None))
        tap.contains(row["energy_j_unavailable"], "no meters' record given")
    text = flyball("report", "--store", STORE).stdout
    tap.contains(text, "unattributed  unknown [")
    tap.contains(text, "] no meters' record given")
    table = list(csv.DictReader(io.StringIO(flyball("report", "--store", STORE, "--format", "csv").stdout)))
    tap.equal([(row["row"], row["user"]) for row in table[-2:]][-1], ("unattributed", ""))


def test_more_attributed_than_metered():
    """A GPU without a meter: its remainder is negative, and a note says why."""
    second = HOME / "second.jsonl"
    for key in KEYS:
        said, notes = report("--by", key, "--meters", second)
        close(sum(row["energy_j"] for row in said["rows"]), sum(counted(second).values()), key)
        if key == "gpu":
            tap.contains(notes, f"used on {UUIDS[0]} were not metered")
    tap.equal(min(row["energy_j"] for row in said["rows"]) < 0, True)
    short = HOME / "short.jsonl"
    lines = RECORDING.read_text().splitlines(keepends=True)
    short.write_text("".join(lines[:9]))
    for key in ("user", "host"):
        _, notes = report("--by", key, "--meters", short)
        tap.contains(notes, "more than the meters counted")
        tap.contains(notes, "clocks that differ")


def test_records_of_meters():
    """Each GPU at each moment once, however many records have it; a directory; another host's."""
    meters = counted()
    shutil.copy(RECORDING, HOME / "meters" / "copy.jsonl")
    for where in ([HOME / "meters"], [RECORDING, HOME / "meters" / "copy.jsonl"], [RECORDING, HOME / "second.jsonl"]):
        said, _ = report("--meters", *where)
        if where[-1].name != "second.jsonl":  # it began a little later and ended a little sooner
            close(said["meters"]["energy_j"], sum(meters.values()), str(where))
        tap.equal(abs(said["meters"]["energy_j"] / sum(meters.values()) - 1) < 0.05, True, where)
    said, notes = report("--by", "host", "--meters", f"elsewhere={RECORDING}")
    rest = {row["host"]: row["energy_j"] for row in said["rows"] if row["row"] == "unattributed"}
    close(rest["elsewhere"], sum(meters.values()))
    close(rest[HERE], -sum(took("digits") + took("words")))
    tap.contains(notes, f"used on {HERE} were not metered")
    # The report of a run is a record too; what is no GPU is left out and named.
    window = {"kind": "GPU", "uuid": UUIDS[0], "time_s": 2.0, "energy_j": 500.0, "uncertainty_j": None, "counted": True, "emulated": False}
    other = {**window, "kind": "CPU", "uuid": "cpu-0"}
    document = {"schema": "flyball.run/2", "start_unix_s": time.time() - 60, "job": {"id": "j", "node": "node9"}, "devices": [window, other]}
    (HOME / "run.json").write_text(json.dumps(document))
    said, notes = report("--by", "host", "--meters", HOME / "run.json")
    tap.equal(said["meters"]["gpus"], [{"uuid": UUIDS[0], "host": "node9", "energy_j": 500.0, "time_s": 2.0}])
    tap.contains(notes, "1 processors and memories of the meters' records are left out")


def usage_line(what, uuid, at_s, **members):
    return json.dumps({"schema": "flyball.usage.line/1", "what": what, "unix_ms": round(at_s * 1000), "gpu": 0, "uuid": uuid, **members},
                      separators=(",", ":")) + "\n"


def test_record_of_the_daemon():
    """Processes that no log tells of have rows of their own; those whose trials are on record do not count twice."""
    begin, end = readings()[UUIDS[0]][0][0], readings()[UUIDS[0]][-1][0]
    state = HOME / "flyballd"
    state.mkdir()
    (state / "other.json").write_text("{}")

    def process(pid, uuid, from_s, to_s, energy_j, what="end", **members):
        return usage_line(what, uuid, to_s, kind="process", pid=pid, started_unix_ms=round(from_s * 1000), ended_unix_ms=round(to_s * 1000),
                          energy_j=energy_j, half_width_j=1, time_s=to_s - from_s, **members)

    (state / "usage.jsonl.1").write_text(
        usage_line("gpu", UUIDS[0], begin - 400, energy_uj=0, source="measured") + usage_line("gpu", UUIDS[1], begin - 400, energy_uj=0)
        + process(1, UUIDS[0], begin - 300, begin - 200, 1000, uid=70001, user="eve", training_job="llama"))
    (state / "usage.jsonl").write_text(
        process(2, UUIDS[0], begin, end, 5000, uid=70002, user="ada", training_job="digits")
        + process(3, UUIDS[1], begin - 250, begin - 240, None, uid=70001, user="eve") + "{torn\n")
    (state / "usage.now.jsonl").write_text(
        usage_line("gpu", UUIDS[0], end, energy_uj=9000000000) + usage_line("gpu", UUIDS[1], end, energy_uj=3000000000)
        + process(4, UUIDS[1], begin - 200, begin - 100, 500, what="row", user="bob"))
    since = ["--since", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begin - 500)), "--meters"]
    # By each key: what flyballd adds. The one whose energy is not known apart from others' is nobody's.
    expected = {"user": {"uid:70001": 1000, "said:bob": 500}, "account": {}, "job": {"llama": 1000}, "host": {}, "gpu": {UUIDS[0]: 1000, UUIDS[1]: 500}}
    for key in KEYS:
        said, notes = report("--by", key, *since, state)
        tap.equal({row[key]: row["energy_j"] for row in said["rows"] if row["row"] == "attributed"}, expected[key], key)
        close(sum(row["energy_j"] for row in said["rows"]), 12000, key)
        close(said["meters"]["energy_j"], 12000, key)
        tap.contains(notes, "1 lines of flyballd's record are damaged")
    tap.equal((said["attributed"]["processes_in_logs"], said["attributed"]["processes_without_figure"], said["attributed"]["half_width_j"]),
              (1, 1, 2))
    by_host, _ = report("--by", "host", *since, f"{HERE}={state}")
    tap.equal({row["host"]: row["energy_j"] for row in by_host["rows"] if row["row"] == "attributed"}, {HERE: 1500})
    text = flyball("report", "--store", STORE, *since, state).stdout
    tap.contains(text, "70001, by flyballd")
    tap.contains(text, "flyballd attributed 1500.0 J +/- 2.0 J beside trials")
    # Half of a process, and of what was counted, lies within a period that begins in its middle.
    half = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(round(begin) - 250))
    said, _ = report("--by", "user", "--since", half, "--meters", state)
    eve = next(row["energy_j"] for row in said["rows"] if row["row"] == "attributed" and row["user"] == "uid:70001")
    tap.equal(480 < eve < 520, True, eve)
    # A recording of the same GPUs beside it: each moment once.
    both, _ = report(*since, state, RECORDING)
    tap.equal(abs(both["meters"]["energy_j"] / 12000 - 1) < 0.5, True, both["meters"])
    # Moments of a long period are told apart only by days: rather nobody's than twice.
    coarse, _ = report("--by", "user", "--since", "3000d", "--meters", state)
    tap.equal([row for row in coarse["rows"] if row["row"] == "attributed"], [])


def test_logs_that_are_not_understood():
    """They are named, and the others count."""
    before = report("--by", "job")[0]["rows"]
    store = HOME / "newer.sqlite"
    with contextlib.closing(sqlite3.connect(STORE)) as source, contextlib.closing(sqlite3.connect(store)) as copy:
        source.backup(copy)
        (job, head, now), = copy.execute("SELECT id, head, changed_us FROM job WHERE name = 'words'")
        copy.execute("INSERT INTO event VALUES (?, ?, ?, 'teleported', 0, '', '{}')", (job, head + 1, now))
        copy.execute("UPDATE job SET head = head + 1 WHERE id = ?", (job,))
        copy.commit()
    result = flyball("report", "--by", "job", "--store", store, "--format", "json")
    said = json.loads(result.stdout)
    tap.contains(result.stderr, "job 'words' is left out: event")
    tap.contains(result.stderr, "'teleported' is not known here")
    tap.equal([left["job"] for left in said["jobs_left_out"]], ["words"])
    tap.equal([row for row in said["rows"] if row["job"] == "digits"], [row for row in before if row["job"] == "digits"])
    tap.equal([row["job"] for row in said["rows"]], ["digits", None])


def test_usage():
    for status, words, options in (
            (64, "expected a time as in 30d", ["--since", "tomorrow"]),
            (64, "expected a time as in 30d", ["--until", "07:30"]),
            (64, "expected a time as in 30d", ["--since", "2026-02-30"]),
            (64, "the period ends before it begins", ["--since", "1d", "--until", "2d"]),
            (64, "unexpected operand 'x.jsonl'", ["x.jsonl"]),
            (66, "none.jsonl", ["--meters", "none.jsonl"]),
            (66, "there is no record of meters in", ["--meters", str(STATE)]),
            (64, "user, account, job, host", ["--by", "colour"])):
        result = flyball("report", "--store", STORE, *options, status=status)
        tap.contains(result.stderr, words)
        tap.equal(result.stdout, "")
    tap.equal(report("--since", "2026-01-01", "--by", "job")[0]["total"]["trials"], 4)


tap.main(globals())
