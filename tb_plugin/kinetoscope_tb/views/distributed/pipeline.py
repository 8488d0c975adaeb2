"""Pipeline: how long each stage waits for the others in each step, for whom, and how long its schedule makes it wait.

The bubble of a stage is the time in which it waits for another stage's data and computes nothing. A receive that lasts
longer than its send waited for the sender, and a send that lasts longer waited for the receiver.
"""

from __future__ import annotations

import polars as pl

from ...arrays.gather import fraction
from ...distributed.contents import has_stages
from ...distributed.pipeline import bubbles
from ...distributed.run import Ranks
from ...table import COUNT, DURATION, FRACTION, ID, TEXT, Column, Table
from ...view import Part, View


class Pipeline(Table):
    """How long the stages of a pipeline wait for each other; the ideal is that of equal stages."""

    key, weight = ("worker", "step"), "bubble_ns"

    worker = Column(TEXT, "The worker's name.")
    rank = Column(ID, "Its global rank.")
    stage = Column(ID, "Its stage: 0 sends before it receives, the next one is the one that it sends to.")
    step = Column(TEXT, "Number of the step.")
    total_ns = Column(DURATION, "Length of the step on this rank.")
    computation_ns = Column(DURATION, "Time in which it computes.")
    bubble_ns = Column(DURATION, "Time in which it waits for another stage's data and computes nothing.")
    bubble_frac = Column(FRACTION, "The same / the step.")
    idle_ns = Column(
        DURATION,
        "Time without computation, communication and copies, which is no part of the bubble: no transfer shows whether "
        "it waits for another stage then, as after its last send.",
    )
    ideal_frac = Column(
        FRACTION,
        "The bubble of equal stages in GPipe, 1F1B and interleaved schedules: (stages − 1) ÷ (chunks × micro-batches + "
        "stages − 1).",
    )
    waits_for = Column(ID, "The rank that it waits for longest; missing if it doesn't wait.")
    waits_for_ns = Column(DURATION, "How long it waits for that rank.")
    micro_batches = Column(COUNT, "Micro-batches in a step: activations that the first stage passes on.", adds_up=False)
    chunks = Column(COUNT, "Chunks of layers on each stage, in interleaved schedules.", adds_up=False)


def pipeline(ranks: Ranks) -> pl.DataFrame:
    """Stage by stage, steps in order of time."""
    of_run = ranks.pipeline
    rows = (
        bubbles(ranks.calls, ranks.steps, of_run)
        .join(ranks.workers.select("member", "worker", "rank"), "member")
        .with_columns(
            bubble_frac=fraction(pl.col("bubble_ns"), pl.col("total_ns")),
            ideal_frac=pl.lit(of_run.ideal_frac, pl.Float64),
            micro_batches=pl.lit(of_run.micro_batches or None, pl.Int64),
            chunks=pl.lit(of_run.chunks, pl.Int64),
        )
        .sort("stage", "rank", "worker", "start_ns")
    )
    return Pipeline.of(rows.select(Pipeline.schema().names()).cast(Pipeline.schema()))


VIEW = View(
    pipeline,
    table=Pipeline,
    title="Pipeline",
    entry="Ranks",
    place=Part("rank_steps"),
    scope="span",
    within="recording",
    needs=has_stages,
    hint="No pipeline: no rank begins its steps with a send that another one begins with receiving.",
)
