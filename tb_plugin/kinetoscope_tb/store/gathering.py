"""Many recordings as summaries: from the cache, or read anew, wherever an executor does that.

Whoever reads a recording hands its summary back as bytes, which are small, and are written as they are. A recording
that can't be read, or that takes its process down with it, is told as such and stops nobody else. No more are read at
the same time than the executor has hands for, and what was read is given up at once, so memory doesn't grow with the
number of recordings. The largest are read first: nobody is busy with one when all others are done.
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
from typing import TYPE_CHECKING, Protocol

from ..errors import KinetoscopeError, TraceError
from ..storage import entry_at
from .files import read_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..cache import Cache
    from ..cache.summary_entry import PackedSummary
    from ..discovery import Listing, TraceFile
    from ..ranks import Ranks

DIED = "the process that read it ended, perhaps for want of memory. Record fewer steps, or read fewer at a time."


class Hands(Protocol):
    """What reads recordings: an executor of concurrent.futures, or the store's threads."""

    def submit(self, job: Callable[[str], PackedSummary], path: str, /) -> Future[PackedSummary]:
        """What the job will return or raise."""

    def shutdown(self, wait: bool = ..., *, cancel_futures: bool = ...) -> None:  # noqa: FBT001  # as executors have it
        """Take no more jobs."""


@dataclass(frozen=True)
class Crew:
    """Who reads.

    Args:
        hands: Makes an executor; again, after one broke.
        at_once: How many jobs it is given at a time.
    """

    hands: Callable[[], Hands]
    at_once: int


def summary_of_file(path: str) -> PackedSummary:
    """Read a recording, with one thread, since others are read beside it.

    Raises:
        TraceError: The file can't be used.
    """
    from ..cache.summary_entry import packed
    from ..ranks import problem_of, summary

    made = summary(read_trace(path, threads=1))
    problem = problem_of(made)
    if problem:  # it would break the views of all others
        raise TraceError(path, f"it can't be held against other recordings: {problem}.")
    return packed(made)


def summaries(
    files: Sequence[TraceFile],
    cache: Cache | None,
    crew: Crew,
    tell: Callable[[int], None] = lambda _: None,
    complain: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[TraceFile, PackedSummary | KinetoscopeError]]:
    """Each file with its summary, or why there is none, in any order; what was read is kept in the cache.

    Args:
        files: Of which.
        cache: Where summaries are kept.
        crew: Who reads what isn't there.
        tell: Is told how many are done.
        complain: Is told why summaries beside the recordings can't be used.
    """
    for done, found in enumerate(_found(files, cache, crew, complain), 1):
        tell(done)
        yield found


def _found(
    files: Sequence[TraceFile], cache: Cache | None, crew: Crew, complain: Callable[[str], None]
) -> Iterator[tuple[TraceFile, PackedSummary | KinetoscopeError]]:
    """From the cache, from beside the recordings, and read anew."""
    from .beside import summaries_beside

    missing = {}
    for file in files:
        kept = None if cache is None else cache.open_summary(file.path, file.stamp)
        if kept is None:
            missing[file.path] = file
        else:
            yield file, kept
    for file, kept in summaries_beside(list(missing.values()), complain):
        del missing[file.path]
        yield file, kept
    for file, found in read_all(missing.values(), crew):
        if cache is not None and not isinstance(found, KinetoscopeError):
            keep_summary(found, file, cache)
        yield file, found


def keep_summary(summary: PackedSummary, file: TraceFile, cache: Cache) -> None:
    """Write a summary to the cache, unless its file changed in between."""
    from ..cache import may_be_kept

    entry = entry_at(file.path) if may_be_kept(file.path) else None
    if entry is not None and entry.stamp == file.stamp and entry.stamp[-1]:
        cache.write_summary(summary, file.path, file.stamp)


def read_all(files: Iterable[TraceFile], crew: Crew) -> Iterator[tuple[TraceFile, PackedSummary | KinetoscopeError]]:
    """Read each file, in any order.

    When an executor breaks, nobody knows whose reading it was. So each of those that were being read then is read again
    alone, and the one that breaks the executor alone is left out.
    """
    waiting = deque(sorted(files, key=lambda file: -file.bytes))
    suspects: deque[TraceFile] = deque()
    while waiting or suspects:
        hands = crew.hands()
        try:
            for file, found in _read_until_broken(hands, waiting, suspects, crew.at_once):
                if isinstance(found, BrokenExecutor):
                    suspects.append(file)
                else:
                    yield file, found
        except BaseException:  # the caller wants no more
            hands.shutdown(wait=False, cancel_futures=True)
            raise
        hands.shutdown(wait=True)


def _read_until_broken(
    hands: Hands, waiting: deque[TraceFile], suspects: deque[TraceFile], at_once: int
) -> Iterator[tuple[TraceFile, PackedSummary | KinetoscopeError | BrokenExecutor]]:
    """Read what waits; of files that were being read when the executor broke, that it did."""
    running: dict[Future[PackedSummary], TraceFile] = {}
    was_alone, is_broken = False, False
    while not is_broken and (waiting or suspects or running):
        while not was_alone and len(running) < (1 if suspects else at_once) and (waiting or suspects):
            was_alone = bool(suspects)
            file = (suspects if suspects else waiting).popleft()
            running[hands.submit(summary_of_file, file.path)] = file
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            found = _outcome(future, running[future].path)
            is_broken |= isinstance(found, BrokenExecutor)
            if was_alone and isinstance(found, BrokenExecutor):
                found = TraceError(running[future].path, DIED)
            yield running.pop(future), found
        was_alone = was_alone and bool(running)
    for future, file in running.items():
        found = _outcome(future, file.path)
        yield file, found


def _outcome(future: Future[PackedSummary], path: str) -> PackedSummary | KinetoscopeError | BrokenExecutor:
    """What a job came to; whatever a cluster's executor raises of itself is told of the recording."""
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, (KinetoscopeError, BrokenExecutor)):
        return error
    return TraceError(path, f"whoever was to read it failed: {type(error).__name__}: {error}")


def _problem(error: KinetoscopeError) -> str:
    """What is wrong, without the path, which is this machine's own matter."""
    return error.problem if isinstance(error, TraceError) else str(error)


def ranks_of(
    listing: Listing,
    asked: TraceFile,
    files: Sequence[TraceFile],
    found: Iterable[tuple[TraceFile, PackedSummary | KinetoscopeError]],
    notes: Sequence[str] = (),
) -> Ranks:
    """The recordings side by side, in the order of the listing; `asked` is the one whose span is looked at.

    `notes` is what is to be told of how they were found, and is looked at when they are.
    """
    from ..ranks import Member, Ranks

    outcome = {file.path: one for file, one in found}
    members = []
    for file in files:
        one = outcome[file.path]
        place = list(listing.runs[file.run][file.worker]).index(file.span)
        summary, problem = (None, _problem(one)) if isinstance(one, KinetoscopeError) else (one.summary, "")
        members.append(Member(file.worker, file.span, place, summary, problem))
    return Ranks(asked.run, tuple(members), list(listing.runs[asked.run][asked.worker]).index(asked.span), tuple(notes))


def files_of(listing: Listing, file: TraceFile, scope: str) -> list[TraceFile]:
    """The recordings that a view of many is about: of the same span as the file, or all of its run, in order."""
    chosen = {one.path for one in [file, *listing.beside(file)]} if scope == "span" else None
    workers = listing.runs[file.run].values()
    return [one for spans in workers for one in spans.values() if chosen is None or one.path in chosen]
