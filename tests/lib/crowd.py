# SPDX-License-Identifier: Apache-2.0
"""Many TCP connections of one user or of another machine, held by a process of its own."""

import contextlib
import ctypes
import os
import resource
import signal
import socket
import ssl
import subprocess
import time

import serve_machine
import tap

NEW_NETWORK = 0x40000000  # CLONE_NEWNET


def _connect(address, source):
    return socket.create_connection(address, serve_machine.PATIENCE_S, source and (source, 0))


def _hold(address, count, begin, drip, source, deaf, told):
    """Opens them and sends what they begin with; `drip` goes out on each, once a second. Who is deaf asks and takes nothing."""
    kept = []
    for _ in range(count):
        with contextlib.suppress(OSError):
            kept.append(_connect(address, source))
            if deaf:
                kept[-1].settimeout(0.05)
            kept[-1].sendall(begin)
            if begin.endswith(b"\r\n\r\n") and not deaf:
                kept[-1].recv(65536)
    told.sendall(b"%d" % len(kept))
    while True:
        for raw in kept if drip else ():
            with contextlib.suppress(OSError):
                raw.sendall(drip)
        time.sleep(1)


def _become(user):
    if user is not None:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)


@contextlib.contextmanager
def crowd(address, count, user=None, begin=b"", drip=b"", namespace=None, source=None, deaf=False):
    """A process of that user (None: this one), in a network namespace that is an open file, if one is given."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        try:
            hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count + 100), hard))
            if namespace is not None:
                _network("setns", namespace)
            _become(user)
            _hold(address, count, begin, drip, source, deaf, theirs)
        finally:
            os._exit(0)
    theirs.close()
    try:
        ours.settimeout(serve_machine.PATIENCE_S)
        yield int(ours.recv(100) or b"-1")
    finally:
        ours.close()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def answers(address, path="/healthz", user=None, context=None, namespace=None, source=None):
    """The status of one request on a new connection; None if that is closed, or not answered."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if namespace is not None:
                _network("setns", namespace)
            _become(user)
            raw = _connect(address, source)
            if context is not None:
                raw = context.wrap_socket(raw)
            raw.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            os.write(theirs, raw.recv(12)[9:])
        finally:
            os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as file:
        told = file.read()
    os.waitpid(child, 0)
    return int(told) if told.isdigit() else None


def unverified():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _network(function, *arguments):
    if getattr(ctypes.CDLL(None, use_errno=True), function)(*arguments, NEW_NETWORK) != 0:
        raise tap.Skip(f"no network of its own: {os.strerror(ctypes.get_errno())}")


@contextlib.contextmanager
def other_machine(*addresses):
    """
    Puts this thread into a network of its own, as 198.18.0.1 and fd00:5e5e::1, and gives the open file of another that
    reaches it, with these addresses.
    """
    def run(*words):
        try:
            made = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
        except FileNotFoundError as missing:
            raise tap.Skip("ip is not installed") from missing
        if made.returncode != 0:
            raise tap.Skip(f"no network of its own: ip {' '.join(words)}: {made.stderr.strip()}")

    with open("/proc/self/ns/net", "rb") as before:
        _network("unshare")
        try:
            with open("/proc/thread-self/ns/net", "rb") as inside:
                _network("unshare")
                with open("/proc/thread-self/ns/net", "rb") as outside:
                    run("link", "set", "lo", "up")
                    run("link", "add", "here", "type", "veth", "peer", "name", "there", "netns", f"/proc/{os.getpid()}/fd/{inside.fileno()}")
                    run("addr", "add", "198.18.0.1/24", "dev", "here")
                    run("addr", "add", "fd00:5e5e::1/32", "dev", "here", "nodad")
                    run("link", "set", "here", "up")
                    _network("setns", inside.fileno())
                    run("link", "set", "there", "up")
                    for address in addresses:
                        run("addr", "add", address, "dev", "there", *(["nodad"] if ":" in address else []))
                    _network("setns", outside.fileno())
                    yield inside.fileno()
        finally:
            _network("setns", before.fileno())
