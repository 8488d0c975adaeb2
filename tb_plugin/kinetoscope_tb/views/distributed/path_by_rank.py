"""Critical path by rank and step: which rank the path of each step is on, as a heat map.

The view of the critical path across ranks explains the path.
"""

from __future__ import annotations

import polars as pl

from ...arrays.gather import fraction
from ...distributed.contents import has_several_workers
from ...distributed.path.paths import PARTS, TRANSFER, Paths
from ...distributed.run import Ranks
from ...pictures import Heatmap
from ...table import DURATION, FRACTION, ID, INSTANT, TEXT, Column, Table
from ...view import Part, RowTime, View


class PathByRank(Table):
    """Which rank the path is on in each step; the rows and transfers of a step add up to the step of the last rank."""

    key, weight = ("worker", "step"), "path_ns"
    picture = Heatmap("worker", "step")

    worker = Column(TEXT, "The worker's name.")
    rank = Column(ID, "Its global rank.")
    step = Column(TEXT, "Number of the step.")
    path_ns = Column(DURATION, "Time of the path on this rank: its own work, without transfers.")
    path_frac = Column(FRACTION, "The same / the step of the rank that ends it last.")
    part = Column(
        TEXT,
        "Its largest part, as in the critical path across ranks; missing if it isn't on the path.",
        shown_as="time part",
    )
    start_ns = Column(INSTANT, "When the step begins, in the worker's own trace.")
    total_ns = Column(DURATION, "Length of the step's window on this rank.", adds_up=False)


def path_by_rank(ranks: Ranks) -> pl.DataFrame:
    """Ranks in order, each with its steps in order of time."""
    paths = Paths.of(ranks)
    steps = (
        paths.steps.select("step", whole="total_ns")
        .with_row_index("place")
        .with_columns(pl.col("place").cast(pl.Int64))
    )
    own = paths.segments.filter(pl.col("part") != TRANSFER).group_by("step", "member", "part")
    parts = own.agg(path_ns=pl.col("dur_ns").sum()).sort("path_ns", "part", descending=[True, False])
    on_path = (
        parts.group_by("step", "member", maintain_order=True)
        .agg(pl.col("path_ns").sum(), pl.col("part").first())
        .join(steps, left_on="step", right_on="place")
        .select(pl.col("member").cast(pl.Int32), step="step_right", path_ns="path_ns", part="part")
    )
    rows = (
        ranks.steps.select("member", "step", "start_ns", "total_ns")
        .join(on_path, ["member", "step"], "left", maintain_order="left")
        .join(steps.drop("place"), "step", "left", maintain_order="left")
        .join(ranks.workers.select("member", "worker", "rank"), "member", "left", maintain_order="left")
        .with_columns(pl.col("path_ns").fill_null(0))
        .sort("rank", "worker", "start_ns", maintain_order=True)
    )
    texts = pl.Series([None if part is None else PARTS[part] for part in rows["part"]], dtype=pl.String)
    frame = rows.with_columns(path_frac=fraction(pl.col("path_ns"), pl.col("whole")), part=texts)
    return PathByRank.of(frame.select(PathByRank.schema().names()).cast(PathByRank.schema()))


VIEW = View(
    path_by_rank,
    table=PathByRank,
    title="Critical path by rank and step",
    entry="Critical path",
    place=Part("path_across_ranks"),
    scope="span",
    within="recording",
    needs=has_several_workers,
    hint="A path across ranks needs at least two ranks. Record several ranks of a run at the same time.",
    time=RowTime("start_ns", length="total_ns", worker="worker"),
    shows_path=True,
)
