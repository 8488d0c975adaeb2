"""Blocks of a memory snapshot by the time that they were alive."""

from __future__ import annotations

import numpy as np
import polars as pl

from ...trace.model import Trace
from .snapshots import DeviceSnapshot, with_places

MOST = 1200  # blocks of a device: more bands than a person tells apart
_PARTS = 1000  # of a range of time: a block that is alive for less counts as alive for one of them


def blocks_between(trace: Trace, snapshot: DeviceSnapshot, begin_ns: int, end_ns: int) -> pl.DataFrame:
    """The blocks that fill most of a range of time, by bytes times ns, the largest first.

    `time_ns` and `end_ns` are the ends of the history where a block is older, or is alive at its end; there
    `lifetime_ns` is missing. `block` is its row in the lives of the snapshot.
    """
    blocks = timed_lives(snapshot).filter((pl.col("end_ns") >= begin_ns) & (pl.col("time_ns") <= end_ns))
    length = pl.min_horizontal("end_ns", pl.lit(end_ns)) - pl.max_horizontal("time_ns", pl.lit(begin_ns))
    area = pl.col("size").cast(pl.Float64) * pl.max_horizontal(length, pl.lit((end_ns - begin_ns) // _PARTS + 1))
    largest = blocks.with_columns(area=area).top_k(MOST, by=["area", "block"], reverse=[False, True])
    order = ["size", "begin", "block"]
    return with_places(trace, largest.sort(order, descending=[True, False, False]))


def timed_lives(snapshot: DeviceSnapshot) -> pl.DataFrame:
    """The lives of all blocks, with `block`, `time_ns`, `end_ns` and `lifetime_ns`."""
    times = snapshot.times if snapshot.times.size else np.zeros(1, np.int64)
    begin, end = (snapshot.lives[name].to_numpy() for name in ("begin", "end"))
    is_known = (begin >= 0) & (end < snapshot.times.size)
    rows = snapshot.lives.with_row_index("block").with_columns(
        time_ns=pl.Series(times[np.maximum(begin, 0)], dtype=pl.Int64),
        end_ns=pl.Series(times[np.minimum(end, times.size - 1)], dtype=pl.Int64),
    )
    length = pl.when(pl.Series(is_known)).then(pl.col("end_ns") - pl.col("time_ns"))
    return rows.with_columns(pl.col("block").cast(pl.Int64), lifetime_ns=length)
