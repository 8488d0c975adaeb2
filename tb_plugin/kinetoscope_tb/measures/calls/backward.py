"""The forward operator of each backward operator.

Autograd numbers the nodes of its graph per thread. An operator of the forward pass has the number that the next node
will get, so of all with the same number on a thread, the last one to begin created the node. The operator that later
runs the node has the number too, and the logical number of the forward thread, which isn't a thread id of the trace
(pytorch, torch/csrc/profiler/collection.cpp and torch/csrc/autograd/engine.cpp). Kineto writes the same link as an
arrow `fwdbwd`, `forward_backward` before torch 2.0; arrows take precedence, since they name the threads.
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
    """For each of all_host_events its forward operator, if it is a backward operator, or NONE.

    Operators that accumulate gradients have no number. They run right after the node that computed the gradient (first
    in the engine's queue), and belong to the same forward operator.
    """
    host = trace.host_events
    forward = np.full(trace.all_host_events.height, NONE, np.int32)  # replayed ones have no number
    if trace.flows.is_empty() and not (host["sequence"] >= 0).any():
        return forward
    ops = host.select("name", "kind", "thread", "start_ns", "sequence", "fwd_thread", "parent").with_row_index("row")
    ops = ops.filter(pl.col("kind") == "operator")
    for links in (_by_number(ops), _by_arrow(trace.flows, ops)):
        forward[links["row"].to_numpy()] = links["forward"].to_numpy()
    _follow_up(ops, forward)
    return forward


def _by_arrow(flows: pl.DataFrame, ops: pl.DataFrame) -> pl.DataFrame:
    """(row, forward): an arrow leads from the innermost operator at its start to the outermost one at its end."""
    arrows = flows.filter(pl.col("category").cast(pl.String).is_in(ARROWS))
    instant = ["thread", "start_ns"]
    ops_by_start = ops.select(*instant, "row").join(arrows.select(instant), on=instant, how="semi").group_by(instant)
    begin = arrows.filter(pl.col("phase") == "s").join(ops_by_start.agg(forward=pl.col("row").max()), on=instant)
    end = arrows.filter(pl.col("phase") == "f").join(ops_by_start.agg(row=pl.col("row").min()), on=instant)
    pairs = end.select("id", "row").join(begin.select("id", "forward").unique("id", keep="last"), on="id")
    return pairs.filter(pl.col("row") != pl.col("forward")).unique("row", keep="first").select("row", "forward")


def _by_number(ops: pl.DataFrame) -> pl.DataFrame:
    """(row, forward) by number of the node and thread.

    A logical thread is the trace's thread with the most matching numbers before.
    """
    node_ops = ops.filter(pl.col("sequence") >= 0)
    is_backward = pl.col("fwd_thread") > 0
    forward_runs = (
        node_ops.filter(~is_backward)
        .group_by("thread", "sequence", maintain_order=True)
        .agg(forward=pl.col("row").last(), made_ns=pl.col("start_ns").last())
    )
    runs = node_ops.filter(is_backward).select("row", "sequence", "fwd_thread", "start_ns")
    pairs = runs.join(forward_runs, on="sequence").filter(pl.col("made_ns") <= pl.col("start_ns"))
    votes = (
        pairs.group_by("fwd_thread", "thread")
        .len()
        .sort("fwd_thread", "len", "thread", descending=[False, True, False])
    )
    return pairs.join(votes.unique("fwd_thread", keep="first"), on=["fwd_thread", "thread"]).select("row", "forward")


def _follow_up(ops: pl.DataFrame, forward_of: Rows) -> None:
    """Fill in operators that accumulate gradients from the node that ran right before them in the same range."""
    is_run = map_categories(ops["name"], lambda name: name.startswith(_RUNS_NODE) or name.endswith(_ACCUMULATES))
    rows = ops["row"].to_numpy()
    nodes = ops.filter(pl.Series(is_run | (forward_of[rows] >= 0), dtype=pl.Boolean))
    accumulates = map_categories(nodes["name"], lambda name: name.endswith(_ACCUMULATES))
    forward = pl.Series(forward_of[nodes["row"].to_numpy()])
    links = nodes.select("row", "thread", "parent").with_columns(
        forward=pl.when(pl.Series(accumulates, dtype=pl.Boolean) & (forward < 0)).then(None).otherwise(forward)
    )
    links = links.with_columns(pl.col("forward").forward_fill().over("thread", "parent")).drop_nulls("forward")
    forward_of[links["row"].to_numpy()] = links["forward"].to_numpy()
