"""Many recordings as summaries: from the cache, or computed by the workers of an executor.

A worker returns a summary as bytes, which are small and stored unchanged. A recording that can't be read, or that
crashes its process, is reported and doesn't stop the others. At any time only as many recordings are in memory as the
executor has workers. The largest are read first, so that the last worker isn't busy alone for long.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Future,
    wait,
)
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from ..distributed.run import Member, Ranks
from ..distributed.summary import summary
from ..distributed.validation import problem_of
from ..errors import KinetoscopeError, TraceError
from ..filesystem import entry_at
from ..names.communication_patterns import NO_PATTERNS, CommunicationPatterns
from ..trace.communication import with_patterns
from .cache import may_cache
from .cache.summary_entry import pack_summary
from .files import read_traces
from .sidecar_summaries import sidecar_summaries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..discovery import Listing, TraceFile
    from ..names.processes import Process
    from ..trace import Trace
    from .cache import Cache
    from .cache.summary_entry import PackedSummary

DIED = "the process that read it ended, perhaps because memory ran out. Record fewer steps, or read fewer at a time."


class HoldsSeveral(TraceError):
    """A file with several processes, which are a run of their own.

    Args:
        path: The file.
        processes: The processes.
    """

    def __init__(self, path: str, processes: Sequence[Process]) -> None:
        names = ", ".join(process.worker for process in processes[:5]) + (", …" if len(processes) > 5 else "")
        super().__init__(path, f"it holds {len(processes)} processes ({names}), which are a run of their own.")
        self.processes = tuple(processes)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.processes)

    def with_path(self, path: str) -> HoldsSeveral:
        """The same error with another path."""
        return type(self)(path, self.processes)


class Executor(Protocol):
    """Reads recordings: an executor of concurrent.futures, or the engine's threads."""

    def submit(self, job: Callable[[str], Any], path: str, /) -> Future[Any]:
        """The future of a job."""

    def shutdown(self, wait: bool = ..., *, cancel_futures: bool = ...) -> None:  # noqa: FBT001  # as executors have it
        """Accept no more jobs."""


@dataclass(frozen=True)
class ExecutorFactory:
    """Creates executors that read recordings.

    Args:
        make: Creates an executor; called again after one broke.
        most_jobs: Limit of an executor's pending jobs.
    """

    make: Callable[[], Executor]
    most_jobs: int


def summary_of_file(path: str, patterns: CommunicationPatterns = NO_PATTERNS) -> PackedSummary:
    """Summarize a recording, reading it with one thread because others are read in parallel.

    Raises:
        HoldsSeveral: The file holds several processes.
        TraceError: The file can't be used.
    """
    trace = next(read_traces(path, threads=1))
    if trace.meta.processes:
        raise HoldsSeveral(path, trace.meta.processes)
    return _summary(trace, path, patterns)


def summaries_of_processes(
    path: str, processes: Sequence[str], patterns: CommunicationPatterns = NO_PATTERNS
) -> list[PackedSummary | TraceError]:
    """Summarize some processes of a file (`Process.id`), in this order; the file is read once.

    Raises:
        TraceError: The file can't be used.
    """
    outcomes: dict[str, PackedSummary | TraceError] = {}
    for trace in read_traces(path, process=processes[0], threads=1):
        if trace.meta.process is not None and trace.meta.process.id in processes:
            try:
                outcomes[trace.meta.process.id] = _summary(trace, path, patterns)
            except TraceError as error:
                outcomes[trace.meta.process.id] = error
    error_if_gone = TraceError(path, "the process of this recording isn't in the file any more. List it again.")
    return [outcomes.get(process, error_if_gone) for process in processes]


def _summary(trace: Trace, path: str, patterns: CommunicationPatterns) -> PackedSummary:
    result = summary(with_patterns(trace, patterns))
    problem = problem_of(result)
    if problem:  # it would break the views of all others
        raise TraceError(path, f"it can't be compared with other recordings: {problem}.")
    return pack_summary(result)


def load_summaries(
    files: Sequence[TraceFile],
    cache: Cache | None,
    executors: ExecutorFactory,
    on_progress: Callable[[int], None] = lambda _: None,
    on_problem: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[TraceFile, PackedSummary | KinetoscopeError]]:
    """Each file with its summary, or why there is none, in any order; new summaries are written to the cache.

    Args:
        files: The recordings.
        cache: The cache of summaries.
        executors: Read the other recordings.
        on_progress: Called with the number of summaries that are loaded.
        on_problem: Called with the reason why summaries next to the recordings can't be used.
    """
    for count, pair in enumerate(_load(files, cache, executors, on_problem), 1):
        on_progress(count)
        yield pair


def _load(
    files: Sequence[TraceFile], cache: Cache | None, executors: ExecutorFactory, on_problem: Callable[[str], None]
) -> Iterator[tuple[TraceFile, PackedSummary | KinetoscopeError]]:
    """Load from the cache, from next to the recordings, or by reading the recordings."""
    missing = {file.key: file for file in files}
    for file, ready in stored_summaries(files, cache, on_problem):
        del missing[file.key]
        yield file, ready
    for file, outcome in read_all(missing.values(), executors):
        if cache is not None and not isinstance(outcome, KinetoscopeError):
            write_summary_to_cache(outcome, file, cache)
        yield file, outcome


def stored_summaries(
    files: Sequence[TraceFile], cache: Cache | None, on_problem: Callable[[str], None] = lambda _: None
) -> Iterator[tuple[TraceFile, PackedSummary]]:
    """The files that have a summary in the cache or next to them; no recording is read."""
    missing = []
    for file in files:
        ready = None if cache is None else cache.open_summary(file.path, file.version)
        if ready is None:
            missing.append(file)
        else:
            yield file, ready
    yield from sidecar_summaries(missing, on_problem)


def write_summary_to_cache(summary: PackedSummary, file: TraceFile, cache: Cache) -> None:
    """Write a summary to the cache, unless its file changed in between."""
    entry = entry_at(file.path) if may_cache(file.path) else None
    if entry is not None and entry.stamp == file.stamp and entry.stamp[-1]:
        cache.write_summary(summary, file.path, file.version)


def read_all(
    files: Iterable[TraceFile], executors: ExecutorFactory
) -> Iterator[tuple[TraceFile, PackedSummary | KinetoscopeError]]:
    """Read each file once, in any order.

    When an executor breaks, any of the files that were being read may be the cause. So each of them is read again
    by itself, and one that breaks the executor by itself is left out.
    """
    by_path: dict[str, list[TraceFile]] = {}
    for file in sorted(files, key=lambda file: -file.bytes):
        by_path.setdefault(file.path, []).append(file)
    groups: deque[list[TraceFile]] = deque(by_path.values())
    suspects: deque[list[TraceFile]] = deque()
    while groups or suspects:
        executor = executors.make()
        try:
            for group, outcome in _read_until_broken(executor, groups, suspects, executors.most_jobs):
                if isinstance(outcome, BrokenExecutor):
                    suspects.append(group)
                else:
                    outcomes = outcome if isinstance(outcome, list) else [outcome] * len(group)
                    yield from zip(group, outcomes, strict=True)
        except BaseException:  # the caller stops
            executor.shutdown(wait=False, cancel_futures=True)
            raise
        executor.shutdown(wait=True)


def _read_until_broken(
    executor: Executor, groups: deque[list[TraceFile]], suspects: deque[list[TraceFile]], most_jobs: int
) -> Iterator[tuple[list[TraceFile], Any]]:
    """Read the waiting files; report those that were being read when the executor broke.

    Yields:
        The recordings in a file, and the summary of the only one, those of all, or why there are none.
    """
    jobs: dict[Future[Any], list[TraceFile]] = {}
    was_alone, is_broken = False, False
    while not is_broken and (groups or suspects or jobs):
        while not was_alone and len(jobs) < (1 if suspects else most_jobs) and (groups or suspects):
            was_alone = bool(suspects)
            group = (suspects if suspects else groups).popleft()
            jobs[executor.submit(_job(group), group[0].path)] = group
        for future in wait(jobs, return_when=FIRST_COMPLETED).done:
            outcome = _outcome(future, jobs[future][0].path)
            is_broken |= isinstance(outcome, BrokenExecutor)
            if was_alone and isinstance(outcome, BrokenExecutor):
                outcome = TraceError(jobs[future][0].path, DIED)
            yield jobs.pop(future), outcome
        was_alone = was_alone and bool(jobs)
    for future, group in jobs.items():
        yield group, _outcome(future, group[0].path)


def _job(group: list[TraceFile]) -> Callable[[str], Any]:
    """Reads the recordings in a file: the only one, or some of its processes."""
    processes = [file.process for file in group if file.process is not None]
    if processes:
        return partial(summaries_of_processes, processes=processes, patterns=group[0].patterns)
    return partial(summary_of_file, patterns=group[0].patterns)


def _outcome(future: Future[Any], path: str) -> Any:
    """The result or exception of a job; an exception of a cluster's executor becomes a problem of the recording."""
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, (KinetoscopeError, BrokenExecutor)):
        return error
    return TraceError(path, f"its worker failed: {type(error).__name__}: {error}")


def _problem(error: KinetoscopeError) -> str:
    """The problem, without the path, which is private to this machine."""
    return error.problem if isinstance(error, TraceError) else str(error)


def ranks_of(
    listing: Listing,
    of_file: TraceFile,
    files: Sequence[TraceFile],
    outcomes: Iterable[tuple[TraceFile, PackedSummary | KinetoscopeError]],
    notes: Sequence[str] = (),
) -> Ranks:
    """The recordings side by side, in the order of the listing.

    Args:
        listing: The listing of their run.
        of_file: The recording whose span is viewed.
        files: The recordings.
        outcomes: Each with its summary, or why there is none.
        notes: Notes about how they were loaded; read after `outcomes`.
    """
    by_key = {file.key: outcome for file, outcome in outcomes}
    members = []
    for file in files:
        outcome = by_key[file.key]
        summary, problem = (None, _problem(outcome)) if isinstance(outcome, KinetoscopeError) else (outcome.summary, "")
        members.append(Member(file.worker, file.span, span_place(listing, file), summary, problem))
    return Ranks(of_file.run, tuple(members), span_place(listing, of_file), tuple(notes))


def span_place(listing: Listing, file: TraceFile) -> int:
    """The index of a file among its worker's recordings."""
    return list(listing.runs[file.run][file.worker]).index(file.span)


def files_of(listing: Listing, file: TraceFile, scope: str) -> list[TraceFile]:
    """The recordings of a view of many: of the same span as the file, or all of its run, in order; of ranks alone."""
    keys = {other.key for other in [file, *listing.same_span_of_others(file)]} if scope == "span" else None
    of_ranks = (other for spans in listing.ranks(file.run).values() for other in spans.values())
    return [other for other in of_ranks if keys is None or other.key in keys]
