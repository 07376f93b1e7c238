# SPDX-License-Identifier: Apache-2.0
"""Sessions: one submission of a recurring job. The library decides; here are the loops of a training around it."""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from collections.abc import Mapping

from flyball._flyball import StateError, UsageError, _Session

TYPE_CHECKING = False
if TYPE_CHECKING:  # these take longer to import than all the rest
    import datetime
    from collections.abc import Generator, Iterable, Iterator
    from types import TracebackType
    from typing import Any, Literal, TypeVar, Union

    from flyball._flyball import Monitor
    from flyball.ranks import AllReduce, Ranks

    _T = TypeVar("_T")
    _Answer = Literal["go on", "reached", "stop"]
    _End = Literal["finished", "crashed", "interrupted"]
    _Path = Union[str, os.PathLike[str]]

_AGAIN = 75
# Exit statuses of a program that SIGINT or SIGTERM asked to end: it goes on later.
_ASKED_TO_END = {128 + 2, 128 + 15}

# The open sessions of this process, by what makes two of them the same.
_open: weakref.WeakValueDictionary[tuple[object, ...], Session] = weakref.WeakValueDictionary()
_every: weakref.WeakSet[Session] = weakref.WeakSet()


def _close_all() -> None:
    """At the interpreter's end. An exception that ended the program ends what it left open, as that of a block does."""
    # At a prompt, and in a notebook, it may be any exception of before.
    error = None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)
    for session in list(_every):
        if error is not None:
            session.out_of_memory(error)
        session.close("interrupted" if error is None else _end_after(error))


atexit.register(_close_all)


def _says_out_of_memory(exception: BaseException | None) -> bool:
    """Whether memory ran out, by an exception or by one that it was raised from."""
    for _ in range(16):
        if exception is None:
            return False
        kind = type(exception)
        # MemoryError is the interpreter's own, also of subclasses under any name.
        if isinstance(exception, MemoryError) or _Session._is_out_of_memory(f"{kind.__module__}.{kind.__qualname__}", _text_of(exception)):
            return True
        exception = exception.__cause__
    return False


def _text_of(exception: BaseException) -> str:
    try:
        return str(exception).replace("\0", " ").encode(errors="replace").decode()
    except Exception:  # a broken __str__ of somebody's
        return ""


def _end_after(exception: BaseException | None) -> _End:
    if isinstance(exception, KeyboardInterrupt):
        return "interrupted"
    if isinstance(exception, SystemExit):
        if exception.code in (None, 0, _AGAIN):
            return "finished"
        return "interrupted" if exception.code in _ASKED_TO_END else "crashed"
    return "finished" if exception is None or isinstance(exception, GeneratorExit) else "crashed"


def _joined(gpus: str | Iterable[int | str] | None) -> str | None:
    return gpus if gpus is None or isinstance(gpus, str) else ",".join(map(str, gpus))


def _seconds(moment: datetime.datetime | float | None) -> int | None:
    if moment is None:
        return None
    return int(moment if isinstance(moment, (int, float)) else moment.timestamp())


def _place() -> Ranks:
    """This process among those that train together; alone where nothing says that there are others."""
    from flyball import ranks  # with what it imports, for those alone who open a session

    found = ranks.found()
    if found.replicas > 1 and found.all_reduce is None:
        raise UsageError(
            f"session: the environment says that this is rank {found.rank} of {found.replicas}, and torch.distributed has not "
            "begun: begin it before you open the session, give all_reduce=, or world_size=1 if each process trains alone"
        )
    return found


class Split(tuple):  # type: ignore[type-arg]
    """How a rank makes one step of its batch size: `micro_batch_size` samples at a time, `accumulation` times."""

    __slots__ = ()
    micro_batch_size: int = property(lambda self: self[0])  # type: ignore[assignment]
    accumulation: int = property(lambda self: self[1])  # type: ignore[assignment]


class _Evaluation:
    """Around an evaluation: its time and energy belong to the training, but to no step."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __enter__(self) -> None:
        self._session.evaluation_begin()

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._session.evaluation_end()


class Session(_Session):
    """One submission of a recurring job: which batch size and power limit to train with, and when to stop.

        with flyball.Session("nightly-ranker", batch_sizes=[256, 512, 1024], default=512, metric="auc",
                             target=0.791, max_slowdown="0%", max_epochs=40) as session:
            loader = make_loader(batch_size=session.local_batch_size)
            optimizer = AdamW(model.parameters(), lr=session.scale_lr(3e-4, optimizer=AdamW))
            for epoch in session.epochs():
                for batch in session.steps(loader):
                    train_step(model, optimizer, batch)
                with session.evaluation():
                    session.report(evaluate(model))

    The job. The first session writes it down; a later one with other values is not tuned, and `status.text` says so.

    job             its name: a-z A-Z 0-9 - _ .
    batch_sizes     to choose from: samples per optimizer step, of all ranks; None: only `default`
    default         the batch size that you would use without Flyball
    metric          the name of the figure that you report; picks it from a mapping
    target          a number or '>=0.79': the metric reaches at least that; '<=0.3': at most; None: no target,
                    and only the power limit is tuned
    max_epochs      of one training
    objective       what is to be small: 'energy' (as None), 'time', 'cost:0.5', 'lowest-limit', 'carbon', 'money'
    eta             0 to 1: the same as 'cost:ETA'
    max_slowdown    '3%', '1.03x' or 0.03: bound on the time, against the default batch size at the highest limit; 'none'
                    or None: no bound; 'auto': that of the job on record, else 5 %, none for 'cost' and 'time'
    trains_on       to max_epochs, also when the target was reached
    policy          None: the job's own
    beta            a training is stopped at this multiple of the lowest score; 0: 2
    window          of the policy 'zeus': how many results of a batch size count; 0: all
    seed, control_every, report_every_samples, report_every_steps, target_hold, best_so_far, max_metric_loss,
    no_default, like, revision   as in the library's manual, flyball/session.h

    This submission.

    tries           how many trainings may be made; 'always': whoever starts the program does so again after exit
                    status 75; 0: 1, and then other batch sizes are never explored
    run             a name that stays when the run is requeued; None: FLYBALL_RUN_ID, else Slurm's job
    store           address of the job's log; None: FLYBALL_STORE, else your own file
    wait_s          s to wait for the log; 0: 5
    recurrences_left   with this one; 0: not known
    finish_by       a datetime or seconds since 1970: no exploration that could miss it
    tries_directory    where each try has its `directory`; None: 'flyball-tries'
    samples_per_epoch  lets a power profile be judged before the first epoch's end; 0: unknown

    Devices.

    monitor         a Monitor over the GPUs of this rank, which stays open until the session is closed; None: one of
                    its own
    gpus            for that: '0,2' or [0, 2], as CUDA_VISIBLE_DEVICES is written; None: what is visible
    leave_limits    sets none
    limits_w        W: to try; None: all in steps of 25 W
    warmup_steps, profile_steps, energy_tolerance   of the power profile; 0: 10, 40, 0.04
    carbon          a dict of the members of fly_carbon_options, as {'source': 'gb:national'}
    give_back_s     s without a step after which the limit is put back until the next one; 0: never; None: as of a Tuner
    quiet           no line on stderr at the end, which is the `summary`; FLYBALL_QUIET=1 does the same

    Ranks: each has a session over its own `gpus`, and makes the same calls. None: as torch.distributed says, if it
    has begun.

    world_size, rank   of this process; 1 and 0 if each process trains alone
    all_reduce         a function of two lists, which it changes to the sums and the maxima over all ranks
    replicas           ranks with samples of their own; None: all of them. With tensor or pipeline parallelism
                       there are fewer than world_size

    Only misuse raises: UsageError for options out of range, when the session is opened, and StateError for a loop
    over a session that is closed. A log, a GPU or a driver that fails never does; `status` says what is wrong.
    Leaving the block ends the session: an exception that says that memory ran out is written down as that, Ctrl-C
    as interrupted, another one as a crash; all are passed on. One that nobody closes is interrupted, or ends by the
    exception that ended the program. Opening a job
    again in the same process closes the session of it that is still open, as a notebook's cell that runs twice.
    Any thread may call it; threads wait for each other. In a process that was forked its copy does nothing. It
    cannot be pickled.
    """

    def __init__(
        self,
        job: str,
        *,
        batch_sizes: Iterable[int] | None = None,
        default: int | None = None,
        metric: str | None = None,
        target: float | str | None = None,
        max_epochs: int = 100,
        objective: str | None = None,
        eta: float | None = None,
        max_slowdown: str | float | None = "auto",
        trains_on: bool = False,
        policy: str | None = None,
        beta: float = 0,
        window: int = 0,
        seed: int = 0,
        control_every: int = 0,
        report_every_samples: int = 0,
        report_every_steps: int = 0,
        target_hold: int = 0,
        best_so_far: bool = False,
        max_metric_loss: float = 0,
        no_default: bool = False,
        like: str | None = None,
        revision: str | None = None,
        tries: int | Literal["always"] = 0,
        run: str | None = None,
        store: _Path | None = None,
        wait_s: float = 0,
        recurrences_left: int = 0,
        finish_by: datetime.datetime | float | None = None,
        tries_directory: _Path | None = None,
        samples_per_epoch: int = 0,
        gpus: str | Iterable[int | str] | None = None,
        leave_limits: bool = False,
        limits_w: Iterable[float] | None = None,
        warmup_steps: int = 0,
        profile_steps: int = 0,
        energy_tolerance: float = 0,
        carbon: dict[str, Any] | None = None,
        monitor: Monitor | None = None,
        world_size: int | None = None,
        rank: int | None = None,
        all_reduce: AllReduce | None = None,
        replicas: int | None = None,
        give_back_s: float | None = None,
        quiet: bool = False,
    ) -> None:
        self.job = job
        self.metric = metric
        self._max_epochs = max_epochs
        self._counts_samples = report_every_samples > 0 or report_every_steps > 0
        self._reports = 0
        self._complained = False
        if default is not None and batch_sizes is None:
            batch_sizes = [default]
        gpus = _joined(gpus)
        if world_size is None and rank is None and all_reduce is None:
            rank, world_size, all_reduce = _place()
        # The process that says the summary; 0: none does.
        self._speaker = 0 if quiet or rank or os.environ.get("FLYBALL_QUIET") == "1" else os.getpid()
        self._loader: int | None = None
        members = {
            "job_name": job,
            "batch_sizes": batch_sizes,
            "default_batch_size": default,
            "target": target,
            "max_epochs": max_epochs,
            "objective": objective,
            "eta": eta,
            "max_slowdown": max_slowdown,
            "trains_on": trains_on,
            "policy": policy,
            "beta": beta,
            "window": window,
            "seed": seed,
            "control_every": control_every,
            "report_every_samples": report_every_samples,
            "report_every_steps": report_every_steps,
            "target_hold": target_hold,
            "best_so_far": best_so_far,
            "max_metric_loss": max_metric_loss,
            "no_default": no_default,
            "like": like,
            "revision": revision,
            "tries": tries,
            "run": run,
            "store": store,
            "wait_s": wait_s,
            "recurrences_left": recurrences_left,
            "finish_by_unix_s": _seconds(finish_by),
            "tries_directory": tries_directory,
            "samples_per_epoch": samples_per_epoch,
            "gpus": gpus,
            "leave_limits": leave_limits,
            "limits_w": limits_w,
            "warmup_steps": warmup_steps,
            "profile_steps": profile_steps,
            "energy_tolerance": energy_tolerance,
            "world_size": world_size,
            "rank": rank,
            "replicas": replicas,
            "give_back_s": float("inf") if give_back_s == 0 else give_back_s,
            "carbon": carbon,
        }
        self._take_place((job, run, store, gpus, id(monitor), rank), members, all_reduce, monitor)

    def _take_place(self, key: tuple[object, ...], members: dict[str, Any], all_reduce: object, monitor: Monitor | None) -> None:
        """Opens, after closing the same job's session that was left open in this process."""
        before = _open.pop(key, None)
        if before is not None:
            before.close("interrupted")
        self._open(members, all_reduce, monitor)
        _open[key] = self
        _every.add(self)

    # ---- loops ----

    def attempts(self) -> Generator[Session, None, None]:
        """The tries of this submission, one after the other: this session itself, with the next batch size.

            for attempt in session.attempts():
                model = make_model()
                for epoch in attempt.epochs():
                    ...

        Begin each one anew: model, optimizer, loader. On a GPU a new process for each try is the safer way, since
        frameworks keep memory: train once, and end with sys.exit(session.exit_status).
        """
        self._need_open()
        return self._attempts()

    def _attempts(self) -> Generator[Session, None, None]:
        while True:
            self._loader = None
            yield self
            self.training_ended()
            if not self.try_again():
                return

    def epochs(self, max: int | None = None) -> Generator[int, None, None]:
        """The numbers of the epochs of one training, from 0 or from where `resumed` says.

        It ends when an answer ends the training, or after `max` of them. An epoch in which nothing was reported is
        reported without a metric. Raises UsageError if `max` is more than the job's max_epochs.
        """
        self._need_open()
        if max is not None and max > self._max_epochs and not self._counts_samples:
            raise UsageError(f"session: epochs(max={max}): the job has max_epochs={self._max_epochs}; give Session max_epochs={max}")
        return self._epochs(max)

    def _epochs(self, most: int | None) -> Generator[int, None, None]:
        epoch = self.status.epoch
        if most is None and not self._counts_samples:
            most = self._max_epochs
        while not self.is_over and (most is None or epoch < most):
            reports = self._reports
            self.epoch_begin()
            yield epoch
            epoch += 1
            if reports == self._reports and not self._counts_samples and not self.is_over:
                self.report(None)
        self.training_ended()

    def steps(self, loader: Iterable[_T], accumulation: int = 1) -> Iterable[_T]:
        """The batches of a loader; before each one a step begins. It ends early when this training must stop.

        accumulation   batches per optimizer step, as `split` gives them
        """
        self._need_open()
        self._look_at(loader, accumulation)
        if accumulation == 1:
            return self._steps(loader)
        return self._every_few(loader, accumulation)

    def _look_at(self, loader: Any, accumulation: int) -> None:
        """Tells of a program that went on with a smaller batch size than it began with, by its loader's."""
        size = getattr(loader, "batch_size", None)
        if not isinstance(size, int) or isinstance(size, bool):
            return
        samples = size * accumulation
        if self._loader is not None and samples < self._loader == self.local_batch_size:
            self.trains_with(samples * self.replicas)
        if self._loader is None:
            self._loader = samples

    def _every_few(self, loader: Iterable[_T], accumulation: int) -> Iterator[_T]:
        try:
            for number, batch in enumerate(loader):
                if number % accumulation == 0 and not self.step_begin():
                    return
                yield batch
        finally:
            self.evaluation_begin()

    def evaluation(self) -> _Evaluation:
        """Around evaluation, with 'with': its time and energy belong to the training, but to no step."""
        return _Evaluation(self)

    # ---- what a training tells ----

    def report(self, metric: object = None) -> _Answer:
        """An epoch has ended, with that metric: a number, a tensor of one, or a mapping with `metric` in it.

        Returns 'go on', 'reached' or 'stop', which ends `epochs`. Raises nothing: what is no number is reported as
        none, with one line in the log 'flyball' of the module logging. Waits at most 0.3 s for the job's log.
        Collective over the ranks.
        """
        self._reports += 1
        return self._report(self._number(metric))

    def _number(self, metric: Any) -> float:
        try:
            if isinstance(metric, Mapping):
                metric = metric[self.metric]
            return float("nan") if metric is None else float(metric)
        except Exception as error:  # a training never ends for this
            if not self._complained:
                import logging

                logging.getLogger("flyball").warning("session %s: no metric in what was reported: %r", self.job, error)
            self._complained = True
            return float("nan")

    def out_of_memory(self, exception: BaseException | None = None) -> bool:
        """This batch size does not fit: written down at once. With an exception only if that says so; returns whether.

            for attempt in session.attempts():
                try:
                    train(attempt)
                except RuntimeError as error:
                    if not attempt.out_of_memory(error):
                        raise
        """
        if exception is not None and not _says_out_of_memory(exception):
            return False
        self._out_of_memory()
        return True

    def split(self, max_micro: int = 0, replicas: int | None = None) -> Split:
        """How to make one step of `local_batch_size` samples: a Split of micro-batch size and accumulation.

            micro_batch_size, accumulation = session.split(max_micro=32)

        The micro-batch size is the largest that divides the local batch size and is at most `max_micro`; 0: any.
        replicas   ranks with samples of their own; None: as Session was told. Raises UsageError if the batch size is
                   no multiple of them.
        """
        return Split(self._split(max_micro, replicas))

    def resumed(self, epochs_done: int, batch_size: int | None = None) -> None:
        """A checkpoint was loaded, in which so many epochs are done already; `epochs` goes on from there.

        batch_size   of all ranks, that the checkpoint was trained with. Raises Error (FLY_ECONFLICT) if this try has
                     another one: a training must not change its batch size on the way.
        """
        self._resumed(epochs_done, batch_size)

    def scale_lr(self, lr: float, optimizer: object = "square-root") -> float:
        """The learning rate for `batch_size`, given the one that suits the default batch size.

        optimizer   an optimizer, its class or its name: linearly for SGD, by the square root for adaptive ones; or
                    'linear', 'square-root'. Raises UsageError for one that no rule is known for.
        """
        if not isinstance(optimizer, str):
            optimizer = (optimizer if isinstance(optimizer, type) else type(optimizer)).__name__
        return self._scaled(lr, optimizer)

    # ---- from opening to end ----

    def _need_open(self) -> None:
        if self.closed:
            raise StateError("the session is closed; make another one")

    @property
    def summary(self) -> str:
        """What came of the newest try, in a sentence; rank 0 says it on stderr when the session is closed."""
        from flyball import notebook

        status = self.status
        limit = "" if status.limit_w is None else f" at {status.limit_w:g} W"
        said = f"job '{self.job}': batch size {status.batch_size}{limit}, "
        if status.epoch == 0:
            said += "and no epoch ended"
        else:
            said += f"{status.epoch} epoch{'' if status.epoch == 1 else 's'}: {notebook.quantity(status.time_s, 's')}, "
            said += "energy not known" if status.energy_j is None else notebook.quantity(status.energy_j, "J")
        if status.answer == "reached":
            said += "; the target was reached"
        elif status.answer == "stop":
            said += "; all epochs are done" if status.epoch >= self._max_epochs else "; the job ended it"
        return said + (f"; the job's log is not used: {status.text}" if status.text else "")

    def close(self, end: _End = "finished", /) -> None:
        """Ends the session: 'finished', 'crashed' or 'interrupted'. Says the summary, unless it is to be quiet."""
        speaks = not self.closed and self._speaker == os.getpid()
        super().close(end)
        if speaks and sys.stderr is not None and not self.status.disabled:
            try:
                print(f"flyball: {self.summary}", file=sys.stderr)
            except (OSError, ValueError):  # nobody listens any more
                pass

    def __enter__(self) -> Session:
        self._need_open()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if value is not None:
            self.out_of_memory(value)
        self.close(_end_after(value))

    def __repr__(self) -> str:
        status = self.status
        state = "closed" if self.closed else status.answer
        return f"<flyball.Session {self.job!r} batch_size={status.batch_size} epoch={status.epoch} {state}>"

    def _repr_html_(self) -> str:
        from flyball import notebook

        status = self.status
        rows = [
            ("batch size", str(status.batch_size)),
            ("power limit", "not set" if status.limit_w is None else notebook.quantity(status.limit_w, "W")),
            ("epochs", str(status.epoch)),
            ("answer", status.answer),
            ("energy", notebook.quantity(status.energy_j, "J")),
            ("time", notebook.quantity(status.time_s, "s")),
            ("why", status.why),
            ("log", status.text),
            ("limit", status.limit_text),
        ]
        return notebook.table(self.job, ("", ""), [row for row in rows if row[1]])
