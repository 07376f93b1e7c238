# SPDX-License-Identifier: Apache-2.0
"""over_stores.py DIRECTORY PROGRAM: runs PROGRAM with the address of a new file in DIRECTORY as
its argument, and with that of a new PostgreSQL server.

The server lies in /tmp, for its socket needs a short path. On a file system in memory nothing
is durable, and the figures say little.
"""

import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))

import pg_machine  # noqa: E402
import tap  # noqa: E402


def run(program, where, address):
    print(f"{pathlib.Path(program).name} over {where}:", flush=True)
    subprocess.run([program, address], check=True)


def main():
    directory, program = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="stores-", dir=directory) as home:
        run(program, "SQLite", pathlib.Path(home) / "store.sqlite")
    try:
        with pg_machine.server() as server:
            run(program, "PostgreSQL", server.address())
    except tap.Skip as reason:
        print(f"PostgreSQL: no figures: {reason}")


main()
