"""Each matched collective: its transfer, who came last, and how long the others waited."""

from __future__ import annotations

import polars as pl

from ...table import DURATION, Column
from ..run import Ranks

NOISE = Column(
    DURATION,
    "By how much the ends of the collective differ between ranks: a shorter wait doesn't tell who came first or last. "
    "Three times `residual_ns` of the view Clocks.",
    adds_up=False,
)
"""The column `noise_ns` of the views."""


def collective_waits(ranks: Ranks) -> pl.DataFrame:
    """In order of time, with the columns of the view Collectives, and the `noise_ns` of its ends.

    `last` and `first` are names of workers: none where ranks came within the noise of each other.
    """
    worker = ranks.workers["worker"]
    calls = ranks.calls.filter(pl.col("match").is_not_null() & pl.col("wait_ns").is_not_null())
    calls = calls.with_columns(noise_ns=ranks.end_noise(calls))
    is_last, is_whole = pl.col("wait_ns") <= pl.col("noise_ns"), pl.col("transfer_ns").is_not_null().any()
    waits = calls.group_by("match").agg(
        transfer_ns=pl.col("transfer_ns").first(),
        max_wait_ns=pl.col("wait_ns").max(),
        mean_wait_ns=pl.col("wait_ns").mean().round(),
        total_wait_ns=pl.col("wait_ns").sum(),
        last=pl.when(is_whole & (is_last.sum() == 1)).then(pl.col("member").filter(is_last).first()),
        first=pl.when(is_whole & ~is_last.all()).then(pl.col("member").sort_by("wait_ns").last()),
        noise_ns=pl.col("noise_ns").first().cast(pl.Int64),
    )
    rows = (
        ranks.matches.join(waits, "match", "left", maintain_order="left")
        .join(ranks.group_labels, "group", "left", maintain_order="left")
        .with_columns(
            number=pl.col("match"),
            operation=pl.col("kind"),
            group=pl.col("label").fill_null("unknown"),
            sequence=pl.col("nth").replace(-1, None),
            message_bytes=pl.col("bytes").replace(-1, None),
            ranks=pl.col("members"),
            missing=pl.when(pl.col("size") >= 0).then(
                pl.max_horizontal(pl.col("size") - pl.col("members").cast(pl.Int64), 0)
            ),
        )
    )
    names = [pl.Series(end, worker.gather(rows[end])) for end in ("last", "first")]
    return rows.with_columns(names)
