# SPDX-License-Identifier: Apache-2.0
"""`flyballd` from outside, over emulated GPUs: its configuration, its routes, leases and their ends.

usage: flyballd_basics.py FLYBALL
"""
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import node_machine
import power_machine
import serve_machine
import tap

DEFAULT_W = power_machine.DEFAULT_W
# A program that holds a connection: it asks for what stands on its command line, and stays.
HOLDER = """
import json, os, socket, sys, time
sock = socket.socket(socket.AF_UNIX)
sock.connect(sys.argv[1])
body = sys.argv[2].encode()
sock.sendall(b"POST /v1/leases HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
print(sock.recv(65536).split()[1].decode(), flush=True)
if len(sys.argv) > 3 and os.fork() == 0:
    time.sleep(600)
time.sleep(600)
"""


def wait_for(condition, what):
    return power_machine.wait_for(condition, what)


def hold(limit_w, *more, **members):
    """A process that has leased GPU 0."""
    body = json.dumps({"gpus": ["0"], "power_limit_w": limit_w, **members})
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(node_machine.SOCKET), body, *more], stdout=subprocess.PIPE,
                               text=True, start_new_session=True)
    tap.equal(process.stdout.readline().strip(), "200")
    return process


def kill_group(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()


def refused(words, text, status=78):
    node_machine.CONFIG.write_text(text)
    node_machine.CONFIG.chmod(0o600)
    for arguments in (["--check-config"], []):
        result = node_machine.run(f"--config={node_machine.CONFIG}", *arguments)
        tap.equal(result.returncode, status, f"{text}: {result.stderr}")
        tap.contains(result.stderr, words, text)


def test_words():
    help_text = node_machine.run("--help").stdout
    for word in ("restore", "release", "--check-config", "--poll", "--listen", "--state"):
        tap.contains(help_text, word)
    tap.contains(node_machine.run("--version").stdout, "flyballd ")
    for words, reason in ((["relase"], "did you mean 'release'?"), (["--pol=1"], "did you mean '--poll'?"), (["--poll"], "takes a value")):
        result = node_machine.run(*words)
        tap.equal(result.returncode, 64, result.stderr)
        tap.contains(result.stderr, reason)
    result = node_machine.run("--check-config", "--poll=fast")
    tap.equal(result.returncode, 64, result.stderr)
    tap.contains(result.stderr, "bad value 'fast' of '--poll': expected a number from 0.01 to 60")


def test_configuration():
    path = node_machine.CONFIG
    refused(f"{path}:2: bad value '0' of 'watch.poll': expected a number from 0.01 to 60", "[watch]\npoll = 0\n")
    refused(f"{path}:2: 'lease.commands' is not supported: flyballd turns knobs through the driver itself", "[lease]\ncommands = /etc/flyball/overrides.toml\n")
    refused(f"{path}:2: there is no key 'watch.pol' (did you mean 'watch.poll'?)", "[watch]\npol = 1\n")
    refused(f"{path}:3: 'watch.poll' is set in line 2 already", "[watch]\npoll = 1\npoll = 2\n")
    refused(f"{path}:1: there is no section 'wach'", "[wach]\n")
    refused(f"{path}:2: bad value 'higher' of 'lease.rule': expected one of refuse, lower", "[lease]\nrule = higher\n")
    refused(f"{path}:2: bad value '0999' of 'server.socket_mode': expected an octal number", "[server]\nsocket_mode = 0999\n")
    refused("TLS takes both", "[server]\ntls_key = /tmp/key\n")
    refused(f"{path}:1: the rule says nothing", "[rule all]\nfor = user:0\n")
    refused(f"{path}:1: the rule lets anyone control GPUs", "[rule all]\nallow = control\n")
    refused(f"{path}:2: bad value 'user:nobody-of-that-name' of 'for'", "[rule all]\nfor = user:nobody-of-that-name\nallow = read\n")
    refused(f"{path}:2: bad value '110%' of 'ceiling'", "[rule all]\nceiling = 110%\n")
    refused(f"{path}:2: bad value 'red,control' of 'allow'", "[rule all]\nallow = red,control\n")
    refused("is neither '[section]' nor 'key = value'", "[server\n")
    node_machine.write_config(rules="[rule all]\nfloor = 25%\nceiling = 300 ; W\n[rule ops]\nfor = group:0\ngpus = 0,GPU-1\nallow = control,overrule\n")
    result = node_machine.run("--check-config", f"--config={path}")
    tap.equal((result.returncode, result.stdout), (0, ""), result.stderr)
    path.chmod(0o666)
    result = node_machine.run("--check-config", f"--config={path}")
    tap.equal(result.returncode, 77, result.stderr)
    tap.contains(result.stderr, "root must own it")
    path.unlink()
    tap.equal(node_machine.run("--check-config", f"--config={path}").returncode, 78)


def test_reference():
    tap.contains(node_machine.run("--quantities").stdout, "| `flyball_gpu_energy_joules_total` | J | number | counter |")
    manual = node_machine.run("--manual").stdout
    for words in (".Dt FLYBALLD 8", "watch.poll", "server.socket_mode", "[rule NAME]"):
        tap.contains(manual, words)


def test_gpus():
    with power_machine.machine(), node_machine.daemon() as daemon:
        gpus = wait_for_answers(daemon)
        tap.equal([gpu["index"] for gpu in gpus], [0, 1])
        tap.equal([gpu["figures"]["power_limit_w"] for gpu in gpus], [DEFAULT_W, DEFAULT_W])
        tap.equal((gpus[0]["may_control"], gpus[0]["may_not"], gpus[0]["turned"], gpus[0]["leases"]), (True, None, False, 0))
        for name in ("1", gpus[1]["uuid"], gpus[1]["pci"]):
            status, _, body = daemon.ask("GET", f"/v1/gpus/{name}")
            tap.equal((status, body["uuid"]), (200, gpus[1]["uuid"]), name)
        status, _, body = daemon.ask("GET", "/v1/gpus/7")
        tap.equal((status, body["error"]["code"]), (404, "FLY_ENOTFOUND"))
        tap.equal(daemon.ask("GET", "/v1/nothing")[0], 404)
        status, headers, body = daemon.ask("DELETE", "/v1/leases")
        tap.equal((status, headers["Allow"], body["error"]["code"]), (405, "GET, POST", "FLY_EUSAGE"))
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))


def wait_for_answers(daemon):
    def look():
        gpus = daemon.ask("GET", "/v1/gpus")[2]["gpus"]
        return gpus if all(gpu["answers"] for gpu in gpus) else None
    return serve_machine.until(look, "both GPUs answer")


def test_lease_from_grant_to_end():
    with power_machine.machine(), node_machine.daemon() as daemon:
        uuid = wait_for_answers(daemon)[0]["uuid"]
        made = node_machine.lease(daemon, 250, [uuid], program="a test", expires_s=600)
        tap.equal((made["gpus"], made["power_limit_w"], made["own"], made["pid"]), ([0], 250, True, os.getpid()))
        tap.equal(power_machine.limits(), [250, DEFAULT_W])
        tap.equal([row["id"] for row in daemon.ask("GET", "/v1/leases")[2]["leases"]], [made["id"]])
        gpu = daemon.ask("GET", "/v1/gpus/0")[2]
        tap.equal((gpu["leases"], gpu["turned"]), (1, True))
        status, _, changed = daemon.ask("PATCH", f"/v1/leases/{made['id']}", {"power_limit_w": 300})
        tap.equal((status, changed["power_limit_w"]), (200, 300))
        tap.equal(power_machine.limits(), [300, DEFAULT_W])
        status, _, renewed = daemon.ask("POST", f"/v1/leases/{made['id']}/renew", {"expires_s": 3000})
        tap.equal((status, renewed["expires_s"] > 2000), (200, True))
        status, _, body = daemon.ask("POST", "/v1/leases", {"gpus": ["0"], "power_limit_w": 200})
        tap.equal((status, body["error"]["code"]), (409, "FLY_ECONFLICT"), str(body))
        tap.equal(daemon.ask("DELETE", f"/v1/leases/{made['id']}")[0], 200)
        tap.equal(power_machine.limits(), [DEFAULT_W, DEFAULT_W])
        tap.equal(daemon.ask("DELETE", f"/v1/leases/{made['id']}")[0], 404)
        kinds = [row["what"] for row in node_machine.audit()]
        for kind in ("grant", "turn", "change", "end", "back"):
            tap.equal(kind in kinds, True, f"{kind} among {kinds}")
    node_machine.clean()


def test_requests_that_cannot_be():
    with power_machine.machine(), node_machine.daemon(rules=node_machine.OWN_RULE + "[rule all]\nceiling = 75%\n") as daemon:
        wait_for_answers(daemon)
        for body, status, words in (
            ({"gpus": ["0"]}, 400, "nothing is asked for"),
            ({"gpus": [], "power_limit_w": 200}, 400, "name one GPU or more"),
            ({"gpus": ["9"], "power_limit_w": 200}, 404, "there is no GPU '9'"),
            ({"gpus": ["0"], "power_limit_w": -1}, 422, "power_limit_w"),
            ({"gpus": ["0"], "power_limit": 200}, 422, "power_limit"),
            ({"gpus": ["0"], "power_limit_w": 200, "bind": "wall"}, 400, "expected process or connection"),
            ({"gpus": ["0"], "performance_level": "fastest"}, 400, "no level"),
        ):
            answered = daemon.ask("POST", "/v1/leases", body)
            tap.equal(answered[0], status, f"{body}: {answered[2]}")
            tap.contains(answered[2]["error"]["message"], words)
        made = node_machine.lease(daemon, 400)
        tap.equal(power_machine.limits()[0], 300, "within the operator's ceiling")
        tap.equal(daemon.ask("DELETE", f"/v1/leases/{made['id']}")[0], 200)
    node_machine.clean()


def test_who_may_not():
    with power_machine.machine(), node_machine.daemon(rules="") as daemon:
        wait_for_answers(daemon)
        gpu = daemon.ask("GET", "/v1/gpus/0")[2]
        root = os.geteuid() == 0
        tap.equal(gpu["may_control"], root)
        status, _, body = tcp(daemon, "POST", "/v1/leases", {"gpus": ["0"], "power_limit_w": 200, "expires_s": 10})
        tap.equal((status, body["error"]["code"]), (403, "FLY_EPERM"), str(body))
        status, _, body = tcp(daemon, "POST", "/v1/release", {})
        tap.equal((status, body["error"]["code"]), (403, "FLY_EPERM"), str(body))
        tap.equal(power_machine.limits(), [DEFAULT_W, DEFAULT_W])
        (power_machine.HOME / "readonly").touch()
        try:
            status, _, body = daemon.ask("POST", "/v1/leases", {"gpus": ["0"], "power_limit_w": 200})
            tap.equal((status, body["error"]["code"]), (403, "FLY_EPERM"), str(body))
        finally:
            (power_machine.HOME / "readonly").unlink()


# Root of a container, which has the uid of the machine's root.
CONTAINED = """
import http.client, json, socket, sys
def ask(method, path, body=None):
    connection = http.client.HTTPConnection("localhost", timeout=300)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(sys.argv[1])
    connection.request(method, path, body)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())
leases = ask("GET", "/v1/leases")[1]["leases"]
wish = json.dumps({"gpus": ["1"], "power_limit_w": 200})
print(json.dumps([ask("GET", "/v1/gpus/1")[1]["may_control"], ask("POST", "/v1/leases", wish)[0], leases[0]["own"],
                  ask("PATCH", "/v1/leases/" + leases[0]["id"], json.dumps({"power_limit_w": 300}))[0],
                  ask("DELETE", "/v1/leases/" + leases[0]["id"])[0], ask("POST", "/v1/release", "{}")[0]]))
"""


def test_root_of_a_container():
    unshare = ["unshare", "--pid", "--fork"]
    if tap.run([*unshare, "true"]).returncode != 0:
        raise tap.Skip("no unshare here")
    with power_machine.machine(), node_machine.daemon() as daemon:
        wait_for_answers(daemon)
        made = node_machine.lease(daemon, 250)
        result = tap.run([*unshare, sys.executable, "-c", CONTAINED, str(node_machine.SOCKET)])
        tap.equal((result.returncode, result.stderr), (0, ""))
        tap.equal(json.loads(result.stdout), [False, 403, False, 403, 404, 403])
        tap.equal([row["id"] for row in daemon.ask("GET", "/v1/leases")[2]["leases"]], [made["id"]])
        tap.equal(power_machine.limits(), [250, DEFAULT_W])
    node_machine.clean()


def test_answers_are_of_now_and_ones_own():
    """However often the same is asked, nobody gets what holds for another, or what has changed since."""
    lock = power_machine.HOME / "readonly"
    with power_machine.machine(), node_machine.daemon(settings={"rights": {"open": "yes"}}) as daemon:
        wait_for_answers(daemon)

        def look():
            mine, his = daemon.ask("GET", "/v1/gpus")[2]["gpus"][0], tcp(daemon, "GET", "/v1/gpus")[2]["gpus"][0]
            one = daemon.ask("GET", "/v1/gpus/0")[2]
            tap.equal((one["may_control"], one["leases"], his["leases"]), (mine["may_control"], mine["leases"], mine["leases"]))
            return mine["may_control"], his["may_control"], mine["leases"]
        for _ in range(20):
            tap.equal(look(), (True, False, 0))
            made = node_machine.lease(daemon, 200)
            tap.equal(look(), (True, False, 1))
            lock.touch()
            try:
                tap.equal(look(), (False, False, 1))
            finally:
                lock.unlink()
            tap.equal(daemon.ask("DELETE", f"/v1/leases/{made['id']}")[0], 200)
        node_machine.write_config({"rights": {"open": "yes"}}, rules=node_machine.OWN_RULE + "[rule all]\nceiling = 50%\n")
        daemon.process.send_signal(signal.SIGHUP)
        daemon.said("the configuration was read again")
        tap.equal(daemon.ask("GET", "/v1/gpus/0")[2]["ceiling_w"], 200)
        tap.equal(daemon.ask("POST", "/v1/release", {})[0] in (200, 403), True)
        if os.geteuid() == 0:
            tap.equal(daemon.ask("GET", "/v1/gpus/0")[2]["answers"], False)
    node_machine.clean()


def test_tokens():
    file = power_machine.HOME / "tokens"
    secrets = {scope: tap.run([power_machine.FLYBALL, "token", f"of-{scope}", "--scope", scope, "--tokens", str(file)],
                              env=power_machine.CLEAN).stdout.split()[-1] for scope in ("read", "train")}
    wish = {"gpus": ["0"], "power_limit_w": 200, "expires_s": 600}
    with power_machine.machine(), node_machine.daemon(settings={"server": {"tokens": file}}) as daemon:
        wait_for_answers(daemon)
        for token, read, control in ((None, 403, 413), ("fly_forged", 403, 413), (secrets["read"], 200, 403), (secrets["train"], 200, 200)):
            tap.equal(tcp(daemon, "GET", "/v1/gpus", token=token)[0], read, str(token))
            tap.equal(tcp(daemon, "GET", "/metrics", token=token)[0], read, str(token))
            status, _, body = tcp(daemon, "POST", "/v1/leases", wish, token)
            tap.equal(status, control, f"{token}: {body}")
            if control == 413:
                tap.contains(body["error"]["message"], "send a token")
        tap.equal(power_machine.limits(), [200, DEFAULT_W])
        tap.equal(tcp(daemon, "DELETE", f"/v1/leases/{body['id']}", token=secrets["read"])[0], 404)
        tap.equal(tcp(daemon, "POST", "/v1/release", {}, secrets["train"])[0], 403)
        status, _, refused_body = tcp(daemon, "POST", "/v1/leases", {"gpus": ["1"], "power_limit_w": 200}, secrets["train"])
        tap.equal(status, 400, str(refused_body))
        tap.equal(tcp(daemon, "DELETE", f"/v1/leases/{body['id']}", token=secrets["train"])[0], 200)
        node_machine.lease(daemon, 210)
        tap.equal(power_machine.limits(), [210, DEFAULT_W])
    file.unlink()
    node_machine.clean()


def tcp(daemon, method, path, body=None, token=None):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(daemon.url + path, None if body is None else json.dumps(body).encode(), headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=serve_machine.PATIENCE_S) as answer:
            content = answer.read()
            return answer.status, answer.headers, json.loads(content) if content[:1] == b"{" else content.decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, json.loads(error.read())


def test_client_dies():
    with power_machine.machine(), node_machine.daemon() as daemon:
        wait_for_answers(daemon)
        for more in ((), ("fork",)):
            process = hold(220, *more)
            try:
                tap.equal(power_machine.limits(), [220, DEFAULT_W])
                process.kill()
                process.wait()
                power_machine.back_within([DEFAULT_W, DEFAULT_W], f"the limit of a client that died is back {more}")
            finally:
                kill_group(process)
        process = hold(230, bind="connection")
        kill_group(process)
        power_machine.back_within([DEFAULT_W, DEFAULT_W], "the limit of a connection that closed is back")
        tap.equal(daemon.ask("GET", "/v1/leases")[2], {"leases": []})
    node_machine.clean()


def test_connection_closes():
    with power_machine.machine(), node_machine.daemon() as daemon:
        wait_for_answers(daemon)
        connection = daemon.connection()
        made = node_machine.lease(daemon, 210, connection=connection, bind="connection")
        tap.equal((made["connection"], power_machine.limits()[0]), (True, 210))
        tap.equal(daemon.ask("GET", "/v1/gpus/0", connection=connection)[0], 200)
        tap.equal(power_machine.limits()[0], 210)
        connection.close()
        power_machine.back_within([DEFAULT_W, DEFAULT_W], "the limit is back")
    node_machine.clean()


def test_missed_renewal():
    with power_machine.machine(), node_machine.daemon() as daemon:
        wait_for_answers(daemon)
        node_machine.lease(daemon, 260, expires_s=0.5)
        power_machine.wait_for(lambda: power_machine.limits() == [DEFAULT_W, DEFAULT_W], "the lease has run out")
    node_machine.clean()


def test_daemon_stops():
    with power_machine.machine(), node_machine.daemon() as daemon:
        wait_for_answers(daemon)
        node_machine.lease(daemon, 240, ["0", "1"])
        tap.equal(power_machine.limits(), [240, 240])
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))
        tap.equal(power_machine.limits(), [DEFAULT_W, DEFAULT_W])
        tap.equal(node_machine.SOCKET.exists(), False)
    node_machine.clean()


def test_reload_keeps_leases():
    with power_machine.machine(), node_machine.daemon() as daemon:
        wait_for_answers(daemon)
        made = node_machine.lease(daemon, 240)
        node_machine.write_config({"watch": {"poll": 0.5}}, node_machine.OWN_RULE + "[rule all]\nceiling = 200\n")
        daemon.process.send_signal(signal.SIGHUP)
        daemon.said("the configuration was read again")
        daemon.said("'watch.poll' has changed; that takes a restart")
        tap.equal([row["id"] for row in daemon.ask("GET", "/v1/leases")[2]["leases"]], [made["id"]])
        wait_for(lambda: power_machine.limits() == [200, DEFAULT_W], "the new ceiling holds for the lease")
        node_machine.CONFIG.write_text("[wach]\n")
        daemon.process.send_signal(signal.SIGHUP)
        tap.contains(daemon.said("the configuration stays as it was"), "there is no section 'wach'")
        tap.equal(power_machine.limits(), [200, DEFAULT_W])
        tap.equal(daemon.ask("GET", "/healthz")[0], 200)
        tap.equal(daemon.ask("DELETE", f"/v1/leases/{made['id']}")[0], 200)
    node_machine.clean()


def test_release_and_resume():
    with power_machine.machine(), node_machine.daemon() as daemon:
        wait_for_answers(daemon)
        node_machine.lease(daemon, 240)
        result = node_machine.run("release", f"--config={node_machine.CONFIG}")
        if os.geteuid() != 0:
            tap.equal(result.returncode, 77, result.stderr)
            tap.contains(result.stderr, "only the machine's root")
            return
        tap.equal((result.returncode, result.stderr), (0, ""))
        tap.equal(power_machine.limits(), [DEFAULT_W, DEFAULT_W])
        status, _, body = daemon.ask("POST", "/v1/leases", {"gpus": ["0"], "power_limit_w": 200})
        tap.equal("error" in body and status >= 400, True, str(body))
        tap.equal(node_machine.run("resume", f"--config={node_machine.CONFIG}").returncode, 0)
        wait_for_answers(daemon)
        node_machine.lease(daemon, 230)
        tap.equal(power_machine.limits(), [230, DEFAULT_W])
    node_machine.clean()


def test_metrics():
    with power_machine.machine(), node_machine.daemon() as daemon:
        wait_for_answers(daemon)
        status, headers, text = tcp(daemon, "GET", "/metrics")
        tap.equal((status, headers["Content-Type"].split(";")[0]), (200, "text/plain"))
        for name in ("flyball_gpu_energy_joules_total", "flyball_build_info", "process_cpu_seconds_total", "flyball_audit_lines_lost_total 0"):
            tap.contains(text, name)
        tap.equal(figure(text, "flyball_gpu_leases"), ["0", "0"])
        node_machine.lease(daemon, 240, ["1"])
        text = tcp(daemon, "GET", "/metrics")[2]
        tap.equal((figure(text, "flyball_gpu_leases"), figure(text, "flyball_gpu_turned")), (["0", "1"], ["0", "1"]))
    node_machine.clean()


def figure(text, name):
    """The values of a figure, GPU by GPU."""
    return [line.split()[-1] for line in text.splitlines() if line.startswith(name + "{")]


def test_stream():
    with power_machine.machine(), node_machine.daemon() as daemon:
        wait_for_answers(daemon)
        first = read_events(daemon, 6)
        numbers = [event["id"] for event in first]
        tap.equal(numbers, sorted(numbers))
        tap.equal({event["data"]["gpu"] for event in first}, {0, 1})
        again = read_events(daemon, 1, numbers[-1])
        tap.equal(again[0]["id"], numbers[-1] + 1)
        only = read_events(daemon, 3, path="/v1/stream?gpu=1")
        tap.equal({event["data"]["gpu"] for event in only}, {1})


def read_events(daemon, count, after=None, path="/v1/stream"):
    """The first events of a stream, each with its number and its data."""
    with socket.socket(socket.AF_UNIX) as raw:
        raw.settimeout(serve_machine.PATIENCE_S)
        raw.connect(str(node_machine.SOCKET))
        resume = "" if after is None else f"Last-Event-ID: {after}\r\n"
        raw.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{resume}\r\n".encode())
        events, at, reader = [], {}, raw.makefile("rb")
        while len(events) < count:
            name, _, value = reader.readline().decode().strip().partition(": ")
            if name == "id":
                at["id"] = int(value)
            elif name == "data":
                events.append({**at, "data": json.loads(value)})
        reader.close()
        return events


def test_log_as_json():
    with power_machine.machine(), node_machine.daemon("--log=json", settings={"log": {"requests": "yes"}}) as daemon:
        daemon.ask("GET", "/v1/gpus")
        line = json.loads(daemon.said("GET /v1/gpus"))
        tap.equal((line["level"], "date" in line), ("info", True))
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))
        for text in daemon.talk:
            tap.equal(text == "" or {"date", "level", "message"} == set(json.loads(text)), True, text)


def test_readiness_and_watchdog():
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        path = power_machine.HOME / "notify"
        systemd.bind(str(path))
        systemd.settimeout(serve_machine.PATIENCE_S)
        environment = {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "200000"}
        with power_machine.machine(), node_machine.daemon(environment=environment) as daemon:
            said = [systemd.recv(4096).decode() for _ in range(3)]
            tap.equal((said[0], set(said[1:])), ("READY=1", {"WATCHDOG=1"}))
            tap.equal(daemon.stop(), 0, "".join(daemon.talk))
            while (word := systemd.recv(4096).decode()) != "STOPPING=1":
                tap.equal(word, "WATCHDOG=1")
        path.unlink()


def test_restore():
    with power_machine.machine():
        with node_machine.daemon() as daemon:
            wait_for_answers(daemon)
            node_machine.lease(daemon, 240)
            power_machine.kill_both(daemon.process)
            daemon.reader.join(serve_machine.PATIENCE_S)
        tap.equal(power_machine.limits(), [240, DEFAULT_W])
        result = node_machine.run("restore", f"--config={node_machine.CONFIG}")
        tap.equal(result.returncode, 0, result.stderr)
        tap.equal(power_machine.limits(), [DEFAULT_W, DEFAULT_W])
        result = node_machine.run("restore", f"--config={node_machine.CONFIG}")
        tap.equal((result.returncode, result.stderr), (0, ""))
    node_machine.clean()


tap.main(globals())
