"""The threads: the only ones of the plugin."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter, deque
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ..arrays.allocator import release_free_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

Result = TypeVar("Result")

IDLE_S = 1.0
"""How long an idle thread waits for a job before it ends."""

BACKGROUND = 10
"""The niceness of work that must not slow the answers of a server down."""


class Workers:
    """A few daemon threads that start with jobs and end when idle.

    Python joins the threads of concurrent.futures at exit, so Ctrl-C would hang until a file is read.

    Args:
        most: Limit of the number of threads.
        most_alike: Limit of the threads that run jobs about the same thing; the rest is for others.
        niceness: How much lower their priority is than that of this process, where threads have one: on Linux.
    """

    def __init__(self, most: int, most_alike: int | None = None, niceness: int = 0) -> None:
        self._niceness = niceness
        self._most, self._most_alike = most, most if most_alike is None else most_alike
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Hashable, Callable[[], None]]] = deque()
        self._running: Counter[Hashable] = Counter()
        self._threads = 0

    def submit(
        self, job: Callable[..., Result], *args: object, about: Hashable = None, after: Future[Any] | None = None
    ) -> Future[Result]:
        """The future of a job; jobs with the same `about` are about the same thing.

        It begins when another one is done, whatever came of that; no thread waits for it.
        """
        future: Future[Result] = Future()
        run = partial(settle, future, job, *args)
        if after is None:
            self._add(about, run)
        else:
            after.add_done_callback(lambda _: self._add(about, run))
        return future

    def _add(self, about: Hashable, run: Callable[[], None]) -> None:
        with self._changed:
            self._waiting.append((about, run))
            if self._threads < self._most:
                self._threads += 1
                threading.Thread(target=self._work, name=f"kinetoscope-{self._threads}", daemon=True).start()
            self._changed.notify()

    def _work(self) -> None:
        if self._niceness and sys.platform == "linux":
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), self._niceness)
        while True:
            with self._changed:
                at = self._changed.wait_for(self._next, IDLE_S)
                if not at:
                    self._threads -= 1
                    break
                about, run = self._waiting[at - 1]
                del self._waiting[at - 1]
                self._running[about] += 1
            run()
            del run  # and with it what the job was about, which may no longer be needed
            with self._changed:
                self._running[about] -= 1
                self._running += Counter()  # drop zero counts
                self._changed.notify()
        release_free_memory()

    def _next(self) -> int:
        """The position in the queue, from 1, of the first job that may start; 0 if none may."""
        may_begin = (at for at, (about, _) in enumerate(self._waiting, 1) if self._running[about] < self._most_alike)
        return next(may_begin, 0)


def settle(future: Future[Any], job: Callable[..., Any], *args: object) -> None:
    """Run a job in this thread; its result, or what it raises, is that of the future."""
    try:
        future.set_result(job(*args))
    except BaseException as error:  # noqa: BLE001  # raised where the result is used
        future.set_exception(error)


def is_done(future: Future[Any], seconds: float) -> bool:
    """Whether the result or exception is available within that time."""
    try:
        future.exception(timeout=seconds)
    except FutureTimeout:
        return False
    return True
