# SPDX-License-Identifier: Apache-2.0
"""The public daemon's routes of `flyballd`, over emulated GPUs: a table of the contract that its clients know.

usage: flyballd_public.py FLYBALL
"""
import base64
import contextlib
import hashlib
import hmac
import http.client
import json
import os
import signal
import subprocess
import time

import node_machine
import power_machine
import serve_machine
import tap

SET = "/gpu/set_power_limit?gpu_ids="
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


def ask(daemon, method, target, over_tcp=False, token=None):
    """The status, the headers and the body of an answer."""
    if over_tcp:
        connection = http.client.HTTPConnection(daemon.url.removeprefix("http://"), timeout=serve_machine.PATIENCE_S)
    else:
        connection = daemon.connection()
    connection.request(method, target, headers={} if token is None else {"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), content


def expect(daemon, method, target, status, content, **how):
    found, headers, body = ask(daemon, method, target, **how)
    what = f"{method} {target} {how}: {headers} {body}"
    tap.equal(found, status, what)
    if isinstance(content, bytes):
        tap.equal((body, headers["Content-Type"].split(";")[0]), (content, "text/plain"), what)
    elif isinstance(content, dict):
        tap.equal(json.loads(body), content, what)
    elif body:
        tap.equal(headers["Content-Type"], "application/json", what)
        tap.contains(json.dumps(json.loads(body)), content, what)
    else:
        tap.equal(content, "", what)
    return headers


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
        with power_machine.machine(gpus=1), node_machine.daemon(settings={"server": {"public_groups": groups}}) as daemon:
            tap.equal(ask(daemon, "POST", f"{SET}0&power_limit_mw=250000&block=true")[0], statuses[0], groups)
            tap.equal(ask(daemon, "GET", "/gpu/get_power")[0], statuses[1], groups)
            found = json.loads(ask(daemon, "GET", "/discover")[2])
            tap.equal(",".join(found["enabled_api_groups"]) or "none", groups)


def test_rights():
    """The operator's rules stand above what that daemon allows: without one, nobody but root turns."""
    with power_machine.machine(gpus=1), node_machine.daemon(rules="") as daemon:
        status, _, body = ask(daemon, "POST", f"{SET}0&power_limit_mw=250000&block=true", over_tcp=True)
        tap.equal((status, list(json.loads(body)["errors"])), (403, ["0"]), body)
        tap.equal(ask(daemon, "POST", f"{SET}0&power_limit_mw=250000&block=false", over_tcp=True)[0], 403)
        tap.equal(ask(daemon, "GET", "/gpu/get_power", over_tcp=True)[0], 403)
        tap.equal(power_machine.limits(), [power_machine.DEFAULT_W])


# ---- tokens ----

KEY = b"integration-test-signing-key!!!!"
GOOD = {"sub": "alice", "scopes": ["gpu-control", "gpu-read", "cpu-read"], "exp": 9999999999}


def text64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed(claims, head=None, key=KEY, algorithm=hashlib.sha256):
    parts = ".".join(text64(json.dumps(part).encode()) for part in (head or {"alg": "HS256", "typ": "JWT"}, claims))
    return f"{parts}.{text64(hmac.new(key, parts.encode(), algorithm).digest())}"


BAD_TOKENS = {
    "garbage": "not-a-valid-token",
    "empty": "",
    "expired": signed({**GOOD, "exp": 1000000000}),
    "just past the leeway": signed({**GOOD, "exp": int(time.time()) - 3600}),
    "another key": signed(GOOD, key=b"wrong-key!!!!!!!!!!!!!!!!!!!!!!!!"),
    "no algorithm": signed(GOOD, {"alg": "none"}),
    "no algorithm and no signature": signed(GOOD, {"alg": "none"}).rpartition(".")[0] + ".",
    "another algorithm": signed(GOOD, {"alg": "HS512"}, algorithm=hashlib.sha512),
    "another algorithm in name": signed(GOOD, {"alg": "RS256"}),
    "unknown scopes": signed({**GOOD, "scopes": ["gpu-control", "root"]}),
    "no subject": signed({"scopes": ["gpu-read"]}),
    "cut": signed(GOOD)[:-1],
    "longer": signed(GOOD) + "A",
    "padded": signed(GOOD) + "=",
    "changed": signed({**GOOD, "scopes": ["gpu-read"]}).split(".")[0] + "." + ".".join(signed(GOOD).split(".")[1:2] + signed({**GOOD, "sub": "bob"}).split(".")[2:]),
    "too long": signed({**GOOD, "more": "x" * 4000}),
}
ONE = {scope: signed({"sub": f"only.{scope}", "scopes": [scope]}) for scope in GOOD["scopes"]}
TURN = f"{SET}0&power_limit_mw=250000&block=true"
# What a token of one scope alone gets: scope, method, target, status.
SCOPED = (
    ("gpu-read", "GET", "/gpu/get_power", 200), ("gpu-read", "POST", TURN, 403), ("gpu-read", "GET", "/cpu/get_power", 403),
    ("gpu-read", "POST", "/gpu/reset_locked_clocks?gpu_ids=0&block=true", 403),
    ("cpu-read", "GET", "/gpu/get_power", 403), ("cpu-read", "POST", TURN, 403), ("cpu-read", "GET", "/cpu/get_power", 200),
    ("gpu-control", "GET", "/gpu/get_power", 403), ("gpu-control", "POST", TURN, 200), ("gpu-control", "GET", "/cpu/get_power", 403),
    ("gpu-read", "GET", "/auth/whoami", 200), ("cpu-read", "GET", "/gpu/stream_power", 403), ("gpu-read", "GET", "/cpu/stream_power", 403),
    # On the daemon's own routes, too: over TCP nothing but a token lets anybody in.
    ("gpu-read", "GET", "/v1/gpus", 200), ("gpu-control", "GET", "/v1/gpus", 200), ("cpu-read", "GET", "/v1/gpus", 403),
    ("gpu-read", "GET", "/metrics", 200), ("cpu-read", "GET", "/metrics", 403),
)


def write_key(key=KEY, mode=0o600):
    path = power_machine.HOME / "signing.key"
    path.write_bytes(key)
    path.chmod(mode)
    return path


def test_tokens():
    settings = {"server": {"signing_key": write_key()}, "lease": {"rule": "lower"}}
    with power_machine.machine(), node_machine.daemon(settings=settings, rules="") as daemon:
        for over_tcp in (False, True):
            how = {"over_tcp": over_tcp}
            expect(daemon, "GET", "/discover", 200, '"auth_required": true', **how)
            expect(daemon, "GET", "/time", 200, "timestamp_ms", **how)
            for method, target in (("GET", "/gpu/get_power"), ("GET", "/cpu/get_power"), ("GET", "/auth/whoami"), ("POST", TURN),
                                   ("GET", "/gpu/stream_power"), ("GET", "/gpu/nothing")):
                headers = expect(daemon, method, target, 401, "token", **how)
                tap.equal(headers["WWW-Authenticate"], 'Bearer realm="zeusd"')
            for what, token in BAD_TOKENS.items():
                headers = expect(daemon, "GET", "/gpu/get_power", 401, "token", token=token, **how)
                tap.equal(headers["WWW-Authenticate"], 'Bearer realm="zeusd"', what)
                tap.equal(ask(daemon, "POST", TURN, token=token, **how)[0], 401, what)
            expect(daemon, "GET", "/auth/whoami", 200, GOOD, token=signed(GOOD), **how)
            expect(daemon, "GET", "/auth/whoami", 200, {"sub": "only.cpu-read", "scopes": ["cpu-read"]}, token=ONE["cpu-read"], **how)
            expect(daemon, "POST", TURN, 200, "", token=signed(GOOD), **how)
            expect(daemon, "GET", "/gpu/get_power", 200, "power_mw", token=signed({**GOOD, "exp": int(time.time()) - 5}), **how)
        for scope, method, target, status in SCOPED:
            found, headers, body = ask(daemon, method, target, over_tcp=True, token=ONE[scope])
            tap.equal(found, status, f"{scope} {method} {target}: {body}")
        tap.equal({lease["holder"].split(" with ")[-1] for lease in daemon.ask("GET", "/v1/leases")[2]["leases"]} >=
                  {"the token 'jwt:alice'"}, True)
    tap.equal(KEY in b"".join(line.encode() for line in daemon.talk), False)


def test_spelling():
    with power_machine.machine(gpus=1), node_machine.daemon(settings={"server": {"signing_key": write_key()}}) as daemon:
        for front, status in (("Bearer ", 200), ("bearer ", 401), ("BEARER ", 401), ("Token ", 401), ("", 401)):
            connection = daemon.connection()
            connection.request("GET", "/gpu/get_power", headers={"Authorization": front + signed(GOOD)})
            tap.equal(connection.getresponse().status, status, front)
            connection.close()


def test_disabled_groups_come_first():
    settings = {"server": {"signing_key": write_key(), "public_groups": "cpu-read"}}
    with power_machine.machine(gpus=1), node_machine.daemon(settings=settings) as daemon:
        for token in (None, "not-a-valid-token", signed(GOOD), ONE["cpu-read"]):
            tap.equal(ask(daemon, "GET", "/gpu/get_power", token=token)[0], 404, str(token))


def test_issued():
    key = write_key(os.urandom(32))
    with power_machine.machine(gpus=1), node_machine.daemon(settings={"server": {"signing_key": key}}, rules="") as daemon:
        def issue(*more):
            return subprocess.run([power_machine.FLYBALL, "token", "issue", f"--signing-key={key}", *more], env=power_machine.CLEAN,
                                  capture_output=True, text=True, timeout=60, check=False)
        for expires in ("1h", "7d", "never", "0"):
            made = issue("--user=bob", "--scope=gpu-read,gpu-control", f"--expires={expires}")
            tap.equal(made.returncode, 0, made.stderr)
            status, _, body = ask(daemon, "GET", "/auth/whoami", over_tcp=True, token=made.stdout.strip())
            tap.equal((status, json.loads(body)["scopes"], "exp" in json.loads(body)),
                      (200, ["gpu-control", "gpu-read"], expires not in ("never", "0")), body)
        for words, reason in ((["--user=bob", "--scope=root"], "gpu-control"), (["--scope=gpu-read"], "--user"), (["--user=bob", "--expires=soon"], "90d")):
            made = issue(*words)
            tap.equal(made.returncode, 64, made.stderr)
            tap.contains(made.stderr, reason)
        # Another key ends all tokens, and a bad one changes nothing.
        token = issue("--user=bob").stdout.strip()
        write_key(b"")
        daemon.process.send_signal(signal.SIGHUP)
        daemon.said("is empty")
        tap.equal(ask(daemon, "GET", "/gpu/get_power", token=token)[0], 200)
        write_key(os.urandom(32))
        daemon.process.send_signal(signal.SIGHUP)
        daemon.said("signing key as it is now")
        tap.equal(ask(daemon, "GET", "/gpu/get_power", token=token)[0], 401)
    for key, mode, reason in ((b"", 0o600, "is empty"), (KEY, 0o644, "read or written by others"), (b"x" * 5000, 0o600, "longer")):
        with power_machine.machine(gpus=1):
            node_machine.write_config({"server": {"signing_key": write_key(key, mode)}})
            result = node_machine.run(f"--config={node_machine.CONFIG}")
            tap.equal((result.returncode != 0, reason in result.stderr), (True, True), result.stderr)


def test_tokens_of_the_file():
    """A token of the daemon's own file works for the public routes, too."""
    tokens = power_machine.HOME / "tokens"
    made = {}
    for scope in ("read", "train"):
        made[scope] = subprocess.run([power_machine.FLYBALL, "token", scope, f"--scope={scope}", f"--tokens={tokens}"], env=power_machine.CLEAN,
                                     capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    for key in (None, write_key()):
        with power_machine.machine(gpus=1), node_machine.daemon(settings={"server": {"tokens": tokens, "signing_key": key}}, rules="") as daemon:
            for scope, status in (("read", 403), ("train", 200)):
                tap.equal(ask(daemon, "GET", "/gpu/get_power", over_tcp=True, token=made[scope])[0], 200)
                tap.equal(ask(daemon, "POST", TURN, over_tcp=True, token=made[scope])[0], status, scope)
            tap.equal(ask(daemon, "GET", "/gpu/get_power", over_tcp=True)[0], 403 if key is None else 401)
    tokens.unlink()


# ---- CPUs and streams ----


@contextlib.contextmanager
def processors(energies):
    """A tree of sysfs with RAPL domains: {zone: (name, energy_uj)}."""
    place = power_machine.HOME / "root/sys/class/powercap"
    for zone, (name, energy_uj) in energies.items():
        (place / zone).mkdir(parents=True, exist_ok=True)
        (place / zone / "name").write_text(f"{name}\n")
        (place / zone / "max_energy_range_uj").write_text("262143328850\n")
        (place / zone / "energy_uj").write_text(f"{energy_uj}\n")
    try:
        yield place
    finally:
        for zone in energies:
            for path in (place / zone).iterdir():
                path.unlink()
            (place / zone).rmdir()


CPUS = {"intel-rapl:0": ("package-0", 262143328000), "intel-rapl:0:0": ("dram", 1000), "intel-rapl:1": ("package-1", 5000)}
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


class Stream:
    """The events of a stream."""

    def __init__(self, daemon, target, token=None, over_tcp=False):
        self.connection = (http.client.HTTPConnection(daemon.url.removeprefix("http://"), timeout=serve_machine.PATIENCE_S)
                           if over_tcp else daemon.connection())
        self.connection.request("GET", target, headers={} if token is None else {"Authorization": f"Bearer {token}"})
        self.answer = self.connection.getresponse()
        tap.equal((self.answer.status, self.answer.getheader("Content-Type").split(";")[0], self.answer.getheader("Cache-Control")),
                  (200, "text/event-stream", "no-cache"))

    def next(self):
        line = self.answer.readline().decode()
        tap.equal(self.answer.readline(), b"\n")
        tap.equal(line[:6], "data: ", line)
        return json.loads(line[6:])

    def close(self):
        self.connection.close()


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


# ---- commands in place of the driver ----


def commands(text, mode=0o644):
    path = power_machine.HOME / "overrides.toml"
    path.write_text(text)
    path.chmod(mode)
    return path


def limit_command(before=""):
    """A command that sets limits, and writes down what it was called with."""
    log, path = power_machine.HOME / "overrides.log", power_machine.HOME / "override"
    log.write_text("")
    path.write_text(f"#!/bin/sh\necho \"$*\" >>{log}\n{before}\nexec '{power_machine.EMULATOR}' set --gpu \"$1\" --limit-w \"$2\"\n")
    path.chmod(0o755)
    return log, f"[set_power_limit]\ncommands = [\"'{path}' {{gpu_id}} {{power_limit_w}} {{power_limit_mw}}\"]\n"


def test_overrides():
    log, text = limit_command()
    with power_machine.machine():
        with node_machine.daemon(settings={"lease": {"commands": commands(text)}}) as daemon:
            expect(daemon, "POST", f"{SET}0&power_limit_mw=250000&block=true", 200, "")
            expect(daemon, "POST", "/gpu/set_persistence_mode?gpu_ids=0&enabled=true&block=true", 200, "")  # by the driver
            tap.equal((power_machine.limits(), log.read_text()), ([250, power_machine.DEFAULT_W], "0 250 250000\n"))
            tap.equal(ask(daemon, "POST", f"{SET}0&power_limit_mw=99000&block=true")[0], 400)
        # It goes back by the same way.
        tap.equal((power_machine.limits(), log.read_text().splitlines()[-1]), ([power_machine.DEFAULT_W] * 2, "0 400 400000"))


def test_overrides_that_fail():
    for before, pattern, reason in (("exit 3", "", "failed with status 3"), ("echo NOT supported", "error_pattern = '(?i)not SUPPORTED'\n", "error_pattern")):
        log, text = limit_command(before)
        with power_machine.machine(gpus=1), node_machine.daemon(settings={"lease": {"commands": commands(text + pattern)}}) as daemon:
            expect(daemon, "POST", f"{SET}0&power_limit_mw=250000&block=true", 500, reason)
            expect(daemon, "POST", f"{SET}0&power_limit_mw=240000&block=false", 200, "")
            daemon.said(reason)
            tap.equal(log.read_text().split("\n")[0], "0 250 250000")
    text = "[set_power_limit]\ncommands = ['/nowhere/at-all {gpu_id}']\n"
    with power_machine.machine(gpus=1), node_machine.daemon(settings={"lease": {"commands": commands(text)}}) as daemon:
        expect(daemon, "POST", f"{SET}0&power_limit_mw=250000&block=true", 500, "cannot be run")


def test_overrides_that_are_refused():
    good = "[set_power_limit]\ncommands = ['true']\n"
    for text, mode, reason in ((good + "timeout_s = 0\n", 0o644, "timeout_s"), (good + "more = 1\n", 0o644, "unknown key"),
                               ("[set_everything]\ncommands = ['true']\n", 0o644, "set_everything"),
                               ("[set_power_limit]\ncommands = []\n", 0o644, "commands"),
                               ("[set_power_limit]\ncommands = ['true {enabled}']\n", 0o644, "enabled"), (good, 0o666, "written by everybody")):
        with power_machine.machine(gpus=1):
            node_machine.write_config({"lease": {"commands": commands(text, mode)}})
            result = node_machine.run(f"--config={node_machine.CONFIG}")
            tap.equal((result.returncode != 0, reason in result.stderr), (True, True), f"{text}: {result.stderr}")
    with power_machine.machine(gpus=1), node_machine.daemon(settings={"lease": {"commands": commands(good, 0o664)}}) as daemon:
        daemon.said("the group of")


tap.main(globals())
