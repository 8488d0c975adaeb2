"""Python calls: the call tree, with the host and device time of each place in the program.

All calls with the same call path are one row, on every thread that ran Python. Operators appear where Python called
them, so that their time belongs to a line of the program; `operators` selects which of them. Small rows are combined,
so that traces with millions of calls are usable. The main thread comes first, threads that only wait come last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather
from ...arrays.nesting import nearest
from ...measures.calls.call_tree import Ints, MergedTree, Rows, merge_calls
from ...measures.python.frames import parse_frames
from ...measures.python.paths import (
    ELSEWHERE,
    WAITING_SHARE,
    PathNumbers,
    PythonPaths,
    path_of_call,
    shown_kinds,
    waiting_threads,
)
from ...measures.recording.contents import has_python_calls
from ...measures.time.threads import main_thread
from ...pictures import Tree
from ...table import BOOL, COUNT, DURATION, ID, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key, is_equal
from ...view import Slices, Tab, View

MOST_ROWS = 20_000


class PythonCalls(Table):
    """Which Python functions use host and device time, by call path.

    The outermost rows are the threads. `[smaller calls]` combines the callees that are too small for their own row,
    `[elsewhere]` is device time that was launched outside these rows.
    """

    key, weight = ("function", "path"), "host_total_ns"
    picture = Tree("parent_row", widths=("device_total_ns",), folded="is_waiting")

    function = Column(TEXT, "Name of the function, module, operator or thread.")
    kind = Column(
        TEXT,
        "thread, function, library (a function whose file is Python's, torch's or in site-packages), module (a call of "
        "an nn.Module), operator, or rest.",
    )
    calls = Column(COUNT, "Number of calls with this path.")
    host_self_ns = Column(
        DURATION,
        "Host time in it, but not in what it calls that has rows here: functions, modules, and those operators that "
        "`operators` chooses.",
    )
    host_total_ns = Column(DURATION, "Host time in it, including callees.")
    device_self_ns = Column(DURATION, "Device time of the kernels, copies and fills that it launched itself.")
    device_total_ns = Column(DURATION, "Device time that it and its callees launched.")
    file = Column(TEXT, "File of the function, as Python names it; missing if it isn't a Python function.")
    line = Column(ID, "Line at which the function begins.")
    thread = Column(TEXT, "Number (tid) of a thread, in its own row; the value for `thread`.")
    is_waiting = Column(
        BOOL,
        f"Whether a thread spends at least {WAITING_SHARE:.0%} of its time in calls that wait (for a lock, another "
        "process, a file or a socket), or in what it began before the recording and never ended.",
    )
    path = Column(TEXT, "Hash of the call path from the thread to it; the same in every trace.", shown_as="hash")
    parent_row = Column(ID, "Row of its caller, counted from 0; missing for a thread.")


def python_calls(
    trace: Trace, *, thread: str | None = None, operators: Literal["outermost", "all", "none"] = "outermost"
) -> pl.DataFrame:
    """Callers before callees, the longest first; the main thread before the others, then those that only wait.

    Args:
        trace: The trace.
        thread: The number (tid) of one thread; all threads that ran Python if not given.
        operators: Those that Python calls, all operators, or none.
    """
    calls = _fold(_Calls.of(trace, thread, operators))
    tree = calls.tree
    host_total = tree.with_inner(calls.host)
    root = nearest(tree.parent < 0, tree.parent)
    is_waiting = waiting_threads(tree, calls.texts, calls.host)
    order = tree.preorder(_weights(calls, root, host_total, is_waiting, main_thread(trace)))
    row_of_node = np.empty(order.size, np.int32)
    row_of_node[order] = np.arange(order.size)
    texts = pl.Series([calls.texts[code] for code in tree.code[order]], dtype=pl.String)
    numbers, kind_names = PathNumbers(tree, calls.texts, calls.kinds), shown_kinds(calls.texts, calls.kinds)
    columns: dict[str, Any] = {
        **parse_frames(texts).to_dict(),
        "kind": [kind_names[code] for code in tree.code[order]],
        "calls": calls.calls[order],
        "host_self_ns": calls.host[order],
        "host_total_ns": host_total[order],
        "thread": [calls.tids[code] if code < len(calls.tids) else None for code in tree.code[order].tolist()],
        "is_waiting": pl.Series(is_waiting[order]),
        "path": [numbers.of(node) for node in order.tolist()],
        "parent_row": gather(row_of_node, tree.parent[order]),
    }
    if calls.device is not None:
        columns |= {"device_self_ns": calls.device[order], "device_total_ns": tree.with_inner(calls.device)[order]}
    rows = pl.DataFrame(columns, schema_overrides=PythonCalls.schema())
    is_thread = pl.col("kind") == "thread"
    rows = rows.with_columns(
        pl.col("parent_row").replace(NONE, None),
        calls=pl.when(~is_thread).then("calls"),
        is_waiting=pl.when(is_thread).then("is_waiting"),
    )
    return PythonCalls.of(pl.concat([rows, _elsewhere(calls)], how="diagonal").select(PythonCalls.schema().names()))


@dataclass(frozen=True)
class _Calls:
    """The merged calls.

    Attributes:
        tree: One node per path; its first nodes are the threads.
        threads: Their rows in the trace's threads.
        tids: The number of each thread.
        texts: Name of each code.
        kinds: Kind of each code.
        calls: Of each node; likewise its host and device time without its callees. `device` is None without devices.
        elsewhere: Device time launched outside all nodes.
    """

    tree: MergedTree
    threads: Rows
    tids: list[str]
    texts: list[str]
    kinds: list[str]
    calls: Ints
    host: Ints
    device: Ints | None
    elsewhere: int

    @classmethod
    def of(cls, trace: Trace, thread: str | None, operators: str) -> _Calls:
        """Merge the calls of a thread, or of all."""
        paths = PythonPaths.of(trace, thread, operators)
        forest, tree = paths.forest, paths.tree
        device, elsewhere = None, 0
        if trace.device_events.height:
            launcher, dur = forest.rows_at_launch(trace), trace.device_events["dur_ns"].to_numpy()
            device, elsewhere = tree.sums(gather(tree.node, launcher), dur), int(dur[launcher < 0].sum())
        calls, host = tree.sums(np.where(paths.is_call, tree.node, NONE)), tree.sums(tree.node, forest.self_ns)
        return cls(tree, paths.threads, paths.tids, paths.texts, paths.kinds, calls, host, device, elsewhere)


def _weights(calls: _Calls, root: Rows, host_total: Ints, is_waiting: NDArray[np.bool_], main: int) -> Ints:
    """Weights that order siblings by host time, the main thread before all others, and those that wait after them."""
    rank = np.where(is_waiting[: len(calls.tids)], 0, 1) + 2 * (calls.threads == main)
    weights: Ints = host_total + rank[root] * (int(host_total.max(initial=0)) + 1)
    return weights


def _fold(calls: _Calls) -> _Calls:
    """The same with at most MOST_ROWS separate paths, the largest by share of host or device time."""
    tree = calls.tree
    count = tree.parent.size
    if count <= MOST_ROWS:
        return calls
    share = _of_largest(tree.with_inner(calls.host))
    if calls.device is not None:
        share = np.maximum(share, _of_largest(tree.with_inner(calls.device)))
    is_own = np.zeros(count, bool)
    is_own[np.argsort(-share, kind="stable")[:MOST_ROWS]] = True  # callers come before callees and weigh no less
    is_own |= tree.parent < 0
    is_first = ~is_own & gather(is_own, tree.parent, missing=False)
    smaller = merge_calls(tree.parent, np.where(is_own, tree.code, np.where(is_first, len(calls.texts) - 1, NONE)))
    device = None if calls.device is None else smaller.sums(smaller.node, calls.device)
    own = smaller.sums(np.where(is_own | is_first, smaller.node, NONE), calls.calls)
    host = smaller.sums(smaller.node, calls.host)
    return replace(calls, tree=smaller, calls=own, host=host, device=device)


def _of_largest(total: Ints) -> NDArray[np.float64]:
    return total / max(1, int(total.max(initial=0)))


def _elsewhere(calls: _Calls) -> pl.DataFrame:
    """The row for device time that no call here launched, if there is any."""
    sums = {"device_self_ns": calls.elsewhere, "device_total_ns": calls.elsewhere}
    rows = [{"function": ELSEWHERE, "path": ELSEWHERE, "kind": "rest", **sums}] if calls.elsewhere else []
    return pl.DataFrame(rows, schema=PythonCalls.schema())


def events_of_row(trace: Trace, key: Key) -> Events:
    """The calls with the path; for a thread, all of its calls.

    Paths with all operators include those with the outermost operators, or none.
    """
    paths = PythonPaths.of(trace, None, "all")
    forest, tree = paths.forest, paths.tree
    if key["path"] == ELSEWHERE:
        return {"device_events": np.flatnonzero(forest.rows_at_launch(trace) < 0)}
    numbers, functions = PathNumbers(tree, paths.texts, paths.kinds), parse_frames(pl.Series(paths.texts))["function"]
    has_name = np.array([*is_equal(functions, key["function"]), False])[tree.code]
    node = next((n for n in np.flatnonzero(has_name).tolist() if numbers.of(n) == key["path"]), NONE)
    is_thread = node >= 0 and paths.kinds[tree.code[node]] == "thread"
    rows = paths.root == node if is_thread else paths.is_call & (tree.node == node)
    return {"python_calls": np.where(forest.is_python, forest.row, NONE)[rows], "host_events": forest.host[rows]}


def row_of(trace: Trace, frame: str, row: int) -> Key | None:
    """The function of a call with the hash of its path, all operators included; what is launched elsewhere."""
    if frame == "device_events":
        paths = PythonPaths.of(trace, None, "all")
        return {"function": ELSEWHERE, "path": ELSEWHERE} if paths.forest.rows_at_launch(trace)[row] < 0 else None
    call = path_of_call(trace, frame, row)
    return call and {"function": parse_frames(pl.Series(call[:1]))["function"][0], "path": call[1]}


VIEW = View(
    python_calls,
    table=PythonCalls,
    title="Python calls",
    entry="Python",
    needs=has_python_calls,
    hint="No Python calls were recorded. Pass with_stack=True to the profiler.",
    option="with_stack",
    place=Tab("Flame graph"),
    slices=Slices(events_of_row, row_of, except_kind="rest"),
)
