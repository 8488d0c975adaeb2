"""Calls of operators: what each one cost the host and the device, itself and with all that it called.

A call that only wraps one call of the same name is one call (`is_repeat`); what the inner one did itself counts for the
outer one. Device time and memory belong to the innermost operator that was open when they were asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..kernel_names import is_matrix_op
from ..tables import BOOL, BYTES, COUNT, DURATION, FRACTION, TEXT, Column, Table
from .lookup import by_name
from .model import Trace
from .nesting import add_up, nearest

CPU = 0  # c10's number of the device type
UNATTRIBUTED = "[unattributed]"
SUMS = ("device_self_ns", "device_total_ns", "host_self_ns", "host_total_ns")
TENSOR_CORE_SUMS = ("tc_self_ns", "tc_total_ns", "known_self_ns", "known_total_ns")
MEMORY_SUMS = ("host_self_bytes", "host_total_bytes", "device_self_bytes", "device_total_bytes")


class OpName(Table):
    """One row is one operator; `[unattributed]` is device time that no recorded operator launched."""

    name = Column(TEXT, "Name of the operator.")


class OpShapes(Table):
    """One row is one combination of input shapes."""

    input_shapes = Column(TEXT, "Shapes of its inputs, one list per argument; missing if they weren't recorded.")


class OpCosts(Table):
    """One row is some calls of operators, and what they cost."""

    calls = Column(COUNT, "How often it was called; a call that only wraps a call of the same name counts once.")
    device_self_ns = Column(DURATION, "Device time of the kernels, copies and fills that it launched itself.")
    device_total_ns = Column(DURATION, "Device time that it and all operators inside it launched.")
    host_self_ns = Column(DURATION, "Host time in it, without the operators and runtime calls that it made directly.")
    host_total_ns = Column(DURATION, "Host time from its start to its end, summed over its calls.")
    tc_eligible = Column(BOOL, "Whether any call could use tensor cores: it, or something in it, multiplies matrices.")
    tc_self_frac = Column(
        FRACTION,
        "Share of its device self time in kernels known to use tensor cores, among those of which it is known.",
    )
    tc_total_frac = Column(
        FRACTION,
        "Share of its device total time in kernels known to use tensor cores, among those of which it is known.",
    )
    host_self_bytes = Column(BYTES, "Host memory that it took less what it released, without operators inside it.")
    host_total_bytes = Column(BYTES, "Host memory that it and the operators inside it took less what they released.")
    device_self_bytes = Column(BYTES, "Device memory that it took less what it released, without operators inside it.")
    device_total_bytes = Column(
        BYTES, "Device memory that it and the operators inside it took less what they released."
    )


def operator_table(trace: Trace, by: list[str]) -> pl.DataFrame:
    """Sum calls over groups; the largest device self time, then host self time, first.

    Columns: `by` as texts, then those of OpCosts; device time and memory are null unless they were recorded. Device
    time without an operator has a row of its own.
    """
    sums = pl.col(*SUMS, *TENSOR_CORE_SUMS, *MEMORY_SUMS).sum()
    groups = (
        _op_calls(trace).group_by(by).agg(pl.len().cast(pl.Int64).alias("calls"), pl.col("tc_eligible").any(), sums)
    )
    rows = groups.with_columns(
        pl.lit(None).cast(groups.schema[name]).alias(name) for name in _not_recorded(trace)
    ).select(
        *(pl.col(name).cast(pl.String) for name in by),
        "calls",
        *SUMS,
        "tc_eligible",
        *(_share(f"tc_{part}", f"known_{part}") for part in ("self", "total")),
        *MEMORY_SUMS,
    )
    lost = int(trace.device_events.filter(pl.col("op") < 0)["dur_ns"].sum())
    if lost:
        rest = {"name": UNATTRIBUTED, "device_self_ns": lost, "device_total_ns": lost}
        rows = pl.concat([rows, pl.DataFrame([rest])], how="diagonal")
    order = ["device_self_ns", "host_self_ns", *by]
    return rows.sort(order, descending=[True, True, *(False for _ in by)], nulls_last=True)


def _not_recorded(trace: Trace) -> list[str]:
    """The columns of which the recording knows nothing: a zero would say that nothing was spent."""
    has_device = not trace.device_events.is_empty()
    on_host = (trace.memory["device_type"] == CPU).any()
    on_device = (trace.memory["device_type"] != CPU).any()
    times = [] if has_device else ["tc_eligible", *(name for name in SUMS if name.startswith("device"))]
    host = [] if on_host else [name for name in MEMORY_SUMS if name.startswith("host")]
    device = [] if on_device else [name for name in MEMORY_SUMS if name.startswith("device")]
    return times + host + device


def _share(part: str, whole: str) -> pl.Expr:
    return pl.when(pl.col(f"{whole}_ns") > 0).then(pl.col(f"{part}_ns") / pl.col(f"{whole}_ns")).alias(f"{part}_frac")


def _op_calls(trace: Trace) -> pl.DataFrame:
    """One row per counted call: name, input_shapes, tc_eligible, SUMS, TENSOR_CORE_SUMS and MEMORY_SUMS."""
    host, device, memory = trace.host_events, trace.device_events, trace.memory
    parent = host["parent"].to_numpy()
    again = host["is_repeat"].to_numpy()
    caller = nearest(~again, parent)  # whose call it is
    work = _Sums(host.height, caller, parent)

    op, dur = device["op"].to_numpy(), device["dur_ns"].to_numpy()
    uses = (device["tensor_cores"] == "yes").to_numpy()
    known = (device["tensor_cores"] != "unknown").to_numpy()
    taken_by, size = memory["op"].to_numpy(), memory["bytes"].to_numpy()
    on_host = memory["device_type"].to_numpy() == CPU
    eligible = by_name(host["name"], is_matrix_op).astype(np.int64) + work.own(op, uses)
    columns: dict[str, Any] = {
        "tc_eligible": add_up(parent, eligible) > 0,
        "host_self_ns": work.moved(host["self_ns"].to_numpy()),
        "host_total_ns": host["dur_ns"],
        **work.both("device", "ns", op, dur),
        **work.both("tc", "ns", op, dur * uses),
        **work.both("known", "ns", op, dur * known),
        **work.both("host", "bytes", taken_by, size * on_host),
        **work.both("device", "bytes", taken_by, size * ~on_host),
    }
    is_call = (host["kind"] == "operator").to_numpy() & ~again
    return host.select("name", "input_shapes").with_columns(**columns).filter(pl.Series(is_call))


class _Sums:
    """Sums per host row, moved from repeats to the call that they belong to."""

    def __init__(self, rows: int, caller: NDArray[np.int32], parent: NDArray[np.int32]) -> None:
        self.rows, self.caller, self.parent = rows, caller, parent

    def own(self, row: NDArray[np.int32], value: NDArray[Any]) -> NDArray[np.int64]:
        """Sum of the values of each host row."""
        total = np.zeros(self.rows, np.int64)
        np.add.at(total, row[row >= 0], value[row >= 0])
        return total

    def moved(self, value: NDArray[np.int64]) -> NDArray[np.int64]:
        """Each row's value with those of its repeats."""
        return self.own(self.caller, value)

    def both(
        self, what: str, unit: str, row: NDArray[np.int32], value: NDArray[np.int64]
    ) -> dict[str, NDArray[np.int64]]:
        """`{what}_self_{unit}` and `{what}_total_{unit}`."""
        own = self.own(row, value)
        return {f"{what}_self_{unit}": self.moved(own), f"{what}_total_{unit}": add_up(self.parent, own)}
