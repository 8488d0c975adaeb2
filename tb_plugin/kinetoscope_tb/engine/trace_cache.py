"""The traces in memory, with what was computed from them; the least recently used make room.

A trace is known by its path and stamp, so a file that grew is read again; its results live and go with it. A file that
nobody asks for any more, or that is gone or another one, isn't read to its end: the next question begins anew.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from ..filesystem import file_identity
from .answers import LoadingProgress, Partial
from .files import open_or_arrange, open_or_read, write_to_cache
from .future_cache import FutureCache, Pending
from .read_queue import LARGE_BYTES, Abandoned, ReadQueue
from .workers import Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from ..discovery import TraceFile
    from ..reader import Progress
    from ..timeline import Timeline
    from ..trace import Trace
    from ..view import Shared
    from .cache import Cache

MOST_RESULTS = 64  # of one trace; a dragged zoom asks for another with each move
# A file that took so long to read so far, and will take so long still, has a preview of what was read.
PREVIEW_AFTER_S, PREVIEW_IF_LEFT_S = 2.0, 5.0
PREVIEW_EVERY_S = 1.0
MOST_TIME_FOR_PREVIEWS = 0.03  # of the time that reading takes
POLLED_WITHIN_S = 300.0  # whoever waits for a file asks again, in a page that nobody looks at once a minute
POLLED_WITHIN_S_WHILE_OTHERS_WAIT = 90.0
LOOKS_EVERY_S = 1.0  # at whether the file is still there
MOST_ANALYSTS, MOST_ANALYSTS_OF_ONE = 8, 3  # one trace whose views take long leaves threads to the others
MOST_WRITES = 4  # traces and timelines that wait to be written to the cache; each is held in memory until then


def _results() -> FutureCache[Hashable, Pending[Any]]:
    return FutureCache(MOST_RESULTS)


@dataclass(eq=False)
class TraceEntry:
    """One file: how much of it is read, then its trace and what was computed from it.

    Args:
        stamp: Of the file.
        file_bytes: Its size.
        begun_at: When its reading began.
        requested_at: When somebody asked for it last.
        future: The trace.
        results: What was computed from it, by question.
        shared: What several of them start from, by function; the timeline is under `_TIMELINE`.
        held_bytes: How much memory all of that takes.
    """

    stamp: Any
    file_bytes: int
    begun_at: float
    requested_at: float = 0.0
    future: Future[Trace] = field(default_factory=Future)
    results: FutureCache[Hashable, Pending[Any]] = field(default_factory=_results)
    shared: FutureCache[Hashable, Pending[Any]] = field(default_factory=FutureCache)
    held_bytes: int = 0
    stage: str = "waiting"
    read_bytes: int = 0
    partial: Partial | None = None
    first_read: tuple[float, int] | None = None
    preview_at: float = 0.0

    def begin(self, now: float) -> None:
        """Begin to read, perhaps again."""
        self.begun_at, self.stage, self.read_bytes = now, "opening", 0
        self.partial, self.first_read, self.preview_at = None, None, 0.0

    def note(self, progress: Progress, clock: Callable[[], float]) -> None:
        """Record how far the reader is, and a preview of what it has read if the file takes long."""
        self.stage, self.read_bytes = progress.stage, progress.read_bytes
        now = clock()
        if progress.preview is not None and self._has_long_to_go(now):
            preview, done = progress.preview(), clock()
            self.partial = Partial(min(self.read_bytes / self.file_bytes, 1.0), preview)
            self.preview_at = done + max(PREVIEW_EVERY_S, (done - now) / MOST_TIME_FOR_PREVIEWS)

    def _has_long_to_go(self, now: float) -> bool:
        """Whether a preview is due; time counts from the first chunk, since the reader may be compiled before."""
        if self.first_read is None:
            self.first_read = now, self.read_bytes
        begun, begun_bytes = self.first_read
        elapsed, read_bytes = now - begun, self.read_bytes - begun_bytes
        if elapsed < PREVIEW_AFTER_S or now < self.preview_at or read_bytes <= 0:
            return False
        left_s = (self.file_bytes - self.read_bytes) * elapsed / read_bytes
        return self.partial is not None or left_s > PREVIEW_IF_LEFT_S

    def progress(self, now: float) -> LoadingProgress:
        """How far the reading is, as far as that is known."""
        elapsed = now - self.begun_at
        if not self.read_bytes or not self.file_bytes or elapsed <= 0:
            return LoadingProgress(self.stage)
        rate = self.read_bytes / elapsed
        left = max(self.file_bytes - self.read_bytes, 0)
        return LoadingProgress(self.stage, min(self.read_bytes / self.file_bytes, 1.0), rate, left / rate)


_TIMELINE = "timeline"


class TraceCache:
    """What is loaded or being loaded, by path.

    Args:
        capacity_bytes: How much memory it may take; a quarter of the machine's memory, if not given.
        cache: The cache folder, if there is one.
        read: Reads a file.
        clock: Seconds, for rates.
    """

    def __init__(
        self,
        capacity_bytes: int | None,
        cache: Cache | None,
        read: Callable[[str, Callable[[Progress], None] | None], Trace],
        clock: Callable[[], float],
    ) -> None:
        self._cache, self._read, self._clock = cache, read, clock
        self._readers, self._writers = ReadQueue(clock), Workers(1)
        self._analysts = Workers(MOST_ANALYSTS, MOST_ANALYSTS_OF_ONE)
        self._writes: deque[Future[None]] = deque(maxlen=MOST_WRITES)
        self._lock = threading.Lock()
        self._entries: FutureCache[str, TraceEntry] = FutureCache(
            capacity_bytes=_quarter_of_memory if capacity_bytes is None else lambda: capacity_bytes,
            is_transient=lambda error: isinstance(error, Abandoned),
        )

    def entry(self, file: TraceFile) -> TraceEntry:
        """The file's entry; its reading begins at the first call."""
        entry = self._entries.get(
            file.path,
            lambda: self._start(file),
            lambda entry: entry.stamp == file.stamp or not entry.future.done(),
        )
        entry.requested_at = self._clock()
        return entry

    def _start(self, file: TraceFile) -> TraceEntry:
        entry = TraceEntry(file.stamp, file.bytes, self._clock(), self._clock())
        entry.future = self._readers.submit(
            partial(self._read_and_make_room, file, entry),
            partial(self._is_needed, entry),
            is_large=file.bytes >= LARGE_BYTES,
        )
        return entry

    def _is_needed(self, entry: TraceEntry, others_wait: bool) -> bool:  # noqa: FBT001
        """Whether somebody asked for it recently."""
        patience_s = POLLED_WITHIN_S_WHILE_OTHERS_WAIT if others_wait else POLLED_WITHIN_S
        return self._clock() - entry.requested_at <= patience_s

    def result(
        self, file: TraceFile, key: Any, compute: Callable[..., Any], *args: object, most: int = MOST_RESULTS
    ) -> Future[Any]:
        """What was computed from a file's trace under this key, computed at the first call.

        At most `most` are kept of those whose keys have the same first two parts: large ones.
        """
        results = self._loaded(file).results
        result = results.get(key, lambda: Pending(self._analysts.submit(compute, *args, about=file.path)))
        if most < MOST_RESULTS:
            results.limit(most, lambda other: isinstance(other, tuple) and other[:2] == key[:2])
        return result.future

    def timeline(self, file: TraceFile, trace: Trace) -> Future[Timeline]:
        """The timeline of a file's trace, begun at the first call; it lives and goes with the trace."""
        return self._of_entry(file, _TIMELINE, self._arrange, file, trace)

    def shared(self, file: TraceFile, trace: Trace, make: Callable[..., Shared]) -> Future[Shared]:
        """What several questions about a file's trace start from, begun at the first call; it goes with the trace."""
        return self._of_entry(file, make, self._make, make, trace)

    def _of_entry(self, file: TraceFile, key: Hashable, compute: Callable[..., Any], *args: object) -> Future[Any]:
        entry = self._loaded(file)
        start = partial(self._analysts.submit, compute, entry, *args, about=file.path)
        return entry.shared.get(key, lambda: Pending(start())).future

    def _loaded(self, file: TraceFile) -> TraceEntry:
        """The file's entry, or one that nobody else sees if it was dropped in the meantime."""
        return self._entries.find(file.path) or TraceEntry(file.stamp, file.bytes, 0.0)

    def _make(self, entry: TraceEntry, make: Callable[..., Shared], trace: Trace) -> Shared:
        value = make(trace)
        self._entries.grow(entry, value.held_bytes)
        return value

    def _arrange(self, entry: TraceEntry, file: TraceFile, trace: Trace) -> Timeline:
        timeline, is_new = open_or_arrange(file, trace, self._cache)
        if is_new:
            self._entries.grow(entry, timeline.held_bytes)
            self._write_later(self._write_timeline, timeline, trace, file, entry)
        return timeline

    def _write_timeline(self, timeline: Timeline, trace: Trace, file: TraceFile, entry: TraceEntry) -> None:
        """Write a timeline to the cache; from then on it is answered from there, and takes no memory."""
        if self._cache is None:
            return
        write_to_cache(trace, file, self._cache, timeline)
        mapped = self._cache.open_timeline(file.path, file.stamp, trace)
        if mapped is not None:
            item: Pending[Timeline] = Pending()
            item.future.set_result(mapped)
            entry.shared.put(_TIMELINE, item)
            self._entries.grow(entry, -timeline.held_bytes)

    def _read_and_make_room(self, file: TraceFile, entry: TraceEntry, check: Callable[[], None]) -> Trace:
        entry.begin(self._clock())
        fail_if_gone = _Watch(file.path, self._clock).fail_if_gone

        def note(progress: Progress) -> None:
            check()
            fail_if_gone()
            entry.note(progress, self._clock)

        trace, is_new = open_or_read(file, self._cache, note, self._read)
        entry.partial = None
        if is_new and self._cache is not None:
            self._write_later(write_to_cache, trace, file, self._cache)
        self._entries.grow(entry, held_bytes(trace))
        return trace

    def _write_later(self, write: Callable[..., None], *args: object) -> None:
        """Have something written to the cache behind the answer; not while too many wait for that."""
        with self._lock:
            has_room = len(self._writes) < MOST_WRITES or self._writes[0].done()
            if self._cache is not None and has_room:
                self._writes.append(self._writers.submit(write, *args))


class _Watch:
    """Looks now and then whether a file is still the one that it was."""

    def __init__(self, path: str, clock: Callable[[], float]) -> None:
        self._path, self._clock = path, clock
        self._identity, self._looked_at = file_identity(path), clock()

    def fail_if_gone(self) -> None:
        """Raise if there is no such file any more, or another one.

        Raises:
            Abandoned: That is so.
        """
        if self._identity is None or self._clock() - self._looked_at < LOOKS_EVERY_S:
            return
        self._looked_at = self._clock()
        if file_identity(self._path) != self._identity:
            raise Abandoned(f"{self._path}: the file was deleted or replaced while it was read.")


def held_bytes(trace: Trace) -> int:
    """How much memory the trace's columns take."""
    return sum(int(value.estimated_size()) for value in vars(trace).values() if hasattr(value, "estimated_size"))


def _quarter_of_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    except (AttributeError, ValueError, OSError):  # not on Windows
        return 2 << 30
