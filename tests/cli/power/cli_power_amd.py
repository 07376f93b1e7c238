# SPDX-License-Identifier: Apache-2.0
"""flyball power over AMD SMI's stand-in: limits set, put back by the guard and the journal, refused, and tuned.

usage: cli_power_amd.py FLYBALL SOURCE_ROOT

No AMD GPU was ever asked.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

import tap
from power_machine import CLEAN, FLYBALL, HOME, KNOBS, entries, kill_both, until_settled, wait_for

STANDIN = pathlib.Path(os.environ["FLYBALL_TEST_BUILD"]) / "amdsmi" / "amdsmi_26.so.26"
STATE = HOME / "amd"
ROOT = HOME / "root"
WHERE = ["--nvml", str(HOME / "none.so"), "--amdsmi", str(STANDIN), "--sysfs-root", str(ROOT)]
CAP_W = 700
ENVIRONMENT = {**CLEAN, "AMD_STATE": str(STATE), "AMD_GPUS": "2", "AMD_WANTED_W": "600",
               "FLYBALL_CONTAINED": "1"}  # where tests run in a container, nobody else is on these GPUs


def caps():
    """The limits of both GPUs, as the library has them."""
    files = [STATE / f"CAP_{index}" for index in (0, 1)]
    return [int(file.read_text().split()[0]) / 1e6 if file.exists() else CAP_W for file in files]


def level(index):
    file = STATE / f"LEVEL_{index}"
    return int(file.read_text()) if file.exists() else 0


@contextlib.contextmanager
def machine():
    """Two GPUs that nobody uses, in a state of their own, and a journal that is empty before and afterwards."""
    if not STANDIN.exists():
        raise tap.Skip("the stand-in is not built")
    for directory in (STATE, KNOBS, ROOT / "sys/class/kfd/kfd/proc"):
        directory.mkdir(parents=True, exist_ok=True)
    KNOBS.chmod(0o1777)
    try:
        yield
        tap.equal(entries(), [], "the journal afterwards")
    finally:
        for path in [*STATE.iterdir(), *KNOBS.iterdir()]:
            path.unlink()


def flyball(*words):
    end = words.index("--") if "--" in words else len(words)
    return [FLYBALL, *map(str, words[:end]), *WHERE, *map(str, words[end:])]


def run(*words, environment=None):
    return subprocess.run(flyball(*words), env={**ENVIRONMENT, **(environment or {})}, cwd=HOME, capture_output=True, text=True,
                          timeout=tap.PATIENCE_S, check=False)


def rows(*words):
    result = run(*words, "--format", "json")
    tap.equal(result.returncode, 0, result.stderr)
    return json.loads(result.stdout)["rows"]


def test_set_and_put_back_by_hand():
    with machine():
        tap.equal([(row["power_limit_w"], row["power_limit_default_w"], row["power_limit_max_w"]) for row in rows("power", "get")],
                  [(700.0, 750.0, 750.0)] * 2)
        result = run("power", "set", "400", "-i", "1")
        tap.equal((result.returncode, caps()), (0, [CAP_W, 400]), result.stderr)
        tap.equal(rows("power", "get", "-i", "1")[0]["journal_kept_from_w"], 700.0)
        tap.equal((run("power", "restore", "--kept").returncode, caps()), (0, [CAP_W, CAP_W]))
        tap.equal((run("power", "reset").returncode, caps()), (0, [750, 750]))
        run("power", "restore", "--kept")


def test_refused():
    with machine():
        for text, words in (("751", "choose one from 0 to 750 W"), ("0", "bad limit '0'"), ("200%", "bad limit")):
            result = run("power", "set", text)
            tap.equal((result.returncode, caps()), (64, [CAP_W] * 2))
            tap.contains(result.stderr, words)
        denied = run("power", "set", "400", environment={"AMD_FAIL_amdsmi_set_power_cap": "10"})
        tap.equal((denied.returncode, caps()), (77, [CAP_W] * 2), denied.stderr)
        tap.contains(denied.stderr, "sudo amd-smi set")


def test_nothing_is_turned_for_others():
    """Another process has memory or a queue on the GPU, or nobody can say."""
    with machine():
        process = ROOT / "sys/class/kfd/kfd/proc/1"
        process.mkdir()
        (process / "vram_4712").write_text("4096\n")
        try:
            result = run("power", "set", "400", "-i", "1")
            tap.equal((result.returncode, caps()), (75, [CAP_W] * 2))
            tap.contains(result.stderr, "computes on it")
            tap.equal((run("power", "set", "400", "-i", "0", "--", "true").returncode, caps()), (0, [CAP_W] * 2))
        finally:
            (process / "vram_4712").unlink()
            process.rmdir()
        (ROOT / "sys/class/kfd/kfd/proc").rename(ROOT / "sys/class/kfd/kfd/hidden")
        unknown = run("power", "set", "400")
        (ROOT / "sys/class/kfd/kfd/hidden").rename(ROOT / "sys/class/kfd/kfd/proc")
        tap.equal((unknown.returncode != 0, caps()), (True, [CAP_W] * 2))
        tap.contains(unknown.stderr, "cannot be found out")


def test_mps_shares_gpus_of_nvidia():
    """Whatever process of that name there is."""
    server = HOME / "nvidia-cuda-mps-server"
    server.symlink_to(shutil.which("sleep"))
    with machine(), tap.Program([server, "3600"]) as process:
        tap.eventually(lambda: pathlib.Path(f"/proc/{process.pid}/comm").read_text() == "nvidia-cuda-mps\n")
        result = run("power", "set", "400", "--", "sh", "-c", f"cat {STATE}/CAP_0 {STATE}/CAP_1")
        process.kill()
    tap.equal((result.returncode, result.stdout.count("400000000 ")), (0, 2), result.stderr)
    server.unlink()


def test_guard_puts_back():
    """Around a program, at its end and when Flyball is killed."""
    with machine():
        seen = run("power", "set", "300", "--", "sh", "-c", f"cat {STATE}/CAP_0 {STATE}/CAP_1; exit 3")
        tap.equal((seen.returncode, seen.stdout.count("300000000 "), caps()), (3, 2, [CAP_W] * 2), seen.stderr)
        with subprocess.Popen(flyball("power", "set", "300", "--for", "10min"), env=ENVIRONMENT, cwd=HOME, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as process:
            wait_for(lambda: caps() == [300, 300], "both limits are set")
            tap.equal(entries(), ["turned", "turned"])
            process.kill()
        wait_for(lambda: caps() == [CAP_W] * 2, "the guard puts both back")
        wait_for(lambda: entries() == [], "the journal is empty")


def test_journal_puts_back():
    """Where guard and program are both killed, the next command does it; what another program set stays."""
    with machine():
        with subprocess.Popen(flyball("power", "set", "300", "--for", "10min"), env=ENVIRONMENT, cwd=HOME, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as process:
            wait_for(lambda: caps() == [300, 300] and len(entries()) == 2, "both limits are set")
            kill_both(process)
        tap.equal(caps(), [300, 300])
        (STATE / "CAP_1").write_text("350000000 0 0")
        tap.equal(run("power", "restore").returncode, 0)
        tap.equal(caps(), [CAP_W, 350])


def test_levels():
    """A performance level is put back as a limit is, by hand, by the guard and from the journal."""
    with machine():
        result = run("power", "set", "--level", "low", "-i", "1")
        tap.equal((result.returncode, level(0), level(1), caps()), (0, 0, 1, [CAP_W] * 2), result.stderr)
        row = rows("power", "get", "-i", "1")[0]
        tap.equal((row["performance_level"], row["power_limit_w"]), ("low", 700.0))
        back = rows("power", "restore", "--kept")
        tap.equal([(row["performance_level_before"], row["performance_level_set"], row["end"]) for row in back],
                  [("auto", "low", "restored")])
        tap.equal(level(1), 0)
        both = run("power", "set", "300", "--level", "high", "--", "sh", "-c", f"cat {STATE}/LEVEL_0 {STATE}/CAP_0")
        tap.equal((both.returncode, both.stdout[:11], level(0), caps()), (0, "2300000000 ", 0, [CAP_W] * 2), both.stderr)
        with subprocess.Popen(flyball("power", "set", "--level", "stable_std", "--for", "10min"), env=ENVIRONMENT, cwd=HOME,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            wait_for(lambda: (level(0), level(1)) == (4, 4), "both levels are set")
            process.kill()
        wait_for(lambda: (level(0), level(1)) == (0, 0), "the guard puts both back")
        tap.equal((run("power", "set", "--level", "low").returncode, run("power", "reset").returncode, level(0), level(1)), (0, 0, 0, 0))
        run("power", "restore", "--kept")
        for path in STATE.iterdir():
            path.unlink()


def test_levels_in_the_journal():
    with machine():
        with subprocess.Popen(flyball("power", "set", "--level", "low", "--for", "10min", "-i", "0"), env=ENVIRONMENT, cwd=HOME,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            wait_for(lambda: level(0) == 1, "the level is set")
            wait_for(lambda: [path.suffix for path in KNOBS.iterdir() if path.suffix.startswith(".turned")] == [".turned2"], "an entry")
            kill_both(process)
        tap.equal(level(0), 1)
        repaired = run("power", "restore")
        tap.equal((repaired.returncode, level(0)), (0, 0), repaired.stderr)
        tap.contains(repaired.stdout + repaired.stderr, "is 'auto' again")


def test_levels_refused():
    """One that could not be put back is neither set nor left."""
    with machine():
        for word in ("manual", "determinism", "loud"):
            tap.equal(run("power", "set", "--level", word).returncode, 64, word)
        (STATE / "LEVEL_0").write_text("3")
        refused = run("power", "set", "--level", "low", "-i", "0")
        tap.equal((refused.returncode, level(0)), (75, 3))
        tap.contains(refused.stderr, "with clocks that could not be put back")
        tap.equal(run("power", "set", "--level", "low", "-i", "1", environment={"AMD_FAIL_amdsmi_get_gpu_perf_level": "2"}).returncode, 69)


# Reports steps whose time follows the cap: at 300 W they take 1.25 times as long as at 600 W and above. A step that
# the machine delays is made up for by the next ones. It ends after eight times so many steps, or as soon as a cap
# or clock below the highest has stood for so many: where steps are regular, no search stays for 1000.
TRAINER = """
import os, pathlib, sys, time
fd, state, due = int(os.environ["FLYBALL_STEP_FD"]), pathlib.Path(sys.argv[1]), time.monotonic()
cap, clock = state / "CAP_0", state / "CLOCK_HIGHEST_0"
before, since = None, 0
stands = int(sys.argv[2])
for step in range(8 * stands):
    os.write(fd, b"\\n")
    cap_w = int(cap.read_text().split()[0]) / 1e6 if cap.exists() else 700.0
    now = cap_w, int(clock.read_text() or 0) if clock.exists() else 2100
    if now != before:
        before, since = now, step
    if (now[0] < 700.0 or now[1] < 2100) and step - since > stands:
        break
    due = max(due, time.monotonic() - 0.1) + 0.005 * max(1.0, 1.5 - cap_w / 1200.0)
    time.sleep(max(0.0, due - time.monotonic()))
"""


def test_tuner():
    """Limits are searched down to 30 % of the highest, as the library names no lowest, and are back at the end."""
    with machine():
        path = HOME / "report.json"

        def tuned(steps):
            result = run("run", "--tune", "-i", "0", "--objective", "energy", "--max-slowdown", "none", "--energy-tolerance", "1", "--output", str(path), "--",
                         sys.executable, "-c", TRAINER, str(STATE), str(steps))
            tap.equal((result.returncode, caps()), (0, [CAP_W] * 2), result.stderr)
            return result, json.loads(path.read_text())["tune"]

        _, told = until_settled(tuned, 1000)
        tried = [point["limit_w"] for point in told["points"]]
        tap.equal((max(tried), min(tried), (told["chosen_limit_w"] or 750.0) < 500), (750.0, 225.0, True), json.dumps(told))


def test_clock_of_others_stays():
    """A training's clock is not held while somebody has chosen how it is set; without that it is, and freed again."""
    with machine():
        (STATE / "LEVEL_0").write_text("2")
        words = ["run", "--tune", "--knob", "clock", "-i", "0", "--energy-tolerance", "1", "--", sys.executable, "-c", TRAINER, str(STATE)]
        steps, said = 190, "its performance level is 'high', which somebody set"
        refused = run(*words, str(steps))
        while said not in refused.stderr and steps < 2000:  # ended before the first try, as on a busy machine
            steps *= 2
            refused = run(*words, str(steps))
        tap.equal((refused.returncode, level(0), (STATE / "CLOCK_HIGHEST_0").exists()), (0, 2, False), refused.stderr)
        tap.contains(refused.stderr, said)
        (STATE / "LEVEL_0").unlink()
        held = run(*words, "1000")
        tap.equal((held.returncode, level(0), (STATE / "CLOCK_HIGHEST_0").read_text()), (0, 0, "2100"), held.stderr)


tap.main(globals())
