# SPDX-License-Identifier: Apache-2.0
"""Where tests of the Python package happen: emulated GPUs, a home of their own, and the package of the build, as `flyball`.

The arguments of the program are FLYBALL and SOURCE_ROOT.
"""

import os
import pathlib
import sys
import tempfile
import time

import tap

ROOT = pathlib.Path(sys.argv[2])
BUILD = pathlib.Path(sys.argv[1]).resolve().parent
PACKAGE = pathlib.Path(os.environ.get("FLYBALL_TEST_PYTHON", BUILD / "python"))
DIRECTORY = os.environ.get("FLYBALL_TEST_EMULATOR", str(BUILD / "emulator"))
HOME = tempfile.TemporaryDirectory(prefix="flyball-python-")
LIBRARY = os.path.join(DIRECTORY, "libnvidia-ml.so.1")
NOWHERE = os.path.join(HOME.name, "none")
LOAD_W = 300.0
HIGHEST_W, LOWEST_W = 400, 200
# Which limit is best must not depend on how busy this machine is: the lowest is, whatever a step takes.
QUICK = {"objective": "lowest-limit", "max_slowdown": None, "limits_w": [HIGHEST_W, LOWEST_W], "warmup_steps": 1, "profile_steps": 5}
STEPS_MAX = 20000

for name in [name for name in os.environ if name.startswith(("FLYBALL_", "CUDA_", "XDG_"))]:
    del os.environ[name]
os.environ.update(FLYBALL_GUARD=str(BUILD / "flyball-guard"), HOME=HOME.name, XDG_RUNTIME_DIR=HOME.name,
                  FLYBALL_EMULATOR_STATE=os.path.join(HOME.name, "state"))
sys.path.insert(0, str(PACKAGE))

import flyball  # noqa: E402  (the package of the build, which the lines above lead to)


def emulator(*arguments):
    done = tap.run([os.path.join(DIRECTORY, "flyball-emulator"), *arguments])
    tap.equal(done.returncode, 0, done.stderr)


class Machine:
    """Two emulated GPUs under a constant load for the length of a with statement."""

    def __init__(self, *settings):
        self.settings = ("--gpus", "2", "--ideal", "--counter-period-ms", "0", "--settle-ms", "0.001", *settings)

    def __enter__(self):
        emulator("start", *self.settings)
        emulator("set", "--load-w", str(LOAD_W))

    def __exit__(self, *_):
        emulator("stop")


def python(text, **environment):
    """Runs a program of the interpreter's with the package."""
    return tap.run([sys.executable, "-c", text], env={**os.environ, "PYTHONPATH": str(PACKAGE), **environment})


def monitor(**options):
    return flyball.Monitor(**{"nvml_path": LIBRARY, "amdsmi_path": NOWHERE, **options})


def gpus_of(measurement):
    return [device for device in measurement.devices if device.device.kind == "GPU"]


def raised(kind, call, *arguments, **keywords):
    """The exception of that kind, and of no other, that a call raises."""
    try:
        call(*arguments, **keywords)
    except flyball.Error as error:
        tap.equal(type(error), kind, str(error))
        return error
    raise AssertionError(f"{kind.__name__} expected")


def limit_w():
    """The limit that the first GPU has now; a monitor that is open already may have read it a while ago."""
    with monitor() as meter:
        return gpus_of(meter.begin("now").end())[0].limit_w


def wait_for_limit(wanted_w):
    """A minute at most."""
    for _ in range(600):
        if limit_w() == wanted_w:
            return
        time.sleep(0.1)
    raise AssertionError(f"the limit is {limit_w()} W, and not {wanted_w} W")


def settle(tuner):
    """Takes steps until the tuner has settled or stopped; returns how many."""
    for step in range(STEPS_MAX):
        tuner.step_begin()
        if tuner.state in ("settled", "stopped"):
            return step + 1
        time.sleep(0.0005)
    raise AssertionError(f"not settled after {STEPS_MAX} steps: {tuner.report}")
