# SPDX-License-Identifier: Apache-2.0
"""A recurring job of the traces."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Job:
    """A recurring job.

    dataset, network, optimizer  as the traces name them
    target_metric  exactly as in the traces
    max_epochs     after which a training has failed
    default_bs     batch size that is tried first
    default_lr     learning rate at that batch size
    workdir        where `command` runs
    command        words of a command, with {batch_size}, {learning_rate}, {seed}, {epochs}, {slice_number} and
                   {target_metric}
    """

    dataset: str
    network: str
    optimizer: str
    target_metric: float
    max_epochs: int
    default_bs: int | None = None
    default_lr: float | None = None
    workdir: str | None = None
    command: list[str] | None = field(default=None, hash=False, compare=False)

    def __str__(self) -> str:
        return f"Job({self.dataset},{self.network},{self.optimizer},{self.target_metric},bs{self.default_bs},{self.max_epochs})"

    def to_logdir(self) -> str:
        """A name for a directory of this job's logs."""
        parts = [self.dataset, self.network, f"bs{self.default_bs}", self.optimizer]
        return "+".join([*parts, f"lr{self.default_lr}", f"tm{self.target_metric}", f"me{self.max_epochs}"])

    def filter_df(self, df: Any) -> Any:
        """The rows of a pandas.DataFrame that are this job's."""
        return df.loc[
            (df.dataset == self.dataset)
            & (df.network == self.network)
            & (df.optimizer == self.optimizer)
            & (df.target_metric == self.target_metric)
        ]

    def gen_command(self, batch_size: int, learning_rate: float, seed: int, rec_i: int) -> list[str]:
        """The command of one training, with its words filled in."""
        if self.command is None:
            raise ValueError("the job has no command")
        values = {
            "{batch_size}": batch_size,
            "{learning_rate}": learning_rate,
            "{seed}": seed,
            "{epochs}": self.max_epochs,
            "{slice_number}": rec_i,
            "{target_metric}": self.target_metric,
        }
        words = list(self.command)
        for name, value in values.items():
            words = [word.replace(name, str(value)) for word in words]
        return words

    def scale_lr(self, batch_size: int) -> float:
        """The learning rate at that batch size, which grows with the square root."""
        if self.default_bs is None or self.default_lr is None:
            raise ValueError("the job has no default_bs and default_lr")
        return self.default_lr * math.sqrt(batch_size / self.default_bs)
