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
from ..arrays.native import Function
from ..errors import NotATrace
from ..names.memory_categories import TORCH_CATEGORIES
from .input.document import not_a_trace
from .scan.counters import CounterLines
from .scan.ingest import RawFile, RawTrace
from .scan.kinds import Kind
from .scan.rows import LAYOUTS, Occurrences, Part

_MOST_BYTES, _MOST_INTEGERS = 1 << 28, 1 << 25
_MOST_TIME_NS = 2**61
_BEFORE = -1
_OUTER = 2  # the depth of times, and of rows
Ints = NDArray[np.int64]

_nested_integers = Function("nested_integers")


def ingest(blocks: Iterable[bytes], path: str, _progress: object) -> RawFile:
    """Read a memory timeline.

    Raises:
        NotATrace: It isn't one.
    """
    parts, size = [], 0
    for block in blocks:
        size += len(block)
        if size > _MOST_BYTES:
            raise NotATrace(path, f"it is too large for a memory timeline: over {_MOST_BYTES >> 20} MiB.")
        parts.append(bytes(block))
    text = b"".join(parts)
    try:
        time, change, category = _changes(*_integers(text))
    except ValueError as error:
        raise not_a_trace(path, text) from error
    result = RawTrace(head=b'{"memoryTimeline": true, "traceEvents": [', tail=b"]}")
    result.events.append(_part(time, change, category))
    return RawFile(result)


def _integers(text: bytes) -> tuple[Ints, NDArray[np.int8], NDArray[np.int32]]:
    """Of each integer in nested arrays: its value, how many arrays it is in, how many arrays began before it.

    Raises:
        ValueError: The text is something else, or has too many.
    """
    room = min(text.count(b",") + 1, _MOST_INTEGERS)
    values, depths, arrays = np.empty(room, np.int64), np.empty(room, np.int8), np.empty(room, np.int32)
    count = _nested_integers(np.frombuffer(text, np.uint8), values, depths, arrays)
    if count <= 0:
        raise ValueError
    return values[:count], depths[:count], arrays[:count]


def _changes(values: Ints, depths: NDArray[np.int8], arrays: NDArray[np.int32]) -> tuple[Ints, Ints, Ints]:
    """(time in ns, bytes allocated or released, category) of each change; times before the recording are the first."""
    is_outer = depths == _OUTER
    if is_outer.all():
        time, _, change, category = _rows(values, arrays, len(values) // 4, first=2).T
    else:
        times = values[is_outer]
        is_far = bool((np.abs(times) > _MOST_TIME_NS // 1000).any())
        if is_far or (arrays[is_outer] != _OUTER).any() or (depths[~is_outer] != _OUTER + 1).any():
            raise ValueError
        sizes = _rows(values[~is_outer], arrays[~is_outer], len(times), first=4)
        changes = np.diff(sizes[:, 1:], axis=0, prepend=0)
        step, category = np.nonzero(changes)
        change = changes[step, category]
        time = np.where(times >= 0, times * 1000, _BEFORE)[step]
    if time.size == 0 or np.abs(time).max() > _MOST_TIME_NS:
        raise ValueError
    first = int(time[time != _BEFORE].min(initial=_MOST_TIME_NS))
    is_known = (category >= 0) & (category < len(TORCH_CATEGORIES))
    return np.where(time == _BEFORE, first, time), change, np.where(is_known, category, len(TORCH_CATEGORIES) - 1)


def _rows(values: Ints, arrays: NDArray[np.int32], count: int, first: int) -> Ints:
    """The values as rows of arrays that follow one another; `first`: how many arrays begin until the first row.

    Raises:
        ValueError: They aren't.
    """
    rows = values.reshape(count, -1)
    if not count or (arrays.reshape(count, -1) != np.arange(first, first + count)[:, None]).any():
        raise ValueError
    return rows


def _part(time: Ints, change: Ints, category: Ints) -> Part:
    tokens = [json.dumps(name).encode() for name in (*TORCH_CATEGORIES, "")]
    nones, blank = np.full(time.size, NONE), np.full(time.size, len(tokens) - 1)
    columns = {
        **dict.fromkeys(LAYOUTS["memory"].args, nones),
        "name": category,
        "pid": blank,
        "tid": blank,
        "ts": time,
        "dur": nones,
        "offset": np.arange(time.size),
        "length": np.ones(time.size, np.int32),
        "kind": np.full(time.size, Kind.MEMORY, np.int8),
        "memory_bytes": change,
        "total_allocated": np.cumsum(change),
    }
    lines = CounterLines(np.empty(0, np.int64), b"")
    return Part(time.size, tokens, {"memory": columns}, Occurrences(), Occurrences(), lines)
