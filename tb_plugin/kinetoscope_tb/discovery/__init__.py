"""What lies under the logdirs: runs, workers, spans.

A run is a folder that holds traces, a worker one process of it, a span one recording of that worker. A request never
becomes a path: its names are looked up in a `Listing`. Nothing here starts a thread.

logdirs            TensorBoard's flags → logdirs
scanner            logdirs → listing
filename_patterns  what a file's name says, by who writes such names
header_probe       what a file's first bytes say
manifest_notes     what the recorder says of a run: which ranks are missing, and why
listing            files by run, worker and span; what the page calls them
jobs               jobs that record into the logdirs, and requests to them
"""

from __future__ import annotations

from .filename_patterns import NO_SPAN
from .header_probe import Heads
from .listing import Listing, Problem, TraceFile, run_labels, span_labels
from .logdirs import Logdir, parse_logdirs
from .manifest_notes import Manifests, Note
from .scanner import list_path, list_traces

__all__ = [
    "NO_SPAN",
    "Heads",
    "Listing",
    "Logdir",
    "Manifests",
    "Note",
    "Problem",
    "TraceFile",
    "list_path",
    "list_traces",
    "parse_logdirs",
    "run_labels",
    "span_labels",
]
