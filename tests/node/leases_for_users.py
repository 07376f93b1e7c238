# SPDX-License-Identifier: Apache-2.0
"""Users to whom the driver lets nothing be set turn through flyballd, hold the lock and a journal of their own, and all goes back whoever dies.

usage: leases_for_users.py FLYBALL SOURCE_ROOT
"""

import contextlib
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess

import node_machine
import reach
import serve_machine
import tap
from node_machine import SOCKET, audit
from power_machine import (BUILT, CLEAN, DEFAULT_W, DRIVER, EMULATOR, FLYBALL, HOME, KNOBS, NOBODY, SANITIZED, WHERE, emulator, entries, guard_of,
                           limits, wait_for)
from ways_machine import ROOT, USER, journal, locked_machine, power, start, tune

AT = {"FLYBALL_KNOB_DAEMON": str(SOCKET)}
USERS_RULE = f"[rule user]\nfor = user:{NOBODY}\nallow = control\n"
TOKENS = HOME / "tokens"
ROOT_DIRECTORY = HOME / "root"


def kill(daemon, guards):
    """With its guards, or without."""
    if guards:
        daemon.process.send_signal(signal.SIGSTOP)
        for guard in guards_of(daemon.process.pid):
            os.kill(guard, signal.SIGKILL)
    daemon.stop(signal.SIGKILL)
    daemon.process.stderr.close()


def guards_of(pid):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if words[0] == b"flyball-guard" and words[2:3] == [str(pid).encode()]:
                found.append(int(path.parent.name))
    return found


def daemons_entries():
    directory = KNOBS / "daemon"
    return sorted(path.suffix[1:] for path in directory.iterdir() if path.suffix == ".turned") if directory.exists() else []


@contextlib.contextmanager
def locked(gpus, *settings):
    if not ROOT or SANITIZED:
        raise tap.Skip("root's part is not played here: not root, or built with sanitizers")
    node_machine.clean()
    with locked_machine(*settings, gpus=gpus):
        try:
            yield
            wait_for(lambda: daemons_entries() == [], "the daemon's journal is empty")
        finally:
            shutil.rmtree(KNOBS / "daemon", ignore_errors=True)
            node_machine.clean()


@contextlib.contextmanager
def leased(*settings, gpus=2, rules=USERS_RULE, **keywords):
    with locked(gpus, *settings), node_machine.daemon(rules=rules, **keywords) as daemon:
        for gpu in range(gpus):
            wait_for(lambda gpu=gpu: daemon.ask("GET", f"/v1/gpus/{gpu}")[2]["answers"], "the GPU is watched")
        yield daemon


def user_session(*arguments):
    session = start("set", *arguments, environment=AT)
    written = f"{arguments[0]}000 {arguments[0]}000 "
    wait_for(lambda: journal().count(written) == len(limits()), "the session has turned and written it down")
    return session


def close(session):
    session.wait(timeout=tap.PATIENCE_S)
    session.stdout.close()
    session.stderr.close()


def back(what):
    wait_for(lambda: limits() == [DEFAULT_W] * len(limits()), what)
    wait_for(lambda: entries() == [], f"{what}: the journal is empty")


def test_a_users_session():
    with leased():
        result = power("set", 150, "--", EMULATOR, "show", "--json", environment=AT)
        tap.equal(result.returncode, 0, result.stderr)
        tap.equal([gpu["limit_w"] for gpu in json.loads(result.stdout)["gpus"]], [150, 150])
        tap.contains(result.stderr, f"by the daemon at '{SOCKET}'")
        back("the session has ended")
        turns = [(line["uid"], line["quantity"], line["from"], line["to"]) for line in audit() if line["what"] == "turn"]
        tap.equal((USER["user"], "power_limit_mw", 400000, 150000) in turns, True, turns)
        named = {line.get("program", "")[:7] for line in audit() if line["what"] in ("grant", "change")}
        tap.equal(named, {"flyball"}, audit())


def test_the_lock_and_both_journals():
    with leased(gpus=1):
        session = user_session("150", "--for", "1h")
        wait_for(lambda: entries() == ["turned"], "the session has written it down")
        tap.equal(daemons_entries(), ["turned"])
        # Root does not take the GPU from it.
        result = subprocess.run([*map(str, session.args[:2]), "set", *session.args[3:-3], "200", "--require", "--", "true"], env=CLEAN, cwd=HOME,
                                capture_output=True, text=True, check=False)
        tap.equal((result.returncode != 0, limits()), (True, [150]), result.stderr)
        session.send_signal(signal.SIGTERM)
        close(session)
        back("the session was ended")


def test_deaths():
    """Of the session, its guard, the daemon and its guards: each of them, and all."""
    for dead in ("session", "session guard", "daemon", "daemon guards", "session guard daemon", "session guard daemon guards"):
        with locked(gpus=1):
            with node_machine.daemon(rules=USERS_RULE) as daemon:
                session = user_session("150", "--for", "1h")
                wait_for(lambda: entries() == ["turned"], "the session has written it down")
                if "session guard" in dead:
                    guard = guard_of(session)
                    session.send_signal(signal.SIGSTOP)
                    os.kill(guard, signal.SIGKILL)
                if "daemon" in dead:
                    kill(daemon, guards="guards" in dead)
                if "session" in dead:
                    session.kill()
                    close(session)
                with node_machine.daemon(rules=USERS_RULE) if "daemon" in dead else contextlib.nullcontext():
                    wait_for(lambda: limits() == [DEFAULT_W], f"it is back after the death of {dead}")
                    if "session" not in dead:
                        session.terminate()
                        close(session)
                    back(f"the death of {dead}")


def test_another_program_wins():
    with leased(gpus=1):
        session = user_session("150", "--for", "1h")
        emulator("set", "--gpu", 0, "--limit-w", 333)
        wait_for(lambda: "foreign" in [line["what"] for line in audit()], "the daemon has seen it")
        session.terminate()
        close(session)
        tap.equal(limits(), [333])


def test_who_is_refused():
    """A user whom no rule names, and everybody while the operator's file is there: nothing is turned, and the program runs."""
    with leased(gpus=1, rules=""):
        result = power("set", 150, "--", "echo", "runs", environment=AT)
        tap.equal((result.returncode, result.stdout, limits(), entries()), (0, "runs\n", [DEFAULT_W], []), result.stderr)
        tap.contains(result.stderr, f"user {NOBODY} may not control GPU 0")
    with leased(gpus=1):
        (HOME / "readonly").touch()
        try:
            result = power("set", 150, "--require", "--", "echo", "runs", environment=AT)
            tap.equal((result.returncode, result.stdout, limits()), (77, "", [DEFAULT_W]), result.stderr)
            tap.contains(result.stderr, "the operator keeps knobs from being turned")
        finally:
            (HOME / "readonly").unlink()


def doctor(environment):
    """What flyball doctor says to the user about limits, and what would change it."""
    result = subprocess.run([FLYBALL, "doctor", "nvidia", "--format", "json", *WHERE], env={**CLEAN, **environment}, cwd=HOME, capture_output=True,
                            text=True, timeout=tap.PATIENCE_S, check=False, **USER)
    tap.equal(result.returncode, 0, result.stderr)
    return next((row["finding"], row["remedy"] or "") for row in json.loads(result.stdout)["rows"] if row["state"] == "settable")


def test_doctor():
    with leased(gpus=1):
        finding, remedy = doctor(AT)
        tap.equal((f"flyballd at '{SOCKET}' does it for this user" in finding, remedy), (True, ""), finding)
    with leased(gpus=1, rules=""):
        finding, remedy = doctor(AT)
        tap.contains(finding, f"flyballd at '{SOCKET}' sets them for this user on 0 of 1 GPUs: user {NOBODY} may not control GPU 0")
        tap.contains(remedy, "allow = control")
        tap.equal(limits(), [DEFAULT_W])
    with locked(1):
        finding, remedy = doctor(AT)
        tap.contains(finding, f"does not run here (nothing was set to find out): the daemon: nobody answers at '{SOCKET}'")
        tap.contains(remedy, "systemctl enable --now flyballd.service")


def test_proof():
    """Who has two GPUs, as in a container, turns these two and not the third."""
    shown = HOME / "shown"
    for directory in (shown, ROOT_DIRECTORY / "dev", ROOT_DIRECTORY / "proc"):
        directory.mkdir(parents=True, exist_ok=True)
    (ROOT_DIRECTORY / "proc" / "devices").write_text("Character devices:\n  1 nvidia\n  1 mem\n")
    for directory, minors in ((ROOT_DIRECTORY / "dev", {3: "null", 5: "zero", 7: "full"}), (shown, {3: "null", 5: "zero"})):
        for minor, name in minors.items():
            (directory / f"nvidia{minor}").symlink_to(f"/dev/{name}")
    ways = {**AT, "FLYBALL_KNOB_DEVICES": str(shown)}
    expected = [DEFAULT_W] * 8
    try:
        with leased(gpus=8, rules=""):
            result = power("set", 150, "-i", "3,5", "--require", "--", EMULATOR, "show", "--json", environment=ways)
            tap.equal(result.returncode, 0, result.stderr)
            tap.equal([gpu["limit_w"] for gpu in json.loads(result.stdout)["gpus"]], [400, 400, 400, 150, 400, 150, 400, 400])
            wait_for(lambda: limits() == expected, "both are back")
            for gpus, what in (("7", ways), ("3,5,7", ways), ("3", AT)):
                result = power("set", 150, "-i", gpus, "--", "echo", "runs", environment=what)
                tap.equal((result.returncode, result.stdout, limits()), (0, "runs\n", expected), result.stderr)
                tap.contains(result.stderr, f"user {NOBODY} may not control GPU {gpus[-1]}; pass an open device file of it")
            tap.equal({line["gpu"][7:12] for line in audit() if line["what"] == "turn"}, {"ba113", "ba115"})
    finally:
        shutil.rmtree(ROOT_DIRECTORY)
        shutil.rmtree(shown)


def test_token():
    """Over TCP, as from another machine or a container with locks of its own, a token alone counts; the guard gets through after a kill."""
    elsewhere = HOME / "open" / "knobs"
    elsewhere.mkdir(parents=True, exist_ok=True)
    for path in (elsewhere.parent, elsewhere):
        path.chmod(0o1777)
    made = subprocess.run([FLYBALL, "token", "of-users", "--scope", "train", "--tokens", str(TOKENS)], env=CLEAN, capture_output=True, text=True, check=True)
    token = HOME / "token"
    token.write_text(made.stdout.split()[-1])
    token.chmod(0o644)
    chain, key = serve_machine.certificate(HOME, "rsa:2048", "self", "-addext", "subjectAltName=IP:127.0.0.1")
    chain.chmod(0o644)
    try:
        with leased(gpus=1, rules="", settings={"server": {"tokens": TOKENS, "tls_certificate": chain, "tls_key": key}}) as daemon:
            tap.equal(daemon.url.startswith("https://"), True, daemon.url)
            stranger = {"FLYBALL_KNOB_DAEMON": daemon.url, "FLYBALL_RUNTIME_DIR": str(elsewhere), "FLYBALL_KNOB_TOKEN_FILE": str(token)}
            refused = power("set", 150, "--require", "--", "true", environment=stranger)
            tap.equal((refused.returncode, limits()), (77, [DEFAULT_W]), refused.stderr)
            tap.contains(refused.stderr, "certificate")
            ways = {**stranger, "FLYBALL_CA_FILE": str(chain)}
            result = power("set", 150, "--require", "--", "true", environment=ways)
            tap.equal((result.returncode, limits()), (0, [DEFAULT_W]), result.stderr)
        with leased(gpus=1, rules="", settings={"server": {"tokens": TOKENS}}) as daemon:
            place = {"FLYBALL_KNOB_DAEMON": daemon.url, "FLYBALL_RUNTIME_DIR": str(elsewhere)}
            refused = power("set", 150, "--require", "--", "true", environment=place)
            tap.equal((refused.returncode, limits()), (77, [DEFAULT_W]), refused.stderr)
            ways = {**place, "FLYBALL_KNOB_TOKEN_FILE": str(token)}
            for number in (signal.SIGTERM, signal.SIGKILL):
                session = start("set", "150", "--for", "1h", environment=ways)
                wait_for(lambda: limits() == [150], "the session has turned")
                session.send_signal(number)
                close(session)
                back(f"signal {number} ended the session")
                wait_for(lambda: not any(path.suffix == ".turned" for path in elsewhere.iterdir()), "the session's journal is empty")
            # Over the socket it goes to root, who listens there.
            wait_for(lambda: daemon.ask("GET", "/v1/leases")[2] == {"leases": []}, "the lease that asks for nothing has ended")
            result = power("set", 150, "--require", "--", "true", environment={**AT, "FLYBALL_KNOB_TOKEN_FILE": str(token)})
            tap.equal(result.returncode, 0, result.stderr)
    finally:
        for path in (TOKENS, chain, key):
            path.unlink()


# Listens as the user that runs it, and says what the first client sent.
LISTENER = """
import socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print("listening", flush=True)
client = listener.accept()[0]
got = client.recv(4096)
client.close()
print(got, flush=True)
"""


def ready(stream):
    """Whether there is a line to read, which is waited for."""
    return bool(select.select([stream], [], [], 60)[0])


def test_a_listener_who_is_not_trusted():
    """Anybody may put a socket of his own into a directory of his; the token does not go there."""
    place = HOME / "open" / "socket"
    place.parent.mkdir(exist_ok=True)
    place.parent.chmod(0o777)
    with locked(1):
        for named, sent in ((None, False), ("root", False), ("nobody", True), (str(NOBODY), True)):
            place.unlink(missing_ok=True)
            with subprocess.Popen(["python3", "-c", LISTENER, str(place)], stdout=subprocess.PIPE, text=True, **USER) as listener:
                listener.stdout.readline()
                ways = {"FLYBALL_KNOB_DAEMON": str(place), "ZEUSD_TOKEN": "a.secret.token"}
                if named is not None:
                    ways["FLYBALL_KNOB_DAEMON_USER"] = named
                result = power("set", 150, "--require", "--", "true", environment=ways)
                told = ready(listener.stdout)
                listener.kill()
                tap.equal((told, result.returncode != 0), (True, True), result.stderr)
                tap.equal(f"user {NOBODY} listens at '{place}', who is not trusted" in result.stderr, not sent, result.stderr)
                tap.equal("a.secret.token" in listener.stdout.readline(), sent, named)
        result = power("set", 150, "--require", "--", "true", environment={**AT, "FLYBALL_KNOB_DAEMON_USER": "nobody of that name"})
        tap.contains(result.stderr, "which names no user")


def test_tuning():
    """flyball run --tune goes through the daemon by itself."""
    with leased("--sensor", "exact", "--counter-period-ms", "0", gpus=1):
        talk, report = tune(AT, lambda: limits()[0] < DEFAULT_W, "a limit is tried through the daemon")
        # On a busy machine the search may be over before the limit is seen.
        tap.equal((report["state"] in ("searching", "checking", "keeping"), report["reason"]), (True, "goes on"), talk)


# A tuner, or a session of a recurring job, until it has set the lowest limit; then the limits that it has set.
TUNER = """
import time, flyball
with flyball.Tuner(flyball.Monitor(), objective="lowest-limit", max_slowdown=None, limits_w=[400, 200], warmup_steps=1, profile_steps=5) as tuner:
    while tuner.state not in ("settled", "stopped"):
        tuner.step_begin()
        time.sleep(0.0005)
    print(tuner.report.text or tuner.report.limit_w)
"""
SESSION = """
import flyball
with flyball.Session("job", default=64, max_epochs=1, limits_w=[200], store="jobs.sqlite", wait_s=60) as session:
    for _ in session.steps(range(3)):
        pass
    print(session.status.limit_text or session.status.limit_w)
"""


def test_python():
    """The package's Tuner and Session, with nothing said but where the daemon is."""
    package = reach.package(os.environ.get("FLYBALL_TEST_PYTHON", pathlib.Path(BUILT).parent / "python"))
    place = HOME / "open"
    place.mkdir(exist_ok=True)
    place.chmod(0o777)
    environment = {**CLEAN, **AT, "HOME": str(place), "PYTHONPATH": str(package), "LD_LIBRARY_PATH": str(DRIVER.parent),
                   "FLYBALL_GUARD": str(pathlib.Path(FLYBALL).parent / "flyball-guard")}
    if subprocess.run(["python3", "-c", "import flyball; flyball.Monitor"], env=environment, capture_output=True, check=False, **USER).returncode != 0:
        raise tap.Skip("the package is not built, or another user cannot read it")
    for program in (TUNER, SESSION):
        with leased("--ideal", "--counter-period-ms", "0", "--settle-ms", "0.001", gpus=1):
            emulator("set", "--load-w", 300)
            result = subprocess.run(["python3", "-c", program], env=environment, cwd=place, capture_output=True, text=True, timeout=tap.PATIENCE_S,
                                    check=False, **USER)
            tap.equal((result.returncode, result.stdout), (0, "200.0\n"), result.stderr)
            back("the program has ended")
            tap.equal({line["uid"] for line in audit() if line["what"] == "turn"}, {NOBODY})


# Runs a program where /run holds the daemon's socket at its usual place, as a user.
USUAL = 'mount -t tmpfs none /run && mkdir /run/flyballd && ln -s "$1" /run/flyballd/flyballd.sock && shift && exec setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"'


def test_usual_place():
    if shutil.which("setpriv") is None or subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0:
        raise tap.Skip("no unshare or setpriv here")
    with leased(gpus=1):
        words = [FLYBALL, "power", "set", "150", "--require", *WHERE, "--", str(EMULATOR), "show", "--json"]
        result = subprocess.run(["unshare", "-m", "bash", "-c", USUAL, "bash", str(SOCKET), str(NOBODY), *words], env=CLEAN, cwd=HOME,
                                capture_output=True, text=True, timeout=tap.PATIENCE_S, check=False)
        tap.equal(result.returncode, 0, result.stderr)
        tap.equal(json.loads(result.stdout)["gpus"][0]["limit_w"], 150)
        tap.contains(result.stderr, "by the daemon at '/run/flyballd/flyballd.sock'")
        back("the session has ended")


tap.main(globals())
