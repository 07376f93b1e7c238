# SPDX-License-Identifier: Apache-2.0
"""Several ranks in the Python package: threads of this process, and a stand-in for torch.

usage: python_ranks.py FLYBALL SOURCE_ROOT
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import types

import tap
from python_scene import HIGHEST_W, LIBRARY, LOWEST_W, PACKAGE, QUICK, Machine, flyball, limit_w, monitor, raised, settle

from flyball import ranks


class Joined:
    """Joins the ranks of this process, which are threads."""

    def __init__(self, ranks):
        self.barrier, self.given, self.threads = threading.Barrier(ranks, timeout=tap.PATIENCE_S), {}, set()

    def __call__(self, sums, maxima):
        me = threading.get_ident()
        self.threads.add(me)
        self.given[me] = (list(sums), list(maxima))
        self.barrier.wait()
        all_sums, all_maxima = zip(*self.given.values())
        sums[:] = [sum(values) for values in zip(*all_sums)]
        maxima[:] = [max(values) for values in zip(*all_maxima)]
        self.barrier.wait()
        self.given.pop(me)
        self.barrier.wait()


def test_ranks():
    """Two ranks, each with a GPU: both settle at one limit, at the same step."""
    joined, ends = Joined(2), {}

    def train(rank):
        with monitor(gpus=[rank]) as meter, flyball.Tuner(meter, all_reduce=joined, rank=rank, **QUICK) as tuner:
            steps = settle(tuner)
            ends[rank] = (steps, tuner.report.limit_w, tuner.report.text)

    with Machine():
        threads = [threading.Thread(target=train, args=(rank,)) for rank in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    tap.equal((len(ends), ends.get(0)), (2, ends.get(1)))
    tap.equal(ends[0][1:], (LOWEST_W, ""))


def test_all_reduce_that_raises():
    """An exception ends tuning and not training; one that is meant for the program comes out of the step."""
    told = []
    hook, sys.unraisablehook = sys.unraisablehook, lambda what: told.append(what.exc_type)
    try:
        with Machine(), monitor() as meter:
            for kind in (OSError, KeyboardInterrupt):
                fails = []

                def all_reduce(sums, maxima, kind=kind, fails=fails):
                    if fails:
                        raise kind("no network")

                with flyball.Tuner(meter, all_reduce=all_reduce, rank=0, **QUICK) as tuner:
                    tuner.step_begin()
                    fails.append(True)
                    try:
                        settle(tuner)
                        tap.equal(kind, OSError)
                    except KeyboardInterrupt:
                        tap.equal(kind, KeyboardInterrupt)
                    tap.equal((tuner.state, tuner.report.reason), ("stopped", "all-reduce"))
                    tap.equal(limit_w(), HIGHEST_W)
            tap.equal(set(told), {OSError})
            for late in (lambda sums, maxima: sums.clear(), lambda sums, maxima: maxima.__setitem__(0, "x"), lambda: None):
                tuner = flyball.Tuner(meter, all_reduce=late, rank=0)
                error = raised(flyball.UsageError, tuner.step_begin)
                tap.equal(isinstance(error.__cause__, (TypeError, ValueError)), True, repr(error.__cause__))
                tuner.close()
    finally:
        sys.unraisablehook = hook


class Distributed(types.ModuleType):
    """torch.distributed as far as it is used here, of two ranks of which the other one gives the same."""

    class ReduceOp:
        SUM, MAX = "sum", "max"

    def __init__(self, begun=True):
        super().__init__("torch.distributed")
        self.begun, self.groups, self.group = begun, [], types.SimpleNamespace(WORLD=object())
        self.is_available, self.is_initialized = (lambda: True), (lambda: self.begun)
        self.get_rank, self.get_world_size = (lambda: 1), (lambda: 2)

    def new_group(self, backend):
        self.groups.append(backend)
        return len(self.groups)

    def all_reduce(self, tensor, op, group):
        tap.equal(group, len(self.groups))
        if op == "sum":
            tensor.values = [2 * value for value in tensor.values]


class Tensor:
    def __init__(self, values, dtype, device):
        tap.equal((dtype, device), ("float64", "cpu"))
        self.values = values

    def tolist(self):
        return self.values


@contextlib.contextmanager
def torch(**begun):
    """A stand-in for torch among the modules."""
    module = types.ModuleType("torch")
    module.distributed, module.tensor, module.float64 = Distributed(**begun), Tensor, "float64"
    sys.modules["torch"] = module
    try:
        yield module.distributed
    finally:
        del sys.modules["torch"]


def test_ranks_of_torch():
    """A group is made once, at the first step; where torch.distributed has not begun, the environment counts."""
    with torch() as distributed:
        found = ranks.found()
        sums, maxima = [1.0, 2.0], [3.0]
        found.all_reduce(sums, maxima)
        tap.equal((found.rank, found.replicas, sums, maxima), (1, 2, [2.0, 4.0], [3.0]))
        tap.equal(ranks.joined()[0], 1)
        tap.equal(distributed.groups, ["gloo"])
        with Machine(), monitor() as meter, flyball.Tuner(meter, **QUICK) as tuner:
            distributed.group.WORLD = object()
            settle(tuner)
            tap.equal((tuner.report.text, distributed.groups), ("", ["gloo", "gloo"]))
    with torch(begun=False):
        tap.equal(ranks.found(), (0, 1, None))


def test_ranks_of_the_environment():
    rows = (
        ({}, (0, 1)),
        ({"RANK": "3", "WORLD_SIZE": "4"}, (3, 4)),
        ({"RANK": "4", "WORLD_SIZE": "4"}, (0, 1)),
        ({"RANK": "-1", "WORLD_SIZE": "x"}, (0, 1)),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, (1, 2)),
        ({"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"}, (0, 1)),
        ({"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_ID": "0"}, (1, 2)),
    )
    before = dict(os.environ)
    try:
        for variables, expected in rows:
            os.environ.clear()
            os.environ.update({**before, **variables})
            tap.equal(ranks.by_environment(), (*expected, None), variables)
        with Machine(), monitor() as meter, flyball.Tuner(meter) as tuner:
            tap.contains(str(raised(flyball.UsageError, tuner.step_begin)), "rank 1 of 2")
            with flyball.Tuner(meter, rank=0, **QUICK) as alone:
                alone.step_begin()
    finally:
        os.environ.clear()
        os.environ.update(before)


def test_calls_from_its_own_function():
    errors = []

    def all_reduce(sums, maxima):
        errors.append(type(raised(flyball.StateError, tuner.step_begin)))

    with Machine(), monitor() as meter, flyball.Tuner(meter, all_reduce=all_reduce, rank=0, **QUICK) as tuner:
        tuner.step_begin()
        tap.equal(set(errors), {flyball.StateError})


REAL = f"""
import sys, time
import torch.distributed
import flyball
rank = int(sys.argv[1])
torch.distributed.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
monitor = flyball.Monitor(gpus=[rank], nvml_path={LIBRARY!r})
with flyball.Tuner(monitor, objective="lowest-limit", max_slowdown=None, limits_w=[{HIGHEST_W}, {LOWEST_W}], warmup_steps=1, profile_steps=5) as tuner:
    steps = 0
    while tuner.state not in ("settled", "stopped"):
        tuner.step_begin()
        steps += 1
        time.sleep(0.0005)
    print(steps, tuner.report.limit_w, tuner.report.text, flush=True)
"""


def torch_program():
    """An interpreter with torch; Debian's belongs to its own."""
    for program in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(program) and tap.run([program, "-c", "import torch.distributed as d; d.ReduceOp.MAX"]).returncode == 0:
            return program
    raise tap.Skip("torch is not installed")


def test_real_torch():
    """Two processes that torch.distributed joins settle at one limit after as many steps."""
    program = torch_program()
    with Machine(), tempfile.TemporaryDirectory() as place:
        command = [program, "-c", REAL]
        ranks_of = [subprocess.Popen([*command, str(rank), f"{place}/meet"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                     env={**os.environ, "PYTHONPATH": str(PACKAGE)}) for rank in range(2)]
        try:
            said = [process.communicate(timeout=tap.PATIENCE_S) for process in ranks_of]
        finally:
            for process in ranks_of:
                process.kill()
        tap.equal([process.returncode for process in ranks_of], [0, 0], said)
        tap.equal(said[0][0], said[1][0], said)
        tap.equal(said[0][0].split()[1:], [f"{LOWEST_W:.1f}"], said)


tap.main(globals())
