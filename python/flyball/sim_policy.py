# SPDX-License-Identifier: Apache-2.0
"""Batch-size policies as Python classes. Use flyball.sim."""

from __future__ import annotations

import os
from typing import NamedTuple

from flyball._flyball import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Job(NamedTuple):
    """The job that a policy searches for.

    name                text
    batch_sizes         to choose from, ascending
    limits_w            W, ascending, of each batch size: {256: (100.0, 150.0)}
    default_batch_size  today's
    max_epochs          a try that has not reached its target by then has failed
    max_power_w         W, the highest limit: the weight of time in the score
    eta                 the weight of energy in it, 0 to 1
    beta, window        what the caller gave: stop at this multiple of the lowest score; newest observations that count
    seed                of this history; take random numbers from random.Random(job.seed)
    max_slowdown        bound on the time against the default's, a factor; None: there is none
    overlapping         whether a recurrence may begin while others run
    """

    name: str
    batch_sizes: tuple[int, ...]
    limits_w: dict[int, tuple[float, ...]]
    default_batch_size: int
    max_epochs: int
    max_power_w: float
    eta: float
    beta: float
    window: int
    seed: int
    max_slowdown: float | None
    overlapping: bool


class Question(NamedTuple):
    """What is asked for: the recurrence and its try, from 0; the trial, through the whole job; and how many trials run
    beside it.
    """

    recurrence: int
    try_: int
    trial: int
    in_flight: int


class Profile(NamedTuple):
    """A power profile of a batch size: points (limit_w, power_w, time_s of an epoch), the limit that is chosen of them, and
    the J and s that measuring them took.
    """

    batch_size: int
    points: tuple[tuple[float, float, float], ...]
    chosen_limit_w: float
    energy_j: float
    time_s: float


class Trial(NamedTuple):
    """A trial that has ended.

    outcome   'reached' its target, 'not reached', 'refused' (cap gave 0 epochs), 'out of memory', 'crashed', ...
    energy_j, time_s, cost_j  of the trial, its profile included; cost_j = eta * energy_j + (1 - eta) * max_power_w * time_s
    epochs    that it trained
    """

    recurrence: int
    try_: int
    trial: int
    batch_size: int
    limit_w: float
    outcome: str
    energy_j: float
    time_s: float
    cost_j: float
    epochs: float
    crashed: bool


_OUTCOMES = ("reached", "not reached", "refused", "stopped", "out of memory", "crashed", "expired")


class Policy:
    """A batch-size policy of your own. Derive from it and give the class, not an object, among `policies`.

        class Cheapest(flyball.sim.Policy):
            name = "cheapest"

            def __init__(self, job):
                super().__init__(job)
                self.cost_j = {}

            def propose(self, question):
                left = [size for size in self.job.batch_sizes if size not in self.cost_j]
                return left[0] if left else min(self.cost_j, key=self.cost_j.get)

            def observe(self, trial):
                self.cost_j[trial.batch_size] = trial.cost_j if trial.outcome == "reached" else float("inf")

        flyball.sim.job("traces", "v100", policies=["zeus", Cheapest])

    One object is made for each history of each job. For equal jobs it must answer alike: take random numbers from
    random.Random(job.seed), and nothing from a clock or a file. Any function that takes a Job and returns an object
    with these methods serves as well; its `name`, or its __name__, names the policy.

    All runs on the calling thread, the built-in policies beside it too. What a method raises ends the simulation with a
    PolicyError.
    """

    name = ""  # in tables: 1 to 40 of a-z A-Z 0-9 - _ . + that begin with a letter or digit; '': that of the class
    version = 1

    def __init__(self, job: Job) -> None:
        self.job = job

    def propose(self, question: Question) -> int | tuple[int, float] | None:
        """What the next trial runs: a batch size, whose power limit its profile decides, measured in its first epoch; a
        batch size and one of its limits in W; or None when nothing is left to try, which ends the job.
        """
        raise NotImplementedError("a policy has a method 'propose'")

    def begin(self, batch_size: int) -> None:
        """A trial of this batch size begins."""

    def measure(self, profile: Profile) -> None:
        """A power profile was measured."""

    def observe(self, trial: Trial) -> None:
        """A trial has ended."""

    def cap(self, batch_size: int, epoch_energy_j: float, epoch_time_s: float) -> int:
        """How many epochs a trial may run, from 0 (do not start it) to max_epochs, given what one takes at its limit."""
        return int(self.job.max_epochs)

    def bar(self, batch_size: int) -> None:
        """A batch size will not be run again, since it does not fit or its trials crash."""


class PolicyError(Error):
    """A policy of Python's raised an exception, which is the cause of this one, or gave an answer that is none.

    policy, job, method  names
    seed                 of the history
    """

    def __init__(self, text: str, policy: str = "", job: str = "", method: str = "", seed: int = 0) -> None:
        super().__init__(text)
        self.code = "FLY_EDATA"
        self.policy, self.job, self.method, self.seed = policy, job, method, seed

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.policy, self.job, self.method, self.seed)


class Running:
    """A history of a job under a policy: what the extension calls."""

    def __init__(self, factory: Any, policy: str, job: Job) -> None:
        self._policy, self._job = policy, job
        self._indices = {size: i for i, size in enumerate(job.batch_sizes)}
        self._object = self._call("__init__", factory, job)

    def _fault(self, method: str, what: str) -> PolicyError:
        where = f"policy '{self._policy}' failed in '{method}' on job '{self._job.name}' with seed {self._job.seed}"
        return PolicyError(f"{where}: {what}", self._policy, self._job.name, method, self._job.seed)

    def _call(self, name: str, method: Any, *arguments: Any) -> Any:
        try:
            return method(*arguments)
        except Exception as error:
            raise self._fault(name, f"{type(error).__name__}: {error}") from error

    def _tell(self, name: str, *arguments: Any) -> Any:
        method = getattr(self._object, name, None)
        return None if method is None else self._call(name, method, *arguments)

    def propose(self, recurrence: int, try_: int, trial: int, in_flight: int) -> tuple[int, float | None] | None:
        method = getattr(self._object, "propose", None)
        if method is None:
            raise self._fault("propose", f"the policy has no such method: {self._object!r}")
        answer = self._call("propose", method, Question(recurrence, try_, trial, in_flight))
        if answer is None:
            return None
        size, limit_w = answer if isinstance(answer, tuple) and len(answer) == 2 else (answer, None)
        index = self._indices.get(size) if isinstance(size, int) or hasattr(size, "__index__") else None
        if index is None:
            raise self._fault("propose", f"it gave {answer!r}; the batch sizes are {', '.join(map(str, self._indices))}")
        limits_w = self._job.limits_w[self._job.batch_sizes[index]]
        if limit_w is not None and limit_w not in limits_w:
            raise self._fault("propose", f"it gave {answer!r}; the limits of that batch size are {', '.join(f'{limit:g}' for limit in limits_w)} W")
        return index, limit_w

    def begin(self, batch: int) -> None:
        self._tell("begin", self._job.batch_sizes[batch])

    def measure(self, batch: int, points: tuple[Any, ...], chosen: int, energy_j: float, time_s: float) -> None:
        self._tell("measure", Profile(self._job.batch_sizes[batch], points, points[chosen][0], energy_j, time_s))

    def observe(self, recurrence: int, try_: int, trial: int, batch: int, limit_w: float, outcome: int, *rest: Any) -> None:
        energy_j, time_s, cost_j, epochs, crashed = rest
        word = _OUTCOMES[outcome] if outcome < len(_OUTCOMES) else "unknown"
        size = self._job.batch_sizes[batch]
        self._tell("observe", Trial(recurrence, try_, trial, size, limit_w, word, energy_j, time_s, cost_j, epochs, bool(crashed)))

    def cap(self, batch: int, epoch_energy_j: float, epoch_time_s: float) -> int:
        answer = self._tell("cap", self._job.batch_sizes[batch], epoch_energy_j, epoch_time_s)
        epochs = self._job.max_epochs if answer is None else answer
        if not hasattr(epochs, "__index__") or not 0 <= epochs <= self._job.max_epochs:
            raise self._fault("cap", f"it gave {answer!r}; expected a whole number from 0 to {self._job.max_epochs}")
        return int(epochs)

    def bar(self, batch: int) -> None:
        self._tell("bar", self._job.batch_sizes[batch])


class Maker:
    """Makes what runs a policy on each history; the extension calls it."""

    def __init__(self, factory: Any, policy: str) -> None:
        self._factory, self._policy = factory, policy

    def __call__(
        self,
        name: str,
        choices: tuple[tuple[int, tuple[float, ...]], ...],
        default: int,
        max_epochs: int,
        max_power_w: float,
        eta: float,
        beta: float,
        window: int,
        seed: int,
        max_slowdown: float,
        overlapping: bool,
    ) -> Running:
        job = Job(
            name,
            tuple(size for size, _ in choices),
            dict(choices),
            choices[default][0],
            max_epochs,
            max_power_w,
            eta,
            beta,
            window,
            seed,
            None if max_slowdown == float("inf") else max_slowdown,
            overlapping,
        )
        return Running(self._factory, self._policy, job)


def policy_of(given: Any) -> Any:
    if isinstance(given, str):
        return given
    if isinstance(given, os.PathLike):
        return os.fspath(given)
    if isinstance(given, Policy) or not callable(given):
        raise TypeError(f"a policy is a name, a path, or a class: each history gets an object of its own, so {given!r} cannot serve")
    name = getattr(given, "name", "") or getattr(given, "__name__", "")
    return name, getattr(given, "version", 1), Maker(given, name)
