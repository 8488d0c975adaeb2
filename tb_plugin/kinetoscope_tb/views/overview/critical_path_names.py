"""What is on the critical path, by name, and how much time each would save if it were faster.

The view of the critical path explains the path, and the limits of the estimates.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl

from ...arrays.gather import NONE, fraction, scatter_add
from ...critical_path.culprits import WAITING, by_operator, node_culprits, pieces_by_name, saved_by_group
from ...critical_path.explanation import path_explanation
from ...critical_path.names import EventRows, Names
from ...critical_path.row_events import ALL, path_events
from ...measures.recording.contents import has_work
from ...measures.recording.lost_launches import is_no_launch_known
from ...measures.time.step_subset import counted_steps
from ...pictures import Bars
from ...table import COUNT, DURATION, FRACTION, TEXT, Column, Table
from ...trace import Trace
from ...view import Part, Slices, View

MOST_ESTIMATED = 20


class CriticalPathNames(Table):
    """Which kernels, calls or operators are on the critical path, over all complete steps."""

    key, weight = ("name", "part"), "path_ns"
    picture = Bars(("path_ns",))

    name = Column(
        TEXT,
        "Kernel, copy, operator, call, Python function or annotation, as in the critical path by culprit; for launch "
        "latency and waits the row that waited; by operator: the innermost operator around host time, or the one that "
        "launched the GPU event, else as by name.",
    )
    part = Column(TEXT, "Cause, as in the critical path by culprit; by operator: `all`.", shown_as="time part")
    path_ns = Column(DURATION, "Time on the path.")
    mean_ns = Column(DURATION, "The same per step.")
    path_frac = Column(FRACTION, "The same / the steps.")
    segments = Column(
        COUNT, "Number of path segments with any of it; one may have several parts and names.", adds_up=False
    )
    whole_ns = Column(
        DURATION,
        "Total time from the first of these steps to the last, on the path and off it; of a kernel what is left after "
        "the previous one on its stream.",
    )
    saved_ns = Column(
        DURATION,
        "How much shorter a step would be if all of it, on the path or not, took `percent` less time; estimated for "
        f"the {MOST_ESTIMATED} rows with the most time on the path, missing for the others, for waits, and "
        "where no recorded call launched device work.",
        title="Saved per step",
    )
    saved_frac = Column(FRACTION, "The same / the step, without the profiler where the recorder timed such steps.")


def critical_path_names(
    trace: Trace,
    *,
    by: Literal["name", "operator"] = "name",
    percent: Literal["50", "10", "20", "30", "75", "90", "100"] = "50",
) -> pl.DataFrame:
    """The most time on the path first."""
    explanation, steps, is_by_operator = path_explanation(trace), counted_steps(trace), by == "operator"
    what_if = explanation.what_if
    part = pl.lit(ALL).alias("part") if is_by_operator else pl.col("cause").alias("part")
    pieces = pieces_by_name(trace, is_by_operator=is_by_operator).select("segment", "step", "dur_ns", "cause", "name")
    pieces = pieces.filter(pl.col("step").is_in(steps))
    rows = pieces.group_by("name", part).agg(path_ns=pl.col("dur_ns").sum(), segments=pl.col("segment").n_unique())
    rows = rows.cast({"name": pl.String, "part": pl.String})
    rows = rows.sort("path_ns", "name", "part", descending=[True, False, False]).with_row_index("row")
    culprits = node_culprits(trace)
    of_nodes, who, culprit = culprits.pieces, culprits.who, culprits.pieces["culprit"].to_numpy()
    if is_by_operator:
        operator = Names.of(trace).operators(EventRows.of_nodes(trace, explanation.graph))
        who, culprit = by_operator(trace, culprits, operator[of_nodes["node"].to_numpy()])
    row = who.select("name", part).join(rows, ["name", "part"], "left", maintain_order="left")["row"]
    row_of_node = row.cast(pl.Int32).fill_null(NONE).to_numpy()[culprit]
    begin, end = (trace.steps[side][step] for side, step in (("start_ns", steps[0]), ("end_ns", steps[-1])))
    at_ns = explanation.graph.nodes.time[of_nodes["node"].to_numpy()]  # markers may be older than the recording
    dur_ns = of_nodes["dur_ns"].to_numpy() * ((at_ns > begin) & (at_ns <= end))
    whole = scatter_add(row_of_node, dur_ns, rows.height)
    whole = np.maximum(whole, rows["path_ns"].to_numpy())  # without known predecessors, a path has time outside delays
    estimate_count = min(rows.height, MOST_ESTIMATED)
    group = np.where(row_of_node < estimate_count, row_of_node, np.int32(NONE))
    saved_ns = saved_by_group(trace, group, estimate_count, int(percent))[:, steps].sum(axis=1)
    rows = rows.with_columns(
        whole_ns=pl.Series(whole), saved=pl.Series(saved_ns).extend_constant(None, rows.height - estimate_count)
    )
    is_known = ~pl.col("part").is_in(WAITING) & pl.lit(not is_no_launch_known(trace))
    rows = rows.with_columns(saved=pl.when(is_known).then("saved"))
    return _per_step(rows, (int(what_if.recorded[steps].sum()), int(what_if.lengths[steps].sum())), len(steps))


def _per_step(rows: pl.DataFrame, whole_ns: tuple[int, int], steps: int) -> pl.DataFrame:
    """The rows per step, and how long all steps are: as recorded, and without what recording costs."""
    frame = rows.with_columns(
        mean_ns=(pl.col("path_ns") / steps).round().cast(pl.Int64),
        path_frac=fraction(pl.col("path_ns"), pl.lit(whole_ns[0])),
        segments=pl.col("segments").cast(pl.Int64),
        saved_ns=(pl.col("saved") / steps).round().cast(pl.Int64),
        saved_frac=fraction(pl.col("saved"), pl.lit(whole_ns[1])),
    )
    return CriticalPathNames.of(frame.select(CriticalPathNames.schema().names()))


VIEW = View(
    critical_path_names,
    table=CriticalPathNames,
    title="On the critical path",
    entry="Critical path",
    place=Part("critical_path_culprits"),
    within="recording",
    shares=path_explanation,
    needs=has_work,
    hint="The trace has no activity. Pass ProfilerActivity.CPU and the device's activity to the profiler.",
    slices=Slices(path_events, "An event may be several segments of the path."),
    shows_path=True,
    reads_captures=True,
)
