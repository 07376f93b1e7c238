# SPDX-License-Identifier: Apache-2.0
"""Clients of flyballd for scripts/soak_leases.py: programs that lease limits and clocks as fast as they go.

A small process, the zygote, forks them and does nothing else, so that hundreds of them cost little. A client is described by
{"seed", "kind", "gpus": ["0", ...], "forks", "haste", "user", "socket", "said"}; it makes the file SAID.granted with its first
lease, and SAID.quiet when it has stopped asking.
"""
import contextlib
import http.client
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time

PATIENCE_S = 30
KINDS = ("process", "process", "connection", "time", "plain")


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)

    def ask(self, method, path, body=None):
        self.request(method, path, None if body is None else json.dumps(body))
        answer = self.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text[:1] == b"{" else None


class Client:
    """One program. It turns until SIGUSR1; then it says that it is quiet, and holds what it has."""

    def __init__(self, spec):
        self.spec, self.draw = spec, random.Random(spec["seed"])
        self.connection, self.lease, self.forked, self.quiet = None, None, False, False
        signal.signal(signal.SIGUSR1, self.on_quiet)

    def on_quiet(self, *_):
        self.quiet = True

    def run(self):
        while not self.quiet:
            try:
                self.connection = self.connection or Unix(self.spec["socket"])
                (self.turn_plainly if self.spec["kind"] == "plain" else self.turn)()
            except (OSError, http.client.HTTPException, ValueError):
                self.connection, self.lease = None, None
                time.sleep(0.02)
            if self.draw.random() > self.spec["haste"]:
                time.sleep(self.draw.uniform(0, 0.3))
        pathlib.Path(self.spec["said"] + ".quiet").touch()
        while True:
            time.sleep(0.05)
            if self.spec["kind"] == "time" and self.lease:
                with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                    self.connection.ask("POST", f"/v1/leases/{self.lease}/renew", {"expires_s": 1.5})

    def wish(self):
        wish, draw = {}, self.draw
        if draw.random() < 0.8:
            wish["power_limit_w"] = draw.randint(100, 400)
        if draw.random() < 0.4 or not wish:
            wish["clock_ceiling_mhz"] = draw.randrange(600, 1400, 30)
        if "clock_ceiling_mhz" in wish and draw.random() < 0.3:
            wish["clock_floor_mhz"] = 300
        return wish

    def turn(self):
        kind, draw, ask = self.spec["kind"], self.draw, self.connection.ask
        if self.lease is None:
            more = {"expires_s": 1.5} if kind == "time" else {"bind": kind}
            status, body = ask("POST", "/v1/leases", {"gpus": self.spec["gpus"], **self.wish(), **more})
            if status != 200:
                time.sleep(0.01)
                return
            self.lease = body["id"]
            pathlib.Path(self.spec["said"] + ".granted").touch()
            if self.spec["forks"] and not self.forked:
                self.forked = True
                if os.fork() == 0:
                    time.sleep(3600)
        elif kind == "time" and draw.random() < 0.7:
            status = ask("POST", f"/v1/leases/{self.lease}/renew", {"expires_s": 1.5})[0]
        elif draw.random() < 0.7:
            status = ask("PATCH", f"/v1/leases/{self.lease}", self.wish())[0]
        else:
            ask("DELETE", f"/v1/leases/{self.lease}")
            status = 404
        if status == 404:
            self.lease = None

    def turn_plainly(self):
        gpus = ",".join(self.spec["gpus"])
        turns = ("set_power_limit", f"power_limit_mw={self.draw.randint(100, 400) * 1000}"), ("reset_gpu_locked_clocks", ""), (
            "set_gpu_locked_clocks", f"min_clock_mhz=300&max_clock_mhz={self.draw.randrange(600, 1400, 30)}")
        name, parameters = self.draw.choices(turns, (6, 1, 2))[0]
        status, _ = self.connection.ask("POST", f"/gpu/{name}?gpu_ids={gpus}&block=true&{parameters}")
        if status == 200:
            pathlib.Path(self.spec["said"] + ".granted").touch()


def be_zygote():
    """Forks a client for each line of input, and says its number."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        spec = json.loads(line)
        pid = os.fork()
        if pid == 0:
            try:
                os.setsid()
                os.close(0)
                os.close(1)
                if spec["user"]:
                    os.setgroups([])
                    os.setgid(spec["user"])
                    os.setuid(spec["user"])
                Client(spec).run()
            finally:
                os._exit(1)
        print(pid, flush=True)


class Zygote:
    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-S", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def start(self, spec):
        self.process.stdin.write(json.dumps(spec) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


if __name__ == "__main__":
    be_zygote()
