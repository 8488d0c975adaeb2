"""The stretches of the critical path across ranks, from a step's begin to its end: who was waited for, and what it did.

How the path is found is said with the critical path across ranks.
"""

from __future__ import annotations

import polars as pl

from ...arrays.gather import fraction
from ...distributed import Ranks
from ...distributed.path.path_segments import ends_in_words
from ...distributed.path.paths import PARTS, Paths
from ...table import DURATION, FRACTION, ID, INSTANT, TEXT, Column, Table
from ...view import Part, RowTime, View

MOST_ROWS = 5_000


class PathAcrossRanksStretches(Table):
    """One row is one part of one stretch; a stretch is on one rank, between two collectives or within one."""

    key, weight = ("step", "number", "part"), "dur_ns"

    step = Column(TEXT, "Number of the step.")
    number = Column(ID, "Of the stretch in its step: the first begins with the step, the last ends with it.")
    worker = Column(TEXT, "The worker whom all wait for then.")
    rank = Column(ID, "Its rank over the whole job.")
    part = Column(TEXT, "What the time goes to, as in the critical path across ranks.")
    dur_ns = Column(DURATION, "How much of the stretch is this part; what comes when within it isn't told.")
    share_frac = Column(FRACTION, "The same / the step.")
    start_ns = Column(INSTANT, "When the stretch begins, in the worker's own recording.")
    stretch_ns = Column(DURATION, "How long the stretch is, with all its parts.", adds_up=False)
    since = Column(
        TEXT,
        "The collective that ends when it begins, with its number in its group, or the step's begin; of a collective "
        "that one itself; missing before the step.",
    )
    until = Column(
        TEXT, "The collective that begins when it ends, this rank being the last one to come; or the step's end."
    )


def path_across_ranks_stretches(ranks: Ranks, *, step: str | None = None) -> pl.DataFrame:
    """Steps and their stretches in order; if there are more than 5 000 rows, the longest."""
    paths = Paths.of(ranks)
    rows = paths.stretches.with_columns(step_name=paths.steps["step"].gather(paths.stretches["step"]))
    if step is not None:
        rows = rows.filter(pl.col("step_name") == step)
    rows = (
        rows.sort("dur_ns", descending=True)
        .head(MOST_ROWS)
        .sort("step", "number", "dur_ns", descending=[False, False, True])
    )
    told = rows.drop("since", "until").join(
        ranks.workers.select(pl.col("member").cast(pl.Int64), "worker", "rank"), "member", "left", maintain_order="left"
    )
    ends = ends_in_words(rows, ranks)
    whole = paths.steps["total_ns"].gather(rows["step"])
    found = told.select(
        step="step_name",
        number="number",
        worker="worker",
        rank="rank",
        part=pl.Series([PARTS[part] for part in rows["part"]], dtype=pl.String),
        dur_ns="dur_ns",
        share_frac=fraction(pl.col("dur_ns"), pl.lit(whole)),
        start_ns="start_ns",
        stretch_ns="stretch_ns",
        since=ends["since"],
        until=ends["until"],
    )
    return PathAcrossRanksStretches.of(found.cast(PathAcrossRanksStretches.schema()))


VIEW = View(
    path_across_ranks_stretches,
    table=PathAcrossRanksStretches,
    title="Stretches of the path across ranks",
    group="Run",
    scope="span",
    within="recording",
    needs="several",
    hint="It takes two ranks for a path across them. Record several ranks of a run at the same time.",
    place=Part("path_across_ranks"),
    time=RowTime("start_ns", length="stretch_ns", worker="worker"),
    shows_path=True,
)
