"""Histograms of durations with the edges 0, 0.1, 0.2, 0.5, 1, 2, 5, 10 … µs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

Ints = NDArray[np.int64]

EDGES = np.array([0, *(step * 10**power for power in range(2, 18) for step in (1, 2, 5))], np.int64)


def histogram(values: Mapping[str, Ints], sums: Mapping[str, Ints] | None = None) -> pl.DataFrame:
    """Return from_ns, to_ns (exclusive), and the number of values of each name, from the first to the last used bin.

    Args:
        values: Non-negative durations by the name of the column that counts them.
        sums: The same by the name of the column that adds them up.
    """
    amounts = sums or {}
    bins_by_name = {name: _bins_of(durations) for name, durations in (*values.items(), *amounts.items())}
    used_bins = np.concatenate([*bins_by_name.values(), np.empty(0, np.int64)])
    if not used_bins.size:
        return pl.DataFrame(schema=dict.fromkeys(("from_ns", "to_ns", *values, *amounts), pl.Int64))
    first, last = int(used_bins.min()), int(used_bins.max())
    columns: dict[str, Any] = {"from_ns": EDGES[first : last + 1], "to_ns": EDGES[first + 1 : last + 2]}
    for name, bins in bins_by_name.items():
        columns[name] = np.zeros(last + 1 - first, np.int64)
        np.add.at(columns[name], bins - first, amounts.get(name, np.ones(bins.size, np.int64)))
    return pl.DataFrame(columns)


def is_in_bin(durations: pl.Series, from_ns: int | None) -> NDArray[np.bool_]:
    """Whether each duration is in the bin that begins at `from_ns`."""
    bin_number = int(np.searchsorted(EDGES, -1 if from_ns is None else from_ns))
    if bin_number >= EDGES.size - 1 or EDGES[bin_number] != from_ns:
        return np.zeros(durations.len(), bool)
    return ((durations >= int(EDGES[bin_number])) & (durations < int(EDGES[bin_number + 1]))).to_numpy()


def bin_of(dur_ns: int) -> int:
    """The lower edge of the bin that a duration is in."""
    return int(EDGES[_bins_of(np.array([dur_ns]))[0]])


def _bins_of(durations: Ints) -> Ints:
    return np.minimum(np.searchsorted(EDGES, durations, "right") - 1, EDGES.size - 2)
