"""Jobs for the writer process: one file per recording, in a folder that outlives the recording process.

A spool is a folder on the machine's own disk, in this user's `scratch` root. The training puts raw files and jobs
there; a process without torch (`writer_process`) makes traces of them. Any later process can finish the jobs just as
well: the files are self-contained. The paths in a job are inside its spool or its run's folder; a job with any other
path is refused.

    process.json    facts about the whole process, for the run's manifest
    state.json      the outcome of each window, from the writer process
    0001.json       a job
    0001.raw.json   the profiler's raw file, unless there was more room in the run's folder
    0002.raw.pickle a memory snapshot, in the place of a raw file
    in-run          exists if raw files may be in the run's folder
    0001.own        the program's own events and metadata, as `events.chrome_events` takes them

This module imports nothing but the standard library.
"""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..atomic_write import write_json
from ..path_below import LeadsOutside, PathBelow
from ..process_id import is_running
from ..untrusted_files import read_json
from .scratch import check_private, make_private, process_of_spool, remove_empty_root, scratch_root, spool_folders

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeGuard

if sys.platform != "win32":
    import fcntl

PROCESS = "process.json"
STATE = "state.json"
_IN_RUN = "in-run"
MAX_PROGRAM_EVENTS_BYTES = 4 << 30
"""The maximum size of a file of the program's own events."""

MOST_RANKS = 1 << 17
"""More than any job has: a larger number means that the file is damaged."""

TRACE, SNAPSHOT = "trace", "snapshot"
"""What a job writes: a trace from the profiler's raw file, or a memory snapshot as it is."""

_RAW_ENDINGS = {TRACE: "raw.json", SNAPSHOT: "raw.pickle"}
_MOST_NUMBER = 1 << 31
_MOST_INODE = 1 << 64


@dataclass(kw_only=True)
class Job:
    """One window to make a trace of, a memory snapshot to store, or one that is already lost.

    Args:
        number: The number of the job in this process.
        raw: The profiler's raw file.
        folder: The run's folder.
        file: The trace's name below it; may contain folders.
        metadata: The trace's metadata about its recording.
        is_partial: Whether it ended earlier than planned.
        lost: Why there is nothing to save; None if there is.
        overwrite: Whether an older file of that name may be replaced.
        remote: The URL to upload it to; None for none.
        keep: How many traces stay in the folder; -1 for all.
        attempts: How many times a writer process has started on it.
        path: The finished trace; None before.
        kind: `TRACE` or `SNAPSHOT`.
        complete: `name`, `inode` and `bytes` of a complete file, noted before it gets this name, and the `problem` with
            the raw one: what continues after a kill knows the trace by them. None before.
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
    kind: str = TRACE
    complete: dict[str, Any] | None = None


class Spool:
    """The jobs of one process, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def process(self) -> dict[str, Any] | None:
        """The facts about the whole process; None if unknown."""
        return parse_process_facts(read_json(self.folder / PROCESS))

    def in_run(self, run: Path) -> PathBelow:
        """A folder for raw files that may have more room: on the disk of the run's traces."""
        return PathBelow(run, ".work", "scratch", self.folder.name)

    def make_in_run(self, run: Path) -> Path:
        """Create that folder; only this user may enter it.

        Raises:
            OSError: It can't be created, or belongs to another user.
        """
        folder = self.in_run(run)
        (self.folder / _IN_RUN).touch()
        folder.parent.make()
        with folder.parent.open_folder() as scratch:
            scratch.make_folder(folder.name, 0o700)
        check_private(folder.path)
        return folder.path

    def recreate(self) -> bool:
        """Recreate the spool's folder if it was removed; return whether it was.

        Raises:
            OSError: It can't be created.
        """
        if self.folder.is_dir():
            return False
        self.folder.parent.parent.mkdir(parents=True, exist_ok=True)
        make_private(self.folder.parent)
        make_private(self.folder)
        return True

    def discard(self) -> None:
        """Remove the spool, once nothing more is put into it.

        A signal may end the process in the middle of the removal. So the facts about the process go before the
        outcomes of its windows: what finishes a spool that has facts but no outcomes would report that nothing was
        saved. The folder in the run, which only the facts name, goes before them.
        """
        process = self.process()
        has_folder_in_run = (self.folder / _IN_RUN).exists()  # else its folder, which may hang, isn't touched
        if process is not None and has_folder_in_run:
            with suppress(OSError):  # it doesn't exist, or has files that are still needed
                in_run = self.in_run(Path(process["folder"]))
                with in_run.parent.open_folder() as scratch:
                    scratch.remove_folder(in_run.name)
        with suppress(OSError):
            (self.folder / PROCESS).unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        remove_empty_root(self.folder.parent)

    @property
    def is_abandoned(self) -> bool:
        """Whether it has no recording, and its process ended before it wrote its facts or after it removed them."""
        process = process_of_spool(self.folder)
        names = (PROCESS, "[0-9]*")
        return process is not None and not is_running(process) and not any(any(self.folder.glob(n)) for n in names)

    def program_events_file(self, number: int) -> Path:
        """Return the file of the program's own events."""
        return self.folder / f"{number:04d}.own"

    def raw_file(self, number: int, kind: str = TRACE) -> Path:
        """Return the raw file of a job."""
        return self.folder / f"{number:04d}.{_RAW_ENDINGS[kind]}"

    def put(self, job: Job) -> None:
        """Write a job, or its new state."""
        write_json(self._job_file(job), asdict(job))

    def update(self, job: Job) -> None:
        """Write the new state of a job, unless it is gone: the spool was removed, and may be another process's now."""
        if self._job_file(job).exists():
            self.put(job)

    def remove(self, job: Job) -> None:
        """Remove a job with its files."""
        for path in (self._job_file(job), Path(job.raw), self.program_events_file(job.number)):
            path.unlink(missing_ok=True)

    def _job_file(self, job: Job) -> Path:
        return self.folder / f"{job.number:04d}.json"

    def jobs(self) -> list[Job]:
        """Return the remaining jobs, oldest first, without refused ones."""
        return [job for job in self._read().values() if isinstance(job, Job)]

    def refused_jobs(self) -> list[str]:
        """Return the files without a valid job, or whose job names files elsewhere, and why; they are left alone."""
        return [f"{path}: {job}" for path, job in self._read().items() if isinstance(job, str)]

    def is_empty(self) -> bool:
        """Whether no job remains."""
        return not self._read()

    def _read(self) -> dict[Path, Job | str]:
        """Return each job by its file, or why the file is refused."""
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
        """Return the job, or a message about a path that is outside the spool and the run."""
        raw, run = Path(job.raw), Path(job.folder)
        is_named = raw.name == self.raw_file(job.number, job.kind).name
        if not is_named or raw.parent not in (self.folder, self.in_run(run).path):
            return f"its raw file {raw} is outside {self.folder}"
        try:
            check_private(raw.parent)
        except FileNotFoundError:
            pass
        except OSError as error:
            return str(error)
        try:
            if job.path is not None:
                PathBelow.of(Path(job.path), run).stat()
        except LeadsOutside:
            return f"its trace {job.path} is outside {run}"
        except OSError:  # it was removed
            pass
        return job

    def lock(self) -> int | None:
        """Lock the spool until the returned descriptor is closed; None if another process has the lock."""
        descriptor = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        if sys.platform != "win32":
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(descriptor)
                return None
        return descriptor

    def owns_lock(self, lock: int) -> bool:
        """Whether a lock belongs to the current folder: it may have been removed and recreated."""
        try:
            return os.path.samestat(os.fstat(lock), (self.folder / "lock").stat())
        except OSError:
            return False


def discard_abandoned_spools() -> None:
    """Discard this user's abandoned spools, which don't say what run they belong to.

    Raises:
        OSError: Others may write to the folder of the spools, or it can't be read.
    """
    for folder in spool_folders():
        spool = Spool(folder)
        if spool.is_abandoned:
            spool.discard()
    remove_empty_root(scratch_root())


def is_count(value: object, most: int = _MOST_NUMBER) -> TypeGuard[int]:
    """Whether a value is an integer from 0 to below `most`."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < most


def is_path(value: object) -> bool:
    """Whether a value is a string that can name a file."""
    try:
        return isinstance(value, str) and value != "" and b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:  # a lone surrogate
        return False


def _is_none_or_path(value: object) -> bool:
    return value is None or is_path(value)


_FIELDS: dict[str, Callable[[Any], bool]] = {
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
    "kind": (TRACE, SNAPSHOT).__contains__,
    "complete": lambda value: value is None or _is_complete_file(value),
}


def _is_complete_file(value: Any) -> bool:
    texts, numbers = ("name", "problem"), ("inode", "bytes")
    return (
        isinstance(value, dict)
        and set(value) == {*texts, *numbers}
        and all(isinstance(value[name], str) for name in texts)
        and all(is_count(value[name], _MOST_INODE) for name in numbers)
    )


def _problem_with(value: Any) -> str:
    """Return why a JSON value isn't a valid job; empty if it is."""
    if not isinstance(value, dict):
        return "it isn't a job"
    for name, is_valid in _FIELDS.items():
        if name in value and not is_valid(value[name]):
            return f"its {name} is {str(value[name])[:100]!r}"
    required_fields = ("number", "raw", "folder", "file", "metadata")
    missing_fields, unknown_fields = (
        [name for name in required_fields if name not in value],
        [name for name in value if name not in _FIELDS],
    )
    return (
        f"it has no {missing_fields[0]}"
        if missing_fields
        else f"it has a {str(unknown_fields[0])[:100]!r}"
        if unknown_fields
        else ""
    )


def parse_process_facts(value: Any) -> dict[str, Any] | None:
    """Return the facts about a spool's process; None if they aren't of the form that a recorder writes."""
    if not isinstance(value, dict) or not is_path(value.get("folder")):
        return None
    rank, pid = value.get("global_rank"), value.get("pid")
    is_valid = is_count(rank, MOST_RANKS) and (pid is None or is_count(pid)) and _is_none_or_path(value.get("remote"))
    return value if is_valid else None
