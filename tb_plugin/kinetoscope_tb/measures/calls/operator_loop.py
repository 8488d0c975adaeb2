"""Functions of the program that call small operators in a loop, and how long that takes.

A function calls operators in a loop if one of its calls, with the functions of the program that it calls in turn, calls
the same operator REPEATS times or more. The innermost such function counts. Its operators are small if half of those
that call no other take less than SMALL_OP_NS. What the loop costs is the time of its calls, but for operators that
compute: those of a name whose calls mostly take SMALL_OP_NS of their own or more, and as much again for each callee.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather, map_categories
from ...arrays.intervals import Intervals, length_within, merge, without
from ...arrays.nesting import nearest
from ...names.python_frames import is_of_program, runs_backward, without_address
from ...trace.model import Trace
from ...trace.row_filters import is_operator
from ..python.whereabouts import calls_at
from ..time.breakdown import intervals_of, loading_ranges
from ..time.host_time import SMALL_OP_NS
from ..time.threads import main_thread

REPEATS = 200
_MOST_LEVELS = 8  # functions of the program between a loop and its operators


class OperatorLoop(NamedTuple):
    """A function that calls small operators in a loop.

    Attributes:
        frame: Its frame, such as `train.py(12): confusion`.
        spans: When the calls of it that have a loop are open, without large operators.
        operators: The names of the operators that it calls most often, in no other one; as often as each other, and
            the one that takes longest first.
        times: How often it calls each of them.
        small: How many operators run that call no other.
    """

    frame: str
    spans: Intervals
    operators: tuple[str, ...]
    times: int
    small: int


def operator_loops(trace: Trace, is_counted: NDArray[np.bool_], elsewhere: Intervals) -> list[OperatorLoop]:
    """The functions that call small operators in a loop on the main thread, the one whose loops take longest first.

    Args:
        trace: The trace.
        is_counted: Which of its steps count.
        elsewhere: When operators aren't called by the function that is open: in optimizers.
    """
    host, calls = trace.host_events, trace.python_calls
    no_function = map_categories(calls["name"], lambda name: not is_of_program(name))
    engine = intervals_of(calls, map_categories(calls["name"], runs_backward))
    rows = _operators(trace, is_counted, merge([elsewhere, engine]))
    names, start = host["name"].to_physical().to_numpy()[rows], host["start_ns"].to_numpy()[rows]
    callers = calls_at(trace, main_thread(trace), start, ~no_function)
    parent, is_op = host["parent"].to_numpy(), is_operator(trace)
    called_by_function = _outermost(rows, parent, is_op, callers)
    loop = _looping_calls(calls, no_function, names, callers, called_by_function)
    if loop is None:
        return []
    callees = np.bincount(parent[rows][parent[rows] != NONE], minlength=host.height)
    call_of = np.full(host.height, NONE, np.int32)
    call_of[rows] = loop
    around = gather(call_of, gather(nearest(is_op, parent), parent)[rows])
    ops = host[rows].select(
        pl.col("name").cast(pl.String),
        "start_ns",
        "dur_ns",
        is_leaf=pl.Series(callees[rows] == 0),
        own_ns=host["self_ns"][rows] / pl.Series(1 + callees[rows]),
        is_outermost=pl.Series(around != loop),
        call=pl.Series(loop),
    )
    ops = ops.filter(pl.col("call") != NONE).with_columns(frame=calls["name"][loop[loop != NONE]].cast(pl.String))
    loops = [_loop_of(calls, str(frame), of_frame) for (frame,), of_frame in ops.group_by("frame")]
    small_loops = [loop for loop in loops if loop is not None]
    return sorted(small_loops, key=lambda loop: (-int((loop.spans[1] - loop.spans[0]).sum()), loop.frame))


def _operators(trace: Trace, is_counted: NDArray[np.bool_], elsewhere: Intervals) -> NDArray[np.int64]:
    """The rows of operators of the main thread in order of time, in the steps that count, and not elsewhere."""
    host = trace.host_events
    is_op = is_operator(trace) & (host["thread"] == main_thread(trace)).to_numpy()
    is_op &= gather(is_counted, host["step"].to_numpy(), missing=False) & ~loading_ranges(trace)
    rows = np.flatnonzero(is_op)
    start = host["start_ns"].to_numpy()[rows]
    return np.asarray(rows[length_within(elsewhere, start, start + 1) == 0])


def _outermost(
    rows: NDArray[np.int64], parent: NDArray[np.int32], is_op: NDArray[np.bool_], callers: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Of each operator the index of the one that its function called: itself, or one around it."""
    caller = np.full(parent.size, NONE, np.int32)
    caller[rows] = callers
    index = np.full(parent.size, NONE, np.int64)
    index[rows] = np.arange(rows.size)
    around = gather(nearest(is_op, parent), parent)
    is_inner = np.zeros(parent.size, bool)
    is_inner[rows] = (around[rows] != NONE) & (gather(caller, around[rows]) == callers)
    outer = nearest(~is_inner, parent)[rows]
    return np.where(index[outer] == NONE, np.arange(rows.size), index[outer])


def _loop_of(calls: pl.DataFrame, frame: str, ops: pl.DataFrame) -> OperatorLoop | None:
    """The loops in the calls of one function; None if their operators aren't small."""
    leaves = ops.filter("is_leaf")
    if leaves.is_empty() or leaves["dur_ns"].median() >= SMALL_OP_NS:  # type: ignore[operator]  # of integers
        return None
    large = ops.filter(pl.col("own_ns").median().over("name") >= SMALL_OP_NS)
    spans = without(intervals_of(calls[ops["call"].unique()]), intervals_of(large))
    names = ops.filter("is_outermost").group_by("name").agg(pl.len().alias("times"), pl.col("dur_ns").sum())
    most = names.filter(pl.col("times") == pl.col("times").max()).sort("dur_ns", "name", descending=[True, False])
    return OperatorLoop(without_address(frame), spans, tuple(most["name"]), most["times"][0], leaves.height)


def _looping_calls(
    calls: pl.DataFrame,
    no_function: NDArray[np.bool_],
    name: NDArray[np.uint32],
    caller: NDArray[np.int32],
    outermost: NDArray[np.int64],
) -> NDArray[np.int32] | None:
    """Of each operator the call in whose loop it is, or NONE; None if there is no loop.

    Args:
        calls: python_calls.
        no_function: Which of them aren't looked for.
        name: The operators' names, as codes.
        caller: The innermost call around each.
        outermost: The operator that this call called, which each is in; its own index where it is that.
    """
    parent = calls["parent"].to_numpy()
    around = gather(nearest(~no_function, parent), parent)
    ops = pl.DataFrame({"row": np.arange(name.size), "name": name, "call": caller})
    ops = ops.filter(pl.Series(outermost == np.arange(name.size), dtype=pl.Boolean))
    loop = np.full(caller.size, NONE, np.int32)
    for _ in range(_MOST_LEVELS):
        ops = ops.filter(pl.col("call") != NONE).with_columns(times=pl.len().over("call", "name"))
        often = pl.col("times").max().over("call") >= REPEATS
        in_loops, ops = ops.filter(often), ops.filter(~often)
        loop[in_loops["row"].to_numpy()] = in_loops["call"].to_numpy()
        if ops.is_empty():
            break
        ops = ops.with_columns(call=pl.Series(gather(around, ops["call"].to_numpy())))
    return loop[outermost] if (loop != NONE).any() else None
