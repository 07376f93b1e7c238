# SPDX-License-Identifier: Apache-2.0
"""flyball power from outside, on emulated GPUs: what is shown and set to stay, and what is refused.

usage: cli_power.py FLYBALL SOURCE_ROOT
"""

import contextlib
import csv
import io
import json
import os
import subprocess

import tap
from power_machine import (CLEAN, DEFAULT_W, EMULATOR, FLYBALL, HOME, as_other_user, command, emulator, ended, entries, limits, machine,
                           power, rows_of, wait_for)


def test_get():
    with machine():
        result = power("get")
        tap.equal((result.returncode, result.stderr), (0, ""))
        for piece in ("limit (W)", "enforced (W)", "default (W)", "from (W)", "to (W)", "may be set", "nobody", "none"):
            tap.contains(result.stdout, piece)
        rows = rows_of(power("get", "--format", "json"))
        tap.equal([(row["index"], row["power_limit_w"], row["power_limit_enforced_w"], row["power_limit_default_w"],
                    row["power_limit_min_w"], row["power_limit_max_w"], row["held_by"], row["journal_turned_from_w"])
                   for row in rows], [(index, 400.0, 400.0, 400.0, 100.0, 400.0, "", None) for index in (0, 1)])
        tap.equal({row["may_be_set"] for row in rows}, {"yes" if os.geteuid() == 0 else "unlikely"})
        table = list(csv.DictReader(io.StringIO(power("get", "-i", "1", "--format", "csv").stdout)))
        tap.equal([(row["schema"], row["index"], float(row["power_limit_w"])) for row in table], [("flyball.power.get/2", "1", 400.0)])


def test_set_stays():
    with machine():
        result = power("set", 250, "-i", "1")
        tap.equal((result.returncode, limits()), (0, [DEFAULT_W, 250]), result.stderr)
        tap.contains(result.stderr, "this stays when the command has ended")
        tap.contains(result.stderr, "'flyball power restore --kept -i 1'")
        for piece in ("before (W)", "400", "250"):
            tap.contains(result.stdout, piece)
        rows = rows_of(power("get", "--format", "json"))
        tap.equal([row["persistence_mode"] for row in rows], [0, 1])
        row = rows[1]
        tap.equal((row["power_limit_w"], row["journal_kept_from_w"], row["journal_turned_from_w"], row["held_by"]),
                  (250.0, 400.0, None, ""))
        tap.equal(power("restore").returncode, 0)
        tap.equal(limits(), [DEFAULT_W, 250], "what is kept needs --kept")
        # What stood before the first of several is what goes back.
        tap.equal(power("set", 200, "-i", "1").returncode, 0)
        tap.equal(limits(), [DEFAULT_W, 200])
        rows = rows_of(power("restore", "--kept", "--format", "json"))
        tap.equal([(row["index"], row["kept"], row["end"]) for row in rows], [(1, "yes", "restored")])
        tap.equal(limits(), [DEFAULT_W, DEFAULT_W])
        tap.equal([row["persistence_mode"] for row in rows_of(power("get", "--format", "json"))], [0, 0])


def test_enforced_below_what_is_asked_for():
    with machine("--enforced-w", "250", gpus=1):
        result = power("set", 300, "--format", "json")
        row = rows_of(result)[0]
        tap.equal((row["power_limit_w"], row["power_limit_enforced_w"], limits()), (300.0, 250.0, [300.0]))
        tap.contains(result.stderr, "GPU 0: enforced at 250 W, below the 300 W that were asked for")
        row = rows_of(power("get", "--format", "json"))[0]
        tap.equal((row["power_limit_w"], row["power_limit_enforced_w"]), (300.0, 250.0))
        result = power("set", 200, "--format", "json")
        tap.equal((rows_of(result)[0]["power_limit_enforced_w"], "enforced" in result.stderr), (200.0, False))
        tap.equal(power("restore", "--kept").returncode, 0)


def test_ways_to_write_a_limit():
    with machine(gpus=1):
        for text, limit_w in (("150", 150), ("150W", 150), ("150 W", 150), ("187.5", 187.5), ("60%", 240), ("100%", 400), ("25%", 100)):
            document = json.loads(power("set", text, "--format", "json").stdout)
            tap.equal(document["put_back"], "flyball power restore --kept -i 0")
            tap.equal((document["schema"], document["rows"][0]["power_limit_w"]), ("flyball.power.set/2", limit_w), text)
            tap.equal(limits(), [limit_w], text)
        tap.equal(power("reset").returncode, 0)


def test_refused_limits():
    with machine():
        for text, piece in (("50", "outside the range of GPU 0; choose one from 100 to 400 W"), ("401", "from 100 to 400 W"),
                            ("24%", "from 100 to 400 W"), ("0", "bad limit '0'"), ("101%", "bad limit"), ("much", "bad limit 'much'"),
                            ("", "bad limit ''"), ("1e2", "bad limit"), ("nan", "bad limit"), ("150mW", "bad limit")):
            for program in ([], ["--", "sh", "-c", "echo started"]):
                result = power("set", text, *program)
                tap.equal((result.returncode, result.stdout, limits()), (64, "", [DEFAULT_W] * 2), text)
                tap.contains(result.stderr, piece)
        for arguments, status, piece in (
            ([], 64, "no limit given"),
            ([150, 160], 64, "unexpected operand '160'"),
            ([150, "--"], 64, "no program behind '--'"),
            ([150, "--for", "2 hours"], 64, "bad value '2 hours' of '--for'"),
            ([150, "--for", "0"], 64, "bad value '0'"),
            ([150, "--for", "2h", "--", "true"], 64, "two ends for one limit"),
            ([150, "--require"], 64, "--require is about a program"),
            ([150, "-i", "0,0"], 64, "GPU 0 is named twice"),
            ([150, "-i", "7"], 66, "7"),
            ([150, "-i", "none"], 69, "no GPU"),
        ):
            result = power("set", *arguments)
            tap.equal((result.returncode, result.stdout, limits()), (status, "", [DEFAULT_W] * 2), arguments)
            tap.contains(result.stderr, piece)


def test_all_or_none():
    """One GPU's driver refuses: the other goes back."""
    with machine():
        faults = HOME / "faults"
        faults.write_text("gpu 1 call nvmlDeviceSetPowerManagementLimit return 999\n"
                          "gpu 1 call nvmlDeviceSetPowerManagementLimit_v2 return 999\n")
        emulator("set", "--faults", faults)
        for program in ([], ["--require", "--", "sh", "-c", "echo started"]):
            result = power("set", 150, *program)
            tap.equal((result.returncode, result.stdout, limits()), (74, "", [DEFAULT_W] * 2), result.stderr)
            tap.contains(result.stderr, "GPU 1")
        result = power("set", 150, "--", "sh", "-c", "echo started")
        tap.equal((result.returncode, result.stdout, limits()), (0, "started\n", [DEFAULT_W] * 2))
        tap.contains(result.stderr, "the program runs at the limit that stands")


def test_reset():
    with machine():
        emulator("set", "--gpu", 0, "--limit-w", 180)
        tap.equal(power("set", 250, "-i", "1").returncode, 0)
        rows = rows_of(power("reset", "--format", "json"))
        tap.equal([(row["power_limit_before_w"], row["power_limit_w"]) for row in rows], [(180.0, 400.0), (250.0, 400.0)])
        tap.equal((limits(), entries()), ([DEFAULT_W] * 2, []))
        tap.equal([row["persistence_mode"] for row in rows_of(power("get", "--format", "json"))], [0, 0])


def test_nothing_to_restore():
    with machine():
        result = power("restore")
        tap.equal((result.returncode, result.stdout), (0, ""))
        tap.contains(result.stderr, "there is nothing to put back")
        tap.equal(rows_of(power("restore", "--format", "json")), [])


@contextlib.contextmanager
def training(gpu):
    """Somebody else at work on a GPU."""
    with tap.Program([EMULATOR, "train", "--gpu", str(gpu), "--epochs", "1000"], env=CLEAN, stdout=subprocess.DEVNULL) as process:
        try:
            wait_for(lambda: json.loads(emulator("show", "--json"))["gpus"][gpu]["processes"], "the training is at work")
            yield process
        finally:
            process.terminate()


def test_a_gpu_that_another_uses():
    with machine(), training(1) as other:
        for arguments in ((), ("-i", "1")):
            result = power("set", 150, *arguments)
            tap.equal((result.returncode, result.stdout, limits()), (75, "", [DEFAULT_W] * 2), arguments)
            tap.contains(result.stderr, str(other.pid))
        tap.equal(power("reset", "-i", "1").returncode, 75)
        tap.equal(power("set", 150, "--for", "1h").returncode, 75)
        result = power("set", 150, "--", "sh", "-c", "echo started; exit 4")
        tap.equal((result.returncode, result.stdout, limits()), (4, "started\n", [DEFAULT_W] * 2))
        tap.contains(result.stderr, "the program runs at the limit that stands")
        result = power("set", 150, "--require", "--", "sh", "-c", "echo started")
        tap.equal((result.returncode, result.stdout), (75, ""))
        tap.contains(power("get", "-i", "1").stdout, str(other.pid))
        row = rows_of(power("get", "-i", "1", "--format", "json"))[0]
        tap.equal(row["may_be_set"], "no")
        tap.contains(row["why_not"], str(other.pid))
        # The idle one may be turned.
        tap.equal(power("set", 150, "-i", "0", "--", "true").returncode, 0)


def test_operators_lock():
    with machine(gpus=1):
        path = HOME / "root" / "etc" / "flyball"
        path.mkdir(parents=True)
        (path / "readonly").touch()
        try:
            result = power("set", 150)
            tap.equal((result.returncode, limits()), (77, [DEFAULT_W]))
            tap.contains(result.stderr, "readonly")
            tap.equal(power("set", 150, "--", "sh", "-c", "exit 4").returncode, 4)
            tap.equal(rows_of(power("get", "--format", "json"))[0]["may_be_set"], "no")
        finally:
            (path / "readonly").unlink()
        tap.equal(power("set", 150, "--", "true").returncode, 0)


def test_divided_gpu():
    with machine("--mig", "2", gpus=1):
        result = power("set", 150)
        tap.equal((result.returncode, limits()), (75, [DEFAULT_W]))
        tap.contains(result.stderr, "MIG")


def test_shared_gpus():
    with machine(gpus=1):
        pipes = HOME / "mps"
        pipes.mkdir()
        (pipes / "control").touch()
        result = power("set", 150, environment={"CUDA_MPS_PIPE_DIRECTORY": str(pipes)})
        tap.equal((result.returncode, limits()), (75, [DEFAULT_W]))
        tap.contains(result.stderr, "MPS")


def test_gpus_of_a_server():
    """A server of MPS keeps the GPUs that it serves from being turned; emulated ones, no other."""
    with machine(gpus=2):
        with subprocess.Popen([EMULATOR, "mps", "--gpu", "1"], env=CLEAN, stdout=subprocess.PIPE, text=True) as server:
            tap.equal(server.stdout.readline(), "serving\n")
            result = power("set", 150, "-i", "1")
            tap.equal((result.returncode, limits()), (75, [DEFAULT_W] * 2))
            tap.contains(result.stderr, f"MPS shares GPUs of this machine (process {server.pid})")
            result = power("set", 150, "-i", "0", "--", "true")
            tap.equal(result.returncode, 0, result.stderr)
            server.kill()


def test_without_permission():
    """As a user to whom the driver lets nothing be set."""
    user = as_other_user()
    with machine(gpus=1):
        emulator("stop")
        emulator("start", "--gpus", 2, "--shared=yes")
        for arguments, put in (([150], "'sudo flyball power set 150 -i 0,1'"), ([150, "--for", "1h"], "sudo flyball power set 150")):
            result = power("set", *arguments, **user)
            tap.equal((result.returncode, result.stdout, limits()), (77, "", [DEFAULT_W] * 2), result.stderr)
            tap.contains(result.stderr, put)
        result = power("reset", "-i", "1", **user)
        tap.equal(result.returncode, 77, result.stderr)
        tap.contains(result.stderr, "'sudo flyball power reset -i 1'")
        result = power("set", 150, "--", "sh", "-c", "echo started; exit 4", **user)
        tap.equal((result.returncode, result.stdout), (4, "started\n"))
        tap.contains(result.stderr, "sudo flyball power set 150")
        tap.equal(power("set", 150, "--require", "--", "true", **user).returncode, 77)
        tap.equal({row["may_be_set"] for row in rows_of(power("get", "--format", "json", **user))}, {"unlikely"})


def test_disabled():
    with machine(gpus=1):
        (HOME / "flyball.ini").write_text("nonsense = 1\n")
        try:
            process = subprocess.Popen(command("set", 150, "--", "sh", "-c", "echo $$; exit 5"), cwd=HOME, text=True,
                                       env={**CLEAN, "FLYBALL_DISABLE": "1"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            tap.equal(ended(process), (5, f"{process.pid}\n", ""))
        finally:
            (HOME / "flyball.ini").unlink()
        result = power("set", 150, environment={"FLYBALL_DISABLE": "1"})
        tap.equal((result.returncode, limits()), (0, [DEFAULT_W]))
        tap.contains(result.stderr, "FLYBALL_DISABLE=1 is set, so no limit is")


def test_chosen_by_the_environment():
    with machine():
        result = power("set", 150, "--", EMULATOR, "show", "--json", environment={"CUDA_VISIBLE_DEVICES": "1"})
        tap.equal([gpu["limit_w"] for gpu in json.loads(result.stdout)["gpus"]], [DEFAULT_W, 150])


def test_no_gpu():
    for arguments in (("get",), ("set", 150), ("reset",), ("restore",)):
        result = subprocess.run([FLYBALL, "power", *map(str, arguments), "--nvml", str(HOME / "none.so"), "--amdsmi",
                                 str(HOME / "none.so"), "--sysfs-root", str(HOME)], env=CLEAN, capture_output=True, text=True, check=False)
        tap.equal((result.returncode, result.stdout), (69, ""), arguments)
        tap.contains(result.stderr, "there is no GPU whose power could be limited")


tap.main(globals())
