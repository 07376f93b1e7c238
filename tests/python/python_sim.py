# SPDX-License-Identifier: Apache-2.0
"""The simulator from Python, against the program's JSON for the same arguments, and policies as Python classes.

usage: python_sim.py FLYBALL SOURCE_ROOT

The recorded traces are looked for in $FLYBALL_TEST_DATA, or in ../shared/data beside the source.
"""

import csv
import io
import json
import lzma
import os
import pathlib
import pickle
import random
import signal
import sys
import threading

import tap
from sim_fixture import CLEAN, FLYBALL, Sandbox

ROOT = pathlib.Path(sys.argv[2])
DATA = pathlib.Path(os.environ.get("FLYBALL_TEST_DATA") or ROOT.resolve().parent / "shared" / "data").resolve()
BUILD = pathlib.Path(sys.argv[1]).resolve().parent
PACKAGE = pathlib.Path(os.environ.get("FLYBALL_TEST_PYTHON", BUILD / "python"))
sys.path.insert(0, str(PACKAGE))

import flyball  # noqa: E402  (the package of the build, which the lines above lead to)

BOX = Sandbox()
TRACES = BOX.path / "traces"
MINI = {"traces": TRACES, "gpu": "mini"}
CLICKS = {"described": BOX.path / "jobs.ini"}
ENDLESS = 10**9  # recurrences: far more than a test takes


def told(command, *arguments):
    """The program's document."""
    done = tap.run([FLYBALL, "sim", command, "--format=json", *arguments], cwd=BOX.path, env=CLEAN, timeout=tap.PATIENCE_S)
    tap.equal(done.returncode, 0, done.stderr)
    return json.loads(done.stdout)


def check_rows(table, rows):
    """Every figure, to the last bit, and why those are not known that are not."""
    tap.equal(table.row_count, len(rows))
    for i, row in enumerate(rows):
        tap.equal(set(row) - {key for key in row if key.endswith("_unavailable")}, set(table))
        for key, values in table.items():
            tap.equal(values[i], row[key], f"{key} of row {i}")
            tap.equal(table.unknown.get(key, [None] * len(rows))[i], row.get(key + "_unavailable"), key)


def raised(kind, call, *arguments, **keywords):
    try:
        call(*arguments, **keywords)
    except BaseException as error:  # which one is what the test asks
        tap.equal(type(error), kind, str(error))
        return error
    raise AssertionError(f"{kind.__name__} expected")


def test_jobs_are_those_of_the_program():
    common = ("--traces=traces", "--gpu=mini")
    cases = (
        ({}, ("--seeds=1-4",), {"seeds": range(1, 5)}),
        (CLICKS, ("--jobs=jobs.ini", "--seeds=3,1", "--policy=grid,bayes", "--recurrences=9"),
         {"seeds": [3, 1], "policies": ["grid", "bayes"], "recurrences": 9}),
        ({}, ("--workload=cifar100", "--seeds=5", "--generator=numpy", "--eta=0.9", "--beta=1.5", "--window=4"),
         {"jobs": "cifar100", "seeds": [5], "generator": "numpy", "eta": 0.9, "beta": 1.5, "window": 4}),
        ({}, ("--workload=cifar100", "--seeds=1-2", "--policy=bayes", "--objective=energy", "--max-slowdown=10%", "--profile-window=10%"),
         {"jobs": ["cifar100"], "seeds": (1, 2), "policies": "bayes", "objective": "energy", "max_slowdown": "10%", "profile_window": 0.1}),
        ({}, ("--workload=cifar100", "--seeds=1-2", "--policy=bayes", "--transfer-from=eta=0.9", "--transfer-recurrences=5"),
         {"jobs": "cifar100", "seeds": (1, 2), "policies": "bayes", "transfer_from": "eta=0.9", "transfer_recurrences": 5}),
        ({}, ("--workload=cifar100", "--seeds=1", "--policy=bayes", "--transfer-from=squad"),
         {"jobs": "cifar100", "seeds": [1], "policies": "bayes", "transfer_from": "squad"}),
        ({}, ("--workload=squad", "--seeds=1", "--drift=level", "--beta=inf", "--overlapping", "--guard=on", "--order=recorded"),
         {"jobs": "squad", "seeds": [1], "drift": "level", "beta": float("inf"), "overlapping": True, "guard": "on", "in_order": True}),
    )
    for described, arguments, keywords in cases:
        table = flyball.sim.job(**MINI, bootstrap=0, **described, **keywords)
        check_rows(table, told("job", *common, "--bootstrap=0", *arguments)["rows"])


def test_bootstrap_is_that_of_the_program():
    job, told_job = {"jobs": "cifar100", "seeds": [1, 2], "recurrences": 6}, ("--workload=cifar100", "--seeds=1-2", "--recurrences=6")
    for replicates in (0, 40):
        table = flyball.sim.job(**MINI, **job, bootstrap=replicates)
        check_rows(table, told("job", "--traces=traces", "--gpu=mini", *told_job, f"--bootstrap={replicates}")["rows"])
    unasked = flyball.sim.job(**MINI, **job)
    check_rows(unasked, told("job", "--traces=traces", "--gpu=mini", *told_job)["rows"])
    tap.equal(unasked.rows()[0]["regret_optimal_runs_recordings_standard_error"], None)


def check_tries(table):
    """Against those that the program wrote, to the last bit."""
    rows = list(csv.DictReader(io.StringIO((BOX.out / "all.csv").read_text())))
    tap.equal(list(table), list(rows[0]))
    tap.equal(table.row_count, len(rows))
    for kept, row in zip(table.rows(), rows):
        tap.equal({key: type(kept[key])(value) for key, value in row.items()}, kept)


def test_tries_are_those_of_the_program():
    table = flyball.sim.job(**MINI, seeds=[2, 7], policies=["zeus", "grid"], bootstrap=0, tries=True)
    told("job", "--traces=traces", "--gpu=mini", "--seeds=2,7", "--policy=zeus,grid", "--bootstrap=0", "--tries=out/all.csv")
    check_tries(table.tries)
    tap.equal(flyball.sim.job(**MINI, seeds=[2], bootstrap=0).tries, None)


def test_frontier_is_that_of_the_program():
    for keywords, arguments in (({}, ()), ({"objective": "energy", "max_slowdown": 0.2}, ("--objective=energy", "--max-slowdown=20%")),
                                ({"eta": 1}, ("--eta=1",))):
        frontier = flyball.sim.pareto(**MINI, job="cifar100", **keywords)
        document = told("pareto", "--traces=traces", "--gpu=mini", "--workload=cifar100", "--all", *arguments)
        check_rows(frontier, document["rows"])
        tap.equal({key: frontier.chosen[key] for key in document["chosen"]}, document["chosen"])
        tap.equal(frontier.default["batch_size"], document["default"]["batch_size"])
    tap.contains(frontier._repr_html_(), "<svg")
    tap.contains(frontier._repr_html_(), "chosen")


GROUPS = """group,start_time,end_time,dataset,runtime_ratio
a,0,10,cifar100,1
a,5,12,cifar100,0.9
a,11,20,cifar100,1.1
a,30,41,cifar100,1
b,2,9,squad,1
b,3,30,squad,2
c,0,1,cifar100,1
"""


def test_groups_are_those_of_the_program():
    BOX.write("groups.csv", GROUPS)
    BOX.write("groups.csv.xz", lzma.compress(GROUPS.encode()))
    common = ("--groups=groups.csv", "--traces=traces", "--gpu=mini")
    for name, arguments, keywords in (("groups.csv", (), {}),
                                      ("groups.csv.xz", ("--seeds=2-4", "--policy=bayes", "--eta=0.7"), {"seeds": (2, 3, 4), "policies": "bayes", "eta": 0.7}),
                                      ("groups.csv", ("--generator=numpy",), {"generator": "numpy"}),
                                      ("groups.csv", ("--generator=numpy", "--seeds=5,6"), {"generator": "numpy", "seeds": [5, 6]})):
        check_rows(flyball.sim.group(BOX.path / name, **MINI, **keywords), told("group", *common, *arguments)["rows"])
        tap.equal(flyball.sim.group(BOX.path / name, **MINI, **keywords).tries, None)
        told("group", *common, "--tries=out/all.csv", *arguments)
        check_tries(flyball.sim.group(BOX.path / name, **MINI, **keywords, tries=True).tries)
    raised(flyball.NotFoundError, flyball.sim.group, BOX.path / "none.csv", **MINI)
    tap.equal(flyball.sim.group(BOX.path / "groups.csv", **MINI, policies=[Default, "default"])["energy_change_percent"][0], 0.0)


def test_comparisons_are_those_of_the_program():
    common = ("--seeds=1-3", "--horizons=4,9")
    some = {"seeds": range(1, 4), "horizons": (4, 9)}
    for arguments, keywords in (
        (("--synthetic-jobs=1", "--policy=zeus,bayes"), {"synthetic_jobs": 1, "policies": ["zeus", "bayes"]}),
        (("--synthetic-jobs=2", "--synthetic=smooth,far", "--each", "--policy=zeus,grid", "--against=default", "--scenario=burst-2,bound-3"),
         {"synthetic_jobs": 2, "synthetic": ["smooth", "far"], "each": True, "policies": ["zeus", "grid"], "against": "default",
          "scenarios": ["burst-2", "bound-3"]}),
        (("--traces=traces", "--synthetic-jobs=0", "--workload=cifar100", "--profile-window=10%"),
         {"traces": TRACES, "synthetic_jobs": 0, "jobs": "cifar100", "profile_window": 0.1}),
    ):
        check_rows(flyball.sim.compare(**keywords, **some), told("compare", *common, *arguments)["rows"])
    table = flyball.sim.compare(synthetic="smooth", synthetic_jobs=2, policies=["default", Default], **some)
    tap.equal({ratio for ratio, name in zip(table["regret_ratio"], table["policy"]) if name == "again"}, {1.0})
    raised(flyball.UsageError, flyball.sim.compare, synthetic_jobs=0)
    raised(flyball.UsageError, flyball.sim.compare, synthetic="smoth", **some)
    raised(flyball.UsageError, flyball.sim.compare, synthetic_jobs=1, against="nobody", **some)
    raised(flyball.UsageError, flyball.sim.compare, synthetic_jobs=1, scenarios="stedy", **some)
    raised(flyball.NotFoundError, flyball.sim.compare, "/nowhere", **some)


def test_recorded_traces_are_those_of_the_program():
    traces = DATA / "zeus_nsdi23"
    if not traces.exists():
        raise tap.Skip(f"{traces} is absent; set FLYBALL_TEST_DATA to the directory of the recorded data")
    table = flyball.sim.job(traces, "v100", policies=["zeus", "bayes"], seeds=[1, 2], bootstrap=0)
    check_rows(table, told("job", f"--traces={traces}", "--gpu=v100", "--policy=zeus,bayes", "--seeds=1-2", "--bootstrap=0")["rows"])
    check_rows(flyball.sim.job(traces, "v100", "librispeech", policies="bayes", seeds=[1, 2], bootstrap=0, transfer_from="p100"),
               told("job", f"--traces={traces}", "--gpu=v100", "--workload=librispeech", "--policy=bayes", "--seeds=1-2", "--bootstrap=0",
                    "--transfer-from=p100")["rows"])
    check_rows(flyball.sim.pareto(traces, "v100", "librispeech"),
               told("pareto", f"--traces={traces}", "--gpu=v100", "--workload=librispeech", "--all")["rows"])


def test_tables():
    table = flyball.sim.job(**MINI, jobs="cifar100", seeds=[1], bootstrap=0)
    tap.equal(isinstance(table, dict) and all(type(column) is list for column in table.values()), True)
    tap.equal(table.units["optimum_cost_j"], "J")
    tap.contains(table.help["policy"], "Policy")
    tap.contains(table.notes[0], "128")
    again = pickle.loads(pickle.dumps(table))
    tap.equal((again, again.units, again.notes, type(again)), (table, table.units, table.notes, type(table)))
    tap.contains(table._repr_html_(), "<td>cifar100</td>")
    tap.contains(repr(table), "rows")


class Default(flyball.sim.Policy):
    """The built-in policy `default` once more."""

    name = "again"

    def propose(self, question):
        size = self.job.default_batch_size
        return size, self.job.limits_w[size][-1]


class Told(flyball.sim.Policy):
    """Draws at random, and writes down what it is told."""

    notes = []

    def __init__(self, job):
        super().__init__(job)
        self.random = random.Random(job.seed)
        self.notes.append(job)

    def propose(self, question):
        self.notes.append(question)
        return self.random.choice(self.job.batch_sizes)

    def begin(self, batch_size):
        self.notes.append(batch_size)

    def measure(self, profile):
        self.notes.append(profile)

    def observe(self, trial):
        self.notes.append(trial)

    def cap(self, batch_size, epoch_energy_j, epoch_time_s):
        return min(self.job.max_epochs, 12)


def test_policy_equal_to_a_built_in_one_has_its_figures():
    table = flyball.sim.job(**MINI, policies=[Default, "default"], seeds=range(1, 4))
    names = table["policy"]
    for key, values in table.items():
        for i in (i for i, name in enumerate(names) if name == "again" and key != "policy"):
            tap.equal(values[i], values[i + 1], key)
    tap.equal("again" in names, True)


def test_policy_is_told_what_happens():
    Told.notes.clear()
    table = flyball.sim.job(**MINI, jobs="cifar100", policies=Told, seeds=[3], recurrences=10, tries=True)
    kinds = [type(note).__name__ for note in Told.notes]
    tap.equal(kinds[0], "Job")
    tap.equal(Told.notes[0].batch_sizes, (8, 16, 32, 64))
    tap.equal(Told.notes[0].limits_w[16], (100.0, 150.0, 200.0, 250.0))
    tap.equal((Told.notes[0].seed, Told.notes[0].max_slowdown), (3, None))
    trials = [note for note in Told.notes if isinstance(note, flyball.sim.Trial)]
    questions = [note for note in Told.notes if isinstance(note, flyball.sim.Question)]
    profiles = [note for note in Told.notes if isinstance(note, flyball.sim.Profile)]
    tap.equal([question.trial for question in questions], list(range(len(questions))), "each question is asked once")
    tap.equal(len({profile.batch_size for profile in profiles}), len(profiles), "each batch size is profiled once")
    tap.equal(all(profile.chosen_limit_w in [point[0] for point in profile.points] for profile in profiles), True)
    tap.equal(kinds.count("int"), len(trials))
    tries = table.tries
    tap.equal([trial.batch_size for trial in trials], tries["batch_size"])
    tap.equal([trial.energy_j for trial in trials], tries["energy_j"])
    tap.equal([trial.outcome == "reached" for trial in trials], [bool(reached) for reached in tries["reached"]])
    first = list(Told.notes)
    Told.notes.clear()
    flyball.sim.job(**MINI, jobs="cifar100", policies=Told, seeds=[3], recurrences=10)
    tap.equal(first, Told.notes, "the same seed gives the same history")


def test_a_function_serves_as_policy():
    def made(job):
        return Default(job)

    tap.equal(flyball.sim.job(**MINI, jobs="squad", policies=made, seeds=[1])["policy"][0], "made")


def faulty(method, fault):
    """A policy of which one method does something else."""
    return type("Faulty", (Told,), {"name": "faulty", method: fault})


def test_faults_name_policy_and_job():
    def boom(self, *_):
        raise ValueError("boom")

    for method in ("__init__", "propose", "begin", "measure", "observe", "cap"):
        error = raised(flyball.sim.PolicyError, flyball.sim.job, **MINI, jobs="squad", policies=["zeus", faulty(method, boom)], seeds=[4])
        tap.equal((error.policy, error.job, error.method, error.seed, error.code), ("faulty", "squad", method, 4, "FLY_EDATA"))
        tap.equal(type(error.__cause__), ValueError)
        tap.contains(str(error), "policy 'faulty' failed in")
        tap.contains(str(error), "on job 'squad'")
    for answer in (7, "8", (8, 1.0), 8.0, (8, 100.0, 3), True):
        error = raised(flyball.sim.PolicyError, flyball.sim.job, **MINI, jobs="squad", seeds=[4], policies=faulty("propose", lambda *_, answer=answer: answer))
        tap.contains(str(error), f"it gave {answer!r}")
    for answer in (-1, 10**6, 2.5, "many"):
        error = raised(flyball.sim.PolicyError, flyball.sim.job, **MINI, jobs="squad", seeds=[4], policies=faulty("cap", lambda *_, answer=answer: answer))
        tap.contains(str(error), f"it gave {answer!r}")
    tap.equal(str(pickle.loads(pickle.dumps(error))), str(error))


def test_nothing_left_is_a_result():
    table = flyball.sim.job(**MINI, jobs="squad", seeds=[4], policies=faulty("propose", lambda *_: None))
    tap.equal(table["completed_runs"][0], 0)
    tap.contains(table["error"][0], "no batch size left")


def test_policies_that_are_none():
    raised(TypeError, flyball.sim.job, **MINI, policies=[3])
    raised(TypeError, flyball.sim.job, **MINI, policies=[Default(None)])
    tap.contains(str(raised(flyball.UsageError, flyball.sim.job, **MINI, policies="zeuss")), "did you mean 'zeus'")
    tap.contains(str(raised(flyball.Error, flyball.sim.job, **MINI, policies=type("zeus", (Default,), {"name": ""}))), "another policy")
    raised(flyball.Error, flyball.sim.job, **MINI, policies=type("X", (Default,), {"name": "no name"}))


def test_refusals():
    tap.contains(str(raised(flyball.NotFoundError, flyball.sim.job, TRACES, "none")), "summary_power_none.csv")
    tap.contains(str(raised(flyball.NotFoundError, flyball.sim.job, **MINI, jobs="cifar10")), "did you mean 'cifar100'")
    raised(flyball.UsageError, flyball.sim.job, **MINI, seeds=[1, 1])
    raised(flyball.UsageError, flyball.sim.job, **MINI, seeds=[-1])
    raised(flyball.UsageError, flyball.sim.job, **MINI, eta=2)
    raised(flyball.UsageError, flyball.sim.job, **MINI, drift="jumpy")
    raised(flyball.UsageError, flyball.sim.job, **MINI, transfer_from="eta=0.9")
    tap.contains(str(raised(flyball.UsageError, flyball.sim.job, **MINI, policies="bayes", transfer_from="shift=x")), "octaves")
    tap.contains(str(raised(flyball.UsageError, flyball.sim.job, **MINI, policies="bayes", transfer_from="nobody")), "a GPU or a job")
    raised(TypeError, flyball.sim.job, TRACES, 3)
    raised(ValueError, flyball.sim.job, **MINI, described=TRACES / "summary_train.csv")
    one = flyball.sim.read_jobs(CLICKS["described"])[0]
    tap.equal(one, ("ranker", "dlrm", "adam", 0.79, 20, 512, "clicks", (), None))
    error = raised(flyball.Error, flyball.sim.job, **MINI, jobs="ranker", described=[one._replace(untold="2 bounds")], in_order=True)
    tap.equal(error.code, "FLY_EUNSUPPORTED")
    tap.contains(str(error), "2 bounds")
    tap.contains(str(raised(flyball.NotFoundError, flyball.sim.pareto, **MINI, job="ranker")), "ranker")


def test_an_interrupt_ends_a_long_simulation():
    """The thread can only run, and the signal only be seen, where the simulation gives way to them."""
    for policies in ("zeus", Default):
        begun = threading.Event()

        def interrupt(begun=begun):
            begun.wait()
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        raised(KeyboardInterrupt, flyball.sim.job, **MINI, jobs="squad", policies=policies, recurrences=ENDLESS, bootstrap=0,
               progress=lambda done, total, begun=begun: begun.set())
        thread.join()


def test_progress():
    seen = []

    class Enough(Exception):
        pass

    def stop(done, total):
        seen.append((done, total))
        raise Enough

    raised(Enough, flyball.sim.job, **MINI, jobs="squad", seeds=[1], recurrences=ENDLESS, bootstrap=0, progress=stop)
    tap.equal(seen, [(0, 3)])


def test_an_interrupt_inside_a_policy_is_no_fault_of_it():
    def stop(*_):
        raise KeyboardInterrupt

    raised(KeyboardInterrupt, flyball.sim.job, **MINI, jobs="squad", policies=faulty("propose", stop), seeds=[1])


tap.main(globals())
