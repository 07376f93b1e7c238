# SPDX-License-Identifier: Apache-2.0
"""`flyballd` while one GPU hangs in the driver: the other is read, leased, and put back however things end.

usage: flyballd_hang.py FLYBALL
"""
import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading

import node_machine
import power_machine
import serve_machine
import tap

DEFAULT_W = power_machine.DEFAULT_W
FAULTS = power_machine.HOME / "faults"
SETTINGS = {"server": {"grace": 2}, "lease": {"patience": 1}}
# A program that leases GPU 1 and stays.
HOLDER = """
import socket, sys, time
sock = socket.socket(socket.AF_UNIX)
sock.connect(sys.argv[1])
body = b'{"gpus": ["1"], "power_limit_w": 230}'
sock.sendall(b"POST /v1/leases HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
print(sock.recv(65536).split()[1].decode(), flush=True)
time.sleep(600)
"""


def hang(gpu=0):
    """Each call for that GPU takes for ever, in every process."""
    FAULTS.write_text(f"gpu {gpu} slow 600s\n")
    power_machine.emulator("set", "--faults", FAULTS)


def answers(daemon):
    return {gpu["index"]: gpu["answers"] for gpu in daemon.ask("GET", "/v1/gpus")[2]["gpus"]}


def until(condition, what):
    return serve_machine.until(condition, what)


@contextlib.contextmanager
def holder():
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(node_machine.SOCKET)], stdout=subprocess.PIPE, text=True) as process:
        try:
            tap.equal(process.stdout.readline().strip(), "200")
            yield process
        finally:
            process.kill()


class Systemd:
    """Counts how often the watchdog is told that the daemon lives."""
    path = power_machine.HOME / "notify"
    environment = {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "200000"}

    def __init__(self, listening):
        self.listening, self.lives = listening, 0
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        with contextlib.suppress(OSError):
            while word := self.listening.recv(4096):
                self.lives += word == b"WATCHDOG=1"


@contextlib.contextmanager
def listening_systemd():
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(Systemd.path))
        try:
            yield Systemd(listening)
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            Systemd.path.unlink()


def lives_on(daemon, systemd):
    """The watch of GPU 1, the metrics and the watchdog go on."""
    first = daemon.ask("GET", "/v1/gpus/1")[2]["figures"]["id"]
    until(lambda: daemon.ask("GET", "/v1/gpus/1")[2]["figures"]["id"] > first + 3, "GPU 1 is still read")
    status, _, text = daemon.ask("GET", "/metrics")
    tap.equal(status, 200)
    tap.contains(text.decode(), 'flyball_gpu_power_limit_watts{gpu="1"')
    told = systemd.lives
    until(lambda: systemd.lives > told + 1, "the watchdog is told again")


def lease_from_grant_to_end(daemon):
    lease = node_machine.lease(daemon, 250, ["1"])
    tap.equal(power_machine.limits(), [DEFAULT_W, 250])
    tap.equal(daemon.ask("PATCH", f"/v1/leases/{lease['id']}", {"power_limit_w": 240})[0], 200)
    tap.equal(power_machine.limits(), [DEFAULT_W, 240])
    tap.equal(daemon.ask("DELETE", f"/v1/leases/{lease['id']}")[0], 200)
    tap.equal(power_machine.limits(), [DEFAULT_W, DEFAULT_W])


def test_the_other_is_leased():
    with listening_systemd() as systemd, power_machine.machine(), \
            node_machine.daemon(settings=SETTINGS, environment=systemd.environment) as daemon:
        until(lambda: answers(daemon) == {0: True, 1: True}, "both GPUs answer")
        hang()
        until(lambda: answers(daemon) == {0: False, 1: True}, "GPU 0 hangs")
        gpu = daemon.ask("GET", "/v1/gpus/0")[2]
        tap.equal((gpu["figures"], bool(gpu["why"])), (None, True))
        lease_from_grant_to_end(daemon)
        with holder():
            tap.equal(power_machine.limits(), [DEFAULT_W, 230])
        power_machine.back_within([DEFAULT_W, DEFAULT_W], "the holder has ended")
        # Of GPU 0 the caller is told, and the lease has ended.
        status, _, body = daemon.ask("POST", "/v1/leases", {"gpus": ["0"], "power_limit_w": 250})
        tap.equal((status >= 400, body["error"]["code"]), (True, "FLY_EUNSURE"), str(body))
        tap.equal(daemon.ask("GET", "/v1/leases")[2]["leases"], [])
        lives_on(daemon, systemd)
        status, _, body = daemon.ask("POST", "/v1/release", {"most_s": 0.5})
        tap.equal(status >= 400, True, str(body))
        tap.equal(daemon.ask("POST", "/v1/resume", {})[0], 200)
        until(lambda: answers(daemon).get(1), "GPU 1 is read again")
        lease_from_grant_to_end(daemon)
        tap.equal(daemon.stop(), 69, "".join(daemon.talk))
    node_machine.clean()


def test_daemon_is_killed_and_comes_back():
    with listening_systemd() as systemd, power_machine.machine():
        with node_machine.daemon(settings=SETTINGS) as daemon:
            until(lambda: answers(daemon) == {0: True, 1: True}, "both GPUs answer")
            hang()
            with holder():
                tap.equal(power_machine.limits(), [DEFAULT_W, 230])
                power_machine.kill_program(daemon.process.pid)
                power_machine.back_within([DEFAULT_W, DEFAULT_W], "the guard has put GPU 1 back")
                daemon.process.wait()
        with node_machine.daemon(settings=SETTINGS, environment=systemd.environment) as daemon:
            until(lambda: answers(daemon).get(1), "GPU 1 answers")
            daemon.said("1 of 2 GPUs do not answer their driver")
            lease_from_grant_to_end(daemon)
            lives_on(daemon, systemd)
            with holder():
                # Daemon and guard together: the next one puts back.
                power_machine.kill_both(daemon.process)
                tap.equal(power_machine.limits(), [DEFAULT_W, 230])
        with node_machine.daemon(settings=SETTINGS) as daemon:
            power_machine.back_within([DEFAULT_W, DEFAULT_W], "the next daemon has put GPU 1 back")
            with holder():
                power_machine.kill_both(daemon.process)
            result = node_machine.run("restore", f"--config={node_machine.CONFIG}")
            tap.equal(result.returncode, 0, result.stderr)
            tap.equal(power_machine.limits(), [DEFAULT_W, DEFAULT_W])
    node_machine.clean()


def porter_of(daemon):
    pid = daemon.process.pid
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        if pathlib.Path(f"/proc/{child}/comm").read_text() == "flyball-porter\n":
            return int(child)
    raise AssertionError("the daemon has no porter")


def test_the_watchdog_asks_the_socket():
    """While nobody can be answered systemd is told nothing; full quotas are no such case."""
    with listening_systemd() as systemd, power_machine.machine(), contextlib.ExitStack() as crowd, \
            node_machine.daemon(settings={"server": {"connections_per_user": 2, "connections": 2}}, environment=systemd.environment) as daemon:
        first = systemd.lives
        until(lambda: systemd.lives > first + 2, "the watchdog is told")
        for _ in range(40):
            raw = crowd.enter_context(socket.socket(socket.AF_UNIX))
            raw.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                raw.connect(str(node_machine.SOCKET))
        first = systemd.lives
        until(lambda: systemd.lives > first + 2, "the watchdog is told though all connections are taken")
        os.kill(porter_of(daemon), signal.SIGSTOP)
        daemon.said("the daemon does not answer itself over its own socket")
        first = systemd.lives
        # It is given up every two seconds.
        until(lambda: "".join(daemon.talk).count("does not answer itself") > 2, "it does not answer for some time")
        tap.equal(systemd.lives - first <= 1, True, "told meanwhile")
        os.kill(porter_of(daemon), signal.SIGCONT)
        until(lambda: systemd.lives > first + 2, "the watchdog is told again")
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))
    node_machine.clean()


tap.main(globals())
