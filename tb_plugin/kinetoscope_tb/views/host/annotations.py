"""Annotations: time of named ranges on the host and of the GPU work launched inside them, as a tree.

The ranges are those of record_function, NVTX where the profiler records it, and of libraries: PyTorch's optimizers and
DDP, FSDP, Lightning, Megatron, and the iterations of vLLM and SGLang. Ranges with the same names around them are one
row. Their copies on the GPU's timeline aren't counted again.
"""

import numpy as np
import polars as pl

from ...arrays.gather import NONE, gather
from ...measures.calls.annotation_costs import AnnotationCosts, annotation_columns
from ...measures.calls.annotation_ranges import AnnotationRanges
from ...measures.calls.call_tree import Rows, path_texts
from ...measures.recording.contents import has_annotations
from ...pictures import Tree
from ...table import ID, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key
from ...view import Slices, Tab, View


class _Path(Table):
    """Paths of ranges."""

    path = Column(TEXT, "The names of the ranges around it, from the outermost to itself.")
    parent_row = Column(ID, "Row of the range around it, counted from 0; missing at the root.")


class Annotations(_Path, AnnotationCosts):
    """How long named ranges take on the host, and the GPU work launched inside them, by nesting."""

    key, weight = ("path",), "host_total_ns"
    picture = Tree("parent_row", widths=("gpu_ns",), color="annotation")


def annotations(trace: Trace) -> pl.DataFrame:
    """The ranges in the order of the recording, each before those inside it."""
    ranges = AnnotationRanges.of(trace)
    tree = ranges.tree()
    order = tree.preorder()
    rows = annotation_columns(trace, ranges, tree.node, tree.parent.size, np.zeros(ranges.row.size, bool))[order]
    names = [ranges.names[code] for code in tree.code]
    paths = path_texts([name.name for name in names], tree.parent)
    row_of_node = np.empty(order.size, np.int32)
    row_of_node[order] = np.arange(order.size)
    rows = rows.with_columns(
        name=pl.Series([names[node].name for node in order], dtype=pl.String),
        source=pl.Series([names[node].source for node in order], dtype=pl.String),
        path=pl.Series([paths[node] for node in order], dtype=pl.String),
        parent_row=pl.Series(gather(row_of_node, tree.parent[order]).astype(np.int64)).replace(NONE, None),
    )
    return Annotations.of(rows.select(Annotations.schema().names()))


def events_of_row(trace: Trace, key: Key) -> Events:
    """The ranges with this path."""
    ranges = AnnotationRanges.of(trace)
    tree = ranges.tree()
    paths = path_texts([ranges.names[code].name for code in tree.code], tree.parent)
    is_chosen = np.array([path == key["path"] for path in paths] + [False])
    rows: Rows = ranges.row[is_chosen[tree.node]]
    return {"host_events": rows}


def row_of(trace: Trace, frame: str, row: int) -> Key | None:
    """The path of a range."""
    ranges = AnnotationRanges.of(trace)
    number, tree = ranges.number_of(frame, row), ranges.tree()
    if number < 0:
        return None
    return {"path": path_texts([ranges.names[code].name for code in tree.code], tree.parent)[tree.node[number]]}


VIEW = View(
    annotations,
    table=Annotations,
    title="Annotations",
    entry="Annotations",
    needs=has_annotations,
    hint="No named ranges were recorded. Put torch.profiler.record_function(name) around parts of the program.",
    place=Tab("By nesting"),
    slices=Slices(events_of_row, row_of),
)
