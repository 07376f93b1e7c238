# SPDX-License-Identifier: Apache-2.0
"""flyball run --metric-regex: epochs in what a program writes to either standard stream, and what is said where nothing matches.

usage: cli_run_metric.py FLYBALL SOURCE_ROOT
"""

import json
import os
import pathlib
import pty
import select
import shutil
import subprocess
import sys
import tempfile

import tap
from power_machine import CLEAN, FLYBALL, HOME, WHERE, machine

EXACT = ["--sensor", "exact", "--counter-period-ms", "0"]
STATES = tempfile.TemporaryDirectory(prefix="flyball-run-metric-", dir=tap.quick_place())
STATE = pathlib.Path(STATES.name) / "state"
DEFINITION = ["--batch-sizes", "32", "--default-batch-size", "32", "--target-metric", "0.75", "--max-epochs", "9", "--leave-limits",
              "--metric-regex", "accuracy ([0-9.]+)"]
LOGGED = """
import logging
logging.basicConfig(level=logging.INFO)
for epoch in range(1, 9):
    logging.info("accuracy %g", epoch / 4)
"""


def command(script, *options):
    return [FLYBALL, "run", "--job", "job", "-i", "0", *WHERE, *DEFINITION, *options, "--quiet", "--output", str(HOME / "report.json"), "--",
            sys.executable, "-c", script]


def environment():
    return {**CLEAN, "XDG_STATE_HOME": str(STATE)}


def tries():
    return json.loads((HOME / "report.json").read_text())["recurrence"]["tries"]


def run(script, *options, **streams):
    shutil.rmtree(STATE, ignore_errors=True)
    streams = streams or {"capture_output": True}
    with machine(*EXACT, gpus=1):
        return subprocess.run(command(script, *options), env=environment(), cwd=HOME, text=True, timeout=tap.PATIENCE_S, check=False, **streams)


def ended(end, epochs):
    attempt, = tries()
    tap.equal((attempt["end"], attempt["epochs"]), (end, epochs), attempt["cause"])
    return attempt["cause"]


def test_what_logging_writes():
    """It is found wherever standard error goes, and arrives as it was written."""
    lines = "".join(f"INFO:root:accuracy {epoch / 4:g}\n" for epoch in range(1, 9))
    result = run(LOGGED)
    ended("reached", 3)
    tap.equal((result.stdout, lines.startswith(result.stderr), result.stderr.count("\n") >= 3), ("", True, True), result.stderr)
    for mode in ("w", "a"):
        with open(HOME / "log", mode, encoding="utf-8") as log:
            run(LOGGED + "\nimport sys; print('out')", stdout=log, stderr=log)
        ended("reached", 3)
    tap.contains((HOME / "log").read_text(), "INFO:root:accuracy 0.75\n")
    run(LOGGED, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ended("reached", 3)


def test_standard_error_stays_a_terminal():
    shutil.rmtree(STATE, ignore_errors=True)
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    text = b""
    with machine(*EXACT, gpus=1):
        with tap.Program(command("import os; print(os.isatty(2), os.isatty(1), flush=True)" + LOGGED), env=environment(), cwd=HOME, stdin=theirs,
                         stdout=theirs, stderr=theirs) as process:
            while process.poll() is None or select.select([ours], [], [], 0.05)[0]:
                if select.select([ours], [], [], 0.05)[0]:
                    text += os.read(ours, 65536)
    os.close(ours)
    os.close(theirs)
    ended("reached", 3)
    tap.contains(text.decode(), "True False\r\n")
    tap.contains(text.decode(), "INFO:root:accuracy 0.75\r\n")


def test_one_stream_counts():
    """What is written to both, or drawn again and again in a progress bar, is one epoch."""
    script = """
import sys, time
for epoch in range(1, 3):
    for step in range(20):
        print(f"\\r{step} accuracy {step / 40:g}", end="", file=sys.stderr, flush=True)
    print("\\r done", file=sys.stderr, flush=True)
    for stream in (sys.stderr, sys.stdout):
        print(f"epoch {epoch}: accuracy {epoch / 4:g}", file=stream, flush=True)
"""
    run(script)
    ended("not_reached", 2)


def test_memory_in_the_same_stream():
    """Words about memory count where they come after the newest epoch, and not before it."""
    for before, after, end in (("", "CUDA out of memory. Tried to allocate 2 GiB", "out_of_memory"), ("CUDA out of memory. Tried", "", "crashed")):
        run(f"""
import sys
print("loaded\\nRuntimeError: {before}\\nepoch 1 accuracy 0.25\\nRuntimeError: {after}\\n", end="", file=sys.stderr, flush=True)
sys.exit(5)
""")
        ended(end, 1)


def test_nothing_matched():
    unmatched = "of its output and errors matches --metric-regex 'accuracy ([0-9.]+)'"
    result = run("import sys; print('acc 0.5'); print('acc 0.6', file=sys.stderr)")
    tap.equal((result.returncode, result.stdout, ended("silent", 0)), (0, "acc 0.5\n", f"none of the 2 lines {unmatched}"))
    history = json.loads(subprocess.run([FLYBALL, "job", "history", "job", "--format", "json"], env=environment(), capture_output=True, text=True,
                                        check=True).stdout)
    tap.contains(json.dumps(history), f"none of the 2 lines {unmatched}")
    result = run("import sys; print('acc 0.5'); sys.exit('broken')")
    tap.equal((result.returncode, result.stderr), (1, "broken\n"))
    tap.contains(tries()[0]["cause"], f"exit status 1; none of the 2 lines {unmatched}")


tap.main(globals())
