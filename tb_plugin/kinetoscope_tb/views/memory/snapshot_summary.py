"""A memory snapshot in a sentence: why an allocation failed, or else the peak and who holds it."""

from __future__ import annotations

from typing import get_args

import polars as pl

from ...measures.memory.allocation_failure import Cause, failures
from ...measures.memory.failure_text import explanation
from ...measures.memory.snapshots import (
    BEFORE,
    HINT,
    UNKNOWN_PLACE,
    DeviceSnapshot,
    device_snapshots,
    holders,
)
from ...measures.recording.contents import has_snapshot, missing_part
from ...names.python_frames import function_name
from ...names.text import memory_size as size
from ...names.text import percent
from ...table import Summary
from ...trace import Trace
from ...view import Head, View

_MOST_HOLDERS = 3
_NO_MEMORY = "No device had memory reserved, and nothing was allocated."
_RECORD_AGAIN = "Record the snapshot again; `kinetoscope view health` says where this one ends."
_ORIGINS = {BEFORE: "was allocated before the history", UNKNOWN_PLACE: "has no stack"}
_NAMES = {BEFORE: "memory from before the history", UNKNOWN_PLACE: "memory without a stack"}


class SnapshotSummary(
    Summary,
    colors={"peak": "cpu-exec", "empty": "other", **dict.fromkeys(get_args(Cause), "warning")},
    rule="The cause of the failure, or `peak` if nothing failed, `empty` without memory.",
    title="Why the allocation failed, or how high the peak is and who holds most of it.",
    evidence="The numbers behind it.",
    action="What would have made room; missing if nothing failed, unless a part of the snapshot is missing.",
    confidence="low: two causes look alike without the memory of the device, or a part of it is missing; else high.",
    view="Id of the view that shows more.",
):
    """The last allocation that failed, and why; or else the device with the highest peak, and what was alive then."""


def snapshot_summary(trace: Trace) -> pl.DataFrame:
    """One row."""
    snapshots = device_snapshots(trace)
    with_failure = [snapshot for snapshot in snapshots if snapshot.failure is not None]
    with_memory = [snapshot for snapshot in snapshots if _peak_bytes(snapshot)]
    partial = missing_part(trace)
    if with_failure:
        row = _failure(trace, max(with_failure, key=_time_of_failure), partial)
    elif with_memory:
        row = _peak(trace, max(with_memory, key=_peak_bytes), len(snapshots), partial)
    else:
        row = _without_memory(partial)
    return SnapshotSummary.of_row(row)


def _without_memory(partial: str) -> tuple[object, ...]:
    if partial:
        return "empty", f"{partial}, and what is left holds no memory.", "", _RECORD_AGAIN, "low", "environment"
    return "empty", "This snapshot holds no memory.", _NO_MEMORY, None, "high", "environment"


def _time_of_failure(snapshot: DeviceSnapshot) -> int:
    return int(snapshot.times[snapshot.failure or 0])


def _peak_bytes(snapshot: DeviceSnapshot) -> int:
    return snapshot.levels(snapshot.peak)[0]


def _failure(trace: Trace, snapshot: DeviceSnapshot, partial: str) -> tuple[object, ...]:
    failure = failures(trace, snapshot, None, 1)[-1]
    why = explanation(trace, snapshot, failure)
    confidence = "low" if partial or failure.cause == "full_or_outside" else "high"
    doubt = f" {partial}: sizes may be too high or too low, and later failures may be missing." if partial else ""
    return failure.cause, why.sentence, f"{why.evidence}{doubt}", why.action, confidence, "snapshot_failure"


def _peak(trace: Trace, snapshot: DeviceSnapshot, devices: int, partial: str) -> tuple[object, ...]:
    peak_bytes, _, reserved_bytes = snapshot.levels(snapshot.peak)
    (holder, most_bytes), *others = holders(trace, snapshot, snapshot.peak)
    where = f" of device {snapshot.device}" if devices > 1 else ""
    most = f"{size(most_bytes)} of it {_ORIGINS.get(holder, f'was allocated in `{function_name(holder)}`')}"
    title = f"Memory{where} peaks at {size(peak_bytes)}; {most}."
    sentences = []
    if partial:
        title = f"{partial}: memory{where} peaks at {size(snapshot.least_peak_bytes)} at least."
        sentences.append(f"What is left peaks at {size(peak_bytes)}, which may be too high or too low; {most}.")
    if others:
        names = [
            f"{_NAMES.get(other, f'`{function_name(other)}`')} {size(count)}" for other, count in others[:_MOST_HOLDERS]
        ]
        sentences.append(f"The next holders: {', '.join(names)}.")
    if reserved_bytes:
        share = percent(peak_bytes / reserved_bytes)
        sentences.append(f"Torch had {size(reserved_bytes)} reserved, {share} of it in tensors.")
    if partial:
        return "peak", title, " ".join(sentences), _RECORD_AGAIN, "low", "snapshot_alive"
    return "peak", title, " ".join(sentences), None, "high", "snapshot_alive"


VIEW = View(
    snapshot_summary,
    table=SnapshotSummary,
    title="Memory snapshot in a sentence",
    entry="Memory",
    place=Head(),
    within="recording",
    needs=has_snapshot,
    is_of_snapshot=True,
    hint=HINT,
)
