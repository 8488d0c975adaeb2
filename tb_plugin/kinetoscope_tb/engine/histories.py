"""The runs of a listing over time: each by its summaries and its run.json, never by its recordings."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import Future
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from ..discovery.run_facts import RunFacts, run_facts
from ..errors import NotFound
from ..history.recorded_run import Environment, RecordedRun, StepTotals, marks_steps, mean_parts
from ..names.roles import is_no_rank
from ..trace.model import EARLIEST_CLOCK_NS
from .answers import LoadingProgress, NotReady
from .future_cache import FutureCache
from .summary_loader import stored_summaries
from .workers import Workers, is_done

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from ..discovery import Listing, TraceFile
    from ..distributed.model import Summary
    from .cache import Cache

    ByRun = Mapping[str, Sequence[TraceFile]]


def recordings_by_run(listing: Listing, pattern: str = "*") -> ByRun:
    """The recordings of the runs with such names; those of frontends only where a run has no others.

    Raises:
        NotFound: No run has such a name.
    """
    by_run: dict[str, list[TraceFile]] = defaultdict(list)
    for file in listing.files:
        if not file.is_snapshot and fnmatchcase(file.run, pattern):
            by_run[file.run].append(file)
    if not by_run:
        raise NotFound("run", pattern, list(listing.runs))
    return {run: [file for file in files if not is_no_rank(file.worker)] or files for run, files in by_run.items()}


def recorded_runs(
    by_run: ByRun,
    cache: Cache | None,
    on_progress: Callable[[int], None] = lambda _: None,
    on_problem: Callable[[str], None] = lambda _: None,
) -> list[RecordedRun]:
    """The runs in order of time; a summary is dropped before the next one is opened.

    Args:
        by_run: The recordings.
        cache: Has summaries.
        on_progress: Called with the number of runs that are loaded.
        on_problem: Called with the reason why summaries next to recordings can't be used.
    """
    runs = []
    for number, (run, files) in enumerate(by_run.items(), 1):
        summaries = stored_summaries(files, cache, on_problem)
        runs.append(_run(run, files, ((file, entry.summary) for file, entry in summaries)))
        on_progress(number)
    return sorted(runs, key=lambda run: run.started_ns)


class Histories:
    """The runs of the listing. Those of which all recordings have a summary are remembered while their files stay.

    Args:
        cache: Has summaries.
        patience_s: How long a question waits.
    """

    def __init__(self, cache: Cache | None, patience_s: float) -> None:
        self._cache, self._patience_s = cache, patience_s
        self._loaders = Workers(1)
        self._complete_runs: dict[Hashable, RecordedRun] = {}  # the loading thread alone uses it
        self._pending: FutureCache[Hashable, _Job] = FutureCache(1)

    def runs(self, listing: Listing) -> list[RecordedRun]:
        """The runs in order of time.

        Raises:
            NotFound: There are none.
            NotReady: They aren't loaded yet.
        """
        by_run = recordings_by_run(listing)
        key = tuple(_files_key(files) for files in by_run.values())
        job = self._pending.get(key, lambda: self._start(by_run))
        if not is_done(job.future, self._patience_s):
            raise NotReady(LoadingProgress("summing up runs", job.count / len(by_run)))
        runs = job.future.result()
        if any(run.summaries < run.recordings for run in runs):
            self._pending.drop(key, job)  # the next question may find more summaries
        return runs

    def _start(self, by_run: ByRun) -> _Job:
        job = _Job()
        job.future = self._loaders.submit(self._load, job, by_run)
        return job

    def _load(self, job: _Job, by_run: ByRun) -> list[RecordedRun]:
        keys = {run: (run, _files_key(files)) for run, files in by_run.items()}
        old_runs = {run: self._complete_runs[key] for run, key in keys.items() if key in self._complete_runs}

        def note(count: int) -> None:
            job.count = len(old_runs) + count

        rest = {run: files for run, files in by_run.items() if run not in old_runs}
        runs = [*old_runs.values(), *recorded_runs(rest, self._cache, note)]
        self._complete_runs = {keys[run.name]: run for run in runs if run.summaries == run.recordings}
        return sorted(runs, key=lambda run: run.started_ns)


@dataclass(eq=False)
class _Job:
    """Runs that are being loaded, and how many of them are."""

    count: int = 0
    future: Future[list[RecordedRun]] = field(default_factory=Future)
    held_bytes: int = 0


def _files_key(files: Sequence[TraceFile]) -> Hashable:
    return tuple((file.path, str(file.version)) for file in files)


def _run(name: str, files: Sequence[TraceFile], summaries: Iterable[tuple[TraceFile, Summary]]) -> RecordedRun:
    totals: dict[str, StepTotals] = defaultdict(StepTotals)
    facts: list[Mapping[str, Any]] = []
    is_marked = True
    for file, summary in summaries:
        is_marked &= marks_steps(summary)
        totals[file.worker].add(summary)
        facts.append(summary.facts)
    of_run = run_facts(files[0].path)
    parts, launches = mean_parts(totals.values())
    return RecordedRun(
        name,
        _started_ns(files, facts, of_run),
        _environment(facts, of_run, len({file.worker for file in files})),
        parts,
        launches,
        len(files),
        len(facts),
        is_marked,
        any(fact["devices"] for fact in facts),
    )


def _started_ns(files: Sequence[TraceFile], facts: Sequence[Mapping[str, Any]], of_run: RunFacts) -> int:
    """When a run began: by its recordings, by run.json, or by its oldest file."""
    clocks = [fact["origin_ns"] for fact in facts if fact["origin_ns"] > EARLIEST_CLOCK_NS]
    names = [file.started_ns for file in files if file.started_ns]
    return min(clocks, default=0) or of_run.started_ns or min(names or [file.modified_ns for file in files])


def _environment(facts: Sequence[Mapping[str, Any]], of_run: RunFacts, workers: int) -> Environment:
    """Where a run ran; what its ranks say differently is listed."""

    def distinct(name: str) -> str:
        return ", ".join(sorted({str(fact[name]) for fact in facts if fact.get(name)}))

    devices = {str(device) for fact in facts for _, device in fact["devices"] if device}
    phases = {str(phase) for fact in facts for phase in fact.get("phases") or ()}
    sizes = [fact["world_size"] for fact in facts if fact.get("world_size")]
    return Environment(
        of_run.program,
        ", ".join(sorted(devices)),
        str(max(sizes, default=of_run.world_size or workers)),
        ", ".join(sorted(phases)),
        distinct("host"),
        of_run.torch or distinct("torch"),
        of_run.cuda or distinct("cuda"),
        distinct("driver"),
        of_run.arguments,
    )
