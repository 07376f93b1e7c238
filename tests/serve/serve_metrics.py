# SPDX-License-Identifier: Apache-2.0
"""What `flyball serve` tells Prometheus: by its own checker, and scraped by the real one.

usage: serve_metrics.py FLYBALL
"""
import json
import os
import pathlib
import shutil
import sys
import tempfile

import prometheus_machine
import serve_machine
import tap

FLYBALL = os.path.abspath(sys.argv[1])
WORK = tempfile.TemporaryDirectory(prefix="flyball-serve-metrics-")
BOX = pathlib.Path(WORK.name)
STORE = BOX / "store.sqlite"
JOB = {"batch_sizes": [16, 32], "default_batch_size": 32, "max_epochs": 5, "target": "at_least", "target_metric": 0.9}
ASKED = {"hardware": {"gpu_model": 'Test "GPU"', "gpu_count": 1, "world_size": 1, "limits_w": [100, 200]}}


def need(program):
    if shutil.which(program) is None:
        raise tap.Skip(f"{program} is not installed (Debian: prometheus)")


def well(it, method, path, body, headers=None):
    status, _, content = it.ask(method, path, body, headers)
    tap.equal(status in (200, 201, 204), True, f"{method} {path}: {status} {content}")
    return json.loads(content) if content else None


def train(it, job, energy_j, headers=None):
    """A trial from beginning to end; with or without a word on its energy."""
    trial = well(it, "POST", f"/v1/jobs/{job}/trials", ASKED, headers)
    end = {"attempt": trial["attempt"], "outcome": "crashed"}
    if energy_j is not None:
        end |= {"energy_j": energy_j, "time_s": 1.0}
    well(it, "POST", f"/v1/jobs/{job}/trials/{trial['trial']}/end", end, headers)


def figures(it, headers=None):
    """All series as a dictionary from what stands left of the number."""
    status, got, content = it.ask("GET", "/metrics", headers=headers or {})
    tap.equal((status, got["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
    lines = [line for line in content.decode().splitlines() if not line.startswith("#")]
    return {name: float(number) for name, number in (line.rsplit(" ", 1) for line in lines)}


def test_a_run_that_reports_no_epoch():
    runtime = BOX / "runtime"
    runtime.mkdir(mode=0o700)
    environment = {**serve_machine.CLEAN, "XDG_RUNTIME_DIR": str(runtime), "FLYBALL_EMULATOR_STATE": str(BOX / "state")}
    with serve_machine.service(FLYBALL, f"--store={STORE}.silent") as it:
        result = tap.run([FLYBALL, "run", "--job=silent", f"--store={it.url}", "--batch-sizes=16", "--max-epochs=2",
                          "--default-batch-size=16", "--quiet", "--", "true"], env=environment)
        tap.equal(result.returncode, 0, result.stderr)
        serve_machine.until(lambda: any(name.startswith("flyball_trials_total") for name in figures(it)), "its end")
        ended = {name: value for name, value in figures(it).items() if name.startswith("flyball_trials_total")}
        tap.equal([name.split('"')[1] for name in ended], ["left"], ended)
        tap.equal(it.stop(), 0)


def test_what_is_counted():
    with serve_machine.service(FLYBALL, f"--store={STORE}") as it:
        for job in ("digits", "words"):
            well(it, "PUT", f"/v1/jobs/{job}", JOB)
        train(it, "digits", 1000)
        train(it, "digits", 500.5)
        train(it, "words", None)
        seen = figures(it)
        labels = 'training_job="{}",gpu_model="Test \\"GPU\\""}}'
        tap.equal(seen['flyball_trials_total{outcome="crashed",' + labels.format("digits")], 2)
        tap.equal(seen['flyball_trials_total{outcome="crashed",' + labels.format("words")], 1)
        energy = {name: value for name, value in seen.items() if name.startswith("flyball_trial_energy_joules_total")}
        tap.equal(energy, {"flyball_trial_energy_joules_total{" + labels.format("digits"): 1500.5},
                  "nothing stands for an energy that nobody told")
        tap.equal(seen["flyball_decision_seconds_count"], 3)
        tap.equal(seen["flyball_decision_seconds_sum"] > 0, True)
        tap.equal(seen['flyball_decision_seconds_bucket{le="+Inf"}'], 3)
        tap.equal(it.ask("GET", "/nowhere")[0], 404)
        tap.equal(figures(it)['flyball_http_requests_total{family="none",status="404"}'], 1)
        for name in ("cpu_seconds_total", "resident_memory_bytes", "virtual_memory_bytes", "open_fds", "max_fds",
                     "start_time_seconds"):
            tap.equal(f"process_{name}" in seen, True, name)
        tap.equal(seen["process_resident_memory_bytes"] > 1e6, True)
        tap.equal(seen["flyball_http_requests_in_flight"], 1, "this one")
        tap.equal(it.ask("POST", "/metrics", "")[0], 405)
        tap.equal(it.stop(), 0)


def test_promtool():
    need("promtool")
    with serve_machine.service(FLYBALL, f"--store={STORE}") as it:
        train(it, "digits", 7)
        text = it.ask("GET", "/metrics")[2].decode()
        result = tap.run(["promtool", "check", "metrics"], input=text)
        tap.equal((result.returncode, result.stdout + result.stderr), (0, ""), text)
        broken = tap.run(["promtool", "check", "metrics"], input=text + "flyball_trials_total{ 1\n")
        tap.equal(broken.returncode, 1, "it finds faults")


def test_the_real_one():
    need("prometheus")
    tokens, secret = BOX / "tokens", BOX / "secret"
    made = [tap.run([FLYBALL, "token", scope, f"--scope={scope}", f"--tokens={tokens}"], env=serve_machine.CLEAN).stdout
            for scope in ("read", "train")]
    secret.write_text(made[0].strip())
    trainer = {"Authorization": f"Bearer {made[1].strip()}"}
    with serve_machine.service(FLYBALL, f"--store={STORE}", f"--tokens={tokens}", "--operators=token:train") as it:
        tap.equal(it.ask("GET", "/metrics")[0], 401)
        train(it, "digits", 42, trainer)
        with prometheus_machine.prometheus(f"127.0.0.1:{it.port}", "flyball", secret) as server:
            ask = server.ask
            found = serve_machine.until(lambda: ask("flyball_trials_total"), "a scrape")
            tap.equal({name: found[0]["metric"][name] for name in ("outcome", "training_job", "gpu_model", "job")},
                      {"outcome": "crashed", "training_job": "digits", "gpu_model": 'Test "GPU"', "job": "flyball"})
            train(it, "digits", 8, trainer)
            serve_machine.until(lambda: [series["value"][1] for series in ask("flyball_trial_energy_joules_total")]
                                == ["50"], "the second trial's energy")
            serve_machine.until(lambda: [series["value"][1] for series in ask("up")] == ["1"], "up")
            serve_machine.until(lambda: len(ask("flyball_decision_seconds_bucket")) == 14, "the histogram")
        tap.equal(it.stop(), 0)


tap.main(globals())
