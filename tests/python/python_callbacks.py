# SPDX-License-Identifier: Apache-2.0
"""The callbacks for Hugging Face's and Lightning's trainers, against stand-ins that call them as these do.

usage: python_callbacks.py FLYBALL SOURCE_ROOT
"""

import contextlib
import copy
import importlib.util
import io
import os
import pickle
import sys
import tempfile
import types

import tap
from python_scene import HIGHEST_W, LIBRARY, LOWEST_W, QUICK, Machine, flyball, limit_w, monitor, python, settle, wait_for_limit

EVENTS = ("init_end", "train_begin", "train_end", "epoch_begin", "epoch_end", "step_begin", "optimizer_step", "substep_end",
          "step_end", "evaluate", "save", "log", "prediction_step")


class TrainerCallback:
    """Of transformers: an event is told with arguments, state, control and keywords; it may return the control."""


for event in EVENTS:
    setattr(TrainerCallback, f"on_{event}", lambda self, args, state, control, **kwargs: None)


class HuggingFaceTrainer:
    """The order of transformers.Trainer's events, with a number of batches for each step."""

    def __init__(self, callback, *, metrics=(), epochs=2, steps=3, accumulation=2, evaluates_at=None, batch_size=8,
                 resumes=None, eval_on_start=False):
        self.callback, self.metrics, self.epochs, self.steps = callback, list(metrics), epochs, steps
        self.accumulation, self.evaluates_at = accumulation, evaluates_at
        self.control = types.SimpleNamespace(should_training_stop=False, should_evaluate=False, should_save=False)
        self.fails = None
        self.state = types.SimpleNamespace(train_batch_size=batch_size, is_world_process_zero=True, epoch=resumes)
        self.eval_on_start = eval_on_start
        self.steps_taken = 0

    def tell(self, name, **more):
        # Versions differ in which keywords come along.
        keywords = {"model": None, "tokenizer": None, "processing_class": None, "lr_scheduler": None, **more}
        answer = getattr(self.callback, f"on_{name}")("arguments", self.state, self.control, **keywords)
        tap.equal(answer is None or answer is self.control, True, name)

    def evaluate(self):
        for _ in range(2):
            self.tell("prediction_step", eval_dataloader=None)
        self.tell("evaluate", metrics={"eval_loss": 1.0, **({"eval_auc": self.metrics.pop(0)} if self.metrics else {})})
        self.control.should_evaluate = False

    def step(self):
        self.tell("step_begin")
        if self.fails is not None:
            raise self.fails
        for _ in range(self.accumulation - 1):
            self.tell("substep_end")
        self.tell("optimizer_step")
        self.steps_taken += 1
        self.control.should_evaluate = self.evaluates_at is not None and self.steps_taken % self.evaluates_at == 0
        self.tell("step_end")
        if self.control.should_evaluate:
            self.evaluate()

    def train(self):
        self.tell("train_begin")
        if self.eval_on_start:
            self.evaluate()
        for _ in range(self.epochs):
            self.tell("epoch_begin")
            for _ in range(self.steps):
                self.step()
                if self.control.should_training_stop:
                    break
            self.tell("epoch_end")
            if self.evaluates_at is None:
                self.evaluate()
            if self.control.should_training_stop:
                break
        self.tell("train_end")


class Callback:
    """Of Lightning: an event is told with trainer and module."""

    def on_fit_start(self, trainer, pl_module):
        pass


class LightningTrainer:
    """The order of lightning.Trainer's events, with a check of the validation before training."""

    def __init__(self, callback, *, metrics=(), epochs=2, batches=6, accumulation=2):
        self.callback, self.metrics, self.epochs, self.batches, self.accumulation = callback, list(metrics), epochs, batches, accumulation
        self.fails = None
        self.global_step, self.current_epoch, self.should_stop, self.sanity_checking, self.callback_metrics = 0, 0, False, True, {}

    def validate(self):
        self.callback.on_validation_start(self, "module")
        if self.metrics and not self.sanity_checking:
            self.callback_metrics["auc"] = self.metrics.pop(0)
        self.callback.on_validation_end(self, "module")

    def fit(self):
        try:
            self.run()
        except BaseException as error:
            self.callback.on_exception(self, "module", error)
            raise

    def run(self):
        self.callback.on_fit_start(self, "module")
        self.validate()
        self.sanity_checking = False
        self.callback.on_train_start(self, "module")
        for _ in range(self.epochs):
            self.callback.on_train_epoch_start(self, "module")
            for batch in range(self.batches):
                self.callback.on_train_batch_start(self, "module", f"batch {batch}", batch)
                if self.fails is not None:
                    raise self.fails
                self.global_step += batch % self.accumulation == self.accumulation - 1
            self.validate()
            self.callback.on_train_epoch_end(self, "module")
            if self.should_stop:
                break
        self.callback.on_train_end(self, "module")


def stand_in(name, **members):
    parts = name.split(".")
    for i in range(len(parts)):
        sys.modules.setdefault(".".join(parts[: i + 1]), types.ModuleType(".".join(parts[: i + 1])))
    vars(sys.modules[name]).update(members)


REAL = {name: importlib.util.find_spec(name) is not None for name in ("transformers", "lightning", "pytorch_lightning")}
stand_in("transformers", TrainerCallback=TrainerCallback)
stand_in("lightning.pytorch", Callback=Callback)

from flyball.callbacks import HuggingFaceCallback, LightningCallback  # noqa: E402  (after the stand-ins)

TRAINERS = ((HuggingFaceCallback, lambda *arguments, **options: HuggingFaceTrainer(*arguments, **options).train()),
            (LightningCallback, lambda *arguments, **options: LightningTrainer(*arguments, **options).fit()))


class Told(flyball.session.Session):
    """A session that writes down what it is told, and answers as it is made to."""

    def __init__(self, *, stops_after=None, target=None):
        self.told, self.metric, self.stops_after, self.target = [], "auc", stops_after, target
        self.over, self._counts_samples = False, False

    is_over = property(lambda self: self.over)

    def step_begin(self):
        self.told.append("step")
        self.over = self.over or self.told.count("step") == self.stops_after
        return not self.over

    def report(self, metric=None):
        self.told.append(metric)
        self.over = self.over or (metric is not None and self.target is not None and metric >= self.target)

    def __getattribute__(self, name):
        if name in ("epoch_begin", "evaluation_begin", "evaluation_end", "training_ended", "out_of_memory", "resumed", "give_back"):
            return lambda *_: self.told.append(name.replace("_", " "))
        return super().__getattribute__(name)


def test_bases():
    tap.equal((issubclass(HuggingFaceCallback, TrainerCallback), issubclass(LightningCallback, Callback)), (True, True))
    tap.equal(HuggingFaceCallback.__module__, "flyball.callbacks")
    for wrong in (lambda: HuggingFaceCallback(flyball.Session), lambda: LightningCallback("an object", knob="clock")):
        try:
            wrong()
            raise AssertionError("TypeError expected")
        except TypeError:
            pass
    try:
        HuggingFaceTrainer(HuggingFaceCallback(3)).train()
        raise AssertionError("TypeError expected")
    except TypeError:
        pass


def test_monitor():
    for kind, train in TRAINERS:
        with Machine(), monitor() as meter:
            callback = kind(meter)
            tap.equal((callback.handle is meter, callback.measurement, callback.epochs), (True, None, []))
            train(callback)
            tap.equal([measured.name for measured in (callback.measurement, *callback.epochs)], ["training", "epoch 1", "epoch 2"])
            tap.equal(meter.closed, False)


def test_tuner():
    """The class with options: made when training begins, closed when it ends; told of each step of the optimizer."""
    with tempfile.NamedTemporaryFile("r") as lines:
        facts = os.stat(lines.name)
        os.environ["FLYBALL_STEPS"] = f"{lines.name}:{facts.st_dev}:{facts.st_ino}"
        try:
            for kind, train in TRAINERS:
                with Machine(), monitor() as meter:
                    callback = kind(flyball.Tuner, monitor=meter, **QUICK)
                    tap.equal(callback.handle, None)
                    with contextlib.redirect_stderr(io.StringIO()) as said:
                        train(callback)
                    tap.equal((callback.handle.state, callback.handle.report.reason, said.getvalue()), ("closed", "steered", ""))
                told = [line.split(" ", 2)[2].strip() for line in lines.read().splitlines()]
                epochs = [[f"epoch {number}", *["step"] * 3, "epoch end"] for number in (1, 2)]
                tap.equal(told, [*epochs[0], *epochs[1]], kind)
        finally:
            del os.environ["FLYBALL_STEPS"]


def test_limit_comes_back_after_an_exception():
    with Machine(), monitor() as meter:
        for kind, train in TRAINERS:
            callback = kind(flyball.Tuner, monitor=meter, **{**QUICK, "limits_w": [LOWEST_W]})
            with contextlib.redirect_stderr(io.StringIO()) as said:
                train(callback, epochs=3)
            tap.equal(said.getvalue(), f"flyball: {callback.handle.summary}\n")
            callback._begin(0)
            train(callback, epochs=3)
            tap.equal((callback.handle.closed, limit_w() > LOWEST_W), (True, True))


class Shell:
    """IPython's events, as far as they are used."""

    def __init__(self):
        self.events, self.callbacks = self, []

    def register(self, event, callback):
        tap.equal(event, "post_run_cell")
        self.callbacks.append(callback)

    def unregister(self, event, callback):
        self.callbacks.remove(callback)

    def end_cell(self, error=None):
        for callback in list(self.callbacks):
            callback(types.SimpleNamespace(error_in_exec=error, success=error is None))


def fail(callback, error):
    """A training that an exception ends: Lightning tells its callbacks, Hugging Face does not."""
    lightning = isinstance(callback, LightningCallback)
    trainer = LightningTrainer(callback) if lightning else HuggingFaceTrainer(callback)
    trainer.fails = error
    try:
        trainer.fit() if lightning else trainer.train()
    except type(error):
        return
    raise AssertionError("the exception is lost")


def test_exception():
    """The limit is back at once where the framework tells, and the tuner that was made here is closed."""
    for error in (KeyboardInterrupt(), ValueError("of another kind")):
        with Machine(), monitor() as meter:
            made = LightningCallback(flyball.Tuner, monitor=meter, **QUICK)
            fail(made, error)
            tap.equal((made.handle.closed, limit_w()), (True, HIGHEST_W))
            with flyball.Tuner(meter, **QUICK) as tuner:
                settle(tuner)
                for _ in range(2):
                    tap.equal(limit_w(), LOWEST_W)
                    fail(LightningCallback(tuner), error)
                    tap.equal((tuner.closed, tuner.report.given_back, limit_w()), (False, True, HIGHEST_W))
                    tuner.step_begin()
            callback = LightningCallback(meter)
            fail(callback, error)
            tap.equal([measured.name for measured in (callback.measurement, *callback.epochs)], ["training", "epoch 1"])
            callback = LightningCallback(flyball.Monitor, nvml_path=LIBRARY)
            fail(callback, error)
            tap.equal((callback.measurement.name, callback.handle.closed), ("training", True))
            LightningTrainer(callback).fit()
            tap.equal(len(callback.epochs), 2)
    session = Told()
    fail(LightningCallback(session), ValueError())
    tap.equal(session.told, ["epoch begin", "step", "out of memory", "give back"])


def test_teardown():
    """It ends a fit that nothing else has ended, and nothing else."""
    with Machine(), monitor() as meter:
        callback = LightningCallback(meter)
        callback.teardown(None, "module", "validate")
        callback.on_train_start(LightningTrainer(callback), "module")
        callback.teardown(None, "module", "fit")
        tap.equal(callback.measurement.name, "training")
        measured = callback.measurement
        callback.teardown(None, "module", "fit")
        tap.equal(callback.measurement is measured, True)


def test_exception_that_nobody_tells():
    """Of Hugging Face's: the end of the cell ends training, and where there is none, the limit goes back by itself."""
    shell = Shell()
    stand_in("IPython", get_ipython=lambda: shell)
    try:
        with Machine(), monitor() as meter, flyball.Tuner(meter, **QUICK) as tuner:
            settle(tuner)
            callbacks = [HuggingFaceCallback(kind, **options) for kind, options in
                         ((tuner, {}), (flyball.Tuner, {"monitor": meter, **QUICK}), (meter, {}))]
            for callback in callbacks[::2]:
                fail(callback, ValueError())
            tap.equal(limit_w(), LOWEST_W)
            shell.end_cell(ValueError())
            tap.equal((limit_w(), callbacks[2].measurement.name, shell.callbacks), (HIGHEST_W, "training", []))
            tuner.close()
            fail(callbacks[1], ValueError())
            shell.end_cell()
            tap.equal((callbacks[1].handle.closed, limit_w()), (True, HIGHEST_W))
            HuggingFaceTrainer(callbacks[2]).train()
            measured = callbacks[2].measurement
            shell.end_cell()
            tap.equal(callbacks[2].measurement is measured, True)
    finally:
        del sys.modules["IPython"]
    with Machine(), monitor() as meter, flyball.Tuner(meter, give_back_s=0.5, **QUICK) as tuner:
        settle(tuner)
        callback = HuggingFaceCallback(tuner)
        fail(callback, ValueError())
        wait_for_limit(HIGHEST_W)
        tap.eventually(lambda: callback._active.step_begin() or limit_w() == LOWEST_W, "the next step sets it again")


def test_session():
    """What a session is told, in order; an epoch without the metric is reported without one."""
    epoch = ["epoch begin", "step", "step", "step", "evaluation begin", "evaluation end"]
    for kind, train in TRAINERS:
        session = Told()
        train(kind(session), metrics=[0.5, 0.6])
        tap.equal(session.told, [*epoch, 0.5, *epoch, 0.6, "training ended"], kind)
    session = Told()
    HuggingFaceTrainer(HuggingFaceCallback(session), metrics=[0.1, 0.5], epochs=1, resumes=2.0, eval_on_start=True).train()
    tap.equal(session.told, ["resumed", "evaluation begin", "evaluation end", *epoch, 0.5, "training ended"])
    session = Told()
    HuggingFaceTrainer(HuggingFaceCallback(session)).train()
    tap.equal(session.told, [*epoch, None, *epoch, None, "training ended"])


def test_real_session():
    """Both trainers end at the session's target."""
    with Machine(), tempfile.TemporaryDirectory() as place:
        for kind, train in TRAINERS:
            options = {"batch_sizes": [8], "default": 8, "metric": "auc", "target": 0.6, "max_epochs": 9, "leave_limits": True, "gpus": ""}
            with flyball.Session(kind.__name__, store=f"{place}/store", wait_s=60, **options) as session:
                train(kind(session), metrics=[0.5, 0.6, 0.7], epochs=9)
                tap.equal((session.status.epoch, session.status.answer, session.is_over), (2, "reached", True), kind)


def test_session_that_stops():
    for kind, train in TRAINERS:
        session = Told(target=0.6)
        train(kind(session), metrics=[0.6, 0.7], epochs=9)
        tap.equal((session.told.count("step"), session.told[-2:]), (3, [0.6, "training ended"]), kind)
        session = Told(stops_after=2)
        train(kind(session, metric="none"), epochs=9)
        tap.equal(session.told.count("step") <= 3, True, kind)
        tap.equal([word for word in session.told if not isinstance(word, str)], [], "nothing is reported after a stop")


def test_evaluations_between_steps():
    session = Told()
    HuggingFaceTrainer(HuggingFaceCallback(session), metrics=[0.1, 0.2], epochs=1, steps=4, evaluates_at=2).train()
    part = ["step", "step", "evaluation begin", "evaluation end"]
    tap.equal(session.told, ["epoch begin", *part, 0.1, *part, 0.2, "training ended"])


def test_batch_size_that_was_lowered():
    session = Told()
    callback = HuggingFaceCallback(session)
    first = HuggingFaceTrainer(callback, batch_size=8)
    first.tell("train_begin")
    first.tell("epoch_begin")
    first.tell("step_begin")
    HuggingFaceTrainer(callback, batch_size=4, epochs=1, metrics=[1.0]).train()
    tap.equal(session.told.count("out of memory"), 1)
    HuggingFaceTrainer(callback, batch_size=4, epochs=1, metrics=[1.0]).train()
    tap.equal(session.told.count("out of memory"), 1)


def test_evaluation_outside_of_training():
    session = Told()
    callback = HuggingFaceCallback(session)
    HuggingFaceTrainer(callback, metrics=[0.5]).evaluate()
    HuggingFaceTrainer(callback, metrics=[0.5], epochs=1).train()
    told = list(session.told)
    HuggingFaceTrainer(callback, metrics=[0.5]).evaluate()
    tap.equal(session.told, told)


def test_pickled_until_training_begins():
    with Machine(), monitor() as meter:
        for kind, train in TRAINERS:
            callback = pickle.loads(pickle.dumps(kind(flyball.Monitor, nvml_path=LIBRARY)))
            callback = copy.deepcopy(callback)
            train(callback)
            tap.equal((len(callback.epochs), callback.handle.closed), (2, True))
            for late in (callback, kind(meter)):
                try:
                    pickle.dumps(late)
                    raise AssertionError("TypeError expected")
                except TypeError:
                    pass


def test_imports():
    """Neither framework is imported before it is asked for, and its absence is an ImportError with its name."""
    text = """
import sys
import flyball.callbacks
print([name for name in ("transformers", "lightning", "torch") if name in sys.modules])
sys.modules.update(dict.fromkeys(("transformers", "lightning", "lightning.pytorch", "pytorch_lightning")))
for name in ("HuggingFaceCallback", "LightningCallback", "KerasCallback"):
    try:
        getattr(flyball.callbacks, name)
    except (ImportError, AttributeError) as error:
        print(error)
"""
    done = python(text)
    tap.equal((done.returncode, done.stderr), (0, ""))
    lines = done.stdout.splitlines()
    tap.equal(lines[0], "[]")
    tap.contains(lines[1], "transformers")
    tap.contains(lines[2], "pytorch_lightning")
    tap.contains(lines[3], "KerasCallback")


def check_real(name, text):
    if not REAL[name]:
        raise tap.Skip(f"the package {name} is not installed")
    with Machine():
        done = python(text)
        tap.equal((done.returncode, done.stdout), (0, "closed\n"), done.stderr)


def test_real_transformers():
    check_real("transformers", f"""
import torch, transformers, flyball
from flyball.callbacks import HuggingFaceCallback
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(1, 1)
    def forward(self, x, labels):
        y = self.line(x)
        return {{"loss": ((y - labels) ** 2).mean(), "logits": y}}
data = [{{"x": torch.tensor([float(i)]), "labels": torch.tensor([2.0 * i])}} for i in range(32)]
callback = HuggingFaceCallback(flyball.Tuner, monitor=flyball.Monitor(nvml_path={LIBRARY!r}))
arguments = transformers.TrainingArguments("/tmp/none", num_train_epochs=2, use_cpu=True, report_to=[], save_strategy="no", disable_tqdm=True)
transformers.Trainer(Model(), arguments, train_dataset=data, callbacks=[callback]).train()
print(callback.handle.state)
""")


def test_real_lightning():
    name = "lightning" if REAL["lightning"] else "pytorch_lightning"
    check_real(name, f"""
import torch, {'lightning.pytorch' if name == 'lightning' else name} as pl, flyball
from flyball.callbacks import LightningCallback
class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(1, 1)
    def training_step(self, batch, _):
        return (self.line(batch) ** 2).mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
callback = LightningCallback(flyball.Tuner, monitor=flyball.Monitor(nvml_path={LIBRARY!r}))
trainer = pl.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False, callbacks=[callback])
trainer.fit(Model(), torch.utils.data.DataLoader(torch.ones(32, 1), batch_size=4))
print(callback.handle.state)
""")


tap.main(globals())
