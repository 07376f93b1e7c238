# SPDX-License-Identifier: Apache-2.0
"""The public batch-size server's interface, over HTTP: its recorded exchanges, and its clients' way of asking.

usage: serve_zeus.py FLYBALL
"""
import concurrent.futures
import http.client
import json
import lzma
import math
import os
import pathlib
import sys
import tempfile
import urllib.parse

import pg_machine
import serve_machine
import tap

FLYBALL = os.path.abspath(sys.argv[1])
DATA = pathlib.Path(os.environ.get("FLYBALL_TEST_DATA") or "../shared/data")
WORK = tempfile.TemporaryDirectory(prefix="flyball-zeus-", dir=tap.quick_place())
BOX = pathlib.Path(WORK.name)
# What the HTTP library of the public client sends along; it names no type of its body.
HEADERS = {"Accept": "*/*", "Accept-Encoding": "gzip, deflate", "Connection": "keep-alive",
           "User-Agent": "python-httpx/0.28.1"}
ROUTES = {"register": ("POST", "/jobs"), "predict": ("GET", "/jobs/batch_size"), "report": ("POST", "/report"),
          "end": ("PATCH", "/trials"), "delete": ("DELETE", "/jobs")}
COMPARED = ("batch_size", "trial_number", "stop_train", "converged")


def service(store):
    return serve_machine.service(FLYBALL, f"--store={store}", "--compat-zeus")


def ask(it, operation, content):
    """What a client asks so; the status and the answer's JSON."""
    method, path = ROUTES[operation]
    if operation in ("predict", "delete"):
        status, _, body = it.ask(method, path + "?" + urllib.parse.urlencode(content), headers=HEADERS)
    else:
        status, _, body = it.ask(method, path, json.dumps(content), HEADERS)
    return status, json.loads(body)


# ---- recorded exchanges ----

def exchanges():
    path = DATA / "golden/server_exchange.jsonl.xz"
    if not path.exists():
        raise tap.Skip(f"no {path}")
    with lzma.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def replay(numbered, choose):
    """Asks what was asked, each of `choose(number)`, and compares what is worth comparing."""
    for number, exchange in numbered:
        status, answer = ask(choose(number), exchange["op"], exchange["req"])
        context = f"exchange {number}: {exchange['op']} {exchange['req']} got {answer}"
        tap.equal(status, exchange["status"], context)
        recorded = exchange.get("resp")
        if status >= 300:
            tap.equal(list(answer)[0], "message", context)
        elif recorded is None or exchange["op"] == "register":
            tap.equal(answer, recorded, context)
        else:
            for name in COMPARED:
                tap.equal(answer.get(name), recorded.get(name), f"{context}: {name}")


def test_recorded_exchanges():
    numbered = list(enumerate(exchanges(), 1))
    store = BOX / "recorded.sqlite"
    # Stopped and started in between: nothing is kept but in the store.
    for part in (numbered[:200], numbered[200:700], numbered[700:]):
        with service(store) as it:
            replay(part, lambda number: it)
            tap.equal(it.stop(), 0)


# ---- the client ----

class TrainFailed(Exception):
    """Stopped without having converged: the user is to launch the training again."""


class Client:
    """Asks as the public client does, step by step, and holds every answer to what that one expects."""

    def __init__(self, it, **job):
        self.it = it
        # Every field is sent, those without a value as null.
        self.spec = {"job_id": None, "job_id_prefix": "night", "batch_sizes": [8, 16, 32], "default_batch_size": 16,
                     "eta_knob": 0.5, "beta_knob": 2.0, "target_metric": 0.5, "higher_is_better_metric": True,
                     "max_epochs": 100, "num_pruning_rounds": 2, "window_size": 0, "mab_prior_mean": 0.0,
                     "mab_prior_precision": 0.0, "mab_num_explorations": 2, "mab_seed": None, "max_power": 250.0,
                     "number_of_gpus": 1, "gpu_model": "Tesla V100-SXM2-16GB", **job}
        self.status, self.job = self.ask("register", self.spec)
        tap.equal({**self.job, "job_id": None}, {**self.spec, "job_id": None})
        self.current = None
        self.epoch, self.time, self.energy = 0, 0.0, 0.0

    def ask(self, operation, content):
        status, answer = ask(self.it, operation, content)
        tap.equal(200 <= status < 300, True, f"{operation} {content}: {status} {answer}")
        return status, answer

    def get_batch_size(self):
        if self.current is None:
            _, self.current = self.ask("predict", {"job_id": self.job["job_id"]})
            tap.equal(sorted(self.current), ["batch_size", "job_id", "trial_number"])
            tap.equal(self.current["job_id"], self.job["job_id"])
            tap.equal(self.current["batch_size"] in self.job["batch_sizes"], True)
        return self.current["batch_size"]

    def on_evaluate(self, metric, time=1.0, energy=200.0):
        """Whether it trains on. Raises TrainFailed."""
        self.epoch, self.time, self.energy = self.epoch + 1, self.time + time, self.energy + energy
        _, answer = self.ask("report", {**self.current, "time": self.time, "energy": self.energy, "metric": metric,
                                        "current_epoch": self.epoch})
        tap.equal([type(answer[name]) for name in ("stop_train", "converged", "message")], [bool, bool, str])
        if answer["stop_train"] and not answer["converged"]:
            raise TrainFailed(answer["message"])
        return not answer["stop_train"]

    def exit(self):
        if self.current is not None:
            tap.equal(self.ask("end", self.current), (200, None))


def metric_of(batch_size, epoch):
    """Reached in four epochs with 8, in five with 16, never with 32."""
    return {8: 0.13, 16: 0.105, 32: 0.0}[batch_size] * epoch


def train(it, job_id, **job):
    """One training, launched again for as long as it is stopped without a model; the trials it took."""
    took = []
    while True:
        client = Client(it, job_id=job_id, **job)
        try:
            took.append((client.get_batch_size(), client.current["trial_number"]))
            tap.equal(client.get_batch_size(), took[-1][0])
            while client.on_evaluate(metric_of(client.get_batch_size(), client.epoch + 1)):
                pass
            return took
        except TrainFailed as failed:
            tap.contains(str(failed), ": ")
        finally:
            client.exit()


def history(store, job):
    result = tap.run([FLYBALL, "job", "history", f"--store={store}", "--format=json", "--", job], env=serve_machine.CLEAN)
    tap.equal(result.returncode, 0, result.stderr)
    return json.loads(result.stdout)["rows"]


def test_a_client():
    store = BOX / "client.sqlite"
    with service(store) as it:
        first = Client(it)
        tap.equal(first.status, 201)
        job_id = first.job["job_id"]
        tap.equal((job_id[:6], len(job_id)), ("night-", 14))
        tap.equal(Client(it, job_id=job_id).status, 200)
        took = [trial for _ in range(8) for trial in train(it, job_id, max_epochs=100)]
        tap.equal([number for _, number in took], list(range(1, len(took) + 1)))
        tap.equal([size for size, _ in took][:3], [16, 8, 32])
        # Stopped for its cost once, and not tried for its own sake again: 8 costs least.
        tap.equal([size for size, _ in took].count(32), 1)
        tap.equal(took[-1][0] in (8, 16), True)
        # One that left before its first epoch, one that diverged, and one with another specification.
        crashed = Client(it, job_id=job_id)
        crashed.get_batch_size()
        crashed.exit()
        lost = Client(it, job_id=job_id)
        lost.get_batch_size()
        tap.equal(lost.on_evaluate(math.nan), True)
        lost.exit()
        status, answer = ask(it, "register", {**lost.spec, "job_id": job_id, "eta_knob": 0.7})
        tap.equal((status, answer["differences"]), (409, {"eta_knob": [0.5, 0.7]}))
        tap.contains(answer["message"], "eta_knob")
        metrics = it.ask("GET", "/metrics")[2].decode().splitlines()
        for outcome in ("reached", "stopped", "crashed", "left"):
            line = [line for line in metrics if line.startswith("flyball_trials_total{") and
                    f'outcome="{outcome}"' in line and f'training_job="{job_id}"' in line]
            tap.equal(len(line), 1, "\n".join(metrics))
            tap.contains(line[0], 'gpu_model="Tesla V100-SXM2-16GB"')
        outcomes = [trial["outcome"] for trial in history(store, job_id)]
        tap.equal(outcomes[0], "reached")
        tap.equal(outcomes[-2:], ["crashed", "crashed"])
        tap.equal(len(outcomes), len(took) + 2)
        tap.equal(ask(it, "delete", {"job_id": job_id}), (200, None))
        tap.equal(ask(it, "delete", {"job_id": job_id})[0], 404)


def test_ids_of_any_kind():
    """Free text for a prefix, as far as a job's name holds it."""
    store = BOX / "ids.sqlite"
    with service(store) as it:
        for prefix, name in (("team a/ViT é", "team_.20a_.2FViT_.20_.C3_.A9-7"), (".x", "_.2Ex-7"), ("", "-7"),
                             ("a+b&c=d%20", "a_.2Bb_.26c_.3Dd_.2520-7")):
            job_id = prefix + "-7"
            tap.equal(Client(it, job_id=job_id, job_id_prefix=prefix).status, 201, job_id)
            tap.equal(train(it, job_id, job_id_prefix=prefix)[0][1], 1, job_id)
            tap.equal(history(store, name)[0]["outcome"], "reached", job_id)
            tap.equal(ask(it, "delete", {"job_id": job_id}), (200, None), job_id)


def test_without_the_option():
    with serve_machine.service(FLYBALL, f"--store={BOX}/off.sqlite") as it:
        tap.equal(ask(it, "predict", {"job_id": "x"})[0], 404)


# ---- limits ----

def test_large_bodies():
    """Each is refused, quickly, and the service answers the next one."""
    def many(count):
        return '{"batch_sizes": [' + ",".join(map(str, range(1, count + 1))) + "]}"

    with service(BOX / "large.sqlite") as it:
        for body, status, words in (
                (many(10000), 422, "expected 1 to 1024 numbers, not 10000"),
                ("[" * 65536, 422, "nested too deep"),
                ('{"a":' * 13000, 422, "nested too deep"),
                ('{"gpu_model": "' + "x" * 65000 + '"}', 422, "at most 127 bytes"),
                ('{"mab_seed": ' + "9" * 65000 + "}", 422, "too large"),
                ("NaN" * 20000, 422, "no JSON"),
                (many(1000000), 413, "longer than 65536 bytes"),
                ("[" + "{}," * 1000000 + "{}]", 413, "longer than 65536 bytes"),
                ("[" * 65537, 413, "longer than 65536 bytes")):
            got, _, answer = it.ask("POST", "/jobs", body, HEADERS)
            tap.equal(got, status, f"{body[:40]}: {answer[:200]}")
            tap.contains(answer.decode(), words, body[:40])
            tap.equal(len(answer) < 8192, True, body[:40])
        tap.equal(Client(it).status, 201)
        # As many batch sizes as there may be, in as many digits, with room.
        sizes = [4294967295 - i for i in range(1024)]
        tap.equal(Client(it, batch_sizes=sorted(sizes), default_batch_size=sizes[0]).status, 201)


def test_a_kept_connection():
    """Requests one after the other over one connection, as a client with a pool sends them."""
    with service(BOX / "kept.sqlite") as it:
        job_id = Client(it).job["job_id"]
        connection = http.client.HTTPConnection("127.0.0.1", it.port, timeout=serve_machine.PATIENCE_S)
        for number in range(1, 21):
            connection.request("GET", f"/jobs/batch_size?job_id={job_id}", headers=HEADERS)
            answer = json.loads(connection.getresponse().read())
            tap.equal(answer["trial_number"], number)
            connection.request("PATCH", "/trials", json.dumps(answer), HEADERS)
            tap.equal(connection.getresponse().read(), b"null")
        connection.close()


# ---- two services ----

def test_two_services_answer_as_one():
    numbered = list(enumerate(exchanges(), 1))
    with pg_machine.server(tap.quick_place(pg_machine.ROOM_MIB)) as server:
        store = server.address()
        with service(store) as one, service(store) as other:
            replay(numbered, lambda number: (one, other)[number % 2])
            tap.equal((one.stop(), other.stop()), (0, 0))


def test_trainings_at_once_over_two_services():
    """Four users at once, each with trainings of the same job: no trial is given twice, none is lost."""
    def user(services, job_id, count):
        return [trial for number in range(count) for trial in train(services[number % 2], job_id)]

    with pg_machine.server(tap.quick_place(pg_machine.ROOM_MIB)) as server:
        store = server.address()
        with service(store) as one, service(store) as other:
            job_id = Client(one).job["job_id"]
            with concurrent.futures.ThreadPoolExecutor() as pool:
                users = [pool.submit(user, (one, other)[::1 - 2 * (i % 2)], job_id, 5) for i in range(4)]
                took = [trial for future in users for trial in future.result()]
            tap.equal(sorted(number for _, number in took), list(range(1, len(took) + 1)))
            trials = history(store, job_id)
            tap.equal({trial["trial"]: trial["batch_size"] for trial in trials}, {number: size for size, number in took})
            reached = [trial for trial in trials if trial["outcome"] == "reached"]
            tap.equal(len(reached), 20)


tap.main(globals())
