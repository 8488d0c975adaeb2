"""Step curves with fewer points that look the same in a chart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

CORNERS_PER_SLICE = 4


def corners(at: NDArray[np.int64], value: NDArray[Any], most: int) -> NDArray[np.int64]:
    """Return the indices of at most `most` points, in order, that draw the same curve as all of them.

    Time is divided into slices, and each slice keeps its first, lowest, highest and last point (M4 aggregation, Jugel
    et al., VLDB 2014). Nothing is averaged, so no peak is lost.

    Args:
        at: When the curve takes each value, in order.
        value: The values; each holds until the next point.
        most: At least CORNERS_PER_SLICE.
    """
    if at.size <= most:
        return np.arange(at.size)
    slices = most // CORNERS_PER_SLICE
    span = int(at[-1] - at[0]) + 1
    slice_of = ((at - at[0]).astype(np.float64) * (slices / span)).astype(np.int64)
    first = np.flatnonzero(np.diff(slice_of, prepend=-1))
    last = np.append(first[1:], at.size) - 1
    by_value = np.lexsort((value, slice_of))  # within each slice from the lowest to the highest
    return np.unique(np.concatenate([first, last, by_value[first], by_value[last]]))


def means_between(at: NDArray[np.int64], value: NDArray[Any], points: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the mean of a step curve from each of some of its points to the next; the last has its own value.

    Args:
        at: When the curve takes each value, in order.
        value: The values; each holds until the next point.
        points: Indices of points, in order, the last one among them.
    """
    sums = np.append(0, np.cumsum(value[:-1] * np.diff(at)))[points]
    means = value[points].astype(np.float64)
    lengths = np.diff(at[points])
    np.divide(np.diff(sums), lengths, out=means[:-1], where=lengths > 0)
    return means
