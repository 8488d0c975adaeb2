"""Who records: the process's place among the others, and the run that they all belong to.

The environment is an argument everywhere, so that one may ask what a process would be called without being it.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from .attempts import START_WINDOW_S, Attempt, claimed, join_attempt, launcher_facts
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

_AGENT_PATIENCE = timedelta(seconds=5)

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
    asked first. The processes agree on it through torch.distributed's store, or the one of torchrun's agent, without
    waiting for each other; whoever reaches none joins the others by what is in the logdir. Where the logdir holds an
    earlier attempt of that name, the run has a number behind it (`attempts`).

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
        self.is_sure = True
        """Whether all that have the token are certainly processes of one job."""

    @property
    def name(self) -> str:
        """The name; asking for it settles it."""
        if self._settled is None:
            key = f"kinetoscope/run/{self._number}"
            store = JobStore.find()
            attempt = self._joined(store, key)
            self.token, name = attempt.token, attempt.name
            with suppress(OSError):  # the finisher will say that nothing can be written there
                name = claimed(self._logdir, name, attempt.token, overwrite=self._overwrite)
            agreed = None if store is None else store.agree(f"{key}/attempt of {attempt.name}", name)
            self._settled = agreed or name
        return self._settled

    def _joined(self, store: JobStore | None, key: str) -> Attempt:
        """Return the attempt of which this process is one."""
        facts, place = launcher_facts(os.environ, self._number), current_place()
        facts = replace(facts, text=f"{facts.text}/{self._given or ''}" if facts.text else "")
        name, token = self._given or self._started, f"{facts.text}/{uuid.uuid4().hex}"
        own = Attempt(name, token, _process_start_ns() or time.time_ns())
        agreed = None if store is None else store.agree(f"{key}/token", token)
        if store is not None and agreed is not None:
            own = replace(own, token=agreed, agreed_by=store.kind)
            own = replace(own, name=self._given or store.agree(key, name) or name)
        if not facts.text or place.world_size < 2:
            return own
        with suppress(OSError, UsageError):  # then nobody else will write there either, or somebody made up a name
            found, self.is_sure = join_attempt(self._logdir, facts, own, place.global_rank)
            own = replace(found, name=self._given or checked_run(found.name))
        if store is not None and agreed is not None:
            with suppress(ValueError, TypeError):
                told = store.agree(f"{key}/joined", json.dumps([asdict(own), self.is_sure]))
                if told is not None:
                    attempt, self.is_sure = json.loads(told)
                    own = Attempt(**attempt)
        return own


def name_for_all() -> str:
    """Return what the launcher calls the job, or else a time on which all its processes agree."""
    name = run_from(os.environ)
    if name is not None:
        return name
    proposal, key = time.strftime("%Y%m%d-%H%M%S"), f"kinetoscope/name/{next(_count)}"
    store = JobStore.find()
    return proposal if store is None else store.agree(key, proposal) or proposal


def default_store() -> Store | None:
    """Return torch.distributed's default store, which has no public name."""
    from torch.distributed import distributed_c10d

    find = getattr(distributed_c10d, "_get_default_store", None)
    return None if find is None else find()


class JobStore:
    """A store that all processes of a job share.

    torchrun's store outlives the processes that it starts anew, with all that an earlier attempt left there (torch
    2.13). What is of another attempt counts for nothing. A group comes about when all its processes run, so there it is
    what is older than this process; without one, what a process left that began long before this one.

    Args:
        store: The store.
        kind: `group`, or `agent`: what connects the processes.
    """

    def __init__(self, store: Store, kind: str) -> None:
        self._store, self.kind = store, kind

    @classmethod
    def find(cls) -> JobStore | None:
        """Return the store of the default group, else the one of torchrun's agent; None if there is none."""
        if is_distributed():
            store = default_store()
            return None if store is None else cls(store, "group")
        store = _agent_store(os.environ)
        return None if store is None else cls(store, "agent")

    def agree(self, key: str, proposal: str) -> str | None:
        """Return the first of all processes' proposals; None where nothing can be agreed on."""
        began_ns = _process_start_ns()
        stamp_ns = time.time_ns() if self.kind == "group" else began_ns
        oldest_ns = began_ns if self.kind == "group" else began_ns - START_WINDOW_S * 10**9
        mine = f"{stamp_ns} {proposal}"
        try:
            found = self._store.compare_set(key, "", mine).decode()
            if int(found.partition(" ")[0]) < oldest_ns:
                found = self._store.compare_set(key, found, mine).decode()
        except (RuntimeError, NotImplementedError, ValueError):  # a store that can't, or whose server is gone
            return None
        return found.partition(" ")[2]


def _agent_store(environ: Mapping[str, str]) -> Store | None:
    """Return a connection to the store that torchrun's agent keeps for its workers; None if it can't be reached."""
    port = _number(environ, "MASTER_PORT")
    if environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True" or not environ.get("MASTER_ADDR") or port is None:
        return None
    try:
        from torch._C._distributed_c10d import PrefixStore, TCPStore

        store = TCPStore(environ["MASTER_ADDR"], port, is_master=False, timeout=_AGENT_PATIENCE, wait_for_workers=False)
        return PrefixStore(f"kinetoscope/attempt {environ.get('TORCHELASTIC_RESTART_COUNT', '')}", store)
    except (ImportError, RuntimeError, ValueError):  # a torch without it, or nobody answers there
        return None


def _process_start_ns() -> int:
    """When this process began, in Unix time; 0 where the system doesn't tell."""
    try:
        told = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        since_boot_ns = int(told[19]) * 10**9 // os.sysconf("SC_CLK_TCK")  # proc(5): field 22
        return time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME) + since_boot_ns
    except (OSError, ValueError, IndexError, AttributeError):
        return 0
