# SPDX-License-Identifier: Apache-2.0
"""Tokens for the public daemon's routes of `flyballd`: which hold, which are refused, and what each scope opens.

usage: flyballd_public_tokens.py FLYBALL
"""
import hashlib
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
from public_machine import GOOD, KEY, ONE, SET, TURN, ask, expect, signed, write_key

BAD_TOKENS = {
    "garbage": "not-a-valid-token",
    "empty": "",
    "expired": signed({**GOOD, "exp": 1000000000}),
    "just past the leeway": signed({**GOOD, "exp": int(time.time()) - 3600}),
    "not yet": signed({**GOOD, "nbf": 9999999999}),
    "text for a date": signed({**GOOD, "nbf": "0"}),
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


def test_a_rule_for_a_token():
    rules = "[rule alice]\nfor = token:jwt:alice\nceiling = 200\n"
    with power_machine.machine(gpus=1), node_machine.daemon(settings={"server": {"signing_key": write_key()}}, rules=rules) as daemon:
        expect(daemon, "POST", TURN, 200, "", token=signed(GOOD), over_tcp=True)
        tap.equal(power_machine.limits(), [200])


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
                                  capture_output=True, text=True, timeout=tap.PATIENCE_S, check=False)
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
        daemon.said("has 0 bytes")
        tap.equal(ask(daemon, "GET", "/gpu/get_power", token=token)[0], 200)
        write_key(os.urandom(32))
        daemon.process.send_signal(signal.SIGHUP)
        daemon.said("signing key as it is now")
        tap.equal(ask(daemon, "GET", "/gpu/get_power", token=token)[0], 401)
    for key, mode, reason in ((b"", 0o600, "has 0 bytes"), (KEY[:31], 0o600, "has 31 bytes"), (KEY[:31] + b"\n", 0o600, "has 31 bytes"),
                              (KEY[:20] + b" \r\n" * 20, 0o600, "has 20 bytes"), (b"\n" * 40, 0o600, "has 0 bytes"), (KEY, 0o644, "read or written by others"), (b"x" * 5000, 0o600, "longer")):
        with power_machine.machine(gpus=1):
            node_machine.write_config({"server": {"signing_key": write_key(key, mode)}})
            result = node_machine.run(f"--config={node_machine.CONFIG}")
            tap.equal((result.returncode != 0, reason in result.stderr), (True, True), result.stderr)
            issued = subprocess.run([power_machine.FLYBALL, "token", "issue", f"--signing-key={power_machine.HOME / 'signing.key'}", "--user=bob"],
                                    env=power_machine.CLEAN, capture_output=True, text=True, timeout=tap.PATIENCE_S, check=False)
            tap.equal((issued.returncode != 0, issued.stdout, reason in issued.stderr), (True, "", True), issued.stderr)
    # Bytes that are no text count all, also one that looks like the newline of an editor.
    with power_machine.machine(gpus=1), node_machine.daemon(settings={"server": {"signing_key": write_key(bytes(range(31)) + b"\n")}}, rules="") as daemon:
        token = signed(GOOD, key=bytes(range(31)) + b"\n")
        tap.equal(ask(daemon, "GET", "/gpu/get_power", token=token)[0], 200)


def test_tokens_of_the_file():
    """A token of the daemon's own file works for the public routes, too."""
    tokens = power_machine.HOME / "tokens"
    made = {}
    for scope in ("read", "train"):
        made[scope] = subprocess.run([power_machine.FLYBALL, "token", scope, f"--scope={scope}", f"--tokens={tokens}"], env=power_machine.CLEAN,
                                     capture_output=True, text=True, timeout=tap.PATIENCE_S, check=True).stdout.strip()
    for key in (None, write_key()):
        with power_machine.machine(gpus=1), node_machine.daemon(settings={"server": {"tokens": tokens, "signing_key": key}}, rules="") as daemon:
            for scope, status in (("read", 403), ("train", 200)):
                tap.equal(ask(daemon, "GET", "/gpu/get_power", over_tcp=True, token=made[scope])[0], 200)
                tap.equal(ask(daemon, "POST", TURN, over_tcp=True, token=made[scope])[0], status, scope)
            tap.equal(ask(daemon, "GET", "/gpu/get_power", over_tcp=True)[0], 403 if key is None else 401)
    tokens.unlink()


def as_nobody(path, headers=None):
    """What another user gets over the Unix socket: status and body."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(power_machine.NOBODY)
            os.setuid(power_machine.NOBODY)
            connection = serve_machine.UnixConnection(str(node_machine.SOCKET), serve_machine.PATIENCE_S)
            connection.request("GET", path, headers=headers or {})
            answer = connection.getresponse()
            os.write(theirs, json.dumps([answer.status, answer.read(4000).decode()]).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as file:
        told = file.read()
    os.waitpid(child, 0)
    return json.loads(told)


def test_closed():
    """With rights.closed, figures of any kind are for those alone who may read; and at once, when the rules change."""
    if os.geteuid() != 0:
        raise tap.Skip("only root can be two users")
    power_machine.HOME.chmod(0o711)
    tokens = power_machine.HOME / "tokens"
    reader = subprocess.run([power_machine.FLYBALL, "token", "prometheus", "--scope=read", f"--tokens={tokens}"], env=power_machine.CLEAN,
                            capture_output=True, text=True, timeout=tap.PATIENCE_S, check=True).stdout.strip()
    rights = node_machine.USUAL["rights"]
    settings = {"server": {"tokens": tokens, "socket_mode": "0666"}, "rights": {**rights, "closed": "yes"}}
    figures = ("/metrics", "/v1/gpus", "/v1/usage", "/gpu/get_power", "/gpu/stream_power", "/v1/stream", "/cpu/get_power", "/cpu/stream_power")
    with power_machine.machine(), node_machine.daemon(settings={**settings, "rights": rights}, rules="") as daemon:
        tap.equal([as_nobody(path)[0] for path in figures[:4]], [200] * 4, "open to all of the machine")
        tap.equal(len(json.loads(ask(daemon, "GET", "/discover", over_tcp=True)[2])["gpus"]), 2)
        streams = [daemon.connection() for _ in range(2)]
        answers = []
        for stream, path in zip(streams, ("/v1/stream", "/gpu/stream_power")):
            stream.request("GET", path)
            answers.append(stream.getresponse())
        node_machine.write_config(settings, "")
        daemon.process.send_signal(signal.SIGHUP)
        for answer in answers:  # ends
            try:
                while answer.read(4096):
                    pass
            except http.client.IncompleteRead:
                pass
        for path in figures:
            tap.equal(as_nobody(path)[0], 403, path)
            tap.equal(as_nobody(path, {"Authorization": "Bearer x"})[0], 403, path)
            tap.equal(ask(daemon, "GET", path, over_tcp=True)[0] in (401, 403), True, path)
        for path in ("/metrics", "/v1/gpus", "/gpu/get_power"):
            tap.equal(as_nobody(path, {"Authorization": f"Bearer {reader}"})[0], 200, path)
            tap.equal(ask(daemon, "GET", path, over_tcp=True, token=reader)[0], 200, path)
            tap.equal(daemon.ask("GET", path)[0], 200, f"root: {path}")
        for path in ("/healthz", "/readyz"):
            status, body = as_nobody(path)
            tap.equal((status, any(word in body for word in ("GPU", "uuid", "watt"))), (200, False), body)
        told = json.loads(ask(daemon, "GET", "/discover", over_tcp=True)[2])
        tap.equal((told["gpus"], told["cpus"]), ([], []))
        tap.equal(len(json.loads(ask(daemon, "GET", "/discover", over_tcp=True, token=reader)[2])["gpus"]), 2)
        # Who may read one GPU sees that one, and no figures of all.
        rule = f"[rule one]\nfor = user:{power_machine.NOBODY}\nallow = read\ngpus = 0\n"
        node_machine.write_config(settings, rule)
        daemon.process.send_signal(signal.SIGHUP)
        serve_machine.until(lambda: as_nobody("/v1/gpus/0")[0] == 200, "the rule is in force")
        tap.equal(as_nobody("/metrics")[0], 403)
        tap.equal([gpu["id"] for gpu in json.loads(as_nobody("/discover")[1])["gpus"]], [0])
        node_machine.write_config(settings, rule.replace("gpus = 0", ""))
        daemon.process.send_signal(signal.SIGHUP)
        serve_machine.until(lambda: as_nobody("/metrics")[0] == 200, "who may read all gets the figures")
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))
    tokens.unlink()


tap.main(globals())
