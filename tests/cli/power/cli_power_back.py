# SPDX-License-Identifier: Apache-2.0
"""flyball power from outside: what is set for a time or around a program is turned back, whoever is killed.

usage: cli_power_back.py FLYBALL SOURCE_ROOT
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time

import tap
from power_machine import (CLEAN, DEFAULT_W, EMULATOR, HOME, KNOBS, SLEEPER, back_within, command, emulator, ended,
                           entries, gone, guard_of, kill_program, left_behind, limits, machine, power, rows_of, start, wait_for, FLYBALL, WHERE)


def test_for_a_time():
    with machine():
        emulator("set", "--gpu", 1, "--limit-w", 300)
        process = start("set", "150W", "--for", "1h")
        wait_for(lambda: limits() == [150, 150], "both are set")
        row = rows_of(power("get", "--format", "json"))[0]
        tap.contains(row["held_by"], f"process {process.pid}")
        tap.equal((row["may_be_set"], row["journal_turned_from_w"]), ("no", 400.0))
        tap.contains(power("get").stdout, "400 W before")
        process.terminate()
        ended(process)
        tap.equal(limits(), [DEFAULT_W, 300])
        begin = time.monotonic()
        status, output, talk = ended(start("set", "150W", "--for", "1.2s"))
        tap.equal((status, limits()), (0, [DEFAULT_W, 300]))
        tap.equal(time.monotonic() - begin >= 1.2, True, "it lasts the time")
        tap.contains(output, "150")
        tap.contains(talk, "turned back in 1.2s")
        tap.contains(talk, "GPU 1: 300 W again")


def test_signals_turn_back_at_once():
    with machine():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = start("set", 150, "--for", "1h")
            wait_for(lambda: limits() == [150, 150], "both are set")
            process.send_signal(number)
            back_within([DEFAULT_W] * 2, f"signal {number} turned back")
            tap.equal(ended(process)[0], 0)


def test_statuses_of_a_program():
    plain = HOME / "plain"
    plain.write_text("exit 7\n")
    with machine(gpus=1):
        for program, status in ((["true"], 0), (["sh", "-c", "exit 7"], 7), (["sh", "-c", "exit 255"], 255), ([str(plain)], 126),
                                (["no-such-program"], 127), (["sh", "-c", "kill -TERM $$"], 143), (["sh", "-c", "kill -KILL $$"], 137)):
            result = power("set", 150, "--", *program)
            tap.equal((result.returncode, result.stdout, limits()), (status, "", [DEFAULT_W]), program)
        tap.contains(power("set", 150, "--", "no-such-program").stderr, "'no-such-program' cannot be run: there is no such command")


def test_a_program_runs_at_the_limit():
    with machine():
        result = power("set", "50%", "-i", "1", "--", EMULATOR, "show", "--json")
        tap.equal([gpu["limit_w"] for gpu in json.loads(result.stdout)["gpus"]], [DEFAULT_W, 200])
        tap.contains(result.stderr, "GPU 1: 200 W until the program has ended, 400 W before")
        tap.contains(result.stderr, "GPU 1: 400 W again")
        tap.equal(limits(), [DEFAULT_W] * 2)
        result = power("set", 200, "--quiet", "--", "sh", "-c", "cat; echo talk >&2; echo $1", "sh", "--require", input="in")
        tap.equal((result.returncode, result.stdout, result.stderr), (0, "in--require\n", "talk\n"))


def test_a_program_is_as_it_would_be_alone():
    show = "grep -E '^Sig(Ign|Blk|Cgt)' /proc/self/status; ls /proc/self/fd; pwd; ulimit -a; umask; env | grep -v '^_=' | sort"
    with machine(gpus=1):
        alone = subprocess.run(["sh", "-c", show], env=CLEAN, cwd=HOME, capture_output=True, text=True, check=False)
        tap.equal(power("set", 150, "--", "sh", "-c", show).stdout, alone.stdout)


def test_a_reader_of_stderr_that_has_left():
    with machine(gpus=1):
        reader, writer = os.pipe()
        os.close(reader)
        for streams in ({"stderr": writer}, {"preexec_fn": lambda: os.close(2)}):
            result = subprocess.run(command("set", 150, "--", EMULATOR, "show", "--json"), env=CLEAN, cwd=HOME, check=False,
                                    stdout=subprocess.PIPE, **streams)
            tap.equal((result.returncode, json.loads(result.stdout)["gpus"][0]["limit_w"]), (0, 150.0))
        os.close(writer)
        tap.equal(limits(), [DEFAULT_W])


def test_signals_reach_the_program():
    with machine(gpus=1):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            process = start("set", 150, "--", *SLEEPER)
            process.stdout.readline()
            tap.equal(limits(), [150])
            process.send_signal(number)
            back_within([DEFAULT_W], f"signal {number} ended it")
            tap.equal(ended(process)[0], 128 + number)
        process = start("set", 150, "--", "sh", "-c", "trap 'echo heard; exit 3' TERM; echo ready; while :; do sleep 0.02; done")
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        tap.equal(ended(process)[:2], (3, "heard\n"))


def test_kill_9():
    with machine():
        for arguments in (["--", *SLEEPER], ["--for", "1h"]):
            process = start("set", 150, *arguments)
            program = int(process.stdout.readline()) if arguments[0] == "--" else 0
            wait_for(lambda: limits() == [150, 150], "both are set")
            process.kill()
            back_within([DEFAULT_W] * 2, "the guard has turned back")
            wait_for(lambda: entries() == [], "the journal is empty")
            if program > 0:
                tap.equal(gone(program), False, "the program runs on")
                kill_program(program)
            process.wait()
            process.stdout.close()
            process.stderr.close()
        # The GPU is free again.
        tap.equal(power("set", 200, "--", "true").returncode, 0)


def test_a_killed_guard():
    """The session turns back by itself, and the program goes on."""
    with machine():
        process = start("set", 150, "--", "sh", "-c", "echo $$; read line; exit 5", stdin=subprocess.PIPE)
        process.stdout.readline()
        os.kill(guard_of(process), signal.SIGKILL)
        back_within([DEFAULT_W] * 2, "the session has turned back")
        process.stdin.write("\n")
        status, _, talk = ended(process)
        tap.equal((status, limits()), (5, [DEFAULT_W] * 2))
        tap.contains(talk, "guard")
        process = start("set", 150, "--for", "1h")
        wait_for(lambda: limits() == [150, 150], "both are set")
        os.kill(guard_of(process), signal.SIGKILL)
        back_within([DEFAULT_W] * 2, "the session has turned back")
        tap.equal(ended(process)[0], 75)


def test_both_killed():
    with machine():
        with left_behind(150):
            rows = rows_of(power("restore", "-i", "1", "--format", "json"))
            tap.equal([(row["index"], row["power_limit_before_w"], row["power_limit_set_w"], row["end"]) for row in rows],
                      [(1, 400.0, 150.0, "restored")])
            tap.equal(limits(), [150, DEFAULT_W])
            tap.equal(power("restore").returncode, 0)
            tap.equal(limits(), [DEFAULT_W] * 2)
        with left_behind(200):
            # The next session repairs what it finds before it turns anything.
            result = power("set", 300, "--", EMULATOR, "show", "--json")
            tap.equal([gpu["limit_w"] for gpu in json.loads(result.stdout)["gpus"]], [300, 300])
            tap.equal(limits(), [DEFAULT_W] * 2)


def test_restore_says_what_it_did_not_do():
    """By its status: an entry of a GPU that is not here, one that is damaged, a driver that refuses, and the gravest of several."""
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text()
    head = f"flyball-journal 1\ngpu GPU-not-here\nboot {boot}by 999999999 1 dead\ndate 1700000000\n"
    absent = KNOBS / "GPU-not-here.turned"
    faults = HOME / "faults"
    faults.write_text("call nvmlDeviceSetPowerManagementLimit return UNKNOWN\n")
    nothing = HOME / "no-faults"
    nothing.touch()
    with machine(gpus=1):
        absent.write_text(f"{head}turn power_limit_mw 400000 150000 150000\nend\n")
        result = power("restore", "--format", "json")
        tap.equal((result.returncode, [row["end"] for row in json.loads(result.stdout)["rows"]]), (69, ["no such GPU"]), result.stderr)
        tap.equal(power("restore", "-i", "0").returncode, 0, "one that was not asked for")
        with left_behind(150, gpus=1, others=1):
            emulator("set", "--faults", faults)
            result = power("restore")
            tap.equal((result.returncode, limits(), entries()), (74 if os.geteuid() == 0 else 77, [150], ["turned"] * 2), result.stderr)
            emulator("set", "--faults", nothing)
            tap.equal((power("restore").returncode, limits(), entries()), (69, [DEFAULT_W], ["turned"]))
        absent.unlink()
        absent.with_name(f"{next(KNOBS.glob('*.lock')).stem}.turned").write_text("flyball-journal 1\n")
        result = power("restore")
        tap.equal((result.returncode, entries()), (65, []), result.stderr)
        tap.equal(power("restore").returncode, 0, "it was moved aside")


def test_another_program_wins():
    with machine():
        # While the session lives; after its end; after a kill.
        process = start("set", 150, "--", *SLEEPER)
        process.stdout.readline()
        emulator("set", "--gpu", 0, "--limit-w", 222)
        process.terminate()
        status, _, talk = ended(process)
        tap.equal((status, limits()), (143, [222, DEFAULT_W]))
        tap.contains(talk, "222 W")
        emulator("set", "--limit-w", DEFAULT_W)

        process = start("set", 150, "--for", "1h")
        wait_for(lambda: limits() == [150, 150], "both are set")
        emulator("set", "--gpu", 1, "--limit-w", 333)
        process.kill()
        back_within([DEFAULT_W, 333], "the guard left what is not ours")
        ended(process)
        wait_for(lambda: entries() == [], "the journal is empty")
        emulator("set", "--limit-w", DEFAULT_W)

        with left_behind(150):
            emulator("set", "--gpu", 1, "--limit-w", 333)
            rows = rows_of(power("restore", "--format", "json"))
            tap.equal([row["end"] for row in sorted(rows, key=lambda row: row["index"])], ["restored", "changed by another"])
            tap.equal(limits(), [DEFAULT_W, 333])


def test_one_session_a_gpu():
    with machine():
        process = start("set", 150, "-i", "0", "--", *SLEEPER)
        process.stdout.readline()
        for gpus in ("0", "0,1"):
            result = power("set", 200, "-i", gpus)
            tap.equal((result.returncode, result.stdout, limits()), (75, "", [150, DEFAULT_W]))
            tap.contains(result.stderr, f"process {process.pid}")
        tap.equal(power("reset").returncode, 75)
        # The other one is free, and a session of its own.
        other = start("set", 250, "-i", "1", "--", *SLEEPER)
        other.stdout.readline()
        tap.equal(limits(), [150, 250])
        result = power("restore", "--format", "json")
        tap.equal((result.returncode, {row["end"] for row in json.loads(result.stdout)["rows"]}), (75, {"in use"}))
        for each in (process, other):
            each.terminate()
            ended(each)
        tap.equal(limits(), [DEFAULT_W] * 2)


def test_ones_own_program_is_no_stranger():
    """A training under the command itself: its limit can be turned, and is turned back while it runs."""
    with machine(gpus=1):
        process = start("set", 150, "--", EMULATOR, "train", "--epochs", "1000")
        process.stdout.readline()
        tap.equal(limits(), [150])
        process.terminate()
        tap.equal((ended(process)[0], limits()), (143, [DEFAULT_W]))



def script(text):
    """A fault script in place of the present one."""
    path = HOME / "faults"
    path.write_text(text)
    emulator("set", "--faults", path)


def test_a_range_that_shrinks():
    """What stood before is out of reach: the nearest is set, the rest is owed, and everybody may turn the GPU meanwhile."""
    with machine(gpus=1):
        for end in ("set", "reset", "wide"):
            process = start("set", 150, "--", *SLEEPER)
            process.stdout.readline()
            script("range 100 260\n")
            process.terminate()
            _, _, talk = ended(process)
            tap.equal((limits(), entries()), ([260], ["owed"]))
            tap.contains(talk, "GPU 0 is owed what stood before 'flyball power'")
            tap.contains(talk, "power limit 400 W, meanwhile 260 W; it is tried again, and 'flyball power set' or 'flyball power reset' ends it")
            shown = power("get")
            tap.contains(shown.stdout, "400 W before, owed")
            tap.contains(shown.stderr, "is owed what stood before")
            row = rows_of(power("get", "--format", "json"))[0]
            tap.equal((row["journal_owed_w"], row["journal_turned_from_w"], row["held_by"], row["power_limit_w"]), (400.0, None, "", 260.0))
            doctor = subprocess.run([FLYBALL, "doctor", *WHERE], env=CLEAN, cwd=HOME, capture_output=True, text=True, timeout=60, check=False)
            tap.contains(doctor.stdout + doctor.stderr, "is owed what stood before")
            restore = power("restore", "--format", "json")
            tap.equal((restore.returncode, [each["end"] for each in json.loads(restore.stdout)["rows"]]), (75, ["owed"]))
            if end == "set":
                result = power("set", 250)
                tap.equal((result.returncode, limits(), entries()), (0, [250], ["kept"]), result.stderr)
                script("range 100 400\n")
                tap.equal(power("restore", "--kept").returncode, 0)
            elif end == "reset":
                # Out of reach as well; there is nothing that would go back to it.
                result = power("reset")
                tap.equal((result.returncode, limits(), entries()), (0, [260], []), result.stderr)
                script("range 100 400\n")
                emulator("set", "--limit-w", DEFAULT_W)
            else:
                script("range 100 400\n")
                power("get")
                wait_for(lambda: entries() == [], "it is settled")
            tap.equal((limits(), entries()), ([DEFAULT_W], []), end)


tap.main(globals())
