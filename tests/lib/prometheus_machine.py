# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus of a test's own, that scrapes one target.

    with prometheus_machine.prometheus("127.0.0.1:7471", "flyballd") as server:
        server.ask("up")                  the rows of a query, [] while there is no answer
        server.get("rules")               what /api/v1/rules says
        server.talk()                     what it wrote: faults of scrapes are warnings
"""

import contextlib
import json
import pathlib
import shutil
import socket
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request

import tap

CONFIG = """global: {{scrape_interval: {interval}, scrape_timeout: {interval}, evaluation_interval: {interval}}}
rule_files: {rules}
scrape_configs:
- job_name: {job}
{token}  static_configs: [{{targets: ['{target}']}}]
"""


def need(program="prometheus"):
    if shutil.which(program) is None:
        raise tap.Skip(f"{program} is not installed (Debian: prometheus)")


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Server:
    def __init__(self, home):
        self.home = home
        self.start()

    def start(self):
        """Somebody may take the port before it does; then it ends, and another is tried."""
        self.port = free_port()
        with (self.home / "talk").open("a") as talk:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={self.home}/prometheus.yml", f"--storage.tsdb.path={self.home}/data",
                 f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn"], stdout=subprocess.DEVNULL, stderr=talk)

    def talk(self):
        return (self.home / "talk").read_text()

    def get(self, path, **parameters):
        """The data of an answer of the API; None while there is no answer. A query that is wrong is an error."""
        if self.process.poll() is not None:
            tap.contains(self.talk(), "address already in use", "prometheus ended")
            self.start()
        address = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(address, timeout=tap.PATIENCE_S) as got:
                return json.load(got)["data"]
        except urllib.error.HTTPError as error:
            if error.code in (400, 422):
                raise AssertionError(f"{parameters}: {error.read().decode()}") from error
        except (OSError, ValueError):
            pass
        return None

    def ask(self, query):
        return (self.get("query", query=query) or {"result": []})["result"]

    def stop(self):
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def prometheus(target, job, token_file=None, rules=(), interval="1s"):
    need()
    with tempfile.TemporaryDirectory(prefix="flyball-prometheus-") as place:
        token = f"  authorization: {{credentials_file: {token_file}}}\n" if token_file else ""
        (pathlib.Path(place) / "prometheus.yml").write_text(
            CONFIG.format(interval=interval, rules=json.dumps([str(rule) for rule in rules]), job=job, token=token, target=target))
        server = Server(pathlib.Path(place))
        try:
            yield server
        finally:
            server.stop()
