"""Histograms of durations with the edges 0, 0.1, 0.2, 0.5, 1, 2, 5, 10 … µs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

Ints = NDArray[np.int64]

EDGES = np.array([0, *(step * 10**power for power in range(2, 18) for step in (1, 2, 5))], np.int64)


def binned(values: Mapping[str, Ints], sums: Mapping[str, Ints] | None = None) -> pl.DataFrame:
    """Return from_ns, to_ns (exclusive), and the number of values of each name, from the first to the last used bin.

    Args:
        values: Non-negative durations by the name of the column that counts them.
        sums: The same by the name of the column that adds them up.
    """
    adding = sums or {}
    places = {name: _place(each) for name, each in (*values.items(), *adding.items())}
    occurring = np.concatenate([*places.values(), np.empty(0, np.int64)])
    if not occurring.size:
        return pl.DataFrame(schema=dict.fromkeys(("from_ns", "to_ns", *values, *adding), pl.Int64))
    first, last = int(occurring.min()), int(occurring.max())
    columns: dict[str, Any] = {"from_ns": EDGES[first : last + 1], "to_ns": EDGES[first + 1 : last + 2]}
    for name, place in places.items():
        columns[name] = np.zeros(last + 1 - first, np.int64)
        np.add.at(columns[name], place - first, adding.get(name, np.ones(place.size, np.int64)))
    return pl.DataFrame(columns)


def is_in_bin(durations: pl.Series, from_ns: int | None) -> NDArray[np.bool_]:
    """Whether each duration is in the bin that begins at `from_ns`."""
    place = int(np.searchsorted(EDGES, -1 if from_ns is None else from_ns))
    if place >= EDGES.size - 1 or EDGES[place] != from_ns:
        return np.zeros(durations.len(), bool)
    return ((durations >= int(EDGES[place])) & (durations < int(EDGES[place + 1]))).to_numpy()


def bin_of(dur_ns: int) -> int:
    """The lower edge of the bin that a duration is in."""
    return int(EDGES[_place(np.array([dur_ns]))[0]])


def _place(durations: Ints) -> Ints:
    return np.minimum(np.searchsorted(EDGES, durations, "right") - 1, EDGES.size - 2)
