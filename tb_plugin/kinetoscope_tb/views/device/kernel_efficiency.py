"""Kernel efficiency: how close kernels come to the device's limits.

The same roofline as for operators, for every kernel: the work is that of the operator that launched it, so a row has
all kernels of one operator and family. Elementwise and layout kernels have the bytes that their operator must move, and
no FLOPs, so memory is their only roof.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ...measures.calls.kernel_work import KERNEL_COLUMNS, Group, KernelWork
from ...measures.calls.op_calls import UNATTRIBUTED
from ...measures.calls.roofline import with_doubts
from ...measures.recording.contents import has_kernels
from ...names.kernel_kinds import elementwise_family
from ...pictures import Roofline
from ...table import BYTE_RATE, COUNT, DURATION, FLOP_RATE, FRACTION, ID, NUMBER, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key
from ...view import Slices, Tab, View


class KernelEfficiency(Table):
    """How close kernels come to the limits of the device, by the operator and the inputs that they work for."""

    key, weight = ("operator", "input_shapes", "input_types", "input_values", "family", "device"), "time_ns"
    picture = Roofline(
        *("intensity", "achieved_flop_per_s", "time_ns", "peak_flop_per_s", "peak_bytes_per_s"),
        number_format="dtype",
        byte_rate="achieved_bytes_per_s",
        reason="why_unknown",
        gap="gap_ns",
    )

    operator = Column(
        TEXT,
        "Operator that launched the kernels: the matmul, convolution or attention around them, else the innermost. "
        f"`{UNATTRIBUTED}`: it wasn't recorded.",
    )
    time_ns = Column(DURATION, "Sum of the durations of all its kernels.")
    roof_frac = Column(
        FRACTION, "Time at the roof / actual time: 1 is the device's limit. Above 1, inputs were read from caches."
    )
    gap_ns = Column(DURATION, "Time above the roof: its time − its time at the roof; 0 if it is faster.")
    bound_by = Column(TEXT, "The limit at its intensity: compute or memory.")
    main_kernel = Column(TEXT, "Of its kernels, the one that takes most of the time.")
    input_shapes = Column(
        TEXT, "Shapes of its inputs, one list per argument; missing if they weren't recorded.", shown_as="shapes"
    )
    dtype = Column(TEXT, "Number format of its inputs, or tf32; missing for work without FLOPs.")
    calls = Column(COUNT, "Number of calls of the operator; missing if it wasn't recorded.")
    kernels = Column(COUNT, "Number of kernels that they launched.")
    family = Column(
        TEXT,
        "matmul, convolution, attention, cast, layout, normalization, softmax, reduction, elementwise or other. If the "
        "operator wasn't recorded, elementwise includes normalization, softmax and reductions.",
    )
    achieved_flop_per_s = Column(FLOP_RATE, "FLOPs of all calls / their time; missing for work without FLOPs.")
    achieved_bytes_per_s = Column(BYTE_RATE, "Minimum bytes of all calls / their time.")
    intensity = Column(NUMBER, "FLOPs per byte.")
    peak_flop_per_s = Column(FLOP_RATE, "The device's roof in this format.")
    peak_bytes_per_s = Column(BYTE_RATE, "The device's peak memory bandwidth.")
    device = Column(ID, "Device that it ran on.")
    why_unknown = Column(TEXT, "Why the roof is unknown, or may not be that of the device.")
    input_values = Column(TEXT, "Values of its non-tensor inputs, such as stride; missing if not recorded.")
    input_types = Column(TEXT, "Types of its inputs.")


def kernel_efficiency(trace: Trace) -> pl.DataFrame:
    """Kernels by their gap to the roof, the largest first; then those without one, by time."""
    kernels = trace.device_events.select(KERNEL_COLUMNS).filter(pl.col("kind") == "kernel")
    work = KernelWork.of(trace, kernels)
    table = pl.DataFrame([_row(group) for group in work.groups], schema=KernelEfficiency.schema(), orient="row")
    table = with_doubts(table, work.limits)
    by = KernelEfficiency.key
    is_descending = [True, True, *(False for _ in by)]
    return KernelEfficiency.of(table.sort("gap_ns", "time_ns", *by, descending=is_descending, nulls_last=True))


def _row(group: Group) -> dict[str, Any]:
    flop, moved_bytes, time_ns = group.work_flop, group.work_bytes, group.time_ns
    return {
        "operator": group.name or UNATTRIBUTED,
        "input_shapes": group.shapes,
        "dtype": group.number_format,
        "main_kernel": group.kernel,
        "family": elementwise_family(group.name) if group.family == "elementwise" else group.family,
        "calls": group.calls if group.name else None,
        "kernels": group.kernels,
        "time_ns": time_ns,
        "roof_frac": group.roof_frac,
        "gap_ns": max(0, time_ns - round(group.roof_ns)) if time_ns and group.roof_ns is not None else None,
        "bound_by": group.bound_by,
        "achieved_flop_per_s": group.calls * flop / time_ns * 1e9 if flop is not None and time_ns else None,
        "achieved_bytes_per_s": group.calls * moved_bytes / time_ns * 1e9
        if moved_bytes is not None and time_ns
        else None,
        "intensity": flop / moved_bytes if flop is not None and moved_bytes else None,
        "peak_flop_per_s": group.flop_per_s,
        "peak_bytes_per_s": group.bytes_per_s,
        "device": group.device,
        "why_unknown": group.reason or None,
        "input_values": group.values,
        "input_types": group.types,
    }


def events_of_row(trace: Trace, key: Key) -> Events:
    """The kernels of the operator with these inputs."""
    kernels = trace.device_events.with_row_index("row").filter(pl.col("kind") == "kernel")
    work = KernelWork.of(trace, kernels)
    rows = [_row(group) for group in work.groups]
    groups = [number for number, row in enumerate(rows) if all(row[name] == key[name] for name in key)]
    return {"device_events": kernels["row"].to_numpy()[np.isin(work.group, groups)]}


def row_of(trace: Trace, frame: str, row: int) -> Key | None:
    """The operator and the inputs that a kernel works for."""
    if frame != "device_events" or trace.device_events["kind"][row] != "kernel":
        return None
    return _row(KernelWork.of(trace, trace.device_events[row : row + 1]).groups[0])


VIEW = View(
    kernel_efficiency,
    table=KernelEfficiency,
    title="Kernel efficiency",
    entry="Kernels",
    needs=has_kernels,
    hint="No kernels were recorded. Pass ProfilerActivity.CUDA among the activities.",
    place=Tab("Efficiency"),
    slices=Slices(events_of_row, row_of),
    reads_captures=True,
)
