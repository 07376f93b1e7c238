# SPDX-License-Identifier: Apache-2.0
"""flyball run --tune from outside, on emulated GPUs: what is chosen, what is turned back, and what becomes of the program.

usage: cli_tune.py FLYBALL SOURCE_ROOT
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import tap
from power_machine import (CLEAN, DEFAULT_W, EMULATOR, FLYBALL, HOME, NOBODY, SANITIZED, WHERE, back_within, emulator, ended, gone, guard_of,
                           kill_program, limits, machine, wait_for)

EXACT = ["--sensor", "exact", "--counter-period-ms", "0"]
# A step of 8 ms at full clock that wants most of what the board gives.
STEPS = ["--sample-ms", "0.01", "--step-ms", "5.5", "--batch-size", "256"]
IDLE_W = 80
LIMITS = list(range(400, 99, -25))


def train(gpu="0", steps=3000):
    return [str(EMULATOR), "train", "--gpu", str(gpu), *STEPS, "--steps", str(steps)]


def gpus():
    return json.loads(emulator("show", "--json"))["gpus"]


# Reports a step every 10 ms until it is told to flood; a write that failed would show in its status.
REPORTER = """
import os, pathlib, sys, time
fd, home = int(os.environ["FLYBALL_STEP_FD"]), pathlib.Path(sys.argv[1])
while not (home / "flood").exists():
    os.write(fd, b"\\n")
    time.sleep(0.01)
for number in range(300000):
    os.write(fd, b"step %d\\n" % number)
(home / "fine").touch()
"""


def command(program, *options):
    chosen = [] if "-i" in options else ["-i", "0"]
    return [FLYBALL, "run", "--tune", *chosen, *WHERE, *options, "--", *program]


def tune(program, *options, environment=None, **keywords):
    """The finished process, and what the document says of tuning."""
    path = HOME / "report.json"
    path.unlink(missing_ok=True)
    result = subprocess.run(command(program, "--output", str(path), *options), env={**CLEAN, **(environment or {})}, cwd=HOME,
                            capture_output=True, text=True, timeout=60, check=False, **keywords)
    document = json.loads(path.read_text()) if path.exists() else None
    return result, document and document["tune"]


@contextlib.contextmanager
def tuning(program):
    """A run whose first limit below the start's stands."""
    with subprocess.Popen(command(program), env=CLEAN, cwd=HOME, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_for(lambda: limits()[0] != DEFAULT_W, "a limit is tried")
            yield process
        finally:
            process.kill()


def measure_all():
    """Every limit measured by itself, on a GPU of its own: true time and energy of a step."""
    steps, points = 100, {}
    for gpu, limit in enumerate(LIMITS):
        emulator("set", "--gpu", gpu, "--limit-w", limit)
    processes = [subprocess.Popen(train(gpu, steps), env=CLEAN, stdout=subprocess.PIPE, text=True) for gpu in range(len(LIMITS))]
    wait_for(lambda: all(gpu["true_power_w"] > IDLE_W for gpu in gpus()), "all are at work")
    drawn = [gpu["true_power_w"] for gpu in gpus()]
    for gpu, process in enumerate(processes):
        output = process.communicate(timeout=60)[0]
        tap.equal((process.returncode, drawn[gpu] > IDLE_W), (0, True), output)
        time_s = float(output.split(" in ")[1].split()[0]) / steps
        points[LIMITS[gpu]] = (time_s, drawn[gpu] * time_s)
        emulator("set", "--gpu", gpu, "--limit-w", DEFAULT_W)
    return points


def check_document(said):
    tap.equal(sorted(key for key in said if not key.endswith("_unavailable")),
              ["backoffs", "chosen_limit_w", "eta", "gpus", "malformed_lines", "max_slowdown", "measured_slowdown", "objective", "off",
               "points", "promised_slowdown", "reason", "reason_text", "search", "searches", "start_limit_w", "state", "steps"])
    tap.equal((said["state"], said["off"], said["reason"], said["malformed_lines"], said["searches"], said["start_limit_w"]),
              ("settled", None, "goes on", 0, 1, 400.0))
    tap.equal(sorted(said["search"]), ["energy_j", "extra_energy_j", "extra_time_s", "steps", "time_s"])
    tap.equal([point["limit_w"] for point in said["points"]], [float(limit) for limit in LIMITS])
    first = said["points"][0]
    tap.equal((first["mark"], abs(first["power_w"] * first["step_time_s"] / first["step_energy_j"] - 1) < 1e-6), ("valid", True))
    tap.equal([(gpu["end"], gpu["limit_before_w"]) for gpu in said["gpus"]], [("put back", 400.0)])


# Where the steps of a busy machine vary, a choice within a bound keeps its distance from it: by one limit here.
NEAR = 1.12 if SANITIZED else 1.06


def check_choice(points, said, bound, score):
    fastest = points[400][0]
    best = min(score(*point) for point in points.values() if point[0] <= bound * fastest)
    chosen = points[int(said["chosen_limit_w"])]
    tap.equal(score(*chosen) <= (NEAR if bound < 99 else 1.03) * best, True, f"{said['chosen_limit_w']} W of {points}")
    tap.equal(chosen[0] <= 1.01 * bound * fastest, True, f"{said['chosen_limit_w']} W keeps the bound of {points}")
    tap.equal(said["measured_slowdown"] <= 1.02 * bound, True, said["measured_slowdown"])


def test_chooses_what_measuring_all_would():
    """Each objective on a GPU of its own, all at a time."""
    cases = (
        (["--objective", "energy"], 99.0, lambda time_s, energy_j: energy_j),
        (["--objective", "energy", "--max-slowdown", "5%"], 1.05, lambda time_s, energy_j: energy_j),
        (["--eta", "0.5"], 99.0, lambda time_s, energy_j: 0.5 * energy_j + 0.5 * 400 * time_s),
    )
    with machine(*EXACT, gpus=len(LIMITS)):
        points = measure_all()
        processes = [subprocess.Popen(command(train(gpu, 900), *options, "-i", str(gpu), "--output", str(HOME / f"tuned{gpu}.json")), env=CLEAN,
                                      cwd=HOME, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                     for gpu, (options, _, _) in enumerate(cases)]
        for gpu, (options, bound, score) in enumerate(cases):
            status, _, talk = ended(processes[gpu])
            tap.equal((status, limits()[gpu]), (0, DEFAULT_W), talk)
            said = json.loads((HOME / f"tuned{gpu}.json").read_text())["tune"]
            tap.equal((said["state"], said["steps"]), ("settled", 900), talk)
            check_document(said)
            check_choice(points, said, bound, score)
            tap.equal((said["max_slowdown"], "max_slowdown_unavailable" in said), (bound, False) if bound < 99 else (None, True), options)
            for piece in (f"tuning: {said['chosen_limit_w']:g} W for the least ", "searching took", f"GPU {gpu}: 400 W again"):
                tap.contains(talk, piece)


def test_ends_in_the_search():
    with machine(*EXACT, gpus=1):
        result, said = tune(train(steps=120))
        tap.equal((result.returncode, said["state"], said["chosen_limit_w"], limits()), (0, "searching", None, [DEFAULT_W]), result.stderr)
        tap.contains(result.stderr, "the program ended during the search; nothing was chosen")
        tap.equal(said["steps"], 120)


def test_back_after_a_signal():
    with machine(*EXACT, gpus=1):
        for number in (signal.SIGTERM, signal.SIGINT):
            with tuning(train()) as process:
                process.send_signal(number)
                back_within([DEFAULT_W], f"signal {number}")
                status, _, talk = ended(process)
                tap.equal(status, 128 + signal.SIGTERM, talk)


def test_gpus_of_one_job_together():
    with machine(*EXACT), subprocess.Popen(command(train("0,1"), "-i", "0,1"), env=CLEAN, cwd=HOME, stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE, text=True) as process:
        wait_for(lambda: limits()[0] == limits()[1] < DEFAULT_W, "one limit stands on both")
        process.send_signal(signal.SIGTERM)
        back_within([DEFAULT_W] * 2, "SIGTERM")
        status, _, talk = ended(process)
        tap.equal(status, 128 + signal.SIGTERM, talk)


def test_limits_that_differ():
    with machine(*EXACT):
        emulator("set", "--gpu", 1, "--limit-w", 300)
        result, said = tune(train(steps=20), "-i", "0,1")
        tap.equal((result.returncode, said["state"], limits()), (0, "off", [DEFAULT_W, 300]), result.stderr)
        tap.contains(said["off"], "the limits of GPU 0 and GPU 1 differ, 400 and 300 W")


def test_back_after_kill():
    """Nothing is left of the session but its guard; the program neither notices nor waits."""
    with machine(*EXACT, gpus=1):
        for name in ("flood", "fine"):
            (HOME / name).unlink(missing_ok=True)
        with tuning([sys.executable, "-c", REPORTER, str(HOME)]) as process:
            process.kill()
            back_within([DEFAULT_W], "kill -9")
        tap.equal((HOME / "fine").exists(), False)
        (HOME / "flood").touch()
        wait_for((HOME / "fine").exists, "the program has written 300000 lines that nobody reads")


def test_goes_on_without_its_guard():
    with machine(*EXACT, gpus=1):
        with tuning(train(steps=300)) as process:
            guard = guard_of(process)
            kill_program(guard)
            back_within([DEFAULT_W], "the guard is killed", 2.0)
            status, _, talk = ended(process)
            tap.equal((status, limits(), gone(guard)), (0, [DEFAULT_W], True), talk)
            tap.contains(talk, "tuning off: ")


def test_another_program_changes_the_limit():
    with machine(*EXACT, gpus=1):
        with tuning(train(steps=300)) as process:
            emulator("set", "--gpu", 0, "--limit-w", 111)
            status, _, talk = ended(process)
            tap.equal((status, limits()), (0, [111]), talk)
            tap.contains(talk, "GPU 0: 111 W, as another program set it; left so")


def test_somebody_elses_gpu():
    with machine(gpus=1), subprocess.Popen(train(), env=CLEAN, stdout=subprocess.DEVNULL) as other:
        try:
            wait_for(lambda: gpus()[0]["processes"], "the other is at work")
            result, said = tune(["sh", "-c", "echo >&$FLYBALL_STEP_FD; echo ran; exit 4"])
            tap.equal((result.returncode, result.stdout, said["state"], limits()), (4, "ran\n", "off", [DEFAULT_W]), result.stderr)
            tap.contains(said["off"], str(other.pid))
            tap.equal(result.stderr.count("tuning off: "), 1)
        finally:
            other.terminate()


def test_operators_lock():
    with machine(gpus=1):
        path = HOME / "root" / "etc" / "flyball"
        path.mkdir(parents=True)
        (path / "readonly").touch()
        try:
            result, said = tune(train(steps=20))
            tap.equal((result.returncode, said["state"], limits()), (0, "off", [DEFAULT_W]), result.stderr)
            tap.contains(said["off"], "readonly")
        finally:
            (path / "readonly").unlink()


def test_without_permission():
    if os.geteuid() == 0:
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        HOME.chmod(0o777)
        if not os.access(FLYBALL, os.X_OK) or subprocess.run([FLYBALL, "version"], capture_output=True, check=False, **user).returncode:
            raise tap.Skip("another user cannot run the program from here")
    else:
        user = {}
    with machine(gpus=1):
        emulator("stop")
        emulator("start", "--gpus", 1, "--shared=yes", *EXACT)
        loop = "i=0; while [ $i -lt 160 ]; do echo >&$FLYBALL_STEP_FD; sleep 0.01; i=$((i + 1)); done; echo ran"
        result, said = tune(["sh", "-c", loop], **user)
        tap.equal((result.returncode, result.stdout, said is None), (0, "ran\n", False), result.stderr)
        tap.equal((result.returncode, result.stdout, said["state"], limits()), (0, "ran\n", "off", [DEFAULT_W]), result.stderr)
        tap.contains(result.stderr, "'sudo -E flyball run --tune -- PROGRAM'")
        tap.equal("W again" in result.stderr, False, result.stderr)


def test_no_steps():
    with machine(gpus=1):
        for program, status in ((["true"], 0), (["sh", "-c", "printf 'no end' >&$FLYBALL_STEP_FD; exit 3"], 3), (["no-such-program"], 127)):
            result, said = tune(program)
            tap.equal(result.returncode, status, program)
            if status != 127:
                tap.equal((said["state"], said["steps"], said["gpus"]), ("off", 0, []), program)
                tap.contains(result.stderr, "tuning off: the program reported no step")


def test_malformed_lines():
    with machine(gpus=1):
        text = "step 1\n" + "x" * 300 + "\nepoch\nepoch 1\nepoch one\n\nepoch end\n\x01\nepochs\nstep 2\nstep"
        result, said = tune([sys.executable, "-c", f"import os; os.write(int(os.environ['FLYBALL_STEP_FD']), {text!r}.encode())"])
        tap.equal((result.returncode, said["steps"], said["malformed_lines"]), (0, 3, 5), result.stderr)
        tap.contains(result.stderr, "5 malformed lines from the program are no steps")


def test_only_the_program_gets_the_descriptor():
    with machine(gpus=1):
        result, _ = tune(["sh", "-c", "ls -l /proc/self/fd; echo $FLYBALL_STEP_FD"], environment={"FLYBALL_STEP_FD": "77"})
        tap.equal((result.stdout.count("flyball-steps"), result.stdout.split("\n")[-2].isdigit()), (1, True), result.stdout)
        plain = subprocess.run([FLYBALL, "run", *WHERE, "--", "sh", "-c", "echo ${FLYBALL_STEP_FD-none}"], env=CLEAN, cwd=HOME,
                               capture_output=True, text=True, check=False)
        tap.equal((plain.returncode, plain.stdout), (0, "none\n"))


def test_usage():
    for options, piece in ((["--tune", "--max-slowdown", "fast"], "bad value 'fast'"), (["--eta", "0.2"], "--eta is about --tune"),
                           (["--max-slowdown", "3%"], "--max-slowdown is about --tune"), (["--tune", "--profile-steps", "1"], "profile-steps")):
        result = subprocess.run([FLYBALL, "run", *options, "--", "echo", "ran"], env=CLEAN, capture_output=True, text=True, check=False)
        tap.equal((result.returncode, result.stdout), (64, ""), options)
        tap.contains(result.stderr, piece)


def test_disabled():
    with machine(gpus=1):
        result, said = tune(["sh", "-c", "echo ${FLYBALL_STEP_FD-none}"], environment={"FLYBALL_DISABLE": "1"})
        tap.equal((result.returncode, result.stdout, said, limits()), (0, "none\n", None, [DEFAULT_W]))


def test_a_program_that_is_slow_to_end_is_not_waited_for_twice():
    with machine(*EXACT, gpus=1):
        begin = time.monotonic()
        result, _ = tune(["sh", "-c", "echo >&$FLYBALL_STEP_FD; sleep 0.3"])
        tap.equal((result.returncode, time.monotonic() - begin < 5), (0, True))


tap.main(globals())
