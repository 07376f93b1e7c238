# SPDX-License-Identifier: Apache-2.0
"""check_definition.py ROOT: a member of a job's definition stands in few sources.

Lists the sources in which a member stands that most definitions leave out (SPARING rows with an option of
include/flyball/job_definition.def), by its name or by its option. What only passes a definition on has no need to name
one. Prints TAP.
"""
import os
import re
import sys

from house import walk

TABLE = "include/flyball/job_definition.def"
ROW = re.compile(r'^FLY_(?:WHOLE|REAL|FLAG)\((\w+), SPARING,[^"]*"([a-z-]+)"', re.MULTILINE)
SOURCES_MAX = 5
# What acts in more places, and in how many. This list only shrinks.
ACTS = {"best_so_far": 6, "report_every_samples": 9, "report_every_steps": 6, "no_default": 12}


def texts(root):
    for path in sorted(walk(root, ["include", "src", "python"])):
        if path.endswith((".c", ".h", ".def", ".py", ".pyi")):
            with open(os.path.join(root, path), encoding="utf-8") as file:
                yield path, file.read()


def main():
    root = sys.argv[1]
    with open(os.path.join(root, TABLE), encoding="utf-8") as file:
        rows = ROW.findall(file.read())
    everything = list(texts(root))
    print(f"1..{len(rows)}")
    for number, (member, option) in enumerate(rows, 1):
        stands = [path for path, text in everything if re.search(rf"\b({member}|{option})\b", text)]
        print(f"{'not ' if len(stands) > ACTS.get(member, SOURCES_MAX) else ''}ok {number} - {member} stands in {len(stands)} sources")
        for path in stands:
            print(f"# {path}")


main()
