# SPDX-License-Identifier: Apache-2.0
"""What flyball run and flyball profile refuse before the program starts.

usage: cli_run_refusals.py FLYBALL SOURCE_ROOT
"""

import os
import subprocess

import tap
from power_machine import CLEAN, FLYBALL, HOME, WHERE, machine

NOTHING = ["--nvml", str(HOME / "none.so"), "--amdsmi", str(HOME / "none.so"), "--sysfs-root", str(HOME / "root")]


def refused(words, status, piece):
    """The command says why, and the program never starts."""
    result = subprocess.run([FLYBALL, *words, "--", "sh", "-c", "echo started >&2"], env=CLEAN, cwd=HOME, capture_output=True, text=True, timeout=tap.PATIENCE_S,
                            check=False)
    tap.equal((result.returncode, "started" in result.stderr), (status, False), f"{words} {result.stderr}")
    tap.contains(result.stderr, piece, words)


def test_gpus_that_are_not_there():
    with machine(gpus=1):
        for words in (["run"], ["profile"], ["run", "--tune"], ["run", "--job", "j", "--batch-sizes", "8", "--default-batch-size", "8", "--max-epochs", "1"]):
            refused([*words, *WHERE, "-i", "7"], 66, "GPU '7' does not exist; there is GPU 0 only")
            refused([*words, *WHERE, "-i", "0,0"], 64, "bad value '0,0' of '-i'")
    refused(["run", *NOTHING, "-i", "7"], 66, "GPU '7' does not exist: no GPU was found")
    refused(["run", "--tune", *NOTHING, "-i", "none"], 64, "-i none leaves no GPU")
    refused(["profile", *NOTHING, "-i", "none"], 69, "no device here can be measured")


def test_csv_that_cannot_work():
    fifo, file, fresh, other = HOME / "fifo", HOME / "file", HOME / "fresh.csv", HOME / "other.csv"
    os.mkfifo(fifo)
    file.write_text("")
    other.write_text("something,else\n")
    with machine(gpus=1):
        for path, status, piece in ((HOME, 74, "Is a directory"), (HOME / "none" / "runs.csv", 74, "No such file"),
                                    (file / "runs.csv", 74, "Not a directory"), (fifo, 74, "Illegal seek"), (other, 65, "its heading is not")):
            refused(["run", *WHERE, "--csv", str(path)], status, f"'{path}': ")
            refused(["run", *WHERE, "--csv", str(path)], status, piece)
        result = subprocess.run([FLYBALL, "run", *WHERE, "--csv", str(fresh), "--", "no-such-program"], env=CLEAN, capture_output=True, check=False)
        tap.equal((result.returncode, fresh.exists(), other.read_text()), (127, False, "something,else\n"), result.stderr)


tap.main(globals())
