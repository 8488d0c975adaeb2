"""Ranges of time in the history of a memory snapshot: annotations of the program, and its user metadata.

Annotations are begins and ends by name (`record_function` with torch's global_record_annotations); an end closes the
last open range of its name. User metadata is a text of each event, which holds until the program sets another one.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
import polars as pl

from ...trace.model import Trace
from .snapshots import DeviceSnapshot

KINDS = ("annotation", "user metadata")
_SCHEMA = {"kind": pl.String, "name": pl.String, "time_ns": pl.Int64, "end_ns": pl.Int64, "lane": pl.Int64}


def snapshot_ranges_of(trace: Trace, snapshot: DeviceSnapshot) -> pl.DataFrame:
    """The ranges of a device in order of time: kind, name, time_ns, end_ns and lane; none if it has no times.

    `end_ns` is missing if the range is open at the end of the history.
    Ranges that are open at the same time have different lanes, from 0 on; user metadata has its own below.
    """
    if not snapshot.has_times:
        return pl.DataFrame(schema=_SCHEMA)
    annotations = _annotations(trace, snapshot)
    lanes = 0 if annotations.is_empty() else int(annotations["lane"].max()) + 1  # type: ignore[arg-type]
    ranges = pl.concat([annotations, _metadata(snapshot, lanes)])
    return ranges.unique(["name", "time_ns", "lane"], keep="last").sort("time_ns", "lane")


def _annotations(trace: Trace, snapshot: DeviceSnapshot) -> pl.DataFrame:
    marks = trace.snapshot_annotations.filter((pl.col("moment") >= 0) & (pl.col("device") == snapshot.device))
    names: list[str] = []
    begins: list[int] = []
    ends: list[int | None] = []
    lanes: list[int] = []
    open_by_name: dict[str, list[int]] = {}
    free_lanes: list[int] = []
    open_count = 0
    for name, is_start, moment in marks.sort("moment", maintain_order=True).select("name", "is_start", "moment").rows():
        if is_start:
            open_by_name.setdefault(name, []).append(len(names))
            lanes.append(heappop(free_lanes) if free_lanes else open_count)
            names.append(name)
            begins.append(moment)
            ends.append(None)
            open_count += 1
        elif open_by_name.get(name):
            row = open_by_name[name].pop()
            ends[row] = moment
            heappush(free_lanes, lanes[row])
            open_count -= 1
    kinds = [KINDS[0]] * len(names)
    return pl.DataFrame([kinds, names, begins, ends, lanes], schema=_SCHEMA, orient="col")


def _metadata(snapshot: DeviceSnapshot, lane: int) -> pl.DataFrame:
    texts = snapshot.events["user_metadata"].cast(pl.String).replace({"": None})
    runs = pl.DataFrame({"name": texts, "run": texts.rle_id(), "first": np.arange(texts.len())})
    runs = runs.group_by("run", maintain_order=True).agg(pl.col("name").first(), pl.col("first").first())
    times = pl.Series(snapshot.times)
    rows = runs.select(
        kind=pl.lit(KINDS[1]),
        name="name",
        time_ns=times.gather(runs["first"]),
        end_ns=times.gather(runs["first"].shift(-1)),
        lane=pl.lit(lane, pl.Int64),
    )
    return rows.filter(pl.col("name").is_not_null())
