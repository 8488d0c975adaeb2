"""What is loaded: the listing, traces and results, each made once and kept while it is true.

A question never waits for a file: if an answer takes longer than `PATIENCE_S`, the reply is `Loading`, and the work
goes on behind it.

store     the questions
loads     which traces are in memory, with what was computed from them
files     a file as a trace, by way of the cache
gathering many files as summaries, for views of whole runs; run_loads holds those of some runs
crews     who reads many files
beside    summaries that lie beside their recordings
read_queue which file is read next
workers   threads
answers   loading, partly known, missing, or a table
"""

from __future__ import annotations

from .answers import Loading, Missing, Partial, compute, compute_comparison, with_notes
from .crews import crew, local_crew
from .files import event_in, keep, open_or_read, read_trace
from .gathering import Crew, files_of, ranks_of, summaries
from .store import Store

__all__ = [
    "Crew",
    "Loading",
    "Missing",
    "Partial",
    "Store",
    "compute",
    "compute_comparison",
    "crew",
    "event_in",
    "files_of",
    "keep",
    "local_crew",
    "open_or_read",
    "ranks_of",
    "read_trace",
    "summaries",
    "with_notes",
]
