"""Markers: ranges, moments and values that a program names."""

from __future__ import annotations

import functools
import threading
import time
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from typing_extensions import Self

    from .actions import ProfilerAction
    from .profiler import Profiler

P = ParamSpec("P")
T = TypeVar("T")


class Marker:
    """Something that the program names; `Profiler.marker` makes it.

    What begins while the profiler records is recorded when it ends, whatever the profiler does then; what begins while
    it doesn't isn't, so that no end is without its beginning. A range may be open several times, within itself and on
    several threads.
    """

    def __init__(
        self,
        profiler: Profiler,
        name: str,
        actions: Collection[ProfilerAction],
        *,
        record_instant_on_start: bool,
        record_instant_on_finish: bool,
        categories: Sequence[str],
    ) -> None:
        self._profiler = profiler
        self.name, self.actions, self.categories = name, frozenset(actions), tuple(categories)
        self.record_instant_on_start, self.record_instant_on_finish = record_instant_on_start, record_instant_on_finish
        self._local = threading.local()

    # Ranges

    def start(self) -> None:
        """Begin a range.

        Raises:
            RuntimeError: It has begun on this thread and not ended.
        """
        if getattr(self._local, "started", None) is not None:
            raise RuntimeError(f"Marker {self.name!r} was started twice; finish() it first.")
        self._local.started = [self._begin()]

    def finish(self) -> None:
        """End the range that `start` began.

        Raises:
            RuntimeError: None has begun on this thread.
        """
        started = getattr(self._local, "started", None)
        if started is None:
            raise RuntimeError(f"Marker {self.name!r} was finished before it was started; start() it first.")
        self._local.started = None
        self._end(started[0])

    def _begin(self) -> Any:
        """Begin a range; what `_end` wants to know of it, None if it isn't recorded."""
        if not self._is_recorded():
            return None
        native = self._profiler.begin_native(self.name, self.categories)
        self._duration(is_start=True)
        if self.record_instant_on_start:
            self.instant()
        return (native,)

    def _end(self, begun: Any) -> None:
        if begun is None:
            return
        if self.record_instant_on_finish:
            self._instant()
        self._duration(is_start=False)
        self._profiler.end_native(begun[0])

    def _is_recorded(self) -> bool:
        return self._profiler.action in self.actions

    def _duration(self, *, is_start: bool) -> None:
        now, timestamp = time.time_ns(), self._profiler.state.timestamp
        for handler in self._profiler.trace_handlers:
            handler.process_duration_event(self.name, self.categories, is_start, timestamp, now)

    def __enter__(self) -> Self:
        if not hasattr(self._local, "entered"):
            self._local.entered = []
        self._local.entered.append(self._begin())
        return self

    def __exit__(self, *_: object) -> None:
        self._end(self._local.entered.pop())

    @overload
    def __call__(self, func: Callable[P, T]) -> Callable[P, T]: ...

    @overload
    def __call__(self, func: None = None) -> Marker: ...

    def __call__(self, func: Callable[P, T] | None = None) -> Callable[P, T] | Marker:
        """Return the function, each call of which is a range; it returns what the function does."""
        if func is None:
            return self

        @functools.wraps(func)
        def marked(*args: P.args, **kwargs: P.kwargs) -> T:
            begun = self._begin()
            try:
                return func(*args, **kwargs)
            finally:
                self._end(begun)

        return marked

    # Moments and values

    def instant(self) -> None:
        """Say that it happens now."""
        if self._is_recorded():
            self._instant()

    def _instant(self) -> None:
        now, timestamp = time.time_ns(), self._profiler.state.timestamp
        self._profiler.note_instant(self.name, self.categories)
        for handler in self._profiler.trace_handlers:
            handler.process_instant_event(self.name, self.categories, timestamp, now)

    def counter(self, values: Mapping[str, float], *, unit: str | None = None) -> None:
        """Say what some values are now.

        Args:
            values: Numbers by name.
            unit: What they are in, for viewers of torch's trace.
        """
        if not self._is_recorded():
            return
        now, timestamp = time.time_ns(), self._profiler.state.timestamp
        self._profiler.note_counter(self.name, values, unit)
        for handler in self._profiler.trace_handlers:
            handler.process_counter_event(self.name, self.categories, timestamp, now, dict(values))
