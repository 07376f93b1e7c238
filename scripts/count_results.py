# SPDX-License-Identifier: Apache-2.0
"""count_results.py DIRECTORY STEP[=BUILD,...] ...: adds up what a run of all checks found.

DIRECTORY holds STEP.log, the output of a step, and STEP.status, its exit
status; BUILD is a build directory whose tests the step ran. A script's points
are its lines that begin with "ok - " or "not ok - "; a test's are the TAP lines
that Meson's log keeps. A test or a step that failed without a point to show for
it counts as one failure, and one without points as one point. Ends with the
line "N passed, N failed, N skipped".
"""
import collections
import glob
import json
import os
import re
import sys

SCRIPT_POINT = re.compile(r"^(not )?ok - ")
TAP_POINT = re.compile(r"^(not )?ok\b[^#]*(?:#\s*(skip|todo))?", re.IGNORECASE)
SKIP_ALL = re.compile(r"^1\.\.0\s*#\s*skip", re.IGNORECASE)
MESON_RESULTS = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}


def tap_points(text):
    for line in text.splitlines():
        found = TAP_POINT.match(line)
        if found and found.group(2):
            yield "skipped"  # cmocka writes "not ok 1 # SKIP"
        elif found:
            yield "failed" if found.group(1) else "passed"
        elif SKIP_ALL.match(line):
            yield "skipped"


def test_points(test):
    """The points of one test; its result as Meson saw it where the points do not tell."""
    result = MESON_RESULTS.get(test["result"], "failed")
    points = collections.Counter(tap_points(test.get("stdout") or ""))
    if not points or (result == "failed" and not points["failed"]):
        points[result] += 1
    return points


def testlog_points(build):
    # A run with a wrapper puts its name into that of the log.
    logs = glob.glob(os.path.join(glob.escape(build), "meson-logs/testlog*.json"))
    if not logs:
        raise FileNotFoundError(build)
    points = collections.Counter()
    for log in logs:
        for line in read(log).splitlines():
            points += test_points(json.loads(line))
    return points


def script_points(log):
    found = [SCRIPT_POINT.match(line) for line in log.splitlines()]
    return collections.Counter("failed" if point.group(1) else "passed" for point in found if point)


def read(*path):
    with open(os.path.join(*path), encoding="utf-8", errors="replace") as file:
        return file.read()


def step_points(directory, step, builds):
    points = script_points(read(directory, step + ".log"))
    unheard = 0
    for build in builds:
        try:
            points += testlog_points(build)
        except FileNotFoundError:
            unheard += 1
    failed = unheard > 0 or int(read(directory, step + ".status")) != 0
    if not points or (failed and not points["failed"]):
        points["failed" if failed else "passed"] += 1
    return points


def line_of(points):
    return ", ".join(f"{points[what]} {what}" for what in ("passed", "failed", "skipped"))


def main():
    total = collections.Counter()
    for argument in sys.argv[2:]:
        step, _, builds = argument.partition("=")
        points = step_points(sys.argv[1], step, builds.split(",") if builds else [])
        print(f"{step}: {line_of(points)}")
        total += points
    print(line_of(total))
    return total["failed"] > 0


if __name__ == "__main__":
    sys.exit(main())
