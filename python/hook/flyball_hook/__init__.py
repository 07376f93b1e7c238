# SPDX-License-Identifier: Apache-2.0
"""Tells `flyball run` the steps of a training that knows nothing of it.

`watch` waits for the modules of WANTED and hooks each one as soon as the program has imported it. Nothing of them is
imported here, and little else: every Python that the program starts comes through here. What is found, and the first
failure, are lines for the report (docs/howto/steps.md, "The lines"). No failure reaches the program.
"""

import os
import sys

from flyball_hook.lines import Lines

lines = Lines()


def fail(error):
    """Tells the first failure of this process. Raises nothing."""
    try:
        lines.fail(error)
    except Exception:
        pass


def _hook_torch(module):
    from flyball_hook import optimizers

    lines.note("saw torch")
    optimizers.hook_torch(module)


def _hook_deepspeed(module):
    from flyball_hook import optimizers

    optimizers.hook_deepspeed(module)


def _hook_transformers(module):
    from flyball_hook import metrics

    metrics.hook_transformers(module)


def _hook_lightning(module):
    from flyball_hook import metrics

    metrics.hook_lightning(module)


# Modules, and what happens once each is loaded; None: it is told that it was, and no more.
WANTED = {
    "torch.optim.optimizer": _hook_torch,
    "deepspeed.runtime.engine": _hook_deepspeed,
    "jax": None,
    "ray": None,
    "tensorflow": None,
}


# The same where a metric is to be reported.
WANTED_FOR_METRIC = {
    "transformers.trainer": _hook_transformers,
    "lightning.pytorch.trainer.trainer": _hook_lightning,
    "pytorch_lightning.trainer.trainer": _hook_lightning,
}


class Finder:
    """Stands before the other finders, and answers only for the modules that it waits for."""

    def __init__(self, wanted):
        self.wanted = dict(wanted)

    def find_spec(self, name, path=None, target=None):
        if name not in self.wanted:
            return None
        then = self.wanted.pop(name)
        if then is None:
            note("saw " + name)
            return None
        for finder in list(sys.meta_path):
            spec = finder.find_spec(name, path, target) if finder is not self and hasattr(finder, "find_spec") else None
            if spec is not None:
                follow(spec, then)
                return spec
        self.wanted[name] = then
        return None


def note(words):
    try:
        lines.note(words)
    except Exception as error:
        fail(error)


def follow(spec, then):
    """Calls `then` with the module once its own loader has run it."""
    loader = spec.loader
    own = vars(loader).get("exec_module")

    def exec_module(module):
        # Loaders of frozen modules are classes, and have it themselves.
        if own is None:
            del loader.exec_module
        else:
            loader.exec_module = own
        loader.exec_module(module)
        hook(module, then)

    try:
        loader.exec_module = exec_module
    except Exception as error:
        fail(error)


def hook(module, then):
    try:
        then(module)
    except Exception as error:
        fail(error)


def watch():
    """Waits for the modules, where a `flyball run` wants steps."""
    if not os.environ.get("FLYBALL_STEPS"):
        return
    note("saw python")
    wanted = dict(WANTED, **(WANTED_FOR_METRIC if os.environ.get("FLYBALL_METRIC_NAME") else {}))
    late = [name for name in wanted if name in sys.modules and wanted[name] is not None]
    sys.meta_path.insert(0, Finder({name: then for name, then in wanted.items() if name not in late}))
    for name in late:
        hook(sys.modules[name], wanted[name])
