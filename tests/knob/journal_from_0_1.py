# SPDX-License-Identifier: Apache-2.0
"""Entries of the journal as version 0.1 wrote them, in from_0_1/journal: this version puts back what they say.

usage: journal_from_0_1.py FLYBALL SOURCE_ROOT
"""

import json
import pathlib
import re
import subprocess
import sys

import tap
from power_machine import CLEAN, DEFAULT_W, FLYBALL, KNOBS, WHERE, emulator, entries, limits, machine, power

FILES = pathlib.Path(sys.argv[2]) / "tests/from_0_1/journal"


def state():
    return json.loads(emulator("show", "--json"))["gpus"][0]


def uuid():
    result = subprocess.run([FLYBALL, "devices", "--format", "json", *WHERE], env=CLEAN, capture_output=True, text=True, check=True)
    return next(row["uuid"] for row in json.loads(result.stdout)["rows"] if row["kind"] == "GPU")


def lay(name, boot=""):
    """The file as it was, but of this boot and this GPU."""
    text = (FILES / name).read_text()
    gpu = uuid()
    path = KNOBS / f"{gpu}{pathlib.Path(name).suffix}"
    boot = boot or pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    for key, value in (("boot", boot), ("gpu", gpu)):
        text = re.sub(f"^{key} .*$", f"{key} {value}", text, flags=re.MULTILINE)
    path.write_text(text)


def test_a_limit():
    with machine(gpus=1):
        emulator("set", "--limit-w", 150)
        lay("limit.turned")
        result = power("restore")
        tap.equal((result.returncode, limits(), entries()), (0, [DEFAULT_W], []), result.stderr)
        tap.contains(result.stderr, "left at 150 W by 'flyball power', process ")


def test_of_another_boot():
    with machine(gpus=1):
        emulator("set", "--limit-w", 150)
        lay("limit.turned", boot="another")
        tap.equal((power("restore").returncode, limits(), entries()), (0, [150], []))


def test_set_to_stay():
    with machine(gpus=1):
        emulator("set", "--limit-w", 250)
        lay("set_to_stay.kept")
        tap.equal((power("restore").returncode, limits(), entries()), (0, [250], ["kept"]))
        result = power("restore", "--kept")
        tap.equal((result.returncode, limits(), entries()), (0, [DEFAULT_W], []), result.stderr)


def test_a_ceiling():
    with machine(gpus=1):
        emulator("set", "--ceiling-mhz", 1350)
        lay("ceiling.turned")
        result = power("restore")
        tap.equal((result.returncode, state()["clock_ceiling_mhz"], entries()), (0, None, []), result.stderr)


tap.main(globals())
