# SPDX-License-Identifier: Apache-2.0
"""Counts the steps of PyTorch's optimizers, and of DeepSpeed's engine.

The `step` of each class of which an optimizer is made gets a wrapper. Hooks of PyTorch 2's own
(register_optimizer_step_post_hook) would miss steps: torch.compile takes off the wrapper that calls them, which it
knows by its mark `hooked` and finds by `__wrapped__`. So this wrapper keeps the mark, without which PyTorch would wrap
it again, and has no `__wrapped__`.

A `step` within another one's (a subclass that calls its parent, ZeroRedundancyOptimizer) does not count.
"""

import _thread
import atexit
import functools
import inspect
import os
import sys
import weakref

import flyball_hook
from flyball_hook.pace import Pace

MARK = "_flyball_counts"


def is_counted(step):
    """Whether it is such a wrapper itself: PyTorch's own wrappers copy the marks of what they wrap."""
    return getattr(step, MARK, None) == id(step)


class Steps:
    """The steps of this process: outermost calls on any thread."""

    def __init__(self, lines):
        self.lines = lines
        self.depth = _thread._local()
        self.known = {}
        self._begin()
        atexit.register(self.end)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self):
        """Starts anew, also in a process that was forked from one that trains."""
        self.lock = _thread.allocate_lock()
        self.pace = Pace()
        self.name = self.told_name = ""  # of the optimizer's class

    def made(self, optimizer):
        key = id(optimizer)
        self.known[key] = weakref.ref(optimizer, lambda _: self.gone(key))
        with self.lock:
            self.pace.made(key)

    def gone(self, key):
        self.known.pop(key, None)
        self.pace.gone(key)

    def done(self, optimizer):
        """An optimizer has stepped, and not within another one's step. Raises nothing."""
        try:
            with self.lock:
                steps = self.pace.step(id(optimizer))
                self.name = type(optimizer).__name__
                self._tell(steps)
        except Exception as error:
            flyball_hook.fail(error)

    def _tell(self, steps):
        if self.told_name != self.name and (steps > 0 or not self.told_name):
            self.told_name = self.name
            self.lines.note("counts " + self.name)
        if steps > 0:
            self.lines.tell("", steps)

    def end(self):
        """Tells what was held back, as the program ends. Raises nothing."""
        try:
            with self.lock:
                self._tell(self.pace.end())
        except Exception as error:
            flyball_hook.fail(error)

    def wrap(self, step, counts=None):
        """A `step` of a class, counted; `counts(self)` before and after differ where it was no progress."""
        depth = self.depth
        compiler = getattr(sys.modules.get("torch"), "compiler", None)
        is_compiling = getattr(compiler, "is_compiling", None)

        def counted(self_, *arguments, **keywords):
            # A `step` that is compiled as a part of a larger function stays whole, and is not seen.
            if is_compiling is not None and is_compiling():
                return step(self_, *arguments, **keywords)
            outer = getattr(depth, "calls", 0)
            depth.calls = outer + 1
            try:
                before = counts(self_) if counts is not None else None
                result = step(self_, *arguments, **keywords)
            finally:
                depth.calls = outer
            if outer > 0:
                self.pace.inner(id(self_))
            elif counts is None or counts(self_) == before:
                self.done(self_)
            return result

        return dress(counted, step)


def dress(counted, step):
    functools.update_wrapper(counted, step)
    del counted.__wrapped__
    try:
        counted.__signature__ = inspect.signature(step)
    except (TypeError, ValueError):
        pass
    setattr(counted, MARK, id(counted))
    return counted


def _steps_of_process():
    global _steps
    if _steps is None:
        _steps = Steps(flyball_hook.lines)
    return _steps


_steps = None


def hook_torch(module):
    """After torch.optim.optimizer was loaded: counts every class of which an optimizer is made."""
    base = module.Optimizer
    name = next(name for name in ("_patch_step_function", "_hook_for_profile") if hasattr(base, name))
    prepare = getattr(base, name)
    steps = _steps_of_process()

    @functools.wraps(prepare)
    def prepare_and_count(self, *arguments, **keywords):
        result = prepare(self, *arguments, **keywords)
        try:
            kind = type(self)
            if not is_counted(kind.step):
                kind.step = steps.wrap(kind.step)
            steps.made(self)
        except Exception as error:
            flyball_hook.fail(error)
        return result

    setattr(base, name, prepare_and_count)


def hook_deepspeed(module):
    """After deepspeed.runtime.engine was loaded: an engine steps once for all micro-batches, or skips the step."""
    engine = module.DeepSpeedEngine
    steps = _steps_of_process()
    engine._take_model_step = steps.wrap(engine._take_model_step, lambda self: getattr(self, "skipped_steps", 0))
