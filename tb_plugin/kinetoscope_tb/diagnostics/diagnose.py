"""What reading a trace repaired or lost, and what the rules find."""

from __future__ import annotations

from ..trace import Diagnostic, Trace
from ..trace.results import once_per_trace
from . import (
    captures,
    clocks,
    device,
    distributed,
    links,
    other_files,
    physics,
    recording,
    stack_overlaps,
    steps,
)

LEVELS = ("loss", "warning", "note")
_RULES = (device, physics, clocks, steps, links, stack_overlaps, distributed, recording, captures)


def diagnose(trace: Trace) -> list[Diagnostic]:
    """What was repaired or lost while reading, and what the rules find; losses first, then warnings, then notes."""
    return [*_diagnostics(trace)]


@once_per_trace
def _diagnostics(trace: Trace) -> tuple[Diagnostic, ...]:
    # what the other rules say is about torch.profiler, and how to use it
    rules = _RULES if trace.meta.foreign_writer is None else (other_files,)
    diagnostics = [*trace.diagnostics, *(diagnostic for rule in rules for diagnostic in rule.diagnose(trace))]
    return tuple(sorted(diagnostics, key=lambda diagnostic: LEVELS.index(diagnostic.level)))
