"""Step start lag: how far each rank is behind the first one when a step begins, on one clock.

Ranks with common collectives can't fall behind for long. This view shows which ranks begin steps late, often or once,
and whether ranks without common collectives drift apart.
"""

from __future__ import annotations

import polars as pl

from ...distributed.contents import has_several_workers
from ...distributed.imbalance.step_times import start_lags
from ...distributed.run import Ranks
from ...pictures import Heatmap
from ...table import DURATION, ID, INSTANT, TEXT, Column, Table
from ...view import Part, View


class Pace(Table):
    """How long after the first rank each rank begins each step."""

    key, weight = ("worker", "step"), "start_lag_ns"
    picture = Heatmap("worker", "step")

    common_start_ns = Column(INSTANT, "When the step begins on the rank, on the clock of the first rank.")
    worker = Column(TEXT, "The worker's name.")
    rank = Column(ID, "Its global rank.")
    step = Column(TEXT, "Number of the step.")
    start_lag_ns = Column(
        DURATION,
        "Delay after the first rank. Where it is less than the error of the clocks, this rank may be the first.",
        adds_up=False,
    )
    clock_error_ns = Column(
        DURATION,
        "Error of the difference between its clock and that of the first rank, as in the view Clocks; missing of the "
        "first rank, and if it is unknown.",
        adds_up=False,
    )


def pace(ranks: Ranks) -> pl.DataFrame:
    """Worker by worker in order of time."""
    lags = start_lags(ranks).join(ranks.workers.select("member", "worker", "rank"), "member")
    rows = lags.sort("rank", "worker", "common_start_ns")
    return Pace.of(rows.select(Pace.schema().names()).cast(Pace.schema()))


VIEW = View(
    pace,
    table=Pace,
    title="Step start lag",
    entry="Ranks",
    place=Part("stragglers"),
    scope="span",
    within="moments",
    needs=has_several_workers,
    hint="Not enough data: record at least two ranks of a run.",
)
