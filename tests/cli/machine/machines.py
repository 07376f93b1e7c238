# SPDX-License-Identifier: Apache-2.0
"""Machines as test data: what commands answer from the facts that `flyball record --facts` wrote.

usage: machines.py FLYBALL SOURCE_ROOT                     compares, for every tests/machines/NAME/NAME.facts
       machines.py --record FLYBALL SOURCE_ROOT NAME [FILE]  writes what is expected of NAME, after
                                                           copying FILE to NAME.facts where one is given

What is expected of a machine stands beside its facts, NAME.COMMAND. Look at it before you commit it: it
is what the program answers, and not yet what it should.
"""

import os
import pathlib
import re
import shutil
import sys

import tap

# The end of the file's name, and the command; TEXT keeps what both streams got, and the status.
ANSWERS = (("devices.txt", ("devices",)), ("devices.json", ("devices", "--format", "json")),
           ("doctor.txt", ("doctor", "-v")), ("power.txt", ("power", "get")))
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith(("FLYBALL_", "XDG_", "NO_COLOR", "CUDA_", "HIP_", "ROCR_"))}
# What must not be in a file that is given to others.
PERSONAL = {"a UUID": r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            "an address of the PCI bus": r"\b[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]\b",
            "a home": r"/home/|/Users/|/root/"}


def answer(flyball, facts, ending, words):
    """What the command answers from the file, as it is kept."""
    result = tap.run([flyball, *words, "--replay", facts.name], env=CLEAN, cwd=facts.parent)
    if ending.endswith(".json"):
        return result.stdout
    said = f"--- standard error ---\n{result.stderr}" if result.stderr else ""
    return f"{result.stdout}{said}--- status {result.returncode} ---\n"


def kept(facts, ending):
    return facts.with_name(f"{facts.stem}.{ending}")


def check(flyball, facts):
    text = facts.read_text(encoding="utf-8")
    for what, pattern in PERSONAL.items():
        if re.search(pattern, text, re.IGNORECASE):
            raise AssertionError(f"{facts.name} holds {what}")
    for ending, words in ANSWERS:
        expected = kept(facts, ending)
        if not expected.exists():
            raise AssertionError(f"{expected.name} is missing; make it with machines.py --record, and look at it")
        tap.equal(answer(flyball, facts, ending, words), expected.read_text(encoding="utf-8"), expected.name)


def record(flyball, directory, name, source=None):
    facts = directory / name / f"{name}.facts"
    facts.parent.mkdir(exist_ok=True)
    if source is not None:
        shutil.copyfile(source, facts)
    for ending, words in ANSWERS:
        kept(facts, ending).write_text(answer(flyball, facts, ending, words), encoding="utf-8")
        print(f"wrote {kept(facts, ending)}; look at it")


def tests(flyball, directory):
    """A test for each machine; and one that there is nothing beside them."""
    found = {}
    machines = sorted(directory.glob("*/*.facts"))
    for facts in machines:
        def compare(facts=facts):
            check(flyball, facts)
        compare.__name__ = f"test_{facts.stem}"
        found[compare.__name__] = compare

    def test_every_answer_has_its_machine():
        known = {kept(facts, ending).name for facts in machines for ending, _ in ANSWERS}
        known |= {facts.name for facts in machines} | {"README.md"}
        tap.equal(sorted(path.name for path in directory.rglob("*.*") if path.name not in known), [])

    return found | {"test_every_answer_has_its_machine": test_every_answer_has_its_machine}


if sys.argv[1:2] == ["--record"]:
    record(os.path.abspath(sys.argv[2]), pathlib.Path(sys.argv[3]) / "tests/machines", *sys.argv[4:6])
else:
    tap.main(tests(os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]) / "tests/machines"))
