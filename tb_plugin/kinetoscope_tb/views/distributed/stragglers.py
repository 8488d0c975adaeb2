"""Stragglers: which rank is slow, which ranks wait for it, and whether noise explains the difference.

A rank's own time in a step is the step without its exposed wait for others; its excess is that minus the median of the
other ranks. It is a straggler if its typical excess is beyond the threshold: more than 2 % of a step, and more than
noise alone reaches on any rank in one of a hundred runs. A rank that is late because it waited elsewhere isn't one.
"""

from __future__ import annotations

from typing import Literal

import polars as pl

from ...distributed.contents import has_several_times
from ...distributed.imbalance.step_times import step_rows
from ...distributed.imbalance.stragglers import verdicts
from ...distributed.run import Ranks
from ...table import COUNT, DURATION, ID, TEXT, Column, Table
from ...view import Tab, View


class Stragglers(Table):
    """Which ranks are slow and which wait, slowest first."""

    key, weight = ("worker",), "typical_excess_ns"

    worker = Column(TEXT, "The worker's name.")
    rank = Column(ID, "Its global rank.")
    host = Column(TEXT, "Host name; missing if unknown.")
    verdict = Column(
        TEXT,
        "`straggler`: its typical excess is above the threshold; `slow at times`: single steps are, beyond noise; "
        "`waits`: for one of these, longer than the threshold; `in step`: none of these.",
    )
    cause = Column(
        TEXT,
        "The part of its own time with the largest excess in its slow steps. If it is moving data, the view Links "
        "shows which link is slow.",
    )
    typical_excess_ns = Column(
        DURATION,
        "Its own time minus the median of the other ranks, in the typical step (the mean without outliers); negative: "
        "it is faster. Of a rank that is slow at times, the slow steps are such outliers.",
        adds_up=False,
    )
    part_in_slow_steps_ns = Column(
        DURATION,
        "The cause's part of the excess in the typical slow step; negative if the parts cancel out.",
        adds_up=False,
    )
    mean_cost_ns = Column(
        DURATION,
        "How much longer it takes than the slowest rank that isn't slow then, in the average step: the others' wait.",
    )
    mean_without_waiting_ns = Column(DURATION, "Its own time in the average step: without waiting for others.")
    mean_exposed_wait_ns = Column(DURATION, "Its exposed wait in the average step.")
    slow_steps = Column(COUNT, "Number of steps in which its excess is beyond noise.")
    steps = Column(COUNT, "Number of compared complete steps.")
    threshold_ns = Column(
        DURATION, "Threshold of the excess for a straggler: what the noise of the other ranks explains.", adds_up=False
    )


_COLUMNS = {
    "excess_ns": "typical_excess_ns",
    "part_ns": "part_in_slow_steps_ns",
    **{name: f"mean_{name}" for name in ("cost_ns", "without_waiting_ns")},
    "wait_ns": "mean_exposed_wait_ns",
}
"""The columns of a table that say which steps they are of, where VERDICTS has them for any."""


def stragglers(ranks: Ranks, *, over: Literal["span", "run"] = "span") -> pl.DataFrame:
    """The slowest rank first; `over` the traces of one span, or all traces of each worker in the run."""
    rows = step_rows(ranks)
    if over == "span":
        rows = rows.filter(pl.col("place") == ranks.place)
    judgments = verdicts(rows).join(ranks.workers.select("member", "worker", "rank", "host"), "member", "left")
    judgments = judgments.sort("excess_ns", "rank", descending=[True, False]).rename(_COLUMNS)
    return Stragglers.of(judgments.select(Stragglers.schema().names()).cast(Stragglers.schema()))


VIEW = View(
    stragglers,
    table=Stragglers,
    title="Slow ranks",
    entry="Ranks",
    place=Tab("Slow ranks"),
    scope="run",
    within="recording",
    needs=has_several_times,
    hint="Telling a slow rank from a one-off takes three complete steps that two ranks with the same work have in "
    "common: in a pipeline, two ranks of one stage. Otherwise collectives only show who was last, and Pipeline which "
    "stage waits.",
)
