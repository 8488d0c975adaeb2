"""Files that torch.profiler didn't write: those of other programs, and memory snapshots with the trace next to them."""

from __future__ import annotations

from collections.abc import Iterator

from ..filesystem import last_part, printable
from ..measures.recording.contents import has_snapshot
from ..trace import Diagnostic, Trace
from ..trace.model import CALL_EVIDENCE

FOREIGN = "foreign_writer"
_REASONS = {
    "several": "while operators of several threads were open",
    "between": "within 5 µs of the begin or end of an operator",
    "no call": "outside of operators",
}


def diagnose(trace: Trace) -> Iterator[Diagnostic]:
    """What can be said of the file nevertheless."""
    return _allocations_with_operators(trace) if has_snapshot(trace) else _other_program(trace)


def _other_program(trace: Trace) -> Iterator[Diagnostic]:
    by_name = " Kernels and copies are recognized by their names and lanes." if trace.device_events.height else ""
    yield Diagnostic(
        FOREIGN,
        trace.meta.events,
        f"This file was written by {trace.meta.foreign_writer}, not by torch.profiler: it has no operators, modules or "
        f"memory of PyTorch. The timeline and the busy time of each lane show what it has.{by_name}",
    )


def _allocations_with_operators(trace: Trace) -> Iterator[Diagnostic]:
    """How many operators are known, and why others aren't; nothing without a trace next to the snapshot."""
    of_trace = trace.allocating_calls
    if of_trace is None:
        return
    name = printable(last_part(of_trace.path))
    if of_trace.problem:
        words = (
            f"{name} may say which operators allocated the memory, but can't be read: {of_trace.problem.rstrip('.')}."
        )
        yield Diagnostic("snapshot_trace_damaged", 1, f"{words} The snapshot itself is whole.")
        return
    counts = dict(of_trace.calls["evidence"].drop_nulls().value_counts().rows())
    count = {kind: counts.get(kind, 0) for kind in CALL_EVIDENCE.categories}
    allocations = sum(count.values()) - count["outside"] - count["no time"]
    if not allocations:
        words = f"{name} covers none of the allocations of the snapshot: it says nothing of their operators."
        yield Diagnostic("snapshot_of_another_time", 1, words, level="note")
        return
    known_count = count["record"] + count["time"]
    reasons = [f"{count[kind]} {reason}" for kind, reason in _REASONS.items() if count[kind]]
    yield Diagnostic(
        "snapshot_joined",
        allocations,
        f"{name} says which operators made {known_count} of the {allocations} allocations in its time: "
        f"{count['record']} by their address, {count['time']} as the only operator that was open."
        + (f" Not of these: {', '.join(reasons)}." if reasons else ""),
        level="note",
    )
