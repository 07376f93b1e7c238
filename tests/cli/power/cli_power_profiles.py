# SPDX-License-Identifier: Apache-2.0
"""Workload power profiles from outside, on emulated GPUs: shown, requested, put back after kill -9, and by root for others.

usage: cli_power_profiles.py FLYBALL SOURCE_ROOT
"""

import csv
import io
import json
import os
import pathlib
import signal
import subprocess

import tap
from power_machine import (CLEAN, EMULATOR, FLYBALL, HOME, KNOBS, NOBODY, WHERE, as_other_user, emulator, ended, entries, gone, guard_of,
                           kill_program, machine, power, rows_of, start, wait_for)

OFFERED = ["MAX_P", "MAX_Q", "COMPUTE", "MEMORY_BOUND", "LLM_TRAINING", "HPC", "TRAINING"]


def requested():
    return [gpu["workload_profiles_requested"] for gpu in json.loads(emulator("show", "--json"))["gpus"]]


def test_get():
    with machine(model="b200"):
        emulator("set", "--gpu", 0, "--workload-profiles", "HPC,LLM_TRAINING,MAX_Q")
        result = power("get")
        tap.equal((result.returncode, result.stderr), (0, ""))
        tap.contains(result.stdout, "GPU 0: workload profiles requested: MAX_Q,LLM_TRAINING,HPC; enforced: MAX_Q,LLM_TRAINING; "
                                    "offered: MAX_P,MAX_Q,COMPUTE,MEMORY_BOUND,LLM_TRAINING,HPC,TRAINING\n")
        tap.contains(result.stdout, "GPU 1: workload profiles requested: none; enforced: none; ")
        rows = rows_of(power("get", "--format", "json"))
        tap.equal([(row["workload_profiles_supported"], row["workload_profiles_requested"], row["workload_profiles_enforced"])
                   for row in rows],
                  [(OFFERED, ["MAX_Q", "LLM_TRAINING", "HPC"], ["MAX_Q", "LLM_TRAINING"]), (OFFERED, [], [])])
        table = list(csv.DictReader(io.StringIO(power("get", "--format", "csv").stdout)))
        tap.equal([row["workload_profiles_requested"] for row in table], ["MAX_Q,LLM_TRAINING,HPC", ""])


def test_older_boards():
    with machine(gpus=1):
        tap.equal("profiles" in power("get").stdout, False)
        row = rows_of(power("get", "--format", "json"))[0]
        tap.equal((row["workload_profiles_requested"], row["workload_profiles_requested_unavailable"]),
                  (None, "the device does not offer it"))
        result = power("set", "--profile", "MAX_Q")
        tap.equal((result.returncode, result.stdout), (69, ""))
        tap.contains(result.stderr, "has no workload power profiles")
        tap.equal("profiles" in power("set", 250, "--for", "0.1s").stdout, False)


def test_set_stays():
    with machine(model="b200"):
        emulator("set", "--gpu", 1, "--workload-profiles", "TRAINING")
        result = power("set", "--profile", "max_q, 7", "-i", "1")
        tap.equal((result.returncode, requested()), (0, [[], ["MAX_Q", "LLM_TRAINING"]]), result.stderr)
        for piece in ("profiles before", "TRAINING", "MAX_Q,LLM_TRAINING"):
            tap.contains(result.stdout, piece)
        tap.equal(entries(), ["kept", "kept2"])
        row = rows_of(power("get", "--format", "json"))[1]
        tap.equal((row["journal_profiles_kept_from"], row["journal_profiles_turned_from"]), (["TRAINING"], None))
        tap.contains(power("get").stdout, "profiles TRAINING before, set to stay")
        rows = rows_of(power("restore", "--kept", "--format", "json"))
        tap.equal([(row["index"], row["end"], row["workload_profiles_before"], row["workload_profiles_found"]) for row in rows],
                  [(1, "restored", None, None), (1, "restored", ["TRAINING"], ["MAX_Q", "LLM_TRAINING"])])
        tap.equal(requested(), [[], ["TRAINING"]])
        result = power("reset")
        tap.equal((result.returncode, requested(), entries()), (0, [[], []], []), result.stderr)


def test_with_a_limit():
    with machine(model="b200"):
        document = json.loads(power("set", 800, "--profile", "MAX_Q", "--format", "json").stdout)
        tap.equal([(row["power_limit_w"], row["workload_profiles_before"], row["workload_profiles"]) for row in document["rows"]],
                  [(800, [], ["MAX_Q"])] * 2)
        tap.equal(power("restore", "--kept").returncode, 0)
        tap.equal(requested(), [[], []])
        faults = HOME / "faults"
        faults.write_text("gpu 1 call nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1 return 999\n")
        emulator("set", "--faults", faults)
        result = power("set", 800, "--profile", "MAX_Q")
        tap.equal((result.returncode, requested()), (74, [[], []]), result.stderr)
        tap.equal([gpu["limit_w"] for gpu in json.loads(emulator("show", "--json"))["gpus"]], [1000, 1000])


def test_refused():
    with machine(model="b200"):
        for arguments, status, piece in (
            (["--profile", "FASTER"], 64, "bad value 'FASTER' of '--profile'"),
            (["--profile", ""], 64, "bad value ''"),
            (["--profile", "255"], 64, "bad value '255'"),
            (["--profile", "4"], 64, "GPU 0 does not offer the workload power profile 4; choose of MAX_P,MAX_Q,"),
            ([], 64, "no limit given"),
        ):
            result = power("set", *arguments)
            tap.equal((result.returncode, result.stdout, requested()), (status, "", [[], []]), arguments)
            tap.contains(result.stderr, piece)
        result = power("set", "--profile", "HPC,TRAINING", "--for", "0.1s")
        tap.equal(result.returncode, 0)
        tap.contains(result.stderr, "GPU 0: the driver does not enforce TRAINING, which conflicts with another profile")


def test_without_permission():
    with machine("--any-user=no", model="b200"):
        result = power("set", "--profile", "max_q", **as_other_user())
        tap.equal((result.returncode, requested()), (77, [[], []]), result.stderr)
        tap.contains(result.stderr, "run 'sudo flyball power set --profile MAX_Q -i 0,1', which sets it to stay")


def test_around_a_program():
    with machine(model="b200"):
        emulator("set", "--gpu", 1, "--workload-profiles", "TRAINING")
        result = power("set", "--profile", "MAX_Q", "--", "sh", "-c", "echo started")
        tap.equal((result.returncode, result.stdout, requested()), (0, "started\n", [[], ["TRAINING"]]), result.stderr)
        tap.contains(result.stderr, "GPU 0: workload profiles MAX_Q until the program has ended, none before")
        tap.contains(result.stderr, "GPU 1: workload profiles TRAINING again")
        result = power("set", "--profile", "MAX_Q", "--", EMULATOR, "set", "--gpu", 0, "--workload-profiles", "HPC")
        tap.equal((result.returncode, requested()), (0, [["HPC"], ["TRAINING"]]), result.stderr)
        tap.contains(result.stderr, "GPU 0: workload profiles HPC, as another program set them; left so")


def killed(both):
    """A session that requested profiles dies by kill -9, alone or with its guard."""
    process = start("set", "--profile", "MAX_Q,HPC", 900, "--for", "1h")
    wait_for(lambda: requested() == [["MAX_Q", "HPC"]] * 2, "both are requested")
    wait_for(lambda: entries() == ["turned", "turned", "turned2", "turned2"], "both are written down")
    guard = guard_of(process)
    if both:
        process.send_signal(signal.SIGSTOP)
        kill_program(guard)
    process.kill()
    ended(process)
    return guard


def test_kill():
    with machine(model="b200"):
        emulator("set", "--gpu", 1, "--workload-profiles", "TRAINING")
        for _ in range(3):
            guard = killed(both=False)
            wait_for(lambda: requested() == [[], ["TRAINING"]], "the guard puts it back")
            wait_for(lambda: gone(guard) and entries() == [], "the guard ends")
        killed(both=True)
        tap.equal(requested(), [["MAX_Q", "HPC"]] * 2)
        result = power("restore")
        tap.equal((result.returncode, requested(), entries()), (0, [[], ["TRAINING"]], []), result.stderr)
        tap.contains(result.stderr, "the workload profiles of GPU 1, left at MAX_Q,HPC by 'flyball power', process ")
        # What another program changed in between is left.
        killed(both=True)
        emulator("set", "--gpu", 0, "--workload-profiles", "COMPUTE")
        rows = rows_of(power("restore", "--format", "json"))
        tap.equal(sorted(row["end"] for row in rows), ["changed by another", "restored", "restored", "restored"])
        tap.equal(requested(), [["COMPUTE"], ["TRAINING"]])


def uuid():
    result = subprocess.run([FLYBALL, "devices", "--format", "json", *WHERE], env=CLEAN, capture_output=True, text=True, check=True)
    return next(row["uuid"] for row in json.loads(result.stdout)["rows"] if row["kind"] == "GPU")


def lay(version, turn, owner=None):
    """An entry in the second file."""
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text()
    path = KNOBS / f"{uuid()}.turned2"
    path.write_text(f"flyball-journal {version}\ngpu {uuid()}\nboot {boot}by 999999999 1 a program\ndate 1700000000\n"
                    f"turn {turn}\nend\n")
    if owner is not None:
        os.chown(path, owner, owner)
    return path


def test_of_another_user():
    """Root puts back with the user's rights, to none or to what root has set to stay, never to what the entry says."""
    if os.geteuid() != 0:
        raise tap.Skip("only root can be another user")
    HOME.chmod(0o755)
    with machine(model="b200", gpus=1):
        if subprocess.run([FLYBALL, "version"], capture_output=True, check=False, user=NOBODY, group=NOBODY).returncode:
            raise tap.Skip("another user cannot reach the build")
        emulator("set", "--workload-profiles", "MAX_Q")
        lay(2, "workload_profiles 2000 2 2", NOBODY)
        result = power("restore")
        tap.equal((result.returncode, requested(), entries()), (0, [[]], []), result.stderr)
        tap.contains(result.stderr, "left at MAX_Q by a killed program of user 65534, are none again")
        tap.equal(power("set", "--profile", "TRAINING").returncode, 0)
        emulator("set", "--workload-profiles", "MAX_Q")
        lay(2, "workload_profiles 0 2 2", NOBODY)
        tap.equal((power("restore").returncode, requested()), (0, [["TRAINING"]]))
        lay(2, "workload_profiles 0 2 2", NOBODY)  # where it does not stand
        result = power("restore")
        tap.equal((result.returncode, requested()), (0, [["TRAINING"]]), result.stderr)
        tap.equal(power("restore", "--kept").returncode, 0)
        tap.equal((requested(), entries()), ([[]], []))


def test_of_another_user_without_the_right():
    if os.geteuid() != 0:
        raise tap.Skip("only root can be another user")
    HOME.chmod(0o755)
    with machine("--any-user=no", model="b200", gpus=1):
        emulator("set", "--workload-profiles", "MAX_Q")
        lay(2, "workload_profiles 0 2 2", NOBODY)
        result = power("restore")
        tap.equal((result.returncode, requested(), entries()), (77, [["MAX_Q"]], []), result.stderr)
        tap.contains(result.stderr, "is not put back on his word")


def test_versions():
    """A damaged file is moved aside; one of a version to come stays, and the GPU is not turned under it."""
    with machine(model="b200", gpus=1):
        lay(2, "workload_profiles 0 2 x")
        result = power("restore")
        tap.equal((result.returncode, entries()), (65, []), result.stderr)
        path = lay(4, "warp_factor 9 9 9")
        result = power("restore")
        tap.equal((result.returncode, entries()), (74, ["turned2"]), result.stderr)
        tap.contains(result.stderr, "is of a newer version of Flyball, and stays")
        result = power("set", "--profile", "MAX_Q", "--for", "0.1s")
        tap.equal((result.returncode, requested()), (75, [[]]), result.stderr)
        path.unlink()


tap.main(globals())
