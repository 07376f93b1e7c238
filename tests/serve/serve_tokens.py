# SPDX-License-Identifier: Apache-2.0
"""Who may ask `flyball serve`, and what crosses the network: tokens and TLS.

usage: serve_tokens.py FLYBALL
"""
import contextlib
import json
import os
import pathlib
import shutil
import socket
import ssl
import stat
import sys
import tempfile
import time

import serve_machine
import tap

FLYBALL = os.path.abspath(sys.argv[1])
WORK = tempfile.TemporaryDirectory(prefix="flyball-serve-tokens-")
BOX = pathlib.Path(WORK.name)
STORE = BOX / "store.sqlite"
JOB = {"batch_sizes": [16, 32], "default_batch_size": 32, "max_epochs": 5}
PATH = "/somewhere"  # 404 for whoever gets in


def make(name, *arguments, file, status=0):
    result = tap.run([FLYBALL, "token", name, f"--tokens={file}", *arguments], env=serve_machine.CLEAN, cwd=BOX)
    tap.equal(result.returncode, status, result.stderr)
    return result.stdout.strip() if status == 0 else result.stderr


def service(*arguments, **options):
    return serve_machine.service(FLYBALL, f"--store={STORE}", *arguments, **options)


def refused(status, words, *arguments):
    result = tap.run([FLYBALL, "serve", f"--store={STORE}", *arguments], env=serve_machine.CLEAN, cwd=BOX)
    tap.equal(result.returncode, status, f"{arguments}: {result.stdout}{result.stderr}")
    tap.contains(result.stderr, words, str(arguments))
    tap.equal(result.stdout, "", str(arguments))


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def status_of(it, token=None, **options):
    return it.ask("GET", PATH, headers=bearer(token) if token is not None else {}, **options)[0]


def test_the_command():
    file = BOX / "made"
    tokens = {make(f"t{i}", "--scope=read", "--expires=1h", file=file) for i in range(3)}
    tap.equal(len(tokens), 3, "each is another")
    tap.equal({len(token) for token in tokens}, {47})
    tap.equal(stat.S_IMODE(file.stat().st_mode), 0o600)
    text = file.read_text()
    tap.equal([line.split()[:2] for line in text.splitlines()], [[f"t{i}", "read"] for i in range(3)])
    tap.equal([token for token in tokens if token in text], [], "no token stands in the file")
    tap.contains(make("t1", file=file, status=65), "has a token named 't1'")
    tap.contains(make("a b", file=file, status=64), "give the token a name")
    tap.contains(make("x", "--expires=3w", file=file, status=64), "expected days as 90d")
    tap.contains(make("x", "--expires=2027-02-30T00:00:00Z", file=file, status=64), "expected days as 90d")
    tap.equal(file.read_text(), text, "refusals leave the file alone")
    file.write_text(text.rstrip("\n"))
    make("late", "--expires=never", file=file)
    tap.equal([line.split()[0] for line in file.read_text().splitlines()], ["t0", "t1", "t2", "late"])
    file.chmod(0o644)
    tap.contains(make("x", file=file, status=77), "chmod it to 0600")


def test_who_gets_in():
    file = BOX / "tokens"
    good = make("good", file=file)
    reader = make("reader", "--scope=read", "--expires=never", file=file)
    old = make("old", file=file)
    file.write_text("".join(" ".join([*line.split()[:2], "2001-01-01T00:00:00Z", line.split()[3]]) + "\n"
                            if line.startswith("old ") else line for line in file.read_text().splitlines(True)))
    with service(f"--tokens={file}", "--verbose") as it:
        tap.equal((status_of(it, good), status_of(it, reader)), (404, 404))
        tap.equal(it.ask("GET", "/healthz")[0], 200, "whether it lives anybody may know")
        for wrong in ("", "x", good[:-1], good + "x", good.swapcase(), "fly_" + "A" * 43, "x" * 10000):
            status, headers, body = it.ask("GET", PATH, headers=bearer(wrong))
            tap.equal((status, headers["WWW-Authenticate"]), (401, 'Bearer error="invalid_token"'), wrong)
            tap.equal(json.loads(body)["error"]["code"], "FLY_EPERM")
        status, headers, body = it.ask("GET", PATH)
        tap.equal((status, headers["WWW-Authenticate"]), (401, "Bearer"), "none")
        for other in (f"Basic {good}", good, f"Bearer{good}"):
            tap.equal(it.ask("GET", PATH, headers={"Authorization": other})[0], 401, other)
        tap.equal(it.ask("GET", PATH, headers={"Authorization": f"bearer  {good}"})[0], 404, "as browsers write it")
        status, _, body = it.ask("GET", PATH, headers=bearer(old))
        tap.equal(status, 401, "expired")
        tap.contains(json.loads(body)["error"]["message"], "'old' expired at 2001-01-01T00:00:00Z")
        tap.equal(it.stop(), 0)
        talk = "".join(it.talk)
        tap.contains(talk, f"GET {PATH}: 404 in ")
        tap.contains(talk, ", for good")
        tap.equal([token for token in (good, reader, old, "fly_") if token in talk], [], "no token is logged")


def test_strangers_take_nobody_s_room():
    file = BOX / "strangers"
    token = make("friend", file=file)
    with service(f"--tokens={file}", "--body-max=4096") as it, contextlib.ExitStack() as stack:
        for _ in range(20):
            raw = stack.enter_context(it.open())
            raw.sendall(b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 4096\r\n\r\n")
            tap.equal(raw.recv(12), b"HTTP/1.1 413", "without a token no body is waited for")
        tap.equal(it.ask("POST", PATH, b"x" * 4096, bearer(token))[0], 404)
        tap.equal(it.stop(), 0)


def test_scopes():
    file = BOX / "scopes"
    tokens = {scope: make(scope, f"--scope={scope}", file=file) for scope in ("read", "train", "manage")}
    asked = [("GET", "/metrics", None), ("GET", "/v1/jobs", None), ("PUT", "/v1/jobs/digits", json.dumps(JOB)),
             ("DELETE", "/v1/jobs/digits", None)]
    expected = {"read": [200, 200, 403, 403], "train": [200, 200, 200, 403], "manage": [200, 200, 200, 204]}
    with service(f"--tokens={file}", "--operators=token:manage") as it:
        for scope, token in tokens.items():
            statuses = [it.ask(method, path, body, bearer(token))[0] for method, path, body in asked]
            tap.equal(statuses, expected[scope], scope)
        tap.equal([it.ask(method, path, body)[0] for method, path, body in asked], [401] * 4)
        tap.equal(it.stop(), 0)


def test_the_file_is_read_again():
    file = BOX / "changing"
    first, second = make("first", file=file), make("second", file=file)
    lines = file.read_text().splitlines(True)
    with service(f"--tokens={file}") as it:
        tap.equal((status_of(it, first), status_of(it, second)), (404, 404))
        file.write_text(lines[0])
        tap.equal((status_of(it, first), status_of(it, second)), (404, 401), "at once")
        third = make("third", file=file)
        tap.equal(status_of(it, third), 404)
        for damage in (lambda: file.write_text("what\n"), lambda: file.chmod(0o646), file.unlink):
            damage()
            status, headers, body = it.ask("GET", PATH, headers=bearer(first))
            tap.equal((status, headers["Retry-After"]), (503, "1"), "while it is of no use, nobody gets in")
            tap.equal(str(BOX) in body.decode(), False, "where it lies is nobody's business")
            tap.equal(it.ask("GET", "/healthz")[0], 200)
            if file.exists():
                file.unlink()
            file.write_text(lines[1])
            file.chmod(0o600)
            tap.equal((status_of(it, first), status_of(it, second)), (401, 404), "and it is mended")
        tap.equal(it.stop(), 0)


def test_a_token_in_the_path():
    file = BOX / "inpath"
    train, read = make("trains", file=file), make("reads", "--scope=read", file=file)
    job = {"job_id": "night-1", "job_id_prefix": "night", "batch_sizes": [8, 16], "default_batch_size": 16,
           "max_power": 250, "number_of_gpus": 1, "gpu_model": "V100"}

    def ask(it, token, method, path, body=None, slash=""):
        status, _, content = it.ask(method, f"/token/{token}{slash}{path}", body)
        return status, json.loads(content)

    with service(f"--tokens={file}", "--compat-zeus", "--verbose") as it:
        tap.equal(ask(it, train, "POST", "/jobs", job)[0], 201)
        tap.equal(ask(it, train, "POST", "/jobs", job, slash="/")[0], 200, "an address that ends with a slash")
        status, trial = ask(it, train, "GET", "/jobs/batch_size?job_id=night-1")
        tap.equal((status, trial["batch_size"]), (200, 16))
        report = {**trial, "time": 1, "energy": 1, "metric": 0.1, "current_epoch": 1}
        tap.equal(ask(it, train, "POST", "/report", report)[0], 200)
        tap.equal(ask(it, train, "PATCH", "/trials", trial), (200, None))
        tap.equal(ask(it, train, "DELETE", "/jobs?job_id=night-1")[0], 403)
        tap.equal(ask(it, read, "POST", "/jobs", job)[0], 403)
        for wrong in (train[:-1], train + "x", "", "%66ly", "x" * 5000):
            tap.equal(ask(it, wrong, "POST", "/jobs", job)[0], 401, wrong)
        status, _, body = it.ask("POST", "/jobs", job)
        tap.equal(status, 401)
        tap.contains(body.decode(), "https://HOST:PORT/token/TOKEN as server_url")
        tap.equal(it.ask("POST", "/jobs", job, bearer(train))[0], 200, "the header does as well")
        for path in ("/v1/jobs", "/v1/jobs/night-1", "/metrics"):
            tap.equal(ask(it, train, "GET", path)[0], 403, path)
        tap.equal(ask(it, train, "GET", "/token/x/jobs")[0], 404)
        tap.equal((it.ask("GET", f"/token/{train}")[0], it.ask("GET", "/token/")[0]), (404, 401))
        tap.equal(it.stop(), 0)
        talk = "".join(it.talk)
        tap.contains(talk, "POST /report: 200 in ")
        tap.equal("fly_" in talk, False, "no token is logged")
    with service(f"--tokens={file}") as it:
        tap.equal(ask(it, train, "GET", "/jobs/batch_size?job_id=night-1")[0], 404, "without --compat-zeus")
        tap.equal(it.stop(), 0)
    with service("--compat-zeus") as it:
        tap.equal(ask(it, "any", "POST", "/jobs", job)[0], 200, "where none is wanted, none is looked at")
        tap.equal(it.stop(), 0)


def test_refusals():
    file = BOX / "some"
    make("one", file=file)
    outside = "--listen=0.0.0.0:0"
    refused(64, "make one with 'flyball token NAME --tokens FILE'", outside)
    refused(64, "can be reached from other machines", "--listen=127.0.0.1:0,[::]:0")
    refused(64, "would cross the network in the clear", outside, f"--tokens={file}")
    refused(64, "https://HOST:PORT/token/TOKEN as their server_url", outside, "--compat-zeus")
    refused(64, "would cross the network in the clear", outside, f"--tokens={file}", "--compat-zeus")
    refused(64, "both --tls-certificate and --tls-key", f"--tls-key={file}")
    refused(66, "No such file", f"--tls-key={file}", f"--tls-certificate={BOX}/none")
    refused(78, "cannot be used", f"--tls-key={file}", f"--tls-certificate={file}")
    refused(66, "No such file", f"--tokens={BOX}/none")
    file.write_text("nonsense\n")
    refused(78, "some:1 is no token", f"--tokens={file}")
    file.chmod(0o604)
    refused(77, "chmod it to 0600", f"--tokens={file}")


def test_plain_http_when_asked_for():
    file = BOX / "plain"
    token = make("one", file=file)
    with service(f"--tokens={file}", "--insecure-plain-http", listen="0.0.0.0:0") as it:
        address = f"http://127.0.0.1:{it.port}"
        tap.equal((status_of(it, token, address=address), status_of(it, address=address)), (404, 401))
        host = {"Host": "flyball.example.org", "Origin": "https://example.org", **bearer(token)}
        tap.equal(it.ask("GET", PATH, headers=host, address=address)[0], 404, "whatever name it is called by")
        tap.equal(it.stop(), 0)


# -- TLS --


def certificates():
    """An authority, and a certificate for 127.0.0.1 that it vouches for."""
    if shutil.which("openssl") is None:
        raise tap.Skip("openssl is not installed")
    (BOX / "extensions").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")

    def openssl(*arguments):
        result = tap.run(["openssl", *map(str, arguments)], cwd=BOX)
        tap.equal(result.returncode, 0, result.stderr)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test authority")
    openssl("req", *key, "-keyout", "own.key", "-out", "own.csr", "-subj", "/CN=flyball")
    openssl("x509", "-req", "-in", "own.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-out", "own.pem", "-extfile", "extensions")
    (BOX / "own.key").chmod(0o600)
    return BOX / "own.pem", BOX / "own.key"


def ask_tls(it, context, headers):
    with socket.create_connection(("127.0.0.1", it.port), timeout=serve_machine.PATIENCE_S) as raw:
        with context.wrap_socket(raw, server_hostname="127.0.0.1") as tls:
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            tls.sendall(f"GET {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{lines}\r\n".encode())
            return tls.version(), serve_machine.read_all(tls)


def test_tls():
    certificate, key = certificates()
    file = BOX / "tls"
    token = make("one", file=file)
    listen = f"0.0.0.0:0,unix:{BOX}/tls.sock"
    with service(f"--tls-certificate={certificate}", f"--tls-key={key}", f"--tokens={file}", listen=listen) as it:
        tap.equal(it.url, f"https://0.0.0.0:{it.port}")
        context = ssl.create_default_context(cafile=BOX / "ca.pem")
        version, answer = ask_tls(it, context, bearer(token))
        tap.contains(answer, b"HTTP/1.1 404 ")
        tap.equal(version, "TLSv1.3")
        tap.contains(ask_tls(it, context, {})[1], b"HTTP/1.1 401 ")
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        tap.equal(ask_tls(it, context, bearer(token))[0], "TLSv1.2")
        try:
            ask_tls(it, ssl.create_default_context(), bearer(token))
            raise AssertionError("an unknown authority was believed")
        except ssl.SSLCertVerificationError:
            pass
        tap.equal(b"HTTP/1.1 200" in it.say(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"), False, "plain HTTP at TLS")
        tap.equal(it.ask("GET", PATH, headers=bearer(token), address=it.addresses[1])[0], 404, "a socket has none")
        # Somebody connects and says nothing; others are answered.
        with it.open() as idle:
            began = time.monotonic()
            tap.contains(ask_tls(it, context, bearer(token))[1], b"HTTP/1.1 404 ")
            tap.equal(time.monotonic() - began < serve_machine.PATIENCE_S / 2, True)
            idle.sendall(b"\x16\x03")
        tap.equal(it.stop(), 0)


def test_a_key_that_everybody_may_read():
    certificate, key = certificates()
    key.chmod(0o644)
    refused(77, "chmod it to 0600", f"--tls-certificate={certificate}", f"--tls-key={key}")
    key.chmod(0o600)
    refused(78, "belong together", f"--tls-certificate={certificate}", f"--tls-key={BOX}/ca.key")


tap.main(globals())
