"""What reading a trace repaired or lost, and what the rules find."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

from ..trace import Diagnostic, Trace
from ..trace.model import NO_CAPTURES
from ..trace.results import once_per_trace

LEVELS = ("loss", "warning", "note")
_OF_TORCH = ("device", "physics", "clocks", "steps", "links", "stack_overlaps", "distributed", "recording")
_OF_CAPTURES, _OF_OTHERS = ("captures",), ("other_files",)
"""Modules of rules, each imported for the recordings that it is about: `diagnose` of one asks all of its rules."""


def diagnose(trace: Trace) -> list[Diagnostic]:
    """What was repaired or lost while reading, and what the rules find; losses first, then warnings, then notes."""
    return [*_diagnostics(trace)]


@once_per_trace
def _diagnostics(trace: Trace) -> tuple[Diagnostic, ...]:
    diagnostics = [
        *trace.diagnostics,
        *(diagnostic for module in _modules(trace) for diagnostic in module.diagnose(trace)),
    ]
    return tuple(sorted(diagnostics, key=lambda diagnostic: LEVELS.index(diagnostic.level)))


def _modules(trace: Trace) -> Iterator[ModuleType]:
    # what the rules of torch say is about torch.profiler, and how to use it
    names: tuple[str, ...] = _OF_TORCH if trace.meta.foreign_writer is None else _OF_OTHERS
    if trace.meta.foreign_writer is None and trace.captures is not NO_CAPTURES:
        names += _OF_CAPTURES
    return (import_module(f".{name}", __package__) for name in names)
