"""Which iterations show how the server runs in the long run: the steady part, by rule.

* cut off: the recording began or ended inside it. The last one ends where the host leaves what marks it, since no other
  follows: if it is as much shorter than its peers as a straggler is longer, what the host does in between is missing.
* warm-up: it captures a graph (unless that is all there is), or is one of the first iterations and as slow as a
  straggler: caches, clocks and the profiler itself are still cold.
* ramp-up and drain: before the first and after the last decode with at least RAMP of the median batch of decodes;
  there the server has fewer requests than it serves in the long run.
* straggler: slower than its peers, by STRAGGLER standard deviations and by LEAST of their median. The deviation comes
  from the median absolute deviation, which stragglers don't move. Peers have the same phase, and about as many tokens
  (the same power of two). They are part of the steady part: they are real.
* steady: all others.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

Mask = NDArray[np.bool_]

PARTS = ("cut off", "warm-up", "ramp-up", "steady", "straggler", "drain")
STEADY = ("steady", "straggler")

RAMP = 0.8  # of the median batch: a server that is full stays within a few requests of its limit
STRAGGLER = 5.0  # standard deviations: one iteration in 3 million of a normal distribution
LEAST = 0.2  # of the median: less isn't worth a name
FEWEST_PEERS = 5  # a median of fewer says little
_TO_DEVIATION = 1.4826  # × the median absolute deviation: the standard deviation of a normal distribution


def parts(frame: pl.DataFrame) -> list[str]:
    """The part (PARTS) of each iteration, from phase, batch, tokens, is_cut, start_ns and next_ns, in order of time."""
    slow, fast = _outliers(frame)
    cut = frame["is_cut"].to_numpy() | (fast & (np.arange(fast.size) == fast.size - 1))
    slow = slow & ~cut
    is_capture = (frame["phase"] == "capture").to_numpy()
    cold = np.logical_and.accumulate(slow | cut) & ~cut | (is_capture & (not is_capture.all()))
    ramp, drain = _ramps(frame)
    conditions = [cut, cold, ramp, drain, slow]
    return np.select(conditions, ["cut off", "warm-up", "ramp-up", "drain", "straggler"], "steady").tolist()  # type: ignore[no-any-return]


def _outliers(frame: pl.DataFrame) -> tuple[Mask, Mask]:
    """Which iterations take longer than their peers, and which are as much shorter."""
    size = pl.max_horizontal(pl.col("tokens").fill_null(1), 1).log(2).floor()
    peers = frame.select("phase", size=size, time=pl.col("next_ns") - pl.col("start_ns"))
    peers = peers.with_columns(time=pl.col("time").cast(pl.Float64))
    group = ("phase", "size")
    median = pl.col("time").median().over(group)
    spread = (pl.col("time") - median).abs().median().over(group) * _TO_DEVIATION
    least = pl.max_horizontal(STRAGGLER * spread, LEAST * median)
    has_peers = pl.len().over(group) >= FEWEST_PEERS
    far = peers.select(
        slow=(pl.col("time") > median + least) & has_peers, fast=(pl.col("time") < median - least) & has_peers
    )
    return far["slow"].to_numpy(), far["fast"].to_numpy()


def _ramps(frame: pl.DataFrame) -> tuple[Mask, Mask]:
    """Which iterations precede the first decode with a full batch, and which follow the last one."""
    decodes = frame["phase"].is_in(["decode", "mixed"]).to_numpy()
    batch = frame["batch"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    is_known = decodes & ~np.isnan(batch)
    at = np.arange(batch.size)
    if not is_known.any():
        return np.zeros(at.size, bool), np.zeros(at.size, bool)
    full = np.flatnonzero(is_known & (batch >= RAMP * np.median(batch[is_known])))
    return at < full[0], at > full[-1]
