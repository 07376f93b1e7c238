# SPDX-License-Identifier: Apache-2.0
"""Holds what clients were told against a job's log; nothing of Flyball's own code is used.

    faults = kills_log.faults(events, clients, sessions)

`events` is the exported log, a list of objects. A client is a list of [call, answer] as
kills_trainer.py writes them: what it asked, in the order of its asking, and what it was
answered, None where no answer came. A session is a list of [report, answer] of
kills_session. Each fault is a sentence; none is the aim. A session that is kept waiting by the
log and by the disk goes on with reports in its memory, and says so: these may be missing, and
lost() counts them.

    acknowledged    what was answered is in the log once, with the same content and answer
    not invented    what is in the log was asked for by somebody, word for word
    whole, in order numbers 1 ... n; trials and attempts 1 ... n; keys and epochs once
    sums            an epoch's totals are those of the attempts before and its own
    a model         the last try of each recurrence reached its target, unless it goes on

Calls without a key of their own, heartbeats and settings, may stand there as often as they
were sent; those with one stand there once.
"""
import collections
import json
import math

# What a body of each kind has to have.
MEMBERS = {
    "defined": ("name", "batch_sizes", "default_batch_size", "policy"),
    "set": (),
    "proposed": ("recurrence", "try", "submission", "run", "batch_size", "reason", "why", "last_try"),
    "attempt": ("attempt",),
    "profiled": ("points", "limit_w", "epochs"),
    "profiled_part": ("points",),
    "brought": ("from", "source", "revision", "batches"),
    "heartbeat": ("attempt", "energy_j", "time_s"),
    "epoch": ("attempt", "epoch", "metric", "energy_j", "time_s", "answer", "stop", "total_energy_j", "total_time_s"),
    "ended": ("outcome", "stop", "attempt", "energy_j", "time_s"),
    "closed": ("attempt", "energy_j", "time_s"),
}
EVENT = ("number", "time_us", "kind", "trial", "key", "body")


def parse(text):
    """The events of an exported log."""
    return [json.loads(line) for line in text.splitlines()]


def near(one, other):
    """Sums may be made in another order."""
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)


class Log:
    """The events, by what they are looked up by."""

    def __init__(self, events):
        self.events = events
        self.by_key = {event["key"]: event for event in events if event["key"]}
        self.proposed, self.ends, self.closed = {}, collections.defaultdict(list), collections.defaultdict(list)
        self.attempts, self.epochs = collections.defaultdict(list), {}
        self.loose = collections.Counter()
        for event in events:
            self.sort_in(event)

    def sort_in(self, event):
        kind, trial, body = event["kind"], event["trial"], event["body"]
        if kind == "proposed":
            self.proposed[trial] = event
        elif kind == "attempt":
            self.attempts[trial].append(body["attempt"])
        elif kind == "epoch":
            self.epochs[trial, body["attempt"], body["epoch"]] = event
        elif kind == "ended":
            self.ends[trial].append(body)
        elif kind == "closed":
            self.closed[trial].append(body)
        elif kind in ("heartbeat", "set"):
            self.loose[loose_key(kind, trial, body)] += 1


def loose_key(kind, trial, body):
    if kind == "set":
        return kind, body.get("objective", {}).get("eta")
    return kind, trial, body["attempt"], body["energy_j"], body["time_s"]


# ---- the log by itself ----

def whole(events):
    for place, event in enumerate(events, 1):
        missing = [name for name in EVENT if name not in event]
        missing += [name for name in MEMBERS.get(event.get("kind"), ("a known kind",)) if name not in event.get("body", {})]
        if missing:
            yield f"event {place} is not whole, it lacks {', '.join(missing)}: {event}"


def in_order(events):
    numbers = [event["number"] for event in events]
    if numbers != list(range(1, len(events) + 1)):
        wrong = next(place for place, number in enumerate(numbers, 1) if place != number)
        yield f"number {numbers[wrong - 1]} stands at place {wrong}: a gap, or twice"
    yield from once("key", (event["key"] for event in events if event["key"]))
    yield from once("epoch", ((event["trial"], event["body"]["attempt"], event["body"]["epoch"])
                              for event in events if event["kind"] == "epoch"))
    yield from once("end that was told of trial", (event["trial"] for event in events if event["kind"] == "ended"
                                                   and event["body"]["outcome"] != "expired"))
    trials = [event["trial"] for event in events if event["kind"] == "proposed"]
    if trials != list(range(1, len(trials) + 1)):
        yield f"trials are {trials}, not 1 ... {len(trials)}"


def once(what, values):
    for value, count in collections.Counter(values).items():
        if count > 1:
            yield f"{what} {value} stands there {count} times"


def attempts_of(log):
    for trial, attempts in log.attempts.items():
        if attempts != list(range(1, len(attempts) + 1)):
            yield f"trial {trial} has the attempts {attempts}"
    for trial in log.proposed:
        if trial not in log.attempts and not any(end["outcome"] == "refused" for end in log.ends[trial]):
            yield f"trial {trial} has no attempt: half a change"


def sums(log):
    """What each attempt had used up at its last sign, and the totals that were answered."""
    used = collections.defaultdict(dict)
    for event in log.events:
        trial, body = event["trial"], event["body"]
        if event["kind"] not in ("epoch", "heartbeat") or body["energy_j"] is None:
            continue
        attempt = body["attempt"]
        used[trial][attempt] = (body["energy_j"], body["time_s"])
        if event["kind"] == "epoch" and body["stop"] != "ended":
            totals = [sum(amounts[i] for of, amounts in used[trial].items() if of <= attempt) for i in (0, 1)]
            if not near(totals[0], body["total_energy_j"]) or not near(totals[1], body["total_time_s"]):
                yield (f"event {event['number']}: {body['total_energy_j']} J and {body['total_time_s']} s in all, "
                       f"but the reports add up to {totals[0]} J and {totals[1]} s")


# ---- what clients were told ----

def told_define(log, call, _answer):
    defined = [event["body"] for event in log.events if event["kind"] == "defined"]
    if len(defined) != 1 or defined[0]["seed"] != call["seed"]:
        yield "the definition"


def told_set(log, call, _answer):
    if log.loose["set", call["eta"]] < 1:
        yield "the setting"


def told_propose(log, call, answer):
    event = log.by_key.get(f"request/{call['request']}")
    proposed = log.proposed.get(answer["trial"])
    if event is None or proposed is None or event["trial"] != answer["trial"]:
        yield "the attempt"
        return
    if event["body"]["attempt"] != answer["attempt"]:
        yield f"attempt {event['body']['attempt']}"
    body = proposed["body"]
    for name in ("batch_size", "reason", "why", "recurrence", "last_try"):
        if body[name] != answer[name]:
            yield f"{name} {body[name]!r}"
    if body["try"] != answer["try_number"]:
        yield f"try {body['try']}"
    if body["run"] != call["run"] or body["submission"] != call["submission"]:
        yield f"run {body['run']!r} of {body['submission']!r}"
    if answer["attempt"] == 1 and body.get("limit_w") != answer["limit_w"]:
        yield f"limit_w {body.get('limit_w')}"


def told_profile(log, call, answer):
    event = log.by_key.get(f"profile/{call['trial']}")
    if event is None:
        yield "the profile"
        return
    if event["body"]["points"] != call["points"]:
        yield f"points {event['body']['points']}"
    if event["body"]["limit_w"] != answer["limit_w"]:
        yield f"limit_w {event['body']['limit_w']}"


def told_heartbeat(log, call, _answer):
    if log.loose[loose_key("heartbeat", call["trial"], call)] < 1:
        yield "the heartbeat"


def told_report(log, call, answer):
    event = log.epochs.get((call["trial"], call["attempt"], call["epoch"]))
    if event is None:
        yield "the report"
        return
    for name in ("metric", "energy_j", "time_s"):
        if event["body"][name] != call[name]:
            yield f"{name} {event['body'][name]}"
    for name, stands in (("answer", "answer"), ("stop", "stop"), ("energy_j", "total_energy_j"), ("time_s", "total_time_s")):
        if event["body"][stands] != answer[name]:
            yield f"the answer's {name} {event['body'][stands]}"


def told_end(log, call, answer):
    ends = [end for end in log.ends[call["trial"]] if end["outcome"] != "expired"]
    if not ends or ends[0]["outcome"] != answer["outcome"]:
        yield f"ends {ends}"
        return
    amounts = [end["energy_j"] for end in ends + log.closed[call["trial"]]]
    if not any(near(amount, answer["energy_j"]) for amount in amounts):
        yield f"energies {amounts}"


TOLD = {"define": told_define, "set": told_set, "propose": told_propose, "profile": told_profile,
        "heartbeat": told_heartbeat, "report": told_report, "end": told_end}


def acknowledged(log, clients):
    for number, client in enumerate(clients):
        for call, answer in client:
            for wrong in TOLD[call["call"]](log, call, answer) if answer is not None else ():
                yield f"client {number} asked {call} and was answered {answer}; in the log: {wrong} is missing or differs"


def one_owner(clients):
    """No two runs were given the same trial."""
    owner = {}
    for client in clients:
        for call, answer in client:
            if call["call"] == "propose" and answer is not None:
                if owner.setdefault(answer["trial"], call["run"]) != call["run"]:
                    yield f"trial {answer['trial']} was given to {owner[answer['trial']]} and to {call['run']}"


def not_invented(log, clients, session_metrics):
    requests, reports, loose, profiles, ends = set(), {}, set(), {}, set()
    for call, _answer in (pair for client in clients for pair in client):
        if call["call"] == "propose":
            requests.add(f"request/{call['request']}")
        elif call["call"] == "report":
            reports[call["trial"], call["attempt"], call["epoch"]] = call
        elif call["call"] in ("heartbeat", "set"):
            loose.add(loose_key(call["call"], call["trial"], call) if call["call"] == "heartbeat" else ("set", call["eta"]))
        elif call["call"] == "profile":
            profiles[call["trial"]] = call["points"]
        elif call["call"] == "end":
            ends.add((call["trial"], call["attempt"]))
    for event in log.events:
        trial, body = event["trial"], event["body"]
        if trial and log.proposed[trial]["body"]["run"].startswith("session"):
            known = event["kind"] != "epoch" or body["metric"] in session_metrics
        else:
            known = {
                "attempt": lambda: event["key"] in requests,
                "epoch": lambda: all(reports[trial, body["attempt"], body["epoch"]][name] == body[name]
                                     for name in ("metric", "energy_j", "time_s")),
                "heartbeat": lambda: loose_key("heartbeat", trial, body) in loose,
                "set": lambda: loose_key("set", trial, body) in loose,
                "profiled": lambda: profiles[trial] == body["points"],
                "ended": lambda: body["stop"] != "none" or body["outcome"] == "expired" or (trial, body["attempt"]) in ends,
                "closed": lambda: (trial, body["attempt"]) in ends,
            }.get(event["kind"], lambda: True)
            try:
                known = known()
            except KeyError:
                known = False
        if not known:
            yield f"nobody asked for event {event['number']}: {event}"


def may_be_lost(session, place):
    """Whether that report was in the session's memory alone for as long as the session told of it."""
    process = session[place][1]["process"]
    for newer, (_report, answer) in enumerate(session[place:]):
        if answer is None or answer["process"] != process:
            break
        if answer["waiting"] <= newer:
            return False
    return True


def times_of(events):
    return collections.Counter(event["body"]["metric"] for event in events if event["kind"] == "epoch")


def lost(events, session):
    """How many reports of a session are missing that may be."""
    times = times_of(events)
    return sum(answer is not None and times[report["metric"]] == 0 and may_be_lost(session, place)
               for place, (report, answer) in enumerate(session))


def of_sessions(log, sessions):
    """A report that a session took is there once, delivered at once or later; its metric is like no other."""
    times = times_of(log.events)
    for session in sessions:
        for place, (report, answer) in enumerate(session):
            found = times[report["metric"]]
            if answer is not None and found != 1 and (found > 1 or not may_be_lost(session, place)):
                yield f"a session's report {report} stands there {found} times"


def models(log, given_up):
    """`given_up`: submissions whose program was killed for good."""
    last = {}
    for trial, event in log.proposed.items():
        last[event["body"]["recurrence"]] = (trial, event["body"])
    for recurrence, (trial, body) in last.items():
        outcomes = [end["outcome"] for end in log.ends[trial]]
        if body["submission"] in given_up or body["submission"].startswith("session"):
            continue
        if "reached" not in outcomes:
            yield (f"recurrence {recurrence} ({body['submission']}) ended without a model: trial {trial} is "
                   f"{outcomes[0] if outcomes else 'open'}")


def faults(events, clients, sessions=(), given_up=()):
    """All that is wrong, as sentences."""
    found = list(whole(events))
    if found:
        return found
    log = Log(events)
    metrics = {report["metric"] for session in sessions for report, _answer in session}
    found += in_order(events)
    found += attempts_of(log)
    found += sums(log)
    found += acknowledged(log, clients)
    found += one_owner(clients)
    found += not_invented(log, clients, metrics)
    found += of_sessions(log, sessions)
    found += models(log, given_up)
    return found


def same_decision(live, implied):
    """What differs between the choice that was made and the one that the log implies."""
    return [f"the log implies {name} {implied[name]!r}, and {live[name]!r} was chosen"
            for name in ("trial", "attempt", "recurrence", "try_number", "last_try", "batch_size", "limit_w",
                         "wants_profile", "epochs", "reason", "why") if live[name] != implied[name]]
