# SPDX-License-Identifier: Apache-2.0
"""flyball run --job --carbon from outside, on emulated GPUs: a recurring job whose power limit follows the grid.

usage: cli_run_job_carbon.py FLYBALL SOURCE_ROOT
"""

import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import tempfile
import time

import serve_machine
import tap
from power_machine import CLEAN, DEFAULT_W, EMULATOR, FLYBALL, HOME, WHERE, limits, machine

EXACT = ["--sensor", "exact", "--counter-period-ms", "0"]
EPOCHS, STEPS, FEW = 2, 450, 100
# By energy the best within 23 %: steps take 12 % longer, and 35 % under the lowest.
CHOSEN_W, LOWEST_W = 250, 150
STATES = tempfile.TemporaryDirectory(prefix="flyball-run-job-carbon-", dir=tap.quick_place())
STATE = pathlib.Path(STATES.name) / "state"
DEFINITION = ["--batch-sizes", "256", "--default-batch-size", "256", "--max-epochs", str(EPOCHS), "--max-slowdown", "23%"]
ENERGY = [*DEFINITION, "--objective", "energy"]
OPTIONS = ["--profile-steps", "150", "--energy-tolerance", "0.3", "--power-limits", "400,250,150"]


def script(steps):
    train = f"{EMULATOR} train --gpu 0 --sample-ms 0.01 --step-ms 5.5 --batch-size 256 --steps {steps} --epochs 1"
    return "; ".join(f"{train} && echo 'epoch {epoch} metric 0.5' >&$FLYBALL_STEP_FD" for epoch in range(1, EPOCHS + 1))


def fresh():
    shutil.rmtree(STATE, ignore_errors=True)
    STATE.mkdir(parents=True)
    # As in a file that a site writes: it is as dirty as it was yesterday, and will be tomorrow.
    now = int(time.time()) // 3600 * 3600
    lines = [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now + 3600 * hour)) + ",300" for hour in range(-240, 48)]
    (STATE / "grid.csv").write_text("\n".join(["timestamp,actual_g_per_kwh", *lines]) + "\n", encoding="utf-8")


def run(*options, job="job", steps=FEW, env=None):
    path = HOME / "report.json"
    path.unlink(missing_ok=True)
    result = subprocess.run([FLYBALL, "run", "-v", "--job", job, "-i", "0", *WHERE, *OPTIONS, "--output", str(path), *options, "--", "sh", "-c", script(steps)],
                            env={**CLEAN, "XDG_STATE_HOME": str(STATE), **(env or {})}, cwd=HOME, capture_output=True, text=True, timeout=tap.PATIENCE_S,
                            check=False)
    tap.equal(result.returncode, 0, result.stderr)
    return result, json.loads(path.read_text())


def accounts():
    """What each file says: its head, slices and newest profile."""
    found = []
    for path in sorted((STATE / "flyball" / "carbon").glob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        found.append((lines[0], [line["slice"] for line in lines if "slice" in line], [line["profile"] for line in lines if "profile" in line]))
    return found


def events(kind):
    with sqlite3.connect(STATE / "flyball" / "store.sqlite") as store:
        return [json.loads(body) for (body,) in store.execute(f"SELECT body FROM event WHERE kind = '{kind}' ORDER BY number")]


def in_an_hour():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))


def check_account(account, document, steps, profiles):
    """All that the command's GPU drew, and every step."""
    head, slices, profiled = account
    energy_j = sum(device["energy_j"] for device in document["devices"] if device["kind"] == "GPU")
    tap.equal((head["job"].partition("-")[0], len(profiled)), ("job", profiles), head)
    tap.equal(sum(piece["steps"] for piece in slices), EPOCHS * steps)
    tap.equal(abs(sum(piece["gpu_j"] for piece in slices) - energy_j) < 0.02 * energy_j, True, (slices, energy_j))


def measure(*options):
    """A job whose profile is whole: on a busy machine windows take longer, and now and then tell something else."""
    for number in range(4):
        for _ in range(4):
            _, document = run(*options, job=f"job-{number}", steps=STEPS)
            if accounts()[-1][2]:
                break
        if document["recurrence"]["tries"][0]["limit_w"] == CHOSEN_W:
            return f"job-{number}", document
    raise AssertionError(f"no profile was as it should: {accounts()}")


def check_nights(store):
    """The first measures, the next follows at once what the log knows; a moment to finish by lets it run slower than the bound."""
    grid = f"csv:{STATE / 'grid.csv'}"
    with machine(*EXACT, gpus=1):
        job, first = measure(*ENERGY, "--carbon", grid, *store)
        check_account(accounts()[-1], first, STEPS, 1)
        told, second = run("--carbon", grid, "--finish-by", in_an_hour(), *store, job=job)
        check_account(accounts()[-1], second, FEW, 1)
        count = len(accounts())
        _, third = run(*store, job=job)
        tap.equal(limits(), [DEFAULT_W])
    (attempt,) = second["recurrence"]["tries"]
    tap.equal(attempt["limit_w"], LOWEST_W, told.stderr)
    tap.equal((second["carbon"]["followed"], second["carbon"]["following"]["limit_w"]), (True, attempt["limit_w"]), second["carbon"])
    tap.contains(told.stderr, " W at last, ")
    tap.equal((third["recurrence"]["tries"][0]["limit_w"], len(accounts())), (CHOSEN_W, count))
    tap.equal(first["recurrence"]["log_unavailable"], None)


def test_file():
    fresh()
    check_nights([])
    tap.equal(events("profiled")[-1]["limit_w"], CHOSEN_W)
    tap.equal({ended["outcome"] for ended in events("ended")}, {"reached"})


def test_service():
    fresh()
    with serve_machine.service(FLYBALL, "--store", str(STATE / "service.sqlite")) as service:
        check_nights(["--store", service.url])


def test_grams_on_record():
    """The source is on record with the job, and the reference with each report."""
    fresh()
    definition = [*DEFINITION, "--objective", "carbon", "--carbon", f"csv:{STATE / 'grid.csv'}"]
    with machine(*EXACT, gpus=1):
        run(*definition)
        told, _ = run()
        tap.contains(told.stderr, "account of energy: ")
        tap.equal(len(accounts()), 2)
        plain = subprocess.run([FLYBALL, "run", "--job", "job", *definition, "--", "echo", "{batch_size}"], cwd=HOME, text=True,
                               env={**CLEAN, "XDG_STATE_HOME": str(STATE), "FLYBALL_DISABLE": "1"}, capture_output=True, timeout=tap.PATIENCE_S, check=False)
        tap.equal((plain.returncode, plain.stdout, len(accounts())), (0, "256\n", 2), plain.stderr)
    tap.equal([round(ended["reference_per_kwh"]) for ended in events("ended")], [300, 300])


def test_account_alone():
    """A source of a variable is accounted for, and not followed."""
    fresh()
    with machine(*EXACT, gpus=1):
        _, document = run(*ENERGY, env={"FLYBALL_CARBON_SOURCE": str(STATE / "grid.csv")})
        check_account(accounts()[0], document, FEW, 0)
    tap.equal((document["carbon"]["followed"], document["carbon"]["following"]), (False, None))


tap.main(globals())
