# SPDX-License-Identifier: Apache-2.0
"""The devices of this machine, one by one."""

from flyball.compat.zeus.device.cpu import get_cpus
from flyball.compat.zeus.device.gpu import get_gpus

__all__ = ["get_cpus", "get_gpus"]
