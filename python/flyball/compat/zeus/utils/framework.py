# SPDX-License-Identifier: Apache-2.0
"""What is asked of the training's framework. A framework that the program has not imported is not imported here."""

from __future__ import annotations

import importlib
import pickle
import sys
from typing import Any, Literal, cast


def _framework(name: str, ensure_available: bool) -> Any:
    """The module of that name, or None; with `ensure_available` its absence is a RuntimeError."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if ensure_available:
            raise RuntimeError(f"{name} cannot be imported") from error
        return None


def _answer(available: bool, ensure_available: bool, complaint: str) -> bool:
    if ensure_available and not available:
        raise RuntimeError(complaint)
    return available


def torch_is_available(ensure_available: bool = False, ensure_cuda: bool = True) -> bool:
    """Whether PyTorch can be imported and, with `ensure_cuda`, sees a GPU.

    With `ensure_available` a no raises RuntimeError.
    """
    torch = _framework("torch", ensure_available)
    if torch is None or not ensure_cuda:
        return torch is not None
    return _answer(bool(torch.cuda.is_available()), ensure_available, "PyTorch sees no GPU")


def jax_is_available(ensure_available: bool = False, ensure_cuda: bool = True) -> bool:
    """The same of JAX."""
    jax = _framework("jax", ensure_available)
    if jax is None or not ensure_cuda:
        return jax is not None
    sees = any(device.platform in ("gpu", "cuda", "rocm") for device in jax.devices())
    return _answer(sees, ensure_available, "JAX sees no GPU")


def cupy_is_available(ensure_available: bool = False) -> bool:
    """Whether CuPy can be imported and sees a GPU."""
    cupy = _framework("cupy", ensure_available)
    return cupy is not None and _answer(bool(cupy.is_available()), ensure_available, "CuPy sees no GPU")


def _sync_torch(gpus: list[int]) -> None:
    if torch_is_available():
        for gpu in gpus:
            sys.modules["torch"].cuda.synchronize(gpu)


def _sync_jax(gpus: list[int]) -> None:
    """What a device computes, it computes in order, so that all is done when one more thing is."""
    if jax_is_available():
        jax = sys.modules["jax"]
        for device in (device for device in jax.local_devices() if device.local_hardware_id in gpus):
            (jax.device_put(0.0, device) + 1.0).block_until_ready()


def _sync_cupy(gpus: list[int]) -> None:
    if cupy_is_available():
        for gpu in gpus:
            sys.modules["cupy"].cuda.Device(gpu).synchronize()


def sync_execution(gpu_devices: list[int], sync_with: Literal["torch", "jax", "cupy"] = "torch") -> None:
    """Waits until these GPUs have done what the framework has asked of them.

    A framework that the program has not imported has asked nothing. Raises ValueError for another framework's name.
    """
    waits = {"torch": _sync_torch, "jax": _sync_jax, "cupy": _sync_cupy}
    if sync_with not in waits:
        raise ValueError(f"'{sync_with}' is none of {', '.join(waits)}")
    if sync_with in sys.modules:
        waits[sync_with](gpu_devices)


def _group() -> Any:
    """torch.distributed where the program has made a group of processes, else None."""
    distributed = sys.modules.get("torch.distributed")
    return distributed if distributed is not None and distributed.is_available() and distributed.is_initialized() else None


def all_reduce(object: list[int] | list[float], operation: Literal["sum", "max"]) -> list[int] | list[float]:
    """The sums or maxima over all ranks; the list itself without torch.distributed."""
    if operation not in ("sum", "max"):
        raise ValueError(f"'{operation}' is neither 'sum' nor 'max'")
    group = _group()
    if group is None:
        return object
    torch = sys.modules["torch"]
    device = "cuda" if group.get_backend() == "nccl" else "cpu"
    whole = all(isinstance(value, int) for value in object)
    values = torch.tensor(object, dtype=torch.int64 if whole else torch.float64, device=device)
    group.all_reduce(values, op=group.ReduceOp.SUM if operation == "sum" else group.ReduceOp.MAX)
    return cast("list[float]", values.tolist())


def all_gather(value: Any) -> list[Any]:
    """The values of all ranks, by rank; this one alone without torch.distributed. They are pickled."""
    group = _group()
    if group is None:
        return [value]
    values: list[Any] = [None] * int(group.get_world_size())
    group.all_gather_object(values, value)
    return values


def broadcast(value: Any) -> Any:
    """The value of rank 0; this one without torch.distributed. It is pickled."""
    group = _group()
    if group is None:
        return value
    values = [value]
    group.broadcast_object_list(values, src=0)
    return values[0]


def _store() -> Any:
    """Where the ranks of the group found each other; None of a group that needs no such place, as of MPI."""
    group = _group()
    return None if group is None else group.distributed_c10d._get_default_store()


def tell(key: str, value: Any) -> None:
    """Leaves a value of rank 0 for the others to `hear`, without waiting for them where that can be. It is pickled."""
    store = _store()
    if store is None:
        broadcast(value)
    else:
        store.set(key, pickle.dumps(value))


def hear(key: str) -> Any:
    """Waits for what rank 0 tells by that key; None without torch.distributed."""
    store = _store()
    return broadcast(None) if store is None else pickle.loads(store.get(key))


def is_distributed() -> bool:
    """Whether the program has made a group of processes with torch.distributed."""
    return _group() is not None


def get_rank() -> int:
    """This process's rank in it; 0 without."""
    group = _group()
    return int(group.get_rank()) if group is not None else 0


def get_world_size() -> int:
    """How many processes there are; 1 without."""
    group = _group()
    return int(group.get_world_size()) if group is not None else 1
