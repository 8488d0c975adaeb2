"""Which parts a trace holds, looked up once: the page asks for each view with every state of the trace."""

from __future__ import annotations

from ...trace import Trace
from ...trace.memo import once_per_trace


@once_per_trace
def holds(trace: Trace, part: str) -> bool:
    """`Trace.holds`, which looks at every row."""
    return trace.holds(part)
