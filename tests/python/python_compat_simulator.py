# SPDX-License-Identifier: Apache-2.0
"""The simulator of flyball.compat.zeus, against recorded runs of the published code and traces of a few lines.

usage: python_compat_simulator.py FLYBALL SOURCE_ROOT
"""

import csv
import dataclasses
import heapq
import itertools
import lzma
import math
import os
import pathlib
import tempfile
import zlib

import tap
from zeus_machine import DATA, raised

from flyball.compat.zeus._legacy.job import Job
from flyball.compat.zeus._legacy.policy import BatchSizeOptimizer, JITPowerLimitOptimizer, PowerLimitOptimizer, PruningGTSBatchSizeOptimizer
from flyball.compat.zeus._legacy.simulate import HistoryEntry, Simulator

JOBS = (
    Job("cifar100", "shufflenetv2", "adadelta", 0.6, 100, 1024),
    Job("librispeech", "deepspeech2", "adamw", 40.0, 16, 256),
    Job("sentiment140", "bert_base_uncased", "adamw", 0.84, 10, 128),
)
GROUPED = {
    job.dataset: job
    for job in (
        *JOBS,
        Job("imagenet", "resnet50", "adadelta", 0.65, 100, 256),
        Job("squad", "bert_base_uncased", "adamw", 84.0, 6, 32),
        Job("movielens-1m", "ncf", "adam", 0.41, 100, 1024),
    )
}
WORK = tempfile.TemporaryDirectory(prefix="flyball-simulator-")
SMALL = Job("toy", "net", "sgd", 0.5, 10, 64)
TRAIN = """dataset,network,batch_size,optimizer,learning_rate,run,target_metric,target_epoch
toy,net,32,sgd,0.1,1,0.5,4
toy,net,64,sgd,0.1,1,0.5,5
toy,net,128,sgd,0.1,1,0.5,nan
"""
# An epoch at 200 W takes (10, 8, 6) s, and 2 s more at 100 W, which draws half as much.
POWER = "dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power\n" + "".join(
    f"toy,net,{size},sgd,{limit_w},{time_s},{power_w}\n"
    for size, full_s in ((32, 10.0), (64, 8.0), (128, 6.0))
    for limit_w, time_s, power_w in ((100, full_s + 2, 80.0), (200, full_s, 160.0))
)


class InTurn(BatchSizeOptimizer):
    """Takes the batch sizes of a list, and notes what it hears."""

    heard = None

    def __init__(self, sizes):
        self.sizes = list(sizes)

    def register_job(self, job, batch_sizes):
        InTurn.heard = [(job, batch_sizes)]

    def predict(self, job):
        return self.sizes.pop(0)

    def observe(self, job, batch_size, cost, converged=None):
        InTurn.heard.append((batch_size, cost, converged))


class Fastest(PowerLimitOptimizer):
    """Takes the highest limit, once it has seen them all."""

    def __init__(self):
        self.seen = {}

    def predict(self, job, batch_size):
        return max(self.seen[batch_size]) if batch_size in self.seen else None

    def observe(self, job, batch_size, power_limit, cost):
        self.seen.setdefault(batch_size, []).append(power_limit)


def small():
    for name, text in (("train", TRAIN), ("power", POWER)):
        pathlib.Path(WORK.name, f"{name}.csv").write_text(text, encoding="utf-8")
    return os.path.join(WORK.name, "train.csv"), os.path.join(WORK.name, "power.csv")


class Frame:
    """What the simulator asks of a pandas.DataFrame."""

    def __init__(self, text):
        self.text = text

    def to_csv(self, path, index):
        tap.equal(index, False)
        pathlib.Path(path).write_text(self.text, encoding="utf-8")


def recorded(name="history"):
    path = DATA / f"golden/{name}.csv.xz"
    if not path.exists():
        raise tap.Skip(f"no {path}; set FLYBALL_TEST_DATA to the directory of the recorded data")
    with lzma.open(path, "rt", newline="") as lines:
        return list(csv.DictReader(lines))


def traces(gpu):
    return DATA / "zeus_nsdi23/summary_train.csv", str(DATA / f"zeus_nsdi23/summary_power_{gpu}.csv")


def check_history(history, rows, context):
    """Decisions are equal; energies and times agree."""
    ran = [row for row in rows if float(row["time"]) > 0]
    tap.equal(len(history), len(ran), context)
    for entry, row in zip(history, ran):
        tap.equal((entry.bs, entry.pl, entry.reached), (int(row["bs"]), int(row["pl"]), row["reached"] == "1"), f"{context}: {row}")
        for value, name in ((entry.energy, "energy"), (entry.time, "time")):
            tap.equal(math.isclose(value, float(row[name]), rel_tol=1e-12), True, f"{context}: {entry} {row}")


def test_recorded_runs():
    """With the published policy in the library, and with one in Python that makes its choices."""
    rows = recorded()
    for gpu in ("v100", "a40"):
        for job in JOBS:
            for seed in (1, 2):
                these = [row for row in rows if (row["gpu"], row["dataset"], row["seed"]) == (gpu, job.dataset, str(seed))]
                recurrences = 1 + int(these[-1]["rec"])
                job = dataclasses.replace(job, default_bs=int(these[0]["bs"]))
                for policy in (PruningGTSBatchSizeOptimizer(seed=seed), InTurn(int(row["bs"]) for row in these)):
                    simulator = Simulator(*traces(gpu), policy, JITPowerLimitOptimizer(), seed=seed, verbose=False)
                    history = simulator.simulate_one_job(job, recurrences, beta_knob=2.0, eta_knob=0.5)
                    check_history(history, these, f"{gpu} {job.dataset} {seed} {policy.name}")
                costs = [(float(row["cost"]), row["reached"] == "1") for row in these]
                for heard, (cost, reached) in zip(InTurn.heard[1:], costs):
                    tap.equal((math.isclose(heard[1], cost, rel_tol=1e-12), heard[2]), (True, reached))


def asked_for(lines, rows):
    """The batch sizes of those of the recorded trainings that began while no other ran, in the order in which they began."""
    flights, sizes, launches, ends = [], {}, itertools.count(), iter(rows)

    def launch(start_s, end_s):
        heapq.heappush(flights, (end_s, next(launches), start_s, not flights))

    def reap(now_s):
        while flights and flights[0][0] <= now_s:
            end_s, launched, start_s, alone = heapq.heappop(flights)
            row = next(ends)
            if alone:
                sizes[launched] = int(row["bs"])
            if row["reached"] == "0":
                launch(end_s, end_s + (end_s - start_s))

    for line in lines:
        start_s, end_s = map(float, line.split(",")[1:3])
        reap(start_s)
        launch(start_s, end_s)
    reap(math.inf)
    return [sizes[launched] for launched in sorted(sizes)]


def test_recorded_groups():
    """With the published policy in the library, and with one in Python that makes its choices."""
    rows = recorded("group_history")
    submissions = {}
    with open(DATA / "golden/group_input.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            submissions.setdefault(row["group"], []).append(",".join(row.values()))
    header = ",".join(row)
    for gpu in ("v100", "p100"):
        for group, lines in submissions.items():
            these = [row for row in rows if (row["gpu"], row["group"]) == (gpu, group)]
            seed = zlib.adler32(group.encode())
            tap.equal(these[0]["seed"], str(seed))
            frame = Frame("\n".join([header, *lines]) + "\n")
            job = dataclasses.replace(GROUPED[lines[0].split(",")[3]], default_bs=int(these[0]["bs"]))
            policies = (PruningGTSBatchSizeOptimizer(seed=seed, concurrency=True), InTurn(asked_for(lines, these)))
            for policy in policies:
                simulator = Simulator(*traces(gpu), policy, JITPowerLimitOptimizer(), seed=seed, verbose=False)
                history = simulator.simulate_one_alibaba_group(job, frame, beta_knob=2.0, eta_knob=0.5)
                check_history(history, these, f"{gpu} {group} {policy.name}")


# Two that overlap, one that fails once, and one that begins beside its second try; not in their order.
GROUP = """group,start_time,end_time,dataset,runtime_ratio
any,35,50,toy,1
any,0,10,toy,1
any,5,12,toy,2
any,20,30,toy,0.5
"""


def grouped(simulator, text=GROUP, beta=2.0):
    return simulator.simulate_one_alibaba_group(SMALL, Frame(text), beta_knob=beta, eta_knob=1.0)


def test_groups_with_policies_of_ones_own():
    """Beside others the best batch size runs, which is the default at first; costs are not times the ratio."""
    simulator = Simulator(*small(), InTurn([64, 128, 32]), JITPowerLimitOptimizer())
    history = grouped(simulator)
    costs = [(64, 1040.0 + 4 * 800.0, True), (64, 5 * 800.0, True), (128, 800.0 + 9 * 640.0, False),
             (32, 1280.0 + 3 * 960.0, True), (64, 5 * 800.0, True)]
    tap.equal(InTurn.heard[1:], costs)
    tap.equal([(entry.bs, entry.energy, entry.reached) for entry in history],
              [(size, energy_j * ratio, reached) for (size, energy_j, reached), ratio in zip(costs, (1, 2, 0.5, 0.5, 1))])
    tap.equal(history[1], HistoryEntry(bs=64, pl=100, energy=8000.0, reached=True, time=100.0))
    tap.equal((grouped(simulator), grouped(simulator, GROUP.splitlines()[0] + "\n")), (history, []))
    path = pathlib.Path(WORK.name, "group.csv")
    path.write_text(GROUP, encoding="utf-8")
    tap.equal(simulator.simulate_one_alibaba_group(SMALL, path, 2.0, 1.0), history)


def test_groups_that_end_early():
    """One that is refused enters as if it had cost nothing, as published; but nobody tries for ever."""
    group = "start_time,end_time,runtime_ratio\n0,1,1\n5,6,1\n"
    for beta, heard in ((0.1, (128, 0.0, False)), (1.5, (128, 9 * 640.0, False))):
        simulator = Simulator(*small(), InTurn([64] + 1000 * [128]), JITPowerLimitOptimizer())
        tap.contains(str(raised(RuntimeError, grouped, simulator, group, beta)), "1 of 2 submissions")
        tap.equal((InTurn.heard[1], len(InTurn.heard), InTurn.heard[-1]), ((64, 4240.0, True), 1002, heard))
    lonely = PruningGTSBatchSizeOptimizer()
    tap.contains(str(raised(ValueError, grouped, Simulator(*small(), lonely, JITPowerLimitOptimizer()))), "concurrency=True")
    both = PruningGTSBatchSizeOptimizer(concurrency=True)
    tap.equal([entry.bs for entry in grouped(Simulator(*small(), both, JITPowerLimitOptimizer()))], [64, 64, 32, 128, 32])
    raised(IndexError, grouped, Simulator(*small(), InTurn([64]), JITPowerLimitOptimizer()))
    raised(KeyError, grouped, Simulator(*small(), InTurn([64]), JITPowerLimitOptimizer()), "start_time,end_time\n0,1\n")


def test_policies_of_ones_own():
    simulator = Simulator(*small(), InTurn([64, 32, 32]), JITPowerLimitOptimizer())
    history = simulator.simulate_one_job(SMALL, 3, beta_knob=2.0, eta_knob=1.0)
    # eta 1 is energy alone: 800 and 960 J an epoch of 64 and 32 at 100 W, 1280 and 1600 at 200 W.
    tap.equal([entry.pl for entry in history], [100, 100, 100])
    tap.equal([entry.energy for entry in history], [1040.0 + 4 * 800.0, 1280.0 + 3 * 960.0, 4 * 960.0])
    tap.equal(history[2], HistoryEntry(bs=32, pl=100, energy=3840.0, reached=True, time=48.0))
    tap.equal(InTurn.heard[0], (SMALL, [32, 64, 128]))
    tap.equal(InTurn.heard[1:], [(entry.bs, entry.energy, True) for entry in history])
    again = simulator.simulate_one_job(SMALL, 3, beta_knob=2.0, eta_knob=1.0)
    tap.equal(again, history)
    fastest = Simulator(*small(), InTurn([64, 32]), Fastest()).simulate_one_job(SMALL, 2, 2.0, 1.0)
    tap.equal([(entry.pl, entry.energy) for entry in fastest], [(200, 1040.0 + 4 * 1280.0), (200, 1280.0 + 3 * 1600.0)])
    tap.equal(Simulator(*small(), InTurn([]), Fastest()).simulate_one_job(SMALL, 0, 2.0, 1.0), [])


def test_stopped_and_never_run():
    """128 never reaches its target; below a cost of the least so far it is not even begun."""
    simulator = Simulator(*small(), InTurn([64, 128, 64]), JITPowerLimitOptimizer())
    history = simulator.simulate_one_job(SMALL, 2, beta_knob=1.0, eta_knob=1.0)
    tap.equal([(entry.bs, entry.reached) for entry in history], [(64, True), (128, False), (64, True)])
    # 4240 J were the least; an epoch of 128 takes 640 J, its first one, at both limits in turn, 800 J.
    tap.equal(history[1].energy, 800.0 + 5 * 640.0)
    simulator = Simulator(*small(), InTurn([64] + 20 * [128]), JITPowerLimitOptimizer())
    raised(RuntimeError, simulator.simulate_one_job, SMALL, 2, beta_knob=0.1, eta_knob=1.0)
    tap.equal(InTurn.heard[2:], 20 * [(128, 100 * 0.1 * 4240.0, False)])


def test_failures():
    train, power = small()
    tap.contains(
        str(raised(RuntimeError, Simulator(train, power, InTurn([128]), JITPowerLimitOptimizer()).simulate_one_job, SMALL, 1, 2.0, 0.5)),
        "has not reached its target",
    )
    failing = Simulator(train, power, InTurn([64] + 20 * [128]), JITPowerLimitOptimizer())
    raised(RuntimeError, failing.simulate_one_job, SMALL, 2, 2.0, 0.5)
    raised(IndexError, Simulator(train, power, InTurn([]), JITPowerLimitOptimizer()).simulate_one_job, SMALL, 1, 2.0, 0.5)
    other = Job("toy", "other", "sgd", 0.5, 10, 64)
    raised(ValueError, Simulator(train, power, InTurn([64]), JITPowerLimitOptimizer()).simulate_one_job, other, 1, 2.0, 0.5)
    raised(FileNotFoundError, Simulator("none.csv", power, InTurn([64]), JITPowerLimitOptimizer()).simulate_one_job, SMALL, 1, 2.0, 0.5)
    unknown = Job("toy", "net", "sgd", 0.5, 10, 48)
    pruning = Simulator(train, power, PruningGTSBatchSizeOptimizer(), JITPowerLimitOptimizer())
    tap.contains(str(raised(ValueError, pruning.simulate_one_job, unknown, 1, 2.0, 0.5)), "48")
    tap.equal(len(Simulator(train, power, InTurn([64]), JITPowerLimitOptimizer()).simulate_one_job(unknown, 1, 2.0, 0.5)), 1)
    raised(ValueError, Simulator(train, power, InTurn([64]), JITPowerLimitOptimizer()).simulate_one_job,
           Job("toy", "net", "sgd", 0.7, 10, 64), 1, 2.0, 0.5)
    raised(ValueError, Simulator(train, power, PruningGTSBatchSizeOptimizer(seed=2), JITPowerLimitOptimizer(), seed=1).simulate_one_job,
           SMALL, 1, 2.0, 0.5)
    raised(NotImplementedError, PruningGTSBatchSizeOptimizer().predict, SMALL)
    raised(TypeError, BatchSizeOptimizer)


def test_tables_in_place_of_files():
    simulator = Simulator(Frame(TRAIN), Frame(POWER), InTurn([64]), JITPowerLimitOptimizer())
    tap.equal(simulator.simulate_one_job(SMALL, 1, 2.0, 1.0)[0].energy, 4240.0)


def test_jobs():
    job = Job("toy", "net", "sgd", 0.5, 10, 64, 0.1, command=["train.py", "--bs={batch_size}", "{learning_rate}", "{epochs}", "{seed}"])
    tap.equal(job.gen_command(128, 0.2, 7, 0), ["train.py", "--bs=128", "0.2", "10", "7"])
    tap.equal((job.scale_lr(256), job == Job("toy", "net", "sgd", 0.5, 10, 64, 0.1), hash(job) == hash(job)), (0.2, True, True))
    tap.equal(job.to_logdir(), "toy+net+bs64+sgd+lr0.1+tm0.5+me10")
    raised(ValueError, SMALL.scale_lr, 128)
    raised(ValueError, SMALL.gen_command, 128, 0.1, 1, 0)


tap.main(globals())
