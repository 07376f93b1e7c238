# SPDX-License-Identifier: Apache-2.0
"""A stand-in for flyballd that says who uses which GPU, over a Unix socket: what a test wants it to say.

    with Daemon("/path/of/a/socket") as daemon:
        daemon.rows = [row(pid=4711, user="ada", power_w=200)]
"""

import http.server
import json
import os
import socketserver
import threading

MEMBERS = ("pid", "started_unix_ms", "ended_unix_ms", "uid", "user", "command", "cgroup", "runtime", "container_id", "slurm_job",
           "slurm_step", "pod_uid", "pod", "pod_namespace", "container", "training_job", "power_w", "memory_bytes")


def gpu(index, power_w=None, answers=True):
    figures = {"id": 7, "unix_ms": 1700000000000, "energy_j": 5, "power_w": power_w, "power_limit_w": 400, "power_limit_enforced_w": 300,
               "temperature_c": 55, "clock_gpu_mhz": 1400, "clock_memory_mhz": 1200, "utilization_percent": 97}
    return {"index": index, "uuid": f"GPU-{index}", "pci": f"00000000:0{index}:00.0", "name": "Made-up GPU", "answers": answers,
            "why": None if answers else "it hangs", "figures": figures if answers else None}


def row(kind="process", gpu=0, energy_j=0, half_width_j=0, time_s=0, **members):
    return {"kind": kind, "gpu": gpu, "uuid": f"GPU-{gpu}", **dict.fromkeys(MEMBERS), "energy_j": energy_j, "half_width_j": half_width_j,
            "time_s": time_s, **members}


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def address_string(self):
        return "client"

    def do_GET(self):
        owner = self.server.owner
        status, body = owner.answers.get(self.path) or (200, owner.usual(self.path))
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Daemon:
    def __init__(self, path):
        self.path = str(path)
        self.gpus = [gpu(0, 300.0)]
        self.rows = []
        self.answers = {}  # path -> (status, body) in place of the usual
        self.server = socketserver.ThreadingUnixStreamServer(self.path, Handler)
        self.server.daemon_threads = True
        self.server.owner = self
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)

    def usual(self, path):
        return {"gpus": self.gpus} if path == "/v1/gpus" else {"schema": "flyball.usage/1", "gpus": [], "rows": self.rows}

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exception):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
        os.unlink(self.path)
