# SPDX-License-Identifier: Apache-2.0
"""What tests of the public daemon's routes share: requests, tokens, processors, streams. sys.argv[1] is the program flyball."""
import base64
import contextlib
import hashlib
import hmac
import http.client
import json

import power_machine
import serve_machine
import tap

SET = "/gpu/set_power_limit?gpu_ids="
TURN = f"{SET}0&power_limit_mw=250000&block=true"
KEY = b"integration-test-signing-key!!!!"
GOOD = {"sub": "alice", "scopes": ["gpu-control", "gpu-read", "cpu-read"], "exp": 9999999999}


def text64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed(claims, head=None, key=KEY, algorithm=hashlib.sha256):
    parts = ".".join(text64(json.dumps(part).encode()) for part in (head or {"alg": "HS256", "typ": "JWT"}, claims))
    return f"{parts}.{text64(hmac.new(key, parts.encode(), algorithm).digest())}"


def ask(daemon, method, target, over_tcp=False, token=None):
    """The status, the headers and the body of an answer."""
    if over_tcp:
        connection = http.client.HTTPConnection(daemon.url.removeprefix("http://"), timeout=serve_machine.PATIENCE_S)
    else:
        connection = daemon.connection()
    connection.request(method, target, headers={} if token is None else {"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), content


def expect(daemon, method, target, status, content, **how):
    found, headers, body = ask(daemon, method, target, **how)
    what = f"{method} {target} {how}: {headers} {body}"
    tap.equal(found, status, what)
    if isinstance(content, bytes):
        tap.equal((body, headers["Content-Type"].split(";")[0]), (content, "text/plain"), what)
    elif isinstance(content, dict):
        tap.equal(json.loads(body), content, what)
    elif body:
        tap.equal(headers["Content-Type"], "application/json", what)
        tap.contains(json.dumps(json.loads(body)), content, what)
    else:
        tap.equal(content, "", what)
    return headers


ONE = {scope: signed({"sub": f"only.{scope}", "scopes": [scope]}) for scope in GOOD["scopes"]}


def write_key(key=KEY, mode=0o600):
    path = power_machine.HOME / "signing.key"
    path.write_bytes(key)
    path.chmod(mode)
    return path


@contextlib.contextmanager
def processors(energies):
    """A tree of sysfs with RAPL domains: {zone: (name, energy_uj)}."""
    place = power_machine.HOME / "root/sys/class/powercap"
    for zone, (name, energy_uj) in energies.items():
        (place / zone).mkdir(parents=True, exist_ok=True)
        (place / zone / "name").write_text(f"{name}\n")
        (place / zone / "max_energy_range_uj").write_text("262143328850\n")
        (place / zone / "energy_uj").write_text(f"{energy_uj}\n")
    try:
        yield place
    finally:
        for zone in energies:
            for path in (place / zone).iterdir():
                path.unlink()
            (place / zone).rmdir()


CPUS = {"intel-rapl:0": ("package-0", 262143328000), "intel-rapl:0:0": ("dram", 1000), "intel-rapl:1": ("package-1", 5000)}


class Stream:
    """The events of a stream."""

    def __init__(self, daemon, target, token=None, over_tcp=False):
        self.connection = (http.client.HTTPConnection(daemon.url.removeprefix("http://"), timeout=serve_machine.PATIENCE_S)
                           if over_tcp else daemon.connection())
        self.connection.request("GET", target, headers={} if token is None else {"Authorization": f"Bearer {token}"})
        self.answer = self.connection.getresponse()
        tap.equal((self.answer.status, self.answer.getheader("Content-Type").split(";")[0], self.answer.getheader("Cache-Control")),
                  (200, "text/event-stream", "no-cache"))

    def next(self):
        line = self.answer.readline().decode()
        tap.equal(self.answer.readline(), b"\n")
        tap.equal(line[:6], "data: ", line)
        return json.loads(line[6:])

    def close(self):
        self.connection.close()
