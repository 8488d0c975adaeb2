"""Python calls and operators by their call path, from each thread that ran Python down.

All calls with the same path are one node. A path's number is a hash, the same in every trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, categories_of, category_codes, gather, scatter_add
from ...arrays.nesting import nearest, outward
from ...names.python_frames import begins_thread, is_of_library, is_wait
from ...trace.model import Trace
from ..calls.call_tree import CallForest, Ints, MergedTree, Rows, merge_calls
from .frames import functions, without_addresses

SMALLER = "[smaller calls]"  # small callees, combined
WAITING_SHARE = 0.95  # of its time lies in calls that wait: then a thread only waits
ELSEWHERE = "[elsewhere]"  # work that was launched outside all paths


@dataclass(frozen=True)
class PythonPaths:
    """The calls and their paths.

    Attributes:
        forest: The calls of Python and of operators.
        root: The node of each call's thread.
        is_call: Whether it is a call of its node; others belong to the call around them.
        tree: One node per path; its first nodes are the threads.
        threads: The threads' rows in the trace's threads, and their tids.
        texts: The name of each code; the last one is SMALLER, which no call has.
        kinds: The kind of each code: thread, function, module, operator, rest.
    """

    forest: CallForest
    root: Rows
    is_call: NDArray[np.bool_]
    tree: MergedTree
    threads: Rows
    tids: list[str]
    texts: list[str]
    kinds: list[str]

    @classmethod
    def of(cls, trace: Trace, thread: str | None, operators: str) -> PythonPaths:
        """The calls of a thread, by its tid, or of all; with the `outermost` operators, `all`, or `none`."""
        threads, python = _threads(trace, thread)
        is_shown = (trace.host_events["kind"] == "operator") & trace.host_events["thread"].is_in(threads.implode())
        host = np.flatnonzero(is_shown.to_numpy() & (operators != "none")).astype(np.int32)
        forest = CallForest.of(trace, python, host)
        code, texts, kinds = _codes(trace, forest, threads, operators)
        root = np.searchsorted(threads.to_numpy(), forest.thread).astype(np.int32)
        rows, tids = threads.to_numpy().astype(np.int32), trace.threads[threads]["tid"].to_list()
        return cls(forest, root, code >= 0, merge_calls(forest.parent, code, root), rows, tids, texts, kinds)


def waiting_threads(tree: MergedTree, texts: list[str], host: Ints) -> NDArray[np.bool_]:
    """Whether each node is a thread that only waits; `host` is the time of each node without its callees.

    A thread of which nothing but its beginning was recorded does what it began before the recording, and never ended.
    """
    root, host_total = nearest(tree.parent < 0, tree.parent), tree.with_inner(host)
    waits = np.array([is_wait(text) for text in texts])[tree.code] & (tree.parent >= 0)
    waits_or_hides = (nearest(waits, tree.parent) >= 0) | np.array([begins_thread(text) for text in texts])[tree.code]
    waiting_ns = scatter_add(np.where(waits_or_hides, root, NONE), host, tree.parent.size)
    is_waiting: NDArray[np.bool_] = (tree.parent < 0) & (host_total > 0) & (waiting_ns >= WAITING_SHARE * host_total)
    return is_waiting


def shown_kinds(texts: list[str], kinds: list[str]) -> list[str]:
    """The kinds with `library` for functions of Python, torch and other packages."""
    return [
        "library" if kind == "function" and is_of_library(text) else kind
        for text, kind in zip(texts, kinds, strict=True)
    ]


class PathNumbers:
    """Numbers of the paths of a tree; `texts` and `kinds` are the name and kind of each code."""

    def __init__(self, tree: MergedTree, texts: list[str], kinds: list[str]) -> None:
        self._parent, self._code = tree.parent.tolist(), tree.code.tolist()
        self._texts, self._kinds = texts, kinds
        self._digests = dict[int, bytes]()

    def of(self, node: int) -> str:
        """The number of a node's path."""
        way = [node]
        while way[-1] not in self._digests and self._parent[way[-1]] >= 0:
            way.append(self._parent[way[-1]])
        for step in reversed(way):
            if step not in self._digests:
                caller, code = self._parent[step], self._code[step]
                around = self._digests[caller] if caller >= 0 else str(step).encode()
                self._digests[step] = _digest(around, self._kinds[code], self._texts[code])
        return self._digests[node].hex()


def _digest(around: bytes, kind: str, text: str) -> bytes:
    """The hash of a path by that of the path around it."""
    return blake2b(around + f"{kind} {text}".encode(), digest_size=8).digest()


def path_of_call(trace: Trace, frame: str, row: int) -> tuple[str, str] | None:
    """The name of a Python call or an operator, and the number of its path with all operators, as in PathNumbers.

    None for other events, and on a thread that ran no Python. It looks only at what was open on the thread.
    """
    if frame not in ("python_calls", "host_events"):
        return None
    thread, start = getattr(trace, frame).select("thread", "start_ns").row(row)
    root = trace.python_calls["thread"].unique().sort().index_of(thread)
    number = row if frame == "python_calls" else row + trace.all_python_calls.height
    forest = CallForest.of(trace, *_open_at(trace, thread, start, number))
    rows = np.flatnonzero(forest.row == number)
    around = outward(forest.parent, int(rows[0])) if root is not None and rows.size else ()
    calls = [call for at in around if (call := _call(trace, int(forest.row[at])))]
    if not calls:
        return None
    digest = _digest(str(root).encode(), "thread", _thread_names(trace, pl.Series([thread]))[0])
    for kind, text in reversed(calls):
        digest = _digest(digest, kind, text)
    return calls[0][1], digest.hex()


def _open_at(trace: Trace, thread: int, start: int, number: int) -> list[Rows]:
    """The Python calls and the operators that were open on a thread at a time, and the call with this number."""
    end, rows = pl.col("start_ns") + pl.col("dur_ns"), list[Rows]()
    for frame, first, is_chosen in (
        (trace.python_calls, 0, pl.lit(value=True)),
        (trace.host_events, trace.all_python_calls.height, pl.col("kind") == "operator"),
    ):
        is_open = (pl.col("thread") == thread) & (pl.col("start_ns") <= start) & (end > start)
        is_itself = pl.int_range(pl.len()) == number - first
        rows.append(
            frame.select(pl.arg_where(is_chosen & (is_open | is_itself))).to_series().to_numpy().astype(np.int32)
        )
    return rows


def _call(trace: Trace, number: int) -> tuple[str, str] | None:
    """Kind and name of a Python call or an operator; None if it belongs to the call around it."""
    if number < trace.all_python_calls.height:
        name = trace.python_calls["name"][number]
        text = None if name is None else without_addresses(pl.Series([name], dtype=pl.String))[0]
        return None if text is None else (_kind_of(text), text)
    name, is_repeat = trace.host_events.select("name", "is_repeat").row(number - trace.all_python_calls.height)
    return None if name is None or is_repeat else ("operator", name)


def _kind_of(text: str) -> str:
    return "module" if text.startswith("nn.Module: ") else "function"


def _threads(trace: Trace, thread: str | None) -> tuple[pl.Series, Rows]:
    """(The selected threads that ran Python, in order; the rows of their calls)."""
    ran = trace.python_calls["thread"]
    matches = trace.threads.with_row_index("row").filter(True if thread is None else pl.col("tid") == thread)["row"]
    is_selected = ran.is_in(matches.cast(pl.Int32).implode())
    return ran.filter(is_selected).unique().sort(), np.flatnonzero(is_selected.to_numpy()).astype(np.int32)


def _thread_names(trace: Trace, threads: pl.Series) -> list[str]:
    return trace.threads[threads].select(pl.coalesce("name", pl.format("thread {}", "tid"))).to_series().to_list()


def _codes(trace: Trace, forest: CallForest, threads: pl.Series, operators: str) -> tuple[Rows, list[str], list[str]]:
    """(the code of each call, or NONE if it has no node; the text of each code; the kind of each code).

    The first codes are the threads, as `merge_calls` requires.
    """
    names = _thread_names(trace, threads)
    function, texts = functions(trace.python_calls["name"])
    ops = trace.host_events["name"]
    code = np.empty(forest.row.size, np.int32)
    code[forest.is_python] = _beginning_at(function[forest.row[forest.is_python]], len(names))
    rows = forest.host[~forest.is_python]
    code[~forest.is_python] = _beginning_at(category_codes(ops)[rows], len(names) + len(texts))
    is_inner = gather(~forest.is_python, forest.parent, missing=False) & ~forest.is_python
    if operators == "outermost":
        code[is_inner] = NONE
    elif operators == "all":
        code[is_inner & gather(trace.host_events["is_repeat"].to_numpy(), forest.host, missing=False)] = NONE
    op_names = categories_of(ops).to_list()
    kinds = [_kind_of(text) for text in texts]
    all_kinds = ["thread"] * len(names) + kinds + ["operator"] * len(op_names) + ["rest"]
    return code, [*names, *texts, *op_names, SMALLER], all_kinds


def _beginning_at(code: Rows, first: int) -> Rows:
    """The codes shifted to begin at `first`; NONE stays NONE."""
    return np.where(code >= 0, code + np.int32(first), NONE).astype(np.int32)
