"""The store itself: the listing, and answers about the files in it, each made once and kept while it is true."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..discovery import Heads, Listing, Logdir, Manifests, TraceFile, list_traces
from ..storage import is_url, last_part
from .answers import Loading, Missing, Partial, compute, compute_after, compute_comparison, with_notes
from .files import event_in, read_trace
from .loads import MOST_RESULTS, Loads
from .read_queue import Abandoned
from .run_loads import RunLoads
from .workers import Workers, is_done

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence
    from concurrent.futures import Future

    import polars as pl

    from ..cache import Cache
    from ..compare import Comparison
    from ..ranks import Ranks
    from ..reader import Progress
    from ..reader.event import Event, EventTexts
    from ..timeline import Timeline
    from ..trace import Trace
    from ..views import Shared, View

Result = TypeVar("Result")

PATIENCE_S = 0.15
MOST_EVENTS = 64  # whose details are remembered


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
        self._clock, self._patience_s = clock, patience_s
        # Lines of their own to stand in: listing and looking at what is loaded don't wait until large files are read.
        self._listers, self._detailers = Workers(1), Workers(1)
        self._loads = Loads(capacity_bytes, cache, read, clock)
        self._run_loads = RunLoads(cache, patience_s)
        self._lock = threading.Lock()
        self._heads, self._manifests = Heads(), Manifests()  # the listing thread alone uses them
        self._event_texts: EventTexts | None = None  # the details thread alone uses it
        self._events: OrderedDict[Any, Future[Event]] = OrderedDict()
        self._listing: Listing | None = None
        self._listed_at, self._listing_took_s = float("-inf"), 0.0
        self._scan: Future[Listing] | None = None

    @property
    def logdirs(self) -> tuple[Logdir, ...]:
        """Where traces are looked for."""
        return self._logdirs

    def listing(self) -> Listing | None:
        """What lies under the logdirs now, or a moment ago if they are slow; None before the first listing is done."""
        with self._lock:
            if (self._scan is None or self._scan.done()) and self._clock() - self._listed_at > 4 * self._listing_took_s:
                self._scan = self._listers.submit(self._list)
            scan = self._scan
        return scan.result() if scan is not None and is_done(scan, self._patience_s) else self._listing

    def _list(self) -> Listing:
        begun = self._clock()
        try:
            self._listing = list_traces(self._logdirs, self._heads, self._manifests)
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

    def shown(self, path: str) -> str:
        """What a file is called where people see it who don't see this machine's folders."""
        listed = self._listing.files if self._listing else ()
        is_elsewhere = is_url(path) or Path(path).is_absolute()
        return next((file.shown for file in listed if file.path == path), last_part(path) if is_elsewhere else path)

    def trace(self, file: TraceFile) -> Trace | Loading:
        """The trace in a file, read at the first call.

        Raises:
            TraceError: The file can't be used.
        """
        load = self._loads.load(file)
        if not is_done(load.trace, self._patience_s):
            return load.progress(self._clock())
        try:
            return load.trace.result()
        except Abandoned:  # meanwhile: the next question begins anew
            return Loading("waiting")

    def partial(self, file: TraceFile) -> Partial | None:
        """What is known of a file that is being read, and will be for some time; None of any other."""
        return self._loads.load(file).partial

    def frame(self, view: View, file: TraceFile, arguments: Mapping[str, object]) -> pl.DataFrame | Loading | Missing:
        """A view of the trace in a file, computed at the first call.

        Raises:
            TraceError: The file can't be used.
        """
        trace = self.trace(file)
        if isinstance(trace, Loading):
            return trace
        key = (view.id, tuple(sorted(arguments.items())))
        question = self._shared(file, trace, view.shares), compute, view, trace, arguments
        result: Future[pl.DataFrame | Missing] = self._loads.result(file, key, compute_after, *question)
        return with_notes(view, result.result(), file) if is_done(result, self._patience_s) else Loading("analysing")

    def _shared(self, file: TraceFile, trace: Trace, make: Callable[..., Shared] | None) -> Future[Shared] | None:
        return None if make is None else self._loads.shared(file, trace, make)

    def run_frame(
        self, view: View, file: TraceFile, arguments: Mapping[str, object]
    ) -> pl.DataFrame | Loading | Missing:
        """A view of all recordings of a file's span, or of its run, computed at the first call."""
        listing = self.listing()
        if listing is None:
            return Loading("listing")
        listed = listing.find(file.run, file.worker, file.span)
        return self._run_loads.frame(view, listing, listed, arguments)

    def about_ranks(self, file: TraceFile, name: str, question: Callable[[Ranks], Result]) -> Result | Loading:
        """What a function says of all recordings of a file's span, computed at the first call under its name."""
        listing = self.listing()
        if listing is None:
            return Loading("listing")
        listed = listing.find(file.run, file.worker, file.span)
        return self._run_loads.about(listing, listed, name, question)

    def about(
        self,
        file: TraceFile,
        name: str,
        question: Callable[..., Result],
        *arguments: Hashable,
        most: int = MOST_RESULTS,
        shares: Callable[..., Shared] | None = None,
    ) -> Result | Loading:
        """What a function says of the trace in a file and of its timeline, computed at the first call.

        Args:
            file: The file.
            name: Of the question: with the arguments it tells questions apart.
            question: Called with the trace, the timeline and the arguments.
            arguments: Whatever else it asks.
            most: How many answers to it are kept: few, if they are large.
            shares: Makes what the function begins with, as a view says it.

        Raises:
            TraceError: The file can't be used.
        """
        trace = self.trace(file)
        if isinstance(trace, Loading):
            return trace
        timeline = self._timeline(file, trace)
        if isinstance(timeline, Loading):
            return timeline
        key = ("timeline", name, *arguments)
        asked = self._shared(file, trace, shares), question, trace, timeline, *arguments
        result: Future[Result] = self._loads.result(file, key, compute_after, *asked, most=most)
        return result.result() if is_done(result, self._patience_s) else Loading("analysing")

    def timeline(self, file: TraceFile) -> Timeline | Loading:
        """The timeline of the trace in a file, made at the first call.

        Raises:
            TraceError: The file can't be used.
        """
        trace = self.trace(file)
        return trace if isinstance(trace, Loading) else self._timeline(file, trace)

    def _timeline(self, file: TraceFile, trace: Trace) -> Timeline | Loading:
        timeline: Future[Timeline] = self._loads.timeline(file, trace)
        return timeline.result() if is_done(timeline, self._patience_s) else Loading("arranging")

    def comparison(
        self,
        view: View,
        base: TraceFile,
        new: TraceFile,
        arguments: Mapping[str, object],
        columns: Sequence[str] = (),
    ) -> Comparison | Loading | Missing:
        """A view of the traces in two files side by side, computed at the first call.

        Raises:
            TraceError: One of the files can't be used.
            BadParameter: The view, or a column of it, can't be compared.
        """
        self._loads.load(base)  # both are read at the same time, while the first is waited for
        self._loads.load(new)
        old_trace, new_trace = self.trace(base), self.trace(new)
        if isinstance(old_trace, Loading):
            return old_trace
        if isinstance(new_trace, Loading):
            return new_trace
        key = ("compare", view.id, tuple(sorted(arguments.items())), tuple(columns), base.path, base.stamp)
        question = (view, old_trace, new_trace, arguments, columns)
        result: Future[Comparison | Missing] = self._loads.result(new, key, compute_comparison, *question)
        return result.result() if is_done(result, self._patience_s) else Loading("comparing")

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
        if not is_done(event, self._patience_s):
            return Loading("searching")
        if event.exception():
            self._events.pop(key, None)  # the next question may find the storage in a better mood
        return event.result()

    def _event(self, file: TraceFile, trace: Trace, offset: int) -> Event:
        if self._event_texts is None:
            from ..reader.event import EventTexts

            self._event_texts = EventTexts()
        return event_in(file, trace, offset, self._event_texts)
