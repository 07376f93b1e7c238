# SPDX-License-Identifier: Apache-2.0
"""The rules of integrations/prometheus, under Prometheus' own checker and tests (prometheus_rules.yml).

usage: prometheus_rules.py FLYBALL SOURCE
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import tap

SOURCE = pathlib.Path(sys.argv[2])
FLYBALLD = pathlib.Path(sys.argv[1]).resolve().parent / "flyballd"
RULES = sorted((SOURCE / "integrations/prometheus").glob("*.yml"))
TESTS = SOURCE / "tests/node/prometheus_rules.yml"


def promtool(*arguments, **keywords):
    if shutil.which("promtool") is None:
        raise tap.Skip("promtool is not installed (Debian: prometheus)")
    return tap.run(["promtool", *map(str, arguments)], **keywords)


def test_checked():
    result = promtool("check", "rules", *RULES)
    tap.equal(result.returncode, 0, result.stdout + result.stderr)
    tap.equal("WARN" in result.stdout or "duplicate" in result.stdout, False, result.stdout)


def test_fire_and_do_not():
    result = promtool("test", "rules", TESTS)
    tap.equal(result.returncode, 0, result.stdout + result.stderr)


def test_tests_can_fail():
    with tempfile.TemporaryDirectory() as place:
        broken = pathlib.Path(place) / "tests.yml"
        broken.write_text(TESTS.read_text().replace("../integrations", os.fspath(SOURCE.resolve() / "integrations")).replace("0x10 1x20", "0x30"))
        result = promtool("test", "rules", broken)
        tap.equal(result.returncode, 1, result.stdout + result.stderr)
        tap.contains(result.stdout + result.stderr, "FlyballLeaseNotGivenBack")


def test_every_alert_both_ways():
    """A test has to see each alert fire, and see it not fire."""
    text = TESTS.read_text()
    for alert in re.findall(r"- alert: (\w+)", "".join(path.read_text() for path in RULES)):
        found = re.findall(rf"alertname: {alert}\n +exp_alerts:( \[\])?", text)
        tap.equal(("" in found, " []" in found), (True, True), alert)


def test_series_exist():
    """The rules ask for no series that the daemon does not tell."""
    told = set(re.findall(r"`(\w+)`", subprocess.run([FLYBALLD, "--quantities"], capture_output=True, text=True, check=True).stdout))
    for path in RULES:
        expressions = re.sub(r"(?m)^ *(#|summary|description|Its|record).*$", "", path.read_text())
        asked = set(re.findall(r"(?<![:\w])flyball_\w+(?![:\w])", expressions)) - {"flyball_alerts", "flyball_recording"}
        tap.equal(sorted(asked - told), [], path.name)


tap.main(globals())
