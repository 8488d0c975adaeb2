"""Bytes that collectives move, from the metadata or from the recorded shapes of an operator's inputs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather, map_categories, texts
from ...arrays.nesting import nearest
from ...names.collectives import element_bytes, message_bytes
from ...trace import Trace

Ints = NDArray[np.int64]
_MOST = 1 << 50  # bytes or numbers: more is damage
_OUTPUT_AND_INPUT = ("c10d::_allgather_base_", "c10d::_reduce_scatter_base_")
"""Operators whose first two inputs are the output and the input: one tensor each, of which one has all ranks' parts."""


def group_sizes(trace: Trace, op: NDArray[np.int32]) -> Ints:
    """How many ranks take part in each call according to the shapes of the operator around it; NONE: they don't say.

    Args:
        trace: The trace.
        op: The operator of each call: rows of host_events, or NONE.
    """
    host = trace.host_events
    has_both = map_categories(host["name"], lambda name: name in _OUTPUT_AND_INPUT).astype(bool)
    shapes = texts(host["input_shapes"], gather(nearest(has_both, host["parent"].to_numpy()), op))
    return _look_up(shapes, {text: _parts(text) for text in shapes.drop_nulls().unique()}, NONE).to_numpy()


def sizes_of(
    trace: Trace, metadata: NDArray[np.int32], backend_range: NDArray[np.int32], kinds: pl.Series, ranks: Ints
) -> tuple[Ints, Ints, Ints, pl.Series]:
    """(bytes in, bytes out, bytes of the message, dtype) of each call; -1 and None are unknown.

    Args:
        trace: The trace.
        metadata: Metadata of each call: rows of trace.collectives, or NONE.
        backend_range: Its range: rows of host_events, or NONE.
        kinds: The operation of each call.
        ranks: The number of ranks in its group, or NONE.
    """
    dtype = texts(trace.collectives["dtype"], metadata)
    element = _elements(dtype)
    from_metadata = [
        _bytes(gather(trace.collectives[side].to_numpy(), metadata), element)
        for side in ("in_elements", "out_elements")
    ]
    shapes = texts(trace.host_events["input_shapes"], backend_range)
    types = texts(trace.host_events["input_types"], backend_range)
    inputs, first = _of_inputs(shapes, types)
    has_metadata = from_metadata[0] >= 0
    into = np.where(has_metadata, from_metadata[0], inputs)
    out = np.where(has_metadata, from_metadata[1], _all_gather_output(into, kinds, ranks))
    pairs = pl.DataFrame({"kind": kinds, "into": into, "out": out})
    distinct = pairs.unique()
    message = distinct.with_columns(
        size=pl.Series([message_bytes(*row) for row in distinct.rows()], dtype=pl.Int64),
    )
    sizes = pairs.join(message, ["kind", "into", "out"], "left", maintain_order="left")["size"].to_numpy()
    return into, out, sizes, dtype.fill_null(first)


def _all_gather_output(into: Ints, kinds: pl.Series, ranks: Ints) -> Ints:
    """What an all-gather of this input writes; backends record the input alone."""
    fits = (into >= 0) & (into < _MOST // np.maximum(ranks, 1))
    is_known = (kinds == "all_gather").to_numpy() & fits & ((ranks > 0) | (into == 0))
    return np.where(is_known, into * ranks, NONE)


def _elements(dtype: pl.Series) -> Ints:
    """Bytes per element, or NONE."""
    sizes = {text: NONE if (size := element_bytes(text)) is None else size for text in dtype.drop_nulls().unique()}
    return _look_up(dtype, sizes, NONE).to_numpy()


def _look_up(values: pl.Series, by: Mapping[str, int], missing: int) -> pl.Series:
    """The number that belongs to each text."""
    if not by:
        return pl.Series(np.full(values.len(), missing, np.int64))
    return values.replace_strict(by, default=missing, return_dtype=pl.Int64)


def _bytes(elements: Ints, element_size: Ints) -> Ints:
    is_known = (elements >= 0) & (element_size > 0) & (elements < _MOST // np.maximum(element_size, 1))
    return np.where(is_known, elements * element_size, NONE)


def _of_inputs(shapes: pl.Series, types: pl.Series) -> tuple[Ints, pl.Series]:
    """(bytes of the first input, its dtype) of each call, computed once per distinct text."""
    pairs = pl.DataFrame({"shapes": shapes, "types": types})
    distinct = pairs.unique()
    sizes_and_dtypes = [_input_bytes(*row) for row in distinct.rows()]
    table = distinct.with_columns(
        size=pl.Series([size for size, _ in sizes_and_dtypes], dtype=pl.Int64),
        first=pl.Series([dtype for _, dtype in sizes_and_dtypes], dtype=pl.String),
    )
    inputs = pairs.join(table, ["shapes", "types"], "left", maintain_order="left", nulls_equal=True)
    return inputs["size"].to_numpy(), inputs["first"]


def _input_bytes(shapes: str | None, types: str | None) -> tuple[int, str | None]:
    """The size of the first tensor or list of tensors among an operator's inputs; -1 where it isn't recorded."""
    try:
        shape, dtype = json.loads(shapes or "")[0], json.loads(types or "")[0]
        element_size = element_bytes(dtype)
        size = None if element_size is None else _numbers(shape) * element_size
    except (ValueError, TypeError, IndexError, KeyError, AttributeError, OverflowError, RecursionError):
        return NONE, None
    return (NONE, None) if size is None or not 0 <= size <= _MOST else (size, dtype)


def _parts(shapes: str) -> int:
    """How often the smaller of the first two tensors fits into the larger one, or NONE."""
    try:
        part, whole = sorted(_numbers(shape) for shape in json.loads(shapes)[:2])
    except (ValueError, TypeError, OverflowError, RecursionError):
        return NONE
    return whole // part if part > 0 and whole <= _MOST and whole % part == 0 else NONE


def _numbers(shape: Any) -> int:
    """How many numbers tensors of this shape hold: `[2, 3]`, or a list of shapes."""
    if shape and all(isinstance(item, list) for item in shape):
        return sum(map(_numbers, shape))
    return prod(int(size) for size in shape)
