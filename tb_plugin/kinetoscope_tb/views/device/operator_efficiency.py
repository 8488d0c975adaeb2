"""Operator efficiency: how near products, convolutions and attention come to what the device can do.

A roofline: an operator can run no faster than its operations at the device's peak, nor than its bytes at the memory's;
the larger of the two times is its roof. Work is counted from the recorded shapes, never measured, and bytes are the
least that must move. So a share far below the roof says that there is room, not what fills it.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from ...measures.calls.matrix_calls import ARGUMENTS, each_matrix_call, matrix_calls
from ...measures.recording.device_properties import DeviceFacts, Devices
from ...names.device_peaks import TABLE_VERSION, DevicePeaks, device_peaks
from ...names.matrix_work import MatrixWork, Unknown, matrix_work
from ...pictures import Bars
from ...table import BYTE_RATE, BYTES, COUNT, DURATION, FLOP, FLOP_RATE, FRACTION, ID, NUMBER, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key, rows_where
from ...view import Slices, View

NO_DEVICE = "Its calls launched nothing on a device that was recorded."
NO_TIME = "Its calls took no measurable time."
NO_DTYPE = "Its numbers are of a format that isn't counted here."
NO_BYTES = "The size of its result's numbers isn't recorded."
HOST = "It ran on the host, of which no peak is known."
WHICH_UNIT = "Its kernels' names don't say whether they use tensor cores, so which peak holds isn't known."


class OperatorEfficiency(Table):
    """One row is one operator with one combination of inputs on one device."""

    key, weight = ("name", "input_shapes", "input_types", "input_values", "device"), "time_ns"
    picture = Bars(("time_ns",))

    name = Column(TEXT, "Name of the operator that has the shapes; what matmul or einsum call is counted there.")
    input_shapes = Column(TEXT, "Shapes of its inputs, one list per argument; missing if they weren't recorded.")
    dtype = Column(TEXT, "Number format: tf32 where float inputs ran on tensor cores, else that of the inputs.")
    calls = Column(COUNT, "How often it was called.")
    time_ns = Column(
        DURATION, "Device time of all that its calls launched; in a recording without devices, their host time."
    )
    roof_frac = Column(
        FRACTION,
        "Time at the roof / time taken: 1 is all that the device can do. Above it, what was read lay in caches.",
    )
    bound_by = Column(TEXT, "What the roof is for its intensity: compute or memory.")
    achieved_flop_per_s = Column(FLOP_RATE, "Operations of all calls / their time.")
    achieved_bytes_per_s = Column(BYTE_RATE, "Those bytes of all calls / their time.")
    intensity = Column(NUMBER, "Operations per byte of that.")
    work_flop = Column(FLOP, "Operations of one call: a multiplication with an addition are two.")
    work_bytes = Column(BYTES, "The least that one call must read and write: inputs and result once.", adds_up=False)
    peak_flop_per_s = Column(
        FLOP_RATE, f"What the device can do in this format (table of devices, version {TABLE_VERSION})."
    )
    peak_bytes_per_s = Column(BYTE_RATE, "What the device's memory can move.")
    device = Column(ID, "Device that it ran on; missing on the host.")
    why_unknown = Column(TEXT, "Why something is missing.")
    input_values = Column(TEXT, "Values of its inputs that are no tensors, such as stride; missing if not recorded.")
    input_types = Column(TEXT, "Types of its inputs.")


def operator_efficiency(trace: Trace) -> pl.DataFrame:
    """Operators with inputs by their time, the longest first."""
    calls = matrix_calls(trace)
    devices = Devices.of(trace.meta)
    facts = {index: devices.facts(index) for index in calls["device"].drop_nulls().unique()}
    rows = [_row(call, facts.get(call["device"]), trace) for call in calls.rows(named=True)]
    table = pl.DataFrame(rows, schema=OperatorEfficiency.schema(), orient="row")
    by = OperatorEfficiency.key
    return OperatorEfficiency.of(table.sort("time_ns", *by, descending=[True, *(False for _ in by)], nulls_last=True))


def _row(call: dict[str, Any], device: DeviceFacts | None, trace: Trace) -> dict[str, Any]:
    name, shapes, types, values = (call[argument] for argument in ARGUMENTS)
    row = {"name": name, "input_shapes": shapes, "input_types": types, "input_values": values}
    row |= {key: call[key] for key in ("device", "calls")}
    is_on_host = trace.device_events.is_empty()
    has_time = call["time_ns"] > 0 and (is_on_host or call["device"] is not None)
    row["time_ns"] = call["time_ns"] if has_time else None
    reasons = [] if has_time else [NO_TIME if is_on_host or call["device"] is not None else NO_DEVICE]
    try:
        work = matrix_work(name, shapes, types, values)
    except Unknown as unknown:
        return row | {"why_unknown": " ".join([*reasons, str(unknown)])}
    row |= _achieved(work, row["time_ns"], call["calls"])
    if work.moved_bytes is None:
        reasons.append(NO_DTYPE if work.dtype is None else NO_BYTES)
    if is_on_host:
        reasons.append(HOST)
    elif call["device"] is not None and work.dtype is not None:
        peaks, said = _peaks(device)
        reasons += said
        if peaks is not None:
            roof, said = _roof(peaks, work, row["time_ns"], call)
            row |= roof
            reasons += said
    return {"dtype": work.dtype, **row, "why_unknown": " ".join(reasons) or None}


def _achieved(work: MatrixWork, time_ns: int | None, calls: int) -> dict[str, Any]:
    moved = work.moved_bytes
    return {
        "work_flop": work.flop,
        "work_bytes": moved,
        "intensity": work.flop / moved if moved else None,
        "achieved_flop_per_s": calls * work.flop / time_ns * 1e9 if time_ns else None,
        "achieved_bytes_per_s": calls * moved / time_ns * 1e9 if time_ns and moved is not None else None,
    }


def _peaks(device: DeviceFacts | None) -> tuple[DevicePeaks | None, list[str]]:
    if device is None or not device.name:
        return None, ["The trace doesn't name the device."]
    peaks = device_peaks(device.name, device.multiprocessors, device.memory_bytes)
    return peaks, [] if peaks else [f"No peaks of {device.name} are known."]


def _roof(
    peaks: DevicePeaks, work: MatrixWork, time_ns: int | None, call: dict[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """What the device can do for this work, and why if it isn't known."""
    found: dict[str, Any] = {"peak_bytes_per_s": peaks.bandwidth}
    key = str(work.dtype)
    if f"{key}_matrix" in peaks.flop_per_s:
        if not call["tensor_ns"] and call["unknown_ns"]:
            return found, [WHICH_UNIT]
        key += "_matrix" if call["tensor_ns"] else ""
    peak = peaks.flop_per_s.get(key)
    if peak is None:
        return found, [f"No peak of this device in {work.dtype} is known."]
    found |= {"peak_flop_per_s": peak, "dtype": _FORMAT_NAMES.get(key, work.dtype)}
    if work.moved_bytes is None:
        return found, []
    compute_ns, memory_ns = work.flop / peak * 1e9, work.moved_bytes / peaks.bandwidth * 1e9
    found["bound_by"] = "compute" if compute_ns >= memory_ns else "memory"
    found["roof_frac"] = call["calls"] * max(compute_ns, memory_ns) / time_ns if time_ns else None
    return found, []


_FORMAT_NAMES = {"fp32_matrix": "tf32", "fp64_matrix": "fp64"}


def events_of_row(trace: Trace, key: Key) -> Events:
    """The calls with these inputs whose work ran on the device."""
    calls = each_matrix_call(trace)
    values = {"concrete_inputs" if name == "input_values" else name: value for name, value in key.items()}
    device = values.pop("device")
    rows = rows_where(calls, **values)
    on_device = calls["device"][rows].eq_missing(pl.Series([device], dtype=calls["device"].dtype))
    return {"host_events": calls["row"].to_numpy()[rows[on_device.to_numpy()]]}


VIEW = View(
    operator_efficiency,
    table=OperatorEfficiency,
    title="Operator efficiency",
    group="Device",
    needs="matrix_work",
    hint="No products, convolutions or attention were recorded. They need ProfilerActivity.CPU among the "
    "activities, and record_shapes=True for their sizes.",
    slices=Slices(events_of_row),
)
