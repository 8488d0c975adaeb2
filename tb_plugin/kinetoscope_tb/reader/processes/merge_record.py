"""What our own `merge` says about the files that it merged: `merged`, behind the events.

Each worker has its numbers of processes, its metadata, and the offset of its clock.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...trace.meta import WriterFingerprint
from ..frames.metadata import Metadata, metadata
from .ownership import MOST_PROCESSES

OF_WORKER = " · "
"""Between the worker and the name of one of its processes."""


@dataclass(frozen=True)
class MergedWorker:
    """A worker whose file was merged.

    Args:
        name: The worker.
        pids: Its own numbers of processes, by those in the merged file.
        outside: The metadata of its file.
        fingerprint: Of the writer of its file.
    """

    name: str
    pids: Mapping[str, str]
    outside: Metadata
    fingerprint: WriterFingerprint

    def own_name(self, label: str, pid: str) -> str | None:
        """The name of a process in its own file; None if it had none there."""
        name = label.removeprefix(f"{self.name}{OF_WORKER}")
        return None if name in (pid, f"process {pid}") else name


def merged_workers(outside: Metadata) -> list[MergedWorker]:
    """The workers of a file that we merged; none if it is another file, or its record is damaged."""
    records = outside.top.get("merged")
    if not isinstance(records, list) or not 2 <= len(records) <= MOST_PROCESSES:
        return []
    workers = [worker for record in records if (worker := _worker(record, outside.base_ns)) is not None]
    names, pids = {worker.name for worker in workers}, [pid for worker in workers for pid in worker.pids]
    is_whole = len(workers) == len(records) == len(names) and len(set(pids)) == len(pids)
    return workers if is_whole else []


def _worker(record: Any, zero_ns: int) -> MergedWorker | None:
    if not isinstance(record, Mapping):
        return None
    name, pids, top = (record.get(key) for key in ("worker", "processes", "metadata"))
    if not isinstance(name, str) or not isinstance(pids, Mapping) or not isinstance(top, Mapping):
        return None
    offset = record.get("clock_offset_ns") or 0
    if not isinstance(offset, int) or not all(isinstance(pid, str) for pid in pids.values()):
        return None
    try:
        outside = metadata(json.dumps(top).encode(), b"")
    except RecursionError:
        return None
    return MergedWorker(name, pids, replace(outside, base_ns=zero_ns + offset), _fingerprint(record.get("fingerprint")))


def _fingerprint(value: Any) -> WriterFingerprint:
    parts = [value.get(name) if isinstance(value, Mapping) else None for name in ("keys", "categories", "forms")]
    return WriterFingerprint(*(frozenset(filter(_is_text, part if isinstance(part, list) else [])) for part in parts))


def _is_text(value: object) -> bool:
    return isinstance(value, str)
