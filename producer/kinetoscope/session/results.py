"""The last window's results: torch.profiler's own, while it is in memory, and the file that the program exports.

An export is like torch.profiler's `export_chrome_trace`. During the callbacks, the profiler's raw file still exists.
Later there is the trace, which another process writes.
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
from typing import TYPE_CHECKING, Any, Protocol

from torch.autograd.profiler_util import EventList

from ..errors import SaveError, UsageError
from ..output.commit import commit_trace
from ..output.spool import MAX_PROGRAM_EVENTS_BYTES
from ..profiling.memory_picture import write_memory_picture
from ..untrusted_files import read_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch.profiler import profile

    from ..output.spool import Job
    from ..output.trace_writer import TraceWriter
    from ..profiling.recorder import Recorder
    from .recording import Recording

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


class Windows(Protocol):
    """The part of a window controller that has torch's profiler."""

    @property
    def has_ended(self) -> bool:
        """Whether nothing more is recorded: any thread may then read the last window."""

    @property
    def last_recorder(self) -> Recorder | None:
        """The recorder; None before the first step."""


class ProfilerResults:
    """The results of one Tracer's last window.

    Args:
        recording: The recording.
        windows: Have torch's profiler.
        is_enabled: Whether the Tracer records at all; otherwise there are no results.
    """

    def __init__(self, recording: Recording, windows: Windows, *, is_enabled: bool) -> None:
        self._options, self._owner = recording.options, recording.owner
        self._windows, self._is_enabled = windows, is_enabled

    def key_averages(self, *args: Any, **kwargs: Any) -> Any:
        """Return the operators by name, none if there is no window.

        Raises:
            UsageError: The window isn't in memory.
        """
        last = self._last_profile("key_averages")
        return _no_events() if last is None else last.key_averages(*args, **kwargs)

    def events(self) -> Any:
        """Return the events, none if there is no window.

        Raises:
            UsageError: The window isn't in memory.
        """
        last = self._last_profile("events")
        return _no_events() if last is None else last.events()

    def export_stacks(self, path: str | os.PathLike[str], metric: str) -> None:
        """Write the call stacks as lines for flame graphs.

        Raises:
            UsageError: The window isn't in memory, or has no call stacks.
        """
        self._check_options("export_stacks", "with_stack")
        last = self._last_profile("export_stacks")
        if last is not None:
            last.export_stacks(os.fspath(path), metric)

    def export_memory_timeline(self, path: str | os.PathLike[str], device: str | None) -> None:
        """Write the memory timeline.

        Raises:
            UsageError: The window isn't in memory, or lacks an option that is needed.
        """
        self._check_options("export_memory_timeline", "profile_memory", "record_shapes", "with_stack")
        last = self._last_profile("export_memory_timeline")
        if last is None:
            return
        if os.fspath(path).endswith(".html"):  # for which torch needs matplotlib
            write_memory_picture(last, Path(path), device)
        else:
            last.export_memory_timeline(os.fspath(path), device)

    def _check_options(self, what: str, *names: str) -> None:
        missing = [name for name in names if not getattr(self._options, name)]
        if missing:
            raise UsageError(f"{what}() needs a Tracer with {', '.join(f'{name}=True' for name in missing)}.")

    def _last_profile(self, what: str) -> profile | None:
        """Return torch's profiler with the last window; None, with a log message, if there is no window."""
        if not self._is_enabled:
            return None
        if not self._windows.has_ended:
            self._owner.check(f"call {what}()")
        if self._options.features.trace_only:
            raise UsageError(f"{what}() needs a Tracer without trace_only=True: torch builds no events with it.")
        recorder = self._windows.last_recorder
        if recorder is None or (recorder.last_profile is None and not recorder.keeps_events):
            raise UsageError(f"{what}() needs a Tracer with keep_events=True: the last window isn't in memory.")
        if recorder.last_profile is None:
            _LOG.warning("%s() finds no window: none is complete, or the next one has begun.", what)
        return recorder.last_profile


def _no_events() -> Any:
    return EventList([])
