"""Operator efficiency: how close operators come to the device's limits.

A roofline model: an operator can run no faster than its FLOPs at the device's peak, nor than its bytes at peak memory
bandwidth; the larger of the two times is its roof. Softmax, normalization, elementwise operators and others that
multiply no matrices have their bytes alone. Work is computed from the recorded shapes, not measured, and bytes are the
minimum. So a share far below the roof shows potential, not its cause. One row per device sums the kernels of all other
operators, and one those that no recorded operator launched.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE
from ...measures.calls.kernel_work import NO_OPERATOR
from ...measures.calls.matrix_calls import ARGUMENTS, each_matrix_call, matrix_calls
from ...measures.calls.matrix_work import FORMULAS, MatrixWork, UnknownWork, matrix_work
from ...measures.calls.memory_calls import MemoryCalls
from ...measures.calls.op_calls import PROVENANCE, UNATTRIBUTED
from ...measures.calls.roofline import Limits, Roof, roof, why_impossible, with_doubts
from ...measures.graphs.attribution import recorded_events
from ...measures.recording.contents import has_rated_operators
from ...measures.recording.options import reason_in_trace
from ...names.device_peaks import TABLE_VERSION
from ...names.text import percent
from ...pictures import Roofline
from ...table import BYTE_RATE, BYTES, COUNT, DURATION, FLOP, FLOP_RATE, FRACTION, ID, NUMBER, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key, calls_of_event, rows_where
from ...view import Slices, Tab, View

NO_DEVICE = "Its calls launched no recorded device work."
NO_TIME = "Its calls took no measurable time."
NO_DTYPE = "Its number format has no known size."
NO_BYTES = "The number format of its output isn't recorded."
HOST = "The host's peak is unknown."
OTHERS = "[other operators]"


class OperatorEfficiency(Table):
    """How close operators come to the limits of the device, by inputs.

    Matmuls, convolutions and attention are judged by their FLOPs and bytes, softmax, normalization, elementwise
    operators and the like by their bytes. `[other operators]` are the kernels of operators whose work is unknown,
    `[unattributed]` those that no recorded operator launched.
    """

    key, weight = ("name", "input_shapes", "input_types", "input_values", "device"), "time_ns"
    picture = Roofline(
        *("intensity", "achieved_flop_per_s", "time_ns", "peak_flop_per_s", "peak_bytes_per_s"),
        number_format="dtype",
        byte_rate="achieved_bytes_per_s",
        reason="why_unknown",
        gap="gap_ns",
    )

    name = Column(TEXT, "Name of the operator with the shapes; what matmul or einsum call counts by itself.")
    time_ns = Column(DURATION, "Device time that its calls launched; in a trace without devices, their host time.")
    roof_frac = Column(
        FRACTION,
        "Time at the roof / actual time: 1 is the device's limit. Above 1, inputs were read from caches.",
    )
    gap_ns = Column(DURATION, "Time above the roof: its time − its time at the roof; 0 if it is faster.")
    bound_by = Column(TEXT, "The limit at its intensity: compute or memory.")
    input_shapes = Column(
        TEXT, "Shapes of its inputs, one list per argument; missing if they weren't recorded.", shown_as="shapes"
    )
    dtype = Column(
        TEXT,
        "Number format: tf32 if float inputs ran on tensor cores, but for AMD's matrix cores; else that of the inputs.",
    )
    calls = Column(COUNT, "Number of calls.")
    achieved_flop_per_s = Column(FLOP_RATE, "FLOPs of all calls / their time.")
    achieved_bytes_per_s = Column(BYTE_RATE, "Minimum bytes of all calls / their time.")
    intensity = Column(NUMBER, "FLOPs per byte.")
    work_flop = Column(FLOP, "FLOPs of one call; a multiply-add counts as two.")
    work_bytes = Column(BYTES, "Minimum bytes that one call reads and writes: inputs and output once.", adds_up=False)
    peak_flop_per_s = Column(
        FLOP_RATE,
        "The device's roof in this format: the vendor's peak, or what its own library reaches where the vendor "
        "measured that (MI300X). If the trace doesn't name the device, the lowest of all products of the "
        f"architecture in kernel names (table of devices, version {TABLE_VERSION}).",
    )
    peak_bytes_per_s = Column(BYTE_RATE, "The device's peak memory bandwidth.")
    device = Column(ID, "Device that it ran on; missing on the host.")
    provenance = Column(TEXT, PROVENANCE)
    why_unknown = Column(TEXT, "Why a value is missing, or the roof may not be that of the device.")
    input_values = Column(TEXT, "Values of its non-tensor inputs, such as stride; missing if not recorded.")
    input_types = Column(TEXT, "Types of its inputs.")


def operator_efficiency(trace: Trace) -> pl.DataFrame:
    """Operators with inputs by their gap to the roof, the largest first; then those without one, by time."""
    calls = matrix_calls(trace)
    limits = Limits.of(trace)
    rows = [_row(call, limits.get(call["device"]), trace) for call in calls.rows(named=True)]
    memory = MemoryCalls.of(trace)
    rows += [_memory_row(call) for call in memory.table.rows(named=True)]
    others = _other_rows(trace, memory)
    table = pl.DataFrame([*rows, *others], schema=OperatorEfficiency.schema(), orient="row")
    table = with_doubts(table, limits)
    by = OperatorEfficiency.key
    is_descending = [True, True, *(False for _ in by)]
    return OperatorEfficiency.of(table.sort("gap_ns", "time_ns", *by, descending=is_descending, nulls_last=True))


def _memory_row(call: dict[str, Any]) -> dict[str, Any]:
    """An operator whose only limit is memory."""
    arguments = {"input_values" if name == "concrete_inputs" else name: call[name] for name in ARGUMENTS}
    return arguments | {
        **{name: call[name] for name in ("device", "calls", "time_ns", "work_bytes", "provenance")},
        "peak_bytes_per_s": call["bytes_per_s"],
        "achieved_bytes_per_s": call["calls"] * call["work_bytes"] / call["time_ns"] * 1e9,
        "bound_by": "memory",
        "roof_frac": call["roof_ns"] / call["time_ns"],
        "gap_ns": max(0, call["time_ns"] - round(call["roof_ns"])),
    }


def _others(memory: MemoryCalls) -> pl.DataFrame:
    """The kernels whose work is unknown, with their rows and the reasons."""
    return memory.kernels.with_columns(reason=memory.reason).filter(pl.Series(memory.call < 0))


def _other_rows(trace: Trace, memory: MemoryCalls) -> list[dict[str, Any]]:
    """Per device a row for the kernels of other operators, with the reason of that with most time, and of none."""
    others, host = _others(memory), trace.all_host_events["name"]
    names = host.gather(others["op"].cast(pl.Int64).replace(NONE, None)).cast(pl.String).alias("operator")
    times = (
        others.hstack([names])
        .group_by(pl.col("device").cast(pl.Int64), "operator")
        .agg(pl.col("dur_ns").sum().alias("time_ns"), pl.col("reason").get(pl.col("dur_ns").arg_max()))
        .sort("device", "time_ns", "operator", descending=[False, True, False])
        .group_by("device", pl.col("operator").is_null().alias("has_none"), maintain_order=True)
        .agg(
            pl.col("time_ns").sum(), pl.col("operator", "reason").first(), pl.col("time_ns").first().alias("largest_ns")
        )
    )
    return [
        {
            "name": UNATTRIBUTED if has_none else OTHERS,
            "device": device,
            "time_ns": time_ns,
            "why_unknown": NO_OPERATOR
            if has_none
            else f"{percent(largest_ns / time_ns)} of their time: {operator}. {reason}",
        }
        for device, has_none, time_ns, operator, reason, largest_ns in times.filter(pl.col("time_ns") > 0).rows()
    ]


def _row(call: dict[str, Any], limits: Limits | None, trace: Trace) -> dict[str, Any]:
    name, shapes, types, values = (call[argument] for argument in ARGUMENTS)
    row = {"name": name, "input_shapes": shapes, "input_types": types, "input_values": values}
    row |= {key: call[key] for key in ("device", "calls", "provenance")}
    is_on_host = trace.device_events.is_empty()
    has_time = call["time_ns"] > 0 and (is_on_host or call["device"] is not None)
    row["time_ns"] = call["time_ns"] if has_time else None
    reasons = [] if has_time else [NO_TIME if is_on_host or call["device"] is not None else NO_DEVICE]
    try:
        work = matrix_work(name, shapes, types, values)
    except UnknownWork as error:
        return row | {"why_unknown": " ".join([*reasons, reason_in_trace(trace, str(error))])}
    rates = _achieved_rates(work, row["time_ns"], call["calls"])
    if work.moved_bytes is None:
        reasons.append(NO_DTYPE if work.dtype is None else NO_BYTES)
    if is_on_host:
        reasons.append(HOST)
    elif limits is not None and work.dtype is not None:
        reasons += [limits.reason] if limits.reason else []
        if limits.peaks is not None:
            limit = roof(
                limits.peaks,
                work,
                uses_tensor_cores=call["tensor_ns"] > 0,
                is_unit_unknown=call["unknown_ns"] > 0,
            )
            at_roof = _at_roof(limit, row["time_ns"], call["calls"])
            if impossible := why_impossible(at_roof["roof_frac"] or 0.0, limit.bound_by, work.moved_bytes):
                return {"dtype": work.dtype, **row, "why_unknown": impossible}
            rates |= at_roof
            reasons += [limit.reason] if limit.reason else []
    return {"dtype": work.dtype, **row, **rates, "why_unknown": " ".join(reasons) or None}


def _achieved_rates(work: MatrixWork, time_ns: int | None, calls: int) -> dict[str, Any]:
    moved_bytes = work.moved_bytes
    return {
        "work_flop": work.flop,
        "work_bytes": moved_bytes,
        "intensity": work.flop / moved_bytes if moved_bytes else None,
        "achieved_flop_per_s": calls * work.flop / time_ns * 1e9 if time_ns else None,
        "achieved_bytes_per_s": calls * moved_bytes / time_ns * 1e9 if time_ns and moved_bytes is not None else None,
    }


def _at_roof(limit: Roof, time_ns: int | None, calls: int) -> dict[str, Any]:
    roof_ns = None if limit.ns is None else calls * limit.ns
    return {
        "peak_bytes_per_s": limit.bytes_per_s,
        "peak_flop_per_s": limit.flop_per_s,
        "bound_by": limit.bound_by,
        "roof_frac": roof_ns / time_ns if time_ns and roof_ns is not None else None,
        "gap_ns": max(0, time_ns - round(roof_ns)) if time_ns and roof_ns is not None else None,
    } | ({"dtype": limit.number_format} if limit.number_format else {})


def events_of_row(trace: Trace, key: Key) -> Events:
    """The calls with these inputs whose work ran on the device; without FLOPs, their kernels."""
    if key["name"] not in FORMULAS:
        return {"device_events": _kernels_of_row(MemoryCalls.of(trace), key)}
    calls = each_matrix_call(trace)
    values = {"concrete_inputs" if name == "input_values" else name: value for name, value in key.items()}
    device = values.pop("device")
    rows = rows_where(calls, **values)
    on_device = calls["device"][rows].eq_missing(pl.Series([device], dtype=calls["device"].dtype))
    return recorded_events(trace, {"host_events": calls["row"].to_numpy()[rows[on_device.to_numpy()]]})


def _kernels_of_row(memory: MemoryCalls, key: Key) -> NDArray[np.int64]:
    """Rows of device_events."""
    if key["name"] in (OTHERS, UNATTRIBUTED):
        has_none = (pl.col("op") == NONE) == (key["name"] == UNATTRIBUTED)
        kernels = _others(memory).filter(pl.col("device") == key["device"], has_none)
    else:
        rows = [_memory_row(call) for call in memory.table.rows(named=True)]
        calls = [at for at, row in enumerate(rows) if all(row.get(name) == key[name] for name in key)]
        kernels = memory.kernels.filter(pl.Series(np.isin(memory.call, calls)))
    return kernels["row"].cast(pl.Int64).to_numpy()


def _row_of_kernel(memory: MemoryCalls, row: int) -> Key | None:
    """The row of a kernel that counts for no call with FLOPs."""
    at = memory.kernels["row"].search_sorted(row)
    if at == memory.kernels.height or memory.kernels["row"][at] != row:
        return None
    if memory.call[at] < 0:
        has_none = memory.kernels["op"][at] == NONE
        return {"name": UNATTRIBUTED if has_none else OTHERS, "device": memory.kernels["device"][at]}
    return _memory_row(memory.table.row(int(memory.call[at]), named=True))


def row_of(trace: Trace, frame: str, row: int) -> Key | None:
    """The inputs and the device of a call; of the kernels of other operators their device."""
    if frame == "device_events" and (key := _row_of_kernel(MemoryCalls.of(trace), row)):
        return key
    ops = (at for of, at in calls_of_event(trace, frame, row) if of == "host_events")
    calls = each_matrix_call(trace).filter(pl.col("row").is_in(list(ops)))
    if calls.is_empty():
        return None
    call = calls.row(0, named=True)
    return {**call, "input_values": call["concrete_inputs"]}


VIEW = View(
    operator_efficiency,
    table=OperatorEfficiency,
    title="Operator efficiency",
    entry="Operators",
    place=Tab("Efficiency"),
    needs=has_rated_operators,
    hint="Neither matmuls, convolutions or attention nor kernels of operators with shapes were recorded. They need "
    "ProfilerActivity.CPU among the activities, and record_shapes=True.",
    option="record_shapes",
    slices=Slices(events_of_row, row_of),
    reads_captures=True,
)
