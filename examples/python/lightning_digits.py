#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The network of train.py under Lightning's Trainer, as a recurring job.

    python3 examples/python/lightning_digits.py

needs lightning, torch and scikit-learn. Untested with the real lightning: Debian has none.
"""

from typing import Any

import flyball
import lightning.pytorch as pl
import torch
from flyball.callbacks import LightningCallback
from torch import nn
from torch.utils.data import DataLoader

from train import TARGET, digits, network

EPOCHS = 60


class Digits(pl.LightningModule):  # type: ignore[misc]  # what lightning tells of its types is left out
    def __init__(self, lr: float) -> None:
        super().__init__()
        self.layers, self.lr = network(), lr

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        images, labels = batch
        return nn.functional.cross_entropy(self.layers(images), labels)

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        images, labels = batch
        self.log("accuracy", (self.layers(images).argmax(1) == labels).float().mean())

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=self.lr)


def main() -> None:
    train_set, held_out = digits()
    with flyball.Session("digits-lightning", batch_sizes=[16, 32, 64, 128], default=64, metric="accuracy", target=TARGET,
                         max_epochs=EPOCHS, tries=3, profile_steps=20, energy_tolerance=0.2) as session:
        for attempt in session.attempts():
            trainer = pl.Trainer(max_epochs=EPOCHS, callbacks=[LightningCallback(attempt)], logger=False,
                                 enable_checkpointing=False, enable_progress_bar=False)
            trainer.fit(Digits(attempt.scale_lr(0.4)), DataLoader(train_set, batch_size=attempt.local_batch_size, shuffle=True),
                        DataLoader(held_out, batch_size=len(held_out)))


if __name__ == "__main__":
    main()
