# SPDX-License-Identifier: Apache-2.0
"""Learning rates of other batch sizes."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass
class SquareRootScaler:
    """The learning rate grows with the square root of the batch size; at `bs` it is `lr`."""

    bs: int
    lr: float

    def compute_lr(self, new_bs: int) -> float:
        """The learning rate at that batch size."""
        return self.lr * math.sqrt(new_bs / self.bs)


@dataclass
class LinearScaler:
    """The learning rate grows with the batch size; at `bs` it is `lr`."""

    bs: int
    lr: float

    def compute_lr(self, new_bs: int) -> float:
        """The learning rate at that batch size."""
        return self.lr * new_bs / self.bs
