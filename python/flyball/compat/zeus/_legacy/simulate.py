# SPDX-License-Identifier: Apache-2.0
"""Recurring jobs replayed from recorded traces, with policies in Python."""

from __future__ import annotations

import contextlib
import copy
import csv
import functools
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import flyball.sim
from flyball.compat.zeus._legacy.job import Job
from flyball.compat.zeus._legacy.policy.interface import BatchSizeOptimizer, PowerLimitOptimizer
from flyball.compat.zeus._legacy.policy.optimizer import JITPowerLimitOptimizer, PruningGTSBatchSizeOptimizer

_Simulate = Callable[..., flyball.sim.Table]
_TRIES_MAX = 20
_GPU = "given"
_POWER = f"summary_power_{_GPU}.csv"
_NEVER_RAN_PENALTY = 100


@dataclass
class HistoryEntry:
    """A training of a simulation: batch size, power limit in W, J, whether it reached its target, and s."""

    bs: int
    pl: int
    energy: float
    reached: bool
    time: float


@dataclass(frozen=True)
class _Point:
    """What an epoch takes at a power limit."""

    limit_w: int
    power_w: float
    time_s: float

    @property
    def energy_j(self) -> float:
        return self.time_s * self.power_w


def _points(path: Path, job: Job) -> dict[int, list[_Point]]:
    """What the power trace has of a job, by batch size, from the highest limit down."""
    points: dict[int, list[_Point]] = {}
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if (row["dataset"], row["network"], row["optimizer"]) == (job.dataset, job.network, job.optimizer):
                point = _Point(round(float(row["power_limit"])), float(row["average_power"]), float(row["time_per_epoch"]))
                points.setdefault(int(row["batch_size"]), []).append(point)
    if not points:
        raise ValueError(f"the power trace has no row of {job}")
    return {size: sorted(of_size, key=lambda point: -point.limit_w) for size, of_size in points.items()}


class _Recurring(flyball.sim.Policy):
    """A history of a job, as the published simulator goes about it: what it asks of the policies, and when a
    training stops. The library draws the trainings and runs them.
    """

    name = "given"

    # What the class that Simulator._own makes for one history has besides.
    given: tuple[Job, BatchSizeOptimizer, PowerLimitOptimizer]
    points: dict[int, list[_Point]]
    knobs: tuple[float, float]
    history: list[HistoryEntry]

    def __init__(self, job: flyball.sim.Job) -> None:
        super().__init__(job)
        self.zeus_job, self.batch_sizes, self.limits = self.given
        self.beta, self.eta = self.knobs
        self.least = math.inf  # cost of a recurrence
        self.spent = 0.0  # by the tries of this one
        self.profiling: set[int] = set()  # trials that profile their batch size
        self.batch_sizes.register_job(self.zeus_job, list(job.batch_sizes))

    def propose(self, question: flyball.sim.Question) -> tuple[int, float]:
        size = self._choose(question)
        limit_w = self.limits.predict(self.zeus_job, size)
        if limit_w is None:
            self.profiling.add(question.trial)
            limit_w = self._profile(size)
        return size, float(limit_w)

    def _choose(self, question: flyball.sim.Question) -> int:
        if question.try_ == 0:
            self.spent = 0.0
        return int(self.batch_sizes.predict(self.zeus_job))

    def _profile(self, size: int) -> int:
        highest_w = self.points[size][0].limit_w
        for point in self.points[size]:
            cost_j = (self.eta * point.power_w + (1 - self.eta) * highest_w) * point.time_s
            self.limits.observe(self.zeus_job, size, point.limit_w, cost_j)
        limit_w = self.limits.predict(self.zeus_job, size)
        if limit_w is None:
            raise RuntimeError(f"'{self.limits.name}' chooses no power limit of the profile of batch size {size}")
        return limit_w

    def cap(self, batch_size: int, epoch_energy_j: float, epoch_time_s: float) -> int:
        if math.isinf(self.least):
            return int(self.zeus_job.max_epochs)
        cost_j = self.eta * epoch_energy_j + ((1 - self.eta) * self.points[batch_size][0].limit_w) * epoch_time_s
        return int(min(self.beta * self.least // cost_j, self.zeus_job.max_epochs))

    def observe(self, trial: flyball.sim.Trial) -> None:
        size = trial.batch_size
        if trial.outcome == "refused":
            self.batch_sizes.observe(self.zeus_job, size, _NEVER_RAN_PENALTY * self.beta * self.least, False)
        else:
            self._ran(size, trial)
        if trial.outcome != "reached" and (trial.recurrence == 0 or trial.try_ + 1 >= _TRIES_MAX):
            raise RuntimeError(f"recurrence {trial.recurrence} of {self.zeus_job} has not reached its target")

    def _ran(self, size: int, trial: flyball.sim.Trial) -> None:
        energy_j, time_s = self._taken(size, trial)
        cost_j = self._cost(energy_j, time_s)
        reached = trial.outcome == "reached"
        self.spent += cost_j
        self.batch_sizes.observe(self.zeus_job, size, cost_j, reached)
        self.history.append(HistoryEntry(size, round(trial.limit_w), energy_j, reached, time_s))
        if reached and self.spent < self.least:
            self.least = self.spent

    def _cost(self, energy_j: float, time_s: float) -> float:
        return self.eta * energy_j + (1 - self.eta) * self.job.max_power_w * time_s

    def _taken(self, size: int, trial: flyball.sim.Trial) -> tuple[float, float]:
        """A training whose batch size was profiled spent its first epoch at all limits in turn."""
        if trial.trial not in self.profiling:
            return trial.energy_j, trial.time_s
        points = self.points[size]
        here = next(point for point in points if point.limit_w == round(trial.limit_w))
        mean_j = sum(point.energy_j for point in points) / len(points)
        mean_s = sum(point.time_s for point in points) / len(points)
        return mean_j + here.energy_j * (trial.epochs - 1), mean_s + here.time_s * (trial.epochs - 1)


class _Overlapping(_Recurring):
    """A history of a group, whose trainings overlap. One that begins beside others takes the best batch size so far;
    what it cost is known at its end.
    """

    ratios: list[float]  # of runtime, of each submission; also of Simulator._own

    def __init__(self, job: flyball.sim.Job) -> None:
        super().__init__(job)
        self.best = job.default_batch_size

    def _choose(self, question: flyball.sim.Question) -> int:
        return self.best if question.in_flight else int(self.batch_sizes.predict(self.zeus_job))

    def observe(self, trial: flyball.sim.Trial) -> None:
        size, refused, reached = trial.batch_size, trial.outcome == "refused", trial.outcome == "reached"
        energy_j, time_s = (0.0, 0.0) if refused else self._taken(size, trial)
        cost_j = self._cost(energy_j, time_s)
        self.batch_sizes.observe(self.zeus_job, size, cost_j, reached)
        if not refused:
            ratio = self.ratios[trial.recurrence]
            self.history.append(HistoryEntry(size, round(trial.limit_w), energy_j * ratio, reached, time_s * ratio))
        if reached and cost_j < self.least:
            self.least, self.best = cost_j, size


class Simulator:
    """Simulates recurring jobs.

    summary_train, summary_power  the traces: paths of CSV files, or pandas.DataFrames
    batch_size_optimizer, power_limit_optimizer  the policies; each simulation works on copies
    seed                          of the draws of trainings, as numpy's generator gives them
    verbose                       is not looked at
    """

    def __init__(
        self,
        summary_train: Any,
        summary_power: Any,
        batch_size_optimizer: BatchSizeOptimizer,
        power_limit_optimizer: PowerLimitOptimizer,
        seed: int = 123456,
        verbose: bool = True,
    ) -> None:
        self.summary_train = summary_train
        self.summary_power = summary_power
        self.bso = batch_size_optimizer
        self.plo = power_limit_optimizer
        self.seed = seed
        self.verbose = verbose

    def simulate_one_job(self, job: Job, num_recurrence: int, beta_knob: float, eta_knob: float) -> list[HistoryEntry]:
        """Every training of so many recurrences of a job.

        Raises RuntimeError when the first training, or twenty of a recurrence, do not reach their target, ValueError
        for a job that the traces do not have, and what the policies raise.
        """
        if num_recurrence <= 0:
            return []
        with self._traces() as directory:
            simulate = functools.partial(flyball.sim.job, directory, _GPU, _GPU, recurrences=num_recurrence, bootstrap=0)
            if isinstance(self.bso, PruningGTSBatchSizeOptimizer):
                table = self._built_in(directory, simulate, job, beta_knob, eta_knob)
                _check_ended(table, "zeus")
                return _history(table)
            history: list[HistoryEntry] = []
            table = self._own(directory, simulate, job, (beta_knob, eta_knob), _Recurring, history=history)
            _check_ended(table, _Recurring.name)
            return history

    def simulate_one_alibaba_group(self, job: Job, group_df: Any, beta_knob: float, eta_knob: float) -> list[HistoryEntry]:
        """Every training of a group of submissions that overlap, in the order in which they end.

        group_df  the group's submissions, as the traces: start_time, end_time (s) and runtime_ratio, which the energy
                  and time of a submission's trainings are multiplied by

        Raises ValueError for a PruningGTSBatchSizeOptimizer without concurrency, and for a job that the traces do not
        have, RuntimeError when a submission does not reach its target in a thousand trainings (the published code
        tries for ever), or no batch size is left, and what the policies raise.
        """
        if isinstance(self.bso, PruningGTSBatchSizeOptimizer) and not self.bso.concurrency:
            raise ValueError("the trainings of a group overlap; give PruningGTSBatchSizeOptimizer concurrency=True")
        with self._traces() as directory:
            groups = Path(directory, "groups.csv")
            ratios = _write_group(group_df, groups)
            if not ratios:
                return []
            simulate = functools.partial(flyball.sim.group, groups, directory, _GPU)
            if isinstance(self.bso, PruningGTSBatchSizeOptimizer):
                history = _history(self._built_in(directory, simulate, job, beta_knob, eta_knob))
            else:
                history = []
                self._own(directory, simulate, job, (beta_knob, eta_knob), _Overlapping, history=history, ratios=ratios)
        reached = sum(entry.reached for entry in history)
        if reached < len(ratios):
            raise RuntimeError(f"the group of {job} ended early: {reached} of {len(ratios)} submissions reached their target")
        return history

    @contextlib.contextmanager
    def _traces(self) -> Iterator[str]:
        """A directory with the traces, under the names that the library reads."""
        with tempfile.TemporaryDirectory(prefix="flyball-traces-") as directory:
            _write(self.summary_train, Path(directory, "summary_train.csv"))
            _write(self.summary_power, Path(directory, _POWER))
            yield directory

    def _run(self, simulate: _Simulate, job: Job, default: int, **options: Any) -> flyball.sim.Table:
        described = flyball.sim.Description(
            _GPU, job.network, job.optimizer, job.target_metric, job.max_epochs, default, job.dataset, ()
        )
        try:
            return simulate(seeds=[self.seed], generator="numpy", guard="off", described=[described], **options)
        except flyball.sim.PolicyError as error:
            if error.__cause__ is None:
                raise
            raise error.__cause__ from None
        except flyball.NotFoundError as error:
            raise ValueError(str(error)) from error

    def _own(
        self, directory: str, simulate: _Simulate, job: Job, knobs: tuple[float, float], kind: type[_Recurring], **members: Any
    ) -> flyball.sim.Table:
        points = _points(Path(directory, _POWER), job)
        given = (job, copy.deepcopy(self.bso), copy.deepcopy(self.plo))
        policy = type("Given", (kind,), {"given": given, "points": points, "knobs": knobs, **members})
        default = job.default_bs if job.default_bs in points else min(points)
        return self._run(simulate, job, default, policies=[policy], eta=knobs[1], beta=math.inf)

    def _built_in(self, directory: str, simulate: _Simulate, job: Job, beta: float, eta: float) -> flyball.sim.Table:
        assert isinstance(self.bso, PruningGTSBatchSizeOptimizer)
        if self.bso.seed != self.seed:
            raise ValueError(f"the policy's seed is {self.bso.seed}, the simulator's {self.seed}; give both the same one")
        if type(self.plo) is not JITPowerLimitOptimizer:
            raise ValueError("PruningGTSBatchSizeOptimizer goes with JITPowerLimitOptimizer alone")
        default = job.default_bs if job.default_bs is not None else min(_points(Path(directory, _POWER), job))
        return self._run(simulate, job, default, policies=["zeus"], eta=eta, beta=beta, window=self.bso.window_size, tries=True)


def _check_ended(table: flyball.sim.Table, policy: str) -> None:
    row = next(row for row in table.rows() if row["policy"] == policy)
    if row["error"]:
        raise RuntimeError(row["error"])


def _history(table: flyball.sim.Table) -> list[HistoryEntry]:
    """The trainings of the table's tries; a try that never ran is none."""
    assert table.tries is not None
    return [
        HistoryEntry(row["batch_size"], round(row["power_limit_w"]), row["energy_j"], row["reached"] == 1, row["time_s"])
        for row in table.tries.rows()
        if row["time_s"]
    ]


def _write(table: Any, path: Path) -> None:
    """Puts a trace where the library reads it."""
    if isinstance(table, (str, os.PathLike)):
        shutil.copyfile(table, path)
    else:
        table.to_csv(path, index=False)


def _write_group(table: Any, path: Path) -> list[float]:
    """Puts the submissions of a group where the library reads them, by their start; gives their ratios of runtime."""
    _write(table, path)
    with open(path, encoding="utf-8", newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: float(row["start_time"]))
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("group", "start_time", "end_time", "dataset", "runtime_ratio"))
        writer.writerows((_GPU, row["start_time"], row["end_time"], _GPU, row["runtime_ratio"]) for row in rows)
    return [float(row["runtime_ratio"]) for row in rows]
