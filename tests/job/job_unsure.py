# SPDX-License-Identifier: Apache-2.0
"""Jobs on a server whose answer to a commit is lost: each call is known again, and done once.

Between the client and a real PostgreSQL stands a proxy that cuts the connection when a
commit is asked for, before the server hears of it or after it has done it.
"""

import atexit
import contextlib
import functools
import json
import os
import pathlib
import select
import socket
import subprocess
import sys
import tempfile
import threading

import pg_machine
import tap

BUILD = pathlib.Path(os.environ.get("FLYBALL_TEST_BUILD", pathlib.Path(sys.argv[1]).parent / "tests"))
# The end of the question, and of the server's answer to it.
COMMIT, DONE = b"COMMIT\0", b"Z\0\0\0\5I"
SOCKET = ".s.PGSQL.5432"
TRIES = 3
# Of the client library's memory nothing is ours to free.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("FLYBALL_")}
ENVIRONMENT["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

started = contextlib.ExitStack()
atexit.register(started.close)
machine = None


class Proxy:
    """Hands bytes on, and cuts at so many commits: "before" the server has them, or "after"; `deaf` afterwards or not."""

    def __init__(self, home, target):
        self.target = target
        self.at, self.cuts, self.deaf = "", 0, False
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(f"{home}/{SOCKET}")
        self.listener.listen(16)
        threading.Thread(target=self.accept, daemon=True).start()

    def arm(self, at, cuts=1, deaf=False):
        self.at, self.cuts, self.deaf = at, cuts, deaf

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client = self.listener.accept()[0]
                threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client, socket.socket(socket.AF_UNIX) as database, contextlib.suppress(OSError):
            if self.deaf and self.cuts == 0:
                return
            database.connect(self.target)
            while self.hand_on(client, database):
                pass

    def hand_on(self, client, database):
        """What is there to be read, from either side; false at the end, and after a cut."""
        for side in select.select([client, database], [], [])[0]:
            data = side.recv(1 << 16)
            if not data:
                return False
            if side is client and COMMIT in data and self.cuts > 0:
                self.cuts -= 1
                if self.at == "after":
                    database.sendall(data)
                    answer = b""
                    while DONE not in answer:
                        answer += database.recv(1 << 16)
                return False
            (database if side is client else client).sendall(data)
        return True


class Machine:
    """A server, a database in it, and the proxy before it."""

    def __init__(self):
        self.server = started.enter_context(pg_machine.server(tap.quick_place(pg_machine.ROOM_MIB)))
        self.database = self.server.database()
        home = started.enter_context(tempfile.TemporaryDirectory(prefix="flyball-px-", dir="/tmp"))
        self.proxy = Proxy(home, f"{self.server.home}/{SOCKET}")
        self.address = self.server.address(self.database).replace(f"host={self.server.home}", f"host={home}")
        self.jobs = 0
        self.home, self.service = home, None

    def service_address(self):
        """Of a service over the database behind the proxy."""
        address = f"unix:{self.home}/service"
        if self.service is None:
            self.service = subprocess.Popen([sys.argv[1], "serve", "--listen", address, "--store", self.address],
                                            stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
            started.callback(self.service.communicate)
            started.callback(self.service.terminate)
            tap.contains(self.service.stdout.readline(), address)
        return address


class World:
    """A job of its own, and a client."""

    def __init__(self, wait_s=20, served=False):
        global machine
        machine = machine or Machine()
        address = machine.service_address() if served else machine.address
        machine.jobs += 1
        self.job = f"job-{machine.jobs}"
        self.proxy = machine.proxy
        self.process = subprocess.Popen([BUILD / "job_by_hand", address, str(wait_s)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate(timeout=tap.PATIENCE_S)

    def ask(self, call, **members):
        self.process.stdin.write(json.dumps({"call": call, "job": self.job, **members}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def ok(self, call, **members):
        answer = self.ask(call, **members)
        if "answer" not in answer:
            raise AssertionError(f"{call} {members}: {answer}")
        return answer["answer"]

    def select(self, what):
        return machine.server.sql(f"SELECT {what} FROM flyball_event e JOIN flyball_job j ON e.job = j.id "
                                  f"WHERE j.name = '{self.job}'", machine.database)

    def events(self):
        """But for the definition."""
        return self.select("string_agg(e.kind || ' ' || e.trial, ', ' ORDER BY e.number) FILTER (WHERE e.number > 1)")


DEFINE = {"beta": 2, "target": True, "max_epochs": 20}
QUESTION = {"submission": "night", "tries": 5, "gpu_model": "Test GPU", "limits_w": [100, 150, 200]}
AMOUNTS = {"energy_j": 100, "time_s": 10}
TRIAL = {"trial": 1, "attempt": 1}
POINTS = [[100, 95, 14], [150, 130, 10.5], [200, 185, 10]]


def opened(world):
    tap.equal(world.ask("set", eta=0.5)["error"], "FLY_ENOTFOUND")


def defined(world):
    world.ok("define", **DEFINE)


def proposed(world):
    defined(world)
    tap.equal(world.ok("propose", request="first", **QUESTION)["trial"], 1)


def reported(world):
    proposed(world)
    world.ok("report", **TRIAL, epoch=1, metric=0.5, **AMOUNTS)


def reached(world):
    proposed(world)
    world.ok("report", **TRIAL, epoch=1, metric=0.95, **AMOUNTS)


# What stands before, the call with its members, what is in the log then (after the definition), whether a caller may repeat it.
CALLS = [
    (opened, "define", DEFINE, "", True),
    (defined, "set", {"eta": 0.25}, "set 0", False),
    (defined, "propose", {"request": "one", **QUESTION}, "proposed 1, attempt 1", True),
    (defined, "propose", {"run": "run", **QUESTION}, "proposed 1, attempt 1", False),
    (defined, "propose", QUESTION, "proposed 1, attempt 1", False),
    (proposed, "profile", {"trial": 1, "points": POINTS}, "proposed 1, attempt 1, profiled 1", True),
    (proposed, "profile", {"trial": 1, "points": POINTS[:2], "partial": True}, "proposed 1, attempt 1, profiled_part 1", True),
    (proposed, "heartbeat", {**TRIAL, **AMOUNTS}, "proposed 1, attempt 1, heartbeat 1", False),
    (proposed, "report", {**TRIAL, "epoch": 1, "metric": 0.5, **AMOUNTS}, "proposed 1, attempt 1, epoch 1", True),
    (proposed, "report", {**TRIAL, "epoch": 1, "metric": 0.95, **AMOUNTS}, "proposed 1, attempt 1, epoch 1, ended 1", True),
    (reported, "end", {**TRIAL, "outcome": "crashed"}, "proposed 1, attempt 1, epoch 1, ended 1", True),
    (reached, "end", {**TRIAL, "outcome": "not_reached", **AMOUNTS}, "proposed 1, attempt 1, epoch 1, ended 1, closed 1", True),
    (reported, "remove", {}, "", False),
]


def without_repeated(answer):
    return {name: value for name, value in answer.items() if name not in ("repeated", "known")}


@functools.cache
def expected_of(number):
    """The answer where nothing is lost."""
    before, call, members, _, _ = CALLS[number]
    with World() as world:
        before(world)
        return without_repeated(world.ok(call, **members))


def lose(at, cuts, served=False):
    for number, (before, call, members, log, _) in enumerate(CALLS):
        expected = expected_of(number)
        with World(served=served) as world:
            before(world)
            world.proxy.arm(at, cuts)
            tap.equal(without_repeated(world.ok(call, **members)), expected, f"{call} {members}")
            tap.equal(world.proxy.cuts, 0, f"{call}: the commit was not cut")
            tap.equal(world.events(), log, f"{call} {members}")


def test_a_commit_that_the_server_never_heard_of():
    lose("before", 1)


def test_a_commit_whose_answer_is_lost():
    lose("after", 1)


def test_a_commit_whose_answer_a_service_loses():
    lose("after", 1, served=True)


def test_two_in_a_row():
    lose("before", TRIES - 1)


def test_an_import_is_made_once():
    with World() as source:
        reported(source)
        lines = source.select("string_agg(json_build_object('number', e.number, 'time_us', e.time_us, 'kind', e.kind, 'trial', "
                              "e.trial, 'key', e.key, 'body', e.body::json)::text, E'\\n' ORDER BY e.number)") + "\n"
        before = source.events()
    for at in ("before", "after"):
        with World() as world:
            opened(world)
            world.proxy.arm(at)
            world.ok("import", text=lines)
            tap.equal(world.proxy.cuts, 0)
            tap.equal(world.events(), before)
            tap.equal(world.ask("import", text=lines)["error"], "FLY_ECONFLICT")


def test_a_server_that_stays_away_leaves_it_unsure():
    """And whoever asks again gets the first answer, but for calls that nothing tells apart."""
    for number, (before, call, members, log, repeats) in enumerate(CALLS):
        with World(wait_s=0.2) as world:
            before(world)
            world.proxy.arm("after", deaf=True)
            answer = world.ask(call, **members)
            tap.equal(answer.get("error"), "FLY_EUNSURE", f"{call} {members}: {answer}")
            world.proxy.arm("", 0)
            tap.equal(world.events(), log, f"{call} {members}")
            if repeats:
                tap.equal(without_repeated(world.ok(call, **members)), expected_of(number), f"{call} {members}")
                tap.equal(world.events(), log, f"{call} {members}")


tap.main(globals())
