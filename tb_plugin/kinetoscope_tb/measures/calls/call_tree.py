"""Trees of calls of several kinds, with all calls of the same path merged into one node.

Modules, Python functions and operators are recorded in different frames; `CallForest` merges two of them into one
axis per thread, and `merge_calls` makes all calls with the same path of names one node.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather, scatter_add
from ...arrays.native import SEED, Array, Function
from ...arrays.nesting import add_up, innermost, nearest, nest, self_times
from ...trace.model import ReplayedCalls, Trace

_call_paths = Function("call_paths")
_preorder = Function("preorder")
_outermost = Function("outermost")
_interleave = Function("interleave")

WITHIN = " / "
LONGEST_PATH = 4096  # characters: else the total length of nested paths grows quadratically
Rows = NDArray[np.int32]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class CallForest:
    """Rows of `all_python_calls` and `all_host_events` on one axis per thread, in order of time, the outer ones first.

    Attributes:
        row: The row of all_python_calls, or their number plus the row of all_host_events.
        python_calls: Number of Python calls in the trace: lower numbers in `row` are theirs.
        thread: Of each row here; likewise its start, its end and `parent`, the row here around it, or NONE.
        recorded_count: The number of rows that were recorded; those that graphs replay follow, and take no time.
        replayed: Of each replayed call of the trace the row here that it or the call around it is, or NONE.
    """

    row: Rows
    python_calls: int
    thread: Rows
    start: Ints
    end: Ints
    parent: Rows
    recorded_count: int
    replayed: Rows

    @classmethod
    def of(cls, trace: Trace, python: Rows, host: Rows) -> CallForest:
        """The forest of some rows of both frames, each in order; with equal times, Python is around the operator."""
        replays, calls = trace.replayed, np.int32(trace.all_python_calls.height)
        selection = np.empty(0, np.int32)
        if replays is not None:
            first_python, first_host = trace.python_calls.height, trace.host_events.height
            selection = np.append(python[python >= first_python], host[host >= first_host] + calls)
            python, host = python[python < first_python], host[host < first_host]
        columns = [_columns(trace.python_calls, python), _columns(trace.host_events, host)]
        order = merge_order(*columns[0], *columns[1])
        rows = np.concatenate([python, host + calls])[order]
        thread, start, end = (np.concatenate(pair)[order] for pair in zip(*columns, strict=True))
        parent, _, _ = nest(thread, start, end)
        forest = cls(rows, int(calls), thread, start, end, parent, rows.size, np.empty(0, np.int32))
        return forest if replays is None else forest._with_replayed(trace, replays, selection)

    def _with_replayed(self, trace: Trace, replays: ReplayedCalls, selection: Rows) -> CallForest:
        """This forest with calls that graphs replay: those selected, numbered as in `row`."""
        is_module, launches = replays.is_module, trace.launches
        of_module, of_host = (np.cumsum(is_one, dtype=np.int32) - 1 for is_one in (is_module, ~is_module))
        of_module, of_host = of_module + trace.python_calls.height, of_host + trace.host_events.height
        number = np.where(is_module, of_module, self.python_calls + of_host)
        is_chosen = np.isin(number, selection)
        position = self.recorded_count - 1 + np.cumsum(is_chosen, dtype=np.int32)
        position = np.where(is_chosen, position, NONE).astype(np.int32)
        position = gather(position, nearest(is_chosen, replays.parent))
        around = self.at(launches["thread"].to_numpy(), launches["start_ns"].to_numpy())
        parent = gather(position, replays.parent)
        parent = np.where(parent >= 0, parent, gather(around, replays.launch))[is_chosen]
        launch = replays.launch[is_chosen]
        start = gather(launches["start_ns"].to_numpy(), launch)
        return CallForest(
            np.append(self.row, number[is_chosen]).astype(np.int32),
            self.python_calls,
            np.append(self.thread, gather(launches["thread"].to_numpy(), launch)),
            np.append(self.start, start),
            np.append(self.end, start),
            np.append(self.parent, parent).astype(np.int32),
            self.recorded_count,
            position,
        )

    @property
    def is_python(self) -> NDArray[np.bool_]:
        """Whether each row is a python call."""
        return self.row < self.python_calls

    @property
    def host(self) -> Rows:
        """The row of all_host_events of each row here, or NONE."""
        return np.where(self.is_python, NONE, self.row - self.python_calls).astype(np.int32)

    @cached_property
    def self_ns(self) -> Ints:
        """Each row's time without its children."""
        no_rows, no_times, part = np.empty(0, np.int32), np.empty(0, np.int64), slice(self.recorded_count)
        columns = (self.thread[part], self.start[part], self.end[part], self.parent[part])
        own: Ints = self_times(*columns, no_rows, no_rows, no_times, no_times)
        return np.append(own, np.zeros(self.row.size - self.recorded_count, np.int64))

    def at(self, thread: Rows, start: Ints) -> Rows:
        """The innermost row open on a thread at a time, or NONE; sorted by thread, then time."""
        part = slice(self.recorded_count)
        rows: Rows = innermost(self.thread[part], self.start[part], self.end[part], thread, start)
        return rows

    def holding_host_rows(self, count: int) -> Rows:
        """For each of the first `count` rows of all_host_events its row here, or NONE."""
        rows = np.full(count, NONE, np.int32)
        host = self.host
        position = np.flatnonzero((host >= 0) & (host < count))
        rows[host[position]] = position
        return rows

    def rows_at_launch(self, trace: Trace) -> Rows:
        """For each device row the innermost row here that was open at its launch, or NONE.

        Without a known call, or with a call outside all rows, it is the operator that launched it. For a row of a graph
        it is the call that the replay stands for.
        """
        calls, device = trace.launches, trace.device_events
        inside = self.at(calls["thread"].to_numpy(), calls["start_ns"].to_numpy())
        by_call = gather(inside, device["launch"].to_numpy())
        by_op = gather(self.holding_host_rows(trace.host_events.height), trace.recorded_op.to_numpy())
        by_call = np.where(by_call >= 0, by_call, by_op)
        if trace.replayed is None:
            return by_call
        by_replay = gather(self.replayed, trace.replayed.innermost)
        return np.where(by_replay >= 0, by_replay, by_call)


def _columns(frame: pl.DataFrame, rows: Rows) -> tuple[Rows, Ints, Ints]:
    """Thread, start and end of some rows."""
    thread, start, dur = (frame[name].to_numpy()[rows] for name in ("thread", "start_ns", "dur_ns"))
    return thread, start, start + dur


@dataclass(frozen=True)
class MergedTree:
    """All calls with the same path are one node; a node comes after its parent.

    Attributes:
        node: Of each call.
        parent: Of each node, or NONE.
        code: Of each node: the number of its name.
    """

    node: Rows
    parent: Rows
    code: Rows

    def sums(self, node: Rows, value: NDArray[Any] | None = None) -> Ints:
        """The sum of each node's values, or their number; values at NONE are left out."""
        return scatter_add(node, np.ones(node.size, np.int64) if value is None else value, self.parent.size)

    def with_inner(self, own: Ints) -> Ints:
        """The sum of each node's value and its descendants' values."""
        total: Ints = add_up(self.parent, own)
        return total

    def preorder(self, weight: NDArray[Any] | None = None) -> Rows:
        """The nodes, each followed by its descendants; siblings by descending weight, or in order.

        No node weighs less than its children.
        """
        by_weight = np.arange(self.parent.size) if weight is None else np.argsort(-weight, kind="stable")
        order: Rows = laid_out(self.parent, by_weight)
        return order


def merge_calls(parent: Rows, code: Rows, root: Rows | None = None) -> MergedTree:
    """Merge calls, outer ones first, into a tree of names.

    Args:
        parent: The parent of each call, or NONE.
        code: The number of its name; NONE: it has no node, and belongs to its parent's.
        root: The root node of each call without a parent, or NONE; the tree begins with these nodes, whose code is
            their number.
    """
    if root is None:
        root = np.full(parent.size, NONE, np.int32)
    roots = int(root.max(initial=NONE)) + 1
    node, above, node_code = paths(parent, code.astype(np.int32), root.astype(np.int32), roots)
    return MergedTree(node, above, node_code)


def path_texts(names: list[str], parent: Rows) -> list[str]:
    """The path of each node: the names of the nodes around it, from the outermost, and its own.

    An outer path longer than LONGEST_PATH is replaced by its hash.
    """
    texts = list[str]()
    for name, around in zip(names, parent.tolist(), strict=True):
        outer = texts[around] + WITHIN if around >= 0 else ""
        if len(outer) > LONGEST_PATH:
            outer = f"…{blake2b(outer.encode('utf-8', 'replace'), digest_size=8).hexdigest()}{WITHIN}"
        texts.append(outer + name)
    return texts


def paths(parent: Array, code: Array, root: Array, roots: int) -> tuple[Array, Array, Array]:
    """Return (node of each call, parent of each node, code of each node), as in `merge_calls`."""
    slots = 1 << max(4, (2 * parent.size - 1).bit_length())
    node = np.empty(parent.size, np.int32)
    above, node_code = np.empty(parent.size + roots, np.int32), np.empty(parent.size + roots, np.int32)
    count = _call_paths(parent, code, root, roots, SEED, np.full(slots, NONE, np.int32), node, above, node_code)
    return node, above[:count].copy(), node_code[:count].copy()


def laid_out(parent: Array, order: Array) -> Array:
    """Return the nodes in preorder; `order` has each node after its parent, and siblings in the requested order."""
    result, next_position = np.empty(parent.size, np.int32), np.empty(parent.size, np.int32)
    _preorder(parent, order, np.ones(parent.size, np.int32), next_position, result)
    return result


def outermost(parent: Array, order: Array, group: Array, groups: int) -> Array:
    """Return whether each node has no ancestor of its group; `order` is the preorder."""
    result, around = np.empty(parent.size, np.bool_), np.empty(parent.size, np.int32)
    _outermost(parent, order, group, around, np.zeros(groups, np.int32), result)
    return result


def merge_order(
    thread: Array, start: Array, end: Array, other_thread: Array, other_start: Array, other_end: Array
) -> Array:
    """Return the merged order of both lists: thread, start, longest first, the first list before the other.

    Both are sorted like this; the other list's numbers follow the first one's.
    """
    order = np.empty(start.size + other_start.size, np.int32)
    _interleave(thread, start, end, other_thread, other_start, other_end, order)
    return order
