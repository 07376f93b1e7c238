#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small convolutional network to read handwritten digits, until it reads 97 % of held-out images.

    /usr/bin/python3 examples/python/train.py

needs Debian's python3-torch, and python3-sklearn for the images.
"""

import argparse
from typing import Any

import flyball
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

TARGET = 0.97


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--lr", type=float, default=0.8)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, help="another one each time, unless it is given")
    return parser.parse_args()


def digits() -> Any:
    """1,437 images to train on and 360 held out, the same ones each time."""
    pixels, labels = load_digits(return_X_y=True)
    images = torch.tensor(pixels, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
    return random_split(TensorDataset(images, torch.tensor(labels)), [1437, 360], torch.Generator().manual_seed(1))


def network() -> Any:
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 10))


def evaluate(model: Any, held_out: Any) -> float:
    images, labels = held_out[:]
    model.eval()
    with torch.no_grad():
        accuracy = float((model(images).argmax(1) == labels).float().mean())
    model.train()
    return accuracy


def main() -> None:
    options = arguments()
    session = flyball.Session("digits", batch_sizes=[8, 16, 32, 64, 128, 256], default=256, target=TARGET,
                              tries="always", control_every=3, profile_steps=20, energy_tolerance=0.2)
    options.batch_size, options.lr = session.local_batch_size, session.scale_lr(options.lr)
    torch.manual_seed(torch.seed() if options.seed is None else options.seed)
    train_set, held_out = digits()
    model = network()
    loader = DataLoader(train_set, batch_size=options.batch_size, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr)
    for epoch in session.epochs(options.epochs):
        for images, labels in session.steps(loader):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
        accuracy = evaluate(model, held_out)
        print(f"epoch {epoch + 1} accuracy {accuracy:.4f}", flush=True)
        session.report(accuracy)
        if accuracy >= TARGET:
            break
    raise SystemExit(session.exit_status)


if __name__ == "__main__":
    main()
