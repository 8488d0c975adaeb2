"""Communication: which collectives ran, in which groups, of which sizes, how long they moved data and how long waited.

A collective lasts on each rank from when that rank came to it: so its mean duration tells more of who is late than of
the network. The transfer, from when the last rank came, is what bandwidth is told of: algorithm bandwidth is message ÷
transfer; bus bandwidth corrects it for how much each link has to carry, as nccl-tests does, so that it can be held
against what the link can do.
"""

from __future__ import annotations

import polars as pl

from ...distributed import Ranks
from ...names.collectives import bus_factor
from ...table import BOOL, BYTE_RATE, BYTES, COUNT, DURATION, TEXT, Column, Table
from ...view import View


class Communication(Table):
    """One row is one kind of operation in one group with messages of one size, over all recorded ranks."""

    key, weight = ("operation", "group", "message_bytes"), "total_ns"

    operation = Column(TEXT, "What is done: all_reduce, all_gather, send …; `other` where the names don't tell.")
    group = Column(TEXT, "The process group and its ranks; `unknown` where the recording doesn't tell which it is.")
    message_bytes = Column(
        BYTES, "Size of one message: of an all-gather what comes out, of a reduce-scatter what goes in.", adds_up=False
    )
    calls = Column(COUNT, "How often the recorded ranks took part, all counted.")
    ranks = Column(COUNT, "How many recorded ranks took part.", adds_up=False)
    lost = Column(COUNT, "Calls of which the host was recorded and the transfer was not; they have no times.")
    unmatched = Column(COUNT, "Calls that no other rank's recording has, or that can't be told apart from others.")
    total_ns = Column(DURATION, "Sum of their durations over all ranks.")
    mean_ns = Column(DURATION, "Mean duration on a rank, waiting included.")
    mean_transfer_ns = Column(DURATION, "Mean time from when the last rank came; missing where it can't be told.")
    mean_wait_ns = Column(DURATION, "Mean time that a rank waited for the last one; transfer + wait = duration.")
    algorithm_bytes_per_s = Column(BYTE_RATE, "Bytes of the messages ÷ transfer.")
    bus_bytes_per_s = Column(BYTE_RATE, "Algorithm bandwidth × the share of the message that each link carries.")
    is_transfer_known = Column(
        BOOL, "Whether the bandwidths are of transfers; else of whole durations, so they are at least this."
    )


def communication(ranks: Ranks) -> pl.DataFrame:
    """The rows that took most time first."""
    is_known = pl.col("transfer_ns").is_not_null()
    is_timed = pl.col("dur_ns") >= 0
    moving = (
        pl.when(is_known.any()).then(pl.col("transfer_ns").sum()).otherwise(pl.col("dur_ns").filter(is_timed).sum())
    )
    counted = pl.when(is_known.any()).then(is_known.sum()).otherwise(is_timed.sum())
    message = pl.col("bytes").replace(-1, None)
    rows = (
        ranks.calls.join(ranks.group_labels, "group", "left", maintain_order="left")
        .group_by(operation="kind", group=pl.col("label").fill_null("unknown"), message_bytes=message)
        .agg(
            calls=pl.len(),
            ranks=pl.col("rank").n_unique(),
            lost=(~is_timed).sum(),
            unmatched=pl.col("match").is_null().sum(),
            total_ns=pl.when(is_timed.any()).then(pl.col("dur_ns").filter(is_timed).sum()),
            mean_ns=pl.col("dur_ns").filter(is_timed).mean().round(),
            mean_transfer_ns=pl.col("transfer_ns").mean().round(),
            mean_wait_ns=pl.col("wait_ns").mean().round(),
            is_transfer_known=is_known.any(),
            moving=moving,
            counted=counted,
            size=pl.col("group_size").first(),
        )
    )
    rate = pl.when(pl.col("moving") > 0).then(pl.col("message_bytes") * pl.col("counted") / pl.col("moving") * 1e9)
    rows = rows.with_columns(algorithm_bytes_per_s=rate).with_columns(bus_bytes_per_s=rate * _bus_factors(rows))
    order, falls = ("total_ns", "operation", "group", "message_bytes"), [True, False, False, False]
    ordered = rows.sort(*order, descending=falls, nulls_last=[True, False, False, False])
    return Communication.of(ordered.select(Communication.schema().names()).cast(Communication.schema()))


def _bus_factors(rows: pl.DataFrame) -> pl.Series:
    """Of each row; missing where the size of the group isn't known."""
    factors = [
        None if size is None or size < 1 else bus_factor(kind, size)
        for kind, size in rows.select("operation", "size").rows()
    ]
    return pl.Series(factors, dtype=pl.Float64)


VIEW = View(
    communication,
    table=Communication,
    title="Communication",
    group="Run",
    scope="span",
    within="recording",
    needs="calls",
    hint="No collective was recorded. Record ranks that talk to others; on GPUs with ProfilerActivity.CUDA.",
)
