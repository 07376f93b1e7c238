#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""train.py on several processes, each with a part of the images (data-parallel, over gloo).

    torchrun --nproc_per_node 2 examples/python/train_ddp.py

Debian's torchrun on Python 3.11 needs two options more, which change nothing: --redirects 9:1 --tee 9:1.
"""

from argparse import Namespace

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from train import TARGET, arguments, digits, evaluate, network


def train(options: Namespace) -> None:
    rank = distributed.get_rank()
    train_set, held_out = digits()
    model = DistributedDataParallel(network())
    sampler = DistributedSampler(train_set, drop_last=True)
    loader = DataLoader(train_set, batch_size=options.batch_size // distributed.get_world_size(), sampler=sampler)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr)
    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
        accuracy = evaluate(model.module, held_out)
        if rank == 0:
            print(f"epoch {epoch + 1} accuracy {accuracy:.4f}", flush=True)
        if accuracy >= TARGET:
            break


def main() -> None:
    options = arguments()
    torch.manual_seed(torch.seed() if options.seed is None else options.seed)
    distributed.init_process_group("gloo")
    train(options)


if __name__ == "__main__":
    main()
