"""Critical path by rank and step: on whom the path of each step lies, as a picture of ranks and steps.

How the path is found is said with the critical path across ranks.
"""

from __future__ import annotations

import polars as pl

from ...arrays.gather import fraction
from ...distributed import Ranks
from ...distributed.path.paths import PARTS, TRANSFER, Paths
from ...pictures import Heatmap
from ...table import DURATION, FRACTION, ID, INSTANT, TEXT, Column, Table
from ...view import Part, RowTime, View


class PathByRank(Table):
    """One row is one step of one rank; a step's rows and its transfers add up to the step of the last rank."""

    key, weight = ("worker", "step"), "path_ns"
    picture = Heatmap("worker", "step")

    worker = Column(TEXT, "The worker's name.")
    rank = Column(ID, "Its rank over the whole job.")
    step = Column(TEXT, "Number of the step.")
    path_ns = Column(DURATION, "How much of the step's path lies on it: its own work, without moving data.")
    path_frac = Column(FRACTION, "The same / the step of the rank that ends it last.")
    part = Column(TEXT, "What most of that is, as in the critical path across ranks; missing if it is not on the path.")
    start_ns = Column(INSTANT, "When the step begins in the worker's own recording.")
    total_ns = Column(DURATION, "Length of the step's window on this rank.", adds_up=False)


def path_by_rank(ranks: Ranks) -> pl.DataFrame:
    """Ranks in order, each with its steps in order of time."""
    paths = Paths.of(ranks)
    named = (
        paths.steps.select("step", whole="total_ns")
        .with_row_index("place")
        .with_columns(pl.col("place").cast(pl.Int64))
    )
    own = paths.stretches.filter(pl.col("part") != TRANSFER).group_by("step", "member", "part")
    parts = own.agg(path_ns=pl.col("dur_ns").sum()).sort("path_ns", "part", descending=[True, False])
    on_path = (
        parts.group_by("step", "member", maintain_order=True)
        .agg(pl.col("path_ns").sum(), pl.col("part").first())
        .join(named, left_on="step", right_on="place")
        .select(pl.col("member").cast(pl.Int32), step="step_right", path_ns="path_ns", part="part")
    )
    rows = (
        ranks.steps.select("member", "step", "start_ns", "total_ns")
        .join(on_path, ["member", "step"], "left", maintain_order="left")
        .join(named.drop("place"), "step", "left", maintain_order="left")
        .join(ranks.workers.select("member", "worker", "rank"), "member", "left", maintain_order="left")
        .with_columns(pl.col("path_ns").fill_null(0))
        .sort("rank", "worker", "start_ns", maintain_order=True)
    )
    texts = pl.Series([None if part is None else PARTS[part] for part in rows["part"]], dtype=pl.String)
    told = rows.with_columns(path_frac=fraction(pl.col("path_ns"), pl.col("whole")), part=texts)
    return PathByRank.of(told.select(PathByRank.schema().names()).cast(PathByRank.schema()))


VIEW = View(
    path_by_rank,
    table=PathByRank,
    title="The path by rank and step",
    group="Run",
    scope="span",
    within="recording",
    needs="several",
    hint="It takes two ranks for a path across them. Record several ranks of a run at the same time.",
    place=Part("path_across_ranks"),
    time=RowTime("start_ns", length="total_ns", worker="worker"),
    shows_path=True,
)
