"""Who records: the process's place among the others, and the run that they all belong to.

The environment is an argument everywhere, so that one may ask what a process would be called without being it.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .attempts import claimed, token_from
from .errors import UsageError
from .naming import folder_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch._C._distributed_c10d import Store

# Names of (rank, processes, rank on the node, node) per launcher: torchrun; SLURM in a step and without one; Open MPI.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_NODEID"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NODEID"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_NODE_RANK"),
)

_count = itertools.count()


@dataclass(frozen=True)
class Place:
    """A process's place in its job. What isn't known is None."""

    global_rank: int = 0
    world_size: int = 1
    local_rank: int | None = None
    node_rank: int | None = None


def _number(environ: Mapping[str, str], name: str) -> int | None:
    text = environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else None


def place_from(environ: Mapping[str, str]) -> Place:
    """Return the place that a launcher's variables tell; alone in the world if none does."""
    for names in _LAUNCHERS:
        rank, size, local, node = (_number(environ, name) for name in names)
        if rank is not None and size is not None and rank < size:
            return Place(rank, size, local, node)
    return Place()


def is_distributed() -> bool:
    """Whether torch.distributed has its default group; never imports it."""
    distributed = sys.modules.get("torch.distributed")
    return distributed is not None and bool(distributed.is_available()) and bool(distributed.is_initialized())


def current_place() -> Place:
    """Return this process's place: what torch.distributed says, else what the launcher says."""
    launched = place_from(os.environ)
    if not is_distributed():
        return launched
    import torch.distributed as dist

    return Place(dist.get_rank(), dist.get_world_size(), launched.local_rank, launched.node_rank)


def local_world_size() -> int | None:
    """Return how many processes of the job run on this machine, if the launcher tells."""
    names = ("LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE", "OMPI_COMM_WORLD_LOCAL_SIZE")
    return next((number for name in names if (number := _number(os.environ, name)) is not None), None)


def run_from(environ: Mapping[str, str]) -> str | None:
    """Return the run's name that the environment tells, if any.

    torchrun calls every run `none` unless it is told otherwise.
    """
    for name in ("RUN_NAME", "PT_PROFILER_JOB_NAME"):
        if environ.get(name):
            return folder_name(environ[name])
    elastic = environ.get("TORCHELASTIC_RUN_ID", "")
    if elastic and elastic != "none":
        return folder_name(elastic)
    job, number = environ.get("SLURM_JOB_NAME"), environ.get("SLURM_JOB_ID")
    return folder_name(f"{job}-{number}") if job and number else None


def checked_run(name: str) -> str:
    """Return the run's name as given: a visible folder below the logdir, possibly several levels deep.

    Raises:
        UsageError: It is none, or lies outside the logdir.
    """
    parts = name.split("/")
    if any(part.startswith(".") or not part or "\0" in part for part in parts):
        raise UsageError(
            f"run={name!r}: a run's name must be a visible folder below the logdir, such as 'resnet/lr-0.1'."
        )
    return name


class Run:
    """The name of the run, settled at the latest when the first trace is saved.

    Where neither the program nor the environment names it, the run is called after the time when one of its processes
    asked first. The processes agree on it through torch.distributed's store, without waiting for each other. Where the
    logdir holds an earlier attempt of that name, the run has a number behind it (`attempts`).

    Args:
        name: What the program calls it.
        logdir: Where it has its folder.
        overwrite: Whether it takes the folder of that name, whatever is there.
    """

    def __init__(self, name: str | None, logdir: Path, *, overwrite: bool = False) -> None:
        self._given = run_from(os.environ) if name is None else checked_run(name)
        self._logdir, self._overwrite = logdir, overwrite
        self._settled: str | None = None
        # Each process of a job makes its recorders in the same order: the n-th of each belong together.
        self._number = next(_count)
        self._started = time.strftime("%Y%m%d-%H%M%S")
        self.token = ""
        """What the processes of this attempt have in common; empty before the name is settled."""

    @property
    def name(self) -> str:
        """The name; asking for it settles it."""
        if self._settled is None:
            store, key = default_store() if is_distributed() else None, f"kinetoscope/run/{self._number}"
            name, token = self._given or self._started, token_from(os.environ, self._number)
            if store is not None:
                token = _agreed(store, f"{key}/token", f"{token}/{uuid.uuid4().hex}", otherwise=token)
                name = self._given or _agreed(store, key, name)
            self.token, wanted = token, name
            with suppress(OSError):  # the finisher will say that nothing can be written there
                name = claimed(self._logdir, name, token, overwrite=self._overwrite)
            self._settled = name if store is None else _agreed(store, f"{key}/attempt of {wanted}", name)
        return self._settled


def name_for_all() -> str:
    """Return what the launcher calls the job, or else a time on which all its processes agree."""
    name = run_from(os.environ)
    if name is not None:
        return name
    proposal, key = time.strftime("%Y%m%d-%H%M%S"), f"kinetoscope/name/{next(_count)}"
    store = default_store() if is_distributed() else None
    return proposal if store is None else _agreed(store, key, proposal)


def default_store() -> Store | None:
    """Return torch.distributed's default store, which has no public name."""
    from torch.distributed import distributed_c10d

    find = getattr(distributed_c10d, "_get_default_store", None)
    return None if find is None else find()


def _agreed(store: Store, key: str, proposal: str, otherwise: str | None = None) -> str:
    """Return the first of all processes' proposals; where nothing can be agreed on, `otherwise` or one's own.

    torchrun's store outlives the processes that it starts anew, with all that an earlier attempt left there (torch
    2.13). A group comes about when all its processes run, so what is older than this one is of another attempt.
    """
    mine = f"{time.time_ns()} {proposal}"
    try:
        found = store.compare_set(key, "", mine).decode()
        if int(found.partition(" ")[0]) < _process_start_ns():
            found = store.compare_set(key, found, mine).decode()
    except (RuntimeError, NotImplementedError, ValueError):  # a store that can't, or whose server is gone
        return proposal if otherwise is None else otherwise
    return found.partition(" ")[2]


def _process_start_ns() -> int:
    """When this process began, in Unix time; 0 where the system doesn't tell."""
    try:
        told = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        since_boot_ns = int(told[19]) * 10**9 // os.sysconf("SC_CLK_TCK")  # proc(5): field 22
        return time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME) + since_boot_ns
    except (OSError, ValueError, IndexError, AttributeError):
        return 0
