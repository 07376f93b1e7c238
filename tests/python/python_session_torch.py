# SPDX-License-Identifier: Apache-2.0
"""Sessions in trainings of the real PyTorch: workers of a data loader, ranks, and its exception of memory.

usage: python_session_torch.py FLYBALL SOURCE_ROOT
"""

import os
import sys

import tap
from session_machine import ends, events, flyball, log_and_machine, session, told, train

BEGIN = """
import os, sys
import flyball, torch
from torch.utils.data import DataLoader, TensorDataset

def opened(**options):
    return flyball.Session("job", **{"batch_sizes": [8, 16], "default": 16, "target": 0.9, "max_epochs": 4, "wait_s": 60, **options})

def loader_of(batch_size, **options):
    return DataLoader(TensorDataset(torch.randn(64, 4)), batch_size=batch_size, **options)
"""
WORKERS = BEGIN + """
with opened() as session:
    loader = loader_of(session.local_batch_size, num_workers=2)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=session.scale_lr(0.1, torch.optim.SGD))
    for epoch in session.epochs():
        for (x,) in session.steps(loader):
            model(x).sum().backward()
            optimizer.step()
        session.report(torch.tensor([0.5 if epoch == 0 else 0.95]))
print(len(session.steps(loader)) if not session.closed else session.status.epoch, session.scale_lr(0.1, optimizer))
"""
MEMORY = BEGIN + """
with opened() as session:
    for (x,) in session.steps(loader_of(session.local_batch_size)):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
"""
# As accelerate's find_executable_batch_size.
LOWERED = BEGIN + """
with opened() as session:
    batch_size = session.local_batch_size
    while True:
        try:
            for epoch in session.epochs():
                for (x,) in session.steps(loader_of(batch_size)):
                    if batch_size > 8:
                        raise RuntimeError("CUDA out of memory.")
                session.report(0.95)
            break
        except RuntimeError:
            batch_size //= 2
"""
RANKS = BEGIN + """
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing

def train(rank, port):
    distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    with opened(gpus=[0] if rank == 0 else "") as session:
        sizes = session.batch_size, session.local_batch_size
        for epoch in session.epochs():
            for _ in session.steps(range(3)):
                pass
            answer = session.report(0.95 if rank == 0 and epoch == 1 else 0.1)
    assert (*sizes, answer, epoch) == (16, 8, "reached", 1), (sizes, answer, epoch)
    distributed.destroy_process_group()

if __name__ == "__main__":
    import socket
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    multiprocessing.start_processes(train, (port,), nprocs=2, start_method="fork")
"""


def run(program):
    """Runs a program in the first interpreter that has PyTorch."""
    for interpreter in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(interpreter) and tap.run([interpreter, "-c", "import torch"]).returncode == 0:
            return tap.run([interpreter, "-c", program], env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=tap.PATIENCE_S)
    raise tap.Skip("there is no PyTorch (Debian: python3-torch)")


def test_workers_of_a_loader():
    """They are forked, and nothing is counted twice."""
    with log_and_machine():
        done = run(WORKERS)
        tap.equal((done.returncode, done.stdout, done.stderr.count("flyball: job "), done.stderr.count("\n")), (0, "2 0.1\n", 1, 1), done.stderr)
        told(lambda: [body["steps"] for _, body in events("epoch")], [4, 4])
        told(ends, [(1, "reached")])


def test_memory():
    with log_and_machine():
        done = run(MEMORY)
        tap.equal(done.returncode, 1)
        tap.contains(done.stderr, "OutOfMemoryError")
        told(ends, [(1, "out_of_memory")])


def test_a_batch_size_that_the_program_lowers():
    with log_and_machine():
        done = run(LOWERED)
        tap.equal((done.returncode, done.stderr.count("flyball: job "), done.stderr.count("\n")), (0, 1, 1), done.stderr)
        told(ends, [(1, "out_of_memory")])


def test_ranks():
    with log_and_machine():
        done = run(RANKS)
        tap.equal(done.returncode, 0, done.stderr)
        told(ends, [(1, "reached")])


tap.main(globals())
