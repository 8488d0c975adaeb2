"""Rank waits: how long each rank waited at each collective, and which rank came last there.

With a single step this shows who holds the others up, collective by collective; one step can't tell a slow rank from a
one-off.
"""

from __future__ import annotations

import polars as pl

from ...distributed.contents import has_matches
from ...distributed.imbalance.collective_waits import NOISE, collective_waits
from ...distributed.run import Ranks
from ...pictures import Heatmap
from ...table import BOOL, BYTES, DURATION, ID, TEXT, Column, Table
from ...view import Part, View

MOST = 40


class RankWaits(Table):
    """Who waits, collective by collective: the forty at which the ranks of the run waited longest, in order of time."""

    key, weight = ("worker", "collective"), "wait_ns"
    picture = Heatmap("worker", "collective", mark="is_last")

    worker = Column(TEXT, "The worker's name.")
    rank = Column(ID, "Its global rank.")
    collective = Column(TEXT, "The collective: its number in the view Collectives, and its operation.")
    step = Column(TEXT, "The step in which it was called; missing between steps.")
    message_bytes = Column(BYTES, "Size of its message.")
    wait_ns = Column(
        DURATION,
        "How long after this rank the last one arrived, which includes time in which this rank computes. A lower bound "
        "where ranks are missing.",
    )
    is_last = Column(
        BOOL,
        "Whether it alone came last, so that the others waited for it; missing if that is unknown: the next one came "
        "within `noise_ns`, or ranks may leave the collective early, as a broadcast or a reduction to one rank.",
    )
    noise_ns = NOISE


def rank_waits(ranks: Ranks) -> pl.DataFrame:
    """Rank by rank, collectives in order of time."""
    longest = collective_waits(ranks).filter(pl.col("total_wait_ns") > 0).sort("total_wait_ns", "number").tail(MOST)
    collectives = longest.select(
        "number",
        "step",
        "message_bytes",
        "last",
        "noise_ns",
        collective=pl.concat_str(pl.col("number").cast(pl.String), pl.lit(" "), "operation"),
    )
    rows = (
        ranks.calls.filter(pl.col("wait_ns").is_not_null())
        .select("member", "wait_ns", number=pl.col("match").cast(pl.Int64))
        .join(collectives, "number")
        .join(ranks.workers.select("member", "worker", "rank"), "member")
        .with_columns(is_last=pl.col("worker") == pl.col("last"))
        .sort("rank", "worker", "number")
        .unique(["worker", "number"], keep="first", maintain_order=True)
    )
    return RankWaits.of(rows.select(RankWaits.schema().names()).cast(RankWaits.schema()))


VIEW = View(
    rank_waits,
    table=RankWaits,
    title="Who waits, collective by collective",
    entry="Ranks",
    place=Part("rank_steps"),
    scope="span",
    within="moments",
    needs=has_matches,
    hint="No collective was matched across ranks. Record several ranks of a run at the same time.",
)
