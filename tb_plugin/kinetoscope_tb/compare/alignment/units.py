"""The device work of a step as a sequence of units, with signatures that another device or compiler doesn't change.

A unit is a row of device_events: a kernel, a copy or a fill. Its signature says what work it is: its family, the
operator, the FLOPs, the size of the largest tensor; of communication the collective and its bytes. Names of kernels
aren't part of it: another library names the same work differently; but where Inductor wrote a kernel, the operators
that it says it fused are. Where the operator isn't known, as in a graph
without its capture, the family by the kernel's name and the duration are all there is.

Units are in the order in which they were launched, so streams that run by turns in another way don't change it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather, map_categories, texts
from ...measures.calls.kernel_work import KERNEL_COLUMNS, Group, KernelWork
from ...measures.calls.matrix_calls import matrix_call_of_host_rows
from ...measures.calls.matrix_work import FORMULAS, UnknownWork, matrix_work, parse_list
from ...names.calls import launches_graph
from ...names.collectives import element_bytes, kind_of, message_bytes
from ...names.compiled_code import is_compiled_graph, is_compiled_region
from ...names.kernel_labels.pytorch import fused_operators
from ...names.kernels import operator_of
from ...trace.model import Trace
from .pairs import Rows

UNKNOWN = -1
SIGNATURE = {
    "family": pl.String,  # of FAMILIES in measures/calls/kernel_work.py, or communication, copy, fill
    "operator": pl.String,  # without its overload, or the kind of a collective; empty: unknown
    "flop": pl.Int64,  # of the call; UNKNOWN
    "size": pl.Int64,  # elements of its largest tensor; bytes of a copy, a fill or a message; UNKNOWN
    "is_helper": pl.Boolean,  # a shorter kernel of a call that launched several
    "fused": pl.String,  # operators that the compiler says it fused, joined by +
    "duration_class": pl.Int64,  # where the operator is unknown: its duration, a few classes per doubling; else 0
}
_CLASSES_PER_DOUBLING = 3
_SYNONYMS = {"to_copy": "copy", "clone": "copy", "stack": "cat"}
_TRANSFERS = {"memcpy": "copy", "memset": "fill"}


@dataclass(frozen=True)
class Units:
    """Units in order.

    Args:
        rows: Their rows of device_events.
        codes: Their signatures: rows of `signatures`.
        signatures: SIGNATURE, each row once.
        typical_ns: Of each signature, the median of the durations of its units.
    """

    rows: Rows
    codes: Rows
    signatures: pl.DataFrame
    typical_ns: NDArray[np.float64]


def units(trace: Trace, rows: Rows) -> Units:
    """The units that some rows of device_events are."""
    rows = _in_order_of_launch(trace, rows)
    signatures = _signatures(trace, rows)
    distinct = signatures.unique(maintain_order=True).with_row_index("code")
    codes = signatures.join(distinct, on=list(SIGNATURE), maintain_order="left")["code"].cast(pl.Int64)
    durations = pl.DataFrame({"code": codes, "ns": trace.device_events["dur_ns"].gather(rows)})
    typical = durations.group_by("code").agg(pl.col("ns").median()).sort("code")["ns"]
    return Units(rows, codes.to_numpy(), distinct.drop("code"), typical.cast(pl.Float64).to_numpy())


def _in_order_of_launch(trace: Trace, rows: Rows) -> Rows:
    """The rows by the start of their launch, then by their own; by their own alone if a launch isn't known."""
    start, launch = (trace.device_events[name].to_numpy()[rows] for name in ("start_ns", "launch"))
    launch_start = gather(trace.launches["start_ns"].to_numpy(), launch) if (launch != NONE).all() else start
    return rows[np.lexsort((start, launch_start))]


def _signatures(trace: Trace, rows: Rows) -> pl.DataFrame:
    """SIGNATURE of device rows."""
    device = trace.device_events[rows].with_row_index("index")
    is_message = pl.col("is_communication")
    parts = [
        _of_kernels(trace, device.filter((pl.col("kind") == "kernel") & ~is_message)),
        _of_transfers(device.filter((pl.col("kind") != "kernel") & ~is_message)),
        _of_messages(trace, rows, device.filter(is_message)),
    ]
    return pl.concat(parts).sort("index").select(list(SIGNATURE))


def _of_kernels(trace: Trace, kernels: pl.DataFrame) -> pl.DataFrame:
    work = KernelWork.of(trace, kernels.select(KERNEL_COLUMNS))
    descriptions = pl.DataFrame(
        [_description(group) for group in work.groups],
        schema={name: SIGNATURE[name] for name in ("family", "operator", "flop", "size")},
        orient="row",
    )
    is_unknown = pl.Series(_without_operator(trace, kernels, work), dtype=pl.Boolean)
    duration = (_CLASSES_PER_DOUBLING * kernels["dur_ns"].clip(lower_bound=1).log(2)).round().cast(pl.Int64)
    return pl.concat(
        [
            kernels.select("index"),
            descriptions[work.group],
            pl.DataFrame({"is_helper": _are_helpers(trace, kernels)}, schema={"is_helper": pl.Boolean}),
            _operators_of_compiler(kernels["name"]).to_frame("fused"),
            duration.alias("duration_class").to_frame(),
        ],
        how="horizontal",
    ).with_columns(
        operator=pl.when(is_unknown).then(pl.lit("")).otherwise("operator"),
        flop=pl.when(is_unknown).then(UNKNOWN).otherwise("flop"),
        size=pl.when(is_unknown).then(UNKNOWN).otherwise("size"),
        is_helper=pl.col("is_helper") & ~is_unknown,
        duration_class=pl.when(is_unknown).then("duration_class").otherwise(0),
    )


def _operators_of_compiler(names: pl.Series) -> pl.Series:
    """The operators that the compiler says it fused in kernels of these names."""
    distinct = names.unique().cast(pl.String)
    operators = {name: "+".join(sorted({base_operator(part) for part in fused_operators(name)})) for name in distinct}
    return names.cast(pl.String).replace_strict(operators, return_dtype=pl.String)


def base_operator(name: str) -> str:
    """An operator by what it computes: add for aten::add_; copy for each that copies or casts."""
    base = name.removeprefix("aten::").strip("_")
    return _SYNONYMS.get(base, base)


def _without_operator(trace: Trace, kernels: pl.DataFrame, work: KernelWork) -> NDArray[np.bool_]:
    """Whether nothing says which operator a kernel is of: at most the compiled region or the graph that it runs in."""
    names = [group.name for group in work.groups]
    is_region = np.array([not name or is_compiled_region(name) or is_compiled_graph(name) for name in names], bool)
    launches_graphs = map_categories(trace.launches["name"], launches_graph).astype(bool)
    is_replayed = gather(launches_graphs, kernels["launch"].to_numpy(), missing=False)
    is_joined = kernels["op"].to_numpy() >= trace.host_events.height
    return is_region[work.group] | (is_replayed & ~is_joined)


def _description(group: Group) -> tuple[str, str, int, int]:
    """Family, operator, FLOPs and size of a group of kernels."""
    try:
        sizes = [math.prod(shape) for shape in _shapes(parse_list(group.shapes))]
    except UnknownWork:
        sizes = []
    return group.family, operator_of(group.name), _flop(group), max(sizes, default=UNKNOWN)


def _shapes(values: list[Any]) -> Iterator[list[int]]:
    """The shapes of the tensors among the inputs of a call, and of those in its lists."""
    for value in values:
        if isinstance(value, list) and value:
            if all(isinstance(size, int) and 0 <= size < 1 << 40 for size in value):
                yield value[:8]
            else:
                yield from _shapes(value)


def _flop(group: Group) -> int:
    if group.name not in FORMULAS:
        return UNKNOWN
    try:
        return matrix_work(group.name, group.shapes, group.types, group.values).flop
    except UnknownWork:
        return UNKNOWN


def _are_helpers(trace: Trace, kernels: pl.DataFrame) -> pl.Series:
    """Whether the call that launched each kernel also launched a longer one."""
    op = kernels["op"].to_numpy()
    call = gather(matrix_call_of_host_rows(trace), op)
    kernels_of_calls = pl.DataFrame({"call": np.where(call >= 0, call, op), "ns": kernels["dur_ns"]})
    is_longest = pl.int_range(pl.len()).over("call") == pl.col("ns").arg_max().over("call")
    return kernels_of_calls.select((pl.col("call") >= 0) & ~is_longest).to_series()


def _of_transfers(transfers: pl.DataFrame) -> pl.DataFrame:
    kind = pl.col("kind").cast(pl.String)
    return transfers.select(
        "index",
        family=kind.replace_strict(_TRANSFERS, default="copy", return_dtype=pl.String),
        operator=kind,
        flop=pl.lit(UNKNOWN, pl.Int64),
        size=pl.col("bytes"),
        is_helper=pl.lit(value=False),
        fused=pl.lit(""),
        duration_class=pl.lit(0, pl.Int64),
    )


def _of_messages(trace: Trace, rows: Rows, messages: pl.DataFrame) -> pl.DataFrame:
    calls = _collective_of(trace, rows[messages["index"].to_numpy()])
    name = texts(trace.collectives["name"], calls)
    kinds = pl.coalesce(messages["collective"].cast(pl.String), name, messages["name"].cast(pl.String))
    names = messages.select(name=kinds)["name"].to_list()
    size = [_message_bytes(kind_of(text), call) for text, call in zip(names, _rows_of(trace, calls), strict=True)]
    return messages.select(
        "index",
        family=pl.lit("communication"),
        operator=pl.Series([kind_of(text) for text in names], dtype=pl.String),
        flop=pl.lit(UNKNOWN, pl.Int64),
        size=pl.Series(size, dtype=pl.Int64),
        is_helper=pl.lit(value=False),
        fused=pl.lit(""),
        duration_class=pl.lit(0, pl.Int64),
    )


def _collective_of(trace: Trace, rows: Rows) -> NDArray[np.int32]:
    """The row of `collectives` that describes each device row, by itself or by its operator; NONE: none does."""
    of_device, of_host = (
        _inverse(trace.collectives[name].to_numpy(), size)
        for name, size in (("device_event", trace.device_events.height), ("host_event", trace.all_host_events.height))
    )
    op = trace.device_events["op"].to_numpy()[rows]
    own = of_device[rows]
    return np.where(own >= 0, own, gather(of_host, op))


def _inverse(rows: NDArray[np.int32], size: int) -> NDArray[np.int32]:
    """For each of `size` rows the index where it occurs among `rows`, or NONE."""
    indices = np.full(size, NONE, np.int32)
    is_known = rows >= 0
    indices[rows[is_known]] = np.flatnonzero(is_known)
    return indices


def _rows_of(trace: Trace, calls: NDArray[np.int32]) -> list[dict[str, Any] | None]:
    """The metadata of each call; None: unknown."""
    metadata = trace.collectives.select(pl.col("dtype").cast(pl.String), "in_elements", "out_elements")
    return [metadata.row(int(call), named=True) if call >= 0 else None for call in calls]


def _message_bytes(kind: str, call: dict[str, Any] | None) -> int:
    width = element_bytes(call["dtype"]) if call and call["dtype"] else None
    if call is None or width is None:
        return UNKNOWN
    return message_bytes(kind, width * call["in_elements"], width * call["out_elements"])
