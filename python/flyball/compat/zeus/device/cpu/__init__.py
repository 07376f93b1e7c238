# SPDX-License-Identifier: Apache-2.0
"""CPU packages: their energy."""

from __future__ import annotations

import os

from flyball.compat.zeus.device.cpu.common import CPUs, CpuDramMeasurement
from flyball.compat.zeus.device.exception import (
    ZeusBaseCPUError,
    ZeusCPUInitError,
    ZeusCPUNoPermissionError,
    ZeusCPUNotFoundError,
)

__all__ = [
    "CPUs",
    "CpuDramMeasurement",
    "ZeusBaseCPUError",
    "ZeusCPUInitError",
    "ZeusCPUNoPermissionError",
    "ZeusCPUNotFoundError",
    "get_cpus",
]

_of: dict[int, CPUs] = {}  # by process: a fork cannot use its parent's


def get_cpus() -> CPUs:
    """The CPU packages whose energy can be read, always the same object.

    Raises ZeusCPUInitError without any, ZeusCPUNoPermissionError if there are some that may not be read.
    """
    if os.getpid() not in _of:
        _of[os.getpid()] = CPUs()
    return _of[os.getpid()]
