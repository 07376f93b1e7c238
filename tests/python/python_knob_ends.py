# SPDX-License-Identifier: Apache-2.0
"""What turns knobs in the Python package: left in the middle of a training, and beside somebody who cannot be seen.

usage: python_knob_ends.py FLYBALL SOURCE_ROOT
"""

import gc
import itertools
import json
import os
import sys
import types

import tap
from power_machine import UNSEEN, limits, neighbour, pid_namespace
from session_machine import DEFAULT_W, back_within, flyball, log_and_machine, session

GIVE_BACK_S = 0.3


def loop_of(of):
    """The next step of a loop that stays open."""
    return lambda batches=iter(of.steps(itertools.count())): next(batches)


def epochs_of(of):
    """The next step of an epoch's loop, both of which stay open."""
    epochs = of.epochs()
    next(epochs)
    return lambda loop=loop_of(of): (epochs, loop())


def evaluation_of(of):
    """An evaluation whose end never comes, after a step."""
    return lambda: (of.step_begin(), of.status.limit_w in (None, DEFAULT_W) or of.evaluation_begin())


def knob_of(of):
    of.set(300)
    return of.step_begin


def callback_of(name, *events):
    """Steps of a trainer of transformers or Lightning that tells its callback of no end."""
    def step(of):
        import flyball.callbacks

        callback = getattr(flyball.callbacks, name)(of)
        state = types.SimpleNamespace(epoch=0, current_epoch=0, global_step=0, sanity_checking=False)
        counts = itertools.count(1)

        def tell(event, *more):
            state.global_step = next(counts)
            getattr(callback, event)(state, state, state, *more) if name.startswith("H") else getattr(callback, event)(state, state, *more)

        for event in events[:-1]:
            tell(event)
        return lambda: tell(events[-1], *((None, 0) if name.startswith("L") else ()))
    return step


def hugging_face(of):
    return callback_of("HuggingFaceCallback", "on_train_begin", "on_epoch_begin", "on_step_begin")(of)


def lightning(of):
    return callback_of("LightningCallback", "on_train_start", "on_train_epoch_start", "on_train_batch_start")(of)


def tuner():
    return flyball.Tuner(objective="lowest-limit", max_slowdown=None, limits_w=[DEFAULT_W, 200], warmup_steps=1, profile_steps=3, give_back_s=GIVE_BACK_S)


def short_session():
    return session("left", max_epochs=100000, target=None, limits_w=[200, 300], warmup_steps=1, profile_steps=3, give_back_s=GIVE_BACK_S)


def optimizer(name):
    """Of the compatible package, by its class."""
    def make():
        from flyball.compat.zeus import monitor
        from flyball.compat.zeus.optimizer import power_limit

        return getattr(power_limit, name)(monitor.ZeusMonitor(), power_limit.MaxSlowdownConstraint(1e9), wait_steps=0, warmup_steps=1,
                                          profile_steps=3, pl_step=100, give_back_s=GIVE_BACK_S)
    return make


def trainer_of(of):
    return lambda: of.on_step_begin(None, None, None)


# What turns a knob: how it is made, and what makes it take a step.
TURNS = [
    (tuner, lambda of: of.step_begin),
    (tuner, loop_of),
    (tuner, hugging_face),
    (tuner, lightning),
    (short_session, lambda of: of.step_begin),
    (short_session, loop_of),
    (short_session, epochs_of),
    (short_session, evaluation_of),
    (short_session, hugging_face),
    (short_session, lightning),
    (lambda: flyball.PowerKnob(flyball.Monitor(), follow_steps=True, give_back_s=GIVE_BACK_S), knob_of),
    (optimizer("GlobalPowerLimitOptimizer"), lambda of: of.on_step_begin),
    (optimizer("HFGlobalPowerLimitOptimizer"), trainer_of),
]
FRAMEWORKS = {"transformers": {"TrainerCallback": type("TrainerCallback", (), {})}, "lightning.pytorch": {"Callback": type("Callback", (), {})}}


def interrupt(step):
    """Steps up to one under another limit, and an exception whose frames live on."""
    try:
        while limits() == [DEFAULT_W]:
            for _ in range(10):
                step()
        raise ZeroDivisionError
    except ZeroDivisionError as error:
        return error


def test_left_in_the_middle():
    """Whatever turns a knob, and however its steps are told: the limit is back, though everything is still there."""
    turning = {name for name in flyball.__all__ if hasattr(getattr(flyball, name), "give_back")}
    tap.equal(turning, {"Tuner", "Session", "PowerKnob"}, "all of them stand above")
    sys.modules.update({name: types.SimpleNamespace(**members) for name, members in FRAMEWORKS.items()})
    try:
        for number, (make, steps) in enumerate(TURNS):
            with log_and_machine():
                of = make()
                step = steps(of)
                kept = interrupt(step)
                back_within([DEFAULT_W], f"number {number} of what turns")
                step()  # and training may go on
                getattr(of, "close", lambda: None)()
                del of, step, kept
                gc.collect()
    finally:
        for name in FRAMEWORKS:
            del sys.modules[name]


IN_A_CONTAINER = """
import json
import flyball
from flyball.compat.zeus.monitor import ZeusMonitor
from flyball.compat.zeus.optimizer.power_limit import GlobalPowerLimitOptimizer

def refused(make):
    try:
        make()
        return ""
    except flyball.Error as error:
        return str(error)

with flyball.Tuner(limits_w=[200]) as tuner:
    tuner.step_begin()
    said = [tuner.report.text]
with flyball.Session("contained", batch_sizes=[16], default=16, max_epochs=2, limits_w=[200], wait_s=60) as session:
    for _ in session.steps(range(5)):
        pass
    said.append(session.status.limit_text)
said.append(refused(lambda: flyball.PowerKnob(flyball.Monitor()).close()))
said.append(refused(lambda: GlobalPowerLimitOptimizer(ZeusMonitor())))
print(json.dumps(said))
"""


def test_neighbour_that_cannot_be_seen():
    """In a container each of them leaves a GPU alone that somebody outside uses, and says why."""
    around = pid_namespace()

    def contained(**more):
        done = tap.run([*around, sys.executable, "-c", IN_A_CONTAINER], env={**os.environ, **more})
        tap.equal(done.returncode, 0, done.stderr)
        return [UNSEEN in said for said in json.loads(done.stdout)]

    with log_and_machine(), neighbour():
        tap.equal((contained(), limits()), ([True] * 4, [DEFAULT_W]))
        tap.equal((contained(FLYBALL_CONTAINED="1"), limits()), ([False] * 4, [DEFAULT_W]))


tap.main(globals())
