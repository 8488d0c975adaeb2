"""Communication: collectives by group and size, how long they moved data and how long they waited.

On each rank a collective lasts from when that rank enters it, so its mean duration depends more on late ranks than on
the network. Bandwidths refer to the transfer, which begins when the last rank enters: algorithm bandwidth is message ÷
transfer; bus bandwidth corrects it for the data that each link carries, as nccl-tests does, so that it can be compared
with the link's peak.
"""

from __future__ import annotations

import polars as pl

from ...distributed.contents import has_calls
from ...distributed.run import Ranks
from ...names.collectives import bus_factor
from ...table import BOOL, BYTE_RATE, BYTES, COUNT, DURATION, TEXT, Column, Table
from ...view import View


class Communication(Table):
    """Time and bandwidth of communication, by operation, group and message size, over all recorded ranks."""

    key, weight = ("operation", "group", "message_bytes"), "total_ns"

    operation = Column(TEXT, "Operation: all_reduce, all_gather, send …; `other` if the names don't say.")
    group = Column(TEXT, "The process group and its ranks; `unknown` if the trace doesn't say.")
    message_bytes = Column(
        BYTES, "Size of one message: the output of an all-gather, the input of a reduce-scatter.", adds_up=False
    )
    calls = Column(COUNT, "Number of calls on all recorded ranks.")
    ranks = Column(COUNT, "Number of recorded ranks that took part.", adds_up=False)
    lost = Column(
        COUNT,
        "Calls recorded on the host only, without the transfer; they have no times. Empty messages need no transfer.",
    )
    unmatched = Column(COUNT, "Calls without a match on other ranks, or with an ambiguous one.")
    total_ns = Column(DURATION, "Sum of their durations over all ranks.")
    mean_ns = Column(DURATION, "Mean duration on a rank, including waits.")
    mean_transfer_ns = Column(DURATION, "Mean time from the arrival of the last rank; missing if unknown.")
    mean_wait_ns = Column(
        DURATION,
        "Mean time that a rank waited for the last one; transfer + wait = duration. At least, if ranks of the group "
        "weren't recorded.",
    )
    algorithm_bytes_per_s = Column(BYTE_RATE, "Bytes of the messages ÷ transfer.")
    bus_bytes_per_s = Column(BYTE_RATE, "Algorithm bandwidth × the share of the message that each link carries.")
    is_transfer_known = Column(
        BOOL,
        "Whether the bandwidths refer to transfers. Else they refer to whole durations and are lower bounds: a rank "
        "that wasn't recorded may have come last.",
    )


def communication(ranks: Ranks) -> pl.DataFrame:
    """The longest total time first."""
    is_known = pl.col("transfer_ns").is_not_null()
    is_timed = pl.col("dur_ns") >= 0
    moving_ns = (
        pl.when(is_known.any()).then(pl.col("transfer_ns").sum()).otherwise(pl.col("dur_ns").filter(is_timed).sum())
    )
    moving_calls = pl.when(is_known.any()).then(is_known.sum()).otherwise(is_timed.sum())
    message = pl.col("bytes").replace(-1, None)
    rows = (
        ranks.calls.join(ranks.group_labels, "group", "left", maintain_order="left")
        .group_by(operation="kind", group=pl.col("label").fill_null("unknown"), message_bytes=message)
        .agg(
            calls=pl.len(),
            ranks=pl.col("rank").n_unique(),
            lost=(~is_timed & (pl.col("bytes") != 0)).sum(),
            unmatched=pl.col("match").is_null().sum(),
            total_ns=pl.when(is_timed.any()).then(pl.col("dur_ns").filter(is_timed).sum()),
            mean_ns=pl.col("dur_ns").filter(is_timed).mean().round(),
            mean_transfer_ns=pl.col("transfer_ns").mean().round(),
            mean_wait_ns=pl.col("wait_ns").mean().round(),
            is_transfer_known=is_known.any(),
            moving_ns=moving_ns,
            moving_calls=moving_calls,
            size=pl.col("group_size").first(),
        )
    )
    rate = pl.when(pl.col("moving_ns") > 0).then(
        pl.col("message_bytes") * pl.col("moving_calls") / pl.col("moving_ns") * 1e9
    )
    rows = rows.with_columns(algorithm_bytes_per_s=rate).with_columns(bus_bytes_per_s=rate * _bus_factors(rows))
    order, falls = ("total_ns", "operation", "group", "message_bytes"), [True, False, False, False]
    rows = rows.sort(*order, descending=falls, nulls_last=[True, False, False, False])
    return Communication.of(rows.select(Communication.schema().names()).cast(Communication.schema()))


def _bus_factors(rows: pl.DataFrame) -> pl.Series:
    """The bus factor of each row; missing if the size of the group is unknown."""
    factors = [
        None if size is None or size < 1 else bus_factor(kind, size)
        for kind, size in rows.select("operation", "size").rows()
    ]
    return pl.Series(factors, dtype=pl.Float64)


VIEW = View(
    communication,
    table=Communication,
    title="Communication",
    entry="Ranks",
    scope="span",
    within="recording",
    needs=has_calls,
    hint="No collectives were recorded. Record ranks that communicate; on GPUs, pass ProfilerActivity.CUDA.",
)
