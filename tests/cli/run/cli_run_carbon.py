# SPDX-License-Identifier: Apache-2.0
"""flyball run --carbon from outside, on emulated GPUs: the account of a run, and a limit that follows the grid.

usage: cli_run_carbon.py FLYBALL SOURCE_ROOT
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import standin_grid
import tap
from power_machine import CLEAN, DEFAULT_W, EMULATOR, FLYBALL, HOME, WHERE, limits, machine, wait_for
from standin_grid import stamp

EXACT = ["--sensor", "exact", "--counter-period-ms", "0"]
# A step of 8 ms at full clock that wants most of what the board gives.
STEPS = ["--sample-ms", "0.01", "--step-ms", "5.5", "--batch-size", "256"]
ACCOUNTS = HOME / ".local" / "state" / "flyball" / "carbon"
PROFILES = HOME / "profiles"
J_PER_KWH = 3.6e6
HOUR = 3600
ENVIRONMENT = {name: value for name, value in CLEAN.items() if not name.lower().endswith("_proxy")}


def train(steps, *options):
    return [str(EMULATOR), "train", "--gpu", "0", *STEPS, "--steps", str(steps), *options]


def write_grid(name, value_of, column="actual_g_per_kwh"):
    """A CSV file of hours, from 15 days ago to 4 days from now; the first from now on began ten minutes ago. Intensities were foretold."""
    now = int(time.time()) - 600
    path = HOME / name
    with path.open("w") as file:
        print(f"timestamp,{column},forecast_g_per_kwh", file=file)
        for hour in range(-15 * 24, 4 * 24):
            forecast = "" if column != "actual_g_per_kwh" else value_of(hour)
            print(f"{stamp(now + hour * HOUR)},{value_of(hour)},{forecast}", file=file)
    return str(path)


@contextlib.contextmanager
def fresh():
    """A machine with one GPU, and no account or profile of an earlier test."""
    with machine(*EXACT, gpus=1):
        for path in (ACCOUNTS, HOME / ".cache", PROFILES):
            shutil.rmtree(path, ignore_errors=True)
        PROFILES.mkdir()
        (HOME / "report.json").unlink(missing_ok=True)
        yield


def command(program, *options):
    return [FLYBALL, "run", "-v", "-i", "0", *WHERE, "--output", str(HOME / "report.json"), *options, "--", *program]


def run(program, *options, environment=None):
    """The finished process, and the document of its report."""
    path = HOME / "report.json"
    path.unlink(missing_ok=True)
    result = subprocess.run(command(program, *options), env={**ENVIRONMENT, **(environment or {})}, cwd=HOME, capture_output=True, text=True,
                            timeout=tap.PATIENCE_S, check=False)
    return result, json.loads(path.read_text()) if path.exists() else None


def close_to(found, expected, what, part=1e-9):
    tap.equal(abs(found - expected) <= part * abs(expected), True, f"{what}: {found} is not {expected}")


def ways_of(document):
    return {way["way"]: way for way in document["carbon"]["statement"]["ways"]}


def gpu_energy(document):
    return sum(device["energy_j"] for device in document["devices"] if device["kind"] == "GPU")


def test_refusals():
    cases = (
        (["--pue", "1.2"], "--pue is about --carbon or --price"),
        (["--host-power", "100"], "--host-power is about --carbon or --price"),
        (["--steps", "100"], "--steps is about --tune together with --carbon"),
        (["--carbon", "constant:300", "--steps", "100"], "--steps is about --tune together with --carbon"),
        (["--carbon", "constant:300", "--carbon-objective", "carbon"], "--carbon-objective is about --tune"),
        (["--tune", "--carbon", "constant:300", "--steps", "9", "--epochs", "9"], "give one"),
        (["--tune", "--carbon", "constant:300", "--carbon-objective", "money"], "one of prices, --price"),
        (["--tune", "--price", "constant:0.3", "--carbon-objective", "carbon=1,money=1"], "a source of intensities"),
        (["--tune", "--carbon", "constant:300", "--carbon-objective", "coal"], "'coal'"),
        (["--tune", "--carbon", "constant:300", "--knob", "clock"], "--knob power"),
        (["--tune", "--carbon", "constant:300", "--objective", "money"], "one of prices, --price"),
        (["--tune", "--carbon", "constant:300", "--objective", "time"], "--objective time"),
        (["--finish-by", "07:30"], "--finish-by is about --job"),
        (["--tune", "--finish-by", "07:30"], "--finish-by is about --job"),
        (["--tune", "--carbon", "constant:300", "--finish-by", "2020-01-01T00:00Z"], "a time to come"),
        (["--tune", "--carbon", "constant:300", "--finish-by", "noon"], "'noon'"),
        (["--carbon", "none.csv"], "--carbon"),
        (["--carbon", "gb:a/b"], "no place"),
        (["--carbon", "constant:many"], "--carbon"),
        (["--carbon", "x" * 300], "longer than"),
        (["--price", write_grid("carbon.csv", lambda hour: 100)], "--price"),
        (["--carbon", write_grid("price.csv", lambda hour: 0.1, "price_per_kwh")], "--carbon"),
        (["--pue", "0.9"], "0.9"),
    )
    for options, piece in cases:
        result = tap.run([FLYBALL, "run", *options, "--", "touch", str(HOME / "ran")], env=ENVIRONMENT, cwd=HOME)
        tap.equal(((HOME / "ran").exists(), result.returncode != 0), (False, True), f"{options}: {result.stderr}")
        tap.contains(result.stderr, piece, f"{options}")
    tap.equal(ACCOUNTS.exists(), False)


def test_account_of_a_file():
    """Grams are the energy's, at what the file says of the hour; the host and PUE stand by themselves."""
    with fresh():
        grid = write_grid("grid.csv", lambda hour: 360)
        result, document = run(train(200), "--carbon", os.path.relpath(grid, HOME), "--host-power", "100", "--pue", "1.25")
        tap.equal(result.returncode, 0, result.stderr)
        said = document["carbon"]
        tap.equal((said["source"], said["price"], said["followed"], said["following"], said["note"]),
                  (f"csv:{os.path.realpath(grid)}", None, False, None, None), result.stderr)
        tap.equal([str(path) for path in ACCOUNTS.iterdir()], [said["account"]])
        way = ways_of(document)["as run"]
        energy, grams = way["energy_j"], way["carbon_g"]
        close_to(energy["gpus"], said["gpu_energy_j"], "the account's energy")
        close_to(energy["gpus"], gpu_energy(document), "the report's energy", 0.2)
        close_to(energy["host"], 100 * way["time_s"], "the host's energy")
        close_to(energy["pue"], 0.25 * (energy["gpus"] + energy["host"]), "what the site takes")
        close_to(energy["all"], energy["gpus"] + energy["host"] + energy["pue"], "all energy")
        for part, energy_j in energy.items():
            close_to(grams[part], energy_j / J_PER_KWH * 360, f"grams of {part}")
        close_to(way["coverage_percent"]["intensity"]["measured"], 100.0, "coverage")
        tap.equal((way["coverage_percent"]["price"], way["money"]), (None, None))
        close_to(way["time_s"], document["time_s"], "the account's time", 0.5)
        for piece in ("as run", "PUE", "measured 100 %", said["account"], "flyball carbon report"):
            tap.contains(result.stderr, piece)


def test_grams_and_money():
    with fresh():
        result, document = run(train(50), "--carbon", "constant:250", "--price", write_grid("price.csv", lambda hour: 0.2, "price_per_kwh"))
        way = ways_of(document)["as run"]
        close_to(way["carbon_g"]["all"], way["energy_j"]["all"] / J_PER_KWH * 250, "grams")
        close_to(way["money"]["all"], way["energy_j"]["all"] / J_PER_KWH * 0.2, "money")
        tap.contains(result.stderr, "money")


def test_a_source_of_the_configuration():
    """It is accounted for, and the limits are what they would be without."""
    with fresh():
        for name, value in (("FLYBALL_CARBON_SOURCE", "constant:250"), ("FLYBALL_CARBON_PUE", "1.5")):
            result, document = run(train(50), environment={name: value})
            tap.equal((result.returncode, "carbon" in document), (0, name == "FLYBALL_CARBON_SOURCE"), result.stderr)
        result, document = run(train(400), "--tune", "--energy-tolerance", "1", environment={"FLYBALL_CARBON_SOURCE": "constant:250"})
        tap.equal((document["carbon"]["followed"], document["carbon"]["account"] is not None), (False, True), result.stderr)
        result, document = run(train(5), environment={"FLYBALL_CARBON_SOURCE": "nowhere.csv"})
        tap.equal((result.returncode, "carbon" in document), (0, False), result.stderr)
        tap.contains(result.stderr, "FLYBALL_CARBON_SOURCE: ")


def test_without_a_place_for_accounts():
    with fresh():
        (HOME / "file").touch()
        result, document = run(["sh", "-c", "echo ran; exit 3"], "--carbon", "constant:250", environment={"XDG_STATE_HOME": str(HOME / "file")})
        said = document["carbon"]
        tap.equal((result.returncode, result.stdout, said["account"], said["statement"]), (3, "ran\n", None, None), result.stderr)
        tap.contains(said["account_unavailable"], str(HOME / "file"))
        tap.contains(result.stderr, "no account: ")


def test_counted_once():
    """Of a command inside another one has the account."""
    with fresh():
        inner = [FLYBALL, "run", "-i", "0", *WHERE, "--carbon", "constant:250", "--", "true"]
        result, document = run(inner, "--carbon", "constant:250")
        tap.equal((result.returncode, len(list(ACCOUNTS.iterdir()))), (0, 1), result.stderr)
        tap.contains(result.stderr, "no account: these GPUs are counted by ")
        tap.equal(document["carbon"]["account_unavailable"] if document["carbon"]["account"] is None else None, None)


def test_not_started_and_disabled():
    with fresh():
        result, _ = run(["/nonexistent"], "--carbon", "constant:250")
        tap.equal(result.returncode, 127, result.stderr)
        shutil.rmtree(ACCOUNTS, ignore_errors=True)
        result, document = run(["sh", "-c", "exit 3"], "--carbon", "constant:250", environment={"FLYBALL_DISABLE": "1"})
        tap.equal((result.returncode, document, ACCOUNTS.exists()), (3, None, False), result.stderr)


def everything_written():
    return b"".join(path.read_bytes() for place in (ACCOUNTS, HOME / ".cache", HOME / "cache", HOME) if place.exists()
                    for path in (place.rglob("*") if place != HOME else place.glob("report*")) if path.is_file())


# Waits until its steps are to go on; says when it is there.
HELD = """
import pathlib, subprocess, sys, time
home, words = pathlib.Path(sys.argv[1]), sys.argv[2:]
subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
(home / "half").touch()
while not (home / "on").exists():
    time.sleep(0.01)
subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
sys.exit(7)
"""


def test_a_service_that_dies():
    """In mid-training: the program goes on, its end waits for nothing, and nobody learns the key."""
    for source, mood in (("gb:national", "hang"), ("gb:national", "malformed"), ("electricity-maps:DE", "hang"), ("electricity-maps:DE", "500"),
                         ("electricity-maps:DE", None)):
        check_service(source, mood)


def check_service(source, mood):
    with fresh(), standin_grid.Grid() as grid:
        for name in ("half", "on"):
            (HOME / name).unlink(missing_ok=True)
        shutil.rmtree(HOME / "cache", ignore_errors=True)
        environment = {**ENVIRONMENT, **grid.environment(HOME / "cache")}
        words = command([sys.executable, "-c", HELD, str(HOME), *train(20)], "--carbon", source)
        with tap.Program(words, env=environment, cwd=HOME, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                if mood is not None:
                    wait_for(lambda: grid.log, "the service is asked")
                wait_for((HOME / "half").exists, "the program is in its middle")
                grid.mood = mood
                (HOME / "on").touch()
                output, talk = process.communicate(timeout=tap.PATIENCE_S)
            finally:
                process.kill()
        tap.equal(process.returncode, 7, f"{source} {mood}: {talk}")
        said = json.loads((HOME / "report.json").read_text())["carbon"]
        tap.equal((said["account"] is not None, said["statement"] is not None), (True, True), talk)
        shares = said["statement"]["ways"][0]["coverage_percent"]["intensity"]
        if shares is not None:
            close_to(sum(shares.values()), 100.0, f"{source} {mood}: coverage")
        for secret in (standin_grid.KEY, standin_grid.PASSWORD):
            tap.equal((secret in output + talk, secret.encode() in everything_written()), (False, False), f"{source} {mood}")


ATTEMPTS = (900, 2000, 4000)


def follow(grid, *options, steps=ATTEMPTS, epoch_steps=None):
    """What following said; where the machine is too busy to measure each limit in time, once more with more steps."""
    for count in steps:
        work = train(epoch_steps, "--epochs", str(count // epoch_steps)) if epoch_steps else train(count)
        result, document = run(work, "--tune", "--carbon", grid, "--objective", "energy",
                               "--max-slowdown", "20%", "--energy-tolerance", "1", "--profile-directory", str(PROFILES), *options)
        tap.equal((result.returncode, limits(), document["carbon"]["followed"]), (0, [DEFAULT_W], True), result.stderr)
        tap.contains(result.stderr, "the limit: ")
        if document["carbon"]["following"]["decisions"] > 0:
            return result, document["carbon"]
    raise tap.Skip("the machine is too busy for steps of 8 ms")


def test_follows_the_grid():
    """Of a training that takes two hours: slow while it is dirty, fast while it is clean, as far as is known how long it takes."""
    with fresh():
        dirty, clean = (write_grid(f"{name}.csv", value_of) for name, value_of in
                        (("dirty", lambda hour: 700 if hour < 1 else 50), ("clean", lambda hour: 50 if hour < 1 else 700)))
        result, said = follow(dirty, "--steps", "900000")
        slow_w = said["following"]["limit_w"]
        check_comparison(said["statement"], result.stderr)
        tap.contains(result.stderr, f"tuning: {slow_w:g} W at last, along the grid within 20 % more time, 400 W before")
        # From here on with the profile that was saved.
        tap.equal(len(list(PROFILES.iterdir())), 1, result.stderr)
        _, said = follow(clean, "--steps", "900000", steps=(300, 900, 4000))
        fast_w = said["following"]["limit_w"]
        # Without one an epoch is over before there is anything to decide.
        for profile in PROFILES.iterdir():
            profile.rename(HOME / profile.name)
        _, said = follow(dirty, "--epochs", "2812", steps=(1280, 2560, 5120), epoch_steps=320)
        # How much room is left depends on what lies between epochs, and on what the search took before.
        # A busy machine may leave too little of it.
        slower = said["following"]["limit_w"] < fast_w or "to keep the deadline" in said["following"]["reason"]
        tap.equal((said["following"]["finish_s"] is not None, slower), (True, True), f"{slow_w} {said['following']} {fast_w}")
        for profile in PROFILES.iterdir():
            (HOME / profile.name).rename(profile)
        result, said = follow(clean, steps=(300, 900, 4000))
        tap.equal(said["following"]["finish_s"], None, said["following"])
        tap.contains(said["following"]["reason"], "how many steps are left is not known")
        tap.equal((slow_w < said["following"]["limit_w"], slow_w < fast_w), (True, True), f"{slow_w} {said} {fast_w}")


def check_comparison(statement, talk):
    ways = {way["way"]: way for way in statement["ways"]}
    tap.equal((list(ways), statement["nothing_to_compare"], statement["bound"]), (["as run", "highest limit", "best single limit", "best mixture"], None, 1.2), talk)
    saved, by_limit, by_following = (statement[key]["carbon_g"] for key in ("saved", "by_lower_limit", "by_following"))
    run_g, highest_g, _, mixture_g = (way["carbon_g"]["all"] for way in ways.values())
    close_to(saved, highest_g - run_g, "what was saved", 1e-6)
    close_to(by_limit, highest_g - mixture_g, "by the lower limit", 1e-6)
    close_to(by_limit + by_following, saved, "both together", 1e-6)
    for piece in ("by the lower limit and ", "by following the grid"):
        tap.contains(talk, piece)


def test_follows_prices():
    with fresh():
        result, document = run(train(20), "--tune", "--price", "constant:0.3", "--steps", "900000")
        tap.equal((result.returncode, document["carbon"]["source"], document["carbon"]["followed"]), (0, None, True), result.stderr)


# Two epochs of twenty steps; the first time it is started it crashes in its first step.
RECURS = """
[ -n "$2" ] && [ ! -e "$1/crashed" ] && { touch "$1/crashed"; echo "epoch 1" >&$FLYBALL_STEP_FD; echo >&$FLYBALL_STEP_FD; exit 9; }
for epoch in 1 2; do
    echo "epoch $epoch" >&$FLYBALL_STEP_FD
    for step in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo >&$FLYBALL_STEP_FD; sleep 0.01; done
    echo "epoch $epoch metric 0.5" >&$FLYBALL_STEP_FD
done
echo ran $FLYBALL_BATCH_SIZE
"""
JOB = ["--job", "nightly", "--batch-sizes", "32", "--default-batch-size", "32", "--max-epochs", "2", "--tries", "3"]


def recur(*options, crash="", **environment):
    return run(["sh", "-c", RECURS, "sh", str(HOME), crash, "{batch_size}"], *options, environment=environment)


def test_a_recurring_job():
    """One account for all of its tries; what its log counts is its grid's, and without the log it runs all the same."""
    with fresh():
        (HOME / "crashed").unlink(missing_ok=True)
        grid = write_grid("grid.csv", lambda hour: 360)
        result, document = recur(*JOB, "--objective", "carbon", "--carbon", grid, crash="crash")
        said = document["carbon"]
        tap.equal((result.returncode, result.stdout, len(document["recurrence"]["tries"]), said["followed"]), (0, "ran 32\n", 2, True),
                  result.stderr)
        tap.equal([str(path) for path in ACCOUNTS.iterdir()], [said["account"]], result.stderr)
        head, *rest = [json.loads(line) for line in pathlib.Path(said["account"]).read_text().splitlines()]
        tap.equal(("nightly" in json.dumps(head), sum(line["slice"]["steps"] for line in rest if "slice" in line)), (True, 41), f"{head} {rest}")
        way = ways_of(document)["as run"]
        close_to(way["carbon_g"]["all"], way["energy_j"]["all"] / J_PER_KWH * 360, "grams")
        close_to(way["energy_j"]["gpus"], said["gpu_energy_j"], "the account's energy")
        tap.equal((said["following"]["decisions"], limits()), (0, [DEFAULT_W]), said["following"])
        tap.contains(result.stderr, f"the limit: 0 decisions, 0 changes; {said['following']['reason']}")
        # Of the record: the grid is known.
        result, document = run(["sh", "-c", RECURS, "sh", str(HOME), ""], "--job", "nightly")
        tap.equal((result.returncode, result.stdout, "carbon" in document), (0, "ran 32\n", False), result.stderr)
        tap.contains(result.stderr, "account of energy: ")
        result, _ = run(["sh", "-c", "echo ran $1", "sh", "{batch_size}"], *JOB, "--objective", "carbon", "--carbon", grid,
                        environment={"FLYBALL_DISABLE": "1"})
        tap.equal((result.returncode, result.stdout), (0, "ran 32\n"), result.stderr)


if __name__ == "__main__":
    tap.main(globals())
