# SPDX-License-Identifier: Apache-2.0
"""The example of a session, examples/digits, as a user would run it: on an emulated GPU, without one, and killed.

usage: session_digits.py FLYBALL SOURCE_ROOT
"""

import os
import pathlib
import re
import signal
import sqlite3
import subprocess

import tap
from power_machine import BUILT, CLEAN, DEFAULT_W, HOME, LIBRARIES, back_within, limits, machine, wait_for

DIGITS = pathlib.Path(BUILT).parent / "examples" / "digits"
STATE = HOME / "state-home"
STORE = STATE / "flyball" / "store.sqlite"
EXACT = ["--sensor", "exact", "--counter-period-ms", "0"]
LINE = re.compile(r"trial (\d+): batch size (\d+), (\d+) epochs, (reached|stop|go on)(?:, (\d+) J in ([\d.]+) s)?(?:, at (\d+) W)?\n")


def environment(**more):
    return {**CLEAN, "XDG_STATE_HOME": str(STATE), "LD_LIBRARY_PATH": os.path.abspath(LIBRARIES),
            "FLYBALL_GUARD": str(pathlib.Path(BUILT).parent / "flyball-guard"), **more}


def digits(*arguments, **more):
    if not DIGITS.exists():
        raise tap.Skip("the example is not built")
    return tap.run([DIGITS, *arguments], env=environment(**more), cwd=HOME, timeout=tap.PATIENCE_S)


def rows(query):
    with sqlite3.connect(STORE) as store:
        return store.execute(query).fetchall()


def test_learns_from_night_to_night():
    with machine(*EXACT, gpus=1):
        first = digits("3")
        second = digits("3")
        tap.equal(limits(), [DEFAULT_W])
    for night, result in ((1, first), (2, second)):
        tap.equal((result.returncode, result.stderr), (0, ""))
        trials = LINE.findall(result.stdout)
        tap.equal([int(trial[0]) for trial in trials][:1], [night], result.stdout)
        tap.equal(trials[-1][3], "reached", result.stdout)
        tap.equal([float(trial[4]) > 50 * float(trial[5]) > 0 for trial in trials], [True] * len(trials), result.stdout)
        tap.equal("not tuned" in result.stdout, False, result.stdout)
    tap.equal(LINE.findall(first.stdout)[0][1], "128")
    kinds = [kind for (kind,) in rows("SELECT kind FROM event ORDER BY number")]
    tap.equal(kinds[:3], ["defined", "proposed", "attempt"])
    tap.equal((kinds.count("ended"), kinds.count("epoch") >= 6), (2, True), kinds)


def test_killed():
    """The limit goes back, and the log has what was reported."""
    with machine(*EXACT, gpus=1), tap.Program([DIGITS, "3"], env=environment(FLYBALL_RUN_ID="killed"), cwd=HOME,
                                              stdout=subprocess.DEVNULL) as process:
        wait_for(lambda: limits() != [DEFAULT_W], "a limit is set")
        process.send_signal(signal.SIGKILL)
        process.wait()
        back_within([DEFAULT_W], "kill -9")
        ((trial,),) = rows("SELECT max(trial) FROM event")
        again = digits("3", FLYBALL_RUN_ID="killed")
    tap.equal(again.returncode, 0, again.stderr)
    tap.equal(rows(f"SELECT count(*) FROM event WHERE kind = 'attempt' AND trial = {trial}"), [(2,)])


def test_without_a_gpu():
    """It trains all the same, and says why nothing is learnt."""
    result = digits("1", FLYBALL_EMULATOR_STATE="", LD_LIBRARY_PATH="", XDG_STATE_HOME=str(HOME / "other"))
    tap.equal((result.returncode, LINE.findall(result.stdout)[-1][3]), (0, "reached"), result.stdout)
    tap.contains(result.stdout, "not tuned: there is no GPU here whose energy could be measured")


def test_without_a_log():
    result = digits("3", FLYBALL_EMULATOR_STATE="", LD_LIBRARY_PATH="", FLYBALL_STORE=str(HOME / "no" / "where.sqlite"))
    tap.equal((result.returncode, LINE.findall(result.stdout)[-1][1:4:2]), (0, ("128", "reached")), result.stdout)
    tap.equal(result.stdout.count("not tuned: "), 1, result.stdout)


def test_disabled():
    home = HOME / "untouched"
    result = digits("3", FLYBALL_DISABLE="1", XDG_STATE_HOME=str(home))
    tap.equal((result.returncode, LINE.findall(result.stdout)[-1][1:4:2]), (0, ("128", "reached")), result.stdout)
    tap.equal((result.stdout.count("FLYBALL_DISABLE is set"), home.exists()), (1, False), result.stdout)


os.makedirs(STATE, exist_ok=True)
tap.main(globals())
