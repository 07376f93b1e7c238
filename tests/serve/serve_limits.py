# SPDX-License-Identifier: Apache-2.0
"""What clients may do to `flyball serve`, and what it does to them: sizes, slowness, numbers, and its end.

usage: serve_limits.py FLYBALL
"""
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import resource
import signal
import socket
import sqlite3
import sys
import tempfile

import crowd
import serve_machine
import tap

FLYBALL = os.path.abspath(sys.argv[1])
WORK = tempfile.TemporaryDirectory(prefix="flyball-serve-limits-")
BOX = pathlib.Path(WORK.name)
STORE = BOX / "store.sqlite"
HOST = b"Host: localhost\r\n"
NOBODY = 65534
JOB = {"batch_sizes": [16, 32], "default_batch_size": 32, "max_epochs": 5}


def service(*arguments, **options):
    return serve_machine.service(FLYBALL, f"--store={STORE}", *arguments, **options)


def status_of(answer):
    return int(answer.split(b" ")[1]) if answer.startswith(b"HTTP/1.1 ") else None


def error_of(answer):
    return json.loads(answer.split(b"\r\n\r\n", 1)[1])["error"]["code"]


@contextlib.contextmanager
def locked():
    """Holds the store's lock."""
    holder = sqlite3.connect(STORE, isolation_level=None, timeout=serve_machine.PATIENCE_S)
    holder.execute("BEGIN IMMEDIATE")
    try:
        yield holder
    finally:
        if holder.in_transaction:
            holder.execute("ROLLBACK")
        holder.close()


def in_background(pool, it, path="/v1/jobs/blocked"):
    return pool.submit(persist, it, "PUT", path, JOB)


def persist(it, *request):
    """Asks until there is an answer: where time limits are short, a busy machine may be late itself."""
    def answer():
        with contextlib.suppress(ConnectionError, http.client.HTTPException):
            return it.ask(*request)

    return serve_machine.until(answer, f"an answer to {request}")


def is_well(it):
    serve_machine.until(lambda: persist(it, "GET", "/healthz")[0] == 200, "health")


def gauge(it, name):
    """A gauge without the request that asks for it."""
    lines = persist(it, "GET", "/metrics")[2].decode().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name + " ")) - 1


def connections(it):
    return gauge(it, "flyball_http_connections")


def requests(it):
    return gauge(it, "flyball_http_requests_in_flight")


# -- Sizes --


def test_bodies():
    with service("--body-max=2048") as it:
        tap.equal(it.ask("POST", "/nowhere", b"x" * 2048)[0], 404)
        # Refused by what was announced: nothing of it has to be sent.
        for length in (2049, 10_000_000, 2**63 - 1):
            answer = it.say(b"POST /nowhere HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % length)
            tap.equal((status_of(answer), error_of(answer)), (413, "FLY_ELIMIT"), length)
        answer = it.say(b"PUT / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n")
        tap.equal((status_of(answer), error_of(answer)), (411, "FLY_EUNSUPPORTED"))
        answer = it.say(b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab")
        tap.equal((status_of(answer), error_of(answer)), (400, "FLY_EUSAGE"))
        tap.equal(it.stop(), 0)
    with service() as it:
        tap.equal(it.ask("POST", "/nowhere", b"x" * 1_000_000)[0], 404)
        answer = it.say(b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 10000000\r\n\r\n")
        tap.equal(status_of(answer), 413, "by default")


def test_heads():
    with service() as it:
        answer = it.say(b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n" + HOST + b"\r\n")
        tap.equal((status_of(answer), error_of(answer)), (414, "FLY_ELIMIT"))
        answer = it.say(b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 17000 + b"\r\n\r\n")
        tap.equal((status_of(answer), error_of(answer)), (431, "FLY_ELIMIT"))
        for target in (b"/%00", b"/%zz", b"/\xff", b"*", b"http://localhost/", b"/?a=1&a=2", b"/?" + b"&".join(
                b"p%d" % i for i in range(9))):
            answer = it.say(b"GET " + target + b" HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
            tap.equal(status_of(answer) in (400, 413), True, answer)
            tap.equal(error_of(answer) in ("FLY_EUSAGE", "FLY_ELIMIT"), True, answer)


def test_what_is_no_request():
    broken = [b"GARBAGE\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 50 + b"\r\n\r\n", b"\0" * 5000 + b"\r\n",
              b"GET / HTTP/9.9\r\n" + HOST + b"\r\n", b"GET /" + b"a" * 500_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
              b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 500_000 + b"\r\n\r\n",
              b"GET / HTTP/1.1\r\n" + HOST + b"A\0b: c\r\n\r\n",
              b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n",
              b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 1x\r\n\r\n",
              b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 99999999999999999999999\r\n\r\n"]
    with service("--request-timeout=1") as it:
        for data in broken:
            status = status_of(it.say(data))
            tap.equal(status is None or 400 <= status <= 505, True, (data[:60], status))
        is_well(it)
        tap.equal(it.stop(), 0)


def test_one_connection_for_many_requests():
    with service() as it:
        one = b"GET /v1/jobs HTTP/1.1\r\n" + HOST + b"\r\n"
        two = b"POST /nowhere HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\n\r\nabc"
        last = b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
        answers = it.say(one + two + one + last).split(b"HTTP/1.1 ")[1:]
        tap.equal([answer[:3] for answer in answers], [b"200", b"404", b"200", b"200"])
        tap.equal(status_of(it.say(b"GET /healthz HTTP/1.0\r\n\r\n")), 200)


# -- Slowness --


def test_slow_clients():
    with service("--request-timeout=1", "--connections-per-host=100") as it:
        drips = [(b"", b""), (b"GET / HTTP/1.1\r\nHo", b"o"), (b"", b"\r\n"),
                 (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 100000\r\n\r\n", b"x")]
        for begin, drop in drips:
            with it.open() as raw:
                raw.sendall(begin)

                def closed():
                    with contextlib.suppress(TimeoutError):
                        try:
                            raw.settimeout(0.05)
                            if raw.recv(1) == b"":
                                return True
                        except ConnectionError:
                            return True
                    try:
                        raw.sendall(drop)
                    except ConnectionError:
                        return True
                    return False

                serve_machine.until(closed, f"the end of a client that goes on with {drop!r}")
            is_well(it)
        tap.equal(it.stop(), 0)


def test_a_client_that_takes_no_answer():
    with service("--request-timeout=1") as it:
        with it.open() as raw:
            # More than fits between the two; what is not answered yet is not read either.
            raw.settimeout(0.2)
            with contextlib.suppress(TimeoutError, ConnectionError):
                for _ in range(500):
                    raw.sendall(b"GET /v1/openapi.json HTTP/1.1\r\n" + HOST + b"\r\n")
            serve_machine.until(lambda: connections(it) == 0, "the end of a client that reads nothing")
        tap.equal(it.stop(), 0)


# -- Numbers --


def answered(raw):
    try:
        raw.sendall(b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n")
        answer = b""
        while not answer.endswith(b"}"):
            part = raw.recv(1000)
            if part == b"":
                return False
            answer += part
        return answer.startswith(b"HTTP/1.1 200")
    except ConnectionError:
        return False


def test_too_many_connections():
    """The one that has waited longest for its client's request goes; what is under way stays."""
    for limit in ("--connections=3", "--connections-per-host=3"):
        with service(limit, "--request-timeout=3600", "--workers=3") as it, contextlib.ExitStack() as stack:
            held = [stack.enter_context(it.open()) for _ in range(3)]
            tap.equal([answered(raw) for raw in held], [True] * 3, limit)
            tap.equal(answered(held[0]), True)
            more = stack.enter_context(it.open())
            tap.equal(answered(more), True, limit)
            tap.equal([answered(raw) for raw in (held[1], held[0], held[2], more)], [False, True, True, True], limit)
            tap.equal(it.stop(), 0)
        with service(limit, "--request-timeout=3600", "--workers=3") as it, contextlib.ExitStack() as stack:
            with locked():
                busy = [stack.enter_context(it.open()) for _ in range(3)]
                for number, raw in enumerate(busy):
                    body = json.dumps(JOB).encode()
                    raw.sendall(b"PUT /v1/jobs/busy%d HTTP/1.1\r\nContent-Length: %d\r\n" % (number, len(body)) + HOST + b"\r\n" + body)
                    raw.settimeout(0.3)
                    with contextlib.suppress(TimeoutError):
                        tap.equal(raw.recv(1), "nothing")
                tap.equal(answered(stack.enter_context(it.open())), False, "all are at work")
            for raw in busy:
                raw.settimeout(serve_machine.PATIENCE_S)
                tap.equal(status_of(raw.recv(65536)) in (200, 201), True)
            tap.equal(it.stop(), 0)


def many_of_others(it, address, user, context=None, beginnings=(b"", b"GET /healthz HTTP/1.1\r\nX: ")):
    """Somebody else's connections, more than a share: others are answered, and so is he."""
    for begin in beginnings:
        with crowd.crowd(address, 300, user, begin, b"x" if begin else b"") as held:
            tap.equal(held, 300)
            tap.equal([crowd.answers(address, user=who, context=context) for who in (None, user - 1, user)], [200] * 3, str(begin))


def test_connections_of_one_user():
    if os.geteuid() != 0:
        raise tap.Skip("only root can be two users")
    patient = "--request-timeout=3600"
    with service(patient, "--connections-per-host=250", listen="127.0.0.1:0,[::1]:0") as it:
        for host in ("127.0.0.1", "::1"):
            port = next(int(url.rsplit(":", 1)[1]) for url in it.addresses if (host in url))
            many_of_others(it, (host, port), NOBODY)
        tap.equal(it.stop(), 0)
    chain, key = serve_machine.certificate(BOX, "ec", "tls", "-pkeyopt", "ec_paramgen_curve:prime256v1")
    with service(patient, "--connections-per-host=250", f"--tls-certificate={chain}", f"--tls-key={key}") as it:
        # Half a handshake, and all of one that its client never goes on with.
        many_of_others(it, ("127.0.0.1", it.port), NOBODY, crowd.unverified(), (b"", b"\x16\x03\x01\x02\x00\x01"))
        tap.equal(it.stop(), 0)


def test_connections_of_other_machines():
    """Each address is somebody; of IPv6 each network of 64 bits. An address of this machine's own is its users'."""
    if os.geteuid() != 0:
        raise tap.Skip("only root can make networks")
    tokens = BOX / "tokens-of-others"
    made = tap.run([FLYBALL, "token", "one", f"--tokens={tokens}"], env=serve_machine.CLEAN)
    tap.equal(made.returncode, 0, made.stderr)
    with crowd.other_machine("198.18.0.2/24", "198.18.0.3/24", "fd00:5e5e:0:1::2/32", "fd00:5e5e:0:2::2/32") as other:
        with service("--request-timeout=3600", "--connections=100", "--connections-per-host=60", f"--tokens={tokens}", "--insecure-plain-http",
                     listen="0.0.0.0:0,[::]:0") as it:
            four, six = (("198.18.0.1", int(it.addresses[0].rsplit(":", 1)[1])), ("fd00:5e5e::1", int(it.addresses[1].rsplit(":", 1)[1])))
            for address, one, two in ((four, "198.18.0.2", "198.18.0.3"), (six, "fd00:5e5e:0:1::2", "fd00:5e5e:0:2::2")):
                with crowd.crowd(address, 300, namespace=other, source=one) as held:
                    tap.equal(held, 300)
                    tap.equal([crowd.answers(address, namespace=other, source=source) for source in (one, two)], [200] * 2, str(address))
                    with crowd.crowd(address, 300, NOBODY):
                        tap.equal([crowd.answers(address, user=who) for who in (None, NOBODY - 1, NOBODY)], [200] * 3, str(address))
                        tap.equal(crowd.answers(address, namespace=other, source=two), 200, str(address))
            tap.equal(it.stop(), 0)
    tokens.unlink()


def test_room_for_all_connections():
    own = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, own[1]))  # as the service inherits it
        it = serve_machine.Service(FLYBALL, f"--store={STORE}", "--connections=200", "--workers=1")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, own)
    with serve_machine.held(it), contextlib.ExitStack() as stack:
        for _ in range(60):
            tap.equal(answered(stack.enter_context(it.open())), True)
        tap.equal(it.ask("GET", "/v1/jobs")[0], 200, "the worker opens the store only now")
        tap.equal(it.stop(), 0)


# -- A store that blocks --


def test_health_while_all_workers_wait():
    with service("--workers=2", "--request-timeout=30") as it, concurrent.futures.ThreadPoolExecutor() as pool:
        with locked() as holder:
            waiting = [in_background(pool, it, f"/v1/jobs/waits{i}") for i in range(4)]
            for _ in range(5):
                is_well(it)
                tap.equal(it.ask("GET", "/metrics")[0], 200)
            tap.equal([future.done() for future in waiting], [False] * 4)
            holder.execute("ROLLBACK")
            tap.equal([future.result()[0] for future in waiting], [200] * 4)
        tap.equal(it.stop(), 0)


def test_requests_that_wait_too_long():
    with service("--workers=1", "--request-timeout=0.5") as it, concurrent.futures.ThreadPoolExecutor() as pool:
        with locked():
            waiting = [in_background(pool, it, f"/v1/jobs/late{i}") for i in range(4)]
            for future in waiting:
                status, headers, body = future.result()
                tap.equal((status, json.loads(body)["error"]["code"]), (503, "FLY_EBUSY"))
                tap.equal(int(headers["Retry-After"]) > 0, True)
        serve_machine.until(lambda: persist(it, "PUT", "/v1/jobs/late0", JOB)[0] == 200, "an answer once the lock is free")
        tap.equal(it.stop(), 0)


# -- The end --


def refuses(it):
    try:
        it.open().close()
        return False
    except ConnectionError:
        return True


def test_it_finishes_what_is_under_way():
    with service("--grace=60") as it, concurrent.futures.ThreadPoolExecutor() as pool:
        with locked() as holder, it.open() as idle:
            tap.equal(answered(idle), True)
            future = in_background(pool, it, "/v1/jobs/last")
            serve_machine.until(lambda: requests(it) == 1, "the request")
            it.process.send_signal(signal.SIGTERM)
            serve_machine.until(lambda: refuses(it), "the end of listening")
            tap.equal(it.process.poll(), None)
            holder.execute("ROLLBACK")
            status, headers, _ = future.result()
            tap.equal((status, headers["Connection"]), (200, "close"))
        tap.equal(it.process.wait(serve_machine.PATIENCE_S), 0)


def test_half_a_head_does_not_hold_up_the_end():
    with service("--grace=3600", "--request-timeout=3600") as it, it.open() as raw:
        raw.sendall(b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\nGET /healthz HTTP/1.1\r\n")
        tap.equal(raw.recv(12), b"HTTP/1.1 200")
        tap.equal(it.stop(), 0)


def test_half_a_body_does_not_hold_up_the_end():
    """Nor if the client has died, and a child of its keeps the connection."""
    with service("--grace=3600", "--request-timeout=3600") as it, it.open() as raw:
        raw.sendall(b"PUT /v1/jobs/stuck HTTP/1.1\r\n" + HOST + b"Content-Length: 100\r\n\r\n{")
        serve_machine.until(lambda: requests(it) == 1, "the request")
        tap.equal(it.stop(), 0)


def test_grace_has_an_end():
    with service("--grace=0.3", "--request-timeout=30") as it, locked(), it.open() as raw:
        body = json.dumps(JOB).encode()
        raw.sendall(b"PUT /v1/jobs/stuck HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        serve_machine.until(lambda: requests(it) == 1, "the request")
        tap.equal(it.stop(), 69)
        tap.contains("".join(it.talk), "requests were still under way 0.3 s after")


def test_a_second_signal():
    with service("--grace=3600", "--request-timeout=3600") as it, locked(), it.open() as raw:
        body = json.dumps(JOB).encode()
        raw.sendall(b"PUT /v1/jobs/stuck HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        serve_machine.until(lambda: requests(it) == 1, "the request")
        it.process.send_signal(signal.SIGTERM)
        serve_machine.until(lambda: refuses(it), "the end of listening")
        tap.equal(it.stop(), -signal.SIGTERM)


tap.main(globals())
