# SPDX-License-Identifier: Apache-2.0
"""flyball run on disks that stop answering: each user of files, with each kind of call that may wait, hangs for good, from the start or
from a later call on.

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

import reach
import tap
from power_machine import BUILT, CLEAN, DRIVER, EMULATOR, FLYBALL, NOBODY

BUILD = pathlib.Path(os.environ.get("FLYBALL_TEST_BUILD", os.path.join(os.path.dirname(BUILT), "tests")))
SLOW_CALLS = reach.program(BUILD / "slow_calls")
TRAINER = str(tap.LIB / "job_trainer.py")
AT_ONCE = 4
EPOCHS = 20
STEPS, STEPS_UNTIL_HELD = 400, 4000  # enough for limits to be turned, also on a busy machine
JOB = ["--job", "job", "--batch-sizes", "16,32", "--default-batch-size", "32", "--target-metric", "1", "--max-epochs", "40", "--tries", "3",
       "--profile-steps", "2"]
TUNE = ["--tune", "--profile-steps", "2", "--objective", "energy", "--max-slowdown", "50%"]  # whatever the first steps show, lower limits are worth a try
STORE, SPOOL, ACCOUNT, CACHE, JOURNAL, CLAIMS, TOKEN = "store.sqlite", "/spool", "state/flyball/carbon", "/cache/", "/knobs", "/runtime/", "/token"
SERVICE = [*JOB, "--leave-limits", "--store", "http://127.0.0.1:1"]

# A training that ends a second after a call has begun to hang.
UNTIL_HELD = """
"$0" train --steps "$1" --step-ms 10 --sample-ms 0.01 & training=$!
{ until [ -e "$2" ]; do sleep 0.1; done; sleep 1; kill $training; } & watch=$!
wait $training
kill $watch 2>/dev/null
echo "$3" >"$4"
"""

# Who, with which options; which files; which of their calls hang, one kind at a time, as slow_calls.c has them.
WALK = [
    ("job's store", [*JOB, "--leave-limits"], STORE, ["open", "stat", "lock", "sync", "close"]),
    ("reports kept for later", [*JOB, "--leave-limits"], SPOOL, ["open"]),
    ("account of a program", ["--carbon", "constant:300"], ACCOUNT, ["open", "stat", "sync", "change", "close"]),
    ("account of a job", [*JOB, "--leave-limits", "--carbon", "constant:300"], ACCOUNT, ["open", "sync"]),
    ("cache of the grid's figures", ["--carbon", "gb:national"], CACHE, ["open", "lock", "sync", "change"]),
    ("knobs of a tuner", TUNE, JOURNAL, ["open", "stat", "lock", "sync", "change", "write", "close"]),
    ("knobs that are being turned", TUNE, JOURNAL, ["open+8", "open+16", "stat+16", "stat+24", "lock+3", "sync+3", "change+4", "write+4", "close+12"]),
    ("token of a daemon that turns", TUNE, TOKEN, ["open", "read", "open+2"]),
    ("token of a service", SERVICE, TOKEN, ["open"]),
    ("knobs of a job", JOB, JOURNAL, ["open", "lock"]),
    ("claims of devices", [], CLAIMS, ["open", "lock"]),
    ("claims of a job", [*JOB, "--leave-limits"], CLAIMS, ["open"]),
]


def run(case):
    """What is wrong with this one; "" for nothing."""
    who, options, place, call = case
    by_daemon = place == TOKEN and options is TUNE  # the driver lets root alone turn
    with tempfile.TemporaryDirectory(prefix="flyball-slow-", dir=tap.quick_place()) as name:
        home = pathlib.Path(name)
        for part in ("runtime", "knobs"):
            (home / part).mkdir(mode=0o700)
        (home / "hangs").touch()
        (home / "token").write_text("a.token.of-tests")
        environment = {**CLEAN, "HOME": name, "XDG_STATE_HOME": f"{name}/state", "XDG_CACHE_HOME": f"{name}/cache",
                       "XDG_RUNTIME_DIR": f"{name}/runtime", "FLYBALL_RUNTIME_DIR": f"{name}/knobs", "FLYBALL_EMULATOR_STATE": f"{name}/gpus"}
        user = {}
        if by_daemon and os.geteuid() == 0:
            user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
            for path in (home, *home.iterdir()):
                os.chown(path, NOBODY, NOBODY)
        if place == TOKEN:
            environment |= {"FLYBALL_KNOB_DAEMON": "http://127.0.0.1:1", "FLYBALL_KNOB_TOKEN_FILE": f"{name}/token", "FLYBALL_TOKEN_FILE": f"{name}/token"}
        program = [sys.executable, TRAINER, "32", f"epochs=32:{EPOCHS}", f"patience={EPOCHS}", "step=0.03", f"state={home / 'done'}"]
        if "--tune" in options:
            steps = STEPS if "+" in call else STEPS_UNTIL_HELD
            program = ["sh", "-c", UNTIL_HELD, str(EMULATOR), str(steps), str(home / "held"), str(EPOCHS), str(home / "done")]
        command = [EMULATOR, "run", "--gpus", "1", f"--any-user={'no' if by_daemon else 'yes'}", "--", SLOW_CALLS, home / "hangs", home / "held", place, call, FLYBALL, "run",
                   "-i", "0", *options, "--output", home / "report.json", "--", *program]
        with tap.Program(list(map(str, command)), env=environment, cwd=home, **user, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
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
        if not (home / "held").exists() and "+" not in call:  # later calls come only if there is time for them
            return f"{who}, {call}: no such call\n{talk}"
        epochs = (home / "done").read_text().strip() if (home / "done").exists() else "none"
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
