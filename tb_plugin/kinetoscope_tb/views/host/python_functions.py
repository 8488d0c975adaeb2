"""Python functions: host and device time of each function, over all its callers.

A function's total counts each instant once: calls of it inside another call of itself add nothing.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import gather, scatter_add
from ...arrays.nesting import nearest
from ...measures.calls.call_tree import Ints, outermost
from ...measures.python.frames import parse_frames, without_addresses
from ...measures.python.paths import PythonPaths, shown_kinds, waiting_threads
from ...measures.recording.contents import has_python_calls
from ...pictures import Bars
from ...table import COUNT, DURATION, ID, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key, is_equal
from ...view import Slices, Tab, View


class PythonFunctions(Table):
    """Which Python functions use host and device time, over all their callers.

    Operators count for the function that calls them. Device time launched outside Python calls is in no row. Threads
    that only wait are left out, unless `thread` names one: *Python calls* lists them.
    """

    key, weight = ("function", "file", "line"), "host_self_ns"
    picture = Bars(("host_self_ns", "device_self_ns"))

    function = Column(TEXT, "Name of the function or module.")
    file = Column(TEXT, "File of the function, as Python names it; missing if it isn't a Python function.")
    line = Column(ID, "Line at which the function begins.")
    kind = Column(
        TEXT,
        "function, library (a function whose file is Python's, torch's or in site-packages), or module (a call of an "
        "nn.Module).",
    )
    calls = Column(COUNT, "Number of calls.")
    host_self_ns = Column(
        DURATION,
        "Host time in it, but not in what it calls that has rows here: functions and modules. Operators that it calls "
        "are its own time.",
        adds_up=False,  # threads run at the same time
    )
    host_total_ns = Column(
        DURATION, "Host time in it, including callees; recursive calls count once, so totals overlap."
    )
    device_self_ns = Column(DURATION, "Device time of the kernels, copies and fills that it launched itself.")
    device_total_ns = Column(
        DURATION, "Device time that it and its callees launched; recursive calls count once, so totals overlap."
    )


def python_functions(trace: Trace, *, thread: str | None = None) -> pl.DataFrame:
    """Functions by their own host time, the longest first.

    Args:
        trace: The trace.
        thread: The number (tid) of one thread; all threads that ran Python if not given.
    """
    paths = PythonPaths.of(trace, thread, "none")
    tree, forest, first = paths.tree, paths.forest, len(paths.tids)
    is_outermost = outermost(tree.parent, tree.preorder(), tree.code, len(paths.texts))
    counts = _nodes_that_count(trace, paths, thread)
    columns = {"calls": _of_codes(paths, np.where(counts, tree.sums(tree.node), 0))}
    amounts = {"host": tree.sums(tree.node, forest.self_ns)}
    if trace.device_events.height:
        amounts["device"] = tree.sums(
            gather(tree.node, forest.rows_at_launch(trace)), trace.device_events["dur_ns"].to_numpy()
        )
    for name, of_nodes in amounts.items():
        own = np.where(counts, of_nodes, 0)
        columns[f"{name}_self_ns"] = _of_codes(paths, own)
        columns[f"{name}_total_ns"] = _of_codes(paths, np.where(is_outermost, tree.with_inner(own), 0))
    names = parse_frames(pl.Series(paths.texts, dtype=pl.String))
    kinds = pl.Series(shown_kinds(paths.texts, paths.kinds), dtype=pl.String)
    rows = names.with_columns(kind=kinds, **{name: pl.Series(values) for name, values in columns.items()})[first:]
    missing = [pl.lit(None, pl.Int64).alias(name) for name in PythonFunctions.schema() if name not in rows.columns]
    table = rows.filter(pl.col("calls") > 0).with_columns(missing).select(PythonFunctions.schema().names())
    by = ["host_self_ns", *PythonFunctions.key]
    return PythonFunctions.of(table.sort(by, descending=[True, False, False, False], nulls_last=True))


def _nodes_that_count(trace: Trace, paths: PythonPaths, thread: str | None) -> NDArray[np.bool_]:
    """The nodes of threads that do more than wait or launch device work; all of a chosen thread, or if all wait."""
    tree = paths.tree
    root = nearest(tree.parent < 0, tree.parent)
    counts = ~waiting_threads(tree, paths.texts, tree.sums(tree.node, paths.forest.self_ns))
    node_of_work = gather(tree.node, paths.forest.rows_at_launch(trace))
    counts[root[node_of_work[node_of_work >= 0]]] = True
    is_counted: NDArray[np.bool_] = counts[root]
    return is_counted if thread is None and is_counted.any() else np.ones(root.size, bool)


def _of_codes(paths: PythonPaths, values: Ints) -> Ints:
    """Each function's sum over its nodes."""
    return scatter_add(paths.tree.code, values, len(paths.texts))


def events_of_row(trace: Trace, key: Key) -> Events:
    """The calls of the function, on all threads that count."""
    paths = PythonPaths.of(trace, None, "none")
    names = parse_frames(pl.Series(paths.texts, dtype=pl.String))
    is_function = np.array([kind in ("function", "module") for kind in paths.kinds])
    for name in PythonFunctions.key:
        is_function &= names[name].is_null().to_numpy() if key[name] is None else is_equal(names[name], key[name])
    is_shown = gather(is_function, paths.tree.code, missing=False) & _nodes_that_count(trace, paths, None)
    rows = paths.is_call & is_shown[paths.tree.node]
    return {"python_calls": paths.forest.row[rows]}


def row_of(trace: Trace, frame: str, row: int) -> Key | None:
    """The function of a Python call."""
    name = trace.python_calls["name"][row] if frame == "python_calls" else None
    if name is None:
        return None
    return parse_frames(without_addresses(pl.Series([name], dtype=pl.String))).row(0, named=True)


VIEW = View(
    python_functions,
    table=PythonFunctions,
    title="Python functions",
    entry="Python",
    needs=has_python_calls,
    hint="No Python calls were recorded. Pass with_stack=True to the profiler.",
    option="with_stack",
    place=Tab("Functions"),
    slices=Slices(events_of_row, row_of),
)
