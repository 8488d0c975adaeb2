"""The queue of files to read: two threads, of which large files never occupy both while a small one waits.

One thread reads large files in order of request, and small ones while there is no large one. The other thread reads
small files; it reads a large file only while nothing else waits, and abandons that when something else arrives. A small
file that takes long there while others wait is treated as large from then on. An abandoned read starts again later from
the beginning: no file is partly in memory while another one is read.

A thread ends after some idle time; the next file starts it again.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ..arrays.allocator import release_free_memory
from ..errors import KinetoscopeError
from .workers import IDLE_S

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")

LARGE_BYTES = 64 << 20  # of a stored file; kineto's gzip of that size has about a gigabyte of text
LONG_S = 5.0


class NotNeeded(KinetoscopeError):
    """The file is no longer needed, or no longer exists: reading was abandoned."""


class _Preempted(KinetoscopeError):
    """Another file goes first; reading starts again later."""


@dataclass(eq=False)
class _Reading:
    """A file that waits or is read.

    Args:
        number: Its position in the order of requests.
        read: Reads it; calls its argument often, which raises when reading must stop.
        is_needed: Whether the file is still needed; its argument is whether others wait.
        is_large: Whether the thread for large files reads it.
    """

    number: int
    read: Callable[[Callable[[], None]], Any]
    is_needed: Callable[[bool], bool]
    is_large: bool
    future: Future[Any] = field(default_factory=Future)


class ReadQueue:
    """The files to read, and the threads that read them.

    Args:
        clock: Seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._waiting: list[_Reading] = []  # in order of their numbers
        self._submitted = self._idle = 0
        self._threads: set[bool] = set()  # whether each reads large files

    def submit(
        self, read: Callable[[Callable[[], None]], Result], is_needed: Callable[[bool], bool], *, is_large: bool
    ) -> Future[Result]:
        """The future of reading a file; `NotNeeded` if it is no longer needed before it is done. See `_Reading`."""
        with self._changed:
            reading = _Reading(self._submitted, read, is_needed, is_large)
            self._submitted += 1
            self._waiting.append(reading)
            missing = [takes_large for takes_large in (True, False) if takes_large not in self._threads]
            if missing:
                self._start(takes_large=missing[0])
            self._changed.notify_all()
        return reading.future

    def _start(self, *, takes_large: bool) -> None:
        self._threads.add(takes_large)
        self._idle += 1
        name = f"kinetoscope-reader-{'large' if takes_large else 'small'}"
        threading.Thread(target=self._work, kwargs={"takes_large": takes_large}, name=name, daemon=True).start()

    def _work(self, *, takes_large: bool) -> None:
        while (reading := self._next(takes_large=takes_large)) is not None:
            try:
                result = reading.read(partial(self._check, reading, self._clock(), takes_large=takes_large))
            except _Preempted:
                self._wait_again(reading)
            except BaseException as error:  # noqa: BLE001  # raised where the result is used
                reading.future.set_exception(error)
            else:
                reading.future.set_result(result)
            del reading
            with self._changed:
                self._idle += 1
        release_free_memory()

    def _next(self, *, takes_large: bool) -> _Reading | None:
        """The next reading for this idle thread; None if there was none for a long time.

        Readings that are no longer needed leave the queue.
        """
        while True:
            with self._changed:
                has_work = self._changed.wait_for(lambda: self._waiting, IDLE_S)
                self._idle -= 1
                if not has_work:
                    self._threads.remove(takes_large)
                    return None
                mine = (waiting_reading for waiting_reading in self._waiting if waiting_reading.is_large == takes_large)
                reading = next(mine, self._waiting[0])
                self._waiting.remove(reading)
                others_wait = bool(self._waiting)
            if reading.is_needed(others_wait):
                return reading
            reading.future.set_exception(NotNeeded("This file is no longer needed."))
            with self._changed:
                self._idle += 1

    def _check(self, reading: _Reading, begin: float, *, takes_large: bool) -> None:
        """Raise if the reading must stop.

        Raises:
            Abandoned: Nobody needs it any more.
            _Preempted: It is another file's turn.
        """
        with self._changed:
            others_wait = bool(self._waiting)
            small_ones_wait = not self._idle and any(not waiting_reading.is_large for waiting_reading in self._waiting)
        if not reading.is_needed(others_wait):
            raise NotNeeded("This file is no longer needed.")
        if not takes_large and small_ones_wait and (reading.is_large or self._clock() - begin > LONG_S):
            raise _Preempted("Another file is read first.")

    def _wait_again(self, reading: _Reading) -> None:
        with self._changed:
            reading.is_large = True
            self._waiting.append(reading)
            self._waiting.sort(key=lambda waiting_reading: waiting_reading.number)
            self._changed.notify_all()
