"""P-values of many tests, adjusted: an adjusted one is compared with the rate that holds for all of them together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def holm(p_values: Sequence[float]) -> Floats:
    """Adjusted for the rate of any false alarm among all tests (S. Holm, 1979), however they depend on each other."""
    values = np.asarray(p_values, np.float64)
    order = np.argsort(values, kind="stable")
    steps = np.maximum.accumulate(values[order] * np.arange(values.size, 0, -1))
    return _in_place(order, steps)


def benjamini_hochberg(p_values: Sequence[float]) -> Floats:
    """Adjusted for the share of false ones among those that are reported (Y. Benjamini and Y. Hochberg, 1995)."""
    values = np.asarray(p_values, np.float64)
    order = np.argsort(values, kind="stable")
    scaled_p = values[order] * values.size / np.arange(1, values.size + 1)
    return _in_place(order, np.minimum.accumulate(scaled_p[::-1])[::-1])


def _in_place(order: NDArray[np.intp], steps: Floats) -> Floats:
    p_adjusted = np.empty_like(steps)
    p_adjusted[order] = np.minimum(steps, 1.0)
    return p_adjusted
