#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who used which GPU, held against the emulator's truth: processes come and go, and flyballd keeps account.

    scripts/soak_attribution.py [SECONDS [SEED]]      (FLYBALL_ATTRIBUTION_ROWS=1 also prints each process)

Twenty trainings, five on each, have places on four emulated GPUs. Each comes, works and goes, again and again, by itself or
killed, and each time is another process:

    GPU 0   one at a time, the GPU to itself; some of them render
    GPU 1   several at once, of which some render; they keep the processors busy for shares of the time
    GPU 2   a server of the Multi-Process Service, and its clients
    GPU 3   two MIG instances, with one or two processes each

At the end, each process's energy and that of the rows is compared with what the emulator knows: idle power of
the time that a process was there, shared out among those that were there, and what its work drew above it.
"""
import collections
import http.client
import json
import os
import pathlib
import random
import re
import socket
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(__file__).resolve().parent.parent / os.environ.get("BUILD_DIR", "build")
EMULATOR = BUILD / "emulator" / "flyball-emulator"
GPUS, PATIENCE_S = 4, 60.0
SOLE, SHARED, MPS, MIG = range(GPUS)
PLACES_EACH = 5  # on each GPU; one of the clients' is their server's
MOST_UNOBSERVED = 0.01
MOST_WIDE = {SOLE: 0.10, SHARED: 0.25}  # half widths, as shares of the energies
# Shorter campaigns have processes that are there for so short a time that coming and going weighs more.
WHOLE_S, LIVES_S = 120.0, (15.0, 90.0)
WIDER = 2.0
IDLE_S = 2.0  # before anybody comes; the daemon learns the idle power then


class Socket(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE_S)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Machine:
    """Emulated GPUs and a daemon that watches them, in a directory."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.environment = {**os.environ, "FLYBALL_EMULATOR_STATE": str(self.directory / "gpus")}
        self.daemon = None

    def emulator(self, *arguments):
        return subprocess.run([EMULATOR, *map(str, arguments)], env=self.environment, check=True, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL).stdout

    def truth(self):
        return json.loads(self.emulator("show", "--json"))["gpus"]

    def __enter__(self):
        self.emulator("start", "--gpus", GPUS, "--model", "a100", "--mig", "2", "--mig-from", MIG, "--any-user=yes")
        config = self.directory / "flyballd.ini"
        # The directory stands for the machine's root, so that the processes of this place are the machine's.
        (self.directory / "proc").symlink_to("/proc")
        config.write_text(f"[server]\nlisten = unix:{self.directory}/socket\n[watch]\nstate = {self.directory}\n"
                          f"[devices]\nnvml = {EMULATOR.parent}/libnvidia-ml.so.1\namdsmi = {self.directory}/none\n"
                          f"sysfs_root = {self.directory}\n"
                          f"[lease]\nruntime_directory = {self.directory}/run\naudit = none\n[attribution]\nkeep = 100000\n"
                          "[rights]\ncontained = yes\n", encoding="utf-8")
        config.chmod(0o600)
        (self.directory / "run").mkdir(mode=0o700)
        with open(self.directory / "log", "wb") as log:
            self.daemon = subprocess.Popen([BUILD / "flyballd", f"--config={config}"], env=self.environment, stderr=log)
        end_s = time.monotonic() + PATIENCE_S
        while not self.is_ready():
            if self.daemon.poll() is not None or time.monotonic() > end_s:
                raise AssertionError(f"flyballd does not account for the GPUs:\n{(self.directory / 'log').read_text()}")
            time.sleep(0.1)
        return self

    def ask(self, path):
        connection = Socket(self.directory / "socket")
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read().decode()
            if answer.status != 200:
                raise AssertionError(f"{path}: status {answer.status}: {body}")
            return body
        finally:
            connection.close()

    def usage(self):
        """The answer, whose rows add up to what was counted at any moment, in whole microjoules."""
        usage = json.loads(self.ask("/v1/usage"))
        for gpu in usage["gpus"]:
            sum_uj = sum(row["energy_uj"] for row in usage["rows"] if row["gpu"] == gpu["gpu"])
            if sum_uj != gpu["energy_uj"]:
                raise AssertionError(f"GPU {gpu['gpu']}: rows of {sum_uj} uJ, and {gpu['energy_uj']} uJ were counted")
        return usage

    def is_ready(self):
        try:
            return len(self.usage()["gpus"]) == GPUS
        except OSError:
            return False

    def metered(self):
        """What the meters counted, by GPU, in joules."""
        return {int(gpu): float(value) for gpu, value in re.findall(r'^flyball_gpu_energy_joules_total\{.*?gpu="(\d+)".*\} (\S+)$',
                                                                    self.ask("/metrics"), re.MULTILINE)}

    def __exit__(self, *_):
        self.daemon.terminate()
        status = self.daemon.wait()
        self.emulator("stop")
        if status != 0:
            raise AssertionError(f"flyballd ended with {status}:\n{(self.directory / 'log').read_text()}")


class Place:
    """A training's place on a GPU, which is empty at times."""

    def __init__(self, machine, gpu, number, draw):
        self.machine, self.gpu, self.number, self.draw = machine, gpu, number, draw
        self.process, self.until_s = None, 0.0

    def arguments(self):
        """Loads that keep the processors busy draw much the same at the same share, within the daemon's stated model."""
        draw = self.draw
        words = ["--gpu", self.gpu, "--batch-size", draw.choice((192, 256, 384, 512)), "--sample-ms", 1, "--epochs", 1000000]
        if self.gpu in (SOLE, SHARED) and draw.random() < 0.3:
            words += ["--kind", "graphics"]
        if self.gpu == MPS:
            words += ["--kind", "mps"]
        if self.gpu == MIG:
            words += ["--instance", self.number % 2]
        shares = [round(draw.uniform(0.2, 1.0), 2) for _ in range(draw.choice((1, 1, 2, 4)))]
        return [*words, "--busy", ",".join(map(str, shares))]

    def begin(self, until_s):
        words = ["mps", "--gpu", self.gpu] if (self.gpu, self.number) == (MPS, 0) else ["train", *self.arguments()]
        self.process = subprocess.Popen([EMULATOR, *map(str, words)], env=self.machine.environment, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        self.until_s = until_s

    def end(self):
        if self.process is not None:
            (self.process.kill if self.draw.random() < 0.5 else self.process.terminate)()
            self.process.wait()
        self.process = None


def live(machine, seconds, draw):
    """Lets the trainings come and go; returns how many there were."""
    places = [Place(machine, gpu, number, draw) for gpu in range(GPUS) for number in range(PLACES_EACH)]
    life_s = LIVES_S if seconds >= WHOLE_S else (seconds / 3, seconds / 1.5)
    pause_s = (0.2, life_s[0] / 2)
    begin_s = asked_s = time.monotonic()
    begun = 0
    for place in places:
        place.until_s = begin_s + draw.uniform(0, pause_s[1])
    try:
        while (now_s := time.monotonic()) < begin_s + seconds:
            for place in places:
                if now_s < place.until_s:
                    continue
                if place.process is not None:
                    place.end()
                    place.until_s = now_s + draw.uniform(*pause_s)
                elif place.gpu == SOLE and any(other.process for other in places if other.gpu == SOLE):
                    place.until_s = now_s + draw.uniform(*pause_s)
                else:
                    # The server stays; who would come for too short a time does not.
                    lasts_s = seconds if (place.gpu, place.number) == (MPS, 0) else draw.uniform(*life_s)
                    if now_s + life_s[0] > begin_s + seconds:
                        place.until_s = begin_s + seconds
                        continue
                    place.begin(now_s + lasts_s)
                    begun += 1
            if now_s >= asked_s + 1.0:
                machine.usage()
                asked_s = now_s
            time.sleep(0.05)
    finally:
        for place in places:
            place.end()
    return begun


def settled(machine):
    """The rows once all processes are seen to have gone and the meters have caught up, and the truth then."""
    end_s = time.monotonic() + PATIENCE_S
    while any(row["kind"] == "process" and row["pid"] and row["ended_unix_ms"] is None for row in machine.usage()["rows"]):
        if time.monotonic() > end_s:
            raise AssertionError("processes that ended still have open rows after a minute")
        time.sleep(0.2)
    check_meters(machine)
    return machine.usage(), machine.truth()


def check_meters(machine):
    """What rows add up to is what /metrics has; the account may be some looks behind, and no more than that."""
    before = {gpu["gpu"]: gpu["energy_j"] for gpu in machine.usage()["gpus"]}
    metered = machine.metered()
    end_s = time.monotonic() + PATIENCE_S
    while any(gpu["energy_j"] < metered[gpu["gpu"]] for gpu in machine.usage()["gpus"]):
        if time.monotonic() > end_s:
            raise AssertionError(f"the account does not come up to what the meters counted: {metered}")
        time.sleep(0.1)
    if any(metered[gpu] < before[gpu] for gpu in before):
        raise AssertionError(f"{before} J are accounted for, and the meters counted {metered} J")


class Findings:
    """What was compared; `misses` are its complaints."""

    def __init__(self):
        self.lines = []
        self.misses, self.counts, self.widths, self.errors = [], collections.Counter(), collections.defaultdict(list), collections.defaultdict(list)

    def demand(self, met, complaint):
        if not met:
            self.misses.append(complaint)

    def within(self, what, row_j, half_width_j, truth_j):
        self.demand(abs(row_j - truth_j) <= half_width_j, f"{what}: {row_j:.1f} J +- {half_width_j:.1f} J, truth {truth_j:.1f} J")


def check_process(findings, gpu, row, work, wider):
    """A process of which the account knows its own part: all of it was its own or split by use."""
    kind = "alone" if gpu == SOLE else "shared"
    truth_j = work["true_dynamic_j"] + work["true_idle_j"]
    what = f"GPU {gpu}, process {row['pid']} ({work['kind']}), {work['ended_age_s'] - work['began_age_s']:.1f} s"
    findings.counts[kind] += 1
    findings.within(what, row["energy_j"], row["half_width_j"], truth_j)
    width = row["half_width_j"] / row["energy_j"]
    findings.widths[kind].append(width)
    findings.errors[kind].append(abs(row["energy_j"] - truth_j) / truth_j)
    findings.lines.append(f"{what}: {row['energy_j']:.1f} J, off by {100 * findings.errors[kind][-1]:.2f} %, half width {100 * width:.2f} %")
    findings.demand(width <= wider * MOST_WIDE[gpu], f"{what}: a half width of {100 * width:.1f} % of {row['energy_j']:.1f} J")


def check_gpu(findings, usage, gpu, truth, wider):
    rows = [row for row in usage["rows"] if row["gpu"] == gpu]
    processes = {row["pid"]: row for row in rows if row["kind"] == "process" and row["pid"]}
    works = [work for work in truth["works"] if work["kind"] != "mps-server"]
    for work in works:
        row = processes.get(work["pid"])
        if row is None:
            findings.misses.append(f"GPU {gpu}: no row of process {work['pid']}, which was there for "
                                   f"{work['ended_age_s'] - work['began_age_s']:.1f} s")
        elif gpu in (SOLE, SHARED):
            check_process(findings, gpu, row, work, wider)
    if gpu in (MPS, MIG):
        # Who cannot be told apart has no part of its own; all together they have.
        together = [row for row in rows if row["kind"] in ("process", "shared") and row["energy_j"] is not None]
        findings.counts["inseparable"] += len(works)
        truth_j = sum(work["true_dynamic_j"] + work["true_idle_j"] for work in works)
        findings.within(f"GPU {gpu}, all processes", sum(row["energy_j"] for row in together),
                        sum(row["half_width_j"] for row in together), truth_j)
        findings.demand(any(row["kind"] == "shared" and row["energy_uj"] > 0 for row in rows), f"GPU {gpu}: nothing is shared")


def check(usage, truths, wider):
    findings = Findings()
    for gpu, truth in enumerate(truths):
        check_gpu(findings, usage, gpu, truth, wider)
    total_uj = sum(gpu["energy_uj"] for gpu in usage["gpus"])
    unobserved = sum(row["energy_uj"] for row in usage["rows"] if row["kind"] == "unobserved") / total_uj
    findings.demand(unobserved < MOST_UNOBSERVED, f"{100 * unobserved:.2f} % are unobserved")
    findings.demand(findings.counts["alone"] > 0 and findings.counts["shared"] > 0, "nobody was there")
    if os.environ.get("FLYBALL_ATTRIBUTION_ROWS"):
        print(*findings.lines, sep="\n", file=sys.stderr)
    if findings.misses:
        raise AssertionError("\n    ".join(findings.misses))
    return findings, unobserved, total_uj


def campaign(seconds, seed, directory):
    draw = random.Random(seed)
    with Machine(directory) as machine:
        time.sleep(IDLE_S)
        begun = live(machine, seconds, draw)
        usage, truths = settled(machine)
    try:
        findings, unobserved, total_uj = check(usage, truths, 1.0 if seconds >= WHOLE_S else WIDER)
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {error}") from None
    parts = [f"{findings.counts[kind]} {kind}: off by {100 * max(findings.errors[kind]):.1f} % at most, bounds of up to "
             f"{100 * max(findings.widths[kind]):.1f} %" for kind in ("alone", "shared")]
    return (f"{begun} processes in {GPUS * PLACES_EACH} places on {GPUS} GPUs for {seconds:.0f} s; {'; '.join(parts)}; "
            f"{findings.counts['inseparable']} not told apart, their sums within bounds; {100 * unobserved:.2f} % of {total_uj / 1e6:.0f} J "
            "unobserved; sums exact")


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 600.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with tempfile.TemporaryDirectory() as directory:
        try:
            print(f"ok - attribution, {campaign(seconds, seed, directory)}")
        except AssertionError as error:
            print(f"not ok - attribution\n    {error}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
