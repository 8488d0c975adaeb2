"""Kernels that outlive the synchronize that waited for them.

What was launched before a call began to wait for its stream (or its device) has ended when the call returns. The stream
of a wait is known if the trace holds the wait on the device's side, or if the thread's launch before it is a copy in
the same operator, as in `Tensor.item()` and `Tensor.to()`. A wait for the device counts where one device was used.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather, map_categories, rows_by_id
from ...arrays.intervals import Ints
from ...measures.time.idle import Rows
from ...names import text
from ...names.calls import copies_memory
from ...names.regex import regex
from ...trace import Diagnostic
from ...trace.model import Fault
from . import limits
from .times import Times

_DEVICE = regex(r"(?:cuda|hip|mu)DeviceSynchronize|cuCtxSynchronize")
_STREAM = regex(r"(?:cuda|hip|mu|cu)StreamSynchronize")
_NEVER = np.iinfo(np.int64).max


def diagnose(times: Times) -> Iterator[Diagnostic]:
    """Rows that end after a wait for them had returned."""
    calls, queues = _waits(times)
    if not calls.size:
        return
    bound = np.full(times.start.size, _NEVER)
    is_late_wait = np.zeros(calls.size, bool)
    for queue in np.unique(queues):
        own = calls[queues == queue]
        rows = np.flatnonzero(times.is_linked & ((queue == NONE) | (times.queue == queue)))
        bound[rows] = np.minimum(bound[rows], _bounds(times, own, rows))
        is_late_wait[queues == queue] = times.call_start[own] >= times.returned[rows].min(initial=_NEVER)
    late = times.end - np.minimum(bound, times.end)
    outlives = late > limits.CLOCK_ERROR_NS
    if outlives.any():
        yield _of(times, outlives, bound, late, int(is_late_wait.sum()))


def _bounds(times: Times, calls: Rows, rows: NDArray[np.int64]) -> Ints:
    """When each of some rows had ended at the latest: the first return of a wait that began after its launch."""
    order = calls[np.argsort(times.call_start[calls], kind="stable")]
    returns = np.minimum.accumulate(times.call_end[order][::-1])[::-1]
    return np.append(returns, _NEVER)[np.searchsorted(times.call_start[order], times.returned[rows])]


def _waits(times: Times) -> tuple[Rows, Rows]:
    """The calls that wait, and the queue that each waits for; NONE: the one device."""
    names = times.trace.launches["name"]
    whole = np.flatnonzero(map_categories(names, lambda name: bool(_DEVICE.match(name))))
    single = np.flatnonzero(map_categories(names, lambda name: bool(_STREAM.match(name))))
    queue = _named_queues(times, single)
    queue = np.where(queue == NONE, _copied_queues(times, single), queue)
    single, queue = single[queue != NONE], queue[queue != NONE]
    if len(times.devices) != 1:
        whole = whole[:0]
    calls = np.concatenate([whole, single]).astype(np.int32)
    return calls, np.concatenate([np.full(whole.size, NONE), queue]).astype(np.int32)


def _named_queues(times: Times, calls: NDArray[np.int64]) -> Rows:
    """The queues of waits by their rows on the device's side."""
    stream = ["device", "stream"]
    syncs = times.trace.syncs.filter(pl.col("sync_kind").cast(pl.String) == "Stream Sync")
    if syncs.is_empty():
        return np.full(calls.size, NONE, np.int32)
    queues = times.trace.device_events.select(*stream, queue=pl.Series(times.queue)).unique(stream)
    queue = syncs.select(stream).join(queues, stream, "left", maintain_order="left")["queue"].fill_null(NONE).to_numpy()
    correlation = times.trace.launches["correlation"].to_numpy()[calls]
    return gather(queue, rows_by_id(syncs["correlation"].to_numpy(), correlation)).astype(np.int32)


def _copied_queues(times: Times, calls: NDArray[np.int64]) -> Rows:
    """The queues of waits right behind a copy of the same thread and operator."""
    launches = times.trace.launches
    queue_of = np.full(launches.height, NONE, np.int32)
    events = np.flatnonzero(times.is_linked)
    queue_of[times.launch[events]] = times.queue[events]
    calls_with_queue = np.flatnonzero(queue_of != NONE)
    before: Rows = gather(calls_with_queue, (np.searchsorted(calls_with_queue, calls) - 1).astype(np.int32)).astype(
        np.int32
    )
    thread, op = launches["thread"].to_numpy(), launches["op"].to_numpy()
    is_copy = gather(map_categories(launches["name"], copies_memory).astype(bool), before, missing=False)
    is_own = is_copy & (gather(thread, before) == thread[calls]) & (op[calls] != NONE)
    return np.where(is_own & (gather(op, before) == op[calls]), gather(queue_of, before), NONE).astype(np.int32)


def _of(times: Times, outlives: NDArray[np.bool_], bound: Ints, late: Ints, waits: int) -> Diagnostic:
    count, most = int(outlives.sum()), int(late.max())
    n_broken = np.unique(bound[outlives]).size
    is_behind = (times.start >= bound)[outlives].any() and count > 1  # all of a row came later, not only its end
    is_offset = is_behind or (n_broken > 1 and n_broken > limits.SYSTEMATIC * waits)
    events = f"{count} GPU event{'s end' if count != 1 else ' ends'}"
    fact = f"{events} up to {text.time(most)} after the host had waited for {'them' if count != 1 else 'it'}"
    if is_offset:
        affected_ns = times.moved_by(most)
        meaning = (
            f"That is so in {n_broken} of {waits} waits: the device's clock is ahead of the host's by up to that much. "
            "Durations are right; gaps between host and device are wrong by that offset."
        )
    else:
        affected_ns = times.within_steps(np.maximum(times.start, bound)[outlives], times.end[outlives])
        meaning = "That can't be: their durations or their starts are wrong, and with them busy time and utilization."
    return Diagnostic(
        "kernel_outlives_wait",
        count,
        f"{fact}. {meaning} Record again with a newer driver and profiler library.",
        times.first_offset(outlives),
        fault=Fault(
            fact,
            frozenset({"clock"} if is_offset else {"idle", "kernel_times", "clock", "steps"}),
            "Record again with a newer driver and profiler library.",
            affected_ns,
        ),
    )
