# SPDX-License-Identifier: Apache-2.0
"""Who may change a job of `flyball serve`: whoever made it, its owners and the operator; all others read it.

usage: serve_owners.py FLYBALL SOURCE_ROOT
"""
import concurrent.futures
import contextlib
import encodings.idna  # pylint: disable=unused-import  # other users may not read where Python lies
import json
import os
import pathlib
import select
import socket
import sqlite3
import sys
import tempfile
import traceback

import pg_machine
import serve_machine
import tap

FLYBALL = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(sys.argv[2]).resolve()
WORK = tempfile.TemporaryDirectory(prefix="flyball-serve-owners-")
BOX = pathlib.Path(WORK.name)
BOX.chmod(0o755)
CLEAN = {**serve_machine.CLEAN, "HOME": WORK.name, "XDG_RUNTIME_DIR": WORK.name}
JOB = {"batch_sizes": [16, 32], "default_batch_size": 32, "max_epochs": 5}
ASKED = {"hardware": {"gpu_model": "Test GPU", "gpu_count": 1, "world_size": 1, "limits_w": [100, 200]},
         "origin": {"user": "root", "host": "h"}}
ZEUS = {"job_id": "drop-in", "job_id_prefix": "drop", "batch_sizes": [16, 32], "default_batch_size": 32, "eta_knob": 0.5, "beta_knob": 2.0,
        "target_metric": 0.5, "higher_is_better_metric": True, "max_epochs": 5, "num_pruning_rounds": 2, "window_size": 0, "mab_prior_mean": 0.0,
        "mab_prior_precision": 0.0, "mab_num_explorations": 2, "mab_seed": 1, "max_power": 250.0, "number_of_gpus": 1, "gpu_model": "A"}
ALICE, BOB, CAROL = 20001, 20002, 20003
TEAM = 30001


@contextlib.contextmanager
def service(store, *arguments, sockets=True, env=CLEAN):
    """One whose socket everybody may open, and a TCP port."""
    path = BOX / f"{next(NUMBERS)}.sock"
    with serve_machine.service(FLYBALL, f"--store={store}", *arguments, env=env, listen=f"127.0.0.1:0,unix:{path}") as it:
        path.chmod(0o666)
        it.doors = it.addresses if sockets else it.addresses[:1]
        yield it


NUMBERS = iter(range(1000))


def need_root():
    if os.geteuid() != 0:
        raise tap.Skip("becoming another user takes root")


def as_user(uid, act, gid=None):
    """What `act` returns in a process of that user, as JSON."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([])
            os.setresgid(gid or uid, gid or uid, gid or uid)
            os.setresuid(uid, uid, uid)
            with os.fdopen(writing, "w") as out:
                json.dump(act(), out)
            status = 0
        except BaseException:  # pylint: disable=broad-exception-caught
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as told:
        text = told.read()
    tap.equal(os.waitpid(child, 0)[1], 0, f"as {uid}")
    return json.loads(text)


def ask(it, *what, address=None, headers=None):
    status, _, body = it.ask(*what, address=address, headers=headers)
    return status, body.decode()


def asks(it, uid, *what, address=None, gid=None, headers=None):
    return as_user(uid, lambda: ask(it, *what, address=address, headers=headers), gid)


def changes(name, trial=1):
    """All ways to change a job that is there."""
    path = f"/v1/jobs/{name}"
    return [("PUT", path, JOB), ("PATCH", path, {"control_every": 3}), ("PATCH", path, {"owners": "uid:20002"}),
            ("POST", f"{path}/trials", ASKED), ("POST", f"{path}/expire"),
            ("POST", f"{path}/trials/{trial}/profile", {"points": [{"limit_w": 100, "power_w": 90, "time_s": 1}]}),
            ("POST", f"{path}/trials/{trial}/heartbeats", {"attempt": 1}),
            ("POST", f"{path}/trials/{trial}/epochs", {"attempt": 1, "epoch": 1, "metric": 1, "energy_j": 10, "time_s": 1}),
            ("POST", f"{path}/trials/{trial}/end", {"attempt": 1, "outcome": "crashed"}),
            ("POST", f"{path}/events", "{}\n"), ("DELETE", path)]


def routes(it):
    """The same calls as the service's own document has them."""
    return {(method.upper(), path) for path, methods in json.loads(ask(it, "GET", "/v1/openapi.json")[1])["paths"].items() for method in methods}


def refused(told, *words):
    tap.equal(told[0], 403, told[1])
    for word in ("FLY_EPERM", *words):
        tap.contains(told[1], word)


def good(told):
    tap.equal(told[0] in (200, 201, 204), True, told)
    return json.loads(told[1]) if told[1] else None


def events(it, name):
    return [json.loads(line) for line in good_text(ask(it, "GET", f"/v1/jobs/{name}/events")).splitlines()]


def good_text(told):
    tap.equal(told[0], 200, told)
    return told[1]


def twenty(store, env=CLEAN):
    """Each has a job, none of them touches the next one's, and all read it."""
    with service(store, env=env) as it:
        people = range(ALICE, ALICE + 20)
        for number, uid in enumerate(people):
            door = it.doors[number % 2]
            good(asks(it, uid, "PUT", f"/v1/jobs/of-{uid}", JOB, address=door))
            good(asks(it, uid, "POST", f"/v1/jobs/of-{uid}/trials", ASKED, address=door))
        before = {uid: events(it, f"of-{uid}") for uid in people}

        def attack(uid, other, door):
            return [ask(it, *what, address=door) for what in changes(f"of-{other}")]

        for number, uid in enumerate(people):
            other = people[(number + 1) % 20]
            for door in it.doors:
                for what, told in zip(changes("x"), as_user(uid, lambda: attack(uid, other, door))):
                    refused(told, f"of-{other}", f"uid:{other}", "--owners")
                    tap.equal(told[0], 403, str(what))
            for path in (f"/v1/jobs/of-{other}", f"/v1/jobs/of-{other}/events", "/v1/jobs"):
                tap.contains(good_text(asks(it, uid, "GET", path)), f"uid:{other}")
        tap.equal({uid: events(it, f"of-{uid}") for uid in people}, before)
        # Their own go on, and the operator does what he likes.
        for number, uid in enumerate(people):
            good(asks(it, uid, "PATCH", f"/v1/jobs/of-{uid}", {"control_every": 2}, address=it.doors[number % 2]))
            for what in changes(f"of-{uid}")[-5:-3]:
                good(asks(it, uid, *what, address=it.doors[number % 2]))
        good(ask(it, "PATCH", f"/v1/jobs/of-{ALICE}", {"owners": f"uid:{BOB}"}))
        refused(asks(it, ALICE, "DELETE", f"/v1/jobs/of-{ALICE}"), f"uid:{BOB}")
        good(asks(it, BOB, "DELETE", f"/v1/jobs/of-{ALICE}"))
        for uid in people[1:]:
            good(ask(it, "DELETE", f"/v1/jobs/of-{uid}"))
        tap.equal(it.stop(), 0)


def test_twenty_users():
    need_root()
    twenty(BOX / "twenty.sqlite")


def test_twenty_users_of_a_server():
    need_root()
    with pg_machine.server() as server:
        twenty(server.address(), {**CLEAN, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"})


def test_every_change_is_tried():
    """A route that is not among `changes` is one that only reads."""
    with service(BOX / "routes.sqlite") as it:
        tried = {(what[0], what[1].replace("/x", "/{job}").replace("/1", "/{trial}")) for what in changes("x")}
        tap.equal({route for route in routes(it) - tried if route[0] != "GET"}, set())


def test_given_away_and_shared():
    need_root()
    with service(BOX / "shared.sqlite") as it:
        path = "/v1/jobs/digits"
        good(asks(it, ALICE, "PUT", path, JOB))
        trial = good(asks(it, ALICE, "POST", f"{path}/trials", ASKED))["trial"]
        for wrong, word in (("uid:alice", "uid:alice"), ("alice", "'alice'"), ("", ""), ("uid:1,", "''"), (",".join(["uid:1"] * 17), "at most 16")):
            told = asks(it, ALICE, "PATCH", path, {"owners": wrong})
            if wrong:
                tap.equal(told[0] in (400, 413, 422), True, told)
                tap.contains(told[1], word)
        good(asks(it, ALICE, "PATCH", path, {"owners": f"uid:{ALICE},gid:{TEAM}"}))
        refused(asks(it, BOB, "PATCH", path, {"control_every": 2}, address=it.doors[1]))
        good(asks(it, BOB, "PATCH", path, {"control_every": 2}, address=it.doors[1], gid=TEAM))
        good(asks(it, ALICE, "PATCH", path, {"owners": f"uid:{BOB}"}))
        refused(asks(it, ALICE, "POST", f"{path}/trials", ASKED), f"uid:{BOB}")
        # What began before goes on to be counted, for whoever began it alone.
        report = {"attempt": 1, "epoch": 1, "metric": 1, "energy_j": 10, "time_s": 1}
        refused(asks(it, CAROL, "POST", f"{path}/trials/{trial}/epochs", report))
        good(asks(it, ALICE, "POST", f"{path}/trials/{trial}/epochs", report))
        good(asks(it, ALICE, "POST", f"{path}/trials/{trial}/end", {"attempt": 1, "outcome": "crashed"}))
        shown = tap.run([FLYBALL, "job", "show", "digits", f"--store={it.url}", "--format=json"], env=CLEAN, cwd=BOX)
        tap.equal(json.loads(shown.stdout)["owners"], f"uid:{BOB}", shown.stderr)
        listed = tap.run([FLYBALL, "job", "list", f"--store={it.url}", "--format=json"], env=CLEAN, cwd=BOX)
        tap.equal(json.loads(listed.stdout)["rows"][0]["owners"], f"uid:{BOB}", listed.stderr)
        back = tap.run([FLYBALL, "job", "set", "digits", "--owners", "operator", f"--store={it.url}"], env=CLEAN, cwd=BOX)
        tap.equal(back.returncode, 0, back.stderr)
        refused(asks(it, BOB, "DELETE", path), "operator", f"--owners uid:{BOB}")
        # A name that is free again is anybody's.
        good(ask(it, "DELETE", path))
        good(asks(it, CAROL, "PUT", path, JOB))
        refused(asks(it, BOB, "DELETE", path), f"uid:{CAROL}")


def test_jobs_from_before():
    need_root()
    store, old = BOX / "before.sqlite", BOX / "old.sqlite"
    defined = {"number": 1, "time_us": 1700000000000000, "kind": "defined", "trial": 0, "key": "",
               "body": {"name": "x", "objective": {"kind": "energy"}, "policy": "zeus", **JOB}}
    (BOX / "old.jsonl").write_text(json.dumps(defined) + "\n")
    made = tap.run([FLYBALL, "job", "import", "digits", "old.jsonl", f"--store={store}"], env=CLEAN, cwd=BOX)
    tap.equal(made.returncode, 0, made.stderr)
    with service(store) as it:
        told = good(asks(it, ALICE, "GET", "/v1/jobs/digits"))
        tap.equal(told["owners"], "operator")
        for what in changes("digits"):
            refused(asks(it, ALICE, *what), "belongs to the service's operator")
        good(ask(it, "PATCH", "/v1/jobs/digits", {"owners": f"uid:{ALICE}"}))
        good(asks(it, ALICE, "PATCH", "/v1/jobs/digits", {"control_every": 2}))
    # Of the release, with a log that nobody understands any more: nor does anybody know whose it is.
    connection = sqlite3.connect(old)
    connection.executescript((ROOT / "tests/store/sqlite_1.sql").read_text())
    connection.close()
    with service(old) as it:
        refused(asks(it, ALICE, "DELETE", "/v1/jobs/digits"), "operator")
        good(ask(it, "DELETE", "/v1/jobs/digits"))


def test_tokens():
    file, secrets = BOX / "tokens", {}
    for name in ("ci", "nightly", "admin"):
        made = tap.run([FLYBALL, "token", name, "--scope=manage", f"--tokens={file}"], env=CLEAN, cwd=BOX)
        secrets[name] = {"Authorization": f"Bearer {made.stdout.strip()}"}
    with service(BOX / "tokens.sqlite", f"--tokens={file}", "--operators=token:admin") as it:
        for door in it.doors:
            good(ask(it, "PUT", "/v1/jobs/digits", JOB, address=door, headers=secrets["ci"]))
            good(ask(it, "POST", "/v1/jobs/digits/trials", ASKED, address=door, headers=secrets["ci"]))
            # Whoever connects may be a proxy: with tokens, neither root nor the service's user is an operator.
            for what in changes("digits"):
                refused(ask(it, *what, address=door, headers=secrets["nightly"]), "token:ci", "token:nightly")
            tap.equal(good(ask(it, "GET", "/v1/jobs/digits", address=door, headers=secrets["nightly"]))["owners"], "token:ci")
            tap.equal([event["body"]["user"] for event in map(json.loads, good_text(ask(
                it, "GET", "/v1/jobs/digits/events", address=door, headers=secrets["nightly"])).splitlines()) if event["kind"] == "attempt"],
                      ["token:ci"])
            good(ask(it, "DELETE", "/v1/jobs/digits", address=door, headers=secrets["admin"]))
    wrong = tap.run([FLYBALL, "serve", f"--store={BOX}/x.sqlite", "--listen=127.0.0.1:0", "--operators=alice"], env=CLEAN, cwd=BOX)
    tap.equal(wrong.returncode, 64, wrong.stderr)
    tap.contains(wrong.stderr, "'alice' is no owner")


def test_a_training_whose_job_is_anothers():
    """It trains with the default, says why, and keeps what it has to report."""
    if tap.sanitizers(FLYBALL):
        raise tap.Skip("the emulated driver cannot be loaded under sanitizers")
    from power_machine import CLEAN as POWERED, HOME, WHERE, machine  # pylint: disable=import-outside-toplevel

    file, path, trainer = BOX / "two-tokens", BOX / "report.json", ROOT / "tests/lib/job_trainer.py"
    secrets = [tap.run([FLYBALL, "token", name, f"--tokens={file}"], env=CLEAN, cwd=BOX).stdout.strip() for name in ("ci", "nightly")]
    words = ["--batch-sizes=16,32", "--default-batch-size=32", "--target-metric=1", "--max-epochs=6", "--leave-limits", f"--output={path}", "--tries=2"]
    with serve_machine.service(FLYBALL, f"--store={BOX}/runs.sqlite", f"--tokens={file}") as it, \
            machine("--sensor", "exact", "--counter-period-ms", "0", gpus=1):
        for secret in secrets:
            result = tap.run([FLYBALL, "run", "--job=digits", "-i", "0", *WHERE, f"--store={it.url}", *words, "--", sys.executable, trainer,
                              "{batch_size}"], env={**POWERED, "FLYBALL_TOKEN": secret}, cwd=HOME)
            said = json.loads(path.read_text())["recurrence"]
            tap.equal((result.returncode, [attempt["end"] for attempt in said["tries"]]), (0, ["reached"]), result.stderr)
    tap.contains(said["log_unavailable"], "job 'digits' belongs to token:ci, and not to token:nightly")
    tap.equal(said["kept_reports"] > 0, True, said)


def test_the_drop_in():
    need_root()
    with service(BOX / "zeus.sqlite", "--compat-zeus") as it:
        good(asks(it, ALICE, "POST", "/jobs", json.dumps(ZEUS)))
        told = good(asks(it, ALICE, "GET", "/jobs/batch_size?job_id=drop-in"))
        trial = {"job_id": "drop-in", "batch_size": told["batch_size"], "trial_number": told["trial_number"]}
        report = {**trial, "time": 1.0, "energy": 10.0, "current_epoch": 1, "metric": 0.1}
        for what in (("POST", "/jobs", ZEUS), ("GET", "/jobs/batch_size?job_id=drop-in"), ("POST", "/report", report), ("PATCH", "/trials", trial),
                     ("DELETE", "/jobs?job_id=drop-in")):
            told = asks(it, BOB, *what)
            tap.equal(told[0], 403, told)
            tap.contains(told[1], f"uid:{ALICE}")
        good(asks(it, ALICE, "POST", "/report", report))
        good(asks(it, ALICE, "PATCH", "/trials", trial))
        good(asks(it, ALICE, "DELETE", "/jobs?job_id=drop-in"))


def test_imports():
    need_root()
    with service(BOX / "imports.sqlite") as it:
        good(asks(it, ALICE, "PUT", "/v1/jobs/one", JOB))
        good(asks(it, ALICE, "POST", "/v1/jobs/one/trials", ASKED))
        lines = good_text(ask(it, "GET", "/v1/jobs/one/events"))
        tap.equal([event["body"]["user"] for event in events(it, "one") if event["kind"] == "attempt"], [f"uid:{ALICE}"])
        good(asks(it, BOB, "POST", "/v1/jobs/two/events", lines))
        refused(asks(it, ALICE, "DELETE", "/v1/jobs/two"), f"uid:{BOB}")
        # Nobody gets another's joules written down by an import.
        tap.equal([event["body"]["user"] for event in events(it, "two") if event["kind"] == "attempt"], [f"said:uid:{ALICE}"])
        good(asks(it, BOB, "POST", "/v1/jobs/two/trials", ASKED))
        # The operator restores.
        good(ask(it, "POST", "/v1/jobs/three/events", lines))
        good(asks(it, ALICE, "DELETE", "/v1/jobs/three"))
        found = tap.run([FLYBALL, "report", "--by=user", f"--store={it.url}", "--format=json"], env=CLEAN, cwd=BOX)
        users = {row["user"] for row in json.loads(found.stdout)["rows"] if row["row"] == "used"}
        tap.equal(users, {f"uid:{ALICE}", f"uid:{BOB}", f"said:uid:{ALICE}"}, found.stderr)
        people = tap.run([FLYBALL, "report", "--by=user", f"--store={it.url}"], env=CLEAN, cwd=BOX).stdout
        tap.contains(people, f"uid:{ALICE} (said)")
        tap.contains(people, f"\n{BOB} ")


def test_ends_that_are_closed():
    """The kernel says root of an end that no process has any more: that is nobody."""
    need_root()
    with service(BOX / "closed.sqlite") as it:
        good(ask(it, "PUT", "/v1/jobs/digits", JOB))

        def attack():
            for linger in (False, True) * 50:
                with it.open() as raw:
                    if linger:
                        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    raw.sendall(b"DELETE /v1/jobs/digits HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return True

        as_user(ALICE, attack)
        tap.equal(asks(it, ALICE, "DELETE", "/v1/jobs/digits")[0], 403)
        good(ask(it, "GET", "/v1/jobs/digits"))


# ---- shares ----


def request(method, path, body=None, length=None):
    content = json.dumps(body) if body is not None else ""
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length or len(content)}\r\n\r\n{content}".encode()


def flooded(it, sent, refused_first, meanwhile):
    """
    What `meanwhile` returns while a user has forty connections, each with that request, and at first, if so, one
    of them was refused; and whether any had its answer by the end.
    """
    (ready, tell), (go, let) = os.pipe(), os.pipe()

    def act():
        raws = [it.open() for _ in range(40)]
        for raw in raws:
            raw.sendall(sent)
        select.select(raws if refused_first else [], [], [], serve_machine.PATIENCE_S if refused_first else 0)
        os.write(tell, b"x")
        os.read(go, 1)
        return bool(select.select(raws, [], [], 0)[0])

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        answered = pool.submit(as_user, ALICE, act)
        os.read(ready, 1)
        try:
            return meanwhile(), answered
        finally:
            os.write(let, b"x")
            concurrent.futures.wait([answered])
            for fd in (ready, tell, go, let):
                os.close(fd)


def test_one_user_has_not_all_workers():
    """His changes wait for a lock that stays; another's request is answered meanwhile."""
    need_root()
    store = BOX / "workers.sqlite"
    with service(store, "--workers=4") as it:
        good(asks(it, ALICE, "PUT", "/v1/jobs/digits", JOB))
        lock = sqlite3.connect(store, isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        told, answered = flooded(it, request("PATCH", "/v1/jobs/digits", {"control_every": 2}), False,
                                 lambda: [asks(it, BOB, "GET", "/v1/jobs/digits")[0] for _ in range(5)])
        tap.equal((told, answered.result()), ([200] * 5, False))
        lock.close()


def test_one_user_has_not_all_bodies():
    """He announces bodies and never sends them."""
    need_root()
    with service(BOX / "bodies.sqlite", "--body-max=100000") as it:
        good(asks(it, BOB, "PUT", "/v1/jobs/digits", JOB))
        told, _ = flooded(it, request("PUT", "/v1/jobs/mine", JOB, length=100000), True,
                          lambda: [asks(it, BOB, "PATCH", "/v1/jobs/digits", {"control_every": 2})[0] for _ in range(5)])
        tap.equal(told, [204] * 5)


tap.main(globals())
