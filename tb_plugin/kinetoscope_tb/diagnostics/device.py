"""Device rows and the calls that launched them: which of the two is missing, and why. And clocks that fell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from ..arrays.gather import map_categories
from ..arrays.intervals import union, without
from ..measures.recording.hardware_counters import HardwareCounter, hardware_counters
from ..measures.recording.lost_launches import kernel_launches
from ..measures.recording.throttling import LOW, Throttling, is_sm_clock, throttling
from ..measures.recording.unrecorded_device import unrecorded_device
from ..measures.time.breakdown import intervals_of
from ..names import text
from ..trace import Diagnostic, Trace
from ..trace.model import Fault

_AGREES = 0.01  # of the time
_NOTICEABLE = 0.01  # of the time in which kernels ran
_WITH_CALLS = "Record with ProfilerActivity.CPU and the device's activity together, without a filter of runtime calls."
_COUNT_WHERE_THEY_RUN = (
    "They count in totals and in the steps in which they run, but which operator and step launched them is unknown."
)
_CAUSES = {"Power": "power", "Temperature": "temperature"}


def diagnose(trace: Trace) -> Iterator[Diagnostic]:
    """Missing links between host and device, then clocks."""
    if trace.device_events.is_empty():
        yield from _without_device_rows(trace)
        return
    yield from _without_launch(trace)
    yield from _outside_operators(trace)
    yield from _of_ai_cpus(trace)
    yield from _overlap_analysis(trace)
    yield from _throttled_clocks(trace)


def _without_device_rows(trace: Trace) -> Iterator[Diagnostic]:
    calls = int(kernel_launches(trace).sum())
    if calls:
        yield Diagnostic(
            "device_not_recorded",
            calls,
            "Calls launched kernels, but no device events were recorded: all times here are the host's. The vendor's "
            "tracing library returned nothing: another profiler may use the device, the driver may not permit it "
            "(on NVIDIA, NVreg_RestrictProfilingToAdminUsers=0 does), or nothing ran before the end.",
        )
        return
    device = unrecorded_device(trace)
    if device is not None:
        condition = "" if device.was_used else "if the job ran on it, "
        yield Diagnostic(
            "device_off",
            1,
            f"{device.evidence}, but no device work was recorded: {condition}all times here are the host's. Add "
            f"{device.activity} to the profiler's activities.",
        )


def _without_launch(trace: Trace) -> Iterator[Diagnostic]:
    columns = ("device", "stream", "start_ns", "correlation", "launch", "offset")
    device = trace.device_events.select(*columns, op=trace.recorded_op)
    lone = device.filter((pl.col("launch") < 0) & (pl.col("op") < 0))  # old writers link the operator, not the call
    if lone.is_empty():
        return
    if lone.height == device.height and not kernel_launches(trace).any():
        yield Diagnostic(
            "launches_not_recorded",
            lone.height,
            "No calls that launch device work were recorded, so which operators and steps launched it is unknown, and "
            f"so is why devices are idle. {_WITH_CALLS}",
            fault=_work_outside_steps(trace),
        )
        return
    without_correlation = lone.filter(pl.col("correlation") < 0)
    first = device.filter(pl.col("launch") >= 0).group_by("device", "stream").agg(first=pl.col("start_ns").min())
    with_correlation = lone.filter(pl.col("correlation") >= 0).join(first, on=["device", "stream"], how="left")
    before = with_correlation.filter(pl.col("start_ns") < pl.col("first")).height
    if without_correlation.height:
        yield Diagnostic(
            "device_rows_without_correlation",
            without_correlation.height,
            f"GPU events have no link to their launching call. {_COUNT_WHERE_THEY_RUN}",
            int(without_correlation["offset"].min()),  # type: ignore[arg-type]  # it isn't empty
        )
    if before:
        yield Diagnostic(
            "device_rows_from_before",
            before,
            "Device work was launched before the recording began and ran into it. It counts in totals, but for no "
            "operator and no step.",
            level="note",
        )
    if with_correlation.height - before:
        yield Diagnostic(
            "device_rows_without_launch",
            with_correlation.height - before,
            "GPU events lack their launching call, though calls around it were recorded: the profiler lost it, or "
            f"the file was cut. {_COUNT_WHERE_THEY_RUN}",
        )


def _work_outside_steps(trace: Trace) -> Fault | None:
    """That steps end too early, since none has the device work that it launched; None if all of it lies in them."""
    steps = trace.steps["start_ns"].to_numpy(), trace.steps["end_ns"].to_numpy()
    begin, end = without(intervals_of(trace.device_events), union(*steps))
    outside_ns = int((end - np.maximum(begin, steps[0][0])).clip(0).sum())
    if not outside_ns:
        return None
    fact = f"No step has the device work that it launched, and {text.time(outside_ns)} of that lie behind the steps"
    return Fault(fact, frozenset({"steps"}), _WITH_CALLS, outside_ns)


def _of_ai_cpus(trace: Trace) -> Iterator[Diagnostic]:
    is_apart = map_categories(trace.device_events["name"], lambda name: name.endswith(" (AI_CPU)"))
    if is_apart.any():
        ns = int(trace.device_events["dur_ns"].to_numpy()[is_apart].sum())
        yield Diagnostic(
            "ai_cpu_kernels",
            int(is_apart.sum()),
            f"Kernels ran on the NPU's AI CPUs for {text.time(ns)}, since its AI Cores don't have them. They count "
            "as busy, as in the file's own row Computing, and their names end in (AI_CPU).",
            level="note",
        )


def _overlap_analysis(trace: Trace) -> Iterator[Diagnostic]:
    """Whether torch_npu's own rows agree on how long the NPU computes."""
    threads = np.flatnonzero((trace.threads["process"] == "Overlap Analysis").fill_null(value=False).to_numpy())
    is_theirs = trace.others["thread"].is_in(threads.tolist()) & (trace.others["name"].cast(pl.String) == "Computing")
    theirs = trace.others.filter(is_theirs)
    if theirs.is_empty():
        return
    ours = trace.device_events.filter((pl.col("kind") == "kernel") & ~pl.col("is_communication"))
    kernel_ns, computing_ns = (int(np.subtract(*intervals_of(rows)[::-1]).sum()) for rows in (ours, theirs))
    if abs(kernel_ns - computing_ns) > _AGREES * computing_ns:
        yield Diagnostic(
            "overlap_differs",
            theirs.height,
            f"The file's own row Computing covers {text.time(computing_ns)}, its kernels {text.time(kernel_ns)}: "
            "kernels are missing, or aren't known as such.",
        )


def _outside_operators(trace: Trace) -> Iterator[Diagnostic]:
    rows = int(trace.device_events.select(((pl.col("launch") >= 0) & (pl.col("op") < 0)).sum()).item())
    if rows:
        yield Diagnostic(
            "launches_outside_operators",
            rows,
            "No recorded operator launched these GPU events; operator tables show their time as unattributed.",
            level="note",
        )


def _throttled_clocks(trace: Trace) -> Iterator[Diagnostic]:
    """One for each device whose clock fell while kernels ran, as far as samples prove it."""
    by_device: defaultdict[int, list[HardwareCounter]] = defaultdict(list)
    for counter in hardware_counters(trace):
        by_device[counter.device].append(counter)
    for device, counters in sorted(by_device.items()):
        rows = trace.device_events
        kernels = intervals_of(rows, ((rows["kind"] == "kernel") & (rows["device"] == device)).to_numpy())
        for clock in filter(is_sm_clock, counters):
            slow = throttling(clock, kernels)
            if slow and slow.share >= _NOTICEABLE:
                yield Diagnostic(
                    "clock_throttled", slow.start.size, _throttling_words(device, slow, counters), level="note"
                )


def _throttling_words(device: int, slow: Throttling, counters: Sequence[HardwareCounter]) -> str:
    means = [(counter, counter.mean(slow.start, slow.end)) for counter in counters if counter.name in _CAUSES]
    causes = [f"{_CAUSES[c.name]} {mean:,.0f} {c.unit}" for c, mean in means if mean is not None]
    then = f" Then, on average: {text.enumeration(causes)}." if causes else ""
    clocks = f"from {slow.highest_mhz:,.0f} to {slow.lowest_mhz:,.0f} MHz"
    low = f"{100 * LOW:.0f} % of its earlier value for {text.time(slow.length_ns)}"
    kernels = f"{text.time(slow.kernel_ns)} of kernel time ({text.percent(slow.share)})"
    return (
        f"The SM clock of device {device} fell {clocks} while kernels ran. It was below {low}, first at "
        f"{text.time(int(slow.start[0]))}; {kernels} fell there.{then} A limit of power or heat, or a setting, lowers "
        "the clock: `nvidia-smi -q -d PERFORMANCE` names it during a run. Compare kernel times only between "
        "recordings with equal clocks."
    )
