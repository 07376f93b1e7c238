# SPDX-License-Identifier: Apache-2.0
"""`flyball serve` from outside: it listens, says so, answers, and stops.

usage: serve_basics.py FLYBALL
"""
import json
import os
import pathlib
import signal
import socket
import stat
import sys
import tempfile

import serve_machine
import tap

FLYBALL = os.path.abspath(sys.argv[1])
WORK = tempfile.TemporaryDirectory(prefix="flyball-serve-")
BOX = pathlib.Path(WORK.name)
STORE = BOX / "store.sqlite"
SOCKET = BOX / "serve.sock"


def service(*arguments, **options):
    return serve_machine.service(FLYBALL, f"--store={STORE}", *arguments, **options)


def refused(status, words, *arguments, talk=False):
    result = tap.run([FLYBALL, "serve", *arguments], env=serve_machine.CLEAN, cwd=BOX)
    tap.equal(result.returncode, status, f"{arguments}: {result.stdout}{result.stderr}")
    tap.contains(result.stderr, words, str(arguments))
    tap.equal(result.stdout != "", talk, str(arguments))


def error_of(body):
    return json.loads(body)["error"]


def test_healthz():
    with service() as it:
        status, headers, body = it.ask("GET", "/healthz")
        tap.equal((status, json.loads(body)), (200, {"status": "ok"}))
        tap.equal(headers["Content-Type"], "application/json")
        tap.equal(it.ask("HEAD", "/healthz")[0], 200)
        status, headers, body = it.ask("POST", "/healthz", "{}")
        tap.equal((status, headers["Allow"], error_of(body)["code"]), (405, "GET, HEAD", "FLY_EUSAGE"))
        tap.equal(it.stop(), 0)


def test_unknown_paths():
    with service() as it:
        for path in ("/", "/healthz/", "/v2/jobs", "/..", "//"):
            status, _, body = it.ask("GET", path)
            tap.equal((status, error_of(body)["code"]), (404, "FLY_EUNSUPPORTED"), path)


def test_several_addresses():
    listen = f"127.0.0.1:0,unix:{SOCKET}"
    with service(listen=listen) as it:
        tap.equal(it.addresses[1], f"unix:{SOCKET}")
        tap.equal(stat.S_IMODE(SOCKET.stat().st_mode), 0o600)
        for address in it.addresses:
            tap.equal(it.ask("GET", "/healthz", address=address)[0], 200, address)
        tap.equal(it.stop(), 0)
    tap.equal(SOCKET.exists(), False)
    tap.equal(sorted(path.name for path in BOX.iterdir() if "sock" in path.name), [])


def test_both_kinds_of_loopback():
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            raise tap.Skip("this machine has no IPv6 loopback") from None
    with service(listen="[::1]:0,localhost:0") as it:
        tap.equal([address.rsplit(":", 1)[0] for address in it.addresses], ["http://[::1]", "http://127.0.0.1"])
        for address in it.addresses:
            tap.equal(it.ask("GET", "/healthz", address=address)[0], 200, address)


def test_a_socket_left_behind():
    with service(listen=f"unix:{SOCKET}") as it:
        it.process.send_signal(signal.SIGKILL)
        it.process.wait()
    tap.equal(SOCKET.exists(), True)
    with service(listen=f"unix:{SOCKET}") as it:
        tap.equal(it.ask("GET", "/healthz")[0], 200)
        refused(69, "Address already in use", f"--listen=unix:{SOCKET}", f"--store={STORE}")
        tap.equal(it.ask("GET", "/healthz")[0], 200, "after another one wanted its place")
        tap.equal(it.stop(signal.SIGINT), 0)


def test_a_socket_of_another_program():
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(SOCKET))
        other.listen()
        refused(69, "Address already in use", f"--listen=unix:{SOCKET}", f"--store={STORE}")
    SOCKET.unlink()
    SOCKET.write_text("precious")
    refused(64, "no socket", f"--listen=unix:{SOCKET}", f"--store={STORE}")
    tap.equal(SOCKET.read_text(), "precious")
    SOCKET.unlink()


def test_whoever_waits_for_it_is_told():
    ready = BOX / "ready"
    for name in (str(BOX / "notify"), f"@flyball-test-{os.getpid()}"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
            systemd.bind(name.replace("@", "\0"))
            systemd.settimeout(serve_machine.PATIENCE_S)
            with service(f"--ready-file={ready}", listen="127.0.0.1:0,127.0.0.2:0",
                         env={**serve_machine.CLEAN, "NOTIFY_SOCKET": name}) as it:
                tap.equal(systemd.recv(100), b"READY=1", name)
                tap.equal(ready.read_text(), "".join(f"listening on {address}\n" for address in it.addresses))
                tap.equal(it.stop(), 0)
                tap.equal(systemd.recv(100), b"STOPPING=1", name)
    refused(66, "make its directory first", "--listen=127.0.0.1:0", f"--store={STORE}", f"--ready-file={BOX}/no/ready",
            talk=True)
    with service(env={**serve_machine.CLEAN, "NOTIFY_SOCKET": "/nowhere"}) as it:
        tap.equal(it.stop(), 0)


def test_refusals():
    with service() as it:
        refused(69, "Address already in use", f"--listen={it.url.removeprefix('http://')}", f"--store={STORE}")
    refused(64, "give an address in numbers", "--listen=example.org:80")
    refused(66, "No such file or directory", f"--listen=unix:{BOX}/nowhere/sock")
    refused(64, "directory", "--listen=127.0.0.1:0", f"--store={BOX}/")
    refused(66, "no group 'no such group'", f"--listen=unix:{SOCKET}", "--socket-group=no such group")


def test_web_pages_are_kept_out():
    with service() as it:
        tap.equal(it.ask("GET", "/healthz", headers={"Origin": "http://evil.example"})[0], 403)
        for site in ("cross-site", "same-site", "same-origin"):  # a picture, say, comes without Origin
            tap.equal(it.ask("GET", "/healthz", headers={"Sec-Fetch-Site": site})[0], 403, site)
        tap.equal(it.ask("GET", "/healthz", headers={"Sec-Fetch-Site": "none"})[0], 200, "typed by somebody")
        tap.equal(it.ask("GET", "/healthz", headers={"Host": "evil.example"})[0], 421)
        tap.equal(it.ask("GET", "/healthz", headers={"Host": "localhost:1"})[0], 200)


tap.main(globals())
