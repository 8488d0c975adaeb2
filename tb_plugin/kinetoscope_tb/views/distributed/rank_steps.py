"""Ranks and steps: how long each step took on each rank, split into own work and waiting for other ranks.

In synchronous training all ranks' steps are as long as the slowest rank's, so their lengths don't show which rank is
slow. The rank's own time does: the step without the exposed time in which it waited for other ranks in collectives.
"""

from __future__ import annotations

import polars as pl

from ...distributed.contents import has_steps
from ...distributed.imbalance.step_times import idle_parts, step_rows
from ...distributed.roles import roles
from ...distributed.run import Ranks
from ...pictures import Heatmap
from ...table import BOOL, DURATION, ID, INSTANT, TEXT, Column, Table
from ...view import RowTime, Tab, View


class RankSteps(Table):
    """Where each rank's step time went; computation, exposed communication, exposed copies and idle add up."""

    key, weight = ("worker", "step"), "without_waiting_ns"
    picture = Heatmap(
        "worker",
        "step",
        parts=(
            *("computation_ns", "exposed_transfer_ns", "exposed_wait_ns", "exposed_copies_ns"),
            *("idle_loading_ns", "idle_collecting_ns", "idle_other_ns"),
        ),
    )

    worker = Column(TEXT, "The worker's name.")
    rank = Column(ID, "Its rank in the whole job, from the trace or the name of the worker.")
    role = Column(TEXT, "Its role, as the view Topology has it; missing if nothing shows it.")
    step = Column(
        TEXT,
        "Number of the step or of a server's iteration, after the worker's name if ranks ran different iterations; "
        "`all` if there are none.",
    )
    total_ns = Column(DURATION, "Length of the step's window.")
    without_waiting_ns = Column(DURATION, "The rank's own time: the step without its waiting for other ranks.")
    exposed_wait_ns = Column(
        DURATION,
        "Waiting for other ranks at a collective, while nothing computes here; time in which several collectives wait "
        "counts once; missing if unknown.",
    )
    computation_ns = Column(
        DURATION,
        "Time with a running kernel that isn't communication; on a CPU, with a running operator, but only an "
        "innermost one while a collective is open: the others may wait for it.",
    )
    overlap_ns = Column(DURATION, "Communication that computation hides.")
    exposed_communication_ns = Column(DURATION, "Communication while nothing computes, including the wait.")
    exposed_transfer_ns = Column(
        DURATION, "Exposed communication without the wait: moving data; all of it if the wait is unknown."
    )
    exposed_copies_ns = Column(DURATION, "Copies and fills that neither computation nor communication hides.")
    idle_ns = Column(DURATION, "Time without computation, communication and copies.")
    dataloader_ns = Column(DURATION, "Waiting for a batch of a DataLoader while nothing else runs.", title="DataLoader")
    idle_loading_ns = Column(DURATION, "Part of the idle time in which it waits for a batch of a DataLoader.")
    idle_collecting_ns = Column(DURATION, "The same: Python collects garbage, and no data is loaded.")
    idle_other_ns = Column(DURATION, "The rest of the idle time; the rank's own view of idle time says why.")
    common_start_ns = Column(INSTANT, "When the step begins on the rank, on the clock of the first rank.")
    own_start_ns = Column(INSTANT, "The same in the worker's own trace and on its clock.")
    is_complete = Column(BOOL, "Whether all of the step was recorded.")


def rank_steps(ranks: Ranks) -> pl.DataFrame:
    """Ranks in order, each with its steps in order of time."""
    rows = step_rows(ranks)
    rows = (
        idle_parts(rows.with_columns(common_start_ns=ranks.on_one_clock(rows, "start_ns")))
        .with_columns(exposed_transfer_ns=pl.col("exposed_communication_ns") - pl.col("wait_ns").fill_null(0))
        .join(roles(ranks), "member", "left", maintain_order="left")
        .sort("rank", "worker", "start_ns", maintain_order=True)
        .rename({"start_ns": "own_start_ns", "wait_ns": "exposed_wait_ns"})
    )
    return RankSteps.of(rows.select(RankSteps.schema().names()).cast(RankSteps.schema()))


VIEW = View(
    rank_steps,
    table=RankSteps,
    title="Ranks and steps",
    entry="Ranks",
    place=Tab("Steps"),
    scope="span",
    within="recording",
    needs=has_steps,
    hint="No trace of this run can be read. Run health lists the problems.",
    time=RowTime("own_start_ns", length="total_ns", worker="worker"),
)
