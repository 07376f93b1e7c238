#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Leases of flyballd, and deaths at random moments: every knob goes back, and none ever stands where it must not.

    soak_leases.py [--rounds N] [--seed S] [--round N] [--workers N] [--keep DIRECTORY]

A round is a machine of its own: emulated GPUs, a daemon that is started again as systemd does, programs that lease limits and
clocks (bound to process, connection or time; some fork workers that inherit the connection; some know no leases; as root also
another user's), and another program that turns knobs. Clients, daemon, guards or all are killed, stopped and continued, the driver
is reset, the configuration is read again, and the GPUs are released, at random moments. tests/lib/knob_watcher.c sees each knob a
thousand times a second. A round fails when

    a limit is outside the operator's floor and ceiling, and nobody else set it
    a knob that another program turned while nobody asked for the GPU changes again, or does not stand at the end
    a knob is not back a second after the last restart of the daemon, the last client's end and the last strike

Time in which processes wait for a processor does not count, at most ten seconds. Everything in a round follows from its seed and number, but
for what processes do at the same time; a failing one is run again with --seed and --round.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import http.client
import itertools
import os
import pathlib
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import soak_leases_client
from soak_leases_machine import BASE_W, BOARD_W, CEILING_W, FLOOR_W, FREE, NARROW_W, NOBODY, PATIENCE_S, PROMISED_S, Machine, send, stalled_s

STILL_S = 0.15
# No more than that is forgiven because of waiting for a processor.
FORGIVEN_S = 10


class Round:
    def __init__(self, seed, number, directory, zygote):
        self.number, self.draw, self.zygote = number, random.Random(f"{seed}/{number}"), zygote
        self.clients, self.log, self.count = {}, [], itertools.count()
        self.strict = {}  # since when nothing but another program's value may stand, by GPU and knob (0: limit, 1: clocks)
        self.ended_s = self.stalled_s = 0.0  # when all had gone that is to go
        self.turned = False  # whether something was to be put back at the end
        self.machine = Machine(directory, self.draw)

    def start_client(self):
        draw, number = self.draw, next(self.count)
        free = [gpu for gpu in range(self.machine.gpus) if not {(gpu, 0), (gpu, 1)} & set(self.strict)]
        if not free:
            return
        gpus = draw.sample(free, min(len(free), draw.choice((1, 1, 1, 2))))
        spec = {"seed": draw.getrandbits(32), "kind": draw.choice(soak_leases_client.KINDS), "gpus": list(map(str, gpus)), "forks": draw.random() < 0.3,
                "haste": draw.choice((0.0, 0.5, 1.0)), "user": draw.choice((0, NOBODY)) if os.geteuid() == 0 else 0,
                "socket": str(self.machine.socket), "said": str(self.machine.said / str(number))}
        pid = self.zygote.start(spec)
        self.clients[pid] = spec
        self.note(f"client {pid}: {spec['kind']} on {gpus}, user {spec['user']}{', forks' if spec['forks'] else ''}")

    def note(self, text):
        self.log.append(f"{time.monotonic():.6f} {text}")

    def pause(self, most_s):
        time.sleep(self.draw.uniform(0, most_s))

    # -- strikes --

    def kill_client(self):
        pid = self.draw.choice(sorted(self.clients))
        send([pid], self.draw.choice((signal.SIGKILL, signal.SIGTERM)))
        self.start_client()

    def kill_daemon(self):
        self.machine.daemon.process.send_signal(signal.SIGKILL)
        self.come_back()

    def end_daemon(self):
        self.machine.daemon.process.send_signal(signal.SIGTERM)
        self.come_back()

    def come_back(self):
        self.machine.daemon.process.wait(PATIENCE_S)
        self.pause(0.2)
        self.machine.start_again(self.draw.random() < 0.7)

    def kill_guards(self):
        send(self.machine.guards(), signal.SIGKILL)

    def kill_all(self):
        """Stopped first, so that nobody sees another's end."""
        pids = [*self.machine.guards(), self.machine.daemon.process.pid, *(self.clients if self.draw.random() < 0.5 else ())]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            send(pids, number)
        self.come_back()

    def stop(self, pids):
        send(pids, signal.SIGSTOP)
        self.pause(0.4)
        send(pids, signal.SIGCONT)

    def stop_client(self):
        self.stop([self.draw.choice(sorted(self.clients))])

    def stop_daemon(self):
        self.stop([self.machine.daemon.process.pid])

    def stop_guards(self):
        self.stop(self.machine.guards())

    def stop_guards_and_kill_daemon(self):
        guards = self.machine.guards()
        send(guards, signal.SIGSTOP)
        self.pause(0.05)
        self.machine.daemon.process.send_signal(signal.SIGKILL)
        self.machine.daemon.process.wait(PATIENCE_S)
        self.pause(0.2)
        send(guards, signal.SIGCONT)
        self.machine.start_again(self.draw.random() < 0.7)

    def reload(self):
        self.machine.rule = self.draw.choice(("refuse", "lower"))
        self.machine.write_config(self.draw.choice((CEILING_W, NARROW_W)))
        self.machine.daemon.process.send_signal(signal.SIGHUP)

    def release(self):
        """Root alone may; when it returns, everything is back."""
        if os.geteuid() != 0:
            return
        result = self.machine.run_daemon("release")
        if result.returncode != 0:
            raise AssertionError(f"release: {result.returncode}, {result.stderr}")
        self.machine.watcher.tell("mark released")
        if self.machine.watcher.standing() != self.machine.expected():
            raise AssertionError(f"after a release {self.machine.watcher.standing()}, not {self.machine.expected()}")
        self.pause(0.1)
        self.machine.run_daemon("resume")

    def hush(self, gpu):
        """Has all clients of the GPU ask for nothing more, and waits until their last requests are answered."""
        pids = [pid for pid, spec in self.clients.items() if str(gpu) in spec["gpus"]]
        send(pids, signal.SIGUSR1)
        end = time.monotonic() + PATIENCE_S
        for pid in pids:
            while not os.path.exists(self.clients[pid]["said"] + ".quiet") and os.path.exists(f"/proc/{pid}"):
                if time.monotonic() > end:
                    raise AssertionError(f"client {pid} does not become quiet")
                time.sleep(0.005)

    def settle(self, gpu):
        """
        Waits until nobody turns the GPU or puts it back. Drivers cannot set a value on the condition that another one stands: what is
        set while a call is under way that looked before is lost.
        """
        machine, end = self.machine, time.monotonic() + 2
        while time.monotonic() < end:
            with contextlib.suppress(OSError, http.client.HTTPException):
                leases = soak_leases_client.Unix(str(machine.socket)).ask("GET", f"/v1/gpus/{gpu}")[1]["leases"]
                is_back = machine.watcher.standing()[gpu] == machine.expected()[gpu]
                if (leases > 0) != is_back and time.monotonic() - machine.watcher.history[gpu][-1][0] > 0.1:
                    return
            time.sleep(0.01)

    def another_turns(self):
        """
        Another program sets a limit or a clock, which wins and stays; no client asks for that GPU any more. No driver tells where a
        clock is locked, so a lease that has locked it lifts the other's lock, too, also if a reset has lifted its own.
        """
        machine, gpu = self.machine, self.draw.randrange(self.machine.gpus)
        self.hush(gpu)
        self.settle(gpu)
        clocked = any(clocks != FREE for _, _, clocks in machine.watcher.history[gpu])
        if self.draw.random() < 0.75 or clocked:
            limit_w = self.draw.choice((122.5, 222.5, 322.5, 377.5))
            machine.allowed_w[gpu].add(limit_w)
            at = machine.watcher.tell(f"limit {gpu} {limit_w}")
            machine.others[gpu][0] = limit_w
            self.strict[gpu, 0] = at
        else:
            at = machine.watcher.tell(f"clocks {gpu} 1005")
            machine.others[gpu][1] = machine.watcher.standing()[gpu][1][0]
            self.strict[gpu, 1] = at
        self.note(f"another program turned GPU {gpu} at {at:.6f}: {machine.others[gpu]}")

    def reset_driver(self):
        """The GPU is away for a moment, and comes back as the board is."""
        machine, gpu, faults = self.machine, self.draw.randrange(self.machine.gpus), self.machine.directory / "faults"
        self.hush(gpu)
        faults.write_text(f"gpu {gpu} return GPU_IS_LOST\n")
        machine.watcher.tell(f"faults {faults}")
        time.sleep(0.05 + self.draw.uniform(0, 0.3))
        for command in (f"limit {gpu} {BOARD_W}", f"clocks {gpu} 0", f"memory {gpu} 0 0"):
            at = machine.watcher.tell(command)
        machine.others[gpu] = [BOARD_W, None]
        self.strict.pop((gpu, 0), None)
        self.strict.pop((gpu, 1), None)
        self.strict[gpu, 0] = at
        machine.watcher.tell("faults none")
        self.note(f"the driver of GPU {gpu} was reset at {at:.6f}")

    STRIKES = {kill_client: 4, kill_daemon: 5, end_daemon: 2, kill_guards: 3, kill_all: 4, stop_client: 2, stop_daemon: 2, stop_guards: 2,
               stop_guards_and_kill_daemon: 2, reload: 2, release: 1, another_turns: 5, reset_driver: 2}

    # -- the course --

    def run(self):
        self.machine.daemon.ready()
        for _ in range(self.draw.randint(1, 4)):
            self.start_client()
        for strike in self.draw.choices(list(self.STRIKES), list(self.STRIKES.values()), k=self.draw.choice((1, 1, 2, 3))):
            self.wait_for_a_turn()
            self.pause(0.2)
            self.note(strike.__name__.replace("_", " "))
            yield strike.__name__
            strike(self)
        self.wait_for_a_turn()
        self.pause(0.2)
        taken_s = self.end_all()
        self.check_all()
        yield taken_s

    def wait_for_a_turn(self):
        """Mostly something is turned when death comes; clients may have none to turn, or be too late."""
        end = time.monotonic() + self.draw.choice((0.0, 1.0, 1.0, 1.0))
        while time.monotonic() < end and self.machine.watcher.standing() == self.machine.expected():
            time.sleep(0.005)

    def end_all(self):
        """Ends the clients, not their workers; returns how long it takes until everything is back."""
        begin = time.monotonic()
        self.turned = self.machine.watcher.standing() != self.machine.expected()
        send(self.clients, signal.SIGKILL)
        if self.draw.random() < 0.3:
            self.note("the daemon is killed with the clients")
            self.machine.daemon.process.send_signal(signal.SIGKILL)
            begin = self.machine.start_again(self.draw.random() < 0.7)
        self.note(f"the end begins at {begin:.6f}")
        self.ended_s, self.stalled_s = begin, stalled_s()
        self.wait_for_the_end(begin)
        return max(0.0, self.machine.watcher.last_s() - begin)

    def forgiven_s(self):
        """Since the end began."""
        return min(FORGIVEN_S, max(self.machine.watcher.lost_s(self.ended_s), stalled_s() - self.stalled_s))

    def wait_for_the_end(self, begin):
        """
        Until all is back and stays so. A request of a client that was killed may still be under way, and turn for a moment on a busy
        machine, so in some rounds nothing counts but what stands after the time that is promised.
        """
        machine, expected, since = self.machine, self.machine.expected(), None
        end = begin + (PROMISED_S if self.draw.random() < 0.3 else 0)
        while since is None or time.monotonic() < max(since + STILL_S, end):
            lease_list = soak_leases_client.Unix(str(machine.socket)).ask("GET", "/v1/leases")[1]["leases"]
            now, standing, entries = time.monotonic(), machine.watcher.standing(), machine.entries()
            back = standing == expected and not lease_list
            if not back or entries:
                since = None
            elif since is None:
                since = now
            # What is left of the journal is of no account, if it goes by and by.
            late_s = now - begin - self.forgiven_s()
            if late_s > (PATIENCE_S if back else PROMISED_S):
                raise AssertionError(f"after {now - begin:.2f} s {standing}, not {expected}; leases {lease_list}, journal {entries}")
            time.sleep(0.005)

    def check_all(self):
        machine = self.machine
        machine.watcher.tell("mark end")
        while machine.watcher.standing() != machine.expected() and time.monotonic() - self.forgiven_s() < self.ended_s + PROMISED_S:
            time.sleep(0.005)
        if machine.watcher.standing() != machine.expected():
            raise AssertionError(f"at the end {machine.watcher.standing()}, not {machine.expected()}")
        for gpu, history in machine.watcher.history.items():
            for at, limit_w, clocks in history:
                if not FLOOR_W <= limit_w <= CEILING_W and limit_w not in machine.allowed_w[gpu]:
                    raise AssertionError(f"GPU {gpu} had the limit {limit_w} W at {at}")
                for what, value in ((0, limit_w), (1, clocks[0])):
                    since = self.strict.get((gpu, what))
                    if since is not None and at > since and value != machine.others[gpu][what]:
                        raise AssertionError(f"GPU {gpu} had {value} at {at}, after another program had set {machine.others[gpu][what]} at {since}")
        if self.draw.random() < 0.5:
            machine.daemon.process.send_signal(signal.SIGTERM)
            if machine.daemon.process.wait(PATIENCE_S) != 0:
                raise AssertionError("the daemon does not end well")

    def end(self):
        for pid in self.clients:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        self.machine.end()

    def tell(self):
        """What happened, for a round that failed."""
        talk = [f"{line.rstrip()}\n" for line in self.machine.talk]
        lines = [line + "\n" for line in self.log] + [line[3:] if line.startswith("at ") else line for line in self.machine.watcher.lines]
        return "".join(["".join(lines[-400:]), *talk[-120:]])


def one_round(seed, number, zygote, directory, counts, keep):
    home = pathlib.Path(tempfile.mkdtemp(prefix=f"r{number}-", dir=directory))
    it = Round(seed, number, home, zygote)
    taken_s, fine = 0.0, False
    try:
        for said in it.run():
            if isinstance(said, str):
                counts[said] += 1
            else:
                taken_s = said
        fine = True
        counts["(turned at the end)"] += it.turned
    except (AssertionError, OSError, http.client.HTTPException, subprocess.SubprocessError, ValueError) as error:
        if keep:
            pathlib.Path(keep).mkdir(exist_ok=True)
            pathlib.Path(keep, f"round-{seed}-{number}").write_text(f"{error!r}\n{it.tell()}", encoding="utf-8")
        raise AssertionError(f"--seed {seed} --round {number} (gpus {it.machine.gpus}, rule {it.machine.rule}): {error!r}; " + "; ".join(it.log)) from error
    finally:
        it.end()
        if fine or not keep:
            shutil.rmtree(home, ignore_errors=True)
    return taken_s if it.turned else None


def campaign(rounds, seed, directory, first=0, workers=4, keep=None):
    """Raises AssertionError for the first rounds that fail; else returns a line about all."""
    counts, zygotes, begin = collections.Counter(), queue.SimpleQueue(), time.monotonic()
    made = [soak_leases_client.Zygote() for _ in range(workers)]
    for zygote in made:
        zygotes.put(zygote)

    def run(number):
        zygote = zygotes.get()
        try:
            return one_round(seed, number, zygote, directory, counts, keep)
        finally:
            zygotes.put(zygote)

    failures, taken = [], []
    try:
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            for future in concurrent.futures.as_completed([pool.submit(run, first + i) for i in range(rounds)]):
                try:
                    taken += [took_s for took_s in [future.result()] if took_s is not None]
                except AssertionError as error:
                    failures.append(str(error))
    finally:
        for zygote in made:
            zygote.end()
    if failures:
        raise AssertionError(f"{len(failures)} of {rounds} rounds failed\n    " + "\n    ".join(failures[:5]))
    taken = sorted(taken) or [0.0]
    turned = counts.pop("(turned at the end)")
    if rounds >= 20 and turned < rounds // 4:
        raise AssertionError(f"only {turned} of {rounds} rounds had something to put back; does another program keep the daemon from turning, as MPS does?")
    strikes = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.most_common())
    return (f"{rounds} rounds in {time.monotonic() - begin:.0f} s, {turned} ended with knobs turned, back after {taken[len(taken) // 2] * 1e3:.0f} ms in the middle round and "
            f"{taken[-1] * 1e3:.0f} ms in the slowest ({strikes})")


def go_alone():
    """As root in a pid namespace, where no other process of the machine (MPS, say) keeps the daemon from turning, and none is left."""
    apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.getpid() == 1 or os.geteuid() != 0 or shutil.which("unshare") is None or subprocess.run([*apart, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        return
    os.execvp(apart[0], [*apart, sys.executable, *sys.argv])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--round", type=int, help="that one alone")
    parser.add_argument("--workers", type=int, default=4, help="machines at once")
    parser.add_argument("--keep", help="a directory for what failed")
    settings = parser.parse_args()
    go_alone()
    rounds, first = (settings.rounds, 0) if settings.round is None else (1, settings.round)
    with tempfile.TemporaryDirectory(prefix="flyball-leases-") as directory:
        pathlib.Path(directory).chmod(0o711)
        print(campaign(rounds, settings.seed, directory, first, settings.workers, settings.keep))


if __name__ == "__main__":
    main()
