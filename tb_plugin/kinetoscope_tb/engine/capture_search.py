"""Reading what says what a trace's graphs launch, or which operators allocated what a memory snapshot has.

Joined with the files that fit, the trace is finished.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import polars as pl

from ..discovery import BEGINS_CAPTURE, holds_node_notes
from ..errors import TraceError
from ..measures.graphs.pairing import UNLIKE, captures_graphs_of
from ..measures.graphs.replayed_calls import join_captures
from ..measures.memory.snapshot_join import join_snapshot
from ..measures.recording.contents import has_snapshot_alone
from ..reader.input.source import Source
from ..reader.node_notes import read_node_notes
from ..trace.model import ALLOCATING_CALLS, STEP_MOMENTS, AllocatingCalls, CaptureFiles, empty_frame
from .files import open_or_read, what_is_read, write_to_cache

if TYPE_CHECKING:
    from ..discovery import CapturePlaces, TraceFile
    from ..filesystem import Entry
    from ..trace import Trace
    from .cache import Cache
    from .files import Read

logger = logging.getLogger(__name__)

_LARGEST_TRACE = 1 << 29  # bytes of a trace that is read for a snapshot
_MOST_BYTES = 1 << 27  # of other spans that are searched: captures are small


def search_and_join(trace: Trace, file: TraceFile, cache: Cache | None, read: Read, candidates: CapturePlaces) -> Trace:
    """A trace with graphs, joined with its captures, or a snapshot with its trace; what can't be compared is left out.

    Raises:
        TraceError: A recording that the user chose can't be read.
    """
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
    empty_frames = empty_frame(ALLOCATING_CALLS), empty_frame(STEP_MOMENTS)
    return snapshot.with_allocating_calls(AllocatingCalls(path, *empty_frames, problem))


def search_captures(
    trace: Trace, file: TraceFile, cache: Cache | None, read: Read, candidates: CapturePlaces
) -> CaptureFiles:
    """The captures of a trace: chosen ones as they are, others if their launches match its graphs.

    Raises:
        TraceError: A recording that the user chose can't be read.
    """
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
    word, before = BEGINS_CAPTURE.encode(), b""
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
    return what_is_read(path, lambda: read_node_notes(path))


def merge_notes(notes: Sequence[pl.DataFrame]) -> pl.DataFrame | None:
    """The notes of several side-car files, one row per node; None without any."""
    if not notes:
        return None
    return pl.concat(notes).group_by("node", maintain_order=True).agg(pl.all().drop_nulls().first())
