# SPDX-License-Identifier: Apache-2.0
"""GPUs: what they tell, and what they are set to."""

from __future__ import annotations

import os

from flyball.compat.zeus.device.exception import (
    ZeusBaseGPUError,
    ZeusGPUHeterogeneousError,
    ZeusGPUInitError,
    ZeusGPUInvalidArgError,
    ZeusGPULostError,
    ZeusGPUNoPermissionError,
    ZeusGPUNotFoundError,
    ZeusGPUNotSupportedError,
    ZeusGPUUnknownError,
)
from flyball.compat.zeus.device.gpu.common import GPU, GPUs

__all__ = [
    "GPU",
    "GPUs",
    "ZeusBaseGPUError",
    "ZeusGPUHeterogeneousError",
    "ZeusGPUInitError",
    "ZeusGPUInvalidArgError",
    "ZeusGPULostError",
    "ZeusGPUNoPermissionError",
    "ZeusGPUNotFoundError",
    "ZeusGPUNotSupportedError",
    "ZeusGPUUnknownError",
    "get_gpus",
]

_of: dict[int, GPUs] = {}  # by process: a fork cannot use its parent's


def get_gpus(ensure_homogeneous: bool = False) -> GPUs:
    """The GPUs that this process sees, always the same object.

    ensure_homogeneous  raises ZeusGPUHeterogeneousError if they are of several models

    Raises ZeusGPUInitError without any GPU.
    """
    if os.getpid() not in _of:
        _of[os.getpid()] = GPUs()
    gpus = _of[os.getpid()]
    models = sorted({gpu.get_name() for gpu in gpus.gpus})
    if ensure_homogeneous and len(models) > 1:
        raise ZeusGPUHeterogeneousError(f"the GPUs are of {len(models)} models: {', '.join(models)}")
    return gpus
