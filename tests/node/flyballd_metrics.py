# SPDX-License-Identifier: Apache-2.0
"""What `flyballd` tells Prometheus: against what the emulator says, over restarts, and by Prometheus' own checker.

usage: flyballd_metrics.py FLYBALL
"""
import contextlib
import json
import re
import shutil
import subprocess
import urllib.request

import node_machine
import power_machine
import serve_machine
import tap

# Time stands still until a test moves it, so joules of the emulator and of the daemon can be compared exactly.
EXACT = ("--time", "virtual", "--sensor", "exact", "--counter-period-ms", "0", "--counter-drift-ppm", "0")
ROOT = power_machine.HOME / "root"
LABELS = ("gpu", "uuid", "model", "source")
SERIES = re.compile(r"([a-z_]+)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


def until(condition, what):
    return serve_machine.until(condition, what)


def cpu_meters(package_uj, dram_uj):
    """Counters of a package and its memory, where the daemon looks for them."""
    for zone, name, energy_uj in (("intel-rapl:0", "package-0", package_uj), ("intel-rapl:0:0", "dram", dram_uj)):
        directory = ROOT / "sys/class/powercap" / zone
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "name").write_text(name + "\n")
        (directory / "max_energy_range_uj").write_text("262143328850\n")
        with open(directory / "energy_uj", "r+b" if (directory / "energy_uj").exists() else "wb", buffering=0) as file:
            file.write(f"{energy_uj:020d}\n".encode())  # at once, as the daemon has the file open


def text_of(daemon):
    with urllib.request.urlopen(daemon.url + "/metrics", timeout=serve_machine.PATIENCE_S) as answer:
        return answer.read().decode()


def scrape(daemon):
    """All series, {(family, frozenset of labels): value}; each stands once."""
    found = {}
    for line in text_of(daemon).splitlines():
        if line.startswith("#"):
            continue
        name, labels, value = SERIES.match(line).groups()
        key = (name, frozenset(LABEL.findall(labels or "")))
        tap.equal(key in found, False, f"twice: {line}")
        found[key] = float(value)
    return found


def figure(series, name, **labels):
    """The value of the one series of that family with these labels; None without."""
    values = [value for (family, own), value in series.items() if family == name and own >= frozenset(labels.items())]
    tap.equal(len(values) < 2, True, f"{name} {labels}: {values}")
    return values[0] if values else None


def shown():
    return json.loads(power_machine.emulator("show", "--json"))["gpus"]


def comes(daemon, name, expected, **labels):
    until(lambda: figure(scrape(daemon), name, **labels) == expected, f"{name} {labels} {expected}; last {figure(scrape(daemon), name, **labels)}")


@contextlib.contextmanager
def machine(*settings, **keywords):
    shutil.rmtree(ROOT, ignore_errors=True)
    try:
        with power_machine.machine(*EXACT, *settings):
            yield
    finally:
        shutil.rmtree(ROOT, ignore_errors=True)
        node_machine.clean()


def ready(daemon):
    return until(lambda: [figure(scrape(daemon), "flyball_gpu_up", gpu=gpu) for gpu in "01"] == [1, 1], "both GPUs are up")


def test_figures_are_the_emulators():
    with machine(), node_machine.daemon() as daemon:
        ready(daemon)
        first, before = scrape(daemon), shown()
        power_machine.emulator("set", "--gpu", "0", "--load-w", "300")
        power_machine.emulator("set", "--advance-s", "4")
        after = shown()
        for gpu, name in ((0, "0"), (1, "1")):
            drawn_j = after[gpu]["counter_j"] - before[gpu]["counter_j"]
            start_j = figure(first, "flyball_gpu_energy_joules_total", gpu=name)
            until(lambda: abs(figure(scrape(daemon), "flyball_gpu_energy_joules_total", gpu=name) - start_j - drawn_j) < 2e-3,
                  f"{drawn_j} J of GPU {gpu} more than {start_j}")
        now = scrape(daemon)
        for gpu, name in ((0, "0"), (1, "1")):
            truth = after[gpu]
            for family, key, factor in (("power_watts", "read_power_w", 1), ("power_limit_watts", "limit_w", 1),
                                        ("power_limit_enforced_watts", "enforced_w", 1), ("utilization_ratio", "utilization", 1)):
                value = figure(now, f"flyball_gpu_{family}", gpu=name)
                tap.equal(abs(value - truth[key] * factor) <= 0.0101 * max(1, truth[key]), True, f"{family} of GPU {gpu}: {value}, {truth}")
            tap.equal(figure(now, "flyball_gpu_temperature_celsius", gpu=name), int(truth["temperature_c"]))
        until(lambda: figure(scrape(daemon), "flyball_gpu_idle_seconds_total", gpu="1") > 0, "idle seconds of GPU 1")
        for (family, labels), value in scrape(daemon).items():
            names = [name for name, _ in labels]
            tap.equal(sorted(set(names) & {"job", "instance", "pod", "namespace"}), [], family)
            if family.startswith("flyball_gpu_"):
                tap.equal(names and [name for name in LABELS if name not in names], [], f"{family} {labels}")
                tap.equal(dict(labels)["source"], "emulated", family)
            tap.equal(value == value and value >= 0, True, f"{family} {value}")


def test_throttling():
    with machine(), node_machine.daemon() as daemon:
        ready(daemon)
        power_machine.emulator("set", "--gpu", "0", "--load-w", "390")
        node_machine.lease(daemon, 150)
        power_machine.emulator("set", "--advance-s", "1")
        until(lambda: (figure(scrape(daemon), "flyball_gpu_throttled_seconds_total", gpu="0", reason="power") or 0) > 0.1, "the cap holds GPU 0 back")
        now = scrape(daemon)
        tap.equal(figure(now, "flyball_gpu_throttled_seconds_total", gpu="1", reason="power"), 0)
        tap.equal(figure(now, "flyball_gpu_throttle_known_seconds_total", gpu="1") > 0, True)
        tap.equal((figure(now, "flyball_gpu_power_limit_watts", gpu="0"), figure(now, "flyball_gpu_power_limit_default_watts", gpu="0")),
                  (150, power_machine.DEFAULT_W))


def test_counters_go_on():
    """Over the daemon's own end, a driver that is loaded anew, and what was drawn meanwhile."""
    with machine():
        with node_machine.daemon() as daemon:
            ready(daemon)
            power_machine.emulator("set", "--gpu", "0", "--load-w", "200", "--advance-s", "4")
            until(lambda: figure(scrape(daemon), "flyball_gpu_energy_joules_total", gpu="0") > 700, "the energy of four seconds")
            until(lambda: (figure(scrape(daemon), "flyball_gpu_idle_seconds_total", gpu="1") or 0) > 0.2, "idle seconds")
            before = scrape(daemon)
            tap.equal(daemon.stop(), 0, "".join(daemon.talk))
        at_end = shown()
        power_machine.emulator("set", "--advance-s", "6")
        slept_j = shown()[0]["counter_j"] - at_end[0]["counter_j"]
        with node_machine.daemon() as daemon:
            ready(daemon)
            after = scrape(daemon)
            grown_j = figure(after, "flyball_gpu_energy_joules_total", gpu="0") - figure(before, "flyball_gpu_energy_joules_total", gpu="0")
            tap.equal(abs(grown_j - slept_j) < 2e-3, True, f"{grown_j} J, and drawn were {slept_j}")
            tap.equal(abs(figure(after, "flyball_gpu_energy_unobserved_joules_total", gpu="0") - slept_j) < 2e-3, True, str(slept_j))
            for family in ("flyball_gpu_idle_seconds_total", "flyball_gpu_idle_energy_joules_total", "flyball_gpu_throttle_known_seconds_total"):
                tap.equal(figure(after, family, gpu="1") >= figure(before, family, gpu="1") - 0.001, True, family)
            power_machine.emulator("set", "--gpu", "0", "--reset-counter")
            power_machine.emulator("set", "--advance-s", "2")
            anew_j = shown()[0]["counter_j"]
            total_j = figure(after, "flyball_gpu_energy_joules_total", gpu="0") + anew_j
            until(lambda: abs(figure(scrape(daemon), "flyball_gpu_energy_joules_total", gpu="0") - total_j) < 3e-3,
                  f"{total_j} J, {anew_j} of them by the new counter")
            tap.equal(figure(scrape(daemon), "flyball_gpu_energy_resets_total", gpu="0"), 1)


def test_processors_and_memory():
    with machine():
        cpu_meters(5_000_000, 1_000_000)
        with node_machine.daemon() as daemon:
            ready(daemon)
            labels = {"package": "0", "source": "measured"}
            until(lambda: figure(scrape(daemon), "flyball_dram_energy_joules_total", **labels) is not None, "the memory's meter")
            cpu_meters(65_000_000, 4_500_000)
            comes(daemon, "flyball_cpu_energy_joules_total", 60, **labels)
            comes(daemon, "flyball_dram_energy_joules_total", 3.5, **labels)
            own_j = figure(scrape(daemon), "flyball_daemon_energy_joules_total", source="estimated")
            cpu_meters(265_000_000, 4_500_000)
            until(lambda: figure(scrape(daemon), "flyball_daemon_energy_joules_total") > own_j, "joules of the daemon's own")
            tap.equal(figure(scrape(daemon), "flyball_daemon_energy_joules_total") < 130, True, "a small part of the package's")


def test_absent_without_a_meter():
    with machine(), node_machine.daemon() as daemon:
        ready(daemon)
        families = {family for family, _ in scrape(daemon)}
        absent = [name for name in families if name.startswith(("flyball_cpu_", "flyball_dram_", "flyball_daemon_"))]
        tap.equal(absent, [])
        for name in ("process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"):
            tap.equal(name in families, True, name)
        power_machine.emulator("set", "--gpu", "1", "--lost")
        comes(daemon, "flyball_gpu_up", 0, gpu="1")
        now = scrape(daemon)
        tap.equal((figure(now, "flyball_gpu_power_watts", gpu="1"), figure(now, "flyball_gpu_temperature_celsius", gpu="1")), (None, None))
        tap.equal(figure(now, "flyball_gpu_energy_joules_total", gpu="1") >= 0, True, "totals stay")


def test_leases():
    with machine(), node_machine.daemon() as daemon:
        ready(daemon)
        made = node_machine.lease(daemon, 250)
        tap.equal(daemon.ask("POST", "/v1/leases", {"gpus": ["0"], "power_limit_w": 200})[0], 409)
        tap.equal(daemon.ask("POST", "/v1/leases", {"gpus": ["0"]})[0], 400)
        now = scrape(daemon)
        tap.equal([figure(now, name, **labels) for name, labels in (
            ("flyball_leases", {}), ("flyball_leases_granted_total", {}), ("flyball_leases_refused_total", {"reason": "conflict"}),
            ("flyball_leases_refused_total", {"reason": "request"}), ("flyball_gpu_leases", {"gpu": "0"}), ("flyball_gpu_turned", {"gpu": "0"}),
            ("flyball_gpu_turns_total", {"gpu": "0", "outcome": "done"}), ("flyball_gpu_stuck", {"gpu": "0"}))], [1, 1, 1, 1, 1, 1, 1, 0])
        tap.equal(daemon.ask("DELETE", f"/v1/leases/{made['id']}")[0], 200)
        now = scrape(daemon)
        tap.equal([figure(now, name, **labels) for name, labels in (
            ("flyball_leases", {}), ("flyball_leases_ended_total", {"reason": "given_back"}), ("flyball_gpu_turned", {"gpu": "0"}),
            ("flyball_gpu_restores_total", {"gpu": "0", "outcome": "done"}))], [0, 1, 0, 1])
        node_machine.lease(daemon, 260)
        power_machine.emulator("set", "--gpu", "0", "--limit-w", "300")
        comes(daemon, "flyball_leases_ended_total", 1, reason="foreign")
        comes(daemon, "flyball_gpu_foreign_changes_total", 1, gpu="0")
        tap.equal(power_machine.limits()[0], 300, "the other program's value stays")


def test_stuck():
    faults, none = power_machine.HOME / "faults", power_machine.HOME / "no-faults"
    faults.write_text("gpu 0 call nvmlDeviceSetPowerManagementLimit return UNKNOWN\n")
    none.write_text("")
    with machine(), node_machine.daemon() as daemon:
        ready(daemon)
        made = node_machine.lease(daemon, 250)
        power_machine.emulator("set", "--faults", faults)
        daemon.ask("DELETE", f"/v1/leases/{made['id']}")
        comes(daemon, "flyball_gpu_stuck", 1, gpu="0")
        now = scrape(daemon)
        tap.equal((figure(now, "flyball_gpu_stuck", gpu="1"), figure(now, "flyball_gpu_leases", gpu="0")), (0, 0))
        tap.equal(figure(now, "flyball_gpu_restores_total", gpu="0", outcome="failed") >= 1, True)
        power_machine.emulator("set", "--faults", none)
        comes(daemon, "flyball_gpu_stuck", 0, gpu="0")
        tap.equal(power_machine.limits()[0], power_machine.DEFAULT_W)


def test_promtool():
    if shutil.which("promtool") is None:
        raise tap.Skip("promtool is not installed (Debian: prometheus)")
    with machine():
        cpu_meters(5_000_000, 1_000_000)
        with node_machine.daemon() as daemon:
            ready(daemon)
            until(lambda: figure(scrape(daemon), "flyball_dram_energy_joules_total") is not None, "the memory's meter")
            text = text_of(daemon)
            result = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=tap.PATIENCE_S, check=False)
            tap.equal((result.returncode, result.stdout + result.stderr), (0, ""), text)


tap.main(globals())
