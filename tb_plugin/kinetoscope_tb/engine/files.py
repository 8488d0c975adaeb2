"""One file as a trace: opened from the cache, or read and written to the cache; and single events of it."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..errors import KinetoscopeError, TraceError
from ..filesystem import entry_at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

    from ..discovery import TraceFile
    from ..filesystem import Entry
    from ..reader import Progress
    from ..reader.event import Event, EventTexts
    from ..timeline import Timeline
    from ..trace import Trace
    from .cache import Cache

logger = logging.getLogger(__name__)

_CAPTURES = "StreamBeginCapture"  # the call that begins the capture of a graph, of CUDA and HIP
_MOST_SPANS, _MOST_BYTES = 4, 1 << 25  # other spans that are searched for it, while the trace opens: captures are small


def read_trace(path: str, progress: Callable[[Progress], None] | None = None, *, threads: int | None = None) -> Trace:
    """Read one trace file, by default with as many scanning threads as the reader can feed.

    Raises:
        TraceError: The file can't be used for any reason; bugs of ours are logged with a traceback.
    """
    from ..reader import read

    try:
        return read(path, progress=progress, threads=threads)
    except KinetoscopeError:
        raise
    except OSError as error:
        raise TraceError(path, f"the file can't be read: {error.strerror or error}.") from error
    except MemoryError as error:
        raise TraceError(path, "there isn't enough memory to read it. Record fewer steps.") from error
    except Exception as error:
        logger.exception("Reading %s failed", path)
        problem = f"reading it failed because of a bug in Kinetoscope ({type(error).__name__}). Please report it."
        raise TraceError(path, problem) from error


def open_or_read(
    file: TraceFile,
    cache: Cache | None,
    progress: Callable[[Progress], None] | None = None,
    read: Callable[[str, Callable[[Progress], None] | None], Trace] = read_trace,
) -> tuple[Trace, bool]:
    """The trace in a file, and whether it was read from the file, not opened from the cache.

    Raises:
        TraceError: The file can't be used.
    """
    from ..trace.communication import with_patterns

    trace = None if cache is None else cache.open(file.path, file.version)
    if trace is not None:
        return trace, False
    return with_patterns(read(file.path, progress), file.patterns), True


def captures_of(file: TraceFile, trace: Trace) -> tuple[Entry, ...]:
    """The recordings that say what the graphs of a trace launch.

    Those that the user chose; else those next to it; else another span of the same worker that recorded a capture.
    """
    from ..discovery import captures_beside, spans_beside

    if not trace.holds("graphs"):
        return ()
    known = file.captures or captures_beside(file.path, trace.meta.rank)
    if known or any(_CAPTURES in name for name in trace.launches["name"].unique().drop_nulls()):
        return known
    spans = (span for span in spans_beside(file.path)[:_MOST_SPANS] if (span.bytes or 0) <= _MOST_BYTES)
    return tuple(islice((span for span in spans if _holds_captures(span.path, span.stamp)), 1))


@lru_cache(64)
def _holds_captures(path: str, _stamp: Any) -> bool:
    """Whether the text of a file says that a graph was captured; the stamp changes whenever the file does."""
    from ..reader.input.source import Source

    word, before = _CAPTURES.encode(), b""
    try:
        with Source(path, 4 << 20, lambda: None) as blocks:
            for block in blocks:
                text = before + bytes(block)
                if word in text:
                    return True
                before = text[-len(word) :]
    except TraceError:
        return False
    return False


def with_captures(
    trace: Trace,
    file: TraceFile,
    cache: Cache | None,
    read: Callable[[str, Callable[[Progress], None] | None], Trace] = read_trace,
    captures: Sequence[Entry] | None = None,
) -> Trace:
    """The trace with the recordings that say what its graphs launch; one that can't be read is left out.

    Raises:
        TraceError: A recording that the user chose can't be read.
    """
    from ..discovery import holds_node_notes
    from ..measures.serving.iterations import iterations

    opened: list[Trace] = []
    notes: list[pl.DataFrame] = []
    for entry in captures_of(file, trace) if captures is None else captures:
        sibling = replace(file, path=entry.path, bytes=entry.bytes or 0, stamp=entry.stamp, captures=(), notes=())
        try:
            if holds_node_notes(entry.name):
                notes.append(read_notes(entry.path))
                continue
            capture, is_new = open_or_read(sibling, cache, None, read)
        except TraceError as error:
            if file.captures:
                raise
            logger.warning("A capture can't be used: %s", error)
            continue
        if is_new and cache is not None:
            write_to_cache(capture, sibling, cache)
        opened.append(capture)
    if not opened and not notes:
        return trace
    joined = replace(trace, captures=tuple(opened), node_notes=merge_notes(notes))
    iterations.carry_over(trace, joined)
    return joined


def read_notes(path: str) -> pl.DataFrame:
    """The notes about nodes of graphs in a side-car file.

    Raises:
        TraceError: The file can't be used.
    """
    from ..reader.node_notes import read_node_notes

    try:
        return read_node_notes(path)
    except OSError as error:
        raise TraceError(path, f"the file can't be read: {error.strerror or error}.") from error


def merge_notes(notes: Sequence[pl.DataFrame]) -> pl.DataFrame | None:
    """The notes of several side-car files, one row per node; None without any."""
    import polars as pl

    if not notes:
        return None
    return pl.concat(notes).group_by("node", maintain_order=True).agg(pl.all().drop_nulls().first())


def write_to_cache(trace: Trace, file: TraceFile, cache: Cache, timeline: Timeline | None = None) -> None:
    """Write a trace or its timeline to the cache, unless its file changed in between."""
    from .cache import is_worth_caching

    if is_worth_caching(trace, file.path):
        entry = entry_at(file.path)
        if entry is not None and entry.stamp == file.stamp and entry.stamp[-1]:  # not every server reports it
            if timeline is None:
                cache.write(trace, file.path, file.version)
            else:
                cache.write_timeline(timeline, file.path, file.version)


def open_or_arrange(file: TraceFile, trace: Trace, cache: Cache | None) -> tuple[Timeline, bool]:
    """The timeline of a file's trace, and whether it was computed, not opened from the cache."""
    from ..timeline import timeline

    stored = None if cache is None else cache.open_timeline(file.path, file.version, trace)
    return (timeline(trace), True) if stored is None else (stored, False)


def event_in(file: TraceFile, trace: Trace, offset: int, texts: EventTexts) -> Event:
    """The event of a trace that begins at this byte of its file's text.

    Raises:
        NotFound: No row of the trace belongs to such an event.
        TraceError: The file can't be read, or changed since the trace was read.
    """
    from ..reader.event import event_length

    length = event_length(trace, offset)
    _fail_if_changed(file)
    event = texts.event(file.path, file.stamp, offset, length)
    _fail_if_changed(file)
    return event


def _fail_if_changed(file: TraceFile) -> None:
    entry = entry_at(file.path)
    if entry is None or entry.stamp != file.stamp:
        how = "is gone" if entry is None else "has changed"
        raise TraceError(file.path, f"the file {how} since it was read, and the event with it. Open the trace again.")
