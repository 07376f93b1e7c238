# SPDX-License-Identifier: Apache-2.0
"""The configuration of `flyballd` where it is hostile, damaged or changes under it, and what a reload keeps.

usage: flyballd_config.py FLYBALL
"""
import json
import os
import signal

import node_machine
import power_machine
import serve_machine
import tap

DEFAULT_W = power_machine.DEFAULT_W
PATH = node_machine.CONFIG


def put(content, mode=0o600):
    if PATH.is_dir():
        PATH.rmdir()
    PATH.unlink(missing_ok=True)
    if content is None:
        return
    PATH.write_bytes(content)
    PATH.chmod(mode)


def usual():
    node_machine.write_config()
    return PATH.read_bytes()


BROKEN = (
    (b"\0" * 100, "nul bytes"), (b"\xff\xfe[\0w\0", "another encoding"), (b"[server\n", "an open section"), (b"poll = 1\n", "no section"),
    (b"[watch]\npoll\n", "no value"), (b"[watch]\npoll = 1e400\n", "infinite"), (b"[watch]\npoll = nan\n", "no number"),
    (b"[watch]\npoll = 0.2 0.3\n", "two numbers"), (b"[server]\nconnections = 99999999999999999999\n", "too large"),
    (b"[server]\nlisten =\n", "no address"), (b"[server]\nlisten = a,b,a\n", "twice the same"), (b"[rule]\nfor = user:0\n", "a rule without a name"),
    (b"[rule a]\nfor = user:-1\nallow = read\n", "no user"), (b"[rule a]\nfloor = 400\nceiling = -3\n", "negative"),
    (b"[rule a]\nfloor = 300%%\n", "no share"), (b"[watch]\n" + b"x" * 5000 + b" = 1\n", "a long key"),
    (b"[watch]\npoll = " + b"1" * 5000 + b"\n", "a long value"), (b"".join(b"[rule r%d]\nceiling = 300\n" % i for i in range(300)), "300 rules"),
    (b"[rule a]\ngpus = " + b",".join(b"%d" % i for i in range(400)) + b"\nceiling = 300\n", "400 GPUs"),
    (b"[lease]\nmaximum = 1\nmaximum = 2\n", "twice"), (b"[log]\nformat = JSON\n", "another word"),
)


def test_what_is_refused():
    for content, what in BROKEN:
        put(content)
        result = node_machine.run("--check-config", f"--config={PATH}")
        tap.equal((result.returncode in (65, 78), result.stdout), (True, ""), f"{what}: {result.stderr}")
        tap.equal(len(result.stderr.splitlines()), 1, f"{what}: {result.stderr}")
        tap.equal(all(character.isprintable() for character in result.stderr.rstrip("\n")), True, f"{what}: {result.stderr!r}")
    PATH.unlink()
    PATH.mkdir()
    tap.equal(node_machine.run("--check-config", f"--config={PATH}").returncode in (66, 74, 78), True)
    put(None)
    PATH.symlink_to(PATH)
    tap.equal(node_machine.run("--check-config", f"--config={PATH}").returncode != 0, True)
    PATH.unlink()
    for mode in (0o602, 0o666):
        put(b"[watch]\npoll = 1\n", mode)
        tap.equal(node_machine.run("--check-config", f"--config={PATH}").returncode, 77, oct(mode))
    put(None)


def test_what_is_taken():
    for content in (b"", b"# nothing\n; nothing\n", b"[watch]\n", b"[watch]\npoll = 1", b"\xef\xbb\xbf[watch]\npoll = 1\n", b"[watch]\r\npoll = 1\r\n"):
        put(content)
        result = node_machine.run("--check-config", f"--config={PATH}")
        tap.equal(result.returncode, 0, f"{content!r}: {result.stderr}")
    put(None)


def reload(daemon, words):
    """Sends SIGHUP, and waits for the next line with these words."""
    seen = len(daemon.talk)
    daemon.process.send_signal(signal.SIGHUP)
    serve_machine.until(lambda: any(words in line for line in daemon.talk[seen:]), words)


def test_reload_of_what_is_broken():
    with power_machine.machine(), node_machine.daemon() as daemon:
        serve_machine.until(lambda: all(gpu["answers"] for gpu in daemon.ask("GET", "/v1/gpus")[2]["gpus"]), "both GPUs answer")
        good, ids = PATH.read_bytes(), [node_machine.lease(daemon, 240)["id"], node_machine.lease(daemon, 250, ["1"])["id"]]
        for content, _ in BROKEN:
            put(content)
            reload(daemon, "the configuration stays as it was")
        put(good, 0o666)
        reload(daemon, "the configuration stays as it was")
        put(None)
        reload(daemon, "the configuration stays as it was")
        tap.equal([row["id"] for row in daemon.ask("GET", "/v1/leases")[2]["leases"]], ids)
        put(good)
        reload(daemon, "the configuration was read again")
        tap.equal((power_machine.limits(), daemon.ask("GET", "/v1/gpus/0")[2]["may_control"]), ([240, 250], True))
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))
    node_machine.clean()


def test_many_reloads():
    """Signals as fast as they go, while leases come and go; none is lost, and the last configuration is in force."""
    with power_machine.machine(), node_machine.daemon() as daemon:
        serve_machine.until(lambda: all(gpu["answers"] for gpu in daemon.ask("GET", "/v1/gpus")[2]["gpus"]), "both GPUs answer")
        kept = node_machine.lease(daemon, 300)
        for number in range(40):
            node_machine.write_config(rules=node_machine.OWN_RULE + f"[rule all]\nceiling = {200 + number}\n")
            daemon.process.send_signal(signal.SIGHUP)
            if number % 4 == 0:
                made = node_machine.lease(daemon, 350, ["1"])
                tap.equal(daemon.ask("DELETE", f"/v1/leases/{made['id']}")[0], 200)
        reload(daemon, "the configuration was read again")
        serve_machine.until(lambda: power_machine.limits() == [239, DEFAULT_W], "the last ceiling")
        tap.equal([row["id"] for row in daemon.ask("GET", "/v1/leases")[2]["leases"]], [kept["id"]])
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))
    node_machine.clean()


def test_reload_of_rights():
    """Who may no longer control keeps what he has, and gets nothing more; the log changes its form."""
    with power_machine.machine(), node_machine.daemon() as daemon:
        serve_machine.until(lambda: all(gpu["answers"] for gpu in daemon.ask("GET", "/v1/gpus")[2]["gpus"]), "both GPUs answer")
        kept = node_machine.lease(daemon, 240)
        node_machine.write_config({"log": {"format": "json"}, "rights": {"contained": "no"}}, rules="")
        reload(daemon, "the configuration was read again")
        said = [line for line in daemon.talk if "the configuration was read again" in line]
        tap.equal(json.loads(said[-1])["level"], "info")
        status, _, body = daemon.ask("POST", "/v1/leases", {"gpus": ["1"], "power_limit_w": 240})
        contained = os.readlink("/proc/self/ns/pid") != "pid:[4026531836]"
        tap.equal(status, 403 if contained or os.geteuid() != 0 else 200, str(body))
        tap.equal([row["id"] for row in daemon.ask("GET", "/v1/leases")[2]["leases"]][:1], [kept["id"]])
        tap.equal(power_machine.limits()[0], 240)
        # Giving back is always allowed.
        tap.equal(daemon.ask("DELETE", f"/v1/leases/{kept['id']}")[0], 200)
        tap.equal(daemon.stop(), 0, "".join(daemon.talk))
    node_machine.clean()


tap.main(globals())
