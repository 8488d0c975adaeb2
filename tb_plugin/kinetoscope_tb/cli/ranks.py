"""All recordings of a run side by side, for the commands that show several ranks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..answer.run import run_answer
from ..discovery.listing import recording_of_worker
from ..engine.cache import configured_cache
from ..engine.executors import local_executors
from ..engine.file_processes import FileProcesses
from ..engine.summary_loader import HoldsSeveral, files_of, load_summaries, ranks_of
from ..errors import TraceError
from ..views import EVERY_VIEW
from .progress import count_bar

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..answer.model import Answer
    from ..discovery import Listing, TraceFile
    from ..distributed.run import Ranks


def side_by_side(listing: Listing, file: TraceFile, scope: str) -> Ranks:
    """All recordings of a file's span, or of its run; summaries that were computed are written to the cache."""
    files = files_of(listing, file, scope)
    notes: list[str] = []
    with count_bar(len(files), "recordings") as on_progress:
        summaries = load_summaries(files, configured_cache(), local_executors(len(files)), on_progress, notes.append)
        outcomes = list(summaries)
    for other, outcome in outcomes:
        if isinstance(outcome, HoldsSeveral):
            FileProcesses(configured_cache()).note(other, outcome.processes)
    return ranks_of(listing, file, files, outcomes, notes)


def answer_of_worker(
    listing: Listing, file: TraceFile, answer_of: Callable[[TraceFile], Answer], worker: str
) -> Answer | None:
    """The answer about the recording of a worker of a file's run; None if it can't be used."""
    other = recording_of_worker(listing, file, worker)
    try:
        return None if other is None else answer_of(other)
    except TraceError:
        return None  # `--worker` says why


def answer_of_run(
    answer: Answer, listing: Listing, file: TraceFile, answer_of: Callable[[TraceFile], Answer]
) -> Answer:
    """The answer about a file's run; `answer` is that about the file, and `answer_of` answers about another one."""
    of_worker = partial(answer_of_worker, listing, file, answer_of)
    return run_answer(answer, side_by_side(listing, file, "run"), EVERY_VIEW, len(listing.ranks(file.run)), of_worker)
