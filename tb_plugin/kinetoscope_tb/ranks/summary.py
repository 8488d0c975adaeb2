"""One recording as a `Summary`."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ..dependencies import Graph, legs
from ..intervals import exclusive_lengths, length_within
from ..trace import Trace
from ..trace.breakdown import breakdown
from ..trace.exposure import exposure
from ..trace.idle import Windows
from .activity import computing, transferring
from .calls import Found, calls
from .groups import Groups
from .meetings import Meetings
from .model import STEPS, Summary
from .traffic import traffic

_FACTS = ("host", "local_rank", "node_rank", "local_world_size", "mesh", "clock", "launcher")
"""What the producer says of its process that views of many ranks show."""


def summary(trace: Trace) -> Summary:
    """What is kept of a recording."""
    groups = Groups(trace)
    found = Found.of(trace)
    rows = calls(trace, found, groups)
    every = np.arange(trace.collectives.height, dtype=np.int32)
    of_said = pl.Series(groups.of(trace, every), dtype=pl.Int32)
    frame = groups.frame()
    return Summary(_facts(trace), _steps(trace), rows, frame, traffic(trace, frame, of_said, rows), _legs(trace, found))


def _facts(trace: Trace) -> dict[str, Any]:
    meta = trace.meta
    producer = {name: meta.producer[name] for name in _FACTS if name in meta.producer}
    used = sorted(set(trace.device_events["device"].to_list())) if trace.device_events.height else []
    names = {device.get("id"): str(device.get("name", "")) for device in meta.devices}
    return {
        **producer,
        "rank": meta.rank,
        "world_size": meta.world_size,
        "impossible": list(meta.impossible),
        "ranks": None if meta.ranks is None else list(meta.ranks),
        "origin_ns": trace.origin_ns,
        "window": list(trace.window),
        "backend": meta.distributed.get("backend"),
        "devices": [[device, names.get(device)] for device in used],
    }


def _legs(trace: Trace, found: Found) -> pl.DataFrame:
    """The frame LEGS: the meetings are the calls."""
    graph = Graph.of(trace)
    meetings = Meetings.of(graph, found)
    return legs(trace, graph, meetings.start, meetings.end)


def _steps(trace: Trace) -> pl.DataFrame:
    """The frame STEPS."""
    windows = Windows.of(trace, each=True)
    if trace.device_events.height:
        parts = exposure(trace, np.arange(trace.device_events.height, dtype=np.int32), windows)
        lengths = list(parts.values())
    else:
        groups = [computing(trace), transferring(trace)]
        computation, communication, rest = exclusive_lengths(groups, windows.start, windows.end)
        whole = length_within(groups[1], windows.start, windows.end)
        lengths = [computation, communication, np.zeros_like(rest), rest, whole]
    columns = {
        "step": windows.names,
        "start_ns": windows.start,
        "total_ns": windows.end - windows.start,
        **dict(zip(list(STEPS)[3:8], lengths, strict=True)),
        "dataloader_ns": breakdown(trace)["DataLoader"],
        "is_complete": trace.steps["is_complete"],
    }
    return pl.DataFrame(columns, schema=STEPS)
