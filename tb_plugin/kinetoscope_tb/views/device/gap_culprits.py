"""The culprits of one gap: why the device was idle in it, and what the host was doing then."""

from __future__ import annotations

import polars as pl

from ...arrays.gather import fraction
from ...measures.recording.contents import has_device_events
from ...measures.time.host_activity import ACTIVITY_WORDS
from ...measures.time.idle import MOST_GAPS, Windows, gaps
from ...measures.time.idle_causes import CAUSE_WORDS
from ...measures.time.idle_culprits import HOST_WITH_OP, CulpritPieces, culprit_pieces
from ...table import DURATION, FRACTION, ID, INSTANT, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key
from ...view import Detail, Slices, View


class GapCulprits(Table):
    """Why a device was idle in a gap, and what the host was doing then; the rows of a gap add up to it.

    Without a gap, those of the 5 000 longest.
    """

    key, weight = ("device", "start_ns", "culprit"), "culprit_ns"

    device = Column(ID, "Index of the device.")
    start_ns = Column(INSTANT, "When the gap began.")
    culprit_ns = Column(DURATION, "How much of the gap has this cause and culprit.")
    gap_frac = Column(FRACTION, "Share of the gap.")
    cause = Column(TEXT, "Why it was idle, as in the view of idle time.", shown_as="name", words=CAUSE_WORDS)
    activity = Column(TEXT, "Where the host was late, what its launching threads did.", words=ACTIVITY_WORDS)
    host = Column(
        TEXT,
        "The innermost Python function, module, operator, annotation or runtime call (in the operator that made it) on "
        "the thread that launched the work which ended the gap; missing if nothing is recorded, and where work was "
        "queued.",
        shown_as="name",
    )
    source = Column(
        TEXT, "File, first line and name of the innermost function of the program around it.", shown_as="place"
    )
    kind = Column(TEXT, "What `host` is: function, module, operator, annotation or runtime call.")
    culprit = Column(TEXT, "Hash of the culprit, as in the view of idle time by culprit.", shown_as="hash")


def gap_culprits(trace: Trace, *, device: int | None = None, start_ns: int | None = None) -> pl.DataFrame:
    """The largest part of each gap first; with start_ns only of the gaps that begin then."""
    pieces, whole = _pieces(trace, device, start_ns)
    who = pieces.who.with_row_index("number").with_columns(pl.col("number").cast(pl.Int32))
    rows = pieces.by_gap().rename({"culprit": "number", "dur_ns": "culprit_ns"})
    rows = rows.join(who, "number", how="left").join(whole, "gap", how="left")
    rows = rows.with_columns(
        pl.col("device").cast(pl.Int64), gap_frac=fraction(pl.col("culprit_ns"), pl.col("gap_ns")), host=HOST_WITH_OP
    )
    rows = rows.sort("device", "start_ns", "culprit_ns", "culprit", descending=[False, False, True, False])
    return GapCulprits.of(rows.select(GapCulprits.schema().names()))


def _pieces(trace: Trace, device: int | None, start_ns: int | None) -> tuple[CulpritPieces, pl.DataFrame]:
    """The pieces of the longest gaps, or of those that begin at one time, and `start_ns` and `gap_ns` of each `gap`."""
    pieces = CulpritPieces.within(trace, device)
    whole = gaps(trace, "device", Windows.of(trace, per_step=False))
    whole = whole if device is None else whole.filter(pl.col("device") == device)
    whole = whole.select("gap", "start_ns", gap_ns=pl.col("end_ns") - pl.col("start_ns"))
    if start_ns is not None:
        whole = whole.filter(pl.col("start_ns") == start_ns)
    elif whole.height > MOST_GAPS:
        whole = whole.sort("gap_ns", "gap", descending=[True, False]).head(MOST_GAPS)
    return pieces.of_gaps(whole["gap"]), whole


def events_of_row(trace: Trace, key: Key) -> Events:
    """What the host was doing in the gap; where it delayed nothing, the work that ended it."""
    pieces, _ = _pieces(trace, key["device"], key["start_ns"])
    return pieces.of_culprit(key["culprit"]).events()


VIEW = View(
    gap_culprits,
    table=GapCulprits,
    title="What the host was doing",
    entry="Idle",
    within="moments",
    needs=has_device_events,
    hint="No device work was recorded. Pass ProfilerActivity.CUDA among the activities, on a machine with a GPU.",
    place=Detail("gaps"),
    shares=culprit_pieces,
    slices=Slices(events_of_row, "An event may be behind several gaps, with several causes."),
)
