"""Profilers that the program starts itself during a recording.

torch has one session. A second profiler silently takes it over, and exporting the first one afterward is a segmentation
fault; so is starting one on another thread while a session is open or prepared (torch 2.13). So a recording has to
detect that another profiler is about to begin, and end before it does.
"""

from __future__ import annotations

import functools
import gc
import threading
import time
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from torch.autograd import profiler, profiler_legacy

from ..errors import ProfilerBusyError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

_STARTS, _STOP = ("_prepare_trace", "_start_trace"), "__exit__"
_OF_A_THREAD = (profiler.emit_itt, profiler.emit_nvtx, profiler_legacy.profile)
"""Profilers of a single thread: they refuse to start on a thread that is being recorded, but ignore other threads."""

PATIENCE_S = 10.0
"""How long a profiler on another thread waits for the end of the training's step, at which the recording ends."""


class _OwnBlock:
    """A reentrant block in which started profilers are our own; each recorded step has one.

    Args:
        condition: Is held inside the block.
    """

    def __init__(self, condition: threading.Condition) -> None:
        self._condition = condition
        self.depth = 0

    def __enter__(self) -> None:
        self._condition.acquire()
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1
        self._condition.notify_all()
        self._condition.release()


class OtherProfilers:
    """Prevents conflicts between the recording and the program's own profilers.

    One that starts on the thread that made this ends the recording at once. On another thread, which may not touch
    our profiler, it waits until a step ends. If this torch doesn't have the patched methods, nothing is detected.

    Args:
        on_start: Called before another profiler starts on this thread.
        is_open: Returns whether the recording has a session, or has prepared one.
    """

    def __init__(self, on_start: Callable[[], None], is_open: Callable[[], bool]) -> None:
        self._on_start, self._is_open = on_start, is_open
        self._thread = threading.get_ident()
        self._replaced: list[tuple[type, str, Any]] = []
        self._active: WeakSet[Any] = WeakSet()
        self._waiting = 0
        self._condition = threading.Condition()
        self._own_block = _OwnBlock(self._condition)

    @property
    def is_active(self) -> bool:
        """Whether another profiler has the session or waits for it, on any thread."""
        return bool(self._waiting or self._active)

    @property
    def is_waiting(self) -> bool:
        """Whether another profiler waits for the end of the step."""
        return self._waiting > 0

    def own_block(self) -> AbstractContextManager[None]:
        """Return a block in which profilers of this thread are our own, and none starts on other threads."""
        return self._own_block

    def begin(self) -> None:
        """Detect other profilers from now on; some may be running already."""
        if self._replaced:
            return
        for name in _STARTS:
            self._replace(profiler.profile, name, self._wrap_start)
        for watcher in _OF_A_THREAD:
            self._replace(watcher, "__enter__", self._wrap_thread_start)
        for kind in (profiler.profile, *_OF_A_THREAD):
            self._replace(kind, _STOP, self._wrap_stop)
        self._active.update(
            other for other in gc.get_objects() if type(other) is profiler.profile and _is_running(other)
        )

    def end(self) -> None:
        """Restore torch's methods."""
        for kind, name, method in reversed(self._replaced):
            setattr(kind, name, method)
        self._replaced = []

    def _replace(self, kind: type, name: str, wrap: Callable[[Callable[..., object]], object]) -> None:
        method = getattr(kind, name, None)
        if method is not None:
            self._replaced.append((kind, name, method))
            setattr(kind, name, wrap(method))

    def _wrap_thread_start(self, start: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(start)
        def wrapper(other: Any, *args: Any, **kwargs: Any) -> object:
            if threading.get_ident() == self._thread and getattr(other, "enabled", False):
                self._on_start()
                return self._start(start, other, *args, **kwargs)
            return start(other, *args, **kwargs)

        return wrapper

    def _start(self, start: Callable[..., object], other: Any, *args: Any, **kwargs: Any) -> object:
        self._active.add(other)
        try:
            return start(other, *args, **kwargs)
        except BaseException:  # so it isn't running
            self._active.discard(other)
            raise

    def _wrap_start(self, start: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(start)
        def wrapper(other: Any, *args: Any, **kwargs: Any) -> object:
            if threading.get_ident() != self._thread:
                with self._condition:
                    self._wait()
                    return self._start(start, other, *args, **kwargs)
            if self._own_block.depth:
                return start(other, *args, **kwargs)
            self._on_start()
            return self._start(start, other, *args, **kwargs)

        return wrapper

    def _wrap_stop(self, stop: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(stop)
        def wrapper(other: Any, *args: Any, **kwargs: Any) -> object:
            try:
                return stop(other, *args, **kwargs)
            finally:
                self._active.discard(other)

        return wrapper

    def _wait(self) -> None:
        """Wait until the recording has ended.

        Raises:
            ProfilerBusyError: It didn't end: the training's thread may itself be waiting for this one.
        """
        deadline = time.monotonic() + PATIENCE_S
        self._waiting += 1
        try:
            while self._is_open():
                if not self._condition.wait(max(0.0, deadline - time.monotonic())):
                    raise ProfilerBusyError(
                        "A Tracer is recording on another thread, and its step didn't end in time: two profilers at "
                        "once would crash the process."
                    )
        finally:
            self._waiting -= 1


def _is_running(other: Any) -> bool:
    """Whether a profiler is started and not stopped."""
    return bool(getattr(other, "entered", False)) and getattr(other, "kineto_results", None) is None
