# SPDX-License-Identifier: Apache-2.0
"""Adds up what the parts of scripts/check_all found.

A directory holds STEP.log, the output of a step, and STEP.status, its exit
status. A script's points are its lines that begin with "ok - " or "not ok - ",
skipped where they say "# SKIP"; a test's are the TAP lines that Meson's log keeps.
A test or a step that failed without a point to show for it counts as one failure,
and one without points as one point; a step that ended with status 77 could not
run here.
"""
import collections
import glob
import json
import os
import re

SCRIPT_POINT = re.compile(r"^(not )?ok - [^#]*(# SKIP)?")
TAP_POINT = re.compile(r"^(not )?ok\b[^#]*(?:#\s*(skip|todo))?", re.IGNORECASE)
SKIP_ALL = re.compile(r"^1\.\.0\s*#\s*skip", re.IGNORECASE)
UNABLE = 77  # the exit status of what cannot run here
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


def tests_of(build):
    """The results of a build directory's tests by name; a run with a wrapper puts its name behind the log's."""
    paths = glob.glob(os.path.join(glob.escape(str(build)), "meson-logs", "testlog*.json"))
    return {test["name"]: test for path in paths for test in map(test_of, read(path).splitlines())}


def test_of(line):
    try:
        return json.loads(line)
    except ValueError:  # whoever wrote it was killed
        return {"name": "a torn line", "result": "FAIL"}


def script_points(log):
    points = collections.Counter()
    for found in filter(None, map(SCRIPT_POINT.match, log.splitlines())):
        points["skipped" if found.group(2) else "failed" if found.group(1) else "passed"] += 1
    return points


def read(*path):
    with open(os.path.join(*path), encoding="utf-8", errors="replace") as file:
        return file.read()


def step_points(directory, step, builds):
    points = script_points(read(directory, step + ".log"))
    status = int(read(directory, step + ".status"))
    failed = status not in (0, UNABLE)
    for build in builds if status != UNABLE else []:
        tests = tests_of(build).values()
        failed = failed or not tests
        points += sum(map(test_points, tests), collections.Counter())
    if not points or (failed and not points["failed"]):
        points["failed" if failed else "skipped" if status == UNABLE else "passed"] += 1
    return points


def to_show(directory, step, points):
    """Of a step's log what a reader wants to see first: what failed, then its end; what was skipped whole, and why."""
    lines = read(directory, step + ".log").splitlines()
    if points["failed"]:
        return [line for line in lines if re.search(r"\bnot ok\b| (FAIL|ERROR|TIMEOUT) ", line)][:50] + ["..."] + lines[-60:]
    return [line for line in lines if "# SKIP" in line] if not points["passed"] else []


def line_of(points):
    return ", ".join(f"{points[what]} {what}" for what in ("passed", "failed", "skipped"))
