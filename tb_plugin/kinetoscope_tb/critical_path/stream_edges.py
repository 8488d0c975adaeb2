"""What rows of streams wait for: their launch, the previous row, rows of other streams.

Rows are indices of device_events, boundaries are indices of `HostBoundaries`. Each function returns pairs of them; the
graph turns these into nodes.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE, gather, map_categories, rows_by_id
from ..arrays.native import Array, Function
from ..measures.time.idle import QUEUED_NS
from ..names.calls import copies_memory
from ..names.device_work import copies_between_devices
from ..trace import Trace
from ..trace.row_filters import device_ends
from .boundaries import HostBoundaries, RangeBoundaries
from .edges import Kind
from .streams import Streams

_find_next_launch = Function("next_launch")

Rows = NDArray[np.int32]
Ints = NDArray[np.int64]
EdgePairs = tuple[Rows, Rows]
"""Rows that wait, and the rows that they wait for."""


def launch_boundaries(
    trace: Trace, boundaries: HostBoundaries, ranges: RangeBoundaries
) -> tuple[Rows, NDArray[np.int8]]:
    """For each row the boundary that it waits for on the launching thread, or NONE, and the kind of that wait.

    That is the end of the call, or its start if the row began before the call returned. If clock errors make the row
    begin before its call, it is the last boundary before. A call that only launches decides when its (first) row may
    begin; a call that copies may itself wait until the stream reaches the copy.
    """
    device, calls = trace.device_events, trace.launches
    launch = device["launch"].to_numpy()
    call_ranges = np.where(launch >= 0, launch + trace.host_events.height, NONE)
    start = device["start_ns"].to_numpy()
    begins, stops = gather(ranges.start, call_ranges), gather(ranges.end, call_ranges)
    is_over = (stops >= 0) & (gather(boundaries.time, stops) <= start)
    is_early = (launch >= 0) & (gather(boundaries.time, begins) > start)
    points = np.where(is_over, stops, begins)
    thread = gather(calls["thread"].to_numpy(), launch)[is_early]
    points[is_early] = boundaries.last_before(thread, start[is_early])
    copies = gather(map_categories(calls["name"], copies_memory).astype(bool), launch, missing=False)
    rows = np.arange(launch.size, dtype=np.int32)
    first_row = np.full(calls.height + 1, NONE, np.int32)  # NONE is the last one
    first_row[launch[::-1]] = rows[::-1]  # they are sorted by start
    is_first = first_row[launch] == rows
    cases = [is_over | is_early | ~is_first, copies]
    kind = np.select(cases, [Kind.LAUNCH, Kind.COPY_CALL], default=Kind.CALL)
    return points, kind.astype(np.int8)


def stream_order(streams: Streams, count: int) -> Rows:
    """For each row the row of its stream that ended last before it began, or NONE."""
    previous = np.full(count, NONE, np.int32)
    for stream in streams.streams:
        by_end = np.argsort(stream.end, kind="stable")
        rank_by_end = np.empty(by_end.size, np.int64)
        rank_by_end[by_end] = np.arange(by_end.size)
        # a row without a duration has ended when it begins: what ended before itself is its predecessor
        last_end = np.minimum(np.searchsorted(stream.end[by_end], stream.start, "right"), rank_by_end) - 1
        before = stream.rows[by_end[np.maximum(last_end, 0)]]
        previous[stream.rows] = np.where(last_end >= 0, before, NONE)
    return previous


def overlapped_rows(streams: Streams, count: int) -> Rows:
    """For each row the previous one on its stream, if that one still runs when it begins, or NONE.

    A kernel with programmatic dependent launch begins when the previous one lets it (`griddepcontrol.launch_dependents`
    in PTX), and waits inside itself until that one is over (`griddepcontrol.wait`).
    """
    previous = np.full(count, NONE, np.int32)
    for stream in streams.streams:
        is_running = stream.end[:-1] > stream.start[1:]
        previous[stream.rows[1:]] = np.where(is_running, stream.rows[:-1], NONE)
    return previous


def event_edges(trace: Trace, streams: Streams) -> EdgePairs:
    """Rows that wait for an event, if the trace has the call that recorded it, and its stream.

    That is the first row of the waiting stream that was launched after the wait, and the last row that had been
    launched to the other stream when the event was recorded. A wait that names a later record means the record before
    it, which isn't in the trace (kineto 23b5bb57): `wait_call_edges` covers it.
    """
    waits = trace.syncs.filter(pl.col("sync_kind").cast(pl.String) == "Stream Wait Event")
    calls = trace.launches
    number = calls["correlation"].to_numpy()
    record = rows_by_id(number, waits["wait_on_record"].to_numpy())
    call = rows_by_id(number, waits["correlation"].to_numpy())
    start = calls["start_ns"].to_numpy()
    at = np.where(call >= 0, gather(start, call), waits["start_ns"].to_numpy())
    record_start = gather(start, record)
    pairs: list[EdgePairs] = []
    stream_at = {(stream.device, stream.number): stream for stream in streams.streams}
    rows = zip(waits["device"], waits["stream"], waits["wait_on_stream"], at, record_start, record, strict=True)
    for device, stream, other, when, then, recording_call in rows:
        target, source = stream_at.get((device, stream)), stream_at.get((device, other))
        if recording_call < 0 or then > when or target is None or source is None:
            continue
        after = np.searchsorted(target.launched, when)
        if after < target.rows.size:
            before, is_all = source.last_ended(np.array([then]), target.start[after : after + 1])
            pairs.append((target.rows[after : after + 1], np.where(is_all, before, NONE)))
    return _concatenate(pairs)


def wait_call_edges(trace: Trace, streams: Streams) -> EdgePairs:
    """Rows whose stream waits because of a call for which no event is recorded.

    The call comes before the row's launch, and after the previous launch on that thread. What the row waited for is
    inferred: of the rows launched to the device's other streams before, the one that ended last before the row began.
    """
    calls = trace.launches
    is_wait_call = map_categories(calls["name"], lambda name: "WaitEvent" in name).astype(bool)
    recorded_waits = trace.syncs.filter((pl.col("wait_on_record") >= 0) & (pl.col("correlation") >= 0))
    is_wait_call &= ~np.isin(calls["correlation"].to_numpy(), recorded_waits["correlation"].to_numpy())
    launch = trace.device_events["launch"].to_numpy()
    first = np.full(calls.height, NONE, np.int32)  # of each call, the first row that it launched
    with_launch = np.flatnonzero(launch >= 0)[::-1]
    first[launch[with_launch]] = with_launch
    wait = _next_launch(calls["thread"].to_numpy(), first, is_wait_call)
    waits = np.flatnonzero(wait >= 0)
    row = wait[waits]
    at, begins = calls["start_ns"].to_numpy()[waits], trace.device_events["start_ns"].to_numpy()[row]
    return row, _last_of_others(trace, streams, row, at, begins)


def _last_of_others(trace: Trace, streams: Streams, row: Rows, launched_before: Ints, by: Ints) -> Rows:
    """The last row to end by an instant on another stream of each row's device, launched before an instant, or NONE.

    Rows of other devices count, too, if one of both rows is a copy between devices.
    """
    end = device_ends(trace)
    device = trace.device_events["device"].to_numpy()
    between = (trace.device_events["kind"] == "memcpy").to_numpy()
    between &= map_categories(trace.device_events["name"], copies_between_devices)
    best = np.full(row.size, NONE, np.int32)
    for number, stream in streams.busiest:
        rows, _ = stream.last_ended(launched_before, by)
        may_wait = (device[row] == stream.device) | between[row] | gather(between, rows, missing=False)
        rows = np.where((streams.of[row] != number) & may_wait, rows, NONE)
        better = (rows >= 0) & ((best < 0) | (gather(end, rows) > gather(end, best)))
        best = np.where(better, rows, best)
    return best


def coincidence_edges(trace: Trace, streams: Streams, since: Ints) -> EdgePairs:
    """Rows that began just after a row of another stream had ended, and long after everything else they wait for.

    Args:
        trace: The trace.
        streams: Its streams.
        since: When all known predecessors of each row were over; "long after" is more than QUEUED_NS.
    """
    start = trace.device_events["start_ns"].to_numpy()
    row = np.flatnonzero(start - since > QUEUED_NS).astype(np.int32)
    before = _last_of_others(trace, streams, row, start[row], start[row])
    end = device_ends(trace)
    is_near = (before >= 0) & (start[row] - gather(end, before) <= QUEUED_NS) & (gather(end, before) > since[row])
    return row[is_near], before[is_near]


def _concatenate(pairs: list[EdgePairs]) -> EdgePairs:
    if not pairs:
        return np.empty(0, np.int32), np.empty(0, np.int32)
    after, before = (np.concatenate(side).astype(np.int32) for side in zip(*pairs, strict=True))
    return after, before


def _next_launch(thread: Array, first: Array, is_wait_call: Array) -> Array:
    """For each call that makes a stream wait, the row that its thread launched next, or -1."""
    rows = np.empty(thread.size, np.int32)
    _find_next_launch(thread, first, is_wait_call, rows)
    return rows
