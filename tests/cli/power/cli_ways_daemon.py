# SPDX-License-Identifier: Apache-2.0
"""Turning knobs without root: through a daemon, for which a stand-in answers, and back again through it.

usage: cli_ways_daemon.py FLYBALL SOURCE_ROOT
"""

import json
import os
import signal
import subprocess
import time

import tap
from power_machine import CLEAN, DEFAULT_W, EMULATOR, HOME, SANITIZED, command, emulator, ended, entries, guard_of, limits, rows_of, wait_for
from ways_machine import ROOT, at, both_killed, daemon, journal, killed_and_back, locked_machine, power, start, tune


def test_no_way():
    """Everything else works, and it is said once what is off, with the command that would do it."""
    with locked_machine():
        result = power("set", 150, "--", "sh", "-c", "echo started; exit 4")
        tap.equal((result.returncode, result.stdout, limits()), (4, "started\n", [DEFAULT_W] * 2))
        tap.equal(result.stderr.count("sudo flyball power set 150 -i 0,1"), 1, result.stderr)
        tap.equal({row["may_be_set"] for row in rows_of(power("get", "--format", "json"))}, {"unlikely"})


def test_commands_are_refused():
    """Commands of the site's in place of a daemon: nothing is set, and no program is kept from running."""
    with locked_machine(gpus=1), daemon() as running:
        ways = {**at(running), "FLYBALL_KNOB_COMMANDS": "/etc/flyball/commands.toml"}
        result = power("set", 150, environment=ways)
        tap.equal((result.returncode, limits(), running.requests), (78, [DEFAULT_W], []), result.stderr)
        tap.contains(result.stderr, "have flyballd run, which does it, and unset the variable")
        result = power("set", 150, "--", "sh", "-c", "exit 5", environment=ways)
        tap.equal((result.returncode, limits()), (5, [DEFAULT_W]), result.stderr)
        tap.contains(result.stderr, "FLYBALL_KNOB_COMMANDS names '/etc/flyball/commands.toml'")
        tap.equal(power("set", 150, "--require", "--", "true", environment={**ways, "FLYBALL_KNOB_COMMANDS": ""}).returncode, 0)


def test_whom_the_driver_lets():
    if not ROOT:
        raise tap.Skip("only root is let by the driver")
    with locked_machine(gpus=1), daemon() as running:
        result = subprocess.run(command("set", 150, "--require", "--", "true"), env={**CLEAN, **at(running)}, capture_output=True, text=True, check=False)
        tap.equal((result.returncode, running.requests), (0, []), result.stderr)


def test_disabled():
    with locked_machine(gpus=1), daemon() as running:
        ways = {**at(running), "FLYBALL_DISABLE": "1"}
        tap.equal(power("set", 150, environment=ways).returncode, 0)
        tap.equal(power("set", 150, "--", "sh", "-c", "exit 5", environment=ways).returncode, 5)
        tap.equal((limits(), running.requests), ([DEFAULT_W], []))


def test_daemon():
    for tcp in (False, True):
        with locked_machine(), daemon(tcp) as running:
            running.shift = 3  # a daemon that sees other GPUs numbers them otherwise
            result = power("set", 150, "--", EMULATOR, "show", "--json", environment=at(running))
            tap.equal(result.returncode, 0, result.stderr)
            tap.equal([gpu["limit_w"] for gpu in json.loads(result.stdout)["gpus"]], [150, 150])
            tap.equal(limits(), [DEFAULT_W] * 2)
            tap.contains(result.stderr, f"by the daemon at '{running.address}'")
            rows = rows_of(power("get", "--format", "json", environment=at(running)))
            tap.equal({row["may_be_set"] for row in rows}, {"likely"})
            tap.contains(rows[0]["why_not"], f"the daemon at '{running.address}'")
            posts = [request for request in running.requests if request.startswith("POST")]
            tap.equal(posts[0], "POST /gpu/set_power_limit?gpu_ids=3&block=true&power_limit_mw=150000")
            tap.equal(len(posts), 4)


def test_daemon_is_found_as_its_clients_find_it():
    with locked_machine(gpus=1), daemon() as running, daemon(tcp=True) as other:
        for ways, used in (({"ZEUSD_SOCK_PATH": running.address}, running),
                           ({"FLYBALL_KNOB_DAEMON": f"unix:{running.address}"}, running),
                           ({"FLYBALL_KNOB_DAEMON": other.address.removeprefix("http://")}, other),
                           ({"ZEUSD_HOST_PORT": other.address.removeprefix("http://")}, other),
                           ({"ZEUSD_SOCK_PATH": running.address, "ZEUSD_HOST_PORT": "127.0.0.1:1"}, running),
                           ({"ZEUSD_SOCK_PATH": "/nowhere", "FLYBALL_KNOB_DAEMON": other.address}, other)):
            used.requests.clear()
            result = power("set", 150, "--require", "--", "true", environment={**ways, "http_proxy": "http://127.0.0.1:1"})
            tap.equal((result.returncode, limits()), (0, [DEFAULT_W]), (ways, result.stderr))
            tap.equal(len(used.requests), 4, ways)


def test_daemon_is_turned_back():
    with locked_machine(), daemon() as running:
        killed_and_back(at(running), "150000 150000 daemon\n", (signal.SIGKILL, signal.SIGTERM))
        both_killed(at(running))


def test_daemon_keeps_limits():
    if not ROOT or SANITIZED:
        raise tap.Skip("root's part is not played here: not root, or built with sanitizers")
    with locked_machine(gpus=1), daemon() as running:
        result = power("set", 150, environment=at(running))
        tap.equal((result.returncode, limits(), entries()), (0, [150], ["kept"]), result.stderr)
        tap.equal([row["persistence_mode"] for row in rows_of(power("get", "--format", "json"))], [1])
        result = power("restore", "--kept")
        tap.equal((result.returncode, limits()), (0, [DEFAULT_W]), result.stderr)
        tap.equal([row["persistence_mode"] for row in rows_of(power("get", "--format", "json"))], [0])
        tap.equal(power("reset", environment=at(running)).returncode, 0)


def test_tokens():
    with locked_machine(gpus=1), daemon() as running:
        token = HOME / "token"
        running.token = "header.secret-of-the-site.signature"
        token.write_text(f"{running.token}\n")
        wrong = HOME / "wrong"
        wrong.write_text("header.wrong.signature")
        for ways, status, piece in (({"FLYBALL_KNOB_TOKEN_FILE": str(token)}, 0, "by the daemon"),
                                    ({"ZEUSD_TOKEN": running.token}, 0, "by the daemon"),
                                    ({}, 77, "it wants a token"),
                                    ({"FLYBALL_KNOB_TOKEN_FILE": str(wrong), "ZEUSD_TOKEN": running.token}, 77, "(HTTP 401)"),
                                    ({"FLYBALL_KNOB_TOKEN_FILE": str(HOME / "none")}, 77, "No such file"),
                                    ({"ZEUSD_TOKEN": "two words"}, 77, "more than one word"),
                                    ({"ZEUSD_TOKEN": "x" * 5000}, 77, "too long")):
            result = power("set", 150, "--require", "--", "true", environment={**at(running), **ways})
            tap.equal((result.returncode, limits(), entries()), (status, [DEFAULT_W], []), (ways, result.stderr))
            tap.contains(result.stderr, piece)
            tap.equal([word in result.stderr for word in ("secret-of-the-site", "header.wrong")], [False, False], result.stderr)
        running.scopes = ["gpu-read"]
        result = power("set", 150, environment={**at(running), "FLYBALL_KNOB_TOKEN_FILE": str(token)})
        tap.equal((result.returncode, limits()), (77, [DEFAULT_W]))
        tap.contains(result.stderr, "the token has no scope gpu-control")


def test_a_daemon_that_fails():
    """What is refused leaves everything as it was; after an answer that did not come the journal keeps what may be."""
    with locked_machine(gpus=1), daemon() as running:
        for mood, status, piece, stuck in (
            ("401", 77, "(HTTP 401): in a mood of 401", False), ("403:POST", 77, "(HTTP 403)", False), ("404:POST", 77, "(HTTP 404)", False),
            ("400:POST", 74, "(HTTP 400)", False), ("500:POST", 74, "(HTTP 500): in a mood of 500", False), ("302", 74, "(HTTP 302)", False),
            ("malformed", 74, "it speaks no JSON", False), ("long", 74, "longer than", False), ("close", 74, "no whole answer", False),
            ("nonsense", 74, "no whole answer", False), ("cut", 74, "no whole answer", False), ("hang:GET", 74, "did not answer within 2 s", False),
            ("hang:POST", 74, "did not answer within 2 s", True), ("close:POST", 74, "no whole answer", True),
        ):
            running.mood = mood
            process = start("set", 150, "--require", "--", "sh", "-c", "echo started", environment=at(running))
            if stuck:
                wait_for(lambda: entries() == ["turned"], "the intent is written down")
                guard = guard_of(process)
                wait_for(lambda: len([line for line in running.requests if "400000" in line]) >= 1, "it is asked for what stood before")
                running.mood = None  # it is well again: the session or its guard gets through
                tap.equal(ended(process)[0], status, mood)
                wait_for(lambda: not os.path.exists(f"/proc/{guard}"), "the guard has ended")
            else:
                result = ended(process)
                tap.equal((result[0], result[1]), (status, ""), (mood, result[2]))
                tap.contains(result[2], piece, mood)
            tap.equal((limits(), entries()), ([DEFAULT_W], []), mood)
            running.requests.clear()
        running.mood = None
        for groups, piece in ((["gpu-read"], "it turns no knobs"), ([], "it turns no knobs")):
            running.groups = groups
            tap.contains(power("set", 150, environment=at(running)).stderr, piece)
        running.groups = ["gpu-control"]
        pci, running.gpus[0]["pci"] = running.gpus[0]["pci"], "00000000:FF:00.0"
        tap.contains(power("set", 150, environment=at(running)).stderr, "it has no GPU at '00000000:07:00.0'")
        running.gpus[0]["pci"] = pci.lower().removeprefix("0000")
        tap.equal(power("set", 150, "--require", "--", "true", environment=at(running)).returncode, 0)
        # At the place of an emulated GPU a real one may be plugged in.
        running.gpus[0]["name"] = "NVIDIA A100-SXM4-80GB"
        tap.contains(power("set", 150, environment=at(running)).stderr, "it has no GPU at")
    with locked_machine(gpus=1):
        for address, piece in (("/nowhere/daemon.sock", "nobody answers at '/nowhere/daemon.sock'"),
                               ("http://127.0.0.1:1", "nobody answers at"), ("http://local host", "is no address")):
            result = power("set", 150, environment={"FLYBALL_KNOB_DAEMON": address})
            tap.equal((result.returncode, limits(), entries()), (77, [DEFAULT_W], []), result.stderr)
            tap.contains(result.stderr, piece)


def test_another_program_wins():
    with locked_machine(), daemon() as running:
        process = start("set", 150, "--for", "1h", environment=at(running))
        wait_for(lambda: limits() == [150, 150], "both are set")
        wait_for(lambda: journal().count("150000 150000") == 2, "both are written down")
        emulator("set", "--gpu", 0, "--limit-w", 275)
        process.kill()
        wait_for(lambda: limits() == [275, DEFAULT_W], "the limit that is ours was put back")
        ended(process)
        wait_for(lambda: entries() == [], "the journal is empty")


def test_tuning():
    """As a user: without a way all else works, with one limits are tried and put back."""
    with locked_machine("--sensor", "exact", "--counter-period-ms", "0", gpus=1), daemon() as running:
        talk, report = tune(at(running), lambda: limits()[0] < DEFAULT_W, "a limit is tried through the daemon")
        tap.equal((report["state"], report["reason"]), ("searching", "goes on"), talk)
        running.mood = "500:POST"
        running.requests.clear()
        begin = time.monotonic()
        talk, report = tune(at(running), lambda: any("POST" in request for request in running.requests), "the daemon is asked")
        took = time.monotonic() - begin
        tap.contains(report["reason_text"], "HTTP 500")
        # What the driver refuses shows outside in nothing: it is given twice the time that asking the daemon took.
        end = time.monotonic() + 2 * took + 1
        talk, report = tune({}, lambda: time.monotonic() > end, "there was time to ask the driver")
        if report["state"] == "searching":
            print("# the first limit was not reached in that time: nothing was refused")
            return
        tap.equal((report["state"], talk.count("sudo -E flyball run --tune")), ("off", 1), talk)


tap.main(globals())
