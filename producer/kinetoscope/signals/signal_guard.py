"""Saves an open recording when a signal is about to end the process.

By default SIGTERM ends a process at once, and its recording is lost: on all ranks, if torchrun ends the others after
one has crashed. Here the recording is saved first, then the signal has its usual effect. A handler of the program is
called first: it may have to write a checkpoint in the little time left.

A signal never interrupts the profiler itself: if torch's start or end is interrupted, the process crashes. The signal
is deferred until that is over.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from types import FrameType

_LOG = logging.getLogger("kinetoscope")

_ENDING = ("SIGTERM", "SIGHUP", "SIGINT")
_RESERVED = (*_ENDING, "SIGKILL", "SIGSTOP", "SIGCHLD", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT")


def ending_signals(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return the names of the signals that the launcher uses to end a process.

    Under SLURM no terminal closes, and SIGHUP may request that a job requeues itself: Lightning installs its handler
    for that only if there is none.
    """
    return tuple(name for name in _ENDING if name != "SIGHUP" or "SLURM_JOB_ID" not in environ)


def request_signal(value: str | int) -> int:
    """Return the number of a signal that may request a window.

    Args:
        value: Its name, such as `SIGUSR2`, or its number.

    Raises:
        UsageError: This system has no such signal, or it has another purpose.
    """
    number = getattr(signal, value, None) if isinstance(value, str) and value.startswith("SIG") else value
    if not isinstance(number, int) or isinstance(number, bool) or number not in signal.valid_signals():
        raise UsageError(f"signal={value!r}: this system has no such signal; try 'SIGUSR2'.")
    if number in [getattr(signal, name, None) for name in _RESERVED]:
        raise UsageError(f"signal={value!r}: this signal has another purpose; try 'SIGUSR2'.")
    return int(number)


class _Forks(threading.local):
    """Restores the original handlers in forked processes, such as workers of a DataLoader.

    Python loses a signal that reaches a new process before it is set up: a worker that gets a signal at once would not
    end. So signals are blocked for that long.
    """

    handlers: ClassVar[list[SignalHandler]] = []
    is_registered: ClassVar[bool] = False
    mask: set[int] | None = None

    def register(self) -> None:
        """Register for all forks; Python has no way to unregister."""
        if not _Forks.is_registered and hasattr(os, "register_at_fork"):
            _Forks.is_registered = True
            os.register_at_fork(before=self._before, after_in_parent=self._after, after_in_child=self._in_child)

    def _before(self) -> None:
        if self.handlers:
            numbers = [handler.number for handler in self.handlers if handler.number is not None]
            self.mask = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)

    def _after(self) -> None:
        if self.mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)
            self.mask = None

    def _in_child(self) -> None:
        for handler in list(self.handlers):
            handler.remove()
        self._after()


_forks = _Forks()


class SignalHandler:
    """A signal handler that is installed in front of the existing one.

    It isn't installed if the signal is ignored, or its handler isn't a Python function, which couldn't be called.

    Args:
        number: The signal's number; None if this system doesn't have it.
        handle: Called with this object.
    """

    def __init__(self, number: int | None, handle: Callable[[SignalHandler], None]) -> None:
        self._number = number
        self._handle = handle
        self._previous: Any = None
        self._frame: FrameType | None = None

    def install(self) -> bool:
        """Install it, on the main thread; return whether that was possible."""
        if self._number is None or threading.current_thread() is not threading.main_thread():
            return False
        previous = signal.getsignal(self._number)
        if previous in (None, signal.SIG_IGN):
            return False
        self._previous = previous
        _forks.register()
        signal.signal(self._number, self._on_signal)
        _forks.handlers.append(self)
        return True

    def remove(self) -> None:
        """Restore the earlier handler, unless another one was installed in front."""
        if self not in _forks.handlers:
            return
        _forks.handlers.remove(self)
        with suppress(ValueError):  # not on the main thread, which alone may change handlers
            if self.is_outermost:
                signal.signal(self._number or 0, self._previous)

    @property
    def number(self) -> int | None:
        """The signal's number; None if this system doesn't have it."""
        return self._number

    @property
    def is_outermost(self) -> bool:
        """Whether this handler is the installed one."""
        return self._number is not None and signal.getsignal(self._number) == self._on_signal

    @property
    def has_program_handler(self) -> bool:
        """Whether the program has its own handler behind this one."""
        return callable(self._previous) and self._previous is not signal.default_int_handler

    def _on_signal(self, _number: int, frame: FrameType | None) -> None:
        self._frame = frame
        try:
            self._handle(self)
        finally:
            self._frame = None

    def raise_again(self) -> None:
        """Raise the signal again."""
        if self._number is not None:
            signal.raise_signal(self._number)

    def call_program_handler(self) -> None:
        """Call the program's own handler, if it has one."""
        if callable(self._previous):
            self._previous(self._number, self._frame)


class _Hold:
    """A reentrant block that defers signals until the end of the outermost one.

    It is entered at each recorded step, and costs a fifth of a generator-based context manager.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._deferred: list[SignalHandler] = []

    def defer(self, handler: SignalHandler) -> bool:
        """Whether signals are deferred."""
        if self._depth:
            self._deferred.append(handler)
        return self._depth > 0

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth and self._deferred:
            handlers, self._deferred = self._deferred, []
            for handler in handlers:
                handler.raise_again()


class SignalGuard:
    """Saves what is recorded before a signal ends the process.

    Python calls handlers on the main thread only, and lets only that thread install them. So a training on another
    thread, which alone may stop its profiler, isn't guarded.

    Args:
        save: Stops the recording and saves it, with a reason.
        note_signal: Receives the name of a signal that should end the process, if the program decides when.
    """

    def __init__(self, save: Callable[[str], None], note_signal: Callable[[str], None]) -> None:
        self._save, self._note_signal = save, note_signal
        self._handlers = [
            SignalHandler(getattr(signal, name, None), self._on_signal_to_end) for name in ending_signals()
        ]
        self._hold = _Hold()

    def begin(self) -> None:
        """Install the handlers."""
        for handler in self._handlers:
            handler.install()

    def end(self) -> None:
        """Stop saving: the recording is closed."""
        for handler in self._handlers:
            handler.remove()

    def hold(self) -> AbstractContextManager[None]:
        """Defer signals until the profiler is done."""
        return self._hold

    def _on_signal_to_end(self, handler: SignalHandler) -> None:
        if self._hold.defer(handler):
            return
        reason = signal.Signals(handler.number or 0).name.lower()
        if handler.number == signal.SIGINT and not handler.has_program_handler:
            handler.call_program_handler()  # raises KeyboardInterrupt, which leaves the Tracer's `with`
        elif handler.has_program_handler or not handler.is_outermost:
            self._note_signal(reason)
            handler.call_program_handler()
        else:
            self._save(reason)
            handler.remove()
            handler.raise_again()
