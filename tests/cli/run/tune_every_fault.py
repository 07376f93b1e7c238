# SPDX-License-Identifier: Apache-2.0
"""Every fault of the emulator's script, in every call of the driver, while `flyball run --tune` searches.

usage: tune_every_fault.py FLYBALL SOURCE_ROOT

Each case is a machine of its own with one GPU. Whatever fails, and whenever, the program keeps
its status and output, the GPU stands in the end at the limit that it began with, and the report
says why if tuning came to nothing. Where the fault keeps the limit from being set back, the
report says so, the rest is owed, and `flyball power restore` does it when the driver works again.
FLYBALL_TEST_QUICK=1 takes every fourth of the cases.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import sys
import tempfile

import tap

FLYBALL = os.path.abspath(sys.argv[1])
SOURCE = pathlib.Path(sys.argv[2]).resolve()
BUILT = pathlib.Path(os.environ.get("FLYBALL_TEST_EMULATOR", os.path.join(os.path.dirname(FLYBALL), "emulator")))
LIBRARY, EMULATOR = BUILT / "libnvidia-ml.so.1", BUILT / "flyball-emulator"
QUICK = os.environ.get("FLYBALL_TEST_QUICK") == "1"
WORK = tempfile.TemporaryDirectory(prefix="flyball-tune-faults-")
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith(("FLYBALL_", "XDG_", "SLURM", "CUDA_", "LC_", "LANG"))}
# Not the highest, so that the first turn is one.
START_W = 300
# Some limits are tried in this time, and the first fails by then.
STEPS = ["--sample-ms", "0.001", "--step-ms", "4", "--steps", "350"]
AT_ONCE = 32

# The calls that the search makes again and again fail in every way, from the first and from later calls on.
IN_THE_SEARCH = ("energy", "power", "fields", "limit", "limit_enforced", "set_limit", "throttle", "processes")
EVERY_KIND = (
    "return 3", "return 4", "return 15", "return 999", "missing", "no-permission", "slow 60ms", "nth 2 return 999", "nth 3 no-permission",
    "from 2 return 15", "from 3 return 999", "from 4 missing", "from 5 return 4", "every 2 return 999", "nth 2 lost", "nth 5 lost",
    "nth 3 hot", "nth 3 reset-counter",
)
# The others are made at the start, or may be without effect.
SOME_KINDS = ("return 999", "from 2 return 15", "nth 2 lost")


def calls():
    """Slot -> names, from the table of the back end."""
    text = (SOURCE / "src" / "device" / "nvidia" / "nvml_library.h").read_text(encoding="utf-8")
    table = text[text.index("#define NVML_CALLS(X)"):].split("\n\n", 1)[0].replace("\\\n", " ")
    return {slot: re.findall(r"\"(\w+)\"", names) for slot, names in re.findall(r"X\((\w+), \w+, \w+,((?:\s*\"\w+\",?)+)\)", table)}


CALLS = calls()


class Machine:
    """One emulated GPU with a fault script, in a directory of its own."""

    def __init__(self, directory, script):
        self.home = pathlib.Path(directory)
        (self.home / "faults").write_text(script)
        self.environment = {**CLEAN, "HOME": directory, "XDG_RUNTIME_DIR": directory, "FLYBALL_RUNTIME_DIR": str(self.home / "knobs"),
                            "FLYBALL_EMULATOR_STATE": str(self.home / "state")}
        (self.home / "knobs").mkdir()
        self.emulator("start", "--gpus", "1", "--model", "a100", "--any-user=yes", "--sensor", "exact", "--counter-period-ms", "0",
                      "--faults", str(self.home / "faults"))
        self.emulator("set", "--gpu", "0", "--limit-w", str(START_W))

    def emulator(self, *words):
        result = tap.run([EMULATOR, *words], env=self.environment)
        tap.equal(result.returncode, 0, result.stderr)
        return result.stdout

    def flyball(self, *words, program=()):
        options = ["--nvml", str(LIBRARY), "--amdsmi", str(self.home / "none"), "--sysfs-root", str(self.home)]
        result = tap.run([FLYBALL, *words, *options, *program], env=self.environment, cwd=self.home)
        for word in ("Sanitizer", "runtime error"):
            tap.equal(word in result.stderr, False, result.stderr)
        return result

    def tune(self, pause_s):
        """The finished program, the report's word on tuning, and the limit that stood when no step had come for a while."""
        words = (f"{EMULATOR} train {' '.join(STEPS)} >/dev/null; sleep {pause_s}; {EMULATOR} show --json >seen.json; "
                 "echo hello; exit 7")
        result = self.flyball("run", "-v", "--tune", "--knob", "power", "--objective", "energy", "--profile-steps", "60", "--energy-tolerance", "1",
                              "--output", str(self.home / "report.json"), program=("--", "sh", "-c", words))
        seen = json.loads((self.home / "seen.json").read_text())["gpus"][0]["limit_w"]
        return result, json.loads((self.home / "report.json").read_text())["tune"], seen

    def limit_w(self):
        return json.loads(self.emulator("show", "--json"))["gpus"][0]["limit_w"]

    def entries(self):
        """What is turned, or owed, by the journal."""
        return [path.name for path in (self.home / "knobs").iterdir() if path.suffix in (".turned", ".owed")]


def reason_of(said):
    """Why nothing was tuned; None where the search was under way or done."""
    if said["off"] is not None:
        return said["off"]
    return said["reason_text"] if said["state"] == "stopped" else None


def check_end(machine, said, result, context, lost):
    """The limit of the start, or a debt and a report that say otherwise; of a GPU that is lost nobody knows."""
    if machine.limit_w() == START_W and not (lost and machine.entries()):
        tap.equal(machine.entries(), [], context)
        return
    tap.equal(([gpu["end"] for gpu in said["gpus"]], len(machine.entries())), (["stuck"], 1), f"{context} {result.stderr}")
    tap.contains(result.stderr, "'flyball power restore -i 0' tries again", context)
    if not lost:
        restored = machine.flyball("power", "restore")
        tap.equal((restored.returncode, machine.limit_w(), machine.entries()), (0, START_W, []), f"{context} {restored.stderr}")


def check_report(said, result, context):
    tap.equal((result.returncode, result.stdout), (7, "hello\n"), f"{context}\n{result.stderr}")
    tap.equal(said["steps"] == 350 or "lost" in context, True, f"{context}: {said['steps']} steps")
    tap.equal(said["state"] in ("off", "stopped", "searching", "checking", "settled"), True, f"{context}: {said}")
    if said["state"] in ("off", "stopped"):
        tap.equal(len(reason_of(said) or "") > 10, True, f"{context}: {said}")
        if not re.search("^flyball: (nothing saved|tuning stopped): ", result.stderr, re.M):
            raise AssertionError(f"{context}: {result.stderr}")


def check(slot, kind, pause_s=0.1):
    context = f"{slot} {kind}"
    script = "".join(f"{'' if slot in MACHINE_WIDE else 'gpu 0 '}call {name} {kind}\n" for name in CALLS[slot])
    with tempfile.TemporaryDirectory(dir=WORK.name) as directory:
        machine = Machine(directory, script)
        try:
            result, said, seen_w = machine.tune(pause_s)
            check_report(said, result, context)
            check_end(machine, said, result, context, "lost" in kind)
        finally:
            machine.emulator("stop")
    # The training went on at the start's limit, where the driver let it.
    if said["state"] in ("off", "stopped") and seen_w != START_W and [gpu["end"] for gpu in said["gpus"]] == ["put back"]:
        tap.equal(pause_s, 0.1, f"{context}: {seen_w} W stood on for {pause_s} s; {said}")
        return check(slot, kind, 5)
    return said["state"], reason_of(said), [point["mark"] for point in said["points"]]


MACHINE_WIDE = ("init", "shutdown", "count", "driver_version")


def cases():
    for slot in CALLS:
        for kind in EVERY_KIND if slot in IN_THE_SEARCH else SOME_KINDS:
            if not (slot in MACHINE_WIDE and "lost" in kind):
                yield slot, kind


def outcomes(chosen):
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        futures = {case: pool.submit(check, *case) for case in chosen}
        return {case: future.result() for case, future in futures.items()}


def test_without_a_fault():
    for _ in range(10):  # another program may hold this one up for as long as the steps last
        state, reason, points = check("limit", "nth 100000 return 999")
        if "valid" in points:
            break
    tap.equal((state, reason, "valid" in points), ("searching", None, True), points)


def test_every_fault_in_every_call():
    chosen = list(cases())
    found = outcomes(chosen[::4] if QUICK else chosen)
    if os.environ.get("FLYBALL_TEST_SHOW"):
        for case, outcome in found.items():
            print("#", *case, "->", outcome[0], outcome[1], [mark for mark in outcome[2] if mark != "not measured"])
    # What has to fail does: nothing is tuned by a limit that cannot be set, or that nobody can read.
    for (slot, kind), (state, reason, _) in found.items():
        if slot == "set_limit" and kind.startswith(("return", "missing", "no-permission")):
            tap.equal(state in ("off", "stopped"), True, f"{slot} {kind}: {state}, {reason}")
    stopped = [case for case, outcome in found.items() if outcome[0] == "stopped"]
    tap.equal(len(stopped) >= (1 if QUICK else 6), True, stopped)


tap.main(globals())
