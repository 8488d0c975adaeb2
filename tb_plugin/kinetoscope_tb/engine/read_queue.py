"""Which file is read next: on two threads, of which large files never occupy both while a small one waits.

One thread reads large files, in the order in which they were asked for, and others while there is none. The other
thread reads the others; a large file only while nothing else waits, and it gives that up when something else comes. A
small file that takes long there while others wait is treated as a large one from then on. What was given up is begun
anew later: no file is held in part while another one is read.

A thread ends when nothing has waited for some time; the next file starts it again.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import KinetoscopeError
from .workers import IDLE_S

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")

LARGE_BYTES = 64 << 20  # of a file as it is stored; kineto's gzip of that size has about a gigabyte of text
LONG_S = 5.0


class Abandoned(KinetoscopeError):
    """Nobody needs the file any more, or it isn't there any more: reading was given up."""


class _Preempted(KinetoscopeError):
    """Another file goes first; reading is begun anew later."""


@dataclass(eq=False)
class _Reading:
    """A file that waits or is read.

    Args:
        number: How many were asked for before.
        read: Reads it, and calls its argument often, which raises when reading must stop.
        is_needed: Whether anybody still needs it; its argument says whether others wait.
        is_large: Whether it is for the thread that reads large files.
    """

    number: int
    read: Callable[[Callable[[], None]], Any]
    is_needed: Callable[[bool], bool]
    is_large: bool
    future: Future[Any] = field(default_factory=Future)


class ReadQueue:
    """The files to read, and the threads that do.

    Args:
        clock: Seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._waiting: list[_Reading] = []  # in order of their numbers
        self._submitted = self._idle = 0
        self._threads: set[bool] = set()  # whether each takes large files

    def submit(
        self, read: Callable[[Callable[[], None]], Result], is_needed: Callable[[bool], bool], *, is_large: bool
    ) -> Future[Result]:
        """What reading will return or raise; `Abandoned` if nobody needs it before it is done. See `_Reading`."""
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
            except BaseException as error:  # noqa: BLE001  # handed to whoever asks for the result
                reading.future.set_exception(error)
            else:
                reading.future.set_result(result)
            del reading
            with self._changed:
                self._idle += 1

    def _next(self, *, takes_large: bool) -> _Reading | None:
        """The reading that is this idle thread's turn; None if there was none for long.

        Those that nobody needs any more leave the queue.
        """
        while True:
            with self._changed:
                has_work = self._changed.wait_for(lambda: self._waiting, IDLE_S)
                self._idle -= 1
                if not has_work:
                    self._threads.remove(takes_large)
                    return None
                mine = (one for one in self._waiting if one.is_large == takes_large)
                reading = next(mine, self._waiting[0])
                self._waiting.remove(reading)
                others_wait = bool(self._waiting)
            if reading.is_needed(others_wait):
                return reading
            reading.future.set_exception(Abandoned("Nobody waits for this file any more."))
            with self._changed:
                self._idle += 1

    def _check(self, reading: _Reading, begun: float, *, takes_large: bool) -> None:
        """Raise if the reading must stop.

        Raises:
            Abandoned: Nobody needs it any more.
            _Preempted: It is another file's turn.
        """
        with self._changed:
            others_wait = bool(self._waiting)
            small_ones_wait = not self._idle and any(not one.is_large for one in self._waiting)
        if not reading.is_needed(others_wait):
            raise Abandoned("Nobody waits for this file any more.")
        if not takes_large and small_ones_wait and (reading.is_large or self._clock() - begun > LONG_S):
            raise _Preempted("Another file is read first.")

    def _wait_again(self, reading: _Reading) -> None:
        with self._changed:
            reading.is_large = True
            self._waiting.append(reading)
            self._waiting.sort(key=lambda one: one.number)
            self._changed.notify_all()
