"""The traces in memory, with the results computed from them; the least recently used are evicted.

The key of a trace is its path and version, so a file that grew is read again, also if users' communication patterns
changed; its results are evicted with it. Reading a file stops if nobody polls for it, or if it was deleted or replaced:
the next question starts again.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from ..filesystem import file_identity, is_url
from ..trace.results import bytes_of
from .answers import LoadingProgress, Partial
from .captures import capture_places, finished_trace
from .files import open_or_read_each, write_to_cache
from .future_cache import FutureCache
from .read_queue import LARGE_BYTES, NotNeeded, ReadQueue
from .workers import BACKGROUND, Workers, settle

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from ..discovery import CapturePlaces, TraceFile
    from ..names.processes import Process
    from ..reader import Progress
    from ..timeline.core.model import Timeline
    from ..trace import Trace
    from .cache import Cache
    from .files import Read

logger = logging.getLogger(__name__)
Result = TypeVar("Result")

MOST_RESULTS = 64  # of one trace; dragging a zoom requests another with each move
# A file gets a preview if reading it took this long so far, and will take this much longer.
PREVIEW_AFTER_S, PREVIEW_IF_LEFT_S = 2.0, 5.0
PREVIEW_EVERY_S = 1.0
MOST_TIME_FOR_PREVIEWS = 0.03  # share of the reading time
POLLED_WITHIN_S = 300.0  # a waiting page polls; in a background tab once a minute
POLLED_WITHIN_S_WHILE_OTHERS_WAIT = 90.0
LOOKS_EVERY_S = 1.0  # how often to check that a file that is read still exists
CAPTURES_LISTED_WITHIN_S = 10.0  # how often to look for other captures of a trace that is shown
MOST_ANALYSTS, MOST_ANALYSTS_OF_ONE = 8, 3  # a trace with slow views must leave threads to the others
PREPARED_EVENTS = 1_000_000  # from which on what views share takes longer than a moment
MOST_WRITES = 4  # traces and timelines that wait to be written to the cache; each stays in memory until then


@dataclass(eq=False)
class TraceEntry:
    """One file: the progress of reading it, then its trace, with the results computed from it.

    Args:
        version: Of the file and of users' patterns.
        file_bytes: Its size.
        begun_at: When its reading began.
        requested_at: When it was last requested.
        future: The trace as it was read.
        finished: The trace joined with its captures, which are searched once it is read; itself without any.
        held_bytes: The memory of the trace and of its results.
        capture_bytes: That of its captures, and of what they add to the trace.
        is_prepared: Whether what its views share is computed in the background, or was.
        places: Where the recordings are searched that it is joined with; None: there is nothing to search for.
        number: Another one for each entry: results about two traces have that of the other in their key.
    """

    version: Any
    file_bytes: int
    begun_at: float
    requested_at: float = 0.0
    future: Future[Trace] = field(default_factory=Future)
    finished: Future[Trace] = field(default_factory=Future)
    held_bytes: int = 0
    capture_bytes: int = 0
    is_prepared: bool = False
    places: CapturePlaces | None = None
    places_at: float = 0.0
    stage: str = "waiting"
    read_bytes: int = 0
    partial: Partial | None = None
    first_read: tuple[float, int] | None = None
    preview_at: float = 0.0
    number: int = field(default_factory=count().__next__)

    @property
    def is_finished(self) -> bool:
        """Whether the finished trace can be had."""
        return self.finished.done() and self.finished.exception() is None

    def measure(self, trace: Trace) -> None:
        """Set how much memory it takes; columns with one value grow when they are first used."""
        self.held_bytes = held_bytes(trace) + trace.results.held_bytes + self.capture_bytes
        if self.is_finished and (whole := self.finished.result()) is not trace:
            self.held_bytes += whole.results.held_bytes

    def count_captures(self, whole: Trace) -> None:
        """Set how much memory the captures of the finished trace take."""
        captures = sum(map(held_bytes, whole.captures.traces))
        self.capture_bytes = captures + bytes_of([whole.replayed, whole.allocating_calls], apart_from=[whole.recording])

    def begin(self, now: float) -> None:
        """Begin to read, perhaps again."""
        self.begun_at, self.stage, self.read_bytes = now, "opening", 0
        self.partial, self.first_read, self.preview_at = None, None, 0.0

    def note(self, progress: Progress, clock: Callable[[], float]) -> None:
        """Record how far the reader is, and a preview of what it has read if the file takes long."""
        self.stage, self.read_bytes = progress.stage, progress.read_bytes
        now = clock()
        if progress.preview is not None and self._has_long_to_go(now):
            preview, end = progress.preview(), clock()
            self.partial = Partial(min(self.read_bytes / self.file_bytes, 1.0), preview)
            self.preview_at = end + max(PREVIEW_EVERY_S, (end - now) / MOST_TIME_FOR_PREVIEWS)

    def _has_long_to_go(self, now: float) -> bool:
        """Whether a preview is due; time counts from the first chunk, since the file may be slow to open."""
        if self.first_read is None:
            self.first_read = now, self.read_bytes
        first_at, begun_bytes = self.first_read
        elapsed, read_bytes = now - first_at, self.read_bytes - begun_bytes
        if elapsed < PREVIEW_AFTER_S or now < self.preview_at or read_bytes <= 0:
            return False
        left_s = (self.file_bytes - self.read_bytes) * elapsed / read_bytes
        return self.partial is not None or left_s > PREVIEW_IF_LEFT_S

    def progress(self, now: float) -> LoadingProgress:
        """The progress of reading, as far as it is known."""
        elapsed = now - self.begun_at
        if not self.read_bytes or not self.file_bytes or elapsed <= 0:
            return LoadingProgress(self.stage)
        rate = self.read_bytes / elapsed
        left = max(self.file_bytes - self.read_bytes, 0)
        return LoadingProgress(self.stage, min(self.read_bytes / self.file_bytes, 1.0), rate, left / rate)


class TraceCache:
    """The loaded and loading traces, by path.

    Args:
        capacity_bytes: Memory limit; by default a quarter of the machine's memory.
        cache: The cache folder, if there is one.
        read: Reads a file.
        clock: Seconds, for rates.
        on_processes: Called with a file that was read, and its processes if it holds several.
    """

    def __init__(
        self,
        capacity_bytes: int | None,
        cache: Cache | None,
        read: Read,
        clock: Callable[[], float],
        on_processes: Callable[[TraceFile, Sequence[Process]], None] = lambda _file, _processes: None,
    ) -> None:
        self._cache, self._read, self._clock, self._on_processes = cache, read, clock, on_processes
        self._readers, self._writers = ReadQueue(clock), Workers(1)
        self._analysts = Workers(MOST_ANALYSTS, MOST_ANALYSTS_OF_ONE)
        self._searchers, self._builders = Workers(2), Workers(1)
        self._preparers, self._background = Workers(1), Workers(1, niceness=BACKGROUND)
        self._writes: deque[Future[None]] = deque(maxlen=MOST_WRITES)
        self._lock = threading.Lock()
        self._entries: FutureCache[Hashable, TraceEntry] = FutureCache(
            capacity_bytes=_quarter_of_memory if capacity_bytes is None else lambda: capacity_bytes,
            is_transient=lambda error: isinstance(error, NotNeeded),
        )

    def entry(self, file: TraceFile) -> TraceEntry:
        """The file's entry; reading starts at the first call."""
        entry_before = self._entries.find(
            _key(file)
        )  # files are looked at outside of the lock, since a disk may be slow
        stale = entry_before if entry_before is not None and not self._is_current(file, entry_before) else None
        entry = self._entries.get(_key(file), lambda: self._start(file), lambda entry: entry is not stale)
        entry.requested_at = self._clock()
        return entry

    def adopt(self, file: TraceFile, trace: Trace) -> None:
        """Take the finished trace in a file, which was read elsewhere."""
        entry = TraceEntry(file.version, file.bytes, self._clock(), self._clock())
        entry.places, entry.places_at = capture_places(file, trace.recording), self._clock()
        entry.future.set_result(trace.recording)
        entry.finished.set_result(trace)
        entry.count_captures(trace)
        self._entries.get(_key(file), partial(_same, entry))
        self._make_room(entry, trace.recording)

    def is_at_hand(self, file: TraceFile) -> bool:
        """Whether the file's trace is in memory or in the cache on disk, so that it needn't be read."""
        entry = self._entries.find(file.key)
        if entry is not None and entry.version == file.version and entry.future.done():
            return True
        return self._cache is not None and self._cache.holds(file.path, file.version)

    def _is_current(self, file: TraceFile, entry: TraceEntry) -> bool:
        """Whether the file is still what was read, or is being read."""
        return not entry.future.done() or (entry.version == file.version and self._has_captures(file, entry))

    def _has_captures(self, file: TraceFile, entry: TraceEntry) -> bool:
        """Whether a search for captures of a local trace would come to the same again."""
        now = self._clock()
        if entry.places is None or is_url(file.path) or now - entry.places_at < CAPTURES_LISTED_WITHIN_S:
            return True
        trace, entry.places_at = entry.future.result(), now
        whole, candidates = entry.finished, capture_places(file, trace)
        if not whole.done() or candidates is None:
            return True
        captures = [] if whole.exception() else [capture.path for capture in whole.result().captures.traces]
        return entry.places.stamps(captures) == candidates.stamps(captures)

    def _start(self, file: TraceFile) -> TraceEntry:
        entry = TraceEntry(file.version, file.bytes, self._clock(), self._clock())
        trace_before = self._read_before(file)
        if trace_before is not None:
            entry.future = self._analysts.submit(self._complete, file, entry, trace_before, about=file.path)
            return entry
        entry.future = self._readers.submit(
            partial(self._read_and_make_room, file, entry),
            partial(self._is_needed, entry),
            is_large=file.bytes >= LARGE_BYTES,
        )
        return entry

    def _read_before(self, file: TraceFile) -> Trace | None:
        """The trace without captures, if it was read already."""
        for key in (_key(file), file.key):
            entry = self._entries.find(key)
            is_read = entry is not None and entry.future.done() and entry.future.exception() is None
            if entry is not None and is_read and entry.version == file.version:
                return entry.future.result()
        return None

    def _is_needed(self, entry: TraceEntry, others_wait: bool) -> bool:  # noqa: FBT001
        """Whether it was requested recently."""
        patience_s = POLLED_WITHIN_S_WHILE_OTHERS_WAIT if others_wait else POLLED_WITHIN_S
        return self._clock() - entry.requested_at <= patience_s

    def result(
        self,
        file: TraceFile,
        trace: Trace,
        function: Callable[..., Result],
        *arguments: Hashable,
        compute: Callable[[], Result] | None = None,
        most: int | None = MOST_RESULTS,
        after: Future[Any] | None = None,
        workers: Workers | None = None,
    ) -> Future[Result]:
        """A result about a file's trace (`Results.get`), computed in the background.

        Args:
            file: The file.
            trace: Its trace, as it was read or finished.
            function: The function; with the arguments it is the key of the result.
            arguments: Its further arguments.
            compute: How to get the result where the function isn't called with these alone.
            most: How many results of the function are cached; None for all.
            after: Another result that this one begins with.
            workers: Which threads compute it; by default those that answer questions.
        """
        compute_in = partial((workers or self._analysts).submit, self._compute, file, about=file.path, after=after)
        future: Future[Result] = trace.results.get(function, *arguments, compute=compute, submit=compute_in, most=most)
        return future

    def _compute(self, file: TraceFile, compute: Callable[[], object]) -> None:
        """Compute a result, and make room for it and for what was computed on the way."""
        compute()
        self._count_results(file)

    def _count_results(self, file: TraceFile) -> None:
        entry = self._entries.find(_key(file))
        if entry is not None and entry.future.done() and entry.future.exception() is None:
            self._make_room(entry, entry.future.result())

    def _make_room(self, entry: TraceEntry, trace: Trace) -> None:
        entry.measure(trace)
        self._entries.make_room(entry)

    def timeline(self, file: TraceFile, trace: Trace, workers: Workers | None = None) -> Future[Timeline]:
        """The timeline of a file's trace, opened from the cache or computed at the first call."""
        timeline = import_module("..timeline.core.build", __package__).timeline  # 8 modules, which no view needs
        arrange = partial(self._arrange, file, trace, timeline)
        return self.result(file, trace, timeline, compute=arrange, most=None, workers=workers)

    def prepare(self, file: TraceFile, shares: Callable[[], Iterable[Callable[[Trace], object]]]) -> None:
        """Compute the timeline of a large trace, and what its views share, in the background, for the next questions.

        One trace and one result at a time, at low priority, while there is room for them. A question that needs a
        result joins its computation if it has begun; if not, it doesn't wait for those before it.
        """
        entry = self._entries.find(_key(file))
        if entry is None or entry.is_prepared or not entry.future.done() or entry.future.exception() is not None:
            return
        entry.is_prepared = True
        if entry.future.result().meta.events >= PREPARED_EVENTS:
            self._preparers.submit(self._prepare, file, entry, shares)

    def _prepare(
        self, file: TraceFile, entry: TraceEntry, shares: Callable[[], Iterable[Callable[[Trace], object]]]
    ) -> None:
        trace = entry.future.result()
        steps: list[Callable[..., Future[Any]]]
        steps = [partial(self.result, file, trace, make, most=None) for make in shares()]
        steps.insert(1, partial(self.timeline, file, trace))  # behind what advice needs
        for step in steps:
            if self._entries.find(_key(file)) is not entry or self._entries.room() < entry.held_bytes:
                return
            step(workers=self._background).exception()  # raised where the result is used

    def _arrange(self, file: TraceFile, trace: Trace, build: Callable[[Trace], Timeline]) -> Timeline:
        """The timeline of a file's trace: opened from the cache, or built and then written to it."""
        cache = self._cache
        timeline_on_disk = None if cache is None else cache.open_timeline(file.path, file.version, trace)
        if timeline_on_disk is not None:
            return timeline_on_disk
        timeline = build(trace)
        self._write_later(self._write_timeline, timeline, trace, file, build)
        return timeline

    def _write_timeline(
        self, timeline: Timeline, trace: Trace, file: TraceFile, build: Callable[[Trace], Timeline]
    ) -> None:
        """Write a timeline to the cache; from then on it is mapped from there, and takes no memory."""
        if self._cache is None:
            return
        write_to_cache(trace, file, self._cache, timeline)
        timeline_on_disk = self._cache.open_timeline(file.path, file.version, trace)
        if timeline_on_disk is not None:
            trace.results.put(build, timeline_on_disk)
            self._count_results(file)

    def _read_and_make_room(self, file: TraceFile, entry: TraceEntry, check: Callable[[], None]) -> Trace:
        entry.begin(self._clock())
        fail_if_gone = _Watch(file.path, self._clock).fail_if_gone

        def note(progress: Progress) -> None:
            check()
            fail_if_gone()
            entry.note(progress, self._clock)

        trace, others = open_or_read_each(file, self._cache, note, self._read)
        entry.partial = None
        self._on_processes(file, trace.meta.processes)
        own = file if trace.meta.process is None else replace(file, process=trace.meta.process.id)
        if others is not None and self._cache is not None:
            self._write_later(write_to_cache, trace, own, self._cache)
        if others is not None and trace.meta.processes:
            self._build_others(own, trace, others)
        return self._complete(file, entry, trace)

    def _build_others(self, file: TraceFile, trace: Trace, others: Iterator[Trace]) -> None:
        """Make entries of the other processes of a file that was read, so that it isn't read again for each."""
        siblings = [replace(file, process=process.id) for process in trace.meta.processes]
        entries = {}
        for sibling in siblings:
            mine = TraceEntry(sibling.version, sibling.bytes, self._clock(), self._clock())
            entry = self._entries.get(_key(sibling), partial(_same, mine), partial(_is_of, sibling.version))
            if entry is mine:
                entries[sibling.process] = sibling, mine
        if file.process in entries:
            _, own = entries.pop(file.process)
            own.future.set_result(self._complete(file, own, trace))
        self._builders.submit(self._build, entries, others)

    def _build(self, entries: dict[str | None, tuple[TraceFile, TraceEntry]], others: Iterator[Trace]) -> None:
        """Fill the entries while there is room; the next question about another one reads the file again."""
        try:
            for trace in others:
                process = None if trace.meta.process is None else trace.meta.process.id
                if process not in entries:
                    continue
                file, entry = entries.pop(process)
                if self._cache is not None:
                    self._write_later(write_to_cache, trace, file, self._cache)
                entry.future.set_result(self._complete(file, entry, trace))
                if self._entries.room() < entry.held_bytes:
                    break
        except Exception:  # the processes that are left are read again when they are requested, and fail by themselves
            logger.info("The other processes of a file can't be used", exc_info=True)
        for _, entry in entries.values():
            entry.future.set_exception(NotNeeded("This process of the file wasn't built. Open it again."))

    def _complete(self, file: TraceFile, entry: TraceEntry, trace: Trace) -> Trace:
        """The trace as it was read; if there are places to search for captures of its graphs, that begins."""
        entry.places, entry.places_at = capture_places(file, trace), self._clock()
        self._make_room(entry, trace)
        if entry.places is None:
            entry.finished.set_result(trace)
        elif not entry.places:
            settle(entry.finished, self._finish, file, entry, trace, entry.places)
        else:
            entry.finished = self._searchers.submit(self._finish, file, entry, trace, entry.places)
        return trace

    def _finish(self, file: TraceFile, entry: TraceEntry, trace: Trace, candidates: CapturePlaces) -> Trace:
        whole = finished_trace(trace, file, self._cache, self._read, candidates)
        entry.count_captures(whole)
        self._make_room(entry, trace)
        return whole

    def _write_later(self, write: Callable[..., None], *args: object) -> None:
        """Write to the cache in the background, unless too many writes are waiting."""
        with self._lock:
            has_room = len(self._writes) < MOST_WRITES or self._writes[0].done()
            if self._cache is not None and has_room:
                self._writes.append(self._writers.submit(write, *args))


class _Watch:
    """Checks periodically that a file is unchanged."""

    def __init__(self, path: str, clock: Callable[[], float]) -> None:
        self._path, self._clock = path, clock
        self._identity, self._looked_at = file_identity(path), clock()

    def fail_if_gone(self) -> None:
        """Check that the file still exists unchanged.

        Raises:
            Abandoned: It was deleted or replaced.
        """
        if self._identity is None or self._clock() - self._looked_at < LOOKS_EVERY_S:
            return
        self._looked_at = self._clock()
        if file_identity(self._path) != self._identity:
            raise NotNeeded(f"{self._path}: the file was deleted or replaced while it was read.")


def _is_of(version: Any, entry: TraceEntry) -> bool:
    return bool(entry.version == version)


def _same(entry: TraceEntry) -> TraceEntry:
    return entry


def _key(file: TraceFile) -> Hashable:
    """What an entry is about: a file, with the captures that were chosen for it."""
    if file.captures is None:
        return file.key
    return *file.key, tuple((capture.path, capture.stamp) for capture in file.captures)


def held_bytes(trace: Trace) -> int:
    """The memory of the trace's columns."""
    return sum(int(value.estimated_size()) for value in vars(trace).values() if hasattr(value, "estimated_size"))


def _quarter_of_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    except (AttributeError, ValueError, OSError):  # not on Windows
        return 2 << 30
