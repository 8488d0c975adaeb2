"""Jobs that record or recorded into runs under the logdirs, and requests to them.

A Tracer has a hidden folder next to its traces: it shows whether the job is alive, and requests are put into it.
Nothing is written anywhere else.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kinetoscope.errors import UsageError
from kinetoscope.job.rank_info import rank_numbers
from kinetoscope.journal.journal import header_of, journal_files
from kinetoscope.journal.status import RankStatus, rank_statuses, unwritable_runs
from kinetoscope.scheduling.request import WORK, Request, request_from_json, write_request

from ..errors import BadParameter, KinetoscopeError, NotFound, RequestError
from ..filesystem import is_url, last_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kinetoscope.path_below import PathBelow

    from . import Logdir

MOST_JOBS = 500
_DEEPEST = 20  # levels of nested lists and objects; a plan has three
_GONE = object()


class NotListening(RequestError):
    """A request for a job that can't take it."""

    status = 409


@dataclass(frozen=True)
class Job:
    """One run that a Tracer records into.

    Args:
        run: The run's name, as everywhere on the page.
        folder: Its folder.
        ranks: The state of its processes.
        unreadable: Damaged journals of other processes.
    """

    run: str
    folder: Path
    ranks: tuple[RankStatus, ...]
    unreadable: tuple[str, ...] = ()

    @property
    def unavailable_reason(self) -> str:
        """Why it takes no request; empty if it does."""
        if any(rank.listens and rank.state == "running" for rank in self.ranks):
            return ""
        if not self.ranks and self.unreadable:
            return f"its journal is damaged: {WORK}/{self.unreadable[0]}"
        if not self.ranks:
            return "it has written no journal yet"
        states = {rank.state for rank in self.ranks}
        if states == {"ended"}:
            return f"it has ended ({self.ranks[0].reason})"
        if not any(rank.listens for rank in self.ranks if rank.state != "ended"):
            return "its Tracer has requests=False"
        if states <= {"dead", "ended"}:
            is_recovered = all(rank.is_recovered or rank.state == "ended" for rank in self.ranks)
            left = "" if is_recovered else "; kinetoscope recover RUN makes traces of what they left"
            return f"its processes are gone{left}"
        return f"its last sign of life was {min(rank.age_s for rank in self.ranks):.0f} s ago"

    def plan_of(self, request: str) -> dict[str, Any] | None:
        """Return which steps were chosen for a request; None while none are."""
        plans = [value for rank in self.ranks for kind, value, _ in rank.news if kind == "plan"]
        return next((plan for plan in plans if plan["request"]["id"] == request), None)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        ranks = [rank.to_json() for rank in self.ranks]
        return {
            "run": self.run,
            "unavailable_reason": self.unavailable_reason,
            "ranks": ranks,
            "unreadable": list(self.unreadable),
        }


def job_in(folder: Path) -> Job:
    """Return the job of a run's folder.

    Raises:
        BadParameter: No Tracer records into it.
    """
    if not (folder / WORK).is_dir() and not _is_unwritable(folder):
        raise BadParameter(f"No Tracer has recorded into {folder}: it has no folder {WORK}.")
    return _job(folder, folder.name)


def states_of_ranks(folder: Path) -> tuple[RankStatus, ...]:
    """The states of the ranks of a run; none if no Tracer records into it."""
    return _job(folder, folder.name).ranks


def _is_unwritable(folder: Path) -> bool:
    """Whether this machine records a run into a folder that can't be written."""
    with suppress(OSError):
        return folder.absolute() in unwritable_runs(folder)
    return False


def _job(folder: Path, run: str) -> Job:
    ranks = tuple(replace(rank, news=_plain(rank.news)) for rank in rank_statuses(folder))
    readable = [rank.rank for rank in ranks]
    unreadable = tuple(file.name for file in journal_files(folder) if _rank_in(file) not in (*readable, _GONE))
    return Job(run, folder, ranks, unreadable)


def _rank_in(journal: PathBelow) -> object:
    """The rank of a journal; None if it has none."""
    try:
        return (header_of(journal) or {}).get("global_rank")
    except FileNotFoundError:
        return _GONE
    except (OSError, ValueError):
        return None


def _plain(value: Any, depth: int = 0) -> Any:
    """A value of a journal as strict JSON: no NaN, no infinity, and no deeper nesting than recorders write."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if not isinstance(value, (list, tuple, dict)):
        return value
    if depth == _DEEPEST:
        return None
    if isinstance(value, dict):
        return {name: _plain(inner, depth + 1) for name, inner in value.items()}
    return type(value)(_plain(inner, depth + 1) for inner in value)


def jobs(logdirs: Sequence[Logdir]) -> list[Job]:
    """Return the jobs under the logdirs, those that accept requests first, then by name; at most 500."""
    all_jobs = [_job(folder, run) for run, folder in run_folders(logdirs)]
    return sorted(all_jobs, key=lambda job: (bool(job.unavailable_reason), job.run))


def has_job(logdirs: Sequence[Logdir]) -> bool:
    """Whether a Tracer records into any run under the logdirs, or did."""
    return next(run_folders(logdirs), None) is not None


def job_called(logdirs: Sequence[Logdir], run: str) -> Job:
    """Return the job of a run.

    Raises:
        NotFound: No Tracer records into such a run under the logdirs.
    """
    for logdir in logdirs:
        folder = _folder_called(logdir, run)
        if folder is not None:
            return _job(folder, run)
    raise NotFound("run that a Tracer records into", run, [name for name, _ in run_folders(logdirs)])


def ask(job: Job, value: object, reason: str) -> Request:
    """Leave a request for a job; return it.

    Args:
        job: The job.
        value: The request as JSON values.
        reason: Who sends it.

    Raises:
        BadParameter: The request isn't valid.
        NotListening: The job doesn't take requests.
        KinetoscopeError: Its folder can't be written.
    """
    try:
        request = request_from_json({**value, "reason": reason} if isinstance(value, dict) else value)
    except UsageError as error:
        raise BadParameter(str(error)) from error
    if job.unavailable_reason:
        raise NotListening(f"Run {job.run!r} accepts no requests: {job.unavailable_reason}.")
    try:
        write_request(job.folder, request)
    except OSError as error:
        raise KinetoscopeError(f"The request for run {job.run!r} couldn't be written: {error.strerror}.") from error
    return request


def ranks_in(text: str) -> list[int]:
    """Return the ranks that a text such as `0,8-15` names.

    Raises:
        BadParameter: It names none.
    """
    try:
        return rank_numbers(text)
    except UsageError as error:
        raise BadParameter(str(error)) from error


def run_folders(logdirs: Sequence[Logdir]) -> Iterator[tuple[str, Path]]:
    """Names and folders of the runs that Tracers record or recorded into; only on this machine's disks."""
    count = 0
    for logdir in logdirs:
        if is_url(logdir.path):
            continue
        stack = [Path(logdir.path)]
        while stack:
            folder = stack.pop()
            names = _folders_in(folder)
            if WORK in names:
                count += 1
                if count > MOST_JOBS:
                    return
                yield _run_name(logdir, folder), folder
            stack += (folder / name for name in sorted(names, reverse=True) if not name.startswith("."))


def _folders_in(folder: Path) -> list[str]:
    """Names of the folders in a folder, without links; none if it can't be listed."""
    try:
        with os.scandir(folder) as items:
            return [item.name for item in items if item.is_dir(follow_symlinks=False)]
    except (OSError, ValueError):
        return []


def _run_name(logdir: Logdir, folder: Path) -> str:
    below = folder.relative_to(logdir.path).as_posix()
    return "/".join(filter(None, [logdir.name, "" if below == "." else below])) or last_part(logdir.path)


def _folder_called(logdir: Logdir, run: str) -> Path | None:
    """The folder of a run below a logdir; the name is untrusted, so the result must not be elsewhere."""
    if is_url(logdir.path):
        return None
    root = Path(logdir.path)
    prefix = f"{logdir.name}/" if logdir.name else ""
    parts = run.removeprefix(prefix).split("/")
    is_possible = run.startswith(prefix) and not any(not p or p.startswith(".") or "\0" in p for p in parts)
    candidates = [root.joinpath(*parts)] if is_possible else []
    if run == _run_name(logdir, root):
        candidates.append(root)
    return next((folder for folder in candidates if _has_work_inside(folder, root)), None)


def _has_work_inside(folder: Path, root: Path) -> bool:
    work = folder / WORK
    try:
        return work.is_dir() and work.resolve().is_relative_to(root.resolve())
    except (OSError, ValueError, RuntimeError):  # a name that is too long, or no name; links in a circle
        return False
