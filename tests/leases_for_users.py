# SPDX-License-Identifier: Apache-2.0
"""Users to whom the driver lets nothing be set turn through leases, hold the lock and a journal of their own, and all goes back whoever dies.

usage: leases_for_users.py FLYBALL SOURCE_ROOT
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess

import tap
from power_machine import BUILT, CLEAN, DEFAULT_W, DRIVER, EMULATOR, HOME, KNOBS, SANITIZED, emulator, entries, guard_of, limits, wait_for
from ways_machine import ROOT, USER, locked_machine, power, start

DAEMON = pathlib.Path(os.environ["FLYBALL_TEST_BUILD"]) / "lease_daemon"
GUARD = pathlib.Path(BUILT).parent / "flyball-guard"
SOCKET, AUDIT = HOME / "leases.sock", HOME / "audit.jsonl"
AT = {"FLYBALL_KNOB_DAEMON": str(SOCKET)}


class Daemon:
    def __init__(self):
        SOCKET.unlink(missing_ok=True)
        self.log = open(HOME / "leases.log", "a", encoding="utf-8")
        self.process = subprocess.Popen([DAEMON, SOCKET, KNOBS, DRIVER, GUARD, AUDIT], env=CLEAN, stderr=self.log)
        wait_for(SOCKET.exists, "the daemon listens")

    def kill(self, guards=True):
        """With its guards, or without."""
        if guards:
            self.process.send_signal(signal.SIGSTOP)
            for guard in guards_of(self.process.pid):
                os.kill(guard, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        self.log.close()

    def stop(self):
        self.process.terminate()
        tap.equal(self.process.wait(timeout=60), 0)
        self.log.close()


def guards_of(pid):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if words[0] == b"flyball-guard" and words[2:3] == [str(pid).encode()]:
                found.append(int(path.parent.name))
    return found


def daemons_entries():
    directory = KNOBS / "daemon"
    return sorted(path.suffix[1:] for path in directory.iterdir() if path.suffix == ".turned") if directory.exists() else []


@contextlib.contextmanager
def leased_machine(gpus=2):
    if not ROOT or SANITIZED:
        raise tap.Skip("root's part is not played here: not root, or built with sanitizers")
    AUDIT.unlink(missing_ok=True)
    with locked_machine(gpus=gpus):
        try:
            yield
            wait_for(lambda: daemons_entries() == [], "the daemon's journal is empty")
        finally:
            shutil.rmtree(KNOBS / "daemon", ignore_errors=True)


def user_session(*arguments):
    session = start("set", *arguments, environment=AT)
    wait_for(lambda: limits() == [int(arguments[0])] * len(limits()), "the session has turned")
    return session


def close(session):
    session.wait(timeout=60)
    session.stdout.close()
    session.stderr.close()


def back(what):
    wait_for(lambda: limits() == [DEFAULT_W] * len(limits()), what)
    wait_for(lambda: entries() == [], f"{what}: the journal is empty")


def audit():
    return [json.loads(line) for line in AUDIT.read_text().splitlines()]


def test_a_users_session():
    with leased_machine():
        daemon = Daemon()
        result = power("set", 150, "--", EMULATOR, "show", "--json", environment=AT)
        tap.equal(result.returncode, 0, result.stderr)
        tap.equal([gpu["limit_w"] for gpu in json.loads(result.stdout)["gpus"]], [150, 150])
        tap.contains(result.stderr, f"by the daemon at '{SOCKET}'")
        back("the session has ended")
        turns = [(line["uid"], line["quantity"], line["from"], line["to"]) for line in audit() if line["what"] == "turn"]
        tap.equal((USER["user"], "power_limit_mw", 400000, 150000) in turns, True, turns)
        daemon.stop()


def test_the_lock_and_both_journals():
    with leased_machine(gpus=1):
        daemon = Daemon()
        session = user_session("150", "--for", "1h")
        wait_for(lambda: entries() == ["turned"], "the session has written it down")
        tap.equal(daemons_entries(), ["turned"])
        # Root does not take the GPU from it.
        result = subprocess.run([*map(str, session.args[:2]), "set", *session.args[3:-3], "200", "--require", "--", "true"], env=CLEAN, cwd=HOME,
                                capture_output=True, text=True, check=False)
        tap.equal((result.returncode != 0, limits()), (True, [150]), result.stderr)
        session.send_signal(signal.SIGTERM)
        close(session)
        back("the session was ended")
        daemon.stop()


def test_deaths():
    """Of the session, its guard, the daemon and its guards: each of them, and all."""
    for dead in ("session", "session guard", "daemon", "daemon guards", "session guard daemon", "session guard daemon guards"):
        with leased_machine(gpus=1):
            daemon = Daemon()
            session = user_session("150", "--for", "1h")
            wait_for(lambda: entries() == ["turned"], "the session has written it down")
            if "session guard" in dead:
                guard = guard_of(session)
                session.send_signal(signal.SIGSTOP)
                os.kill(guard, signal.SIGKILL)
            if "daemon" in dead:
                daemon.kill(guards="guards" in dead)
            if "session" in dead:
                session.kill()
                close(session)
            if "daemon" in dead:
                daemon = Daemon()
            wait_for(lambda: limits() == [DEFAULT_W], f"it is back after the death of {dead}")
            if "session" not in dead:
                session.terminate()
                close(session)
            back(f"the death of {dead}")
            tap.equal(daemon.process.poll(), None, "the daemon lives")
            daemon.stop()


def test_another_program_wins():
    with leased_machine(gpus=1):
        daemon = Daemon()
        session = user_session("150", "--for", "1h")
        emulator("set", "--gpu", 0, "--limit-w", 333)
        wait_for(lambda: "foreign" in [line["what"] for line in audit()], "the daemon has seen it")
        session.terminate()
        close(session)
        tap.equal(limits(), [333])
        daemon.stop()


tap.main(globals())
