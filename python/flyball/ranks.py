# SPDX-License-Identifier: Apache-2.0
"""How the ranks of a training find each other: by torch.distributed where the program has begun it, else by the environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

from flyball._flyball import UsageError

AllReduce = Callable[[list[float], list[float]], object]


class Ranks(NamedTuple):
    """This process among those that train together.

    rank: from 0. replicas: how many there are; with tensor or pipeline parallelism fewer of them see samples of their
    own. all_reduce: a function that joins them; None where there is one, or where nothing is known that could.
    """

    rank: int
    replicas: int
    all_reduce: Optional[AllReduce]


# Launchers' variables, innermost first: the rank, how many there are, and one without which they mean nothing.
_VARIABLES = (
    ("RANK", "WORLD_SIZE", ""),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ""),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", ""),
    ("FLUX_TASK_RANK", "FLUX_JOB_SIZE", ""),
    ("PMI_RANK", "PMI_SIZE", ""),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"),
)

# The group of the default process group that it was made for: ranks make theirs in the same order, so once.
_gloo: tuple[Any, Any] = (None, None)


def _group(distributed: Any) -> Any:
    global _gloo  # noqa: PLW0603
    world = distributed.group.WORLD
    if _gloo[0] is not world or world is None:
        _gloo = (world, distributed.new_group(backend="gloo"))
    return _gloo[1]


def _reduced(torch: Any, distributed: Any) -> AllReduce:
    group = _group(distributed)

    def all_reduce(sums: list[float], maxima: list[float]) -> None:
        for values, operation in ((sums, distributed.ReduceOp.SUM), (maxima, distributed.ReduceOp.MAX)):
            if values:
                tensor = torch.tensor(values, dtype=torch.float64, device="cpu")
                distributed.all_reduce(tensor, op=operation, group=group)
                values[:] = tensor.tolist()

    return all_reduce


def _number(name: str) -> Optional[int]:
    text = os.environ.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() else None


def by_environment() -> Ranks:
    """What launchers say of this process; nothing joins the ranks by that alone."""
    for rank_name, size_name, needed in _VARIABLES:
        rank, size = _number(rank_name), _number(size_name)
        if rank is not None and size is not None and rank < size and (not needed or needed in os.environ):
            return Ranks(rank, size, None)
    return Ranks(0, 1, None)


def found() -> Ranks:
    """This process's place among the ranks. Where torch.distributed has begun, all ranks must call it: they make a gloo group."""
    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        size = distributed.get_world_size()
        return Ranks(distributed.get_rank(), size, _reduced(torch, distributed) if size > 1 else None)
    return by_environment()


def joined() -> tuple[int, Optional[AllReduce]]:
    """The rank, and what joins the ranks, for the tuner. Raises UsageError where there are several and nothing joins them."""
    ranks = found()
    if ranks.replicas > 1 and ranks.all_reduce is None:
        raise UsageError(
            f"the environment says that this is rank {ranks.rank} of {ranks.replicas}, and torch.distributed has not begun: "
            "begin it before the first step, give all_reduce=, or rank=0 if each process trains alone"
        )
    return ranks.rank, ranks.all_reduce
