# SPDX-License-Identifier: Apache-2.0
"""What bench/against_baseline.py says where it cannot compare. The comparison itself is timed, so no test."""

import pathlib
import subprocess
import sys
import tempfile

import tap

ROOT = pathlib.Path(sys.argv[2])


def test_an_unknown_commit_is_named_with_what_to_do():
    with tempfile.TemporaryDirectory() as home:
        names = pathlib.Path(home, "baseline")
        for name in ("f" * 40, "--help", ""):
            names.write_text(f"{name}\n")
            ran = subprocess.run([sys.executable, ROOT / "bench" / "against_baseline.py", home, home, names], capture_output=True, text=True)
            tap.equal((ran.returncode, ran.stdout), (1, ""), ran.stderr)
            for words in (f"'{names}' names '{name}', which is no commit", "write the hash of one there"):
                tap.contains(ran.stderr, words)
            tap.equal(ran.stderr.count("\n"), 1, "one line")


tap.main(globals())
