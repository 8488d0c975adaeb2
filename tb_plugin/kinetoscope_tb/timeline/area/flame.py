"""What ran in an area of the timeline as a flame graph: slices below those around them, merged by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from ...arrays.gather import NONE, scatter_add
from ...measures.calls.call_tree import MergedTree, merge_calls
from ...pictures import Tree
from ...table import COUNT, DURATION, ID, TEXT, Column, Table
from ..core.model import CATEGORIES, Timeline
from .slices import AreaSlices

FINEST = 20_000  # boxes below this part of the whole aren't drawn


class AreaFlames(Table):
    """The slices that reach into the area, merged by name below each thread or stream.

    What covers the area with others inside it has no box: its time is that of the thread.
    """

    key, weight = (), "total_ns"
    picture = Tree(parent="parent")

    name = Column(TEXT, "Name of the slices, or of the thread or stream.")
    kind = Column(TEXT, "What they are: Kernel, Operator and so on; missing for a thread or stream.")
    calls = Column(COUNT, "How many slices.")
    total_ns = Column(DURATION, "Self time of them and of the slices inside them, within the area.")
    self_ns = Column(DURATION, "Their time within the area without slices inside them.")
    parent = Column(ID, "Row of the box around it.")


def area_flames(
    timeline: Timeline, from_ns: int, to_ns: int, tracks: Sequence[int], *, is_device: bool
) -> pl.DataFrame:
    """The boxes of streams, or of threads, those around others first."""
    slices = AreaSlices.of(timeline, from_ns, to_ns, tracks)
    on_side = slices.is_device == is_device  # whole threads and streams: no row loses its parent
    new_row = np.cumsum(on_side) - 1
    parent = slices.parent[on_side]
    parent = np.where(parent == NONE, NONE, new_row[parent]).astype(np.int32)
    label = timeline.label[slices.number[on_side]].astype(np.int64)
    code = np.where(slices.covers[on_side], NONE, label).astype(np.int32)
    axes, root = np.unique(slices.axis[on_side], return_inverse=True)
    tree = merge_calls(parent, code, root.astype(np.int32))
    own = scatter_add(tree.node, slices.own_ns[on_side], tree.parent.size)
    is_named = code != NONE
    calls = tree.sums(np.where(is_named, tree.node, NONE).astype(np.int32))
    names, kinds = _labels(timeline, tree, axes.tolist())
    rows = {"name": names, "kind": kinds, "calls": calls, "total_ns": tree.with_inner(own), "self_ns": own}
    return AreaFlames.of(_cut(pl.DataFrame({**rows, "parent": tree.parent}, schema=AreaFlames.schema())))


def _labels(timeline: Timeline, tree: MergedTree, axes: list[int]) -> tuple[list[str], list[str | None]]:
    """(the names, the categories) of the nodes; the first ones are the threads and streams."""
    labels, codes = timeline.labels, tree.code[len(axes) :]
    roots = [timeline.tracks[axis] for axis in axes]
    several = len({track.process for track in roots}) > 1
    names = [f"{track.name} · {track.process}" if several else track.name for track in roots]
    kinds = [CATEGORIES[i] for i in labels.categories[codes].tolist()]
    return names + [labels.texts[i] for i in codes.tolist()], [*([None] * len(axes)), *kinds]


def _cut(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows that are wide enough to be seen; no row is wider than the one around it."""
    parent, total = rows["parent"].to_numpy(), rows["total_ns"].to_numpy()
    whole = int(total[parent == NONE].sum())
    is_wide = (total > 0) & (total * FINEST >= whole)
    new_row = np.append(np.cumsum(is_wide) - 1, NONE)
    return rows.with_columns(pl.Series("parent", new_row[parent]).replace(NONE, None)).filter(is_wide)
