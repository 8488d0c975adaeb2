"""Python calls: which functions called which, and what host and device time went to each place in the program.

All calls with the same path of callers are one row, on every thread that ran Python. Operators stand where Python
called them, so that one sees which line of the program the time belongs to; `operators` tells which of them. What is
small beside the rest is put together, so that a recording of a million calls can be looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..tables import COUNT, DURATION, ID, TEXT, Column, Table
from ..trace import NONE, Trace
from ..trace.call_tree import CallForest, Ints, MergedTree, Rows, merged
from ..trace.lookup import take
from ..trace.python_frames import functions, parsed
from ..views import View

MOST_ROWS = 20_000
SMALLER = "[smaller calls]"
ELSEWHERE = "[elsewhere]"


class PythonCalls(Table):
    """One row is one function, called along one path of callers.

    The outermost rows are the threads. `[smaller calls]` are all callees that are too small for a row of their own,
    `[elsewhere]` is the device time that was launched outside of these rows.
    """

    key, weight, parent = ("function", "path"), "host_total_ns", "parent_row"
    flames = ("device_total_ns",)

    function = Column(TEXT, "Name of the function, module, operator or thread.")
    kind = Column(TEXT, "thread, function, module (a call of an nn.Module), operator, or rest.")
    calls = Column(COUNT, "How often it was called along this path.")
    host_self_ns = Column(DURATION, "Host time in it, without what it called.")
    host_total_ns = Column(DURATION, "Host time in it, with all that it called.")
    device_self_ns = Column(DURATION, "Device time of the kernels, copies and fills that it launched itself.")
    device_total_ns = Column(DURATION, "Device time that it and all that it called launched.")
    file = Column(TEXT, "File of the function, as Python names it; missing if it is no Python function.")
    line = Column(ID, "Line at which the function begins.")
    thread = Column(TEXT, "Number (tid) of a thread, in its own row: what `thread` takes.")
    path = Column(TEXT, "Number of the path from the thread to it: the same in every trace in which it is called so.")
    parent_row = Column(ID, "Row of its caller, counted from 0; missing for a thread.")


def python_calls(
    trace: Trace, *, thread: str | None = None, operators: Literal["outermost", "all", "none"] = "outermost"
) -> pl.DataFrame:
    """Callers before callees, the longest first.

    Args:
        trace: The trace.
        thread: The number (tid) of one thread; all threads that ran Python if not given.
        operators: Those that Python calls, those that they call too, or none.
    """
    calls = _folded(_Calls.of(trace, thread, operators))
    tree = calls.tree
    host_total = tree.with_inner(calls.host)
    order = tree.preorder(host_total)
    place = np.empty(order.size, np.int32)
    place[order] = np.arange(order.size)
    texts = pl.Series([calls.texts[code] for code in tree.code[order]], dtype=pl.String)
    columns: dict[str, Any] = {
        **parsed(texts).to_dict(),
        "kind": [calls.kinds[code] for code in tree.code[order]],
        "calls": calls.calls[order],
        "host_self_ns": calls.host[order],
        "host_total_ns": host_total[order],
        "thread": [calls.tids[code] if code < len(calls.tids) else None for code in tree.code[order].tolist()],
        "path": _path_numbers(
            tree, [f"{kind} {text}" for kind, text in zip(calls.kinds, calls.texts, strict=True)], order
        ),
        "parent_row": take(place, tree.parent[order]),
    }
    if calls.device is not None:
        columns |= {"device_self_ns": calls.device[order], "device_total_ns": tree.with_inner(calls.device)[order]}
    rows = pl.DataFrame(columns, schema_overrides=PythonCalls.schema())
    is_thread = pl.col("kind") == "thread"
    rows = rows.with_columns(pl.col("parent_row").replace(NONE, None), calls=pl.when(~is_thread).then("calls"))
    return PythonCalls.of(pl.concat([rows, _elsewhere(calls)], how="diagonal").select(PythonCalls.schema().names()))


@dataclass(frozen=True)
class _Calls:
    """The merged calls.

    Attributes:
        tree: One node per path; its first nodes are the threads.
        tids: The number of each thread.
        texts: By code, what a node is called.
        kinds: By code, what it is.
        calls: Of each node; likewise its host and device time without its callees. `device` is None without devices.
        elsewhere: Device time launched outside of all nodes.
    """

    tree: MergedTree
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
        threads, python = _threads(trace, thread)
        is_shown = (trace.host_events["kind"] == "operator") & trace.host_events["thread"].is_in(threads.implode())
        host = np.flatnonzero(is_shown.to_numpy() & (operators != "none")).astype(np.int32)
        forest = CallForest.of(trace, python, host)
        code, texts, kinds = _codes(trace, forest, threads, operators)
        root = np.searchsorted(threads.to_numpy(), forest.thread).astype(np.int32)
        tree = merged(forest.parent, code, root)
        device, elsewhere = None, 0
        if trace.device_events.height:
            launching, dur = forest.launching(trace), trace.device_events["dur_ns"].to_numpy()
            device, elsewhere = tree.sums(take(tree.node, launching), dur), int(dur[launching < 0].sum())
        calls = tree.sums(np.where(code >= 0, tree.node, NONE))
        tids = trace.threads[threads]["tid"].to_list()
        return cls(tree, tids, texts, kinds, calls, tree.sums(tree.node, forest.self_ns), device, elsewhere)


def _threads(trace: Trace, thread: str | None) -> tuple[pl.Series, Rows]:
    """(The threads that ran Python and are wanted, in order; the rows of their calls)."""
    ran = trace.python_calls["thread"]
    wanted = trace.threads.with_row_index("row").filter(True if thread is None else pl.col("tid") == thread)["row"]
    is_wanted = ran.is_in(wanted.cast(pl.Int32).implode())
    return ran.filter(is_wanted).unique().sort(), np.flatnonzero(is_wanted.to_numpy()).astype(np.int32)


def _codes(trace: Trace, forest: CallForest, threads: pl.Series, operators: str) -> tuple[Rows, list[str], list[str]]:
    """(Of each call what it is called, or NONE if it is no node; by code the text; by code the kind).

    The first codes are the threads, as `merged` wants them.
    """
    names = trace.threads[threads].select(pl.coalesce("name", pl.format("thread {}", "tid"))).to_series().to_list()
    place, texts = functions(trace.python_calls["name"])
    ops = trace.host_events["name"]
    code = np.empty(forest.row.size, np.int32)
    code[forest.is_python] = _beginning_at(place[forest.row[forest.is_python]], len(names))
    rows = forest.host[~forest.is_python]
    code[~forest.is_python] = _beginning_at(
        ops.to_physical().cast(pl.Int32).fill_null(NONE).to_numpy()[rows], len(names) + len(texts)
    )
    is_inner = take(~forest.is_python, forest.parent, missing=False) & ~forest.is_python
    if operators == "outermost":
        code[is_inner] = NONE
    elif operators == "all":
        code[is_inner & take(trace.host_events["is_repeat"].to_numpy(), forest.host, missing=False)] = NONE
    op_names = ops.dtype.categories.to_list()  # type: ignore[attr-defined]
    kinds = ["module" if text.startswith("nn.Module: ") else "function" for text in texts]
    all_kinds = ["thread"] * len(names) + kinds + ["operator"] * len(op_names) + ["rest"]
    return code, [*names, *texts, *op_names, SMALLER], all_kinds


def _beginning_at(code: Rows, first: int) -> Rows:
    """The codes, beginning at `first`; NONE stays NONE."""
    return np.where(code >= 0, code + np.int32(first), NONE).astype(np.int32)


def _folded(calls: _Calls) -> _Calls:
    """The same with at most MOST_ROWS paths of their own, the largest by share of host or device time."""
    tree = calls.tree
    count = tree.parent.size
    if count <= MOST_ROWS:
        return calls
    share = _of_largest(tree.with_inner(calls.host))
    if calls.device is not None:
        share = np.maximum(share, _of_largest(tree.with_inner(calls.device)))
    is_kept = np.zeros(count, bool)
    is_kept[np.argsort(-share, kind="stable")[:MOST_ROWS]] = True  # callers come first, and weigh no less
    is_kept |= tree.parent < 0
    is_first = ~is_kept & take(is_kept, tree.parent, missing=False)
    smaller = merged(tree.parent, np.where(is_kept, tree.code, np.where(is_first, len(calls.texts) - 1, NONE)))
    device = None if calls.device is None else smaller.sums(smaller.node, calls.device)
    own = smaller.sums(np.where(is_kept | is_first, smaller.node, NONE), calls.calls)
    host = smaller.sums(smaller.node, calls.host)
    return _Calls(smaller, calls.tids, calls.texts, calls.kinds, own, host, device, calls.elsewhere)


def _of_largest(total: Ints) -> NDArray[np.float64]:
    return total / max(1, int(total.max(initial=0)))


def _path_numbers(tree: MergedTree, names: list[str], order: Rows) -> list[str]:
    """A number of each path, in an order in which callers come first; by code, `names` tell all that is called."""
    paths = [b""] * order.size
    for node, code, caller in zip(order.tolist(), tree.code[order].tolist(), tree.parent[order].tolist(), strict=True):
        around = paths[caller] if caller >= 0 else str(node).encode()
        paths[node] = blake2b(around + names[code].encode(), digest_size=8).digest()
    return [paths[node].hex() for node in order.tolist()]


def _elsewhere(calls: _Calls) -> pl.DataFrame:
    """The row of the device time that no call here launched, if there is any."""
    sums = {"device_self_ns": calls.elsewhere, "device_total_ns": calls.elsewhere}
    rows = [{"function": ELSEWHERE, "path": ELSEWHERE, "kind": "rest", **sums}] if calls.elsewhere else []
    return pl.DataFrame(rows, schema=PythonCalls.schema())


VIEW = View(
    python_calls,
    table=PythonCalls,
    title="Python calls",
    group="Host",
    needs="python_calls",
    hint="No Python calls were recorded. Pass with_stack=True to the profiler.",
)
