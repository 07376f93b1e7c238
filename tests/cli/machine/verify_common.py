# SPDX-License-Identifier: Apache-2.0
"""What tests of `make verify-gpu` share: its command on emulated GPUs, with a stand-in of CUDA's driver
whose kernels take time and power. Arguments of the test: FLYBALL SOURCE_ROOT."""

import json
import os
import pathlib
import re
import sys
import tempfile

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
