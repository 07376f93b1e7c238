# SPDX-License-Identifier: Apache-2.0
"""What `flyball sim job` must say, worked out a second time from the trace files and the tries.

Written from the description of the figures, not from the program's source, and
with other means where there are any: exact sums (fsum), the statistics module,
and the optimum by the renewal argument (cost of a try / chance that it is the last).
"""
import csv
import math
import statistics
from collections import Counter, defaultdict

TRIES_COLUMNS = ["gpu", "dataset", "policy", "seed", "recurrence", "try", "batch_size", "power_limit_w",
                 "reached", "energy_j", "time_s", "cost_j"]
TAIL = 5
FIGURES = [f"{span}_{what}_change_percent" for span in ("last_five", "whole_run")
           for what in ("energy", "time", "cost")] + ["regret_optimal_runs", "paid_off_after_recurrences", "tries"]


JOBS = {  # Job's arguments behind the traces and the GPU
    "cifar100": ("cifar100", "shufflenetv2", "adadelta", 0.6, 100, 1024),
    "imagenet": ("imagenet", "resnet50", "adadelta", 0.65, 100, 256),
    "squad": ("squad", "bert_base_uncased", "adamw", 84.0, 6, 32),
    "librispeech": ("librispeech", "deepspeech2", "adamw", 40.0, 16, 256),
    "movielens-1m": ("movielens-1m", "ncf", "adam", 0.41, 100, 1024),
    "sentiment140": ("sentiment140", "bert_base_uncased", "adamw", 0.84, 10, 128),
}


class Job:
    """A recurring job as its rows in the two files tell it."""

    def __init__(self, traces, gpu, dataset, network, optimizer, target, max_epochs, default, sizes=None):
        key = (dataset, network, optimizer)
        trained = read(traces / "summary_train.csv")
        powered = read(traces / f"summary_power_{gpu}.csv")
        joined = {(row_key(row), row["batch_size"]) for row in trained}
        self.max_power = max(float(row["power_limit"]) for row in powered
                             if (row_key(row), row["batch_size"]) in joined)
        self.max_epochs = max_epochs
        self.points = defaultdict(dict)  # batch size -> limit -> (seconds, watts) of an epoch
        for row in powered:
            if row_key(row) == key:
                self.points[int(row["batch_size"])][float(row["power_limit"])] = (
                    float(row["time_per_epoch"]), float(row["average_power"]))
        self.epochs = defaultdict(list)  # batch size -> epochs to the target of each recorded run, NaN for never
        for row in trained:
            if row_key(row) == key and float(row["target_metric"]) == target:
                self.epochs[int(row["batch_size"])].append(float(row["target_epoch"] or "nan"))
        self.sizes = sorted(size for size in self.epochs if size in self.points and (not sizes or size in sizes))
        self.default = min(default, max(int(row["batch_size"]) for row in powered if row["dataset"] == dataset))
        self.recurrences = 2 * len(self.sizes) * len({limit for size in self.sizes for limit in self.points[size]})

    def reaching(self, size):
        return [epochs for epochs in self.epochs[size] if epochs <= self.max_epochs]

    def optimum(self, eta):
        """(cost, batch size, limit) of least expected cost, or None when no run ever reaches the target."""
        best = None
        for size in self.sizes:
            runs, reaching = len(self.epochs[size]), self.reaching(size)
            if not reaching:
                continue
            per_try = math.fsum(reaching + [self.max_epochs] * (runs - len(reaching))) / runs
            for limit, (seconds, watts) in sorted(self.points[size].items()):
                epoch = eta * seconds * watts + (1 - eta) * self.max_power * seconds
                cost = epoch * per_try / (len(reaching) / runs)
                if best is None or cost < best[0]:
                    best = (cost, size, limit)
        return best


def read(path):
    with open(path, newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def row_key(row):
    return row["dataset"], row["network"], row["optimizer"]


def read_tries(path):
    """(dataset, policy, seed) -> its rows, in order; numbers are numbers."""
    runs = defaultdict(list)
    for row in read(path):
        for name in TRIES_COLUMNS[3:7] + ["reached"]:
            row[name] = int(row[name])
        for name in ("power_limit_w", "energy_j", "time_s", "cost_j"):
            row[name] = float(row[name])
        runs[row["dataset"], row["policy"], row["seed"]].append(row)
    return runs


def recurrences_of(rows):
    """(energy, time, cost) of every recurrence that reached its target, over all of its tries."""
    tries = defaultdict(list)
    for row in rows:
        tries[row["recurrence"]].append(row)
    return [tuple(math.fsum(row[name] for row in group) for name in ("energy_j", "time_s", "cost_j"))
            for _, group in sorted(tries.items()) if group[-1]["reached"]]


def change_percent(ours, theirs, index):
    return (math.fsum(r[index] for r in ours) / math.fsum(r[index] for r in theirs) - 1) * 100


def paid_off(ours, theirs):
    """The first n such that the total cost is below the default's after n and every later recurrence, or None."""
    total, first = 0.0, None
    for n, (our, their) in enumerate(zip(ours, theirs), start=1):
        total += our[2] - their[2]
        first = None if total >= 0 else first or n
    return first


def figures(rows, default_rows, count, optimum):
    """Every figure of one run; None for what is not known. `count`: recurrences asked for."""
    ours, theirs = recurrences_of(rows), recurrences_of(default_rows)
    if len(ours) < count or len(theirs) < count:
        return dict.fromkeys(FIGURES)
    known = {}
    for span, begin in (("last_five", -TAIL), ("whole_run", 0)):
        for index, what in enumerate(("energy", "time", "cost")):
            known[f"{span}_{what}_change_percent"] = change_percent(ours[begin:], theirs[begin:], index)
    known["regret_optimal_runs"] = optimum and math.fsum((run[2] - optimum[0]) / optimum[0] for run in ours)
    known["paid_off_after_recurrences"] = paid_off(ours, theirs)
    known["tries"] = len(rows)
    return known


def quantile(values, share):
    values, at = sorted(values), (len(values) - 1) * share
    low = math.floor(at)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (at - low)


def spread(values):
    values = [value for value in values if value is not None]
    return {
        "mean": statistics.fmean(values) if values else None,
        "standard_error": statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None,
        "p10": quantile(values, 0.1) if values else None,
        "p90": quantile(values, 0.9) if values else None,
    }


def summary(job, runs, dataset, policy, seeds, eta, count=None):
    """The row of the report for one job and policy, as far as the tries and the traces give it."""
    count = count or job.recurrences
    optimum = job.optimum(eta)
    of_seed = [figures(runs[dataset, policy, seed], runs[dataset, "default", seed], count, optimum) for seed in seeds]
    row = {f"{figure}_{name}": value for figure in FIGURES
           for name, value in spread([known[figure] for known in of_seed]).items()}
    last = [next(try_ for try_ in reversed(runs[dataset, policy, seed]) if try_["reached"]) for seed in seeds
            if any(try_["reached"] for try_ in runs[dataset, policy, seed])]
    choices = Counter((try_["batch_size"], try_["power_limit_w"]) for try_ in last).most_common(1)
    (size, limit), chosen = choices[0] if choices else ((None, None), 0)
    row.update(seeds=len(seeds), recurrences=count, default_batch_size=job.default,
               default_power_limit_w=max(job.points[job.default]),
               completed_runs=sum(known["tries"] is not None for known in of_seed),
               paid_off_runs=sum(known["paid_off_after_recurrences"] is not None for known in of_seed),
               chosen_batch_size=size, chosen_power_limit_w=limit, chosen_runs=chosen)
    row.update(zip(("optimum_cost_j", "optimum_batch_size", "optimum_power_limit_w"), optimum or (None,) * 3))
    return row


def differences(expected, actual):
    """Names whose values differ; percentages near 0 have lost digits, so 1e-9 is absolute there."""
    return [f"{name}: expected {value!r}, found {actual.get(name)!r}" for name, value in expected.items()
            if not (value is None and actual.get(name, 0) is None) and not
            (value is not None and actual.get(name) is not None and
             math.isclose(value, actual[name], rel_tol=1e-9, abs_tol=1e-9))]


def check_order(rows):
    """Tries count through the job; a recurrence ends with the first try that reaches the target."""
    recurrence = 0
    for number, row in enumerate(rows):
        if (row["try"], row["recurrence"]) != (number, recurrence):
            return f"expected recurrence {recurrence}, try {number}; found {row}"
        recurrence += row["reached"]
    return None


def check_default(job, rows):
    knobs = (job.default, max(job.points[job.default]))
    wrong = [row for row in rows if (row["batch_size"], row["power_limit_w"]) != knobs]
    return f"expected batch size and limit {knobs}; found {wrong[0]}" if wrong else None


def check_grid(job, rows):
    """Each (batch size, limit) once, ascending; a batch size goes at its first failure; then the least cost seen."""
    unseen = [(size, limit) for size in job.sizes for limit in sorted(job.points[size])]
    seen = {}  # of the batch sizes that never failed
    for row in rows:
        found = (row["batch_size"], row["power_limit_w"])
        expected = unseen.pop(0) if unseen else min(seen, key=lambda knobs: (seen[knobs], knobs))
        if found != expected:
            return f"expected batch size and limit {expected}; found {row}"
        if row["reached"]:
            seen[found] = min(seen.get(found, math.inf), row["cost_j"])
        else:
            unseen = [knobs for knobs in unseen if knobs[0] != found[0]]
            seen = {knobs: cost for knobs, cost in seen.items() if knobs[0] != found[0]}
    return None


def check_unprofiled(job, eta, rows):
    """Without profiling and early stopping a try is a whole number of recorded epochs at its knobs."""
    for row in rows:
        seconds, watts = job.points[row["batch_size"]][row["power_limit_w"]]
        lengths = job.reaching(row["batch_size"]) if row["reached"] else [job.max_epochs]
        cost = eta * row["energy_j"] + (1 - eta) * job.max_power * row["time_s"]
        if not (any(math.isclose(row["time_s"], seconds * n, rel_tol=1e-12) and
                    math.isclose(row["energy_j"], seconds * watts * n, rel_tol=1e-12) for n in lengths)
                and math.isclose(row["cost_j"], cost, rel_tol=1e-12)):
            return f"expected one of {lengths} epochs of {seconds} s and {watts} W; found {row}"
    return None


def check_shared_luck(job, runs_of_policies):
    """First tries of the same recurrence with the same batch size take the same epochs, whatever the policy."""
    lengths = {}
    for rows in runs_of_policies:
        for before, row in zip([None] + rows, rows):
            if before and not before["reached"]:
                continue
            epochs = row["time_s"] / job.points[row["batch_size"]][row["power_limit_w"]][0]
            first = lengths.setdefault((row["recurrence"], row["batch_size"]), epochs)
            if not math.isclose(first, epochs, rel_tol=1e-9):
                return f"expected {first} epochs as another policy's; found {row}"
    return None
