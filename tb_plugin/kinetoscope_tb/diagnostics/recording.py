"""The profiler's own cost, and options that were off."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from ..arrays.gather import map_categories
from ..arrays.intervals import length_within
from ..measures.time.breakdown import intervals_of
from ..trace import Diagnostic, Trace

_NOTICEABLE = 0.01  # of the recording
_ADVICE = {  # by the names that kineto gives (c2bbbdd4 added the last four)
    "Buffer Flush": "The vendor's library flushes full buffers: record fewer steps at a time.",
    "Driver Compiler": "The driver compiles kernels for this device: warm up for more steps before recording.",
    "Runtime Triggered Module Loading": "Kernels are loaded when first used: warm up for more steps before recording.",
    "Lazy Function Loading": "Kernels are loaded when first used: warm up for more steps before recording.",
    "Command Buffer Full": "The device's queue was full, so the host waited: the program is ahead of its device.",
    "Activity Buffer Request": "The vendor's library requests recording buffers: record fewer steps at a time.",
    "Instrumentation": "Recording itself: fewer options and fewer steps cost less.",
    "Resource": "Recording itself: fewer options and fewer steps cost less.",
}


def diagnose(trace: Trace) -> Iterator[Diagnostic]:
    """Recovery, overhead, then options."""
    if trace.meta.producer.get("is_recovered") is True:
        yield Diagnostic(
            "recovered",
            1,
            "The process was killed, so this trace was recovered from its journal: it has steps, markers and counters. "
            "Operators and kernels are lost.",
        )
    yield from _overhead(trace)
    yield from _profiler_in_steps(trace)
    if trace.ops.is_empty() and trace.meta.events:
        yield Diagnostic(
            "operators_off",
            1,
            "No operators were recorded, so nothing is known about the model's own code. Add ProfilerActivity.CPU to "
            "the profiler's activities.",
            level="note",
        )
    yield from _options(trace)


def _overhead(trace: Trace) -> Iterator[Diagnostic]:
    rows = trace.others.filter(
        (pl.col("category").cast(pl.String).str.to_lowercase() == "overhead") & (pl.col("dur_ns") > 0)
    )
    length = trace.window[1] - trace.window[0]
    start, end = intervals_of(rows)
    spent = int((end - start).sum())
    if not length or spent <= _NOTICEABLE * length:
        return
    costs = []
    for (name,), part in rows.group_by(pl.col("name").cast(pl.String)):
        start, end = intervals_of(part)
        costs.append((int((end - start).sum()), str(name), part.height))
    costs.sort(reverse=True)
    listed = ", ".join(f"{name} {100 * cost / length:.1f} % ({count}×)" for cost, name, count in costs)
    words = f"The profiler and the driver were busy for {100 * spent / length:.1f} % of the recording: {listed}. "
    words += f"Host times include the cost of profiling. {_ADVICE.get(costs[0][1], '')}"
    yield Diagnostic("profiler_overhead", rows.height, words.strip(), int(rows["offset"].min()))  # type: ignore[arg-type]


def _profiler_in_steps(trace: Trace) -> Iterator[Diagnostic]:
    """Python frames of the profiler itself, as far as they lie within steps."""
    calls = trace.python_calls
    own = calls.filter(pl.Series(map_categories(calls["name"], lambda name: "torch/profiler/" in name)))
    start, end = (trace.steps[name].to_numpy() for name in ("host_start_ns", "host_end_ns"))
    length, spent = int((end - start).sum()), int(length_within(intervals_of(own), start, end).sum())
    if length and spent > _NOTICEABLE * length:
        yield Diagnostic(
            "profiler_in_steps",
            own.height,
            f"The profiler's own Python code takes {100 * spent / length:.1f} % of the steps; host times include it.",
            level="note",
        )


def _options(trace: Trace) -> Iterator[Diagnostic]:
    """Options that were off, judging by missing events: torch before 2.0 doesn't write options."""
    has_shapes = trace.ops["input_shapes"].null_count() < trace.ops.height
    options = (
        ("shapes_off", "record_shapes", "Input shapes", has_shapes or trace.ops.is_empty(), ""),
        ("memory_off", "profile_memory", "Allocations", trace.memory.height > 0, ""),
        ("stacks_off", "with_stack", "Python stacks", trace.holds("stacks"), ", at a cost in time and size"),
    )
    for rule, option, what, is_there, cost in options:
        if is_there:
            continue
        if trace.meta.has_option(option):
            words = f"{option}=True was set, but the file has no such events, so views that need them are empty."
            yield Diagnostic(rule.replace("_off", "_empty"), 1, words, level="note")
        else:
            yield Diagnostic(rule, 1, f"{what} were not recorded; {option}=True records them{cost}.", level="note")
