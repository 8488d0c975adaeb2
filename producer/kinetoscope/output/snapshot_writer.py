"""Hands memory snapshots to the writer process, like the raw files of traces.

Unlike a window, a snapshot may be taken on any thread, as soon as an allocation has failed. So it is stored on the
machine's own disk, with a job for the writer process, and the training's thread learns of it between two steps.
"""

from __future__ import annotations

import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import SaveError
from ..naming import snapshot_name
from .spool import SNAPSHOT, Job

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .trace_writer import TraceWriter


@dataclass(frozen=True, kw_only=True)
class SnapshotFacts:
    """What a snapshot's name and its record are made of.

    Args:
        steps_completed: How many steps the training had completed.
        values: More variables for the file's name.
        reason: Why it was taken: that of the window, or `out of memory`.
        is_failure: Whether an allocation failed.
    """

    steps_completed: int
    values: Mapping[str, Any]
    reason: str
    is_failure: bool = False


class SnapshotWriter:
    """Saves one process's snapshots.

    Args:
        trace_writer: Saves its traces.
    """

    def __init__(self, trace_writer: TraceWriter) -> None:
        self._trace_writer = trace_writer
        self._waiting_jobs: deque[tuple[Job, SnapshotFacts]] = deque()
        """The snapshots that wait for the run's folder."""
        self._new_jobs: deque[Job] = deque()
        """The snapshots in the spool of which the training's thread doesn't know yet."""
        self._files: set[str] = set()
        self._largest_bytes = 0

    def save(self, write: Callable[[Path], None], facts: SnapshotFacts) -> None:
        """Save a snapshot; any thread may call this.

        Args:
            write: Writes it into a file.
            facts: Describe it.

        Raises:
            OSError: The machine's own disk doesn't allow it.
        """
        trace_writer, number = self._trace_writer, self._trace_writer.next_job_number()
        job = Job(
            number=number,
            raw=str(trace_writer.spool.raw_file(number, SNAPSHOT)),
            folder="",
            file="",
            metadata={
                "steps_completed": facts.steps_completed,
                "reason": facts.reason,
                "taken_ns": time.time_ns(),
            },
            kind=SNAPSHOT,
            **trace_writer.job_options(),
        )
        try:
            raw = trace_writer.scratch(self._largest_bytes) / Path(job.raw).name
            job.raw = str(raw)
            write(raw)
            self._largest_bytes = max(self._largest_bytes, raw.stat().st_size)
        except (SaveError, OSError, RuntimeError, ValueError, MemoryError) as error:  # torch raises RuntimeError
            job.lost = str(error) or type(error).__name__
            with suppress(OSError):
                Path(job.raw).unlink()
        self._waiting_jobs.append((job, facts))
        self._send()

    def _send(self) -> None:
        """Put the snapshots into the spool whose folder is resolved."""
        rank_and_folder = self._trace_writer.known_rank_and_folder
        while rank_and_folder is not None and self._waiting_jobs:
            try:
                job, facts = self._waiting_jobs.popleft()
            except IndexError:  # the other thread took it
                return
            job.folder = str(rank_and_folder[1])
            job.file, job.remote = self._file_and_url(facts)
            self._trace_writer.spool.put(job)
            self._new_jobs.append(job)

    def _file_and_url(self, facts: SnapshotFacts) -> tuple[str, str | None]:
        """Return the names next to the trace of the same span; of several failures in a span, each has a number."""
        file, url = self._trace_writer.file_and_url({"batch": facts.steps_completed, **facts.values})
        failure = int(facts.is_failure)
        while snapshot_name(file, failure) in self._files:
            failure += 1 + (failure == 0)
        self._files.add(snapshot_name(file, failure))
        return snapshot_name(file, failure), None if url is None else snapshot_name(url, failure)

    def flush(self) -> None:
        """Expect the outcomes of new snapshots; to be called periodically on the training's thread."""
        if self._waiting_jobs:
            self._send()
        while self._new_jobs:
            self._trace_writer.expect(self._new_jobs.popleft())
