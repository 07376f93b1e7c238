# SPDX-License-Identifier: Apache-2.0
"""Who used which GPU, from outside: `GET /v1/usage`, its metrics and its record, over emulated GPUs.

usage: flyballd_usage.py FLYBALL
"""
import contextlib
import json
import os
import pwd
import re
import resource
import signal
import subprocess
import urllib.error
import urllib.request

import node_machine
import power_machine
import serve_machine
import tap

USUAL = {"attribution": {"poll": 0.1}, "watch": {"poll": 0.02, "state": node_machine.STATE}}
ENDED, NOW = node_machine.STATE / "usage.jsonl", node_machine.STATE / "usage.now.jsonl"
ROOT = power_machine.HOME / "root"
SERIES = re.compile(r'flyball_gpu_attributed_energy_joules_total\{gpu="(\d+)",.*kind="(\w+)",user="([^"]*)".*\} (\S+)')


@contextlib.contextmanager
def machine(settings=None, **keywords):
    """A daemon over two GPUs, which sees the processes of this place as if it were the machine's."""
    ROOT.mkdir(exist_ok=True)
    if not (ROOT / "proc").is_symlink():
        (ROOT / "proc").symlink_to("/proc")
    with node_machine.daemon(settings={**USUAL, **(settings or {})}, **keywords) as daemon:
        yield daemon


@contextlib.contextmanager
def training(*arguments):
    process = subprocess.Popen([power_machine.EMULATOR, "train", "--epochs", "100000", *map(str, arguments)], env=power_machine.CLEAN,
                               stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def usage(daemon):
    """The answer, whose rows always add up to what was counted."""
    status, _, answer = daemon.ask("GET", "/v1/usage")
    tap.equal((status, answer.get("schema")), (200, "flyball.usage/1"), str(answer))
    for gpu in answer["gpus"]:
        rows = [row for row in answer["rows"] if row["uuid"] == gpu["uuid"]]
        tap.equal(sum(row["energy_uj"] for row in rows), gpu["energy_uj"], str(rows))
        tap.equal(round(gpu["energy_j"] * 1e6), gpu["energy_uj"])
    return answer


def rows_of(answer, kind, gpu=0):
    return [row for row in answer["rows"] if row["kind"] == kind and row["gpu"] == gpu]


def row_of(daemon, pid, gpu=0):
    """The row of a process, once it has energy."""
    def look():
        rows = [row for row in rows_of(usage(daemon), "process", gpu) if row["pid"] == pid and row["energy_uj"] > 0]
        return rows[0] if rows else None
    return serve_machine.until(look, f"a row of process {pid} on GPU {gpu}")


def idle_rises(daemon, gpu=0):
    before = rows_of(usage(daemon), "idle", gpu)[0]["energy_uj"]
    serve_machine.until(lambda: rows_of(usage(daemon), "idle", gpu)[0]["energy_uj"] > before, "the GPU is idle")


def ready(daemon):
    return serve_machine.until(lambda: len(usage(daemon)["gpus"]) == 2 and usage(daemon), "both GPUs are known")


def test_rows():
    with power_machine.machine(), machine() as daemon:
        ready(daemon)
        idle_rises(daemon)
        with training() as first, training("--gpu", "0,1", "--batch-size", 16) as second:
            one = row_of(daemon, first.pid)
            two = row_of(daemon, second.pid, 1)
            tap.equal((one["command"], one["uid"], one["ended_unix_ms"], one["memory_bytes"]),
                      ("flyball-emulato", os.geteuid(), None, 8 << 30))
            tap.equal(serve_machine.until(lambda: row_of(daemon, first.pid)["user"], "its name is known"), pwd.getpwuid(os.geteuid()).pw_name)
            tap.equal(row_of(daemon, second.pid)["started_unix_ms"], two["started_unix_ms"])
            serve_machine.until(lambda: row_of(daemon, first.pid)["energy_uj"] > one["energy_uj"], "more energy")
            before = rows_of(usage(daemon), "idle")[0]["energy_uj"]
            serve_machine.until(lambda: row_of(daemon, second.pid)["energy_uj"] > two["energy_uj"], "more energy")
            tap.equal(rows_of(usage(daemon), "idle")[0]["energy_uj"], before, "nothing is idle meanwhile")
        ended = serve_machine.until(lambda: row_of(daemon, first.pid)["ended_unix_ms"] and row_of(daemon, first.pid), "its end")
        idle_rises(daemon)
        tap.equal(row_of(daemon, first.pid), ended, "a row that ended stays as it is")
        tap.equal((ended["power_w"], ended["memory_bytes"]), (None, None))
        if not ended["half_width_j"] > 0:
            raise AssertionError(f"no bound: {ended}")
        total = sum(gpu["energy_uj"] for gpu in usage(daemon)["gpus"])
        unobserved = sum(row["energy_uj"] for row in usage(daemon)["rows"] if row["kind"] == "unobserved")
        if unobserved > 0.2 * total:
            raise AssertionError(f"{unobserved} of {total} uJ are unobserved")
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))
    node_machine.clean()


def test_forged_name():
    """Who gives a program the name of MPS's server pays for its work all the same, and no other does."""
    if os.geteuid() != 0:
        raise tap.Skip("only root can be two users")
    power_machine.HOME.chmod(0o711)
    named = power_machine.HOME / "nvidia-cuda-mps-server"
    named.symlink_to(power_machine.EMULATOR)
    with power_machine.machine(), machine() as daemon, training():
        ready(daemon)
        process = subprocess.Popen([named, "train", "--epochs", "100000"], env=power_machine.CLEAN, stdout=subprocess.DEVNULL,
                                   user=power_machine.NOBODY, group=power_machine.NOBODY, extra_groups=[], cwd="/")
        try:
            row = row_of(daemon, process.pid)
            tap.equal((row["command"], row["uid"]), ("nvidia-cuda-mps", power_machine.NOBODY))
        finally:
            process.kill()
            process.wait()
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))
    node_machine.clean()


def counter_j():
    return json.loads(power_machine.emulator("show", "--json"))["gpus"][0]["counter_j"]


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_goes_on():
    with power_machine.machine(), training() as process:
        with machine() as daemon:
            first = row_of(daemon, process.pid)
            tap.equal(daemon.stop(), 0, "".join(daemon.talk))
        saved = [line for line in lines(NOW) if line["pid"] == process.pid]
        counted = counter_j()
        serve_machine.until(lambda: counter_j() > counted, "energy while no daemon is there")
        tap.equal([line["what"] for line in saved], ["row"])
        with machine() as daemon:
            second = row_of(daemon, process.pid)
            serve_machine.until(lambda: row_of(daemon, process.pid)["ended_unix_ms"] is None, "it is seen again")
            second = row_of(daemon, process.pid)
            if second["energy_uj"] < saved[0]["energy_uj"]:
                raise AssertionError(f"{second} is less than {saved}")
            tap.equal((second["started_unix_ms"], second["user"]), (first["started_unix_ms"], saved[0]["user"]))
            if rows_of(usage(daemon), "unobserved")[0]["energy_uj"] == 0:
                raise AssertionError("what was drawn meanwhile is nobody's")
            daemon.stop(signal.SIGKILL)
        before = lines(NOW)
        with ENDED.open("a") as record:
            record.write('{"schema":"flyball.usage.line/1","what":"en')
        with machine() as daemon:
            daemon.said("1 lines of the record of who used the GPUs are damaged")
            third = row_of(daemon, process.pid)
            if third["energy_uj"] < [line for line in before if line["pid"] == process.pid][0]["energy_uj"]:
                raise AssertionError("a row fell")
            process.kill()
            serve_machine.until(lambda: row_of(daemon, process.pid)["ended_unix_ms"], "its end")
            serve_machine.until(lambda: '"end"' in ENDED.read_text(), "the record has the end")
            ended = row_of(daemon, process.pid)
            daemon.stop(signal.SIGKILL)
        # The end is on record, but the file of what goes on is older.
        with machine() as daemon:
            ready(daemon)
            again = row_of(daemon, process.pid)
            tap.equal((again["energy_uj"], again["ended_unix_ms"]), (ended["energy_uj"], ended["ended_unix_ms"]))
            tap.equal(daemon.stop(), 0)
        with machine(settings={"attribution": {"poll": 0.1, "keep": 0}}) as daemon:
            def folded():
                return [row["pid"] for row in rows_of(usage(daemon), "process") if row["energy_uj"] > 0] == [None]
            serve_machine.until(folded, "the row is folded")
    node_machine.clean()


def series(daemon):
    status, _, text = daemon.ask("GET", "/metrics")
    tap.equal(status, 200)
    return SERIES.findall(text.decode()), text.decode()


def test_metrics():
    with power_machine.machine(), machine() as daemon, training() as process:
        row_of(daemon, process.pid)

        def own():
            return [row for row in series(daemon)[0] if row[1] == "process"]
        rows = serve_machine.until(own, "a series of the process")
        tap.equal([row[:3] for row in rows], [("0", "process", pwd.getpwuid(os.geteuid()).pw_name)])
        found, text = series(daemon)
        tap.equal(sorted(row[:2] for row in found if row[0] == "0"), [("0", "idle"), ("0", "process"), ("0", "unobserved")])
        tap.contains(text, "flyball_attribution_series_left_out 0\n")
        tap.contains(text, 'flyball_gpu_attributed_power_watts{gpu="0"')
    node_machine.clean()
    with power_machine.machine(), machine(settings={"attribution": {"poll": 0.1, "series": 1}}) as daemon, training() as process:
        row_of(daemon, process.pid)
        serve_machine.until(lambda: "flyball_attribution_series_left_out 1\n" in series(daemon)[1], "it is counted")
        serve_machine.until(lambda: [row for row in series(daemon)[0] if row[1] == "left_out"], "its energy is left out")
        tap.equal([row for row in series(daemon)[0] if row[1] == "process"], [])
    node_machine.clean()


def test_who_may_read():
    with power_machine.machine(), machine(settings={"rights": {**node_machine.USUAL["rights"], "closed": "yes", "open": "no"}}, rules="") as daemon:
        statuses = {}
        for path in ("/v1/gpus", "/v1/usage"):
            with contextlib.suppress(urllib.error.HTTPError):
                urllib.request.urlopen(daemon.url + path, timeout=tap.PATIENCE_S)
                raise AssertionError(f"{path} is open to all")
            statuses[path] = daemon.ask("GET", path)[0]
        tap.equal(statuses["/v1/usage"], statuses["/v1/gpus"])
    node_machine.clean()


def test_off():
    with power_machine.machine(), machine(settings={"attribution": {"enabled": "no"}}) as daemon:
        status, _, body = daemon.ask("GET", "/v1/usage")
        tap.equal((status, body["error"]["code"]), (501, "FLY_EUNSUPPORTED"))
        tap.equal("attributed" in series(daemon)[1], False)
        tap.equal(daemon.stop(), 0)
        tap.equal(NOW.exists(), False)
    node_machine.clean()


def test_no_disk():
    with power_machine.machine(), training() as process:
        NOW.parent.mkdir(exist_ok=True)
        ENDED.mkdir()
        try:
            with machine() as daemon:
                daemon.said("who used the GPUs before is not all known")
                row_of(daemon, process.pid)
                process.kill()
                daemon.said("who used the GPUs is not recorded")
                serve_machine.until(lambda: row_of(daemon, process.pid)["ended_unix_ms"], "the account goes on")
                ENDED.rmdir()
                daemon.said("who used the GPUs is recorded again")
        finally:
            with contextlib.suppress(OSError):
                ENDED.rmdir()
    node_machine.clean()


def test_half_a_disk():
    """Where a record does not fit, none of it is written; later it is."""
    with power_machine.machine(), machine() as daemon:
        def limit(most):
            resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (most, hard))

        hard = resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE)[1]
        ends = []
        for _ in range(2):
            with training() as process:
                row_of(daemon, process.pid)
                ends.append(process.pid)
            if len(ends) == 1:
                serve_machine.until(lambda: ENDED.exists() and ENDED.stat().st_size > 0, "the first is on record")
                before = ENDED.read_bytes()
                limit(len(before) + 40)
        daemon.said("who used the GPUs is not recorded")
        tap.equal(ENDED.read_bytes(), before, "whole lines alone")
        limit(hard)
        daemon.said("who used the GPUs is recorded again")
        serve_machine.until(lambda: {line.get("pid") for line in lines(ENDED)} >= set(ends), "both are on record")
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))
    node_machine.clean()


tap.main(globals())
