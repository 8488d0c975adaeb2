"""The culprits of one gap: why the device was idle in it, and what the host was doing then."""

from __future__ import annotations

import polars as pl

from ...arrays.gather import NONE, fraction
from ...measures.time.host_stack import FRAMES
from ...measures.time.idle import Windows, gaps
from ...measures.time.idle_causes import SharedParts
from ...measures.time.idle_culprits import WHO, pieces_by_culprit
from ...table import DURATION, FRACTION, ID, INSTANT, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key
from ...view import Detail, Slices, View


class GapCulprits(Table):
    """Why a device was idle in a gap, and what the host was doing then; the rows of a gap add up to it."""

    key, weight = ("device", "start_ns", "culprit"), "culprit_ns"

    device = Column(ID, "Index of the device.")
    start_ns = Column(INSTANT, "When the gap began.")
    culprit_ns = Column(DURATION, "How much of the gap has this cause and culprit.")
    gap_frac = Column(FRACTION, "Share of the gap.")
    cause = Column(TEXT, "Why it was idle, as in the view of idle time.")
    activity = Column(TEXT, "Where the host was late, what its launching threads did.")
    host = Column(
        TEXT,
        "The innermost Python function, module, operator, annotation or runtime call on the thread that launched the "
        "work which ended the gap; missing if nothing is recorded, and where work was queued.",
    )
    source = Column(TEXT, "File, first line and name of the innermost function of the program around it.")
    op = Column(TEXT, "The operator that made the runtime call.")
    kind = Column(TEXT, "What `host` is: function, module, operator, annotation or runtime call.")
    culprit = Column(TEXT, "Hash of the culprit, as in the view of idle time by culprit.")


def gap_culprits(trace: Trace, *, device: int | None = None, start_ns: int | None = None) -> pl.DataFrame:
    """The largest part of each gap first; with start_ns only of the gaps that begin then."""
    pieces = _pieces(trace, device, start_ns)
    rows = pieces.group_by("device", "start_ns", "culprit").agg(
        pl.col(WHO).first(), pl.col("gap_ns").first(), culprit_ns=pl.col("dur_ns").sum()
    )
    rows = rows.with_columns(pl.col("device").cast(pl.Int64), gap_frac=fraction(pl.col("culprit_ns"), pl.col("gap_ns")))
    rows = rows.sort("device", "start_ns", "culprit_ns", "culprit", descending=[False, False, True, False])
    return GapCulprits.of(rows.select(GapCulprits.schema().names()))


def _pieces(trace: Trace, device: int | None, start_ns: int | None) -> pl.DataFrame:
    """The pieces of all gaps, or of those that begin at one time, with the start and the length of their gap."""
    whole = gaps(trace, "device", Windows.of(trace, each=False))
    whole = whole.select("gap", "start_ns", "end_ns", gap_ns=pl.col("end_ns") - pl.col("start_ns"))
    whole = whole if start_ns is None else whole.filter(pl.col("start_ns") == start_ns)
    ends = (None, None) if start_ns is None else (start_ns, max(whole["end_ns"].to_list(), default=start_ns))
    pieces = pieces_by_culprit(trace, device, *ends).drop("start_ns", "end_ns")
    return pieces.join(whole, "gap", how="inner", maintain_order="left")


def events_of_row(trace: Trace, key: Key) -> Events:
    """What the host was doing in the gap; where it delayed nothing, the work that ended it."""
    pieces = _pieces(trace, key["device"], key["start_ns"]).filter(pl.col("culprit").eq_missing(pl.lit(key["culprit"])))
    events = {name: pieces.filter(pl.col("frame") == frame)["frame_row"] for frame, name in enumerate(FRAMES)}
    events["device_events"] = pieces.filter(pl.col("frame") == NONE)["after"]
    return {name: rows.unique().to_numpy() for name, rows in events.items()}


VIEW = View(
    gap_culprits,
    table=GapCulprits,
    title="What the host was doing",
    entry="Idle",
    within="moments",
    needs="device_events",
    hint="No device work was recorded. Pass ProfilerActivity.CUDA among the activities, on a machine with a GPU.",
    place=Detail("gaps"),
    shares=SharedParts.of,
    slices=Slices(events_of_row),
)
