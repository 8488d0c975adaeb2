"""Builds a `Trace` from recorded columns: nesting, links from device work to operators, steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.allocator import release_free_memory
from ..arrays.constants import with_arrays, with_constants
from ..arrays.gather import NONE, gather, map_categories, rows_by_id
from ..arrays.nesting import innermost, nearest, nest, repeats, self_times
from ..names.kernels import is_backend_range, operator_of
from .communication import device_with_communication, host_with_communication
from .meta import Meta
from .model import Diagnostic, Trace
from .steps import host_steps, step_windows, with_step_numbers

Rows = NDArray[np.int32]
_ROUNDING_NS = 2  # of a sum that a writer computes in floats of 2^42 µs
_CLOCK_NS = 1_000  # times of torch before 2.4 are in whole microseconds
_SAME = {  # what two copies agree in: the last one is a number that isn't used twice, and must be known
    "host_events": ("name", "kind", "thread", "start_ns", "dur_ns", "external_id"),
    "launches": ("name", "thread", "start_ns", "dur_ns", "correlation"),
    "device_events": ("name", "device", "stream", "start_ns", "dur_ns", "correlation"),
    "python_calls": ("name", "thread", "start_ns", "dur_ns", "python_id"),
}
_Frames = Mapping[str, pl.DataFrame]


@dataclass(frozen=True)
class Parts:
    """The recorded columns, as the reader returns them.

    Args:
        path: The file, as the user knows it.
        origin_ns: Unix time of the origin, in nanoseconds.
        window: Start and end of the recording, in ns since the origin; None where the file doesn't say.
        threads: The host threads that have rows (model.THREADS).
        frames: One frame per key of model.COLLECTED, the collectives and the counters, with their recorded columns, in
            their order.
        arrows: Arrows to device rows, in files without correlations: offsets of the device row (`device`), and of the
            flow that begins the arrow in an operator (`begin`) or of the call that it comes from (`launch`).
        meta: The metadata of the file.
        diagnostics: What was repaired or lost while reading.
    """

    path: str
    origin_ns: int
    window: tuple[int, int] | None
    threads: pl.DataFrame
    frames: Mapping[str, pl.DataFrame]
    arrows: pl.DataFrame
    meta: Meta
    diagnostics: tuple[Diagnostic, ...]


@dataclass(frozen=True)
class Columns:
    """The columns that every linking step needs, as arrays."""

    thread: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]

    @classmethod
    def of(cls, frame: pl.DataFrame) -> Columns:
        """Return the columns of a frame of host rows; a row without a duration ends where it starts."""
        start = frame["start_ns"].to_numpy()
        end = start + frame["dur_ns"].to_numpy() if "dur_ns" in frame.columns else start
        return cls(frame["thread"].to_numpy(), start, end)


def assemble(parts: Parts) -> Trace:
    """Return the trace: the recorded columns, and the derived ones."""
    frames, copies = _without_duplicates(parts.frames)
    host, host_overlaps = _nest(frames["host_events"])
    python, python_nested = _nest(frames["python_calls"])

    ranges = Columns.of(host)
    host, launches = _with_calls(host, ranges, frames["launches"])
    memory = _with_op(frames["memory"], host, ranges)
    host = host_with_communication(host)
    device = device_with_communication(_with_launch(frames["device_events"], launches), host, launches)
    if parts.arrows.height:
        device = _with_launch_by_arrow(device, parts.arrows, launches)
        device = _with_op_by_arrow(device, parts.arrows, frames["flows"], host, ranges)
    del ranges
    release_free_memory()  # before the columns that follow

    extent = _activity_extent((host, launches, device), python, parts)
    are_whole = not any(problem.undermines_steps for problem in parts.diagnostics)
    steps = host_steps(host, extent, _recording_end(parts), are_whole=are_whole)
    host, launches, device = with_step_numbers(steps, host, launches, device)
    windows = step_windows(steps, device, gather(launches["start_ns"].to_numpy(), device["launch"].to_numpy()))
    return Trace(
        path=parts.path,
        origin_ns=parts.origin_ns,
        window=parts.window or extent,
        threads=parts.threads,
        host_events=with_constants(host),
        launches=with_constants(launches),
        device_events=with_constants(device),
        memory=with_constants(memory),
        python_calls=with_constants(python),
        flows=frames["flows"],
        syncs=frames["syncs"],
        collectives=_tie_collectives(frames["collectives"], host, device),
        others=frames["others"],
        counters=frames["counters"],
        steps=windows,
        meta=parts.meta,
        diagnostics=parts.diagnostics + copies + _overlaps(host_overlaps, "host") + _overlaps(python_nested, "python"),
    )


def _recording_end(parts: Parts) -> int | None:
    """When the recording ended; None if the file doesn't say.

    torch's writers in Python know no such time, and draw the window from the first row to the last: the exporter, and
    CUPTI's in-process ones (torch 2.13: _chrome_trace_export.py, _cupti_monitor_trace.py). There a last step that ends
    with the window is whole. Their files are compact; kineto's aren't.
    """
    if parts.window is None:
        return None
    if "compact" not in parts.meta.fingerprint.forms:
        return parts.window[1]
    rows = [frame for frame in parts.frames.values() if {"start_ns", "dur_ns"} <= set(frame.columns)]
    is_window = pl.col("category").cast(pl.String).str.to_lowercase() == "trace"
    ranges = [f.filter(~is_window.fill_null(value=False)) if "phase" in f.columns else f for f in rows]
    first, last = _extent(*(frame.filter(pl.col("dur_ns") >= 0) for frame in ranges))
    start, end = parts.window
    is_drawn = abs(first - start) <= _ROUNDING_NS and abs(last - end) <= _ROUNDING_NS
    return None if is_drawn else end


def _without_duplicates(frames: _Frames) -> tuple[_Frames, tuple[Diagnostic, ...]]:
    """The frames without second copies of events, and how many there were.

    A thread makes one call at a time and a stream runs one row at a time, so rows that agree in name, place, start,
    duration and correlation are one event, unless they last too short for the clock to tell them apart. Operators nest,
    and may begin and end with their only child: two of them are one event only if they have the same External id, which
    torch counts up with each call, or the same number of a Python frame.
    """
    copies = {name: _second_copies(frames[name], columns) for name, columns in _SAME.items()}
    lost_offsets = [frames[name]["offset"].to_numpy()[is_copy] for name, is_copy in copies.items()]
    offsets = np.concatenate(lost_offsets)
    if not offsets.size:
        return frames, ()
    once = {name: frames[name].filter(pl.Series(~is_copy)) for name, is_copy in copies.items()}
    collectives = frames["collectives"]
    metadata = collectives.filter(pl.Series(~np.isin(collectives["offset"].to_numpy(), offsets)))
    words = (
        "Events were recorded twice, with the same name, place, time and number: the second copy of each is left out. "
        "Two profilers, or a tool that merged files, wrote both."
    )
    diagnostic = Diagnostic("events_twice", int(offsets.size), words, int(offsets.min()))
    return {**frames, **once, "collectives": metadata}, (diagnostic,)


def _second_copies(rows: pl.DataFrame, columns: tuple[str, ...]) -> NDArray[np.bool_]:
    """Which rows are a copy of an earlier one. Only rows that begin together are compared, which are few."""
    *_, number = columns
    start, dur, numbers = (rows[name].to_numpy() for name in ("start_ns", "dur_ns", number))
    together = np.zeros(start.size, bool)
    together[1:] = start[1:] == start[:-1]
    together[:-1] |= together[1:]
    candidates = np.flatnonzero(together & (dur > _CLOCK_NS) & (numbers >= 0))
    is_copy = np.zeros(start.size, bool)
    if candidates.size:
        candidate_rows = rows.select(columns)[candidates]
        is_copy[candidates] = ~candidate_rows.select(pl.struct(columns).is_first_distinct()).to_series().to_numpy()
    return is_copy


def _nest(frame: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    ranges = Columns.of(frame)
    parent, depth, overlaps = nest(ranges.thread, ranges.start, ranges.end)
    return with_arrays(frame, parent=parent, depth=depth), overlaps


def _tie_collectives(collectives: pl.DataFrame, host: pl.DataFrame, device: pl.DataFrame) -> pl.DataFrame:
    """Add the rows of host and device at the offsets of the collectives' metadata."""
    at = collectives["offset"].to_numpy()
    return with_arrays(
        collectives,
        host_event=rows_by_id(host["offset"].to_numpy(), at),
        device_event=rows_by_id(device["offset"].to_numpy(), at),
    )


def _overlaps(count: int, kind: str) -> tuple[Diagnostic, ...]:
    if not count:
        return ()
    consequence = (
        "Ranges of one thread begin inside another and outlast it; they are shown side by side, not nested, "
        "so self times around them are approximate."
    )
    return (Diagnostic(f"{kind}_overlap", count, consequence),)


def _with_calls(host: pl.DataFrame, ranges: Columns, launches: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Add the launching range and operator of each call, and the ranges' self times and repeats that follow from it."""
    calls = Columns.of(launches)
    parent = host["parent"].to_numpy()
    inside = innermost(ranges.thread, ranges.start, ranges.end, calls.thread, calls.start)
    is_op = (host["kind"] == "operator").to_numpy()
    op = gather(nearest(is_op, parent), inside)
    without_op = np.flatnonzero(op < 0)
    if without_op.size:
        op[without_op] = _op_by_external_id(host, ranges, is_op, launches[without_op], Columns.of(launches[without_op]))
    alone = _self_times(host, ranges, calls, inside)
    again = repeats(parent, _operator_codes(host["name"]), is_op, inside)
    return with_arrays(host, self_ns=alone, is_repeat=again), with_arrays(launches, host=inside, op=op)


def _self_times(host: pl.DataFrame, ranges: Columns, calls: Columns, inside: Rows) -> NDArray[np.int64]:
    """Each range's own time, as torch's key_averages() has it; a backend's annotation has none in another range.

    torch marks a backend's annotation of a collective (nccl:all_reduce) as asynchronous and gives it no parent: its
    time counts for the range around it (_populate_cpu_children in torch/autograd/profiler_util.py).
    """
    parent = host["parent"].to_numpy()
    is_backend = (host["kind"] == "annotation").to_numpy() & map_categories(host["name"], is_backend_range).astype(bool)
    is_skipped = is_backend & (gather(nearest(~is_backend, parent), parent) >= 0)
    holder = nearest(~is_skipped, parent)
    above = np.where(is_skipped, NONE, gather(holder, parent)).astype(np.int32)
    around = gather(holder, inside).astype(np.int32)
    alone: NDArray[np.int64] = self_times(
        ranges.thread, ranges.start, ranges.end, above, calls.thread, around, calls.start, calls.end
    )
    alone[is_skipped] = 0
    return alone


def _operator_codes(names: pl.Series) -> NDArray[np.int64]:
    """A number per operator, the same for all its overloads, which `capture_overload_names` records."""
    codes: dict[str, int] = {}
    numbers: NDArray[np.int64] = map_categories(
        names, lambda name: codes.setdefault(operator_of(name), len(codes)), missing=-1
    )
    return numbers


def _op_by_external_id(
    host: pl.DataFrame, ranges: Columns, is_op: NDArray[np.bool_], launches: pl.DataFrame, calls: Columns
) -> Rows:
    """The operator that a call's External id names, if its range covers the call; else NONE.

    Torch 1.12 to 2.2 wrote the call's own correlation there, which may be another operator's id: hence the check.
    """
    ids = np.where(is_op, host["external_id"].to_numpy(), NONE)
    row = rows_by_id(ids, launches["external_id"].to_numpy())
    covers = (gather(ranges.start, row) <= calls.start) & (gather(ranges.end, row) >= calls.end)
    return np.where(covers, row, NONE).astype(np.int32)


def _with_op(memory: pl.DataFrame, host: pl.DataFrame, ranges: Columns) -> pl.DataFrame:
    """Add the innermost operator that was open when memory was allocated or released."""
    order = memory.select(pl.arg_sort_by("thread", "start_ns")).to_series().to_numpy()
    rows = Columns.of(memory.select("thread", "start_ns")[order])
    inside = innermost(ranges.thread, ranges.start, ranges.end, rows.thread, rows.start)
    op = np.empty(inside.size, np.int32)
    is_op = (host["kind"] == "operator").to_numpy()
    op[order] = gather(nearest(is_op, host["parent"].to_numpy()), inside)
    return with_arrays(memory, op=op)


def _with_launch(device: pl.DataFrame, launches: pl.DataFrame) -> pl.DataFrame:
    """Add the call that launched each device row, by correlation (one call may launch many), and its operator.

    ROCm wrote no correlation before torch 2.4; there both rows have the call's number as External id.
    """
    has_none = launches["correlation"].max() == device["correlation"].max() == NONE
    number = "external_id" if has_none else "correlation"
    launch = rows_by_id(launches[number].to_numpy(), device[number].to_numpy())
    return with_arrays(device, launch=launch, op=gather(launches["op"].to_numpy(), launch))


def _with_launch_by_arrow(device: pl.DataFrame, arrows: pl.DataFrame, launches: pl.DataFrame) -> pl.DataFrame:
    """Add the call, and its operator, of device rows without a correlation, by the arrow that leads to them."""
    calls = arrows.filter(pl.col("launch").is_not_null()).unique("device", keep="first").select("device", call="launch")
    if calls.is_empty():
        return device
    call_offsets = (
        device.select(device="offset").join(calls, "device", "left", maintain_order="left")["call"].fill_null(NONE)
    )
    by_arrow = rows_by_id(launches["offset"].to_numpy(), call_offsets.to_numpy())
    launch = np.where(device["launch"].to_numpy() < 0, by_arrow, device["launch"].to_numpy()).astype(np.int32)
    of_launch = gather(launches["op"].to_numpy(), launch)
    op = np.where(device["op"].to_numpy() < 0, of_launch, device["op"].to_numpy()).astype(np.int32)
    return device.with_columns(launch=launch, op=op)


def _with_op_by_arrow(
    device: pl.DataFrame, arrows: pl.DataFrame, flows: pl.DataFrame, host: pl.DataFrame, ranges: Columns
) -> pl.DataFrame:
    """Add the operator of device rows without one, by the arrow that leads to them.

    Of ranges that began together it is the last one before the arrow in the file: the autograd profiler's exporter
    writes each range's arrows right after it. Elsewhere it is the innermost open operator.
    """
    begins = (
        arrows.drop_nulls("begin")
        .join(flows.select("thread", "start_ns", begin="offset"), "begin")
        .sort("thread", "start_ns")
    )
    at = Columns.of(begins)
    by_offset = np.argsort(host["offset"].to_numpy()).astype(np.int32)
    before = np.searchsorted(host["offset"].to_numpy()[by_offset], begins["begin"].to_numpy()).astype(np.int32) - 1
    rows_before = gather(by_offset, before)
    is_together = (gather(ranges.start, rows_before) == at.start) & (gather(ranges.thread, rows_before) == at.thread)
    inside = np.where(is_together, rows_before, innermost(ranges.thread, ranges.start, ranges.end, at.thread, at.start))
    op = gather(nearest((host["kind"] == "operator").to_numpy(), host["parent"].to_numpy()), inside.astype(np.int32))
    op_of_device = begins.select("device", linked=pl.Series(op)).unique("device", keep="first")
    rows = device.select("op", "launch", device="offset").join(op_of_device, "device", "left", maintain_order="left")
    op_or_link = pl.when(pl.col("op") < 0).then(pl.col("linked").fill_null(NONE)).otherwise("op")
    return device.with_columns(op=rows.select(op_or_link).to_series())


def _activity_extent(work: tuple[pl.DataFrame, ...], python: pl.DataFrame, parts: Parts) -> tuple[int, int]:
    """When the first activity begins and the last one ends: of whatever events there are, if there are no others."""
    others = [parts.frames[name] for name in ("others", "memory", "flows", "syncs", "counters")]
    if parts.meta.foreign_writer is not None:
        return _extent(*work, python, *others)
    return next((_extent(*frames) for frames in (work, (python,), others) if any(f.height for f in frames)), (0, 0))


def _extent(*frames: pl.DataFrame) -> tuple[int, int]:
    """Start of the earliest and end of the latest row; (0, 0) if there is none."""
    rows = [f for f in frames if f.height]
    if not rows:
        return 0, 0
    ends = [f["start_ns"] + f["dur_ns"].clip(0) if "dur_ns" in f.columns else f["start_ns"] for f in rows]
    return min(f["start_ns"].min() for f in rows), max(end.max() for end in ends)  # type: ignore[type-var, return-value]
