# SPDX-License-Identifier: Apache-2.0
"""cli_sim_compare.py FLYBALL ROOT: policies side by side, from the command line."""
import csv
import io
import json
import math
import os
import pathlib
import sys
import tempfile

import tap
from sim_fixture import Sandbox

FLYBALL, ROOT = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
CLIMB = FLYBALL.parent / "examples" / "policy_plugin.so"
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("FLYBALL_")}
SMALL = ("--synthetic=smooth,flat", "--synthetic-jobs=2", "--seeds=1-3", "--horizons=10,4")


def compare(directory, *arguments):
    return tap.run([FLYBALL, "sim", "compare", "--quiet", *map(str, arguments)], cwd=directory, env=ENVIRONMENT)


def rows_of(directory, *arguments):
    result = compare(directory, "--format=json", *arguments)
    tap.equal((result.returncode, result.stderr), (0, ""))
    document = json.loads(result.stdout)
    tap.equal(document["schema"], "flyball.sim.compare/1")
    return document["rows"], document["settings"]


def test_rows_and_figures():
    """Against the tries, from which every total can be added up again."""
    with tempfile.TemporaryDirectory() as name:
        rows, settings = rows_of(name, *SMALL, "--policy=zeus,grid,default", "--tries=tries.csv")
        tap.equal(list(dict.fromkeys(row["jobs"] for row in rows)), ["synthetic", "smooth", "flat"])
        tap.equal(list(dict.fromkeys(row["recurrences"] for row in rows)), [4, 10])
        tap.equal(list(dict.fromkeys(row["policy"] for row in rows)), ["zeus", "grid", "default", "oracle"])
        tap.equal((settings["seeds"], settings["profile_window_share"]), ("1-3", 1.0))
        with open(f"{name}/tries.csv", newline="", encoding="utf-8") as file:
            tries = list(csv.DictReader(file))
    for horizon in (4, 10):
        totals = {}
        for row in tries:
            if int(row["recurrence"]) < horizon:
                key = row["dataset"], row["policy"]
                totals[key] = totals.get(key, 0.0) + float(row["energy_j"])
        for policy in ("zeus", "grid"):
            jobs = [job for job, other in totals if other == policy]
            ratio = math.prod(totals[job, policy] / totals[job, "default"] for job in jobs) ** (1 / len(jobs))
            found = next(row for row in rows if (row["jobs"], row["recurrences"], row["policy"]) == ("synthetic", horizon, policy))
            tap.equal((len(jobs), found["job_count"], found["runs"], found["ended_early_runs"]), (4, 4, 12, 0))
            tap.equal(abs(found["energy_change_percent"] - 100.0 * (ratio - 1.0)) < 1e-9, True, f"{found} {ratio}")


def test_the_policy_compared_with():
    with tempfile.TemporaryDirectory() as name:
        rows, _ = rows_of(name, *SMALL, "--policy=zeus,grid", "--against=grid")
        for row in rows:
            tap.equal(row["against"], "grid")
            if row["policy"] == "grid":
                tap.equal((row["regret_ratio"], row["jobs_won"], row["worst_job"]), (None, None, None))
                tap.contains(row["regret_ratio_unavailable"], "compared with")
        both = {row["policy"]: row for row in rows if (row["jobs"], row["recurrences"]) == ("synthetic", 10)}
        ratio = both["zeus"]["regret_mean_optimal_runs"] / both["grid"]["regret_mean_optimal_runs"]
        tap.equal(abs(both["zeus"]["regret_ratio"] - ratio) < 1e-12, True)
        tap.equal(abs(both["default"]["cost_change_percent"]) < 1e-9, True)
        tap.equal(abs(both["oracle"]["regret_mean_optimal_runs"]) < 2.0, True)


def test_traces_on_their_gpus():
    """All GPUs of the directory, and each job by itself."""
    box = Sandbox()
    (box.traces / "summary_power_maxi.csv").write_bytes((box.traces / "summary_power_mini.csv").read_bytes())
    arguments = ("--traces=traces", "--synthetic-jobs=0", "--seeds=1-2", "--horizons=3", "--each", "--policy=zeus")
    rows, _ = rows_of(box.path, *arguments)
    tap.equal(list(dict.fromkeys(row["jobs"] for row in rows)),
              ["traces", "cifar100 on maxi", "squad on maxi", "cifar100 on mini", "squad on mini"])
    of_all = [row for row in rows if row["jobs"] == "traces"]
    tap.equal([row["job_count"] for row in of_all], [4] * 3)
    by_job = {row["jobs"]: row["regret_mean_optimal_runs"] for row in rows if row["policy"] == "default"}
    tap.equal(by_job["squad on maxi"], by_job["squad on mini"]) # the same file, and the same luck
    tap.equal(abs(by_job.pop("traces") - sum(by_job.values()) / 4) < 1e-9, True)
    rows, _ = rows_of(box.path, *arguments, "--gpu=mini", "--workload=squad")
    tap.equal([row["job_count"] for row in rows if row["jobs"] == "traces"], [1] * 3)


def test_a_default_that_fails():
    """The job is named and left out, and the figures of the others are as without it."""
    box, others = Sandbox(), Sandbox()
    lines = [line.split(",") for line in (box.traces / "summary_train.csv").read_text().splitlines()]
    box.write("traces/summary_train.csv", "".join(
        ",".join([*line[:-1], "nan"] if (line[0], line[2]) == ("squad", "32") else line) + "\n" for line in lines))
    arguments = ("--traces=traces", "--synthetic-jobs=0", "--seeds=1-2", "--horizons=3", "--policy=zeus")
    result = compare(box.path, "--format=json", *arguments)
    tap.equal((result.returncode, result.stderr),
              (0, "flyball: warning: squad on mini is left out: its default batch size never reaches the target\n"))
    rows, _ = rows_of(others.path, *arguments, "--workload=cifar100")
    tap.equal(json.loads(result.stdout)["rows"], rows)
    result = compare(box.path, *arguments, "--workload=squad")
    tap.equal(result.returncode != 0, True)
    tap.contains(result.stderr, "the default batch size of squad on mini, and of every other job, never reaches the target")


def test_formats_and_threads():
    with tempfile.TemporaryDirectory() as name:
        first = compare(name, *SMALL, "--format=csv", "--threads=1")
        tap.equal(compare(name, *SMALL, "--format=csv", "--threads=3").stdout, first.stdout)
        rows = list(csv.DictReader(io.StringIO(first.stdout)))
        tap.equal({row["schema"] for row in rows}, {"flyball.sim.compare/1"})
        tap.equal({row["scenario"] for row in rows}, {"steady"})
        table = compare(name, *SMALL, "--profile-window=10%").stdout
        for text in ("4 jobs x 3 seeds x 10 recurrences", "against zeus", "takes 10 % of a batch size", "synthetic", "oracle"):
            tap.contains(table, text)


def test_scenarios():
    """Rows of their own, in which the optimum follows what happens; the default is never dear."""
    with tempfile.TemporaryDirectory() as name:
        rows, _ = rows_of(name, *SMALL, "--policy=zeus,bayes,hill-climb,zeus-one-round,bandit", "--scenario=all")
        of_all = [row for row in rows if (row["jobs"], row["recurrences"]) == ("synthetic", 10)]
        scenarios = list(dict.fromkeys(row["scenario"] for row in rows))
        tap.equal((scenarios[0], len(scenarios), len(of_all)), ("steady", 22, 22 * 7))
        for row in of_all:
            if row["policy"] == "default":
                tap.equal((row["dear_runs_percent"], row["near_default_jobs_percent"], row["ended_early_runs"]), (0.0, 100.0, 0))
            if row["policy"] == "zeus" and row["scenario"].startswith(("other", "wrong")): # it brings nothing
                alike = next(other for other in of_all if (other["policy"], other["scenario"]) == ("zeus", "steady"))
                tap.equal({**row, "scenario": "steady"}, alike)
            tap.equal(row["beyond_bound_runs_percent"] is None, not row["scenario"].startswith("bound"))
            if row["policy"] == "oracle":
                tap.equal(row["beyond_bound_runs_percent"] in (None, 0.0), True)
                tap.equal(abs(row["regret_mean_optimal_runs"]) < 2.0, True, row)
        steady, _ = rows_of(name, *SMALL, "--policy=zeus,bayes,hill-climb,zeus-one-round,bandit")
        tap.equal(steady, [row for row in rows if row["scenario"] == "steady"])
        table = compare(name, *SMALL, "--scenario=growth,burst-8").stdout
        tap.equal([scenario in table for scenario in ("growth", "burst-8", "steady")], [True, True, False])


def test_picture():
    """Three panels for each scenario and kind of jobs; the table stays as it is without it."""
    with tempfile.TemporaryDirectory() as name:
        arguments = (*SMALL, "--policy=zeus,bayes", "--scenario=steady,level")
        table = compare(name, *arguments)
        tap.equal(compare(name, *arguments, "--svg=page.svg").stdout, table.stdout)
        page = pathlib.Path(name, "page.svg").read_text(encoding="utf-8")
        for scenario in ("steady", "level"):
            for panel in ("regret so far", "regret of each job", "regret of the worst runs"):
                tap.equal(page.count(f"{scenario}, synthetic jobs: {panel}"), 1)
        compare(name, *arguments, "--svg=again.svg", "--threads=1")
        tap.equal(pathlib.Path(name, "again.svg").read_text(encoding="utf-8"), page)
        tap.equal("nan" in page, False)


def test_searches_that_end_early_are_charged():
    """With beta 1.01 the published search stops every run: it pays the default's costs from there on."""
    with tempfile.TemporaryDirectory() as name:
        rows, _ = rows_of(name, "--synthetic=noisy", "--synthetic-jobs=3", "--seeds=1-5", "--horizons=30", "--beta=1.01")
        zeus = next(row for row in rows if row["policy"] == "zeus")
        tap.equal((zeus["ended_early_runs"] > 0, zeus["runs"]), (True, 15))
        tap.equal(zeus["regret_mean_optimal_runs"] > 0.0, True)
        tap.equal(zeus["dear_runs_percent"] > 0.0, True)


def test_plugin_is_judged():
    with tempfile.TemporaryDirectory() as name:
        rows, _ = rows_of(name, *SMALL, f"--policy=zeus,{CLIMB}")
        climb = next(row for row in rows if row["policy"] == "climb")
        tap.equal(0.0 <= climb["runs_won_percent"] <= 100.0, True)


def test_quick_needs_nothing():
    with tempfile.TemporaryDirectory() as name:
        rows, settings = rows_of(name, "--quick")
        tap.equal((settings["seeds"], settings["traces"]), ("1-20", None))
        tap.equal([row["job_count"] for row in rows][:1], [24])
        tap.equal(list(dict.fromkeys(row["recurrences"] for row in rows)), [10, 50])


def test_refusals():
    with tempfile.TemporaryDirectory() as name:
        for arguments, text in ((["--profile-window=0%"], "above 0% and up to 100%"),
                                (["--profile-window=100.1%"], "above 0% and up to 100%"),
                                (["--profile-window=0.1"], "above 0% and up to 100%"),
                                (["--profile-window=%"], "above 0% and up to 100%"),
                                (["--against=nobody"], "one of the policies that --policy compares"),
                                (["--gpu=v100"], "--traces DIR"),
                                (["--synthetic-jobs=0"], "no jobs"),
                                (["--synthetic=rough"], "smooth"),
                                (["--horizons=0,5"], "--horizons"),
                                (["--scenario=steady,all"], "stands for every one"),
                                (["--scenario=steady,jump", "--tries=tries.csv"], "name one with --scenario"),
                                (["--scenario=storm"], "steady"),
                                (["--traces=nowhere"], "nowhere")):
            result = compare(name, "--seeds=1", "--horizons=2", *arguments)
            tap.equal((result.returncode != 0, result.stdout), (True, ""), arguments)
            tap.contains(result.stderr, text)


if __name__ == "__main__":
    tap.main(globals())
