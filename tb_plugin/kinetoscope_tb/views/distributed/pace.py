"""Pace: how far ranks are behind the first one when each step begins, on one clock.

Ranks that meet in collectives can't fall behind for long. What shows here is who comes late to a step, again and again
or once, and whether ranks drift apart where nothing holds them together.
"""

from __future__ import annotations

import polars as pl

from ...distributed import Ranks
from ...pictures import Lines
from ...table import DURATION, ID, INSTANT, TEXT, Column, Table
from ...view import View

MOST_CURVES = 16


class Pace(Table):
    """One row is the begin of one step on one rank; of many ranks only those that are behind most are there."""

    key = ("worker", "step")
    picture = Lines(("behind_ns",), series=("worker",))

    start_ns = Column(INSTANT, "When the step begins on the rank, on the clock of the first one.")
    worker = Column(TEXT, "The worker's name.")
    rank = Column(ID, "Its rank over the whole job.")
    step = Column(TEXT, "Number of the step.")
    behind_ns = Column(DURATION, "How long after the first rank.")


def pace(ranks: Ranks) -> pl.DataFrame:
    """Worker by worker in order of time: the sixteen that are behind most."""
    aligned = ranks.steps.with_columns(start_ns=ranks.on_one_clock(ranks.steps, "start_ns")).join(
        ranks.workers.select("member", "worker", "rank"), "member"
    )
    rows = aligned.with_columns(behind_ns=pl.col("start_ns") - pl.col("start_ns").min().over("step"))
    late = rows.group_by("worker").agg(pl.col("behind_ns").sum(), pl.col("rank").first())
    shown = late.sort("behind_ns", "rank", descending=[True, False]).head(MOST_CURVES)
    kept = rows.join(shown.select("worker"), "worker", "semi").sort("rank", "worker", "start_ns")
    return Pace.of(kept.select(Pace.schema().names()).cast(Pace.schema()))


VIEW = View(
    pace,
    table=Pace,
    title="Pace",
    group="Run",
    scope="span",
    within="moments",
    needs="several",
    hint="It takes two ranks to see who is behind. Record several ranks of a run.",
)
