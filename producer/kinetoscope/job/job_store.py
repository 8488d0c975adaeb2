"""The store that all processes of a job share: torch.distributed's, or the one of torchrun's agent."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch.distributed as dist

from .rank_info import is_distributed, number_in
from .run_attempts import START_WINDOW_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch._C._distributed_c10d import Store

if dist.is_available():  # some builds of torch lack it
    from torch._C._distributed_c10d import PrefixStore, TCPStore
    from torch.distributed import distributed_c10d

_AGENT_PATIENCE = timedelta(seconds=5)
_TIMEOUT = timedelta(seconds=10)


def default_store() -> Store | None:
    """Return torch.distributed's default store, for which there is no public API; there must be a group."""
    find = getattr(distributed_c10d, "_get_default_store", None)
    return None if find is None else find()


def connection(store: Any) -> Any:
    """Return another connection to a store: a blocking call delays all others of its connection.

    Raises:
        RuntimeError: No other connection is possible.
    """
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    if isinstance(store, TCPStore):
        return TCPStore(store.host, store.port, is_master=False, timeout=_TIMEOUT, wait_for_workers=False)
    clone = getattr(store, "clone", None)
    if clone is None:
        raise RuntimeError(f"no second connection to a {type(store).__name__}")
    return clone()


class JobStore:
    """A store that all processes of a job share.

    torchrun's store outlives the processes that it restarts, with all entries of earlier attempts (torch 2.13). Entries
    of another attempt are ignored. A process group forms when all its processes run, so there these are the entries
    that are older than this process; without a group, those of a process that began long before this one.

    Args:
        store: The store.
        kind: `group` or `agent`: the owner of the store.
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
        """Return the first of all processes' proposals; None if the store can't be used."""
        start_ns = process_start_ns()
        stamp_ns = time.time_ns() if self.kind == "group" else start_ns
        oldest_ns = start_ns if self.kind == "group" else start_ns - START_WINDOW_S * 10**9
        mine = f"{stamp_ns} {proposal}"
        try:
            value = self._store.compare_set(key, "", mine).decode()
            if int(value.partition(" ")[0]) < oldest_ns:
                value = self._store.compare_set(key, value, mine).decode()
        except (RuntimeError, NotImplementedError, ValueError):  # not supported, or the store's server is gone
            return None
        return value.partition(" ")[2]


def _agent_store(environ: Mapping[str, str]) -> Store | None:
    """Return a connection to the store of torchrun's agent; None if it can't be reached."""
    port = number_in(environ, "MASTER_PORT")
    if environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True" or not environ.get("MASTER_ADDR") or port is None:
        return None
    if not dist.is_available():
        return None
    try:
        store = TCPStore(environ["MASTER_ADDR"], port, is_master=False, timeout=_AGENT_PATIENCE, wait_for_workers=False)
        return PrefixStore(f"kinetoscope/attempt {environ.get('TORCHELASTIC_RESTART_COUNT', '')}", store)
    except (RuntimeError, ValueError):  # no server at that address
        return None


def process_start_ns() -> int:
    """Return this process's start in Unix time; 0 if the system doesn't report it."""
    try:
        stat = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        since_boot_ns = int(stat[19]) * 10**9 // os.sysconf("SC_CLK_TCK")  # proc(5): field 22
        return time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME) + since_boot_ns
    except (OSError, ValueError, IndexError, AttributeError):
        return 0
