# SPDX-License-Identifier: Apache-2.0
"""The commands behind a `$` in README.md, one after the other in an empty directory: each ends well.

usage: readme_commands.py FLYBALL SOURCE_ROOT

Those that take the better part of a minute are only checked for words that their program knows.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import tap

FLYBALL = pathlib.Path(sys.argv[1]).resolve()
EMULATOR = pathlib.Path(os.environ.get("FLYBALL_TEST_EMULATOR", FLYBALL.parent / "emulator"))
TEXT = (pathlib.Path(sys.argv[2]) / "README.md").read_text(encoding="utf-8")
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("FLYBALL_", "XDG_"))}
SLOW = ("--tune",)


def commands():
    """With their continued lines."""
    found = re.findall(r"^    \$ ((?:.*\\\n)*.*)$", TEXT, re.MULTILINE)
    return [re.sub(r"\\\n\s*", "", command) for command in found]


def test_commands_run_as_they_stand():
    if not (EMULATOR / "flyball-emulator").exists():
        raise tap.Skip("the emulator is not built")
    with tempfile.TemporaryDirectory(prefix="flyball-readme-") as home:
        environment = {**CLEAN, "HOME": home, "TMPDIR": home, "FLYBALL_EMULATOR_STATE": f"{home}/state",
                       "PATH": f"{FLYBALL.parent}:{EMULATOR}:{os.environ['PATH']}"}
        for command in commands():
            if any(word in command for word in SLOW):
                command = re.sub(r"--steps \d+$", "--steps 20", command)
            ran = subprocess.run(["sh", "-c", command], cwd=home, env=environment, capture_output=True, text=True, timeout=120,
                                 check=False)
            tap.equal(ran.returncode, 0, (command, ran.stderr))


def test_there_are_some():
    tap.equal(len(commands()) >= 4, True, commands())


tap.main(globals())
