"""The replays of graphs: the device rows of each launch of a graph, in the order of its nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...trace.memo import once_per_trace
from ...trace.model import Trace
from ..calls.graph_launches import LAUNCH, graph_launches, graph_rows

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Replays:
    """All replays of a recording.

    Attributes:
        rows: The device rows, replay by replay. In a replay they are in the order of the graph's nodes if their
            numbers were recorded, else in the order of their starts.
        first: The place in `rows` where each replay begins, and at last their number.
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
        """The replay of each place in `rows`."""
        return np.repeat(np.arange(self.launch.size), np.diff(self.first))

    def places(self) -> Ints:
        """Of each place in `rows`, its place in its replay."""
        return np.arange(self.rows.size) - np.repeat(self.first[:-1], np.diff(self.first))


@once_per_trace
def replays(trace: Trace) -> Replays:
    """The replays of a recording, in order of their first device row."""
    node, unordered = pl.col("graph_node_id"), pl.col("row").cast(pl.Int64)
    is_numbered = (node.min() >= 0) & (node.n_unique() == pl.len())
    columns = ("row", "graph_node_id", "graph_id", pl.col("name").to_physical().cast(pl.Int64).alias("code"))
    found = graph_rows(trace).select(*LAUNCH, *columns)
    found = found.with_columns(
        replay=pl.col("row").min().over(LAUNCH).cast(pl.Int64),
        order=pl.when(is_numbered.over(LAUNCH)).then(node).otherwise(unordered),
    ).sort("replay", "order")
    word = pl.struct(pl.int_range(pl.len()).over("replay"), pl.col("code")).hash()
    each = (
        found.with_columns(word=word)
        .group_by("replay", maintain_order=True)
        .agg(pl.len(), pl.col("launch").first(), pl.col("graph_id").max(), pl.col("word").sum(), *_first(LAUNCH[1:]))
    )
    variants = each.select(pl.struct("graph_id", "word", "len").rank("dense")).to_series().cast(pl.Int64).to_numpy()
    names = graph_launches(trace).select(*LAUNCH, "graph").unique(LAUNCH, keep="first")
    graph = each.join(names, list(LAUNCH), "left", nulls_equal=True, maintain_order="left")["graph"]
    _, example, variant = np.unique(variants, return_index=True, return_inverse=True)
    return Replays(
        found["row"].cast(pl.Int64).to_numpy(),
        np.append(0, np.cumsum(each["len"].to_numpy())).astype(np.int64),
        variant,
        graph.to_list(),
        each["launch"].cast(pl.Int64).to_numpy(),
        example,
    )


def _first(names: tuple[str, ...]) -> list[pl.Expr]:
    return [pl.col(name).first() for name in names]
