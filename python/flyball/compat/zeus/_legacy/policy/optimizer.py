# SPDX-License-Identifier: Apache-2.0
"""The policies of the published research."""

from __future__ import annotations

from flyball.compat.zeus._legacy.job import Job
from flyball.compat.zeus._legacy.policy.interface import BatchSizeOptimizer, PowerLimitOptimizer


class JITPowerLimitOptimizer(PowerLimitOptimizer):
    """Takes the limit whose epoch costs least; of equal ones the one that was seen first."""

    def __init__(self, verbose: bool = True) -> None:
        self.verbose = verbose
        self._best: dict[tuple[Job, int], tuple[float, int]] = {}

    @property
    def name(self) -> str:
        """As the published code calls it."""
        return "JITPSO"

    def predict(self, job: Job, batch_size: int) -> int | None:
        """The limit; None: none was observed."""
        best = self._best.get((job, batch_size))
        return None if best is None else best[1]

    def observe(self, job: Job, batch_size: int, power_limit: int, cost: float) -> None:
        """Keeps the least."""
        best = self._best.get((job, batch_size))
        if best is None or cost < best[0]:
            self._best[job, batch_size] = (cost, power_limit)


class PruningGTSBatchSizeOptimizer(BatchSizeOptimizer):
    """Leaves out batch sizes in two rounds and then draws by Thompson sampling: the library's policy 'zeus'.

    prior_mean, prior_precision  what is believed before any result; only 0, which is nothing
    window_size  how many of the newest results of a batch size count; 0: all
    concurrency  trainings may overlap: those of Simulator.simulate_one_alibaba_group do
    seed         has to be that of the Simulator

    The Simulator runs it inside the library. By itself it answers nothing.
    """

    def __init__(
        self,
        prior_mean: float = 0.0,
        prior_precision: float = 0.0,
        window_size: int = 0,
        concurrency: bool = False,
        seed: int = 123456,
        verbose: bool = True,
    ) -> None:
        if prior_mean != 0.0 or prior_precision != 0.0:
            raise ValueError(f"prior_mean is {prior_mean} and prior_precision {prior_precision}; only 0 is offered")
        self.prior_mean = prior_mean
        self.prior_precision = prior_precision
        self.seed = seed
        self.concurrency = concurrency
        self.window_size = window_size
        self.verbose = verbose

    @property
    def name(self) -> str:
        """As the published code calls it."""
        return "Pruning GaussianTS BSO"

    def register_job(self, job: Job, batch_sizes: list[int]) -> None:
        """Is not called."""
        self._refuse()

    def predict(self, job: Job) -> int:
        """Is not called."""
        self._refuse()
        return 0

    def observe(self, job: Job, batch_size: int, cost: float, converged: bool | None = None) -> None:
        """Is not called."""
        self._refuse()

    def _refuse(self) -> None:
        raise NotImplementedError("the policy runs inside the Simulator; flyball.sim and `flyball run --job` have it too")
