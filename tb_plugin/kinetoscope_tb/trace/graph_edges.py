"""Recorded dependencies between the nodes of a graph's replay: which waited for the end of which.

torch 2.15's Cuspy draws them as arrows of category ac2g with ids from 2^40 on (`enable_graph_dependencies`), from the
end of the earlier node to the beginning of the later one. Both ends are found by device, lane and time. The other
arrows of that category lead from a call to its work.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE
from .model import Trace
from .results import once_per_recording

Rows = NDArray[np.int64]

FIRST_ID = 1 << 40
EVENT_NODE, HOST_NODE = "graph_event_node", "graph_host_node"
_ROUNDING_NS = 1  # of times that the writer computes in floats: one ns at 2^42 µs
_MOST_HOPS = 64  # over nodes without device work, from one row to the next
_NODE = {"device": pl.Int64, "lane": pl.Int64, "at": pl.Int64}


@dataclass(frozen=True)
class GraphEdges:
    """Pairs of nodes; a node is a row of device_events, or from `rows` on a row of others.

    Attributes:
        before: The node that ended.
        after: The node that waited for it.
        rows: The number of device rows.
    """

    before: Rows
    after: Rows
    rows: int

    def between_rows(self) -> tuple[Rows, Rows]:
        """(rows that wait, rows that they wait for) of device_events, also across nodes without device work."""
        pairs = pl.DataFrame({"before": self.before, "after": self.after})
        hops, reach = [], pairs.filter(pl.col("before") < self.rows)
        onward = pairs.filter(pl.col("before") >= self.rows).rename({"before": "via"})
        for _ in range(_MOST_HOPS):
            if reach.is_empty():
                break
            hops.append(reach.filter(pl.col("after") < self.rows))
            over = reach.filter(pl.col("after") >= self.rows).rename({"after": "via"})
            reach = over.join(onward, "via").select("before", "after").unique()
        edges = pl.concat([pairs.clear(), *hops]).unique().sort("after", "before")
        return edges["after"].to_numpy(), edges["before"].to_numpy()


@once_per_recording
def graph_edges(trace: Trace) -> GraphEdges:
    """The recorded dependencies of a trace; none in files of other writers."""
    rows, none = trace.device_events.height, np.empty(0, np.int64)
    ends = trace.flows.filter(pl.col("id") >= FIRST_ID).filter(is_dependency())
    if ends.is_empty():
        return GraphEdges(none, none, rows)
    nodes = _nodes(trace)
    positions = _positions(trace, ends).with_columns(ends.select("id", pl.col("phase").cast(pl.String)))
    starts = _nearest(positions.filter(pl.col("phase") == "s"), nodes.rename({"end": "at"}))
    stops = _nearest(positions.filter(pl.col("phase") == "f"), nodes.rename({"start": "at"}))
    pairs = starts.join(stops, "id", suffix="_after").filter(pl.col("node") != pl.col("node_after"))
    pairs = pairs.sort("node_after", "node")
    return GraphEdges(pairs["node"].to_numpy(), pairs["node_after"].to_numpy(), rows)


def is_dependency() -> pl.Expr:
    """Which rows of flows are ends of such arrows."""
    return (pl.col("id") >= FIRST_ID) & (pl.col("category").cast(pl.String) == "ac2g")


def host_nodes(trace: Trace) -> pl.DataFrame:
    """The CPU callbacks of graphs: device, lane, start_ns, end_ns. They hold up their stream, and occupy no device."""
    others = trace.others.filter(pl.col("category").cast(pl.String) == HOST_NODE)
    positions = _positions(trace, others)
    return positions.select("device", "lane", start_ns="at", end_ns=pl.col("at") + others["dur_ns"].clip(0))


def _nodes(trace: Trace) -> pl.DataFrame:
    """Number, device, lane, start and end of each device row and of each node without device work."""
    device = trace.device_events
    work = device.select(
        pl.col("device").cast(pl.Int64),
        lane=pl.when(pl.col("lane") == NONE).then("stream").otherwise("lane"),
        start="start_ns",
        end=pl.col("start_ns") + pl.col("dur_ns"),
        node=pl.int_range(pl.len()),
    )
    is_node = pl.col("category").cast(pl.String).is_in([EVENT_NODE, HOST_NODE])
    others = trace.others.with_row_index("row").filter(is_node)
    positions = _positions(trace, others)
    marks = positions.select(
        "device",
        "lane",
        start="at",
        end=pl.col("at") + others["dur_ns"].clip(0),
        node=others["row"].cast(pl.Int64) + device.height,
    )
    return pl.concat([work, marks])


def _positions(trace: Trace, rows: pl.DataFrame) -> pl.DataFrame:
    """Device, lane and time of rows that lie on a thread of the file; null where it is no stream of a device."""
    threads = trace.threads[rows["thread"]]
    numbers = (threads[name].cast(pl.Int64, strict=False) for name in ("pid", "tid"))
    return pl.DataFrame(dict(zip(_NODE, (*numbers, rows["start_ns"]), strict=True)), schema=_NODE)


def _nearest(ends: pl.DataFrame, nodes: pl.DataFrame) -> pl.DataFrame:
    """`id` and `node` of each end of an arrow: the node of its lane that has a boundary at its time."""
    matches = (
        ends.drop_nulls()
        .sort("at")
        .join_asof(
            nodes.select("device", "lane", "at", "node").sort("at"),
            on="at",
            by=["device", "lane"],
            strategy="nearest",
            tolerance=_ROUNDING_NS,
            check_sortedness=False,
        )
    )
    return matches.select("id", "node").drop_nulls().unique("id", keep="first", maintain_order=True)
