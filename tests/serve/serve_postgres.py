# SPDX-License-Identifier: Apache-2.0
"""Services over one PostgreSQL server: two that answer as one, and a server that is away for a while.

usage: serve_postgres.py FLYBALL
"""
import concurrent.futures
import contextlib
import http.client
import json
import os
import sys
import tempfile

import pg_machine
import serve_machine
import tap

FLYBALL = os.path.abspath(sys.argv[1])
# Of the client library's memory nothing is ours to free.
ENVIRONMENT = {**serve_machine.CLEAN, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
JOB = {"batch_sizes": [16, 32], "default_batch_size": 32, "max_epochs": 5}
ASKED = {"hardware": {"gpu_model": "Test GPU", "gpu_count": 1, "world_size": 1, "limits_w": [100, 200]}}


STACK = contextlib.ExitStack()
SERVERS = []


def machine_of_all():
    """One server for all tests, started by the first."""
    if not SERVERS:
        SERVERS.append(STACK.enter_context(pg_machine.server()))
    return SERVERS[0]


def service(address, *arguments):
    return serve_machine.service(FLYBALL, f"--store={address}", *arguments, env=ENVIRONMENT)


def answer_of(it, method, path, body=None):
    """The status and what came with it; None where the busy machine made somebody late."""
    with contextlib.suppress(ConnectionError, http.client.HTTPException):
        status, _, content = it.ask(method, path, body)
        return status, json.loads(content) if content else None
    return None


def until_it_is(it, expected, method, path, body=None):
    return serve_machine.until(lambda: (found := answer_of(it, method, path, body)) and found[0] == expected and found,
                               f"{expected} of {method} {path}")[1]


def test_two_services_as_one():
    machine = machine_of_all()
    address = machine.address()
    with service(address) as one, service(address) as two, concurrent.futures.ThreadPoolExecutor(8) as pool:
        until_it_is(one, 200, "PUT", "/v1/jobs/digits", JOB)
        tap.equal(until_it_is(two, 200, "PUT", "/v1/jobs/digits", JOB)["known"], True)

        def propose(number):
            asked = {**ASKED, "request": f"request-{number}"}
            return until_it_is((one, two)[number % 2], 200, "POST", "/v1/jobs/digits/trials", asked)["trial"]

        tap.equal(sorted(pool.map(propose, range(20))), list(range(1, 21)), "no trial twice, and none left out")
        again = {**ASKED, "request": "request-7"}
        first = until_it_is(one, 200, "POST", "/v1/jobs/digits/trials", again)["trial"]
        tap.equal(until_it_is(two, 200, "POST", "/v1/jobs/digits/trials", again)["trial"], first)
        tap.equal((one.stop(), two.stop()), (0, 0))


def test_a_server_that_goes_away():
    machine = machine_of_all()
    address = machine.address()
    with service(address, "--request-timeout=3") as it:
        until_it_is(it, 200, "PUT", "/v1/jobs/digits", JOB)
        machine.kill()
        health = until_it_is(it, 503, "GET", "/readyz")
        tap.equal(health["error"]["code"].startswith("FLY_E"), True, health)
        tap.equal(pg_machine.PASSWORD in str(health), False, "no password")
        until_it_is(it, 503, "PUT", "/v1/jobs/other", JOB)
        tap.equal(it.ask("GET", "/metrics")[0], 200)
        machine.start()
        until_it_is(it, 200, "GET", "/readyz")
        tap.equal(until_it_is(it, 200, "PUT", "/v1/jobs/digits", JOB)["known"], True, "nothing is lost")
        tap.equal(it.stop(), 0)


def test_a_start_without_the_server():
    machine = machine_of_all()
    address = machine.address()
    machine.kill()
    with tempfile.TemporaryDirectory(prefix="flyball-serve-postgres-") as box:
        tap.equal(tap.run([FLYBALL, "token", "one", f"--tokens={box}/tokens"], env=ENVIRONMENT).returncode, 0)
        with service(address, f"--tokens={box}/tokens") as it:
            health = until_it_is(it, 503, "GET", "/readyz")
            tap.equal(health["error"]["code"], "FLY_EUNREACHABLE")
            tap.equal("postgresql" in str(health), False, "a stranger is not told where the store lies")
            tap.equal(it.stop(), 0)
    with service(address, "--request-timeout=3") as it:
        serve_machine.until(lambda: "answered with 503 until it is back" in "".join(it.talk), "a warning")
        tap.equal(pg_machine.PASSWORD in "".join(it.talk), False, "no password")
        until_it_is(it, 503, "GET", "/readyz")
        machine.start()
        until_it_is(it, 200, "GET", "/readyz")
        until_it_is(it, 200, "PUT", "/v1/jobs/digits", JOB)
        tap.equal(it.stop(), 0)
    wrong = tap.run([FLYBALL, "serve", "--listen=127.0.0.1:0", f"--store={machine.address(password='wrong')}"],
                    env=ENVIRONMENT)
    tap.equal(wrong.returncode, 77, wrong.stderr)
    tap.equal(wrong.stdout, "", "an address that can never be served")


with STACK:
    tap.main(globals())
