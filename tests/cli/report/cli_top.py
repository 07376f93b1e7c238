# SPDX-License-Identifier: Apache-2.0
"""flyball top from outside, over a stand-in for the daemon that says what the test wants.

usage: cli_top.py FLYBALL SOURCE_ROOT
"""

import csv
import io
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time

import standin_usage
import tap
from standin_usage import row

FLYBALL = os.path.abspath(sys.argv[1])
WORK = tempfile.TemporaryDirectory(prefix="flyball-top-")
HOME = pathlib.Path(WORK.name)
SOCKET = HOME / "daemon.sock"
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("FLYBALL_", "XDG_", "NO_COLOR", "LC_", "LANG"))}
CLEAN.update(HOME=str(HOME))

ROWS = [
    row(pid=4711, uid=1000, user="ada", command="python3", training_job="resnet50", slurm_job="12", slurm_step="0", runtime="slurm",
        energy_j=1500, half_width_j=12.5, time_s=70, power_w=200, memory_bytes=2 << 30, started_unix_ms=1700000000000),
    row(pid=4712, uid=1000, user="ada", command="python3", training_job="resnet50", slurm_job="12", slurm_step="0", runtime="slurm",
        energy_j=300, half_width_j=2.5, time_s=60, power_w=50, memory_bytes=1 << 30, gpu=1),
    row(pid=33, uid=2001, command="train\x1b[2J", pod="p-0", pod_namespace="team-a", pod_uid="u-1", runtime="containerd",
        energy_j=500, half_width_j=2, time_s=7, gpu=1),
    row(pid=34, uid=2001, command="mps", pod="p-0", pod_namespace="team-a", pod_uid="u-1", energy_j=None, half_width_j=None, time_s=1, power_w=None,
        gpu=1, ended_unix_ms=1700000009000),
    row(pid=99, uid=1000, user="ada", command="old", energy_j=50, half_width_j=1, time_s=7, ended_unix_ms=1700000009000),
    row(kind="idle", energy_j=77, half_width_j=1, time_s=7, power_w=0),
    row(kind="idle", energy_j=23, half_width_j=1, time_s=3, power_w=20, gpu=1),
    row(kind="shared", energy_j=9, half_width_j=1, time_s=1, power_w=30, gpu=1),
    row(kind="unobserved", energy_j=7, half_width_j=1, time_s=1, power_w=0),
]


def daemon():
    made = standin_usage.Daemon(SOCKET)
    made.gpus = [standin_usage.gpu(0, 210.0), standin_usage.gpu(1, answers=False)]
    made.rows = ROWS
    return made


def top(*arguments, **options):
    return tap.run([FLYBALL, "top", "--daemon", f"unix:{SOCKET}", *arguments], env=CLEAN, cwd=HOME, **options)


def document(*arguments):
    done = top("--once", "--format", "json", *arguments)
    tap.equal(done.returncode, 0, done.stderr)
    return json.loads(done.stdout)


def test_processes():
    with daemon():
        table = top("--once")
        found = document()
    tap.equal(table.returncode, 0, table.stderr)
    lines = table.stdout.splitlines()
    tap.equal(lines[:2], ["2 GPUs, 210 W now, the power of 1 not known, whether limits are held not known", ""])
    tap.equal(lines[3].split()[:9], ["python3", "0", "4711", "ada", "resnet50", "12", "-", "[1]", "-"])
    tap.contains(table.stdout, "train?[2J")
    tap.contains(table.stdout, "[1] it has none, or flyballd does not know it")
    tap.equal(lines[-2:], ["", "2 that ended left out, --all shows them"])
    tap.equal((found["schema"], found["by"], found["ended_left_out"]), ("flyball.top/1", "process", 2))
    tap.equal([(gpu["power_w"], gpu["power_limit_w"]) for gpu in found["gpus"]], [(210.0, 300.0), (None, None)])
    tap.equal([(each["kind"], each["pid"], each["power_w"]) for each in found["rows"]],
              [("process", 4711, 200), ("process", 4712, 50), ("shared", None, 30), ("idle", None, 20), ("idle", None, 0),
               ("unobserved", None, 0), ("process", 33, None)])
    last = found["rows"][-1]
    tap.equal((last["power_w_unavailable"], last["user"], last["memory_bytes"]), ("not known apart from others'", None, None))
    tap.equal(found["rows"][2]["pid_unavailable"], "the row is of no process")


def test_the_first_line_is_the_answer():
    cases = [([], "0 GPUs"), ([(210.0, 0)], "1 GPU, 210 W now, limits or clocks of 0 held by leases"),
             ([(210.0, 2), (302.0, 0), (None, 1)], "3 GPUs, 512 W now, the power of 1 not known, limits or clocks of 2 held by leases"),
             ([(None, 0)], "1 GPU, the power of 1 not known, limits or clocks of 0 held by leases"),
             ([(210.0, 2), (302.0, None)], "2 GPUs, 512 W now, whether limits are held not known")]
    for gpus, sentence in cases:
        with daemon() as made:
            made.gpus = [{**(standin_usage.gpu(number, power) if power is not None else standin_usage.gpu(number, answers=False)),
                          **({"leases": leases} if leases is not None else {})} for number, (power, leases) in enumerate(gpus)]
            table, programs = top("--once").stdout, [top("--once", "--format", form).stdout for form in ("json", "csv")]
        tap.equal(table.splitlines()[0], sentence)
        tap.equal([sentence in text for text in programs], [False, False])


def test_other_keys():
    expected = {
        "user": [("process", "0-1", 2, 250, 1800), ("idle", "0-1", None, 20, 100), ("shared", "1", None, 30, 9),
                 ("unobserved", "0", None, 0, 7), ("process", "1", 2, None, 500)],
        "job": [("process", "0-1", 2, 250, 1800), ("process", "1", 1, None, 500)],
    }
    with daemon():
        people = top("--once", "--by", "user")
        by_user, by_job, by_pod, by_slurm = (document("--by", key)["rows"] for key in ("user", "job", "pod", "slurm"))
    # What has ended of a group that lives counts in its energy.
    figures = [(each["kind"], each["gpus"], each["processes"], each["power_w"], each["energy_j"]) for each in by_user]
    tap.equal(sorted(figures, key=str), sorted([("process", "0-1", 3, 250, 1850), *expected["user"][1:]], key=str))
    tap.equal([each["user"] for each in by_user if each["uid"] == 1000], ["ada"])
    tap.contains(people.stdout, "2001 ")
    tap.equal([(each["gpus"], each["processes"], each["energy_j"]) for each in by_job if each["training_job"] == "resnet50"],
              [("0-1", 2, 1800)])
    tap.equal([(each["pod_namespace"], each["pod"]) for each in by_pod if each["pod"]], [("team-a", "p-0")])
    tap.equal([(each["slurm_job"], each["half_width_j"], each["time_s"]) for each in by_slurm if each["slurm_job"]], [("12", 15, 130)])
    joined = next(each for each in by_slurm if each["slurm_job"])
    tap.equal((joined["pid"], joined["pid_unavailable"], joined["uuid"]), (None, "the row is of several processes", None))


def test_sums_and_order():
    total = sum(each["energy_j"] or 0 for each in ROWS)
    with daemon():
        for key in ("process", "job", "pod", "user", "slurm"):
            found = document("--all", "--by", key)
            tap.equal((sum(each["energy_j"] or 0 for each in found["rows"]), found["ended_left_out"]), (total, 0), key)
        energies = [each["energy_j"] or 0 for each in document("--sort", "energy", "--all")["rows"]]
    tap.equal(energies, sorted(energies, reverse=True))


def test_lines():
    with daemon():
        done = top("--count", "2", "--interval", "0.1", "--format", "csv")
        objects = top("--count", "2", "--interval", "0.1", "--format", "json").stdout.splitlines()
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    tap.equal((done.returncode, len(rows), rows[0]["pid"], rows[0]["memory_bytes"], rows[6]["power_w"]),
              (0, 14, "4711", "2147483648", ""), done.stderr)
    tap.equal(len({each["time_unix_s"] for each in rows}), 2)
    tap.equal({json.loads(line)["schema"] for line in objects}, {"flyball.top/1"})


def test_no_daemon():
    done = top("--once")
    tap.equal(done.returncode != 0, True)
    tap.equal(done.stderr.count("\n"), 1, done.stderr)
    tap.contains(done.stderr, f"no daemon listens at 'unix:{SOCKET}'; start it")
    for address in ("127.0.0.1:1", str(SOCKET)):
        done = tap.run([FLYBALL, "top", "--once", "--daemon", address], env=CLEAN, cwd=HOME)
        tap.contains(done.stderr, f"no daemon listens at '{address}'; start it")


def test_other_answers():
    cases = [
        ("/v1/usage", (404, {"error": {"code": "FLY_ENOTFOUND", "message": "no such route"}}), "does not answer '/v1/usage'"),
        ("/v1/gpus", (403, {"error": {"code": "FLY_EPERM", "message": "by no rule"}}), "does not let you read: by no rule"),
        ("/v1/usage", (503, b"busy"), "answered '/v1/usage' with status 503"),
        ("/v1/usage", (200, b"<html>"), "the answer to '/v1/usage' is none of flyballd's"),
        ("/v1/usage", (200, {"rows": [{"kind": "new", "gpu": 0}]}), "the answer to '/v1/usage' is none of flyballd's"),
        ("/v1/gpus", (200, {"gpus": [{"index": -1}]}), "the answer to '/v1/gpus' is none of flyballd's"),
    ]
    for path, answer, words in cases:
        with daemon() as made:
            made.answers[path] = answer
            done = top("--once")
        tap.equal((done.returncode != 0, done.stdout), (True, ""), words)
        tap.contains(done.stderr, words)
    # What a newer daemon adds, and an older one lacks, does no harm.
    with daemon() as made:
        made.answers["/v1/usage"] = (200, {"rows": [{"kind": "idle", "gpu": 0, "colour": "red"}]})
        found = document()["rows"]
    tap.equal([(each["kind"], each["energy_j"], each["power_w"]) for each in found], [("idle", None, None)])


def test_as_tmux_shows_it():
    tmux = shutil.which("tmux")
    if tmux is None:
        raise tap.Skip("tmux is not installed")
    environment = {**CLEAN, "LC_ALL": "C.UTF-8", "TERM": "xterm"}

    def control(*arguments):
        return tap.run([tmux, "-f", "/dev/null", "-S", str(HOME / "tmux"), *arguments], env=environment)

    def capture(*pieces):
        end = time.monotonic() + tap.PATIENCE_S
        while time.monotonic() < end:
            shown = control("capture-pane", "-p").stdout
            if all(piece in shown for piece in pieces):
                return shown
            time.sleep(0.05)
        raise AssertionError(f"no {pieces!r}: {shown}")

    with daemon() as made:
        started = control("new-session", "-d", "-x", "140", "-y", "14", f"{FLYBALL} top --daemon {SOCKET} --interval 0.1")
        if started.returncode != 0:
            raise tap.Skip(f"tmux does not start: {started.stderr.strip()}")
        try:
            lines = capture("python3", "q quits").splitlines()
            tap.contains(lines[0], "flyball top: by process, most power first, every 0.1 s")
            tap.contains(lines[1], "2 GPUs, 210 W now, the power of 1 not known")
            tap.contains(lines[2], "GPU 0  210 W of 300 W, 97 %, 55 C  Made-up GPU")
            tap.contains(lines[3], "GPU 1  power -")
            tap.equal(lines[4].split(), "who GPU power energy +/- PID user GPU time memory job, pod".split())
            tap.equal(lines[5].split()[:4], ["python3", "0", "200", "W"])
            tap.contains(lines[5], "resnet50")
            tap.contains("".join(lines), "(unobserved)")
            tap.contains("".join(lines), "train?[2J")
            control("resize-window", "-x", "50", "-y", "14")
            tap.equal(capture("who                      GPU       power\n").splitlines()[5].split()[0], "python3")
            control("resize-window", "-x", "50", "-y", "5")
            capture("more; enlarge the window")
            control("resize-window", "-x", "140", "-y", "14")
            control("send-keys", "b")
            capture("by job", "resnet50", "250 W")
            made.answers["/v1/usage"] = (503, b"busy")
            capture("answered '/v1/usage' with status 503", "resnet50")
            del made.answers["/v1/usage"]
            control("send-keys", "s")
            capture("most energy first")
            control("send-keys", "q")
            end = time.monotonic() + tap.PATIENCE_S
            while control("has-session").returncode == 0:
                tap.equal(time.monotonic() < end, True, "q does not end it")
                time.sleep(0.05)
        finally:
            control("kill-server")


tap.main(globals())
