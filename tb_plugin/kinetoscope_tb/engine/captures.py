"""A trace with what other recordings say of it: what its graphs launch, or which operators allocated what it has.

What doesn't depend on them is answered before they are read, which `capture_search` does.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from ..discovery import BEGINS_CAPTURE, CapturePlaces, captures_beside, spans_beside, traces_beside
from ..errors import LogdirError
from ..filesystem import entry_at
from ..measures.recording.contents import has_graphs, has_snapshot_alone
from .files import read_traces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..discovery import TraceFile
    from ..trace import Trace
    from .cache import Cache
    from .files import Read

_MOST_SPANS = 4  # other spans that are searched for captures


def with_chosen_captures(file: TraceFile, paths: Sequence[str]) -> TraceFile:
    """The file with the captures at these paths; without any they are searched next to it.

    Raises:
        LogdirError: There is no such file.
    """
    entries = [(path, entry_at(path)) for path in paths]
    for path, entry in entries:
        if entry is None:
            raise LogdirError(f"There is no file {path}.")
    return replace(file, captures=tuple(entry for _, entry in entries if entry is not None) or None)


def capture_places(file: TraceFile, trace: Trace) -> CapturePlaces | None:
    """Where a trace's captures are searched; nothing is read for that. None: it has no graphs, and is no snapshot."""
    is_snapshot = has_snapshot_alone(trace)
    if not is_snapshot and not has_graphs(trace):
        return None
    if file.captures is not None:
        return CapturePlaces(file.captures, are_chosen=True)
    if is_snapshot:
        return CapturePlaces(traces_beside(file.path))
    if any(BEGINS_CAPTURE in name for name in trace.launches["name"].unique().drop_nulls()):
        return CapturePlaces(captures_beside(file.path, trace.meta.rank))
    return CapturePlaces(captures_beside(file.path, trace.meta.rank), spans_beside(file.path)[:_MOST_SPANS])


def with_captures(trace: Trace, file: TraceFile, cache: Cache | None, read: Read = read_traces) -> Trace:
    """The finished trace, after searching its captures; the trace itself if there is nothing to search for.

    Raises:
        TraceError: A recording that the user chose can't be read.
    """
    candidates = capture_places(file, trace)
    return trace if candidates is None else finished_trace(trace, file, cache, read, candidates)


def finished_trace(trace: Trace, file: TraceFile, cache: Cache | None, read: Read, candidates: CapturePlaces) -> Trace:
    """A trace with graphs, joined with its captures, or a snapshot with its trace; what can't be compared is left out.

    Raises:
        TraceError: A recording that the user chose can't be read.
    """
    module = import_module(".capture_search", __package__)  # 62 modules, which traces without graphs don't need
    joined_trace: Trace = module.search_and_join(trace, file, cache, read, candidates)
    return joined_trace
