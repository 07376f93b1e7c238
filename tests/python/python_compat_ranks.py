# SPDX-License-Identifier: Apache-2.0
"""flyball.compat.zeus in two processes that torch.distributed joins, each with an emulated GPU.

usage: python_compat_ranks.py FLYBALL SOURCE_ROOT
"""

import json
import os
import subprocess
import sys

import serve_machine
import tap
from zeus_machine import HOME, limits, machine

FLYBALL = os.path.abspath(sys.argv[1])
PYTHONS = ("/usr/bin/python3", sys.executable)

BEGIN = """if True:
    import json, os, sys, time
    import torch
    rank = int(os.environ["RANK"])
    torch.distributed.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=rank, world_size=2)
    from flyball.compat.zeus.monitor import ZeusMonitor
    monitor = ZeusMonitor(gpu_indices=[rank])
"""

LIMITS = BEGIN + """
    from flyball.compat.zeus.optimizer.power_limit import Energy, GlobalPowerLimitOptimizer
    found = GlobalPowerLimitOptimizer(monitor, Energy(), wait_steps=0, warmup_steps=1, profile_steps=2, pl_step=100,
                                      profile_path=sys.argv[1] + ".json")
    for step in range(1 + 4 * 3):
        found.on_step_begin()
        time.sleep(0.02 * (1 + rank))
    print(json.dumps([repr(found.state), [measured.dict() for measured in found.measurements]]))
    torch.distributed.barrier()
"""

BATCH_SIZES = BEGIN + """
    from flyball.compat.zeus.optimizer.batch_size import BatchSizeOptimizer, JobSpec
    job = JobSpec(job_id="ranks", job_id_prefix="ranks", batch_sizes=[32, 64], default_batch_size=64)
    sizes = BatchSizeOptimizer(monitor, sys.argv[2], job, rank=rank)
    batch_size = sizes.get_batch_size()
    sizes.on_train_begin()
    epochs = 0
    while not sizes.training_finished:
        time.sleep(0.05)
        epochs += 1
        sizes.on_evaluate(0.2 * epochs if rank == 0 else 0.0)
    print(json.dumps([batch_size, epochs, sizes.trial_number, sizes.job.number_of_gpus, sizes.consumed_energy, sizes.running_time]))
"""


def python_with_torch():
    for python in PYTHONS:
        if os.path.exists(python) and tap.run([python, "-c", "import torch.distributed"]).returncode == 0:
            return python
    raise tap.Skip("no interpreter here has torch")


def two_ranks(name, program, *arguments):
    """What both ranks print."""
    python = python_with_torch()
    environment = {**os.environ, "PYTHONPATH": sys.path[0], "OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(
            [python, "-c", program, os.path.join(HOME.name, name), *arguments],
            env={**environment, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        said = [process.communicate(timeout=tap.PATIENCE_S) for process in started]
    finally:
        for process in started:
            process.kill()
    tap.equal([process.returncode for process in started], [0, 0], "\n".join(talk for _, talk in said))
    return [json.loads(output.splitlines()[-1]) for output, _ in said]


def test_both_take_one_limit():
    with machine(gpus=2, settings=("--any-user=yes", "--counter-period-ms", "0")):
        first, second = two_ranks("limits", LIMITS)
        tap.equal(first, second)
        tap.equal([measured["power_limit"] for measured in first[1]], [400, 300, 200, 100])
        tap.equal(all(measured["energy"] > 0 and measured["time"] >= 0.08 for measured in first[1]), True, first)
        tap.equal(limits(), [400, 400])
        with open(os.path.join(HOME.name, "limits.json"), encoding="utf-8") as file:
            tap.equal(json.load(file)["measurements"], first[1])


def test_both_are_one_training():
    with machine(gpus=2), serve_machine.service(FLYBALL, f"--store={HOME.name}/ranks.sqlite", "--compat-zeus") as it:
        first, second = two_ranks("sizes", BATCH_SIZES, it.url)
        tap.equal(first, second)
        tap.equal(first[:4], [64, 3, 1, 2])


tap.main(globals())
