"""The gaps of one culprit: when a device was idle while the host was doing it."""

from __future__ import annotations

import polars as pl

from ...arrays.gather import NONE, texts
from ...measures.recording.contents import has_device_events
from ...measures.time.idle import Windows, gaps
from ...measures.time.idle_culprits import CulpritPieces, culprit_pieces
from ...table import DURATION, ID, INSTANT, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key, rows_where
from ...view import Detail, RowTime, Slices, View

MOST_ROWS = 5_000


class CulpritGaps(Table):
    """The gaps that a culprit has a part in, the largest part first: at most 5 000."""

    key, weight = ("device", "culprit", "start_ns"), "culprit_ns"

    device = Column(ID, "Index of the device.")
    culprit = Column(TEXT, "Hash of the culprit, as in the view of idle time by culprit.", shown_as="hash")
    step = Column(TEXT, "Number of the step that its first part lies in; missing between steps and without steps.")
    start_ns = Column(INSTANT, "When the gap began.")
    dur_ns = Column(DURATION, "How long nothing ran on the device.")
    culprit_ns = Column(DURATION, "How much of it has this culprit.")
    preceded_by = Column(TEXT, "The kernel, copy or fill that ran last before it; missing if none did.")
    ended_by = Column(TEXT, "The one that ended it; missing if none followed.")


def culprit_gaps(trace: Trace, *, device: int | None = None, culprit: str | None = None) -> pl.DataFrame:
    """The gaps by how much of them the culprit has; of all culprits if none is given."""
    pieces = CulpritPieces.within(trace, device)
    pieces = pieces if culprit is None else pieces.of_culprit(culprit)
    whole = gaps(trace, "device", Windows.of(trace, per_step=False))
    rows = pieces.by_gap().rename({"culprit": "number", "dur_ns": "culprit_ns"})
    rows = rows.filter(pl.col("culprit_ns") >= pl.col("culprit_ns").top_k(MOST_ROWS).min())  # with equal ones
    names, steps = trace.device_events["name"], trace.steps["name"].replace("all", None)
    whole = whole.filter(pl.col("gap").is_in(rows["gap"].implode())).select("gap", "start_ns", "end_ns", "before")
    rows = rows.join(whole, "gap", how="left", maintain_order="left").with_columns(
        pl.col("device").cast(pl.Int64),
        culprit=pieces.who["culprit"].gather(rows["number"]),
        step=steps.gather(rows["step"].replace(NONE, None)),
        dur_ns=pl.col("end_ns") - pl.col("start_ns"),
    )
    rows = rows.sort("culprit_ns", "device", "start_ns", "culprit", descending=[True, False, False, False])
    rows = rows.head(MOST_ROWS)
    rows = rows.with_columns(
        preceded_by=texts(names, rows["before"].to_numpy()), ended_by=texts(names, rows["after"].to_numpy())
    )
    return CulpritGaps.of(rows.select(CulpritGaps.schema().names()))


def events_of_row(trace: Trace, key: Key) -> Events:
    """The work that ends the gap."""
    rows = rows_where(trace.device_events, device=key["device"])
    start = trace.device_events["start_ns"].to_numpy()[rows]
    later = start[start > (key["start_ns"] or 0)]
    return {"device_events": rows[start == later.min(initial=later.max(initial=NONE))]}


VIEW = View(
    culprit_gaps,
    table=CulpritGaps,
    title="Its gaps",
    entry="Idle",
    within="moments",
    needs=has_device_events,
    hint="No device work was recorded. Pass ProfilerActivity.CUDA among the activities, on a machine with a GPU.",
    place=Detail("idle_culprits"),
    shares=culprit_pieces,
    slices=Slices(events_of_row, "Work may end one gap and begin another.", are_highlighted=False),
    time=RowTime("start_ns", length="dur_ns"),
)
