"""What recording itself takes of the steps: the profiler's and the driver's own work, and tracing Python calls.

The recorder knows how long steps take without a profiler, so the whole cost is known of its recordings.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from ...measures.recording.options import how_to_record_less, was_on
from ...measures.recording.usual_step import LARGE_OVERHEAD, MOST_EVENT_NS, UsualStep, usual_step
from ...measures.time.breakdown import intervals_of
from ...measures.time.host_activity import launching_threads
from ...names import text
from ...trace import Diagnostic, Trace
from ...trace.model import Fault, NumberKind
from . import limits
from .times import Times

_NOTICEABLE = 0.01  # of the recording
_ADVICE = {  # by the names that kineto gives (c2bbbdd4 added the last four)
    "Buffer Flush": "The vendor's library flushes full buffers: {record_less}.",
    "Driver Compiler": "The driver compiles kernels for this device: warm up for more steps before recording.",
    "Runtime Triggered Module Loading": "Kernels are loaded when first used: warm up for more steps before recording.",
    "Lazy Function Loading": "Kernels are loaded when first used: warm up for more steps before recording.",
    "Command Buffer Full": "The device's queue was full, so the host waited: the program is ahead of its device.",
    "Activity Buffer Request": "The vendor's library requests recording buffers: {record_less}.",
    "Instrumentation": "This is recording itself: {record_less}.",
    "Resource": "This is recording itself: {record_less}.",
}
_UNDERMINED: frozenset[NumberKind] = frozenset({"host_times", "idle"})
_FIRST_BUFFER = (
    "The vendor's library requests its first recording buffer: this is a smaller part of a longer recording."
)
_OPTIONS = {"shapes": "record_shapes", "memory": "profile_memory", "stacks": "with_stack"}
"""What options record, each of which costs time in every operator."""
_DEVICE_ALONE = "Where host times don't matter, record without ProfilerActivity.CPU; no option that costs much was on."
_WITHOUT_STACKS = "Record without Python stacks (with_stack=False), and use stacks only to find the code."


def diagnose(times: Times) -> Iterator[Diagnostic]:
    """The cost of recording."""
    yield from _overhead(times)
    yield from _stacks(times)
    yield from _slowed_steps(times)


def _overhead(times: Times) -> Iterator[Diagnostic]:
    trace = times.trace
    rows = trace.others.filter(
        (pl.col("category").cast(pl.String).str.to_lowercase() == "overhead") & (pl.col("dur_ns") > 0)
    )
    length = trace.window[1] - trace.window[0]
    start, end = intervals_of(rows)
    total_ns = int((end - start).sum())
    if not length or total_ns <= _NOTICEABLE * length:
        return
    costs = []
    for (name,), part in rows.group_by(pl.col("name").cast(pl.String)):
        start, end = intervals_of(part)
        costs.append((int((end - start).sum()), str(name), part.height))
    costs.sort(reverse=True)
    shares = ", ".join(f"{name} {text.percent(cost / length)} ({count}×)" for cost, name, count in costs)
    words = f"The profiler and the driver were busy for {text.percent(total_ns / length)} of the recording: {shares}. "
    words += f"Host times include the cost of profiling. {_advice(trace, *costs[0][1:])}"
    offset = int(rows["offset"].to_numpy().min())
    yield Diagnostic("profiler_overhead", rows.height, words.strip(), offset, fault=_overhead_fault(times, rows))


def _advice(trace: Trace, name: str, count: int) -> str:
    """What to do about the largest cost."""
    if (name, count) == ("Activity Buffer Request", 1):
        return _FIRST_BUFFER
    return _ADVICE.get(name, "").format(record_less=how_to_record_less(trace))


def _overhead_fault(times: Times, rows: pl.DataFrame) -> Fault | None:
    start, end = intervals_of(rows)
    within = times.within_steps(start, end)
    if times.share(within) < LARGE_OVERHEAD:
        return None
    fact = f"Recording itself takes {text.percent(times.share(within))} of the steps"
    idle = times.idle_within_steps(start, end) if times.start.size else within
    remedy = f"{text.capitalize(how_to_record_less(times.trace))}, after more warm-up."
    return Fault(fact, _UNDERMINED, remedy, idle, is_recording=True)


def _stacks(times: Times) -> Iterator[Diagnostic]:
    """Tracing Python calls, at the least that a call costs."""
    trace = times.trace
    calls = trace.python_calls
    if calls.is_empty() or not times.steps_ns:
        return
    launches = launching_threads(trace)
    start = np.sort(calls["start_ns"].to_numpy()[~launches.any() | launches[calls["thread"].to_numpy()]])
    count = int((np.searchsorted(start, times.steps[1]) - np.searchsorted(start, times.steps[0])).sum())
    cost = limits.PYTHON_CALL_NS * count
    if count < limits.FEW_ROWS or times.share(cost) < LARGE_OVERHEAD:
        return
    share = f"{text.percent(times.share(cost))} of the steps at {limits.PYTHON_CALL_NS} ns each"
    fact = f"Tracing {text.digits(count)} Python calls takes {share}"
    affected_ns = min(cost, int(times.gaps.sum())) if times.start.size else cost
    yield Diagnostic(
        "stacks_slow_host",
        count,
        f"{fact}, as on a fast machine; others need more. Host times include it, and devices wait for it. "
        f"{_WITHOUT_STACKS}",
        fault=Fault(fact, _UNDERMINED, _WITHOUT_STACKS, affected_ns, is_recording=True),
    )


def _slowed_steps(times: Times) -> Iterator[Diagnostic]:
    """Steps that take longer than those that the recorder timed without a profiler."""
    steps = usual_step(times.trace)
    if steps is None:
        return
    count, recorded_ns = steps.recorded_count, round(times.steps_ns / steps.recorded_count)
    usual_ns = steps.mean_ns(recorded_ns)
    cost = recorded_ns - usual_ns
    fact = f"The average recorded step takes {text.time(recorded_ns)}"
    usual_time = text.time(usual_ns)
    clause = f"{fact} instead of {usual_time}{'' if steps.is_explained else ' or more'} without the profiler"
    affected_ns, consequence = cost * count, "Host times include it."
    if times.start.size and times.steps_ns:
        share, usual_share = _idle_shares(times, cost * count)
        affected_ns = round((share - usual_share) * times.steps_ns)
        consequence = (
            "Host times include it, and devices wait for it: nothing runs on any of them for "
            f"{text.percent(share)} of the recorded steps, and for about {text.percent(usual_share)} of the others."
        )
        clause += (
            f", and devices are idle for {text.percent(share)} of these steps instead of about "
            f"{text.percent(usual_share)}"
        )
    remedy = _with_fewer_options(times.trace)
    yield Diagnostic(
        "recording_slows_steps",
        count,
        f"{fact}, and one without the profiler {usual_time} ({_by(steps)}): recording costs the host "
        f"{text.time(cost)} per step. {consequence} {remedy}",
        fault=Fault(clause, _UNDERMINED, remedy, affected_ns, is_recording=True, cost_ns=cost * count),
    )


def _with_fewer_options(trace: Trace) -> str:
    """Which options to record without, of those that were on."""
    options = {what: option for what, option in _OPTIONS.items() if was_on(trace, option)}
    if not options:
        return _DEVICE_ALONE
    if len(options) == 1:
        ((what, option),) = options.items()
        return f"Record without {what} ({option}=False), which cost time in each operator."
    return f"Record with fewer options: {text.enumeration(list(options))} cost time in each operator."


def _by(steps: UsualStep) -> str:
    """What the length of a step without the profiler is known by."""
    count = text.times(steps.recorded_count, "recorded step")
    of_recorded = f"on the host, the {{}} of {count} is {text.time(steps.sure_ns)}"
    whose = f"of {text.times(steps.usual_count, 'step')} timed without it"
    without = f"{whose} {text.time(steps.host_ns)}"
    if not steps.is_explained:
        return (
            f"or more: recording an event of the host costs at most {text.time(MOST_EVENT_NS)}; the median {whose} is "
            f"{text.time(steps.host_ns)}, for other reasons too"
        )
    device = f", and a device is busy for {text.time(steps.busy_ns)}" if steps.busy_ns > steps.host_ns else ""
    if steps.is_steady:
        return f"{of_recorded.format('median')}, that {without}{device}"
    return f"{of_recorded.format('tenth percentile')}, the median {without}{device}"


def _idle_shares(times: Times, cost: int) -> tuple[float, float]:
    """The share of the steps in which no device runs anything: as recorded, and without `cost` of that time."""
    idle = int(times.gaps.sum())
    return idle / times.steps_ns, max(0, idle - cost) / max(1, times.steps_ns - cost)
