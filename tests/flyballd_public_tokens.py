# SPDX-License-Identifier: Apache-2.0
"""Tokens for the public daemon's routes of `flyballd`: which hold, which are refused, and what each scope opens.

usage: flyballd_public_tokens.py FLYBALL
"""
import hashlib
import json
import os
import signal
import subprocess
import time

import node_machine
import power_machine
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
                                    env=power_machine.CLEAN, capture_output=True, text=True, timeout=60, check=False)
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
                                     capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    for key in (None, write_key()):
        with power_machine.machine(gpus=1), node_machine.daemon(settings={"server": {"tokens": tokens, "signing_key": key}}, rules="") as daemon:
            for scope, status in (("read", 403), ("train", 200)):
                tap.equal(ask(daemon, "GET", "/gpu/get_power", over_tcp=True, token=made[scope])[0], 200)
                tap.equal(ask(daemon, "POST", TURN, over_tcp=True, token=made[scope])[0], status, scope)
            tap.equal(ask(daemon, "GET", "/gpu/get_power", over_tcp=True)[0], 403 if key is None else 401)
    tokens.unlink()


tap.main(globals())
