#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tidy_files.py BUILD COMMANDS LIST: clang-tidy over the C files that LIST names, one on a line.

BUILD is a directory that has compiled them, COMMANDS the directory of a compile_commands.json that names each
once. Prints what clang-tidy found, and exits with 1 if that is anything. Of a file that was found clean before,
by the same clang-tidy with the same rules and command, and with the same headers of the project, nothing new
can be said: it is left out. What is known to be clean stands in $XDG_CACHE_HOME/flyball-checks/tidy.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys

import lint_files


def key_of(source, command, headers, rules):
    """What a verdict depends on, as a hash; None where the headers are not known."""
    if not headers:
        return None
    digest = hashlib.sha256(rules + command.encode())
    for path in (source, *sorted(headers)):
        digest.update(path.encode() + b"\0" + hashlib.sha256(pathlib.Path(path).read_bytes()).digest())
    return digest.hexdigest()


def tidy(source, commands):
    """A file at a time: clang-tidy 14 carries knowledge of va_lists from one to the next."""
    ran = subprocess.run(["clang-tidy", "--quiet", "-p", commands, source], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    lines = [line for line in ran.stdout.splitlines() if not line.rstrip(".").endswith(("warning generated", "warnings generated"))]
    return lines or [f"{source}: clang-tidy ended with {ran.returncode}"][: ran.returncode != 0]


def main():
    build, commands, listed = sys.argv[1:]
    known = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "flyball-checks" / "tidy"
    known.mkdir(parents=True, exist_ok=True)
    rules = subprocess.run(["clang-tidy", "--version"], stdout=subprocess.PIPE, check=True).stdout + pathlib.Path(".clang-tidy").read_bytes()
    made_of = lint_files.included_by(build)
    with open(os.path.join(commands, "compile_commands.json"), encoding="utf-8") as file:
        # Where the clone lies says nothing of what stands in it.
        command_of = {os.path.relpath(os.path.join(c["directory"], c["file"])): c["command"].replace(os.getcwd(), ".") for c in json.load(file)}
    sources = pathlib.Path(listed).read_text(encoding="utf-8").splitlines()
    failed = False

    def look(source):
        key = key_of(source, command_of.get(source, ""), made_of.get(source), rules)
        if key is not None and (known / key).exists():
            return []
        lines = tidy(source, commands)
        if not lines and key is not None:
            (known / key).touch()
        return lines

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for lines in pool.map(look, sources):
            failed |= bool(lines)
            for line in lines:
                print(line, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
