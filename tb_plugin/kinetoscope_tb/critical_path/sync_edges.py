"""Which calls wait for the device, and for which of its rows.

Where the recording tells the stream or the event of a wait (cuda_sync rows), that is followed. Else the times tell: a
call that waits returns soon after what it waited for, so that is the row, among those launched before, that ended last
before the call did. A call that waits for a whole device or its context waits for the last row of every stream.
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
from ..names.calls import allocates, copies_memory, synchronises
from ..trace import Trace
from .edges import Kind
from .streams import Stream, Streams

Rows = NDArray[np.int32]
Ints = NDArray[np.int64]
_ALL = re.compile(r"(?:Device|Ctx|Context)Synchronize")
FULL_QUEUE = 1000
"""Rows of a stream that are queued when a launch has to wait for room; CUDA's queues hold 1024 (measured by HTA)."""


@dataclass(frozen=True)
class CallWaits:
    """Calls (rows of launches) that return after rows of device_events, and how that is known.

    `at_start` says that the row's start frees the call, not its end.
    """

    call: Rows
    row: Rows
    kind: NDArray[np.int8]
    at_start: NDArray[np.bool_]

    @classmethod
    def of(cls, call: NDArray[Any], row: NDArray[Any], kind: Kind, *, at_start: bool = False) -> CallWaits:
        """Return the pairs of which the row is known."""
        real = row >= 0
        n = int(real.sum())
        return cls(
            call[real].astype(np.int32), row[real].astype(np.int32), np.full(n, kind, np.int8), np.full(n, at_start)
        )


def sync_edges(trace: Trace, streams: Streams) -> list[CallWaits]:
    """All calls that wait for rows."""
    own, has_own = _own_copies(trace)
    return [own, *_synchronising(trace, streams, has_own), *_full_queues(trace, streams)]


def _calls(trace: Trace) -> tuple[Ints, Ints]:
    start = trace.launches["start_ns"].to_numpy()
    return start, start + trace.launches["dur_ns"].to_numpy()


def _own_copies(trace: Trace) -> tuple[CallWaits, NDArray[np.bool_]]:
    """Calls that copy and return after their own copy has ended: synchronous ones, and those of pageable memory."""
    calls, device = trace.launches, trace.device_events
    launch = device["launch"].to_numpy()
    ended = device["start_ns"].to_numpy() + device["dur_ns"].to_numpy()
    copies = map_categories(calls["name"], copies_memory).astype(bool)
    _, end = _calls(trace)
    row = np.flatnonzero((launch >= 0) & gather(copies, launch, missing=False) & (ended <= gather(end, launch)))
    has_own = np.zeros(calls.height, bool)
    has_own[launch[row]] = True
    return CallWaits.of(launch[row], row, Kind.SYNC), has_own


def _synchronising(trace: Trace, streams: Streams, has_own: NDArray[np.bool_]) -> list[CallWaits]:
    calls = trace.launches
    start, end = _calls(trace)
    waits = map_categories(calls["name"], synchronises).astype(bool) & ~has_own
    for_all = map_categories(calls["name"], lambda name: bool(_ALL.search(name))).astype(bool) & waits
    told = _told_streams(trace)
    takes_memory = map_categories(calls["name"], allocates).astype(bool) & (end - start > QUEUED_NS)
    found = []
    call = np.flatnonzero(waits | takes_memory)
    latest = np.full(call.size, NONE, np.int32)
    ended = trace.device_events["start_ns"].to_numpy() + trace.device_events["dur_ns"].to_numpy()
    for _, stream in streams.busiest:
        row, is_all = stream.last_ended(_since(told, call, start), end[call])
        row = np.where(is_all & _may_wait_for(stream, told, call), row, NONE)
        found.append(CallWaits.of(call[for_all[call]], row[for_all[call]], Kind.SYNC))
        is_later = (row >= 0) & ((latest < 0) | (gather(ended, row) > gather(ended, latest)))
        latest = np.where(is_later, row, latest)
    is_sure = waits[call] & ~for_all[call]
    just_now = (
        takes_memory[call] & (end[call] - gather(ended, latest) <= QUEUED_NS) & (gather(ended, latest) > start[call])
    )
    chosen = np.where(is_sure | just_now, latest, NONE)
    return [*found, CallWaits.of(call, chosen, Kind.SYNC)]


@dataclass(frozen=True)
class _Told:
    """What cuda_sync rows say of calls: device and stream that a call waits for, and since when what counts."""

    device: Ints
    stream: Ints
    since: Ints


def _told_streams(trace: Trace) -> _Told:
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
    return _Told(device, stream, since)


def _since(told: _Told, call: Ints, start: Ints) -> Ints:
    """Before when a row must have been launched for a call to wait for it: the call's start, or its event's record."""
    since = told.since[call]
    return np.where((since >= 0) & (since <= start[call]), since, start[call])


def _may_wait_for(stream: Stream, told: _Told, call: Ints) -> NDArray[np.bool_]:
    number = told.stream[call]
    may: NDArray[np.bool_] = (number < 0) | ((number == stream.number) & (told.device[call] == stream.device))
    return may


def _full_queues(trace: Trace, streams: Streams) -> list[CallWaits]:
    """Launches that had to wait for room in the stream's queue: they return when the device takes a row from it."""
    _, end = _calls(trace)
    start = trace.launches["start_ns"].to_numpy()
    launch = trace.device_events["launch"].to_numpy()
    found = []
    for stream in streams.streams:
        called = launch[stream.rows]
        begun = np.searchsorted(stream.start, gather(start, called), "right")
        is_full = (called >= 0) & (np.arange(called.size) - begun >= FULL_QUEUE)
        call = called[is_full]
        freed = np.searchsorted(stream.start, end[call], "right") - 1
        is_slow = (freed >= 0) & (end[call] - start[call] > QUEUED_NS)
        freed = np.where(is_slow & (stream.start[np.maximum(freed, 0)] > start[call]), freed, NONE)
        row = np.where(freed >= 0, stream.rows[np.maximum(freed, 0)], NONE)
        found.append(CallWaits.of(call, row, Kind.FULL_QUEUE, at_start=True))
    return found
