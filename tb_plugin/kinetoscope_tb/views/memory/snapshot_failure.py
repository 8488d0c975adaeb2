"""Why allocations failed, according to a memory snapshot: one sentence each, its evidence, and what to do."""

from __future__ import annotations

import polars as pl

from ...measures.memory.allocation_failure import Failure, failures
from ...measures.memory.failure_text import explanation
from ...measures.memory.snapshots import DeviceSnapshot, OfSnapshot, device_snapshots
from ...measures.recording.contents import has_snapshot_failure
from ...table import BYTES, ID, INSTANT, PROSE, STACK, TEXT, Column
from ...trace import Trace
from ...view import Part, RowTime, View

MOST = 20  # failures of a device


class SnapshotFailure(OfSnapshot):
    """Why an allocation failed: the last failures of a snapshot's history.

    Kinetoscope's recorder stores how much memory the device has; other snapshots don't say it. Without that, a full
    device and memory that something other than torch has taken can look alike; `device_memory_bytes` gives it.
    """

    key = ("device", "event")

    time_ns = Column(INSTANT, "Time of the failure; the event's number if the snapshot has no times.")
    cause = Column(
        TEXT,
        "`full`: tensors fill the device; `leak`: and a line's memory grows with each step; `fragmented`: enough is "
        "unused, in too small pieces; `other_stream`: enough is cached for other streams; `private_pool`: enough is "
        "unused in private pools, as of CUDA graphs; `outside`: something other than torch has the memory; `limit`: "
        "the device had room, and a limit of the process or of the driver refused it; `too_large`: the request is "
        "larger than the device; `full_or_outside`: one of these two.",
    )
    finding = Column(PROSE, "The cause as a sentence.")
    evidence = Column(PROSE, "The numbers behind it.")
    action = Column(PROSE, "What would have made room.")
    request_bytes = Column(BYTES, "How much was asked for.")
    device_free_bytes = Column(BYTES, "What the device itself had free.")
    reserved_bytes = Column(BYTES, "What torch's allocator had reserved.")
    active_bytes = Column(BYTES, "How much of that was in use, in requested bytes.")
    unused_bytes = Column(BYTES, "Unused memory of the same pool and stream.")
    largest_unused_bytes = Column(BYTES, "The largest block of it.")
    other_streams_bytes = Column(BYTES, "Unused memory that is cached for other streams.")
    private_pools_bytes = Column(BYTES, "Unused memory in private pools.")
    outside_bytes = Column(BYTES, "What neither torch had nor was free; missing without the device's memory.")
    frames = Column(STACK, "The stack of the request, the innermost frame first.")
    event = Column(ID, "Number of the event in the history of the device.")


def snapshot_failure(trace: Trace, *, device_memory_bytes: int | None = None) -> pl.DataFrame:
    """The last failure first, device by device; `device_memory_bytes` is the memory of the device."""
    capacity = device_memory_bytes if (device_memory_bytes or 0) > 0 else None
    rows = [
        _row(trace, snapshot, failure)
        for snapshot in device_snapshots(trace)
        for failure in reversed(failures(trace, snapshot, capacity, MOST))
    ]
    return SnapshotFailure.of(pl.DataFrame(rows, schema=SnapshotFailure.schema()))


def _row(trace: Trace, snapshot: DeviceSnapshot, failure: Failure) -> dict[str, object]:
    why = explanation(trace, snapshot, failure)
    return {
        "device": snapshot.device,
        "time_ns": int(snapshot.times[failure.event]),
        "cause": failure.cause,
        "finding": why.sentence,
        "evidence": why.evidence,
        "action": why.action,
        "request_bytes": failure.request_bytes,
        "device_free_bytes": failure.device_free_bytes,
        "reserved_bytes": failure.reserved_bytes,
        "active_bytes": failure.active_bytes,
        "unused_bytes": failure.unused_bytes,
        "largest_unused_bytes": failure.largest_unused_bytes,
        "other_streams_bytes": failure.other_stream_bytes,
        "private_pools_bytes": failure.private_bytes,
        "outside_bytes": failure.outside_bytes,
        "frames": why.frames,
        "event": failure.event,
    }


VIEW = View(
    snapshot_failure,
    table=SnapshotFailure,
    title="Why an allocation failed",
    entry="Memory",
    place=Part("snapshot_levels"),
    needs=has_snapshot_failure,
    hint="No allocation failed in the history of a memory snapshot.",
    within="moments",
    time=RowTime("time_ns"),
)
