# SPDX-License-Identifier: Apache-2.0
"""flyball run --no-idle-boost: the program finds the variable, and the report says what the driver makes of it.

usage: cli_idle_boost.py FLYBALL SOURCE_ROOT
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import tap

FLYBALL = os.path.abspath(sys.argv[1])
EMULATOR = os.path.join(os.environ.get("FLYBALL_TEST_EMULATOR", os.path.join(os.path.dirname(FLYBALL), "emulator")),
                        "libnvidia-ml.so.1")
WORK = tempfile.TemporaryDirectory(prefix="flyball-boost-")
HOME = pathlib.Path(WORK.name)
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("FLYBALL_", "XDG_", "CUDA_", "LC_", "LANG"))}
CLEAN.update(HOME=str(HOME), XDG_RUNTIME_DIR=str(HOME), FLYBALL_EMULATOR="gpus=2,model=a100", FLYBALL_EMULATOR_STATE=str(HOME / "state"))
OTHERS = ["--amdsmi", str(HOME / "none.so"), "--sysfs-root", str(HOME)]
NOTHING = ["--nvml", str(HOME / "none.so"), *OTHERS]
GPUS = ["--nvml", EMULATOR, *OTHERS]
REPORT = HOME / "run.json"


def run(*options, **variables):
    """What the program finds in its environment, and what is said of it."""
    result = subprocess.run([FLYBALL, "run", "-v", *options, "--output", str(REPORT), "--", "sh", "-c",
                             "echo ${CUDA_DISABLE_PERF_BOOST-unset}"],
                            env={**CLEAN, **variables}, cwd=HOME, capture_output=True, text=True, timeout=tap.PATIENCE_S, check=False)
    tap.equal(result.returncode, 0, result.stderr)
    return result.stdout.strip(), result.stderr


def test_left_as_it_is():
    tap.equal(run(*NOTHING)[0], "unset")
    tap.equal(run(*NOTHING, CUDA_DISABLE_PERF_BOOST="0")[0], "0")
    tap.equal("idle_boost" in json.loads(REPORT.read_text()), False)


def test_without_a_gpu():
    found, talk = run(*NOTHING, "--no-idle-boost", CUDA_DISABLE_PERF_BOOST="0")
    tap.equal(found, "1")
    tap.contains(talk, "without idle boost (CUDA_DISABLE_PERF_BOOST=1): there is no NVIDIA GPU")
    tap.equal(json.loads(REPORT.read_text())["idle_boost"]["driver_state"], "no GPU")


def test_emulated():
    if not os.path.exists(EMULATOR):
        raise tap.Skip("the emulator's driver library is not built")
    found, talk = run(*GPUS, "--no-idle-boost")
    tap.equal(found, "1")
    tap.contains(talk, "the GPUs are emulated, and their idle power is the same with it")
    boost = json.loads(REPORT.read_text())["idle_boost"]
    tap.equal((boost["variable"], boost["driver_state"], boost["source"]),
              ("CUDA_DISABLE_PERF_BOOST=1", "emulated", "arXiv 2605.23918"))


def test_old_driver():
    """A stand-in for the driver library of 550.54.14, which ignores the variable."""
    library = pathlib.Path(FLYBALL).parent / "tests/nvml/nvml_new.so"
    if not library.exists():
        raise tap.Skip("the stand-in driver library is not built")
    found, talk = run("--nvml", str(library), *OTHERS, "--no-idle-boost")
    tap.equal(found, "1")
    tap.contains(talk, "--no-idle-boost changes nothing with driver 550.54.14: the driver is older than 580.105")
    boost = json.loads(REPORT.read_text())["idle_boost"]
    tap.equal((boost["driver"], boost["driver_state"]), ("550.54.14", "too old"))


def test_disabled():
    tap.equal(run(*NOTHING, "--no-idle-boost", FLYBALL_DISABLE="1")[0], "unset", "as if Flyball were not there")


tap.main(globals())
