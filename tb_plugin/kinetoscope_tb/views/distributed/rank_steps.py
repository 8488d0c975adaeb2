"""Ranks and steps: how long each rank took for each step, and what of it was its own work, what waiting for others.

In a synchronous training all ranks' steps last as long as those of the slowest, so their lengths tell nobody. What
tells is the rank's own time: the step without the time in which it waited, exposed, for others to come to a collective.
"""

from __future__ import annotations

import polars as pl

from ...distributed import Ranks
from ...distributed.imbalance.step_times import step_rows
from ...pictures import Heatmap
from ...table import BOOL, DURATION, ID, INSTANT, TEXT, Column, Table
from ...view import RowTime, View


class RankSteps(Table):
    """One row is one step of one rank; computation, exposed communication, exposed copies and idle add up to it."""

    key, weight = ("worker", "step"), "own_ns"
    picture = Heatmap("worker", "step")

    worker = Column(TEXT, "The worker's name.")
    rank = Column(ID, "Its rank over the whole job, as the recording or the worker's name tells.")
    step = Column(TEXT, "Number of the step; `all` if no steps were marked.")
    start_ns = Column(INSTANT, "When the step begins in the worker's own recording.")
    total_ns = Column(DURATION, "Length of the step's window.")
    own_ns = Column(DURATION, "The step without the wait: what the rank itself took.")
    wait_ns = Column(
        DURATION,
        "Waiting for other ranks to come to a collective, while nothing computes here; missing where that can't be "
        "told.",
    )
    computation_ns = Column(DURATION, "A kernel runs that is not communication; on a CPU, an operator.")
    overlap_ns = Column(DURATION, "Communication that computation hides.")
    exposed_communication_ns = Column(DURATION, "Communication while nothing computes; the wait is a part of it.")
    exposed_copies_ns = Column(DURATION, "Copies and fills that neither computation nor communication hides.")
    idle_ns = Column(DURATION, "Neither computes, communicates nor copies.")
    dataloader_ns = Column(DURATION, "Waiting for a batch of a DataLoader while nothing else runs.")
    is_complete = Column(BOOL, "Whether all of the step was recorded.")


def rank_steps(ranks: Ranks) -> pl.DataFrame:
    """Ranks in order, each with its steps in order of time."""
    rows = step_rows(ranks).sort("rank", "worker", "start_ns", maintain_order=True)
    return RankSteps.of(rows.select(RankSteps.schema().names()).cast(RankSteps.schema()))


VIEW = View(
    rank_steps,
    table=RankSteps,
    title="Ranks and steps",
    group="Run",
    scope="span",
    within="recording",
    needs="steps",
    hint="No recording of this run can be read; the list of what is wrong is in Run health.",
    time=RowTime("start_ns", length="total_ns", worker="worker"),
)
