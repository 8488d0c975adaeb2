"""Levels of memory as the counters of Chrome's JSON, many at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..trace import Trace
from ..trace.memory_levels import DeviceMemory, device_memories
from .event_texts import Texts, events, json_text

_AT_ONCE = 1 << 17


def memory_counters(trace: Trace, window: tuple[int | None, int | None], pid: int, shift_ns: int) -> Iterator[bytes]:
    """The levels of each device's memory, from that at the window's start on.

    Args:
        trace: The trace.
        window: On its clock.
        pid: The process that the counters belong to.
        shift_ns: From the trace's times to the file's.
    """
    for memory in device_memories(trace):
        inside = memory.within(*window)
        begins = window[0] is not None and bool(inside.start)
        if begins:
            at = np.array([max(window[0] or 0, int(memory.time_ns[inside.start - 1]))])
            yield _counters(memory, slice(inside.start - 1, inside.start), at + shift_ns, pid)
        for first in range(inside.start, inside.stop, _AT_ONCE):
            some = slice(first, min(first + _AT_ONCE, inside.stop))
            yield _counters(memory, some, memory.time_ns[some] + shift_ns, pid)


def _counters(memory: DeviceMemory, records: slice, at: NDArray[np.int64], pid: int) -> bytes:
    """The levels after some records, as if these were at the given times."""
    levels = pl.DataFrame({"allocated": memory.allocated_bytes[records], "reserved": memory.reserved_bytes[records]})
    reserved = pl.when(pl.col("reserved") >= 0).then(pl.concat_str(pl.lit(',"reserved":'), "reserved"))
    said = pl.concat_str(pl.lit(',"args":{"allocated":'), "allocated", reserved.otherwise(pl.lit("")), pl.lit("}}"))
    name = f"{memory.name} memory" + (" (change)" if memory.is_relative else "")
    texts = (
        Texts.of([',\n{"ph":"C"']),
        Texts.of([f',"name":{json_text(name)}']),
        Texts.of([f',"pid":{pid},"ts":']),
        Texts.of_series(levels.select(said).to_series()),
    )
    same = np.zeros(at.size, np.int64)
    return events(texts, (same, same, same, np.arange(at.size)), np.array([True]), (at, same))
