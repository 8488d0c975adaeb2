"""The work of matmuls, and of other operators with formulas, in each iteration, from their recorded shapes.

Bytes are the minimum: each input and the output once. The second matrix of a product counts as weights: a server's
model multiplies its activations with them. Matmuls in graphs, and of libraries whose operators have no formula
(measures/calls/matrix_work.py), aren't known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import polars as pl

from ...arrays.gather import NONE
from ...arrays.intervals import Ints
from ...measures.calls.matrix_work import DTYPES, UnknownWork, matrix_work, product_sizes
from ...trace.model import Trace
from ..calls.matrix_calls import ARGUMENTS, each_matrix_call
from ..calls.roofline import Limits, roof
from .iterations import Iterations, host_cycles


class WorkByShapes(NamedTuple):
    """The known work of some operators in each iteration.

    Attributes:
        flop: Operations.
        moved_bytes: Bytes read and written at least.
        model_bytes: Of these, the model's: the second matrices of products, or keys and values.
        roof_ns: The time of that work at the device's limits; 0 where they aren't known.
        time_ns: Time of the kernels whose work this is.
    """

    flop: Ints
    moved_bytes: Ints
    model_bytes: Ints
    roof_ns: Ints
    time_ns: Ints


def matmul_work(trace: Trace, iterations: Iterations) -> WorkByShapes:
    """The work of the operators with formulas that multiply matrices on a device."""
    return work_by_shapes(trace, iterations, each_matrix_call(trace), _weights)


def _weights(name: str, shapes: str | None) -> int | None:
    """The numbers in the second matrix of a product; None if it is none."""
    product = product_sizes(name, shapes)
    return None if product is None else product.batch * product.n * product.k


def work_by_shapes(
    trace: Trace, iterations: Iterations, calls: pl.DataFrame, numbers_of_model: Callable[[str, str | None], int | None]
) -> WorkByShapes:
    """The work of calls on a device.

    Args:
        trace: The trace.
        iterations: Its iterations.
        calls: Rows of each_matrix_call.
        numbers_of_model: How many numbers of the model a call with a name and shapes reads; None: it doesn't count.
    """
    work = np.zeros((5, iterations.frame.height), np.int64)
    calls = calls.filter(pl.col("device").is_not_null())
    if iterations.frame.is_empty() or calls.is_empty():
        return WorkByShapes(work[0], work[1], work[2], work[3], work[4])
    host = trace.all_host_events[calls["row"]]
    start = host["start_ns"].to_numpy()
    step = host_cycles(iterations.frame).find_steps(start, start + host["dur_ns"].to_numpy())
    keys = ["step", *ARGUMENTS, "device"]
    groups = (
        calls.with_columns(step=pl.Series(step))
        .filter(pl.col("step") != NONE)
        .with_columns(pl.col(ARGUMENTS).cast(pl.String))
        .group_by(keys)
        .agg(pl.len().alias("calls"), pl.col("time_ns", "tensor_ns", "unknown_ns").sum())
    )
    limits = Limits.of(trace)
    for row in groups.rows(named=True):
        numbers = numbers_of_model(row["name"], row["input_shapes"])
        if numbers is not None:
            work[:, row["step"]] += _work(row, limits.get(row["device"]), numbers)
    return WorkByShapes(work[0], work[1], work[2], work[3], work[4])


def _work(row: dict[str, object], limits: Limits | None, numbers: int) -> tuple[int, int, int, int, int]:
    """FLOPs, bytes, bytes of the model, time at the roof and time of some calls with the same inputs; 0: not known."""
    name, shapes, types, values = (row[argument] for argument in ARGUMENTS)
    calls, time_ns = int(str(row["calls"])), int(str(row["time_ns"]))
    try:
        work = matrix_work(str(name), shapes, types, values)  # type: ignore[arg-type]
    except UnknownWork:
        return 0, 0, 0, 0, 0
    if work.moved_bytes is None or work.dtype is None:
        return 0, 0, 0, 0, 0
    uses, is_unknown = (int(str(row[column])) > 0 for column in ("tensor_ns", "unknown_ns"))
    peaks = None if limits is None else limits.peaks
    limit = None if peaks is None else roof(peaks, work, uses_tensor_cores=uses, is_unit_unknown=is_unknown)
    size = next(size for dtype, size in DTYPES.values() if dtype == work.dtype)
    at_roof = 0 if limit is None or limit.ns is None else round(calls * limit.ns)
    return calls * work.flop, calls * work.moved_bytes, calls * numbers * size, at_roof, time_ns
