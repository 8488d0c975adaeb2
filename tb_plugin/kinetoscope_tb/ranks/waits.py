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

from ..trace import NONE
from .collective_kinds import SYNCHRONISING


def waited(calls: pl.DataFrame) -> pl.DataFrame:
    """Add `wait_ns`, `transfer_ns` and `exposed_wait_ns` to matched calls; null where they can't be told.

    wait + transfer = dur. A rank waits before data moves, so of a call that is hidden in part, what is exposed is
    taken to be its wait first: `exposed_wait_ns` is the most that waiting can have cost.
    """
    is_timed = pl.col("dur_ns") >= 0
    can_tell = is_timed & pl.col("match").is_not_null() & pl.col("kind").is_in(SYNCHRONISING)
    shortest = pl.col("dur_ns").filter(is_timed).min().over("match")
    several = (is_timed.sum() > 1).over("match")
    told = can_tell & several
    is_whole = (is_timed.sum() >= pl.col("group_size").first()).over("match") & (pl.col("group_size") > 0)
    typical = pl.col("shortest").filter("is_whole").median().over("kind", "bytes", "group_size").round().cast(pl.Int64)
    return (
        calls.with_columns(shortest=pl.when(told).then(shortest), is_whole=told & is_whole)
        .with_columns(
            transfer_ns=pl.when("is_whole").then("shortest").otherwise(pl.min_horizontal("shortest", typical)),
        )
        .with_columns(transfer_ns=pl.when(pl.col("shortest").is_not_null()).then("transfer_ns"))
        .with_columns(wait_ns=pl.col("dur_ns") - pl.col("transfer_ns"))
        .with_columns(exposed_wait_ns=pl.min_horizontal("wait_ns", pl.col("exposed_ns").replace(NONE, None)))
        .with_columns(exposed_wait_ns=pl.when(told).then("exposed_wait_ns"))
        .drop("shortest", "is_whole")
    )
