"""Which calls wait for the device, and for which of its rows.

If the trace has the stream or the event of a wait (cuda_sync rows), that is used. Otherwise it is inferred: a waiting
call returns soon after what it waited for, so that is the row, among those launched before, that ended last before the
call returned. A call that waits for a whole device or its context waits for the last row of every stream.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE, gather, map_categories, rows_by_id
from ..measures.time.idle import QUEUED_NS
from ..names.calls import allocates, copies_memory, synchronizes
from ..trace import Trace
from ..trace.row_filters import device_ends
from .edges import Kind
from .streams import Stream, Streams

Rows = NDArray[np.int32]
Ints = NDArray[np.int64]
_ALL = re.compile(r"(?:Device|Ctx|Context)Synchronize")
FULL_QUEUE = 1000
"""Queued rows of a stream from which on a launch waits for room; CUDA's queues hold 1024 (measured by HTA)."""


@dataclass(frozen=True)
class CallWaits:
    """Calls (rows of launches) that return after rows of device_events, and the kind of wait.

    `at_start`: the call returns at the row's start, not its end.
    """

    call: Rows
    row: Rows
    kind: NDArray[np.int8]
    at_start: NDArray[np.bool_]

    @classmethod
    def of(cls, call: NDArray[Any], row: NDArray[Any], kind: Kind, *, at_start: bool = False) -> CallWaits:
        """Return the pairs with a known row."""
        real = row >= 0
        n = int(real.sum())
        return cls(
            call[real].astype(np.int32), row[real].astype(np.int32), np.full(n, kind, np.int8), np.full(n, at_start)
        )


def sync_edges(trace: Trace, streams: Streams) -> list[CallWaits]:
    """All calls that wait for rows."""
    own, has_own = _own_copies(trace)
    return [own, *_sync_calls(trace, streams, has_own), *_full_queues(trace, streams)]


def _calls(trace: Trace) -> tuple[Ints, Ints]:
    start = trace.launches["start_ns"].to_numpy()
    return start, start + trace.launches["dur_ns"].to_numpy()


def _own_copies(trace: Trace) -> tuple[CallWaits, NDArray[np.bool_]]:
    """Calls that return after their own copy has ended: synchronous copies, and copies of pageable memory."""
    calls, device = trace.launches, trace.device_events
    launch = device["launch"].to_numpy()
    row_end = device_ends(trace)
    copies = map_categories(calls["name"], copies_memory).astype(bool)
    _, end = _calls(trace)
    row = np.flatnonzero((launch >= 0) & gather(copies, launch, missing=False) & (row_end <= gather(end, launch)))
    has_own = np.zeros(calls.height, bool)
    has_own[launch[row]] = True
    return CallWaits.of(launch[row], row, Kind.SYNC), has_own


def _sync_calls(trace: Trace, streams: Streams, has_own: NDArray[np.bool_]) -> list[CallWaits]:
    calls = trace.launches
    start, end = _calls(trace)
    waits = map_categories(calls["name"], synchronizes).astype(bool) & ~has_own
    for_all = map_categories(calls["name"], lambda name: bool(_ALL.search(name))).astype(bool) & waits
    targets = _sync_targets(trace)
    takes_memory = map_categories(calls["name"], allocates).astype(bool) & (end - start > QUEUED_NS)
    waits_for_rows = []
    call = np.flatnonzero(waits | takes_memory)
    latest = np.full(call.size, NONE, np.int32)
    row_end = device_ends(trace)
    for _, stream in streams.busiest:
        row, is_all = stream.last_ended(_since(targets, call, start), end[call])
        row = np.where(is_all & _may_wait_for(stream, targets, call), row, NONE)
        waits_for_rows.append(CallWaits.of(call[for_all[call]], row[for_all[call]], Kind.SYNC))
        is_later = (row >= 0) & ((latest < 0) | (gather(row_end, row) > gather(row_end, latest)))
        latest = np.where(is_later, row, latest)
    is_sure = waits[call] & ~for_all[call]
    just_now = (
        takes_memory[call]
        & (end[call] - gather(row_end, latest) <= QUEUED_NS)
        & (gather(row_end, latest) > start[call])
    )
    row_of_call = np.where(is_sure | just_now, latest, NONE)
    return [*waits_for_rows, CallWaits.of(call, row_of_call, Kind.SYNC)]


@dataclass(frozen=True)
class _SyncTargets:
    """What each call waits for, from cuda_sync rows: device, stream, and the time of the event's record."""

    device: Ints
    stream: Ints
    since: Ints


def _sync_targets(trace: Trace) -> _SyncTargets:
    calls = trace.launches
    number = calls["correlation"].to_numpy()
    start, _ = _calls(trace)
    device, stream, since = (np.full(calls.height, NONE, np.int64) for _ in range(3))
    kind = pl.col("sync_kind").cast(pl.String)
    for name, column in (("Stream Sync", "stream"), ("Event Sync", "wait_on_stream")):
        rows = trace.syncs.filter((kind == name) & (pl.col(column) >= 0))
        call = rows_by_id(number, rows["correlation"].to_numpy())
        record = rows_by_id(number, rows["wait_on_record"].to_numpy())
        real = call >= 0
        device[call[real]], stream[call[real]] = rows["device"].to_numpy()[real], rows[column].to_numpy()[real]
        if name == "Event Sync":
            since[call[real]] = gather(start, record)[real]
    return _SyncTargets(device, stream, since)


def _since(targets: _SyncTargets, call: Ints, start: Ints) -> Ints:
    """Latest launch time of rows that a call waits for: the call's start, or its event's record."""
    since = targets.since[call]
    return np.where((since >= 0) & (since <= start[call]), since, start[call])


def _may_wait_for(stream: Stream, targets: _SyncTargets, call: Ints) -> NDArray[np.bool_]:
    number = targets.stream[call]
    may: NDArray[np.bool_] = (number < 0) | ((number == stream.number) & (targets.device[call] == stream.device))
    return may


def _full_queues(trace: Trace, streams: Streams) -> list[CallWaits]:
    """Launches that waited for room in the stream's queue: they return when the device takes a row from it."""
    _, end = _calls(trace)
    start = trace.launches["start_ns"].to_numpy()
    launch = trace.device_events["launch"].to_numpy()
    waits = []
    for stream in streams.streams:
        launching_call = launch[stream.rows]
        n_begun = np.searchsorted(stream.start, gather(start, launching_call), "right")
        is_full = (launching_call >= 0) & (np.arange(launching_call.size) - n_begun >= FULL_QUEUE)
        call = launching_call[is_full]
        row_before = np.searchsorted(stream.start, end[call], "right") - 1
        is_slow = (row_before >= 0) & (end[call] - start[call] > QUEUED_NS)
        row_before = np.where(is_slow & (stream.start[np.maximum(row_before, 0)] > start[call]), row_before, NONE)
        row = np.where(row_before >= 0, stream.rows[np.maximum(row_before, 0)], NONE)
        waits.append(CallWaits.of(call, row, Kind.FULL_QUEUE, at_start=True))
    return waits
