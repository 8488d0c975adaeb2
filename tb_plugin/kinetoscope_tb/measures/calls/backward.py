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
    is_arrow = map_categories(flows["category"], ARROWS.__contains__)
    arrows = flows.filter(pl.Series(is_arrow, dtype=pl.Boolean)).select("phase", "id", "thread", "start_ns")
    first, last = _ops_at(ops, arrows["thread"].to_numpy(), arrows["start_ns"].to_numpy())
    ends = arrows.select("phase", "id", row=pl.Series(first), forward=pl.Series(last)).filter(pl.col("row") != NONE)
    begin, end = (ends.filter(pl.col("phase") == phase) for phase in ("s", "f"))
    pairs = end.select("id", "row").join(
        begin.select("id", "forward").unique("id", keep="last"), on="id", maintain_order="left"
    )
    return pairs.filter(pl.col("row") != pl.col("forward")).unique("row", keep="first").select("row", "forward")


def _ops_at(ops: pl.DataFrame, thread: Rows, at: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The outermost and the innermost operator (`row`) that begins on each thread at each instant, or NONE.

    Operators come in order of thread, start and depth: a binary search among those of each thread finds them.
    """
    op_thread, start, row = (ops[name].to_numpy() for name in ("thread", "start_ns", "row"))
    first, last = np.full((2, at.size), NONE, np.int64)
    order = np.argsort(thread, kind="stable")
    threads, begins = np.unique(thread[order], return_index=True)
    for number, begin, end in zip(threads, begins, np.append(begins, order.size)[1:], strict=True):
        queries = order[begin:end]
        own = slice(*np.searchsorted(op_thread, (number, number + 1)))
        low, high = (np.searchsorted(start[own], at[queries], side) for side in ("left", "right"))
        is_found = low < high
        first[queries[is_found]], last[queries[is_found]] = row[own][low[is_found]], row[own][high[is_found] - 1]
    return first, last


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
