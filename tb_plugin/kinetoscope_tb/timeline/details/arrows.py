"""Arrows between slices: what launched what, what is the backward of what, what waits for what.

Any other flow that the writer recorded between two slices is an arrow too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE
from ...measures.calls.backward import ARROWS
from ...trace import Trace
from ...trace.graph_edges import graph_edges, is_dependency
from ..core.model import Timeline
from .links import Links, inside
from .provenance import call_with

MOST = 500  # of one slice
_MOST_ENDS = 2_000  # of recorded flows that are read


class Arrow(NamedTuple):
    """One arrow between two slices."""

    kind: str
    start: int
    end: int


def launch_arrows(trace: Trace, timeline: Timeline, work: NDArray[np.int64]) -> list[Arrow]:
    """From the call, or the operator if no call is known, to each of some device rows."""
    calls, ops = trace.device_events["launch"].to_numpy()[work], trace.recorded_op.to_numpy()[work]
    begins = np.where(
        calls >= 0, timeline.slices_of("launches", calls), timeline.slices_of("host_events", ops)
    ).tolist()
    ends = timeline.slices_of("device_events", work).tolist()
    return [Arrow("launch", a, b) for a, b in zip(begins, ends, strict=True) if a >= 0]


def forward_and_backward(links: Links, trace: Trace, op: int, *, with_inner: bool) -> tuple[int, list[int]]:
    """(the forward operator, the backward) of an operator: rows of host_events.

    Its forward operator is that of the nearest enclosing range that has one. With `with_inner`, its backward operators
    include those of the ranges inside it.
    """
    parent, forward, row = trace.host_events["parent"].to_numpy(), NONE, op
    while row >= 0 and forward < 0:
        forward, row = int(links.forward[row]), int(parent[row])
    bounds = inside(trace.host_events, op) if with_inner else (op, op + 1)
    return forward, links.backward_of(*bounds).tolist()


def wait_arrows(trace: Trace, timeline: Timeline, row: int) -> list[Arrow]:
    """From the call that recorded an event to a wait for it."""
    call = call_with(trace, int(trace.syncs["wait_on_record"][row]))
    ends = [int(timeline.slices_of(frame, np.array([i]))[0]) for frame, i in (("launches", call), ("syncs", row))]
    return [Arrow("event", *ends)] if min(ends) >= 0 else []


def dependency_arrows(trace: Trace, timeline: Timeline, frame: str, row: int) -> list[Arrow]:
    """From the nodes of a graph that this one waited for, and to those that waited for it."""
    edges = graph_edges(trace)
    node = row if frame == "device_events" else row + edges.rows if frame == "others" else NONE
    ends = np.flatnonzero((edges.before == node) | (edges.after == node))
    before, after = (_slices_of_nodes(timeline, side[ends], edges.rows) for side in (edges.before, edges.after))
    return [Arrow("dependency", a, b) for a, b in zip(before, after, strict=True) if min(a, b) >= 0]


def _slices_of_nodes(timeline: Timeline, nodes: NDArray[np.int64], rows: int) -> list[int]:
    is_work = nodes < rows
    slices = np.empty(nodes.size, np.int64)
    slices[is_work] = timeline.slices_of("device_events", nodes[is_work])
    slices[~is_work] = timeline.slices_of("others", nodes[~is_work] - rows)
    return slices.tolist()


def drawn_arrows(trace: Trace, timeline: Timeline, number: int) -> list[Arrow]:
    """The flows that the writer recorded from or to a slice, except those between forward and backward.

    An end belongs to the innermost slice that is open on its thread then.
    """
    thread = timeline.tracks[timeline.track_of(number)].thread
    if thread is None or trace.flows.is_empty():
        return []
    begin, flows = int(timeline.start_ns[number]), trace.flows
    starts = flows["start_ns"].to_numpy()
    low, high = np.searchsorted(starts, [begin, begin + int(timeline.dur_ns[number]) + 1])
    ends = flows[int(low) : int(high)].filter(pl.col("thread") == thread, ~is_dependency()).head(_MOST_ENDS)
    mine = [end for end in ends.iter_rows(named=True) if slice_at(timeline, end["thread"], end["start_ns"]) == number]
    names = ends["category"].cast(pl.String).unique()
    categories = names.filter(~names.is_in(ARROWS)).to_list()
    keys = pl.DataFrame(
        {key: [end[key] for end in mine] for key in ("category", "id")}, {"category": pl.String, "id": pl.Int64}
    )
    keys = keys.filter(pl.col("category").is_in(categories)).unique()
    if keys.is_empty():
        return []
    flows = flows.select("phase", "id", "thread", "start_ns", pl.col("category").cast(pl.String))
    ends_of_arrows = flows.join(keys, ["category", "id"], "semi", maintain_order="left")
    return [arrow for arrow in _pairs(timeline, ends_of_arrows) if number in (arrow.start, arrow.end)]


def _pairs(timeline: Timeline, ends: pl.DataFrame) -> list[Arrow]:
    """Each end with the one before it; phase `s` starts a new flow."""
    arrows, last = list[Arrow](), dict[tuple[str, int], int]()
    for phase, number, thread, at, category in ends.sort("category", "id", "start_ns", maintain_order=True).iter_rows():
        here = slice_at(timeline, thread, at)
        before = last.get((category, number), NONE)
        if phase != "s" and here >= 0 and before >= 0 and here != before:
            arrows.append(Arrow(category, before, here))
        last[category, number] = here
    return arrows


def slice_at(timeline: Timeline, thread: int, at: int) -> int:
    """The innermost slice of a thread that is open at a time, its end included, or -1."""
    first, best = timeline.pyramid.rows.first, (-1, 0, NONE)
    for track in timeline.tracks:
        if track.thread == thread:
            for row in range(track.first_row, track.first_row + track.lanes):
                low, high = int(first[row]), int(first[row + 1])
                number = low + int(np.searchsorted(timeline.start_ns[low:high], at, "right")) - 1
                if number >= low and timeline.start_ns[number] + timeline.dur_ns[number] >= at:
                    best = max(best, (int(timeline.start_ns[number]), -int(timeline.dur_ns[number]), number))
    return best[2]
