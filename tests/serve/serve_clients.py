# SPDX-License-Identifier: Apache-2.0
"""Commands as clients of a service that wants tokens and speaks TLS.

usage: serve_clients.py FLYBALL SOURCE_ROOT
"""

import os
import pathlib
import shutil
import sys
import tempfile

import serve_machine
import tap

FLYBALL = os.path.abspath(sys.argv[1])
WORK = tempfile.TemporaryDirectory(prefix="flyball-serve-clients-")
BOX = pathlib.Path(WORK.name)
CLEAN = {**serve_machine.CLEAN, "HOME": WORK.name}
STORE, TOKENS = BOX / "store.sqlite", BOX / "tokens"


def client(store, *arguments, **variables):
    return tap.run([FLYBALL, *arguments, f"--store={store}"], env={**CLEAN, **{name: str(value) for name, value in variables.items()}}, cwd=BOX)


def make(name, scope, expires="1h"):
    result = tap.run([FLYBALL, "token", name, f"--scope={scope}", f"--expires={expires}", f"--tokens={TOKENS}"], env=CLEAN, cwd=BOX)
    tap.equal(result.returncode, 0, result.stderr)
    path = BOX / f"{name}.token"
    path.write_text(result.stdout)
    return path, result.stdout.strip()


def filled():
    """A job in the store, from one of another store's logs."""
    if not STORE.exists():
        result = tap.run([pathlib.Path(os.environ["FLYBALL_TEST_BUILD"]) / "job_client", STORE, "digits", "2"])
        tap.equal(result.returncode, 0, result.stderr)


def refused(result, status, words, secrets=()):
    tap.equal(result.returncode, status, result.stderr)
    tap.contains(result.stderr, words)
    for secret in secrets:
        tap.equal(secret in result.stderr + result.stdout, False, "a token is shown")


def test_tokens():
    filled()
    (reader, said), (manager, _) = make("reader", "read"), make("manager", "manage")
    with serve_machine.service(FLYBALL, f"--store={STORE}", f"--tokens={TOKENS}", "--operators=token:manager") as service:
        at = service.url
        tap.contains(client(at, "job", "list", FLYBALL_TOKEN_FILE=reader).stdout, "digits")
        tap.contains(client(at, "job", "list", FLYBALL_TOKEN=said).stdout, "digits")
        refused(client(at, "job", "list"), 77, "token")
        refused(client(at, "job", "list", FLYBALL_TOKEN="fly_" + "0" * 43), 77, "token", ["fly_000"])
        refused(client(at, "job", "set", "digits", "--objective=energy", FLYBALL_TOKEN_FILE=reader), 77, "lacks the scope 'manage'", [said])
        tap.equal(client(at, "job", "set", "digits", "--objective=energy", FLYBALL_TOKEN_FILE=manager).returncode, 0)
        refused(client(at, "job", "list", FLYBALL_TOKEN_FILE=BOX / "none"), 66, "FLYBALL_TOKEN_FILE")
        lines = TOKENS.read_text().splitlines()
        TOKENS.write_text("\n".join(line for line in lines if not line.startswith("reader")) + "\n")
        refused(client(at, "job", "list", FLYBALL_TOKEN_FILE=reader), 77, "token", [said])


def certificates():
    """An authority, and a certificate for 127.0.0.1 that it vouches for."""
    if shutil.which("openssl") is None:
        raise tap.Skip("openssl is not installed")
    (BOX / "extensions").write_text("subjectAltName=IP:127.0.0.1\n")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    for arguments in (["req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test authority"],
                      ["req", *key, "-keyout", "own.key", "-out", "own.csr", "-subj", "/CN=flyball"],
                      ["x509", "-req", "-in", "own.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-out", "own.pem",
                       "-extfile", "extensions"]):
        result = tap.run(["openssl", *arguments], cwd=BOX)
        tap.equal(result.returncode, 0, result.stderr)
    (BOX / "own.key").chmod(0o600)


def test_tls():
    filled()
    certificates()
    reader, said = make("tls", "read")
    with serve_machine.service(FLYBALL, f"--store={STORE}", f"--tokens={TOKENS}", "--tls-certificate=own.pem", "--tls-key=own.key", cwd=BOX) as service:
        at = service.url
        tap.equal(at.startswith("https://"), True, at)
        good = client(at, "job", "list", FLYBALL_TOKEN_FILE=reader, FLYBALL_CA_FILE=BOX / "ca.pem")
        tap.equal(good.returncode, 0, good.stderr)
        tap.contains(good.stdout, "digits")
        log = client(at, "job", "export", "digits", FLYBALL_TOKEN_FILE=reader, FLYBALL_CA_FILE=BOX / "ca.pem")
        tap.equal(log.stdout, client(STORE, "job", "export", "digits").stdout)
        refused(client(at, "job", "list", FLYBALL_TOKEN_FILE=reader), 77, "is not trusted", [said])
        refused(client(at, "job", "list", FLYBALL_TOKEN_FILE=reader, FLYBALL_CA_FILE=BOX / "nothing.pem"), 64, "nothing.pem", [said])
        plain = client(at.replace("https://", "http://"), "job", "list", FLYBALL_TOKEN_FILE=reader)
        tap.equal(plain.returncode, 69, plain.stderr)
    with serve_machine.service(FLYBALL, f"--store={STORE}") as service:
        refused(client(service.url.replace("http://", "https://"), "job", "list"), 69, "nobody speaks TLS")


tap.main(globals())
