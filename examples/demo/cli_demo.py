# SPDX-License-Identifier: Apache-2.0
"""`flyball demo` from outside: every printed figure once more from its tries file.

usage: start.py cli_demo.py FLYBALL ROOT

With FLYBALL_TEST_QUICK=1, as under sanitizers, one recurrence alone; and not even that
under the thread sanitizer, where its check takes minutes.
"""
import collections
import csv
import functools
import json
import math
import os
import pathlib
import re
import stat
import sys
import tempfile

import svg_texts
import tap

FLYBALL = pathlib.Path(sys.argv[1]).resolve()
QUICK = os.environ.get("FLYBALL_TEST_QUICK") == "1"
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("FLYBALL_")}
COLUMNS = ("gpu,dataset,policy,seed,recurrence,try,batch_size,power_limit_w,reached,energy_j,time_s,cost_j,"
           "epochs,accuracy,role").split(",")
JOBS = ("digits", "digits-tuned")
MEASURES = {"energy": "energy_j", "time": "time_s", "cost": "cost_j"}
PEOPLE = {"energy": ("energy", " kJ", 1e-3), "time": ("time", " s", 1), "cost": ("score", "", 1), "accuracy": ("accuracy", " %", 1)}
HELD_OUT, TRAINED, TARGET, MAX_EPOCHS = 360, 1437, 342, 120


class Demo:
    """One run in an empty directory: its tries, and its report as text and as JSON."""

    def __init__(self, *arguments):
        with tempfile.TemporaryDirectory() as name:
            home = pathlib.Path(name)
            document, self.files = self.run(home, "--threads=3", "--format=json", *arguments)
            self.document, self.text = json.loads(document), None
            self.log, shown = ({job: json.loads(tap.run([FLYBALL, "job", command, job, "--store", "flyball-demo/store.sqlite",
                                                         "--format=json"], cwd=home, env=ENVIRONMENT).stdout)["rows"]
                                for job in JOBS} for command in ("history", "show"))
            self.shown = {job: rows[0] for job, rows in shown.items()}
            if arguments in TEXTS:
                self.text, again = self.run(home, "--threads=1", "-v", *arguments)
                self.suggested = [tap.run(["sh", "-c", command], cwd=home, env=ENVIRONMENT) for command in
                                  re.findall(r"(?:The log|The same from the log|More): (.*)$", self.text, re.MULTILINE)]
                tap.equal(again == self.files, True, "a second run gives the same bytes, on any number of threads")
        rows = list(csv.reader(self.files["tries.csv"].decode().splitlines()))
        tap.equal(rows[0], COLUMNS)
        self.tries = collections.defaultdict(list)
        for row in rows[1:]:
            at = dict(zip(COLUMNS, row))
            for name in COLUMNS[3:14]:
                at[name] = float(at[name])
            self.tries[at["dataset"], at["role"]].append(at)


    @staticmethod
    def run(home, *arguments):
        """What it prints, and the files that it leaves, but for the log, which has dates."""
        result = tap.run([FLYBALL, "demo", *arguments], cwd=home, env=ENVIRONMENT, timeout=tap.PATIENCE_S)
        tap.equal((result.returncode, result.stderr), (0, ""))
        tap.equal([path.name for path in home.iterdir()], ["flyball-demo"], "nothing else was written")
        files = {path.name: path.read_bytes() for path in sorted((home / "flyball-demo").iterdir())}
        tap.equal(list(files), ["pareto.svg", "store.sqlite", "tries.csv"])
        del files["store.sqlite"]
        return result.stdout, files


_demos = {}


def demo(*arguments):
    """The same run serves all tests."""
    if arguments not in _demos:
        _demos[arguments] = Demo(*arguments)
    return _demos[arguments]


# -- The calculations of docs/tutorial/demo.md --


@functools.cache
def student(degrees):
    """The 97.5 % quantile of Student's t, by bisection of its integrated density."""
    scale = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(degrees * math.pi)

    def beyond_zero(end, steps=4000):  # Simpson's rule
        density = [scale * (1 + (end * i / steps) ** 2 / degrees) ** (-(degrees + 1) / 2) for i in range(steps + 1)]
        return (density[0] + density[-1] + 4 * sum(density[1:-1:2]) + 2 * sum(density[2:-1:2])) * end / steps / 3

    low, high = 1.9, 13.0
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond_zero(middle) < 0.475 else (low, middle)
    return low


def paired(ours, theirs):
    """(change, low, high) in percent."""
    count, ratio = len(ours), sum(ours) / sum(theirs)
    if count < 2:
        return 100 * (ratio - 1), None, None
    deviation = math.sqrt(sum((a - ratio * b) ** 2 for a, b in zip(ours, theirs)) / (count - 1))
    half = student(count - 1) * deviation / math.sqrt(count) / (sum(theirs) / count)
    return tuple(100 * value for value in (ratio - 1, ratio - 1 - half, ratio - 1 + half))


def courses(tries):
    """Each measure by recurrence, and the last try of each."""
    by_recurrence = collections.defaultdict(list)
    for at in tries:
        by_recurrence[at["recurrence"]].append(at)
    ordered = [by_recurrence[r] for r in sorted(by_recurrence)]
    course = {name: [sum(at[column] for at in group) for group in ordered] for name, column in MEASURES.items()}
    course["accuracy"] = [100 * group[-1]["accuracy"] for group in ordered]
    return course, [group[-1] for group in ordered]


def choice(at):
    return int(at["batch_size"]), at["power_limit_w"]


def check_costs(run, job):
    """Cost of a recurrence of every choice, and the cost of each of its trainings."""
    groups = collections.defaultdict(list)
    for at in run.tries[job, "check"]:
        groups[choice(at)].append(at)
    return ({key: sum(at["cost_j"] for at in group) / sum(at["reached"] for at in group)
             for key, group in groups.items()},
            {key: [at["cost_j"] for at in group] for key, group in groups.items()})


def expected_figures(run, job):
    """(measure, span) to the row that the report has to have."""
    ours, _ = courses(run.tries[job, "chosen"])
    theirs, _ = courses(run.tries[job, "baseline"])
    rows = {}
    for span in ("last", "all"):
        count = min(len(ours["cost"]), 10) if span == "last" else len(ours["cost"])
        for measure in PEOPLE:
            a, b = ours[measure][-count:], theirs[measure][-count:]
            rows[measure, span] = [count, sum(b) / count, sum(a) / count, *paired(a, b)]
        for measure in PEOPLE:
            saved = all(rows[name, span][5] < -1e-9 for name in (measure, "cost")) and measure != "accuracy"
            rows[measure, span].append("yes" if saved else "no")
    return rows


def expected_job(run, job):
    ours, lasts = courses(run.tries[job, "chosen"])
    theirs, _ = courses(run.tries[job, "baseline"])
    lead, behind = 0.0, 0
    for number, (a, b) in enumerate(zip(ours["cost"], theirs["cost"]), 1):
        lead += b - a
        behind = behind if lead > 0 else number
    votes = collections.Counter(choice(at) for at in lasts[-10:])
    mine = [choice(at) for at in lasts[-10:] if votes[choice(at)] == max(votes.values())][-1]
    costs, single = check_costs(run, job)
    best = min(costs, key=lambda key: (costs[key], key[0], -key[1]))
    default = choice(run.tries[job, "baseline"][0])
    above = paired(single[mine], single[best])
    return {
        "completed_recurrences": len(lasts), "tries": len(run.tries[job, "chosen"]),
        "paid_off_after_recurrences": behind + 1 if behind < len(lasts) else None,
        "default_batch_size": default[0], "default_power_limit_w": default[1],
        "chosen_batch_size": mine[0], "chosen_power_limit_w": mine[1],
        "best_batch_size": best[0], "best_power_limit_w": best[1],
        "choices_measured": len(costs), "seeds_per_choice": len(single[best]),
        "rank": 1 + sum(cost < costs[mine] for cost in costs.values()),
        "rank_shared_with": sum(cost == costs[mine] for cost in costs.values()) - 1,
        "above_best_percent": above[0], "above_best_low_percent": above[1], "above_best_high_percent": above[2],
        "claimed": any(expected_figures(run, job)["cost", span][6] == "yes" for span in ("last", "all")),
    }


def close(found, expected):
    if isinstance(expected, (int, float)) and not isinstance(expected, bool) and found is not None:
        # The end of an interval may be near 0 while its half width, and so the error of its quantile, is not.
        return math.isclose(found, expected, rel_tol=2e-5, abs_tol=1e-4)
    return found == expected


# -- The report against them --


RUNS = ((), ("--seed=2", "--policy=grid", "--recurrences=20"), ("--policy=default", "--recurrences=12"))
TEXTS = RUNS[0], RUNS[2]


def test_json_figures_follow_from_tries():
    for arguments in RUNS:
        run = demo(*arguments)
        tap.equal(run.document["schema"], "flyball.demo/1")
        rows = {(row["job"], row["figure"], row["span"]): row for row in run.document["rows"]}
        tap.equal(len(rows), 16)
        for job in JOBS:
            for key, expected in expected_figures(run, job).items():
                row = rows[(job, *key)]
                found = [row["recurrences"], row["default_mean"], row["chosen_mean"], row["change_percent"],
                         row["change_low_percent"], row["change_high_percent"], row["claimed"]]
                tap.equal([close(*pair) for pair in zip(found, expected)], [True] * 7,
                          f"{arguments} {job} {key}: {found}, expected {expected}")


def test_json_findings_follow_from_tries():
    for arguments in RUNS:
        run = demo(*arguments)
        for job, found in zip(JOBS, run.document["jobs"]):
            tap.equal((found["job"], found["error"]), (job, None))
            for name, expected in expected_job(run, job).items():
                if not close(found[name], expected):
                    raise AssertionError(f"{arguments} {job} {name}: expected {expected}, found {found[name]}")


def rounded(value, pattern):
    """As the report writes it: +0.0 for what rounds to nothing."""
    return re.sub(r"^-(0\.0+)$", r"+\1", pattern % value)


def figure_line(run, job, measure, span):
    count, theirs, ours, change, low, high, claimed = expected_figures(run, job)[measure, span]
    word, unit, scale = PEOPLE[measure]
    words = [f"{word}, {span} {count}", "%.2f%s" % (theirs * scale, unit), "%.2f%s" % (ours * scale, unit),
             rounded(change, "%+.1f") + " %", f"[{rounded(low, '%+.1f')}, {rounded(high, '%+.1f')}]"]
    return " ".join(words) + (" saved" if claimed == "yes" else "")


def test_text_figures_follow_from_tries():
    for arguments in TEXTS:
        run = demo(*arguments)
        parts = re.split(r"\n +Job ", run.text)
        tap.equal(len(parts), 3)
        for job, part in zip(JOBS, parts[1:]):
            plain = re.sub(r" +", " ", part)
            for measure in PEOPLE:
                for span in ("last", "all"):
                    tap.contains(plain, figure_line(run, job, measure, span), f"{arguments} {job}")
            tap.equal(plain.count(" saved"), plain.count(" saved\n"))


def test_text_findings_follow_from_tries():
    for arguments in TEXTS:
        run = demo(*arguments)
        for job, part in zip(JOBS, re.split(r"\n +Job ", run.text)[1:]):
            expected = expected_job(run, job)
            tap.contains(part, f"{expected['completed_recurrences']} of {run.document['settings']['recurrences']} recurrences reached 95.0 %, in "
                               f"{expected['tries']} tries")
            tap.contains(part, "now batch {chosen_batch_size}, {chosen_power_limit_w:g} W   (default batch "
                               "{default_batch_size}, {default_power_limit_w:g} W)".format(**expected))
            paid_off = expected["paid_off_after_recurrences"]
            tap.contains(part, f"paid off after recurrence {paid_off}\n" if paid_off else "did not pay off")
            tap.contains(part, f"all {expected['choices_measured']} choices x {expected['seeds_per_choice']} fresh seeds: "
                               f"ours is {expected['rank']}")
            if expected["rank"] > 1:
                above = [rounded(expected[f"above_best_{end}percent"], "%+.1f") for end in ("", "low_", "high_")]
                tap.contains(part, "{} % [{}, {}] above the best, batch {best_batch_size}, {best_power_limit_w:g} W"
                             .format(*above, **expected))
            tap.equal("nothing claimed" in part, not expected["claimed"])


def test_six_lines_say_what_the_log_says():
    """The figures of 'flyball job show', and no others."""
    for arguments in TEXTS:
        run = demo(*arguments)
        brief = run.text.split("\n\n")[0].splitlines()
        tap.equal(len(brief), 6, brief)
        for job, line in zip(JOBS, (line for line in brief if line.startswith("digits"))):
            said = run.shown[job]
            if said["energy_saving_percent"] is None:
                tap.contains(line, f"{job}: saving unknown")
                continue
            for name in ("energy", "time"):
                saving, *ends = (said[f"{name}_saving_{part}"] for part in ("percent", "low_percent", "high_percent"))
                sign = -1 if saving < 0 else 1
                low, high = sorted(sign * end for end in ends)
                tap.contains(line, f"{abs(saving):.1f} % {'less' if saving >= 0 else 'more'} {name} ({low:.1f} to {high:.1f} %)")
            low, high = said["energy_saving_low_percent"], said["energy_saving_high_percent"]
            tap.equal("nothing is claimed" in line, low <= 0 <= high, line)
    tap.contains(demo().text, "digits: ")
    tap.equal(demo().shown["digits"]["energy_saving_low_percent"] > 0, True)


def test_every_line_says_what_is_real():
    for line in demo().text.split("\n\n", 1)[1].splitlines():
        if line and not line.startswith(("REAL  ", "EMUL  ", "BOTH  ")):
            tap.equal(bool(re.match(r" {6}(Job |per recurrence|No saving of score|Recompute: |The log: )", line)), True, line)


# -- What is claimed --


def test_commands_that_it_names_work_from_there():
    tap.equal([(ran.returncode, ran.stderr) for ran in demo(*TEXTS[0]).suggested], [(0, "")] * 3)


def test_default_policy_claims_nothing():
    run = demo(*RUNS[2])
    tap.equal([job["claimed"] for job in run.document["jobs"]], [False, False])
    for row in run.document["rows"]:
        tap.equal((row["change_percent"], row["change_low_percent"], row["change_high_percent"], row["claimed"]),
                  (0, 0, 0, "no"))
    tap.equal((run.text.count("nothing claimed"), run.text.count(" saved")), (2, 0))


def test_search_saves_where_there_is_something_to_save():
    first, second = demo().document["jobs"]
    tap.equal((first["claimed"], second["claimed"]), (True, False))
    tap.contains(demo().text, "nothing claimed")


def test_second_default_is_the_best_choice():
    for arguments in RUNS:
        costs, _ = check_costs(demo(*arguments), "digits-tuned")
        default = choice(demo(*arguments).tries["digits-tuned", "baseline"][0])
        tap.equal(costs[default], min(costs.values()))


# -- The tries are what docs/tutorial/demo.md says --


def test_tries_stand_in_the_log():
    """What the sessions reported is what the table says."""
    for arguments in RUNS:
        run = demo(*arguments)
        for job in JOBS:
            tries, log = run.tries[job, "chosen"], run.log[job]
            tap.equal(len(log), len(tries))
            for at, row in zip(tries, log):
                tap.equal((row["recurrence"], row["batch_size"], row["epochs"], row["outcome"] == "reached"),
                          (at["recurrence"], at["batch_size"], at["epochs"], at["reached"] == 1))
                tap.equal([close(*pair) for pair in ((row["energy_j"], at["energy_j"]), (row["time_s"], at["time_s"]))],
                          [True] * 2, f"{arguments} {job}: {row}, {at}")


def test_tries_are_trainings():
    for (job, role), tries in demo().tries.items():
        for at in tries:
            tap.equal(at["reached"], float(round(at["accuracy"] * HELD_OUT) >= TARGET), f"{job} {role} {at}")
            tap.equal((1 <= at["epochs"] <= MAX_EPOCHS, at["epochs"] % 1), (True, 0.0))
            tap.equal(close(at["cost_j"], 0.5 * at["energy_j"] + 0.5 * 250 * at["time_s"]), True)
    tap.equal(sorted(demo().tries), sorted((job, role) for job in JOBS for role in ("baseline", "check", "chosen")))


def emulated(job, at):
    """(energy, time) by the law of examples/demo/gpu.h."""
    batch, limit, share = at["batch_size"], at["power_limit_w"], {"digits": 0.65, "digits-tuned": 1.0}[job]
    wanted = 70 + 180 * batch / (batch + 8)
    clock = min(1.0, (limit - 70) / (wanted - 70)) ** (1 / 3)
    seconds = at["epochs"] * TRAINED * (2.5e-3 + 40e-3 / batch) * (share / clock + 1 - share)
    return seconds * min(wanted, limit), seconds


def test_energy_and_time_follow_the_model():
    for (job, role), tries in demo().tries.items():
        for at in tries:
            if role != "chosen":  # where a profile may be in it
                tap.equal([close(*pair) for pair in zip((at["energy_j"], at["time_s"]), emulated(job, at))],
                          [True, True], f"{job} {role} {at}")


def test_policies_share_their_luck():
    run = demo(*RUNS[1])
    for job in JOBS:
        base = {(at["recurrence"], at["batch_size"]): at for at in run.tries[job, "baseline"]}
        first = {at["recurrence"]: at for at in reversed(run.tries[job, "chosen"])}
        shared = [(at["epochs"], base[at["recurrence"], at["batch_size"]]["epochs"]) for at in first.values()
                  if (at["recurrence"], at["batch_size"]) in base]
        tap.equal([a == b for a, b in shared], [True] * len(shared))


def test_picture_shows_both_choices():
    job = demo().document["jobs"][0]
    picture = demo().files["pareto.svg"].decode()
    svg_texts.check(picture)
    for end in ("default", "chosen"):
        tap.contains(picture, "batch {}, {:g} W".format(job[f"{end}_batch_size"], job[f"{end}_power_limit_w"]))


# -- Where it cannot run --


def test_refusals():
    with tempfile.TemporaryDirectory() as name:
        for arguments, status in ((("--recurrences=0",), 64), (("--policy=oracle",), 64), (("--seed=-1",), 64),
                                  (("--directory=no/such/place",), 74)):
            result = tap.run([FLYBALL, "demo", *arguments], cwd=name, env=ENVIRONMENT)
            tap.equal((result.returncode, result.stdout), (status, ""), result.stderr)


def test_one_recurrence_in_a_store_of_ones_own():
    """It has no interval; its log goes where it is told to, and is not gone on with."""
    if "thread" in tap.sanitizers(FLYBALL):
        raise tap.Skip("it takes minutes in this build")
    with tempfile.TemporaryDirectory() as name:
        command = [FLYBALL, "demo", "--recurrences=1", "--format=json", "--store=own.sqlite"]
        first, second = (tap.run(command, cwd=name, env=ENVIRONMENT, timeout=tap.PATIENCE_S) for _ in range(2))
        tap.equal((first.returncode, first.stderr), (0, ""))
        for row in json.loads(first.stdout)["rows"]:
            tap.equal((row["change_low_percent"], row["claimed"]), (None, "no"))
            tap.contains(row["change_low_percent_unavailable"], "one recurrence")
        mode = stat.S_IMODE((pathlib.Path(name) / "flyball-demo" / "tries.csv").stat().st_mode)
        tap.equal(mode & 0o133, 0, "a plain file")
        tap.equal((second.returncode, second.stdout), (65, ""))
        tap.contains(second.stderr, "has a job 'digits' already")
        found = tap.run([FLYBALL, "job", "list", "--store=own.sqlite", "--format=json"], cwd=name, env=ENVIRONMENT)
        tap.equal([(row["job"], row["recurrences"]) for row in json.loads(found.stdout)["rows"]],
                  [(job, 1) for job in ("digits", "digits-default", "digits-tuned", "digits-tuned-default")])


if __name__ == "__main__":
    SHORT = ("test_refusals", "test_one_recurrence_in_a_store_of_ones_own")
    tap.main({name: value for name, value in globals().items() if not QUICK or name in SHORT})
