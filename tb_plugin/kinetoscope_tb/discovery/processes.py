"""Files that hold several processes: each is a worker, and the file a run by itself.

What a file holds is known from its first bytes if our own `merge` wrote it, else when it has been read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..filesystem import last_part
from ..names.roles import is_frontend
from .filename_patterns import without_extension
from .listing import Listing, TraceFile, listing_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..names.processes import Process


def run_of_file(run: str, path: str) -> str:
    """The run that a file is by itself."""
    return f"{run}/{without_extension(last_part(path))}"


def with_processes(listing: Listing, processes_of: Callable[[TraceFile], Sequence[Process]]) -> Listing:
    """The listing with the processes of each file of which several are known.

    Args:
        listing: The files.
        processes_of: The processes that a file holds, as far as that is known; none if it holds one.
    """
    processes_by_file = {
        file.key: processes for file in listing.files if file.process is None and (processes := processes_of(file))
    }
    if not processes_by_file:
        return listing
    runs, files, first_processes = (
        {file.run for file in listing.files if file.key not in processes_by_file},
        [],
        dict(listing.moved),
    )
    for file in listing.files:
        if file.key not in processes_by_file:
            files.append(file)
            continue
        run = file.run if file.has_own_run else run_of_file(file.run, file.shown)
        run = f"{run} ({file.shown})" if run in runs else run
        members = [
            replace(file, run=run, worker=process.worker, process=process.id, notes=())
            for process in processes_by_file[file.key]
        ]
        files += members
        ranks = [member for member in members if not is_frontend(member.worker)]
        first_processes[file.run, file.worker, file.span] = (ranks or members)[0]
    with_members = listing_of(files, listing.problems, listing.notes)
    return replace(with_members, moved=first_processes, jobs=listing.jobs)
