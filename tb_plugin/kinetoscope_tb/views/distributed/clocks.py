"""Clocks: how far the ranks' clocks are apart, as the recorder measured it, or the ends of their collectives tell.

A collective ends on all of its ranks at about the same time. So the shifts of clocks that put the ends above each other
best tell how far the clocks are apart, and how far the ends then still are says how good that is.
"""

from __future__ import annotations

import polars as pl

from ...distributed import Ranks
from ...distributed.clocks.offsets import COLLECTIVES, MEASURED
from ...table import COUNT, DURATION, ID, NUMBER, TEXT, Column, Table
from ...view import View


class Clocks(Table):
    """One row is one rank."""

    key, weight = ("worker",), "residual_ns"

    worker = Column(TEXT, "The worker's name.")
    rank = Column(ID, "Its rank over the whole job.")
    host = Column(TEXT, "The machine, where it is known.")
    told_by = Column(
        TEXT,
        "`measurement`: the recorder's own, while the job ran; `collectives`: their ends; `reference`: the others are "
        "told against it; `wall clock`: nothing ties it to the others, or it has the clock of the reference's machine, "
        "so its own time of day counts.",
    )
    ahead_ns = Column(
        DURATION,
        "How much its clock is ahead of the reference's, in the middle of the recording; negative: it is behind.",
    )
    drift = Column(NUMBER, "How many ns it gains on the reference's clock per second, where that stands out of noise.")
    error_ns = Column(
        DURATION, "By how much that may be wrong: as measured, or three standard errors of what collectives tell."
    )
    residual_ns = Column(DURATION, "The median distance of the ends of its collectives from the common ones.")
    differs_ns = Column(
        DURATION,
        "How much further ahead than measured collectives put it; beyond both errors one of them is wrong: the clock "
        "was set, or drifted, after it was measured. Negative: less far ahead.",
    )
    collectives = Column(COUNT, "How many collectives tell it.")


def clocks(ranks: Ranks) -> pl.DataFrame:
    """Ranks in order."""
    told = ranks.clocks.join(ranks.workers, "member", maintain_order="left")
    origin = ranks.workers["origin_ns"].to_list()
    first = origin[0] if origin else 0
    rows = told.with_columns(
        ahead_ns=pl.col("origin_ns") - first - pl.col("shift_ns"),
        told_by=pl.col("source"),
        drift=-pl.col("drift") * 1e9,
        error_ns=pl.col("error_ns").round(),
        residual_ns=pl.col("residual_ns").round(),
        differs_ns=-pl.col("differs_ns"),
    ).with_columns(error_ns=pl.when(pl.col("told_by").is_in([MEASURED, COLLECTIVES])).then("error_ns"))
    rows = rows.with_columns(pl.when(pl.col("drift") != 0).then("drift")).sort("rank", "worker")
    return Clocks.of(rows.select(Clocks.schema().names()).cast(Clocks.schema()))


VIEW = View(
    clocks,
    table=Clocks,
    title="Clocks",
    group="Run",
    scope="span",
    within="recording",
    needs="several",
    hint="Clocks can be held against each other from two ranks on. Record several ranks of a run.",
)
