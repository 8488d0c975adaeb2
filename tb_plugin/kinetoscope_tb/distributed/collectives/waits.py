"""Wait and transfer: how a collective's time on a rank splits into waiting for the last rank, and moving data.

No rank leaves a synchronizing collective before the last one has entered it, and all leave it at about the same time.
So the rank with the shortest duration came last, and its duration is the transfer; the rest of the others' durations is
their wait. This needs no clocks.

The same holds of a send and its receive: a receive that lasts longer than its send waited for the sender, and a send
that lasts longer waited for the receiver. A broadcast moves data once the root has come, and a reduction to one rank
ends when the last one has, so the time beyond the shortest part is waiting too; but a rank may leave early, so the
shortest part isn't the transfer.

If a rank's recording of a collective is missing, that rank may have come last: the transfer is unknown, and the wait
for the last of the recorded ranks is a lower bound. Then the exposed wait, which decides who is slow, assumes that
moving the data took as long as in the typical complete collective with the same operation, size and number of ranks: a
rank isn't blamed for waiting for one that wasn't recorded.
"""

from __future__ import annotations

import polars as pl

from ...arrays.gather import NONE
from ...names.collectives import PEER_TO_PEER, ROOTED, SYNCHRONIZING


def add_waits(calls: pl.DataFrame) -> pl.DataFrame:
    """Add `wait_ns`, `transfer_ns` and `exposed_wait_ns` to matched calls; null if unknown.

    wait + transfer = dur if all ranks of the group were recorded; else the transfer is null, and the wait is that for
    the last recorded rank. If a call is partly hidden, its exposed time counts as wait first: `exposed_wait_ns` is an
    upper bound on the cost of waiting.
    """
    is_timed = pl.col("dur_ns") >= 0
    is_matched = pl.col("match").is_not_null()
    is_pair = pl.col("kind").is_in(PEER_TO_PEER)
    several = is_matched & (is_timed.sum() > 1).over("match")
    size = pl.when(is_pair).then(2).otherwise("group_size")
    is_split = pl.col("kind").is_in(SYNCHRONIZING) & (size != 1)
    is_splittable = is_timed & (is_split | (several & (is_pair | pl.col("kind").is_in(ROOTED))))
    is_whole = several & (is_timed.sum() >= size.first()).over("match") & (size > 0) & (is_split | is_pair)
    shortest = pl.when(is_matched).then(pl.col("dur_ns").filter(is_timed).min().over("match")).otherwise("dur_ns")
    typical = pl.col("shortest").filter("is_whole").median().over("kind", "bytes", "group_size").round().cast(pl.Int64)
    assumed_transfer = pl.when("is_whole").then("shortest").otherwise(pl.min_horizontal("shortest", "typical"))
    is_estimable = is_splittable & (several | pl.col("typical").is_not_null())
    exposed_wait = pl.min_horizontal(pl.col("dur_ns") - assumed_transfer, pl.col("exposed_ns").replace(NONE, None))
    return (
        calls.with_columns(shortest=pl.when(is_splittable).then(shortest), is_whole=is_splittable & is_whole)
        .with_columns(typical=typical)
        .with_columns(
            transfer_ns=pl.when("is_whole").then("shortest"),
            wait_ns=pl.when(is_splittable & several).then(pl.col("dur_ns") - pl.col("shortest")),
            exposed_wait_ns=pl.when(is_estimable).then(exposed_wait),
        )
        .drop("shortest", "is_whole", "typical")
    )


def wait_lengths(calls: pl.DataFrame, *by: str) -> pl.DataFrame:
    """`by` with `wait_ns`: how long the calls of each group wait, counting time in which several wait once.

    A call waits when it begins, and moves data then. `wait_ns` is null where the `exposed_wait_ns` of all calls is.
    """
    begin, end = pl.col("start_ns"), pl.col("start_ns") + pl.col("exposed_wait_ns")
    until = end.fill_null(pl.col("start_ns")).cum_max().shift(1).over(by)
    alone = end - pl.max_horizontal(begin, until)
    wait = pl.when(pl.col("alone").is_not_null().any()).then(pl.col("alone").sum())
    return calls.sort("start_ns").with_columns(alone=alone.clip(0)).group_by(by).agg(wait_ns=wait)
