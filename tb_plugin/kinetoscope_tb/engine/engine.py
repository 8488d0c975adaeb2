"""The engine: the listing, and answers about the files in it, each computed once and cached while it is current."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..arrays.allocator import share_one_arena
from ..discovery import Heads, Listing, Logdir, Manifests, TraceFile, list_traces
from ..errors import NotFound
from ..filesystem import is_url, last_part
from ..history.series import Series
from ..names.communication_patterns import NO_PATTERNS, CommunicationPatterns
from ..reader.event import EventTexts
from .answers import (
    LoadingProgress,
    Missing,
    NotReady,
    Partial,
    answer,
    ask_all,
    merge_run_notes,
    result_within,
)
from .comparisons import compute_changes, compute_comparison, compute_step_difference
from .events import event_in
from .file_processes import FileProcesses
from .files import read_traces
from .future_cache import FutureCache, Pending
from .histories import Histories
from .notes import note_of_view
from .parsed_files import ParsedFiles
from .read_queue import NotNeeded
from .run_cache import RunCache
from .trace_cache import MOST_RESULTS, TraceCache, TraceEntry
from .workers import Workers, is_done

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
    from concurrent.futures import Future

    import polars as pl

    from ..compare.changes import ChangeList
    from ..compare.comparison import Comparison
    from ..compare.step_difference import Difference
    from ..distributed.run import Ranks
    from ..filesystem import Entry
    from ..reader.event import Event
    from ..timeline.core.model import Timeline
    from ..trace import Trace
    from ..view import View
    from .cache import Cache
    from .files import Read

Result = TypeVar("Result")

PATIENCE_S = 0.15
LISTED_WITHIN_S = 10.0  # a page asks for the listing every five seconds, so its clicks need no other one
SEARCHING = "searching captures"  # as the page shows it
NO_CAPTURE = "none"  # chosen instead of a capture
MOST_EVENTS = 64  # whose details are cached


class Engine:
    """Loads traces and answers questions about them in the background. The constructor only stores its arguments.

    Args:
        logdirs: Where to look for traces.
        capacity_bytes: Limit of what is cached in memory; by default a quarter of the machine's memory.
        cache: The cache on disk; None for none.
        read: Reads a file; tests replace it.
        clock: Seconds, for rates and ages.
        patience_s: How long a question waits before it raises `NotReady`.
        patterns: Further names that count as communication, besides those in the logdirs.
    """

    def __init__(
        self,
        logdirs: Sequence[Logdir],
        *,
        capacity_bytes: int | None = None,
        cache: Cache | None = None,
        read: Read = read_traces,
        clock: Callable[[], float] = time.monotonic,
        patience_s: float = PATIENCE_S,
        patterns: CommunicationPatterns = NO_PATTERNS,
    ) -> None:
        share_one_arena()
        self._logdirs, self._patterns = tuple(logdirs), patterns
        self._clock, self._patience_s = clock, patience_s
        # Threads of their own: listing and event details don't wait until large files are read.
        self._listers, self._detailers = Workers(1), Workers(1)
        self._processes = FileProcesses(cache)
        self._traces = TraceCache(capacity_bytes, cache, read, clock, self._processes.note)
        self._histories = Histories(cache, patience_s)
        self._runs = RunCache(cache, patience_s, self._processes.note)
        self.parsed_files = ParsedFiles()
        """What small files next to traces have."""
        self._lock = threading.Lock()
        self._heads, self._manifests = Heads(), Manifests()  # the listing thread alone uses them
        self._event_texts: EventTexts | None = None  # the details thread alone uses it
        self._events: FutureCache[Any, Pending[Event]] = FutureCache(MOST_EVENTS)
        self._listing: Listing | None = None
        self._listed_at, self._listing_took_s = float("-inf"), 0.0
        self._scan: Future[Listing] | None = None

    @property
    def logdirs(self) -> tuple[Logdir, ...]:
        """The folders that are searched for traces."""
        return self._logdirs

    def add(self, logdir: Logdir) -> None:
        """Search another folder, or list another file, from the next listing on."""
        with self._lock:
            self._logdirs += (logdir,)
            self._listed_at = float("-inf")

    def adopt(self, file: TraceFile, trace: Trace) -> None:
        """Take the finished trace in a file, which was read elsewhere, so that it isn't read again."""
        self._processes.note(file, trace.meta.processes)
        self._traces.adopt(file, trace)

    def listing(self) -> Listing | None:
        """What is under the logdirs now, or a moment ago if they are slow; None before the first listing is done."""
        with self._lock:
            if (self._scan is None or self._scan.done()) and self._clock() - self._listed_at > 4 * self._listing_took_s:
                self._scan = self._listers.submit(self._list)
            scan = self._scan
        listing = scan.result() if scan is not None and is_done(scan, self._patience_s) else self._listing
        return None if listing is None else self._processes.expand(listing)

    def _list(self) -> Listing:
        begin, logdirs = self._clock(), self._logdirs
        try:
            listing = list_traces(logdirs, self._heads, self._manifests, self._patterns)
            self._processes.expand(listing)  # looks into the cache on disk
            self._listing = listing
            return listing
        finally:
            end = self._clock()
            self._listing_took_s = end - begin
            with self._lock:
                self._listed_at = end if logdirs is self._logdirs else float("-inf")

    def has_something_to_show(self) -> bool:
        """Whether there is a trace or a problem; True before the first listing is done."""
        listing = self.listing()
        return listing is None or bool(listing.files or listing.problems)

    def find(self, run: str, worker: str, span: str) -> TraceFile:
        """The file of a run, worker and span; of a file that turned out to hold several processes, the first.

        Raises:
            NotFound: There is no such run, worker or span.
            NotReady: The first listing isn't done.
        """
        try:
            return self._last_listing().find(run, worker, span)
        except NotFound:  # it may be new
            return self._finished_listing().find(run, worker, span)

    def capture_choices(self, file: TraceFile) -> dict[str, Entry]:
        """The files of a run that may be chosen to say what the graphs of one of them launch, by their shown paths.

        Raises:
            NotReady: The first listing isn't done.
        """
        return self._last_listing().capture_choices(file)

    def snapshot_of(self, file: TraceFile) -> TraceFile | None:
        """The memory snapshot next to a trace.

        Raises:
            NotReady: The first listing isn't done.
        """
        return self._last_listing().snapshot_of(file)

    def with_capture(self, file: TraceFile, capture: str) -> TraceFile:
        """The file with a chosen capture, or with NO_CAPTURE.

        Raises:
            NotFound: No file of the run is shown with this path.
            NotReady: The first listing isn't done.
        """
        choices = self.capture_choices(file)
        if capture not in choices and capture != NO_CAPTURE:
            raise NotFound("capture", capture, [NO_CAPTURE, *choices])
        return replace(file, captures=() if capture == NO_CAPTURE else (choices[capture],))

    def _last_listing(self) -> Listing:
        """The listing that is there, for questions about what it shows; another one if that is old.

        Raises:
            NotReady: The first listing isn't done.
        """
        listing = self._listing
        if listing is None or self._clock() - self._listed_at > LISTED_WITHIN_S:
            return self._finished_listing()
        return self._processes.expand(listing)

    def _finished_listing(self) -> Listing:
        listing = self.listing()
        if listing is None:
            raise NotReady(LoadingProgress("listing"))
        return listing

    def path_on_page(self, path: str) -> str:
        """A file's path as the page may show it, without this machine's folders."""
        files = self._listing.files if self._listing else ()
        is_elsewhere = is_url(path) or Path(path).is_absolute()
        return next((file.shown for file in files if file.path == path), last_part(path) if is_elsewhere else path)

    def trace(self, file: TraceFile, *, reads_captures: bool = True) -> Trace:
        """The trace in a file, read at the first call.

        Args:
            file: The file.
            reads_captures: Whether to wait for the finished trace, whose graphs are joined with their captures. If not
                it is the finished one if that is at hand; while captures are searched, or if they can't be used, the
                trace as it was read. `Trace.recording` is that always.

        Raises:
            TraceError: The file, or a capture that was chosen for it, can't be used.
            NotReady: It is being read, or its captures are being searched.
        """
        entry = self._entry_read(file)
        if reads_captures:
            return result_within(entry.finished, self._patience_s, SEARCHING)
        return (entry.finished if entry.is_finished else entry.future).result()

    def _entry_read(self, file: TraceFile) -> TraceEntry:
        entry = self._traces.entry(file)
        if not is_done(entry.future, self._patience_s):
            raise NotReady(entry.progress(self._clock()))
        try:
            entry.future.result()
        except NotNeeded as error:  # meanwhile: the next question starts it again
            raise NotReady(LoadingProgress("waiting")) from error
        return entry

    def partial(self, file: TraceFile) -> Partial | None:
        """The first part of a file that takes long to read; None for any other file."""
        return self._traces.entry(file).partial

    def frame(
        self, view: View, file: TraceFile, arguments: Mapping[str, object], *, waits_for_captures: bool = True
    ) -> pl.DataFrame | Missing:
        """A view of the trace in a file, computed at the first call.

        Args:
            view: The view.
            file: The file.
            arguments: Its arguments.
            waits_for_captures: Whether a view that captures change (`View.reads_captures`) waits while they are
                searched. If not it is of what is known so far.

        Raises:
            TraceError: The file can't be used.
            NotReady: It isn't computed yet.
        """
        trace = self._trace_for(view, file, waits_for_captures=waits_for_captures)
        after = self._shares_of(file, trace, view.shares)
        result = self._traces.result(file, trace, answer, view, *sorted(arguments.items()), after=after)
        return merge_run_notes(view, result_within(result, self._patience_s, "analyzing"), file)

    def _trace_for(self, view: View, file: TraceFile, *, waits_for_captures: bool = True) -> Trace:
        """What a view looks at: if captures don't change it, the trace as it was read."""
        trace = self.trace(file, reads_captures=view.reads_captures and waits_for_captures)
        return trace if view.reads_captures else trace.recording

    def _shares_of(
        self, file: TraceFile, trace: Trace, shares: Callable[[Trace], object] | None
    ) -> Future[object] | None:
        """What views begin with is about what was recorded alone."""
        return None if shares is None else self._traces.result(file, trace.recording, shares, most=None)

    def note(self, view: View, file: TraceFile, arguments: Mapping[str, object]) -> str:
        """Which part of the recording a view is of, and which of its numbers are doubtful; empty: nothing to say.

        Raises:
            TraceError: The file can't be used.
            NotReady: It isn't computed yet.
        """
        recording = self.trace(file, reads_captures=False).recording
        result = self._traces.result(file, recording, note_of_view, view, *arguments)
        return result_within(result, self._patience_s, "analyzing")

    def prepare(self, file: TraceFile, shares: Callable[[], Iterable[Callable[[Trace], object]]]) -> None:
        """Begin in the background what the next questions about a large trace will need; does nothing for others.

        Args:
            file: A file whose trace is in memory.
            shares: Returns what views begin with (`View.shares`), in the order in which it may be needed.
        """
        self._traces.prepare(file, shares)

    def run_frame(self, view: View, file: TraceFile, arguments: Mapping[str, object]) -> pl.DataFrame | Missing:
        """A view of all recordings of a file's span, or of its run, computed at the first call.

        Raises:
            NotReady: It isn't computed yet.
        """
        listing = self._last_listing()
        current = listing.find(file.run, file.worker, file.span)
        return self._runs.frame(view, listing, current, arguments)

    def about_ranks(self, file: TraceFile, question: Callable[[Ranks], Result]) -> Result:
        """The result of a function of all recordings of a file's span, computed at the first call.

        Raises:
            NotReady: It isn't computed yet.
        """
        listing = self._last_listing()
        current = listing.find(file.run, file.worker, file.span)
        return self._runs.about(listing, current, question)

    def recordings_of_span(self, file: TraceFile) -> list[TraceFile]:
        """The recordings of a file's span, one per worker, the file's own first.

        Raises:
            NotReady: The first listing isn't done.
        """
        listing = self._last_listing()
        current = listing.find(file.run, file.worker, file.span)
        return [current, *listing.same_span_of_others(current)]

    def readable_soon(self, files: Sequence[TraceFile], most_bytes: int) -> list[TraceFile]:
        """The files whose traces are in memory or cached, and as many others as have at most `most_bytes` together."""
        selection: list[TraceFile] = []
        for file in files:
            if not self._traces.is_at_hand(file):
                if not 0 < file.bytes <= most_bytes:
                    continue
                most_bytes -= file.bytes
            selection.append(file)
        return selection

    def about_each(
        self, files: Sequence[TraceFile], question: Callable[..., Result], *arguments: Hashable
    ) -> list[Result]:
        """The results of a function of the trace in each of several files, in order; unusable files are left out.

        Args:
            files: The files, all of which are read at the same time.
            question: Called with the trace, its worker and the arguments.
            arguments: Further arguments of the function.

        Raises:
            NotReady: Not all of them are read.
        """
        entries = [self._traces.entry(file) for file in files]
        number_done = sum(is_done(entry.future, 0) for entry in entries)
        if not all(
            is_done(entry.future, self._patience_s if number_done == i else 0) for i, entry in enumerate(entries)
        ):
            raise NotReady(LoadingProgress("reading other ranks", number_done / len(files)))
        usable = [file for file, entry in zip(files, entries, strict=True) if entry.future.exception() is None]
        results = [self._traces.result(file, self.trace(file), question, file.worker, *arguments) for file in usable]
        return [result_within(result, self._patience_s, "analyzing") for result in results]

    def about(
        self,
        file: TraceFile,
        question: Callable[..., Result],
        *arguments: Hashable,
        most: int = MOST_RESULTS,
        shares: Callable[[Trace], object] | None = None,
        reads_captures: bool = True,
    ) -> Result:
        """The result of a function of the trace in a file and of its timeline, computed at the first call.

        Args:
            file: The file.
            question: Called with the trace, the timeline and the arguments.
            arguments: Further arguments of the function.
            most: How many of its results are cached: few if they are large.
            shares: Computes what several functions begin with (`View.shares`).
            reads_captures: Whether captures change the result (`View.reads_captures`).

        Raises:
            TraceError: The file can't be used.
            NotReady: It isn't computed yet.
        """
        trace = self.trace(file, reads_captures=reads_captures)
        trace = trace if reads_captures else trace.recording
        compute = partial(question, trace, self.timeline(file), *arguments)
        after = self._shares_of(file, trace, shares)
        result = self._traces.result(file, trace, question, *arguments, compute=compute, most=most, after=after)
        return result_within(result, self._patience_s, "analyzing")

    def about_trace(
        self, file: TraceFile, question: Callable[[Trace], Result], shares: Callable[[Trace], object]
    ) -> Result:
        """The result of a function of the finished trace in a file, computed at the first call.

        Args:
            file: The file.
            question: The function.
            shares: Computes what it begins with (`View.shares`).

        Raises:
            TraceError: The file can't be used.
            NotReady: It isn't computed yet.
        """
        trace = self.trace(file)
        result = self._traces.result(file, trace, question, after=self._shares_of(file, trace, shares))
        return result_within(result, self._patience_s, "analyzing")

    def timeline(self, file: TraceFile) -> Timeline:
        """The timeline of the trace in a file, built at the first call.

        Raises:
            TraceError: The file can't be used.
            NotReady: It isn't computed yet.
        """
        recording = self.trace(file, reads_captures=False).recording
        return result_within(self._traces.timeline(file, recording), self._patience_s, "arranging")

    def comparison(
        self,
        view: View,
        base: TraceFile,
        new: TraceFile,
        arguments: Mapping[str, object],
        columns: Sequence[str] = (),
    ) -> Comparison | Missing:
        """A view of the traces in two files side by side, computed at the first call.

        Raises:
            TraceError: One of the files can't be used.
            BadParameter: The view, or a column of it, can't be compared.
            NotReady: It isn't computed yet.
        """
        old_trace, new_trace = self._both(base, new, partial(self._trace_for, view))
        key = (view, tuple(sorted(arguments.items())), tuple(columns), self._traces.entry(base).number)
        compare = partial(compute_comparison, view, old_trace, new_trace, arguments, columns)
        result = self._traces.result(new, new_trace, compute_comparison, *key, compute=compare)
        return result_within(result, self._patience_s, "comparing")

    def changes(self, views: Mapping[str, View], base: TraceFile, new: TraceFile) -> ChangeList:
        """What changed most between the traces in two files, computed at the first call.

        Raises:
            TraceError: One of the files can't be used.
            NotReady: It isn't computed yet.
        """
        return self._of_both(base, new, compute_changes, views)

    def step_difference(self, base: TraceFile, new: TraceFile) -> Difference:
        """Why the step of the trace in a file takes longer than that of another, computed at the first call.

        Raises:
            BadParameter: They can't be aligned.
            TraceError: One of the files can't be used.
            NotReady: It isn't computed yet.
        """
        return self._of_both(base, new, compute_step_difference)

    def _of_both(self, base: TraceFile, new: TraceFile, function: Callable[..., Result], *arguments: object) -> Result:
        """What a function finds of the traces in two files; `arguments` come before them, and never change."""
        old_trace, new_trace = self._both(base, new, self.trace)
        compute = partial(function, *arguments, old_trace, new_trace)
        number = self._traces.entry(base).number
        result = self._traces.result(new, new_trace, function, number, compute=compute)
        return result_within(result, self._patience_s, "comparing")

    def _both(self, base: TraceFile, new: TraceFile, trace: Callable[[TraceFile], Trace]) -> tuple[Trace, Trace]:
        self._traces.entry(base)  # starts both reads before waiting for the first
        self._traces.entry(new)
        old_trace, new_trace = ask_all(partial(trace, base), partial(trace, new))
        return old_trace, new_trace

    def history(self, run: str) -> Series:
        """The runs of the same job as a run over time, by their summaries.

        Raises:
            NotFound: There is no such run.
            NotReady: They aren't loaded yet.
        """
        listing = self.listing()
        if listing is None:
            raise NotReady(LoadingProgress("listing"))
        if run not in listing.runs:
            raise NotFound("run", run, list(listing.runs))
        return Series.of(self._histories.runs(listing), run)

    def event(self, file: TraceFile, offset: int) -> Event:
        """The event of the file that begins at this byte of its text.

        Raises:
            NotFound: No row of the trace belongs to such an event.
            TraceError: The file can't be used, or changed since the trace was read.
            NotReady: It is being searched.
        """
        trace = self.trace(file, reads_captures=False).recording
        key = (file.path, file.stamp, offset)
        event = self._events.get(key, lambda: Pending(self._detailers.submit(self._event, file, trace, offset)))
        if is_done(event.future, self._patience_s) and event.future.exception():
            self._events.drop(key, event)  # storage may answer next time
        return result_within(event.future, 0, "searching")

    def _event(self, file: TraceFile, trace: Trace, offset: int) -> Event:
        if self._event_texts is None:
            self._event_texts = EventTexts()
        return event_in(file, trace, offset, self._event_texts)
