"""Inside graphs: what each kernel that graphs replay belongs to, and how that is known.

The trace of a replay has one call for all kernels. Their operators come from the capture of the graph, in this
recording or in another one, or from eager work that ran the same kernels; without these, layers are inferred from the
order of kernels.
"""

from __future__ import annotations

import polars as pl

from ...measures.graphs.replayed_kernels import each_replayed_kernel, replayed_kernels
from ...measures.recording.contents import has_graphs
from ...pictures import Bars
from ...table import COUNT, DURATION, ID, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key
from ...view import Part, Slices, View


class GraphKernels(Table):
    """What each kernel inside a graph belongs to: operator, shapes, module, line and layer."""

    key, weight = ("graph", "position", "device", "name", "op", "input_shapes", "input_types"), "total_ns"
    picture = Bars(("total_ns",))

    graph = Column(TEXT, "The graph, as in the table of graphs.")
    position = Column(
        COUNT,
        "Its position in the graph, from 0: by the numbers of the nodes if recorded, else by the start.",
        adds_up=False,
        title="Position in graph",
    )
    name = Column(TEXT, "Name of the kernel, copy or fill.")
    op = Column(
        TEXT,
        "Innermost operator that was open at its launch when the graph was captured; missing if that isn't known.",
    )
    input_shapes = Column(TEXT, "Shapes of the operator's inputs; missing if they weren't recorded.", shown_as="shapes")
    module = Column(TEXT, "Path of the nn.Module that it belongs to; missing if none is known.")
    line = Column(TEXT, "Innermost frame of the program at its launch during the capture; missing if not recorded.")
    mark = Column(TEXT, "Mark around its launch (torch.cuda's mark_kernels); missing without.")
    layer = Column(
        TEXT,
        "Inferred, from the order of kernels alone: the layer of the model, from 0, and the kernel's family. Missing "
        "where nothing repeats.",
    )
    provenance = Column(
        TEXT,
        "How the operator is known: recorded (this recording has its launch, the capture of the graph, or a side-car "
        "file about the node); capture (another recording launched the same kernels in the same order); eager (this "
        "recording ran the same kernels without a graph); inferred (only a layer, from the order of kernels). Missing: "
        "nothing is known.",
    )
    confidence = Column(
        TEXT,
        "How sure the operator is. high: all kernels around it agree by name and order, and all captures that do agree "
        "on operator and shapes. medium: sequences were aligned and agree only in short runs, or no names were "
        "recorded in the capture. low: captures that fit differ in operator or shapes, or it is inferred.",
    )
    calls = Column(COUNT, "How often it was replayed.")
    total_ns = Column(DURATION, "Sum of its durations.")
    mean_ns = Column(DURATION, "Total / calls, rounded to the nanosecond.")
    device = Column(ID, "Device that ran it.")
    input_types = Column(TEXT, "Types of the operator's inputs.")


def graph_kernels(trace: Trace) -> pl.DataFrame:
    """Nodes of graphs by their time, the longest first."""
    rows = replayed_kernels(trace).with_columns(mean_ns=(pl.col("total_ns") / pl.col("calls")).round().cast(pl.Int64))
    by = GraphKernels.key
    rows = rows.sort("total_ns", *by, descending=[True, *(False for _ in by)], nulls_last=True)
    return GraphKernels.of(rows.select(GraphKernels.schema().names()))


def events_of_row(trace: Trace, key: Key) -> Events:
    """The replays of the node."""
    rows = each_replayed_kernel(trace)
    are_equal = (
        pl.col(name).cast(GraphKernels.schema()[name]).eq_missing(pl.lit(value)) for name, value in key.items()
    )
    matches = rows.filter(*are_equal)
    return {"device_events": matches["row"].to_numpy()}


VIEW = View(
    graph_kernels,
    table=GraphKernels,
    title="Inside graphs",
    entry="Kernels",
    needs=has_graphs,
    hint="No CUDA or HIP graph was launched during the recording.",
    place=Part("graphs"),
    slices=Slices(events_of_row, "The drawer of a slice shows the same facts about its node."),
    reads_captures=True,
)
