#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kills_trainer.py SETTINGS: a program that takes part in a recurring job, and may be killed at any moment.

It keeps a list of what it asks, on disk before it asks, and of what it is answered, on disk
after the answer came. Started again it goes by its list up to where it was: a call without
an answer is made again, word for word, or the run is taken for preempted and goes on as
another attempt. All that it does follows from its seed, its answers and its list.

SETTINGS is a file of JSON: the list's path, name, seed, job, definition, recurrences, tries,
and how to ask: "client", the words of a program that takes calls line by line
(tests/lib/job_by_hand.c), or "services", addresses that are spoken HTTP to.
"""
import http.client
import itertools
import json
import os
import random
import socket
import subprocess
import sys
import time

LIMITS_W = (100.0, 150.0, 200.0)
POWER_W, SLOWNESS = (95.0, 130.0, 185.0), (1.4, 1.05, 1.0)
# Epochs to the target by batch size; 128 never gets there, or does not fit.
NEEDED = {8: 8, 16: 6, 32: 5, 64: 4}
BATCH_SIZES = (8, 16, 32, 64, 128)
PASSING = ("FLY_EUNREACHABLE", "FLY_EBUSY", "FLY_EUNSURE")
PATIENCE_S = 120


class Requeued(Exception):
    """The run was preempted here, and goes on as another attempt."""


class Lost(Exception):
    """Nobody knows whether the call was done."""


# ---- ways to ask ----

class Client:
    """Over a program's pipes; it goes with this one."""

    def __init__(self, words):
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, call):
        self.process.stdin.write(json.dumps(call) + "\n")
        self.process.stdin.flush()
        reply = json.loads(self.process.stdout.readline())
        if reply.get("error") in PASSING:
            raise Lost(reply["text"])
        return reply

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


DEFINITION = {"batch_sizes": list(BATCH_SIZES), "default_batch_size": 32, "objective": {"kind": "cost", "eta": 0.5},
              "target": "at_least", "target_metric": 0.9}
HARDWARE = {"gpu_count": 1, "gpu_memory_bytes": 16 << 30, "world_size": 1}


def request_of(call):
    """Method, path and body under /v1/, as the OpenAPI document has them."""
    call = dict(call)
    name, job = call.pop("call"), f"/v1/jobs/{call.pop('job')}"
    trial = f"{job}/trials/{call.pop('trial')}" if "trial" in call else ""
    if name == "define":
        call.pop("target")
        return "PUT", job, {**DEFINITION, **call}
    if name == "set":
        return "PATCH", job, {"objective": {"kind": "cost", "eta": call["eta"]}}
    if name == "propose":
        hardware = {**HARDWARE, "gpu_model": call.pop("gpu_model"), "limits_w": call.pop("limits_w")}
        return "POST", f"{job}/trials", {**call, "hardware": hardware}
    if name == "profile":
        points = [{"limit_w": point[0], "power_w": point[1], "time_s": point[2]} for point in call["points"]]
        return "POST", f"{trial}/profile", {"points": points, "units_per_epoch": 1}
    path = {"heartbeat": "heartbeats", "report": "epochs", "end": "end"}[name]
    return "POST", f"{trial}/{path}", call


class Services:
    """Over HTTP, to any of them; one that does not answer is left for the next."""

    def __init__(self, addresses):
        self.addresses = itertools.cycle(addresses)
        self.connection = None

    def connect(self):
        address = next(self.addresses)
        if address.startswith("unix:"):
            return UnixConnection(address.removeprefix("unix:"), 30)
        return http.client.HTTPConnection(address.removeprefix("http://"), timeout=30)

    def exchange(self, method, path, body):
        """Status and text of the answer."""
        headers = {"Content-Type": "application/json"} if body is not None else {}
        try:
            self.connection = self.connection or self.connect()
            self.connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = self.connection.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Lost(f"{type(error).__name__}: {error}") from None

    def ask(self, call):
        status, text = self.exchange(*request_of(call))
        content = json.loads(text) if text else {}
        if status < 300:
            return {"answer": content}
        code = content.get("error", {}).get("code", "")
        if status in (429, 502, 503, 504) or code in PASSING:
            self.close()
            raise Lost(f"{status} {text}")
        return {"error": code or str(status), "text": text}

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None


# ---- the list ----

def read_list(path):
    """Its whole lines; what was being written when the program was killed is no line."""
    try:
        with open(path, "rb") as file:
            return [json.loads(line) for line in file if line.endswith(b"\n")]
    except FileNotFoundError:
        return []


def pairs(path):
    """[call, answer], the answer None where none came: what kills_log.py is told."""
    found = []
    for line in read_list(path):
        if "asked" in line or "report" in line:
            found.append([line.get("asked", line.get("report")), None])
        elif "answer" in line:
            found[-1][1] = line["answer"]
    return found


class List:
    def __init__(self, path):
        self.past = read_list(path)
        self.file = open(path, "ab+")
        self.file.seek(0)
        self.file.truncate(sum(len(line) for line in self.file if line.endswith(b"\n")))

    def add(self, line):
        self.file.write(json.dumps(line).encode() + b"\n")
        self.file.flush()
        os.fsync(self.file.fileno())


class Trainer:
    def __init__(self, settings):
        self.settings = settings
        self.list = List(settings["list"])
        self.past = self.list.past
        self.way = Client(settings["client"]) if "client" in settings else Services(settings["services"])
        self.training = False
        starts = sum("start" in line for line in self.past)
        luck = random.Random(f"{settings['seed']}/{settings['name']}/start/{starts}")
        # Started again it knows nothing of a checkpoint of its calls, as often as not.
        start = {"start": starts, "requeued": starts > 0 and luck.random() < 0.5}
        self.list.add(start)
        self.past.append(start)

    def turned_over(self):
        """Passes the starts that stand next in the list; whether one of them begins another attempt."""
        requeued = False
        while self.past and "start" in self.past[0]:
            requeued |= self.past.pop(0)["requeued"]
        if requeued and self.training:
            raise Requeued

    def ask(self, call, **members):
        asked = {"call": call, "job": self.settings["job"], **members}
        self.turned_over()
        if self.past:
            line = self.past.pop(0)
            if line["asked"] != asked:
                raise AssertionError(f"the list has {line['asked']}, and now it is {asked}")
            self.turned_over()
            if self.past:
                return self.past.pop(0)["answer"]
        else:
            self.list.add({"asked": asked})
        answer = self.insist(asked)
        self.list.add({"answer": answer})
        return answer

    def insist(self, asked):
        """Until there is an answer."""
        end, pause_s = time.monotonic() + PATIENCE_S, 0.01
        while True:
            try:
                reply = self.way.ask(asked)
            except Lost as lost:
                if time.monotonic() > end:
                    raise AssertionError(f"no answer to {asked} in {PATIENCE_S} s: {lost}") from None
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, 0.2)
                continue
            if "answer" not in reply:
                raise AssertionError(f"{asked} was refused: {reply}")
            return reply["answer"]

    # ---- what it does ----

    def run(self):
        self.ask("define", target=True, **self.settings["definition"])
        for number in range(self.settings["recurrences"]):
            submission = f"{self.settings['name']}-{number}"
            luck = random.Random(f"{self.settings['seed']}/{submission}")
            if luck.random() < 0.1:
                self.ask("set", eta=luck.random())
            self.recur(submission)
        self.list.add({"done": True})
        self.way.close()

    def recur(self, submission):
        for number in range(self.settings["tries"]):
            if self.train(submission, f"{submission}-{number}"):
                return

    def train(self, submission, run):
        """One try, however often it is preempted; whether there is a model."""
        attempt = 0
        while True:
            attempt += 1
            self.training = True
            try:
                return self.attempt(submission, run, f"{run}-{attempt}")
            except Requeued:
                pass
            finally:
                self.training = False

    def attempt(self, submission, run, request):
        luck = random.Random(f"{self.settings['seed']}/{request}")
        proposal = self.ask("propose", request=request, run=run, submission=submission, tries=self.settings["tries"],
                            gpu_model="Test GPU", limits_w=list(LIMITS_W))
        who = {"trial": proposal["trial"], "attempt": proposal["attempt"]}
        batch_size, limit_w = proposal["batch_size"], proposal["limit_w"]
        unit_s = 10.0 * (32 / batch_size) ** 0.5
        if luck.random() < 0.3:
            self.ask("heartbeat", **who, energy_j=luck.random(), time_s=luck.random())
        if batch_size == 128 and self.settings["seed"] % 2 == 0:
            self.ask("end", **who, outcome="out_of_memory", energy_j=100 * luck.random(), time_s=1.0, text="out of memory")
            return False
        if proposal["wants_profile"]:
            points = [[limit, power, unit_s * slow] for limit, power, slow in zip(LIMITS_W, POWER_W, SLOWNESS)]
            choice = self.ask("profile", trial=proposal["trial"], points=points)
            limit_w = choice["limit_w"]
            if choice["epochs"] == 0:
                self.ask("end", **who, outcome="refused", energy_j=10.0, time_s=1.0, text="")
                return False
        at = LIMITS_W.index(limit_w) if limit_w in LIMITS_W else 2
        done = max(0, proposal["epochs_done"] - luck.choice((0, 0, 1)))
        return self.epochs(luck, who, proposal, done, (unit_s * SLOWNESS[at], POWER_W[at]))

    def epochs(self, luck, who, proposal, done, cost):
        energy_j = time_s = 0.0
        reaches_at = NEEDED.get(proposal["batch_size"], 10 ** 6) + proposal["trial"] % 3
        for epoch in range(done + 1, 10 ** 6):
            took_s = cost[0] * luck.uniform(0.9, 1.1)
            time_s, energy_j = time_s + took_s, energy_j + took_s * cost[1]
            metric = 0.9 + luck.random() / 20 if epoch >= reaches_at else luck.random() / 2 if luck.random() < 0.9 else None
            answer = self.ask("report", **who, epoch=epoch, metric=metric, energy_j=energy_j, time_s=time_s)
            if answer["answer"] != "go_on":
                return self.end(luck, who, answer, energy_j, time_s)
            fate = luck.random()
            if fate < 0.05:
                raise Requeued
            if fate < 0.1 and not proposal["last_try"]:
                self.ask("end", **who, outcome="crashed", energy_j=energy_j + 1, time_s=time_s + 1, text="signal 11")
                return False
        return False

    def end(self, luck, who, answer, energy_j, time_s):
        """The report ended it; often the figures of the whole run follow."""
        if luck.random() < 0.5:
            self.ask("end", **who, outcome="not_reached", energy_j=energy_j + 5, time_s=time_s + 1, text="")
        return answer["answer"] == "reached"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        Trainer(json.load(file)).run()


if __name__ == "__main__":
    main()
