"""Units: times that are too short or too long for what was timed, as when a tool writes ns or ms where µs belong."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...advice import text
from ...arrays.gather import map_categories
from ...arrays.intervals import Ints
from ...trace import Diagnostic
from ...trace.model import Fault, Undermined
from . import limits
from .losses import launches_kernel
from .times import Times

_BETWEEN = re.compile(r"HtoD|DtoH|HostToDevice|DeviceToHost|H2D|D2H")
_OF_DEVICES: frozenset[Undermined] = frozenset({"idle", "kernel_times"})
_EVERYTHING: frozenset[Undermined] = _OF_DEVICES | {"host_times", "launches", "clock", "steps"}
_MICROSECONDS = "Check what wrote or converted the file: `ts` and `dur` are in microseconds."


def diagnose(times: Times) -> Iterator[Diagnostic]:
    """Times in the wrong unit."""
    trace = times.trace
    launching = (times.call_end - times.call_start)[launches_kernel(trace)]
    host = trace.host_events
    ops = host["dur_ns"].to_numpy()[(host["kind"] == "operator").to_numpy()]
    yield from _too_short(times, launching)
    yield from _too_long(launching, ops)
    yield from _crossing(times)
    yield from _too_fast(times)


def _too_short(times: Times, launching: Ints) -> Iterator[Diagnostic]:
    kernels = (times.end - times.start)[times.is_kernel]
    for durations, what in ((kernels, "kernels"), (launching, "calls that launch kernels")):
        if durations.size < limits.FEW_ROWS:
            continue
        median = float(np.median(durations))
        if median < limits.SHORTEST_NS:
            fact = f"Half of the {durations.size} {what} take {text.time(median)} or less"
            yield _of("times_too_short", durations.size, fact, "No device and no driver is that fast")
            return


def _too_long(launching: Ints, ops: Ints) -> Iterator[Diagnostic]:
    """The fastest calls and operators are slow; without launches, only many operators prove anything."""
    least = limits.FEW_ROWS if launching.size else 5 * limits.FEW_ROWS
    timed = [durations for durations in (launching, ops) if durations.size]
    if not timed or min(durations.size for durations in timed) < least:
        return
    fastest = min(float(np.percentile(durations, 5)) for durations in timed)
    if fastest > limits.LONGEST_NS:
        what = "launches and operators" if launching.size else "operators"
        fact = f"Nearly all {what} take more than {text.time(fastest)}"
        yield _of("times_too_long", sum(d.size for d in timed), fact, "Such calls take microseconds")


def _crossing(times: Times) -> Iterator[Diagnostic]:
    """Calls of one thread that end within the next one."""
    thread = times.trace.launches["thread"].to_numpy()
    end, start = times.call_end, times.call_start
    is_next = thread[1:] == thread[:-1]
    crosses = is_next & (end[:-1] > start[1:] + limits.JITTER_NS) & (end[:-1] + limits.JITTER_NS < end[1:])
    count, pairs = int(crosses.sum()), int(is_next.sum())
    if pairs >= limits.FEW_ROWS and count > limits.CROSSING * pairs:
        fact = f"{count} of {pairs} runtime calls end after the next call of their thread has begun"
        yield _of("calls_overlap", count, fact, "A thread makes one call at a time")


def _too_fast(times: Times) -> Iterator[Diagnostic]:
    """Copies beyond any bandwidth."""
    device = times.trace.device_events
    moved: Ints = device["bytes"].to_numpy()
    is_copy: NDArray[np.bool_] = (device["kind"] == "memcpy").to_numpy() & (moved >= limits.COPY_BYTES)
    if not is_copy.any():
        return
    copies = device.filter(pl.Series(is_copy))
    between = map_categories(copies["name"], lambda name: bool(_BETWEEN.search(name)))
    limit = np.where(between, limits.HOST_BYTES_PER_NS, limits.DEVICE_BYTES_PER_NS)
    needed = moved[is_copy] // limit
    dur = (times.end - times.start)[is_copy]
    is_fast = needed > dur + limits.JITTER_NS
    if is_fast.any():
        fact = (
            f"{int(is_fast.sum())} copies are faster than any link or memory, such as {int(moved[is_copy][is_fast][0])}"
        )
        fact += f" bytes in {text.time(int(dur[is_fast][0]))}"
        affected = int((needed - dur)[is_fast].sum())
        yield _of("copies_too_fast", int(is_fast.sum()), fact, "Their durations are too short", affected)


def _of(rule: str, count: int, fact: str, meaning: str, affected_ns: int | None = None) -> Diagnostic:
    undermines = _EVERYTHING if affected_ns is None else _OF_DEVICES
    return Diagnostic(
        rule,
        count,
        f"{fact}. {meaning}: durations or times are in another unit than the format's microseconds, or were scaled. "
        f"{_MICROSECONDS}",
        fault=Fault(fact, undermines, _MICROSECONDS, affected_ns),
    )
