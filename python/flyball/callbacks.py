# SPDX-License-Identifier: Apache-2.0
"""Callbacks for Hugging Face's Trainer and for Lightning's, which measure, tune, or run a recurring job.

    trainer = transformers.Trainer(..., callbacks=[HuggingFaceCallback(flyball.Tuner, max_slowdown="3%")])
    trainer = lightning.Trainer(..., callbacks=[LightningCallback(session)])

Neither framework is imported before its callback is asked for. Both are made of a Monitor, a Tuner or a Session; or
of the class Monitor or Tuner and its options: then it is made when training begins and closed when that ends, and until
it begins the callback can be pickled.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from flyball.driven import Driven

__all__ = ["HuggingFaceCallback", "LightningCallback"]


class _HuggingFace(Driven):
    """Follows transformers.Trainer: steps are those of the optimizer, whatever is accumulated.

    Evaluations, checkpoints and what else lies between two steps are no steps. With a session, each evaluation with its
    metric is reported ('auc' or 'eval_auc'), and training stops when the session says so. A Trainer that lowers its
    batch size by itself (auto_find_batch_size) is recorded as out of memory. It tells no callback of an exception: in
    IPython the end of the cell ends training, and elsewhere the limit goes back once no step came for `give_back_s`.
    """

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._begin(int(state.epoch or 0), getattr(state, "train_batch_size", None))

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._active is not None:
            self._active.epoch_begin()

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        if self._active is not None and self._active.step_begin():
            control.should_training_stop = True
        return control

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._active is not None and (control.should_evaluate or control.should_save):
            self._active.rest()

    def on_prediction_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._active is not None:
            self._active.rest()

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **_: Any) -> Any:
        if self._active is not None and self._active.report(metrics or {}):
            control.should_training_stop = True
        return control

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._active is not None:
            self._active.epoch_end()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._end()


class _Lightning(Driven):
    """Follows lightning.Trainer: a step is what lies between two batches that end with an optimizer's step.

    Validation is no step; the check before training is left out. With a session, each validation with its metric is
    reported, and training stops when the session says so.
    """

    _steps_taken = -1

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._begin(trainer.current_epoch)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        if self._active is not None:
            self._steps_taken = -1
            self._active.epoch_begin()

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        if self._active is None or trainer.global_step == self._steps_taken:
            return
        self._steps_taken = trainer.global_step
        if self._active.step_begin():
            trainer.should_stop = True

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        if self._active is not None and not trainer.sanity_checking:
            self._active.rest()

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if self._active is None or trainer.sanity_checking:
            return
        if self._active.report(trainer.callback_metrics):
            trainer.should_stop = True

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        if self._active is not None:
            self._active.epoch_end()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """In place of on_train_end, also of Ctrl-C."""
        self._fail(exception)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """At the end of a fit, whatever ended it."""
        self._fail(None)


# The callback, what it is made of, and where its framework has its base class, best first.
_KINDS: dict[str, tuple[type[Driven], tuple[tuple[str, str], ...]]] = {
    "HuggingFaceCallback": (_HuggingFace, (("transformers", "TrainerCallback"),)),
    "LightningCallback": (_Lightning, (("lightning.pytorch", "Callback"), ("pytorch_lightning", "Callback"))),
}


def _base(name: str, places: tuple[tuple[str, str], ...]) -> type:
    """The framework's class, of a package that the program has imported already if there is one."""
    for module, base in sorted(places, key=lambda place: place[0] not in sys.modules):
        try:
            return getattr(importlib.import_module(module), base)  # type: ignore[no-any-return]
        except ModuleNotFoundError as error:
            if error.name is None or not module.startswith(error.name):
                raise
    raise ImportError(f"flyball.callbacks.{name} needs the package {' or '.join(module for module, _ in places)}")


if TYPE_CHECKING:

    class HuggingFaceCallback(_HuggingFace): ...

    class LightningCallback(_Lightning): ...

else:

    def __getattr__(name: str) -> Any:
        if name not in _KINDS:
            raise AttributeError(f"module 'flyball.callbacks' has no attribute {name!r}")
        driven, places = _KINDS[name]
        made = type(name, (driven, _base(name, places)), {"__doc__": driven.__doc__, "__module__": __name__})
        globals()[name] = made
        return made
