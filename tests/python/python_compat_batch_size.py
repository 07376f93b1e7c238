# SPDX-License-Identifier: Apache-2.0
"""The batch-size optimizer of flyball.compat.zeus, on emulated GPUs, against `flyball serve --compat-zeus`.

usage: python_compat_batch_size.py FLYBALL SOURCE_ROOT
"""

import contextlib
import copy
import gc
import http.server
import json
import os
import sys
import threading
import types

import serve_machine
import tap
from zeus_machine import HOME, machine, raised, variables

from flyball.compat.zeus.monitor import ZeusMonitor
from flyball.compat.zeus.monitor.energy import Measurement
from flyball.compat.zeus.optimizer.batch_size import BatchSizeOptimizer, JobSpec
from flyball.compat.zeus.optimizer.batch_size import exceptions
from flyball.compat.zeus.utils import framework

FLYBALL = os.path.abspath(sys.argv[1])
SPEC = {"job_id": "night-1", "job_id_prefix": "night", "batch_sizes": [64, 16, 32], "default_batch_size": 32, "max_epochs": 3}


@contextlib.contextmanager
def service(name):
    with serve_machine.service(FLYBALL, f"--store={os.path.join(HOME.name, name)}.sqlite", "--compat-zeus") as it:
        yield it


def train(url, job, metrics, monitor=None):
    """A training by the documented loop; its batch size, how many epochs it had, and the optimizer."""
    optimizer = BatchSizeOptimizer(monitor or ZeusMonitor(), url, job)
    batch_size = optimizer.get_batch_size()
    tap.equal(optimizer.get_batch_size(), batch_size)
    optimizer.on_train_begin()
    for epoch, metric in enumerate(metrics, 1):
        optimizer.on_evaluate(metric)
        if optimizer.training_finished:
            break
    return batch_size, epoch, optimizer


def test_trainings_follow_each_other():
    job = JobSpec(**SPEC)
    tap.equal(job.batch_sizes, [16, 32, 64])
    with machine(), service("follow") as it:
        batch_size, epochs, optimizer = train(it.url, job, [0.1, 0.6, 0.9])
        tap.equal((batch_size, epochs), (32, 2))
        tap.equal((optimizer.job.max_power, optimizer.job.number_of_gpus), (800.0, 2))
        tap.contains(optimizer.job.gpu_model, "A100")
        tap.equal((optimizer.job.job_id, optimizer.trial_number > 0), ("night-1", True))
        tap.equal((optimizer.consumed_energy > 0, optimizer.running_time > 0, optimizer.cur_epoch), (True, True, 2))
        optimizer.on_evaluate(0.9)
        tap.equal(optimizer.cur_epoch, 2)
        tap.equal(train(it.url, job, [0.6])[0], 16)
        refused = raised(exceptions.ZeusBSOTrainFailError, train, it.url, job, [0.1] * 3)
        tap.contains(refused.message, "stops this training")
        tap.equal(it.stop(), 0)


def test_another_job_of_that_name():
    with machine(), service("other") as it:
        BatchSizeOptimizer(ZeusMonitor(), it.url + "/", JobSpec(**SPEC))
        error = raised(exceptions.ZeusBSOConfigError, BatchSizeOptimizer, ZeusMonitor(), it.url, JobSpec(**{**SPEC, "eta_knob": 0.1}))
        tap.equal(isinstance(error, exceptions.ZeusBSORuntimError), True)
        tap.contains(str(error), "eta_knob")
        made = BatchSizeOptimizer(ZeusMonitor(), it.url, JobSpec(**{**SPEC, "job_id": None}))
        tap.equal(made.job.job_id.startswith("night-"), True)


def test_order_of_calls():
    with machine(), service("order") as it:
        optimizer = BatchSizeOptimizer(ZeusMonitor(), it.url, JobSpec(**SPEC))
        optimizer.on_train_begin()
        raised(exceptions.ZeusBSOOperationOrderError, optimizer.on_evaluate, 0.5)
        tap.equal((optimizer.get_batch_size(), optimizer.current_batch_size, optimizer.trial_number), (32, 32, 1))
        optimizer.on_evaluate(0.1)
        other = BatchSizeOptimizer(ZeusMonitor(), it.url, JobSpec(**SPEC))
        other.get_batch_size()
        raised(exceptions.ZeusBSOOperationOrderError, other.on_evaluate, 0.5)


def test_a_training_that_is_given_up():
    """Its trial ends when the object is dropped or the program ends, so the same batch size is explored again."""
    with machine(), service("given-up") as it:
        first = BatchSizeOptimizer(ZeusMonitor(), it.url, JobSpec(**SPEC))
        first.get_batch_size()
        second = BatchSizeOptimizer(ZeusMonitor(), it.url, JobSpec(**SPEC))
        tap.equal((second.get_batch_size(), second.trial_number), (32, first.trial_number + 1))
        del first, second
        gc.collect()
        program = """if True:
            import sys
            from flyball.compat.zeus.monitor import ZeusMonitor
            from flyball.compat.zeus.optimizer.batch_size import BatchSizeOptimizer, JobSpec
            optimizer = BatchSizeOptimizer(ZeusMonitor(), sys.argv[1], JobSpec(**eval(sys.argv[2])))
            print(optimizer.get_batch_size())
            """
        done = tap.run([sys.executable, "-c", program, it.url, repr(SPEC)], env={**os.environ, "PYTHONPATH": sys.path[0]})
        tap.equal((done.returncode, done.stdout, done.stderr), (0, "32\n", ""))
        store = os.path.join(HOME.name, "given-up.sqlite")
        history = tap.run([FLYBALL, "job", "history", "night-1", "--store", store]).stdout
        tap.equal(history.count("crashed"), 3, history)


def test_no_server():
    with machine(), service("gone") as it:
        url = it.url
    server = "flyball.compat.zeus.optimizer.batch_size.server"
    pauses, sys.modules[server]._PAUSES_S = sys.modules[server]._PAUSES_S, (0.01,)
    try:
        with machine():
            tap.contains(str(raised(exceptions.ZeusBSORuntimeError, BatchSizeOptimizer, ZeusMonitor(), url, JobSpec(**SPEC))), "no answer")
    finally:
        sys.modules[server]._PAUSES_S = pauses
    with variables(FLYBALL_DISABLE="1"):
        raised(exceptions.ZeusBSOConfigError, BatchSizeOptimizer, ZeusMonitor(), url, JobSpec(**SPEC))


class Busy(http.server.BaseHTTPRequestHandler):
    """Refuses each question once, and then answers it as a job."""

    asked = []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((self.path, body))
        self.send_response(503 if len(self.asked) % 2 else 201)
        self.end_headers()
        self.wfile.write(json.dumps({**body, "message": "busy"}).encode())

    def log_message(self, *_):
        pass


def test_a_busy_server_is_asked_again():
    busy = http.server.HTTPServer(("127.0.0.1", 0), Busy)
    thread = threading.Thread(target=busy.serve_forever, daemon=True)
    thread.start()
    try:
        with machine():
            optimizer = BatchSizeOptimizer(ZeusMonitor(), f"http://127.0.0.1:{busy.server_port}/token/fly_x", JobSpec(**SPEC))
        tap.equal(([path for path, _ in Busy.asked], optimizer.job.job_id), (["/token/fly_x/jobs"] * 2, "night-1"))
        tap.equal(Busy.asked[0], Busy.asked[1])
    finally:
        busy.shutdown()
        thread.join()
        busy.server_close()


def test_specifications():
    for wrong in (
        {"batch_sizes": []},
        {"batch_sizes": [0, 32]},
        {"batch_sizes": [32, 32]},
        {"default_batch_size": 48},
        {"default_batch_size": 1.5},
        {"eta_knob": 1.5},
        {"beta_knob": 0},
        {"max_epochs": 0},
        {"num_pruning_rounds": -1},
        {"job_id": "day-1"},
        {"higher_is_better_metric": "yes"},
    ):
        raised(ValueError, JobSpec, **{**SPEC, **wrong})
    raised(ValueError, JobSpec, batch_sizes=[32], default_batch_size=32)
    job = JobSpec(**SPEC, other=1)
    tap.equal((job.beta_knob, job.mab_seed, job.window_size, JobSpec(**{**SPEC, "beta_knob": None}).beta_knob), (2.0, None, 0, None))
    tap.equal((job == JobSpec(**SPEC), job == JobSpec(**{**SPEC, "max_epochs": 4}), copy.deepcopy(job) == job), (True, False, True))
    tap.equal(JobSpec.parse_obj(json.loads(job.json())), job)
    tap.contains(repr(job), "JobSpec(job_id='night-1', job_id_prefix='night', batch_sizes=[16, 32, 64]")


class Group:
    """torch.distributed for threads that each are a rank."""

    def __init__(self, ranks):
        self.ranks, self.barrier, self.place = ranks, threading.Barrier(ranks, timeout=tap.PATIENCE_S), threading.local()
        self.values = [None] * ranks
        self.distributed_c10d = types.SimpleNamespace(_get_default_store=lambda: self)
        self.told, self.changed = {}, threading.Condition()

    def set(self, key, value):
        with self.changed:
            self.told[key] = value
            self.changed.notify_all()

    def get(self, key):
        with self.changed:
            tap.equal(self.changed.wait_for(lambda: key in self.told, tap.PATIENCE_S), True)
            return self.told[key]

    def get_rank(self):
        return self.place.rank

    def get_world_size(self):
        return self.ranks

    def all_gather_object(self, values, value):
        self.values[self.place.rank] = value
        self.barrier.wait()
        values[:] = self.values
        self.barrier.wait()

    def broadcast_object_list(self, values, src):
        everybodys = [None] * self.ranks
        self.all_gather_object(everybodys, values[0])
        values[0] = everybodys[src]


class Rank(ZeusMonitor):
    """A monitor of the GPU of a rank, whose windows are what is said here."""

    def __init__(self, rank):
        super().__init__(gpu_indices=[rank])
        self.rank = rank

    def end_window(self, key, sync_execution=True, cancel=False):
        super().end_window(key, cancel=True)
        return Measurement(10.0 + self.rank, {self.rank: 100.0 + self.rank})


def ranks_train(alone):
    """What two ranks find. With `alone`, only rank 0 asks for the batch size, and the program passes it on."""
    group, found, passed = Group(2), [None, None], {}
    original = framework._group

    def batch_size_of(optimizer, rank):
        if not alone:
            return optimizer.get_batch_size()
        if rank == 0:
            passed["batch size"], passed["trial"] = optimizer.get_batch_size(), optimizer.trial_number
        group.barrier.wait()
        optimizer.current_batch_size, optimizer.trial_number = passed["batch size"], passed["trial"]
        return optimizer.current_batch_size

    def work(rank, url):
        group.place.rank = rank
        try:
            optimizer = BatchSizeOptimizer(Rank(rank), url, JobSpec(**SPEC), rank=rank)
            batch_size = batch_size_of(optimizer, rank)
            optimizer.on_train_begin()
            optimizer.on_evaluate(0.1 if rank == 0 else 0.9)
            goes_on = not optimizer.training_finished
            optimizer.on_evaluate(0.9)
            found[rank] = (batch_size, goes_on, optimizer.training_finished, optimizer.consumed_energy, optimizer.running_time,
                           optimizer.job.number_of_gpus, optimizer.trial_number)
        except Exception as error:
            found[rank] = error
            group.barrier.abort()

    with machine(), service(f"ranks-{alone}") as it:
        framework._group = lambda: group
        try:
            threads = [threading.Thread(target=work, args=(rank, it.url)) for rank in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            framework._group = original
    return found


def test_ranks_are_one_training():
    for alone in (False, True):
        found = ranks_train(alone)
        tap.equal(found[0], found[1], alone)
        tap.equal(found[0][:6], (32, True, True, 2 * 201.0, 2 * 11.0, 2))


def test_a_rank_without_a_group():
    with machine(), service("alone") as it:
        optimizer = BatchSizeOptimizer(ZeusMonitor(), it.url, JobSpec(**SPEC), rank=1)
        error = raised(exceptions.ZeusBSOBadOperationError, optimizer.get_batch_size)
        tap.equal(isinstance(error, exceptions.ZeusBSOOperationOrderError), True)


tap.main(globals())
