"""Threads: which (pid, tid) pairs have rows, and what the trace calls them.

Pairs are compared as texts, since torch 1.9 writes the same tid as a string on ranges and as a number on instants.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..trace.model import NONE, THREADS
from .columns import Columns
from .kinds import Kind
from .tokens import Texts, used

_TABLE_AT_MOST = 1 << 22


def threads_of(
    columns: Columns, codes: dict[str, NDArray[Any]], kind: NDArray[np.int8], texts: Texts
) -> tuple[NDArray[np.int32], pl.DataFrame]:
    """(thread of each event or NONE, the threads frame). Rows of devices have a stream instead of a thread."""
    is_device = (kind >= Kind.KERNEL) & (kind <= Kind.MEMSET)
    rows = np.flatnonzero((kind > Kind.UNTIMED) & ~is_device)
    pid, pids = _compact(codes["pid"][rows], texts)
    tid, tids = _compact(codes["tid"][rows], texts)
    pairs, inverse = _distinct(pid.astype(np.int64) * len(tids) + tid, len(pids) * len(tids))
    listed = [(pids[pair // len(tids)], tids[pair % len(tids)]) for pair in pairs.tolist()]
    order = sorted(range(len(listed)), key=lambda i: tuple(map(_natural, listed[i])))
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    thread = np.full(kind.size, NONE, np.int32)
    thread[rows] = rank[inverse]
    processes, names = _given_names(columns, codes, kind, texts)
    table = [(p, t, processes.get(p), names.get((p, t))) for p, t in (listed[i] for i in order)]
    return thread, pl.DataFrame(table, schema=THREADS, orient="row")


def _compact(codes: NDArray[Any], texts: Texts) -> tuple[NDArray[np.int32], list[str | None]]:
    """Each code as a place in the list of distinct texts."""
    place_of: dict[str | None, int] = {}
    places = np.zeros(len(texts) + 1, np.int32)
    for code in used(codes, len(texts)):
        places[code] = place_of.setdefault(texts[code], len(place_of))
    return places[codes], list(place_of)


def _distinct(values: NDArray[np.int64], below: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """np.unique with inverse; by a table, without sorting, where the values are small."""
    if below > _TABLE_AT_MOST:
        return np.unique(values, return_inverse=True)
    occurs = np.zeros(below, bool)
    occurs[values] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[values]


def _natural(text: str | None) -> tuple[bool, int, str]:
    """A sort key: numbers by value, before texts."""
    text = text or ""
    is_number = text.lstrip("-").isdecimal() and len(text) < 20
    return not is_number, int(text) if is_number else 0, text


def _given_names(
    columns: Columns, codes: dict[str, NDArray[Any]], kind: NDArray[np.int8], texts: Texts
) -> tuple[dict[str | None, str], dict[tuple[str | None, str | None], str]]:
    """(names of processes, names of threads), from the rows of phase M."""
    processes: dict[str | None, str] = {}
    threads: dict[tuple[str | None, str | None], str] = {}
    rows, labels = (growing.array() for growing in columns.args["label"])
    is_meta = kind[rows] == Kind.META
    rows, labels = rows[is_meta], labels[is_meta]
    of_rows = (codes[column][rows].tolist() for column in ("name", "pid", "tid"))
    for name, pid, tid, label in zip(*of_rows, labels.tolist(), strict=True):
        if texts[name] == "process_name":
            processes[texts[pid]] = (texts[label] or "").strip()
        elif texts[name] == "thread_name":
            threads[texts[pid], texts[tid]] = (texts[label] or "").strip()
    return processes, threads
