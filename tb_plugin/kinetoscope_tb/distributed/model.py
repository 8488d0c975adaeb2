"""The summary of one trace of a run: all that views of many ranks need, a thousandth of the trace's size.

Times are ns since the origin of the trace, and NONE (-1) is a missing number, as in `trace.model`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from ..critical_path.segments import SEGMENTS

STEPS = {
    "step": pl.String,
    "start_ns": pl.Int64,
    "total_ns": pl.Int64,
    "computation_ns": pl.Int64,
    "exposed_communication_ns": pl.Int64,
    "exposed_copies_ns": pl.Int64,
    "idle_ns": pl.Int64,
    "communication_ns": pl.Int64,  # exposed or not
    "dataloader_ns": pl.Int64,  # of the worker's breakdown: only while nothing else runs
    "collecting_ns": pl.Int64,  # garbage collection during the idle time, and not while it loads data
    "launches": pl.Int64,  # number of kernels that compute, or without a device of operators
    "threads": pl.Int64,  # of those kernels: grid × block; 0 if the sizes of any are unknown
    "elements": pl.Int64,  # of the inputs of their operators; 0 if the shapes of most are unknown
    "copied_bytes": pl.Int64,  # between host and device
    "pageable_ns": pl.Int64,  # sum of the durations of copies to or from pageable memory of the host
    "is_complete": pl.Boolean,
}
"""One row is one step; computation + exposed communication + exposed copies + idle = total."""

CALLS = {
    "kind": pl.String,
    "group": pl.Int32,  # row of `groups`, or NONE
    "nth": pl.Int64,  # number of the collective in its group, from the metadata
    "bytes": pl.Int64,  # of the message
    "dtype": pl.String,
    "peer": pl.Int64,  # global rank of the other end of a send or recv
    "start_ns": pl.Int64,  # of the transfer: kernels, or the host range of a backend without any
    "dur_ns": pl.Int64,  # NONE: only the host's call was recorded
    "exposed_ns": pl.Int64,  # the part of it while nothing computes
    "step": pl.Int32,  # row of `steps`, or NONE
    "offset": pl.Int64,  # of its event in the file
}
"""One row is one collective, or transfer between two ranks, as this rank took part in it. Order: begin of the call."""

INPUTS = {
    "step": pl.Int32,  # row of `steps`
    "operator": pl.String,
    "input": pl.Int64,  # its place among the operator's inputs
    "elements": pl.Int64,  # of all such inputs of operators whose kernels, or that themselves, begin in the step
}
"""One row is an input of the operators of one name in a step; only of those with most elements in the trace."""

GROUPS = {
    "name": pl.String,  # of the process group; null if the file has none
    "description": pl.String,
    "size": pl.Int64,
    "ranks": pl.String,  # such as 0-7 or 0,8,16; null: unknown
}

TRAFFIC = {"peer": pl.Int64, "kind": pl.String, "bytes": pl.Int64, "calls": pl.Int64}
"""One row is the data that this rank sent to another one by one kind of call with a known receiver."""

FRAMES: Mapping[str, dict[str, Any]] = {
    "steps": STEPS,
    "calls": CALLS,
    "inputs": INPUTS,
    "groups": GROUPS,
    "traffic": TRAFFIC,
    "segments": SEGMENTS,
}
"""The frames of a summary, with their columns."""


@dataclass(frozen=True)
class Summary:
    """The summary of one trace.

    Args:
        facts: JSON values: rank, world_size, impossible, origin_ns, window, host, devices (names), backend, torch …
        steps: STEPS.
        calls: CALLS.
        groups: GROUPS.
        traffic: TRAFFIC.
        inputs: INPUTS.
        segments: SEGMENTS of `critical_path`; its sync points are rows of `calls`.
    """

    facts: Mapping[str, Any]
    steps: pl.DataFrame
    calls: pl.DataFrame
    groups: pl.DataFrame
    traffic: pl.DataFrame
    segments: pl.DataFrame
    inputs: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=INPUTS))
