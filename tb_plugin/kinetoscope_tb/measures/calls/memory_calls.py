"""Calls of operators whose limit is the memory's bandwidth, by inputs, with the kernels that they launched.

These are elementwise operators, normalization, softmax, reductions and others that do no matrix work and whose bytes
their inputs determine (memory_work), on devices with a known bandwidth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather
from ...trace.model import Trace
from ..graphs.attribution import provenance_of_calls
from .kernel_work import KernelWork
from .matrix_calls import ARGUMENTS, matrix_call_of_host_rows


@dataclass(frozen=True)
class MemoryCalls:
    """The kernels that count for no call with known FLOPs, and what is known of their work.

    Args:
        kernels: The kernels, with their `row` in device_events.
        call: Of each kernel, its row in `table`; -1: its work is unknown.
        reason: Of each kernel, why that is so; empty: it isn't.
        table: One row per operator, inputs and device: ARGUMENTS as texts, device, calls, time_ns, work_bytes of a
            call, bytes_per_s of the device, roof_ns of all calls, provenance.
    """

    kernels: pl.DataFrame
    call: NDArray[np.int64]
    reason: pl.Series
    table: pl.DataFrame

    @classmethod
    def of(cls, trace: Trace) -> MemoryCalls:
        """The kernels of a trace."""
        of_matrix_call = gather(matrix_call_of_host_rows(trace), trace.device_events["op"].to_numpy())
        is_other = (pl.col("kind") == "kernel") & pl.Series(of_matrix_call < 0)
        kernels = trace.device_events.with_row_index("row").filter(is_other)
        work = KernelWork.of(trace, kernels)
        keys = [*ARGUMENTS, "device"]
        groups = _known_groups(work)
        # an operator may run kernels of several families: its bytes count once
        table = groups.group_by(keys, maintain_order=True).agg(
            pl.col("number"), pl.col("calls", "roof_ns").max(), pl.col("work_bytes", "bytes_per_s").first()
        )
        row_of_group = np.full(len(work.groups), NONE, np.int64)
        row_of_group[table["number"].explode().to_numpy() if table.height else []] = np.repeat(
            np.arange(table.height), table["number"].list.len().to_numpy()
        )
        call = row_of_group[work.group]
        reason = pl.Series([group.reason for group in work.groups], dtype=pl.String).gather(work.group)
        table = table.drop("number").hstack(_times_of_calls(trace, kernels, call, table.height))
        return cls(kernels, call, reason, table)


def _known_groups(work: KernelWork) -> pl.DataFrame:
    """The groups whose only limit is memory, with their numbers."""
    integers, floats = ("number", "device", "calls", "work_bytes"), ("bytes_per_s", "roof_ns")
    schema: dict[str, type[pl.DataType]] = dict.fromkeys(ARGUMENTS, pl.String)
    schema |= {**dict.fromkeys(integers, pl.Int64), **dict.fromkeys(floats, pl.Float64)}
    rows = [
        {
            **dict(zip(ARGUMENTS, (group.name, group.shapes, group.types, group.values), strict=True)),
            **{name: getattr(group, name) for name in (*integers[1:], *floats)},
            "number": number,
        }
        for number, group in enumerate(work.groups)
        if group.roof_ns is not None and group.work_flop is None
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")


def _times_of_calls(trace: Trace, kernels: pl.DataFrame, call: NDArray[np.int64], count: int) -> pl.DataFrame:
    """The time of the kernels of each call, and how its operators are known."""
    rows = pl.DataFrame({"call": call, "time_ns": kernels["dur_ns"], "op": kernels["op"]}).filter(pl.col("call") >= 0)
    times = (
        rows.with_columns(provenance=provenance_of_calls(trace).gather(rows["op"]).cast(pl.String))
        .group_by("call")
        .agg(pl.col("time_ns").sum(), pl.col("provenance").unique().sort(descending=True).str.join(", "))
    )
    whole = pl.DataFrame({"call": np.arange(count)}).join(times, "call", "left", maintain_order="left")
    return whole.select("time_ns", "provenance")
