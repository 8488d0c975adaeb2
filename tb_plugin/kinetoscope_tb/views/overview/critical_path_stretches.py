"""The stretches of the critical path: what it consists of from a step's start to its end, the longest first.

How the path is found is said with the critical path by parts.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ...arrays.gather import NONE, texts
from ...critical_path import CLASSES, INFERRED, REASONS, Explanation, Names, Places, path_events, python_around
from ...table import BOOL, DURATION, ID, INSTANT, TEXT, Column, Table
from ...trace import Trace
from ...view import Part, RowTime, Slices, View

MOST_ROWS = 5_000


class CriticalPathStretches(Table):
    """One row is one stretch of a step's path, in which it stays with one thing; at most the 5 000 longest."""

    key, weight = ("step", "start_ns"), "dur_ns"

    step = Column(TEXT, "Number of the step.")
    start_ns = Column(INSTANT, "When it begins: that is when the stretch before it ends.")
    dur_ns = Column(DURATION, "How long it is.")
    part = Column(TEXT, "What it is, as in the critical path by parts.")
    name = Column(TEXT, "What runs, or which row waits; missing where nothing was recorded.")
    op = Column(TEXT, "The innermost operator around it, or the one that launched the row; missing if none is known.")
    python = Column(
        TEXT,
        "The innermost Python call that lasts all of it, on its thread; missing on a device, and without stacks.",
    )
    thread = Column(TEXT, "The host thread, as the recording names it; missing on a device.")
    device = Column(ID, "Index of the device; missing on the host.")
    stream = Column(ID, "Number of the stream; missing on the host.")
    reason = Column(TEXT, "Why it could not begin earlier.")
    is_inferred = Column(BOOL, "Whether no row of the recording says so, and it follows from the times.")


def critical_path_stretches(
    trace: Trace, *, step: str | None = None, from_ns: int | None = None, to_ns: int | None = None
) -> pl.DataFrame:
    """The longest stretches first; with from_ns or to_ns those that reach into that time."""
    steps = trace.steps["name"]
    path = Explanation.of(trace).path
    wanted = [pl.col("end_ns") > from_ns] if from_ns is not None else []
    wanted += [pl.col("start_ns") < to_ns] if to_ns is not None else []
    wanted += [pl.col("step").is_in(np.flatnonzero((steps == step).to_numpy()))] if step is not None else []
    path = path.with_columns(dur_ns=pl.col("end_ns") - pl.col("start_ns")).filter(pl.lit(value=True), *wanted)
    path = path.top_k(MOST_ROWS, by=[pl.col("dur_ns"), -pl.col("start_ns")])
    path = path.sort("dur_ns", "start_ns", descending=[True, False])
    around = python_around(trace, *(path[column].to_numpy() for column in ("thread", "start_ns", "end_ns")))
    names, places = Names.of(trace), Places.of_path(path)
    row = pl.when(pl.col("thread") == NONE).then("device_event").replace(NONE, None)
    rows = path.select(row).to_series()
    found = path.with_columns(
        step=steps.gather(path["step"]),
        name=names.text(names.named(places)),
        op=names.text(names.operators(places)),
        python=texts(trace.python_calls["name"], around),
        part=pl.Series([CLASSES[code] for code in path["class"]], dtype=pl.String),
        thread=_threads(trace).gather(path["thread"].replace(NONE, None)),
        device=trace.device_events["device"].gather(rows).cast(pl.Int64),
        stream=trace.device_events["stream"].gather(rows),
        reason=pl.Series([REASONS[code] for code in path["kind"]], dtype=pl.String),
        is_inferred=path["kind"].is_in(INFERRED),
    )
    return CriticalPathStretches.of(found.select(CriticalPathStretches.schema().names()))


def _threads(trace: Trace) -> pl.Series:
    """What each thread is called: as the recording names it, else by its number."""
    names = pl.coalesce("name", pl.format("thread {}", "tid"))
    return trace.threads.select(names.cast(pl.String)).to_series()


VIEW = View(
    critical_path_stretches,
    table=CriticalPathStretches,
    title="Stretches of the critical path",
    group="Overview",
    within="moments",
    shares=Explanation.of,
    needs="work",
    hint="Nothing was recorded that ran: pass ProfilerActivity.CPU, and that of the device, among the activities.",
    place=Part("critical_path"),
    slices=Slices(path_events),
    time=RowTime("start_ns", length="dur_ns"),
    shows_path=True,
)
