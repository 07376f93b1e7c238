# SPDX-License-Identifier: Apache-2.0
"""The time and energy of calls."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flyball.compat.zeus.monitor.energy import Measurement, ZeusMonitor

_WINDOW = "__zeus_measure_window__"


def measure(
    fn: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    num_repeats: int = 1,
    zeus_monitor: ZeusMonitor | None = None,
) -> Measurement:
    """What so many calls of a function take together.

    zeus_monitor  which measures; None: one of all GPUs, made for this

    Raises ValueError for fewer than one call, and what the function raises.
    """
    if num_repeats < 1:
        raise ValueError(f"num_repeats must be at least 1, and is {num_repeats}")
    if zeus_monitor is None:
        from flyball.compat.zeus.monitor import energy

        zeus_monitor = energy.ZeusMonitor()
    zeus_monitor.begin_window(_WINDOW)
    try:
        for _ in range(num_repeats):
            fn(*(args or ()), **(kwargs or {}))
    except BaseException:
        zeus_monitor.end_window(_WINDOW, cancel=True)
        raise
    measured = zeus_monitor.end_window(_WINDOW)
    if 0.0 in measured.gpu_energy.values():
        warnings.warn("The energy consumption was measured as zero: give more num_repeats", stacklevel=2)
    return measured
