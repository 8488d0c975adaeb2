"""Kernels by launching operator and launch properties."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from ...measures.calls.kernel_calls import KernelCosts, kernel_table
from ...measures.calls.op_calls import PROVENANCE
from ...measures.graphs.attribution import provenance
from ...measures.recording.contents import has_kernels
from ...pictures import Bars
from ...table import BYTES, COUNT, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key, has_op, rows_where, values_at
from ...view import Slices, Tab, View


class _Launcher(Table):
    """Kernels with their operators and launch sizes."""

    name = Column(TEXT, "Symbol of the kernel as the driver gives it.")
    op = Column(TEXT, "Innermost operator that was open when the kernel was launched; missing if none is known.")
    grid = Column(TEXT, "Blocks per grid in x, y and z.")
    block = Column(TEXT, "Threads per block in x, y and z.")


class _Properties(Table):
    """What each launch needs of a multiprocessor."""

    registers_per_thread = Column(COUNT, "Registers that each thread uses.")
    shared_memory_bytes = Column(BYTES, "Shared memory that each block uses.")
    occupancy_limiter = Column(TEXT, "What limits the blocks per multiprocessor; torch 2.12 and later record it.")
    provenance = Column(TEXT, PROVENANCE)


class KernelsByOp(_Properties, KernelCosts, _Launcher):
    """Which kernels use the GPU's time, by launching operator and launch properties."""

    key, weight = ("name", "op", "grid", "block", "registers_per_thread", "shared_memory_bytes"), "total_ns"
    picture = Bars(("total_ns",))


def kernels_by_op(trace: Trace) -> pl.DataFrame:
    """Kernels, operators and properties by total time, the longest first."""
    trace = replace(trace, device_events=trace.device_events.with_columns(provenance(trace)))
    op = trace.device_events.select("kind", "op").filter(pl.col("kind") == "kernel")["op"]
    launched_by = pl.lit(trace.all_host_events["name"].gather(op.replace(-1, None)).alias("op"))
    launch_sizes = [
        pl.when(pl.col(n) >= 0).then(pl.col(n)).cast(pl.Int64).alias(n)
        for n in ("registers_per_thread", "shared_memory_bytes")
    ]
    texts = [pl.col(n) for n in ("grid", "block")]
    rows = kernel_table(
        trace, [pl.col("name"), launched_by, *texts, *launch_sizes], ("occupancy_limiter", "provenance")
    )
    return KernelsByOp.of(rows.select(KernelsByOp.schema().names()))


def events_of_row(trace: Trace, key: Key) -> Events:
    """The kernel's executions with this operator and these launch properties."""
    own = {name: value for name, value in key.items() if name != "op"}
    rows = rows_where(trace.device_events, kind="kernel", **own)
    return {"device_events": rows[has_op(trace, trace.device_events[rows], key["op"])]}


def row_of(trace: Trace, frame: str, row: int) -> Key | None:
    """The operator and the launch properties of a kernel."""
    if frame != "device_events" or trace.device_events["kind"][row] != "kernel":
        return None
    op = trace.device_events["op"][row]
    own = (name for name in KernelsByOp.key if name != "op")
    return {"op": trace.all_host_events["name"][op] if op >= 0 else None, **values_at(trace.device_events, row, *own)}


VIEW = View(
    kernels_by_op,
    table=KernelsByOp,
    title="Kernels by operator",
    entry="Kernels",
    place=Tab("By launcher"),
    needs=has_kernels,
    hint="No kernels were recorded. Pass ProfilerActivity.CUDA among the activities, on a machine with a GPU.",
    slices=Slices(events_of_row, row_of, category="Kernel"),
    reads_captures=True,
)
