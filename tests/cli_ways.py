# SPDX-License-Identifier: Apache-2.0
"""Turning knobs without root by a site's commands, and back again by them.

usage: cli_ways.py FLYBALL SOURCE_ROOT
"""

import json
import os
import signal
import subprocess

import tap
from power_machine import CLEAN, DEFAULT_W, EMULATOR, HOME, command, ended, entries, limits, rows_of, wait_for
from ways_machine import (COMMANDS, NOBODY, ROOT, at, both_killed, commands_file, daemon, gpu_rows, journal, killed_and_back, locked_machine,
                          power, script, site_commands, start)


def test_no_way():
    """Everything else works, and it is said once what is off, with the command that would do it."""
    with locked_machine():
        result = power("set", 150, "--", "sh", "-c", "echo started; exit 4")
        tap.equal((result.returncode, result.stdout, limits()), (4, "started\n", [DEFAULT_W] * 2))
        tap.equal(result.stderr.count("sudo flyball power set 150 -i 0,1"), 1, result.stderr)
        tap.equal({row["may_be_set"] for row in rows_of(power("get", "--format", "json"))}, {"unlikely"})


def test_commands():
    with locked_machine():
        ways = site_commands()
        result = power("set", 150, "--", EMULATOR, "show", "--json", environment=ways)
        tap.equal(result.returncode, 0, result.stderr)
        tap.equal([gpu["limit_w"] for gpu in json.loads(result.stdout)["gpus"]], [150, 150])
        tap.equal(limits(), [DEFAULT_W] * 2)
        uuids = [row["uuid"] for row in gpu_rows()]
        tap.equal((HOME / "log").read_text().splitlines(), [f"0 150 {uuids[0]}", f"1 150 {uuids[1]}", f"1 400 {uuids[1]}", f"0 400 {uuids[0]}"])
        tap.contains(result.stderr, f"by the commands of '{COMMANDS}'")
        rows = rows_of(power("get", "--format", "json", environment=ways))
        tap.equal({row["may_be_set"] for row in rows}, {"likely"})
        tap.contains(rows[0]["why_not"], f"the commands of '{COMMANDS}'")
        # To stay: without persistence mode, which they do not offer.
        result = power("set", 150, "-i", "1", environment=ways)
        tap.equal((result.returncode, limits()), (0, [DEFAULT_W, 150]), result.stderr)
        tap.contains(journal(), f"commands {COMMANDS}\n")
        result = power("restore", "--kept")  # by the place in the journal
        tap.equal((result.returncode, limits()), (0, [DEFAULT_W] * 2), result.stderr)


def test_commands_are_turned_back():
    with locked_machine():
        ways = site_commands()
        killed_and_back(ways, "150000 150000 commands\n", (signal.SIGKILL, signal.SIGTERM))
        both_killed(ways)


def test_a_command_under_way():
    """Killed while a command is at work that sets the limit afterwards: it goes back all the same."""
    with locked_machine(gpus=1):
        ways = site_commands(before=f'if [ "$2" = 150 ]; then touch {HOME}/open/begun; sleep 0.4; fi')
        (HOME / "open").mkdir()
        (HOME / "open").chmod(0o777)
        process = start("set", 150, "--for", "1h", environment=ways)
        wait_for((HOME / "open" / "begun").exists, "the command runs")
        process.kill()
        ended(process)
        wait_for(lambda: len((HOME / "log").read_text().splitlines()) >= 3, "the limit was put back behind the command")
        wait_for(lambda: limits() == [DEFAULT_W] and entries() == [], "it stands as before")


def test_commands_that_fail():
    with locked_machine(gpus=1):
        show = f"'{EMULATOR}' set --gpu 0 --limit-w"
        for text, status, pieces in (
            (f"[set_power_limit]\ncommands = [\"{script('echo no rule for you >&2; exit 3')} {{gpu_id}}\"]", 74,
             (f"site 0' of '{COMMANDS}' failed with status 3, and said: no rule for you",)),
            ("[set_power_limit]\ncommands = ['/nowhere/program']", 77, ("'/nowhere/program' of", "cannot be run", "root alone")),
            ("[set_power_limit]\ncommands = ['true']", 74, ("it stands as before", "the commands of")),
            ("[set_power_limit]\ncommands = ['echo NOT Supported: 17']\nerror_pattern = '(?i)not supported: \\d+'", 74,
             ("failed by its error_pattern", "NOT Supported: 17")),
            ("[set_power_limit]\ncommands = ['true']\nerror_pattern = '(('", 77, ("is no regular expression",)),
            ("[set_power_limit]\ncommands = ['false', \"" + show + " 150\"]", 74, ("'false' of",)),
            ("[set_gpu_locked_clocks]\ncommands = ['true']", 77, ("has no table 'set_power_limit'",)),
            ("[set_power_limit]\ncommands = ['true'", 77, (f"{COMMANDS}:3:", "expected ',' or ']'")),
            ("[set_power_limit]\ncommands = ['set {watts}']", 77, (f"{COMMANDS}:2:", "'{watts}'")),
            ("", 77, ("has no table 'set_power_limit'",)),
        ):
            ways = commands_file(text + "\n")
            result = power("set", 150, "--require", "--", "sh", "-c", "echo started", environment=ways)
            tap.equal((result.returncode, result.stdout, limits()), (status, "", [DEFAULT_W]), (text, result.stderr))
            for piece in pieces:
                tap.contains(result.stderr, piece, text)
            tap.equal(entries(), [], text)


def test_a_command_that_hangs():
    """It may set the limit yet: what stood before is asked for behind it."""
    with locked_machine(gpus=1):
        ways = site_commands(before='if [ "$2" = 150 ]; then sleep 30; fi')
        with COMMANDS.open("a") as file:
            file.write("timeout_s = 1\n")
        result = power("set", 150, "--require", "--", "true", environment=ways)
        tap.equal((result.returncode, limits(), entries()), (74, [DEFAULT_W], []), result.stderr)
        tap.contains(result.stderr, "did not end within 1 s, and was killed")
        tap.equal([line.split()[1] for line in (HOME / "log").read_text().splitlines()], ["150", "400"])


def test_files_that_are_not_believed():
    with locked_machine(gpus=1):
        ways = site_commands()
        COMMANDS.chmod(0o666)
        result = power("set", 150, environment=ways)
        tap.equal((result.returncode, limits()), (77, [DEFAULT_W]))
        tap.contains(result.stderr, "may be written by everybody, and is not believed")
        if ROOT:
            COMMANDS.chmod(0o644)
            os.chown(COMMANDS, NOBODY - 1, NOBODY - 1)
            result = power("set", 150, environment=ways)
            tap.equal((result.returncode, limits()), (77, [DEFAULT_W]))
            tap.contains(result.stderr, "is not root's nor this user's")
            COMMANDS.unlink()
        tap.equal((HOME / "log").read_text(), "")
        result = power("set", 150, environment={"FLYBALL_KNOB_COMMANDS": str(HOME / "none.toml")})
        tap.equal(result.returncode, 77)
        tap.contains(result.stderr, "none.toml' cannot be read: No such file")


def test_order():
    """The driver, then commands, then the daemon: the next one where one has not the knob or is not there."""
    with locked_machine(gpus=1), daemon() as running:
        ways = {**site_commands(), **at(running)}
        result = power("set", 150, "--require", "--", "true", environment=ways)
        tap.equal((result.returncode, running.requests), (0, []), result.stderr)
        ways = {**commands_file("[reset_gpu_locked_clocks]\ncommands = ['true']\n"), **at(running)}
        result = power("set", 150, "--require", "--", "true", environment=ways)
        tap.equal((result.returncode, len(running.requests)), (0, 4), result.stderr)
        result = power("set", 150, environment={**ways, "FLYBALL_KNOB_DAEMON": "/nowhere"})
        tap.equal((result.returncode, limits()), (77, [DEFAULT_W]))
        tap.contains(result.stderr, "has no table 'set_power_limit'")
        tap.contains(result.stderr, "nobody answers at '/nowhere'")
        # Whom the driver lets needs no other way.
        if ROOT:
            running.requests.clear()
            result = subprocess.run(command("set", 150, "--require", "--", "true"), env={**CLEAN, **at(running)}, capture_output=True, text=True, check=False)
            tap.equal((result.returncode, running.requests), (0, []), result.stderr)


def test_disabled():
    with locked_machine(gpus=1), daemon() as running:
        ways = {**site_commands(), **at(running), "FLYBALL_DISABLE": "1"}
        tap.equal(power("set", 150, environment=ways).returncode, 0)
        tap.equal(power("set", 150, "--", "sh", "-c", "exit 5", environment=ways).returncode, 5)
        tap.equal((limits(), running.requests, (HOME / "log").read_text()), ([DEFAULT_W], [], ""))


tap.main(globals())
