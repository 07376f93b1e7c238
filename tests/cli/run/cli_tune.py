# SPDX-License-Identifier: Apache-2.0
"""flyball run --tune from outside, on emulated GPUs: what is chosen, what is turned back, and what becomes of the program.

usage: cli_tune.py FLYBALL SOURCE_ROOT
"""

import contextlib
import json
import math
import os
import re
import signal
import subprocess
import sys
import time

import reach
import tap
from power_machine import (CLEAN, DEFAULT_W, EMULATOR, FLYBALL, HOME, KNOBS, NOBODY, RUNTIME, WHERE, as_other_user, back_within, emulator,
                           ended, gone, guard_of, kill_program, limits, machine, neighbour, pid_namespace, UNSEEN, wait_for)

# Windows are as short as they may be.
COARSE = ["--energy-tolerance", "1"]
EXACT = ["--sensor", "exact", "--counter-period-ms", "0"]
# A step of 8 ms at full clock that wants most of what the board gives.
STEPS = ["--sample-ms", "0.01", "--step-ms", "5.5", "--batch-size", "256"]
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


# Reports a step every 5 ms until a file is there, none while another is, and says how many.
WORKER = """
import os, pathlib, sys, time
fd, end, steps = int(os.environ["FLYBALL_STEP_FD"]), pathlib.Path(sys.argv[1]), 0
rest = end.with_name("rest")
while not end.exists():
    if not rest.exists():
        os.write(fd, b"\\n")
        steps += 1
    time.sleep(0.005)
print(steps, "steps")
sys.exit(5)
"""

def worker():
    """GPU 0 wants 390 W; of limits that nothing feels none would be tried."""
    (HOME / "end").unlink(missing_ok=True)
    emulator("set", "--gpu", 0, "--load-w", 390)
    return [sys.executable, "-c", WORKER, str(HOME / "end")]


# Reports steps, and ends when they have been looked at: then the lock of a GPU has been taken.
SHORT = """
printf 'step %d\\n' $(seq 100) >&$FLYBALL_STEP_FD
until ls "$1"/*.lock >/dev/null 2>&1; do sleep 0.01; done
echo ran
exit 4
"""


# Reports so many steps, one every 10 ms.
WHILE = """
i=0
while [ $i -lt $1 ]; do echo >&$FLYBALL_STEP_FD; sleep 0.01; i=$((i + 1)); done
echo ran
exit 4
"""


def short():
    return ["sh", "-c", SHORT, "sh", str(KNOBS)]


def command(program, *options):
    chosen = [] if "-i" in options else ["-i", "0"]
    return [FLYBALL, "run", "-v", "--tune", *chosen, *WHERE, *COARSE, *options, "--", *program]


def tune(program, *options, environment=None, **keywords):
    """The finished process, and what the document says of tuning."""
    path = HOME / "report.json"
    path.unlink(missing_ok=True)
    result = subprocess.run(command(program, "--output", str(path), *options), env={**CLEAN, **(environment or {})}, cwd=HOME,
                            capture_output=True, text=True, timeout=tap.PATIENCE_S, check=False, **keywords)
    document = json.loads(path.read_text()) if path.exists() else None
    return result, document and document["tune"]


@contextlib.contextmanager
def tuning(program, *options):
    """A run whose first limit below the start's stands."""
    with tap.Program(command(program, *options), env=CLEAN, cwd=HOME, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_for(lambda: limits()[0] != DEFAULT_W, "a limit is tried")
            yield process
        finally:
            process.kill()


def measure_all():
    """What a step takes at each limit, and its energy: the emulator's truth, in virtual time."""
    points = {}
    with machine(*EXACT, "--time", "virtual", gpus=1):
        for limit in LIMITS:
            emulator("set", "--gpu", 0, "--limit-w", limit)
            emulator(*train(steps=1)[1:])
            before = json.loads(emulator("show", "--json"))
            emulator(*train(steps=1000)[1:])
            after = json.loads(emulator("show", "--json"))
            points[limit] = ((after["time_s"] - before["time_s"]) / 1000,
                             (after["gpus"][0]["true_energy_j"] - before["gpus"][0]["true_energy_j"]) / 1000)
    return points


def check_document(said, gpu, bound, talk):
    tap.equal(sorted(key for key in said if not key.endswith("_unavailable")),
              ["backoffs", "chosen_limit_w", "eta", "give_backs", "gpus", "hook", "idle_share", "knob", "knob_note", "malformed_lines", "max_slowdown", "measured_slowdown",
               "objective", "off", "pace", "pause_share", "pauses", "points", "profile", "promised_slowdown", "reason", "reason_text",
               "search", "searches", "start_limit_w", "state", "steps", "ties"])
    tap.equal((said["state"], said["off"], said["reason"], said["malformed_lines"], said["searches"], said["start_limit_w"]),
              ("settled", None, "goes on", 0, 1, 400.0))
    tap.equal(sorted(said["search"]), ["energy_j", "extra_energy_j", "extra_time_s", "steps", "time_s"])
    tap.equal([point["limit_w"] for point in said["points"]], [float(limit) for limit in LIMITS])
    first = said["points"][0]
    tap.equal((first["mark"], abs(first["power_w"] * first["step_time_s"] / first["step_energy_j"] - 1) < 1e-6), ("valid", True))
    tap.equal([(gpu["end"], gpu["limit_before_w"]) for gpu in said["gpus"]], [("put back", 400.0)])
    tap.equal((said["max_slowdown"], "max_slowdown_unavailable" in said), (bound, False) if bound < math.inf else (None, True))
    for piece in (f"tuning: {said['chosen_limit_w']:g} W for the {'lowest score' if said['objective'] == 'cost' else 'least'} ", "searching took", f"GPU {gpu}: 400 W again"):
        tap.contains(talk, piece)
    check_answer(said, talk)


def check_answer(said, talk):
    """The first line says what the figures of the document say."""
    first = next(line for line in talk.splitlines() if line.startswith("flyball: "))
    points = {point["limit_w"]: point for point in said["points"] if point["mark"] == "valid"}
    chosen, before = points[said["chosen_limit_w"]], points[DEFAULT_W]
    if chosen is before:
        tap.contains(first, f"flyball: {DEFAULT_W:g} W kept: ")
        return
    found = re.match(rf"flyball: {chosen['limit_w']:g} W chosen: steps take ([0-9.]+) % \+/- [0-9.]+ (less|more) energy", first)
    more = chosen["step_energy_j"] / before["step_energy_j"] - 1
    tap.equal((bool(found), found and found[2]), (True, "less" if more < 0 else "more"), first)
    tap.equal(abs(float(found[1]) - 100 * abs(more)) <= 0.51, True, f"{first}: {100 * more}")
    tap.contains(first, f" than at {DEFAULT_W:g} W")


def is_undisturbed(said, points, bound):
    """Other programs that hold steps up would be seen in the figures; then the choice follows what was seen."""
    time_off, energy_off = (0.02, 0.025) if bound == math.inf else (0.01, 0.02)
    return all(abs(point["step_time_s"] / points[point["limit_w"]][0] - 1) < time_off
               and abs(point["step_energy_j"] / points[point["limit_w"]][1] - 1) < energy_off
               for point in said["points"] if point["mark"] == "valid")


def check_truly_best(said, points, bound, score):
    """Within what such windows can tell: with a bound by one limit, where steps vary so little that it need not keep away."""
    best = min(score(*point) for point in points.values() if point[0] <= bound * points[400][0])
    chosen = points[said["chosen_limit_w"]]
    steady = all(point["step_time_standard_error_s"] < 0.005 * point["step_time_s"] for point in said["points"] if point["mark"] == "valid")
    if steady or bound == math.inf:
        tap.equal(score(*chosen) <= (1.09 if bound < math.inf else 1.05) * best, True, f"{said['chosen_limit_w']} W of {points}")
    tap.equal(chosen[0] <= 1.02 * bound * points[400][0], True, f"{said['chosen_limit_w']} W keeps the bound of {points}")


ATTEMPTS = 2


def test_chooses_what_measuring_all_would():
    """Each objective on a GPU of its own, all at a time; a run that was disturbed is repeated."""
    cases = {
        0: (["--max-slowdown", "none"], math.inf, lambda time_s, energy_j: energy_j),
        1: ([], 1.05, lambda time_s, energy_j: energy_j),
        2: (["--eta", "0.5"], math.inf, lambda time_s, energy_j: 0.5 * energy_j + 0.5 * 400 * time_s),
    }
    points = measure_all()
    with machine(*EXACT, gpus=len(cases)):
        for _ in range(ATTEMPTS):
            processes = {gpu: subprocess.Popen(command(train(gpu, 900), *options, "-i", str(gpu), "--output", str(HOME / f"tuned{gpu}.json")),
                                               env=CLEAN, cwd=HOME, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                         for gpu, (options, _, _) in cases.items()}
            for gpu, process in processes.items():
                _, bound, score = cases[gpu]
                status, _, talk = ended(process)
                tap.equal((status, limits()[gpu]), (0, DEFAULT_W), talk)
                said = json.loads((HOME / f"tuned{gpu}.json").read_text())["tune"]
                tap.equal(said["steps"], 900, talk)
                if said["state"] == "settled":
                    check_document(said, gpu, bound, talk)
                    if is_undisturbed(said, points, bound):
                        check_truly_best(said, points, bound, score)
                        del cases[gpu]
            if not cases:
                return
    raise tap.Skip("the machine is too busy for steps of 8 ms")


def test_steps_that_wait():
    """For nothing that a GPU does: whatever the slowdown, the report says that no limit explains it."""
    with machine(*EXACT, gpus=1), tuning(worker(), "--output", str(HOME / "report.json")) as process:
        emulator("set", "--gpu", 0, "--load-w", 0)
        time.sleep(8)
        (HOME / "end").touch()
        status, _, talk = ended(process)
        said = json.loads((HOME / "report.json").read_text())["tune"]
        tap.equal((status, limits()), (5, [DEFAULT_W]), talk)
        if said["chosen_limit_w"] is None:
            raise tap.Skip("the machine is too busy to settle in eight seconds")
        tap.equal((said["pace"] in ("waits", "pauses"), said["idle_share"] > 0.5), (True, True), talk)
        tap.contains(talk, "of the steps' time" if said["pace"] == "waits" else "of the time were pauses")


def test_ends_in_the_search():
    """At a limit that is on trial."""
    with machine(*EXACT, gpus=1), tuning(worker(), "--profile-steps", "400", "--output", str(HOME / "report.json")) as process:
        (HOME / "end").touch()
        status, output, talk = ended(process)
        said = json.loads((HOME / "report.json").read_text())["tune"]
        tap.equal((status, said["state"], said["chosen_limit_w"], limits()), (5, "searching", None, [DEFAULT_W]), talk)
        tap.contains(talk, "the program ended during the search; nothing was chosen")
        tap.equal(f"{said['steps']} steps\n", output)


def test_a_program_that_lives_on_without_steps():
    """Its GPU is free for others, at the limit that stood before; with the next step it is tuned again."""
    rest = HOME / "rest"
    with machine(*EXACT, gpus=1), tuning(worker(), "--profile-steps", "400", "--give-back", "2", "--output", str(HOME / "report.json")) as process:
        try:
            rest.touch()
            wait_for(lambda: limits() == [DEFAULT_W], "the limit is back")
            wait_for(lambda: tap.run([FLYBALL, "power", "set", "-i", "0", "250", *WHERE], env=CLEAN, cwd=HOME).returncode == 0, "another may turn")
            tap.equal(tap.run([FLYBALL, "power", "reset", "-i", "0", *WHERE], env=CLEAN, cwd=HOME).returncode, 0)
            tap.equal(limits(), [DEFAULT_W])
        finally:
            rest.unlink()
        wait_for(lambda: limits() != [DEFAULT_W], "the limit is turned again")
        (HOME / "end").touch()
        status, _, talk = ended(process)
        said = json.loads((HOME / "report.json").read_text())["tune"]
        tap.equal((status, said["reason"], limits()), (5, "goes on", [DEFAULT_W]), talk)
        tap.equal(said["give_backs"] >= 1, True, talk)
        tap.contains(talk, "no step came for long")


def test_enforced_below_what_is_asked_for():
    """Limits above what the board enforces are one limit: the highest is measured for all, and the report says so."""
    with machine(*EXACT, "--enforced-w", "150", gpus=1):
        result, said = tune(train(steps=700), "--objective", "time", "--profile-steps", "15")
        tap.equal((result.returncode, limits(), said["chosen_limit_w"]), (0, [DEFAULT_W], 400.0), result.stderr)
        for point in said["points"]:
            if 150 <= point["limit_w"] < 400:
                tap.equal((point["mark"], point["enforced_w"]), ("enforced lower", 150.0), point)
        tap.contains(result.stderr, "; enforced at 150 W\n")
        tap.contains(result.stderr, "the board enforces 150 W of these 400 W\n")
        tap.contains(result.stderr, "375 W  not tried, since the board enforces 150 W\n")


def test_epochs_shorter_than_the_warm_up():
    """Windows go on over epochs; where their parts are too short for any figure, the report says so."""
    cases = (
        (["--epochs", "16", "--steps", "1", "--sample-ms", "0.001", "--step-ms", "250"], ["--profile-steps", "2"]),
        (["--epochs", "200", "--steps", "1", *STEPS], []),
        (["--epochs", "60", "--steps", "5", *STEPS], []),
    )
    with machine(*EXACT, gpus=len(cases)):
        processes = [subprocess.Popen(command([str(EMULATOR), "train", "--gpu", str(gpu), *work], *options, "-i", str(gpu), "--output",
                                              str(HOME / f"epochs{gpu}.json")), env=CLEAN, cwd=HOME, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True) for gpu, (work, options) in enumerate(cases)]
        for gpu, (process, (work, _)) in enumerate(zip(processes, cases)):
            status, output, talk = ended(process)
            tap.equal((status, output.count("epoch "), limits()[gpu]), (0, int(work[1]), DEFAULT_W), talk)
            said = json.loads((HOME / f"epochs{gpu}.json").read_text())["tune"]
            tap.equal((said["off"], said["malformed_lines"], said["steps"]), (None, 0, int(work[1]) * int(work[3])), talk)
            if said["state"] == "stopped":
                tap.equal(said["reason"], "no figure", talk)
                tap.contains(talk, "more --profile-steps make windows longer")


def test_back_after_a_signal():
    with machine(*EXACT, gpus=1):
        for number in (signal.SIGTERM, signal.SIGINT):
            with tuning(train()) as process:
                process.send_signal(number)
                back_within([DEFAULT_W], f"signal {number}")
                status, _, talk = ended(process)
                tap.equal(status, 128 + signal.SIGTERM, talk)


def test_gpus_of_one_job_together():
    with machine(*EXACT), tap.Program(command(train("0,1"), "-i", "0,1"), env=CLEAN, cwd=HOME, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True) as process:
        wait_for(lambda: limits()[0] == limits()[1] < DEFAULT_W, "one limit stands on both")
        process.send_signal(signal.SIGTERM)
        back_within([DEFAULT_W] * 2, "SIGTERM")
        status, _, talk = ended(process)
        tap.equal(status, 128 + signal.SIGTERM, talk)


def test_limits_that_differ():
    with machine(*EXACT):
        emulator("set", "--gpu", 1, "--limit-w", 300)
        result, said = tune(short(), "-i", "0,1")
        tap.equal((result.returncode, said["state"], limits()), (4, "off", [DEFAULT_W, 300]), result.stderr)
        tap.contains(said["off"], "the limits of GPU 0 and GPU 1 differ, 400 and 300 W")


def test_back_after_kill():
    """Nothing is left of the session but its guard; the program neither notices nor waits."""
    with machine(*EXACT, gpus=1):
        for name in ("flood", "fine"):
            (HOME / name).unlink(missing_ok=True)
        emulator("set", "--gpu", 0, "--load-w", 390)
        with tuning([sys.executable, "-c", REPORTER, str(HOME)]) as process:
            process.kill()
            back_within([DEFAULT_W], "kill -9")
        tap.equal((HOME / "fine").exists(), False)
        (HOME / "flood").touch()
        wait_for((HOME / "fine").exists, "the program has written 300000 lines that nobody reads")


def test_goes_on_without_its_guard():
    with machine(*EXACT, gpus=1):
        with tuning(worker()) as process:
            guard = guard_of(process)
            kill_program(guard)
            back_within([DEFAULT_W], "the guard is killed")
            (HOME / "end").touch()
            status, _, talk = ended(process)
            tap.equal((status, limits(), gone(guard)), (5, [DEFAULT_W], True), talk)
            tap.contains(talk, "has ended before its time")


def test_another_program_changes_the_limit():
    with machine(*EXACT, gpus=1):
        with tuning(worker()) as process:
            emulator("set", "--gpu", 0, "--limit-w", 111)
            (HOME / "end").touch()
            status, _, talk = ended(process)
            tap.equal((status, limits()), (5, [111]), talk)
            tap.contains(talk, "GPU 0: 111 W, as another program set it; left so")


def test_somebody_elses_gpu():
    with machine(gpus=1), tap.Program(train(), env=CLEAN, stdout=subprocess.DEVNULL) as other:
        try:
            wait_for(lambda: gpus()[0]["processes"], "the other is at work")
            result, said = tune(short())
            tap.equal((result.returncode, result.stdout, said["state"], limits()), (4, "ran\n", "off", [DEFAULT_W]), result.stderr)
            tap.contains(said["off"], str(other.pid))
            tap.equal(result.stderr.count("nothing saved: "), 1)
        finally:
            other.terminate()


def test_neighbour_that_cannot_be_seen():
    """In a pid namespace of one's own, as in a container, the driver lists no process outside; its memory is there."""
    around = pid_namespace()

    def contained(*words, **more):
        return tap.run([*around, *map(str, words)], env={**CLEAN, **more}, cwd=HOME)

    def doctor(**more):
        return " ".join(contained(FLYBALL, "doctor", "system", *WHERE, **more).stdout.split())

    sentence = "a GPU is only measured: its memory is in use, or it is busy, by no process that is seen in this container"
    power = (FLYBALL, "power", "set", "-i", "0", "250", *WHERE)
    with machine(gpus=1):
        tap.equal(contained(*power).returncode, 0, "an idle GPU is nobody's")
        tap.equal((limits(), contained(FLYBALL, "power", "reset", "-i", "0", *WHERE).returncode), ([250.0], 0))
        tap.equal(sentence in doctor(), False)
        with neighbour():
            done = contained(*command(train(steps=400), "--output", HOME / "report.json"))
            said = json.loads((HOME / "report.json").read_text())["tune"]
            tap.equal((done.returncode, said["state"], limits()), (0, "off", [DEFAULT_W]), done.stderr)
            tap.contains(said["off"], UNSEEN)
            for refused in (contained(*power), contained(FLYBALL, "profile", "-i", "0", *WHERE, "--", *train(steps=100))):
                tap.contains(refused.stdout + refused.stderr, UNSEEN)
                tap.equal(limits(), [DEFAULT_W])
            tap.contains(contained(FLYBALL, "power", "get", "-i", "0", *WHERE).stdout, UNSEEN)
            tap.equal((contained(*power, FLYBALL_CONTAINED="1").returncode, limits()), (0, [250.0]))
            tap.equal(contained(FLYBALL, "power", "reset", "-i", "0", *WHERE, FLYBALL_CONTAINED="1").returncode, 0)
            tap.equal((sentence in doctor(), sentence in doctor(FLYBALL_CONTAINED="1")), (True, False))


def test_operators_lock():
    with machine(gpus=1):
        path = HOME / "root" / "etc" / "flyball"
        path.mkdir(parents=True)
        (path / "readonly").touch()
        try:
            result, said = tune(short())
            tap.equal((result.returncode, said["state"], limits()), (4, "off", [DEFAULT_W]), result.stderr)
            tap.contains(said["off"], "readonly")
        finally:
            (path / "readonly").unlink()


def test_without_permission():
    user = as_other_user()
    with reach.runtime_of(RUNTIME, NOBODY), machine(gpus=1):
        emulator("stop")
        emulator("start", "--gpus", 1, "--shared=yes", *EXACT)
        emulator("set", "--gpu", 0, "--limit-w", 300, "--load-w", 390)
        for steps in (50, 200, 1000, 4000):
            result, said = tune(["sh", "-c", WHILE, "sh", str(steps)], **user)
            if said["state"] == "off":
                break
        tap.equal((result.returncode, result.stdout, said["state"], limits()), (4, "ran\n", "off", [300]), result.stderr)
        tap.contains(result.stderr, "'sudo -E flyball run --tune -- PROGRAM'")
        tap.equal("W again" in result.stderr, False, result.stderr)


def test_no_steps():
    with machine(gpus=1):
        for program, status in ((["true"], 0), (["sh", "-c", "printf 'no end' >&$FLYBALL_STEP_FD; exit 3"], 3), (["no-such-program"], 127)):
            result, said = tune(program)
            tap.equal(result.returncode, status, program)
            if status != 127:
                tap.equal((said["state"], said["steps"], said["gpus"]), ("off", 0, []), program)
                tap.contains(result.stderr, "nothing saved: the program reported no step")


def test_ends_before_its_steps_are_seen():
    """Nobody looks while this process is stopped."""
    stops = "kill -STOP $PPID; until grep -q '^State:.T' /proc/$PPID/status; do sleep 0.01; done; echo >&$FLYBALL_STEP_FD; echo $$; exit 4"
    with machine(gpus=1), tap.Program(command(["sh", "-c", stops], "--output", str(HOME / "report.json")), env=CLEAN, cwd=HOME,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            pid = int(process.stdout.readline())
            wait_for(lambda: gone(pid), "the program has ended")
            process.send_signal(signal.SIGCONT)
            status, _, talk = ended(process)
            said = json.loads((HOME / "report.json").read_text())["tune"]
            tap.equal((status, said["state"], said["steps"], said["gpus"]), (4, "off", 1, []), talk)
            tap.contains(said["off"], "the program had ended before its steps were seen")
        finally:
            process.kill()


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
                           (["--max-slowdown", "3%"], "--max-slowdown is about --tune"), (["--tune", "--profile-steps", "1"], "profile-steps"),
                           (["--tune", "-i", "none"], "-i none leaves no GPU")):
        result = subprocess.run([FLYBALL, "run", *options, "--", "echo", "ran"], env=CLEAN, capture_output=True, text=True, check=False)
        tap.equal((result.returncode, result.stdout), (64, ""), options)
        tap.contains(result.stderr, piece)


def test_disabled():
    with machine(gpus=1):
        result, said = tune(["sh", "-c", "echo ${FLYBALL_STEP_FD-none}"], environment={"FLYBALL_DISABLE": "1"})
        tap.equal((result.returncode, result.stdout, said, limits()), (0, "none\n", None, [DEFAULT_W]))


def test_a_program_that_is_slow_to_end_is_not_waited_for_twice():
    with machine(*EXACT, gpus=1):
        result, _ = tune(["sh", "-c", "echo >&$FLYBALL_STEP_FD; sleep 0.3"])
        tap.equal(result.returncode, 0)


tap.main(globals())
