# SPDX-License-Identifier: Apache-2.0
"""What devices raise."""

from __future__ import annotations

from flyball.compat.zeus.exception import ZeusBaseError


class ZeusBaseGPUError(ZeusBaseError):
    """Something about a GPU."""


class ZeusBaseCPUError(ZeusBaseError):
    """Something about a CPU."""


class ZeusdError(ZeusBaseError):
    """For programs that catch it: what a daemon refuses is an error of its GPU here."""


class ZeusGPUInitError(ZeusBaseGPUError):
    """There is no GPU."""


class ZeusGPUNotFoundError(ZeusBaseGPUError):
    """There is no GPU of that number."""


class ZeusGPUInvalidArgError(ZeusBaseGPUError):
    """The GPU does not take that value."""


class ZeusGPUNotSupportedError(ZeusBaseGPUError):
    """The GPU, or Flyball, does not offer that."""


class ZeusGPUNoPermissionError(ZeusBaseGPUError):
    """Without the right to, or while somebody else controls the GPU."""


class ZeusGPULostError(ZeusBaseGPUError):
    """For programs that catch it: what a lost GPU should tell is not supported here."""


class ZeusGPUHeterogeneousError(ZeusBaseGPUError):
    """The GPUs are of several models."""


class ZeusGPUUnknownError(ZeusBaseGPUError):
    """Anything else, as the library says it."""


class ZeusCPUInitError(ZeusBaseCPUError):
    """There is no CPU whose energy can be read."""


class ZeusCPUNotFoundError(ZeusBaseCPUError):
    """There is no CPU of that number."""


class ZeusCPUNoPermissionError(ZeusBaseCPUError):
    """There are CPUs, and their energy may not be read."""
