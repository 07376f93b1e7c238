# SPDX-License-Identifier: Apache-2.0
"""The GPUs that a program sees, by the numbers that its framework gives them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import flyball


def _places(monitor: flyball.Monitor, kind: str) -> list[int]:
    return [place for place, device in enumerate(monitor.devices) if device.kind == kind]


def open_monitor(gpu_indices: Iterable[int] | None, **options: Any) -> tuple[flyball.Monitor, dict[int, int]]:
    """Opens a monitor of these GPUs, and tells at which place of its devices each of them is.

    The numbers are those after CUDA_VISIBLE_DEVICES: with "2,3" number 1 is the node's GPU 3. None: all that the
    program sees. Without any GPU all numbers are left out; else one that does not exist is a ValueError.
    """
    monitor = flyball.Monitor(**options)
    seen = _places(monitor, "GPU")
    wanted = list(range(len(seen))) if gpu_indices is None or not seen else list(gpu_indices)
    for number in wanted:
        if not 0 <= number < len(seen):
            raise ValueError(f"there is no GPU {number}: the program sees {len(seen)}, counted from 0")
    if wanted != list(range(len(seen))):
        indices = [monitor.devices[seen[number]].index for number in wanted]
        monitor.close()
        monitor = flyball.Monitor(indices if indices else "none", **options)
    return monitor, dict(zip(wanted, _places(monitor, "GPU")))
