# SPDX-License-Identifier: Apache-2.0
"""How `flyball serve` says that it lives, that it can work, and what keeps it from that; and that SIGHUP renews it.

usage: serve_ready.py FLYBALL
"""
import json
import os
import pathlib
import resource
import signal
import socket
import ssl
import sys
import tempfile

import serve_machine
import tap

FLYBALL = os.path.abspath(sys.argv[1])
WORK = tempfile.TemporaryDirectory(prefix="flyball-serve-ready-")
BOX = pathlib.Path(WORK.name)
EC = ("ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")


def service(*arguments, store=BOX / "store.sqlite", **options):
    return serve_machine.service(FLYBALL, f"--store={store}", *arguments, **options)


def ready(it, **options):
    status, _, body = it.ask("GET", "/readyz", **options)
    return status, json.loads(body)


def lines(it, begin):
    return [line for line in "".join(it.talk).splitlines() if line.startswith(f"flyball: warning: {begin}")]


def until_lines(it, begin, count):
    serve_machine.until(lambda: len(lines(it, begin)) >= count, f"{count} lines of {begin}: {it.talk}")
    tap.equal(len(lines(it, begin)), count, it.talk)
    return lines(it, begin)[-1]


def make_tokens(name):
    file = BOX / name
    made = tap.run([FLYBALL, "token", "one", f"--tokens={file}"], env=serve_machine.CLEAN)
    tap.equal(made.returncode, 0, made.stderr)
    return file, {"Authorization": f"Bearer {made.stdout.strip()}"}


def test_all_is_well():
    with service() as it:
        tap.equal(ready(it), (200, {"tokens": None, "store": "ok", "disk": "ok", "status": "ready"}))
        tap.equal(it.ask("HEAD", "/readyz")[0], 200)
        tap.equal(it.ask("POST", "/readyz", "{}")[0], 405)
        tap.equal(it.ask("GET", "/healthz")[0], 200)
        tap.contains(it.ask("GET", "/metrics")[2].decode(), 'flyball_http_requests_total{family="readyz",status="200"} 2')
        tap.equal(it.stop(), 0)
        tap.equal(it.talk, [])


def test_tokens_that_cannot_be_read():
    file, bearer = make_tokens("tokens")
    good = file.read_text()
    with service(f"--tokens={file}") as it:
        tap.equal(ready(it)[1]["tokens"], "ok")
        for round_number in (1, 2):
            file.write_text("what\n")
            for _ in range(3):
                tap.equal(it.ask("GET", "/v1/jobs", headers=bearer)[0], 503)
                status, answer = ready(it)
                tap.equal((status, answer["error"]["code"], answer["store"]), (503, "FLY_ECONFIG", "ok"))
                tap.equal(str(BOX) in json.dumps(answer), False, "a stranger is not told where it lies")
            tap.contains(until_lines(it, "tokens: ", 2 * round_number - 1), "tokens:1 is no token")
            tap.equal(it.ask("GET", "/healthz")[0], 200, "it lives")
            file.write_text(good)
            serve_machine.until(lambda: ready(it)[0] == 200, "tokens")
            tap.equal(it.ask("GET", "/v1/jobs", headers=bearer)[0], 200)
            tap.contains(until_lines(it, "tokens: ", 2 * round_number), "can be read again")
        tap.equal(it.stop(), 0)


def test_a_store_that_is_away():
    there, away = BOX / "there", BOX / "away"
    there.mkdir()
    with service(store=there / "store.sqlite") as it:
        tap.equal(it.ask("PUT", "/v1/jobs/digits", {"batch_sizes": [16], "default_batch_size": 16, "max_epochs": 1})[0], 200)
        there.rename(away)
        there.write_text("in its place")
        for _ in range(3):
            status, _, body = it.ask("PUT", "/v1/jobs/other",
                                     {"batch_sizes": [16], "default_batch_size": 16, "max_epochs": 1})
            tap.equal(status, 503, body)
        status, answer = ready(it)
        tap.equal((status, answer["status"], answer["tokens"]), (503, "not ready", None), answer)
        tap.equal(it.ask("GET", "/healthz")[0], 200)
        until_lines(it, "store: ", 1)
        there.unlink()
        away.rename(there)
        serve_machine.until(lambda: ready(it)[0] == 200, "the store")
        tap.equal(it.ask("GET", "/v1/jobs/digits")[0], 200)
        tap.contains(until_lines(it, "store: ", 2), "answers again")
        tap.equal(it.stop(), 0)


ZEUS_JOB = {"job_id": "z-2", "batch_sizes": [16], "default_batch_size": 16, "eta_knob": 0.5, "target_metric": 0.5,
            "higher_is_better_metric": True, "max_epochs": 1, "max_power": 250.0, "number_of_gpus": 1, "gpu_model": "A40", "job_id_prefix": "z", "beta_knob": 2.0,
            "num_pruning_rounds": 2, "window_size": 0, "mab_prior_mean": 0.0, "mab_prior_precision": 0.0,
            "mab_num_explorations": 2, "mab_seed": None}


def all_away(it, headers, box):
    """Each route says 503, none says where the store lies, and none makes another."""
    for method, path, body in (("GET", "/v1/jobs", None), ("GET", "/v1/jobs/one", None),
                               ("GET", "/jobs/batch_size?job_id=z-2", None), ("POST", "/jobs", ZEUS_JOB),
                               ("PUT", "/v1/jobs/other", {"batch_sizes": [16], "default_batch_size": 16, "max_epochs": 1})):
        for _ in range(2):
            status, _, answer = it.ask(method, path, body, headers=headers)
            tap.equal((status, str(box) in answer.decode()), (503, False), (path, answer))
    status, answer = ready(it, headers=headers)
    tap.equal((status, answer["store"], str(box) in json.dumps(answer)),
              (503, "the store is not there, or cannot be reached", False), answer)


def check_gone(companions_too, companions_lost=False):
    box = BOX / f"gone-{companions_too}-{companions_lost}"
    box.mkdir()
    file, away, other = (box / name for name in ("s.sqlite", "away.sqlite", "other.sqlite"))
    tokens, bearer = make_tokens(f"tokens-{box.name}")
    with service(f"--tokens={tokens}", "--compat-zeus", store=file) as it:
        tap.equal(it.ask("PUT", "/v1/jobs/one", {"batch_sizes": [16], "default_batch_size": 16, "max_epochs": 1},
                         headers=bearer)[0], 200)
        status, _, answer = it.ask("POST", "/jobs", ZEUS_JOB, headers=bearer)
        tap.equal(status, 201, answer)
        tap.equal(it.ask("GET", "/jobs/batch_size?job_id=z-2", headers=bearer)[0], 200)
        moved = [file, *(box.glob("s.sqlite-*") if companions_too else ())]
        for path in moved:
            path.rename(str(path).replace("s.sqlite", "away.sqlite"))
        for path in box.glob("s.sqlite-*") if companions_lost else ():
            path.unlink()
        all_away(it, bearer, box)
        tap.equal(file.exists(), False, "no other store was made")
        tap.contains(until_lines(it, "store: ", 1), f"{file}' is not there")
        other.write_bytes(b"")
        other.rename(file)
        all_away(it, bearer, box)
        tap.equal(file.stat().st_size, 0, "a file in its place is left alone")
        file.unlink()
        for path in moved:
            pathlib.Path(str(path).replace("s.sqlite", "away.sqlite")).rename(path)
        serve_machine.until(lambda: ready(it)[0] == 200, "the store")
        tap.contains(until_lines(it, "store: ", 2), "answers again")
        for _ in range(12):  # all workers
            tap.equal(it.ask("GET", "/v1/jobs/one", headers=bearer)[0], 200)
            tap.equal(it.ask("GET", "/jobs/batch_size?job_id=z-2", headers=bearer)[0], 200)
        tap.equal(it.stop(), 0)


def test_a_file_that_goes_away():
    check_gone(False)


def test_a_file_that_goes_away_with_its_companions():
    check_gone(True)


def test_a_file_whose_companions_are_lost():
    check_gone(False, companions_lost=True)


def test_readiness_says_which_thing_is_missing():
    file, _ = make_tokens("missing")
    with service(f"--tokens={file}") as it:
        file.unlink()
        status, answer = ready(it)
        tap.equal((status, answer["tokens"]), (503, "the file of tokens is not there"))
        tap.equal(answer["error"]["message"], answer["tokens"])
        tap.equal(it.stop(), 0)


def test_a_disk_that_is_full():
    box = BOX / "disk"
    box.mkdir()
    with service(store=box / "store.sqlite") as it:
        before = resource.prlimit(it.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(it.process.pid, resource.RLIMIT_FSIZE, (100_000, before[1]))
        status, answer = serve_machine.until(lambda: (found := ready(it))[0] == 503 and found, "a full disk")
        tap.equal((status, answer["error"]["code"], answer["store"]), (503, "FLY_EWRITE", "ok"))
        tap.contains(answer["disk"], "a MiB cannot be written")
        until_lines(it, "disk: ", 1)
        resource.prlimit(it.process.pid, resource.RLIMIT_FSIZE, before)
        serve_machine.until(lambda: ready(it)[0] == 200, "room")
        tap.contains(until_lines(it, "disk: ", 2), "takes data again")
        tap.equal(it.stop(), 0)
    tap.equal({path.name.split("-")[0] for path in box.iterdir()}, {"store.sqlite"}, "nothing else is left there")


def test_a_missing_job_names_no_place():
    with service() as it:
        for method, path in (("GET", "/v1/jobs/none"), ("DELETE", "/v1/jobs/none"), ("GET", "/v1/jobs/none/events"),
                             ("POST", "/v1/jobs/none/expire"), ("GET", "/nowhere")):
            status, _, body = it.ask(method, path)
            tap.equal((status, str(BOX) in body.decode()), (404, False), (path, body))
        tap.equal(it.stop(), 0)


# -- SIGHUP --


def open_tls(it):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(it.open())


def shown(tls):
    return ssl.DER_cert_to_PEM_cert(tls.getpeercert(binary_form=True)).strip()


def certificate_of(it):
    with open_tls(it) as tls:
        return shown(tls)


def answers(tls):
    tls.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    return tls.recv(12) + tls.recv(65536) != b""


def renew(it, count):
    it.process.send_signal(signal.SIGHUP)
    return until_lines(it, "reload: ", count)


def test_a_new_certificate():
    chain, key = serve_machine.certificate(BOX, *EC[:1], "old", *EC[1:])
    other_chain, other_key = serve_machine.certificate(BOX, *EC[:1], "new", *EC[1:])
    old, new = chain.read_text().strip(), other_chain.read_text().strip()
    with service(f"--tls-certificate={chain}", f"--tls-key={key}") as it:
        with open_tls(it) as standing:
            tap.equal((shown(standing), answers(standing)), (old, True))
            chain.write_text(new + "\n")
            tap.contains(renew(it, 1), "belong together")
            tap.contains(lines(it, "reload: ")[0], "the old certificate stays")
            tap.equal(certificate_of(it), old)
            key.write_text("nonsense")
            renew(it, 2)
            tap.equal(certificate_of(it), old)
            key.write_text(other_key.read_text())
            tap.contains(renew(it, 3), "new connections get")
            tap.equal(certificate_of(it), new)
            tap.equal(answers(standing), True, "a connection that stands stays")
        tap.equal(it.stop(), 0)


def expired():
    """A certificate of the year 2020; only `openssl ca` writes dates that are past."""
    chain, key = serve_machine.certificate(BOX, *EC[:1], "expired", *EC[1:])
    box = BOX / "authority"
    box.mkdir()
    (box / "index").write_text("")
    (box / "configuration").write_text(f"[ca]\ndefault_ca=own\n[own]\ndatabase={box}/index\nnew_certs_dir={box}\n"
                                       "default_md=sha256\npolicy=any\nrand_serial=yes\n[any]\ncommonName=supplied\n")
    for arguments in (("req", "-new", "-key", key, "-subj", "/CN=expired", "-out", box / "request"),
                      ("ca", "-batch", "-notext", "-selfsign", "-config", box / "configuration", "-keyfile", key, "-in",
                       box / "request", "-startdate", "20200101000000Z", "-enddate", "20200201000000Z", "-out", chain)):
        made = tap.run(["openssl", *map(str, arguments)], cwd=box)
        tap.equal(made.returncode, 0, made.stderr)
    return chain, key


def test_a_certificate_that_has_expired():
    chain, key = expired()
    other_chain, other_key = serve_machine.certificate(BOX, *EC[:1], "valid", *EC[1:])
    with service(f"--tls-certificate={chain}", f"--tls-key={key}") as it:
        tap.contains(until_lines(it, "certificate: ", 1), "expired at 2020-02-01T00:00:00Z")
        chain.write_text(other_chain.read_text())
        key.write_text(other_key.read_text())
        renew(it, 1)
        tap.contains(until_lines(it, "certificate: ", 2), "one that holds is in use")
        tap.equal(it.stop(), 0)


def test_sighup_is_no_end():
    file, bearer = make_tokens("hangup")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(BOX / "notify"))
        systemd.settimeout(serve_machine.PATIENCE_S)
        with service(f"--tokens={file}", env={**serve_machine.CLEAN, "NOTIFY_SOCKET": str(BOX / "notify")}) as it:
            tap.equal(systemd.recv(100), b"READY=1")
            tap.contains(renew(it, 1), "tokens was read")
            tap.equal(systemd.recv(100).startswith(b"RELOADING=1\nMONOTONIC_USEC="), True)
            tap.equal(systemd.recv(100), b"READY=1")
            file.write_text("what\n")
            it.process.send_signal(signal.SIGHUP)
            until_lines(it, "tokens: ", 1)
            tap.equal(it.ask("GET", "/v1/jobs", headers=bearer)[0], 503, "the file alone says who gets in")
            tap.equal(it.stop(), 0)
    with service() as it:
        tap.contains(renew(it, 1), "neither a certificate nor")
        tap.equal(it.ask("GET", "/v1/jobs")[0], 200)
        tap.equal(it.stop(), 0)


tap.main(globals())
