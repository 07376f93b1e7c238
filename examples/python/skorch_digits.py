#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The network of train.py under skorch, as a recurring job: a callback tells the session what skorch does.

    /usr/bin/python3 examples/python/skorch_digits.py

needs Debian's python3-skorch.
"""

from typing import Any

import flyball
import torch
from skorch import NeuralNetClassifier
from skorch.callbacks import Callback
from torch import nn

from train import TARGET, digits, network


class FlyballCallback(Callback):  # type: ignore[misc]  # skorch tells no types
    """Steps and epochs of a skorch network for a session, which may end the training."""

    def __init__(self, session: flyball.Session, metric: str = "valid_acc") -> None:
        self.session, self.metric = session, metric

    def on_epoch_begin(self, net: Any, **_: Any) -> None:
        self.session.epoch_begin()

    def on_batch_begin(self, net: Any, training: bool = False, **_: Any) -> None:
        if training and not self.session.step_begin():
            raise KeyboardInterrupt  # skorch's own way to end a training early
        if not training:
            self.session.evaluation_begin()

    def on_epoch_end(self, net: Any, **_: Any) -> None:
        if self.session.report(net.history[-1, self.metric]) != "go on":
            raise KeyboardInterrupt


def main() -> None:
    train_set, held_out = digits()
    with flyball.Session("digits-skorch", batch_sizes=[16, 32, 64, 128], default=64, target=TARGET, max_epochs=60,
                         tries=3, profile_steps=20, energy_tolerance=0.2) as session:
        for attempt in session.attempts():
            net = NeuralNetClassifier(
                network(), criterion=nn.CrossEntropyLoss, optimizer=torch.optim.SGD, lr=attempt.scale_lr(0.3),
                batch_size=attempt.local_batch_size, iterator_train__shuffle=True, max_epochs=60,
                train_split=lambda images, *_: (images, held_out), callbacks=[("flyball", FlyballCallback(attempt))])
            net.fit(train_set, y=None)


if __name__ == "__main__":
    main()
