#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""soak_kills.py [--rounds N] [--seed N] [--world N] [--kinds KIND,...]: what is left after kill -9.

Several programs train recurring jobs at once (kills_trainer.py); meanwhile one of them, a
service or the database is killed at a random moment, up to three times a round, and started
again. Then what they were told is held against the log (kills_log.py), and the next
decision, and one of those before, against what a fresh store decides from the same log.

    sqlite      a file                          postgres    a server
    service     one service before a file       services    two services before a server
    crowd       a dozen programs at one service before a file, whose calls share commits
    crowd-on-server                             the same before a server

A world is a job in a set-up of one kind, for ROUNDS_OF_A_WORLD rounds. Its choices, not
the moments at which the machine comes to them, follow from the seed and its number.
"""
import argparse
import collections
import contextlib
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / os.environ.get("BUILD_DIR", "build")
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests/lib")]

import kills_log
import kills_trainer
import pg_machine

FLYBALL, BY_HAND, SESSION = BUILD / "flyball", BUILD / "tests" / "job_by_hand", BUILD / "tests" / "kills_session"
EMULATOR = BUILD / "emulator" / "flyball-emulator"
# A crowd asks one service at once, so that its calls share commits, and is killed in the middle of them.
CROWD = 12
KINDS = ("sqlite", "postgres", "service", "services", "crowd", "crowd-on-server")
ON_SERVER = ("postgres", "services", "crowd-on-server")
SERVICES = {"service": 1, "services": 2, "crowd": 1, "crowd-on-server": 1}
ROUNDS_OF_A_WORLD = 5
PATIENCE_S = 180
DELIVERIES = 20  # sessions that try; each waits half a second for an answer
WAIT_S = "2"  # for a lock, or a server that starts


def output_of(*words, text=None):
    result = subprocess.run([str(word) for word in words], input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            check=False, timeout=PATIENCE_S)
    if result.returncode != 0:
        raise AssertionError(f"{words} exits with {result.returncode}: {result.stderr[-1000:]}")
    return result.stdout


# ---- who may be killed ----

class Database:
    """The PostgreSQL server of the whole campaign, started when it is first needed."""

    def __init__(self, stack):
        self.stack = stack
        self.server = None

    def address(self):
        if self.server is None:
            self.server = self.stack.enter_context(pg_machine.server())
            self.stored = self.server.address()
        return self.stored

    def kill(self):
        self.server.kill()

    def start(self):
        self.server.start()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Service:
    def __init__(self, directory, number, store, luck):
        self.store, self.log = store, directory / f"service-{number}.log"
        self.listen = f"unix:{directory}/service-{number}" if luck.random() < 0.5 else f"127.0.0.1:{free_port()}"
        self.address = self.listen if self.listen.startswith("unix:") else f"http://{self.listen}"
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([FLYBALL, "serve", "--listen", self.listen, "--store", self.store], stdout=log,
                                            stderr=log)

    def wait(self):
        """Until it answers over its store: the last strike may have come when all programs had ended."""
        end = time.monotonic() + PATIENCE_S
        while subprocess.run([FLYBALL, "job", "list", "--store", self.address], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, check=False).returncode != 0:
            if time.monotonic() > end or self.process.poll() is not None:
                raise AssertionError(f"the service does not come back: {self.log.read_text()[-1000:]}")
            time.sleep(0.05)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Orderly; it has to be able to."""
        self.process.terminate()
        status = self.process.wait(PATIENCE_S)
        if status != 0:
            raise AssertionError(f"a service that was told to end has exit status {status}: {self.log.read_text()[-1000:]}")


class Program:
    """A training, in a process group with the client that it has, if any; `path` is its list."""

    def __init__(self, path, words, luck, environment=None):
        self.path, self.words, self.luck, self.environment = path, words, luck, environment
        self.given_up = False
        self.start()

    def start(self):
        with open(self.path.with_suffix(".err"), "ab") as errors:
            self.process = subprocess.Popen(self.words, stdout=errors, stderr=errors, start_new_session=True,
                                            env=self.environment)

    def kill(self):
        if self.process.poll() is not None:
            return
        # Its client may live on for a moment, and race with the next start.
        with contextlib.suppress(ProcessLookupError):
            if self.luck.random() < 0.5:
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()
        self.process.wait()
        self.given_up = self.luck.random() < 0.1

    def restart(self):
        if self.process.poll() is not None and self.process.returncode == -signal.SIGKILL and not self.given_up:
            self.start()

    def finish(self, until):
        try:
            status = self.process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            raise AssertionError(f"{self.path.name} does not end") from None
        if status != 0 and not self.given_up:
            raise AssertionError(f"{self.path.name} ends with {status}: {self.path.with_suffix('.err').read_text()[-1500:]}")


@contextlib.contextmanager
def gpus(directory):
    """What sessions need of the environment: an emulated GPU."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("FLYBALL_", "SLURM", "XDG_"))}
    environment.update(FLYBALL_EMULATOR_STATE=f"{directory}/gpus", LD_LIBRARY_PATH=str(EMULATOR.parent))
    subprocess.run([EMULATOR, "start", "--gpus", "1", "--model", "a100", "--sensor", "exact", "--counter-period-ms", "0",
                    "--shared=yes"], env=environment, stdout=subprocess.DEVNULL, check=True)
    try:
        yield environment
    finally:
        subprocess.run([EMULATOR, "stop"], env=environment, stdout=subprocess.DEVNULL, check=True)


# ---- a world ----

class World:
    """A job, where it is kept, and all that was asked about it."""

    def __init__(self, seed, number, kind, directory, database, environment):
        self.luck = random.Random(f"{seed}/{number}")
        self.number, self.kind, self.directory = number, kind, directory
        self.job = f"job-{number}"
        self.database = database
        self.programs, self.sessions, self.own = [], [], []
        self.losers = set()  # sessions that a kill made lose reports
        self.rounds = 0
        self.crowd = kind.startswith("crowd")
        self.store = database.address() if kind in ON_SERVER else str(directory / "store.sqlite")
        self.services = [Service(directory, i, self.store, self.luck) for i in range(SERVICES.get(kind, 0))]
        self.seed = self.luck.randrange(1 << 31)
        self.definition = {"seed": self.luck.randrange(1000), "beta": self.luck.choice((1.5, 2.0, 4.0)), "max_epochs": 14,
                           "control_every": self.luck.choice((0, 0, 4))}
        self.environment = {**environment, "XDG_STATE_HOME": str(directory / "state"),
                            "FLYBALL_STORE": self.services[0].address if self.services else self.store}

    def way(self):
        """How a program asks: in C at the store or a service, or by HTTP."""
        if not self.services or (not self.crowd and self.luck.random() < 0.3):
            addresses = [service.address for service in self.services] or [self.store]
            return {"client": [str(BY_HAND), self.luck.choice(addresses), WAIT_S]}
        addresses = [service.address for service in self.services]
        self.luck.shuffle(addresses)
        return {"services": addresses}

    def begin_program(self):
        path = self.directory / f"p{self.number}-{len(self.programs)}"
        settings = {"list": str(path), "name": path.name, "seed": self.seed, "job": self.job, "definition": self.definition,
                    "recurrences": self.luck.randint(1, 3), "tries": self.luck.choice((1, 2, 4)), **self.way()}
        path.with_suffix(".json").write_text(json.dumps(settings))
        words = [sys.executable, ROOT / "scripts" / "kills_trainer.py", path.with_suffix(".json")]
        self.programs.append(Program(path, words, self.luck))
        return self.programs[-1]

    def session_words(self, path, number):
        definition = [self.definition[name] for name in ("seed", "beta", "max_epochs", "control_every")]
        return [SESSION, path, self.job, *map(str, [number, *definition])]

    def begin_session(self):
        number = 100 * self.number + len(self.sessions)
        path = self.directory / f"session-{number}"
        self.sessions.append(Program(path, self.session_words(path, number), self.luck, self.environment))
        return self.sessions[-1]

    def deliver(self, counts):
        """
        What sessions kept while the log was away: the next session hands it over. On a busy machine the log may keep
        it waiting for longer than it waits; then the one after it does.
        """
        counts["kept"] += len(list(self.directory.glob("state/flyball/spool/*.calls")))
        for _ in range(DELIVERIES):
            result = subprocess.run([*self.session_words(self.directory / "deliver", f"deliver-{self.rounds}"), "deliver"],
                                    env=self.environment, stderr=subprocess.PIPE, text=True, check=False, timeout=PATIENCE_S)
            left = sorted(path.name for path in self.directory.glob("state/flyball/spool/*"))
            if result.returncode != 0 or not left:
                break
        if result.returncode != 0 or left:
            raise AssertionError(f"the session that delivers ends with {result.returncode} {result.stderr}, {left} is left")

    def round(self, counts):
        self.rounds += 1
        begun = [self.begin_program() for _ in range(CROWD if self.crowd else self.luck.randint(1, 3))]
        begun += [self.begin_session() for _ in range(self.luck.choice((0, 0, 1, 2)))]
        start = time.monotonic()
        # A crowd takes its time to come together.
        strikes, latest_s = (self.luck.randint(3, 5), 2.5) if self.crowd else (self.luck.randint(1, 3), 0.6)
        for moment in sorted(self.luck.uniform(0.0, latest_s) for _ in range(strikes)):
            time.sleep(max(0.0, start + moment - time.monotonic()))
            self.strike(begun, counts)
        for program in begun:
            program.finish(start + PATIENCE_S)
        for service in self.services:
            service.wait()
        counts["given up"] += sum(program.given_up for program in begun)
        if self.sessions:
            self.deliver(counts)
        self.check(counts)

    def strike(self, begun, counts):
        weight = CROWD if self.crowd else 2
        victims = [("program", program) for program in begun] + [("service", service) for service in self.services] * weight
        if self.kind in ON_SERVER:
            victims += [("database", self.database)] * weight
        what, victim = self.luck.choice(victims)
        away_s = self.luck.choice((0.0, self.luck.uniform(0, 0.3)))
        victim.kill()
        counts[what] += 1
        time.sleep(away_s)
        if what == "program":
            victim.restart()
        else:
            victim.start()

    # ---- what is left ----

    def export(self):
        return output_of(FLYBALL, "job", "export", self.job, "--store", self.store)

    def check(self, counts):
        clients = [kills_trainer.pairs(program.path) for program in self.programs] + [self.own]
        if not self.sessions and not any(answer is not None for client in clients for _call, answer in client):
            return  # all were killed for good before they were told of the job
        text = self.export()
        events = kills_log.parse(text)
        counts["events"] += len(events)
        given_up = {event["body"]["submission"] for event in events if event["kind"] == "proposed"
                    and event["body"]["submission"].rsplit("-", 1)[0] in
                    {program.path.name for program in self.programs if program.given_up} | {"next"}}
        sessions = [kills_trainer.pairs(session.path) for session in self.sessions]
        faults = kills_log.faults(events, clients, sessions, given_up) + self.check_lost(events, sessions, counts)
        if not faults and self.services:
            faults = self.check_events(text)
        if not faults:
            faults = self.check_decision(text, events, counts)
        if faults:
            raise AssertionError("\n    ".join(fault[:1500] for fault in faults[:5]))

    def check_lost(self, events, sessions, counts):
        """
        A disk that does not take a line in time keeps reports in a session's memory, and a kill then loses them.
        That is rare; where many sessions lose some, the spool is written too late.
        """
        for number, session in enumerate(sessions):
            if number not in self.losers and kills_log.lost(events, session):
                self.losers.add(number)
                counts["losers"] += 1
        if counts["losers"] > 2 + counts["kept"] // 4:
            return [f"{counts['losers']} sessions lost reports that were in their memory alone, {counts['kept']} kept theirs"]
        return []

    def check_events(self, text):
        """The log as a service tells it."""
        way, pages, after = kills_trainer.Services([self.luck.choice(self.services).address]), "", 0
        while True:
            status, page = way.exchange("GET", f"/v1/jobs/{self.job}/events?after={after}", None)
            if status != 200:
                return [f"GET events answers {status}: {page}"]
            if not page:
                break
            pages += page
            after = kills_log.parse(page)[-1]["number"]
        way.close()
        return [] if kills_log.parse(pages) == kills_log.parse(text) else ["GET events and the export differ"]

    def check_decision(self, text, events, counts):
        """The next one, in the store and in a copy of it; and one of the past, from what stood before it."""
        question = {"call": "propose", "job": self.job, "request": f"next-{self.rounds}", "run": f"next-{self.rounds}",
                    "submission": f"next-{self.rounds}", "tries": self.luck.choice((1, 4)), "gpu_model": "Test GPU",
                    "limits_w": list(kills_trainer.LIMITS_W)}
        way = self.way()
        asked = kills_trainer.Client(way["client"]) if "client" in way else kills_trainer.Services(way["services"])
        reply = asked.ask(question)
        if "answer" not in reply:
            return [f"the next decision is refused: {reply}"]
        self.own.append([question, reply["answer"]])
        end = {"call": "end", "job": self.job, "trial": reply["answer"]["trial"], "attempt": 1, "outcome": "crashed",
               "energy_j": 1.0, "time_s": 1.0, "text": ""}
        self.own.append([end, asked.ask(end)["answer"]])
        asked.close()
        counts["decisions"] += 1
        return kills_log.same_decision(reply["answer"], self.implied(text, question)) or self.check_past(text, events, counts)

    def check_past(self, text, events, counts):
        lines = text.splitlines(keepends=True)
        asked = {pair[0]["request"]: pair for program in self.programs for pair in kills_trainer.pairs(program.path)
                 if pair[0]["call"] == "propose" and pair[1] is not None and pair[1]["attempt"] == 1}
        places = [place for place, event in enumerate(events) if event["kind"] == "attempt"
                  and event["key"].removeprefix("request/") in asked and events[place - 1]["kind"] == "proposed"
                  and events[place - 2]["kind"] != "proposed"]
        if not places:
            return []
        place = self.luck.choice(places)
        question, answer = asked[events[place]["key"].removeprefix("request/")]
        counts["decisions"] += 1
        return kills_log.same_decision(answer, self.implied("".join(lines[:place - 1]), question))

    def implied(self, text, question):
        """What a fresh store answers that has these events and nothing else."""
        with tempfile.TemporaryDirectory(dir=self.directory) as directory:
            store = f"{directory}/copy.sqlite"
            output_of(FLYBALL, "job", "import", "--quiet", self.job, "-", "--store", store, text=text)
            client = kills_trainer.Client([str(BY_HAND), store, WAIT_S])
            reply = client.ask(question)
            client.close()
        if "answer" not in reply:
            raise AssertionError(f"a copy of the log refuses {question}: {reply}")
        return reply["answer"]

    def end(self, orderly):
        for program in self.programs + self.sessions:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.process.pid, signal.SIGKILL)
        for service in self.services:
            if orderly:
                service.stop()
            elif service.process.poll() is None:
                service.kill()


def campaign(rounds, seed, kinds, directory, first=0):
    """Raises AssertionError with all that is needed to find the fault again; else returns a line about it."""
    counts, done, world_number = collections.Counter(), 0, first
    slowest_s, begin = 0.0, time.monotonic()
    with contextlib.ExitStack() as stack:
        database, environment = Database(stack), stack.enter_context(gpus(directory))
        while done < rounds:
            kind = kinds[world_number % len(kinds)]
            home = pathlib.Path(directory, f"world-{world_number}")
            home.mkdir()
            world = World(seed, world_number, kind, home, database, environment)
            fine = False
            try:
                for _ in range(min(ROUNDS_OF_A_WORLD, rounds - done)):
                    start = time.monotonic()
                    world.round(counts)
                    slowest_s = max(slowest_s, time.monotonic() - start)
                    done += 1
                    counts["rounds of " + kind] += 1
                fine = True
            except AssertionError as error:
                raise AssertionError(f"--seed {seed} --world {world_number}, {kind}, round {world.rounds}: {error}") from None
            finally:
                world.end(fine)
            world_number += 1
    took_s = (time.monotonic() - begin) / rounds
    of_kinds = ", ".join(f"{counts['rounds of ' + kind]} {kind}" for kind in kinds)
    return (f"{rounds} rounds ({of_kinds}): {counts['program']} trainers, {counts['service']} services and {counts['database']} "
            f"databases killed, {counts['given up']} for good; {counts['kept']} sessions' reports delivered later, {counts['losers']} lost some, "
            f"{counts['decisions']} decisions repeated; {took_s:.1f} s a round, {slowest_s:.1f} s the slowest")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--world", type=int, default=0)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--keep", help="a directory that is left")
    settings = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="flyball-kills-", dir="/tmp") as directory:
        print(campaign(settings.rounds, settings.seed, settings.kinds.split(","), settings.keep or directory, settings.world))


if __name__ == "__main__":
    main()
