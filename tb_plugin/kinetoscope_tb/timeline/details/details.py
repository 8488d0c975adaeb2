"""One slice in full: its place, what it belongs to, what it launched, how it compares with slices of the same name."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE
from ...arrays.intervals import length_within, union
from ...measures.graphs.replayed_kernels import replayed_kernel
from ...trace import Trace
from ...view import View
from ..core.model import Timeline
from .arrows import MOST, Arrow, dependency_arrows, drawn_arrows, forward_and_backward, launch_arrows, wait_arrows
from .duration_stats import duration_stats
from .links import inside, launched_work, links_of, outward
from .provenance import Provenance, provenance
from .row_links import slice_links
from .slice_summary import slice_summaries, slice_summary

Brief = dict[str, Any]
MOST_BACKWARD = 100  # backward operators of one slice


def details(trace: Trace, timeline: Timeline, number: int, views: Collection[View] = ()) -> dict[str, Any]:
    """What the page shows of a slice; docs/http_api.md defines each field. It links to rows of these views."""
    frame, row = timeline.source_of(number)
    rows, around = getattr(trace, frame), timeline.row_of(number)
    first, last = (int(timeline.pyramid.rows.first[i]) for i in (around, around + 1))
    links = links_of(trace)
    work, source = launched_work(trace, frame, row), provenance(trace, links, frame, row)
    op = _op(trace, frame, row, source)
    forward, backward = (
        forward_and_backward(links, trace, op, with_inner=frame == "host_events") if op >= 0 else (NONE, [])
    )
    arrows = _arrows(trace, timeline, number, work, (frame, row))
    if frame == "host_events":
        arrows += _drawn_backward(timeline, row, forward, backward)
    step = _step(trace, frame, row)
    return {
        **(slice_summary(timeline, number) or {}),
        "self_ns": self_ns(timeline, number),
        "offset": int(rows["offset"][row]),
        "is_finished": frame != "host_events" or bool(rows["is_finished"][row]),
        "step": step,
        "previous": number - 1 if number > first else None,
        "next": number + 1 if number + 1 < last else None,
        "ancestors": slice_summaries(timeline, np.array(_ancestors(timeline, number), np.int64)),
        "launched": None if work is None else _launched_work(trace, timeline, work),
        "launched_by": _origin(timeline, source) if frame in ("device_events", "syncs") else None,
        "called_from": None if frame in ("device_events", "syncs") else _origin(timeline, source),
        "forward": _brief_of(timeline, "host_events", forward),
        "backward": slice_summaries(
            timeline, timeline.slices_of("host_events", np.array(backward[:MOST_BACKWARD], np.int32))
        ),
        "arrows": _arrow_list(timeline, arrows),
        "collective": _collective(trace, frame, row, op),
        "replayed": replayed_kernel(trace, row) if frame == "device_events" else None,
        "same_name": duration_stats(timeline, number),
        "rows": slice_links(views, trace, (frame, row), source),
    }


def self_ns(timeline: Timeline, number: int) -> int:
    """The time of a slice in which none of the slices right inside it on its track runs."""
    on_track = timeline.slices_on(timeline.track_of(number))
    inner = np.flatnonzero(timeline.parent[on_track] == number) + on_track.start
    start, dur = timeline.start_ns[inner], timeline.dur_ns[inner]
    begin, lasts = int(timeline.start_ns[number]), int(timeline.dur_ns[number])
    inner_ns = length_within(union(start, start + dur), np.array([begin]), np.array([begin + lasts]))
    return lasts - int(inner_ns[0])


def _ancestors(timeline: Timeline, number: int) -> list[int]:
    ancestors, number = list[int](), int(timeline.parent[number])
    while number >= 0:
        ancestors.append(number)
        number = int(timeline.parent[number])
    return ancestors


def _step(trace: Trace, frame: str, row: int) -> str | None:
    """The step that the row belongs to by the trace's own link, if there are steps."""
    rows = getattr(trace, frame)
    step = int(rows["step"][row]) if "step" in rows.columns else NONE
    name = trace.steps["name"][step] if step >= 0 else None
    return None if name == "all" else name


def _op(trace: Trace, frame: str, row: int, source: Provenance | None) -> int:
    """The operator whose forward and backward are those of the row."""
    if frame == "host_events":
        return row if trace.host_events["kind"][row] == "operator" else NONE
    return source.op if source is not None and frame in ("device_events", "launches") else NONE


def _brief_of(timeline: Timeline, frame: str, row: int) -> Brief | None:
    return slice_summary(timeline, int(timeline.slices_of(frame, np.array([row], np.int32))[0]))


def _launched_work(trace: Trace, timeline: Timeline, work: NDArray[np.int64]) -> dict[str, Any]:
    start, dur = (trace.device_events[name].to_numpy()[work] for name in ("start_ns", "dur_ns"))
    begin, end = union(start, start + dur)
    return {
        "count": int(work.size),
        "device_ns": int((end - begin).sum()),
        "total_ns": int(dur.sum()),
        "slices": slice_summaries(timeline, timeline.slices_of("device_events", work[:MOST])),
    }


def _origin(timeline: Timeline, source: Provenance | None) -> dict[str, Any] | None:
    if source is None:
        return None
    return {
        "call": _brief_of(timeline, "launches", source.call),
        "op": _brief_of(timeline, "host_events", source.op),
        "annotations": slice_summaries(
            timeline, timeline.slices_of("host_events", np.array(source.annotations, np.int32))
        ),
        "module": _brief_of(timeline, *source.module),
        "python": slice_summaries(timeline, timeline.slices_of("python_calls", np.array(source.python, np.int32))),
        "stack": source.stack,
        "is_forward": source.is_forward,
    }


def _arrows(
    trace: Trace, timeline: Timeline, number: int, work: NDArray[np.int64] | None, source: tuple[str, int]
) -> list[Arrow]:
    frame, row = source
    arrows = [] if work is None else launch_arrows(trace, timeline, work[:MOST])
    if frame == "device_events":
        arrows = launch_arrows(trace, timeline, np.array([row]))
    if frame == "syncs":
        arrows += wait_arrows(trace, timeline, row)
    if frame in ("device_events", "others"):
        arrows += dependency_arrows(trace, timeline, frame, row)
    ends = {(arrow.start, arrow.end) for arrow in arrows}
    return arrows + [arrow for arrow in drawn_arrows(trace, timeline, number) if arrow[1:] not in ends]


def _drawn_backward(timeline: Timeline, row: int, forward: int, backward: list[int]) -> list[Arrow]:
    """Arrows from forward to backward."""
    rows = np.array([row, forward, *backward[:MOST_BACKWARD]], np.int32)
    here, begin, *ends = timeline.slices_of("host_events", rows).tolist()
    return [Arrow("fwdbwd", begin, here)] * (begin >= 0) + [Arrow("fwdbwd", here, end) for end in ends]


def _arrow_list(timeline: Timeline, arrows: list[Arrow]) -> list[dict[str, Any]]:
    begins, ends = (
        slice_summaries(timeline, np.array([arrow[side] for arrow in arrows[:MOST]], np.int64)) for side in (1, 2)
    )
    kinds = (arrow.kind for arrow in arrows[:MOST])
    return [{"kind": kind, "from": a, "to": b} for kind, a, b in zip(kinds, begins, ends, strict=True)]


def _collective(trace: Trace, frame: str, row: int, op: int) -> dict[str, Any] | None:
    """The recorded collective of the row itself, of the first inside it, or of an operator around it."""
    collectives = trace.collectives
    if collectives.is_empty():
        return None
    predicates = [pl.col("device_event") == row] if frame == "device_events" else []
    if frame == "host_events":
        first, last = inside(trace.host_events, row)
        predicates.append(pl.col("host_event").is_between(first, last, closed="left"))
    predicates += [pl.col("host_event") == host_row for host_row in outward(trace.host_events, op)]
    rows_of_first = next((rows for where in predicates if not (rows := collectives.filter(where)).is_empty()), None)
    if rows_of_first is None:
        return None
    facts = rows_of_first.drop("offset", "host_event", "device_event").row(0, named=True)
    return {name: None if value == NONE else value for name, value in facts.items()}
