"""Finds the runs, workers and spans under the logdirs.

A run is a folder with traces, a worker one of its processes, a span one recording of that worker. A request never
becomes a path: its names are looked up in a `Listing`. Nothing here starts a thread.

logdirs            TensorBoard's flags → logdirs
scanner            logdirs → listing
filename_patterns  worker and span from a file's name, for each known writer
header_probe       rank and host from a file's first bytes
manifest_notes     notes from run.json: which ranks are missing, and why
captures           captures of graphs next to a trace; the trace next to a memory snapshot
processes          files that hold several processes
listing            files by run, worker and span, with the names on the page
recency            which run and which span is the newest
jobs               jobs that record into the logdirs, and requests to them
"""

from __future__ import annotations

from .captures import BEGINS_CAPTURE, CapturePlaces, captures_beside, holds_node_notes, spans_beside, traces_beside
from .filename_patterns import NO_SPAN, is_process_name
from .header_probe import Heads
from .listing import Listing, Problem, TraceFile, newest_span, run_labels, span_labels
from .logdirs import Logdir, logdirs_of, parse_logdirs
from .manifest_notes import Manifests, Note
from .processes import with_processes
from .scanner import list_path, list_paths, list_traces

__all__ = [
    "BEGINS_CAPTURE",
    "NO_SPAN",
    "CapturePlaces",
    "Heads",
    "Listing",
    "Logdir",
    "Manifests",
    "Note",
    "Problem",
    "TraceFile",
    "captures_beside",
    "holds_node_notes",
    "is_process_name",
    "list_path",
    "list_paths",
    "list_traces",
    "logdirs_of",
    "newest_span",
    "parse_logdirs",
    "run_labels",
    "span_labels",
    "spans_beside",
    "traces_beside",
    "with_processes",
]
