# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the public daemon (zeusd): its routes over a unix socket or TCP, for emulated GPUs, with faults on request.

    with Daemon("/path/of/a/socket", gpus) as daemon:
        daemon.mood = "hang"

`gpus` are rows of `flyball devices --format json`; `turn` carries an operation out.
"""

import contextlib
import http.server
import json
import os
import socketserver
import threading
import urllib.parse

# The parameters of each operation, beside gpu_ids and block.
OPERATIONS = {
    "set_power_limit": ("power_limit_mw",),
    "set_persistence_mode": ("enabled",),
    "set_gpu_locked_clocks": ("min_clock_mhz", "max_clock_mhz"),
    "reset_gpu_locked_clocks": (),
    "set_mem_locked_clocks": ("min_clock_mhz", "max_clock_mhz"),
    "reset_mem_locked_clocks": (),
    "reset_locked_clocks": (),
}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def address_string(self):
        return "client"

    def say(self, status, body, content_type="application/json"):
        data = (json.dumps(body) if content_type == "application/json" else body).encode() if body is not None else b""
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def misbehaves(self):
        """Whether the daemon's mood of the moment is all that the client gets."""
        mood = self.server.owner.mood
        kind, _, which = (mood or "").partition(":")
        if not kind or (which and self.command != which):
            return False
        if kind == "hang":
            self.server.owner.closing.wait(3600)
        elif kind == "close":
            pass
        elif kind == "nonsense":
            self.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        elif kind == "cut":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
        elif kind == "malformed":
            self.say(200, "{\"gpus\": [", "text/plain")
        elif kind == "long":
            self.say(200, "x" * (1 << 20), "text/plain")
        else:
            self.say(int(kind), {"error": f"in a mood of {kind}"})
        self.close_connection = True
        return True

    def may(self, scope):
        token = self.server.owner.token
        given = self.headers.get("Authorization", "")
        if token is None:
            return True
        if given != f"Bearer {token}":
            self.say(401, {"error": "missing or bad token" if not given else f"bad token {given}"})
            return False
        if scope not in self.server.owner.scopes:
            self.say(403, {"error": f"the token has no scope {scope}"})
            return False
        return True

    def do_GET(self):
        self.server.owner.requests.append(f"GET {self.path}")
        if self.misbehaves():
            return
        owner = self.server.owner
        if self.path == "/discover":
            self.say(200, {"gpus": [{"id": row["index"] + owner.shift, "name": row["name"], "pci_address": row["pci"],
                                     "cumulative_energy_available": True} for row in owner.gpus],
                           "cpus": [], "enabled_api_groups": owner.groups, "auth_required": owner.token is not None})
        else:
            self.say(404, {"error": "no such route"})

    def do_POST(self):
        owner = self.server.owner
        owner.requests.append(f"POST {self.path}")
        if self.misbehaves():
            return
        path, _, query = self.path.partition("?")
        name = path.removeprefix("/gpu/")
        if name not in OPERATIONS or "gpu-control" not in owner.groups:
            self.say(404, {"error": "not enabled"})
            return
        if not self.may("gpu-control"):
            return
        values = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        wanted = {"gpu_ids", "block", *OPERATIONS[name]}
        if set(values) != wanted or int(self.headers.get("Content-Length", "0")) != 0:
            self.say(400, {"error": f"expected {sorted(wanted)} and not {sorted(values)}"})
            return
        ids = [int(text) - owner.shift for text in values["gpu_ids"].split(",")]
        if any(index not in [row["index"] for row in owner.gpus] for index in ids):
            self.say(400, "no such GPU", "text/plain")
            return
        try:
            for index in ids:
                owner.turn(name, index, values)
        except RuntimeError as error:
            self.say(500, {"errors": {values["gpu_ids"]: str(error)}})
        else:
            self.say(200, None)


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def get_request(self):
        request, _ = super().get_request()
        return request, ("", 0)

    def handle_error(self, request, client_address):
        pass  # a client that was killed


class TcpServer(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request, client_address):
        pass


class Daemon(contextlib.AbstractContextManager):
    def __init__(self, path, gpus, turn):
        self.gpus, self.turn = gpus, turn
        self.mood = self.token = None  # as it should be, and without tokens
        self.scopes, self.groups = ["gpu-control", "gpu-read"], ["gpu-control", "gpu-read", "cpu-read"]
        self.shift = 0  # what its numbers of GPUs are ahead of the client's
        self.requests = []
        self.closing = threading.Event()
        self.path = path
        self.server = UnixServer(path, Handler) if path else TcpServer(("127.0.0.1", 0), Handler)
        self.server.owner = self
        if path:
            os.chmod(path, 0o666)
        self.address = path or "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def __exit__(self, *cause):
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()
        if self.path:
            os.unlink(self.path)
