# SPDX-License-Identifier: Apache-2.0
"""What the simulator asks of policies. Derive from these, and give objects of your classes to the Simulator."""

from __future__ import annotations

from abc import ABC, abstractmethod

from flyball.compat.zeus._legacy.job import Job


class BatchSizeOptimizer(ABC):
    """Chooses the batch size of each training of a job."""

    @property
    def name(self) -> str:
        """Its name, that of the class."""
        return type(self).__name__

    def _log(self, message: str) -> None:
        """Prints a line under its name."""
        print(f"[{self.name}] {message}")

    @abstractmethod
    def register_job(self, job: Job, batch_sizes: list[int]) -> None:
        """A job begins, with these batch sizes to choose from."""

    @abstractmethod
    def predict(self, job: Job) -> int:
        """The batch size of the next training."""

    @abstractmethod
    def observe(self, job: Job, batch_size: int, cost: float, converged: bool | None = None) -> None:
        """A training has ended, at that cost, with or without having reached its target."""


class PowerLimitOptimizer(ABC):
    """Chooses the power limit of each batch size."""

    @property
    def name(self) -> str:
        """Its name, that of the class."""
        return type(self).__name__

    def _log(self, message: str) -> None:
        """Prints a line under its name."""
        print(f"[{self.name}] {message}")

    @abstractmethod
    def predict(self, job: Job, batch_size: int) -> int | None:
        """The limit, in W; None: the batch size has to be profiled first."""

    @abstractmethod
    def observe(self, job: Job, batch_size: int, power_limit: int, cost: float) -> None:
        """An epoch at that limit, in W, has that cost."""
