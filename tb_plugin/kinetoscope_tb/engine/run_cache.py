"""The runs whose summaries are in memory, with what was computed from them."""

from __future__ import annotations

import os
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from ..trace.results import Results
from .answers import LoadingProgress, NotReady, answer, result_within
from .future_cache import FutureCache
from .processes import Processes
from .read_queue import LARGE_BYTES
from .summary_loader import ExecutorFactory, HoldsSeveral, files_of, load_summaries, ranks_of, span_place
from .workers import BACKGROUND, Workers, is_done

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    import polars as pl

    from ..discovery import Listing, TraceFile
    from ..distributed.run import Ranks
    from ..names.processes import Process
    from ..view import View
    from .answers import Missing
    from .cache import Cache

Result = TypeVar("Result")

MOST_RUNS = 4  # in memory
MOST_RESULTS = 64  # of one run
MOST_READERS = 8
FEW = 16  # recordings that threads read, unless they are large: a process takes a second to start


@dataclass(eq=False)
class _RunEntry:
    """One run: the number of its loaded summaries, then all of them, and what was computed from them."""

    total: int
    begun_at: float
    done: int = 0
    future: Future[tuple[Ranks, Results]] = field(default_factory=Future)
    held_bytes: int = 0


class _Threads:
    """The engine's threads as an executor that is never shut down."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    def submit(self, job: Callable[[str], Any], path: str, /) -> Future[Any]:
        """The future of a job."""
        return self._workers.submit(job, path)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002
        """Do nothing: the threads are reused."""


class RunCache:
    """Runs by the set of their files; a run that grew is another entry.

    Args:
        cache: The cache folder, if there is one.
        patience_s: How long a question waits.
        on_processes: Called with a file that turns out to hold several processes, and these.
    """

    def __init__(
        self,
        cache: Cache | None,
        patience_s: float,
        on_processes: Callable[[TraceFile, Sequence[Process]], None] = lambda _file, _processes: None,
    ) -> None:
        self._cache, self._patience_s, self._on_processes = cache, patience_s, on_processes
        most = min(MOST_READERS, os.cpu_count() or 1)
        self._few = ExecutorFactory(lambda: _Threads(readers), most)
        self._many = ExecutorFactory(lambda: processes, most)
        readers, processes = Workers(most), Processes(most, BACKGROUND)
        self._loaders, self._analysts = Workers(2), Workers(2)
        self._entries: FutureCache[Hashable, _RunEntry] = FutureCache(MOST_RUNS)

    def frame(
        self, view: View, listing: Listing, file: TraceFile, arguments: Mapping[str, object]
    ) -> pl.DataFrame | Missing:
        """A view of all recordings of a file's span, or of its run, computed at the first call.

        Raises:
            NotReady: It isn't computed yet.
        """
        entry = self._entry(listing, file, files_of(listing, file, view.scope))
        return self._result(entry, answer, view, *sorted(arguments.items()))

    def about(self, listing: Listing, file: TraceFile, question: Callable[[Ranks], Result]) -> Result:
        """The result of a function of all recordings of a file's span, computed at the first call.

        Raises:
            NotReady: It isn't computed yet.
        """
        entry = self._entry(listing, file, files_of(listing, file, "span"))
        return self._result(entry, question)

    def _result(self, entry: _RunEntry, question: Callable[..., Result], *arguments: Hashable) -> Result:
        if not is_done(entry.future, self._patience_s):
            raise NotReady(_progress(entry))
        _, results = entry.future.result()
        future: Future[Result]
        future = results.get(question, *arguments, submit=self._analysts.submit, most=MOST_RESULTS)
        return result_within(future, self._patience_s, "analyzing")

    def _entry(self, listing: Listing, file: TraceFile, files: Sequence[TraceFile]) -> _RunEntry:
        key = (span_place(listing, file), *((other.path, str(other.version)) for other in files))
        return self._entries.get(key, lambda: self._start(listing, file, files))

    def _start(self, listing: Listing, file: TraceFile, files: Sequence[TraceFile]) -> _RunEntry:
        entry = _RunEntry(len(files), time.monotonic())
        entry.future = self._loaders.submit(self._load, entry, listing, file, files)
        return entry

    def _load(
        self, entry: _RunEntry, listing: Listing, file: TraceFile, files: Sequence[TraceFile]
    ) -> tuple[Ranks, Results]:
        def note(count: int) -> None:
            entry.done = count

        entry.begun_at = time.monotonic()
        is_small = len(files) <= FEW and sum(recording.bytes for recording in files) < LARGE_BYTES
        executors = self._few if is_small else self._many
        notes: list[str] = []
        outcomes = list(load_summaries(files, self._cache, executors, note, notes.append))
        for other, outcome in outcomes:
            if isinstance(outcome, HoldsSeveral):
                self._on_processes(other, outcome.processes)
        ranks = ranks_of(listing, file, files, outcomes, notes)
        return ranks, Results(ranks)


def _progress(entry: _RunEntry) -> LoadingProgress:
    """Progress of loading the summaries."""
    elapsed = time.monotonic() - entry.begun_at
    left = elapsed / entry.done * (entry.total - entry.done) if entry.done else None
    return LoadingProgress("summing up recordings", entry.done / max(1, entry.total), None, left)
