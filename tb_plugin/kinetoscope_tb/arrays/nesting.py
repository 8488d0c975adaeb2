"""Nesting by time on one thread: which range is nested in which.

Rows are sorted by thread, start, duration (longest first) and place in the file. A range is nested in another that is
open when it begins and that ends no earlier. Ranges that only touch are siblings. A range that begins in another and
outlasts it becomes its sibling and counts as a partial overlap.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .gather import NONE
from .native import Array, Function

_nest = Function("nest")
_innermost = Function("innermost")
_self_times = Function("self_times")
_nearest = Function("nearest")
_add_up = Function("add_up")
_nearest_alike = Function("nearest_alike")
_outermost_alike = Function("outermost_alike")
_repeats = Function("repeats")


def nest(thread: Array, start: Array, end: Array) -> tuple[Array, Array, int]:
    """Return (parent, depth, partial overlaps) of sorted ranges; parent is a row or -1."""
    parent, above = np.empty(start.size, np.int32), np.empty(start.size, np.int32)
    depth = np.empty(start.size, np.int16)
    overlaps = _nest(thread, start, end, above, parent, depth)
    return parent, depth, overlaps


def innermost(thread: Array, start: Array, end: Array, at_thread: Array, at: Array) -> Array:
    """Return for each instant the row of the innermost range open then on its thread, or -1.

    Both sides are sorted by thread, then time. A range is open from its start up to, not including, its end.
    """
    rows, above = np.empty(at.size, np.int32), np.empty(start.size + 1, np.int32)
    _innermost(thread, start, end, at_thread, at, above, rows)
    return rows


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
    reach, alone = np.empty(start.size, np.int64), np.empty(start.size, np.int64)
    _self_times(thread, start, end, parent, call_thread, call_host, call_start, call_end, reach, alone)
    return alone


def nearest(is_match: Array, parent: Array) -> Array:
    """Return for each row the row itself if it matches, else its nearest matching ancestor, or -1."""
    if not is_match.any():  # as where nothing is loaded or communicated
        return np.full(parent.size, NONE, np.int32)
    rows = np.empty(parent.size, np.int32)
    _nearest(is_match, parent, rows)
    return rows


def outward(parent: Array, row: int) -> Iterator[int]:
    """A row and those around it, the innermost first; nothing for NONE."""
    while row >= 0:
        yield row
        row = int(parent[row])


def add_up(parent: Array, values: Array) -> Array:
    """Return the sum of each row's value and its descendants' values; parents come before their children."""
    total = values.astype(np.int64, casting="safe")
    _add_up(parent, total)
    return total


def nearest_alike(parent: Array, code: Array, codes: int) -> Array:
    """Return for each row its nearest ancestor with the same code, or -1; rows with code -1 have none."""
    ancestor, above = np.empty(parent.size, np.int32), np.empty(parent.size, np.int32)
    _nearest_alike(parent, code, np.full(codes, NONE, np.int32), above, ancestor)
    return ancestor


def outermost_alike(thread: Array, code: Array, end: Array) -> Array:
    """Return whether each row ends later than all rows of its thread and code before it, so that it lies in none.

    Rows are sorted by thread, then time; no code is negative.
    """
    codes, is_outermost = int(code.max(initial=0)) + 1, np.empty(thread.size, np.bool_)
    last_thread = np.full(codes, np.iinfo(np.int32).min, np.int32)
    _outermost_alike(thread, code, end, last_thread, np.empty(codes, np.int64), is_outermost)
    return is_outermost


def repeats(parent: Array, name: Array, is_op: Array, call_host: Array) -> Array:
    """Return whether each row is an operator and the only child of one of its name, without sibling runtime calls.

    Such a row is its parent's call recorded twice (the dispatcher's redispatch); torch's key_averages() drops it too
    (_remove_dup_nodes in torch/autograd/profiler_util.py). Torch also drops an operator in an annotation of its name,
    and its time with it; here it stays. `call_host` is the row that each runtime call was made directly in, or -1.
    """
    again = np.empty(parent.size, np.bool_)
    _repeats(parent, name, is_op, call_host, np.zeros(parent.size, np.int32), again)
    return again
