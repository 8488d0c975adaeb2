"""Stragglers: which rank is slow itself, which ones wait for it, and whether noise explains it all.

A rank's own time in a step is the step without its exposed wait for others; its excess is that less the median of the
other ranks. It is a straggler if its typical excess is beyond the threshold: more than 2 % of a step, and more than
noise alone reaches on any rank in one run of a hundred. Whoever comes late because it waited elsewhere is no straggler.
"""

from __future__ import annotations

from typing import Literal

import polars as pl

from ...distributed import Ranks
from ...distributed.imbalance.step_times import step_rows
from ...distributed.imbalance.stragglers import verdicts
from ...table import COUNT, DURATION, ID, TEXT, Column, Table
from ...view import View


class Stragglers(Table):
    """One row is one rank, the slowest first."""

    key, weight = ("worker",), "excess_ns"

    worker = Column(TEXT, "The worker's name.")
    rank = Column(ID, "Its rank over the whole job.")
    host = Column(TEXT, "The machine, where it is known.")
    verdict = Column(
        TEXT,
        "`straggler`: typically slower than the threshold; `slow at times`: single steps stand out of the noise; "
        "`waits`: for a straggler, longer than the threshold; `in step`: none of these.",
    )
    cause = Column(
        TEXT,
        "The part of its own time that exceeds that of the others most, in its slow steps. If it is moving data, the "
        "view Links tells which link is slow.",
    )
    excess_ns = Column(
        DURATION, "Its own time less the median of the other ranks', in the typical step; negative: faster than they."
    )
    part_ns = Column(DURATION, "How much of the excess is the cause's; negative if the parts outweigh each other.")
    cost_ns = Column(
        DURATION, "How much longer it takes than the slowest rank that is no straggler, per step: what all wait for it."
    )
    own_ns = Column(DURATION, "Its own time in the typical step: without waiting for others.")
    wait_ns = Column(DURATION, "Its exposed wait in the typical step.")
    slow_steps = Column(COUNT, "In how many of the steps it exceeds the threshold.")
    steps = Column(COUNT, "How many complete steps are compared.")
    threshold_ns = Column(DURATION, "The excess from which on a rank is called a straggler.", adds_up=False)


def stragglers(ranks: Ranks, *, over: Literal["span", "run"] = "span") -> pl.DataFrame:
    """The slowest rank first; `over` the recordings of one span, or all that the run has of each worker."""
    rows = step_rows(ranks)
    if over == "span":
        rows = rows.filter(pl.col("place") == ranks.place)
    judged = verdicts(rows).join(ranks.workers.select("member", "worker", "rank", "host"), "member", "left")
    named = judged.sort("excess_ns", "rank", descending=[True, False])
    return Stragglers.of(named.select(Stragglers.schema().names()).cast(Stragglers.schema()))


VIEW = View(
    stragglers,
    table=Stragglers,
    title="Stragglers",
    group="Run",
    scope="run",
    within="recording",
    needs="several",
    hint="Ranks can be compared from two ranks and three steps on. Record all ranks, for three complete steps.",
)
