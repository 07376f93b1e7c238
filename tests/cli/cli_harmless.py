# SPDX-License-Identifier: Apache-2.0
"""Text that clients wrote is shown as text: nothing of it reaches a terminal as a command, in whatever output.

usage: cli_harmless.py FLYBALL
"""
import json
import os
import pathlib
import sys
import tempfile
import unicodedata

import serve_machine
import tap

FLYBALL = os.path.abspath(sys.argv[1])
WORK = tempfile.TemporaryDirectory(prefix="flyball-harmless-")
BOX = pathlib.Path(WORK.name)
STORE = BOX / "store.sqlite"
EVIL = "V\u009b31m\u202e\u200f100\ufeff\u2066\U000e0041\u2028end"
JOB = {"batch_sizes": [16, 32], "default_batch_size": 16, "max_epochs": 2, "target": "at_least", "target_metric": 0.5}
ASKED = {"hardware": {"gpu_model": EVIL, "gpu_count": 1, "world_size": 1, "limits_w": [100.0, 200.0], "max_power_w": 200.0},
         "origin": {"user": EVIL, "host": EVIL, "account": EVIL}}


def harmful(text):
    return [hex(ord(c)) for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c not in "\n\t\r\u200c\u200d"]


def flyball(*arguments, status=0):
    result = tap.run([FLYBALL, *map(str, arguments)], env=serve_machine.CLEAN, cwd=BOX)
    if status is not None:
        tap.equal(result.returncode, status, f"{arguments}: {result.stderr}")
    tap.equal((harmful(result.stdout), harmful(result.stderr)), ([], []), f"{arguments}: {result.stdout!r} {result.stderr!r}")
    return result


def well(it, method, path, body=None):
    status, _, content = it.ask(method, path, body)
    tap.equal(status in (200, 201, 204), True, f"{method} {path}: {status} {content}")
    tap.equal(harmful(content.decode()), [], (path, content))
    return json.loads(content) if content and path != "/metrics" and not path.endswith("/events") else content.decode()


def test_what_a_client_wrote():
    with serve_machine.service(FLYBALL, f"--store={STORE}", "--verbose") as it:
        well(it, "PUT", "/v1/jobs/digits", JOB)
        for request in range(3):
            trial = well(it, "POST", "/v1/jobs/digits/trials", {**ASKED, "request": f"r{request}"})
            place = f"/v1/jobs/digits/trials/{trial['trial']}"
            points = [{"limit_w": w, "power_w": w - 10, "time_s": 100 / w, "energy_j": (w - 10) * 100 / w} for w in (100.0, 200.0)]
            it.ask("POST", f"{place}/profile", {"points": points, "units_per_epoch": 1})
            epoch = {"attempt": 1, "epoch": 1, "metric": 0.6, "energy_j": 100.0, "time_s": 1.0}
            if request < 2:
                well(it, "POST", f"{place}/epochs", epoch)
            else:
                well(it, "POST", f"{place}/end", {"attempt": 1, "outcome": "crashed", "text": EVIL})
        tap.contains(well(it, "GET", "/metrics"), 'gpu_model="V?31m??100????end"')
        events = [json.loads(line) for line in well(it, "GET", "/v1/jobs/digits/events").splitlines()]
        tap.equal(EVIL in json.dumps(events, ensure_ascii=False), True, "it reads back as it was")
        for path in (f"/v1/jobs/{EVIL}", "/v1/jobs/%C2%9B%E2%80%AE", f"/{EVIL}"):
            answer = it.say(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            tap.equal((answer[:10], harmful(answer.decode())), (b"HTTP/1.1 4", []), answer)
        tap.equal(it.stop(), 0)
        tap.equal(harmful("".join(it.talk)), [], it.talk)


def test_what_is_shown():
    store = f"--store={STORE}"
    for form in ("text", "json", "csv"):
        for words in (("list",), ("show", "digits"), ("history", "digits"), ("why", "digits"), ("pareto", "digits")):
            flyball("job", *words, store, f"--format={form}", status=None)
        flyball("report", store, f"--format={form}", status=None)
    shown = json.loads(flyball("job", "history", "digits", store, "--format=json").stdout)
    tap.equal(EVIL in json.dumps(shown, ensure_ascii=False), True, "JSON has it as it was, in escapes")
    tap.contains(flyball("job", "show", "-v", "digits", store).stdout, "V?31m??100????end")
    for words in (("job", "pareto", "digits", f"--plot={BOX}/p.svg"), ("job", "show", "digits", f"--plot={BOX}/s.svg")):
        flyball(*words, store, status=None)
    for picture in BOX.glob("*.svg"):
        tap.equal(harmful(picture.read_text()), [], picture)


def test_a_log_taken_along():
    lines = flyball("job", "export", "digits", f"--store={STORE}").stdout
    (BOX / "log").write_text(lines)
    flyball("job", "import", "digits", BOX / "log", f"--store={BOX}/copy.sqlite", status=None)
    again = flyball("job", "export", "digits", f"--store={BOX}/copy.sqlite", status=None).stdout
    tap.equal(again, lines)


def test_what_was_asked():
    for words in (("job", "show", EVIL), ("job", EVIL), (EVIL,), (f"--{EVIL}",), ("run", f"--objective={EVIL}", "--", "true")):
        flyball(*words, status=None)
    raw = tap.run([FLYBALL.encode(), b"job", b"show", b"\x9b31m\xff"], env=serve_machine.CLEAN, cwd=BOX)
    tap.equal(harmful(raw.stderr), [], raw.stderr)


tap.main(globals())
