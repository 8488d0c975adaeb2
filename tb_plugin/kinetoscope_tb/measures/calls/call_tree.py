"""Trees of calls of several kinds, with all calls of the same path merged into one node.

Modules, Python functions and operators are recorded in different frames; `CallForest` merges two of them into one
axis per thread, and `merged` makes all calls with the same path of names one node.

Compiled functions here avoid whole-array expressions: numba takes seconds to compile the errors that those might raise.
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
from ...arrays.jit import Array, compiled
from ...arrays.nesting import add_up, innermost, nest, self_times
from ...trace.model import Trace

WITHIN = " / "
LONGEST_PATH = 4096  # characters: else the total length of nested paths grows quadratically
Rows = NDArray[np.int32]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class CallForest:
    """Rows of `python_calls` and of `host_events` on one axis per thread, in order of time, the outer ones first.

    Attributes:
        row: The row of python_calls, or the number of all python calls plus the row of host_events.
        python_calls: Number of Python calls in the trace: lower numbers in `row` are theirs.
        thread: Of each row here; likewise its start, its end and `parent`, the row here around it, or NONE.
    """

    row: Rows
    python_calls: int
    thread: Rows
    start: Ints
    end: Ints
    parent: Rows

    @classmethod
    def of(cls, trace: Trace, python: Rows, host: Rows) -> CallForest:
        """The forest of some rows of both frames, each in order; with equal times, Python is around the operator."""
        first, second = trace.python_calls[python], trace.host_events[host]
        columns = [_columns(first), _columns(second)]
        order = interleaved(*columns[0], *columns[1])
        rows = np.concatenate([python, host + np.int32(trace.python_calls.height)])[order]
        thread, start, end = (np.concatenate(pair)[order] for pair in zip(*columns, strict=True))
        parent, _, _ = nest(thread, start, end)
        return cls(rows, trace.python_calls.height, thread, start, end, parent)

    @property
    def is_python(self) -> NDArray[np.bool_]:
        """Whether each row is a python call."""
        return self.row < self.python_calls

    @property
    def host(self) -> Rows:
        """The row of host_events of each row here, or NONE."""
        return np.where(self.is_python, NONE, self.row - self.python_calls).astype(np.int32)

    @cached_property
    def self_ns(self) -> Ints:
        """Each row's time without its children."""
        no_rows, no_times = np.empty(0, np.int32), np.empty(0, np.int64)
        own: Ints = self_times(self.thread, self.start, self.end, self.parent, no_rows, no_rows, no_times, no_times)
        return own

    def at(self, thread: Rows, start: Ints) -> Rows:
        """The innermost row open on a thread at a time, or NONE; sorted by thread, then time."""
        rows: Rows = innermost(self.thread, self.start, self.end, thread, start)
        return rows

    def holding_host_rows(self, count: int) -> Rows:
        """For each of `count` host events its row here, or NONE."""
        rows = np.full(count, NONE, np.int32)
        host = self.host
        rows[host[host >= 0]] = np.flatnonzero(host >= 0)
        return rows

    def launching(self, trace: Trace) -> Rows:
        """For each device row the innermost row here that was open at its launch, or NONE.

        Without a known call, or with a call outside all rows, it is the operator that launched it.
        """
        calls, device = trace.launches, trace.device_events
        inside = self.at(calls["thread"].to_numpy(), calls["start_ns"].to_numpy())
        by_call = gather(inside, device["launch"].to_numpy())
        by_op = gather(self.holding_host_rows(trace.host_events.height), device["op"].to_numpy())
        return np.where(by_call >= 0, by_call, by_op)


def _columns(frame: pl.DataFrame) -> tuple[Rows, Ints, Ints]:
    start = frame["start_ns"].to_numpy()
    return frame["thread"].to_numpy(), start, start + frame["dur_ns"].to_numpy()


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


def merged(parent: Rows, code: Rows, root: Rows | None = None) -> MergedTree:
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
    node, above, named = paths(parent, code.astype(np.int32), root.astype(np.int32), roots)
    return MergedTree(node, above, named)


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


@compiled
def paths(parent: Array, code: Array, root: Array, roots: int) -> tuple[Array, Array, Array]:
    """Return (node of each call, parent of each node, code of each node), as in `merged`."""
    n = parent.size
    slots = 16
    while slots < 2 * n:
        slots *= 2
    table = np.empty(slots, np.int32)  # hash table with open addressing: nodes by (parent, code)
    for i in range(slots):
        table[i] = NONE
    above = np.empty(n + roots, np.int32)
    named = np.empty(n + roots, np.int32)
    for i in range(roots):
        above[i] = NONE
        named[i] = i
    count = roots
    node = np.empty(n, np.int32)
    for i in range(n):
        around = node[parent[i]] if parent[i] >= 0 else root[i]
        if code[i] < 0:
            node[i] = around
            continue
        mixed = (np.int64(around) + 1) * 2654435761 + np.int64(code[i]) * 40503 * 65537
        slot = (mixed ^ (mixed >> 15)) & (slots - 1)
        while table[slot] >= 0 and (above[table[slot]] != around or named[table[slot]] != code[i]):
            slot = (slot + 1) & (slots - 1)
        if table[slot] < 0:
            table[slot] = count
            above[count] = around
            named[count] = code[i]
            count += 1
        node[i] = table[slot]
    return node, above[:count].copy(), named[:count].copy()


@compiled
def laid_out(parent: Array, order: Array) -> Array:
    """Return the nodes in preorder; `order` has each node after its parent, and siblings in the requested order."""
    n = parent.size
    size = np.ones(n, np.int32)
    for i in range(n - 1, -1, -1):
        if parent[i] >= 0:
            size[parent[i]] += size[i]
    free = np.empty(n, np.int32)  # the place of the next child of each node
    result = np.empty(n, np.int32)
    next_root = 0
    for i in range(n):
        node = order[i]
        above = parent[node]
        if above < 0:
            place = next_root
            next_root += size[node]
        else:
            place = free[above]
            free[above] += size[node]
        free[node] = place + 1
        result[place] = node
    return result


@compiled
def outermost(parent: Array, order: Array, group: Array, groups: int) -> Array:
    """Return whether each node has no ancestor of its group; `order` is the preorder."""
    n = parent.size
    result = np.empty(n, np.bool_)
    around = np.empty(n, np.int32)  # the nodes that are open, outermost first
    top = 0
    open_ones = np.zeros(groups, np.int32)  # of each group
    for i in range(n):
        node = order[i]
        while top and around[top - 1] != parent[node]:
            top -= 1
            open_ones[group[around[top]]] -= 1
        result[node] = open_ones[group[node]] == 0
        around[top] = node
        top += 1
        open_ones[group[node]] += 1
    return result


@compiled
def interleaved(
    thread: Array, start: Array, end: Array, other_thread: Array, other_start: Array, other_end: Array
) -> Array:
    """Return the merged order of both lists: thread, start, longest first, the first list before the other.

    Both are sorted like this; the other list's numbers follow the first one's.
    """
    n, m = start.size, other_start.size
    order = np.empty(n + m, np.int32)
    i = 0
    j = 0
    for k in range(n + m):
        if i == n:
            is_other = True
        elif j == m:
            is_other = False
        elif thread[i] != other_thread[j]:
            is_other = other_thread[j] < thread[i]
        elif start[i] != other_start[j]:
            is_other = other_start[j] < start[i]
        else:
            is_other = other_end[j] > end[i]
        if is_other:
            order[k] = n + j
            j += 1
        else:
            order[k] = i
            i += 1
    return order
