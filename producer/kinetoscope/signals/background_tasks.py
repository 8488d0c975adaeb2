"""The background thread of a recording, which writes the journal and looks for requests.

It wakes up a few times a second for some microseconds, and calls nothing of torch.profiler.
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

_TICK_S = 0.2
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
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kinetoscope-background", daemon=True)

    def begin(self) -> None:
        """Start the thread."""
        self._thread.start()

    def end(self) -> bool:
        """Stop the thread; return whether it ended: one that hangs on a folder or a network is abandoned."""
        self._stop.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(_STOP_TIMEOUT_S)
        return threading.current_thread() is self._thread or not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stop.wait(_TICK_S):
            now = time.monotonic()
            for task in self._tasks:
                if now >= task.due_s and not self._stop.is_set():
                    self._run_task(task)
                    task.due_s = now + task.every_s

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
