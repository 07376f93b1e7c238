# SPDX-License-Identifier: Apache-2.0
"""A training that tells `flyball run` its steps. The training is pretended: a step sleeps.

    flyball run --tune --max-slowdown 3% -- python3 examples/steps.py 5 200
    flyball run --tune --max-slowdown 3% -- torchrun --nproc-per-node 2 examples/steps.py 5 200

The arguments are the numbers of epochs and of steps in each.
"""

import os
import sys
import time


def flyball_steps():
    """Returns a function that tells `flyball run` a line. It does nothing where none is around, and never raises."""
    names = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
    rank = next((f"rank {os.environ[name]} " for name in names if os.environ.get(name)), "")
    path, *numbers = os.environ.get("FLYBALL_STEPS", "").rsplit(":", 2)
    number = os.environ.get("FLYBALL_STEP_FD", "")
    ways = [(path, lambda path: os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY))]
    if number.isdecimal():
        ways.append((int(number), os.dup))
    file = None
    for place, take in ways:
        try:
            found = os.stat(place)
            if file is None and [str(found.st_dev), str(found.st_ino)] == numbers:
                file = take(place)
        except (OSError, ValueError, OverflowError):
            pass

    def tell(line=""):
        try:
            if file is not None:
                os.write(file, f"{rank}pid {os.getpid()} {line}\n".encode())
        except OSError:
            pass

    return tell


def train_one_step():
    time.sleep(0.01)


def main():
    epochs, steps = int(sys.argv[1]), int(sys.argv[2])
    tell = flyball_steps()
    for epoch in range(epochs):
        tell(f"epoch {epoch}")
        for _ in range(steps):
            tell()
            train_one_step()
        tell("epoch end")
        time.sleep(0.01)  # evaluates


if __name__ == "__main__":
    main()
