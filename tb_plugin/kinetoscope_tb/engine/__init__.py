"""What is loaded: the listing, traces and results, each computed once and kept while it is current.

A question never waits for a file: if an answer takes longer than `PATIENCE_S`, `NotReady` is raised, and the work goes
on in the background.

store              the questions
trace_cache        which traces are in memory, with what was computed from them
files              a file as a trace, by way of the cache on disk
summary_loader     many files as summaries, for views of whole runs; run_cache holds those of some runs
future_cache       keyed results with a least-recently-used limit, which those hold everything in
executors          who reads many files
sidecar_summaries  summaries that lie beside their recordings
read_queue         which file is read next
workers            threads
answers            not ready, partly known, missing, or a table
cache              traces on disk that were read before
"""

from __future__ import annotations

from .answers import (
    LoadingProgress,
    Missing,
    NotReady,
    Partial,
    ask_all,
    compute,
    compute_comparison,
    merge_run_notes,
)
from .executors import executors, local_executors
from .files import event_in, open_or_read, read_trace, write_to_cache
from .store import Store
from .summary_loader import ExecutorFactory, files_of, load_summaries, ranks_of

__all__ = [
    "ExecutorFactory",
    "LoadingProgress",
    "Missing",
    "NotReady",
    "Partial",
    "Store",
    "ask_all",
    "compute",
    "compute_comparison",
    "event_in",
    "executors",
    "files_of",
    "load_summaries",
    "local_executors",
    "merge_run_notes",
    "open_or_read",
    "ranks_of",
    "read_trace",
    "write_to_cache",
]
