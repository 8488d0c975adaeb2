"""Attention as separate operators: a softmax over scores that one matmul wrote and another one reads.

The scores of a softmax are its P elements, rows of queries × keys. The softmax is attention's if, on its thread, one of
the last operators that launched kernels was a matmul whose output is such scores, and one of the next is a matmul that
reads them; backward alike. The operators in between that work on P elements (scale, mask, cast, dropout) belong to it.
Fused attention (flash, memory-efficient, paged) has no such softmax.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, map_categories
from ...trace.model import Trace
from .matrix_work import DTYPES, product_sizes

_NEIGHBORS = 12  # operators with kernels on either side: scale, bias, mask, casts and dropout are about half as many
_SOFTMAX = (
    "aten::_softmax",
    "aten::_safe_softmax",
    "aten::_masked_softmax",
    "aten::_softmax_backward_data",
    "aten::_masked_softmax_backward",
)
_MOST_ELEMENTS = 2**50  # of a tensor: beyond it shapes are damage
_FALLBACK = "aten::_scaled_dot_product_attention_math"


class _Shape(NamedTuple):
    """What an operator does with scores, by its inputs.

    Args:
        is_softmax: Whether it is a softmax.
        is_product: Whether it is a matmul.
        size: Elements of its largest tensor.
        read: The scores that it may read: elements and the two last sizes, the larger first (they may be transposed),
            of its largest tensor; of a matmul, of its first operand.
        also_read: The same of a matmul's second operand.
        written: The scores that it may write, in the same form.
        flop: Of a matmul.
        other_bytes: Of a matmul: bytes of its operands and its output that aren't the largest of them.
    """

    is_softmax: bool = False
    is_product: bool = False
    size: int = 0
    read: str = ""
    also_read: str = ""
    written: str = ""
    flop: float = 0.0
    other_bytes: float = 0.0


@dataclass(frozen=True)
class UnfusedAttention:
    """Kernels of attention that isn't fused.

    Args:
        is_member: Of each kernel, whether it belongs to it.
        softmaxes: How many there are, backward ones included.
        flop: Of its matmuls.
        moved_bytes: What fused attention would read and write: queries, keys, values and output.
        number_format: Of the matmuls that took most time; None: unknown.
        scores: The shape of the largest softmax's input.
        is_fallback: Whether it ran inside scaled_dot_product_attention, as its math fallback.
        ops: The operators, rows of all_host_events.
    """

    is_member: NDArray[np.bool_]
    softmaxes: int
    flop: float
    moved_bytes: float
    number_format: str | None
    scores: tuple[int, ...]
    is_fallback: bool
    ops: NDArray[np.int64]


def unfused_attention(trace: Trace, kernels: pl.DataFrame) -> UnfusedAttention | None:
    """The attention among some kernels of a trace that isn't fused; None if there is none."""
    op = kernels["op"].to_numpy()
    if not map_categories(trace.all_host_events["name"].gather(op[op >= 0]), _SOFTMAX.__contains__).any():
        return None
    ops = _launching_ops(trace, kernels)
    keys = ["name", "input_shapes", "input_types"]
    distinct_inputs = ops.select(keys).unique()
    shapes = [_describe(*row) for row in distinct_inputs.rows()]
    columns = [pl.Series(field, [getattr(shape, field) for shape in shapes]) for field in _Shape._fields]
    ops = ops.join(distinct_inputs.with_columns(columns), keys, "left", nulls_equal=True, maintain_order="left")
    is_member, is_softmax = _members(ops)
    if not is_softmax.any():
        return None
    members = ops.filter(pl.Series(is_member))
    products = members.filter("is_product").sort("flop", descending=True)
    host = trace.all_host_events
    softmaxes = ops.filter(pl.Series(is_softmax)).sort("size", descending=True)
    rows = members["op"].to_numpy()
    return UnfusedAttention(
        is_member=np.isin(kernels["op"].to_numpy(), rows),
        softmaxes=softmaxes.height,
        flop=float(products["flop"].sum()),
        moved_bytes=float(products["other_bytes"].sum()),
        number_format=DTYPES.get(_first_type(products["input_types"][0]), (None, 0))[0],
        scores=tuple(_tensors(softmaxes["input_shapes"][0])[0]),
        is_fallback=_FALLBACK in set(host["name"].gather(_parents(trace, rows)).cast(pl.String)),
        ops=rows,
    )


def _launching_ops(trace: Trace, kernels: pl.DataFrame) -> pl.DataFrame:
    """The operators that launched any of the kernels directly, by thread and start, with their inputs."""
    host = trace.all_host_events
    op = np.unique(kernels["op"].to_numpy())
    op = op[op >= 0]
    texts = ("name", "input_shapes", "input_types")
    rows = host.select("thread", "start_ns", *texts)[op.astype(np.int64)].with_columns(pl.col(texts).cast(pl.String))
    return rows.with_columns(op=pl.Series(op, dtype=pl.Int64)).sort("thread", "start_ns")


def _parents(trace: Trace, rows: NDArray[np.int64]) -> pl.Series:
    """The parents of host events and their parents."""
    parent = trace.all_host_events["parent"].to_numpy()
    members: list[NDArray[np.int64]] = []
    for _ in range(3):
        rows = parent[rows[rows >= 0]].astype(np.int64)
        members.append(rows[rows >= 0])
    return pl.Series(np.unique(np.concatenate(members)), dtype=pl.Int64)


def _describe(name: str, shapes: str | None, types: str | None) -> _Shape:
    sizes = product_sizes(name, shapes)
    if sizes is not None:
        operands = [sizes.batch * elements for elements in (sizes.m * sizes.k, sizes.k * sizes.n, sizes.m * sizes.n)]
        if max(operands) > _MOST_ELEMENTS:
            return _Shape()
        element = DTYPES.get(_first_type(types), (None, 2))[1]
        return _Shape(
            is_product=True,
            size=max(operands),
            read=_scores(operands[0], sizes.m, sizes.k),
            also_read=_scores(operands[1], sizes.k, sizes.n),
            written=_scores(operands[2], sizes.m, sizes.n),
            flop=2.0 * operands[2] * sizes.k,
            other_bytes=float(element * (sum(operands) - max(operands))),
        )
    tensors = _tensors(shapes)
    if not tensors:
        return _Shape()
    largest = max(tensors, key=math.prod)
    if len(largest) < 2 or math.prod(largest) > _MOST_ELEMENTS:
        return _Shape()
    scores = _scores(math.prod(largest), *largest[-2:])
    return _Shape(is_softmax=name in _SOFTMAX, size=math.prod(largest), read=scores, written=scores)


def _scores(size: int, rows: int, columns: int) -> str:
    return f"{size} {max(rows, columns)} {min(rows, columns)}"


def _tensors(shapes: str | None) -> list[list[int]]:
    try:
        value = json.loads(shapes or "[]")
    except (ValueError, RecursionError):
        return []
    return [
        sizes
        for sizes in (value if isinstance(value, list) else [])
        if isinstance(sizes, list) and sizes and all(isinstance(n, int) and n > 0 for n in sizes)
    ]


def _first_type(types: str | None) -> str:
    try:
        value = json.loads(types or "[]")
    except (ValueError, RecursionError):
        return ""
    return str(value[0]) if isinstance(value, list) and value else ""


def _members(ops: pl.DataFrame) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(operators that belong to unfused attention, its softmaxes)."""
    column = {
        name: ops[name].to_numpy() for name in ("thread", "is_softmax", "is_product", "read", "also_read", "written")
    }
    softmax = np.flatnonzero(column["is_softmax"])
    scores = column["read"][softmax]
    near = [offset for offset in range(-_NEIGHBORS, _NEIGHBORS + 1) if offset]
    neighbors: dict[int, NDArray[np.int64]] = {}
    has_writer, has_reader = np.zeros(softmax.size, bool), np.zeros(softmax.size, bool)
    for offset in near:
        at = softmax + offset
        is_inside = (at >= 0) & (at < ops.height)
        at = np.where(is_inside, at, 0)
        is_inside &= column["thread"][at] == column["thread"][softmax]
        reads = (column["read"][at] == scores) | (column["also_read"][at] == scores)
        writes = column["written"][at] == scores
        is_product = column["is_product"][at]
        has_writer |= is_inside & is_product & writes & (offset < 0)
        has_reader |= is_inside & is_product & reads & (offset > 0)
        neighbors[offset] = np.where(is_inside & (reads | writes), at, NONE)
    is_attention = has_writer & has_reader
    is_member, is_softmax = np.zeros(ops.height, bool), np.zeros(ops.height, bool)
    is_softmax[softmax[is_attention]] = True
    is_member |= is_softmax
    for at in neighbors.values():
        members = at[is_attention]
        is_member[members[members >= 0]] = True
    return is_member, is_softmax
