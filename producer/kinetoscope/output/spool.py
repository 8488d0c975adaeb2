"""What remains to be done for recordings: one file each, in a folder that outlives the process that recorded.

A spool is a folder on the machine's own disk, in this user's `scratch` root. The training puts raw files and jobs
there; a process without torch (`writer_process`) makes traces of them. Whoever finds the folder later can finish the
jobs just as well: all that is needed is written down. What a job names lies in its spool or in its run's folder; a job
that names anything else is refused.

    process.json    what is true of the whole process, for the run's manifest
    state.json      what became of each window; the writer process's
    0001.json       a job
    0001.raw.json   what the profiler wrote, unless there was more room in the run's folder
    0001.own        the program's own events and metadata, as `events.chrome_events` takes them

This module imports nothing but the standard library.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..atomic_write import write_json
from ..untrusted_files import is_below, make_folder_below, read_json
from .scratch import check_private, forget_root, make_private

if TYPE_CHECKING:
    from typing import TypeGuard

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PROCESS = "process.json"
STATE = "state.json"
MAX_PROGRAM_EVENTS_BYTES = 4 << 30
"""How large a file of the program's own events may be."""

MOST_RANKS = 1 << 17
"""More than any job has: a number beyond it is damage, and nobody makes a list of so many."""

_MOST_NUMBER = 1 << 31


@dataclass(kw_only=True)
class Job:
    """One window that shall become a trace, or one that was lost already.

    Args:
        number: Which window of this process.
        raw: Where the profiler has written it.
        folder: The run's folder.
        file: The trace's name below it; may have folders of its own.
        metadata: What the trace says about its recording.
        is_partial: Whether it ended before it should have.
        lost: Why there is nothing to save; None if there is.
        overwrite: Whether an older file of that name may be replaced.
        remote: The URL to upload it to; None for none.
        keep: How many traces stay in the folder; -1 for all.
        attempts: How often somebody has begun to work on it.
        path: The finished trace; None before.
    """

    number: int
    raw: str
    folder: str
    file: str
    metadata: dict[str, Any]
    is_partial: bool = False
    lost: str | None = None
    overwrite: bool = False
    remote: str | None = None
    keep: int = -1
    attempts: int = 0
    path: str | None = None


class Spool:
    """The jobs of one process, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def process(self) -> dict[str, Any] | None:
        """What is true of the whole process; None if it isn't known."""
        return parse_process_facts(read_json(self.folder / PROCESS))

    def in_run(self, run: Path) -> Path:
        """Where raw files have more room, perhaps: on the disk of the run's traces."""
        return run / ".work" / "scratch" / self.folder.name

    def make_in_run(self, run: Path) -> Path:
        """Make that folder; only this user may enter it.

        Raises:
            OSError: It can't be made, or somebody else has made it.
        """
        folder = make_folder_below(run, ".work", "scratch") / self.folder.name
        make_private(folder)
        return folder

    def make_again(self) -> bool:
        """Make the spool's folder again if somebody has removed it; return whether it was gone.

        Raises:
            OSError: It can't be made.
        """
        if self.folder.is_dir():
            return False
        self.folder.parent.parent.mkdir(parents=True, exist_ok=True)
        make_private(self.folder.parent)
        make_private(self.folder)
        return True

    def discard(self) -> None:
        """Take the spool away, when nobody will put anything into it."""
        process = self.process()
        shutil.rmtree(self.folder, ignore_errors=True)
        forget_root(self.folder)
        if process is not None:
            with suppress(OSError):  # there was none, or what is in it is of use to somebody
                self.in_run(Path(process["folder"])).rmdir()

    def program_events_file(self, number: int) -> Path:
        """Where the program's own events are."""
        return self.folder / f"{number:04d}.own"

    def put(self, job: Job) -> None:
        """Write a job down, or what has become of it."""
        write_json(self.folder / f"{job.number:04d}.json", asdict(job))

    def remove(self, job: Job) -> None:
        """Forget a job, with its files."""
        for path in (self.folder / f"{job.number:04d}.json", Path(job.raw), self.program_events_file(job.number)):
            path.unlink(missing_ok=True)

    def jobs(self) -> list[Job]:
        """The jobs that remain, oldest first; without those that are refused."""
        return [job for job in self._read().values() if isinstance(job, Job)]

    def refused_jobs(self) -> list[str]:
        """The files that hold no job, or one that names files elsewhere, and why; they are left alone."""
        return [f"{path}: {job}" for path, job in self._read().items() if isinstance(job, str)]

    def is_empty(self) -> bool:
        """Whether nothing is left to be done."""
        return not self._read()

    def _read(self) -> dict[Path, Job | str]:
        """By its file each job, or why it is none."""
        return {path: self._read_job(path) for path in sorted(self.folder.glob("[0-9]*[0-9].json"))}

    def _read_job(self, path: Path) -> Job | str:
        value = read_json(path)
        problem = _problem_with(value)
        if problem:
            return problem
        job = Job(**value)
        if path.name != f"{job.number:04d}.json":
            return f"its name and its number, {job.number}, differ"
        process = self.process()
        if process is not None and Path(job.folder) != Path(process["folder"]):
            return f"it is for {job.folder}, another run"
        return self._check_paths(job)

    def _check_paths(self, job: Job) -> Job | str:
        """The job, or which of its files lies neither in the spool nor in the run."""
        raw, run = Path(job.raw), Path(job.folder)
        is_named = raw.name == f"{job.number:04d}.raw.json"
        if not is_named or raw.parent not in (self.folder, self.in_run(run)):
            return f"its raw file {raw} lies outside {self.folder}"
        try:
            check_private(raw.parent)
        except FileNotFoundError:
            pass
        except OSError as error:
            return str(error)
        if job.path is not None and not is_below(Path(job.path), run):
            return f"its trace {job.path} lies outside {run}"
        return job

    def lock(self) -> int | None:
        """Become the only one who works here, until the descriptor is closed; None if somebody else does."""
        descriptor = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        if fcntl is not None:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(descriptor)
                return None
        return descriptor

    def holds(self, lock: int) -> bool:
        """Whether a lock is this folder's: somebody may have removed the folder, which was made again then."""
        try:
            return os.path.samestat(os.fstat(lock), (self.folder / "lock").stat())
        except OSError:
            return False


def is_count(value: object, most: int = _MOST_NUMBER) -> TypeGuard[int]:
    """Whether a value is a whole number from 0 to below `most`."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < most


def is_path(value: object) -> bool:
    """Whether a value is a text that can name a file."""
    try:
        return isinstance(value, str) and value != "" and b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:  # a lone surrogate
        return False


def _is_none_or_path(value: object) -> bool:
    return value is None or is_path(value)


_FIELDS = {
    "number": is_count,
    "raw": is_path,
    "folder": is_path,
    "file": is_path,
    "metadata": lambda value: isinstance(value, dict),
    "is_partial": lambda value: isinstance(value, bool),
    "lost": lambda value: value is None or isinstance(value, str),
    "overwrite": lambda value: isinstance(value, bool),
    "remote": _is_none_or_path,
    "keep": lambda value: value == -1 or is_count(value),
    "attempts": is_count,
    "path": _is_none_or_path,
}


def _problem_with(value: Any) -> str:
    """Why a JSON value is no job; empty if it is one."""
    if not isinstance(value, dict):
        return "it is no job"
    for name, is_valid in _FIELDS.items():
        if name in value and not is_valid(value[name]):
            return f"its {name} is {str(value[name])[:100]!r}"
    needed = ("number", "raw", "folder", "file", "metadata")
    absent, unknown = [name for name in needed if name not in value], [name for name in value if name not in _FIELDS]
    return f"it has no {absent[0]}" if absent else f"it has a {str(unknown[0])[:100]!r}" if unknown else ""


def parse_process_facts(value: Any) -> dict[str, Any] | None:
    """Return what a spool's process says of itself; None if it isn't what a recorder writes."""
    if not isinstance(value, dict) or not is_path(value.get("folder")):
        return None
    rank, pid = value.get("global_rank"), value.get("pid")
    is_valid = is_count(rank, MOST_RANKS) and (pid is None or is_count(pid)) and _is_none_or_path(value.get("remote"))
    return value if is_valid else None
