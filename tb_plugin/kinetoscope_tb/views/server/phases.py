"""Phases: where a server's time goes in prefill, decode and mixed iterations, and how many tokens it processes."""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl

from ...arrays.gather import fraction
from ...measures.recording.contents import has_iterations
from ...measures.serving.costs import DEVICE_WORK, busy_times, family_times, gap_causes, idle_times
from ...measures.serving.iterations import Iterations, iteration_of, marks, server_iterations
from ...measures.serving.steadiness import STEADY
from ...measures.time.idle_columns import IN_ITERATIONS
from ...pictures import Bars
from ...table import COUNT, DURATION, FRACTION, NUMBER, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key
from ...view import Slices, View

NOT_STEADY = "not steady"
OUTSIDE = "outside"


class Phases(Table):
    """What each phase of a server takes: time, tokens, device work and the gaps between iterations.

    The last rows are the rest of the recording, so the totals add up to it.
    """

    key, weight = ("phase",), "total_ns"
    picture = Bars(("total_ns",))
    whole = "the recording"

    phase = Column(
        TEXT,
        "Phase of the iterations, as the view Iterations has it; `not steady`: warm-up, ramp-up, drain and what the "
        "recording cut off, where only the steady part is asked for; `outside`: what belongs to no iteration.",
    )
    iterations = Column(COUNT, "How many iterations; of the steady part with the stragglers, which are part of it.")
    total_ns = Column(DURATION, "Sum of their times, each from its start to the start of the next iteration.")
    total_frac = Column(FRACTION, "Share of the recording.")
    mean_ns = Column(DURATION, "Mean time per iteration, rounded.")
    median_ns = Column(DURATION, "Median time per iteration, rounded.")
    p95_ns = Column(DURATION, "At least 95 % of the iterations take no longer; rounded.", adds_up=False)
    mean_batch = Column(NUMBER, "Mean of the requests per iteration, where recorded.")
    tokens = Column(COUNT, "Tokens that the model processed, where recorded.")
    tokens_per_s = Column(
        NUMBER,
        "These tokens per second of the iterations that recorded them; at least that, if a part of their time isn't in "
        "the recording, as not_shown_ns says.",
    )
    token_ns = Column(DURATION, "Time per token: its inverse, rounded.", adds_up=False, shown_as="own unit")
    busy_ns = Column(DURATION, "Part of the total in which any kernel, copy or fill runs.")
    busy_frac = Column(FRACTION, "Busy / total.")
    gap_ns = Column(DURATION, "Part of the total between iterations: neither the host nor the device is in one.")
    gap_synchronizing_ns = Column(
        DURATION, "Part of these gaps in which the host was in a call that waits for the device."
    )
    gap_waiting_ns = Column(
        DURATION, "The same: it waited for a request, or for the process that schedules, and not the above."
    )
    gap_sampling_ns = Column(DURATION, "The same: it sampled, by the names of its functions and operators.")
    gap_detokenizing_ns = Column(DURATION, "The same: it turned tokens into answers, and checked stop conditions.")
    gap_input_preparation_ns = Column(DURATION, "The same: it built the tensors of the next batch.")
    gap_scheduling_ns = Column(DURATION, "The same: it chose the requests of the next batch.")
    gap_operators_and_launches_ns = Column(
        DURATION, "The same: it was in another operator or call, and in none of the above."
    )
    gap_other_ns = Column(DURATION, "The same: it was in other Python or annotated code.")
    gap_unrecorded_ns = Column(
        DURATION, "The same: nothing was recorded: it waited for a request, or ran Python without with_stack=True."
    )
    idle = IN_ITERATIONS
    attention_ns = Column(
        DURATION, "Sum of the kernels that compute attention, rotate queries and keys, or use the KV cache, by name."
    )
    gemm_ns = Column(DURATION, "Sum of the kernels that multiply matrices.")
    moe_ns = Column(DURATION, "Sum of the kernels that route tokens to experts, and those of the experts.")
    communication_ns = Column(DURATION, "Sum of the kernels that move data between ranks.")
    normalization_ns = Column(DURATION, "Sum of the kernels that normalize.")
    sampling_ns = Column(DURATION, "Sum of the kernels that choose tokens.")
    other_ns = Column(DURATION, "Sum of all other kernels that were launched inside the iterations.")
    copy_ns = Column(DURATION, "Sum of the copies and fills that were launched inside the iterations.")


_GAPS = [name for name in Phases.schema() if name.startswith("gap_") and name != "gap_ns"]
_FAMILIES = [f"{work}_ns" for work in DEVICE_WORK]
_SUMS = ["total_ns", "busy_ns", "gap_ns", *_GAPS, *IN_ITERATIONS.names, *_FAMILIES]


def phases(trace: Trace, *, of: Literal["steady", "all"] = "steady") -> pl.DataFrame:
    """Phases by their total time, the longest first, and the rest of the recording."""
    iterations = server_iterations(trace)
    costs = _costs(trace, iterations)
    selection = costs.filter(pl.col("part").is_in(STEADY)) if of == "steady" else costs
    if selection.is_empty():
        selection = costs  # nothing is steady: a recording of one captured or interrupted iteration
    rows = _sums_by_phase(selection).sort("total_ns", "phase", descending=[True, False])
    length = iterations.bounds[1] - iterations.bounds[0]
    whole, steady = int(costs["total_ns"].sum()), int(selection["total_ns"].sum())
    others, count = [(OUTSIDE, 0, length - whole)], costs.height - selection.height
    if count:
        others.insert(0, (NOT_STEADY, count, whole - steady))
    rest = pl.DataFrame(others, ["phase", "iterations", "total_ns"], orient="row")
    table = pl.concat([rows, rest], how="diagonal") if length else rows
    table = table.with_columns(
        total_frac=fraction(pl.col("total_ns"), pl.lit(length)),
        busy_frac=fraction(pl.col("busy_ns"), pl.col("total_ns")),
    )
    return Phases.of(table.select(Phases.schema().names()))


def _costs(trace: Trace, iterations: Iterations) -> pl.DataFrame:
    """Phase, part, batch, tokens and all amounts of each iteration."""
    start, end = iterations.frame["start_ns"].to_numpy(), iterations.frame["next_ns"].to_numpy()
    idle = zip(IN_ITERATIONS.names, idle_times(trace, start, end).values(), strict=True)
    gaps = zip(_GAPS, gap_causes(trace, iterations).values(), strict=True)
    families = zip(_FAMILIES, family_times(trace, iterations).values(), strict=True)
    return iterations.frame.select(
        "phase",
        "part",
        "batch",
        "tokens",
        total_ns=pl.Series(end - start, dtype=pl.Int64),
        busy_ns=pl.Series(busy_times(trace, start, end), dtype=pl.Int64),
        gap_ns=pl.col("next_ns") - pl.col("end_ns"),
        **{name: pl.Series(np.asarray(lengths), dtype=pl.Int64) for name, lengths in (*idle, *gaps, *families)},
    )


def _sums_by_phase(costs: pl.DataFrame) -> pl.DataFrame:
    """One row per phase."""
    total = pl.col("total_ns")
    known_ns = total.filter(pl.col("tokens").is_not_null()).sum()
    return (
        costs.group_by("phase")
        .agg(
            pl.len().cast(pl.Int64).alias("iterations"),
            total.mean().round().cast(pl.Int64).alias("mean_ns"),
            total.median().round().cast(pl.Int64).alias("median_ns"),
            total.quantile(0.95, "higher").round().cast(pl.Int64).alias("p95_ns"),
            pl.col("batch").mean().alias("mean_batch"),
            pl.when(pl.col("tokens").count() > 0).then(pl.col("tokens").sum()).alias("tokens"),
            fraction(pl.col("tokens").sum() * 1e9, known_ns).alias("tokens_per_s"),
            fraction(known_ns, pl.col("tokens").sum()).round().cast(pl.Int64).alias("token_ns"),
            pl.col(_SUMS).sum(),
        )
        .with_columns(pl.lit(None, pl.Float64).alias("total_frac"), pl.lit(None, pl.Float64).alias("busy_frac"))
    )


def events_of_row(trace: Trace, key: Key) -> Events:
    """The marks of the phase's iterations, and their device work."""
    iterations = server_iterations(trace)
    phase, is_steady = iterations.frame["phase"], iterations.frame["part"].is_in(STEADY)
    is_phase = ~is_steady if key["phase"] == NOT_STEADY else phase == str(key["phase"])
    numbers = np.flatnonzero(is_phase.to_numpy())
    return {"device_events": np.flatnonzero(np.isin(iterations.device, numbers)), **marks(iterations, is_phase)}


def row_of(trace: Trace, frame: str, row: int) -> Key | None:
    """The phase of the iteration that the event marks, or that launched it."""
    number = iteration_of(trace, frame, row)
    return {"phase": server_iterations(trace).frame["phase"][number]} if number >= 0 else None


VIEW = View(
    phases,
    table=Phases,
    title="Phases",
    entry="Overview",
    within="recording",
    needs=has_iterations,
    hint="No iterations of a server were recorded. docs/inference.md says how to record a server.",
    slices=Slices(events_of_row, row_of),
)
