"""What a view's numbers are worth: which of them the recording's faults make doubtful."""

from __future__ import annotations

from ..advice.facts import Facts
from ..advice.faults import Faults
from ..diagnostics import physics
from ..trace import Trace
from ..trace.model import NumberKind
from ..trace.results import once_per_recording
from ..view import View


def doubt(trace: Trace, view: View) -> str:
    """A sentence that says which part of a view's numbers is doubtful, and why; empty if the recording bears them.

    Views of several ranks' recordings have none: diagnostics of the run say what they lack.
    """
    return _doubt(trace, view.rests_on) if view.rests_on else ""


@once_per_recording
def _doubt(trace: Trace, numbers: frozenset[NumberKind]) -> str:
    diagnostics = (*trace.diagnostics, *physics.diagnose(trace))
    return Faults(Facts(trace), diagnostics).doubt(numbers)
