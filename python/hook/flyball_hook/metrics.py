# SPDX-License-Identifier: Apache-2.0
"""Reports a metric that Hugging Face's or Lightning's Trainer logs, by its name, to `flyball run --job`.

A callback of the trainer's own protocol notes the metric when it is logged. It is reported when the next step of the
training begins, or as the program ends: Flyball may end the program at its target, and the trainer saves its
checkpoint, and the program its model, after the metric was logged.
"""

import atexit
import functools
import importlib
import math
import os

import flyball_hook

NAMES_MAX = 12


class Reports:
    """The reports of this process."""

    def __init__(self, name, lines):
        self.name = name
        self.lines = lines
        self.pending = None
        self.told = 0  # number of the newest report
        self.others = set()  # what was logged under other names
        atexit.register(self.end)

    def note(self, number, value):
        """The metric of the report of this number; the first is 1."""
        value = float(value)
        self.pending = (number, "nan" if not math.isfinite(value) else repr(value))

    def see(self, names):
        if self.told == 0 and len(self.others) < NAMES_MAX:
            self.others.update(map(str, names))

    def tell(self):
        if self.pending is None:
            return
        (number, text), self.pending = self.pending, None
        if number > self.told:
            self.told = number
            self.lines.tell("epoch {} metric {}".format(number, text))

    def end(self):
        """Raises nothing."""
        try:
            self.tell()
            if self.told == 0 and self.others and self.name not in self.others:
                names = ", ".join(sorted(self.others)[:NAMES_MAX])
                self.lines.note("failed no metric '{}' was logged, but {}".format(self.name, names))
        except Exception as error:
            flyball_hook.fail(error)


def quiet(function):
    """Nothing that fails in here reaches the trainer."""

    @functools.wraps(function)
    def safely(*arguments, **keywords):
        try:
            function(*arguments, **keywords)
        except Exception as error:
            flyball_hook.fail(error)

    return safely


_reports = None


def reports():
    global _reports
    if _reports is None:
        _reports = Reports(os.environ["FLYBALL_METRIC_NAME"], flyball_hook.lines)
    return _reports


def after_init(kind, add):
    """Calls `add` with each trainer once it is made."""
    init = kind.__init__

    @functools.wraps(init)
    def init_and_add(self, *arguments, **keywords):
        init(self, *arguments, **keywords)
        try:
            add(self)
        except Exception as error:
            flyball_hook.fail(error)

    kind.__init__ = init_and_add


def hook_transformers(module):
    """After transformers.trainer was loaded."""
    told = reports()

    class FlyballMetric(module.TrainerCallback):
        @quiet
        def on_log(self, args, state, control, logs=None, **kwargs):
            told.see(logs or ())
            if not logs or told.name not in logs or not state.global_step:
                return
            # The history is part of a checkpoint, so it counts on when a training is resumed.
            steps = {entry.get("step") for entry in state.log_history if told.name in entry and entry.get("step")}
            told.note(len(steps | {state.global_step}), logs[told.name])

        @quiet
        def on_step_begin(self, args, state, control, **kwargs):
            told.tell()

    after_init(module.Trainer, lambda trainer: trainer.add_callback(FlyballMetric()))


def hook_lightning(module):
    """After lightning.pytorch.trainer.trainer, or pytorch_lightning's, was loaded."""
    told = reports()
    package = module.__name__.rpartition(".trainer.")[0]

    def add(trainer):
        class FlyballMetric(importlib.import_module(package + ".callbacks").Callback):
            # The moment at which the metric turned up first: later it may still be there from the epoch before.
            moment = None

            def note(self, trainer, moment):
                metrics = trainer.callback_metrics
                told.see(metrics)
                if trainer.sanity_checking or told.name not in metrics or self.moment not in (None, moment):
                    return
                self.moment = moment
                told.note(max(told.told, trainer.current_epoch) + 1, metrics[told.name])

            @quiet
            def on_validation_end(self, trainer, pl_module):
                self.note(trainer, "validation")

            @quiet
            def on_train_epoch_end(self, trainer, pl_module):
                self.note(trainer, "epoch")

            @quiet
            def on_train_batch_start(self, trainer, *arguments, **keywords):
                told.tell()

        trainer.callbacks.append(FlyballMetric())

    after_init(module.Trainer, add)
