# SPDX-License-Identifier: Apache-2.0
"""Optimizers of power limits and batch sizes."""

from __future__ import annotations

from typing import Any

from flyball.compat.zeus.optimizer import power_limit
from flyball.compat.zeus.optimizer.power_limit import GlobalPowerLimitOptimizer

__all__ = ["GlobalPowerLimitOptimizer", "HFGlobalPowerLimitOptimizer"]


def __getattr__(name: str) -> Any:
    if name != "HFGlobalPowerLimitOptimizer":
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(power_limit, name)
