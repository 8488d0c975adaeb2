"""When a worker computes, communicates and collects garbage, and how much it computes."""

from __future__ import annotations

import json
from math import prod
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import gather, map_categories
from ..arrays.intervals import Intervals, merge
from ..measures.calls.matrix_work import element_count, input_elements
from ..measures.time.breakdown import intervals_of
from ..measures.time.exposure import computing_on_host
from ..measures.time.idle import Windows
from ..names.device_work import copies_to_device, copies_to_host, is_pageable, is_view
from ..names.python_frames import collects_garbage
from ..trace import Trace
from ..trace.row_filters import is_operator
from .model import INPUTS

Ints = NDArray[np.int64]
_MOST_THREADS = 1 << 40  # of a kernel: more than any device takes
_OF_PARAMETERS = ("aten::_foreach_", "aten::_fused_")
_MOST = 0.5  # of the kernels
_MOST_INPUTS = 32  # of all operators, with most elements


def computation_intervals(trace: Trace) -> Intervals:
    """When it computes: kernels that don't communicate; without any device work, operators (measures/time/exposure)."""
    device = trace.device_events
    if device.height:
        return intervals_of(device, (device["kind"] == "kernel").to_numpy() & ~device["is_communication"].to_numpy())
    return computing_on_host(trace)


def communication_intervals(trace: Trace) -> Intervals:
    """When it communicates with other ranks: device rows; without any device work, the host's ranges."""
    device, host = trace.device_events, trace.host_events
    if device.height:
        return intervals_of(device, device["is_communication"].to_numpy())
    return intervals_of(host, host["is_communication"].to_numpy())


def garbage_collection(trace: Trace) -> Intervals:
    """When Python collects garbage, on any thread: meanwhile no other thread runs Python."""
    frames = (trace.python_calls, trace.others)
    return merge([intervals_of(f, map_categories(f["name"], collects_garbage).astype(bool)) for f in frames])


class Work(NamedTuple):
    """How much a worker computes in each window.

    Attributes:
        launches: How many kernels, or without a device operators, start in it.
        threads: Of the kernels: grid × block; 0 without a device, or if the size of any is unknown.
        elements: Of the inputs of the kernels' operators, or of the operators, but not of updates of many parameters; 0
            if the shapes of most are unknown.
    """

    launches: Ints
    threads: Ints
    elements: Ints


class HostCopies(NamedTuple):
    """What a worker copies between host and device in each window.

    Attributes:
        copied_bytes: How much.
        pageable_ns: How long copies to or from pageable memory of the host take together.
    """

    copied_bytes: Ints
    pageable_ns: Ints


def host_copies(trace: Trace, windows: Windows) -> HostCopies:
    """What is copied between host and device by copies that start in each window."""
    rows = trace.device_events.filter(kind="memcpy", is_communication=False).sort("start_ns")
    is_of_host = map_categories(rows["name"], lambda name: copies_to_host(name) or copies_to_device(name)).astype(bool)
    start, sizes = rows["start_ns"].to_numpy(), rows["bytes"].to_numpy().clip(0)
    pageable = rows["dur_ns"].to_numpy() * map_categories(rows["name"], is_pageable).astype(bool)
    return HostCopies(_between(start, sizes * is_of_host, windows), _between(start, pageable, windows))


def work(trace: Trace, windows: Windows) -> Work:
    """How much computes in each window.

    Ranks that do the same work launch as much; what then takes longer on one of them is slower. Threads alone don't say
    that: kernels that stay on their multiprocessors have grids of one size, whatever their inputs.
    """
    device, ops = trace.device_events, trace.all_host_events
    elements = np.where(_is_update(ops), 0, map_categories(ops["input_shapes"], element_count, missing=0))
    start, op = _launches(trace)
    threads = np.zeros(start.size, np.int64)
    if device.height:
        kernels = _kernels(trace)
        sides = [map_categories(kernels[s], _size) for s in ("grid", "block")]
        threads = sides[0].astype(np.int64) * sides[1].astype(np.int64)
        threads = np.where(threads.all(), np.minimum(threads, _MOST_THREADS), 0)
    own = gather(elements, op, missing=0)
    is_known = (own > 0).sum() >= _MOST * own.size
    return Work(
        _between(start, np.ones(start.size, np.int64), windows),
        _between(start, threads, windows),
        _between(start, own if is_known else np.zeros_like(own), windows),
    )


def inputs(trace: Trace, windows: Windows) -> pl.DataFrame:
    """The frame INPUTS: which inputs of which operators have how many elements in each window.

    Those that are as large on all ranks, such as parameters, say nothing about what one of them has more to do.
    """
    ops = trace.all_host_events
    start, op = _launches(trace)
    step = (np.searchsorted(windows.start, start, "right") - 1).astype(np.int32)
    inside = (step >= 0) & (start < gather(windows.end, step)) & (op >= 0)
    rows = ops.select("name", "input_shapes")[op[inside]].with_columns(step=pl.Series(step[inside], dtype=pl.Int32))
    computes = ~(_is_update(rows) | map_categories(rows["name"], is_view).astype(bool))
    rows = rows.filter(pl.Series(computes, dtype=pl.Boolean) & pl.col("input_shapes").is_not_null())
    rows = rows.group_by("step", "name", "input_shapes").len().cast({"name": pl.String, "input_shapes": pl.String})
    shapes = rows["input_shapes"].unique().to_list()
    counts = pl.DataFrame(
        [(shape, i, count) for shape in shapes for i, count in enumerate(input_elements(shape)) if count],
        schema={"input_shapes": pl.String, "input": pl.Int64, "elements": pl.Int64},
        orient="row",
    )
    sums = (
        rows.join(counts, "input_shapes")
        .group_by("step", "input", operator="name")
        .agg(elements=(pl.col("elements") * pl.col("len").cast(pl.Int64)).sum())
    )
    largest = sums.group_by("operator", "input").agg(pl.col("elements").sum())
    first = largest.sort("elements", "operator", "input", descending=[True, False, False]).head(_MOST_INPUTS)
    return (
        sums.join(first, ["operator", "input"], "semi")
        .sort("step", "operator", "input")
        .select(*INPUTS)
        .cast(pl.Schema(INPUTS))
    )


def _is_update(ops: pl.DataFrame) -> NDArray[np.bool_]:
    return map_categories(ops["name"], lambda name: name.startswith(_OF_PARAMETERS)).astype(bool)


def _kernels(trace: Trace) -> pl.DataFrame:
    """The kernels that compute, in the order of their starts."""
    return trace.device_events.filter(kind="kernel", is_communication=False).sort("start_ns")


def _launches(trace: Trace) -> tuple[Ints, NDArray[np.int32]]:
    """(start, row of all_host_events) of what computes, in order: kernels, or without a device operators."""
    host = trace.host_events
    if trace.device_events.height:
        kernels = _kernels(trace)
        return kernels["start_ns"].to_numpy(), kernels["op"].to_numpy()
    is_op = is_operator(trace) & ~host["is_communication"].to_numpy()
    rows = np.flatnonzero(is_op).astype(np.int32)
    rows = rows[np.argsort(host["start_ns"].to_numpy()[rows], kind="stable")]
    return host["start_ns"].to_numpy()[rows], rows


def _between(start: Ints, amount: Ints, windows: Windows) -> Ints:
    """The sum of the amounts of what starts in each window; `start` in order."""
    until = np.concatenate([[0], np.cumsum(amount)])
    sums: Ints = until[np.searchsorted(start, windows.end)] - until[np.searchsorted(start, windows.start)]
    return sums


def _size(extent: str) -> int:
    """The product of a grid or a block as the file has it, such as `[132, 1, 1]`; 0 if it is something else."""
    try:
        sides = json.loads(extent)
        return min(prod(map(int, sides)), _MOST_THREADS) if min(sides, default=0) > 0 else 0
    except (ValueError, TypeError, OverflowError, RecursionError):
        return 0
