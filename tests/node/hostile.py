# SPDX-License-Identifier: Apache-2.0
"""What a user may send over a Unix socket to stop whoever gets it: descriptors whose close does not return.

    with hostile.attack("fuse", "first", SOCKET): ...       by a process of another user, until the block ends
    hostile.KINDS, hostile.WAYS
"""
import contextlib
import ctypes
import os
import pathlib
import signal
import socket
import stat
import struct
import tempfile
import threading
import time

import tap

ANOTHER = GROUP = 65534
HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
CLONE_NEWNS, CLONE_NEWUSER, MS_NOSUID, MS_NODEV, PR_SET_DUMPABLE = 0x20000, 0x10000000, 2, 4, 4
LOOKUP, FORGET, GETATTR, OPEN, FLUSH, INIT = 1, 2, 3, 14, 25, 26
COUNT = 6


def lingering(_directory):
    """A TCP socket whose close waits for an hour, since nobody reads what it sent."""
    door, near = socket.socket(), socket.socket()
    door.bind(("127.0.0.1", 0))
    door.listen()
    near.connect(door.getsockname())
    far = door.accept()[0]
    near.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            near.send(b"x" * 65536)
    near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
    KEPT.append(far)
    return near.detach()


def attributes(node, mode):
    """struct fuse_attr."""
    return struct.pack("<6Q3I7I", node, 0, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 0, 0)


def serve_fuse(device):
    """Answers until a file is open, and never when it is closed."""
    while True:
        asked = os.read(device, 1 << 18)
        _, opcode, unique, _ = struct.unpack_from("<IIQQ", asked)
        if opcode == INIT:
            body = struct.pack("<IIIIHHII9I", 7, 31, 65536, 0, 16, 12, 65536, 1, *[0] * 9)
        elif opcode == GETATTR:
            body = struct.pack("<QII", 3600, 0, 0) + attributes(1, stat.S_IFDIR | 0o755)
        elif opcode == LOOKUP:
            body = struct.pack("<QQQQII", 2, 0, 3600, 3600, 0, 0) + attributes(2, stat.S_IFREG | 0o666)
        elif opcode == OPEN:
            body = struct.pack("<QII", 1, 0, 0)
        else:
            continue
        os.write(device, struct.pack("<IiQ", 16 + len(body), 0, unique) + body)


def of_fuse(directory):
    """A file of a file system of this user's own, of which every close of an installed descriptor waits."""
    if SHARED is not None:
        return SHARED
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0:
        raise OSError("no user namespaces")
    pathlib.Path("/proc/self/setgroups").write_text("deny")
    pathlib.Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
    pathlib.Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
    device = os.open(f"{directory}/fuse", os.O_RDWR)
    place = f"{directory}/mount"
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0"
    if libc.mount(b"hostile", place.encode(), b"fuse", MS_NOSUID | MS_NODEV, options.encode()) != 0:
        raise OSError(f"cannot mount: {os.strerror(ctypes.get_errno())}")
    server = os.fork()
    if server == 0:
        serve_fuse(device)
    os.close(device)
    globals()["SHARED"] = os.open(f"{place}/file", os.O_RDWR)
    return SHARED


SHARED = None
KEPT = []
KINDS = {"linger": lingering, "fuse": of_fuse}


def connected(path):
    made = socket.socket(socket.AF_UNIX)
    made.connect(path)
    KEPT.append(made)
    return made


def send(connection, data, fd):
    """A kernel may refuse to send it: then all is well."""
    with contextlib.suppress(PermissionError, BrokenPipeError, ConnectionResetError):
        socket.send_fds(connection, [data], [fd])
    if fd != SHARED:
        # If the other side was faster, this close is the one that waits.
        threading.Thread(target=os.close, args=(fd,), daemon=True).start()


def first(path, fd):
    send(connected(path), HEAD, fd)


def first_of_few(path, fd):
    """The request is never finished."""
    send(connected(path), HEAD[:7], fd)


def later(path, fd):
    connection = connected(path)
    connection.sendall(HEAD[:7])
    time.sleep(0.2)
    send(connection, HEAD[7:], fd)


def behind(path, fd):
    """After a byte that is read alone, before the server has looked."""
    connection = connected(path)
    connection.sendall(HEAD[:1])
    send(connection, HEAD[1:], fd)


def left(path, fd):
    connection = connected(path)
    send(connection, HEAD, fd)
    connection.close()


def nested(path, fd):
    """Within a socket that is sent itself."""
    ours, theirs = socket.socketpair()
    send(ours, b"x", fd)
    send(connected(path), HEAD, theirs.detach())
    ours.close()


WAYS = {way.__name__: way for way in (first, first_of_few, later, behind, left, nested)}


def become(user):
    """Another user, of the one group that all of them share."""
    os.setgroups([])
    os.setgid(GROUP)
    os.setuid(user)
    # /proc/self is the user's own again.
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1)


def run(kind, way, path, directory, count, user, say):
    os.setsid()
    become(user)
    try:
        for _ in range(count):
            WAYS[way](str(path), KINDS[kind](directory))
        say.send(b"sent")
    except OSError as error:
        say.send(str(error).encode())
    while True:
        signal.pause()


@contextlib.contextmanager
def attack(kind, way, path, user=ANOTHER, count=COUNT):
    """Another user sends so many descriptors, each on a connection of its own, and stays."""
    if os.geteuid() != 0:
        raise tap.Skip("only root can be two users")
    with tempfile.TemporaryDirectory(prefix="flyball-hostile-") as directory:
        os.chmod(directory, 0o755)
        (pathlib.Path(directory) / "mount").mkdir()
        if kind == "fuse":
            try:
                os.mknod(f"{directory}/fuse", stat.S_IFCHR, os.makedev(10, 229))
                os.close(os.open(f"{directory}/fuse", os.O_RDWR))
            except OSError as error:
                raise tap.Skip(f"no FUSE here: {error}") from None
            os.chmod(f"{directory}/fuse", 0o666)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        child = os.fork()
        if child == 0:
            try:
                ours.close()
                run(kind, way, path, directory, count, user, theirs)
            finally:
                os._exit(1)
        theirs.close()
        try:
            said = ours.recv(1000)
            if said != b"sent":
                raise tap.Skip(f"a user cannot do that here: {said.decode()}")
            yield child
        finally:
            ours.close()
            # With its file system's server ends whatever waits for it.
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
