# SPDX-License-Identifier: Apache-2.0
"""The public daemon's routes of `flyballd`, over emulated GPUs: a table of the contract that its clients know.

usage: flyballd_public.py FLYBALL
"""
import json
import time

import node_machine
import power_machine
import tap
from public_machine import CPUS, ONE, SET, Stream, ask, expect, processors, write_key

LIMITS = [power_machine.DEFAULT_W * 1000, 250000]

# Each row is a request, in order: method, target, status, and what the answer is or has in it.
ANYWHERE = (
    ("GET", "/discover", 200, '"auth_required": false'),
    ("GET", "/time", 200, "timestamp_ms"),
    ("GET", "/auth/whoami", 404, "error"),
    ("GET", "/auth/nothing", 404, "error"),
    ("GET", "/gpu/get_power", 200, '"power_mw": {"0": '),
    ("GET", "/gpu/get_power?gpu_ids=1", 200, '"power_mw": {"1": '),
    ("GET", "/gpu/get_cumulative_energy?gpu_ids=1,%200%20,1", 200, '{"0": {"energy_mj": '),
    ("GET", "/gpu/get_power_limit", 200, {"0": {"power_limit_mw": LIMITS[0]}, "1": {"power_limit_mw": LIMITS[0]}}),
    ("GET", "/gpu/get_power_limit_constraints?gpu_ids=0", 200,
     {"0": {"min_power_limit_mw": 100000, "max_power_limit_mw": 400000}}),
    ("GET", "/gpu/get_persistence_mode", 200, {"0": {"enabled": False}, "1": {"enabled": False}}),
    ("HEAD", "/gpu/get_power", 200, ""),
    ("POST", "/gpu/get_power", 405, "it takes GET"),
    ("GET", "/gpu/set_power_limit", 405, "it takes POST"),
    ("DELETE", "/discover", 405, "it takes GET"),
    ("GET", "/gpu/nothing", 404, "error"),
    ("GET", "/cpu/nothing", 404, "error"),
    # Numbers of GPUs.
    ("GET", "/gpu/get_power?gpu_ids=", 400, "error"),
    ("GET", "/gpu/get_power?gpu_ids=0,,1", 400, "error"),
    ("GET", "/gpu/get_power?gpu_ids=zero", 400, "invalid"),
    ("GET", "/gpu/get_power?gpu_ids=-1", 400, "invalid"),
    ("GET", "/gpu/get_power?gpu_ids=0,5", 400, {"errors": {"5": "there is no GPU 5"}}),
    ("GET", "/gpu/get_power?gpus=0", 400, "unknown field"),
    ("GET", "/discover?gpu_ids=0", 400, "unknown field"),
    ("GET", "/time?now=1", 400, "unknown field"),
)
TURNS = (
    (f"{SET}0&power_limit_mw=250000&block=true", 200, ""),
    (f"{SET}0&power_limit_mw=99000&block=true", 400, '{"errors": {"0": '),
    (f"{SET}0,1&power_limit_mw=400001&block=true", 400, '"1": '),
    (f"{SET}0&power_limit_mw=10000&block=false", 200, ""),
    (f"{SET}0&power_limit_mw=0&block=true", 400, '{"errors": {"0": '),
    (f"{SET}0&power_limit_mw=4294967296&block=true", 400, "invalid"),
    (f"{SET}0&power_limit_mw=-1&block=true", 400, "invalid"),
    (f"{SET}0&power_limit_mw=abc&block=true", 400, "invalid"),
    (f"{SET}0&power_limit_mw=250000", 400, "missing field 'block'"),
    (f"{SET}0&block=true", 400, "missing field 'power_limit_mw'"),
    ("/gpu/set_power_limit?power_limit_mw=250000&block=true", 400, "missing field 'gpu_ids'"),
    ("/gpu/set_power_limit", 400, "missing field"),
    (f"{SET}0&power_limit_mw=250000&block=True", 400, "invalid"),
    (f"{SET}0&power_limit_mw=250000&block=1", 400, "invalid"),
    (f"{SET}0&power_limit_wwww=250000&block=true", 400, "unknown field"),
    (f"{SET}5&power_limit_mw=250000&block=true", 400, b"there is no GPU 5"),
    (f"{SET}5&power_limit_mw=250000&block=false", 400, b"there is no GPU 5"),
    (f"{SET}&power_limit_mw=250000&block=true", 400, "error"),
    ("/gpu/set_persistence_mode?gpu_ids=0&enabled=true&block=true", 200, ""),
    ("/gpu/set_persistence_mode?gpu_ids=0&disabled=false&block=true", 400, "unknown field"),
    ("/gpu/set_persistence_mode?gpu_ids=0&enabled=1&block=true", 400, "invalid"),
    ("/gpu/set_persistence_mode?gpu_ids=5&enabled=true&block=true", 400, b"there is no GPU 5"),
    ("/gpu/set_gpu_locked_clocks?gpu_ids=0&min_clock_mhz=0&max_clock_mhz=1200&block=true", 200, ""),
    ("/gpu/set_gpu_locked_clocks?gpu_ids=0&min_clock_mhz=1200&max_clock_mhz=1000&block=true", 400, "errors"),
    ("/gpu/set_gpu_locked_clocks?gpu_ids=0&min_clock_mhz=0&max_clock_khz=1&block=true", 400, "unknown field"),
    ("/gpu/set_gpu_locked_clocks?gpu_ids=0&min_clock_mhz=0&max_clock_mhz=abc&block=true", 400, "invalid"),
    ("/gpu/reset_gpu_locked_clocks?gpu_ids=0&block=true", 200, ""),
    ("/gpu/reset_gpu_locked_clocks?gpu_ids=0&lego=false", 400, "unknown field"),
    ("/gpu/reset_gpu_locked_clocks?gpu_ids=5&block=false", 400, b"there is no GPU 5"),
    ("/gpu/set_gpu_locked_clocks?gpu_ids=0&min_clock_mhz=900&max_clock_mhz=1200&block=true", 200, ""),
    ("/gpu/set_gpu_locked_clocks?gpu_ids=0&min_clock_mhz=0&max_clock_mhz=0&block=true", 400, "errors"),
    ("/gpu/set_mem_locked_clocks?gpu_ids=0&min_clock_mhz=1215&max_clock_mhz=1593&block=true", 200, ""),
    ("/gpu/set_mem_locked_clocks?gpu_ids=0&min_clock_mhz=1215&max_clock_mhz=1215&block=false", 200, ""),
    ("/gpu/set_mem_locked_clocks?gpu_ids=0&min_clock_mhz=1000&block=true", 400, "missing field 'max_clock_mhz'"),
    ("/gpu/reset_mem_locked_clocks?gpu_ids=0&block=true", 200, ""),
    ("/gpu/reset_mem_locked_clocks?block=true", 400, "missing field 'gpu_ids'"),
    ("/gpu/reset_locked_clocks?gpu_ids=0,1&block=true", 200, ""),
    ("/gpu/reset_locked_clocks?gpu_ids=0,1", 400, "missing field 'block'"),
)


def test_contract():
    with power_machine.machine():
        with node_machine.daemon(settings={"rights": {"open": "yes"}}) as daemon:
            the_contract(daemon)
        tap.equal(power_machine.limits(), [power_machine.DEFAULT_W] * 2)


def the_contract(daemon):
    for over_tcp in (False, True):
        for method, target, status, content in ANYWHERE:
            expect(daemon, method, target, status, content, over_tcp=over_tcp)
    for target, status, content in TURNS:
        expect(daemon, "POST", target, status, content)
    # What a client has set, it reads back at once; its lease ends with its process alone.
    expect(daemon, "GET", "/gpu/get_power_limit?gpu_ids=0", 200, {"0": {"power_limit_mw": 250000}})
    expect(daemon, "GET", "/gpu/get_persistence_mode?gpu_ids=0", 200, {"0": {"enabled": True}})
    tap.equal(power_machine.limits(), [250, power_machine.DEFAULT_W])
    daemon.said("a command for GPU 0, for which no client waited, failed: a power limit of 10 W")


def test_what_is_found():
    with power_machine.machine(), node_machine.daemon() as daemon:
        found = json.loads(ask(daemon, "GET", "/discover")[2])
        tap.equal(found["gpus"], [{"id": number, "name": "Emulated A100-SXM4-80GB (Flyball)", "pci_address": address,
                                   "cumulative_energy_available": True} for number, address in enumerate(("0000:07:00.0", "0000:0F:00.0"))])
        tap.equal(found["enabled_api_groups"], ["gpu-control", "gpu-read", "cpu-read"])


def test_in_order():
    """Commands that nobody waits for are carried out in their order, and before one that is waited for."""
    with power_machine.machine(), node_machine.daemon() as daemon:
        for limit in (*range(110, 150, 4), 149):
            tap.equal(ask(daemon, "POST", f"{SET}0&power_limit_mw={limit}000&block=false")[0], 200)
        tap.equal(ask(daemon, "POST", f"{SET}0&power_limit_mw=350000&block=true")[0], 200)
        turned = [int(line["to"]) for line in node_machine.audit() if line["what"] == "turn"][-12:]
        tap.equal(turned, [*(limit * 1000 for limit in (*range(110, 150, 4), 149)), 350000])


def test_clocks():
    with power_machine.machine(gpus=1), node_machine.daemon() as daemon:
        for target in ("set_gpu_locked_clocks?min_clock_mhz=900&max_clock_mhz=1200", "set_mem_locked_clocks?min_clock_mhz=1593&max_clock_mhz=1593",
                       "set_gpu_locked_clocks?min_clock_mhz=0&max_clock_mhz=1100", "reset_mem_locked_clocks?", "reset_locked_clocks?"):
            expect(daemon, "POST", f"/gpu/{target}&gpu_ids=0&block=true", 200, "")
        turned = [(line["quantity"], line["to"]) for line in node_machine.audit() if line["what"] == "turn"]
        for change in (("clock_floor_mhz", 900), ("clock_ceiling_mhz", 1200), ("memory_clock_floor_mhz", 1593), ("clock_ceiling_mhz", 1100)):
            tap.equal(change in turned, True, str(turned))


def test_groups():
    for groups, statuses in (("cpu-read", (404, 404)), ("gpu-read,cpu-read", (404, 200)), ("none", (404, 404)), ("gpu-control", (200, 404))):
        with power_machine.machine(gpus=1), processors({"intel-rapl:0": ("package-0", 5)}), \
                node_machine.daemon(settings={"server": {"public_groups": groups}}) as daemon:
            tap.equal(ask(daemon, "POST", f"{SET}0&power_limit_mw=250000&block=true")[0], statuses[0], groups)
            tap.equal(ask(daemon, "GET", "/gpu/get_power")[0], statuses[1], groups)
            found = json.loads(ask(daemon, "GET", "/discover")[2])
            tap.equal(",".join(found["enabled_api_groups"]) or "none", groups)
            tap.equal((len(found["gpus"]), len(found["cpus"])), (int("gpu-" in groups), int("cpu-" in groups)), groups)


def test_rights():
    """The operator's rules stand above what that daemon allows: without one, nobody but root turns."""
    with power_machine.machine(gpus=1), node_machine.daemon(rules="") as daemon:
        status, _, body = ask(daemon, "POST", f"{SET}0&power_limit_mw=250000&block=true", over_tcp=True)
        tap.equal((status, list(json.loads(body)["errors"])), (403, ["0"]), body)
        tap.equal(ask(daemon, "POST", f"{SET}0&power_limit_mw=250000&block=false", over_tcp=True)[0], 403)
        tap.equal(ask(daemon, "GET", "/gpu/get_power", over_tcp=True)[0], 403)
        tap.equal(power_machine.limits(), [power_machine.DEFAULT_W])


CPU_CONTRACT = (
    ("/cpu/get_cumulative_energy", 400, "missing field 'cpu'"),
    ("/cpu/get_cumulative_energy?cpu=true", 400, "missing field 'dram'"),
    ("/cpu/get_cumulative_energy?cpu=yes&dram=true", 400, "invalid"),
    ("/cpu/get_cumulative_energy?cpu_ids=7&cpu=true&dram=true", 400, {"errors": {"7": "there is no CPU 7"}}),
    ("/cpu/get_cumulative_energy?cpu_ids=&cpu=true&dram=true", 400, "error"),
    ("/cpu/get_cumulative_energy?gpu_ids=0&cpu=true&dram=true", 400, "unknown field"),
    ("/cpu/get_power?cpu_ids=0,9", 400, {"errors": {"9": "there is no CPU 9"}}),
    ("/cpu/get_power?cpu=true", 400, "unknown field"),
    ("/cpu/stream_power?cpu_ids=9", 400, {"errors": {"9": "there is no CPU 9"}}),
    ("/cpu/stream_power?cpu_ids=x", 400, "invalid"),
)


def energies_of(daemon, query="cpu=true&dram=true"):
    return json.loads(ask(daemon, "GET", f"/cpu/get_cumulative_energy?{query}")[2])


def test_cpus():
    with power_machine.machine(gpus=1), processors(CPUS) as place, node_machine.daemon() as daemon:
        for target, status, content in CPU_CONTRACT:
            expect(daemon, "GET", target, status, content)
        tap.equal(json.loads(ask(daemon, "GET", "/discover")[2])["cpus"],
                  [{"id": 0, "dram_available": True}, {"id": 1, "dram_available": False}])
        before = energies_of(daemon)
        tap.equal((before["1"]["dram_energy_uj"], sorted(before)), (None, ["0", "1"]))
        # The counter of package 0 wraps; what a client sees goes on.
        (place / "intel-rapl:0/energy_uj").write_text("150000\n")
        (place / "intel-rapl:0:0/energy_uj").write_text("41000\n")
        power_machine.wait_for(lambda: energies_of(daemon)["0"]["cpu_energy_uj"] > before["0"]["cpu_energy_uj"] and
                               energies_of(daemon)["0"]["dram_energy_uj"] > before["0"]["dram_energy_uj"], "more energy")
        after = energies_of(daemon)
        tap.equal(after["0"]["dram_energy_uj"] - before["0"]["dram_energy_uj"], 40000)
        tap.equal(150000 <= after["0"]["cpu_energy_uj"] - before["0"]["cpu_energy_uj"] <= 152000, True, str((before, after)))
        tap.equal(energies_of(daemon, "cpu=false&dram=true&cpu_ids=0")["0"]["cpu_energy_uj"], None)
        tap.equal(energies_of(daemon, "cpu=true&dram=false&cpu_ids=0")["0"]["dram_energy_uj"], None)
        power = json.loads(ask(daemon, "GET", "/cpu/get_power")[2])
        tap.equal((sorted(power["power_mw"]), power["power_mw"]["1"]["dram_mw"]), (["0", "1"], None), str(power))
        tap.equal(abs(power["timestamp_ms"] / 1000 - time.time()) < 3600, True)
    with power_machine.machine(gpus=1), processors(CPUS), node_machine.daemon(settings={"rights": {"closed": "yes"}}, rules="") as daemon:
        expect(daemon, "GET", "/cpu/get_power", 403, "CPUs are not shown", over_tcp=True)


def test_streams():
    with power_machine.machine(), processors(CPUS) as place, node_machine.daemon(settings={"server": {"signing_key": write_key()}}) as daemon:
        for over_tcp in (False, True):
            for wanted, numbers in (("", {0, 1}), ("?gpu_ids=1", {1})):
                stream = Stream(daemon, f"/gpu/stream_power{wanted}", ONE["gpu-read"], over_tcp)
                events = [stream.next() for _ in range(6)]
                stream.close()
                tap.equal({event["gpu_id"] for event in events} <= numbers, True, str(events))
                tap.equal(sorted(events[0]), ["gpu_id", "power_mw", "timestamp_ms"])
                for number in numbers:  # each differs from the one before
                    powers = [event["power_mw"] for event in events if event["gpu_id"] == number]
                    tap.equal(all(one != other for one, other in zip(powers, powers[1:])), True, str(events))
        stream = Stream(daemon, "/cpu/stream_power?cpu_ids=0", ONE["cpu-read"])
        tap.equal(sorted(stream.next()), ["cpu_id", "cpu_mw", "dram_mw", "timestamp_ms"])
        (place / "intel-rapl:0/energy_uj").write_text("900000000\n")
        while (event := stream.next())["cpu_mw"] == 0:
            pass
        tap.equal((event["cpu_id"], event["cpu_mw"] > 0), (0, True), str(event))
        stream.close()


tap.main(globals())
