# SPDX-License-Identifier: Apache-2.0
"""What `flyball serve` takes for a request, and for a cipher: by raw bytes, as a proxy in front might pass them on.

usage: serve_strict.py FLYBALL
"""
import contextlib
import json
import os
import pathlib
import ssl
import sys
import tempfile

import serve_machine
import tap

FLYBALL = os.path.abspath(sys.argv[1])
WORK = tempfile.TemporaryDirectory(prefix="flyball-serve-strict-")
BOX = pathlib.Path(WORK.name)
LINE = b"GET /healthz HTTP/1.1\r\n"
HOST = b"Host: localhost\r\n"
END = b"\r\n"
HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def service(*arguments, **options):
    return serve_machine.service(FLYBALL, f"--store={BOX}/store.sqlite", *arguments, **options)


GOOD = [
    LINE + HOST + END,
    b"GET /healthz HTTP/1.0\r\n\r\n",
    b"GET /healthz HTTP/1.0\r\nHost: localhost:1\r\n\r\n",
    b"\r\n" + LINE + HOST + END,
    LINE + b"hOST:localhost\r\nX:   a b  \t\r\nY:\r\nZ:\ta\r\nCookie: a=b; c=d\r\nX: again \xc3\xa4\r\n" + END,
    b"GET /healthz?a=b&c=d%20;e HTTP/1.1\r\n" + HOST + END,
    b"HEAD /healthz HTTP/1.1\r\n" + HOST + END,
    LINE + HOST + b"X: " + b"a" * 12000 + END + END,
    LINE + b"".join(b"X-%d: %d\r\n" % (i, i) for i in range(300)) + HOST + END,
]

BAD = [
    # Lines that end otherwise.
    b"GET /healthz HTTP/1.1\nHost: localhost\n\n",
    b"GET /healthz HTTP/1.1\nHost: localhost\r\n\r\n",
    LINE + b"Host: localhost\n\r\n",
    LINE + b"Host: localhost\r\n\n",
    LINE + HOST + b"X: a\n\n",
    LINE + HOST + b"X: a\nY: b\r\n" + END,
    LINE + b"Host: localhost\n\r]\n",
    LINE + HOST + b"X: a\rY: b\r\n" + END,
    LINE + HOST + b"X: a\r\r\n" + END,
    LINE + HOST + b"X: a\r\n b\r\n" + END,
    LINE + HOST + b" Transfer-Encoding: chunked\r\n" + END,
    # NULs.
    LINE + HOST + b"X: a\0b\r\n" + END,
    LINE + HOST + b"X: a\0\r\n" + END,
    LINE + HOST + b"X: a\n\0x\n",
    LINE + HOST + b"X: a\0x\n\n",
    LINE + HOST + b"X: a\n\0Y: b\r\n" + END,
    LINE + HOST + b"X: a\r\n\0Y: b\r\n" + END,
    b"GET /healthz HTTP/1.0\n\0x\n",
    LINE + HOST + b"X: \0\r\n" + END,
    LINE + HOST + b"X\0: a\r\n" + END,
    LINE + b"Host: localhost\0.example\r\n" + END,
    b"GET /healthz\0 HTTP/1.1\r\n" + HOST + END,
    b"GET /healthz\0x HTTP/1.1\r\n" + HOST + END,
    b"GET /healthz?a=\0 HTTP/1.1\r\n" + HOST + END,
    b"G\0ET /healthz HTTP/1.1\r\n" + HOST + END,
    b"GET /healthz HTTP/1.1\0\r\n" + HOST + END,
    # Names.
    LINE + HOST + b"Transfer-Encoding : chunked\r\n" + END,
    LINE + HOST + b"Transfer-Encoding\t: chunked\r\n" + END,
    LINE + HOST + b"Content-Length : 3\r\n" + END,
    LINE + HOST + b"X Y: a\r\n" + END,
    LINE + HOST + b"X\x0b: a\r\n" + END,
    LINE + HOST + b": a\r\n" + END,
    LINE + HOST + b"X\r\n" + END,
    LINE + HOST + b"X\xc3\xa4: a\r\n" + END,
    LINE + HOST + b"X: \x1b[2J\r\n" + END,
    # Hosts.
    LINE + END,
    LINE + b"X: a\r\n" + END,
    LINE + b"Host:\r\n" + END,
    LINE + b"Host: a, b\r\n" + END,
    LINE + HOST + HOST + END,
    LINE + HOST + b"host: other\r\n" + END,
    b"GET /healthz HTTP/1.0\r\n" + HOST + HOST + END,
    LINE + HOST + b"Host : other\r\n" + END,
    # Lengths, tokens.
    b"POST /x HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    LINE + HOST + b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n" + END,
    # The first line.
    b"GET  /healthz HTTP/1.1\r\n" + HOST + END,
    b"GET /healthz  HTTP/1.1\r\n" + HOST + END,
    b"GET /healthz x HTTP/1.1\r\n" + HOST + END,
    b"GET /healthz HTTP/1.1 \r\n" + HOST + END,
    b"GET /healthz HTTP/1.\r\r\n" + HOST + END,
    b"GET /healthz HTTP/1.x\r\n" + HOST + END,
    b"G(T /healthz HTTP/1.1\r\n" + HOST + END,
]


def statuses(answer):
    return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:] if part[:3].isdigit()]


def ask(it, data, piece=None):
    """All that comes of the bytes and a request behind them, which is the last."""
    data += HIDDEN
    with it.open() as raw:
        with contextlib.suppress(OSError):
            for at in range(0, len(data), piece or len(data)):
                raw.sendall(data[at:at + (piece or len(data))])
        return serve_machine.read_all(raw)


def test_what_is_a_request():
    with service() as it:
        for data in GOOD:
            answered = statuses(ask(it, data))
            tap.equal(answered, [200] if b"HTTP/1.0" in data else [200, 404], data[:80])
        for data in GOOD[3:6]:
            tap.equal(statuses(ask(it, data, piece=1)), [200, 404], data[:80])
        tap.equal(it.stop(), 0)


def test_what_is_none():
    with service("--verbose") as it:
        for data in BAD:
            answer = ask(it, data)
            tap.equal(statuses(answer)[:1] in ([], [400]), True, (data, answer))
            tap.equal(len(statuses(answer)) <= 1, True, ("what follows is not answered", data, answer))
        for data in BAD[::5]:
            tap.equal(statuses(ask(it, data, piece=1))[:1] in ([], [400]), True, data)
        answer = ask(it, BAD[0])
        tap.equal(json.loads(answer.split(b"\r\n\r\n", 1)[1])["error"]["code"], "FLY_EUSAGE")
        tap.contains(answer, b"Connection: close")
        tap.equal(it.ask("GET", "/healthz")[0], 200)
        tap.equal(it.stop(), 0)
        tap.equal("hidden" in "".join(it.talk), False)


def test_ciphers():
    certificate, key = serve_machine.certificate(BOX, "rsa:2048")
    with service(f"--tls-certificate={certificate}", f"--tls-key={key}") as it:

        def shake(ciphers, version):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.set_ciphers(ciphers)
            context.minimum_version = context.maximum_version = version
            with it.open() as raw:
                try:
                    with context.wrap_socket(raw) as tls:
                        return tls.cipher()[0]
                except (ssl.SSLError, ConnectionError):
                    return None

        old = ssl.TLSVersion.TLSv1_2
        tap.equal(shake("ECDHE-RSA-AES128-GCM-SHA256", old), "ECDHE-RSA-AES128-GCM-SHA256")
        for without in ("AES128-SHA", "AES256-SHA", "AES128-SHA256", "AES128-GCM-SHA256", "AES256-GCM-SHA384",
                        "kRSA:@SECLEVEL=0", "aNULL:eNULL:@SECLEVEL=0"):
            tap.equal(shake(without, old), None, without)
        tap.contains(shake("ALL", ssl.TLSVersion.TLSv1_3), "TLS_")
        tap.equal(it.stop(), 0)


tap.main(globals())
