"""What is loaded: the listing, traces and results, each made once and kept while it is true.

A question never waits for a file: if an answer takes longer than `PATIENCE_S`, the reply is `Loading`, and the work
goes on behind it. A trace is known by its path and stamp, so a file that grew is read again; its results live and go
with it. The only threads of the plugin are here.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections import OrderedDict, deque
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from .discovery import Heads, Listing, Logdir, TraceFile, list_traces
from .errors import KinetoscopeError, TraceError
from .storage import entry_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import polars as pl

    from .cache import Cache
    from .reader import Progress
    from .reader.event import Event, EventTexts
    from .trace import Trace
    from .views import View

logger = logging.getLogger(__name__)

PATIENCE_S = 0.15
MOST_TO_KEEP = 4  # traces that wait to be written to the cache; each is held in memory until then
MOST_EVENTS = 64  # whose details are remembered

Result = TypeVar("Result")


@dataclass(frozen=True)
class Loading:
    """The answer is being made; numbers that aren't known yet are None."""

    stage: str
    fraction: float | None = None
    bytes_per_second: float | None = None
    seconds_left: float | None = None


@dataclass(frozen=True)
class Missing:
    """The trace doesn't hold what the view needs; the hint says how to record it."""

    hint: str


def read_trace(path: str, progress: Callable[[Progress], None] | None = None) -> Trace:
    """Read one trace file.

    Raises:
        TraceError: The file can't be used, for whatever reason; a fault of ours is logged with its traceback.
    """
    from .reader import read

    try:
        return read(path, progress=progress)
    except KinetoscopeError:
        raise
    except OSError as error:
        raise TraceError(path, f"the file can't be read: {error.strerror or error}.") from error
    except MemoryError as error:
        raise TraceError(path, "there isn't enough memory to read it. Record fewer steps.") from error
    except Exception as error:
        logger.exception("Reading %s failed", path)
        problem = f"reading it failed by a fault of Kinetoscope ({type(error).__name__}). Please report it."
        raise TraceError(path, problem) from error


def open_or_read(
    file: TraceFile,
    cache: Cache | None,
    progress: Callable[[Progress], None] | None = None,
    read: Callable[[str, Callable[[Progress], None] | None], Trace] = read_trace,
) -> tuple[Trace, bool]:
    """The trace in a file, and whether it was read from there, not opened from the cache.

    Raises:
        TraceError: The file can't be used.
    """
    trace = None if cache is None else cache.open(file.path, file.stamp)
    return (read(file.path, progress), True) if trace is None else (trace, False)


def keep(trace: Trace, file: TraceFile, cache: Cache) -> None:
    """Write a trace that was read to the cache, unless its file changed since it was listed."""
    from .cache import is_worth_keeping

    if is_worth_keeping(trace, file.path):
        entry = entry_at(file.path)
        if entry is not None and entry.stamp == file.stamp and entry.stamp[-1]:  # not every server says when
            cache.write(trace, file.path, file.stamp)


def event_in(file: TraceFile, trace: Trace, offset: int, texts: EventTexts) -> Event:
    """The event of a trace that begins at this byte of its file's text.

    Raises:
        NotFound: No row of the trace is of such an event.
        TraceError: The file can't be read, or changed since the trace was read.
    """
    from .reader.event import event_length

    length = event_length(trace, offset)
    _fail_if_changed(file)
    event = texts.event(file.path, file.stamp, offset, length)
    _fail_if_changed(file)
    return event


def _fail_if_changed(file: TraceFile) -> None:
    entry = entry_at(file.path)
    if entry is None or entry.stamp != file.stamp:
        how = "is gone" if entry is None else "has changed"
        raise TraceError(file.path, f"the file {how} since it was read, and the event with it. Look at the trace anew.")


class Store:
    """Everything that is loaded; making one does nothing but remember the logdirs.

    Args:
        logdirs: Where traces are looked for.
        capacity_bytes: How much of them is kept; a quarter of the machine's memory, if not given.
        cache: Where traces are kept when the process has ended; nowhere, if not given.
        read: Reads a file; tests put their own here.
        clock: Seconds, for rates and ages.
        patience_s: How long a question waits before it is answered with `Loading`.
    """

    def __init__(
        self,
        logdirs: Sequence[Logdir],
        *,
        capacity_bytes: int | None = None,
        cache: Cache | None = None,
        read: Callable[[str, Callable[[Progress], None] | None], Trace] = read_trace,
        clock: Callable[[], float] = time.monotonic,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._logdirs = tuple(logdirs)
        self._capacity_bytes, self._cache = capacity_bytes, cache
        self._read, self._clock, self._patience_s = read, clock, patience_s
        # Five lines to stand in: listing and looking at what is loaded don't wait until large files are read or kept.
        self._listers, self._readers, self._analysts, self._keepers = _Workers(1), _Workers(2), _Workers(4), _Workers(1)
        self._detailers = _Workers(1)
        self._kept: deque[Future[None]] = deque(maxlen=MOST_TO_KEEP)
        self._lock = threading.Lock()
        self._loads: OrderedDict[str, _Load] = OrderedDict()  # by path, the one used longest ago first
        self._heads = Heads()  # the listing thread alone uses it
        self._event_texts: EventTexts | None = None  # the details thread alone uses it
        self._events: OrderedDict[Any, Future[Event]] = OrderedDict()
        self._listing: Listing | None = None
        self._listed_at, self._listing_took_s = float("-inf"), 0.0
        self._scan: Future[Listing] | None = None

    def listing(self) -> Listing | None:
        """What lies under the logdirs now, or a moment ago if they are slow; None before the first listing is done."""
        with self._lock:
            if (self._scan is None or self._scan.done()) and self._clock() - self._listed_at > 4 * self._listing_took_s:
                self._scan = self._listers.submit(self._list)
            scan = self._scan
        return scan.result() if scan is not None and _wait(scan, self._patience_s) else self._listing

    def _list(self) -> Listing:
        begun = self._clock()
        try:
            self._listing = list_traces(self._logdirs, self._heads)
            return self._listing
        finally:
            self._listed_at = self._clock()
            self._listing_took_s = self._listed_at - begun

    def has_something_to_show(self) -> bool:
        """Whether there is a trace or a problem; True while that isn't known."""
        listing = self.listing()
        return listing is None or bool(listing.files or listing.problems)

    def find(self, run: str, worker: str, span: str) -> TraceFile | Loading:
        """The file of these names.

        Raises:
            NotFound: There is no such run, worker or span.
        """
        listing = self.listing()
        return Loading("listing") if listing is None else listing.find(run, worker, span)

    def trace(self, file: TraceFile) -> Trace | Loading:
        """The trace in a file, read at the first call.

        Raises:
            TraceError: The file can't be used.
        """
        load = self._load(file)
        if not _wait(load.trace, self._patience_s):
            return load.progress(self._clock())
        return load.trace.result()

    def frame(self, view: View, file: TraceFile, arguments: Mapping[str, object]) -> pl.DataFrame | Loading | Missing:
        """A view of the trace in a file, computed at the first call.

        Raises:
            TraceError: The file can't be used.
        """
        trace = self.trace(file)
        if isinstance(trace, Loading):
            return trace
        result = self._result(view, file, trace, arguments)
        return result.result() if _wait(result, self._patience_s) else Loading("analysing")

    def event(self, file: TraceFile, offset: int) -> Event | Loading:
        """The event of the file that begins at this byte of its text.

        Raises:
            NotFound: No row of the trace is of such an event.
            TraceError: The file can't be used, or changed since the trace was read.
        """
        trace = self.trace(file)
        if isinstance(trace, Loading):
            return trace
        key = (file.path, file.stamp, offset)
        with self._lock:
            if key not in self._events:
                self._events[key] = self._detailers.submit(self._event, file, trace, offset)
                if len(self._events) > MOST_EVENTS:
                    self._events.popitem(last=False)
            event = self._events[key]
        if not _wait(event, self._patience_s):
            return Loading("searching")
        if event.exception():
            self._events.pop(key, None)  # the next question may find the storage in a better mood
        return event.result()

    def _event(self, file: TraceFile, trace: Trace, offset: int) -> Event:
        if self._event_texts is None:
            from .reader.event import EventTexts

            self._event_texts = EventTexts()
        return event_in(file, trace, offset, self._event_texts)

    def _load(self, file: TraceFile) -> _Load:
        with self._lock:
            load = self._loads.get(file.path)
            if load is None or (load.stamp != file.stamp and load.trace.done()):
                load = _Load(file.stamp, file.bytes, self._clock())
                load.trace = self._readers.submit(self._read_and_make_room, file, load)
                self._loads[file.path] = load
            self._loads.move_to_end(file.path)
            return load

    def _read_and_make_room(self, file: TraceFile, load: _Load) -> Trace:
        load.begun = self._clock()
        load.stage = "opening"
        trace, is_new = open_or_read(file, self._cache, load.note, self._read)
        if is_new:
            self._keep(trace, file)
        load.held_bytes = held_bytes(trace)
        capacity = self._capacity_bytes if self._capacity_bytes is not None else _quarter_of_memory()
        with self._lock:
            for path in [p for p, other in self._loads.items() if other is not load and other.trace.done()]:
                if sum(other.held_bytes for other in self._loads.values()) <= capacity:
                    break
                del self._loads[path]
        return trace

    def _keep(self, trace: Trace, file: TraceFile) -> None:
        """Have the trace written to the cache, behind the answer; not while too many wait for that."""
        with self._lock:
            has_room = len(self._kept) < MOST_TO_KEEP or self._kept[0].done()
            if self._cache is not None and has_room:
                self._kept.append(self._keepers.submit(keep, trace, file, self._cache))

    def _result(
        self, view: View, file: TraceFile, trace: Trace, arguments: Mapping[str, object]
    ) -> Future[pl.DataFrame | Missing]:
        key = (view.id, tuple(sorted(arguments.items())))
        with self._lock:
            load = self._loads.get(file.path)
            results = {} if load is None else load.results  # None: it was dropped in the meantime
            if key not in results:
                results[key] = self._analysts.submit(compute, view, trace, arguments)
            return results[key]


def compute(view: View, trace: Trace, arguments: Mapping[str, object]) -> pl.DataFrame | Missing:
    """What the view says of the trace."""
    return Missing(view.hint) if view.is_missing(trace) else view.table.of(view.run(trace, **arguments))


@dataclass
class _Load:
    """One file: how far its reading is, then its trace and what was computed from it."""

    stamp: Any
    file_bytes: int
    begun: float
    trace: Future[Trace] = field(default_factory=Future)
    results: dict[Any, Future[pl.DataFrame | Missing]] = field(default_factory=dict)
    held_bytes: int = 0
    stage: str = "waiting"
    read_bytes: int = 0

    def note(self, progress: Progress) -> None:
        """Take the reader's word for how far it is."""
        self.stage, self.read_bytes = progress.stage, progress.read_bytes

    def progress(self, now: float) -> Loading:
        """How far the reading is, as far as that is known."""
        elapsed = now - self.begun
        if not self.read_bytes or not self.file_bytes or elapsed <= 0:
            return Loading(self.stage)
        rate = self.read_bytes / elapsed
        left = max(self.file_bytes - self.read_bytes, 0)
        return Loading(self.stage, min(self.read_bytes / self.file_bytes, 1.0), rate, left / rate)


class _Workers:
    """A few threads that start with the first job and end with the process, whatever they are at.

    The threads of concurrent.futures are waited for when the process ends: Ctrl-C would hang until a file is read.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._threads = 0
        self._lock = threading.Lock()

    def submit(self, job: Callable[..., Result], *args: object) -> Future[Result]:
        future: Future[Result] = Future()

        def run() -> None:
            try:
                future.set_result(job(*args))
            except BaseException as error:  # noqa: BLE001  # handed to whoever asks for the result
                future.set_exception(error)

        self._jobs.put(run)
        with self._lock:
            if self._threads < self._most:
                self._threads += 1
                threading.Thread(target=self._work, name=f"kinetoscope-{self._threads}", daemon=True).start()
        return future

    def _work(self) -> None:
        while True:
            self._jobs.get()()


def _wait(future: Future[Any], seconds: float) -> bool:
    """Whether the result, or what went wrong, is there within that time."""
    try:
        future.exception(timeout=seconds)
    except FutureTimeout:
        return False
    return True


def held_bytes(trace: Trace) -> int:
    """How much memory the trace's columns take."""
    return sum(int(value.estimated_size()) for value in vars(trace).values() if hasattr(value, "estimated_size"))


def _quarter_of_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    except (AttributeError, ValueError, OSError):  # not on Windows
        return 2 << 30
