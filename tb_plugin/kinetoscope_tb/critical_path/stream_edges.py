"""What rows of streams wait for: their launch, the row before, rows of other streams.

Rows are named by their place in device_events, boundaries of threads by their number in `HostBoundaries`. Each function
returns pairs as `Edges`; the graph turns places into nodes.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE, gather, map_categories, rows_by_id
from ..arrays.jit import Array, compiled
from ..measures.time.idle import QUEUED_NS
from ..names.calls import copies_memory
from ..trace import Trace
from .boundaries import HostBoundaries
from .edges import Kind
from .streams import Streams

Rows = NDArray[np.int32]
Ints = NDArray[np.int64]
EdgePairs = tuple[Rows, Rows]
"""Rows that wait, and the rows that they wait for."""


def launching_points(trace: Trace, boundaries: HostBoundaries) -> tuple[Rows, NDArray[np.int8]]:
    """For each row the point that it waits for on the launching thread, or NONE, and the kind of that wait.

    That is the end of the call, or its start if the row began while it was going on. If the clocks make the row begin
    before its call, it is the last point before. A call that only launches decides when its (first) row may begin; one
    that copies may itself wait until the stream comes to the copy.
    """
    device, calls = trace.device_events, trace.launches
    launch = device["launch"].to_numpy()
    ranges = np.where(launch >= 0, launch + trace.host_events.height, NONE)
    start = device["start_ns"].to_numpy()
    begins, stops = gather(boundaries.start, ranges), gather(boundaries.end, ranges)
    is_over = (stops >= 0) & (gather(boundaries.time, stops) <= start)
    is_early = (launch >= 0) & (gather(boundaries.time, begins) > start)
    found = np.where(is_over, stops, begins)
    thread = gather(calls["thread"].to_numpy(), launch)[is_early]
    found[is_early] = boundaries.last_before(thread, start[is_early])
    copies = gather(map_categories(calls["name"], copies_memory).astype(bool), launch, missing=False)
    is_first = np.zeros(launch.size, bool)
    is_first[np.unique(launch, return_index=True)[1]] = True  # rows come in the order of their start
    cases = [is_over | is_early | ~is_first, copies]
    kind = np.select(cases, [Kind.LAUNCH, Kind.COPY_CALL], default=Kind.CALL)
    return found, kind.astype(np.int8)


def stream_order(streams: Streams, count: int) -> Rows:
    """For each row the one of its stream that ended last before it began, or NONE."""
    found = np.full(count, NONE, np.int32)
    for stream in streams.streams:
        by_end = np.argsort(stream.end, kind="stable")
        ended = np.searchsorted(stream.end[by_end], stream.start, "right") - 1
        before = stream.rows[by_end[np.maximum(ended, 0)]]
        # a row without a duration has ended when it begins: it is no row before itself
        real = (ended >= 0) & (before != stream.rows)
        found[stream.rows] = np.where(real, before, NONE)
    return found


def event_edges(trace: Trace, streams: Streams) -> EdgePairs:
    """Rows that wait for an event, where the recording says which call recorded it, on which stream.

    That is the first row of the waiting stream that was launched after the wait, and the last one that the other
    stream had been given when the event was recorded. A wait that names a later record means the one before, which
    isn't told (kineto 23b5bb57): it is left to `wait_call_edges`.
    """
    told = trace.syncs.filter(pl.col("sync_kind").cast(pl.String) == "Stream Wait Event")
    calls = trace.launches
    number = calls["correlation"].to_numpy()
    record = rows_by_id(number, told["wait_on_record"].to_numpy())
    call = rows_by_id(number, told["correlation"].to_numpy())
    start = calls["start_ns"].to_numpy()
    at = np.where(call >= 0, gather(start, call), told["start_ns"].to_numpy())
    recorded = gather(start, record)
    found: list[EdgePairs] = []
    place = {(stream.device, stream.number): stream for stream in streams.streams}
    rows = zip(told["device"], told["stream"], told["wait_on_stream"], at, recorded, record, strict=True)
    for device, stream, other, when, then, known in rows:
        waiting, source = place.get((device, stream)), place.get((device, other))
        if known < 0 or then > when or waiting is None or source is None:
            continue
        after = np.searchsorted(waiting.launched, when)
        if after < waiting.rows.size:
            before, is_all = source.last_ended(np.array([then]), waiting.start[after : after + 1])
            found.append((waiting.rows[after : after + 1], np.where(is_all, before, NONE)))
    return _joined(found)


def wait_call_edges(trace: Trace, streams: Streams) -> EdgePairs:
    """Rows whose stream was told to wait by a call of which nothing else is recorded.

    The call comes before the row's launch, and after the launch before on that thread. What it waited for follows from
    the times: of what was launched to other streams of the device before, what ended last before the row began.
    """
    calls = trace.launches
    is_told = map_categories(calls["name"], lambda name: "WaitEvent" in name).astype(bool)
    known = trace.syncs.filter((pl.col("wait_on_record") >= 0) & (pl.col("correlation") >= 0))
    is_told &= ~np.isin(calls["correlation"].to_numpy(), known["correlation"].to_numpy())
    launch = trace.device_events["launch"].to_numpy()
    first = np.full(calls.height, NONE, np.int32)  # of each call, the first row that it launched
    linked = np.flatnonzero(launch >= 0)[::-1]
    first[launch[linked]] = linked
    wait = _next_launch(calls["thread"].to_numpy(), first, is_told)
    waits = np.flatnonzero(wait >= 0)
    row = wait[waits]
    at, begins = calls["start_ns"].to_numpy()[waits], trace.device_events["start_ns"].to_numpy()[row]
    return row, _last_of_others(trace, streams, row, at, begins)


def _last_of_others(trace: Trace, streams: Streams, row: Rows, launched_before: Ints, by: Ints) -> Rows:
    """What ended last by an instant on another stream of each row's device, launched before an instant, or NONE."""
    end = (trace.device_events["start_ns"] + trace.device_events["dur_ns"]).to_numpy()
    device = trace.device_events["device"].to_numpy()
    best = np.full(row.size, NONE, np.int32)
    for place, stream in streams.busiest:
        found, _ = stream.last_ended(launched_before, by)
        found = np.where((streams.of[row] != place) & (device[row] == stream.device), found, NONE)
        better = (found >= 0) & ((best < 0) | (gather(end, found) > gather(end, best)))
        best = np.where(better, found, best)
    return best


def moments(trace: Trace, streams: Streams, since: Ints) -> EdgePairs:
    """Rows that began just after one of another stream of the device had ended, and long after all else they wait for.

    Args:
        trace: The trace.
        streams: Its streams.
        since: For each row when all that it is known to wait for was over; long after is more than QUEUED_NS.
    """
    start = trace.device_events["start_ns"].to_numpy()
    row = np.flatnonzero(start - since > QUEUED_NS).astype(np.int32)
    before = _last_of_others(trace, streams, row, start[row], start[row])
    end = (trace.device_events["start_ns"] + trace.device_events["dur_ns"]).to_numpy()
    is_near = (before >= 0) & (start[row] - gather(end, before) <= QUEUED_NS) & (gather(end, before) > since[row])
    return row[is_near], before[is_near]


def _joined(found: list[EdgePairs]) -> EdgePairs:
    if not found:
        return np.empty(0, np.int32), np.empty(0, np.int32)
    after, before = (np.concatenate(side).astype(np.int32) for side in zip(*found, strict=True))
    return after, before


@compiled
def _next_launch(thread: Array, first: Array, is_told: Array) -> Array:
    """For each call that tells a stream to wait the row that its thread launched next, or -1."""
    found = np.empty(thread.size, np.int32)
    following = NONE
    for i in range(thread.size - 1, -1, -1):
        if i + 1 < thread.size and thread[i] != thread[i + 1]:
            following = NONE
        found[i] = following if is_told[i] else NONE
        if first[i] >= 0:
            following = first[i]
    return found
