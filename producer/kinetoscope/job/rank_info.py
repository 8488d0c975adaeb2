"""Which process of a job this is: its rank, the world size, and its rank and number on its machine.

The environment is an argument, so that these are testable for any process.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

# Names of (rank, processes, rank on the node, node) per launcher: torchrun; SLURM in a step and without one; Open MPI.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_NODEID"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NODEID"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_NODE_RANK"),
)
_OF_LAUNCHERS = ("SLURM_", "OMPI_", "PMIX_", "TORCHELASTIC_", "MASTER_", "LOCAL_", "GROUP_", "ROLE_")


@dataclass(frozen=True)
class RankInfo:
    """A process's ranks in its job. Unknown values are None."""

    global_rank: int = 0
    world_size: int = 1
    local_rank: int | None = None
    node_rank: int | None = None


def number_in(environ: Mapping[str, str], name: str) -> int | None:
    """Return an environment variable as a number; None if it isn't one."""
    text = environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else None


def rank_info_from(environ: Mapping[str, str]) -> RankInfo:
    """Return the rank according to a launcher's variables; that of a single process if there are none."""
    for names in _LAUNCHERS:
        rank, size, local, node = (number_in(environ, name) for name in names)
        if rank is not None and size is not None and rank < size:
            return RankInfo(rank, size, local, node)
    return RankInfo()


def without_launcher(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process that belongs to no job, for one that a process of a job starts."""
    names = {name for launcher in _LAUNCHERS for name in launcher}
    return {name: value for name, value in environ.items() if name not in names and not name.startswith(_OF_LAUNCHERS)}


def is_distributed() -> bool:
    """Whether torch.distributed has a default group; never imports it."""
    dist = sys.modules.get("torch.distributed")
    return dist is not None and bool(dist.is_available()) and bool(dist.is_initialized())


def current_rank_info() -> RankInfo:
    """Return this process's ranks, from torch.distributed, or else from the launcher."""
    from_launcher = rank_info_from(os.environ)
    if not is_distributed():
        return from_launcher
    dist = sys.modules["torch.distributed"]
    return RankInfo(dist.get_rank(), dist.get_world_size(), from_launcher.local_rank, from_launcher.node_rank)


def local_world_size() -> int | None:
    """Return how many processes of the job run on this machine; None if the launcher doesn't report it."""
    names = ("LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE", "OMPI_COMM_WORLD_LOCAL_SIZE")
    return next((number for name in names if (number := number_in(os.environ, name)) is not None), None)


def rank_numbers(text: str) -> list[int]:
    """Parse a text such as `0,8-15` into ranks, in order.

    Raises:
        UsageError: It isn't of this form.
    """
    numbers: set[int] = set()
    for part in text.split(","):
        first, dash, last = (piece.strip() for piece in part.partition("-"))
        ends = (first, last if dash else first)
        if not all(end.isascii() and end.isdigit() and len(end) < 8 for end in ends) or int(ends[1]) < int(ends[0]):
            raise UsageError(f"{text!r} names no ranks; try 0,8-15.")
        numbers.update(range(int(ends[0]), int(ends[1]) + 1))
    return sorted(numbers)
