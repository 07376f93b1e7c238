# SPDX-License-Identifier: Apache-2.0
"""Commands that turn knobs in place of the driver: `lease.commands` of `flyballd`.

usage: flyballd_overrides.py FLYBALL
"""
import node_machine
import power_machine
import tap
from public_machine import SET, ask, expect

def commands(text, mode=0o644):
    path = power_machine.HOME / "overrides.toml"
    path.write_text(text)
    path.chmod(mode)
    return path


def limit_command(before=""):
    """A command that sets limits, and writes down what it was called with."""
    log, path = power_machine.HOME / "overrides.log", power_machine.HOME / "override"
    log.write_text("")
    path.write_text(f"#!/bin/sh\necho \"$*\" >>{log}\n{before}\nexec '{power_machine.EMULATOR}' set --gpu \"$1\" --limit-w \"$2\"\n")
    path.chmod(0o755)
    return log, f"[set_power_limit]\ncommands = [\"'{path}' {{gpu_id}} {{power_limit_w}} {{power_limit_mw}}\"]\n"


def test_overrides():
    log, text = limit_command()
    with power_machine.machine():
        with node_machine.daemon(settings={"lease": {"commands": commands(text)}}) as daemon:
            expect(daemon, "POST", f"{SET}0&power_limit_mw=250000&block=true", 200, "")
            expect(daemon, "POST", "/gpu/set_persistence_mode?gpu_ids=0&enabled=true&block=true", 200, "")  # by the driver
            tap.equal((power_machine.limits(), log.read_text()), ([250, power_machine.DEFAULT_W], "0 250 250000\n"))
            tap.equal(ask(daemon, "POST", f"{SET}0&power_limit_mw=99000&block=true")[0], 400)
        # It goes back by the same way.
        tap.equal((power_machine.limits(), log.read_text().splitlines()[-1]), ([power_machine.DEFAULT_W] * 2, "0 400 400000"))


def test_overrides_that_fail():
    for before, pattern, reason in (("exit 3", "", "failed with status 3"), ("echo NOT supported", "error_pattern = '(?i)not SUPPORTED'\n", "error_pattern")):
        log, text = limit_command(before)
        with power_machine.machine(gpus=1), node_machine.daemon(settings={"lease": {"commands": commands(text + pattern)}}) as daemon:
            expect(daemon, "POST", f"{SET}0&power_limit_mw=250000&block=true", 500, reason)
            expect(daemon, "POST", f"{SET}0&power_limit_mw=240000&block=false", 200, "")
            daemon.said(reason)
            tap.equal(log.read_text().split("\n")[0], "0 250 250000")
    text = "[set_power_limit]\ncommands = ['/nowhere/at-all {gpu_id}']\n"
    with power_machine.machine(gpus=1), node_machine.daemon(settings={"lease": {"commands": commands(text)}}) as daemon:
        expect(daemon, "POST", f"{SET}0&power_limit_mw=250000&block=true", 500, "cannot be run")


def test_overrides_that_are_refused():
    good = "[set_power_limit]\ncommands = ['true']\n"
    for text, mode, reason in ((good + "timeout_s = 0\n", 0o644, "timeout_s"), (good + "more = 1\n", 0o644, "unknown key"),
                               ("[set_everything]\ncommands = ['true']\n", 0o644, "set_everything"),
                               ("[set_power_limit]\ncommands = []\n", 0o644, "commands"),
                               ("[set_power_limit]\ncommands = ['true {enabled}']\n", 0o644, "enabled"), (good, 0o666, "written by everybody")):
        with power_machine.machine(gpus=1):
            node_machine.write_config({"lease": {"commands": commands(text, mode)}})
            result = node_machine.run(f"--config={node_machine.CONFIG}")
            tap.equal((result.returncode != 0, reason in result.stderr), (True, True), f"{text}: {result.stderr}")
    with power_machine.machine(gpus=1), node_machine.daemon(settings={"lease": {"commands": commands(good, 0o664)}}) as daemon:
        daemon.said("the group of")


tap.main(globals())
