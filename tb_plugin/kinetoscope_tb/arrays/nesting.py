"""Nesting by time on one thread: which range is nested in which.

Compiled functions here avoid whole-array expressions: numba takes seconds to compile the errors that those might raise.

Rows are sorted by thread, start, duration (longest first) and place in the file. A range is nested in another that is
open when it begins and that ends no earlier. Ranges that only touch are siblings. A range that begins in another and
outlasts it becomes its sibling and counts as a partial overlap.
"""

from __future__ import annotations

import numpy as np

from .gather import NONE
from .jit import Array, compiled


@compiled
def nest(thread: Array, start: Array, end: Array) -> tuple[Array, Array, int]:
    """Return (parent, depth, partial overlaps) of sorted ranges; parent is a row or -1."""
    n = start.size
    parent = np.empty(n, np.int32)
    depth = np.empty(n, np.int16)
    above = np.empty(n, np.int32)  # the rows that are open, outermost first
    top = 0
    overlaps = 0
    for i in range(n):
        if i and thread[i] != thread[i - 1]:
            top = 0
        outlasts = False
        while top and (end[above[top - 1]] <= start[i] or end[above[top - 1]] < end[i]):
            outlasts |= end[above[top - 1]] > start[i]
            top -= 1
        overlaps += outlasts
        parent[i] = above[top - 1] if top else NONE
        depth[i] = top
        above[top] = i
        top += 1
    return parent, depth, overlaps


@compiled
def innermost(thread: Array, start: Array, end: Array, at_thread: Array, at: Array) -> Array:
    """Return for each instant the row of the innermost range open then on its thread, or -1.

    Both sides are sorted by thread, then time. A range is open from its start up to, not including, its end.
    """
    rows = np.empty(at.size, np.int32)
    above = np.empty(start.size + 1, np.int32)
    top = 0
    row = 0
    for q in range(at.size):
        if q and at_thread[q] != at_thread[q - 1]:
            top = 0
        while row < start.size and thread[row] < at_thread[q]:
            row += 1
        while row < start.size and thread[row] == at_thread[q] and start[row] <= at[q]:
            while top and end[above[top - 1]] <= start[row]:
                top -= 1
            above[top] = row
            top += 1
            row += 1
        while top and end[above[top - 1]] <= at[q]:
            top -= 1
        rows[q] = above[top - 1] if top else NONE
    return rows


@compiled
def self_times(
    thread: Array,
    start: Array,
    end: Array,
    parent: Array,
    call_thread: Array,
    call_host: Array,
    call_start: Array,
    call_end: Array,
) -> Array:
    """Return each range's time without its direct children and the runtime calls made directly in it.

    Siblings that overlap and calls inside calls are counted once, so no self time is negative and, on one thread, the
    self times and the calls add up to the time that any range is open.
    """
    n = start.size
    alone = np.empty(n, np.int64)
    reached = np.empty(n, np.int64)  # up to where the children, then the calls, cover a range so far
    for i in range(n):
        alone[i] = end[i] - start[i]
        reached[i] = start[i]
        p = parent[i]
        if p >= 0:
            covered = max(start[i], reached[p])
            if end[i] > covered:
                alone[p] -= end[i] - covered
                reached[p] = end[i]
    for i in range(n):
        reached[i] = start[i]
    following = 0  # the first range that begins after the call: the call is cut there, where a child takes over
    for c in range(call_host.size):
        while following < n and (
            thread[following] < call_thread[c]
            or (thread[following] == call_thread[c] and start[following] <= call_start[c])
        ):
            following += 1
        h = call_host[c]
        if h < 0:
            continue
        stop = min(call_end[c], end[h])
        if following < n and thread[following] == thread[h]:
            stop = min(stop, start[following])
        begin = max(call_start[c], reached[h])
        if stop > begin:
            alone[h] -= stop - begin
            reached[h] = stop
    return alone


@compiled
def nearest(is_match: Array, parent: Array) -> Array:
    """Return for each row the row itself if it matches, else its nearest matching ancestor, or -1."""
    rows = np.empty(parent.size, np.int32)
    for i in range(parent.size):
        if is_match[i]:
            rows[i] = i
        else:
            rows[i] = rows[parent[i]] if parent[i] >= 0 else NONE
    return rows


@compiled
def add_up(parent: Array, values: Array) -> Array:
    """Return the sum of each row's value and its descendants' values; parents come before their children."""
    total = np.empty(values.size, values.dtype)
    for i in range(values.size):
        total[i] = values[i]
    for i in range(parent.size - 1, -1, -1):
        if parent[i] >= 0:
            total[parent[i]] += total[i]
    return total


@compiled
def nearest_alike(parent: Array, code: Array, codes: int) -> Array:
    """Return for each row its nearest ancestor with the same code, or -1; rows with code -1 have none."""
    ancestor = np.full(parent.size, NONE, np.int32)
    innermost_of = np.full(codes, NONE, np.int32)  # the innermost open row of each code
    above = np.empty(parent.size, np.int32)
    top = 0
    for i in range(parent.size):
        while top and above[top - 1] != parent[i]:
            top -= 1
            closed = above[top]
            if code[closed] >= 0:
                innermost_of[code[closed]] = ancestor[closed]
        if code[i] >= 0:
            ancestor[i] = innermost_of[code[i]]
            innermost_of[code[i]] = i
        above[top] = i
        top += 1
    return ancestor


@compiled
def repeats(parent: Array, name: Array, is_op: Array, call_host: Array) -> Array:
    """Return whether each row is an operator and the only child of one of its name, without sibling runtime calls.

    Such a row is its parent's call recorded twice (the dispatcher's redispatch); torch's key_averages() drops it too
    (_remove_dup_nodes in torch/autograd/profiler_util.py). Torch also drops an operator in an annotation of its name,
    and its time with it; here it stays. `call_host` is the row that each runtime call was made directly in, or -1.
    """
    inside = np.zeros(parent.size, np.int32)  # number of ranges and calls made directly in each row
    for i in range(parent.size):
        if parent[i] >= 0:
            inside[parent[i]] += 1
    for c in range(call_host.size):
        if call_host[c] >= 0:
            inside[call_host[c]] += 1
    again = np.zeros(parent.size, np.bool_)
    for i in range(parent.size):
        p = parent[i]
        again[i] = p >= 0 and is_op[i] and is_op[p] and name[p] == name[i] and inside[p] == 1
    return again
