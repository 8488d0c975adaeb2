"""The threads: the only ones of the plugin."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


class Workers:
    """A few threads that start with the first job and end with the process, whatever they are at.

    The threads of concurrent.futures are waited for when the process ends: Ctrl-C would hang until a file is read.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._threads = 0
        self._lock = threading.Lock()

    def submit(self, job: Callable[..., Result], *args: object) -> Future[Result]:
        """What the job will return or raise."""
        future: Future[Result] = Future()

        def run() -> None:
            try:
                future.set_result(job(*args))
            except BaseException as error:  # noqa: BLE001  # handed to whoever asks for the result
                future.set_exception(error)

        self._jobs.put(run)
        with self._lock:
            if self._threads < self._most:
                self._threads += 1
                threading.Thread(target=self._work, name=f"kinetoscope-{self._threads}", daemon=True).start()
        return future

    def _work(self) -> None:
        while True:
            self._jobs.get()()


def is_done(future: Future[Any], seconds: float) -> bool:
    """Whether the result, or what went wrong, is there within that time."""
    try:
        future.exception(timeout=seconds)
    except FutureTimeout:
        return False
    return True
