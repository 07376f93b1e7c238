# SPDX-License-Identifier: Apache-2.0
"""count_results.py DIRECTORY STEP[=BUILD,...] ...: adds up what a run of all checks found.
count_results.py --again LOGS: the failed tests that deserve a second try, on one line.

DIRECTORY holds STEP.log, the output of a step, and STEP.status, its exit
status; BUILD is a build directory whose tests the step ran. A script's points
are its lines that begin with "ok - " or "not ok - "; a test's are the TAP lines
that Meson's log keeps. A test or a step that failed without a point to show for
it counts as one failure, and one without points as one point. A test that was
tried once more counts as its second try says, and is named. Ends with the line
"N passed, N failed, N skipped".

A second try (scripts/test) is for a program that a busy machine held up: not for
what a sanitizer reported, and not where more than AGAIN_MAX tests failed.
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
SANITIZER = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:")
AGAIN_MAX = 6
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


def tests_of(logs, base):
    """The results of Meson's logs with this base by name; a run with a wrapper puts its name behind the base."""
    paths = glob.glob(os.path.join(glob.escape(logs), base + "*.json"))
    return {test["name"]: test for path in paths for test in map(json.loads, read(path).splitlines())}


def again(logs):
    failed = [test for test in tests_of(logs, "testlog").values() if test["result"] not in MESON_RESULTS]
    if len(failed) > AGAIN_MAX or any(SANITIZER.search(text_of(test)) for test in failed):
        return ""
    # "flyball:unit / name": Meson takes the last part.
    return " ".join(test["name"].split(" / ")[-1] for test in failed)


def text_of(test):
    return (test.get("stdout") or "") + (test.get("stderr") or "")


def testlog_points(build):
    logs = os.path.join(build, "meson-logs")
    first, second = tests_of(logs, "testlog"), tests_of(logs, "again")
    if not first:
        raise FileNotFoundError(build)
    for name, test in second.items():
        if first.get(name, {}).get("result") not in MESON_RESULTS and test["result"] in MESON_RESULTS:
            print(f"{build}: '{name}' passed on its second try only")
    points = collections.Counter()
    for test in (first | second).values():
        points += test_points(test)
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
    if sys.argv[1] == "--again":
        print(again(sys.argv[2]))
        return 0
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
