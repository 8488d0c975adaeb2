"""What can't have happened: invariants of physics that a recording breaks, and what that makes doubtful.

limits      the bounds of all checks, with the reason of each
times       the times that the checks compare: device rows, their launches, the steps that count
completion  a kernel that outlives the synchronize that waited for it
overlaps    a kernel that covers others of its stream
losses      launches without GPU events, also because a graph is captured
order       a stream that runs its work in another order than it was launched in
clocks      device rows before their launch, clocks that drift, a window cut out of running work
units       times that are too long or too short for what was timed
overhead    what recording itself takes of the steps

Events that were recorded twice are left out where frames are assembled (trace/assemble.py). Each check is vectorized
and looks only at times of calls and device rows, so that all of them together cost a small part of reading the trace.
"""

from __future__ import annotations

from ...trace import Diagnostic, Trace
from ...trace.results import once_per_recording
from . import clocks, completion, losses, order, overhead, overlaps, units
from .times import Times

_CHECKS = (completion, overlaps, losses, order, clocks, units, overhead)


@once_per_recording
def diagnose(trace: Trace) -> tuple[Diagnostic, ...]:
    """What contradicts physics in a trace."""
    times = Times(trace)
    return tuple(diagnostic for check in _CHECKS for diagnostic in check.diagnose(times))
