"""The background thread of a recording, which writes the journal and looks for requests.

It sleeps until a task is due, and calls nothing of torch.profiler.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LOG = logging.getLogger("kinetoscope")

_PAUSE_S = 0.2
"""The shortest pause; tasks that are due meanwhile run together afterwards."""
_MAX_FAILURES = 10
_STOP_TIMEOUT_S = 2.0


@dataclass
class Task:
    """A periodic task.

    Args:
        what: Its description, for the log.
        function: Runs it. A task that fails ten times in a row is stopped.
        every_s: Seconds between two runs.
    """

    what: str
    function: Callable[[], None]
    every_s: float
    due_s: float = 0.0
    failures: int = 0


class BackgroundTasks:
    """Runs tasks on a separate thread until `end`."""

    def __init__(self, tasks: list[Task]) -> None:
        self._tasks = tasks
        self._is_stopped = False
        self._stop = threading.Lock()  # held until the end: a wait for an Event costs a dozen calls in Python
        self._stop.acquire()
        self._thread = threading.Thread(target=self._run, name="kinetoscope-background", daemon=True)

    def begin(self) -> None:
        """Start the thread."""
        self._thread.start()

    def end(self) -> bool:
        """Stop the thread; return whether it ended: one that hangs on a folder or a network is abandoned."""
        if not self._is_stopped:
            self._is_stopped = True
            self._stop.release()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(_STOP_TIMEOUT_S)
        return threading.current_thread() is self._thread or not self._thread.is_alive()

    def _run(self) -> None:
        while self._tasks and not self._stop.acquire(timeout=self._pause_s()):
            now = time.monotonic()
            for task in self._tasks:
                if now >= task.due_s and not self._is_stopped:
                    self._run_task(task)
                    task.due_s = now + task.every_s

    def _pause_s(self) -> float:
        return max(_PAUSE_S, min(task.due_s for task in self._tasks) - time.monotonic())

    def _run_task(self, task: Task) -> None:
        try:
            task.function()
            task.failures = 0
        except Exception as error:  # noqa: BLE001  # an exception that ends the thread would end all tasks
            task.failures += 1
            gives_up = task.failures >= _MAX_FAILURES
            level = logging.WARNING if gives_up else logging.DEBUG
            _LOG.log(level, "%s failed%s: %s", task.what, " for good" if gives_up else "", error)
            if gives_up:
                self._tasks = [other for other in self._tasks if other is not task]
