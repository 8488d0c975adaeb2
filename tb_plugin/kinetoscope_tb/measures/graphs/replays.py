"""The replays of graphs: the device rows of each launch of a graph, in the order of its nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE
from ...trace.model import Trace
from ...trace.results import once_per_recording
from ..calls.graph_launches import LaunchedRows, order_hashes

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Replays:
    """All replays of a recording.

    Attributes:
        rows: The device rows, replay by replay. In a replay they are in the order of the graph's nodes if their
            numbers were recorded, else in the order of their starts.
        first: The position in `rows` where each replay begins, and at last their number.
        variant: Of each replay: those of one graph that ran the same kernels in the same order are one variant.
        graph: Of each replay, its graph: CUDA's number, or #1, #2 …
        launch: Of each replay, its call: a row of launches, or NONE.
        example: A replay of each variant.
    """

    rows: Ints
    first: Ints
    variant: Ints
    graph: list[str]
    launch: Ints
    example: Ints

    def rows_of(self, replay: int) -> Ints:
        """The device rows of a replay."""
        return self.rows[self.first[replay] : self.first[replay + 1]]

    def of_rows(self) -> Ints:
        """The replay of each position in `rows`."""
        return np.repeat(np.arange(self.launch.size), np.diff(self.first))

    def positions(self) -> Ints:
        """Of each position in `rows`, its position in its replay."""
        return np.arange(self.rows.size) - np.repeat(self.first[:-1], np.diff(self.first))


@once_per_recording
def replays(trace: Trace) -> Replays:
    """The replays of a recording, in order of their first device row."""
    launched_rows, device = LaunchedRows.of(trace), trace.device_events
    rows = _in_order_of_nodes(launched_rows, device["graph_node_id"].to_numpy())
    kernels = order_hashes(device["name"].to_physical().to_numpy()[rows], launched_rows.first)
    forms = pl.DataFrame({"graph": launched_rows.graph_id, "kernels": kernels, "rows": np.diff(launched_rows.first)})
    variants = forms.select(pl.struct(pl.all()).rank("dense")).to_series().to_numpy()
    _, example, variant = np.unique(variants, return_index=True, return_inverse=True)
    launch = launched_rows.calls["launch"].cast(pl.Int64).to_numpy()
    return Replays(rows, launched_rows.first, variant, launched_rows.graphs(), launch, example)


def _in_order_of_nodes(launched_rows: LaunchedRows, node: Ints) -> Ints:
    """The rows of each launch in the order of its nodes where each row has the number of its own."""
    node = node[launched_rows.rows].astype(np.int64)
    if not node.size or int(node.max()) < 0:
        return launched_rows.rows
    replay = launched_rows.of_rows()
    order = np.lexsort((node, replay))
    repeats = np.diff(node[order], prepend=NONE - 1) == 0
    repeats[launched_rows.first[:-1]] = node[order][launched_rows.first[:-1]] < 0
    is_numbered = ~np.logical_or.reduceat(repeats, launched_rows.first[:-1])
    return launched_rows.rows[np.where(is_numbered[replay], order, np.arange(order.size))]
