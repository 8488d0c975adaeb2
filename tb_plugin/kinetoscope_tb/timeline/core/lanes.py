"""Lanes: rows of a track in which no two slices overlap, so that every slice can be drawn.

A slice takes the first lane below the slice around it that is free. Where all slices nest, the lane is the depth; a
slice that begins in another and outlasts it goes to a lane further down, and nothing is dropped.

Compiled functions here avoid whole-array expressions: Numba takes seconds to compile the errors that those might raise.
"""

from __future__ import annotations

import numpy as np

from ...arrays.jit import Array, compiled


@compiled
def lanes(track: Array, start: Array, end: Array, parent: Array) -> Array:
    """Return the lane of each slice; they are sorted by track, start, longest first, and `parent` is a row or -1.

    A tree of minima (a segment tree) stores until when each lane is occupied, so a slice costs the logarithm of the
    lanes even if all slices of a track are open at once.
    """
    lane = np.empty(start.size, np.int32)
    leaves = 16
    until = np.zeros(2 * leaves, np.int64)  # node k: the least of nodes 2k and 2k + 1; lane i is node leaves + i
    for i in range(start.size):
        if i == 0 or track[i] != track[i - 1]:
            for node in range(until.size):
                until[node] = np.iinfo(np.int64).min
        least = lane[parent[i]] + 1 if parent[i] >= 0 else 0
        free_lane = -1
        while free_lane < 0:
            if least < leaves:
                free_lane = _first_free(until, leaves, least, start[i])
            if free_lane < 0:  # all lanes are occupied: double them
                wider = np.full(4 * leaves, np.iinfo(np.int64).min)
                for k in range(leaves):
                    wider[2 * leaves + k] = until[leaves + k]
                for node in range(2 * leaves - 1, 0, -1):
                    wider[node] = min(wider[2 * node], wider[2 * node + 1])
                until, leaves = wider, 2 * leaves
        lane[i] = free_lane
        node = leaves + free_lane
        until[node] = end[i]
        while node > 1:
            node >>= 1
            until[node] = min(until[2 * node], until[2 * node + 1])
    return lane


@compiled
def _first_free(until: Array, leaves: int, least: int, at: int) -> int:
    """Return the first lane from `least` on that is free at that time, or -1."""
    node = leaves + least
    while until[node] > at:
        while node & 1:  # the last of its parent's two: go up
            node >>= 1
            if node <= 1:
                return -1
        node += 1
        if node & (node - 1) == 0:  # past the last of this height
            return -1
    while node < leaves:
        node *= 2
        if until[node] > at:
            node += 1
    return node - leaves


@compiled
def by_row(row: Array, first: Array) -> tuple[Array, Array]:
    """Return (the position of each slice when sorted by row, the order that sorts them); a stable counting sort.

    `first` is where each row begins.
    """
    place = np.empty(row.size, np.int32)
    order = np.empty(row.size, np.int32)
    at = first.copy()
    for i in range(row.size):
        place[i] = at[row[i]]
        order[at[row[i]]] = i
        at[row[i]] += 1
    return place, order
