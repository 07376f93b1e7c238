# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes a real `flyballd` over emulated GPUs with load, loads the rules, and answers each query of the dashboard.

usage: flyballd_prometheus.py FLYBALL SOURCE
"""
import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import sys

import node_machine
import power_machine
import prometheus_machine
import serve_machine
import tap

SOURCE = pathlib.Path(sys.argv[2]).resolve()
DASHBOARD = SOURCE / "integrations/grafana/flyball.json"
RULES = sorted((SOURCE / "integrations/prometheus").glob("*.yml"))
ROOT = power_machine.HOME / "root"
# In place of what Grafana puts in; a longer name stands before one with which it begins.
VARIABLES = {"$__rate_interval": "10s", "$__range": "1h", "$training_job": ".*", "$instance": ".*", "$job": "flyballd", "$gpu": "0|1"}
# Queries that have no data here, with the reason.
WITHOUT = {
    "workload_pod!=": "no pods here",
}


def meters(energy_uj):
    """Counters of a CPU package and its memory; written at once, as the daemon has them open."""
    for zone, name in (("intel-rapl:0", "package-0"), ("intel-rapl:0:0", "dram")):
        directory = ROOT / "sys/class/powercap" / zone
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "name").write_text(name + "\n")
        (directory / "max_energy_range_uj").write_text("262143328850\n")
        counter = directory / "energy_uj"
        with counter.open("r+b" if counter.exists() else "wb", buffering=0) as file:
            file.write(f"{energy_uj:020d}\n".encode())


@contextlib.contextmanager
def training():
    """A program on GPU 0 that a job of Flyball and of Slurm started."""
    process = subprocess.Popen([power_machine.EMULATOR, "train", "--gpu", "0", "--batch-size", "512", "--epochs", "1000000"],
                               env={**power_machine.CLEAN, "FLYBALL_JOB_NAME": "digits", "SLURM_JOB_ID": "17"}, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def scene():
    """A machine on which something happens: a capped GPU with a program, an idle one, leases, and a Prometheus."""
    prometheus_machine.need()
    if power_machine.SANITIZED:
        raise tap.Skip("what Prometheus asks is the same in every build")
    meters(1_000_000)
    (ROOT / "proc").symlink_to("/proc")
    settings = {"attribution": {"poll": 0.1}}
    try:
        with power_machine.machine("--sensor", "exact", "--counter-period-ms", "0"), node_machine.daemon(settings=settings) as daemon:
            serve_machine.until(lambda: all(gpu["answers"] for gpu in daemon.ask("GET", "/v1/gpus")[2]["gpus"]), "both GPUs answer")
            node_machine.lease(daemon, 150)
            daemon.ask("POST", "/v1/leases", {"gpus": ["0"], "power_limit_w": 200})
            target = daemon.url.removeprefix("http://")
            with training(), prometheus_machine.prometheus(target, "flyballd", rules=RULES, interval="500ms") as server:
                yield server
    finally:
        shutil.rmtree(ROOT, ignore_errors=True)
        node_machine.clean()


def queries():
    """{query with variables replaced: where it stands}."""
    found = {}
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", []):
            query = target["expr"]
            for name, value in VARIABLES.items():
                query = query.replace(name, value)
            tap.equal("$" in query, False, f"a variable that nothing is put in for: {query}")
            found[query] = panel["title"]
    for variable in json.loads(DASHBOARD.read_text())["templating"]["list"]:
        if variable["type"] == "query":
            metric, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"]).groups()
            for name, value in VARIABLES.items():
                metric = metric.replace(name, value)
            found[f"count by ({label}) ({metric})"] = f"variable {variable['name']}"
    return found


def exception_of(query):
    return next((why for piece, why in WITHOUT.items() if piece in query), None)


def check_queries(server):
    waiting = {query: where for query, where in queries().items() if exception_of(query) is None}
    tap.equal(len(waiting) > 35, True, "the dashboard's queries")
    energy_uj = [2_000_000]

    def all_answered():
        energy_uj[0] += 1_000_000
        meters(energy_uj[0])
        for query in list(waiting):
            if server.ask(query):
                del waiting[query]
        return not waiting
    try:
        serve_machine.until(all_answered, "data for each query")
    except AssertionError as error:
        raise AssertionError(f"no data for {json.dumps(waiting, indent=1)}") from error


def check_scrapes(server):
    tap.equal([row["value"][1] for row in server.ask("up")], ["1"])
    told, kept = (server.ask(f"scrape_samples_{what}")[0]["value"][1] for what in ("scraped", "post_metric_relabeling"))
    tap.equal((int(told) > 50, told), (True, kept))
    for label in ("exported_job", "exported_instance", "exported_pod", "exported_namespace"):
        tap.equal(server.ask(f'{{{label}!=""}}'), [], f"a label that collides with the target's: {label}")
    targets = server.get("targets")["activeTargets"]
    tap.equal([(target["health"], target["lastError"]) for target in targets], [("up", "")])
    tap.equal(server.talk(), "", "duplicates and samples out of order are told here")


def check_rules(server):
    rules = [rule for group in server.get("rules")["groups"] for rule in group["rules"]]
    tap.equal(len(rules) > 20, True, "the rules are loaded")
    tap.equal([(rule["name"], rule["lastError"]) for rule in rules if rule.get("lastError")], [])
    wanted = {"training_job:flyball_power_watts:rate5m": {"training_job": "digits"}, "slurm_job:flyball_power_watts:rate5m": {"slurm_job": "17"}}
    for name, labels in wanted.items():
        found = serve_machine.until(lambda name=name: server.ask(name), name)
        tap.equal([{key: value for key, value in row["metric"].items() if key != "__name__"} for row in found], [labels])
    for name, labels in (("gpu:flyball_power_watts:rate5m", 2), ("instance:flyball_power_watts:rate5m", 1), ("gpu:flyball_idle_ratio:rate15m", 2),
                         ("gpu:flyball_throttled_ratio:rate15m", 8), ("gpu:flyball_holders:count", 1)):
        serve_machine.until(lambda name=name, labels=labels: len(server.ask(name)) == labels, f"{name} has {labels} series")


def check_figures(server):
    """What Prometheus stores is what the emulator says: the capped GPU draws its limit."""
    limit = server.ask('flyball_gpu_power_limit_watts{gpu="0"}')[0]
    tap.equal((limit["value"][1], limit["metric"]["source"], limit["metric"]["job"]), ("150", "emulated", "flyballd"))
    serve_machine.until(lambda: abs(float(server.ask('flyball_gpu_power_watts{gpu="0"}')[0]["value"][1]) - 150) < 8, "GPU 0 draws its limit")
    serve_machine.until(lambda: float(server.ask('gpu:flyball_throttled_ratio:rate15m{gpu="0",reason="power"}')[0]["value"][1]) > 0.5, "its limit holds it back")


def test_dashboard_and_rules():
    with scene() as server:
        serve_machine.until(lambda: server.ask("flyball_gpu_up"), "a scrape")
        check_queries(server)
        check_scrapes(server)
        check_rules(server)
        check_figures(server)


def test_dashboard_is_whole():
    """Each panel has an id, a place of its own and a data source that the reader chooses."""
    dashboard = json.loads(DASHBOARD.read_text())
    taken = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        tap.equal((taken & cells, place["x"] + place["w"] <= 24), (set(), True), panel["title"])
        taken |= cells
        for target in panel.get("targets", []):
            tap.equal(target["datasource"]["uid"], "${datasource}", panel["title"])
    ids = [panel["id"] for panel in dashboard["panels"]]
    tap.equal(len(ids), len(set(ids)))
    tap.equal([variable["name"] for variable in dashboard["templating"]["list"]], ["datasource", "job", "instance", "gpu", "training_job"])


tap.main(globals())
