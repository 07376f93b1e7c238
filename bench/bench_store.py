# SPDX-License-Identifier: Apache-2.0
"""bench_store.py PROGRAM: runs bench_store over a file and over a server of its own.

The file lies in the directory that TMPDIR names, so that a disk can be chosen;
on a file system in memory nothing is durable, and the figures say little.
"""

import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))

import pg_machine  # noqa: E402
import tap  # noqa: E402


def main():
    with tempfile.TemporaryDirectory(prefix="flyball-bench-") as home:
        subprocess.run([sys.argv[1], pathlib.Path(home) / "store.sqlite"], check=True)
    try:
        with pg_machine.server() as server:
            subprocess.run([sys.argv[1], server.address()], check=True)
    except tap.Skip as reason:
        print(f"PostgreSQL no figures: {reason}")


main()
