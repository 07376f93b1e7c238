# SPDX-License-Identifier: Apache-2.0
"""flyball doctor from outside: made-up machines, and the command that mends each.

usage: cli_doctor.py FLYBALL SOURCE_ROOT
"""

import csv
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import reach
import tap

FLYBALL = reach.program(sys.argv[1])
DIRECTORY = str(reach.libraries(os.environ.get("FLYBALL_TEST_EMULATOR", os.path.join(os.path.dirname(sys.argv[1]), "emulator"))))
EMULATOR = os.path.join(DIRECTORY, "libnvidia-ml.so.1")
WORK = tempfile.TemporaryDirectory(prefix="flyball-doctor-")
HOME = pathlib.Path(WORK.name)
UNSET = ("FLYBALL_", "XDG_", "CUDA_", "HIP_", "ROCR_", "NVIDIA_", "LD_LIBRARY", "KUBERNETES", "APPTAINER", "SINGULARITY")
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(UNSET)}
CLEAN.update(HOME=str(HOME), FLYBALL_EMULATOR="gpus=1,model=a100", FLYBALL_EMULATOR_STATE=str(HOME / "state"))


def machine(name, **files):
    """A directory with the files of a made-up machine; two underscores are a slash."""
    root = HOME / name
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for path, text in files.items():
        file = root / path.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def doctor(root, *arguments, nvml=None, environment=None, **options):
    details = [] if "--format" in arguments else ["-v"]
    result = tap.run([FLYBALL, "doctor", *details, *arguments, "--sysfs-root", str(root), "--nvml", nvml or str(HOME / "none.so"), "--amdsmi",
                    str(HOME / "none.so")], env={**CLEAN, **(environment or {})}, cwd="/", **options)
    if "--format" not in arguments:  # lines are broken at any blank
        result.stdout = " ".join(result.stdout.split())
    return result


RAPL = {"sys__class__powercap__intel-rapl:0__name": "package-0\n", "sys__class__powercap__intel-rapl:0__energy_uj": "123456\n",
        "sys__class__powercap__intel-rapl:0__max_energy_range_uj": "262143328850\n",
        "sys__class__powercap__intel-rapl:0__enabled": "1\n"}
GPU = {"sys__bus__pci__devices__0000:07:00.0__vendor": "0x10de\n", "sys__bus__pci__devices__0000:07:00.0__class": "0x030200\n"}
MODULE = {"proc__driver__nvidia__version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu\n"}


def test_machines_and_remedies():
    for name, files, environment, pieces, never in (
        ("bare", {}, {}, ["this machine has no NVIDIA GPU", "$ sudo modprobe intel_rapl_msr"], ["docker"]),
        ("virtual", {"proc__cpuinfo": "flags : fpu hypervisor lm\n"}, {}, ["measure on its host", "$ flyball run --cpu-tdp WATTS"], ["$ sudo modprobe intel_rapl_msr"]),
        ("undriven", GPU, {}, ["$ sudo modprobe nvidia"], ["libnvidia-ml1"]),
        ("librariless", {**GPU, **MODULE}, {}, ["$ sudo apt-get install libnvidia-ml1"], ["$ sudo modprobe nvidia"]),
        ("container", {**GPU, **MODULE, ".dockerenv": ""}, {}, ["$ docker run --gpus all ..."], ["libnvidia-ml1"]),
        ("utility", {**MODULE, ".dockerenv": ""}, {"NVIDIA_DRIVER_CAPABILITIES": "compute"}, ["$ docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility"], []),
        ("amd", {"sys__bus__pci__devices__0000:03:00.0__vendor": "0x1002\n", "sys__bus__pci__devices__0000:03:00.0__class": "0x038000\n"}, {}, ["$ sudo modprobe amdgpu"], []),
        ("network", {"sys__bus__pci__devices__0000:03:00.0__vendor": "0x10de\n", "sys__bus__pci__devices__0000:03:00.0__class": "0x020000\n"}, {}, ["this machine has no NVIDIA GPU"], []),
        ("wsl", {"proc__version": "Linux version 5.15 Microsoft WSL2\n"}, {}, ["Windows Subsystem for Linux"], []),
        ("chosen", {}, {"CUDA_VISIBLE_DEVICES": "0"}, ["$ flyball run -i all"], []),
    ):
        result = doctor(machine(name, **files), environment=environment)
        tap.equal(result.returncode, 69, name)
        tap.contains(result.stderr, "no energy and no power can be read on this machine")
        tap.equal(result.stdout.startswith("Can measure: no. Can set limits: no"), True, result.stdout)
        for piece in pieces:
            tap.contains(result.stdout, piece, name)
        for piece in never:
            if piece in result.stdout:
                raise AssertionError(f"{name}: {piece!r} in {result.stdout}")


def test_readable_counters():
    result = doctor(machine("readable", **RAPL))
    tap.equal((result.returncode, result.stderr), (0, ""))
    tap.contains(result.stdout, "readable: energy counter")
    tap.contains(result.stdout, "does not count the energy of memory apart")


def as_nobody():
    if os.getuid() == 0:
        return {"user": 65534, "group": 65534, "extra_groups": []}
    return {}


def test_denied_counters():
    """As a user whom the kernel's files are closed to."""
    root = machine("denied", **RAPL)
    secret = root / "sys/class/powercap/intel-rapl:0/energy_uj"
    secret.chmod(0)
    if os.getuid() == 0:
        HOME.chmod(0o755)
        if subprocess.run([FLYBALL, "version"], check=False, capture_output=True, user=65534, cwd="/").returncode != 0:
            raise tap.Skip("another user cannot run the program here")
    result = doctor(root, "rapl", **as_nobody())
    tap.equal(result.returncode, 69)
    for piece in ("may not be read by this user (CVE-2020-8694)", "$ sudo chmod -R a+r /sys/class/powercap/intel-rapl/",
                  "/etc/udev/rules.d/70-powercap.rules", '$ sudo setcap cap_dac_read_search=ep "$(command -v flyball)"', "permission is missing"):
        tap.contains(result.stdout, piece)
    if "nvidia" in result.stdout:
        raise AssertionError(f"another topic in {result.stdout}")


def test_gpus():
    if not os.path.exists(EMULATOR):
        raise tap.Skip("the emulator's driver library is not built")
    root = machine("gpus")
    result = doctor(root, nvml=EMULATOR)
    tap.equal((result.returncode, result.stderr), (0, ""))
    for piece in ("nvidia readable GPU 0 (Emulated A100", "power limits ", "(nothing was set to find out)", "$ sudo nvidia-smi -pm 1", "some devices are emulated"):
        tap.contains(result.stdout, piece)
    script = HOME / "faults"
    script.write_text("call nvmlInit_v2 return LIB_RM_VERSION_MISMATCH\ncall nvmlInitWithFlags return LIB_RM_VERSION_MISMATCH\n")
    environment = {"FLYBALL_EMULATOR_STATE": str(HOME / "broken"), "FLYBALL_EMULATOR": f"gpus=1,faults={script}"}
    result = doctor(root, "nvidia", nvml=EMULATOR, environment=environment)
    tap.equal(result.returncode, 69)
    tap.contains(result.stdout, "$ sudo reboot")


def test_formats_and_topics():
    root = machine("formats", **RAPL)
    document = json.loads(doctor(root, "--format", "json").stdout)
    rows = list(csv.DictReader(io.StringIO(doctor(root, "--format", "csv").stdout)))
    tap.equal(document["schema"], "flyball.doctor/1")
    tap.equal([row["finding"] for row in rows], [row["finding"] for row in document["rows"]])
    tap.equal({row["topic"] for row in rows} <= {"nvidia", "amd", "rapl", "system"}, True)
    for topic in ("nvidia", "amd", "rapl"):
        found = json.loads(doctor(root, topic, "--format", "json").stdout)["rows"]
        tap.equal(found, [row for row in document["rows"] if row["topic"] == topic])
    wrong = doctor(root, "rpal")
    tap.equal((wrong.returncode, wrong.stdout), (64, ""))
    tap.contains(wrong.stderr, "unknown topic 'rpal'; there are nvidia, amd, rapl and system")


tap.main(globals())
