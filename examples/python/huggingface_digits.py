#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The network of train.py under Hugging Face's Trainer, as a recurring job.

    python3 examples/python/huggingface_digits.py

needs transformers, torch and scikit-learn. Untested with the real transformers: Debian has none.
"""

from typing import Any

import flyball
import torch
import transformers
from flyball.callbacks import HuggingFaceCallback
from torch import nn

from train import TARGET, digits, network

EPOCHS = 60


class Digits(nn.Module):  # type: ignore[misc]  # what torch tells of its types is left out
    """As Trainer wants a model: it takes a batch's columns by name and returns its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = network()

    def forward(self, images: Any, labels: Any) -> dict[str, Any]:
        logits = self.layers(images)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def columns(images: Any) -> list[dict[str, Any]]:
    return [{"images": image, "labels": label} for image, label in images]


def accuracy(prediction: Any) -> dict[str, float]:
    return {"accuracy": float((prediction.predictions.argmax(1) == prediction.label_ids).mean())}


def main() -> None:
    train_set, held_out = map(columns, digits())
    with flyball.Session("digits-transformers", batch_sizes=[16, 32, 64, 128], default=64, metric="accuracy", target=TARGET,
                         max_epochs=EPOCHS, tries=3, profile_steps=20, energy_tolerance=0.2) as session:
        for attempt in session.attempts():
            arguments = transformers.TrainingArguments(
                output_dir="digits", per_device_train_batch_size=attempt.local_batch_size, num_train_epochs=EPOCHS,
                learning_rate=attempt.scale_lr(0.4), optim="sgd", lr_scheduler_type="constant", eval_strategy="epoch",
                save_strategy="no", report_to="none")
            torch.seed()
            trainer = transformers.Trainer(
                model=Digits(), args=arguments, train_dataset=train_set, eval_dataset=held_out, compute_metrics=accuracy,
                callbacks=[HuggingFaceCallback(attempt)])
            trainer.train()


if __name__ == "__main__":
    main()
