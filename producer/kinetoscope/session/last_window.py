"""Exports the last window to a file of the program's choice, like torch.profiler's `export_chrome_trace`.

During the callbacks, the profiler's raw file still exists. Later there is the trace, which another process writes.
"""

from __future__ import annotations

import gzip
import json
import logging
import os
import shutil
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import SaveError
from ..output.commit import commit_trace
from ..output.spool import MAX_PROGRAM_EVENTS_BYTES
from ..untrusted_files import read_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..output.spool import Job
    from ..output.trace_writer import TraceWriter

_LOG = logging.getLogger("kinetoscope")

PATIENCE_S = 120.0
"""How long to wait for a trace that isn't written yet."""

_PAUSE_S = 0.02


class LastWindow:
    """The last window of a process.

    Args:
        trace_writer: Saves the windows.
    """

    def __init__(self, trace_writer: TraceWriter) -> None:
        self._trace_writer = trace_writer
        self._job: Job | None = None

    @contextmanager
    def during_callbacks(self, job: Job) -> Iterator[None]:
        """In the block, `job` is the last window, and its raw file exists."""
        self._job = job
        try:
            yield
        finally:
            self._job = None

    @property
    def is_in_callback(self) -> bool:
        """Whether a callback of the program runs."""
        return self._job is not None

    def export_or_log(self, path: Path) -> None:
        """Like `export`, but errors are only logged."""
        try:
            self.export(path)
        except (SaveError, OSError, ValueError) as error:
            _LOG.warning("export_chrome_trace() didn't write %s: %s.", path, str(error).rstrip("."))

    def export(self, path: Path) -> None:
        """Write it, compressed if the name ends in `.gz`; an existing file is replaced.

        Raises:
            SaveError: There is no window, or it is lost.
            OSError: The disk or the folder doesn't allow it.
        """
        if self._job is None:
            _copy(self._trace(), path)
        elif self._job.lost is not None:
            raise SaveError(self._job.lost)
        else:
            program_events = read_json(self._trace_writer.program_events_file(self._job), MAX_PROGRAM_EVENTS_BYTES)
            metadata = json.loads(json.dumps(self._job.metadata, default=str))
            commit_trace(
                Path(self._job.raw), path.absolute(), metadata, program_events, owner=str(os.getpid()), overwrite=True
            )

    def _trace(self) -> Path:
        deadline = time.monotonic() + PATIENCE_S
        self._trace_writer.poll()
        while self._trace_writer.is_pending and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
            self._trace_writer.poll()
        outcome = self._trace_writer.last_outcome
        if outcome is None:
            raise SaveError("no window is complete")
        if outcome.get("path") is None:
            raise SaveError(str(outcome.get("problem") or "it isn't written"))
        return Path(outcome["path"])


def _copy(source: Path, target: Path) -> None:
    source_open = gzip.open if source.suffix == ".gz" else open
    target_open = gzip.open if target.suffix == ".gz" else open
    with source_open(source, "rb") as source_stream, target_open(target, "wb") as target_stream:
        shutil.copyfileobj(source_stream, target_stream)
