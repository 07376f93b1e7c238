# SPDX-License-Identifier: Apache-2.0
"""How fast flyballd answers: beside one nginx worker that serves a static file of the same size, on loopback, asked by wrk in turns.

usage: daemon_http.py FLYBALL [ROUNDS [SECONDS]]

It prints requests per second, 99th percentiles and the ages of the values in the answers, as medians
over the rounds with the least and the most, and ratios of the daemon's to nginx' of the same round.
Then the same beside 500 clients that read the stream and 10,000 that are connected and say nothing.
"""
import contextlib
import http.client
import json
import os
import pathlib
import re
import resource
import selectors
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
SECONDS = int(sys.argv[3]) if len(sys.argv) > 3 else 2
GPUS, POLL_S, CONNECTIONS = 8, 0.1, 16
STREAMS, IDLE, REST_S = 500, 10000, 5
FILES = 65536

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/lib"))
import node_machine  # noqa: E402  (its own sys.argv[1] is ours)
import power_machine  # noqa: E402

NGINX = """worker_processes 1; daemon off; pid {home}/pid; error_log {home}/errors;
worker_rlimit_nofile {files};
events {{ worker_connections {connections}; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000; default_type application/json;
  open_file_cache max=10 inactive=1h; open_file_cache_valid 1h;
  client_body_temp_path {home}/b; proxy_temp_path {home}/p; fastcgi_temp_path {home}/f; uwsgi_temp_path {home}/u; scgi_temp_path {home}/s;
  server {{ listen 127.0.0.1:{port}; root {home}; }}
}}
"""


def allow_files():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    want = max(FILES, hard) if hard != resource.RLIM_INFINITY else FILES
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (want, want))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@contextlib.contextmanager
def nginx(files):
    """One worker that serves files, {name: size}; gives its address."""
    with tempfile.TemporaryDirectory(prefix="flyball-bench-") as home:
        os.chmod(home, 0o755)
        for name, size in files.items():
            (pathlib.Path(home) / name).write_bytes(b"x" * size)
        port = free_port()
        config = pathlib.Path(home) / "nginx.conf"
        config.write_text(NGINX.format(home=home, files=FILES, connections=4096, port=port))
        process = subprocess.Popen(["nginx", "-c", config, "-e", f"{home}/errors"], stderr=subprocess.DEVNULL)
        try:
            wait_for(port)
            worker = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0]
            yield f"http://127.0.0.1:{port}", int(worker)
        finally:
            process.terminate()
            process.wait()


def wait_for(port):
    for _ in range(500):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.01)
    sys.exit("nginx did not start")


def processor_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wrk(url, pid):
    """Requests per second, the 99th percentile of their times in ms, and the server's processor time for one in us."""
    before_s = processor_s(pid)
    result = subprocess.run(["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "--latency", url], capture_output=True, text=True, check=True)
    if "Non-2xx" in result.stdout or "Socket errors" in result.stdout:
        sys.exit(f"{url}: {result.stdout}")
    rate = float(re.search(r"Requests/sec: +([0-9.]+)", result.stdout).group(1))
    value, unit = re.search(r"99% +([0-9.]+)(us|ms|s)", result.stdout).groups()
    requests = int(re.search(r"(\d+) requests in", result.stdout).group(1))
    return rate, float(value) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit], (processor_s(pid) - before_s) / requests * 1e6


def figures_of(answer):
    """Of the GPUs that answer; on a busy machine one may be late."""
    return [gpu["figures"] for gpu in answer.get("gpus", [answer]) if gpu["figures"] is not None]


class Ages(threading.Thread):
    """Asks now and then while wrk does, and notes how old the values are."""

    def __init__(self, port, path):
        super().__init__(daemon=True)
        self.port, self.path, self.over, self.ages_s = port, path, threading.Event(), []

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        while not self.over.wait(0.037):
            asked = time.time()
            connection.request("GET", self.path)
            answer = json.loads(connection.getresponse().read())
            self.ages_s += [asked - figures["unix_ms"] / 1e3 for figures in figures_of(answer)]

    def __enter__(self):
        self.start()
        return self.ages_s

    def __exit__(self, *_):
        self.over.set()
        self.join()


def spread(values, form="{:.0f}"):
    return f"{form.format(statistics.median(values))} ({form.format(min(values))} to {form.format(max(values))})"


def compare(title, daemon, reference, paths):
    """Asks both in turns, and prints what came of it. A server is its address and its process."""
    print(f"\n{title}: {CONNECTIONS} connections of wrk, {ROUNDS} rounds of {SECONDS} s each")
    (url, pid), (other_url, other_pid) = daemon, reference
    for name, path in paths.items():
        ours, theirs, ages_s = [], [], []
        for _ in range(ROUNDS):
            theirs.append(wrk(f"{other_url}/{name}", other_pid))
            with Ages(int(url.rsplit(":", 1)[1]), path) as found:
                ours.append(wrk(url + path, pid))
            ages_s += found
        ratios = [one[0] / other[0] for one, other in zip(ours, theirs, strict=True)]
        print(f"  GET {path}")
        for i, (what, form, wanted) in enumerate((("requests a second", "{:.0f}", ""), ("99th percentile, ms", "{:.2f}", "; wanted below 5"),
                                                  ("processor time of the server for one, us", "{:.1f}", ""))):
            print(f"    {what}: flyballd {spread([row[i] for row in ours], form)}, nginx {spread([row[i] for row in theirs], form)}{wanted}")
        print(f"    ratio of requests: {spread(ratios, '{:.2f}')}, wanted 0.5 or more")
        print(f"    age of a value when asked for, ms: median {statistics.median(ages_s) * 1e3:.0f}, at most {max(ages_s) * 1e3:.0f} of {len(ages_s)}; "
              f"the poll is {POLL_S * 1e3:.0f} ms")


class Crowd(threading.Thread):
    """Clients that read the stream as fast as it comes, and clients that are connected and silent."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.over, self.bytes, self.ended = threading.Event(), 0, 0
        self.readers = selectors.DefaultSelector()
        self.idle = [self.connect(port, i) for i in range(IDLE)]
        for i in range(STREAMS):
            client = self.connect(port, i)
            client.sendall(b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
            client.setblocking(False)
            self.readers.register(client, selectors.EVENT_READ)
        self.start()

    @staticmethod
    def connect(port, i):
        """From several addresses of this machine, so that ports suffice."""
        client = socket.socket()
        client.bind((f"127.0.{1 + i % 16}.1", 0))
        client.connect(("127.0.0.1", port))
        return client

    def run(self):
        while not self.over.is_set():
            for key, _ in self.readers.select(0.1):
                with contextlib.suppress(BlockingIOError):
                    piece = key.fileobj.recv(1 << 16)
                    self.bytes += len(piece)
                    if not piece:
                        self.ended += 1
                        self.readers.unregister(key.fileobj)

    def still_idle(self):
        """How many of the silent ones are still connected."""
        count = 0
        for client in self.idle:
            client.setblocking(False)
            try:
                count += client.recv(1) != b""
            except BlockingIOError:
                count += 1
            except OSError:
                pass
        return count

    def stop(self):
        self.over.set()
        self.join()
        for client in [*self.idle, *(key.fileobj for key in list(self.readers.get_map().values()))]:
            client.close()


def get(daemon, path):
    host = daemon.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        sys.exit(f"{path}: {answer.status} {body}")
    return body


def wait_for_answers(url):
    for _ in range(600):
        if all(gpu["answers"] for gpu in json.loads(get(url, "/v1/gpus"))["gpus"]):
            return
        time.sleep(0.1)
    sys.exit("the GPUs do not answer")


def at_rest(pid):
    """What the daemon costs when nobody asks, its emulated driver included."""
    before_s = processor_s(pid)
    time.sleep(REST_S)
    share = (processor_s(pid) - before_s) / REST_S
    resident = int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1)) / 1024
    print(f"At rest for {REST_S} s, with the emulated driver in it: {share * 100:.2f} % of a processor, {resident:.1f} MiB resident")


def machine_words():
    model = next((line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "?")
    return f"{len(os.sched_getaffinity(0))} processors ({model}), for daemon, wrk, nginx and clients together"


def main():
    for program in ("wrk", "nginx"):
        if shutil.which(program) is None:
            print(f"flyballd's speed is not measured: {program} is not installed (scripts/bootstrap bench)")
            return
    files = allow_files()
    settings = {"server": {"connections": 32768, "connections_per_host": 32768, "request_timeout": 3600}, "watch": {"poll": POLL_S}, "rights": {"open": "yes"}}
    with power_machine.machine(gpus=GPUS), node_machine.daemon(settings=settings) as daemon:
        url = daemon.url
        wait_for_answers(url)
        served = url, daemon.process.pid
        paths = {"gpus": "/v1/gpus", "gpu": "/v1/gpus/0"}
        sizes = {name: len(get(url, path)) for name, path in paths.items()}
        print(f"flyballd over {GPUS} emulated GPUs on {machine_words()}; answers of {sizes['gpus']} and {sizes['gpu']} bytes")
        at_rest(daemon.process.pid)
        with nginx(sizes) as reference:
            compare("Alone", served, reference, paths)
            if files < IDLE + STREAMS + 1000:
                print(f"\nNo crowd: only {files} descriptors may be open here")
                return
            crowd = Crowd(int(url.rsplit(":", 1)[1]))
            before, began = crowd.bytes, time.monotonic()
            compare(f"Beside {STREAMS} readers of the stream of all GPUs and {IDLE} silent connections", served, reference, paths)
            print(f"  meanwhile the readers took {(crowd.bytes - before) / (time.monotonic() - began) / 1e6:.1f} MB a second; "
                  f"{crowd.ended} streams were ended, {crowd.still_idle()} of {IDLE} silent connections are open")
            crowd.stop()
    node_machine.clean()


if __name__ == "__main__":
    main()
