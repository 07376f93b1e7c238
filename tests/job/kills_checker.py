# SPDX-License-Identifier: Apache-2.0
"""The checker of the kill rounds can fail: a true log passes, and each kind of damage is found.

usage: kills_checker.py FLYBALL SOURCE_ROOT
"""

import atexit
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import tap

FLYBALL = pathlib.Path(sys.argv[1]).resolve()
BUILD = pathlib.Path(os.environ.get("FLYBALL_TEST_BUILD", FLYBALL.parent / "tests"))
SCRIPTS = pathlib.Path(sys.argv[2]).resolve() / "scripts"
sys.path.insert(0, str(SCRIPTS))

import kills_log
import kills_trainer

home = tempfile.TemporaryDirectory(prefix="flyball-kc-", dir="/tmp")
atexit.register(home.cleanup)
HOME = pathlib.Path(home.name)
JOB = "job"
made = {}


def train(name, store, seed, recurrences):
    settings = {"list": str(HOME / name), "name": name, "seed": seed, "job": JOB, "recurrences": recurrences, "tries": 4,
                "definition": {"seed": 1, "beta": 2.0, "max_epochs": 14, "control_every": 0},
                "client": [str(BUILD / "job_by_hand"), store, "20"]}
    (HOME / f"{name}.json").write_text(json.dumps(settings))
    return subprocess.Popen([sys.executable, SCRIPTS / "kills_trainer.py", HOME / f"{name}.json"], stderr=subprocess.PIPE, text=True)


def export(store):
    return subprocess.run([FLYBALL, "job", "export", JOB, "--store", store], stdout=subprocess.PIPE, text=True, check=True).stdout


def truth():
    """A log of two programs, one after the other so that it is the same each time, and their lists."""
    if not made:
        store = str(HOME / "store.sqlite")
        for name in ("one", "two"):
            program = train(name, store, 4, 6)
            _, talk = program.communicate(timeout=tap.PATIENCE_S)
            tap.equal((program.returncode, talk), (0, ""))
        made["text"] = export(store)
        made["clients"] = [kills_trainer.pairs(HOME / name) for name in ("one", "two")]
    return kills_log.parse(made["text"]), copy.deepcopy(made["clients"])


def place_of(events, kind, number=0, **members):
    found = [place for place, event in enumerate(events) if event["kind"] == kind
             and all(event["body"].get(name) == value for name, value in members.items())]
    return found[number]


def without(events, place):
    """As if it had never been there."""
    left = events[:place] + events[place + 1:]
    for number, event in enumerate(left, 1):
        event["number"] = number
    return left


def lost_report(events, clients):
    return without(events, place_of(events, "epoch", 3)), clients


def lost_heartbeat(events, clients):
    return without(events, place_of(events, "heartbeat")), clients


def lost_attempt(events, clients):
    return without(events, place_of(events, "attempt", 2)), clients


def lost_profile(events, clients):
    return without(events, place_of(events, "profiled")), clients


def lost_end(events, clients):
    return without(events, place_of(events, "ended", stop="none")), clients


def lost_tail(events, clients):
    return events[:-3], clients


def doubled_report(events, clients):
    place = place_of(events, "epoch", 3)
    events.insert(place + 1, copy.deepcopy(events[place]))
    events[place + 1]["key"] = ""
    return without([{}] + events, 0), clients


def doubled_key(events, clients):
    events[place_of(events, "attempt", 1)]["key"] = events[place_of(events, "attempt", 0)]["key"]
    return events, clients


def doubled_end(events, clients):
    place = place_of(events, "ended")
    events.insert(place + 1, {**copy.deepcopy(events[place]), "key": ""})
    return without([{}] + events, 0), clients


def altered_metric(events, clients):
    events[place_of(events, "epoch", 2)]["body"]["metric"] = 0.123
    return events, clients


def altered_energy(events, clients):
    events[place_of(events, "epoch", 2)]["body"]["energy_j"] += 0.5
    return events, clients


def altered_total(events, clients):
    events[place_of(events, "epoch", 2)]["body"]["total_energy_j"] += 0.5
    return events, clients


def altered_answer(events, clients):
    events[place_of(events, "epoch", 0, answer="reached")]["body"]["answer"] = "go_on"
    return events, clients


def altered_batch_size(events, clients):
    events[place_of(events, "proposed", 2)]["body"]["batch_size"] = 4096
    return events, clients


def altered_points(events, clients):
    events[place_of(events, "profiled")]["body"]["points"][0][1] += 1
    return events, clients


def altered_outcome(events, clients):
    events[place_of(events, "ended", stop="none")]["body"]["outcome"] = "stopped"
    return events, clients


def gap(events, clients):
    for event in events[20:]:
        event["number"] += 1
    return events, clients


def swapped(events, clients):
    events[10], events[11] = events[11], events[10]
    return events, clients


def half(events, clients):
    del events[place_of(events, "epoch", 1)]["body"]["time_s"]
    return events, clients


def invented_report(events, clients):
    place = place_of(events, "epoch")
    event = copy.deepcopy(events[place])
    event["body"].update(epoch=500, attempt=event["body"]["attempt"])
    event["key"] = f"epoch/{event['trial']}/{event['body']['attempt']}/500"
    events.insert(place + 1, event)
    return without([{}] + events, 0), clients


def shared_trial(events, clients):
    for pair in clients[1]:
        if pair[0]["call"] == "propose":
            pair[1]["trial"] = next(pair[1]["trial"] for pair in clients[0] if pair[0]["call"] == "propose")
            break
    return events, clients


def no_model(events, clients):
    place = max(place for place, event in enumerate(events) if event["kind"] == "ended")
    events[place]["body"]["outcome"] = "stopped"
    return events, clients


DAMAGE = [
    (lost_report, "the report is missing"),
    (lost_heartbeat, "the heartbeat is missing"),
    (lost_attempt, "the attempt is missing"),
    (lost_profile, "the profile is missing"),
    (lost_end, "ends [] is missing"),
    (lost_tail, "is missing"),
    (doubled_report, "stands there 2 times"),
    (doubled_key, "stands there 2 times"),
    (doubled_end, "end that was told of trial"),
    (altered_metric, "metric 0.123"),
    (altered_energy, "add up to"),
    (altered_total, "the answer's energy_j"),
    (altered_answer, "the answer's answer go_on"),
    (altered_batch_size, "batch_size 4096"),
    (altered_points, "points [["),
    (altered_outcome, "'outcome': 'stopped'"),
    (gap, "a gap, or twice"),
    (swapped, "a gap, or twice"),
    (half, "is not whole, it lacks time_s"),
    (invented_report, "nobody asked for"),
    (shared_trial, "was given to"),
    (no_model, "without a model"),
]


def test_a_true_log_has_no_fault():
    events, clients = truth()
    tap.equal(kills_log.faults(events, clients), [])
    kinds = {event["kind"] for event in events}
    tap.equal({"heartbeat", "epoch", "ended", "closed", "profiled"} - kinds, set(), "not enough happened")
    tap.equal(any(event["body"].get("attempt", 1) > 1 for event in events), True, "nothing was requeued")


def test_what_was_not_answered_may_be_missing_but_not_half():
    events, clients = truth()
    for client in clients:
        for pair in client:
            if pair[0]["call"] == "report":
                pair[1] = None
    tap.equal(kills_log.faults(events, clients), [])
    place = place_of(events, "epoch", 3)
    events[place]["body"]["time_s"] += 1
    tap.contains("\n".join(kills_log.faults(events, clients)), "nobody asked for")


def test_each_damage_is_found():
    for damage, words in DAMAGE:
        events, clients = damage(*truth())
        tap.contains("\n".join(kills_log.faults(events, clients)), words, damage.__name__)


def test_reports_of_sessions():
    events, clients = truth()
    metric = events[place_of(events, "epoch", 1)]["body"]["metric"]
    answer = {"word": "go on", "waiting": 0, "process": 1}
    tap.equal(kills_log.faults(events, clients, [[[{"metric": metric}, answer], [{"metric": 0.4321}, None]]]), [])
    tap.contains("\n".join(kills_log.faults(events, clients, [[[{"metric": 0.4321}, answer]]])), "stands there 0 times")


def session_of(*answers):
    """Reports that no log has, and (how many letters waited, of which process) after each."""
    return [[{"metric": 0.4321 + place}, {"word": "go on", "waiting": waiting, "process": process}]
            for place, (waiting, process) in enumerate(answers)]


def test_reports_in_memory_alone_may_be_lost():
    events, clients = truth()
    for answers, lost in [([(1, 1)], 1), ([(1, 1), (2, 1)], 2), ([(3, 1), (1, 1)], 1), ([(1, 1), (2, 1), (0, 1)], 0), ([(1, 1), (0, 2)], 1)]:
        session = session_of(*answers)
        tap.equal(kills_log.lost(events, session), lost, answers)
        tap.equal(len(kills_log.faults(events, clients, [session])), len(answers) - lost, answers)
    twice = [[{"metric": events[place_of(events, "epoch", 1)]["body"]["metric"]}, {"word": "go on", "waiting": 1, "process": 1}]]
    place = place_of(events, "epoch", 2)
    events[place]["body"]["metric"] = twice[0][0]["metric"]
    tap.contains("\n".join(kills_log.faults(events, clients, [twice])), "stands there 2 times")


def test_a_list_may_end_in_the_middle():
    path = HOME / "torn"
    path.write_bytes(b'{"start": 0, "requeued": false}\n{"asked": {"call": "set"}}\n{"answer": {}}\n{"asked": {"call": "end"}}\n{"answ')
    tap.equal(kills_trainer.pairs(path), [[{"call": "set"}, {}], [{"call": "end"}, None]])
    kills_trainer.List(path).add({"asked": 2})
    tap.equal(path.read_bytes().splitlines()[-2:], [b'{"asked": {"call": "end"}}', b'{"asked": 2}'])


def test_a_program_that_is_killed_goes_on():
    store, path = str(HOME / "killed.sqlite"), HOME / "killed"
    for stage in range(1, 6):
        program = train("killed", store, 5, 4)
        end = time.monotonic() + tap.PATIENCE_S
        while program.poll() is None and len(kills_trainer.read_list(path)) < 12 * stage and time.monotonic() < end:
            time.sleep(0.001)
        program.kill()
        program.communicate()
    program = train("killed", store, 5, 4)
    _, talk = program.communicate(timeout=tap.PATIENCE_S)
    tap.equal((program.returncode, talk), (0, ""))
    tap.equal(sum("start" in line for line in kills_trainer.read_list(path)) > 1, True)
    tap.equal(kills_log.faults(kills_log.parse(export(store)), [kills_trainer.pairs(path)]), [])


def decide(text, name):
    """What a fresh store with these events answers."""
    store = str(HOME / f"{name}.sqlite")
    subprocess.run([FLYBALL, "job", "import", "--quiet", JOB, "-", "--store", store], input=text, text=True, check=True)
    client = kills_trainer.Client([str(BUILD / "job_by_hand"), store, "20"])
    answer = client.ask({"call": "propose", "job": JOB, "request": "next", "run": "", "submission": "next", "tries": 4,
                         "gpu_model": "Test GPU", "limits_w": list(kills_trainer.LIMITS_W)})["answer"]
    client.close()
    return answer


def test_a_decision_that_the_log_does_not_imply():
    events, _clients = truth()
    right = decide(made["text"], "right")
    tap.equal(kills_log.same_decision(right, decide(made["text"], "again")), [])
    # A recurrence that the store had forgotten, and ends that it had wrong.
    last = place_of(events, "proposed", -1)
    shorter = "".join(json.dumps(event) + "\n" for event in events[:last])
    tap.contains("\n".join(kills_log.same_decision(right, decide(shorter, "shorter"))), "the log implies trial")
    for event in events:
        if event["kind"] == "ended" and event["body"]["outcome"] == "reached":
            event["body"]["outcome"] = "not_reached"
    wrong = decide("".join(json.dumps(event) + "\n" for event in events), "wrong")
    tap.contains("\n".join(kills_log.same_decision(right, wrong)), "the log implies why")


tap.main(globals())
