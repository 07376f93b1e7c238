# SPDX-License-Identifier: Apache-2.0
"""Stores on a PostgreSQL server: the same contract as files, and what only a server can do wrong."""

import atexit
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pg_machine
import tap

BUILD = pathlib.Path(os.environ.get("FLYBALL_TEST_BUILD", pathlib.Path(sys.argv[1]).parent / "tests"))
CLIENT = BUILD / "store_client"
SECRETS = (pg_machine.PASSWORD, pg_machine.QUOTED)
SANITIZED = bool(tap.sanitizers(CLIENT))

started = contextlib.ExitStack()
atexit.register(started.close)
server = None


def machine():
    """The one server of these tests; a test that breaks it mends it."""
    global server
    if server is None:
        server = started.enter_context(pg_machine.server(tap.quick_place(pg_machine.ROOM_MIB)))
    return server


class Client:
    """A program with a store open, told what to do line by line."""

    def __init__(self, address=None, wait_s=20, opened=True):
        self.address = address or machine().address()
        # Of the client library's memory nothing is ours to free.
        environment = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
        self.process = subprocess.Popen([CLIENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env=environment)
        if opened:
            tap.equal(self.tell(f"open {self.address} {wait_s}"), "ok ")

    def send(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError("the client ended: " + self.process.stderr.read())
        for secret in SECRETS:
            if secret in line:
                raise AssertionError(f"the password stands in {line!r}")
        return line.rstrip("\n")

    def tell(self, line):
        self.send(line)
        return self.answer()

    def expect(self, line, start, *parts):
        answer = self.tell(line)
        if not answer.startswith(start):
            raise AssertionError(f"{line}\nexpected: {start}\n     got: {answer}")
        for part in parts:
            tap.contains(answer, part, line)
        return answer

    def end(self):
        _, talk = self.process.communicate(timeout=tap.PATIENCE_S)
        tap.equal((self.process.returncode, talk), (0, ""))


def run_contract(name):
    environment = {**os.environ, "FLYBALL_TEST_STORE": machine().address(),
                   "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
    environment.pop("CMOCKA_MESSAGE_OUTPUT", None)
    result = tap.run([BUILD / name], env=environment, timeout=tap.PATIENCE_S)
    tap.equal(result.returncode, 0, result.stdout + result.stderr)
    tap.equal("PASSED" in result.stdout + result.stderr, True, result.stdout + result.stderr)


def test_contract_of_events():
    run_contract("test_store")


def test_contract_of_calls():
    run_contract("test_store_calls")


def test_many_programs():
    run_contract("test_store_processes")


def test_a_new_database_is_made_by_one_of_many():
    address = machine().address()
    clients = [Client(address, opened=False) for _ in range(6)]
    for client in clients:
        client.send(f"open {address} 20")
    for client in clients:
        tap.equal(client.answer(), "ok ")
        client.expect("add job key" + str(id(client)), "ok ")
    clients[0].expect("count job", "ok 6")
    for client in clients:
        client.end()


def test_a_server_that_restarts_between_changes_is_found_again():
    for how in (signal.SIGINT, signal.SIGQUIT):
        client = Client()
        client.expect("add job one", "ok 1")
        machine().stop(how)
        machine().start()
        client.expect("add job two", "ok 2")
        client.expect("group job three", "ok 3")
        machine().stop(how)
        machine().start()
        client.expect("group job four", "ok 4")
        machine().stop(how)
        machine().start()
        client.expect("count job", "ok 4")
        client.expect("find job one", "ok 1")
        client.end()


def test_a_server_that_is_starting_is_waited_for():
    client = Client(wait_s=60)
    client.expect("add job one", "ok 1")
    machine().kill()
    client.send("add job two")
    machine().start()
    tap.equal(client.answer(), "ok 2")
    client.end()


def test_a_server_lost_within_a_change():
    client = Client()
    client.expect("add job one", "ok 1")
    client.expect("begin job", "ok")
    client.expect("append two {}", "ok 2")
    machine().kill()
    client.expect("append three {}", "FLY_EUNREACHABLE", "try again")
    client.expect("append three {}", "FLY_ESTATE", "has failed")
    client.expect("commit", "FLY_ESTATE", "nothing of it is written")
    machine().start()
    client.expect("count job", "ok 1")
    client.expect("add job two", "ok 2")
    client.end()


def test_an_unsure_commit_is_resolved_by_its_key():
    client = Client()
    client.expect("add job one", "ok 1")
    client.expect("begin job", "ok")
    client.expect("append two {}", "ok 2")
    machine().kill()
    client.expect("commit", "FLY_EUNSURE", "look for its key")
    machine().start()
    client.expect("begin job", "ok")
    client.expect("rollback", "ok")
    client.expect("find job two", "ok none")
    client.expect("add job two", "ok 2")
    client.end()


def test_a_server_that_hangs_is_given_up():
    client = Client(wait_s=1)
    client.expect("add job one", "ok 1")
    client.expect("begin job", "ok")
    client.expect("append two {}", "ok 2")
    backend = int(machine().sql("SELECT pid FROM pg_stat_activity WHERE application_name = 'flyball' AND state LIKE 'idle in%'"))
    os.kill(backend, signal.SIGSTOP)
    client.expect("commit", "FLY_EUNSURE", "look for its key")
    # The lost change holds the lock, so that nobody is told too early that it is not there.
    client.expect("begin job", "FLY_EBUSY", "lock timeout")
    os.kill(backend, signal.SIGCONT)
    begin = time.monotonic()
    while not (answer := client.tell("begin job")).startswith("ok"):
        tap.contains(answer, "FLY_EBUSY")
        if time.monotonic() > begin + tap.PATIENCE_S:
            raise AssertionError(answer)
    client.expect("rollback", "ok")
    # It had been asked for, and happened.
    client.expect("find job two", "ok 2")
    client.end()


def test_nothing_acknowledged_is_lost_when_the_server_is_killed():
    address = machine().address()
    for round_number in range(3):
        clients = [Client(address) for _ in range(3)]
        kept = []

        def collect(client):
            for line in client.process.stdout:
                if line.endswith("\n") and not line.startswith(("ok", "FLY_")):
                    kept.append(line.split())

        threads = [threading.Thread(target=collect, args=(client,)) for client in clients]
        for number, client in enumerate(clients):
            client.send(f"many job r{round_number}c{number} 100000")
        for thread in threads:
            thread.start()
        begin = time.monotonic()
        while len(kept) < 30 and time.monotonic() < begin + tap.PATIENCE_S:
            time.sleep(0.01)
        machine().kill()
        # They reconnect, wait for the server, and then fail or go on; their ends do not matter.
        for client in clients:
            client.process.kill()
        for thread in threads:
            thread.join(tap.PATIENCE_S)
        machine().start()
        tap.equal(len(kept) >= 30, True, f"{len(kept)} changes")
        rows = machine().sql("SELECT key || ' ' || number FROM flyball_event ORDER BY number",
                             address.split("/")[3].split("?")[0]).splitlines()
        stored = dict(row.split() for row in rows)
        tap.equal([int(number) for number in stored.values()], list(range(1, len(rows) + 1)))
        for key, number in kept:
            tap.equal(stored.get(key), number, key)


def test_what_the_server_refuses_has_a_name():
    database = machine().database()
    machine().sql("CREATE ROLE reader LOGIN PASSWORD 'reading'; CREATE ROLE nobody_known NOLOGIN")
    machine().sql("REVOKE CREATE ON SCHEMA public FROM PUBLIC", database)
    latin = "store_latin"
    machine().sql(f"CREATE DATABASE {latin} ENCODING 'LATIN1' TEMPLATE template0")
    address = machine().address
    cases = [
        (address(database, password="wr0ng-password"), "FLY_EPERM", "password"),
        (address("no_such_database"), "FLY_ENOTFOUND", "createdb"),
        (address(database, user="reader", password="reading"), "FLY_EPERM", "42501"),
        (address(latin), "FLY_EUNSUPPORTED", "UTF8"),
        (address(database) + "&options=-csearch_path%3Dnowhere", "FLY_ENOTFOUND", "CREATE SCHEMA"),
        (address(database) + "&no_such_option=1", "FLY_EUSAGE", "form"),
        (f"postgresql://flyball:hidden-word@/x?host={machine().home}/nothing", "FLY_EUNREACHABLE", "whether the server runs"),
        ("postgresql://flyball:hidden-word@127.0.0.1:1/x", "FLY_EUNREACHABLE", "whether the server runs"),
        ("postgresql://flyball:hidden-word@[bad/x", "FLY_EUSAGE", "form"),
    ]
    client = Client(opened=False)
    for where, code, part in cases:
        answer = client.tell(f"open {where} 2")
        tap.contains(answer, part, where)
        tap.equal(answer.split()[0], code, answer)
        for secret in ("wr0ng", "reading", "hidden-word"):
            tap.equal(secret in answer, False, answer)
    client.end()


def test_a_server_that_would_lose_commits_is_refused():
    database = machine().database()
    machine().sql(f"ALTER DATABASE {database} SET synchronous_commit = off")
    client = Client(machine().address(database))
    client.expect("begin job", "ok")
    # Whatever the database says, our commits are on its disk.
    client.expect("append one {}", "ok 1")
    client.expect("commit", "ok")
    client.end()
    with open(machine().data / "postgresql.conf", "a", encoding="utf-8") as settings:
        settings.write("fsync = off\n")
    machine().sql("SELECT pg_reload_conf()")
    try:
        client = Client(machine().address(database), opened=False)
        begin = time.monotonic()
        while machine().sql("SHOW fsync") != "off" and time.monotonic() < begin + tap.PATIENCE_S:
            time.sleep(0.02)
        client.expect(f"open {client.address} 5", "FLY_EUNSUPPORTED", "fsync")
        client.end()
    finally:
        machine().sql("ALTER SYSTEM SET fsync = on")
        machine().sql("SELECT pg_reload_conf()")


def test_a_newer_schema_is_refused_and_left_alone():
    database = machine().database()
    Client(machine().address(database)).end()
    machine().sql("UPDATE flyball_store SET version = 99", database)
    client = Client(machine().address(database), opened=False)
    client.expect(f"open {client.address} 5", "FLY_EUNSUPPORTED", "schema 99", "update")
    tap.equal(machine().sql("SELECT version FROM flyball_store", database), "99")
    client.end()


def test_every_released_version_is_brought_up_to_date():
    scripts = sorted(pathlib.Path(sys.argv[2], "tests", "store").glob("postgres_*.sql"))
    tap.equal(len(scripts) >= 1, True)
    for script in scripts:
        database = machine().database()
        machine().sql(script.read_text(), database)
        client = Client(machine().address(database))
        client.expect("count digits", "ok 3")
        client.expect("find digits p/1", "ok 2")
        client.expect("add digits p/2", "ok 4")
        client.end()


def test_two_stores_share_a_database():
    database = machine().database()
    machine().sql("CREATE SCHEMA one; CREATE SCHEMA two", database)
    clients = [Client(machine().address(database) + f"&options=-csearch_path%3D{name}") for name in ("one", "two")]
    clients[0].expect("add job key", "ok 1")
    clients[1].expect("count job", "FLY_ENOTFOUND")
    for client in clients:
        client.end()


def test_a_change_costs_the_same_in_a_long_log():
    database = machine().database()
    client = Client(machine().address(database))
    client.expect("add job key", "ok 1")
    client.end()
    machine().sql("INSERT INTO flyball_event SELECT 1, n, 1, 'made', n, 'old/' || n, '{}' FROM generate_series(2, 60000) n;"
                  "UPDATE flyball_job SET head = 60000; ANALYZE", database)
    before = scans(database)
    client = Client(machine().address(database))
    for number in range(20):
        client.expect(f"add job new{number}", f"ok {60001 + number}")
        client.expect(f"find job old/{number + 2}", f"ok {number + 2}")
    client.end()
    after = scans(database)
    tap.equal(after[0], before[0], "the table was read from end to end")
    # Each look-up by its key fetched one row.
    tap.equal(after[1] - before[1] >= 20, True, f"{before} {after}")
    tap.equal(after[2] - before[2] < 200, True, f"{before} {after}")


def test_a_program_ends_in_the_middle_of_a_connection():
    address = machine().address()
    for round_ in range(60):
        client = Client(address, opened=False)
        client.send(f"leave {address} {15 + 2 * (round_ % 15)}")
        tap.equal(client.process.wait(tap.PATIENCE_S), 0, f"round {round_}: {client.process.stderr.read()}")
        client.end()


def scans(database):
    """Reads of the events from end to end, by an index, and rows fetched by one; once all sessions have counted theirs."""
    begin = time.monotonic()
    while machine().sql(f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'") != "0":
        tap.equal(time.monotonic() < begin + tap.PATIENCE_S, True, "sessions do not end")
        time.sleep(0.02)
    row = machine().sql("SELECT seq_scan, idx_scan, idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'flyball_event'", database)
    return [int(word) for word in row.split("|")]


tap.main(globals())
