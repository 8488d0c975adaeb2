"""The trace of one worker and one span, as columns.

model        the columns and their meaning; `Trace`, `Diagnostic`
meta         the metadata of the file
assemble     recorded columns → a `Trace` with its derived columns: second copies, nesting, links, steps
steps        when each step begins and ends
row_filters  rows of a trace by their values
communication which rows communicate, and by which evidence
results      what is computed from a trace, once for all callers
"""

from .model import Diagnostic, Trace

__all__ = ["Diagnostic", "Trace"]
