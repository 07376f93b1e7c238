# SPDX-License-Identifier: Apache-2.0
"""What `flyballd` writes of who turned what: all of it, over the ends of leases, the daemon and the log.

usage: flyballd_audit.py FLYBALL
"""
import contextlib
import ctypes
import json
import os
import resource
import signal

import node_machine
import power_machine
import serve_machine
import tap

DEFAULT_W = power_machine.DEFAULT_W


def answering(daemon):
    def look():
        gpus = daemon.ask("GET", "/v1/gpus")[2]["gpus"]
        return gpus if all(gpu["answers"] for gpu in gpus) else None
    return serve_machine.until(look, "both GPUs answer")


def lines(what, of=None):
    return [row for row in (node_machine.audit() if of is None else of) if row["what"] == what]


def awaited(what, count=1):
    return serve_machine.until(lambda: rows if len(rows := lines(what)) >= count else None, f"{count} lines of '{what}'")


def test_whole_log():
    """Who, what, when, from, to, by which lease; also what was refused, and what another program did."""
    with power_machine.machine(), node_machine.daemon() as daemon:
        uuid = answering(daemon)[0]["uuid"]
        made = node_machine.lease(daemon, 250, program="a test", expires_s=600)
        tap.equal([(there["gpu"], there["power_limit_w"], there["clock_ceiling_mhz"]) for there in made["set"]], [(0, 250, None)])
        made = made["id"]
        tap.equal(daemon.ask("PATCH", f"/v1/leases/{made}", {"power_limit_w": 240, "clock_floor_mhz": 900, "clock_ceiling_mhz": 1200})[0], 200)
        tap.equal(daemon.ask("POST", f"/v1/leases/{made}/renew", {"expires_s": 900})[0], 200)
        tap.equal(daemon.ask("POST", "/v1/leases", {"gpus": ["0"], "power_limit_w": 200})[0], 409)
        status, _, body = daemon.ask("POST", "/v1/leases", {"gpus": ["1"], "power_limit_w": 3})
        tap.equal((status, body["error"]["code"]), (400, "FLY_EUSAGE"), str(body))
        power_machine.emulator("set", "--gpu", 0, "--limit-w", 333)
        awaited("foreign")
        tap.equal(power_machine.limits(), [333, DEFAULT_W])
        made = node_machine.lease(daemon, 250, program="a test", gpus=["1"])["id"]
        tap.equal(daemon.ask("DELETE", f"/v1/leases/{made}")[0], 200)
        back = awaited("back")
        tap.equal(back[-1]["lease"], made)
    rows = node_machine.audit()
    for row in rows:
        tap.equal((row["schema"], row["date"][-1]), ("flyball-audit/1", "Z"))
    grants = [(row["outcome"], row["uid"], row["pid"], row.get("program")) for row in lines("grant", rows)]
    own = (os.geteuid(), os.getpid())
    tap.equal(grants, [("done", *own, "a test"), ("refused", *own, None), ("refused", *own, None), ("done", *own, "a test")])
    first = lines("grant", rows)[0]["lease"]
    turns = {(row["quantity"], row["from"], row["to"]) for row in lines("turn", rows) if row["lease"] == first and row["gpu"] == uuid}
    tap.equal(turns, {("power_limit_mw", 400000, 250000), ("power_limit_mw", 250000, 240000), ("clock_floor_mhz", 0, 900),
                      ("clock_ceiling_mhz", 0, 1200)})
    tap.equal([(row["lease"], row["outcome"], row["uid"]) for row in lines("change", rows) + lines("renew", rows)],
              [(first, "done", own[0])] * 2)
    foreign = lines("foreign", rows)
    tap.equal([(row["lease"], row["gpu"]) for row in foreign], [(first, uuid)])
    tap.contains(foreign[0]["why"], "changed by another program to 333 W")
    ends = [row["lease"] for row in lines("end", rows)]
    tap.equal((len(ends), ends[1:]), (3, [first, made]))
    # Each lease that a line names has its end, also the one that could not be carried out.
    tap.equal(sorted({row["lease"] for row in rows if "lease" in row}), sorted(ends))
    node_machine.clean()


def test_log_is_moved_away():
    aside = node_machine.AUDIT.with_suffix(".1")
    with power_machine.machine(), node_machine.daemon() as daemon:
        answering(daemon)
        made = node_machine.lease(daemon, 250)["id"]
        node_machine.AUDIT.rename(aside)
        tap.equal(daemon.ask("PATCH", f"/v1/leases/{made}", {"power_limit_w": 240})[0], 200)
        tap.equal(node_machine.AUDIT.exists(), False)
        daemon.process.send_signal(signal.SIGHUP)
        daemon.said("the configuration was read again")
        tap.equal(daemon.ask("DELETE", f"/v1/leases/{made}")[0], 200)
        tap.equal([row["lease"] for row in lines("end")], [made])
        tap.contains(aside.read_text(), '"what":"change"')
    aside.unlink()
    node_machine.clean()


def test_what_was_left_is_put_back():
    with power_machine.machine():
        with node_machine.daemon() as daemon:
            answering(daemon)
            node_machine.lease(daemon, 240)
            power_machine.kill_both(daemon.process)
            daemon.reader.join(serve_machine.PATIENCE_S)
        with node_machine.daemon() as daemon:
            repair = awaited("repair")[0]
            tap.equal(repair["outcome"], "done")
            tap.contains(repair["why"], "left at 240 W by 'flyballd'")
            power_machine.back_within([DEFAULT_W, DEFAULT_W], "the next daemon puts back")
            daemon.said("it was lost")
    node_machine.clean()


def test_lost_leases():
    with power_machine.machine():
        with node_machine.daemon() as daemon:
            answering(daemon)
            ended = node_machine.lease(daemon, 250)["id"]
            tap.equal(daemon.ask("DELETE", f"/v1/leases/{ended}")[0], 200)
            lost = node_machine.lease(daemon, 240, program="a test")["id"]
            daemon.stop(signal.SIGKILL)
            power_machine.back_within([DEFAULT_W, DEFAULT_W], "the guard has put back")
        with node_machine.daemon() as daemon:
            tap.equal(daemon.ask("GET", "/v1/leases")[2], {"leases": []})
            # What was lost is told, once, and the same process leases again at once.
            tap.contains(daemon.said("it was lost"), f"lease {lost} of 'a test', process {os.getpid()} of user {os.geteuid()} has ended")
            answering(daemon)
            tap.equal(ended in "".join(daemon.talk), False)
            tap.equal(node_machine.lease(daemon, 240)["pid"], os.getpid())
            tap.equal(daemon.stop(), 0)
        ends = [(row["lease"], row["pid"]) for row in node_machine.audit() if row["what"] == "end" and "it was lost" in row.get("why", "")]
        tap.equal(ends, [(lost, os.getpid())])
        with node_machine.daemon() as daemon:
            tap.equal(daemon.stop(), 0)
            tap.equal("it was lost" in "".join(daemon.talk), False, "".join(daemon.talk))
    node_machine.clean()


# -- Where there is no room --


@contextlib.contextmanager
def tiny_disk():
    """Mounts one of 64 KiB in a namespace of this thread, below the home of the test; what fills it, and what frees it."""
    if os.geteuid() != 0:
        raise tap.Skip("only root can mount")
    libc, place, spaces = ctypes.CDLL(None, use_errno=True), power_machine.HOME / "disk", 0x20000
    place.mkdir(exist_ok=True)
    with open("/proc/thread-self/ns/mnt", "rb") as before:
        if libc.unshare(spaces) != 0 or libc.mount(b"none", b"/", None, (1 << 14) | (1 << 18), None) != 0 or \
                libc.mount(b"none", os.fsencode(place), b"tmpfs", 0, b"size=64k") != 0:
            raise tap.Skip(f"no disk of its own: {os.strerror(ctypes.get_errno())}")

        def fill(_daemon):
            with contextlib.suppress(OSError), open(place / "filler", "wb", buffering=0) as file:
                while file.write(b"x" * 512):
                    pass

        try:
            yield place / "audit.jsonl", fill, lambda _daemon: (place / "filler").unlink()
        finally:
            libc.umount2(os.fsencode(place), 2)
            libc.setns(before.fileno(), spaces)


@contextlib.contextmanager
def limited_file():
    """A daemon whose files may not grow."""
    def limit(daemon, most):
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (most, resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE)[1]))

    yield (node_machine.AUDIT, lambda daemon: limit(daemon, node_machine.AUDIT.stat().st_size + 60),
           lambda daemon: limit(daemon, resource.RLIM_INFINITY))


def whole(path):
    """Its lines, each of which is one."""
    text = path.read_text()
    tap.equal(text[-1:], "\n")
    return [json.loads(line) for line in text.splitlines()]


def lost(daemon):
    return next(int(line.split()[1]) for line in daemon.ask("GET", "/metrics")[2].decode().splitlines() if line.startswith("flyball_audit_lines_lost_total"))


def turn_often(daemon):
    for watt in range(15):
        made = node_machine.lease(daemon, 200 + watt)["id"]
        tap.equal(daemon.ask("DELETE", f"/v1/leases/{made}")[0], 200)


def test_no_room():
    """The log has whole lines alone, and says how many are missing; so do /readyz and the daemon, once."""
    for disk in (limited_file, tiny_disk):
        with disk() as (path, fill, free), power_machine.machine(), \
                node_machine.daemon(settings={"lease": {**node_machine.USUAL["lease"], "audit": path}}) as daemon:
            answering(daemon)
            turn_often(daemon)
            tap.equal((lost(daemon), daemon.ask("GET", "/readyz")[2]["audit"]), (0, "ok"))
            fill(daemon)
            turn_often(daemon)
            tap.contains(daemon.said("audit: lines of the audit log"), "what is leased meanwhile is not on record")
            status, _, body = daemon.ask("GET", "/readyz")
            tap.equal((status, body["audit"]), (503, "lines of the audit log cannot be written"), str(body))
            whole(path)
            free(daemon)
            daemon.said("audit: it is written again")
            serve_machine.until(lambda: daemon.ask("GET", "/readyz")[0] == 200, "it is ready again")
            turn_often(daemon)
            tap.equal(sum(row["count"] for row in whole(path) if row["what"] == "missing"), lost(daemon))
            tap.equal((len([line for line in daemon.talk if "audit" in line]), lost(daemon) > 0), (2, True), "".join(daemon.talk))
            tap.equal(daemon.stop(), 0, "".join(daemon.talk))
        node_machine.clean()


def test_audit_is_required():
    """Nothing is leased that is not on record; what is leased goes back all the same."""
    for disk in (limited_file, tiny_disk):
        with disk() as (path, fill, free), power_machine.machine(), \
                node_machine.daemon(settings={"lease": {**node_machine.USUAL["lease"], "audit": path, "audit_required": "yes"}}) as daemon:
            answering(daemon)
            made = node_machine.lease(daemon, 250, program="a test", expires_s=3600)["id"]
            rows = whole(path)
            tap.equal([(row["what"], row["outcome"], row.get("quantity"), row.get("to")) for row in rows if row["what"] == "grant"],
                      [("grant", "asked", "power_limit_mw", 250000), ("grant", "done", None, None)])
            tap.equal(rows[0]["outcome"], "asked", "before anything else")
            fill(daemon)
            for method, target, body in (("POST", "/v1/leases", {"gpus": ["1"], "power_limit_w": 200}),
                                         ("PATCH", f"/v1/leases/{made}", {"power_limit_w": 200}),
                                         ("POST", f"/v1/leases/{made}/renew", {"expires_s": 7200}),
                                         ("POST", "/gpu/set_power_limit?gpu_ids=1&power_limit_mw=200000&block=true", None)):
                for _ in range(20):  # until the last of the room is taken
                    status, _, answer = daemon.ask(method, target, body)
                    if status == 503 or (status >= 500 and target.startswith("/gpu/")):
                        break
                tap.contains(json.dumps(answer), "cannot be audited", target)
            before = power_machine.limits()
            tap.equal(daemon.ask("POST", "/v1/leases", {"gpus": ["1"], "power_limit_w": 222})[0], 503)
            tap.equal(power_machine.limits(), before)
            daemon.said("nothing is leased until they can")
            for lease in daemon.ask("GET", "/v1/leases")[2]["leases"]:
                tap.equal(daemon.ask("DELETE", f"/v1/leases/{lease['id']}")[0], 200)
            tap.equal(power_machine.limits(), [DEFAULT_W, DEFAULT_W])
            free(daemon)
            daemon.said("audit: it is written again")
            node_machine.lease(daemon, 230)
            whole(path)
            tap.equal(daemon.stop(), 0, "".join(daemon.talk))
        node_machine.clean()
    node_machine.write_config({"lease": {**node_machine.USUAL["lease"], "audit": "none", "audit_required": "yes"}})
    result = node_machine.run(f"--config={node_machine.CONFIG}")
    tap.equal((result.returncode != 0, "takes an audit log" in result.stderr), (True, True), result.stderr)


tap.main(globals())
