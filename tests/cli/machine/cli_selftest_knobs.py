# SPDX-License-Identifier: Apache-2.0
"""`flyball selftest --turn-knobs` on emulated GPUs: limits bind, settle and come back, and nothing stays turned.

usage: cli_selftest_knobs.py FLYBALL SOURCE_ROOT
"""

import json
import os
import pathlib
import signal
import subprocess

import reach
import tap
from power_machine import (CLEAN, DEFAULT_W, EMULATOR, FLYBALL, HOME, NOBODY, RUNTIME, WHERE, back_within,
                           emulator, ended, entries, limits, machine, neighbour, pid_namespace, UNSEEN, wait_for)

STANDIN = pathlib.Path(os.environ["FLYBALL_TEST_BUILD"]) / "cuda" / "cuda_standin.so"
LOADED = {**CLEAN, "STANDIN_CUDA_WATTS": "330"}
SHORT = "--duration=0.5"
CHECKS = ["limits_bind", "limits_slow_the_work", "limits_settle", "limit_comes_back_after_kill", "limit_turned_back_at_end"]


def command(*arguments):
    return [FLYBALL, "selftest", "--turn-knobs", *WHERE, "--cuda", str(STANDIN), *arguments]


def selftest(*arguments, **keywords):
    keywords = {"env": LOADED, **keywords}
    if not any(argument.startswith("--duration") for argument in arguments):
        arguments += (SHORT,)
    return subprocess.run(command(*arguments), cwd=HOME, capture_output=True, text=True, timeout=tap.PATIENCE_S, check=False, **keywords)


def devices(result):
    tap.equal(result.returncode, 0, result.stderr)
    return json.loads(result.stdout)["devices"]


def findings(device):
    return {finding["check"]: finding for finding in device["findings"] if finding["check"].startswith("limit")}


def test_limits_of_two_gpus():
    with machine("--noise-w=1"):
        emulator("set", "--gpu", 1, "--limit-w", 350)
        result = selftest("--output", "report.json", "--duration=1")
        tap.equal(result.returncode, 0, result.stderr)
        seen = json.loads((HOME / "report.json").read_text())["devices"]
        tap.equal((limits(), entries()), ([DEFAULT_W, 350], []))
        for device, before_w in zip(seen, (DEFAULT_W, 350)):
            turning = device["turning"]
            tap.equal([level["power_limit_w"] for level in turning["levels"]], [400, 300, 200, 100])
            for level, power_w in zip(turning["levels"], (330, 300, 200, 100)):
                off_w = abs(level["mean_power_w"] - power_w)
                if off_w > 2 * level["mean_power_uncertainty_w"] or abs(level["mean_reading_w"] - power_w) > 0.03 * power_w:
                    raise AssertionError(level)
                tap.equal((level["settled_s"] >= 0, level["work_per_s"] > 0), (True, True), str(level))
            tap.equal(turning["levels"][3]["clock_gpu_mhz"] < turning["levels"][0]["clock_gpu_mhz"], True)
            tap.equal((turning["power_limit_before_w"], turning["power_limit_after_w"]), (before_w, before_w))
            tap.equal((turning["killed_at_limit_w"], turning["back_s"] > 0), (248, True))
            # How much work is done, and how soon the limit is back, is also the tested machine's.
            found = findings(device)
            tap.equal(list(found), CHECKS)
            for check in ("limits_bind", "limits_settle", "limit_turned_back_at_end"):
                tap.equal(found[check]["outcome"], "as_expected", found[check]["text"])
            tap.equal(device["windows"][1]["load_note"], None, "both loads ended when they were told")
        for piece in ("limit (W)", "keeps each limit that is below what the load draws: 300 W: ", "of the work a second",
                      "stay under the limit", "after a process was killed that held the limit at 248 W it was back",
                      "the limit is 350 W again, as before the test"):
            tap.contains(result.stdout, piece)
        tap.contains(result.stderr, "turning power limits, 4 of each GPU; what stood before is put back")


def test_gpus_that_somebody_else_uses():
    with machine():
        with tap.Program([EMULATOR, "train", "--gpu", "1", "--epochs", "1000"], env=CLEAN, cwd=HOME, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL) as training:
            training.stdout.readline()
            free, used = devices(selftest("--format", "json"))
            training.kill()
        tap.equal((limits(), entries()), ([DEFAULT_W] * 2, []))
        tap.equal((free["turning"]["tried"], used["turning"]["tried"], used["turning"]["levels"]), (True, False, []))
        tap.contains(used["turning"]["why_not"], f"process {training.pid}")
        tap.equal([finding["outcome"] for finding in findings(used).values()], ["not_known"])
        session = subprocess.Popen([FLYBALL, "power", "set", "300", *WHERE, "--for", "1h"], env=CLEAN, cwd=HOME, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_for(lambda: limits() == [300] * 2, "a session holds both")
        result = selftest("--format", "json")
        tap.contains(result.stderr, "the power limit of GPU 0 is not turned: the knobs of the GPU")
        tap.equal((result.returncode, limits()), (0, [300] * 2))
        session.terminate()
        ended(session)


def test_neighbour_that_cannot_be_seen():
    """In a container it measures, and turns nothing."""
    around = pid_namespace()
    with machine(gpus=1):
        with neighbour():
            result = tap.run([*around, *command(SHORT, "--format", "json")], cwd=HOME, env=LOADED)
        device, = devices(result)
        tap.equal((device["turning"]["tried"], device["turning"]["levels"], limits()), (False, [], [DEFAULT_W]))
        tap.contains(device["turning"]["why_not"], UNSEEN)


def test_without_permission():
    if os.geteuid() != 0:
        raise tap.Skip("another user can be had by root alone")
    HOME.chmod(0o755)
    with reach.runtime_of(RUNTIME, NOBODY), machine("--any-user=no", gpus=1):
        try:
            result = selftest("--format", "json", user=NOBODY, group=NOBODY, extra_groups=[])
        except PermissionError as error:
            raise tap.Skip("another user cannot reach the build") from error
        device, = devices(result)
        tap.contains(result.stderr, "its driver lets root alone set it; run 'sudo flyball selftest --turn-knobs'")
        tap.contains(device["turning"]["why_not"], "sudo flyball selftest --turn-knobs")
        tap.equal((limits(), entries()), ([DEFAULT_W], []))


def test_ended_in_the_middle():
    """By signals and by kill -9, at a level and while another process is to hold the limit."""
    with machine(gpus=1):
        for number, note in ((signal.SIGTERM, "turning"), (signal.SIGKILL, "turning"), (signal.SIGTERM, "killing")):
            with tap.Program(command(SHORT), env=LOADED, cwd=HOME, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True) as process:
                while f"note: {note}" not in process.stderr.readline():
                    tap.equal(process.poll(), None)
                if note == "turning":
                    wait_for(lambda: limits() == [200], "it is at 200 W")
                process.send_signal(number)
                if note == "turning":
                    back_within([DEFAULT_W], f"at 200 W, signal {number}")
                process.communicate(timeout=tap.PATIENCE_S)
                tap.equal(process.returncode, -number if number == signal.SIGKILL else 130)
            wait_for(lambda: limits() == [DEFAULT_W], f"turned back after signal {number}, {note}")
            wait_for(lambda: entries() == [], "the journal is empty")


tap.main(globals())
