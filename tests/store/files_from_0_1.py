# SPDX-License-Identifier: Apache-2.0
"""Files as version 0.1 wrote them, in from_0_1: this version reads them and goes on, and leaves what 0.1 reads.

usage: files_from_0_1.py FLYBALL SOURCE_ROOT

FLYBALL_TEST_OLD names a program of version 0.1 that then reads and goes on with what this one wrote.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import serve_machine
import tap
from power_machine import CLEAN, FLYBALL, HOME, WHERE, emulator, machine

FILES = pathlib.Path(sys.argv[2]) / "tests/from_0_1"
OLD = os.environ.get("FLYBALL_TEST_OLD")
JOB = ["--job", "net", "--batch-sizes", "16,32,64", "--default-batch-size", "32", "--max-epochs", "6", "--target-metric", "0.9",
       "--metric-regex", "acc=([0-9.]+)", "--tries", "3"]
TRAIN = "for metric in 0.5 0.95; do sleep 0.05; echo acc=$metric; done"


def flyball(*words, program=FLYBALL):
    result = subprocess.run([program, *map(str, words)], env=CLEAN, cwd=HOME, capture_output=True, text=True, timeout=tap.PATIENCE_S, check=False)
    tap.equal(result.returncode, 0, (words, result.stderr))
    return result


def rows(*words, program=FLYBALL):
    return json.loads(flyball("job", *words, "--format=json", program=program).stdout)["rows"]


def submit(store, program=FLYBALL):
    return flyball("run", *WHERE, *JOB, f"--store={store}", "--", "sh", "-c", TRAIN, program=program)


def a_store():
    store = HOME / "store.sqlite"
    shutil.copy(FILES / "store.sqlite", store)
    return store


def test_store():
    store = a_store()
    tap.equal(flyball("job", "export", "net", "--store", store).stdout, (FILES / "net.jsonl").read_text())
    history = rows("history", "net", "--store", store)
    tap.equal([row["batch_size"] for row in history], [32, 16, 64, 32, 16, 64, 32])
    tap.equal([row["outcome"] for row in history], ["reached"] * 5 + ["stopped", "reached"])
    for words in (["list"], ["show", "net"], ["why", "net"], ["pareto", "net"]):
        flyball("job", *words, "--store", store)


def test_store_goes_on():
    """Submissions of both versions in turns, each knowing what the other saw."""
    store = a_store()
    with machine(gpus=1):
        for number, program in enumerate([FLYBALL, OLD or FLYBALL, FLYBALL], 8):
            submit(store, program)
            history = rows("history", "net", "--store", store, program=program)
            tap.equal((len(history) >= number, history[-1]["outcome"]), (True, "reached"))
    tap.equal(rows("history", "net", "--store", store)[:7], rows("history", "net", "--store", a_store()))


def test_log():
    flyball("sim", "replay", FILES / "net.jsonl")
    store = HOME / "imported.sqlite"
    flyball("job", "import", "net", FILES / "net.jsonl", f"--store={store}")
    tap.equal(len(rows("history", "net", "--store", store)), 7)


def test_spool():
    """What 0.1 could not deliver is, at the next submission."""
    spool = HOME / ".local" / "state" / "flyball" / "spool"
    spool.mkdir(parents=True, mode=0o700)
    store = HOME / "served.sqlite"
    with serve_machine.service(FLYBALL, "--store", store) as service, machine(gpus=1):
        kept = spool / "1795370729148540440-31296.calls"
        kept.write_text((FILES / "spool.calls").read_text().replace("@STORE@", service.url))
        kept.chmod(0o600)
        submit(service.url)
        serve_machine.until(lambda: not kept.exists(), "the delivery")
        history = sorted(rows("history", "net", "--store", service.url), key=lambda row: row["reason"])
    tap.equal([(row["reason"] == "unasked", row["outcome"]) for row in history][-1], (True, "reached"))
    tap.equal((history[-1]["epochs"], history[-1]["energy_j"]), (2, 12.0))


def test_saved_profile():
    """For the same driver; the emulator's has a version of its own."""
    report, kept = HOME / "tuned.json", HOME / "profile.json"
    saved = json.loads((FILES / "profile.json").read_text())
    with machine(gpus=1):
        devices = json.loads(flyball("devices", "--format=json", *WHERE).stdout)["rows"]
        kept.write_text(json.dumps({**saved, "driver": devices[0]["driver"]}))
        emulator("set", "--load-w", 390)
        flyball("run", "--tune", *WHERE, "--energy-tolerance=1", "--profile", kept, "--output", report, "--", "sh", "-c",
                "i=0; while [ $i -lt 100 ]; do echo >&$FLYBALL_STEP_FD; sleep 0.01; i=$((i + 1)); done")
    tap.contains(json.loads(report.read_text())["tune"]["profile"], "reused ")


def test_recording():
    found = json.loads(flyball("devices", "--replay", FILES / "recording.jsonl", "--format=json").stdout)["rows"]
    tap.equal([row["power_limit_w"] for row in found], [400.0])


tap.main(globals())
