"""Marks of graph nodes: of the recording itself, else of the side-car files next to it."""

from __future__ import annotations

import polars as pl

from ...trace.model import Trace


def marks_of_work(trace: Trace) -> pl.Series:
    """The mark of each row of device_events; null without."""
    device, notes = trace.device_events, trace.captures.node_notes
    own = device["mark"].cast(pl.String)
    if notes is None or notes.is_empty():
        return own
    noted = device.select(node="graph_node_id").join(notes, "node", "left", maintain_order="left")
    return own.zip_with(own.is_not_null(), noted["mark"])
