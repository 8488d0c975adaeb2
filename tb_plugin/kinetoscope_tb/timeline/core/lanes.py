"""Lanes: rows of a track in which no two slices overlap, so that every slice can be drawn.

A slice takes the first lane below the slice around it that is free. Where all slices nest, the lane is the depth; a
slice that begins in another and outlasts it goes to a lane further down, and nothing is dropped.
"""

from __future__ import annotations

import numpy as np

from ...arrays.native import Array, Function

_lanes = Function("lanes")
_sort_by_row = Function("sort_by_row")


def lanes(track: Array, start: Array, end: Array, parent: Array) -> Array:
    """Return the lane of each slice; they are sorted by track, start, longest first, and `parent` is a row or -1.

    A tree of minima (a segment tree) stores until when each lane is occupied, so a slice costs the logarithm of the
    lanes even if all slices of a track are open at once.
    """
    lane = np.empty(start.size, np.int32)
    leaves = np.array([16])
    until = np.zeros(2 * leaves[0], np.int64)  # node k: the least of nodes 2k and 2k + 1; lane i is node leaves + i
    i = 0
    while (i := _lanes(track, start, end, parent, i, leaves, until, lane)) < start.size:
        until = np.resize(until, 2 * until.size)  # all lanes are occupied: double them
    return lane


def by_row(row: Array, first: Array) -> tuple[Array, Array]:
    """Return (the position of each slice when sorted by row, the order that sorts them); a stable counting sort.

    `first` is where each row begins.
    """
    place, order = np.empty(row.size, np.int32), np.empty(row.size, np.int32)
    _sort_by_row(row, first.copy(), place, order)
    return place, order
