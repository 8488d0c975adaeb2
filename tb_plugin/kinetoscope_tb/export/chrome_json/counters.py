"""Levels of memory and the program's own counters as counters of Chrome's JSON, many at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...measures.memory.levels import DeviceMemory, device_memories
from ...timeline.counters.user_counters import UserCounter
from ...trace import Trace
from .events import Texts, events, json_text

_AT_ONCE = 1 << 17


def memory_counters(trace: Trace, window: tuple[int | None, int | None], pid: int, shift_ns: int) -> Iterator[bytes]:
    """The levels of each device's memory, starting with the one at the window's start.

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
            batch = slice(first, min(first + _AT_ONCE, inside.stop))
            yield _counters(memory, batch, memory.time_ns[batch] + shift_ns, pid)


def user_counter_events(
    series: UserCounter, window: tuple[int | None, int | None], pid: int, shift_ns: int
) -> Iterator[bytes]:
    """The values of one series, starting with the one at the window's start. Unknown values are skipped.

    Args:
        series: The series.
        window: On the trace's clock.
        pid: The process that the counter belongs to.
        shift_ns: From the trace's times to the file's.
    """
    at, value = series.curve
    first = 0 if window[0] is None else max(0, int(np.searchsorted(at, window[0], "right")) - 1)
    last = at.size if window[1] is None else int(np.searchsorted(at, window[1], "right"))
    at, value = at[first:last], value[first:last]
    if window[0] is not None:
        at = np.maximum(at, window[0])
    is_known = np.isfinite(value)
    at, value = at[is_known] + shift_ns, value[is_known]
    unit = "bytes" + series.unit if series.kind == "bytes" else series.unit
    name = series.counter + (f" ({unit})" if unit else "")
    parts = Texts.of([',\n{"ph":"C"']), Texts.of([f',"name":{json_text(name)}']), Texts.of([f',"pid":{pid},"ts":'])
    for begin in range(0, at.size, _AT_ONCE):
        batch = slice(begin, begin + _AT_ONCE)
        numbers = pl.DataFrame({"value": value[batch]})
        args = pl.concat_str(pl.lit(f',"args":{{{json_text(series.series)}:'), "value", pl.lit("}}"))
        same = np.zeros(at[batch].size, np.int64)
        texts = (*parts, Texts.of_series(numbers.select(args).to_series()))
        yield events(texts, (same, same, same, np.arange(same.size)), np.array([True]), (at[batch], same))


def _counters(memory: DeviceMemory, records: slice, at: NDArray[np.int64], pid: int) -> bytes:
    """The levels after some records, as if these were at the given times."""
    levels = pl.DataFrame({"allocated": memory.allocated_bytes[records], "reserved": memory.reserved_bytes[records]})
    reserved_member = pl.when(pl.col("reserved") >= 0).then(pl.concat_str(pl.lit(',"reserved":'), "reserved"))
    args = pl.concat_str(
        pl.lit(',"args":{"allocated":'), "allocated", reserved_member.otherwise(pl.lit("")), pl.lit("}}")
    )
    name = f"{memory.name} memory" + (" (change)" if memory.is_relative else "")
    texts = (
        Texts.of([',\n{"ph":"C"']),
        Texts.of([f',"name":{json_text(name)}']),
        Texts.of([f',"pid":{pid},"ts":']),
        Texts.of_series(levels.select(args).to_series()),
    )
    same = np.zeros(at.size, np.int64)
    return events(texts, (same, same, same, np.arange(at.size)), np.array([True]), (at, same))
