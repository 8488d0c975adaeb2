"""The traces that are held in memory, and what was computed from them; the ones used longest ago make room.

A trace is known by its path and stamp, so a file that grew is read again; its results live and go with it. A file that
nobody asks for any more, or that is gone or another one, isn't read to its end: the next question begins anew.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict, deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from ..storage import file_identity
from .answers import Loading, Partial
from .files import keep, open_or_arrange, open_or_read
from .read_queue import LARGE_BYTES, Abandoned, ReadQueue
from .workers import Workers

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..cache import Cache
    from ..discovery import TraceFile
    from ..reader import Progress
    from ..timeline import Timeline
    from ..trace import Trace
    from ..views import Shared

MOST_RESULTS = 64  # of one trace; a dragged zoom asks for another with each move
UNTOLD_S, LONG_LEFT_S = 2.0, 5.0  # a reading that took so long, and will take so long still, tells what it has seen
TELL_EVERY_S = 1.0
LARGEST_SHARE_TOLD = 0.03  # of the reading's time
ASKED_WITHIN_S = 300.0  # whoever waits for a file asks again, in a page that nobody looks at once a minute
ASKED_WITHIN_S_WHILE_OTHERS_WAIT = 90.0
LOOKS_EVERY_S = 1.0  # at whether the file is still there
MOST_ANALYSTS, MOST_ANALYSTS_OF_ONE = 8, 3  # one trace whose views take long leaves threads to the others
MOST_TO_KEEP = 4  # traces and timelines that wait to be written to the cache; each is held in memory until then


@dataclass
class Load:
    """One file: how far its reading is, then its trace and what was computed from it."""

    stamp: Any
    file_bytes: int
    begun: float
    asked_at: float = 0.0
    trace: Future[Trace] = field(default_factory=Future)
    results: OrderedDict[Any, Future[Any]] = field(default_factory=OrderedDict)
    timeline: Future[Timeline] | None = None
    shared: dict[Any, Future[Shared]] = field(default_factory=dict)
    held_bytes: int = 0
    stage: str = "waiting"
    read_bytes: int = 0
    partial: Partial | None = None
    first_read: tuple[float, int] | None = None
    tells_at: float = 0.0

    def begin(self, now: float) -> None:
        """Begin to read, perhaps again."""
        self.begun, self.stage, self.read_bytes = now, "opening", 0
        self.partial, self.first_read, self.tells_at = None, None, 0.0

    def note(self, progress: Progress, clock: Callable[[], float]) -> None:
        """Take the reader's word for how far it is; of a file that takes long, for what it has seen, too."""
        self.stage, self.read_bytes = progress.stage, progress.read_bytes
        now = clock()
        if progress.beginning is not None and self._has_long_to_go(now):
            beginning, done = progress.beginning(), clock()
            self.partial = Partial(min(self.read_bytes / self.file_bytes, 1.0), beginning)
            self.tells_at = done + max(TELL_EVERY_S, (done - now) / LARGEST_SHARE_TOLD)

    def _has_long_to_go(self, now: float) -> bool:
        """Whether to say now what was seen: judged from the first piece on, since the reader may be compiled before."""
        if self.first_read is None:
            self.first_read = now, self.read_bytes
        begun, begun_bytes = self.first_read
        elapsed, read_bytes = now - begun, self.read_bytes - begun_bytes
        if elapsed < UNTOLD_S or now < self.tells_at or read_bytes <= 0:
            return False
        left_s = (self.file_bytes - self.read_bytes) * elapsed / read_bytes
        return self.partial is not None or left_s > LONG_LEFT_S

    def progress(self, now: float) -> Loading:
        """How far the reading is, as far as that is known."""
        elapsed = now - self.begun
        if not self.read_bytes or not self.file_bytes or elapsed <= 0:
            return Loading(self.stage)
        rate = self.read_bytes / elapsed
        left = max(self.file_bytes - self.read_bytes, 0)
        return Loading(self.stage, min(self.read_bytes / self.file_bytes, 1.0), rate, left / rate)


class Loads:
    """What is loaded or being loaded, by path.

    Args:
        capacity_bytes: How much of it is kept; a quarter of the machine's memory, if not given.
        cache: Where traces are kept when the process has ended; nowhere, if not given.
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
        self._capacity_bytes, self._cache = capacity_bytes, cache
        self._read, self._clock = read, clock
        self._readers, self._keepers = ReadQueue(clock), Workers(1)
        self._analysts = Workers(MOST_ANALYSTS, MOST_ANALYSTS_OF_ONE)
        self._kept: deque[Future[None]] = deque(maxlen=MOST_TO_KEEP)
        self._lock = threading.RLock()  # what is done with a reading may be done at once
        self._loads: OrderedDict[str, Load] = OrderedDict()  # the one used longest ago first

    def load(self, file: TraceFile) -> Load:
        """The file's load, begun at the first call."""
        with self._lock:
            load = self._loads.get(file.path)
            if load is None or (load.stamp != file.stamp and load.trace.done()):
                load = Load(file.stamp, file.bytes, self._clock(), self._clock())
                load.trace = self._readers.submit(
                    partial(self._read_and_make_room, file, load),
                    partial(self._is_wanted, load),
                    is_large=file.bytes >= LARGE_BYTES,
                )
                self._loads[file.path] = load
                load.trace.add_done_callback(partial(self._forget_abandoned, file.path, load))
            load.asked_at = self._clock()
            self._loads.move_to_end(file.path)
            return load

    def _is_wanted(self, load: Load, others_wait: bool) -> bool:  # noqa: FBT001
        """Whether anybody asked for it not long ago."""
        patience_s = ASKED_WITHIN_S_WHILE_OTHERS_WAIT if others_wait else ASKED_WITHIN_S
        return self._clock() - load.asked_at <= patience_s

    def _forget_abandoned(self, path: str, load: Load, trace: Future[Trace]) -> None:
        """Let the next question begin anew."""
        if isinstance(trace.exception(), Abandoned):
            with self._lock:
                if self._loads.get(path) is load:
                    del self._loads[path]

    def result(
        self, file: TraceFile, key: Any, compute: Callable[..., Any], *args: object, most: int = MOST_RESULTS
    ) -> Future[Any]:
        """What was computed from a file's trace under this key, computed at the first call.

        At most `most` are kept of those whose keys have the same first two parts: large ones.
        """
        with self._lock:
            load = self._loads.get(file.path)
            results = OrderedDict() if load is None else load.results  # None: it was dropped in the meantime
            if key not in results:
                if most < MOST_RESULTS:
                    alike = [other for other in results if other[:2] == key[:2]]  # the one used longest ago first
                    for other in alike[: max(0, len(alike) + 1 - most)]:
                        del results[other]
                results[key] = self._analysts.submit(compute, *args, about=file.path)
                if len(results) > MOST_RESULTS:
                    results.popitem(last=False)
            results.move_to_end(key)
            return results[key]

    def timeline(self, file: TraceFile, trace: Trace) -> Future[Timeline]:
        """The timeline of a file's trace, begun at the first call; it lives and goes with the trace."""
        with self._lock:
            load = self._loads.get(file.path) or Load(file.stamp, file.bytes, 0.0)  # it was dropped in the meantime
            if load.timeline is None:
                load.timeline = self._analysts.submit(self._arrange, file, load, trace, about=file.path)
            return load.timeline

    def shared(self, file: TraceFile, trace: Trace, make: Callable[..., Shared]) -> Future[Shared]:
        """What several questions about a file's trace begin with, begun at the first call; it goes with the trace."""
        with self._lock:
            load = self._loads.get(file.path) or Load(file.stamp, file.bytes, 0.0)  # it was dropped in the meantime
            if make not in load.shared:
                load.shared[make] = self._analysts.submit(self._make, load, make, trace, about=file.path)
            return load.shared[make]

    def _make(self, load: Load, make: Callable[..., Shared], trace: Trace) -> Shared:
        made = make(trace)
        self._hold(load, made.held_bytes)
        return made

    def _arrange(self, file: TraceFile, load: Load, trace: Trace) -> Timeline:
        timeline, is_new = open_or_arrange(file, trace, self._cache)
        if is_new:
            self._hold(load, timeline.held_bytes)
            self._keep(self._keep_timeline, timeline, trace, file, load)
        return timeline

    def _keep_timeline(self, timeline: Timeline, trace: Trace, file: TraceFile, load: Load) -> None:
        """Write a timeline to the cache; from then on it is answered from there, and takes no memory."""
        if self._cache is None:
            return
        keep(trace, file, self._cache, timeline)
        mapped = self._cache.open_timeline(file.path, file.stamp, trace)
        if mapped is not None:
            with self._lock:
                load.timeline = Future()
                load.timeline.set_result(mapped)
                load.held_bytes -= timeline.held_bytes

    def _read_and_make_room(self, file: TraceFile, load: Load, check: Callable[[], None]) -> Trace:
        load.begin(self._clock())
        fail_if_gone = _Watch(file.path, self._clock).fail_if_gone

        def note(progress: Progress) -> None:
            check()
            fail_if_gone()
            load.note(progress, self._clock)

        trace, is_new = open_or_read(file, self._cache, note, self._read)
        load.partial = None
        if is_new and self._cache is not None:
            self._keep(keep, trace, file, self._cache)
        self._hold(load, held_bytes(trace))
        return trace

    def _hold(self, load: Load, more_bytes: int) -> None:
        """Count what a load holds, and drop others until there is room for it."""
        capacity = self._capacity_bytes if self._capacity_bytes is not None else _quarter_of_memory()
        with self._lock:
            load.held_bytes += more_bytes
            for path in [p for p, other in self._loads.items() if other is not load and other.trace.done()]:
                if sum(other.held_bytes for other in self._loads.values()) <= capacity:
                    break
                del self._loads[path]

    def _keep(self, write: Callable[..., None], *args: object) -> None:
        """Have something written to the cache behind the answer; not while too many wait for that."""
        with self._lock:
            has_room = len(self._kept) < MOST_TO_KEEP or self._kept[0].done()
            if self._cache is not None and has_room:
                self._kept.append(self._keepers.submit(write, *args))


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
