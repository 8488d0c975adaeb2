"""The critical path across ranks on the timeline of one worker: the part of it that runs on this worker.

Each segment of the path is traced back from its end in the dependency graph of its recording, like the path of one
worker. So its pieces follow each other without a gap. A transfer is one piece: the collective.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ...arrays.gather import NONE, gather
from ...critical_path.classes import CLASSES
from ...critical_path.edges import Kind
from ...critical_path.explanation import path_explanation
from ...critical_path.graph import Graph
from ...critical_path.path import trace_back
from ...distributed.collectives.calls import CallRows
from ...distributed.path.path_segments import PathSegments
from ...distributed.path.paths import BEFORE
from ...distributed.path.sync_points import SyncPoints
from ...errors import TraceError
from ...trace import Trace
from ..core.model import Timeline
from .path_pieces import PathPieces

_OF_ANOTHER = (
    "the path across ranks was computed from the summary of another recording. "
    "If the summary is stored next to the recordings, write it again: kinetoscope index LOGDIR --beside."
)


@dataclass(frozen=True)
class CrossRankPieces:
    """The part of the paths across ranks that runs on one worker.

    Attributes:
        pieces: The pieces; their `segment` is a row of `frame`.
        frame: The path segments of all ranks.
    """

    pieces: PathPieces
    frame: pl.DataFrame

    @classmethod
    def of(cls, trace: Trace, timeline: Timeline, segments: PathSegments, member: int) -> CrossRankPieces:
        """Return the pieces on one member, whose trace this is.

        Raises:
            TraceError: The paths were computed from summaries of another recording.
        """
        mine = np.flatnonzero((segments.frame["member"] == member).to_numpy())
        rows = segments.frame[mine]
        path_rows = _pieces(trace, path_explanation(trace).graph, rows, segments.ranks.members[member].worker)
        segment = path_rows["step"].to_numpy()
        order = np.lexsort((path_rows["start_ns"].to_numpy(), segment))
        path = path_rows[order]
        pieces = PathPieces.of_path(trace, timeline, path, mine[segment[order]])
        is_before = rows["part"].to_numpy()[segment[order]] == BEFORE
        part = np.where(is_before, BEFORE, pieces.part).astype(np.int8)
        columns = (pieces.start, pieces.end, part, pieces.reason, pieces.number, pieces.axis, pieces.segment)
        return cls(PathPieces(*columns), segments.frame)

    def within(self, timeline: Timeline, from_ns: int, to_ns: int, buckets: int) -> list[dict[str, Any]]:
        """The pieces that reach into a range, as `PathPieces.within` returns them, each with its segments.

        `first` and `last` number the segments over all ranks and steps: the path continues with the next number.
        """
        step, since, until = (self.frame[name] for name in ("step", "since", "until"))
        return [
            {**piece, "step": step[of], "first": of, "last": to, "since": since[of], "until": until[to]}
            for piece, of, to in self.pieces.groups(timeline, from_ns, to_ns, buckets)
        ]


def _pieces(trace: Trace, graph: Graph, rows: pl.DataFrame, worker: str) -> pl.DataFrame:
    """The pieces of some path segments of a trace: PATH, whose `step` is the index of the segment."""
    sync_points = SyncPoints.of(trace, graph, CallRows.of(trace))
    call, own_step, part, start = (rows[name].to_numpy() for name in ("call", "own_step", "part", "start_ns"))
    end = start + rows["dur_ns"].to_numpy()
    if call.max(initial=NONE) >= sync_points.start.size or own_step.max(initial=NONE) >= trace.steps.height:
        raise TraceError(worker, _OF_ANOTHER)
    moves = (part >= len(CLASSES)) & (part != BEFORE)
    target = np.where(call >= 0, gather(sync_points.start, call), own_step + graph.nodes.step_ends.start)
    target[moves] = NONE
    to_trace = np.flatnonzero(target >= 0)
    time_of_target = graph.nodes.time[target[to_trace]]
    if np.any(np.where(part[to_trace] == BEFORE, time_of_target < end[to_trace], time_of_target != end[to_trace])):
        raise TraceError(worker, _OF_ANOTHER)
    pieces = trace_back(trace, graph, target[to_trace], start[to_trace], end[to_trace])
    pieces = pieces.with_columns(step=pl.Series(to_trace[pieces["step"].to_numpy()], dtype=pl.Int32))
    alone = np.flatnonzero(target < 0)
    call = np.where(moves, call, NONE)[alone]
    event = gather(sync_points.event, call)
    whole = {
        "step": alone,
        "start_ns": start[alone],
        "end_ns": end[alone],
        "class": part[alone],
        "kind": np.full(alone.size, Kind.SEQUENCE),
        "host_event": event,
        "launch": np.full(alone.size, NONE),
        "device_event": gather(sync_points.row, call),
        "thread": gather(trace.host_events["thread"].to_numpy(), event),
    }
    return pl.concat([pieces, pl.DataFrame(whole, schema=pieces.schema)])
