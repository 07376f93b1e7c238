# SPDX-License-Identifier: Apache-2.0
"""What a training loop calls, and a set of such callbacks."""

from __future__ import annotations

from collections.abc import Iterable


class Callback:
    """Hooks of a training loop; those that a subclass leaves do nothing."""

    def on_train_begin(self) -> None:
        """Training is about to begin."""

    def on_train_end(self) -> None:
        """Training has ended."""

    def on_epoch_begin(self) -> None:
        """An epoch is about to begin."""

    def on_epoch_end(self) -> None:
        """An epoch's steps are done."""

    def on_step_begin(self) -> None:
        """A step is about to begin."""

    def on_step_end(self) -> None:
        """A step is done."""

    def on_evaluate(self, metric: float) -> None:
        """The model was evaluated, with this result."""

    def on_instruction_begin(self, name: str) -> None:
        """The instruction of that name is about to begin, in pipeline-parallel training."""

    def on_instruction_end(self, name: str) -> None:
        """The instruction of that name is done."""


class CallbackSet(Callback):
    """Several callbacks as one; each hook calls theirs in order."""

    def __init__(self, callbacks: Iterable[Callback]) -> None:
        self.callbacks = list(callbacks)

    def on_train_begin(self) -> None:
        for callback in self.callbacks:
            callback.on_train_begin()

    def on_train_end(self) -> None:
        for callback in self.callbacks:
            callback.on_train_end()

    def on_epoch_begin(self) -> None:
        for callback in self.callbacks:
            callback.on_epoch_begin()

    def on_epoch_end(self) -> None:
        for callback in self.callbacks:
            callback.on_epoch_end()

    def on_step_begin(self) -> None:
        for callback in self.callbacks:
            callback.on_step_begin()

    def on_step_end(self) -> None:
        for callback in self.callbacks:
            callback.on_step_end()

    def on_evaluate(self, metric: float) -> None:
        for callback in self.callbacks:
            callback.on_evaluate(metric)

    def on_instruction_begin(self, name: str) -> None:
        for callback in self.callbacks:
            callback.on_instruction_begin(name)

    def on_instruction_end(self, name: str) -> None:
        for callback in self.callbacks:
            callback.on_instruction_end(name)
