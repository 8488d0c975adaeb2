"""Wait and transfer: of a collective's time on a rank, what was spent until the last rank came, and what moving took.

No rank leaves a synchronising collective before the last one has entered it, and all leave it at about the same time.
So the one with the shortest duration came last, and its duration is the transfer; what others took longer is their
wait. This needs no clocks. Broadcasts, reductions to one rank and transfers may end early on some ranks: their time
isn't split. Of a collective that not every rank's recording has, the last one may be among the missing: its transfer is
taken to be at most the typical one of its like, with the same operation, size and number of ranks, of which none is.
Where there is none like it, what is told is the least that was waited.
"""

from __future__ import annotations

import polars as pl

from ...arrays.gather import NONE
from ...names.collectives import SYNCHRONISING


def waited(calls: pl.DataFrame) -> pl.DataFrame:
    """Add `wait_ns`, `transfer_ns` and `exposed_wait_ns` to matched calls; null where they can't be told.

    wait + transfer = dur. A rank waits before data moves, so of a call that is hidden in part, what is exposed is
    taken to be its wait first: `exposed_wait_ns` is the most that waiting can have cost.
    """
    is_timed = pl.col("dur_ns") >= 0
    is_matched = pl.col("match").is_not_null()
    can_tell = is_timed & pl.col("kind").is_in(SYNCHRONISING) & (pl.col("group_size") != 1)
    several = is_matched & (is_timed.sum() > 1).over("match")
    is_whole = several & (is_timed.sum() >= pl.col("group_size").first()).over("match") & (pl.col("group_size") > 0)
    shortest = pl.when(is_matched).then(pl.col("dur_ns").filter(is_timed).min().over("match")).otherwise("dur_ns")
    typical = pl.col("shortest").filter("is_whole").median().over("kind", "bytes", "group_size").round().cast(pl.Int64)
    told = can_tell & (several | pl.col("typical").is_not_null())
    return (
        calls.with_columns(shortest=pl.when(can_tell).then(shortest), is_whole=can_tell & is_whole)
        .with_columns(typical=typical)
        .with_columns(
            transfer_ns=pl.when(~told)
            .then(None)
            .when("is_whole")
            .then("shortest")
            .otherwise(pl.min_horizontal("shortest", "typical")),
        )
        .with_columns(wait_ns=pl.col("dur_ns") - pl.col("transfer_ns"))
        .with_columns(exposed_wait_ns=pl.min_horizontal("wait_ns", pl.col("exposed_ns").replace(NONE, None)))
        .with_columns(exposed_wait_ns=pl.when(told).then("exposed_wait_ns"))
        .drop("shortest", "is_whole", "typical")
    )
