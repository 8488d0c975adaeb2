"""Records the history of a training's allocations, and takes snapshots of it.

A snapshot is taken at the end of a window, and after an allocation failed: torch calls the observer in the middle of
that allocation, where nothing may use the device. So it only notes the failure, and the background thread takes the
snapshot some tenths of a second later, or the end of the recording does; the history has the failure and what came
before it. Writing it is the writer process's work.
"""

from __future__ import annotations

import logging
import pickle
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from ..output.merge_events import KEY
from ..output.metadata import OUT_OF_MEMORY, snapshot_facts
from ..output.snapshot_writer import SnapshotFacts, SnapshotWriter
from ..profiling.allocator_history import recording_allocator
from ..profiling.memory_history import MemoryHistory, parse_memory_history

if TYPE_CHECKING:
    from pathlib import Path

    from ..error_log import ErrorLog
    from ..output.trace_writer import TraceWriter
    from ..profiling.allocator_history import AllocatorHistory
    from ..progress import ProgressCounter

_LOG = logging.getLogger("kinetoscope")

COOLDOWN_S = 600.0
"""After the snapshot of a failed allocation, the next one is taken so much later, or at the end of the recording."""

_PATIENCE_S = 60.0
_PROTOCOL = 4  # PyTorch's viewer, MemoryViz.js, doesn't read 5
_NOTHING_TO_RECORD = (
    "memory_history has nothing to record: this torch has no allocator of a CUDA, XPU or NPU device with a history."
)


class MemoryRecorder:
    """The history of one Tracer's allocations. Nothing in it raises.

    Args:
        history: Tracer's argument; None for only what requests ask for.
        counter: The steps so far.
        trace_writer: Saves traces.
        error_log: Records errors.

    Raises:
        UsageError: An invalid argument.
    """

    def __init__(
        self,
        history: MemoryHistory | str | None,
        counter: ProgressCounter,
        trace_writer: TraceWriter,
        error_log: ErrorLog,
    ) -> None:
        self._history, self._counter, self._error_log = parse_memory_history(history), counter, error_log
        self._trace_writer, self._writer = trace_writer, SnapshotWriter(trace_writer)
        self._allocator: AllocatorHistory | None = None
        self._is_searched = self._is_own = self._is_observing = self._is_over = False
        self._is_for_window = False
        self._failure: dict[str, int] | None = None
        self._quiet_until_s = 0.0
        self._lock = threading.RLock()  # the background thread and the training's take turns

    @property
    def is_on(self) -> bool:
        """Whether a history was asked for."""
        return self._history is not None

    def start(self) -> None:
        """Start, if the program uses the devices already."""
        if self._history is not None:
            self._find_allocator()
            self.poll()

    def _find_allocator(self) -> None:
        if not self._is_searched:
            self._is_searched = True
            with self._error_log.catch("The history of allocations can't be recorded"):
                self._allocator = recording_allocator()
            if self._allocator is None:
                _LOG.warning("%s", _NOTHING_TO_RECORD)

    def poll(self) -> None:
        """Start once the program uses the devices, and save the snapshot of a failed allocation; on any thread."""
        if self._allocator is None or self._is_over or not self._lock.acquire(blocking=False):
            return
        try:
            with self._error_log.catch("The history of allocations can't be recorded"):
                self._begin_always(self._allocator)
            is_due = self._failure is not None and time.monotonic() >= self._quiet_until_s
            if is_due and self._trace_writer.known_rank_and_folder is not None:
                self._save_failure()
        finally:
            self._lock.release()

    def _begin_always(self, allocator: AllocatorHistory) -> None:
        history = self._history
        if history is None or self._is_observing or not allocator.is_ready:
            return
        if self._trace_writer.selection.is_selected:
            self._is_observing = True
            allocator.observe_failures(self._note_failure)
            if history.when == "always":
                self._begin(allocator, history)

    def _begin(self, allocator: AllocatorHistory, history: MemoryHistory) -> None:
        if not self._is_own and not allocator.is_recording:  # else the program's own recording goes on
            allocator.begin(history)
            self._is_own = True

    def _note_failure(self, device: int, request: int, total: int, free: int) -> None:
        """Note a failed allocation: torch calls this in the middle of it."""
        self._failure = {"device": device, "request_bytes": request, "most_bytes": total, "free_bytes": free}

    # The training's thread

    def enter(self, *, is_active: bool, is_requested: bool) -> None:
        """Set whether the profiler runs in the next step, and whether that is for a request with a memory snapshot."""
        is_for_window = is_active and (is_requested or self._history is not None)
        if is_for_window is self._is_for_window and not is_for_window:
            return  # as without a history
        self._is_for_window = is_for_window
        if is_for_window:
            self._find_allocator()
        allocator = self._allocator
        if allocator is None or (self._history is not None and self._history.when == "always"):
            return
        with self._error_log.catch("The history of allocations can't be recorded"), self._lock:
            if is_for_window and allocator.is_ready:
                self._begin(allocator, self._history or MemoryHistory(when="windows"))
            elif not is_for_window:
                self._end(allocator)

    def save_window(self, reason: str) -> None:
        """Save a snapshot of the window that ends now, if there should be one."""
        if self._is_for_window and self._allocator is not None and self._allocator.is_ready:
            self._save(reason, {})

    def flush(self) -> None:
        """Continue what another thread has begun; to be called periodically."""
        with self._error_log.catch("A memory snapshot was lost"):
            self._writer.flush()

    def close(self) -> None:
        """Save a snapshot of an allocation that failed, and stop recording."""
        allocator = self._allocator
        if allocator is None or not self._lock.acquire(timeout=_PATIENCE_S):
            return
        try:
            if self._failure is not None:
                self._trace_writer.settle()
                self._save_failure()
            self._is_over = True
            with self._error_log.catch("The history of allocations couldn't be ended"):
                if self._is_observing:
                    allocator.observe_failures(None)
                self._end(allocator)
            self.flush()
        finally:
            self._lock.release()

    def _end(self, allocator: AllocatorHistory) -> None:
        if self._is_own:
            self._is_own = False
            allocator.end()

    def _save_failure(self) -> None:
        failure, self._failure = self._failure, None
        self._quiet_until_s = time.monotonic() + COOLDOWN_S
        self._save(OUT_OF_MEMORY, {"failure": failure})

    def _save(self, reason: str, details: dict[str, Any]) -> None:
        with self._error_log.catch("A memory snapshot was lost"), self._lock:
            values = self._counter.progress.to_json()
            facts = SnapshotFacts(
                steps_completed=self._counter.batch,
                values=values,
                reason=reason,
                is_failure=reason == OUT_OF_MEMORY,
            )
            self._writer.save(partial(self._write, facts, details), facts)

    def _write(self, facts: SnapshotFacts, details: dict[str, Any], path: Path) -> None:
        """Write torch's snapshot with what it doesn't say: the process and its devices.

        These are further keys at the top, which other readers leave out.
        """
        if self._allocator is None:
            return
        recorder_facts = snapshot_facts(self._trace_writer.known_rank_and_folder, facts.reason, facts.steps_completed)
        more = {"deviceProperties": self._allocator.devices(), KEY: {**recorder_facts, **details}}
        with path.open("wb") as file:
            pickle.dump({**self._allocator.snapshot(), **more}, file, protocol=_PROTOCOL)
