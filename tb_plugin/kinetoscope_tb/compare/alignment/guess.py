"""About where two sequences run side by side, so that long ones are aligned near that path alone.

Of signatures that are equally frequent on both sides, the k-th unit is paired with the k-th one. Of these pairs, the
longest subsequence in which both indices rise counts (M. L. Fredman, On Computing the Length of Longest Increasing
Subsequences, Discrete Mathematics 11, 1975); between them the path is straight.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import polars as pl

from ...arrays.gather import NONE
from .pairs import Floats, Rows


def path_guess(first: Rows, second: Rows) -> Floats:
    """By the number of units of the first side about how many of the second side belong to them.

    Args:
        first, second: The signatures' numbers, equal for equal ones; NONE is unknown.
    """
    sides = [
        pl.DataFrame({"number": side})
        .with_row_index("index")
        .filter(pl.col("number") != NONE)
        .with_columns(nth=pl.int_range(pl.len()).over("number"), count=pl.len().over("number"))
        for side in (first, second)
    ]
    pairs = sides[0].join(sides[1], on=["number", "nth", "count"]).sort("index")
    others = pairs["index_right"].to_list()
    rise = _longest_rise(others)
    at = [0, *(pairs["index"][rise] + 1), first.size]
    there = [0, *(others[index] + 1 for index in rise), second.size]
    guess: Floats = np.interp(np.arange(first.size + 1), at, there)
    return guess


def _longest_rise(values: list[int]) -> list[int]:
    """The indices of a longest subsequence that rises."""
    ends, last, before = list[int](), list[int](), list[int]()
    for index, value in enumerate(values):
        length = bisect_left(ends, value)
        before.append(last[length - 1] if length else NONE)
        ends[length : length + 1] = [value]
        last[length : length + 1] = [index]
    index, subsequence = (last[-1] if last else NONE), list[int]()
    while index != NONE:
        subsequence.append(index)
        index = before[index]
    return subsequence[::-1]
