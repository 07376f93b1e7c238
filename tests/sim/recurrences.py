# SPDX-License-Identifier: Apache-2.0
"""scripts/recurrences, the documented command, in its short form; and that it leaves nothing, also when interrupted.

usage: recurrences.py FLYBALL SOURCE_ROOT
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import pg_machine
import tap

FLYBALL, ROOT = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
COUNT = 4
PATIENCE_S = tap.PATIENCE_S
WORK = tempfile.TemporaryDirectory(prefix="flyball-recurrences-test-")
HOME = pathlib.Path(WORK.name)
ENVIRONMENT = {**os.environ, "BUILD_DIR": str(FLYBALL.parent), "FLYBALL_TEST_MARK": str(HOME)}


def start(*arguments):
    if not (FLYBALL.parent / "examples" / "digits").exists():
        raise tap.Skip("the example is not built")
    if tap.sanitizers(FLYBALL):
        raise tap.Skip("the emulated driver is not for programs with a sanitizer")
    return subprocess.Popen([ROOT / "scripts" / "recurrences", "--count", str(COUNT), "--directory", HOME / "pictures", *arguments],
                            env=ENVIRONMENT, cwd=HOME, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def left():
    """The command lines of processes that it started and that are still there."""
    mark = f"FLYBALL_TEST_MARK={HOME}".encode()
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes().split(b"\0"):
                found.append((path.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # it has ended meanwhile
    return found


def finish(process):
    output, errors = process.communicate(timeout=PATIENCE_S)
    tap.equal(left(), [], "processes left behind")
    tap.equal(list(pathlib.Path("/tmp").glob(f"flyball-recurrences-{process.pid}-*")), [], "directories left behind")
    return output, errors


def check(half, policy, places):
    process = start("--half", half)
    output, errors = finish(process)
    tap.equal((process.returncode, errors), (0, ""), output)
    tap.equal(sorted(int(number) for number in set(re.findall(r"^ +recurrence +(\d+)", output, re.M))), list(range(1, COUNT + 1)))
    tap.contains(output, f"Job 'digits', policy {policy}: {COUNT} recurrences in ")
    tap.contains(output, "The choice of lowest score")
    for where in places:
        tap.contains(output, where)
    tap.contains((HOME / "pictures" / f"{half}.svg").read_text(encoding="utf-8"), "</svg>")


def test_over_a_file():
    check("sqlite", "zeus", ["Over a file: "])


def test_over_two_services():
    if pg_machine.binaries() is None:
        raise tap.Skip("PostgreSQL is not installed")
    check("services", "zeus-server", ["Over two services on one PostgreSQL", "on GPU 3", "service 1:", "service 2:"])


def test_interrupted():
    process = start("--half", "services" if pg_machine.binaries() is not None else "sqlite")
    begin = time.monotonic()
    for line in process.stdout:
        if re.match(r" +recurrence", line) or time.monotonic() > begin + PATIENCE_S:
            break
    process.send_signal(signal.SIGINT)
    output, errors = finish(process)
    tap.equal((process.returncode, errors), (130, ""), output)
    tap.contains(output, "interrupted; nothing is left")


tap.main(globals())
