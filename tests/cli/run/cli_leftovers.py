# SPDX-License-Identifier: Apache-2.0
"""What a program left that was killed together with its guard is put back by the next start of any command.

usage: cli_leftovers.py FLYBALL SOURCE_ROOT
"""

import contextlib
import fcntl
import json
import os
import signal
import subprocess

import reach
import tap
from power_machine import (CLEAN, DEFAULT_W, FLYBALL, HOME, KNOBS, NOBODY, RUNTIME, WHERE, back_within, emulator, ended,
                           entries, gone, guard_of, kill_both, kill_program, left_behind, limits, machine, power, wait_for)

# Each command that opens GPUs, with options that make it short.
COMMANDS = (["devices"], ["doctor"], ["monitor", "--once"], ["power", "get"], ["run"],
            ["record", "--duration=0", "recording"], ["selftest", "--duration=0.5", "--load=none"])
QUICK = (["devices"], ["run"])
PROGRAM = ["sh", "-c", "cat; exit 3"]


def words(command, *more):
    return [FLYBALL, *command, *more, *WHERE, *(["--", *PROGRAM] if command[0] == "run" else [])]


def flyball(command, *more, **keywords):
    (HOME / "recording").unlink(missing_ok=True)
    keywords = {"env": CLEAN, "input": "", "timeout": 60, **keywords}
    return subprocess.run(words(command, *more), cwd=HOME, capture_output=True, text=True, check=False, **keywords)


def of_leftovers(result):
    """The lines that say what became of leftovers."""
    return [line for line in result.stderr.splitlines() if "left" in line]


def test_any_command_puts_back():
    with machine():
        for command in COMMANDS:
            with left_behind(150):
                result = flyball(command)
                tap.equal(result.returncode, 3 if command[0] == "run" else 0, result.stderr)
                tap.equal((limits(), entries()), ([DEFAULT_W] * 2, []), command)
                lines = of_leftovers(result)
                tap.equal(len(lines), 2, f"a line for each GPU: {lines}")
                for gpu, line in enumerate(lines):
                    tap.contains(line, f"flyball: note: the power limit of GPU {gpu}, left at 150 W by 'flyball power'")
                    tap.contains(line, "is 400 W again")


def test_gpus_that_were_not_asked_for_too():
    with machine(), left_behind(150):
        result = flyball(["run"], "-i", "none", env={**CLEAN, "CUDA_VISIBLE_DEVICES": "0"})
        tap.equal((limits(), entries(), len(of_leftovers(result))), ([DEFAULT_W] * 2, [], 2))


def test_what_is_not_left_is_left_alone():
    with machine():
        # What was set to stay, and what somebody holds who lives.
        tap.equal(power("set", 250, "-i", 0).returncode, 0)
        with tap.Program([FLYBALL, "power", "set", "150", "-i", "1", *WHERE, "--for", "1h"], env=CLEAN, cwd=HOME,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as session:
            wait_for(lambda: limits() == [250, 150], "both are set")
            for command in QUICK:
                tap.equal(of_leftovers(flyball(command, "--quiet")), [], command)
                tap.equal(limits(), [250, 150], command)
            session.terminate()
        tap.equal((limits(), entries()), ([250, DEFAULT_W], ["kept"]))
        tap.equal(power("restore", "--kept").returncode, 0)
        # What another program has set since.
        with left_behind(150):
            emulator("set", "--gpu", 1, "--limit-w", 333)
            lines = of_leftovers(flyball(["devices"]))
            tap.equal((limits(), entries(), len(lines)), ([DEFAULT_W, 333], [], 2))
            tap.contains(lines[1], "was changed by another program to 333 W since; it is left at that")


def test_a_start_waits_for_nobody():
    """A lock that a guard holds, whose session has died, is waited for at the end of a program and not before it."""
    with machine(gpus=1), left_behind(150, gpus=1):
        lock, = KNOBS.glob("*.lock")
        with open(lock, "rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with tap.Program(words(["run"]), env=CLEAN, cwd=HOME, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE) as process:
                process.stdin.write("running\n")
                process.stdin.flush()
                tap.equal((process.stdout.readline(), limits()), ("running\n", [150]))
                tap.equal(flyball(["devices"]).returncode, 0)
                tap.equal((limits(), entries()), ([150], ["turned"]))
                process.stdin.close()
                fcntl.flock(held, fcntl.LOCK_UN)
                tap.equal(process.wait(timeout=tap.PATIENCE_S), 3)
                tap.equal((limits(), entries()), ([DEFAULT_W], []))
                tap.contains(process.stderr.read(), "is 400 W again")


def test_without_entries_nothing_is_made():
    with machine():
        nowhere = HOME / "nowhere"
        for command in QUICK:
            flyball(command, env={**CLEAN, "FLYBALL_RUNTIME_DIR": str(nowhere)})
            tap.equal(nowhere.exists(), False, command)


def test_the_operators_lock():
    readonly = HOME / "root/etc/flyball/readonly"
    with machine(), left_behind(150):
        readonly.parent.mkdir(parents=True)
        readonly.touch()
        result = flyball(["devices"])
        tap.equal(limits(), [150, 150])
        tap.contains(result.stderr, "a killed program left a GPU's knobs turned")
        readonly.unlink()
        tap.equal(flyball(["devices"]).returncode, 0)
        tap.equal(limits(), [DEFAULT_W] * 2)


def test_a_recording_is_not_the_gpu():
    with machine():
        flyball(["record", "--duration=0", "recording"])
        with left_behind(150):
            for command in (["devices"], ["power", "restore"]):
                subprocess.run([FLYBALL, *command, "--replay", "recording"], env=CLEAN, cwd=HOME, capture_output=True, check=False)
                tap.equal((limits(), entries()), ([150, 150], ["turned"] * 2), command)
            flyball(["devices"])


def test_without_permission():
    if os.geteuid() != 0 or not os.access(FLYBALL, os.X_OK):
        raise tap.Skip("another user can be had by root alone")
    HOME.chmod(0o755)
    with reach.runtime_of(RUNTIME, NOBODY), machine("--any-user=no"), left_behind(150):
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        for command in (*QUICK, ["doctor"], ["power", "get"]):
            try:
                result = flyball(command, **user)
            except PermissionError as error:
                raise tap.Skip("another user cannot reach the build") from error
            lines = of_leftovers(result) + [line for line in result.stderr.splitlines() if "killed program" in line]
            tap.equal(lines, ["flyball: warning: what a killed program set on GPU 0, 1 could not be put back by this user; run "
                              "'sudo flyball power restore'"], command)
            tap.equal((limits(), entries()), ([150, 150], ["turned"] * 2))
        flyball(["devices"])


def run_around(*arguments):
    """`flyball run` around a session that turns knobs: both, and the program that the session started."""
    run = subprocess.Popen([FLYBALL, "run", *WHERE, "--", FLYBALL, "power", "set", *WHERE, *arguments], env=CLEAN, cwd=HOME, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    session, = [int(pid) for pid in wait_children(run.pid)]
    return run, session


def wait_children(pid):
    path = f"/proc/{pid}/task/{pid}/children"
    found = []

    def any_child():
        with open(path, encoding="ascii") as children:
            found[:] = children.read().split()
        return len(found) == 1

    wait_for(any_child, "it has started its program")
    return found


class Pid:
    """What guard_of and kill_both ask of a process that is not ours."""

    def __init__(self, pid):
        self.pid = pid

    def wait(self):
        wait_for(lambda: gone(self.pid), "it has ended")


def test_run_guards_as_the_parent():
    with machine():
        for arguments in (["150", "--", "sh", "-c", "echo $$; exec sleep 30"], ["150", "--for", "1h"]):
            run, session = run_around(*arguments)
            program = int(run.stdout.readline()) if "--" in arguments else 0
            wait_for(lambda: limits() == [150, 150], "both are set")
            kill_both(Pid(session))
            back_within([DEFAULT_W] * 2, "what both left is put back")
            tap.equal(run.wait(timeout=tap.PATIENCE_S), 128 + signal.SIGKILL)
            tap.equal(entries(), [])
            if program:
                kill_program(program)
            tap.contains(ended(run)[2], "is 400 W again")


def test_run_leaves_others_alone():
    """A session that its program left running keeps its limits when the program ends."""
    with machine():
        inner = f"{FLYBALL} power set 150 {' '.join(WHERE)} --for 1h >/dev/null 2>&1 & echo $!"
        result = subprocess.run([FLYBALL, "run", *WHERE, "--", "sh", "-c", inner + "; sleep 0.2"], env=CLEAN, cwd=HOME,
                                capture_output=True, text=True, timeout=tap.PATIENCE_S, check=False)
        session = int(result.stdout)
        wait_for(lambda: limits() == [150, 150], "both are set")
        guard = guard_of(Pid(session))
        os.kill(session, signal.SIGTERM)
        back_within([DEFAULT_W] * 2, "the session turned back")
        wait_for(lambda: gone(guard) and entries() == [], "the guard has ended")


tap.main(globals())
