# SPDX-License-Identifier: Apache-2.0
"""`flyball top` and `flyball report --meters` over a true flyballd on emulated GPUs: who it says uses them.

usage: flyballd_who.py FLYBALL
"""
import contextlib
import json
import os
import pwd
import subprocess

import node_machine
import power_machine
import serve_machine
import tap

USUAL = {"attribution": {"poll": 0.1}, "watch": {"poll": 0.02, "state": node_machine.STATE}}
ENDED = node_machine.STATE / "usage.jsonl"
ROOT = power_machine.HOME / "root"
ME = pwd.getpwuid(os.geteuid()).pw_name


@contextlib.contextmanager
def machine():
    """A daemon over two GPUs, which sees the processes of this place as if it were the machine's."""
    ROOT.mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (ROOT / "proc").symlink_to("/proc")
    try:
        with power_machine.machine(), node_machine.daemon(settings=USUAL) as daemon:
            yield daemon
    finally:
        node_machine.clean()


@contextlib.contextmanager
def training(gpu, **environment):
    process = subprocess.Popen([power_machine.EMULATOR, "train", "--epochs", "100000", "--gpu", str(gpu)],
                               env={**power_machine.CLEAN, **environment}, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def flyball(*words):
    done = tap.run([power_machine.FLYBALL, *map(str, words)], env=power_machine.CLEAN, cwd=power_machine.HOME)
    tap.equal(done.returncode, 0, done.stderr)
    return json.loads(done.stdout)


def top(*words):
    return flyball("top", "--once", "--format", "json", "--daemon", node_machine.SOCKET, *words)


def row_of(pid, *known):
    """The row of a process, once these members of it are known."""
    def look():
        rows = [row for row in top()["rows"] if row["pid"] == pid and all(row[member] for member in ("power_w", "energy_j", *known))]
        return rows[0] if rows else None
    return serve_machine.until(look, f"a row of process {pid}")


def test_top_and_report():
    with machine() as daemon:
        serve_machine.until(lambda: ENDED.exists() and ENDED.read_text().count('"what":"gpu"') == 2, "what the GPUs counted at first")
        with training(0, FLYBALL_JOB_NAME="resnet50") as first, training(1, SLURM_JOB_ID="4711") as second:
            one, two = row_of(first.pid, "training_job", "user"), row_of(second.pid, "slurm_job", "user")
            tap.equal((one["gpus"], one["training_job"], one["slurm_job"], one["user"]), ("0", "resnet50", None, ME))
            tap.equal((two["gpus"], two["training_job"], two["slurm_job"], two["uid"]), ("1", None, "4711", os.geteuid()))
            found = top("--by", "user")
            tap.equal([(row["user"], row["gpus"], row["processes"]) for row in found["rows"] if row["kind"] == "process" and row["user"]],
                      [(ME, "0-1", 2)])
            tap.equal([gpu["index"] for gpu in found["gpus"]], [0, 1])
            tap.equal([row["gpus"] for row in top("--by", "job")["rows"] if row["training_job"] == "resnet50"], ["0"])
        serve_machine.until(lambda: {first.pid, second.pid}.isdisjoint({row["pid"] for row in top()["rows"]}), "both are seen to have ended")
        whole = top("--all")["rows"]
        ended = {row["pid"]: row["energy_j"] for row in whole if row["pid"]}
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))
        said = {key: flyball("report", "--format", "json", "--by", key, "--meters", node_machine.STATE) for key in ("user", "job")}
    by_user, by_job = ({row[key]: row for row in said[key]["rows"] if row["row"] == "attributed"} for key in ("user", "job"))
    tap.equal((set(by_user), set(by_job)), ({f"uid:{os.geteuid()}"}, {"resnet50"}))
    tap.equal(abs(by_user[f"uid:{os.geteuid()}"]["energy_j"] / (ended[first.pid] + ended[second.pid]) - 1) < 1e-6, True, (by_user, ended))
    tap.equal(abs(by_job["resnet50"]["energy_j"] / ended[first.pid] - 1) < 1e-6, True, (by_job, ended))
    total = sum(row["energy_j"] for row in said["user"]["rows"])
    tap.equal(abs(total / said["user"]["meters"]["energy_j"] - 1) < 1e-6, True, said["user"])
    # From the daemon's first reading to its last one.
    if not 0 < total < 1.01 * (sum(row["energy_j"] or 0 for row in whole) + 400):
        raise AssertionError(f"{total} J, {whole}")


tap.main(globals())
