"""The recordings that say what a trace's graphs launch, or which operators allocated what a memory snapshot has.

This is where they are searched, and which of them fit. Joined with them a trace is finished.
What doesn't depend on them is answered before.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..errors import LogdirError, TraceError
from ..filesystem import entry_at
from ..measures.recording.contents import has_graphs, has_snapshot_alone
from .files import open_or_read, read_traces, what_is_read, write_to_cache

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from ..discovery import TraceFile
    from ..filesystem import Entry
    from ..trace import Trace
    from ..trace.model import CaptureFiles
    from .cache import Cache
    from .files import Read

logger = logging.getLogger(__name__)

_BEGINS = "StreamBeginCapture"  # the call that begins the capture of a graph, of CUDA and HIP
_LARGEST_TRACE = 1 << 29  # bytes of a trace that is read for a snapshot
_MOST_SPANS, _MOST_BYTES = 4, 1 << 27  # other spans that are searched for it: captures are small


@dataclass(frozen=True)
class CapturePlaces:
    """Files that may say what the graphs of a trace launch, or traces of the time of a memory snapshot.

    Args:
        likely: Those that the user chose, else those next to the trace.
        spans: Other spans of the same worker, which are searched if no likely file fits.
        are_chosen: Whether the user chose.
    """

    likely: tuple[Entry, ...] = ()
    spans: tuple[Entry, ...] = ()
    are_chosen: bool = False

    def __bool__(self) -> bool:
        return bool(self.likely or self.spans)

    def stamps(self, traces_used: Sequence[str]) -> Mapping[str, Any]:
        """What changes when a search would come to something else; `traces_used` are the files that it came to."""
        spans = [span for span in self.spans if not traces_used or span.path in traces_used]
        return {entry.path: entry.stamp for entry in (*self.likely, *spans)}


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
    from ..discovery import captures_beside, spans_beside, traces_beside

    is_snapshot = has_snapshot_alone(trace)
    if not is_snapshot and not has_graphs(trace):
        return None
    if file.captures is not None:
        return CapturePlaces(file.captures, are_chosen=True)
    if is_snapshot:
        return CapturePlaces(traces_beside(file.path))
    if any(_BEGINS in name for name in trace.launches["name"].unique().drop_nulls()):
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
    from ..measures.graphs.replayed_calls import join_captures
    from ..trace.model import CaptureFiles

    is_snapshot = has_snapshot_alone(trace)
    try:
        if is_snapshot:
            return _with_trace(trace, file, cache, read, candidates)
        return join_captures(trace, search_captures(trace, file, cache, read, candidates))
    except TraceError:
        raise
    except Exception as error:  # whatever the files next to it hold, the recording itself is shown
        logger.exception("What lies next to %s can't be compared", file.path)
        problem = f"comparing it failed because of a bug in Kinetoscope ({type(error).__name__}). Please report it."
        if is_snapshot:
            return _without_trace(trace, candidates.likely[0].path, problem)
        return join_captures(trace, CaptureFiles(damaged=tuple((entry.path, problem) for entry in candidates.likely)))


def _with_trace(snapshot: Trace, file: TraceFile, cache: Cache | None, read: Read, candidates: CapturePlaces) -> Trace:
    """A memory snapshot with what the first trace that can be read says of its allocations.

    Raises:
        TraceError: A trace that the user chose can't be read.
    """
    from ..measures.memory.snapshot_join import join_snapshot

    for entry in candidates.likely:
        if (entry.bytes or 0) > _LARGEST_TRACE and not candidates.are_chosen:
            problem = f"it has more than {_LARGEST_TRACE >> 20} MiB; pass it with --capture to wait for it."
            snapshot = _without_trace(snapshot, entry.path, problem)
            continue
        try:
            trace = _open(entry, file, cache, read)
        except TraceError as error:
            if candidates.are_chosen:
                raise
            logger.warning("The trace of a memory snapshot can't be used: %s", error)
            snapshot = _without_trace(snapshot, entry.path, error.problem)
            continue
        return join_snapshot(snapshot, trace, entry.path)
    return snapshot


def _without_trace(snapshot: Trace, path: str, problem: str) -> Trace:
    from ..trace.model import ALLOCATING_CALLS, STEP_MOMENTS, AllocatingCalls, empty_frame

    empty_frames = empty_frame(ALLOCATING_CALLS), empty_frame(STEP_MOMENTS)
    return snapshot.with_allocating_calls(AllocatingCalls(path, *empty_frames, problem))


def search_captures(
    trace: Trace, file: TraceFile, cache: Cache | None, read: Read, candidates: CapturePlaces
) -> CaptureFiles:
    """The captures of a trace: chosen ones as they are, others if their launches match its graphs.

    Raises:
        TraceError: A recording that the user chose can't be read.
    """
    from ..discovery import holds_node_notes
    from ..measures.graphs.pairing import UNLIKE, captures_graphs_of
    from ..trace.model import CaptureFiles

    captures: list[Trace] = []
    leftovers: list[tuple[str, str]] = []
    damages: list[tuple[str, str]] = []
    notes: list[pl.DataFrame] = []
    for entry in _in_turn(candidates, captures):
        try:
            if holds_node_notes(entry.name):
                node_notes = read_notes(entry.path)
                if (
                    candidates.are_chosen
                    or node_notes["node"].is_in(trace.device_events["graph_node_id"].implode()).any()
                ):
                    notes.append(node_notes)
                else:
                    leftovers.append((entry.path, UNLIKE))
                continue
            capture = _open(entry, file, cache, read)
        except TraceError as error:
            if candidates.are_chosen:
                raise
            logger.warning("A capture can't be used: %s", error)
            damages.append((entry.path, error.problem))
            continue
        if candidates.are_chosen or captures_graphs_of(trace, capture):
            captures.append(capture)
        else:
            leftovers.append((entry.path, UNLIKE))
    return CaptureFiles(tuple(captures), merge_notes(notes), tuple(leftovers), tuple(damages))


def _in_turn(candidates: CapturePlaces, captures: Sequence[Trace]) -> Iterator[Entry]:
    """The files to compare; spans only while none is used."""
    yield from candidates.likely
    left = _MOST_BYTES
    for span in candidates.spans:
        left -= span.bytes or 0
        if not captures and left >= 0 and _begins_capture(span.path, span.stamp):
            yield span


def _open(entry: Entry, file: TraceFile, cache: Cache | None, read: Read) -> Trace:
    """Another recording, as the trace of a file.

    Raises:
        TraceError: It can't be used.
    """
    identity = {"path": entry.path, "bytes": entry.bytes or 0, "stamp": entry.stamp}
    sibling = replace(file, captures=None, notes=(), process=None, **identity)
    trace, is_new = open_or_read(sibling, cache, None, read)
    if is_new and cache is not None:
        write_to_cache(trace, sibling, cache)
    return trace


@lru_cache(64)
def _begins_capture(path: str, _stamp: Any) -> bool:
    """Whether the text of a file says that a graph was captured; the stamp changes whenever the file does."""
    from ..reader.input.source import Source

    word, before = _BEGINS.encode(), b""
    try:
        with Source(path, 4 << 20) as blocks:
            for block in blocks:
                text = before + bytes(block)
                if word in text:
                    return True
                before = text[-len(word) :]
    except TraceError:
        return False
    return False


def read_notes(path: str) -> pl.DataFrame:
    """The notes about nodes of graphs in a side-car file.

    Raises:
        TraceError: The file can't be used.
    """
    from ..reader.node_notes import read_node_notes

    return what_is_read(path, lambda: read_node_notes(path))


def merge_notes(notes: Sequence[pl.DataFrame]) -> pl.DataFrame | None:
    """The notes of several side-car files, one row per node; None without any."""
    import polars as pl

    if not notes:
        return None
    return pl.concat(notes).group_by("node", maintain_order=True).agg(pl.all().drop_nulls().first())
