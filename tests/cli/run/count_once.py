# SPDX-License-Identifier: Apache-2.0
"""Ranks, nested wrappers and jobs side by side: the sum of their reports is what the emulated GPUs really drew.

The truth is the emulator's own energy, asked for a moment before and a moment
after the job; what the idle GPUs drew in those moments is known and taken off.

usage: count_once.py FLYBALL SOURCE_ROOT
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import tap

FLYBALL = os.path.abspath(sys.argv[1])
DIRECTORY = os.environ.get("FLYBALL_TEST_EMULATOR", os.path.join(os.path.dirname(FLYBALL), "emulator"))
PROGRAM = os.path.join(DIRECTORY, "flyball-emulator")
WORK = tempfile.TemporaryDirectory(prefix="flyball-count-")
HOME = pathlib.Path(WORK.name)

LOAD_J = 50  # what the shortest load takes at least, beyond idling

LAUNCHERS = ("FLYBALL_", "XDG_", "SLURM", "OMPI_", "PMI", "CUDA_", "LD_LIBRARY_PATH", "RANK", "WORLD_SIZE", "TORCH")
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
CLEAN.update(HOME=str(HOME), XDG_RUNTIME_DIR=str(HOME))


class Gpus:
    """Emulated GPUs for one test, and the truth about them."""

    def __init__(self, count):
        if not os.path.exists(PROGRAM):
            raise tap.Skip("the emulator is not built")
        self.count = count
        self.state = str(HOME / f"state{time.monotonic_ns()}")
        self.environment = {**CLEAN, "FLYBALL_EMULATOR_STATE": self.state, "LD_LIBRARY_PATH": DIRECTORY}
        started = tap.run([PROGRAM, "start", "--gpus", str(count), "--state", self.state], env=self.environment)
        tap.equal(started.returncode, 0, started.stderr)

    def show(self):
        shown = tap.run([PROGRAM, "show", "--json", "--state", self.state], env=self.environment)
        tap.equal(shown.returncode, 0, shown.stderr)
        return json.loads(shown.stdout)

    def stop(self):
        tap.run([PROGRAM, "stop", "--state", self.state], env=self.environment)

    def train(self, gpu):
        """A program's command line: a little rest, a load, and rest until the GPU has settled."""
        train = f"{PROGRAM} train --state {self.state} --gpu {gpu} --batch-size {32 + 16 * gpu} --steps 30 --sample-ms 0.2"
        return ["sh", "-c", f"sleep 0.1; {train} >/dev/null && sleep 0.3"]


def wrapped(program, output, *options):
    # One sensor alone: what the CPU of the tests' machine takes is nothing that the emulator knows.
    return [FLYBALL, "run", "--quiet", "--sysfs-root", str(HOME), "--amdsmi", str(HOME / "none"), *options, "--output", str(output), "--", *program]


def true_energies(shown):
    return [gpu["true_energy_j"] for gpu in shown["gpus"]]


def run_all(commands, environments):
    processes = [subprocess.Popen(command, env=environment, cwd=HOME) for command, environment in zip(commands, environments)]
    for process in processes:
        tap.equal(process.wait(tap.PATIENCE_S), 0)


def tallied(*arguments):
    result = tap.run([FLYBALL, "tally", "--quiet", "--format", "json", *map(str, arguments)], env=CLEAN)
    tap.equal(result.returncode, 0, result.stderr)
    return json.loads(result.stdout)


def reports_in(directory):
    return [json.loads(path.read_text()) for path in sorted(directory.glob("*.json"))]


def check(gpus, directory, measured, used, commands, environments):
    """Runs the commands; the tally of their reports is the truth of `used` GPUs, each counted once."""
    idle_w = gpus.show()["gpus"][0]["true_power_w"]
    before = gpus.show()
    run_all(commands, environments)
    after = gpus.show()
    total = tallied(directory)
    tap.equal(total["reports"], measured)
    tap.equal(len(total["rows"]), len(used))
    by_uuid = {gpu["uuid"]: index for index, gpu in enumerate(before["gpus"])}
    for row in total["rows"]:
        gpu = by_uuid[row["uuid"]]
        outside_s = after["time_s"] - before["time_s"] - row["time_s"]
        drawn_j = true_energies(after)[gpu] - true_energies(before)[gpu]
        # A GPU that just settled still draws a little more than at rest.
        slack_j = 1
        expected_j = drawn_j - idle_w * outside_s
        if abs(row["energy_j"] - expected_j) > row["uncertainty_j"] + slack_j:
            raise AssertionError(f"GPU {gpu}: tallied {row['energy_j']} +- {row['uncertainty_j']} J, expected {expected_j} J "
                                 f"(and up to {slack_j} J)")
        # However long a busy machine takes around the load, idling is no part of this.
        if drawn_j - idle_w * (after["time_s"] - before["time_s"]) < LOAD_J:
            raise AssertionError(f"GPU {gpu} was hardly loaded: {row}")
    reports = reports_in(directory)
    counted = [(device["uuid"]) for report in reports for device in report["devices"] if device["counted"]]
    tap.equal(sorted(counted), sorted(set(counted)), "a GPU was counted by two")
    naive_j = sum(report["total"]["energy_j"] or 0 for report in reports)
    if naive_j > 1.02 * total["total"]["energy_j"]:
        raise AssertionError(f"the reports' own sums give {naive_j} J, the tally {total['total']['energy_j']} J")
    return total


def ranks(count, gpu_count, nested, all_see_all):
    """A job of `count` ranks as a launcher would start it, each with one GPU to train on."""
    gpus = Gpus(gpu_count)
    directory = HOME / f"ranks{count}{'n' if nested else ''}{'a' if all_see_all else ''}{gpu_count}"
    directory.mkdir()
    commands, environments = [], []
    try:
        for rank in range(count):
            gpu = rank % gpu_count
            command = gpus.train(gpu) if rank < gpu_count else ["sleep", "0.5"]
            if nested:
                command = wrapped(command, directory / f"inner{rank}.json")
            commands.append(wrapped(command, directory / f"rank{rank}.json"))
            environments.append({**gpus.environment, "OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": str(count),
                                 "OMPI_COMM_WORLD_LOCAL_RANK": str(rank), "PMIX_NAMESPACE": f"job{time.monotonic_ns()}"})
            environments[-1]["PMIX_NAMESPACE"] = environments[0]["PMIX_NAMESPACE"]
            if not all_see_all:
                environments[-1]["CUDA_VISIBLE_DEVICES"] = str(gpu)
        check(gpus, directory, count * (2 if nested else 1), range(gpu_count), commands, environments)
        for report in reports_in(directory):
            tap.equal((report["job"]["ranked_by"], report["job"]["named_by"]), ("Open MPI", "PMIx"))
    finally:
        gpus.stop()
    return directory


def test_one_rank():
    ranks(1, 1, False, True)


def test_one_rank_nested():
    ranks(1, 1, True, True)


def test_two_ranks_with_a_gpu_each():
    ranks(2, 2, False, False)


def test_two_ranks_that_see_all_gpus():
    directory = ranks(2, 2, False, True)
    others = [device["counted_by"] for report in reports_in(directory) for device in report["devices"] if not device["counted"]]
    tap.equal(len(others), 2)
    for other in others:
        tap.contains(other, "rank ")


def test_two_ranks_on_one_gpu():
    ranks(2, 1, False, False)


def test_eight_ranks_nested_that_see_all_gpus():
    ranks(8, 8, True, True)


def test_eight_ranks_with_a_gpu_each():
    ranks(8, 8, False, False)


def test_ranks_inside_a_wrapper_around_their_launcher():
    """The wrapper around knows the job; the ranks leave its GPUs out, and the tally agrees."""
    gpus = Gpus(2)
    directory = HOME / "launcher"
    directory.mkdir()
    try:
        parts = []
        for rank in range(2):
            program = " ".join(f"'{word}'" for word in wrapped(gpus.train(rank), directory / f"rank{rank}.json"))
            parts.append(f"PMIX_NAMESPACE=x OMPI_COMM_WORLD_RANK={rank} {program} &")
        script = "\n".join(parts) + "\nwait\n"
        check(gpus, directory, 3, range(2), [wrapped(["sh", "-c", script], directory / "outer.json")], [gpus.environment])
        jobs = {report["job"]["id"] for report in reports_in(directory)}
        tap.equal(len(jobs), 1, jobs)
    finally:
        gpus.stop()


def test_two_jobs_on_disjoint_gpus():
    """Of which one has nested wrappers; each tally is its own GPUs, and together they are all."""
    gpus = Gpus(4)
    directory = HOME / "jobs"
    directory.mkdir()
    commands, environments = [], []
    try:
        for rank in range(4):
            job = rank // 2
            command = gpus.train(rank)
            if job == 1:
                command = wrapped(command, directory / f"inner{rank}.json")
            commands.append(wrapped(command, directory / f"rank{rank}.json"))
            environments.append({**gpus.environment, "SLURM_JOB_ID": str(100 + job), "SLURM_STEP_ID": "0", "SLURM_PROCID": str(rank % 2),
                                 "CUDA_VISIBLE_DEVICES": "0,1" if job == 0 else "2,3"})
        total = check(gpus, directory, 6, range(4), commands, environments)
        tap.equal(sorted(total["jobs"]), ["slurm-100", "slurm-101"])
        parts = [tallied("--job", job, directory) for job in total["jobs"]]
        tap.equal(sorted(len(part["rows"]) for part in parts), [2, 2])
        both_j = sum(part["total"]["energy_j"] for part in parts)
        tap.equal(abs(both_j - total["total"]["energy_j"]) < 1e-6 * both_j, True)
    finally:
        gpus.stop()


def test_ranks_that_do_not_see_each_others_locks():
    """As in containers of their own: each counts, and the tally still counts each GPU once."""
    gpus = Gpus(1)
    directory = HOME / "apart"
    directory.mkdir()
    commands, environments = [], []
    try:
        for rank in range(2):
            place = HOME / f"container{rank}"
            place.mkdir()
            commands.append(wrapped(gpus.train(0) if rank == 0 else ["sleep", "0.6"], directory / f"rank{rank}.json"))
            environments.append({**gpus.environment, "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": str(rank),
                                 "XDG_RUNTIME_DIR": str(place)})
        begin = gpus.show()
        run_all(commands, environments)
        drawn_j = true_energies(gpus.show())[0] - true_energies(begin)[0]
        reports = reports_in(directory)
        tap.equal([report["devices"][0]["counted"] for report in reports], [True, True])
        result = tap.run([FLYBALL, "tally", "--format", "json", str(directory)], env=CLEAN)
        row = json.loads(result.stdout)["rows"][0]
        tap.contains(result.stderr, "count it too")
        tap.equal(row["energy_j"] - row["uncertainty_j"] <= drawn_j, True, f"{row}, drawn {drawn_j}")
        tap.equal(sum(report["devices"][0]["energy_j"] for report in reports) > 1.3 * row["energy_j"], True)
    finally:
        gpus.stop()


def test_nodes_add_up():
    """Reports of the same GPU's name on two nodes are of two GPUs."""
    gpus = Gpus(1)
    directory = HOME / "nodes"
    directory.mkdir()
    try:
        for node in ("n1", "n2"):
            environment = {**gpus.environment, "SLURM_JOB_ID": "9", "SLURMD_NODENAME": node}
            run_all([wrapped(["sleep", "0.4"], directory / f"{node}.json")], [environment])
        total = tallied(directory)
        tap.equal([row["node"] for row in total["rows"]], ["n1", "n2"])
        parts = [report["total"]["energy_j"] for report in reports_in(directory)]
        tap.equal(abs(sum(parts) - total["total"]["energy_j"]) < 1e-6 * sum(parts), True)
    finally:
        gpus.stop()


def test_reports_that_are_none():
    good = HOME / "good.json"
    gpus = Gpus(1)
    try:
        run_all([wrapped(["sleep", "0.3"], good)], [gpus.environment])
    finally:
        gpus.stop()
    text = good.read_text()
    bad = HOME / "bad.json"
    for old, new, status, messages in (
        ('"schema": "flyball.run/2"', '"schema": "flyball.run/9"', 65, ['bad.json:2: field \'schema\': expected "flyball.run/2", found "flyball.run/9"']),
        ('"counted": true', '"counted": "yes"', 65, ["field 'devices.0.counted': expected true or false, found \"yes\""]),
        ('"kind": "GPU"', '"kind": "TPU"', 65, ["field 'devices.0.kind': expected GPU, CPU or DRAM, found \"TPU\""]),
        ('"node": ', '"nodule": ', 65, ["field 'job.node': expected a text that is not empty, found nothing"]),
        ('"devices": [', '"devices": 1, "rest": [', 65, ["field 'devices': expected a list of devices, found 1"]),
        ('"samples"', 'samples', 65, ["not a JSON document"]),
    ):
        bad.write_text(text.replace(old, new, 1))
        line = bad.read_text().split(new)[0].count("\n") + 1
        result = tap.run([FLYBALL, "tally", str(good), str(bad)], env=CLEAN)
        tap.equal((result.returncode, result.stdout), (status, ""), new)
        tap.contains(result.stderr, f"flyball: {bad}:")
        if "nodule" not in new:
            tap.contains(result.stderr, f"{bad}:{line}: ")
        for message in messages:
            tap.contains(result.stderr, message)
    for operands, status, message in (
        ([str(HOME / "none.json")], 66, "No such file"),
        ([str(good), "--job", "other"], 66, "none of 1 reports is of job 'other'"),
        ([], 64, "no report named"),
    ):
        result = tap.run([FLYBALL, "tally", *operands], env=CLEAN)
        tap.equal((result.returncode, result.stdout), (status, ""), operands)
        tap.contains(result.stderr, message)
    empty = HOME / "empty"
    shutil.rmtree(empty, ignore_errors=True)
    empty.mkdir()
    tap.contains(tap.run([FLYBALL, "tally", str(empty)], env=CLEAN).stderr, "there is no report")


tap.main(globals())
