"""Summarizes a trace for views of many ranks."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.intervals import exclusive_lengths, length_within, merge
from ..critical_path.graph import Graph
from ..critical_path.segments import segments
from ..measures.recording.torch_version import torch_version
from ..measures.serving.iterations import server_iterations
from ..measures.time.breakdown import breakdown, intervals_of, loading_ranges
from ..measures.time.exposure import exposure
from ..measures.time.idle import Windows
from ..names.iterations import is_training
from ..trace import Trace
from .activity import communication_intervals, computation_intervals, garbage_collection, host_copies, inputs, work
from .collectives.calls import CallRows, calls
from .collectives.traffic import traffic
from .model import STEPS, Summary
from .path.sync_points import SyncPoints
from .process_groups import Groups

Ints = NDArray[np.int64]

_FACTS = ("host", "local_rank", "node_rank", "local_world_size", "mesh", "clock", "launcher")
"""The recorder's facts about its process that views of many ranks show."""


def summary(trace: Trace) -> Summary:
    """The summary of a trace."""
    groups = Groups(trace)
    call_rows = CallRows.of(trace)
    rows = calls(trace, call_rows, groups)
    all_rows = np.arange(trace.collectives.height, dtype=np.int32)
    metadata_groups = pl.Series(groups.of(trace, all_rows), dtype=pl.Int32)
    frame = groups.frame()
    return Summary(
        _facts(trace),
        _steps(trace),
        rows,
        frame,
        traffic(trace, frame, metadata_groups, rows),
        _segments(trace, call_rows),
        inputs(trace, Windows.of(trace, per_step=True)),
    )


def _facts(trace: Trace) -> dict[str, Any]:
    meta = trace.meta
    producer = {name: meta.producer[name] for name in _FACTS if name in meta.producer}
    device_numbers = sorted(set(trace.device_events["device"].to_list())) if trace.device_events.height else []
    frame = server_iterations(trace).frame
    names = {device.get("id"): str(device.get("name", "")) for device in meta.devices}
    return {
        **producer,
        "rank": meta.rank,
        "world_size": meta.world_size,
        "impossible": list(meta.impossible),
        "ranks": None if meta.ranks is None else list(meta.ranks),
        "origin_ns": trace.origin_ns,
        "window": list(trace.window),
        "backend": meta.distributed_info.get("backend"),
        "torch": torch_version(trace),
        "cuda": meta.cuda_version or meta.rocm_version,
        "driver": meta.driver_version,
        "is_training": any(map(is_training, trace.host_events["name"].unique().cast(pl.String).drop_nulls())),
        "phases": frame["phase"].unique().sort().to_list(),
        "iterations": "" if frame.is_empty() else _digest(frame),
        "devices": [[device, names.get(device)] for device in device_numbers],
    }


def _digest(frame: pl.DataFrame) -> str:
    """A text that is the same for ranks that ran the same iterations in lockstep."""
    return blake2b(repr(frame.select("phase", "batch", "tokens").rows()).encode(), digest_size=8).hexdigest()


def _segments(trace: Trace, call_rows: CallRows) -> pl.DataFrame:
    """The frame SEGMENTS: the sync points are the calls."""
    graph = Graph.of(trace)
    sync_points = SyncPoints.of(trace, graph, call_rows)
    return segments(trace, graph, sync_points.start, sync_points.end)


def _steps(trace: Trace) -> pl.DataFrame:
    """The frame STEPS."""
    windows = Windows.of(trace, per_step=True)
    if trace.device_events.height:
        parts = exposure(trace, np.arange(trace.device_events.height, dtype=np.int32), windows)
        lengths = list(parts.values())
    else:
        groups = [computation_intervals(trace), communication_intervals(trace)]
        computation, communication, rest = exclusive_lengths(groups, windows.start, windows.end)
        whole = length_within(groups[1], windows.start, windows.end)
        lengths = [computation, communication, np.zeros_like(rest), rest, whole]
    columns = {
        "step": windows.names,
        "start_ns": windows.start,
        "total_ns": windows.end - windows.start,
        **dict(zip(list(STEPS)[3:8], lengths, strict=True)),
        "dataloader_ns": breakdown(trace)["DataLoader"],
        "collecting_ns": _garbage_collection(trace, windows),
        **work(trace, windows)._asdict(),
        **host_copies(trace, windows)._asdict(),
        "is_complete": trace.steps["is_complete"],
    }
    return pl.DataFrame(columns, schema=STEPS)


def _garbage_collection(trace: Trace, windows: Windows) -> Ints:
    """How long Python collects garbage in each window while nothing else is busy and no data is loaded."""
    device, host = trace.device_events, trace.host_events
    busy = [intervals_of(device)] if device.height else [computation_intervals(trace), communication_intervals(trace)]
    loads = intervals_of(host, loading_ranges(trace))
    return np.asarray(
        exclusive_lengths([merge([*busy, loads]), garbage_collection(trace)], windows.start, windows.end)[1]
    )
