"""Threads: the (pid, tid) pairs that have rows, and their names.

Pairs are compared as text because torch 1.9 writes the same tid as a string on ranges and as a number on instants.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, distinct_values
from ...names.natural_sort import natural_key
from ...trace.model import THREADS
from ..scan.rows import LAYOUTS, Rows
from ..scan.tokens import Texts, distinct_codes


def threads_of(frames: Mapping[str, Rows], texts: Texts) -> tuple[dict[str, NDArray[np.int32]], pl.DataFrame]:
    """(per frame, the thread of each event; the threads frame). Rows of devices have a stream instead of a thread."""
    on_host = [
        name for name, layout in LAYOUTS.items() if layout.is_timed and name not in ("device_events", "syncs", "ends")
    ]
    pids: dict[str, int] = {}
    tids: dict[str, int] = {}
    pairs_of = {
        name: (
            text_places(frames[name].gather("pid"), texts, pids),
            text_places(frames[name].gather("tid"), texts, tids),
        )
        for name in on_host
    }
    dtype: type[Any] = np.int32 if len(pids) * len(tids) <= np.iinfo(np.int32).max else np.int64
    pairs: dict[str, NDArray[Any]] = {}
    for name in on_host:
        pid, tid = pairs_of.pop(name)
        pairs[name] = pid.astype(dtype) * len(tids) + tid
    distinct = np.unique(np.concatenate([distinct_values(pair) for pair in pairs.values()]))
    pid_of, tid_of = list(pids), list(tids)
    texts_of = [(pid_of[pair // len(tids)], tid_of[pair % len(tids)]) for pair in distinct.tolist()]
    order = sorted(range(len(texts_of)), key=lambda i: tuple(map(natural_key, texts_of[i])))
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    processes, names = _names_in_file(frames["names"], texts)
    table = [(p, t, processes.get(p), names.get((p, t))) for p, t in (texts_of[i] for i in order)]
    threads = {name: rank[np.searchsorted(distinct, pairs.pop(name))] for name in on_host}
    return threads, pl.DataFrame(table, schema=THREADS, orient="row")


def text_places(codes: NDArray[Any], texts: Texts, place_of: dict[str, int]) -> NDArray[np.int32]:
    """The place of each code's text in `place_of`, which new texts are added to; a missing text is an empty one."""
    place_of_code = np.zeros(len(texts) + 1, np.int32)
    for code in distinct_codes(codes, len(texts)):
        place_of_code[code] = place_of.setdefault(texts[code] or "", len(place_of))
    place_of_each: NDArray[np.int32] = place_of_code[codes]
    return place_of_each


def _names_in_file(rows: Rows, texts: Texts) -> tuple[dict[str, str], dict[tuple[str, str], str]]:
    """(names of processes, names of threads), from the rows of phase M."""
    processes: dict[str, str] = {}
    threads: dict[tuple[str, str], str] = {}
    columns = (rows.gather(column).tolist() for column in ("name", "pid", "tid", "label"))
    for name, pid, tid, label in zip(*columns, strict=True):
        if label == NONE:
            continue
        if texts[name] == "process_name":
            processes[texts[pid] or ""] = (texts[label] or "").strip()
        elif texts[name] == "thread_name":
            threads[texts[pid] or "", texts[tid] or ""] = (texts[label] or "").strip()
    return processes, threads
