"""Reports signals that aren't handled because the main thread is in a call that doesn't return.

Python runs handlers on the main thread only, between two bytecode instructions. A collective that waits for a rank that
is gone, in gloo as in NCCL, prevents that (torch 2.13): the process survives SIGTERM until its launcher sends SIGKILL.
The recording can't be saved then, since only that thread may touch it. But it can be reported while there is time: the
interpreter still writes the signal's number to a file descriptor, which another thread reads: one that waits for
nothing else, so that it knows when a signal came, and costs nothing until then.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from .signal_guard import ending_signals

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 2.0
"""After how long a signal is reported as stuck; launchers wait for half a minute."""

_READ_BYTES = 1 << 12
_PAUSE_S = 0.2
"""Between two reads: a program may have a timer that raises a signal a thousand times a second."""


class StuckSignals:
    """Reports each ending signal that the process survives, once. Only one object per process can listen.

    Args:
        report: Called with the signal's name in lower case, on the polling thread.
        clock: Returns seconds.
    """

    def __init__(self, report: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._report, self._clock = report, clock
        numbers = {name: getattr(signal, name, None) for name in ending_signals()}
        self._names = {int(number): name for name, number in numbers.items() if number is not None}
        self._arrivals: dict[int, float] = {}
        self._reported: set[int] = set()
        self.first_ns: int | None = None
        """When the first signal came, in Unix time, to a fifth of a second; None if none did."""
        self._pipe: tuple[int, int] | None = None
        """To read, by the thread, which closes it; and to write."""

    def begin(self) -> None:
        """Start listening, unless this isn't the main thread, or something else listens, such as an event loop."""
        if threading.current_thread() is not threading.main_thread() or os.name != "posix":
            return
        self._pipe = os.pipe()
        os.set_blocking(self._pipe[1], False)
        other = signal.set_wakeup_fd(self._pipe[1], warn_on_full_buffer=False)
        if other != -1:
            signal.set_wakeup_fd(other)
            self._close()
            return
        _forks.listener = self
        _forks.register()
        threading.Thread(target=self._listen, args=self._pipe[:1], name="kinetoscope-signals", daemon=True).start()

    def end(self) -> None:
        """Stop listening."""
        if self._pipe is not None:
            with suppress(ValueError):  # not on the main thread: it stays installed, but isn't polled
                self._restore()
                os.close(self._pipe[1])  # which ends the thread
                self._pipe = None

    def end_in_child(self) -> None:
        """Stop listening in a forked process, which has no such thread."""
        if self._pipe is not None:
            self._restore()
            self._close()

    def _listen(self, reading: int) -> None:
        """Note when each signal came first; the target of the thread."""
        while numbers := os.read(reading, _READ_BYTES):
            self._add(numbers)
            time.sleep(_PAUSE_S)
        os.close(reading)

    def _add(self, numbers: bytes) -> None:
        for number in numbers:
            if number in self._names:
                self.first_ns = self.first_ns or time.time_ns()
                self._arrivals.setdefault(number, self._clock())

    def check(self) -> None:
        """Report signals that are pending for too long."""
        for number, since in list(self._arrivals.items()):
            if number not in self._reported and self._clock() - since >= PATIENCE_S:
                self._reported.add(number)
                self._report(self._names[number].lower())

    def _restore(self) -> None:
        current = signal.set_wakeup_fd(-1)
        if self._pipe is not None and current not in (-1, self._pipe[1]):
            signal.set_wakeup_fd(current)
        if _forks.listener is self:
            _forks.listener = None

    def _close(self) -> None:
        pipe, self._pipe = self._pipe, None
        for descriptor in pipe or ():
            os.close(descriptor)


class _Forks:
    """Keeps signals of forked processes, such as workers of a DataLoader, out of the training's file descriptor."""

    listener: StuckSignals | None = None
    _is_registered = False

    def register(self) -> None:
        """Be there at each fork from now on; Python can't take that back."""
        if not self._is_registered:
            self._is_registered = True
            os.register_at_fork(after_in_child=self._in_child)

    def _in_child(self) -> None:
        listener = self.listener
        if listener is not None:
            listener.end_in_child()


_forks = _Forks()
