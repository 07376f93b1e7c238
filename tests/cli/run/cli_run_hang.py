# SPDX-License-Identifier: Apache-2.0
"""flyball run where a job's log, a service or the home does not answer: what is measured is right, the run ends with its program,
and everything is on record later.

usage: cli_run_hang.py FLYBALL SOURCE_ROOT
"""

import contextlib
import json
import os
import pathlib
import select
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

import tap
from power_machine import CLEAN, FLYBALL, HOME, SANITIZED, WHERE, machine, wait_for
from serve_machine import service

EXACT = ["--sensor", "exact", "--counter-period-ms", "0"]
TRAINER = str(tap.LIB / "job_trainer.py")
BUILD = pathlib.Path(os.environ.get("FLYBALL_TEST_BUILD", os.path.join(os.path.dirname(FLYBALL), "tests")))
STATES = tempfile.TemporaryDirectory(prefix="flyball-run-hang-", dir=tap.quick_place())
STATE = pathlib.Path(STATES.name) / "state"
STORE = STATE / "flyball" / "store.sqlite"
SPOOL = STATE / "flyball" / "spool"
DEFINITION = ["--batch-sizes", "16,32,64", "--default-batch-size", "32", "--target-metric", "1", "--max-epochs", "12", "--objective",
              "energy", "--leave-limits"]
EPOCHS = 4
# The log's own patience for one call is 5 s: whoever waited for each of its calls took so long, however fast the machine.
WAITED_S = 30.0


@contextlib.contextmanager
def fresh():
    shutil.rmtree(STATE, ignore_errors=True)
    (HOME / "done").unlink(missing_ok=True)
    with machine(*EXACT, gpus=1):
        yield


class Run:
    """A run under way; its trainer has done an epoch."""

    def __init__(self, *options, environment=None, words=()):
        self.begin = time.monotonic()
        command = [FLYBALL, "run", "-v", "--job", "job", "-i", "0", *WHERE, *DEFINITION, *options, "--output", str(HOME / "report.json"), "--", sys.executable,
                   TRAINER, "{batch_size}", f"epochs=32:{EPOCHS}", "step=0.04", f"state={HOME / 'done'}", *words]
        self.process = subprocess.Popen(command, env={**CLEAN, "XDG_STATE_HOME": str(STATE), **(environment or {})}, cwd=HOME,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for(lambda: (HOME / "done").exists(), "an epoch is done")
        self.begun_s = time.monotonic() - self.begin

    def end(self, waits_s=0.0):
        """What its document says of the recurrence; it has not waited for anybody."""
        _, self.talk = self.process.communicate(timeout=tap.PATIENCE_S)
        self.took_s = time.monotonic() - self.begin
        self.document = json.loads((HOME / "report.json").read_text())
        said = self.document["recurrence"]
        tap.equal((self.process.returncode, [attempt["end"] for attempt in said["tries"]]), (0, ["reached"]), self.talk)
        if not SANITIZED:
            tap.equal(self.took_s - waits_s - self.document["time_s"] < WAITED_S, True, (self.took_s, self.talk))
        return said


def job(what, *options, environment=None):
    result = subprocess.run([FLYBALL, "job", what, "job", "--format", "json", *options], env={**CLEAN, "XDG_STATE_HOME": str(STATE), **(environment or {})},
                            capture_output=True, text=True, timeout=tap.PATIENCE_S, check=False)
    tap.equal(result.returncode, 0, result.stderr)
    return json.loads(result.stdout)["rows"]


def check_record(run, said, row):
    """Everything is there, and no longer than the program took."""
    attempt = said["tries"][0]
    tap.equal((row["outcome"], row["epochs"], row["metric"], row["attempts"]), ("reached", EPOCHS, 1, 1), row)
    tap.equal((attempt["time_s"], attempt["energy_j"]), (row["time_s"], row["energy_j"]), attempt)
    tap.equal(0 < row["time_s"] <= run.document["time_s"] + 0.001, True, row)
    tap.equal(55 < row["energy_j"] / row["time_s"] < 65, True, row)


def left():
    return sorted(path.name for path in SPOOL.iterdir()) if SPOOL.exists() else []


def test_locked_store():
    """Another program holds the store's lock from the first epoch on, to beyond the end."""
    with fresh():
        run = Run()
        with contextlib.closing(sqlite3.connect(STORE, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            said = run.end()
            tap.equal((said["kept_reports"] > 0, len(left())), (True, 1), run.talk)
            tap.contains(run.talk, "kept here until it can be reached")
        (row,) = job("history")
        tap.equal(left(), [])
        check_record(run, said, row)


class Hanging:
    """A socket before another one: hands everything on until it is told to hang, and then nothing, and closes nothing."""

    def __init__(self, path, target):
        self.target, self.hangs = target, False
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(16)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client = self.listener.accept()[0]
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client, socket.socket(socket.AF_UNIX) as server, contextlib.suppress(OSError):
            server.connect(self.target)
            while True:
                for side in select.select([client, server], [], [])[0]:
                    while self.hangs:
                        time.sleep(0.05)
                    data = side.recv(1 << 16)
                    if not data:
                        return
                    (server if side is client else client).sendall(data)


def test_hanging_service():
    """A service takes connections and requests, and answers nothing more; FLYBALL_SPOOL says where reports wait."""
    with fresh(), tempfile.TemporaryDirectory(prefix="flyball-hang-", dir="/tmp") as place:
        real, path = f"{place}/real", f"{place}/front"
        front = Hanging(path, real)
        shared = {"FLYBALL_SPOOL": f"{place}/shared/reports"}
        with service(FLYBALL, f"--store={place}/store.sqlite", listen=f"unix:{real}"):
            run = Run("--store", f"unix:{path}", environment=shared)
            front.hangs = True
            said = run.end()
            tap.equal((said["kept_reports"] > 0, left(), len(list(pathlib.Path(shared["FLYBALL_SPOOL"]).iterdir()))), (True, [], 1), run.talk)
            front.hangs = False
            (row,) = job("history", "--store", f"unix:{path}", environment=shared)
            tap.equal(list(pathlib.Path(shared["FLYBALL_SPOOL"]).iterdir()), [])
            check_record(run, said, row)


def test_hangs_from_the_start():
    """A service that answers nothing at all: the default is run, what the service was waited for does not count, also not in the
    account, and the run is on record as soon as it answers."""
    with fresh(), tempfile.TemporaryDirectory(prefix="flyball-hang-", dir="/tmp") as place:
        real, path = f"{place}/real", f"{place}/front"
        front = Hanging(path, real)
        front.hangs = True
        with service(FLYBALL, f"--store={place}/store.sqlite", listen=f"unix:{real}"):
            run = Run("--store", f"unix:{path}", environment={"FLYBALL_CARBON_SOURCE": "constant:300"})
            said = run.end(waits_s=run.begun_s)
            (account,) = (STATE / "flyball" / "carbon").glob("*.jsonl")
            slices = [line["slice"] for line in map(json.loads, account.read_text().splitlines()) if "slice" in line]
            counted_j = sum(device["energy_j"] for device in run.document["devices"] if device["kind"] == "GPU")
            tap.equal(abs(sum(piece["gpu_j"] for piece in slices) - counted_j) < 0.05 * counted_j, True, (slices, counted_j))
            # The trainer goes on until it is told that the target is reached, so there may be more epochs.
            tap.equal((said["recurrence"], said["tries"][0]["trial"], said["kept_reports"] > EPOCHS), (None, None, True), run.talk)
            tap.contains(run.talk, "no answer within 5 s")
            front.hangs = False
            (row,) = job("history", "--store", f"unix:{path}")
            tap.equal((left(), row["batch_size"]), ([], 32))
            check_record(run, said, row)


def hung_home(place):
    if SANITIZED:
        raise tap.Skip("a sanitizer wants to be loaded first")
    mark = HOME / "hangs"
    mark.touch()
    return mark, {"LD_PRELOAD": str(BUILD / "hung_home.so"), "HUNG_PLACE": str(place), "HUNG_WHILE": str(mark)}


def test_hung_home():
    """Nothing can be looked up or written where reports would wait; the log takes them."""
    mark, environment = hung_home(SPOOL)
    with fresh():
        run = Run(environment=environment)
        said = run.end()
        mark.unlink()
        tap.equal((said["kept_reports"], said["log_unavailable"]), (0, None), run.talk)
        (row,) = job("history")
        check_record(run, said, row)


def test_hung_home_and_store():
    """Neither the log nor the disk answers: the run ends all the same, with what it measured, and says so."""
    mark, environment = hung_home(SPOOL)
    with fresh():
        run = Run(environment=environment)
        with contextlib.closing(sqlite3.connect(STORE, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            said = run.end()
        mark.unlink()
        tap.equal(said["log_unavailable"] is not None, True, run.talk)
        tap.equal(said["tries"][0]["epochs"], EPOCHS)


def test_hung_account():
    """The account of a run's energy lies in a home that stops answering while the program runs."""
    mark, environment = hung_home(STATE / "flyball" / "carbon")
    mark.unlink()
    (HOME / "grid.csv").write_text("timestamp,actual_g_per_kwh\n2026-01-01T00:00Z,100\n2026-01-01T01:00Z,100\n")
    with fresh():
        begin = time.monotonic()
        with tap.Program([FLYBALL, "run", "-i", "0", *WHERE, "--carbon", str(HOME / "grid.csv"), "--", "sh", "-c", f"touch {mark}; sleep 0.3"],
                         env={**CLEAN, "XDG_STATE_HOME": str(STATE), **environment}, cwd=HOME, stderr=subprocess.PIPE, text=True) as process:
            talk = process.communicate(timeout=tap.PATIENCE_S)[1]
        took_s = time.monotonic() - begin
        mark.unlink()
        tap.equal((process.returncode, took_s < WAITED_S), (0, True), (took_s, talk))
        tap.contains(talk, "the disk does not answer")


if __name__ == "__main__":
    tap.main(globals())
