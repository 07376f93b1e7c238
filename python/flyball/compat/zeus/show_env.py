# SPDX-License-Identifier: Apache-2.0
"""What this program would find here: python -m flyball.compat.zeus.show_env"""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Iterator

import flyball
from flyball.compat.zeus.device import get_cpus, get_gpus
from flyball.compat.zeus.device.exception import ZeusBaseGPUError
from flyball.compat.zeus.exception import ZeusBaseError

_FRAMEWORKS = ("torch", "jax", "cupy")


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _gpus() -> Iterator[str]:
    try:
        gpus = get_gpus().gpus
    except ZeusBaseError as error:
        yield f"GPUs: none: {error}"
        return
    for gpu in gpus:
        try:
            lowest_w, highest_w = (limit_mw / 1000 for limit_mw in gpu.get_power_management_limit_constraints())
            limits = f"limit {gpu.get_power_management_limit() / 1000:g} W of {lowest_w:g} to {highest_w:g} W"
        except ZeusBaseGPUError as error:
            limits = str(error)
        counter = "with" if gpu.supports_get_total_energy_consumption() else "without"
        yield f"GPU {gpu.gpu_index}: {gpu.get_name()}, {limits}, {counter} a counter of energy"


def _cpus() -> str:
    try:
        return f"CPU packages with a counter of energy: {len(get_cpus())}"
    except ZeusBaseError as error:
        return f"CPU packages: none: {error}"


def show_env() -> None:
    """Prints versions and devices. Nothing is set."""
    print(f"Flyball: {flyball.__version__}")
    print(f"Python: {platform.python_version()}, {sys.executable}")
    print(f"system: {platform.platform()}")
    for package in _FRAMEWORKS:
        print(f"{package}: {_version(package)}")
    for line in _gpus():
        print(line)
    print(_cpus())
    print("'flyball doctor' tells what can be read and set here, and what would help")


if __name__ == "__main__":
    show_env()
