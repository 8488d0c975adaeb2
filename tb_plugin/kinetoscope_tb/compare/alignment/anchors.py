"""Units that are surely the same work: those of equal signatures among equal neighbors. They cut long sequences.

Anchors are the longest common subsequence of units with their neighbors. Only where it has nearly all of the shorter
side is it the truth: then the same code ran, but for a few places, such as a layer that is missing; and it doesn't
matter which of equal layers are matched. Otherwise layers that happen to be equal would be matched with others.
"""

from __future__ import annotations

import numpy as np

from ...arrays.gather import NONE
from ...measures.graphs.alignment import align_sequences
from .pairs import Pairs, Rows

_NEIGHBORS = 2  # on each side
_NEARLY_ALL = 0.75


def anchors(first: Rows, second: Rows) -> Pairs:
    """The anchors of two sequences of signatures, whose numbers are equal if they are; NONE is unknown."""
    contexts, others = _contexts(first, second)
    indices, other_indices = np.flatnonzero(contexts != NONE), np.flatnonzero(others != NONE)
    partner = align_sequences(contexts[indices], others[other_indices])
    is_common = partner >= 0
    if is_common.sum() < _NEARLY_ALL * min(first.size, second.size):
        is_common[:] = False
    return Pairs.certain(indices[is_common], other_indices[partner[is_common]])


def _contexts(first: Rows, second: Rows) -> tuple[Rows, Rows]:
    """A number for each unit and its neighbors, equal for equal ones; NONE where one of them is unknown."""
    with_edges = [np.pad(side, _NEIGHBORS, constant_values=NONE) for side in (first, second)]
    windows = np.concatenate(
        [np.lib.stride_tricks.sliding_window_view(side, 2 * _NEIGHBORS + 1) for side in with_edges]
    )
    numbers = np.unique(windows, axis=0, return_inverse=True)[1].ravel()
    numbers[(windows == NONE).any(axis=1)] = NONE
    return numbers[: first.size], numbers[first.size :]
