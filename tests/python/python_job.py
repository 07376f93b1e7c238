# SPDX-License-Identifier: Apache-2.0
"""What the Python package reads of jobs' logs, against the program's JSON of the same logs.

usage: python_job.py FLYBALL SOURCE_ROOT
"""

import datetime
import os
import pathlib
import pickle
import sys

import tap
from job_stores import BOX, CLEAN, STORE, document, fill

BUILD = pathlib.Path(sys.argv[1]).resolve().parent
PACKAGE = pathlib.Path(os.environ.get("FLYBALL_TEST_PYTHON", BUILD / "python"))
for name in [name for name in os.environ if name.startswith(("FLYBALL_", "XDG_"))]:
    del os.environ[name]
os.environ["HOME"] = CLEAN["HOME"]
sys.path.insert(0, str(PACKAGE))

import flyball  # noqa: E402  (the package of the build, which the lines above lead to)

fill(STORE, "digits", 60, "control=6", "noise=0.05")
fill(STORE, "words", 4)


def unix_s(date):
    """A date of the JSON, which has whole seconds or fractions of them."""
    return None if date is None else datetime.datetime.fromisoformat(date.replace("Z", "+00:00")).timestamp()


def same(read, told, name):
    """One figure of both, as numbers of two texts."""
    if isinstance(told, (int, float)) and isinstance(read, (int, float)):
        close = abs(read - told) <= 1e-9 * max(abs(read), abs(told))
    else:
        close = read == told
    if not close:
        raise AssertionError(f"{name}: {read!r} in Python, {told!r} in JSON")


def raised(kind, call, *arguments, **keywords):
    try:
        call(*arguments, **keywords)
    except Exception as error:  # which one is what the test asks
        tap.equal(type(error), kind, str(error))
        return error
    raise AssertionError(f"{kind.__name__} expected")


def test_history_is_that_of_the_program():
    for name in ("digits", "words"):
        job, told = flyball.job(name, STORE), document("history", name)["rows"]
        tap.equal(job.trials, len(told))
        for column, values in job.history.items():
            tap.equal(type(values), list)
            tap.equal(len(values), len(told), column)
            for read, row in zip(values, told):
                if column.endswith("_unix_s"):
                    moment = unix_s(row[column[: -len("_unix_s")]])
                    tap.equal((read is None, abs((read or 0) - (moment or 0)) < 1.001), (moment is None, True), column)
                else:
                    same(read, row[column], column)


def test_list_is_that_of_the_program():
    columns, told = flyball.jobs(STORE), document("list")["rows"]
    tap.equal(columns["job"], ["digits", "words"])
    for column in ("job", "policy", "recurrences", "trials", "running", "events"):
        tap.equal(columns[column], [row[column] for row in told], column)
    tap.equal(columns["trouble"], ["", ""])
    tap.equal([abs(made - unix_s(row["made"])) < 1.001 for made, row in zip(columns["made_unix_s"], told)], [True, True])


def test_savings_are_those_of_the_program():
    for name, known in (("digits", True), ("words", False)):
        job, told = flyball.job(name, STORE), document("show", name)
        tap.equal(len(job.savings), len(told["rows"]))
        for saving, row in zip(job.savings, told["rows"]):
            tap.equal((saving.known, saving.doubt == ""), (known, known))
            for figure, read in vars(saving).items():
                if figure + "_percent" in row:
                    row[figure] = row[figure + "_percent"] if row[figure + "_percent"] is None else row[figure + "_percent"] / 100
                base, _, part = figure.rpartition("_saving_")
                if base:
                    percent = row[f"{base}_saving_{part}_percent"]
                    same(read, None if percent is None else percent / 100, figure)
                elif figure.endswith("_unix_s"):
                    date = row[figure[: -len("_unix_s")]]
                    tap.equal((read is None, date is None or abs(read - unix_s(date)) < 1.001), (date is None, True), figure)
                elif figure not in ("known", "doubt", "paid_off"):
                    same(read, row[figure], figure)
            if not known:
                tap.equal((saving.energy_saving, saving.ahead_energy_j), (None, None))
                tap.equal(row["energy_saving_percent_unavailable"], saving.doubt)
        tap.equal((job.policy, job.recurrences, job.running), (told["policy"], told["recurrences"], told["running"]))
        tap.equal((job.objective, job.eta), (told["objective"]["kind"], told["objective"]["eta"]))


def test_pareto_is_that_of_the_program():
    for name in ("digits", "words"):
        frontier, told = flyball.job(name, STORE).pareto(), document("pareto", name, "--all")
        tap.equal(len(frontier.points["trials"]), len(told["rows"]))
        for column, values in frontier.points.items():
            for read, row in zip(values, told["rows"]):
                same(read, row[column], column)
        for mark in ("chosen", "default"):
            found, point = getattr(frontier, mark), told[mark]
            if found is None:
                tap.equal(point["time_s"], None)
                continue
            for key, value in point.items():
                if key in found:
                    same(found[key], value, f"{mark} {key}")
        tap.equal(frontier.left_out, {row["batch_size"]: row["reason"] for row in told["left_out_batch_sizes"]})
    raised(LookupError, flyball.job("digits", STORE).pareto, 7)


def test_why_is_that_of_the_program():
    job = flyball.job("digits", STORE)
    for trial in (1, 30, None):
        why, told = job.why(trial), document("why", "digits", *([str(trial)] if trial else []))
        for name in ("trial", "recurrence", "batch_size", "power_limit_w", "policy", "reason", "capped", "last_try", "numbers"):
            tap.equal(getattr(why, name), told[name], name)
        tap.equal((str(why), why.try_), (told["why"], told["try"]))
        tap.equal(abs(why.proposed_unix_s - unix_s(told["proposed"])) < 1.001, True)
    tap.contains(str(raised(flyball.NotFoundError, job.why, 10**6)), "its newest is")
    raised(LookupError, job.why, 0)


def test_misuse():
    unknown = raised(flyball.NotFoundError, flyball.job, "digit", STORE)
    tap.contains(str(unknown), "did you mean 'digits'?")
    tap.equal(unknown.code, "FLY_ENOTFOUND")
    raised(flyball.NotFoundError, flyball.jobs, BOX / "nowhere.sqlite")
    raised(flyball.UsageError, flyball.jobs, STORE, wait_s=-1)
    for wrong in (None, 3):
        raised(TypeError, flyball.job, wrong, STORE)


def test_without_a_store():
    tap.equal(flyball.jobs()["job"], [])
    raised(flyball.NotFoundError, flyball.job, "digits")
    os.environ["FLYBALL_STORE"] = str(STORE)
    tap.equal(flyball.job("digits").name, "digits")
    tap.equal(flyball.jobs()["job"], ["digits", "words"])
    del os.environ["FLYBALL_STORE"]


def test_an_empty_job():
    """A job of which nothing has run: no figure is made up."""
    store = BOX / "empty.sqlite"
    fill(store, "young", 0)
    job = flyball.job("young", store)
    tap.equal((job.trials, job.savings, set(map(len, job.history.values()))), (0, (), {0}))
    raised(LookupError, job.pareto)
    tap.equal(raised(flyball.Error, job.why).code, "FLY_EEXHAUSTED")
    job._repr_html_()


def test_notebooks():
    job = flyball.job("digits", STORE)
    for shown in (job, job.savings[0], job.pareto()):
        text = shown._repr_html_()
        tap.contains(text, "<table>")
        tap.equal(text.count("<tr>"), text.count("</tr>"))
        tap.equal(pickle.loads(pickle.dumps(shown)), shown)
    tap.contains(flyball.job("words", STORE).savings[0]._repr_html_(), "not yet known")
    tap.contains(str(job.savings[0]), "% less")
    tap.contains(repr(job), "60 recurrences")
    tap.equal(flyball.job("digits", STORE), job)


def test_nothing_else_is_imported():
    known = "sys.path.insert(0, sys.argv[1]); import flyball; flyball.job('digits', sys.argv[2])"
    code = f"import sys; {known}; print(sorted({{name.split('.')[0] for name in sys.modules}} & {{'numpy', 'pandas', 'polars', 'typing'}}))"
    done = tap.run([sys.executable, "-S", "-c", code, str(PACKAGE), str(STORE)])
    tap.equal((done.returncode, done.stdout, done.stderr), (0, "[]\n", ""))


def test_public_names_are_told():
    for name in ("job", "jobs", "Job", "Saving", "Frontier", "Why"):
        tap.equal(name in flyball.__all__, True, name)
        tap.equal(bool(getattr(flyball, name).__doc__), True, name)
    for kind, told in ((flyball.Saving, flyball.job("digits", STORE).savings[0]), (flyball.Job, flyball.job("digits", STORE))):
        tap.equal(sorted(vars(told)), sorted(kind.__annotations__), kind.__name__)


tap.main(globals())
