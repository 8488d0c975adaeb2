"""The threads: the only ones of the plugin."""

from __future__ import annotations

import threading
from collections import Counter, deque
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

Result = TypeVar("Result")

IDLE_S = 1.0
"""How long a thread waits for something to do before it ends."""


class Workers:
    """A few threads that start with jobs and end when there are none, or with the process, whatever they are at.

    The threads of concurrent.futures are waited for when the process ends: Ctrl-C would hang until a file is read.

    Args:
        most: How many threads.
        most_alike: How many of them may be at jobs about the same thing: the others are for the other things.
    """

    def __init__(self, most: int, most_alike: int | None = None) -> None:
        self._most, self._most_alike = most, most if most_alike is None else most_alike
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Hashable, Callable[[], None]]] = deque()
        self._running: Counter[Hashable] = Counter()
        self._threads = 0

    def submit(self, job: Callable[..., Result], *args: object, about: Hashable = None) -> Future[Result]:
        """What the job will return or raise; `about` says which jobs are alike."""
        future: Future[Result] = Future()

        def run() -> None:
            try:
                future.set_result(job(*args))
            except BaseException as error:  # noqa: BLE001  # handed to whoever asks for the result
                future.set_exception(error)

        with self._changed:
            self._waiting.append((about, run))
            if self._threads < self._most:
                self._threads += 1
                threading.Thread(target=self._work, name=f"kinetoscope-{self._threads}", daemon=True).start()
            self._changed.notify()
        return future

    def _work(self) -> None:
        while True:
            with self._changed:
                at = self._changed.wait_for(self._next, IDLE_S)
                if not at:
                    self._threads -= 1
                    return
                about, run = self._waiting[at - 1]
                del self._waiting[at - 1]
                self._running[about] += 1
            run()
            del run  # and with it what the job was about, which nobody may need any more
            with self._changed:
                self._running[about] -= 1
                self._running += Counter()  # forget what isn't running
                self._changed.notify()

    def _next(self) -> int:
        """The place in the queue, from 1, of the first job that may begin; 0 if none may."""
        may_begin = (at for at, (about, _) in enumerate(self._waiting, 1) if self._running[about] < self._most_alike)
        return next(may_begin, 0)


def is_done(future: Future[Any], seconds: float) -> bool:
    """Whether the result, or what went wrong, is there within that time."""
    try:
        future.exception(timeout=seconds)
    except FutureTimeout:
        return False
    return True
