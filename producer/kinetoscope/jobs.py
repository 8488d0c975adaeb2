"""What remains to be done for recordings: one file each, in a folder that outlives the process that recorded.

A queue is a folder on the machine's own disk. The training puts raw files and jobs there; a process without torch
(`finisher`) makes traces of them. Whoever finds the folder later can finish the jobs just as well: all that is needed
is written down.

    process.json    what is true of the whole process, for the run's manifest
    state.json      what became of each window; the finisher's
    0001.json       a job
    0001.raw.json   what the profiler wrote, unless there was more room beside the traces
    0001.own        the program's own events and metadata, as `events.chrome_events` takes them

This module imports nothing but the standard library.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PROCESS = "process.json"
STATE = "state.json"


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


class Queue:
    """The jobs of one process, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def beside(self, run: Path) -> Path:
        """Where raw files have more room, perhaps: beside the run's traces."""
        return run / ".work" / "scratch" / self.folder.name

    def discard(self) -> None:
        """Take the queue away, when nobody will put anything into it."""
        run = (read_json(self.folder / PROCESS) or {}).get("folder")
        shutil.rmtree(self.folder, ignore_errors=True)
        if run is not None:
            with suppress(OSError):  # there was none, or what is in it is of use to somebody
                self.beside(Path(run)).rmdir()

    def own(self, number: int) -> Path:
        """Where the program's own events are."""
        return self.folder / f"{number:04d}.own"

    def put(self, job: Job) -> None:
        """Write a job down, or what has become of it."""
        write_json(self.folder / f"{job.number:04d}.json", asdict(job))

    def remove(self, job: Job) -> None:
        """Forget a job, with its files."""
        for path in (self.folder / f"{job.number:04d}.json", Path(job.raw), self.own(job.number)):
            path.unlink(missing_ok=True)

    def jobs(self) -> list[Job]:
        """The jobs that remain, oldest first. A file that is none is passed over."""
        found = []
        for path in sorted(self.folder.glob("[0-9]*[0-9].json")):
            told = read_json(path)
            if isinstance(told, dict):
                try:
                    found.append(Job(**told))
                except TypeError:
                    continue
        return found

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


def write_json(path: Path, value: Any) -> None:
    """Write a file that others see either whole or not at all.

    Raises:
        OSError: The disk or the folder doesn't allow it.
    """
    hidden = path.with_name(f".{path.name}.tmp-{uuid.uuid4().hex}")
    try:
        hidden.write_text(json.dumps(value, default=str), encoding="ascii")
        hidden.replace(path)
    finally:
        hidden.unlink(missing_ok=True)


def read_json(path: Path) -> Any:
    """The value of a JSON file; None if there is none or it isn't JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
