# SPDX-License-Identifier: Apache-2.0
"""`make verify-gpu` on emulated GPUs, with a stand-in of CUDA's driver whose kernels take time and power.

usage: verify_gpu.py FLYBALL SOURCE_ROOT
"""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import tap

FLYBALL = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(sys.argv[2]).resolve()
EMULATOR = pathlib.Path(os.environ["FLYBALL_TEST_EMULATOR"])
WORKER = pathlib.Path(os.environ["FLYBALL_TEST_BUILD"]) / "cuda" / "cuda_worker.so"
WORK = tempfile.TemporaryDirectory(prefix="flyball-verify-")
HOME = pathlib.Path(WORK.name)
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith(("FLYBALL_", "XDG_", "CUDA_", "STANDIN_", "TURN_KNOBS"))}
CLEAN |= {"HOME": str(HOME), "BUILD_DIR": str(FLYBALL.parent), "PYTHONDONTWRITEBYTECODE": "1"}
SHORT = "0.3"
SETTERS = ("nvmlDeviceSetPowerManagementLimit", "nvmlDeviceSetPowerManagementLimit_v2", "nvmlDeviceSetPersistenceMode",
           "nvmlDeviceSetGpuLockedClocks", "nvmlDeviceResetGpuLockedClocks", "nvmlDeviceSetMemoryLockedClocks",
           "nvmlDeviceResetMemoryLockedClocks")
STAGES = ["devices", "facts", "idle", "loaded", "response", "steps", "steady", "uneven", "selftest", "unchanged"]

sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))
import hardware_figures as figures  # noqa: E402
import hardware_programs  # noqa: E402


def command(work, *arguments):
    return [sys.executable, ROOT / "scripts" / "verify_gpu", "--nvml", EMULATOR / "libnvidia-ml.so.1", "--cuda", WORKER,
            "--work", work, "--scale", SHORT, *arguments]


def environment(name, machine="", **more):
    return {**CLEAN, "FLYBALL_EMULATOR_STATE": str(HOME / f"{name}.state"), "FLYBALL_EMULATOR": f"gpus=2,noise-w=1{machine}",
            **more}


def verify(name, *arguments, machine="", **more):
    """(the result, the page, the figures) of a whole run."""
    work = HOME / name
    result = tap.run(command(work, *arguments), env=environment(name, machine, **more), timeout=400, cwd=HOME)
    pages = list(work.glob("*.md"))
    tap.equal(len(pages) <= 1, True, str(pages))
    figures_path = work / "figures.json"
    return (result, pages[0].read_text(encoding="utf-8") if pages else "",
            json.loads(figures_path.read_text(encoding="utf-8")) if figures_path.exists() else None)


def near(value, expected, share, what):
    if value is None or abs(value - expected) > share * expected:
        raise AssertionError(f"{what}: expected about {expected}, got {value}")


def tables(page):
    """The rows of a page by its sections, each as a list of cells."""
    found, section = {}, ""
    for line in page.splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith("| ") and not line.startswith("| ---"):
            found.setdefault(section, []).append([cell.strip() for cell in line.strip("|").split("|")])
    return found


def check_names(page):
    """No name of the machine, its user or a card, and no path."""
    for name in [*map(re.escape, hardware_programs.own_names()), r"GPU-f1eba11", r":00\.0", re.escape(str(HOME)), r"/dev/shm"]:
        if re.search(rf"{name}", page):
            raise AssertionError(f"the page names {name}")


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
    tap.equal(list((ROOT / "docs" / "hardware").glob("EMULATED*")), [])
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


def test_no_driver():
    result = tap.run([sys.executable, ROOT / "scripts" / "verify_gpu", "--nvml", HOME / "libnvidia-ml.so.1", "--work",
                      HOME / "none"], env=CLEAN, timeout=60, cwd=HOME)
    tap.equal((result.returncode, result.stdout, len(result.stderr.splitlines())), (69, "", 1), result.stderr)
    tap.contains(result.stderr, "no GPU 0 of NVIDIA's answers on this machine (")
    tap.contains(result.stderr, "'PATH/libnvidia-ml.so.1'")
    tap.equal(list((HOME / "none").glob("*.md")), [])
    result = tap.run(command(HOME / "none", "--gpu", "7"), env=environment("seven"), timeout=60, cwd=HOME)
    tap.equal(result.returncode, 69, result.stderr)


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
        out, err = process.communicate(timeout=60)
    tap.equal((process.returncode, out, list((HOME / "ended").glob("*.md"))), (130, "", []), err)
    tap.contains(err, "interrupted; no page is written")
    left = [path for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if str(HOME / "ended").encode() in cmdline(path)]
    tap.equal(left, [])


def cmdline(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


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
