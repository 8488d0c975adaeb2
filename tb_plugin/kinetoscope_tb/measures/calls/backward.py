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

from ...arrays.gather import NONE, map_categories, number_rows_alike
from ...trace.model import Trace

Ints = NDArray[np.int64]
Rows = NDArray[np.int32]
Indices = NDArray[np.intp]
Links = tuple[NDArray[np.integer], NDArray[np.integer]]
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
    ops = host.select("name", "thread", "start_ns", "sequence", "fwd_thread", "parent").with_row_index("row")
    ops = ops.filter(host["kind"] == "operator")
    for row, forward_row in (_by_number(ops), _by_arrow(trace.flows, ops)):
        forward[row] = forward_row
    _follow_up(ops, forward)
    return forward


def _by_arrow(flows: pl.DataFrame, ops: pl.DataFrame) -> Links:
    """(row, forward): an arrow leads from the innermost operator at its start to the outermost one at its end."""
    is_arrow = map_categories(flows["category"], ARROWS.__contains__)
    arrows = flows.filter(pl.Series(is_arrow, dtype=pl.Boolean)).select("phase", "id", "thread", "start_ns")
    first, last = _ops_at(ops, arrows["thread"].to_numpy(), arrows["start_ns"].to_numpy())
    ends = arrows.select("phase", "id", row=pl.Series(first), forward=pl.Series(last)).filter(pl.col("row") != NONE)
    begin, end = (ends.filter(pl.col("phase") == phase) for phase in ("s", "f"))
    pairs = end.select("id", "row").join(
        begin.select("id", "forward").unique("id", keep="last"), on="id", maintain_order="left"
    )
    pairs = pairs.filter(pl.col("row") != pl.col("forward")).unique("row", keep="first")
    return pairs["row"].to_numpy(), pairs["forward"].to_numpy()


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


def _by_number(ops: pl.DataFrame) -> Links:
    """(row, forward) by number of the node and thread.

    A logical thread is the trace's thread with the most matching numbers before.
    """
    row, sequence, start = (ops[name].to_numpy() for name in ("row", "sequence", "start_ns"))
    logical, thread = (ops[name].to_numpy() for name in ("fwd_thread", "thread"))
    is_node, is_backward = sequence >= 0, logical > 0
    makers, runs = _last_of_numbers(np.flatnonzero(is_node & ~is_backward), sequence, thread), is_node & is_backward
    run, maker = _equal_numbers(np.flatnonzero(runs), makers, sequence)
    is_before = start[maker] <= start[run]
    run, maker = run[is_before], maker[is_before]
    pair, number = number_rows_alike((logical[run], thread[maker]))
    votes = pl.DataFrame({"logical": logical[run][pair], "thread": thread[maker][pair], "votes": np.bincount(number)})
    order = ["logical", "votes", "thread"]
    votes = votes.with_row_index("pair").sort(order, descending=[False, True, False]).unique("logical", keep="first")
    is_chosen = np.zeros(pair.size, bool)
    is_chosen[votes["pair"].to_numpy()] = True
    return row[run[is_chosen[number]]], row[maker[is_chosen[number]]]


def _last_of_numbers(at: Indices, sequence: Ints, thread: Rows) -> Indices:
    """Of some operators, in order of thread and time, the last one of each number and thread; in order of numbers."""
    at = at[np.argsort(sequence[at], kind="stable")]
    is_last = np.ones(at.size, bool)
    is_last[:-1] = (sequence[at[1:]] != sequence[at[:-1]]) | (thread[at[1:]] != thread[at[:-1]])
    return at[is_last]


def _equal_numbers(runs: Indices, makers: Indices, sequence: Ints) -> tuple[Indices, Indices]:
    """All pairs of (a run, a maker) with the same number; makers come in order of numbers."""
    first, after = (np.searchsorted(sequence[makers], sequence[runs], side) for side in ("left", "right"))
    count = after - first
    nth = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return np.repeat(runs, count), makers[np.repeat(first, count) + nth]


def _follow_up(ops: pl.DataFrame, forward_of: Rows) -> None:
    """Fill in operators that accumulate gradients from the node that ran right before them in the same range."""
    is_run = map_categories(ops["name"], lambda name: name.startswith(_RUNS_NODE) or name.endswith(_ACCUMULATES))
    rows = ops["row"].to_numpy()
    is_node = pl.Series(is_run | (forward_of[rows] >= 0), dtype=pl.Boolean)
    nodes = ops.select("name", "row", "thread", "parent").filter(is_node)
    accumulates = map_categories(nodes["name"], lambda name: name.endswith(_ACCUMULATES))
    forward = pl.Series(forward_of[nodes["row"].to_numpy()])
    links = nodes.select("row", "thread", "parent").with_columns(
        forward=pl.when(pl.Series(accumulates, dtype=pl.Boolean) & (forward < 0)).then(None).otherwise(forward)
    )
    links = links.with_columns(pl.col("forward").forward_fill().over("thread", "parent")).drop_nulls("forward")
    forward_of[links["row"].to_numpy()] = links["forward"].to_numpy()
