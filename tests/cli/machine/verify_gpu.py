# SPDX-License-Identifier: Apache-2.0
"""`make verify-gpu`: how it ends where it cannot go on, and what it makes of readings. Whole runs: verify_gpu_runs.py.

usage: verify_gpu.py FLYBALL SOURCE_ROOT
"""

import os
import random
import re
import shutil
import sys

import tap
from verify_common import CLEAN, EMULATOR, FLYBALL, HOME, ROOT, STAGES, WORKER, command, environment, near, verify
import hardware_figures as figures  # noqa: E402


def test_no_driver():
    result = tap.run([sys.executable, ROOT / "scripts" / "verify_gpu", "--nvml", HOME / "libnvidia-ml.so.1", "--work",
                      HOME / "none"], env=CLEAN, timeout=tap.PATIENCE_S, cwd=HOME)
    tap.equal((result.returncode, result.stdout, len(result.stderr.splitlines())), (69, "", 1), result.stderr)
    tap.contains(result.stderr, "no GPU 0 of NVIDIA's answers on this machine (")
    tap.contains(result.stderr, "'PATH/libnvidia-ml.so.1'")
    tap.equal(list((HOME / "none").glob("*.md")), [])
    result = tap.run(command(HOME / "none", "--gpu", "7"), env=environment("seven"), timeout=tap.PATIENCE_S, cwd=HOME)
    tap.equal(result.returncode, 69, result.stderr)


def test_the_time_is_bounded():
    result, page, seen = verify("short", "--scale", "0.05", "--within", "1")
    tap.equal((result.returncode, list(seen["failed"])[-3:]), (1, ["steady", "uneven", "selftest"]), result.stderr)
    tap.equal((list(seen["found"])[-1], sorted([*seen["found"], *seen["failed"]])), ("unchanged", sorted(STAGES)))
    tap.contains(page, "the 1 s for all stages were over; give more with --within")


def test_why_a_training_ends():
    """Each bad day of a driver in a sentence."""
    for habit, status, why in (("no_init", 69, "'cuInit' of the CUDA driver failed with 100"), ("no_gpu", 69, "CUDA knows no GPU"),
                               ("no_compiler", 69, "does not compile the kernels (code 218)"),
                               ("launch_fails", 74, "'cuLaunchKernel' of the CUDA driver failed with 719")):
        result = tap.run([FLYBALL.parent / "verify" / "verify_train", "--nvml", EMULATOR / "libnvidia-ml.so.1", "--cuda", WORKER],
                         env=environment(habit, STANDIN_CUDA=habit), cwd=HOME)
        tap.equal((result.returncode, result.stdout, len(result.stderr.splitlines())), (status, "", 1), result.stderr)
        tap.contains(result.stderr, why)


def made_rows(period_s, jitter_s, skipped=(), poll_s=1e-4, bursts=((0, 4.0), (10.0, 1.0), (20.0, 1.0))):
    """The lines of a counter that is polled, by its course."""
    dice, rows = random.Random(5), {"polls": [], "change": []}
    for number, (start_s, length_s) in enumerate(bursts):
        first = round(start_s / period_s) + 1
        for place in range(first, first + int(length_s / period_s) - 1):
            if place in skipped:
                continue
            at_ns = 1_000_000_000 * (1000 + place * period_s + dice.uniform(-jitter_s, jitter_s))
            rows["change"].append(["energy", str(number), str(int(at_ns - 1e9 * poll_s)), "0", str(int(at_ns + 1e9 * poll_s)),
                                   str(30_000 * place)])
        rows["polls"].append(["energy", str(number), str(int(length_s / poll_s)), "0", str(int(1e9 * length_s))])
    return rows


def test_periods_jitter_and_skipped_updates_are_found():
    rows = made_rows(0.1, 0.003, skipped=(7, 8, 20))
    seen = figures.updates(rows, "energy")
    near(seen["period_ms"], 100, 0.002, "period")
    tap.equal((seen["skipped"], seen["at_most"], seen["divisor"]), (3, False, 30_000))
    tap.equal(0.3 < seen["jitter_ms"]["median"] < 3 and seen["jitter_ms"]["highest"] < 4, True, str(seen["jitter_ms"]))
    tracked = figures.tracking(made_rows(0.020002, 0.0))
    near(tracked["period_ms"], 20.002, 1e-6, "tracked period")
    tap.equal((len(tracked["bursts"]), max(abs(burst["offset_ms"]) for burst in tracked["bursts"]) < 1), (2, True), str(tracked))
    tap.equal(figures.updates({}, "energy"), None)
    tap.equal(figures.updates(made_rows(5.0, 0.0), "energy")["period_ms"], None)


def test_what_is_only_updated_on_reading_shows():
    dice = random.Random(3)
    times = [1000 + sum(dice.uniform(0.005, 0.25) for _ in range(count)) for count in range(60)]
    times.sort()
    for period_s, expected in ((0.1, 0.29), (1e-9, 0.0)):
        rows = {"sparse": [[str(int(time_s * 1e9))] * 2 + [str(round(int(time_s / period_s) * period_s * 300_000))]
                           for time_s in times]}
        near(figures.sparse(rows, 100)["updates"] + 1, expected + 1, 0.06, f"period {period_s}")


def test_a_response_is_timed_from_the_edges_of_the_load():
    def course(time_s):
        within = time_s % 3
        share = within / 0.5 if within < 0.5 else 1 if within < 1.5 else max(0, 1 - (within - 1.5) / 0.2)
        return 100_000 + round(200_000 * share)

    rows = {"watch": [["power", str(at * 1_000_000), str(at * 1_000_000), str(course(at / 1000))] for at in range(9000)]}
    seen = figures.response(rows, [(start, start + 1.5) for start in (0, 3, 6)])["power"]
    tap.equal((seen["rise"]["count"], seen["fall"]["count"]), (2, 2))
    for edge, whole_ms in (("rise", 500), ("fall", 200)):
        for share, took_ms in zip((0.1, 0.5, 0.9), seen[edge]["ms"]):
            near(took_ms, share * whole_ms, 0.05, edge)
    tap.equal(figures.response(rows, [(0, 1.5)])["power"]["rise"], {"count": 0, "ms": [None, None, None]})


def test_a_counter_that_sums_the_readings_shows():
    rows = {"field": []}
    for at in range(1000):
        tick = (at + 30) // 100
        for name, value in (("energy", 20_000 * tick), ("power_instant", 200_000 + tick % 2)):
            rows["field"].append([name, str(at * 1_000_000), str(at * 1_000_000), "0", "0", "0", "0", str(value)])
    seen = figures.together(rows, 100.0)
    tap.equal((seen["changes"], seen["at_once"]), (10, 10))
    for ratio in seen["ratio"]:
        near(ratio, 1, 0.001, "what the counter gained")
    tap.equal((figures.together(rows, None), figures.together({}, 100.0)), (None, None))


def test_errors_are_those_against_equal_work():
    rows = [{"length_s": 2.0, "units": 100, "begin_ns": at * 1e9, "end_ns": (at + 2) * 1e9, "time_s": 2.0, "counter_j": 1000.0 + at,
             "energy_j": (1000.0 + at) * 1.02, "uncertainty_j": 10.0 if at % 2 else 40.0, "integral_j": None, "source": "counter"}
            for at in range(0, 40, 3)]
    (row,) = figures.window_errors(rows, {"counter_j": 1.0, "units": 1.0})
    near(row["energy"]["median"], 2.0, 0.01, "error")
    near(row["counter"]["p95"] + 1, 1.0, 0.01, "the drift is taken out")
    tap.equal((row["integral"]["count"], row["integral"]["median"], row["held"]), (0, None, 50.0))
    tap.equal(figures.window_errors(rows, {}) != [], True)


def test_the_kernels_compile():
    """With NVIDIA's assembler where there is one; the text itself is held to what the oldest target knows."""
    text = (ROOT / "verify" / "training_kernels.ptx").read_text(encoding="ascii")
    tap.contains(text, "\n.version 6.0\n.target sm_50\n.address_size 64\n")
    tap.equal(text.count("{") == text.count("}") and text.endswith("}\n\n"), True)
    names = {"multiply", "update", "loss", "fill"}
    tap.equal({name for name in names if f".visible .entry flyball_{name}(" in text}, names)
    newer = re.findall(r"^\s*(?:@%p\d+ )?((?:mma|wmma|wgmma|cp\.|ldmatrix|redux|shfl\S*\.sync|activemask|fence|setmaxnreg)\S*)", text,
                       re.MULTILINE)
    tap.equal(newer, [])
    assembler = shutil.which("ptxas", path=os.environ.get("PATH", "") + ":/usr/local/cuda/bin")
    if assembler is None:
        raise tap.Skip("there is no ptxas here")
    for target in ("sm_75", "sm_80", "sm_90"):
        result = tap.run([assembler, f"-arch={target}", "-o", "/dev/null", ROOT / "verify" / "training_kernels.ptx"])
        tap.equal((result.returncode, result.stderr), (0, ""), target)


tap.main(globals())
