#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""search_tables.py [--seeds LIST] [--paired-seeds LIST] [--scenario-seeds LIST]: the tables of docs/explanation/search.md, on standard output.

Compares the searches on the jobs of the public traces (in FLYBALL_TEST_DATA, or ../shared/data)
and on synthetic jobs, with profile windows of 10 %, as `flyball sim compare` does it. BUILD_DIR
names the build directory. Takes some minutes.
"""
import argparse
import csv
import io
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLYBALL = pathlib.Path(os.environ.get("BUILD_DIR", "build")).resolve() / "flyball"
DATA = pathlib.Path(os.environ.get("FLYBALL_TEST_DATA") or ROOT.parent / "shared" / "data").resolve()
POLICIES = ("zeus", "bayes", "zeus-one-round", "hill-climb", "bandit")
KINDS = ("smooth", "noisy", "cliff", "bumpy", "flat", "far")
COURSES = ("steady", "shift", "jump", "sine", "level", "triple", "growth", "up-down", "burst-2", "burst-4", "burst-8",
           "memory", "crashes", "learning-rate", "bound-3", "bound-10")
PASTS = ("steady", "other-gpu", "other-gpu-2", "other-eta", "wrong-job", "wrong-up", "wrong-down")
WINDOWS = ("5", "10", "20")
LOSS = 0.15 # optimal runs, beyond two standard errors


def compare(*arguments):
    """Returns the rows, by (scenario, jobs, recurrences, policy), and the seconds of one core that it took."""
    begun = os.times().children_user
    result = subprocess.run([FLYBALL, "sim", "compare", "--quiet", "--format=csv", "--traces", DATA / "zeus_nsdi23",
                             "--profile-window=10%", *arguments], check=True, stdout=subprocess.PIPE, encoding="utf-8")
    rows = csv.DictReader(io.StringIO(result.stdout))
    return {(row["scenario"], row["jobs"], int(row["recurrences"]), row["policy"]): row for row in rows}, os.times().children_user - begun


def figure(row, key, decimals=2):
    return f"{float(row[key]):.{decimals}f}" if row[key] else "-"


def table(titles, lines):
    print("|", " | ".join(titles), "|")
    print("|", " | ".join("---" for _ in titles), "|")
    for line in lines:
        print("|", " | ".join(line), "|")
    print()


def steady_line(rows, jobs, policy):
    early, late = (rows["steady", jobs, recurrences, policy] for recurrences in (10, 50))
    ratio = "-"
    if late["regret_ratio"]:
        ratio = f"{figure(late, 'regret_ratio')} ({figure(late, 'regret_ratio_low')} .. {figure(late, 'regret_ratio_high')})"
    return (jobs, f"`{policy}`", figure(early, "regret_mean_optimal_runs"), figure(late, "regret_mean_optimal_runs"), ratio,
            figure(late, "regret_p99_optimal_runs", 1), figure(late, "regret_worst_optimal_runs", 1),
            f"{late['jobs_won']} of {late['job_count']}" if late["jobs_won"] else "-",
            figure(early, "cost_change_percent", 1), figure(late, "cost_change_percent", 1),
            figure(early, "dearest_job_cost_change_percent", 1), figure(late, "dearest_job_cost_change_percent", 1),
            figure(late, "near_default_jobs_percent", 0), figure(late, "dear_runs_percent", 1), late["ended_early_runs"])


def steady(seeds):
    rows, took_s = compare("--seeds", seeds, "--policy", ",".join(POLICIES), "--each")
    print(f"Jobs that do not change, seeds {seeds}, {took_s:.0f} s of one core:\n")
    table(("jobs", "policy", "regret after 10", "after 50", "ratio after 50", "p99", "worst", "jobs won", "score after 10 (%)",
           "after 50", "dearest job after 10 (%)", "after 50", "near default (%)", "dear (%)", "ended early"),
          [steady_line(rows, jobs, policy) for jobs in ("traces", "synthetic") for policy in (*POLICIES, "default")])
    print("Mean regret after 50 recurrences by kind:\n")
    table(("policy", *KINDS), [(f"`{policy}`", *(figure(rows["steady", kind, 50, policy], "regret_mean_optimal_runs") for kind in KINDS))
                               for policy in POLICIES])
    workloads = sorted({jobs.split(" on ")[0] for _, jobs, _, _ in rows if " on " in jobs and not jobs.endswith("synthetic")})
    print("Mean regret after 50 recurrences by job of the traces, mean over its GPUs:\n")
    table(("policy", *workloads), [(f"`{policy}`", *(f"{mean_of(rows, workload, policy):.2f}" for workload in workloads))
                                   for policy in POLICIES])


def mean_of(rows, workload, policy):
    regrets = [float(row["regret_mean_optimal_runs"]) for (_, jobs, recurrences, name), row in rows.items()
               if (recurrences, name) == (50, policy) and jobs.startswith(workload + " on ")]
    return sum(regrets) / len(regrets)


def losers(seeds):
    """Jobs that bayes loses: what its complexity has not earned."""
    lines = []
    for policy in POLICIES:
        if policy == "bayes":
            continue
        rows, _ = compare("--seeds", seeds, "--policy", f"bayes,{policy}", f"--against={policy}", "--each", "--horizons=50")
        for jobs in ("traces", "synthetic"):
            lost = [(float(row["worst_job_excess_optimal_runs"]), name) for (_, name, _, of), row in rows.items()
                    if of == "bayes" and " on " in name and (name.endswith("synthetic") == (jobs == "synthetic"))]
            lost = sorted((pair for pair in lost if pair[0] > LOSS), reverse=True)
            won = rows["steady", jobs, 50, "bayes"]
            lines.append((jobs, f"`{policy}`", figure(won, "regret_ratio"), f"{won['jobs_won']} of {won['job_count']}",
                          f"{len(lost)}", ", ".join(f"{name.removesuffix(' on synthetic')} {excess:.2f}" for excess, name in lost[:6]) or "-"))
    print(f"`bayes` against each of the others after 50 recurrences, seeds {seeds}; lost by more than {LOSS} beyond two standard errors:\n")
    table(("jobs", "against", "ratio", "jobs won", "jobs lost", "most lost, in optimal runs"), lines)


def courses(seeds):
    rows, took_s = compare("--seeds", seeds, "--scenario", ",".join(COURSES), "--horizons=100", "--policy=zeus,bayes,hill-climb,bandit")
    windows = {window: compare("--seeds", seeds, "--scenario", ",".join(COURSES), "--horizons=100", "--policy=zeus", f"--window={window}")[0]
               for window in WINDOWS}
    for jobs in ("traces", "synthetic"):
        lines = []
        for course in COURSES:
            at = {policy: rows[course, jobs, 100, policy] for policy in ("zeus", "bayes", "hill-climb", "bandit", "oracle")}
            best = min((windows[window][course, jobs, 100, "zeus"] for window in WINDOWS),
                       key=lambda row: float(row["regret_mean_optimal_runs"]))
            lines.append((f"`{course}`", *(f"{figure(row, 'regret_mean_optimal_runs')} ({figure(row, 'regret_p99_optimal_runs', 1)})"
                                           for row in (at["zeus"], best, at["bayes"], at["hill-climb"], at["bandit"])),
                          *(figure(at[policy], "cost_change_percent", 1) for policy in ("zeus", "bayes", "oracle")),
                          *(figure(at[policy], "dear_runs_percent", 1) for policy in ("zeus", "bayes")),
                          figure(at["bayes"], "beyond_bound_runs_percent", 1)))
        print(f"Courses, {jobs}, seeds {seeds}, after 100 recurrences, {took_s:.0f} s of one core for all: mean regret (p99)\n")
        table(("scenario", "`zeus`", "its best window", "`bayes`", "`hill-climb`", "`bandit`", "score (%): `zeus`", "`bayes`", "oracle",
               "dear (%): `zeus`", "`bayes`", "beyond (%): `bayes`"), lines)


def pasts(seeds):
    rows, _ = compare("--seeds", seeds, "--scenario", ",".join(PASTS), "--horizons=10,50", "--policy=zeus,bayes")
    print(f"What is brought, seeds {seeds}:\n")
    table(("scenario", "jobs", "regret after 10", "after 50", "p99", "worst", "relative to `zeus`", "energy after 10 (%)", "oracle's"),
          [(f"`{past}`", jobs, figure(rows[past, jobs, 10, "bayes"], "regret_mean_optimal_runs"),
            figure(rows[past, jobs, 50, "bayes"], "regret_mean_optimal_runs"), figure(rows[past, jobs, 50, "bayes"], "regret_p99_optimal_runs", 1),
            figure(rows[past, jobs, 50, "bayes"], "regret_worst_optimal_runs", 1), figure(rows[past, jobs, 50, "bayes"], "regret_ratio"),
            figure(rows[past, jobs, 10, "bayes"], "energy_change_percent", 1), figure(rows[past, jobs, 10, "oracle"], "energy_change_percent", 1))
           for past in PASTS for jobs in ("traces", "synthetic") if jobs == "traces" or not past.startswith("other-gpu")])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1-200", help="of jobs that do not change")
    parser.add_argument("--paired-seeds", default="1-50", help="of bayes against each of the others")
    parser.add_argument("--scenario-seeds", default="1-20", help="of the other scenarios")
    options = parser.parse_args()
    steady(options.seeds)
    losers(options.paired_seeds)
    pasts(options.scenario_seeds)
    courses(options.scenario_seeds)


if __name__ == "__main__":
    sys.exit(main())
