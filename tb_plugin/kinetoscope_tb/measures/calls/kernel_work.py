"""The work behind kernels: which calls launched them, with which inputs, and how long they would take at the roof.

Kernels of one operator with the same inputs on one device are a group. The operator is the one that multiplies matrices
around the kernel (as in matrix_calls), else the innermost one. A group has the time of its kernels, and the time at the
roof if the device's limits and the shapes are known; otherwise the reason why not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, category_codes, gather, gather_column, map_categories, number_rows_alike, scatter_add
from ...names.calls import launches_graph
from ...names.kernel_kinds import kernel_kind
from ...names.regex import regex
from ...trace.model import Trace
from ...trace.row_filters import name_mask
from ..recording.options import reason_in_trace
from .matrix_calls import ARGUMENTS, matrix_call_of_host_rows
from .matrix_work import FORMULAS, UnknownWork, matrix_work
from .memory_work import NO_MODEL, memory_work
from .roofline import Limits, roof, why_impossible

FAMILIES = ("matmul", "convolution", "attention", "cast", "layout", "elementwise", "other")
NO_OPERATOR = "The operators that launched the kernels weren't recorded."
NO_CAPTURE = "Graphs replay the kernels, and no recording of their capture was found."
EMPTY = "Its inputs are empty."
COMMUNICATION = "It moves data between ranks: their links limit it, not a roof of the device."
_MATRICES = FAMILIES[:3]
_KINDS = ("elementwise", "layout")
_LEAST_SHARE = 1e-4  # of the kernel time: smaller groups aren't worth reading their shapes
_STRIDED = regex(r"(?<!vectorized_)(?<!unrolled_)elementwise_kernel")
"""PyTorch's kernel for tensors that aren't contiguous in the same order; others run a vectorized or unrolled one."""


@dataclass(frozen=True)
class Group:
    """Kernels of one operator with the same inputs on one device.

    Args:
        name: The operator; empty: unknown.
        shapes: Of its inputs, as in the trace; null if they weren't recorded.
        types: Of its inputs, as in the trace; null if they weren't recorded.
        values: Of its inputs that are no tensors, as in the trace; null if they weren't recorded.
        device: Its number.
        family: One of FAMILIES.
        calls: How often the operator ran; of an unknown one, how many kernels there are.
        kernels: How many kernels there are.
        time_ns: The sum of the kernels' durations.
        kernel: The name of the kernel that took most of it.
        blocks_per_sm: Of that kernel; NaN: not recorded.
        occupancy: Of that kernel; NaN: not recorded.
        grid: Of that kernel, as in the trace; None: not recorded.
        elementwise_ns: Of the time, that in kernels for elementwise work.
        layout_ns: Of the time, that in kernels that only change the memory layout.
        no_matrix_ns: Of the time, that in kernels that are known to multiply no matrices.
        roof_ns: The time of all calls at the roof; None: unknown.
        bound_by: compute or memory; None: unknown.
        number_format: Of the inputs, such as bf16; None: unknown.
        flop_per_s: The device's rate in that format; None for work that is memory's alone.
        peak_flop_per_s: The vendor's peak in that format; None: unknown.
        bytes_per_s: The device's bandwidth; None: unknown.
        work_flop: FLOPs of one call, even where the roof is unknown; None: unknown, as for work that is memory's alone.
        work_bytes: The minimum that one call reads and writes; None: unknown.
        reason: Why the roof is unknown.
    """

    name: str
    shapes: str | None
    types: str | None
    values: str | None
    device: int
    family: str
    calls: int
    kernels: int
    time_ns: int
    kernel: str
    blocks_per_sm: float
    occupancy: float
    grid: str | None
    elementwise_ns: int = 0
    layout_ns: int = 0
    no_matrix_ns: int = 0
    roof_ns: float | None = None
    bound_by: str | None = None
    number_format: str | None = None
    flop_per_s: float | None = None
    peak_flop_per_s: float | None = None
    bytes_per_s: float | None = None
    work_flop: int | None = None
    work_bytes: int | None = None
    reason: str = ""

    @property
    def call_ns(self) -> float:
        """The mean time of a call."""
        return self.time_ns / self.calls

    @property
    def roof_frac(self) -> float | None:
        """The time at the roof as a share of the time; None: unknown."""
        return None if self.roof_ns is None or not self.time_ns else self.roof_ns / self.time_ns


KERNEL_COLUMNS = (
    *("name", "kind", "device", "stream", "start_ns", "dur_ns", "launch", "op"),
    *("is_communication", "tensor_cores", "blocks_per_sm", "occupancy_frac", "grid"),
)
"""The columns of device events that are looked at to judge kernels."""


@dataclass(frozen=True)
class KernelWork:
    """The groups of kernels.

    Args:
        group: Of each kernel, its number in `groups`.
        groups: The groups, the longest first.
        limits: Of each device.
    """

    group: NDArray[np.int64]
    groups: tuple[Group, ...]
    limits: dict[int, Limits]

    @classmethod
    def of(cls, trace: Trace, kernels: pl.DataFrame) -> KernelWork:
        """The work behind some kernels of a trace, of which `kernels` has KERNEL_COLUMNS."""
        unit = _units(trace, kernels)
        number, kinds = _kinds(trace, kernels, unit)
        keys = ["unit_name", *ARGUMENTS[1:], "device", "family"]
        total = max(int(kernels["dur_ns"].sum()), 1)
        longest = pl.col("of_name_ns").arg_max()
        sums = (
            kinds.with_columns(of_name_ns=pl.col("time_ns").sum().over(*keys, "name"))
            .group_by(keys)
            .agg(
                pl.col("number"),
                pl.col("kernels", "time_ns").sum(),
                pl.col("time_ns").filter(pl.col("tensor_cores") == "yes").sum().alias("tensor_ns"),
                pl.col("time_ns").filter(pl.col("tensor_cores") == "unknown").sum().alias("unknown_ns"),
                pl.col("time_ns").filter(_multiplies_no_matrices()).sum().alias("no_matrix_ns"),
                pl.col("is_communication", "is_replayed").all(),
                *(pl.col("time_ns").filter(pl.col("kind") == kind).sum().alias(f"{kind}_ns") for kind in _KINDS),
                *(pl.col(name).get(longest) for name in ("name", "blocks_per_sm", "occupancy_frac", "grid")),
            )
            .with_columns(
                pl.col("unit_name").cast(pl.String).fill_null(""),
                pl.col(*ARGUMENTS[1:], "name", "grid").cast(pl.String),
            )
            .sort("time_ns", *keys, descending=[True, *(False for _ in keys)])
        )
        group_of_kind = np.empty(kinds.height, np.int64)
        group_of_kind[sums["number"].explode().to_numpy() if sums.height else []] = np.repeat(
            np.arange(sums.height), sums["number"].list.len().to_numpy()
        )
        group = group_of_kind[number]
        sums = sums.drop("number").with_columns(units=_count_units(unit, group, sums.height))
        limits = Limits.of(trace)
        units = (_group(row, limits, least=_LEAST_SHARE * total) for row in sums.rows(named=True))
        groups = tuple(replace(unit, reason=reason_in_trace(trace, unit.reason)) for unit in units)
        return cls(group, groups, limits)


def _units(trace: Trace, kernels: pl.DataFrame) -> NDArray[np.int32]:
    """The call that each kernel counts for: a row of all_host_events, or NONE."""
    op = kernels["op"].to_numpy()
    call = gather(matrix_call_of_host_rows(trace), op)
    return np.where(call >= 0, call, op)


def _kinds(trace: Trace, kernels: pl.DataFrame, unit: NDArray[np.int32]) -> tuple[NDArray[np.int32], pl.DataFrame]:
    """(the number of each kernel's kind, the kinds): they differ in nothing that tells groups or their times apart.

    Of each kind: its `number`, what its kernels have in common, `time_ns` and how many `kernels` it has; and
    `blocks_per_sm`, `occupancy_frac` and `grid` of its first one.
    """
    host = trace.all_host_events
    replays = map_categories(trace.launches["name"], launches_graph).astype(bool)
    is_replayed = gather(replays, kernels["launch"].to_numpy(), missing=False)
    common = (
        *(category_codes(kernels[name]) for name in ("name", "tensor_cores")),
        *(kernels[name].to_numpy() for name in ("device", "is_communication")),
        is_replayed,
    )
    arguments = [category_codes(gather_column(host[name], unit)) for name in ARGUMENTS]
    converts = _converts(host, unit) & (arguments[ARGUMENTS.index("input_types")] == NONE)
    first, number = number_rows_alike((*common, *arguments, converts))
    columns = ("name", "is_communication", "tensor_cores", "blocks_per_sm", "occupancy_frac", "grid", "device")
    kinds = kernels.select(columns)[first]
    kinds = kinds.with_columns(
        pl.col("device").cast(pl.Int64),
        unit_name=gather_column(host["name"], unit[first]),
        **{name: gather_column(host[name], unit[first]) for name in ARGUMENTS[1:]},
        number=pl.int_range(pl.len()),
        is_replayed=pl.Series(is_replayed[first], dtype=pl.Boolean),
        time_ns=scatter_add(number, kernels["dur_ns"].to_numpy(), first.size),
        kernels=np.bincount(number, minlength=first.size),
        kind=pl.Series(map_categories(kinds["name"], kernel_kind, missing="other"), dtype=pl.String),
        is_strided=pl.Series(map_categories(kinds["name"], lambda name: bool(_STRIDED.search(name))), dtype=pl.Boolean),
        converts=pl.Series(converts[first], dtype=pl.Boolean),
    )
    as_texts = kinds.with_columns(
        pl.col("unit_name").cast(pl.String).fill_null(""), pl.col("input_types").cast(pl.String)
    )
    return number, kinds.with_columns(family=as_texts.select(_family()).to_series())


def _converts(host: pl.DataFrame, unit: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which calls copy for `aten::_to_copy`: to another number format, unless their kernel reorders what it copies."""
    around = gather(host["parent"].to_numpy(), unit)
    return gather(name_mask(host["name"], lambda name: name == "aten::_to_copy"), around, missing=False)


def _count_units(unit: NDArray[np.int32], group: NDArray[np.int64], groups: int) -> NDArray[np.int64]:
    """How many calls each group has; kernels of one call may be in several."""
    with_call = np.flatnonzero(unit != NONE)
    unit, group = unit[with_call], group[with_call]
    group_of_unit = np.full(int(unit.max(initial=NONE)) + 1, NONE, np.int32)
    group_of_unit[unit] = group
    is_other = group_of_unit[unit] != group
    others, _ = number_rows_alike((unit[is_other], group[is_other]))
    return np.bincount(
        np.concatenate([group_of_unit[group_of_unit != NONE], group[is_other][others]]), minlength=groups
    )


def _multiplies_no_matrices() -> pl.Expr:
    """Which kernels are known to multiply none: by their own names, whatever operator launched them."""
    return ~pl.col("kind").is_in(list(_MATRICES)) & (pl.col("tensor_cores") == "no")


def _family() -> pl.Expr:
    """The family of a kernel: by the operator that multiplies matrices, else by its own name."""
    unit, kind = pl.col("unit_name"), pl.col("kind")
    types = pl.col("input_types").str.extract_groups(r'^\["(?P<to>[^"]+)", ?"(?P<from>[^"]+)"').struct
    is_copy = unit == "aten::copy_"
    is_matrix = unit.is_in(list(FORMULAS))
    return (
        pl.when(is_matrix & unit.str.contains("convolution"))
        .then(pl.lit("convolution"))
        .when(is_matrix & unit.str.contains("attention"))
        .then(pl.lit("attention"))
        .when(is_matrix)
        .then(pl.lit("matmul"))
        .when(kind == "layout")
        .then(pl.lit("layout"))
        .when(is_copy & ((types.field("to") != types.field("from")) | (pl.col("converts") & ~pl.col("is_strided"))))
        .then(pl.lit("cast"))
        .when(is_copy & (types.field("to") == types.field("from")) & pl.col("is_strided"))
        .then(pl.lit("layout"))
        .otherwise(kind)
    )


def _group(row: dict[str, Any], limits: dict[int, Limits], *, least: float) -> Group:
    group = {
        "name": row["unit_name"],
        "shapes": row["input_shapes"],
        "types": row["input_types"],
        "values": row["concrete_inputs"],
        "device": row["device"],
        "family": row["family"],
        "calls": row["units"] or row["kernels"],
        "kernels": row["kernels"],
        "time_ns": row["time_ns"],
        "kernel": row["name"],
        "blocks_per_sm": row["blocks_per_sm"],
        "occupancy": row["occupancy_frac"],
        "grid": row["grid"],
        **{f"{kind}_ns": row[f"{kind}_ns"] for kind in (*_KINDS, "no_matrix")},
    }
    if row["is_communication"]:
        return Group(**group, reason=COMMUNICATION)
    if not row["unit_name"]:
        return Group(**group, reason=NO_CAPTURE if row["is_replayed"] else NO_OPERATOR)
    if row["time_ns"] < least:
        return Group(**group, reason="Too short to matter.")
    try:
        at_roof = _at_roof(row, limits[row["device"]])
        if "reason" in at_roof:
            return Group(**group, **at_roof)
        if not at_roof["roof_ns"]:
            return Group(**group, reason=EMPTY)
        share = at_roof["roof_ns"] / max(row["time_ns"], 1)
        if impossible := why_impossible(share, at_roof["bound_by"], at_roof["work_bytes"]):
            return Group(**group, reason=impossible)
        return Group(**group, **at_roof)
    except UnknownWork as error:
        return Group(**group, reason=str(error))


def _at_roof(row: dict[str, Any], limits: Limits) -> dict[str, Any]:
    """The roof of a group, or of a matmul whose roof is unknown the work alone, and the reason.

    Raises:
        UnknownWork: Neither is known; the message says why.
    """
    name, calls = row["unit_name"], row["units"]
    inputs = (row["input_shapes"], row["input_types"])
    if name not in FORMULAS:
        if row["family"] in _MATRICES:  # its kernel multiplies matrices, whatever the operator is called
            raise UnknownWork(NO_MODEL)
        moved_bytes = memory_work(name, *inputs, row["name"])
        if limits.peaks is None:
            raise UnknownWork(limits.reason)
        bandwidth = limits.peaks.bandwidth
        roof_ns = calls * moved_bytes / bandwidth * 1e9
        return {"roof_ns": roof_ns, "bound_by": "memory", "bytes_per_s": bandwidth, "work_bytes": moved_bytes}
    work = matrix_work(name, *inputs, row["concrete_inputs"])
    if work.dtype is None:
        raise UnknownWork("Its number format has no known size.")
    of_call = {"number_format": work.dtype, "work_flop": work.flop, "work_bytes": work.moved_bytes}
    if limits.peaks is None:
        return {**of_call, "reason": limits.reason}
    limit = roof(limits.peaks, work, uses_tensor_cores=row["tensor_ns"] > 0, is_unit_unknown=row["unknown_ns"] > 0)
    if limit.ns is None:
        return {**of_call, "reason": limit.reason or "The number format of its output isn't recorded."}
    return {
        **of_call,
        "roof_ns": calls * limit.ns,
        "bound_by": limit.bound_by,
        "number_format": limit.number_format or work.dtype,
        "flop_per_s": limit.flop_per_s,
        "peak_flop_per_s": limit.peak_flop_per_s,
        "bytes_per_s": limit.bytes_per_s,
    }
