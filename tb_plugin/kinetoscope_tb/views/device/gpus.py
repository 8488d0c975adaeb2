"""GPUs: how busy each device was from the first step's start to the last step's end.

Utilization is whether anything ran, SM efficiency how many multiprocessors had work, occupancy how full the busy ones
were. A device can be 100 % utilized by kernels that each use one of its hundred multiprocessors.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import polars as pl

from ...arrays.intervals import capped_integral
from ...measures.recording.contents import has_device_events
from ...measures.recording.device_properties import DeviceFacts, Devices
from ...measures.recording.vendor import vendor_terms
from ...measures.time.breakdown import intervals_of
from ...names.device_peaks import TABLE_VERSION, device_peaks
from ...table import BYTE_RATE, BYTES, COUNT, DURATION, FLOP_RATE, FRACTION, ID, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import device_of_work, device_work
from ...view import Head, Slices, View


class Gpus(Table):
    """How busy and how full each device was."""

    key, weight = ("device",), "device_total_ns"

    device = Column(ID, "Index of the device.")
    name = Column(TEXT, "Name that the driver reports.")
    utilization_frac = Column(
        FRACTION,
        "Share of the time from the first step's start to the last one's end in which at least one kernel ran; missing "
        "if none was recorded.",
    )
    sm_efficiency_frac = Column(
        FRACTION,
        "Mean over the same time of the multiprocessors' share with work: blocks per SM of the running kernels, at "
        "most 1.",
    )
    occupancy_frac = Column(
        FRACTION,
        "Mean estimated occupancy of the kernels (see Kernels), weighted by how long each runs from the first step's "
        "start to the last one's end.",
    )
    occupancy_known_frac = Column(
        FRACTION,
        "Share of kernel time, from the first step's start to the last one's end, in kernels whose occupancy was "
        "recorded.",
        title="Occupancy known",
    )
    tc_time_frac = Column(
        FRACTION,
        "Share of kernel time, from the first step's start to the last one's end, in kernels that use tensor or "
        "matrix cores, among kernels for which this is known; missing if it isn't known for most of the time.",
        title="Known kernel time on tensor cores",
    )
    tc_known_frac = Column(
        FRACTION,
        "Share of kernel time, from the first step's start to the last one's end, in kernels whose names show whether "
        "they use tensor or matrix cores.",
        title="Use of tensor cores known",
    )
    matrix_units = Column(
        TEXT,
        "The vendor's name for these units: tensor cores, matrix cores, XMX engines; missing for unknown vendors.",
        title="Vendor's matrix units",
    )
    kernel_total_ns = Column(DURATION, "Sum of the durations of its kernels, outside the steps too.")
    device_total_ns = Column(DURATION, "The same with copies and fills.")
    memory_bytes = Column(BYTES, "Size of its memory.", adds_up=False)
    compute_capability = Column(TEXT, "Major and minor version of its architecture.")
    multiprocessors = Column(COUNT, "Number of multiprocessors (NVIDIA) or compute units (AMD).", adds_up=False)
    threads_per_sm = Column(COUNT, "Maximum number of resident threads per multiprocessor.", adds_up=False)
    registers_per_sm = Column(COUNT, "32-bit registers per multiprocessor.", adds_up=False)
    shared_memory_per_sm_bytes = Column(BYTES, "Shared memory per multiprocessor.", adds_up=False)
    warp_size = Column(COUNT, "Threads per warp.", adds_up=False)
    peak_half_flop_per_s = Column(
        FLOP_RATE,
        f"Peak in bf16, or in fp16 without bf16 (table of devices, version {TABLE_VERSION}).",
    )
    peak_fp32_flop_per_s = Column(FLOP_RATE, "Peak in fp32 without tensor cores (same table).")
    peak_bytes_per_s = Column(BYTE_RATE, "Peak memory bandwidth (same table).")


_MEASURED = ("start_ns", "dur_ns", "blocks_per_sm", "occupancy_frac", "tensor_cores")


def gpus(trace: Trace) -> pl.DataFrame:
    """The devices by index."""
    window = trace.steps["start_ns"][0], trace.steps["end_ns"][-1]
    devices = Devices.of(trace.meta)
    terms = vendor_terms(trace)
    units = {"matrix_units": terms.matrix_units if terms.vendor else None}
    events = trace.device_events.select("device", "kind", *_MEASURED)
    rows = [
        _device_properties(devices.facts(device)) | _times(rows, window) | units
        for (device,), rows in sorted(events.group_by("device"), key=lambda group: group[0])
    ]
    return Gpus.of(pl.DataFrame(rows, schema=Gpus.schema()))


def _device_properties(facts: DeviceFacts) -> dict[str, Any]:
    peaks = facts.name and device_peaks(facts.name, facts.multiprocessors, facts.memory_bytes)
    properties = {name: value for name, value in asdict(facts).items() if name != "index"}
    if not peaks:
        return {"device": facts.index, **properties}
    rates = peaks.flop_per_s
    return {
        "device": facts.index,
        **properties,
        "peak_half_flop_per_s": rates.get("bf16", rates.get("fp16")),
        "peak_fp32_flop_per_s": rates.get("fp32"),
        "peak_bytes_per_s": peaks.bandwidth,
    }


def _times(rows: pl.DataFrame, window: tuple[int, int]) -> dict[str, Any]:
    kernels = rows.filter(pl.col("kind") == "kernel")
    totals = {"kernel_total_ns": kernels["dur_ns"].sum(), "device_total_ns": rows["dur_ns"].sum()}
    return totals | _measurements(kernels, window)


def _measurements(kernels: pl.DataFrame, window: tuple[int, int]) -> dict[str, float | None]:
    start = np.clip(kernels["start_ns"].to_numpy(), *window)
    end = np.clip((kernels["start_ns"] + kernels["dur_ns"]).to_numpy(), *window)
    inside = (end - start).astype(float)
    length = window[1] - window[0]
    blocks, occupancy = kernels["blocks_per_sm"].to_numpy(), kernels["occupancy_frac"].to_numpy()
    uses, is_known = (kernels["tensor_cores"] == "yes").to_numpy(), (kernels["tensor_cores"] != "unknown").to_numpy()
    known_ns, occupied_ns = inside[is_known].sum(), inside[np.isfinite(occupancy)].sum()
    begins, ends = intervals_of(kernels)
    busy = float(np.sum(np.clip(ends, *window) - np.clip(begins, *window)))
    sm_time = capped_integral(start, end, np.nan_to_num(blocks), 1.0, window)
    return {
        "utilization_frac": _ratio(busy, length) if kernels.height else None,
        "sm_efficiency_frac": _ratio(sm_time, length) if np.isfinite(blocks).any() else None,
        "occupancy_frac": _ratio(np.nansum(occupancy * inside), occupied_ns),
        "occupancy_known_frac": _ratio(occupied_ns, inside.sum()) if occupied_ns else None,
        "tc_time_frac": _ratio(inside[uses].sum(), known_ns) if 2 * known_ns >= inside.sum() else None,
        "tc_known_frac": _ratio(known_ns, inside.sum()),
    }


def _ratio(part: float, whole: float) -> float | None:
    return float(part / whole) if whole else None


VIEW = View(
    gpus,
    table=Gpus,
    title="GPUs",
    entry="Kernels",
    place=Head(),
    needs=has_device_events,
    hint="No GPU events were recorded. Pass ProfilerActivity.CUDA among the activities, on a machine with a GPU.",
    within="windows",
    slices=Slices(device_work, device_of_work),
)
