"""What the nodes' own delays and the stretches of a path are called: kernels, operators, calls, annotations."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..kernel_names import is_data_loading
from ..trace import NONE, Trace
from ..trace.lookup import by_name, take, texts
from ..trace.nesting import nearest
from .classes import inner_before
from .edges import IN_CALLS
from .graph import Graph

Rows = NDArray[np.int32]


def with_names(trace: Trace, path: pl.DataFrame) -> pl.DataFrame:
    """Add `name` (what ran, or what waited to run) and `op` (the innermost operator around it) to stretches of a path.

    `path` has the columns host_event, launch and device_event, as PATH says.
    """
    hosts, calls, rows = trace.host_events, trace.launches, trace.device_events
    event, call, row = (path[column].to_numpy() for column in ("host_event", "launch", "device_event"))
    loader = nearest(by_name(hosts["name"], is_data_loading).astype(bool), hosts["parent"].to_numpy())
    around = take(loader, event)
    ops = nearest((hosts["kind"] == "operator").to_numpy(), hosts["parent"].to_numpy())
    op = np.where(row >= 0, take(rows["op"].to_numpy(), row), take(ops, event))
    name = pl.coalesce(
        texts(rows["name"], row),
        texts(hosts["name"], np.where(row >= 0, NONE, around)),
        texts(calls["name"], call),
        texts(hosts["name"], event),
    )
    return path.with_columns(name=name, op=texts(hosts["name"], op))


def node_places(trace: Trace, graph: Graph) -> pl.DataFrame:
    """host_event, launch and device_event of each node's own delay."""
    nodes, hosts = graph.nodes, trace.host_events.height
    inner = np.full(nodes.time.size, NONE, np.int32)
    inner[: nodes.points.time.size], _ = inner_before(graph)
    row = np.full(nodes.time.size, NONE, np.int32)
    row[nodes.starts] = row[nodes.ends] = np.arange(nodes.rows)
    call = np.where(inner >= hosts, inner - hosts, NONE).astype(np.int32)
    edge = graph.latest()
    in_call = np.flatnonzero(edge >= 0)
    in_call = in_call[np.isin(graph.kind[edge[in_call]], IN_CALLS)]
    call[in_call] = trace.device_events["launch"].to_numpy()[row[in_call]]
    row[in_call] = NONE
    event = np.where(call >= 0, take(trace.launches["host"].to_numpy(), call), inner)
    return pl.DataFrame({"host_event": event.astype(np.int32), "launch": call, "device_event": row})
