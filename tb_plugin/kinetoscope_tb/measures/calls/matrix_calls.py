"""Calls of operators with known FLOPs, by inputs, with their times.

A call inside another such call isn't counted by itself: a convolution may run as a matmul. But of nested calls with the
same name the innermost counts: under autocast only it has the types of the actual work. Work of other operators inside
a call counts for it.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ...arrays.gather import NONE, gather
from ...arrays.native import Function
from ...arrays.nesting import nearest
from ...trace.model import Trace
from ...trace.row_filters import is_operator_of_all, name_mask
from ..graphs.attribution import provenance_of_calls
from .matrix_work import FORMULAS

_inherit = Function("inherit")

ARGUMENTS = ("name", "input_shapes", "input_types", "concrete_inputs")


def matrix_calls(trace: Trace) -> pl.DataFrame:
    """Return one row per operator, inputs and device.

    Columns: those of ARGUMENTS as texts; device (null: it launched no recorded work), calls, time_ns (device time of
    all that it launched; host time if the whole trace has no devices), tensor_ns and unknown_ns (device time in kernels
    that use tensor cores, and in kernels for which that is unknown), provenance (of the calls; null without a device).
    """
    return (
        each_matrix_call(trace)
        .group_by(*ARGUMENTS, "device")
        .agg(
            pl.len().cast(pl.Int64).alias("calls"),
            pl.col("time_ns", "tensor_ns", "unknown_ns").sum().cast(pl.Int64),
            pl.col("provenance")
            .cast(pl.String)
            .filter(pl.col("device").is_not_null())
            .unique()
            .sort(descending=True)
            .str.join(", ")
            .replace("", None),
        )
        .with_columns(pl.col(ARGUMENTS).cast(pl.String), pl.col("device").cast(pl.Int64))
    )


def each_matrix_call(trace: Trace) -> pl.DataFrame:
    """Return one row per call with its `row` in all_host_events; other columns as above."""
    host, device = trace.all_host_events, trace.device_events
    rows = _rows(trace)
    calls = host.select(*ARGUMENTS)[rows].with_columns(row=pl.Series(rows), provenance=provenance_of_calls(trace)[rows])
    if device.is_empty():
        calls = calls.with_columns(host["dur_ns"].gather(rows).alias("time_ns"), device=None, tensor_ns=0, unknown_ns=0)
    else:
        number = np.full(host.height, NONE, np.int32)
        number[rows] = np.arange(rows.size, dtype=np.int32)
        calls = calls.hstack(_device_times(device, gather(number, _call_of(trace, rows)), rows.size))
    return calls


def matrix_call_of_host_rows(trace: Trace) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Of each of all_host_events, the call (a row of these) that its work counts for, or NONE."""
    return _call_of(trace, _rows(trace))


def _rows(trace: Trace) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    host = trace.all_host_events
    is_matrix_op = name_mask(host["name"], lambda name: name in FORMULAS)
    is_matrix_op &= is_operator_of_all(trace)
    return _rows_to_count(is_matrix_op, host["parent"].to_numpy(), host["name"].to_physical().fill_null(0).to_numpy())


def _call_of(
    trace: Trace, rows: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    is_call = np.zeros(trace.all_host_events.height, bool)
    is_call[rows] = True
    return nearest(is_call, trace.all_host_events["parent"].to_numpy())


def _rows_to_count(
    is_matrix_op: np.ndarray[tuple[int], np.dtype[np.bool_]],
    parent: np.ndarray[tuple[int], np.dtype[np.int32]],
    name: np.ndarray[tuple[int], np.dtype[np.uint32]],
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The rows that count: not inside a matrix operator of another name, and not around one of the same name."""
    rows = np.flatnonzero(is_matrix_op)
    above = gather(nearest(is_matrix_op, parent), parent)[rows]
    has_outer = above >= 0
    is_same = np.zeros(rows.size, bool)
    is_same[has_outer] = name[above[has_outer]] == name[rows[has_outer]]
    is_inside = np.zeros(parent.size, bool)
    is_inside[rows] = has_outer & ~is_same
    same, outer = rows[is_same], above[is_same]
    _inherit(is_inside, same, outer)
    is_around = np.zeros(parent.size, bool)
    is_around[outer] = True
    return rows[~is_inside[rows] & ~is_around[rows]]


def _device_times(
    device: pl.DataFrame, call_of: np.ndarray[tuple[int], np.dtype[np.int32]], calls: int
) -> pl.DataFrame:
    """Device and times of each call; `call_of`: of each host row, the call that it counts for."""
    call = gather(call_of, device["op"].to_numpy())
    mine = np.flatnonzero(call >= 0)
    dur, answer = device["dur_ns"].to_numpy(), device["tensor_cores"]
    where = {"time_ns": True, "tensor_ns": (answer == "yes").to_numpy(), "unknown_ns": (answer == "unknown").to_numpy()}
    times = {name: np.zeros(calls, np.int64) for name in where}
    for name, counts in where.items():
        np.add.at(times[name], call[mine], (dur * counts)[mine])
    on = np.full(calls, NONE, np.int64)
    on[call[mine]] = device["device"].to_numpy()[mine]
    return pl.DataFrame({"device": pl.Series(on).replace(NONE, None), **times})
