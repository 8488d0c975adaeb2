"""The events of a file → those of each of its processes, with the metadata of that process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ...arrays.gather import NONE
from ...names.processes import Process
from ...trace.meta import WriterFingerprint
from ..frames.metadata import Metadata, metadata
from ..scan.ingest import RawTrace
from ..scan.rows import LAYOUTS, SortedEvents
from ..scan.tokens import Texts, distinct_codes
from .identity import home_of_metadata, identities, metadata_of, own_pids
from .merge_record import MergedWorker, merged_workers
from .ownership import ALL, Owners, label_of, owners_of


@dataclass(frozen=True)
class Share:
    """The events of one process of a file, and the metadata about it.

    Args:
        raw_trace: The events.
        outside: The metadata.
        process: Which process; None if the file holds only one.
        fingerprint: Of the writer of its own file, if that is known.
    """

    raw_trace: RawTrace
    outside: Metadata
    process: Process | None = None
    fingerprint: WriterFingerprint | None = None


@dataclass(frozen=True)
class Contents:
    """What a file holds.

    Args:
        processes: Its processes, if there are several.
        share: Returns the events of one of them, by its place; of the file's only one at 0.
    """

    processes: tuple[Process, ...]
    share: Callable[[int], Share]

    def in_turn(self, first: str | None) -> list[int]:
        """The places of all processes, the given one first; empty if there is no such process."""
        numbers = list(range(max(1, len(self.processes))))
        firsts = [nth for nth, process in enumerate(self.processes) if process.id == first]
        if first is not None and not firsts:
            return []
        return sorted(numbers, key=lambda nth: nth not in firsts)


def contents(raw_trace: RawTrace, path: str) -> Contents:
    """What a file holds: one process, as profilers write it, or several, as tools merge them.

    Raises:
        TraceError: They are too many.
    """
    outside = metadata(raw_trace.head, raw_trace.tail)
    texts = Texts(raw_trace.events.tokens)
    workers = merged_workers(outside)
    if workers:
        return _contents_of_workers(raw_trace, texts, workers)
    owners = owners_of(raw_trace.events, texts, path)
    if owners is None:
        return Contents((), lambda _: Share(raw_trace, outside))
    return _contents_of_merge(raw_trace, texts, owners, outside)


def _contents_of_merge(raw_trace: RawTrace, texts: Texts, owners: Owners, outside: Metadata) -> Contents:
    members = identities(raw_trace.events, texts, owners, outside)
    home = home_of_metadata(owners)

    def share(nth: int) -> Share:
        events = _select(raw_trace.events, owners, nth)
        own = own_pids(events, texts)
        _rename_pids(events, lambda pid: own.get(pid, label_of(pid)[1]))
        position = (nth, len(members)) if owners.is_appended else None
        top = metadata_of(outside, members[nth], is_home=nth == home, position=position)
        return Share(replace(raw_trace, events=events), top, members[nth].process)

    return Contents(tuple(identity.process for identity in members), share)


def _contents_of_workers(raw_trace: RawTrace, texts: Texts, workers: list[MergedWorker]) -> Contents:
    """The workers of a file that we merged."""
    worker_of = {pid: nth for nth, worker in enumerate(workers) for pid in worker.pids}
    owner_of = np.array([*(worker_of.get(texts[code] or "", 0) for code in range(len(texts))), 0], np.int32)
    of_rows = {
        name: owner_of[raw_trace.events.frames[name]["pid"]]
        for name, layout in LAYOUTS.items()
        if "pid" in layout.codes
    }
    owners = Owners.of(raw_trace.events, [worker.name for worker in workers], of_rows, is_appended=True)

    def share(nth: int) -> Share:
        worker, events = workers[nth], _select(raw_trace.events, owners, nth)
        _rename_pids(events, lambda pid: worker.pids.get(pid, pid))
        _rename_processes(events, worker)
        return Share(replace(raw_trace, events=events), worker.outside, processes[nth], worker.fingerprint)

    processes = tuple(Process(worker.name, worker.name) for worker in workers)
    return Contents(processes, share)


def _select(events: SortedEvents, owners: Owners, nth: int) -> SortedEvents:
    return events.select({name: (owner == nth) | (owner == ALL) for name, owner in owners.of_rows.items()})


def _rename_pids(events: SortedEvents, own_pid: Callable[[str], str]) -> None:
    """Give the events the pids that they had before the files were merged."""
    texts = Texts(events.tokens)
    for rows in events.frames.values():
        if "pid" not in rows or not rows["pid"].size:
            continue
        pids = {code: texts[code] or "" for code in distinct_codes(rows["pid"], len(texts))}
        others = {code: own for code, pid in pids.items() if (own := own_pid(pid)) != pid}
        if others:
            code_of = np.arange(-1, len(texts))
            for code, own in others.items():
                code_of[code + 1] = events.code(json.dumps(own, ensure_ascii=False).encode())
            rows.put("pid", np.arange(rows["pid"].size), code_of[rows["pid"].astype(np.int64) + 1])


def _rename_processes(events: SortedEvents, worker: MergedWorker) -> None:
    """Give the processes the names that they had before the files were merged."""
    texts, names = Texts(events.tokens), events.frames["names"]
    kinds = [code for code in distinct_codes(names["name"], len(texts)) if texts[code] == "process_name"]
    rows = np.flatnonzero((names["label"] >= 0) & np.isin(names["name"], kinds))
    codes = []
    for pid, label in zip(names["pid"][rows].tolist(), names["label"][rows].tolist(), strict=True):
        own = worker.own_name(texts[label] or "", texts[pid] or "")
        codes.append(NONE if own is None else events.code(json.dumps(own, ensure_ascii=False).encode()))
    names.put("label", rows, np.array(codes, np.int64))
