"""The segments of the critical path, from a step's start to its end, the longest first.

The view of the critical path explains the path.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather, texts
from ...arrays.nesting import innermost
from ...critical_path.culprits import pieces_by_name
from ...critical_path.edges import INFERRED, REASONS
from ...critical_path.explanation import critical_paths, path_explanation
from ...critical_path.names import NAMELESS, EventRows, Names
from ...critical_path.row_events import path_events
from ...measures.recording.contents import has_work
from ...names.text import percent
from ...table import BOOL, DURATION, ID, INSTANT, TEXT, Column, Table, with_rest
from ...trace import Trace
from ...view import Part, RowTime, Slices, View

MOST_ROWS = 5_000
_MOST = 0.5  # of a segment: what takes it is its name
_BY_LENGTH = [pl.col("dur_ns"), -pl.col("start_ns")]

Rows = NDArray[np.int32]
Ints = NDArray[np.int64]


class CriticalPathSegments(Table):
    """The critical path of a step, segment by segment; the last row may combine the shorter ones."""

    key, weight = ("step", "start_ns"), "dur_ns"

    step = Column(TEXT, "Number of the step.")
    start_ns = Column(INSTANT, "When it begins, which is when the previous segment ends.")
    dur_ns = Column(DURATION, "Length of the segment.")
    part = Column(TEXT, "Cause, as in the critical path by culprit, of most of it.", shown_as="time part")
    name = Column(
        TEXT,
        "What runs, or the row that waits; of several of that cause the one with most time, with its share of the "
        "segment where that is less than half, and how many more there are; missing if nothing was recorded.",
    )
    op = Column(TEXT, "The innermost operator around it, or the one that launched the row; missing if none is known.")
    python = Column(
        TEXT,
        "The innermost Python call that covers all of it, on its thread; missing on a device, and without stacks.",
    )
    thread = Column(TEXT, "The host thread, as the trace names it; missing on a device.")
    device = Column(ID, "Index of the device; missing on the host.")
    stream = Column(ID, "Number of the stream; missing on the host.")
    reason = Column(TEXT, "Why it could not begin earlier.")
    is_inferred = Column(BOOL, "Whether this is inferred from the times, not recorded.")


def critical_path_segments(
    trace: Trace,
    *,
    step: str | None = None,
    from_ns: int | None = None,
    to_ns: int | None = None,
    rows: Literal["longest 5000", "all"] = "longest 5000",
) -> pl.DataFrame:
    """The longest segments first; with from_ns or to_ns those that reach into that time."""
    steps = trace.steps["name"]
    path = critical_paths(trace)
    predicates = [pl.col("end_ns") > from_ns] if from_ns is not None else []
    predicates += [pl.col("start_ns") < to_ns] if to_ns is not None else []
    predicates += [pl.col("step").is_in(np.flatnonzero((steps == step).to_numpy()))] if step is not None else []
    path = path.with_row_index("segment").cast({"segment": pl.Int32})
    path = path.with_columns(dur_ns=pl.col("end_ns") - pl.col("start_ns")).filter(pl.lit(value=True), *predicates)
    is_whole = rows == "all" or path.height <= MOST_ROWS
    longest = path if is_whole else path.top_k(MOST_ROWS - 1, by=_BY_LENGTH)
    table = _table(trace, longest.sort("dur_ns", "start_ns", descending=[True, False]))
    return CriticalPathSegments.of(with_rest(table, path, "dur_ns", "name", "shorter"))


def _table(trace: Trace, path: pl.DataFrame) -> pl.DataFrame:
    """What the table says of some segments, in their order."""
    path = path.join(_largest_culprits(trace, path), "segment", "left", maintain_order="left")
    around = _python_around(trace, *(path[column].to_numpy() for column in ("thread", "start_ns", "end_ns")))
    names, events = Names.of(trace), EventRows.of_path(path)
    row = pl.when(pl.col("thread") == NONE).then("device_event").replace(NONE, None)
    rows = path.select(row).to_series()
    frame = path.with_columns(
        step=trace.steps["name"].gather(path["step"]),
        op=names.text(names.operators(events)),
        python=texts(trace.python_calls["name"], around),
        part="cause",
        thread=_threads(trace).gather(path["thread"].replace(NONE, None)),
        device=trace.device_events["device"].gather(rows).cast(pl.Int64),
        stream=trace.device_events["stream"].gather(rows),
        reason=pl.Series([REASONS[code] for code in path["kind"]], dtype=pl.String),
        is_inferred=path["kind"].is_in(INFERRED),
    )
    return frame.select(CriticalPathSegments.schema().names())


def _largest_culprits(trace: Trace, path: pl.DataFrame) -> pl.DataFrame:
    """Of each segment the cause with most time, and of that the name with most; in words how much that is if little."""
    pieces = pieces_by_name(trace).join(path, "segment", "semi")
    sums = pieces.group_by("segment", "cause", "name", maintain_order=True).agg(pl.col("dur_ns").sum())
    sums = sums.cast({"cause": pl.String, "name": pl.String})
    sums = sums.with_columns(
        others=pl.col("name").n_unique().over("segment") - 1,
        share=pl.col("dur_ns") / pl.col("dur_ns").sum().over("segment"),
    )
    by = [pl.col("dur_ns").sum().over("segment", "cause"), "dur_ns"]
    largest = sums.sort(by, descending=True, maintain_order=True).unique("segment", keep="first", maintain_order=True)
    is_most = (pl.col("others") == 0) | (pl.col("share") >= _MOST)
    in_words = pl.format("{}, {}, and {} more", "name", pl.col("share").map_elements(percent, pl.String), "others")
    name = pl.when(is_most).then(pl.when(pl.col("name") != NAMELESS).then("name")).otherwise(in_words)
    return largest.select("segment", "cause", name=name)


def _threads(trace: Trace) -> pl.Series:
    """Name of each thread: from the trace, or else its number."""
    names = pl.coalesce("name", pl.format("thread {}", "tid"))
    return trace.threads.select(names.cast(pl.String)).to_series()


def _python_around(trace: Trace, thread: Rows, start: Ints, end: Ints) -> Rows:
    """The innermost Python call that covers each segment on its thread: a row of python_calls, or NONE."""
    calls = trace.python_calls
    of = calls["thread"].to_numpy(), calls["start_ns"].to_numpy()
    ends = of[1] + calls["dur_ns"].to_numpy()
    order = np.lexsort((start, thread))
    rows = np.empty(thread.size, np.int32)
    rows[order] = innermost(*of, ends, thread[order], start[order])
    parent = calls["parent"].to_numpy()
    while (ends_early := (rows >= 0) & (gather(ends, rows) < end)).any():
        rows[ends_early] = parent[rows[ends_early]]
    return rows


VIEW = View(
    critical_path_segments,
    table=CriticalPathSegments,
    title="Critical path by segment",
    entry="Critical path",
    place=Part("critical_path_culprits"),
    within="moments",
    shares=path_explanation,
    needs=has_work,
    hint="The trace has no activity. Pass ProfilerActivity.CPU and the device's activity to the profiler.",
    slices=Slices(path_events, "An event may be several segments of the path."),
    time=RowTime("start_ns", length="dur_ns"),
    shows_path=True,
    reads_captures=True,
)
