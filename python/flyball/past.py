# SPDX-License-Identifier: Apache-2.0
"""What the logs of recurring jobs tell: `flyball.jobs()` and `flyball.job(name)`.

Columns are plain lists, all of one length, under the names that `flyball job history` and its kind use in JSON;
moments are seconds since 1970 (`begun_unix_s`), shares are fractions. What is not known is None, never 0.
"""

from __future__ import annotations

import os

from flyball._flyball import _job_list, _job_read, _job_why

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Union

    _Columns = dict[str, list[Any]]
    _Store = Union[str, os.PathLike[str], None]


_MEASURES = (("energy", "energy"), ("time", "time"), ("cost", "score"))  # of a saving, and their words


class _Told:
    """Figures as attributes; equal if all of them are."""

    def __init__(self, figures: dict[str, Any]) -> None:
        self.__dict__.update(figures)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"


class Why(_Told):
    """Why a trial was chosen, as it was written down then.

    sentence         for people; also what str() gives
    reason           a word, as 'explore'
    trial            its number, from 1
    recurrence, try_ from 0
    batch_size       of all ranks together
    power_limit_w    W of each GPU; None: none was set, or a profile that the trial measures decides
    proposed_unix_s  when it was chosen
    policy           that chose
    capped           it may be stopped for its cost
    last_try         of its recurrence: the best known choice
    numbers          what was known then, a dict
    """

    sentence: str
    reason: str
    trial: int
    recurrence: int
    try_: int
    batch_size: int
    power_limit_w: float | None
    proposed_unix_s: float
    policy: str
    capped: bool
    last_try: bool
    numbers: dict[str, Any]

    def __str__(self) -> str:
        return self.sentence


class Saving(_Told):
    """What a job saves on one kind of hardware against runs of the default batch size at the highest power limit.

    A saving is a fraction for each model delivered: 0.12 is 12 % less, below 0 is more. `_low` and `_high` are the
    ends of its 95 % interval. All are None unless `known`; `doubt` then says why.

    energy_saving, time_saving, cost_saving         and each with _low and _high
    hardware                                        number of the kind of hardware, from 1
    baseline_runs, tuned_runs                       recurrences that ran the default, and what had been chosen
    baseline_failed, tuned_failed                   those of them that delivered no model
    baseline_energy_per_model_j, tuned_...          J
    baseline_time_per_model_s, tuned_...            s
    baseline_energy_spread, tuned_...               standard deviation of their energies, as a part of the mean
    baseline_metric, tuned_metric                   mean of their final metrics
    baseline_newest_unix_s, tuned_...               when the newest of them ended
    searching_recurrences, searching_failed         recurrences that searched
    exploration_energy_j                            J that searching took beyond as many tuned models
    ahead_energy_j                                  J that all but the default's took less than the default did then
    recent_recurrences, recent_ahead_energy_j       the same of the newest of them
    paid_off, paid_off_since_recurrence             whether searching has paid off, and since which recurrence, from 0
    outdated_runs, unknown_runs, failed_runs        recurrences tuned for what is not wanted any more, with an unknown
                                                    energy, and without a model
    earlier_recurrences, earlier_ahead_energy_j,    under revisions before the one that holds
    earlier_unknown_recurrences
    """

    hardware: int
    known: bool
    doubt: str
    energy_saving: float | None
    energy_saving_low: float | None
    energy_saving_high: float | None
    time_saving: float | None
    time_saving_low: float | None
    time_saving_high: float | None
    cost_saving: float | None
    cost_saving_low: float | None
    cost_saving_high: float | None
    baseline_runs: int
    baseline_failed: int
    baseline_energy_per_model_j: float | None
    baseline_energy_spread: float | None
    baseline_time_per_model_s: float | None
    baseline_metric: float | None
    baseline_newest_unix_s: float | None
    tuned_runs: int
    tuned_failed: int
    tuned_energy_per_model_j: float | None
    tuned_energy_spread: float | None
    tuned_time_per_model_s: float | None
    tuned_metric: float | None
    tuned_newest_unix_s: float | None
    searching_recurrences: int
    searching_failed: int
    exploration_energy_j: float | None
    ahead_energy_j: float | None
    recent_recurrences: int
    recent_ahead_energy_j: float | None
    paid_off: bool
    paid_off_since_recurrence: int | None
    outdated_runs: int
    unknown_runs: int
    failed_runs: int
    earlier_recurrences: int
    earlier_ahead_energy_j: float | None
    earlier_unknown_recurrences: int

    def __str__(self) -> str:
        if not self.known:
            return f"not yet known: {self.doubt}"
        return ", ".join(
            f"{word} {_percent(getattr(self, kind + '_saving'))} less "
            f"({_percent(getattr(self, kind + '_saving_low'))} to {_percent(getattr(self, kind + '_saving_high'))})"
            for kind, word in _MEASURES
        )

    def _repr_html_(self) -> str:
        from flyball import notebook

        rows = [
            (
                word,
                _percent(getattr(self, kind + "_saving")),
                f"{_percent(getattr(self, kind + '_saving_low'))} to {_percent(getattr(self, kind + '_saving_high'))}",
            )
            for kind, word in _MEASURES
        ]
        runs = f"{self.baseline_runs} runs of the default, {self.tuned_runs} tuned, {self.searching_recurrences} searching"
        caption = f"what a model takes less than by the default; {runs}" if self.known else f"{self}; {runs}"
        return notebook.table(caption, ("", "saved", "95 %"), rows)


class Frontier(_Told):
    """Batch sizes and power limits with what training to the target takes there, by the job's own trials.

    points    columns, fastest first: batch_size, power_limit_w, trials, time_s, time_low_s, time_high_s, energy_j,
              energy_low_j, energy_high_j, cost_j, on_frontier, default, chosen
    left_out  batch sizes without points, and why
    job       its name
    hardware  number of the kind of hardware, from 1
    """

    job: str
    hardware: int
    points: _Columns
    left_out: dict[int, str]

    def _row(self, mark: str) -> dict[str, Any] | None:
        if True not in self.points[mark]:
            return None
        place = self.points[mark].index(True)
        return {name: column[place] for name, column in self.points.items()}

    @property
    def chosen(self) -> dict[str, Any] | None:
        """The point that is best by the job's objective; None without points."""
        return self._row("chosen")

    @property
    def default(self) -> dict[str, Any] | None:
        """The default batch size at the highest limit; None if it is not known what it takes."""
        return self._row("default")

    def __repr__(self) -> str:
        return f"<flyball.Frontier of job '{self.job}': {sum(self.points['on_frontier'])} of {len(self.points['trials'])} points>"

    def _repr_html_(self) -> str:
        from flyball import notebook

        points = self.points
        rows = [
            (
                str(points["batch_size"][i]),
                f"{points['power_limit_w'][i]:g} W",
                notebook.quantity(points["time_s"][i], "s"),
                notebook.quantity(points["energy_j"][i], "J"),
                f"{points['cost_j'][i]:.0f}",
                ", ".join(mark for mark in ("chosen", "default") if points[mark][i]),
            )
            for i in range(len(points["trials"]))
            if points["on_frontier"][i] or points["default"][i]
        ]
        left_out = "".join(f"; batch {size} is left out: {why}" for size, why in self.left_out.items())
        return notebook.table(f"frontier of job '{self.job}'{left_out}", ("batch", "limit", "time", "energy", "score", ""), rows)


class Job(_Told):
    """What one job's log told when it was read; call flyball.job again for what is new.

    name, policy, objective  words; max_slowdown is the objective's bound, a factor; None: there is none
    eta                      of the objective 'cost', a score
    default_batch_size       of all ranks together
    pin_batch_size, pin_power_limit_w  what the job is pinned to; None: nothing, or the profile's best limit
    revision                 that holds; '': none was told
    recurrences, trials, running  how many have begun, and trials that have not ended
    hardware                 kinds of hardware in the order of first use: tuple of dicts of gpu_model, gpu_count,
                             world_size, gpu_memory_bytes, highest_limit_w, max_power_w
    history                  trials as columns: pandas.DataFrame(job.history), polars.DataFrame(job.history)
    savings                  a Saving for each kind of hardware
    """

    name: str
    policy: str
    objective: str
    eta: float
    max_slowdown: float | None
    revision: str
    default_batch_size: int
    pin_batch_size: int | None
    pin_power_limit_w: float | None
    recurrences: int
    trials: int
    running: int
    hardware: tuple[dict[str, Any], ...]
    history: _Columns
    savings: tuple[Saving, ...]
    _store: _Store
    _wait_s: float
    _frontiers: tuple[Frontier, ...]

    def why(self, trial: int | None = None) -> Why:
        """Why a trial was chosen; None: the newest. It reads the log again.

        NotFoundError if there is no such trial, Error if none has begun.
        """
        return why(self.name, trial, store=self._store, wait_s=self._wait_s)

    def pareto(self, hardware: int | None = None) -> Frontier:
        """The frontier on a kind of hardware, whose number counts from 1; None: that of the newest trial.

        LookupError if the job has not run there.
        """
        if hardware is None and self.trials > 0:
            hardware = self.history["hardware"][-1]
        if hardware is None or not 1 <= hardware <= len(self._frontiers):
            raise LookupError(f"job '{self.name}' ran on {len(self._frontiers)} kinds of hardware, and there is no number {hardware}")
        return self._frontiers[hardware - 1]

    def __repr__(self) -> str:
        return f"<flyball.Job '{self.name}': {self.recurrences} recurrences, {self.trials} trials, {self.running} running>"

    def _repr_html_(self) -> str:
        from flyball import notebook

        rows = [
            (f"{machine['gpu_count']} x {machine['gpu_model']}", _percent(saving.energy_saving), str(saving))
            for machine, saving in zip(self.hardware, self.savings)
        ]
        return notebook.table(repr(self)[1:-1], ("hardware", "energy saved", ""), rows)


def jobs(store: _Store = None, *, wait_s: float = 0) -> _Columns:
    """Lists the jobs at a store as columns: job, policy, recurrences, trials, running, events, made_unix_s,
    changed_unix_s, and trouble, which is '' unless a log is not understood.

    store   a file, 'postgresql://...', or a service's address; None: FLYBALL_STORE, else your own file
    wait_s  s to wait for each answer; 0: 10

    NotFoundError if the store does not exist; Error if it cannot be read.
    """
    columns = _job_list(store, wait_s)
    for name in ("policy", "recurrences", "trials", "running"):
        columns[name] = [None if trouble else value for value, trouble in zip(columns[name], columns["trouble"])]
    return columns


def job(name: str, store: _Store = None, *, wait_s: float = 0) -> Job:
    """Reads all that the log of one job tells. Arguments as of flyball.jobs.

    NotFoundError for an unknown job, with the name that may have been meant.
    """
    told = _job_read(name, store, wait_s)
    points, left_out = told.pop("points"), told.pop("left_out")
    for saving in told["savings"]:
        if not saving["paid_off"]:
            saving["paid_off_since_recurrence"] = None
    told["savings"] = tuple(Saving(saving) for saving in told["savings"])
    told["hardware"] = tuple(told["hardware"])
    for machine in told["hardware"]:
        machine["gpu_memory_bytes"] = machine["gpu_memory_bytes"] or None
    told["pin_batch_size"] = told["pin_batch_size"] or None
    if told["max_slowdown"] == float("inf"):
        told["max_slowdown"] = None
    told["_store"], told["_wait_s"] = store, wait_s
    told["_frontiers"] = tuple(
        Frontier({"job": name, "hardware": i + 1, "points": points[i], "left_out": left_out[i]}) for i in range(len(points))
    )
    return Job(told)


def why(name: str, trial: int | None = None, *, store: _Store = None, wait_s: float = 0) -> Why:
    """Why a trial of a job was chosen; None: the newest. Arguments as of flyball.jobs; errors as of Job.why."""
    import json

    if trial == 0:
        raise LookupError("trials are numbered from 1")
    told = _job_why(name, store, wait_s, trial or 0)
    told["numbers"], told["try_"] = json.loads(told["numbers"]), told.pop("try")
    return Why(told)


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{100 * value:.1f} %"
