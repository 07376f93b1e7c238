# SPDX-License-Identifier: Apache-2.0
"""Metrics by name: the start-up hook with stand-ins for Hugging Face's and Lightning's Trainer, by their documented callbacks.

usage: python_hook_metrics.py FLYBALL SOURCE_ROOT
"""

import json
import os
import pathlib
import re
import sys
import tempfile

import tap

FLYBALL = pathlib.Path(sys.argv[1]).resolve()
HOOK = pathlib.Path(sys.argv[2]).resolve() / "python" / "hook"
WORK = tempfile.TemporaryDirectory(prefix="flyball-metrics-")
HOME = pathlib.Path(WORK.name)
PACKAGES = HOME / "packages"
LINES = HOME / "lines"
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("FLYBALL_", "LD_LIBRARY", "PYTHON", "SLURM", "PMI", "OMPI", "RANK", "XDG_"))}
CLEAN.update(HOME=str(HOME), XDG_RUNTIME_DIR=str(HOME), PYTHONDONTWRITEBYTECODE="1")

# The order of events is that of the real ones: a step, at times an evaluation, then what is saved.
TRANSFORMERS = '''
import types


class TrainerCallback:
    def on_log(self, args, state, control, **kwargs): pass
    def on_step_begin(self, args, state, control, **kwargs): pass


class Trainer:
    def __init__(self, metrics=(), callbacks=None, history=()):
        self.callbacks = list(callbacks or [])
        self.metrics = list(metrics)
        self.state = types.SimpleNamespace(global_step=max([entry["step"] for entry in history], default=0), log_history=list(history))

    def add_callback(self, callback):
        self.callbacks.append(callback)

    def call(self, event, **kwargs):
        for callback in self.callbacks:
            getattr(callback, event)(None, self.state, None, model=None, **kwargs)

    def log(self, logs):
        self.state.log_history.append({**logs, "step": self.state.global_step})
        self.call("on_log", logs=logs)

    def evaluate(self, value):
        self.log({"eval_accuracy": value, "eval_loss": 1 - value})

    def train(self):
        for value in self.metrics:
            for _ in range(2):
                self.call("on_step_begin")
                self.state.global_step += 1
            self.log({"loss": 0.5})
            self.evaluate(value)
            print("saved", self.state.global_step, flush=True)
'''

LIGHTNING = '''
from PACKAGE.callbacks import Callback


class Trainer:
    def __init__(self, *, metrics=(), where="validation", callbacks=None, epoch=0):
        self.callbacks = list(callbacks or [])
        self.metrics, self.where = list(metrics), where
        self.callback_metrics, self.current_epoch, self.sanity_checking = {}, epoch, False

    def call(self, event, *args):
        for callback in self.callbacks:
            getattr(callback, event)(self, None, *args)

    def fit(self):
        self.sanity_checking = True
        if self.where == "validation":
            self.callback_metrics["accuracy"] = 0.01
        self.call("on_validation_end")
        self.sanity_checking, self.callback_metrics = False, {}
        for value in self.metrics:
            for batch in range(2):
                self.call("on_train_batch_start", None, batch)
            if self.where == "validation":
                self.callback_metrics["accuracy"] = value
            self.call("on_validation_end")
            self.callback_metrics["accuracy"] = value
            self.call("on_train_epoch_end")
            self.current_epoch += 1
'''
CALLBACK = "class Callback:\n" + "".join(f"    def {name}(self, trainer, pl_module, *args): pass\n"
                                        for name in ("on_validation_end", "on_train_epoch_end", "on_train_batch_start"))


def make(path, text):
    path = PACKAGES / path
    path.parent.mkdir(parents=True, exist_ok=True)
    for directory in list(path.parents)[:-1]:
        if directory.is_relative_to(PACKAGES) and directory != PACKAGES:
            (directory / "__init__.py").touch()
    path.write_text(text)


make("transformers/trainer.py", TRANSFORMERS)
for package in ("lightning/pytorch", "pytorch_lightning"):
    make(f"{package}/callbacks.py", CALLBACK)
    make(f"{package}/trainer/trainer.py", LIGHTNING.replace("PACKAGE", package.replace("/", ".")))


def reports(script, name="eval_accuracy", **environment):
    LINES.write_bytes(b"")
    facts = LINES.stat()
    environment = {"PYTHONPATH": f"{HOOK}:{PACKAGES}", "FLYBALL_STEPS": f"{LINES}:{facts.st_dev}:{facts.st_ino}", "FLYBALL_METRIC_NAME": name, **environment}
    done = tap.run([sys.executable, "-c", script], env={**CLEAN, **environment}, cwd=HOME)
    tap.equal((done.returncode, done.stderr), (0, ""))
    lines = [re.sub(r"pid \d+ ", "", line) for line in LINES.read_text().splitlines()]
    return [line for line in lines if "saw python" not in line]


FACE = "from transformers.trainer import Trainer\n"


def test_hugging_face():
    tap.equal(reports(FACE + "Trainer([0.3, 0.5, 0.25]).train()"), [f"hook epoch {n} metric {value}" for n, value in ((1, 0.3), (2, 0.5), (3, 0.25))])


def test_reported_after_it_was_saved():
    """At the begin of the next step; the last one as the program ends, after what the program does last."""
    script = FACE + ("import os\npath = os.environ['FLYBALL_STEPS'].rsplit(':', 2)[0]\ntrainer = Trainer([0.3, 0.5])\n"
                     "said = lambda: open(path).read().count('metric')\n"
                     "class Looks:\n    def on_log(self, *a, **k): assert said() == max(0, trainer.state.global_step // 2 - 1), said()\n"
                     "    def on_step_begin(self, *a, **k): pass\n"
                     "trainer.callbacks.insert(0, Looks())\ntrainer.train()\nassert said() == 1\n")
    tap.equal(len(reports(script)), 2)


def test_resumed():
    """The number goes on from the history of the checkpoint; an evaluation of the same step is the same report."""
    history = [{"eval_accuracy": 0.1, "step": 2}, {"loss": 1, "step": 2}, {"eval_accuracy": 0.2, "step": 4}]
    tap.equal(reports(FACE + f"Trainer([0.3], history={history}).train()"), ["hook epoch 3 metric 0.3"])
    tap.equal(reports(FACE + "t = Trainer([0.3])\nt.evaluate(0.01)\nt.train()\nt.evaluate(0.3)\nt.evaluate(0.3)"), ["hook epoch 1 metric 0.3"])


def test_another_name():
    tap.equal(reports(FACE + "Trainer([0.3]).train()", "accuracy"), ["hook failed no metric 'accuracy' was logged, but eval_accuracy, eval_loss, loss"])
    tap.equal(reports(FACE + "Trainer([0.3]).train()", ""), [])
    tap.equal(reports(FACE + "Trainer([float('nan'), float('inf')]).train()"), ["hook epoch 1 metric nan", "hook epoch 2 metric nan"])


def test_a_failure():
    """A trainer unlike the known ones goes on, and the failure is told."""
    lines = reports(FACE + "t = Trainer([0.3])\ndel t.state.log_history\nt.log = lambda logs: t.call('on_log', logs=logs)\nt.train()")
    tap.equal((len(lines), lines[0].startswith("hook failed AttributeError: ")), (1, True), lines)
    lines = reports(FACE + "class Other(Trainer):\n    add_callback = None\nOther([0.3]).train()")
    tap.equal((len(lines), lines[0].startswith("hook failed TypeError: ")), (1, True), lines)


def test_lightning():
    for package in ("lightning.pytorch", "pytorch_lightning"):
        for where in ("validation", "epoch"):
            script = f"from {package}.trainer.trainer import Trainer\nTrainer(metrics=[0.3, 0.5], where='{where}', epoch=%d).fit()"
            tap.equal(reports(script % 0, "accuracy"), ["hook epoch 1 metric 0.3", "hook epoch 2 metric 0.5"], f"{package} {where}")
            tap.equal(reports(script % 4, "accuracy"), ["hook epoch 5 metric 0.3", "hook epoch 6 metric 0.5"], f"{package} {where}, resumed")


def flyball(*options, script=FACE + "Trainer([0.3, 0.9, 0.95]).train()"):
    output = HOME / "report.json"
    output.unlink(missing_ok=True)
    job = ["--store", str(HOME / "jobs.db"), "--batch-sizes", "8,16", "--default-batch-size", "8", "--max-epochs", "9", "--target-metric", "0.8"]
    where = ["--nvml", str(HOME / "none.so"), "--amdsmi", str(HOME / "none.so"), "--sysfs-root", str(HOME / "root")]
    done = tap.run([str(FLYBALL), "run", "--job", "named", *job, *options, *where, "--output", str(output), "--", sys.executable, "-c", script],
                   env={**CLEAN, "PYTHONPATH": str(PACKAGES)}, cwd=HOME)
    return done, json.loads(output.read_text())["recurrence"] if output.exists() else None


def test_jobs():
    done, said = flyball("--metric-name", "eval_accuracy")
    tap.equal([(attempt["end"], attempt["metric"], attempt["epochs"]) for attempt in said["tries"]], [("reached", 0.9, 2)], done.stderr)
    done, said = flyball("--metric-name", "accuracy")
    tap.equal([attempt["end"] for attempt in said["tries"]], ["silent"], done.stderr)
    tap.contains(said["hook"], "no metric 'accuracy' was logged, but eval_accuracy, eval_loss, loss")
    for options, said in ((["--metric-name", "a", "--metric-regex", "(x)"], "--metric-name does not go with --metric-regex"),
                          (["--metric-name", "a", "--no-hook"], "--metric-name does not go with --no-hook")):
        done, _ = flyball(*options)
        tap.equal((done.returncode, said in done.stderr), (64, True), done.stderr)
    done = tap.run([str(FLYBALL), "run", "--metric-name", "a", "--", "true"], env=CLEAN)
    tap.equal((done.returncode, "--metric-name is about --job" in done.stderr), (64, True), done.stderr)


tap.main(globals())
