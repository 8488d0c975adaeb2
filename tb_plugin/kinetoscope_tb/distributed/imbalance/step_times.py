"""Step times of each rank, split into own time and waiting for other ranks."""

from __future__ import annotations

import polars as pl

from ...names.collectives import SYNCHRONIZING
from ..clocks.offsets import COLLECTIVES, MEASURED, REFERENCE
from ..collectives.waits import wait_lengths
from ..run import Ranks
from .uneven_inputs import uneven_elements

PARTS = ("computation_ns", "transfer_ns", "copies_ns", "dataloader_ns", "collecting_ns", "idle_ns")
"""The parts of a rank's own time in a step; they add up to it."""


def step_rows(ranks: Ranks) -> pl.DataFrame:
    """STEPS with `member`, `rank`, `worker`, `span`, `stage` of a pipeline or null, and own and waiting time.

    `overlap_ns`: communication that computation hides; `wait_ns`: exposed time in which the rank waited in collectives
    for other ranks, null if collectives ran and the wait of none is known; `without_waiting_ns`: the step
    without the wait. `elements` are `uneven_elements` where there are any.
    """
    waits = _waits(ranks)
    uneven = uneven_elements(ranks).rename({"elements": "uneven"})
    steps = ranks.steps.with_row_index("row").join(uneven, "row", "left", maintain_order="left")
    elements = pl.when(pl.col("elements") > 0).then(pl.coalesce("uneven", "elements")).otherwise(0)
    steps = steps.with_columns(elements=elements).drop("uneven", "row")
    steps = steps.with_columns(index=pl.int_range(pl.len(), dtype=pl.Int32).over("member"))
    steps = steps.join(ranks.stages, "member", "left", maintain_order="left")
    steps = steps.join(waits, ["member", "index"], "left", maintain_order="left").join(
        ranks.workers.select("member", "rank", "worker", "span"), "member", "left", maintain_order="left"
    )
    wait = pl.when(pl.col("wait_ns").is_not_null()).then(pl.min_horizontal("wait_ns", "exposed_communication_ns"))
    return steps.with_columns(
        overlap_ns=pl.col("communication_ns") - pl.col("exposed_communication_ns"),
        wait_ns=pl.when(pl.col("unestimated").fill_null(0) > 0).then(wait).otherwise(wait.fill_null(0)),
    ).with_columns(without_waiting_ns=pl.col("total_ns") - pl.col("wait_ns"))


def start_lags(ranks: Ranks) -> pl.DataFrame:
    """STEPS with the start of each step on the first rank's clock.

    `common_start_ns`; `start_lag_ns`, after the first rank to begin; `clock_error_ns`, of both clocks: null if unknown.
    """
    source, error = pl.col("source"), pl.col("error_ns").round().cast(pl.Int64)
    known_error = pl.when(source.is_in([MEASURED, COLLECTIVES])).then(error)
    errors = ranks.clocks.select("member", error_ns=pl.when(source == REFERENCE).then(0).otherwise(known_error))
    steps = ranks.steps.with_columns(common_start_ns=ranks.on_one_clock(ranks.steps, "start_ns"))
    lag = pl.col("common_start_ns") - pl.col("common_start_ns").min().over("step")
    of_both = pl.col("error_ns") + pl.col("error_ns").sort_by("common_start_ns").first().over("step")
    return steps.join(errors, "member", "left", maintain_order="left").with_columns(
        start_lag_ns=lag, clock_error_ns=pl.when(lag > 0).then(of_both)
    )


def _waits(ranks: Ranks) -> pl.DataFrame:
    """Per member and step the exposed wait, null if unknown, and the number of calls with an unknown wait."""
    is_known = pl.col("exposed_wait_ns").is_not_null()
    calls = ranks.calls.filter((pl.col("step") >= 0) & (pl.col("kind").is_in(SYNCHRONIZING) | is_known))
    calls = calls.rename({"step": "index"})
    counts = calls.group_by("member", "index").agg(unestimated=(~is_known).sum())
    return wait_lengths(calls, "member", "index").join(counts, ["member", "index"])


def idle_parts(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with what ranks are idle for; these parts add up to `idle_ns`."""
    idle_ns = pl.col("idle_ns")
    loading_ns = pl.min_horizontal("dataloader_ns", idle_ns)
    collection_ns = pl.min_horizontal("collecting_ns", idle_ns - loading_ns)
    return rows.with_columns(
        idle_loading_ns=loading_ns, idle_collecting_ns=collection_ns, idle_other_ns=idle_ns - loading_ns - collection_ns
    )


def own_parts(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with PARTS of their own time; those with an unknown wait are left out."""
    return idle_parts(rows.filter(pl.col("wait_ns").is_not_null())).with_columns(
        transfer_ns=pl.col("exposed_communication_ns") - pl.col("wait_ns"),
        copies_ns="exposed_copies_ns",
        dataloader_ns="idle_loading_ns",
        collecting_ns="idle_collecting_ns",
        idle_ns="idle_other_ns",
    )
