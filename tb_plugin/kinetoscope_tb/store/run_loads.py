"""The runs whose recordings are held side by side, and what was computed of them."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from .answers import Loading, compute
from .gathering import Crew, files_of, ranks_of, summaries
from .workers import Workers, is_done

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import polars as pl

    from ..cache import Cache
    from ..cache.summary_entry import PackedSummary
    from ..discovery import Listing, TraceFile
    from ..ranks import Ranks
    from ..views import View
    from .answers import Missing

Result = TypeVar("Result")

MOST_RUNS = 4  # that are held
MOST_RESULTS = 64  # of one run
MOST_READERS = 8


@dataclass
class _Run:
    """One run: how many of its recordings are summed up, then all of them, and what was computed from them."""

    total: int
    begun: float
    done: int = 0
    ranks: Future[Ranks] = field(default_factory=Future)
    results: OrderedDict[Any, Future[Any]] = field(default_factory=OrderedDict)


class _Threads:
    """The store's threads as an executor that is never done."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    def submit(self, job: Callable[[str], PackedSummary], path: str, /) -> Future[PackedSummary]:
        """What the job will return or raise."""
        return self._workers.submit(job, path)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002
        """Nothing: the threads are used again."""


class RunLoads:
    """Runs by the files that they consist of; one that grew is another.

    Args:
        cache: Where summaries are kept when the process has ended; nowhere, if not given.
        patience_s: How long a question waits.
    """

    def __init__(self, cache: Cache | None, patience_s: float) -> None:
        self._cache, self._patience_s = cache, patience_s
        self._readers = Workers(min(MOST_READERS, os.cpu_count() or 1))
        self._gatherers, self._analysts = Workers(2), Workers(2)
        self._lock = threading.Lock()
        self._runs: OrderedDict[Any, _Run] = OrderedDict()

    def frame(
        self, view: View, listing: Listing, asked: TraceFile, arguments: Mapping[str, object]
    ) -> pl.DataFrame | Loading | Missing:
        """A view of all recordings of a file's span, or of its run, computed at the first call."""
        run = self._run(listing, asked, files_of(listing, asked, view.scope))
        key = (view.id, tuple(sorted(arguments.items())))
        return self._answer(run, key, lambda ranks: compute(view, ranks, arguments))

    def about(
        self, listing: Listing, asked: TraceFile, name: str, question: Callable[[Ranks], Result]
    ) -> Result | Loading:
        """What a function says of all recordings of a file's span, computed at the first call under its name."""
        return self._answer(self._run(listing, asked, files_of(listing, asked, "span")), ("about", name), question)

    def _answer(self, run: _Run, key: Any, question: Callable[[Ranks], Result]) -> Result | Loading:
        if not is_done(run.ranks, self._patience_s):
            return self._progress(run)
        ranks = run.ranks.result()
        with self._lock:
            if key not in run.results:
                run.results[key] = self._analysts.submit(question, ranks)
                if len(run.results) > MOST_RESULTS:
                    run.results.popitem(last=False)
            result: Future[Result] = run.results[key]
        return result.result() if is_done(result, self._patience_s) else Loading("analysing")

    def _run(self, listing: Listing, asked: TraceFile, files: Sequence[TraceFile]) -> _Run:
        place = list(listing.runs[asked.run][asked.worker]).index(asked.span)
        key = (place, *((file.path, str(file.stamp)) for file in files))
        with self._lock:
            run = self._runs.get(key)
            if run is None:
                run = self._runs[key] = _Run(len(files), time.monotonic())
                run.ranks = self._gatherers.submit(self._gather, run, listing, asked, files)
                if len(self._runs) > MOST_RUNS:
                    self._runs.popitem(last=False)
            self._runs.move_to_end(key)
            return run

    def _gather(self, run: _Run, listing: Listing, asked: TraceFile, files: Sequence[TraceFile]) -> Ranks:
        def note(done: int) -> None:
            run.done = done

        run.begun = time.monotonic()
        crew = Crew(lambda: _Threads(self._readers), min(MOST_READERS, os.cpu_count() or 1))
        notes: list[str] = []
        return ranks_of(listing, asked, files, summaries(files, self._cache, crew, note, notes.append), notes)

    def _progress(self, run: _Run) -> Loading:
        """How many of the recordings were summed up."""
        elapsed = time.monotonic() - run.begun
        left = elapsed / run.done * (run.total - run.done) if run.done else None
        return Loading("summing up recordings", run.done / max(1, run.total), None, left)
