"""The trace: what one worker did in one span, as columns.

model     the columns and what they mean; `Trace`, `Diagnostic`
meta      what the file says beside its events
assemble  recorded columns → a `Trace` with its derived columns: nesting, links, steps
steps     from when to when each step lasts
"""

from .model import Diagnostic, Trace

__all__ = ["Diagnostic", "Trace"]
