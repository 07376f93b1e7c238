# SPDX-License-Identifier: Apache-2.0
"""over_stores.py DIRECTORY PROGRAM [FLYBALL]: runs PROGRAM with the address of a new file in
DIRECTORY as its argument, and with that of a new PostgreSQL server. With FLYBALL, the program,
it runs once more over each store with the address of a service in front of it as well.

The server lies in /tmp, for its socket needs a short path. On a file system in memory nothing
is durable, and the figures say little.
"""

import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/lib"))

import pg_machine  # noqa: E402
import serve_machine  # noqa: E402
import tap  # noqa: E402


def run(program, where, *addresses):
    print(f"{pathlib.Path(program).name} over {where}:", flush=True)
    subprocess.run([program, *addresses], check=True)


def run_both(program, flyball, where, fresh):
    """`fresh` gives the address of a store that nobody used yet."""
    run(program, where, fresh())
    if flyball is None:
        return
    store = fresh()
    with tempfile.TemporaryDirectory(prefix="serve-", dir="/tmp") as home:
        socket = f"unix:{home}/socket"
        with serve_machine.service(flyball, "--store", store, listen=socket):
            run(program, f"a service over {where}", store, socket)


def main():
    directory, program, flyball = [*sys.argv[1:], None][:3]
    with tempfile.TemporaryDirectory(prefix="stores-", dir=directory) as home:
        names = iter(range(10))
        run_both(program, flyball, "SQLite", lambda: str(pathlib.Path(home) / f"store-{next(names)}.sqlite"))
    try:
        with pg_machine.server() as server:
            run_both(program, flyball, "PostgreSQL", server.address)
    except tap.Skip as reason:
        print(f"PostgreSQL: no figures: {reason}")


main()
