# SPDX-License-Identifier: Apache-2.0
"""`flyballd` and `flyball serve` while users send descriptors whose close does not return: all others are served.

usage: flyballd_strangers.py FLYBALL
"""
import contextlib
import os
import pathlib
import signal
import socket
import sys
import tempfile

import hostile
import node_machine
import power_machine
import serve_machine
import tap

FLYBALL = os.path.abspath(sys.argv[1])
ANOTHER = hostile.ANOTHER - 100
DEFAULT_W = power_machine.DEFAULT_W
GOOD = "HTTP/1.1 200 OK"


def ask_as(user, address, path="/healthz"):
    """How an answer to that user begins; "": there is none. A process of its own asks."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    child = os.fork()
    if child == 0:
        with contextlib.suppress(OSError):
            hostile.become(user)
            raw = socket.socket(socket.AF_UNIX)
            raw.settimeout(serve_machine.PATIENCE_S)
            raw.connect(address)
            raw.sendall(b"GET " + path.encode() + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
            theirs.sendall(raw.recv(100).split(b"\r\n")[0])
        os._exit(0)
    theirs.close()
    said = ours.recv(200)
    ours.close()
    os.waitpid(child, 0)
    return said.decode()


def are_served(address):
    for user in (0, ANOTHER) * 5:
        tap.equal(ask_as(user, address), GOOD, f"user {user}")


def children(pid, name):
    found = []
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == name:
                found.append(int(child))
    return found


def porter_of(process):
    return children(process.pid, "flyball-porter")[0]


def has_ended(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def hung_fronts(daemon):
    """Such as cannot be killed, and such as have just ended."""
    found = []
    for front in children(porter_of(daemon.process), "flyball-front"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            state = pathlib.Path(f"/proc/{front}/status").read_text()
            if "State:\tD" in state or "State:\tZ" in state:
                found.append(front)
    return found


def until_ended(pid, what):
    serve_machine.until(lambda: has_ended(pid), f"{what} has ended")


@contextlib.contextmanager
def flyballd(**server):
    """One that has turned a limit."""
    if os.geteuid() != 0:
        raise tap.Skip("only root can be two users")
    power_machine.HOME.chmod(0o711)
    with power_machine.machine(), node_machine.daemon(settings={"server": {"grace": 30, **server}}) as daemon:
        held = daemon.connection()
        node_machine.lease(daemon, 250, ["1"], connection=held)
        yield daemon, str(node_machine.SOCKET)
        held.close()
        tap.equal(power_machine.limits(), [DEFAULT_W] * 2)
    node_machine.clean()


@contextlib.contextmanager
def service(inherited):
    """Over a socket of its own, or one that was opened before it began: a kernel keeps descriptors out of the first at most."""
    if os.geteuid() != 0:
        raise tap.Skip("only root can be two users")
    with tempfile.TemporaryDirectory(prefix="flyball-serve-") as directory, socket.socket(socket.AF_UNIX) as listening:
        os.chmod(directory, 0o711)
        path = f"{directory}/socket"
        if inherited:
            listening.bind(path)
            listening.listen(64)
            os.chmod(path, 0o666)
        listen = f"fd:{listening.fileno()}" if inherited else f"unix:{path}"
        with serve_machine.service(FLYBALL, f"--store={directory}/store.sqlite", f"--socket-group={hostile.GROUP}", listen=listen,
                                   pass_fds=[listening.fileno()]) as made:
            listening.close()
            yield made, path


def all_at_once(running, address, kind):
    """Every way, each by a user of its own."""
    with contextlib.ExitStack() as attacks:
        for number, way in enumerate(hostile.WAYS):
            attacks.enter_context(hostile.attack(kind, way, address, hostile.ANOTHER - number))
            are_served(address)
        yield
        are_served(address)
        tap.equal(running.stop(), 0, "".join(running.talk))


def test_sockets_that_linger():
    with flyballd() as (daemon, address):
        # Sent before the connection is accepted, so that this user's own close is not the last.
        porter = porter_of(daemon.process)
        os.kill(porter, signal.SIGSTOP)
        with hostile.attack("linger", "first", address, ANOTHER - 1), hostile.attack("linger", "left", address, ANOTHER - 2):
            os.kill(porter, signal.SIGCONT)
            daemon.said(f"user {ANOTHER - 1} has sent a descriptor whose close does not return")
            daemon.said(f"user {ANOTHER - 2} has sent a descriptor whose close does not return")
            for _ in all_at_once(daemon, address, "linger"):
                pass


def test_files_that_hang():
    with flyballd() as (daemon, address):
        for _ in all_at_once(daemon, address, "fuse"):
            # Of those who have received such a file, each hangs.
            for way in ("first", "first_of_few", "later", "behind"):
                daemon.said(f"user {hostile.ANOTHER - list(hostile.WAYS).index(way)} has sent a descriptor")


def test_who_hangs_again_and_again():
    with flyballd() as (daemon, address):
        with contextlib.ExitStack() as attacks:
            for word in ("has", "has again"):
                attacks.enter_context(hostile.attack("fuse", "first", address))
                daemon.said(f"user {hostile.ANOTHER} {word} sent")
            # Its further connections are closed.
            attacks.enter_context(hostile.attack("fuse", "first", address, count=200))
            are_served(address)
            tap.equal(len(hung_fronts(daemon)), 2)
        # What hung has ended with the file system.
        serve_machine.until(lambda: not hung_fronts(daemon), "the hung ones have ended")
        with hostile.attack("fuse", "first", address):
            serve_machine.until(lambda: "".join(daemon.talk).count("has sent a descriptor") > 1, "that user is served again")
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))


def test_services():
    for inherited in (False, True):
        for kind in hostile.KINDS:
            with service(inherited) as (made, address):
                for _ in all_at_once(made, address, kind):
                    pass


def test_connections_that_wait_at_the_end():
    """The porter does not come to them before the daemon ends."""
    for kind in hostile.KINDS:
        with flyballd() as (daemon, address):
            porter = porter_of(daemon.process)
            os.kill(porter, signal.SIGSTOP)
            with hostile.attack(kind, "first", address), hostile.attack(kind, "left", address):
                tap.equal(daemon.stop(), 0, "".join(daemon.talk))
                os.kill(porter, signal.SIGCONT)
                until_ended(porter, "the porter")


def test_a_front_that_takes_no_more():
    with flyballd() as (daemon, address):
        tap.equal(ask_as(hostile.ANOTHER, address), GOOD)
        # Root's, which asked for the lease, was the first.
        os.kill(max(children(porter_of(daemon.process), "flyball-front")), signal.SIGSTOP)
        raws = []
        child = os.fork()
        if child == 0:
            with contextlib.suppress(OSError):
                hostile.become(hostile.ANOTHER)
                for _ in range(600):
                    raws.append(socket.socket(socket.AF_UNIX))
                    raws[-1].connect(address)
            os._exit(0)
        os.waitpid(child, 0)
        serve_machine.until(lambda: ask_as(hostile.ANOTHER, address) == GOOD, "that user is served again")
        are_served(address)
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))


def test_porter_dies():
    """No client reaches the daemon then; it puts back, and ends to be started again."""
    with flyballd() as (daemon, _):
        os.kill(porter_of(daemon.process), signal.SIGKILL)
        daemon.said("the process that accepts connections has died")
        tap.equal(daemon.process.wait(serve_machine.PATIENCE_S), 69)


def test_daemon_dies():
    """Its porter and fronts end with it, and the next one listens at the same path."""
    with flyballd() as (daemon, address):
        porter = porter_of(daemon.process)
        fronts = children(porter, "flyball-front")
        with hostile.attack("fuse", "first", address):
            daemon.said("descriptor whose close does not return")
            power_machine.kill_program(daemon.process.pid)
            daemon.process.wait()
            power_machine.back_within([DEFAULT_W] * 2, "the guard has put back")
            with node_machine.daemon():
                are_served(address)
            for pid in (porter, *fronts):
                until_ended(pid, "a process of the daemon")


tap.main(globals())
