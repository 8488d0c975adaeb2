"""All recordings of a run side by side, for the commands that show several ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..engine import FileProcesses, HoldsSeveral, files_of, load_summaries, local_executors, ranks_of
from ..engine.cache import configured
from .progress import counted

if TYPE_CHECKING:
    from ..discovery import Listing, TraceFile
    from ..distributed import Ranks


def side_by_side(listing: Listing, file: TraceFile, scope: str) -> Ranks:
    """All recordings of a file's span, or of its run; summaries that were computed are written to the cache."""
    files = files_of(listing, file, scope)
    notes: list[str] = []
    with counted(len(files), "recordings") as on_progress:
        summaries = load_summaries(files, configured(), local_executors(len(files)), on_progress, notes.append)
        outcomes = list(summaries)
    for other, outcome in outcomes:
        if isinstance(outcome, HoldsSeveral):
            FileProcesses(configured()).note(other, outcome.processes)
    return ranks_of(listing, file, files, outcomes, notes)
