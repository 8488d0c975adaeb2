"""Units: times that are too short or too long for what was timed, as when a tool writes ns or ms where µs belong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import map_categories
from ...arrays.intervals import Ints
from ...measures.recording.lost_launches import kernel_launches
from ...names import text
from ...names.device_work import is_view
from ...names.regex import regex
from ...trace import Diagnostic
from ...trace.model import Fault, NumberKind
from ...trace.row_filters import is_operator, name_mask
from . import limits
from .times import Times

_BETWEEN = regex(r"HtoD|DtoH|HostToDevice|DeviceToHost|H2D|D2H")
_OF_DEVICES: frozenset[NumberKind] = frozenset({"idle", "kernel_times"})
_EVERYTHING: frozenset[NumberKind] = _OF_DEVICES | {"host_times", "launches", "clock", "steps"}
_MICROSECONDS = "Check what wrote or converted the file: `ts` and `dur` are in microseconds."


def diagnose(times: Times) -> Iterator[Diagnostic]:
    """Times in the wrong unit."""
    trace = times.trace
    launches = (times.call_end - times.call_start)[kernel_launches(trace)]
    host = trace.host_events
    dur = host["dur_ns"].to_numpy()
    is_op = is_operator(trace)
    views = dur[is_op & name_mask(host["name"], is_view)]
    kernels = (times.end - times.start)[times.is_kernel]
    yield from _too_short({"kernels": kernels, "calls that launch kernels": launches, "operators": dur[is_op]})
    yield from _whole_microseconds(kernels)
    yield from _too_long(launches, views)
    yield from _overlaps(times)
    yield from _too_fast(times)


def _too_short(durations_by_kind: Mapping[str, Ints]) -> Iterator[Diagnostic]:
    for what, durations in durations_by_kind.items():
        if durations.size < limits.FEW_ROWS:
            continue
        is_fine = what == "kernels" and bool((durations % 1000).any())  # whole microseconds may be 0
        part, least = (25, limits.SHORTEST_KERNEL_NS) if is_fine else (50, limits.SHORTEST_NS)
        if np.count_nonzero(durations < least) <= (durations.size - 1) * part // 100:
            continue  # as of nearly all recordings: most need not be put in order
        quantile = float(np.percentile(durations, part))
        if quantile < least:
            fact = f"{part} % of the {durations.size} {what} take {text.time(quantile)} or less"
            yield _of("times_too_short", durations.size, fact, "No device and no processor is that fast")
            return


def _whole_microseconds(kernels: Ints) -> Iterator[Diagnostic]:
    """A resolution of a microsecond, as old profilers have, where that is noticeable for most kernels."""
    if kernels.size < limits.FEW_ROWS or (kernels % limits.JITTER_NS).any():
        return
    median, empty = float(np.median(kernels)), int((kernels == 0).sum())
    if limits.NOTICEABLE * median > limits.JITTER_NS:
        return
    none = f", and {text.percent(empty / kernels.size)} of them take 0" if empty else ""
    yield Diagnostic(
        "whole_microseconds",
        kernels.size,
        f"Times are whole microseconds, so each may be wrong by one. Half of the kernels take {text.time(median)} or "
        f"less{none}: how long such a kernel takes, how near it is to its limit, and the gaps around it are rough. "
        "Long kernels and steps are right. Newer versions of torch record nanoseconds.",
        level="note",
    )


def _too_long(launches: Ints, views: Ints) -> Iterator[Diagnostic]:
    """Operators that only make a view are slow, and so are all launches if there are any."""
    if views.size < limits.FEW_ROWS or 0 < launches.size < limits.FEW_ROWS:
        return
    if np.count_nonzero(views <= limits.LONGEST_NS) > views.size // 2:
        return
    least = float(np.median(views))
    if launches.size:
        least = min(least, float(np.percentile(launches, 5)))
    if least > limits.LONGEST_NS:
        what = "launches and views of tensors" if launches.size else "views of tensors"
        fact = f"Most {what} take more than {text.time(least)}"
        yield _of("times_too_long", views.size + launches.size, fact, "Such calls take microseconds")


def _overlaps(times: Times) -> Iterator[Diagnostic]:
    """Calls of one thread that end after the next one has begun; a runtime call may hold driver calls, no other."""
    calls = times.trace.launches
    kind = calls["kind"].to_physical().to_numpy()
    rows = np.flatnonzero(kind == np.bincount(kind, minlength=1).argmax())
    thread, start, end = calls["thread"].to_numpy()[rows], times.call_start[rows], times.call_end[rows]
    is_next = thread[1:] == thread[:-1]
    count, pairs = int((is_next & (end[:-1] > start[1:] + limits.JITTER_NS)).sum()), int(is_next.sum())
    if pairs >= limits.FEW_ROWS and count > limits.OVERLAPPING * pairs:
        fact = f"{count} of {pairs} runtime calls end after the next call of their thread has begun"
        yield _of("calls_overlap", count, fact, "A thread makes one call at a time")


def _too_fast(times: Times) -> Iterator[Diagnostic]:
    """Copies beyond any bandwidth."""
    device = times.trace.device_events
    sizes: Ints = device["bytes"].to_numpy()
    is_copy: NDArray[np.bool_] = (device["kind"] == "memcpy").to_numpy() & (sizes >= limits.COPY_BYTES)
    if not is_copy.any():
        return
    copies = device.filter(pl.Series(is_copy))
    between = map_categories(copies["name"], lambda name: bool(_BETWEEN.search(name)))
    limit = np.where(between, limits.HOST_BYTES_PER_NS, limits.DEVICE_BYTES_PER_NS)
    least_ns = sizes[is_copy] // limit
    dur = (times.end - times.start)[is_copy]
    is_fast = least_ns > dur + limits.JITTER_NS
    if is_fast.any():
        fact = (
            f"{int(is_fast.sum())} copies are faster than any link or memory, such as {int(sizes[is_copy][is_fast][0])}"
        )
        fact += f" bytes in {text.time(int(dur[is_fast][0]))}"
        lost_ns = int((least_ns - dur)[is_fast].sum())
        yield _of("copies_too_fast", int(is_fast.sum()), fact, "Their durations are too short", lost_ns)


def _of(rule: str, count: int, fact: str, meaning: str, affected_ns: int | None = None) -> Diagnostic:
    undermines = _EVERYTHING if affected_ns is None else _OF_DEVICES
    return Diagnostic(
        rule,
        count,
        f"{fact}. {meaning}: durations or times are in another unit than the format's microseconds, or were scaled. "
        f"{_MICROSECONDS}",
        fault=Fault(fact, undermines, _MICROSECONDS, affected_ns),
    )
