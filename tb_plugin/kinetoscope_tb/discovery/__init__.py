"""What lies under the logdirs: runs, workers, spans.

A run is a folder that holds traces, a worker one process of it, a span one recording of that worker. A request never
becomes a path: its names are looked up in a `Listing`. Nothing here starts a thread.

logdirs     TensorBoard's flags → logdirs
patterns    what a file's name says, by who writes such names
sniffing    what a file's first bytes say
walking     logdirs → listing
outcomes    what the recorder says of a run: which ranks are missing, and why
listing     files by run, worker and span; what the page calls them
"""

from __future__ import annotations

from .listing import Listing, Problem, TraceFile, run_labels, span_labels
from .logdirs import Logdir, parse_logdirs
from .outcomes import Manifests, Note
from .patterns import NO_SPAN
from .sniffing import Heads
from .walking import list_given, list_traces

__all__ = [
    "NO_SPAN",
    "Heads",
    "Listing",
    "Logdir",
    "Manifests",
    "Note",
    "Problem",
    "TraceFile",
    "list_given",
    "list_traces",
    "parse_logdirs",
    "run_labels",
    "span_labels",
]
