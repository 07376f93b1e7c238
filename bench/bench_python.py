#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the Python package costs: its import, a window, and a step, over an emulated GPU.

usage: bench_python.py BUILD

Each line is a figure and its ratio to references that were measured in the same run, in turns with it: a call of
an empty Python function, and the same done in Python alone. Nothing here passes or fails.
"""

import ctypes
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import repeat

BUILD = pathlib.Path(sys.argv[1]).resolve()
PACKAGE, EMULATOR = BUILD / "python", BUILD / "emulator"
LIBRARY = EMULATOR / "libnvidia-ml.so.1"
# Short rounds, so that on a busy machine some of them pass undisturbed.
ROUNDS, CALLS, WINDOWS, STARTS = 101, 10_000, 500, 25


def nanoseconds(call, calls):
    begin = time.perf_counter_ns()
    for _ in repeat(None, calls):
        call()
    return (time.perf_counter_ns() - begin) / calls


def rounds(calls, count):
    """For each of several calls the nanoseconds of all rounds, measured in turns."""
    taken = [[] for _ in calls]
    for _ in range(ROUNDS):
        for values, call in zip(taken, calls):
            values.append(nanoseconds(call, count))
    return taken


def figure(values, digits=0):
    return f"{min(values):.{digits}f} ns (median {statistics.median(values):.{digits}f}, {max(values):.{digits}f} at most)"


def times(values, others):
    return f"{min(values) / min(others):.2f} times"


def empty():
    pass


# ---- import ----

IMPORTS = """\
import os, sys, time
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
before, begin = resident(), time.process_time_ns()
{}
print((time.process_time_ns() - begin) / 1e6, resident() - before)
"""


def imported(line):
    command = [sys.executable, "-c", IMPORTS.format(line)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(PACKAGE)}, stdout=subprocess.PIPE, text=True, check=True)
    return tuple(map(float, done.stdout.split()))


def bench_import():
    ours, others = [], []
    for _ in range(STARTS):
        ours.append(imported("import flyball"))
        others.append(imported("import sqlite3"))
    (ms, mib), (other_ms, other_mib) = ([sorted(column) for column in zip(*values)] for values in (ours, others))
    print(f"import flyball               {ms[0]:.1f} ms of processor time (median {statistics.median(ms):.1f}, {ms[-1]:.1f} at most), {mib[-1]:.1f} MiB at most; "
          f"{ms[0] / other_ms[0]:.2f} times 'import sqlite3' ({other_ms[0]:.1f} ms, {other_mib[-1]:.1f} MiB)")


# ---- windows ----


class PythonMeter:
    """A window as a program without Flyball would measure it: the counter's difference, by ctypes."""

    def __init__(self):
        library = ctypes.CDLL(str(LIBRARY))
        self.energy = library.nvmlDeviceGetTotalEnergyConsumption
        self.energy.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_ulonglong)]
        self.device = ctypes.c_void_p()
        if library.nvmlInit_v2() != 0 or library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device)) != 0:
            sys.exit("bench_python: the emulated driver does not start")
        self.open = {}

    def read(self):
        counter = ctypes.c_ulonglong()
        if self.energy(self.device, ctypes.byref(counter)) != 0:
            raise RuntimeError("the counter cannot be read")
        return time.monotonic(), counter.value / 1000

    def begin(self, name):
        self.open[name] = self.read()

    def end(self, name):
        begin_s, begin_j = self.open.pop(name)
        end_s, end_j = self.read()
        return end_s - begin_s, end_j - begin_j


def in_c():
    command = [BUILD / "bench" / "bench_window", LIBRARY, str(WINDOWS), str(ROUNDS)]
    return list(map(float, subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()))


def bench_window(flyball):
    other = PythonMeter()
    with flyball.Monitor(nvml_path=LIBRARY, amdsmi_path="/none") as meter:

        def ours():
            meter.begin("bench").end()

        def block():
            with meter.window("bench"):
                pass

        def python():
            other.begin("bench")
            other.end("bench")

        bare = in_c()
        ours_ns, block_ns, python_ns, empty_ns = rounds((ours, block, python, empty), WINDOWS)
        bare += in_c()
    print(f"begin and end, in C          {figure(bare)}")
    for name, values in (("begin and end", ours_ns), ("a with block", block_ns)):
        print(f"{name:28} {figure(values)}; {min(values) - min(bare):.0f} ns above C; {times(values, python_ns)} a pure-Python "
              f"difference of the counter ({min(python_ns):.0f} ns), {times(values, empty_ns)} an empty Python call ({min(empty_ns):.0f} ns)")


# ---- steps ----


class PythonTuner:
    """What a settled step does at least, written in Python."""

    def __init__(self):
        self.settled, self.steps_begun = True, 0

    def step(self):
        if not self.settled:
            raise NotImplementedError
        self.steps_begun += 1

    def steps(self, loader):
        for batch in loader:
            self.step()
            yield batch


def iterated(steps):
    """The nanoseconds of a batch in a loop over so many."""
    begin = time.perf_counter_ns()
    for _ in steps(range(CALLS)):
        pass
    return (time.perf_counter_ns() - begin) / CALLS


def bench_steps(name, step, steps):
    pure = PythonTuner()
    ours_ns, pure_ns, empty_ns = rounds((step, pure.step, empty), CALLS)
    print(f"{name:28} {figure(ours_ns)}; {times(ours_ns, pure_ns)} the same in Python ({min(pure_ns):.0f} ns), "
          f"{times(ours_ns, empty_ns)} an empty Python call ({min(empty_ns):.0f} ns)")
    loops = [(iterated(steps), iterated(pure.steps), iterated(iter)) for _ in range(ROUNDS)]
    ours, others, bare = zip(*loops)
    print(f"{name + ', in a loop':28} {figure(ours)}; {times(ours, others)} the same in Python ({min(others):.0f} ns); "
          f"a bare loop {min(bare):.0f} ns")


def settle(tuner):
    """Steps until the search is over."""
    while tuner.state in ("waiting", "searching", "checking"):
        tuner.step_begin()
        time.sleep(0.001)
    if tuner.state != "settled":
        sys.exit(f"bench_python: {tuner.report.text}")


def bench_tuner(flyball):
    with flyball.Monitor(nvml_path=LIBRARY, amdsmi_path="/none") as meter:
        with flyball.Tuner(meter, objective="lowest-limit", limits_w=[400, 200], warmup_steps=1, profile_steps=5) as tuner:
            settle(tuner)
            bench_steps("Tuner, a settled step", tuner.step_begin, tuner.steps)


def bench_session(flyball):
    with flyball.Session("bench", default=64, leave_limits=True) as session:
        session.epoch_begin()
        session.step_begin()
        bench_steps("Session, a settled step", session.step_begin, session.steps)


def main():
    sys.path.insert(0, str(PACKAGE))
    bench_import()
    import flyball

    bench_window(flyball)
    bench_tuner(flyball)
    bench_session(flyball)


if __name__ == "__main__":
    if "FLYBALL_BENCH_PYTHON" in os.environ:
        main()
    else:
        with tempfile.TemporaryDirectory(prefix="flyball-bench-") as home:
            clean = {name: value for name, value in os.environ.items() if not name.startswith(("FLYBALL_", "CUDA_", "XDG_"))}
            inside = {**clean, "HOME": home, "XDG_RUNTIME_DIR": home, "FLYBALL_RUNTIME_DIR": home, "FLYBALL_EMULATOR_STATE": f"{home}/gpus",
                      "FLYBALL_STORE": f"{home}/store.sqlite", "FLYBALL_GUARD": str(BUILD / "flyball-guard"), "FLYBALL_BENCH_PYTHON": "1"}
            sys.exit(subprocess.run([EMULATOR / "flyball-emulator", "run", "--gpus", "1", "--ideal", "--load-w", "300",
                                     "--counter-period-ms", "0", "--any-user", "--",
                                     sys.executable, __file__, str(BUILD)], env=inside, check=False).returncode)
