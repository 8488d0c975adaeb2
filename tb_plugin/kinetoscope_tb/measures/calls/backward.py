"""Which forward operator each backward operator belongs to.

Autograd numbers the nodes of its graph per thread. An operator of the forward pass carries the number that the next
node will get, so of all that carry the same one on a thread the last to begin made the node; the operator that later
runs the node carries the number too, and the logical number of the forward thread, which is none of the trace's threads
(pytorch, torch/csrc/profiler/collection.cpp and torch/csrc/autograd/engine.cpp). Kineto draws the same link as an arrow
`fwdbwd`, `forward_backward` before torch 2.0; where there is one it decides, since it names the threads.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, map_categories
from ...trace.model import Trace

Rows = NDArray[np.int32]
ARROWS = ("fwdbwd", "forward_backward")
_ACCUMULATES = "AccumulateGrad"
_RUNS_NODE = "autograd::engine::evaluate_function"


def forward_ops(trace: Trace) -> Rows:
    """For each host event the operator of the forward pass that it is the backward of, or NONE.

    What accumulates a gradient has no number. It is run right after the node that made the gradient (the engine's queue
    puts it first), and belongs to the same forward operator.
    """
    host = trace.host_events
    ops = host.select("name", "kind", "thread", "start_ns", "sequence", "fwd_thread", "parent").with_row_index("row")
    ops = ops.filter(pl.col("kind") == "operator")
    found = np.full(host.height, NONE, np.int32)
    for links in (_by_number(ops), _by_arrow(trace.flows, ops)):
        found[links["row"].to_numpy()] = links["forward"].to_numpy()
    _follow_up(ops, found)
    return found


def _by_arrow(flows: pl.DataFrame, ops: pl.DataFrame) -> pl.DataFrame:
    """(row, forward): an arrow goes from the innermost operator that begins with it to the outermost one."""
    arrows = flows.filter(pl.col("category").cast(pl.String).is_in(ARROWS))
    place = ["thread", "start_ns"]
    begun = ops.select(*place, "row").join(arrows.select(place), on=place, how="semi").group_by(place)
    begin = arrows.filter(pl.col("phase") == "s").join(begun.agg(forward=pl.col("row").max()), on=place)
    end = arrows.filter(pl.col("phase") == "f").join(begun.agg(row=pl.col("row").min()), on=place)
    pairs = end.select("id", "row").join(begin.select("id", "forward").unique("id", keep="last"), on="id")
    return pairs.filter(pl.col("row") != pl.col("forward")).unique("row", keep="first").select("row", "forward")


def _by_number(ops: pl.DataFrame) -> pl.DataFrame:
    """(row, forward) by number of the node and thread.

    A logical thread is the trace's thread on which most of its numbers are found in time.
    """
    numbered = ops.filter(pl.col("sequence") >= 0)
    is_backward = pl.col("fwd_thread") > 0
    made = (
        numbered.filter(~is_backward)
        .group_by("thread", "sequence", maintain_order=True)
        .agg(forward=pl.col("row").last(), made_ns=pl.col("start_ns").last())
    )
    runs = numbered.filter(is_backward).select("row", "sequence", "fwd_thread", "start_ns")
    pairs = runs.join(made, on="sequence").filter(pl.col("made_ns") <= pl.col("start_ns"))
    votes = (
        pairs.group_by("fwd_thread", "thread")
        .len()
        .sort("fwd_thread", "len", "thread", descending=[False, True, False])
    )
    return pairs.join(votes.unique("fwd_thread", keep="first"), on=["fwd_thread", "thread"]).select("row", "forward")


def _follow_up(ops: pl.DataFrame, found: Rows) -> None:
    """Fill in what accumulates gradients, after the node that ran right before it under the same range."""
    is_run = map_categories(ops["name"], lambda name: name.startswith(_RUNS_NODE) or name.endswith(_ACCUMULATES))
    rows = ops["row"].to_numpy()
    nodes = ops.filter(pl.Series(is_run | (found[rows] >= 0), dtype=pl.Boolean))
    accumulates = map_categories(nodes["name"], lambda name: name.endswith(_ACCUMULATES))
    forward = pl.Series(found[nodes["row"].to_numpy()])
    told = nodes.select("row", "thread", "parent").with_columns(
        forward=pl.when(pl.Series(accumulates, dtype=pl.Boolean) & (forward < 0)).then(None).otherwise(forward)
    )
    told = told.with_columns(pl.col("forward").forward_fill().over("thread", "parent")).drop_nulls("forward")
    found[told["row"].to_numpy()] = told["forward"].to_numpy()
