"""Whether arrays have the order that whoever follows them relies on; nothing is allocated."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...arrays.jit import compiled

Ints = NDArray[np.integer]


@compiled
def are_offsets(first: Ints, size: int) -> bool:
    """Return whether these are the begins of parts of an array, one after the other, with its size at the end."""
    if not first.size or first[0] != 0 or first[-1] != size:
        return False
    for i in range(1, first.size):  # noqa: SIM110  # compiled, a loop is what takes no memory
        if first[i] < first[i - 1]:
            return False
    return True


@compiled
def begin_in_order(start: Ints, dur: Ints, first: Ints, begin: int, end: int) -> bool:
    """Return whether times of each part begin one after the other, and none is out of a window."""
    for row in range(first.size - 1):
        before = begin
        for i in range(first[row], first[row + 1]):
            if start[i] < before or start[i] > end or dur[i] < 0 or dur[i] > end - start[i]:
                return False
            before = start[i]
    return True


@compiled
def are_parents_first(parent: Ints) -> bool:
    """Return whether each parent comes before its children, so that nobody is among his own ancestors."""
    for i in range(parent.size):  # noqa: SIM110  # as above
        if parent[i] >= i:
            return False
    return True


@compiled
def have_room(of_row: Ints, level_first: Ints, first: Ints) -> bool:
    """Return whether no level of a row has more entries than the row has slices; both are offsets."""
    for row in range(of_row.size - 1):
        for level in range(of_row[row], of_row[row + 1]):
            if level_first[level + 1] - level_first[level] > first[row + 1] - first[row]:
                return False
    return True
