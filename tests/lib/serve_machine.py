# SPDX-License-Identifier: Apache-2.0
"""A service of a test's own: `flyball serve` on ports that the kernel chooses.

    with serve_machine.service(FLYBALL, "--store", path) as service:
        service.url                              http://127.0.0.1:43121, the first address
        service.ask("GET", "/healthz")           (status, headers, body)
        service.say(b"GET / HTTP/1.1\\r\\n...")    the raw answer, as far as it came
        service.stop()                           SIGTERM; the exit status
"""

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time

import tap

# For whatever has to happen at all, however busy the machine is.
PATIENCE_S = tap.PATIENCE_S
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("FLYBALL_", "XDG_", "NO_COLOR"))}


def until(condition, what, patience_s=PATIENCE_S):
    """Waits until the condition holds, and returns what it said."""
    end = time.monotonic() + patience_s
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"did not come: {what}")
        time.sleep(0.01)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Service:
    def __init__(self, flyball, *arguments, env=None, listen="127.0.0.1:0", cwd=None, pass_fds=()):
        count = len(listen.split(","))
        self.process = subprocess.Popen([flyball, "serve", f"--listen={listen}", *map(str, arguments)],
                                        env=env or CLEAN, cwd=cwd, text=True, pass_fds=pass_fds,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        lines = [self.process.stdout.readline() for _ in range(count)]
        if not lines[-1]:
            self.process.wait()
            raise AssertionError(f"the service did not start: {self.process.stderr.read()}")
        self.addresses = [line.removeprefix("listening on ").strip() for line in lines]
        self.url = self.addresses[0]
        self.talk = []
        self.reader = threading.Thread(target=self._listen, daemon=True)
        self.reader.start()

    def _listen(self):
        for line in self.process.stderr:
            self.talk.append(line)

    @property
    def port(self):
        return int(self.url.rsplit(":", 1)[1])

    def connection(self, address=None):
        address = address or self.url
        if address.startswith("unix:"):
            return UnixConnection(address.removeprefix("unix:"), PATIENCE_S)
        host, port = address.removeprefix("http://").rsplit(":", 1)
        return http.client.HTTPConnection(host.strip("[]"), int(port), timeout=PATIENCE_S)

    def ask(self, method, path, body=None, headers=None, address=None):
        connection = self.connection(address)
        try:
            content = json.dumps(body) if isinstance(body, (dict, list)) else body
            connection.request(method, path, content, headers or {})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def open(self):
        """A raw connection to the first address, which is TCP."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)

    def say(self, data):
        """Sends the bytes and returns all that comes until the other side closes."""
        with self.open() as raw:
            with contextlib.suppress(ConnectionError):
                raw.sendall(data)
            return read_all(raw)

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        status = self.process.wait(PATIENCE_S)
        self.reader.join(PATIENCE_S)
        return status


def certificate(box, kind, name="self", *arguments):
    """A certificate for 127.0.0.1 that vouches for itself, and its key; `kind` as openssl's -newkey takes it."""
    if shutil.which("openssl") is None:
        raise tap.Skip("openssl is not installed")
    chain, key = box / f"{name}.pem", box / f"{name}.key"
    made = tap.run(["openssl", "req", "-x509", "-newkey", kind, "-nodes", "-keyout", str(key), "-out", str(chain),
                    "-subj", f"/CN={name}", *arguments], cwd=box)
    tap.equal(made.returncode, 0, made.stderr)
    key.chmod(0o600)
    return chain, key


def read_all(raw):
    """All bytes until the other side closes, or resets, the connection."""
    parts = []
    with contextlib.suppress(ConnectionError):
        while part := raw.recv(65536):
            parts.append(part)
    return b"".join(parts)


def service(flyball, *arguments, **options):
    return held(Service(flyball, *arguments, **options))


@contextlib.contextmanager
def held(made):
    """Ends the service with the block."""
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.process.kill()
            made.process.wait()
        made.reader.join(PATIENCE_S)
        made.process.stdout.close()
        made.process.stderr.close()
