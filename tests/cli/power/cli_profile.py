# SPDX-License-Identifier: Apache-2.0
"""flyball profile from outside, on emulated GPUs: what it measures, saves and draws, and what becomes of the program.

usage: cli_profile.py FLYBALL SOURCE_ROOT
"""

import csv
import io
import json
import math
import os
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import reach
import svg_texts
import tap
from power_machine import (CLEAN, DEFAULT_W, EMULATOR, FLYBALL, HOME, KNOBS, LOWEST_W, NOBODY, RUNTIME, WHERE, as_other_user, back_within,
                           emulator, ended, entries, limits, machine, sweep_steps, wait_for)

# Windows are as short as they may be.
COARSE = ["--energy-tolerance", "1"]
EXACT = ["--sensor", "exact", "--counter-period-ms", "0"]
STEPS = ["--sample-ms", "0.01", "--step-ms", "5.5", "--batch-size", "256"]
LIMITS = [float(limit) for limit in range(DEFAULT_W, LOWEST_W - 1, -25)]
SELECTORS = ["cost", "cost_within", "energy", "energy_within", "lowest_limit_within", "time"]

# Reports a step every 8 ms until a file is there; what it says goes to standard error.
WORKER = """
import os, pathlib, sys, time
fd, end = int(os.environ["FLYBALL_STEP_FD"]), pathlib.Path(sys.argv[1])
print("works", flush=True)
while not end.exists():
    os.write(fd, b"\\n")
    time.sleep(0.008)
sys.exit(int(sys.argv[2]))
"""


def worker(status=0):
    (HOME / "end").unlink(missing_ok=True)
    emulator("set", "--gpu", 0, "--load-w", 390)
    return [sys.executable, "-c", WORKER, str(HOME / "end"), str(status)]


# Reports steps, and ends when they have been looked at: then the lock of a GPU has been taken.
SHORT = """
printf 'step %d\\n' $(seq 100) >&$FLYBALL_STEP_FD
until ls "$1"/*.lock >/dev/null 2>&1; do sleep 0.01; done
echo ran
exit $2
"""


# Reports so many steps, one every 10 ms.
WHILE = """
i=0
while [ $i -lt $1 ]; do echo >&$FLYBALL_STEP_FD; sleep 0.01; i=$((i + 1)); done
"""


def short(status=0):
    for path in KNOBS.glob("*.lock"):
        path.unlink()
    return ["sh", "-c", SHORT, "sh", str(KNOBS), str(status)]


# Trains until limits were turned and are back.
LONG = """
turned="$1"
shift
"$@" & pid=$!
until ls $turned >/dev/null 2>&1; do sleep 0.01; done
while ls $turned >/dev/null 2>&1; do sleep 0.01; done
kill $pid
wait
echo trained
"""


def long(gpu=0, steps=STEPS):
    turned = KNOBS / f"GPU-f1eba11{gpu}-*.turned"
    return ["sh", "-c", LONG, "sh", str(turned), str(EMULATOR), "train", "--gpu", str(gpu), *steps, "--steps", "100000"]


def command(program, *options):
    chosen = [] if "-i" in options else ["-i", "0"]
    return [FLYBALL, "profile", *chosen, *WHERE, *COARSE, *map(str, options), "--", *program]


def profile(program, *options, environment=None, **keywords):
    return subprocess.run(command(program, *options), env={**CLEAN, **(environment or {})}, cwd=HOME, capture_output=True, text=True,
                          timeout=tap.PATIENCE_S, check=False, **keywords)


def start(program, *options):
    return subprocess.Popen(command(program, *options), env=CLEAN, cwd=HOME, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def tuned(*options):
    path = HOME / "tuned.json"
    path.unlink(missing_ok=True)
    emulator("set", "--gpu", 0, "--load-w", 390)
    result = subprocess.run([FLYBALL, "run", "-v", "--tune", "-i", "0", *WHERE, *COARSE, "--objective", "energy", "--output", str(path), *options, "--",
                             *short()], env=CLEAN, cwd=HOME, capture_output=True, text=True, timeout=tap.PATIENCE_S, check=False)
    emulator("set", "--gpu", 0, "--load-w", 0)
    tap.equal(result.returncode, 0, result.stderr)
    return json.loads(path.read_text())["tune"], result.stderr


def check_rows(rows):
    """The figures of each row fit together, and a slower GPU was a capped one."""
    valid = [row for row in rows if row["mark"] == "valid"]
    first = rows[0]
    tap.equal([row["limit_w"] for row in rows], LIMITS)
    tap.equal([row["enforced_w"] for row in valid], [row["limit_w"] for row in valid])
    tap.equal(len(valid) >= len(LIMITS) - 2, True, rows)
    for row in valid:
        tap.equal(abs(row["power_w"] * row["step_time_s"] / row["step_energy_j"] - 1) < 1e-9, True, row)
        # Windows are short: after a limit was set the power is above it for a moment, and energies are uncertain.
        least_w = (row["step_energy_j"] - row["step_energy_uncertainty_j"]) / row["step_time_s"]
        tap.equal(least_w < row["limit_w"] * 1.03, True, row)
        if first["mark"] == "valid":
            tap.equal(abs(row["time_change_percent"] - (row["step_time_s"] / first["step_time_s"] - 1) * 100) < 1e-6, True, row)
            tap.equal(abs(row["energy_change_percent"] - (row["step_energy_j"] / first["step_energy_j"] - 1) * 100) < 1e-6, True, row)
        if row["limit_w"] < 340:
            tap.equal(row["bound"] != "no", True, row)
    return valid


def test_other_knobs():
    """Ceilings alone, and behind the limits; each kind of point is saved where its knob looks for it."""
    directory = HOME / "knobs_saved"
    directory.mkdir(exist_ok=True)
    with machine(*EXACT, gpus=1):
        # Between limits and ceilings nothing is turned, which would end the first of the programs.
        both = [str(EMULATOR), "train", "--gpu", "0", *STEPS, "--steps", "2200"]
        for knob, files, program in (("clock", 1, long()), ("both", 2, both)):
            for path in directory.iterdir():
                path.unlink()
            result = profile(program, "--knob", knob, "--format", "json", "--profile-directory", directory, "--svg", HOME / "knobs.svg")
            document = json.loads(result.stdout)
            if not document["complete"]:
                raise tap.Skip(f"the machine is too busy: {document['not_complete_because']}")
            tap.equal(result.returncode, 0, result.stderr)
            rows = [row for row in document["rows"] if row["ceiling_mhz"] is not None]
            tap.equal([row["ceiling_mhz"] for row in rows], [float(mhz) for mhz in range(1410, 569, -60)])
            tap.equal((document["knob"], document["knob_note"], limits(), entries()), (knob, None, [DEFAULT_W], []))
            tap.equal(json.loads(emulator("show", "--json"))["gpus"][0]["clock_ceiling_mhz"], None)
            tap.equal(len(list(directory.glob("flyball-*.json"))), files, result.stderr)
            others = [row["limit_w"] for row in document["rows"] if row["ceiling_mhz"] is None]
            tap.equal(others, LIMITS if knob == "both" else [])
            tap.equal({row.get("limit_w") for row in rows}, {float(DEFAULT_W)} if knob == "both" else {None})
            best = document["optimum"]["energy"]
            tap.equal(any(best.get(key) is not None for key in ("limit_w", "tied_limit_w", "ceiling_mhz", "tied_ceiling_mhz")), True, best)
            drawn = " ".join(ElementTree.parse(HOME / "knobs.svg").getroot().itertext())
            tap.contains(drawn, "ceilings on the clock, highest to lowest")
            tap.equal("power limits, highest" in drawn, knob == "both")


def check_optimum(document, valid, eta, bound):
    """Each selector against a second calculation over the rows."""
    def cost(row):
        return eta * row["step_energy_j"] + (1 - eta) * document["max_power_w"] * row["step_time_s"]

    def half_width(name, row):
        energy, time = row["step_energy_uncertainty_j"], 1.96 * row["step_time_standard_error_s"]
        weight = {"energy": 1, "time": 0, "cost": eta}[name.partition("_")[0]]
        return math.hypot(weight * energy, (1 - weight) * document["max_power_w"] * time)

    scores = {"energy": lambda row: row["step_energy_j"], "time": lambda row: document["max_power_w"] * row["step_time_s"], "cost": cost,
              "energy_within": lambda row: row["step_energy_j"], "cost_within": cost, "lowest_limit_within": lambda row: row["limit_w"]}
    tap.equal(sorted(document["optimum"]), SELECTORS)
    for name, score in scores.items():
        choice = document["optimum"][name]
        within = [row for row in valid if not name.endswith("within") or row["step_time_s"] <= bound * valid[0]["step_time_s"]]
        best = min(within, key=lambda row: (score(row), -row["limit_w"]))
        if name != "lowest_limit_within" and best is not valid[0] and score(valid[0]) - score(best) <= math.hypot(
                half_width(name, best), half_width(name, valid[0])):
            tap.equal((choice["limit_w"], choice["tied_limit_w"]), (None, best["limit_w"]), name)
            tap.contains(choice["limit_w_unavailable"], "more than both are uncertain")
            continue
        tap.equal(choice["tied_limit_w"], None)
        for measure in ("time", "energy"):
            tap.equal(choice[f"{measure}_change_uncertainty_percent"] >= 0, True, choice)
        tap.equal((choice["limit_w"], choice["max_slowdown"]), (best["limit_w"], bound if name.endswith("within") else None), name)
        tap.equal(choice["energy_change_percent"], best["energy_change_percent"], name)


def test_differences_within_their_uncertainty_are_no_choice():
    """No limit binds so light a load: whatever the counter's steps make of it, nothing is claimed."""
    with machine():
        result = profile(long(steps=["--sample-ms", "0.5", "--step-ms", "8", "--batch-size", "2"]), "--format", "json")
    document = json.loads(result.stdout)
    valid = [row for row in document["rows"] if row["mark"] == "valid"]
    tap.equal((result.returncode, len(valid) >= 2), (0, True), result.stderr)
    for name in ("energy", "time", "cost"):
        tap.equal(document["optimum"][name]["limit_w"] in (None, float(DEFAULT_W)), True, (name, valid))
    lowest = document["optimum"]["lowest_limit_within"]
    if abs(lowest["energy_change_percent"]) > 0.05 and lowest["limit_w"] != DEFAULT_W:
        tap.equal(abs(lowest["energy_change_percent"]) <= lowest["energy_change_uncertainty_percent"], True, lowest)


def test_whole_profile():
    """In every form, on a GPU each; what is saved is reused, by file and by directory, and the picture is one."""
    saved, picture, directory = HOME / "profile-0.json", HOME / "profile-0.svg", HOME / "profiles"
    directory.mkdir()
    key = ["--job", "net", "--batch-size", "256"]
    forms = (
        ["--format", "json", "--output", HOME / "profile-%t.json", "--svg", HOME / "profile-%t.svg", "--profile-directory", directory, *key, "--eta", "0.7", "--max-slowdown",
         "10%"],
        ["--max-slowdown", "1.05x"],
        ["--format", "csv"],
    )
    with machine(*EXACT, gpus=len(forms)):
        processes = [start(long(gpu), "-i", str(gpu), *options) for gpu, options in enumerate(forms)]
        results = [ended(process) for process in processes]
        for status, output, talk in results:
            tap.equal((status, limits()), (0, [DEFAULT_W] * len(forms)), f"{output}\n{talk}")
            tap.contains(talk, "trained\n", "the program's own words")
            tap.contains(talk, "the program goes on")
        valid = check_document(json.loads(results[0][1]), results[0][2])
        check_saved(json.loads(saved.read_text()), valid)
        files = list(directory.iterdir())
        tap.equal([json.loads(path.read_text()) for path in files], [json.loads(saved.read_text())])
        tap.contains(results[0][2], f"saved in '{files[0]}'")
        check_picture(picture.read_text(), len(valid))
        check_text(results[1][1])
        rows = list(csv.DictReader(io.StringIO(results[2][1])))
        tap.equal([float(row["limit_w"]) for row in rows], LIMITS)
        tap.equal({row["schema"] for row in rows}, {"flyball.profile/3"})
        for options in (["--profile", str(saved)], ["--profile-directory", str(directory)]):
            said, talk = tuned(*options, *key)
            tap.contains(said["profile"], f"reused {len(valid)} of {len(LIMITS)} limits from '", options)
            tap.contains(talk, f"profile: reused {len(valid)} of ", options)
        check_refused(saved, key)


def test_enforced_below_what_is_asked_for():
    """What the board enforces stands beside each limit, and limits above it are not tried by another name."""
    with machine(*EXACT, "--enforced-w", "250", gpus=1):
        result = profile(long(), "--format", "json")
        document = json.loads(result.stdout)
        tap.equal((document["complete"], limits()), (True, [DEFAULT_W]), result.stderr)
        for row in document["rows"]:
            expected = "enforced lower" if 250 <= row["limit_w"] < DEFAULT_W else "valid"
            tap.equal((row["mark"], row["enforced_w"]), (expected, min(row["limit_w"], 250)), row)
        tap.contains(profile(long(), "--profile-steps", "10").stdout, "enforced (W)")


def check_document(document, talk):
    tap.equal((document["schema"], document["complete"], document["not_complete_because"]), ("flyball.profile/3", True, None), talk)
    tap.equal((document["job"], document["batch_size"], document["limits"], document["start_limit_w"], document["eta"]),
              ("net", 256, len(LIMITS), 400.0, 0.7))
    tap.equal([gpu["emulated"] for gpu in document["gpus"]], [True])
    tap.equal(document["cost"]["time_s"] > 0 and document["cost"]["steps"] >= 40 * len(LIMITS), True, document["cost"])
    valid = check_rows(document["rows"])
    if document["rows"][0]["mark"] == "valid":
        check_optimum(document, valid, 0.7, 1.1)
    return valid


def check_text(text):
    for piece in ("Profile of a step on 1 x Emulated A100", "limit (W)", "\nleast energy: ", "\nlowest score (eta 0.5): ",
                  "\nlowest limit within 5 % more time: ", "Measuring took ", "GPU 1: 400 W again"):
        tap.contains(text, piece)
    for piece in ("trained", "Not complete"):
        tap.equal(piece in text, False, text)


def check_saved(saved, valid):
    tap.equal((saved["format"], saved["job_name"], saved["batch_size"], saved["gpu_count"]), ("flyball power profile 1", "net", 256, 1))
    tap.contains(saved["gpu_model"], "A100")
    tap.equal([(point["limit_w"], point["power_w"], point["time_s"]) for point in saved["points"]],
              [(row["limit_w"], row["power_w"], row["step_time_s"]) for row in valid])


def check_picture(text, points):
    root = svg_texts.check(text)
    tap.equal(root.tag, "{http://www.w3.org/2000/svg}svg")
    tips = [element.text for element in root.iter("{http://www.w3.org/2000/svg}title") if " W: " in (element.text or "")]
    tap.equal(len({tip.split(" W: ")[0] for tip in tips}), points, tips)
    for piece in ("time of a step (ms)", "energy of a step (J)", "lowest limit within 10 % more time"):
        tap.contains(text, piece)


def check_refused(saved, key):
    """A profile that is another's or none is measured anew, with a word; the program is not touched."""
    whole = json.loads(saved.read_text())
    other = HOME / "other.json"
    cases = (
        ({**whole, "gpu_model": "NVIDIA A40"}, "other GPUs"),
        ({**whole, "driver": "535.1"}, "other GPUs or with another driver"),
        ({**whole, "gpu_count": 2}, "other GPUs"),
        ({**whole, "job_name": "another"}, "is another job's"),
        ({**whole, "batch_size": 128}, "is another job's"),
        ({**whole, "points": [{**whole["points"][0], "limit_w": 90.0}]}, "a limit is not one to try here"),
        ({**whole, "points": [{**whole["points"][0], "limit_w": 4000.0}]}, "a limit is not one to try here"),
        ({**whole, "points": [{**whole["points"][0], "power_w": -1}]}, "member 'points[0].power_w': expected a number above 0, found -1"),
        ({**whole, "points": []}, "has no points"),
        ([], "is no profile of this version"),
        (None, "is not JSON"),
    )
    for content, piece in cases:
        other.write_text("limit" if content is None else json.dumps(content))
        said, talk = tuned("--profile", str(other), *key)
        tap.contains(said["profile"], f"saved profile '{other}': ", piece)
        tap.contains(said["profile"], piece)
        tap.contains(talk, "measuring anew")
        tap.equal(set(limits()), {DEFAULT_W})
    said, _ = tuned("--profile", str(HOME / "none.json"), *key)
    tap.contains(said["profile"], "No such file or directory; measuring anew")


def ended_at_a_limit(status, *options):
    """A program that ends while a limit is on trial."""
    with start(worker(status), "--format", "json", *options) as process:
        wait_for(lambda: limits()[0] < 340, "some limits are measured")
        (HOME / "end").touch()
        code, output, talk = ended(process)
    back_within([DEFAULT_W], "the end")
    return code, json.loads(output), talk


def test_ends_in_mid_profile():
    """What was measured is shown and saved, with the status of an unfinished one, or of the program where that failed."""
    saved = HOME / "part.json"
    with machine(*EXACT, gpus=1):
        for status, expected in ((0, 75), (3, 3)):
            code, document, talk = ended_at_a_limit(status, "--output", saved)
            tap.equal((code, document["complete"], document["not_complete_because"]),
                      (expected, False, "the program ended before every limit was measured"), talk)
            marks = [row["mark"] for row in document["rows"]]
            tap.equal(("valid" in marks, "not measured" in marks, document["cost"]["time_s"]), (True, True, None), marks)
            check = [row for row in document["rows"] if row["mark"] == "not measured"][0]
            tap.equal((check["power_w"], check["power_w_unavailable"]), (None, "the limit's mark is 'not measured'"))
            tap.equal(len(json.loads(saved.read_text())["points"]), document["limits_valid"])
            tap.contains(talk, "works")


def test_back_after_signals():
    """The program is ended by a signal that is passed on; a killed command leaves it to the guard."""
    with machine(*EXACT, gpus=1):
        for number, status in ((signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL)):
            with start(worker()) as process:
                wait_for(lambda: limits()[0] < DEFAULT_W, "a limit is tried")
                process.send_signal(number)
                back_within([DEFAULT_W], f"signal {number}")
                (HOME / "end").touch()
                code, output, talk = ended(process)
                sweep_steps(process)
                tap.equal(code, status, talk)
                tap.equal("Not complete: the program ended before every limit was measured." in output, number == signal.SIGTERM, output)
        wait_for(lambda: entries() == [], "the journal is empty")


def test_refusals():
    """Why there is no profile, and the status that says so; the program runs all the same."""
    with machine(*EXACT):
        emulator("set", "--gpu", 1, "--limit-w", 300)
        result = profile(short(), "-i", "0,1")
        tap.equal((result.returncode, result.stderr.count("ran\n"), limits()), (75, 1, [DEFAULT_W, 300]), result.stderr)
        tap.contains(result.stdout, "Not complete: the limits of GPU 0 and GPU 1 differ, 400 and 300 W")
        result = profile(["sh", "-c", "echo ran; exit 0"])
        tap.equal((result.returncode, result.stderr.count("ran\n")), (75, 1), result.stderr)
        tap.contains(result.stdout, "Not complete: the program reported no step")
        path = HOME / "root" / "etc" / "flyball"
        path.mkdir(parents=True, exist_ok=True)
        (path / "readonly").touch()
        try:
            for status, expected in ((0, 77), (4, 4)):
                result = profile(short(status))
                tap.equal((result.returncode, result.stderr.count("ran\n"), limits()), (expected, 1, [DEFAULT_W, 300]), result.stderr)
                tap.contains(result.stdout, "readonly")
        finally:
            (path / "readonly").unlink()


def test_not_started():
    """Without a device, or with a file that cannot be written, no step is spent."""
    with machine(gpus=1):
        for options, status, piece in (
                (["-i", "none"], 69, "no device here can be measured"),
                (["--output", HOME / "no" / "file"], 66, "no/file"),
                (["--svg", HOME / "no" / "file"], 66, "no/file"),
                (["--max-slowdown", "fast"], 64, "bad value 'fast'"),
                (["--batch-size", "0"], 64, "batch-size")):
            result = profile(["sh", "-c", "echo ran >&2"], *options)
            tap.equal((result.returncode, "ran" in result.stderr, result.stdout), (status, False, ""), f"{options} {result.stderr}")
            tap.contains(result.stderr, piece)
        result = profile(["no-such-program"])
        tap.equal((result.returncode, result.stdout), (127, ""), result.stderr)
        result = subprocess.run([FLYBALL, "profile"], env=CLEAN, capture_output=True, text=True, check=False)
        tap.equal(result.returncode, 64)


def test_without_permission():
    user = as_other_user()
    with reach.runtime_of(RUNTIME, NOBODY), machine(gpus=1):
        emulator("stop")
        emulator("start", "--gpus", 1, "--shared=yes", *EXACT)
        emulator("set", "--gpu", 0, "--limit-w", 300, "--load-w", 390)
        for steps in (50, 200, 1000, 4000):
            result = profile(["sh", "-c", WHILE, "sh", str(steps)], **user)
            if "the program ended before every limit" not in result.stdout:
                break
        tap.equal((result.returncode, limits()), (77, [300]), result.stderr)
        tap.contains(result.stdout, "'sudo -E flyball profile -- PROGRAM'")


def test_disabled():
    with machine(gpus=1):
        result = profile(["sh", "-c", "echo ${FLYBALL_STEP_FD-none}; exit 6"], environment={"FLYBALL_DISABLE": "1"})
        tap.equal((result.returncode, result.stdout, result.stderr, limits()), (6, "none\n", "", [DEFAULT_W]))


tap.main(globals())
