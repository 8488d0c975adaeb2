"""What is on the critical path, by name, and what each would save if it were faster.

How the path is found, and the limits of what would be saved, are said with the critical path by parts.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl

from ..dependencies import CLASSES, Graph, WhatIf, node_places, own_classes, with_names
from ..dependencies import critical_path as paths_of
from ..tables import COUNT, DURATION, FRACTION, TEXT, Column, Table
from ..trace import Trace
from ..trace.lookup import fraction
from ..trace.step_rows import counted_steps
from ..views import View

MOST_RECKONED = 20
_NAMELESS = "nothing recorded"


class CriticalPathNames(Table):
    """One row is one name of one part of the path, or one operator with all it launched, over all complete steps."""

    key, weight, charts = ("name", "part"), "path_ns", ("path_ns",)

    name = Column(
        TEXT,
        "Kernel, copy, operator, call or annotation; for launch latency and waits the row that waited; by operator: "
        "the innermost operator of the host's time, or the one that launched the device's row, else as without.",
    )
    part = Column(TEXT, "What of the path it is, as in the critical path by parts; by operator: `all`.")
    path_ns = Column(DURATION, "How much of the path it takes.")
    mean_ns = Column(DURATION, "The same per step.")
    path_frac = Column(FRACTION, "The same / the steps.")
    stretches = Column(COUNT, "In how many stretches.")
    whole_ns = Column(DURATION, "How long it takes in all, on the path and off it.")
    saved_ns = Column(
        DURATION,
        "How much shorter a step would be if all of it, on the path or not, took `percent` less time; reckoned for the "
        f"{MOST_RECKONED} rows with most of the path, missing for the others.",
    )
    saved_frac = Column(FRACTION, "The same / the step.")


def critical_path_names(
    trace: Trace,
    *,
    by: Literal["name", "operator"] = "name",
    percent: Literal["50", "10", "20", "30", "75", "90", "100"] = "50",
) -> pl.DataFrame:
    """What the path has most of first."""
    graph = Graph.of(trace)
    counted = counted_steps(trace)
    name = pl.coalesce(*(("op",) if by == "operator" else ()), "name").fill_null(_NAMELESS)
    part = pl.col("class") if by == "name" else pl.lit(-1, dtype=pl.Int8)
    path = with_names(trace, paths_of(trace, graph).filter(pl.col("step").is_in(counted)))
    rows = (
        path.group_by(named=name, code=part, maintain_order=True)
        .agg(path_ns=(pl.col("end_ns") - pl.col("start_ns")).sum(), stretches=pl.len().cast(pl.Int64))
        .sort("path_ns", descending=True, maintain_order=True)
    )
    what_if = WhatIf.of(trace, graph)
    nodes = with_names(trace, node_places(trace, graph)).with_columns(pl.Series("class", own_classes(trace, graph)))
    group = (
        nodes.select(named=name, code=part)
        .join(rows.with_row_index("group"), ["named", "code"], "left", maintain_order="left")["group"]
        .fill_null(rows.height)
        .to_numpy()
    )
    whole = np.zeros(rows.height + 1, np.int64)
    np.add.at(whole, group, graph.own)
    saved = [
        int(what_if.saved(group == k, int(percent))[counted].sum()) if k < MOST_RECKONED else None
        for k in range(rows.height)
    ]
    length, steps = int(what_if.recorded[counted].sum()), len(counted)
    found = rows.with_columns(
        name=pl.col("named"),
        part=pl.Series([CLASSES[code] if code >= 0 else "all" for code in rows["code"]], dtype=pl.String),
        mean_ns=(pl.col("path_ns") / steps).round().cast(pl.Int64),
        path_frac=fraction(pl.col("path_ns"), pl.lit(length)),
        whole_ns=whole[:-1],
        saved_ns=(pl.Series(saved, dtype=pl.Int64) / steps).round().cast(pl.Int64),
        saved_frac=fraction(pl.lit(pl.Series(saved, dtype=pl.Int64)), pl.lit(length)),
    )
    return CriticalPathNames.of(found.select(CriticalPathNames.schema().names()))


VIEW = View(
    critical_path_names,
    table=CriticalPathNames,
    title="On the critical path",
    group="Overview",
    within="recording",
    needs="work",
    hint="Nothing was recorded that ran: pass ProfilerActivity.CPU, and that of the device, among the activities.",
    part_of="critical_path",
)
