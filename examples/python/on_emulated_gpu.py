#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a training script with an emulated GPU in the place of a real one.

    flyball-emulator run --gpus 1 --model v100 --any-user -- \\
        /usr/bin/python3 examples/python/on_emulated_gpu.py examples/python/train.py --batch-size 64

The script trains on the CPU as it would without; nothing in it is changed. After each backward pass (of
scikit-learn, each partial_fit) the emulated GPU works for as long as the model of a GPU says for so many samples
under its power limit, and the script waits for it. The time and the watts are made up, the training is real. A
process of several takes the GPU of its LOCAL_RANK. Without emulated GPUs the script just runs.

EMULATED_WORK names the shared object that does the work (build/examples/emulated_work.so), EMULATED_PACE is a
factor on the speed.
"""
import ctypes
import functools
import os
import pathlib
import runpy
import sys
import time
from typing import Any, Callable

BUILT = pathlib.Path(__file__).resolve().parents[2] / "build" / "examples" / "emulated_work.so"


class Work:
    """What an emulated GPU does for the samples that a pass has seen."""

    def __init__(self) -> None:
        library = ctypes.CDLL(os.environ.get("EMULATED_WORK", str(BUILT)))
        library.emulated_work_begin.restype = ctypes.c_void_p
        library.emulated_work_load.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
        library.emulated_work_load.restype = ctypes.c_double
        self.load = library.emulated_work_load
        self.gpu = library.emulated_work_begin(int(os.environ.get("LOCAL_RANK", "0")))
        self.began_s = 0.0
        self.samples = 0

    def see(self, samples: int) -> None:
        if self.samples == 0:
            self.began_s = time.monotonic()
        self.samples += samples

    def finish(self) -> None:
        """Returns when the GPU would have done what was seen."""
        if self.gpu and self.samples > 0:
            end_s = self.began_s + self.load(self.gpu, self.samples)
            time.sleep(max(end_s - time.monotonic(), 0.0))
        self.samples = 0


def follow_torch(work: Work) -> None:
    import torch
    from torch.nn.modules.module import register_module_forward_pre_hook

    outermost: list[Any] = [None]
    backward = torch.Tensor.backward

    def forward_begins(module: Any, inputs: Any) -> None:
        if not module.training or not torch.is_grad_enabled() or not inputs:  # without: all of them have names
            return
        if work.samples == 0:
            outermost[0] = module
        if module is outermost[0]:
            work.see(len(inputs[0]))

    @functools.wraps(backward)
    def backward_and_work(*arguments: Any, **keywords: Any) -> None:
        backward(*arguments, **keywords)
        work.finish()

    register_module_forward_pre_hook(forward_begins)
    torch.Tensor.backward = backward_and_work


def follow_sklearn(work: Work) -> None:
    from sklearn.neural_network import MLPClassifier

    partial_fit: Callable[..., Any] = MLPClassifier.partial_fit

    @functools.wraps(partial_fit)
    def fit_and_work(self: Any, samples: Any, *arguments: Any, **keywords: Any) -> Any:
        work.see(len(samples))
        result = partial_fit(self, samples, *arguments, **keywords)
        work.finish()
        return result

    MLPClassifier.partial_fit = fit_and_work


def main() -> None:
    del sys.argv[0]
    script = sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    work = Work()
    if "MLPClassifier" in pathlib.Path(script).read_text(encoding="utf-8"):
        follow_sklearn(work)
    else:
        follow_torch(work)
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
