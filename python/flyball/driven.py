# SPDX-License-Identifier: Apache-2.0
"""What a framework's events do to a monitor, a tuner or a session. The callbacks of each framework call this."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Optional

from flyball import Measurement, Monitor, Session, Tuner


class Driver:
    """Follows one training. Its events come in this order; `rest` is where steps pause for an evaluation or a save."""

    def __init__(self, of: Any) -> None:
        self.of = of

    def epoch_begin(self) -> None:
        """An epoch begins."""

    def step_begin(self) -> bool:
        """An optimizer step begins; returns whether training is to stop."""
        return False

    def rest(self) -> None:
        """What follows is no step, up to the next one; may be told more than once."""

    def report(self, metrics: Mapping[str, Any]) -> bool:
        """An evaluation has ended with these figures; returns whether training is to stop."""
        return False

    def epoch_end(self) -> None:
        """The epoch's steps are over."""

    def resumed(self, epochs_done: int) -> None:
        """A checkpoint was loaded, in which so many epochs are done."""

    def lowered(self) -> None:
        """The program begins anew with a smaller batch size, since memory ran out."""

    def end(self) -> None:
        """Training is over."""

    def failed(self, error: Optional[BaseException]) -> None:
        """Training is over by an exception, where it is known."""
        self.end()


class MonitorDriver(Driver):
    """A window of the training, and one of each epoch."""

    def __init__(self, of: Monitor) -> None:
        super().__init__(of)
        self.training = of.begin("training")
        self.measurement: Optional[Measurement] = None
        self.epochs: list[Measurement] = []
        self._epoch: Any = None

    def epoch_begin(self) -> None:
        self.epoch_end()
        self._epoch = self.of.begin(f"epoch {len(self.epochs) + 1}")

    def epoch_end(self) -> None:
        if self._epoch is not None:
            self.epochs.append(self._epoch.end())
        self._epoch = None

    def end(self) -> None:
        self.epoch_end()
        self.measurement = self.training.end()


class TunerDriver(Driver):
    """Steps and epochs. A pause between two steps is in no window of the tuner's anyway."""

    _open = False

    def epoch_begin(self) -> None:
        self.epoch_end()
        self._open = True
        self.of.epoch_begin()

    def step_begin(self) -> bool:
        self.of.step_begin()
        return False

    def epoch_end(self) -> None:
        if self._open:
            self.of.epoch_end()
        self._open = False

    def end(self) -> None:
        self.epoch_end()
        self.of.give_back()


class SessionDriver(Driver):
    """Epochs, steps, evaluations and metrics. An epoch without a metric is reported without one."""

    def __init__(self, of: Session, metric: Optional[str]) -> None:
        super().__init__(of)
        self._metric = metric or of.metric or ""
        self._open = self._reported = self._rests = False

    def _end_rest(self) -> None:
        if self._rests:
            self.of.evaluation_end()
        self._rests = False

    def _end_epoch(self) -> None:
        self._end_rest()
        if self._open and not self._reported and not self.of.is_over and not self.of._counts_samples:
            self.of.report(None)
        self._open = False

    def epoch_begin(self) -> None:
        self._end_epoch()
        self._open, self._reported = True, False
        self.of.epoch_begin()

    def step_begin(self) -> bool:
        self._end_rest()
        return not self.of.step_begin()

    def rest(self) -> None:
        if not self._rests:
            self.of.evaluation_begin()
        self._rests = True

    def report(self, metrics: Mapping[str, Any]) -> bool:
        self._end_rest()
        for name in (self._metric, f"eval_{self._metric}"):
            if self._open and name in metrics:  # and not before the first epoch
                self._reported = True
                self.of.report(metrics[name])
                return bool(self.of.is_over)
        return False

    def epoch_end(self) -> None:
        if not self._reported:
            self.rest()

    def resumed(self, epochs_done: int) -> None:
        self.of.resumed(epochs_done)

    def lowered(self) -> None:
        self.of.out_of_memory()

    def end(self) -> None:
        self._end_epoch()
        self.of.training_ended()

    def failed(self, error: Optional[BaseException]) -> None:
        """The session stays open: whoever made it closes it, with the exception if it is a block's."""
        self._end_rest()
        self._open = False
        if error is not None:
            self.of.out_of_memory(error)
        self.of.give_back()


def watch_cell(end: Callable[[Optional[BaseException]], None]) -> bool:
    """In IPython: calls the object's method when the cell ends in this thread, once, with its exception or None.

    For a training that nothing else ends: trainers that tell their callbacks of no exception leave it open. Returns
    whether that will be so; other programs have `give_back_s` alone.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    events: Any = getattr(shell, "events", None)
    if events is None:
        return False
    watched, thread = weakref.WeakMethod(end), threading.get_ident()

    def ended(result: Any = None) -> None:
        method = watched()
        if method is not None and threading.get_ident() == thread:
            method(getattr(result, "error_in_exec", None))
        events.unregister("post_run_cell", ended)

    events.register("post_run_cell", ended)
    return True


def driver_of(handle: Any, metric: Optional[str]) -> Driver:
    """The driver of a Monitor, a Tuner or a Session; TypeError for anything else."""
    if isinstance(handle, Monitor):
        return MonitorDriver(handle)
    if isinstance(handle, Tuner):
        return TunerDriver(handle)
    if isinstance(handle, Session):
        return SessionDriver(handle, metric)
    raise TypeError(f"expected a flyball.Monitor, Tuner or Session, got {handle!r}")


class Driven:
    """What the callbacks of all frameworks have in common.

    of        a Monitor, a Tuner or a Session; or the class Monitor or Tuner, which is then made with `options` when
              training begins and closed when it ends
    metric    with a session: the name of its metric among the framework's; None: the session's own
    """

    def __init__(self, of: Any, *, metric: Optional[str] = None, **options: Any) -> None:
        if isinstance(of, type) and of not in (Monitor, Tuner):
            raise TypeError(f"of the classes Monitor and Tuner make one when training begins; of {of.__name__} give an object")
        if not isinstance(of, type) and options:
            raise TypeError(f"options are for a class that is made when training begins: {', '.join(options)}")
        self._of, self._metric, self._options = of, metric, options
        self._driver: Optional[Driver] = None
        self._trains = False
        self._batch_size: Optional[int] = None

    @property
    def handle(self) -> Any:
        """The Monitor, Tuner or Session; None while a class waits for training to begin."""
        if self._driver is not None:
            return self._driver.of
        return None if isinstance(self._of, type) else self._of

    @property
    def measurement(self) -> Optional[Measurement]:
        """With a monitor: of the whole training once that has ended, else None."""
        return getattr(self._driver, "measurement", None)

    @property
    def epochs(self) -> list[Measurement]:
        """With a monitor: of each epoch that has ended."""
        return getattr(self._driver, "epochs", [])

    def __getstate__(self) -> dict[str, Any]:
        if self._driver is not None:
            raise TypeError("a callback of flyball cannot be pickled once training has begun")
        return self.__dict__

    def _begin(self, epochs_done: int, batch_size: Optional[int] = None) -> None:
        """Training begins, perhaps anew after an exception; with that batch size of a device, if it is known."""
        if self._driver is not None and self._batch_size is not None and batch_size is not None and batch_size < self._batch_size:
            self._driver.lowered()
        self._close()
        self._batch_size = batch_size
        handle = self._of(**self._options) if isinstance(self._of, type) else self._of
        self._driver = driver_of(handle, self._metric)
        self._trains = True
        watch_cell(self._fail)
        if epochs_done > 0:
            self._driver.resumed(epochs_done)

    @property
    def _active(self) -> Optional[Driver]:
        """The driver while training goes on."""
        return self._driver if self._trains else None

    def _close(self) -> None:
        if self._driver is not None and isinstance(self._of, type):
            self._driver.of.close()

    def _end(self) -> None:
        active, self._trains = self._active, False
        try:
            if active is not None:
                active.end()
        finally:
            self._close()

    def _fail(self, error: Optional[BaseException]) -> None:
        """Training is over by an exception, perhaps an unknown one; nothing if it has ended already."""
        active, self._trains = self._active, False
        try:
            if active is not None:
                active.failed(error)
        finally:
            self._close()
