# SPDX-License-Identifier: Apache-2.0
"""Whole runs of `make verify-gpu` on emulated GPUs, some minutes of them; run by `make soak`.

usage: verify_gpu_runs.py FLYBALL SOURCE_ROOT
"""

import json
import pathlib
import signal
import subprocess
import time

import tap
from verify_common import CLEAN, HOME, ROOT, SETTERS, STAGES, check_names, command, environment, near, tables, verify


def test_a_whole_run_that_sets_nothing():
    """A setter that were called would make the GPU fall off the bus."""
    (HOME / "never").write_text("".join(f"call {name} lost\n" for name in SETTERS), encoding="ascii")
    result, page, seen = verify("whole", machine=f",faults={HOME}/never")
    tap.equal((result.returncode, seen["failed"], result.stdout), (0, {}, ""), result.stderr + page)
    tap.equal(list(seen["found"]), STAGES)
    for number, stage in enumerate(STAGES, 1):
        tap.contains(result.stderr, f"[{number}/{len(STAGES)}] ", stage)
    tap.equal(page.splitlines()[0], "# EMULATED: Emulated A100-SXM4-80GB (Flyball), driver 0.2.0-flyball-emulator")
    for piece in ("No hardware was measured: an emulator answered.", "Nothing was set.",
                  "Power limits and persistence mode stand as before."):
        tap.contains(page, piece)
    tap.equal("Not measured" in page, False)
    tap.equal(list((ROOT / "docs/reference/hardware").glob("EMULATED*")), [])
    check_names(page)
    check_figures(seen["found"])
    check_page(page)


def check_figures(found):
    """The emulated A100: counter and power every 100 ms."""
    energy = found["loaded"]["updates"]["energy"]
    near(energy["period_ms"], 100, 0.1, "period of the counter")
    near(found["loaded"]["updates"]["power_instant"]["period_ms"], 100, 0.1, "period of the power")
    near(found["loaded"]["tracking"]["period_ms"], 100, 0.01, "period over all bursts")
    tap.equal(found["loaded"]["without_load"], None)
    tap.equal(found["loaded"]["calls"]["power_average"]["code"] != 0, True, "an A100 has no such reading")
    tap.equal(found["loaded"]["costs"]["ratio"] > 0.5, True)
    rise, fall = (found["response"]["power"][edge] for edge in ("rise", "fall"))
    tap.equal(rise["count"] >= 1 and rise["ms"][0] <= rise["ms"][2] < 600 and fall["ms"][2] < 600, True, str((rise, fall)))
    steps = found["steps"]
    tap.equal((steps["lines"], steps["run"]["source"]), (steps["training"]["steps"], "counter"))
    tap.equal(steps["training"]["loss_last"] < steps["training"]["loss_first"], True, "the loss falls")
    for name in ("steady", "uneven"):
        told, lengths = found[name]["training"], {row["length_s"]: row for row in found[name]["lengths"]}
        tap.equal(told["steps"] > 10 and told["counter_j"] > 0 and told["step_flop"] > 1e9, True, str(told))
        if not lengths[1.0]["counter"]["median"] < 15:
            raise AssertionError(f"{name}: {lengths[1.0]}")
        tap.equal(lengths[1.0]["windows"] > 0 and lengths[1.0]["stated"] > 0, True, str(lengths[1.0]))
    tap.equal(0.02 in {row["length_s"] for row in found["steady"]["lengths"]}, True, "a step is such a window")
    checks = {row["check"]: row["outcome"] for row in found["selftest"]["findings"]}
    tap.equal(checks["load_raises_power"], "as_expected", str(checks))


def check_page(page):
    """The page's tables hold the figures as numbers, and nothing that is not known looks like 0."""
    found = tables(page)
    (title, *_), *rows = found["How the readings change"]
    tap.equal(title, "reading")
    counter = next(row for row in rows if row[:2] == ["energy counter (mJ)", "training"])
    near(float(counter[5].removeprefix("at most ")), 100, 0.1, "period on the page")
    refused = next(row for row in rows if row[:2] == ["field 185 (mW)", "training"])
    tap.equal(refused[3:], ["not known"] * 7)
    for section in ("Windows of a steady training", "Windows of a training with pauses"):
        _, *rows = found[section]
        for row in rows:
            length_s, took_s, windows = float(row[0]), float(row[1]), int(row[2])
            tap.equal(windows > 0 and took_s > 0.2 * length_s, True, str(row))
            median, p95 = map(float, row[4].split(", "))
            tap.equal(0 <= median <= p95, True, str(row))
    tap.equal("nan" in page.lower(), False)


def test_without_cuda_the_rest_is_measured():
    """Run from a packed copy, as on a machine that builds nothing."""
    packed = HOME / "packed"
    result = tap.run([ROOT / "scripts" / "pack_verify_gpu", packed], env=CLEAN, cwd=HOME)
    tap.equal((result.returncode, result.stdout, result.stderr), (0, "", ""))
    result = tap.run([packed / "run", *command(packed / "out", "--scale", "0.05")[2:]], cwd=HOME, timeout=400,
                     env={**environment("busy", STANDIN_CUDA="busy"), "BUILD_DIR": "/nowhere"})
    seen = json.loads((packed / "out" / "figures.json").read_text(encoding="utf-8"))
    page = next((packed / "out").glob("*.md")).read_text(encoding="utf-8")
    tap.equal((result.returncode, list(seen["failed"])), (1, ["response", "steps", "steady", "uneven"]), result.stderr)
    tap.contains(page, "## Not measured\n\n- response: ")
    tap.contains(page, "Power limits and persistence mode stand as before.")
    tap.contains(page, "energy counter (mJ)")
    tap.contains(page, "**No training ran in the rows that say training:** ")
    tap.contains(seen["found"]["loaded"]["without_load"], "'cuDevicePrimaryCtxRetain' of the CUDA driver failed with 46")
    check_names(page)


def test_knobs_are_turned_only_when_asked_for():
    result, page, seen = verify("knobs", "--scale", "0.1", machine=",any-user,settle-ms=5", TURN_KNOBS="1")
    tap.equal((result.returncode, seen["failed"]), (0, {}), result.stderr + page)
    tap.contains(page, "Power limits and clocks were set and put back")
    limit = seen["found"]["limit"]
    tap.equal((limit["limit_w"], limit["before"]), (250, limit["after"]))
    tap.equal(limit["lowered"]["time_s"] / limit["lowered"]["steps"] > limit["at_first"]["time_s"] / limit["at_first"]["steps"],
              True, "a step takes longer at the lower limit")
    tap.equal(seen["found"]["tune_power"]["tune"]["steps"] <= seen["found"]["tune_power"]["training"]["steps"], True)
    tap.equal(seen["found"]["unchanged"]["power"], seen["found"]["devices"]["power"])
    tap.contains(page, "## Knobs")


def test_an_interruption_leaves_nothing():
    with subprocess.Popen(command(HOME / "ended", "--scale", "5"), env=environment("ended"), cwd=HOME, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        for line in process.stderr:
            if "under a training" in line:
                break
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=tap.PATIENCE_S)
    tap.equal((process.returncode, out, list((HOME / "ended").glob("*.md"))), (130, "", []), err)
    tap.contains(err, "interrupted; no page is written")
    left = [path for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if str(HOME / "ended").encode() in cmdline(path)]
    tap.equal(left, [])


def cmdline(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


tap.main(globals())
