# SPDX-License-Identifier: Apache-2.0
"""flyball run on disks that stop answering: each user of files, with each kind of call that may wait, hangs for good from the start.

usage: cli_run_slow_disk.py FLYBALL SOURCE_ROOT

What must hold is an order of events: the program has begun and ended, and flyball run has ended with the program's status and written
its report, all while the calls still hang.
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import tap
from power_machine import BUILT, CLEAN, DRIVER, EMULATOR, FLYBALL

BUILD = pathlib.Path(os.environ.get("FLYBALL_TEST_BUILD", os.path.join(os.path.dirname(BUILT), "tests")))
TRAINER = str(pathlib.Path(__file__).parent.resolve() / "job_trainer.py")
AT_ONCE = 4
EPOCHS = 20  # of four steps: enough for limits to be turned
JOB = ["--job", "job", "--batch-sizes", "16,32", "--default-batch-size", "32", "--target-metric", "1", "--max-epochs", "40", "--tries", "3",
       "--profile-steps", "2"]
TUNE = ["--tune", "--profile-steps", "2"]
STORE, SPOOL, ACCOUNT, CACHE, JOURNAL, CLAIMS = "store.sqlite", "/spool", "state/flyball/carbon", "/cache/", "/knobs", "/runtime/"

# Who, with which options; which files; which of their calls hang, one kind at a time.
WALK = [
    ("job's store", [*JOB, "--leave-limits"], STORE, ["open", "stat", "lock", "sync", "close"]),
    ("reports kept for later", [*JOB, "--leave-limits"], SPOOL, ["open"]),
    ("account of a program", ["--carbon", "constant:300"], ACCOUNT, ["open", "stat", "sync", "change", "close"]),
    ("account of a job", [*JOB, "--leave-limits", "--carbon", "constant:300"], ACCOUNT, ["open", "sync"]),
    ("cache of the grid's figures", ["--carbon", "gb:national"], CACHE, ["open", "lock", "sync", "change"]),
    ("knobs of a tuner", TUNE, JOURNAL, ["open", "stat", "lock", "change"]),
    ("knobs of a job", JOB, JOURNAL, ["open", "lock"]),
    ("claims of devices", [], CLAIMS, ["open", "lock"]),
    ("claims of a job", [*JOB, "--leave-limits"], CLAIMS, ["open"]),
]


def run(case):
    """What is wrong with this one; "" for nothing."""
    who, options, place, call = case
    with tempfile.TemporaryDirectory(prefix="flyball-slow-", dir=tap.quick_place()) as name:
        home = pathlib.Path(name)
        for part in ("runtime", "knobs"):
            (home / part).mkdir(mode=0o700)
        (home / "hangs").touch()
        environment = {**CLEAN, "HOME": name, "XDG_STATE_HOME": f"{name}/state", "XDG_CACHE_HOME": f"{name}/cache",
                       "XDG_RUNTIME_DIR": f"{name}/runtime", "FLYBALL_RUNTIME_DIR": f"{name}/knobs", "FLYBALL_EMULATOR_STATE": f"{name}/gpus"}
        command = [EMULATOR, "run", "--gpus", "1", "--any-user=yes", "--", BUILD / "slow_calls", home / "hangs", home / "held", place, call, FLYBALL, "run",
                   "-i", "0", *options, "--output", home / "report.json", "--", sys.executable, TRAINER, "32", f"epochs=32:{EPOCHS}", f"patience={EPOCHS}", "step=0.03",
                   f"state={home / 'done'}"]
        with tap.Program(list(map(str, command)), env=environment, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            try:
                talk = process.communicate(timeout=60)[0]
            except subprocess.TimeoutExpired:
                done = (home / "done").exists()
                (home / "hangs").unlink()
                return f"{who}, {call}: not ended after 60 s; the program had {'begun' if done else 'not begun'}\n{process.communicate()[0]}"
            finally:
                with contextlib.suppress(FileNotFoundError):
                    (home / "hangs").unlink()
        if process.returncode == 77:
            return "skip"
        if not (home / "held").exists():
            return f"{who}, {call}: no such call\n{talk}"
        epochs = (home / "done").read_text() if (home / "done").exists() else "none"
        if (process.returncode, epochs, (home / "report.json").exists()) != (0, str(EPOCHS), True):
            return f"{who}, {call}: status {process.returncode}, epochs {epochs}\n{talk}"
        json.loads((home / "report.json").read_text())
        return ""


def test_walk():
    if not (DRIVER.exists() and shutil.which(str(EMULATOR))):
        raise tap.Skip("the emulator is not built")
    cases = [(who, options, place, call) for who, options, place, calls in WALK for call in calls]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        wrong = list(filter(None, pool.map(run, cases)))
    if "skip" in wrong:
        raise tap.Skip("the kernel hands no calls over")
    tap.equal("\n".join(wrong), "")


if __name__ == "__main__":
    tap.main(globals())
