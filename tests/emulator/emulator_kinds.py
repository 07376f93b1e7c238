# SPDX-License-Identifier: Apache-2.0
"""Kinds of processes on emulated GPUs, MIG instances and pid namespaces, as a driver lists them.

usage: emulator_kinds.py FLYBALL ROOT
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import tap

FLYBALL = pathlib.Path(sys.argv[1]).resolve()
EMULATOR = FLYBALL.parent / "emulator" / "flyball-emulator"
SANITIZED = bool(tap.sanitizers(FLYBALL))
PATIENCE_S = tap.PATIENCE_S
HOME = tempfile.TemporaryDirectory()
os.environ["FLYBALL_EMULATOR_STATE"] = str(pathlib.Path(HOME.name) / "state")
os.environ.pop("FLYBALL_EMULATOR", None)


def emulator(*arguments, **options):
    return tap.run([EMULATOR, *arguments], **options)


def show():
    return json.loads(emulator("show", "--json").stdout)


class Machine:
    """Emulated GPUs for the length of a with statement."""

    def __init__(self, *arguments):
        self.arguments = arguments

    def __enter__(self):
        started = emulator("start", *self.arguments)
        tap.equal(started.returncode, 0, started.stderr)

    def __exit__(self, *_):
        tap.equal(emulator("stop").returncode, 0)


def near(value, expected, within):
    if not abs(value - expected) <= within:
        raise AssertionError(f"{value} is not within {within} of {expected}")


def processes(function):
    """What a driver's list of GPU 0 says, to a process of its own."""
    if SANITIZED:
        raise tap.Skip("Python cannot load a library that is built with a sanitizer")
    script = ("import ctypes, sys\n"
              "class P(ctypes.Structure): _fields_ = [('pid', ctypes.c_uint), ('memory', ctypes.c_ulonglong),"
              " ('gi', ctypes.c_uint), ('ci', ctypes.c_uint)]\n"
              "nvml = ctypes.CDLL(sys.argv[1]); nvml.nvmlInit_v2(); gpu = ctypes.c_void_p()\n"
              "nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(gpu)); n = ctypes.c_uint(16); out = (P * 16)()\n"
              "assert getattr(nvml, sys.argv[2])(gpu, ctypes.byref(n), out) == 0\n"
              "print(*[f'{out[i].pid}:{out[i].gi}' for i in range(n.value)])")
    return tap.run([sys.executable, "-c", script, EMULATOR.parent / "libnvidia-ml.so.1", function]).stdout.split()


NOWHERE = 2**32 - 1
COMPUTE, GRAPHICS, CLIENTS = (f"nvmlDeviceGet{kind}RunningProcesses_v3" for kind in ("Compute", "Graphics", "MPSCompute"))


class Programs:
    """Programs of flyball-emulator, each begun once the GPU shows it, and ended together."""

    def __enter__(self):
        self.programs = []
        return self

    def begin(self, *arguments, prefix=()):
        known = len(show()["gpus"][0]["works"])
        self.programs.append(subprocess.Popen([*prefix, EMULATOR, *arguments], stdout=subprocess.DEVNULL))
        limit_s = time.monotonic() + PATIENCE_S
        while len(show()["gpus"][0]["works"]) == known and time.monotonic() < limit_s:
            time.sleep(0.01)
        return self.programs[-1].pid

    def __exit__(self, *_):
        for program in self.programs:
            program.kill()
        for program in self.programs:
            program.wait()


def test_kinds_of_processes():
    with Machine("--gpus", "1"), Programs() as programs:
        server = programs.begin("mps")
        client = programs.begin("train", "--kind", "mps", "--epochs", "1000000", "--busy", "0.25")
        painter = programs.begin("train", "--kind=graphics", "--epochs", "1000000")
        tap.equal(processes(COMPUTE), [f"{server}:{NOWHERE}", f"{client}:{NOWHERE}"])
        tap.equal(processes(GRAPHICS), [f"{painter}:{NOWHERE}"])
        tap.equal(processes(CLIENTS), [f"{client}:{NOWHERE}"])
        smi = tap.run([EMULATOR.parent / "nvidia-smi", "pmon", "-c", "1"], env={**os.environ, "LD_LIBRARY_PATH": str(EMULATOR.parent)})
        tap.equal([line.split()[1:3] for line in smi.stdout.splitlines() if not line.startswith("#")],
                  [[str(server), "C"], [str(client), "M+C"], [str(painter), "G"]], smi.stderr)
        tap.equal(pathlib.Path(f"/proc/{server}/comm").read_text(), "nvidia-cuda-mps\n")
        gpu = show()["gpus"][0]
        tap.equal([work["kind"] for work in gpu["works"]], ["mps-server", "mps", "graphics"])
        parts = sum(work["true_dynamic_j"] + work["true_idle_j"] for work in gpu["works"])
        near(parts + gpu["true_vacant_j"] + gpu["true_other_j"], gpu["true_energy_j"], 1e-6 * gpu["true_energy_j"])
        tap.equal(gpu["works"][0]["true_dynamic_j"], 0.0)
        near(gpu["works"][2]["true_dynamic_j"] / gpu["works"][1]["true_dynamic_j"], 4.0, 3.0)
    for arguments in (("--kind", "magic"), ("--busy", "2"), ("--busy", ""), ("--instance", "9")):
        with Machine("--gpus", "1"):
            tap.equal(emulator("train", *arguments).returncode, 64, str(arguments))


def test_instances():
    with Machine("--gpus=1", "--model=h100", "--mig=2"), Programs() as programs:
        first = programs.begin("train", "--epochs", "1000000")
        second = programs.begin("train", "--instance", "1", "--epochs", "1000000")
        tap.equal(processes(COMPUTE), [f"{first}:7", f"{second}:8"])
        tap.equal([work["instance"] for work in show()["gpus"][0]["works"]], [7, 8])
        tap.contains(emulator("train", "--instance", "2").stderr, "has 2 MIG instances")


def test_pid_namespaces():
    """A process in a namespace of its own is seen from outside by its pid there, and sees nobody outside."""
    space = ("unshare", "--pid", "--fork", "--mount-proc")
    if tap.run([*space, "true"]).returncode != 0:
        raise tap.Skip("no pid namespaces here")
    with Machine("--gpus", "1"), Programs() as programs:
        outside = programs.begin("train", "--epochs", "1000000")
        inside = programs.begin("train", "--epochs", "1000000", prefix=(*space, "--kill-child"))
        children = pathlib.Path(f"/proc/{inside}/task/{inside}/children").read_text().split()
        tap.equal(processes(COMPUTE), [f"{outside}:{NOWHERE}", f"{children[0]}:{NOWHERE}"])
        smi = [*space, EMULATOR.parent / "nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader"]
        alone = tap.run(smi, env={**os.environ, "LD_LIBRARY_PATH": str(EMULATOR.parent)})
        tap.equal((alone.returncode, alone.stdout.strip()), (0, ""))


tap.main(globals())
