"""The segments of the critical path across ranks, from a step's start to its end: which rank, and its work.

The view of the critical path across ranks explains the path.
"""

from __future__ import annotations

from typing import Literal

import polars as pl

from ...arrays.gather import fraction
from ...distributed.contents import has_several_workers
from ...distributed.path.path_segments import ends_in_words
from ...distributed.path.paths import PARTS, Paths
from ...distributed.run import Ranks
from ...table import DURATION, FRACTION, ID, INSTANT, TEXT, Column, Table, with_rest
from ...view import Part, RowTime, View

MOST_ROWS = 5_000


class PathAcrossRanksSegments(Table):
    """The path across ranks, segment by segment; a segment is on one rank, between two collectives or within one.

    The last row may combine the shorter ones.
    """

    key, weight = ("step", "number", "part"), "dur_ns"

    step = Column(TEXT, "Number of the step.")
    number = Column(ID, "Number of the segment in its step: the first begins with the step, the last ends with it.")
    worker = Column(TEXT, "The worker that the path is on.")
    rank = Column(ID, "Its global rank.")
    part = Column(
        TEXT,
        "Part, as in the critical path across ranks. Before the step: from the start of the step on the rank that "
        "ended it last to its start on the rank where the path begins, if that is later.",
        shown_as="time part",
    )
    dur_ns = Column(DURATION, "Time of this part in the segment; the order within the segment is unknown.")
    share_frac = Column(FRACTION, "The same / the step.")
    common_start_ns = Column(
        INSTANT,
        "When the segment begins, on the clock of the first rank: when the one before it ends, but for the error of "
        "the clocks and the noise of the collectives' ends, as in the views Clocks and Collectives.",
    )
    own_start_ns = Column(INSTANT, "The same in the worker's own trace and on its clock.")
    segment_ns = Column(DURATION, "Duration of the segment, with all its parts.", adds_up=False)
    since = Column(
        TEXT,
        "The collective that ends when it begins, with its number in its group, or the step's start; for a collective, "
        "the collective itself; missing before the step.",
    )
    until = Column(
        TEXT, "The collective that begins when it ends, with this rank as the last to enter; or the step's end."
    )


def path_across_ranks_segments(
    ranks: Ranks, *, step: str | None = None, rows: Literal["longest 5000", "all"] = "longest 5000"
) -> pl.DataFrame:
    """Steps and their segments in order."""
    paths = Paths.of(ranks)
    path = paths.segments.with_columns(step_name=paths.steps["step"].gather(paths.segments["step"]))
    if step is not None:
        path = path.filter(pl.col("step_name") == step)
    is_whole = rows == "all" or path.height <= MOST_ROWS
    longest = path if is_whole else path.sort("dur_ns", descending=True, maintain_order=True).head(MOST_ROWS - 1)
    table = _table(ranks, paths, longest.sort("step", "number", "dur_ns", descending=[False, False, True]))
    return PathAcrossRanksSegments.of(with_rest(table, path, "dur_ns", "worker", "shorter"))


def _table(ranks: Ranks, paths: Paths, rows: pl.DataFrame) -> pl.DataFrame:
    """What the table says of some segments, in their order."""
    segments = rows.drop("since", "until").join(
        ranks.workers.select(pl.col("member").cast(pl.Int64), "worker", "rank"), "member", "left", maintain_order="left"
    )
    ends = ends_in_words(rows, ranks)
    whole = paths.steps["total_ns"].gather(rows["step"])
    frame = segments.select(
        step="step_name",
        number="number",
        worker="worker",
        rank="rank",
        part=pl.Series([PARTS[part] for part in rows["part"]], dtype=pl.String),
        dur_ns="dur_ns",
        share_frac=fraction(pl.col("dur_ns"), pl.lit(whole)),
        common_start_ns=ranks.on_one_clock(segments.select(pl.col("member").cast(pl.Int32), "start_ns"), "start_ns"),
        own_start_ns="start_ns",
        segment_ns="segment_ns",
        since=ends["since"],
        until=ends["until"],
    )
    return frame.cast(PathAcrossRanksSegments.schema())


VIEW = View(
    path_across_ranks_segments,
    table=PathAcrossRanksSegments,
    title="Path across ranks by segment",
    entry="Critical path",
    place=Part("path_across_ranks"),
    scope="span",
    within="recording",
    needs=has_several_workers,
    hint="A path across ranks needs at least two ranks. Record several ranks of a run at the same time.",
    time=RowTime("own_start_ns", length="segment_ns", worker="worker"),
    shows_path=True,
)
