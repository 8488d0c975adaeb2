"""Memory timelines (`export_memory_timeline` of torch 2.0 and later) → the memory rows of a trace without events.

`.json` holds [times in µs, sizes by category after each], `.raw.json.gz` a list of [time in ns, action, bytes,
category]; a time of -1 is before the recording (torch/profiler/_memory_profiler.py). Neither says which device it is,
nor addresses or operators.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ..arrays.gather import NONE
from ..errors import NotATrace
from ..names.memory_categories import TORCH_CATEGORIES
from .input.document import not_a_trace
from .scan.counters import CounterLines
from .scan.ingest import Ingested
from .scan.kinds import Kind
from .scan.rows import LAYOUTS, Noted, Part

_MOST_BYTES = 1 << 28
_MOST_TIME_NS = 2**61
_BEFORE = -1
Ints = NDArray[np.int64]


def ingest_memory_timeline(blocks: Iterable[bytes], path: str) -> Ingested:
    """Read a memory timeline.

    Raises:
        NotATrace: It isn't one.
    """
    text = b""
    for block in blocks:
        text += block
        if len(text) > _MOST_BYTES:
            raise NotATrace(path, f"it is too large for a memory timeline: over {_MOST_BYTES >> 20} MiB.")
    try:
        time, change, category = _changes(json.loads(text))
    except (ValueError, TypeError, OverflowError, RecursionError, IndexError) as error:
        raise not_a_trace(path, text) from error
    result = Ingested(head=b'{"memoryTimeline": true, "traceEvents": [', tail=b"]}")
    result.events.append(_part(time, change, category))
    return result


def _changes(content: list[list[int]]) -> tuple[Ints, Ints, Ints]:
    """(time in ns, bytes allocated or released, category) of each change; times before the recording are the first."""
    if len(content) == 2 and isinstance(content[1][0], list):
        times, sizes = np.array(content[0], np.int64), np.array(content[1], np.int64)
        if times.shape != sizes.shape[:1]:
            raise ValueError
        step, category = np.nonzero(np.diff(sizes[:, 1:], axis=0, prepend=0))
        change = np.diff(sizes[:, 1:], axis=0, prepend=0)[step, category]
        time = np.where(times >= 0, times * 1000, _BEFORE)[step]
    else:
        time, _, change, category = np.array(content, np.int64).T
    if time.size == 0 or np.abs(time).max() > _MOST_TIME_NS:
        raise ValueError
    first = int(time[time != _BEFORE].min(initial=_MOST_TIME_NS))
    is_known = (category >= 0) & (category < len(TORCH_CATEGORIES))
    return np.where(time == _BEFORE, first, time), change, np.where(is_known, category, len(TORCH_CATEGORIES) - 1)


def _part(time: Ints, change: Ints, category: Ints) -> Part:
    tokens = [json.dumps(name).encode() for name in (*TORCH_CATEGORIES, "")]
    nothing, blank = np.full(time.size, NONE), np.full(time.size, len(tokens) - 1)
    columns = {
        **dict.fromkeys(LAYOUTS["memory"].args, nothing),
        "name": category,
        "pid": blank,
        "tid": blank,
        "ts": time,
        "dur": nothing,
        "offset": np.arange(time.size),
        "length": np.ones(time.size, np.int32),
        "kind": np.full(time.size, Kind.MEMORY, np.int8),
        "memory_bytes": change,
        "total_allocated": np.cumsum(change),
    }
    lines = CounterLines(np.empty(0, np.int64), b"")
    return Part(time.size, tokens, {"memory": columns}, Noted(), Noted(), lines)
