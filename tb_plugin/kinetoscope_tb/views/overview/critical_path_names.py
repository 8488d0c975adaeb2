"""What is on the critical path, by name, and how much time each would save if it were faster.

The view of the critical path explains the path, and the limits of the estimates.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, factorize, fraction, scatter_add
from ...critical_path.classes import CLASSES
from ...critical_path.explanation import counted_path, path_explanation
from ...critical_path.names import NAMELESS, Names, Places
from ...critical_path.row_events import path_events
from ...measures.recording.contents import has_work
from ...measures.time.step_subset import counted_steps
from ...pictures import Bars
from ...table import COUNT, DURATION, FRACTION, TEXT, Column, Table
from ...trace import Trace
from ...view import Part, Slices, View

MOST_ESTIMATED = 20
_PART_NAMES = (*CLASSES, "all")
_PARTS = len(_PART_NAMES)


class CriticalPathNames(Table):
    """Which kernels, calls or operators are on the critical path, over all complete steps."""

    key, weight = ("name", "part"), "path_ns"
    picture = Bars(("path_ns",))

    name = Column(
        TEXT,
        "Kernel, copy, operator, call or annotation; for launch latency and waits the row that waited; by operator: "
        "the innermost operator around host time, or the one that launched the GPU event, else as by name.",
    )
    part = Column(TEXT, "Part, as in the critical path by part; by operator: `all`.")
    path_ns = Column(DURATION, "Time on the path.")
    mean_ns = Column(DURATION, "The same per step.")
    path_frac = Column(FRACTION, "The same / the steps.")
    segments = Column(COUNT, "Number of path segments.")
    whole_ns = Column(
        DURATION, "Total time, on the path and off it; of a kernel what is left after the previous one on its stream."
    )
    saved_ns = Column(
        DURATION,
        "How much shorter a step would be if all of it, on the path or not, took `percent` less time; estimated for "
        f"the {MOST_ESTIMATED} rows with the most time on the path, missing for the others.",
    )
    saved_frac = Column(FRACTION, "The same / the step, without the profiler where the recorder timed such steps.")


def critical_path_names(
    trace: Trace,
    *,
    by: Literal["name", "operator"] = "name",
    percent: Literal["50", "10", "20", "30", "75", "90", "100"] = "50",
) -> pl.DataFrame:
    """The most time on the path first."""
    explanation = path_explanation(trace)
    what_if = explanation.what_if
    names, counted = Names.of(trace), counted_steps(trace)
    path = counted_path(trace)
    keys = _keys(names, Places.of_path(path), path["class"].to_numpy(), by)
    unique_keys, number = factorize(keys)
    counts, spent = (
        np.bincount(number, minlength=unique_keys.size),
        scatter_add(number, _lengths(path), unique_keys.size),
    )
    order = np.argsort(-spent, kind="stable")
    of_nodes = _keys(names, Places.of_nodes(trace, explanation.graph), what_if.part, by)
    place = np.full(int(max(of_nodes.max(initial=0), keys.max(initial=0))) + 1, NONE, np.int32)
    place[unique_keys] = np.arange(unique_keys.size)
    key = place[of_nodes]
    whole = scatter_add(key, what_if.delays(), unique_keys.size)
    whole = np.maximum(whole, spent)  # without known predecessors, a path has time that isn't in any delay
    rank = np.full(unique_keys.size + 1, NONE, np.int8)
    rank[order[:MOST_ESTIMATED]] = np.arange(min(order.size, MOST_ESTIMATED))
    estimated = min(order.size, MOST_ESTIMATED)
    saved = what_if.saved_by_variant(rank[key], estimated, int(percent))[:, counted].sum(axis=1)
    rows = pl.DataFrame(
        {
            "name": names.text((unique_keys[order] // _PARTS - 1).astype(np.int32)).fill_null(NAMELESS),
            "part": pl.Series([_PART_NAMES[key % _PARTS] for key in unique_keys[order].tolist()], dtype=pl.String),
            "path_ns": spent[order],
            "segments": counts[order],
            "whole_ns": whole[order],
            "saved": pl.Series(saved).extend_constant(None, order.size - estimated),
        }
    )
    return _per_step(rows, (int(what_if.recorded[counted].sum()), int(what_if.lengths[counted].sum())), len(counted))


def _lengths(path: pl.DataFrame) -> NDArray[np.int64]:
    return (path["end_ns"] - path["start_ns"]).to_numpy()


def _keys(names: Names, places: Places, part: NDArray[np.int8], by: str) -> NDArray[Any]:
    """A number for each pair of a name and a part; by operator the part is all of them."""
    named = names.merged_names(places)
    if by == "operator":
        op = names.operators(places)
        return (np.where(op >= 0, op, named) + 1) * _PARTS + len(CLASSES)
    return (named + 1) * _PARTS + part


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
