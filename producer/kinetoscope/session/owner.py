"""The owner of a recording: torch.profiler belongs to the thread that started it, and crashes on any other."""

from __future__ import annotations

import sys
import threading
import weakref
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING

from .. import process_id
from ..errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

_PACKAGE = str(Path(__file__).parents[1])


class Owner:
    """The process and the thread that entered a Tracer; none before that."""

    def __init__(self) -> None:
        self.ids: tuple[int, int] | None = None
        """The ids of the process and the thread."""
        self.program_line = ""
        """The file and line of the program that entered the Tracer, such as `train.py:12`."""
        self.is_block = False
        """Whether a `with` of the program ends the recording."""
        self._is_over = threading.Lock()
        self._watch: weakref.ref[_ThreadWatch] | None = None

    def take(self, on_thread_end: Callable[[], None], *, is_block: bool) -> tuple[int, int]:
        """Make this process and this thread the owner; return their ids.

        Args:
            on_thread_end: Called on the thread when it ends, if the interpreter knows when it does.
            is_block: Whether a `with` of the program ends the recording.
        """
        self.ids, self.program_line, self.is_block = _here(), _program_line(), is_block
        thread = threading.current_thread()
        if thread is threading.main_thread() or isinstance(thread, threading._DummyThread):
            return self.ids  # the main thread ends with the program; of a thread made in C, each call is an end
        watch = _local.watch = _ThreadWatch(on_thread_end)
        self._watch = weakref.ref(watch)
        return self.ids

    def release(self) -> bool:
        """End the ownership, whose `on_thread_end` isn't called any more; return False if it has ended already."""
        if not self._is_over.acquire(blocking=False):
            return False
        watch = None if self._watch is None else self._watch()
        if watch is not None:
            watch.on_end = None
        return True

    @property
    def is_here(self) -> bool:
        """Whether this thread is the owner."""
        return self.ids == _here()

    @property
    def is_alive(self) -> bool:
        """Whether this process is the owner's."""
        return self.ids is not None and self.ids[0] == process_id.pid

    @property
    def is_thread_alive(self) -> bool:
        """Whether the interpreter knows a thread of the owner's id."""
        return self.ids is not None and self.ids[1] in sys._current_frames()

    @property
    def is_forked(self) -> bool:
        """Whether this process was forked from the owner's: it may leave the Tracer's `with` too, but owns nothing."""
        return self.ids is not None and self.ids[0] != process_id.pid

    def check(self, what: str) -> None:
        """Check that this thread is the owner.

        Args:
            what: The action, for the message.

        Raises:
            UsageError: It isn't.
        """
        if self.ids == (process_id.pid, get_ident()):
            return
        if self.ids is None:
            raise UsageError(f"A Tracer can't {what} outside its `with`.")
        raise UsageError(f"Only the thread that entered a Tracer can {what}: torch.profiler belongs to it.")


class _ThreadWatch:
    """Calls a function when the thread ends that has this in its `_local`: the interpreter then deletes it there."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        self.on_end: Callable[[], None] | None = on_end
        self._thread = _here()

    def __del__(self) -> None:
        # At the interpreter's end, the main thread deletes those of all other threads.
        if self.on_end is not None and self._thread == _here() and not sys.is_finalizing():
            self.on_end()


_local = threading.local()


def _here() -> tuple[int, int]:
    return process_id.pid, get_ident()


def _program_line() -> str:
    """Return the innermost file and line of the call stack that isn't the recorder's."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
