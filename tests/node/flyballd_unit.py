# SPDX-License-Identifier: Apache-2.0
"""The units of flyballd and of `flyball serve`, by systemd's own tools: they are correct, and expose little; and sockets that systemd opens.

usage: flyballd_unit.py FLYBALL
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import node_machine
import power_machine
import serve_machine
import tap

BUILD = pathlib.Path(sys.argv[1]).resolve().parent
SOURCE = pathlib.Path(sys.argv[2]).resolve()
# The exposure that systemd-analyze finds at most.
UNITS = {"flyballd": 3.0, "flyball-serve": 2.0}


def analyze(*arguments):
    if shutil.which("systemd-analyze") is None:
        raise tap.Skip("systemd-analyze is not installed")
    result = tap.run(["systemd-analyze", "--no-pager", *map(str, arguments)], env={**os.environ, "LC_ALL": "C.UTF-8", "SYSTEMD_COLORS": "0"})
    if "nrecognized option" in result.stderr:
        raise tap.Skip(f"this systemd-analyze does not know all of {arguments}")
    return result


def unit(name):
    """The unit as it is installed, but of the program that was built, and without its page, which is not installed."""
    text = (BUILD / f"{name}.service").read_text()
    tap.equal("@" in re.sub(r"(?m)^(#.*|System.*)$", "", text), False, text)
    text = re.sub(r"(?m)^Documentation=.*\n", "", text)
    return re.sub(r"(?m)^(Exec\w+=)/\S*/(flyballd?\b)", rf"\g<1>{BUILD}/\g<2>", text)


@contextlib.contextmanager
def file_of(name, text=None):
    with tempfile.TemporaryDirectory(prefix="flyball-unit-") as box:
        path = pathlib.Path(box) / f"{name}.service"
        path.write_text(unit(name) if text is None else text)
        yield path


def test_verify():
    for name in UNITS:
        with file_of(name) as path:
            result = analyze("verify", path)
            # Other units of the machine are not at issue.
            tap.equal([line for line in (result.stdout + result.stderr).splitlines() if name in line], [])
            tap.equal(result.returncode, 0, result.stderr)


def test_verify_finds_faults():
    for name in UNITS:
        with file_of(name, unit(name).replace("KillMode=mixed", "KillMode=muddled")) as path:
            result = analyze("verify", path)
            tap.contains(result.stdout + result.stderr, "kill mode")


def test_exposure():
    for name, most in UNITS.items():
        with file_of(name) as path:
            result = analyze("security", "--offline=true", path)
        found = re.search(rf"Overall exposure level for {name}.service: ([0-9.]+)", result.stdout)
        tap.equal(found is not None, True, result.stdout + result.stderr)
        tap.equal(float(found.group(1)) <= most, True, f"exposure {found.group(1)}, at most {most}\n{result.stdout}")


def test_each_open_item_is_justified():
    """Whatever systemd-analyze still finds open has its word in a comment of the unit."""
    for unit_name in UNITS:
        with file_of(unit_name) as path:
            result = analyze("security", "--offline=true", "--json=short", path)
        comments = "\n".join(line for line in unit(unit_name).splitlines() if line.startswith("#"))
        items = [item["name"] for item in json.loads(result.stdout) if item["exposure"] is not None]
        tap.equal(len(items) > 5, True, str(items))
        for name in items:
            # "CapabilityBoundingSet=~CAP_(DAC_*|FOWNER)", "RootDirectory=/RootImage=", "SystemCallFilter=~@privileged"
            word = name.split("=~", 1)[1].replace("*", "[A-Z_]*") if "=~" in name else "|".join(re.escape(part) for part in name.split("/"))
            tap.equal(re.search(word, comments) is not None, True, f"no comment of {unit_name} says why {name} is open")


def test_only_programs_of_every_debian():
    """What is neither Flyball's nor in each Debian may be missing where the unit runs."""
    for name in UNITS:
        programs = set(re.findall(r"(?m)^Exec\w+=[-+!@]*(\S+)", unit(name)))
        tap.equal(programs <= {"/bin/sh", str(BUILD / "flyball"), str(BUILD / "flyballd")}, True, str(programs))


def test_what_it_must_say():
    text = unit("flyballd")
    for line in ("Type=notify", "WatchdogSec=30", "Restart=always", "StartLimitIntervalSec=0", "KillMode=mixed", "RuntimeDirectory=flyballd",
                 "WantedBy=multi-user.target"):
        tap.contains(text, f"\n{line}\n")
    tap.contains(text, "\nExecStopPost=")
    tap.contains(text, "flyballd restore\n")


def test_shared_journal_is_of_no_unit():
    for path in [*SOURCE.glob("data/*.service*"), *SOURCE.glob("docs/**/*.md")]:
        found = re.search(r"(?m)^\s*RuntimeDirectory=.*\bflyball(\s|$)", path.read_text())
        tap.equal(found, None, f"{path} names /run/flyball")


def test_socket_activation():
    """A socket that systemd opened stands in for the configured address, and stays when the daemon ends; it is known also in JSON."""
    activate = shutil.which("systemd-socket-activate")
    if activate is None:
        raise tap.Skip("systemd-socket-activate is not installed")
    with power_machine.machine():
        node_machine.STATE.mkdir(exist_ok=True)
        node_machine.write_config()
        more = power_machine.HOME / "more.sock"
        environment = [f"--setenv={name}={power_machine.CLEAN[name]}" for name in ("HOME", "FLYBALL_EMULATOR_STATE", "PATH")]
        process = subprocess.Popen([activate, f"--listen={node_machine.SOCKET}", f"--listen={more}", *environment, node_machine.FLYBALLD,
                                    f"--config={node_machine.CONFIG}"], env=power_machine.CLEAN, cwd=power_machine.HOME, stderr=subprocess.PIPE, text=True)
        talk = []
        try:
            talk.append(process.stderr.readline())
            # The first connection starts the daemon.
            for path in (node_machine.SOCKET, more):
                connection = serve_machine.UnixConnection(str(path), serve_machine.PATIENCE_S)
                connection.request("GET", "/v1/gpus")
                answer = connection.getresponse()
                tap.equal((answer.status, len(json.loads(answer.read())["gpus"])), (200, 2), str(path))
                connection.close()
            process.terminate()
            talk.append(process.stderr.read())
            tap.equal(process.wait(serve_machine.PATIENCE_S), 0, "".join(talk))
        finally:
            process.kill()
            process.wait()
            process.stderr.close()
        said = [line.split("listening on ")[1] for line in "".join(talk).splitlines() if "flyballd: " in line and "listening on " in line]
        tap.equal([word for word in said if word.startswith("unix:")], [f"unix:{node_machine.SOCKET}", f"unix:{more}"], "".join(talk))
        tap.equal(len([word for word in said if word.startswith("http:")]), 1, "".join(talk))
        # Who opened a socket removes it; others may still listen on it.
        for path in (node_machine.SOCKET, more):
            tap.equal(path.exists(), True)
            path.unlink()
    node_machine.clean()


tap.main(globals())
