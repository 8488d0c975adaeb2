"""Files that torch.profiler didn't write."""

from __future__ import annotations

from collections.abc import Iterator

from ..measures.recording.contents import has_snapshot
from ..trace import Diagnostic, Trace

FOREIGN = "foreign_writer"


def diagnose(trace: Trace) -> Iterator[Diagnostic]:
    """That another program wrote the file, and what can be said of it nevertheless."""
    if trace.meta.foreign_writer is None or has_snapshot(trace):
        return
    by_name = " Kernels and copies are recognized by their names and lanes." if trace.device_events.height else ""
    yield Diagnostic(
        FOREIGN,
        trace.meta.events,
        f"This file was written by {trace.meta.foreign_writer}, not by torch.profiler: it has no operators, modules or "
        f"memory of PyTorch. The timeline and the busy time of each lane show what it has.{by_name}",
    )
