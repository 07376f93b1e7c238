# SPDX-License-Identifier: Apache-2.0
"""What clients may do to `flyballd`, and that others are answered meanwhile: numbers of connections, slowness, sizes, web pages.

usage: flyballd_limits.py FLYBALL

FLYBALL_TEST_IDLE: how many idle connections there are (300; `make soak` has 10,000).
"""
import contextlib
import http.client
import json
import os
import resource
import signal
import socket
import time

import crowd
import node_machine
import power_machine
import serve_machine
import tap

IDLE = int(os.environ.get("FLYBALL_TEST_IDLE", "300"))
HEAD = b"Host: localhost\r\n"


def machine(**server):
    return node_machine.daemon(settings={"server": {"listen": f"unix:{node_machine.SOCKET},127.0.0.1:0", **server}})


def port(daemon):
    return int(daemon.url.rsplit(":", 1)[1])


def over_tcp(daemon):
    return socket.create_connection(("127.0.0.1", port(daemon)), timeout=serve_machine.PATIENCE_S)


def over_unix(_daemon=None):
    raw = socket.socket(socket.AF_UNIX)
    raw.settimeout(serve_machine.PATIENCE_S)
    raw.connect(str(node_machine.SOCKET))
    return raw


def is_answered(daemon):
    """Over both sockets; and a GPU can be turned."""
    tap.equal(daemon.ask("GET", "/v1/gpus")[0], 200)
    connection = http.client.HTTPConnection("127.0.0.1", port(daemon), timeout=serve_machine.PATIENCE_S)
    connection.request("GET", "/metrics")
    tap.equal(connection.getresponse().status, 200)
    connection.close()
    made = node_machine.lease(daemon, 250, ["1"])
    tap.equal(daemon.ask("DELETE", f"/v1/leases/{made['id']}")[0], 200)


def is_closed(raw):
    raw.settimeout(0.05)
    try:
        return raw.recv(65536) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def gather(count, user):
    """Opens so many connections as that user (None: as this one), asks on each, and keeps them; how many were answered."""
    if user is not None:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    answered, kept = 0, []
    for _ in range(count):
        kept.append(socket.socket(socket.AF_UNIX))
        kept[-1].settimeout(serve_machine.PATIENCE_S)
        with contextlib.suppress(OSError):
            kept[-1].connect(str(node_machine.SOCKET))
            kept[-1].sendall(b"GET /v1/leases HTTP/1.1\r\n" + HEAD + b"\r\n")
            answered += kept[-1].recv(100).startswith(b"HTTP/1.1 200")
    return answered, kept


@contextlib.contextmanager
def unix_crowd(count, user=None):
    """A process of that user with so many connections; how many of them were answered."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        try:
            answered, kept = gather(count, user)
            theirs.sendall(b"%d" % answered)
            signal.pause()
            del kept
        finally:
            os._exit(0)
    theirs.close()
    try:
        ours.settimeout(serve_machine.PATIENCE_S)
        yield int(ours.recv(100))
    finally:
        ours.close()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def another():
    """A user whom root can become; None for a test that is another user itself."""
    if os.geteuid() != 0:
        return None
    power_machine.HOME.chmod(0o711)
    return power_machine.NOBODY


def test_a_user_with_many_connections():
    user = another()
    with power_machine.machine(), machine(connections_per_user=8) as daemon:
        with unix_crowd(20, user) as answered:
            tap.equal(answered, 8)
            if user is not None:
                is_answered(daemon)
                # Another user is not that one.
                with unix_crowd(3, user - 1) as others:
                    tap.equal(others, 3)
                with unix_crowd(20) as roots:
                    tap.equal(roots, 20, "root")
        serve_machine.until(lambda: answered_again(user), "the user's connections are free again")
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))
    node_machine.clean()


def answered_again(user):
    with unix_crowd(1, user) as answered:
        return answered == 1


def test_all_connections_taken():
    user = another()
    if user is None:
        raise tap.Skip("only root has connections left")
    with power_machine.machine(), machine(connections=6) as daemon:
        with unix_crowd(12, user) as answered:
            tap.equal(answered, 6)
            is_answered(daemon)
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))
    node_machine.clean()


def test_a_user_s_tcp_connections():
    """As many as there may be of one user, who waits in all ways there are: others are answered, and he is."""
    user = another()
    if user is None:
        raise tap.Skip("only root can be two users")
    request = b"GET /healthz HTTP/1.1\r\n" + HEAD + b"\r\n"
    with power_machine.machine(), machine(request_timeout=3600) as daemon:
        address = ("127.0.0.1", port(daemon))
        for begin, drip in ((b"", b""), (request[:-2] + b"X: ", b"x"), (request, b""), (request, request[:1]),
                            (b"POST /v1/leases HTTP/1.1\r\n" + HEAD + b"Content-Length: 9\r\n\r", b"")):
            with crowd.crowd(address, 1100, user, begin, drip) as held:
                tap.equal(held, 1100)
                is_answered(daemon)
                tap.equal([crowd.answers(address, "/metrics", who) for who in (user - 1, user, None)], [200] * 3, str((begin, drip)))
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))
    node_machine.clean()


def test_all_tcp_connections():
    user = another()
    if user is None:
        raise tap.Skip("only root can be several users")
    with power_machine.machine(), machine(request_timeout=3600, connections=40, connections_per_host=40) as daemon:
        address = ("127.0.0.1", port(daemon))
        with contextlib.ExitStack() as stack:
            for other in range(4):
                stack.enter_context(crowd.crowd(address, 40, user - other))
                is_answered(daemon)
            tap.equal([crowd.answers(address, "/metrics", user - other) for other in range(6)], [200] * 6)
        # Nor do those keep room that take no answer.
        with contextlib.ExitStack() as stack:
            for other in range(4):
                stack.enter_context(crowd.crowd(address, 40, user - other, (b"GET /metrics HTTP/1.1\r\n" + HEAD + b"\r\n") * 9000, deaf=True))
                is_answered(daemon)
            tap.equal([crowd.answers(address, "/metrics", user - other) for other in range(6)], [200] * 6)
        # What is under way does not end, and leaves a quarter to others.
        with crowd.crowd(address, 40, user, b"GET /healthz HTTP/1.1\r\n" + HEAD + b"Connection: keep-alive\r\n\r\n"), \
                crowd.crowd(address, 40, user, b"GET /cpu/stream_power HTTP/1.1\r\n" + HEAD + b"\r\n"):
            is_answered(daemon)
            tap.equal([crowd.answers(address, "/metrics", user - other) for other in range(1, 6)], [200] * 5)
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))
    node_machine.clean()


def test_slow_loris():
    with power_machine.machine(), machine(request_timeout=1) as daemon:
        drips = [(b"", b""), (b"", b"\r\n"), (b"GET /v1/gpus HTTP/1.1\r\nHo", b"o"),
                 (b"POST /v1/leases HTTP/1.1\r\n" + HEAD + b"Content-Length: 60000\r\n\r\n", b"x")]
        raws = []
        for begin, drop in drips:
            for connect in (over_unix, lambda: over_tcp(daemon)):
                raw = connect()
                raw.sendall(begin)
                raws.append((raw, drop))
        is_answered(daemon)
        end = time.monotonic() + serve_machine.PATIENCE_S
        while raws:
            tap.equal(time.monotonic() < end, True, f"{len(raws)} slow clients are still there")
            for raw, drop in list(raws):
                with contextlib.suppress(ConnectionError):
                    raw.sendall(drop)
                if is_closed(raw):
                    raw.close()
                    raws.remove((raw, drop))
        is_answered(daemon)
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))
    node_machine.clean()


def test_half_open():
    """Clients that have shut their side, or have reset, and such as sent half a request before."""
    with power_machine.machine(), machine(request_timeout=60) as daemon:
        raws = [connect(daemon) for connect in (over_tcp, over_unix) for _ in range(20)]
        for number, raw in enumerate(raws):
            raw.sendall(b"GET /v1/gpus HTT" if number % 2 else b"GET /v1/gpus HTTP/1.1\r\n" + HEAD + b"\r\n")
            raw.shutdown(socket.SHUT_WR)
        is_answered(daemon)
        for number, raw in enumerate(raws):
            if number % 4 == 0:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            raw.close()
        is_answered(daemon)
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))
    node_machine.clean()


def test_clients_that_never_read():
    """Streams and answers that nobody takes; another stream gets each sample."""
    with power_machine.machine(), machine(request_timeout=1) as daemon:
        raws = [connect(daemon) for connect in (over_tcp, over_unix) for _ in range(8)]
        for raw in raws:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            raw.sendall(b"GET /v1/stream HTTP/1.1\r\n" + HEAD + b"\r\n")
        deaf = over_tcp(daemon)
        deaf.settimeout(0.2)
        with contextlib.suppress(TimeoutError, ConnectionError):
            for _ in range(3000):
                deaf.sendall(b"GET /v1/gpus HTTP/1.1\r\n" + HEAD + b"\r\n")
        with over_unix() as raw, raw.makefile("rb") as reader:
            raw.sendall(b"GET /v1/stream?gpu=0 HTTP/1.1\r\n" + HEAD + b"\r\n")
            seen = 0
            while seen < 10:
                seen += reader.readline().startswith(b"event: gpu")
        is_answered(daemon)
        for raw in [*raws, deaf]:
            raw.close()
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))
    node_machine.clean()


def test_idle_connections():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, IDLE + 500)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    count = min(IDLE, hard - 500)
    with power_machine.machine(), machine(connections_per_user=20000, connections_per_host=20000, request_timeout=3600) as daemon:
        raws = []
        for number in range(count):
            raws.append(over_tcp(daemon) if number % 2 else over_unix())
            if number % 3 == 0:  # it has asked before
                raws[-1].sendall(b"GET /healthz HTTP/1.1\r\n" + HEAD + b"\r\n")
                tap.equal(raws[-1].recv(20)[:12], b"HTTP/1.1 200")
        is_answered(daemon)
        for raw in raws:
            raw.close()
        is_answered(daemon)
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))
    print(f"# {count} idle connections", flush=True)
    node_machine.clean()


def test_the_largest_requests():
    """As large as may be, in large numbers and never finished; what is larger is refused before it comes."""
    most = 65536
    with power_machine.machine(), machine(body_max=most) as daemon:
        body = b'{"gpus": ["0"], "power_limit_w": 250, "program": "' + b"x" * (most - 52) + b'"}'
        tap.equal(len(body), most)
        status = daemon.ask("POST", "/v1/leases", headers={"Content-Length": str(most + 1)})[0]
        tap.equal(status, 413)
        with over_unix() as raw:
            raw.sendall(b"POST /v1/leases HTTP/1.1\r\n" + HEAD + b"Content-Length: %d\r\nX: " % most + b"a" * 16000 + b"\r\n\r\n" + body)
            tap.contains(raw.recv(4096).decode(), "HTTP/1.1 4")
        raws = [over_unix() for _ in range(24)]
        for raw in raws:
            raw.sendall(b"POST /v1/leases HTTP/1.1\r\n" + HEAD + b"Content-Length: %d\r\n\r\n" % most + body[:-1])
        # Their memory is taken: further bodies are refused for now, and reading goes on.
        tap.equal(daemon.ask("GET", "/v1/gpus")[0], 200)
        refused = serve_machine.until(lambda: next((raw for raw in raws if is_refused(raw)), None), "a body too many")
        refused.close()
        for raw in raws:
            raw.close()
        serve_machine.until(lambda: daemon.ask("POST", "/v1/leases", {"gpus": ["0"], "power_limit_w": 240})[0] == 200, "a lease")
        tap.equal(power_machine.limits()[0], 240)
        many = json.dumps({"gpus": ["0"] * 9000, "power_limit_w": 230})
        tap.equal(daemon.ask("POST", "/v1/leases", json.loads(many))[0] in (400, 409, 413, 422), True)
        tap.equal(daemon.ask("GET", "/v1/gpus?" + "&".join(f"a{i}=1" for i in range(900)))[0] in (400, 413, 414), True)
        deep = b"[" * 30000 + b"]" * 30000
        with over_unix() as raw:
            raw.sendall(b"POST /v1/leases HTTP/1.1\r\n" + HEAD + b"Content-Length: %d\r\n\r\n" % len(deep) + deep)
            tap.contains(raw.recv(4096).decode(), "HTTP/1.1 4")
        tap.equal(daemon.ask("GET", "/v1/gpus")[0], 200)
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))
    node_machine.clean()


def is_refused(raw):
    raw.settimeout(0.01)
    try:
        return raw.recv(65536).startswith(b"HTTP/1.1 503")
    except (TimeoutError, ConnectionError):
        return False


def test_web_pages():
    """A page in a browser on this machine may call the daemon by a name of its own, and send what it likes."""
    wish = {"gpus": ["0"], "power_limit_w": 200, "expires_s": 60}
    name = {"Host": "rebound.example:7471"}
    pages = ((421, name), (421, {**name, "Authorization": "Bearer any"}), (403, {"Origin": "http://evil.example"}), (403, {"Origin": "null"}),
             (403, {"Sec-Fetch-Site": "cross-site"}), (403, {"Sec-Fetch-Site": "same-origin"}),
             (403, {"Origin": "http://evil.example", "Authorization": "Bearer any"}))
    with power_machine.machine(), machine() as daemon:
        for status, headers in pages:
            for method, path, body in (("GET", "/v1/gpus", None), ("GET", "/metrics", None), ("GET", "/v1/stream", None),
                                       ("POST", "/v1/leases", json.dumps(wish)), ("OPTIONS", "/v1/leases", None)):
                connection = http.client.HTTPConnection("127.0.0.1", port(daemon), timeout=serve_machine.PATIENCE_S)
                connection.request(method, path, body, headers)
                answer = connection.getresponse()
                tap.equal((answer.status, answer.getheader("Access-Control-Allow-Origin")), (status, None), f"{method} {path} {headers}")
                connection.close()
        tap.equal(power_machine.limits(), [power_machine.DEFAULT_W] * 2)
        is_answered(daemon)
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))
    node_machine.clean()


tap.main(globals())
