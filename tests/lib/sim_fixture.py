# SPDX-License-Identifier: Apache-2.0
"""A small trace for the tests of `flyball sim job`, and a directory of its own for every run.

The program under test is the first argument of the test.
"""
import json
import os
import pathlib
import sys
import tempfile

import tap
from sim_reference import JOBS  # noqa: F401, whose tests take them from here

FLYBALL = os.path.abspath(sys.argv[1])
WORK = tempfile.TemporaryDirectory(prefix="flyball-sim-job-")

# Nothing of the developer's own settings reaches the tests.
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("FLYBALL_", "XDG_", "NO_COLOR"))}
CLEAN["HOME"] = WORK.name

ALL_POLICIES = "zeus,default,grid,oracle"

# The small trace. Four sizes of cifar100 and three of squad, known jobs; "clicks" never reaches its target. A limit is
# missing at size 8, size 128 has no power rows, and 400 W belongs to a job that only the power file has.
RUNS = {
    ("cifar100", "shufflenetv2", "adadelta", "0.6"): {
        8: "9 11 10.5 nan", 16: "7 8 9 8", 32: "6 7 nan 6", 64: "12 11 13 200", 128: "20 21"},
    ("cifar100", "shufflenetv2", "adadelta", "0.5"): {8: "5 6", 16: "4 4", 32: "3 3", 64: "6 7"},
    ("squad", "bert_base_uncased", "adamw", "84.0"): {8: "2 6 2", 16: "3 6 4", 32: "5 6 5"},
    ("clicks", "dlrm", "adam", "0.79"): {256: "nan nan", 512: "nan 30", 1024: "nan"},
}
LIMITS = {"cifar100": (100, 150, 200, 250), "squad": (125.5, 175, 225.10000000000002, 300), "clicks": (100, 200)}


def train_text():
    lines = ["dataset,network,batch_size,optimizer,learning_rate,run,target_metric,target_epoch"]
    for (dataset, network, optimizer, target), sizes in RUNS.items():
        lines += [f"{dataset},{network},{size},{optimizer},0.01,{run},{target},{epochs}"
                  for size, runs in sizes.items() for run, epochs in enumerate(runs.split())]
    return "\n".join(lines) + "\n"


def power_text():
    lines = ["dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power",
             "cifar100,shufflenetv2,64,sgd,400,7.5,390"]
    for dataset, network, optimizer in dict.fromkeys(key[:3] for key in RUNS):
        for size in RUNS[next(key for key in RUNS if key[0] == dataset)]:
            for limit in LIMITS[dataset]:
                seconds = (3 + 90 / size) * (1 + 0.37 * (limit / 300 - 1) ** 2)
                watts = limit * (0.93 - 0.11 * limit / 300)
                if size != 128 and (size, limit) != (8, 250):
                    lines.append(f"{dataset},{network},{size},{optimizer},{limit},{seconds!r},{watts!r}")
    return "\n".join(lines) + "\n"


CLICKS = ("[ranker]\ndataset = clicks\nnetwork = dlrm\noptimizer = adam\ntarget_metric = 0.79\nmax_epochs = 20\n"
          "default_batch_size = 512\n")


class Sandbox:
    """A directory of its own with traces/ for the GPU "mini", jobs.ini and an empty out/."""

    def __init__(self, train=None, power=None, jobs=CLICKS):
        self.path = pathlib.Path(tempfile.mkdtemp(dir=WORK.name))
        self.traces, self.out = self.path / "traces", self.path / "out"
        self.traces.mkdir()
        self.out.mkdir()
        self.write("traces/summary_train.csv", train_text() if train is None else train)
        self.write("traces/summary_power_mini.csv", power_text() if power is None else power)
        self.write("jobs.ini", jobs)

    def write(self, name, text):
        (self.path / name).write_bytes(text if isinstance(text, bytes) else text.encode())

    @staticmethod
    def command(*arguments, gpu="mini", traces="traces"):
        return [FLYBALL, "sim", "job", f"--traces={traces}", f"--gpu={gpu}", *arguments]

    def run(self, *arguments, gpu="mini", traces="traces", **options):
        environment = {**CLEAN, **options.pop("environment", {})}
        return tap.run(self.command(*arguments, gpu=gpu, traces=traces), cwd=self.path, env=environment, **options)

    def simulate(self, *arguments, **options):
        """Runs it well; returns the JSON document and the text of the tries."""
        result = self.run("--format=json", "--tries=out/tries.csv", *arguments, **options)
        tap.equal(result.returncode, 0, result.stderr)
        return json.loads(result.stdout), (self.out / "tries.csv").read_text()

    def files(self):
        return sorted(path.name for path in self.out.iterdir())


def refuse(status, *words, arguments=(), train=None, power=None, jobs=CLICKS, settings="", drop=(),
           usual=("--tries=out/tries.csv", "--seeds=1-2"), **options):
    """Nothing but a message: the status, its words in order, nothing on stdout, no file.

    `drop` names files that are missing, `settings` is ./flyball.ini; `arguments` replace those that are usual.
    """
    box = Sandbox(train, power, jobs)
    box.write("flyball.ini", settings)
    for name in drop:
        (box.path / name).unlink()
    given = [argument.split("=")[0] for argument in arguments]
    result = box.run(*[option for option in usual if option.split("=")[0] not in given], *arguments, **options)
    lines = [line for line in result.stderr.splitlines() if not line.startswith("flyball: note: ")]
    tap.equal((result.returncode, result.stdout[:100], len(lines)), (status, "", 1), f"{arguments} {result.stderr}")
    tap.equal(lines[0].startswith("flyball: "), True, lines[0])
    at = 0
    for word in words:
        if word not in lines[0][at:]:
            raise AssertionError(f"expected {word!r} behind column {at} of {lines[0]!r}")
        at = lines[0].index(word, at)
    tap.equal(box.files(), [], "files left behind")


def cell(text, line, column, value):
    """The text with another value in one cell; lines count from 1."""
    lines = text.splitlines()
    fields = lines[line - 1].split(",")
    fields[lines[0].split(",").index(column)] = value
    lines[line - 1] = ",".join(fields)
    return "\n".join(lines) + "\n"


def line_at(text, number, change):
    """The text with one of its lines changed."""
    lines = text.splitlines()
    lines[number - 1] = change(lines[number - 1])
    return "\n".join(lines) + "\n"
