# SPDX-License-Identifier: Apache-2.0
"""The driver's life under `flyballd`: upgraded, reset, lost, late, turned by other programs; and the daemon's own death.

usage: flyballd_driver.py FLYBALL
"""
import contextlib
import os
import pathlib
import shutil
import signal
import urllib.request

import node_machine
import power_machine
import serve_machine
import tap

DEFAULT_W = power_machine.DEFAULT_W
LIBRARY = power_machine.HOME / "driver" / "libnvidia-ml.so.1"


def driver_at_its_own_place():
    return {"devices": {"nvml": LIBRARY}}


def gpus(daemon):
    return daemon.ask("GET", "/v1/gpus")[2]["gpus"]


def until_answers(daemon, count=2):
    def look():
        found = gpus(daemon)
        return found if len(found) == count and all(gpu["answers"] for gpu in found) else None
    return serve_machine.until(look, f"{count} GPUs answer")


def guards():
    """Guards of this machine's sessions."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_text().split("\0")
            if os.path.basename(words[0]) == "flyball-guard" and str(power_machine.KNOBS) in words:
                found.append(int(path.parent.name))
    return found


def has_open(daemon, path):
    return str(path) in pathlib.Path(f"/proc/{daemon.process.pid}/maps").read_text()


def faults(text):
    path = power_machine.HOME / "faults"
    path.write_text(text)
    power_machine.emulator("set", "--faults", path)


def command(word):
    return node_machine.run(word, f"--config={node_machine.CONFIG}")


def test_upgrade():
    """Once `release` has returned the daemon uses nothing of the driver, and its guards end; `resume` opens what lies there then."""
    if os.geteuid() != 0:
        raise tap.Skip("root alone releases")
    LIBRARY.parent.mkdir(exist_ok=True)
    shutil.copy(power_machine.DRIVER, LIBRARY)
    with power_machine.machine(), node_machine.daemon(settings=driver_at_its_own_place()) as daemon:
        until_answers(daemon)
        node_machine.lease(daemon, 240, ["0", "1"])
        tap.equal((len(guards()) > 0, has_open(daemon, LIBRARY)), (True, True))
        result = command("release")
        tap.equal((result.returncode, result.stderr), (0, ""))
        tap.equal((power_machine.limits(), has_open(daemon, LIBRARY)), ([DEFAULT_W, DEFAULT_W], False))
        serve_machine.until(lambda: not guards(), "the guards have ended")
        # The next version lacks a function, and for a moment there is none.
        LIBRARY.unlink()
        tap.equal(command("resume").returncode, 0)
        serve_machine.until(lambda: gpus(daemon)[0]["why"], "the driver is missing")
        power_machine.emulator("library", "--output", LIBRARY.parent, "--without", "nvmlDeviceGetTotalEnergyConsumption")
        until_answers(daemon)
        tap.equal(gpus(daemon)[0]["figures"]["power_limit_w"], DEFAULT_W)
        node_machine.lease(daemon, 230)
        tap.equal(power_machine.limits(), [230, DEFAULT_W])
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))
    shutil.rmtree(LIBRARY.parent)
    node_machine.clean()


def test_driver_comes_late():
    LIBRARY.parent.mkdir(exist_ok=True)
    with power_machine.machine(), node_machine.daemon(settings=driver_at_its_own_place()) as daemon:
        tap.equal((gpus(daemon), daemon.ask("GET", "/healthz")[0]), ([], 200))
        shutil.copy(power_machine.DRIVER, LIBRARY)
        until_answers(daemon)
        node_machine.lease(daemon, 210, ["1"])
        tap.equal(power_machine.limits(), [DEFAULT_W, 210])
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))
    shutil.rmtree(LIBRARY.parent)
    node_machine.clean()


def test_lost_gpu_comes_back():
    """By itself; the other one is read and leased meanwhile."""
    with power_machine.machine(), node_machine.daemon() as daemon:
        until_answers(daemon)
        node_machine.lease(daemon, 250, ["1"])
        faults("gpu 1 return GPU_IS_LOST\n")
        lost = serve_machine.until(lambda: next((gpu for gpu in gpus(daemon) if not gpu["answers"]), None), "GPU 1 is lost")
        tap.equal((lost["index"], lost["figures"], bool(lost["why"])), (1, None, True))
        first = gpus(daemon)[0]["figures"]["id"]
        serve_machine.until(lambda: gpus(daemon)[0]["figures"]["id"] > first + 3, "GPU 0 is still read")
        made = node_machine.lease(daemon, 260, ["0"])
        tap.equal(daemon.ask("DELETE", f"/v1/leases/{made['id']}")[0], 200)
        # A reset board has its own limit again, which is not ours to change.
        power_machine.emulator("set", "--gpu", "1", "--limit-w", "390")
        faults("# none\n")
        until_answers(daemon)
        serve_machine.until(lambda: daemon.ask("GET", "/v1/leases")[2]["leases"] == [], "the lease of a GPU that was reset has ended")
        tap.equal(power_machine.limits(), [DEFAULT_W, 390])
        made = node_machine.lease(daemon, 220, ["1"])
        tap.equal(power_machine.limits(), [DEFAULT_W, 220])
        tap.equal(daemon.ask("DELETE", f"/v1/leases/{made['id']}")[0], 200)
        tap.equal(power_machine.limits(), [DEFAULT_W, 390])
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))
    (power_machine.HOME / "faults").unlink()
    node_machine.clean()


def test_driver_that_is_unloaded():
    """Every call fails, and later none does."""
    with power_machine.machine(), node_machine.daemon() as daemon:
        until_answers(daemon)
        faults("return DRIVER_NOT_LOADED\n")
        serve_machine.until(lambda: not any(gpu["answers"] for gpu in gpus(daemon)), "no GPU answers")
        status, _, body = daemon.ask("POST", "/v1/leases", {"gpus": ["0"], "power_limit_w": 240})
        tap.equal((status >= 400, "error" in body), (True, True), str(body))
        faults("# none\n")
        until_answers(daemon)
        tap.equal(daemon.ask("GET", "/v1/leases")[2], {"leases": []})
        node_machine.lease(daemon, 240)
        tap.equal(power_machine.limits(), [240, DEFAULT_W])
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))
    (power_machine.HOME / "faults").unlink()
    node_machine.clean()


def test_another_program_wins():
    """What `nvidia-smi -pl` sets stays, however leases, daemon and its next start end; the log says so."""
    with power_machine.machine():
        with node_machine.daemon() as daemon:
            until_answers(daemon)
            node_machine.lease(daemon, 240, ["0", "1"])
            result = tap.run([power_machine.LIBRARIES / "nvidia-smi", "-i", "0", "-pl", "333"], env={**power_machine.CLEAN, "LD_LIBRARY_PATH": str(power_machine.LIBRARIES)})
            tap.equal(result.returncode, 0, result.stdout + result.stderr)
            tap.contains(daemon.said("has ended: another program turned the knob"), "warning")
            serve_machine.until(lambda: power_machine.limits() == [333, DEFAULT_W], "the lease of both GPUs has ended")
            serve_machine.until(lambda: "foreign" in {row["what"] for row in node_machine.audit()}, "the change is in the audit log")
            made = node_machine.lease(daemon, 250)
            tap.equal(daemon.ask("DELETE", f"/v1/leases/{made['id']}")[0], 200)
            tap.equal(power_machine.limits(), [333, DEFAULT_W])
            tap.equal(daemon.stop(), 0, "".join(daemon.talk))
        with node_machine.daemon() as daemon:
            until_answers(daemon)
            tap.equal(daemon.stop(), 0, "".join(daemon.talk))
        tap.equal(power_machine.limits(), [333, DEFAULT_W])
    node_machine.clean()


def test_daemon_is_killed():
    """Its guard puts back, and the next daemon tells which leases were lost."""
    with power_machine.machine():
        with node_machine.daemon() as daemon:
            until_answers(daemon)
            lost = node_machine.lease(daemon, 240)["id"]
            daemon.stop(signal.SIGKILL)
            power_machine.back_within([DEFAULT_W, DEFAULT_W], "the guard has put back")
        with node_machine.daemon() as daemon:
            tap.equal(daemon.ask("GET", "/v1/leases")[2], {"leases": []})
            tap.contains(daemon.said(f"lease {lost} of"), f"process {os.getpid()} of user {os.geteuid()} has ended: it was lost")
        serve_machine.until(lambda: [row["what"] for row in node_machine.audit() if row.get("lease") == lost][-1] == "end", "the end is in the audit log")
        with node_machine.daemon() as daemon:
            tap.equal([line for line in daemon.talk if lost in line], [])
    node_machine.clean()


def test_end_with_a_range_that_shrank():
    """SIGTERM sets the nearest; 'flyballd restore', as systemd calls it afterwards, says what is owed, and later sets it."""
    with power_machine.machine(gpus=1):
        with node_machine.daemon() as daemon:
            until_answers(daemon, 1)
            node_machine.lease(daemon, 240)
            faults("range 100 260\n")
            daemon.stop()
            tap.equal(power_machine.limits(), [260])
            tap.contains("".join(daemon.talk), "is owed what stood before 'flyballd'")
        result = node_machine.run("restore", f"--config={node_machine.CONFIG}")
        tap.equal(result.returncode != 0, True, result.stderr)
        tap.contains(result.stderr, "power limit 400 W, meanwhile 260 W")
        # The next daemon lends the GPU meanwhile, and settles it when it can.
        with node_machine.daemon() as daemon:
            until_answers(daemon, 1)
            daemon.said("is owed what stood before 'flyballd'")

            def is_stuck():
                metrics = urllib.request.urlopen(f"{daemon.url}/metrics", timeout=serve_machine.PATIENCE_S).read().decode()
                return [line.split()[-1] for line in metrics.splitlines() if line.startswith("flyball_gpu_stuck{")] == ["1"]
            power_machine.wait_for(is_stuck, "the figures say so")
            made = node_machine.lease(daemon, 200)
            tap.equal(power_machine.limits(), [200])
            faults("range 100 400\n")
            tap.equal(daemon.ask("DELETE", f"/v1/leases/{made['id']}")[0], 200)
            power_machine.wait_for(lambda: power_machine.limits() == [DEFAULT_W], "it is settled")
            power_machine.wait_for(lambda: power_machine.entries() == [], "nothing is owed")
    (power_machine.HOME / "faults").unlink()
    node_machine.clean()


tap.main(globals())
