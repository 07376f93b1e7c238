# SPDX-License-Identifier: Apache-2.0
"""What the tests of flyball.compat.zeus share: emulated GPUs in this process, and the package of the build."""

import contextlib
import json
import os
import pathlib
import sys
import tempfile
import time

import tap

BUILD = pathlib.Path(sys.argv[1]).resolve().parent
PACKAGE = pathlib.Path(os.environ.get("FLYBALL_TEST_PYTHON", BUILD / "python"))
DIRECTORY = os.environ.get("FLYBALL_TEST_EMULATOR", str(BUILD / "emulator"))

DATA = pathlib.Path(os.environ.get("FLYBALL_TEST_DATA") or "../shared/data")

# These programs name no library of the driver: the loader has to find the emulated one, which it looks for at start.
if DIRECTORY not in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
    os.environ["LD_LIBRARY_PATH"] = ":".join([DIRECTORY, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])
    os.execv(sys.executable, [sys.executable, *sys.argv])

HOME = tempfile.TemporaryDirectory(prefix="flyball-compat-")
LOAD_W = 300.0

for name in [name for name in os.environ if name.startswith(("FLYBALL_", "CUDA_", "XDG_"))]:
    del os.environ[name]
os.environ.update(
    HOME=HOME.name,
    XDG_RUNTIME_DIR=HOME.name,
    FLYBALL_EMULATOR_STATE=os.path.join(HOME.name, "state"),
    FLYBALL_RUNTIME_DIR=os.path.join(HOME.name, "knobs"),
    FLYBALL_GUARD=str(BUILD / "flyball-guard"),
)
sys.path.insert(0, str(PACKAGE))

import flyball  # noqa: E402  (the package of the build, which the lines above lead to)


def emulator(*arguments):
    done = tap.run([os.path.join(DIRECTORY, "flyball-emulator"), *arguments])
    tap.equal(done.returncode, 0, done.stderr)


@contextlib.contextmanager
def machine(gpus=2, load_w=LOAD_W, settings=("--counter-period-ms", "0")):
    """Emulated GPUs under a constant load for the length of a with statement."""
    emulator("start", "--gpus", str(gpus), "--ideal", "--settle-ms", "0.001", *settings)
    try:
        emulator("set", "--load-w", str(load_w))
        yield
    finally:
        emulator("stop")


def wait_for_sensors(load_w=LOAD_W):
    """Waits until the power sensors, which are slower than counters, show the load."""
    until = time.monotonic() + tap.PATIENCE_S
    with flyball.Monitor() as monitor:
        gpus = [place for place, device in enumerate(monitor.devices) if device.kind == "GPU"]
        while any(monitor.read(place).power_w != load_w for place in gpus) and time.monotonic() < until:
            time.sleep(0.02)


@contextlib.contextmanager
def variables(**values):
    """Sets variables of the environment for the length of a with statement."""
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values:
            del os.environ[name]


def raised(kind, call, *arguments, **keywords):
    """The exception of that kind that a call raises."""
    try:
        call(*arguments, **keywords)
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} expected")


class Stretch:
    """What a constant load draws at least and at most in a window, however slowly the machine gets along."""

    def __init__(self, begin):
        self.outer = time.monotonic()
        begin()
        self.inner = time.monotonic()

    def end(self, end):
        inner_s = time.monotonic() - self.inner
        self.measured = end()
        self.bounds_s = (inner_s, time.monotonic() - self.outer)
        return self.measured

    def check(self, index, load_w=LOAD_W):
        least_j, most_j = (load_w * bound_s for bound_s in self.bounds_s)
        energy_j = self.measured.gpu_energy[index]
        if not 0.98 * least_j <= energy_j <= 1.02 * most_j:
            raise AssertionError(f"expected {least_j} to {most_j} J, got {energy_j}")


def shown():
    return json.loads(tap.run([os.path.join(DIRECTORY, "flyball-emulator"), "show", "--json"]).stdout)["gpus"]


def limits():
    return [gpu["limit_w"] for gpu in shown()]


def clocks(of="clock"):
    """Floor and ceiling of each GPU in MHz, or of its "memory_clock"; None: none."""
    return [(gpu[f"{of}_floor_mhz"], gpu[f"{of}_ceiling_mhz"]) for gpu in shown()]
