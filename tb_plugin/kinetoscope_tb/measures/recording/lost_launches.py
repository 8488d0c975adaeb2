"""Launches whose work isn't in the recording: the profiler's buffers were lost, or the work ran after the end.

Copies, fills and what is launched while a graph is captured need no rows. Where the buffers took the launches along,
operators that launch work in other steps launch none.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather, map_categories
from ...arrays.intervals import Intervals, merge
from ...names.calls import launches_graph, launches_kernel
from ...trace import Trace
from ...trace.results import once_per_recording

Mask = NDArray[np.bool_]
Ints = NDArray[np.integer]

_NEARLY_ALL = 0.9  # of an operator's calls launch work, unless its inputs are on the host
_FEW_LONE = 0.05  # of the rows of devices
_FEW_CALLS = 20  # of a step, which say nothing
_MOST = 0.5  # of these calls
_ALIKE = 2.0  # times as long
_MANY = 2  # times as many launches without work as work without a launch

MOSTLY_CAPTURED = 0.5
"""Of the steps: a recording that captures graphs for longer says nothing of what runs."""


def kernel_launches(trace: Trace) -> Mask:
    """Which calls launch one kernel. Copies and fills may have no row of their own."""
    return map_categories(trace.launches["name"], launches_kernel)


@once_per_recording
def work_launches(trace: Trace) -> Mask:
    """Which calls must have rows: launches of kernels and graphs, but for those that are captured."""
    launches: Mask = kernel_launches(trace) | map_categories(trace.launches["name"], launches_graph)
    return launches & ~_in_capture(trace)


@once_per_recording
def lost_launches(trace: Trace) -> Mask:
    """Which of these have none; none of them where no call has any, as where nothing of devices was recorded."""
    is_linked = (trace.device_events["launch"] != NONE).any()
    are_lost: Mask = missing_work(trace) & is_linked
    return are_lost


@once_per_recording
def missing_work(trace: Trace) -> Mask:
    """Which of these have no row that is known to be theirs."""
    launch = trace.device_events["launch"].to_numpy()
    has_row = np.zeros(trace.launches.height, bool)
    has_row[launch[launch != NONE]] = True
    missing: Mask = work_launches(trace) & ~has_row
    return missing


@once_per_recording
def silent_steps(trace: Trace) -> Mask:
    """Which steps call operators that launch work in the other steps, take as long for most of them, and launch none.

    An operator that runs on the processor takes longer than it takes to launch one, or, on few elements, less.
    """
    host, launches, count = trace.host_events, trace.launches, trace.steps.height
    silent = np.zeros(count, bool)
    own = work_launches(trace)
    step, op = (launches[name].to_numpy()[own] for name in ("step", "op"))
    has_work = np.bincount(step[step >= 0], minlength=count) > 0
    if has_work.all() or not has_work.any():
        return silent
    does_launch = np.zeros(host.height, bool)
    does_launch[op[op >= 0]] = True
    code, host_step = host["name"].to_physical().fill_null(0).to_numpy(), host["step"].to_numpy()
    with_work = gather(has_work, host_step, missing=False)
    calls = np.bincount(code[with_work], minlength=int(code.max(initial=0)) + 1)
    launch_calls = np.bincount(code[with_work & does_launch], minlength=calls.size)
    always = (launch_calls >= _NEARLY_ALL * calls) & (launch_calls > 0)
    usual = always[code] & (host_step >= 0)
    usual_launches = np.bincount(host_step[usual], minlength=count)
    alike = np.bincount(host_step[usual & _take_as_long(code, host_step, host["dur_ns"], with_work)], minlength=count)
    is_silent: Mask = ~has_work & (usual_launches >= _FEW_CALLS) & (alike >= _MOST * usual_launches)
    return is_silent


def _take_as_long(code: Ints, step: Ints, dur_ns: pl.Series, with_work: Mask) -> Mask:
    """Which calls are of operators that take about as long in their step as in the steps that launch work."""
    calls = pl.DataFrame({"code": code, "step": step, "dur_ns": dur_ns, "with_work": with_work})
    median = pl.col("dur_ns").median()
    usual = calls.filter("with_work").group_by("code").agg(median.alias("usual_ns"))
    own = calls.select("code", "step", median.over("code", "step").alias("own_ns"))
    both = own.join(usual, "code", "left", maintain_order="left")
    own_ns, usual_ns = (both[name].fill_null(0).to_numpy() for name in ("own_ns", "usual_ns"))
    as_long: Mask = (own_ns <= _ALIKE * usual_ns) & (usual_ns <= _ALIKE * own_ns)
    return as_long


@once_per_recording
def lone_rows(trace: Trace) -> Mask:
    """Which device rows have no recorded launch, but for those that precede the first row of their stream that has.

    These were launched before the recording began.
    """
    has_none = (trace.device_events["launch"] == NONE).to_numpy()
    if not has_none.any():
        return has_none
    rows = trace.device_events.select("device", "stream", "start_ns", is_lone=pl.Series(has_none))
    first = pl.col("start_ns").filter(~pl.col("is_lone")).min().over("device", "stream")
    is_meant = pl.col("is_lone") & (first.is_null() | (pl.col("start_ns") >= first))
    lone: Mask = rows.select(is_meant.fill_null(value=False)).to_series().to_numpy()
    return lone


def is_no_launch_known(trace: Trace) -> bool:
    """Whether it is recorded of no device work which call launched it, though there is some."""
    return bool(trace.device_events.height and lone_rows(trace).all())


def are_launches_known(trace: Trace) -> bool:
    """Whether it is recorded which calls launch work: else a graph of the step doesn't say what waits for what."""
    return bool(lone_rows(trace).sum() <= _FEW_LONE * trace.device_events.height)


def is_work_missing(trace: Trace) -> bool:
    """Whether so many launches have no work that work is missing, too, and not only launches of recorded work."""
    return bool(missing_work(trace).sum() > _MANY * lone_rows(trace).sum())


@once_per_recording
def capture_spans(trace: Trace) -> Intervals:
    """From each call that begins to capture a stream to the call of its thread that ends it."""

    def calls(of: str) -> pl.DataFrame:
        is_of = map_categories(trace.launches["name"], lambda name: of in name)
        rows = trace.launches.filter(pl.Series(is_of, dtype=pl.Boolean))
        return rows.select("thread", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"))

    begins = calls("StreamBeginCapture").drop("end_ns")
    ends = calls("StreamEndCapture").drop("start_ns")
    pairs = (
        begins.sort("start_ns")
        .join_asof(
            ends.sort("end_ns"),
            left_on="start_ns",
            right_on="end_ns",
            by="thread",
            strategy="forward",
            check_sortedness=False,
        )
        .drop_nulls()
    )
    return merge([(pairs["start_ns"].to_numpy(), pairs["end_ns"].to_numpy())])


def captured_launches(trace: Trace) -> Mask:
    """Which calls that launch one kernel were captured, and so launched nothing."""
    without_work: Mask = kernel_launches(trace) & _in_capture(trace)
    return without_work


def _in_capture(trace: Trace) -> Mask:
    """Which calls were made during graph capture, when they launch nothing."""
    launches = trace.launches
    start = launches["start_ns"].to_numpy()
    begins = np.sort(start[map_categories(launches["name"], lambda name: "StreamBeginCapture" in name)])
    ends = np.sort(start[map_categories(launches["name"], lambda name: "StreamEndCapture" in name)])
    is_inside: Mask = np.searchsorted(begins, start, "right") > np.searchsorted(ends, start, "left")
    return is_inside
