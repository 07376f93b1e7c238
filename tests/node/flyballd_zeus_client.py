# SPDX-License-Identifier: Apache-2.0
"""The public daemon's own Python client, as it is installed, against `flyballd`; skipped where there is none.

usage: flyballd_zeus_client.py FLYBALL
"""
import json
import os
import subprocess
import sys

import node_machine
import power_machine
import tap
from public_machine import CPUS, GOOD, processors, signed, write_key

FOUND = "import zeus.utils.zeusd, httpx"
# All that the client has for the daemon of version 0.5; what it sees goes to standard output.
EVERYTHING = """
import json, os, sys
from zeus.utils.zeusd import ZeusdClient, require_capabilities
from zeus.device.exception import ZeusdError

client = ZeusdClient()
require_capabilities(client, read_gpu=True, control_gpu=True, read_cpu=True, gpu_ids=[0, 1], cpu_ids=[0, 1])
seen = {"gpus": [gpu.pci_address for gpu in client.gpus], "energy_available": [gpu.cumulative_energy_available for gpu in client.gpus],
        "dram": client.dram_available, "auth": client.auth_required, "scopes": sorted(client.granted_scopes), "error": client.auth_error}
seen["constraints"] = client.get_power_limit_constraints()
before = client.get_gpu_energy([0, 1])
client.set_power_limit([0, 1], 250000)
seen["limits"] = [client.get_power_limit(), client.get_power_limit([1])]
client.set_persistence_mode([0], True)
seen["persistence"] = client.get_persistence_mode()
client.set_gpu_locked_clocks([0], 900, 1200)
client.reset_gpu_locked_clocks([0])
client.set_mem_locked_clocks([0], 1593, 1593)
client.reset_mem_locked_clocks([0])
client.set_gpu_locked_clocks([0, 1], 210, 1200, block=False)
client.reset_locked_clocks([0, 1])
try:
    client.set_power_limit([0], 1000)
except ZeusdError as error:
    seen["refused"] = str(error)
client.set_power_limit([0], 1000, block=False)
seen["power"] = sorted(client.get_gpu_power().power_mw) + sorted(client.get_gpu_power([1]).power_mw)
seen["time"] = client.get_time()
seen["cpu_energy"] = {number: (result.cpu_energy_uj, result.dram_energy_uj) for number, result in client.get_cpu_energy([0, 1]).items()}
seen["cpu_power"] = {number: (power.cpu_mw, power.dram_mw) for number, power in client.get_cpu_power().power_mw.items()}
with client.make_client() as http, http.stream("GET", client.url("/gpu/stream_power"), timeout=None) as response:
    seen["stream"] = next(line for line in response.iter_lines() if line.startswith("data: "))
after = client.get_gpu_energy([0, 1])
seen["rises"] = all(after[number] >= before[number] for number in before)
print(json.dumps(seen), flush=True)
sys.stdin.readline()
"""


def need_client():
    """The clients' package may be installed anywhere, or nowhere."""
    found = subprocess.run([sys.executable, "-c", FOUND], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise tap.Skip(f"the public project's Python client is not installed: {found.stderr.strip().splitlines()[-1]}")


def see(environment):
    """What the client sees, and the limits while it lives."""
    process = subprocess.Popen([sys.executable, "-c", EVERYTHING], env={**power_machine.CLEAN, **environment}, text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    line = process.stdout.readline()
    limits = power_machine.limits()
    _, talk = process.communicate("\n", timeout=tap.PATIENCE_S)
    tap.equal(process.returncode, 0, talk)
    return json.loads(line), limits


def check(seen, limits, with_token):
    tap.equal(limits, [250, 250])
    tap.equal((seen["gpus"], seen["energy_available"], seen["dram"]), (["0000:07:00.0", "0000:0F:00.0"], [True, True], [True, False]))
    tap.equal((seen["auth"], seen["scopes"], seen["error"]), (with_token, sorted(GOOD["scopes"]) if with_token else [], None))
    tap.equal(seen["constraints"], {"0": [100000, 400000], "1": [100000, 400000]})
    tap.equal((seen["limits"], seen["persistence"]), ([{"0": 250000, "1": 250000}, {"1": 250000}], {"0": True, "1": False}))
    tap.equal((seen["power"], seen["rises"]), ([0, 1, 1], True))
    tap.contains(seen["refused"], "outside the range of GPU 0")
    tap.equal((sorted(seen["cpu_energy"]), seen["cpu_energy"]["1"][1], seen["cpu_power"]), (["0", "1"], None, {"0": [0, 0], "1": [0, None]}))
    tap.equal(sorted(json.loads(seen["stream"][6:])), ["gpu_id", "power_mw", "timestamp_ms"])


def test_by_socket():
    need_client()
    with power_machine.machine(), processors(CPUS), node_machine.daemon() as daemon:
        check(*see({"ZEUSD_SOCK_PATH": str(node_machine.SOCKET)}), with_token=False)
        # Its leases ended with it.
        power_machine.wait_for(lambda: power_machine.limits() == [power_machine.DEFAULT_W] * 2, "all is put back")
        daemon.said("for which no client waited")


def test_with_a_token():
    need_client()
    with power_machine.machine(), processors(CPUS), node_machine.daemon(settings={"server": {"signing_key": write_key()}}, rules="") as daemon:
        token = {"ZEUSD_TOKEN": signed(GOOD)}
        check(*see({"ZEUSD_SOCK_PATH": str(node_machine.SOCKET), **token}), with_token=True)
        power_machine.wait_for(lambda: power_machine.limits() == [power_machine.DEFAULT_W] * 2, "all is put back")
        check(*see({"ZEUSD_HOST_PORT": daemon.url.removeprefix("http://"), **token}), with_token=True)
        # Over TCP nobody knows when a client ends; the lease lasts as long as the daemon.
        tap.equal(power_machine.limits(), [250, 250])
    tap.equal(os.path.exists(node_machine.SOCKET), False)


tap.main(globals())
