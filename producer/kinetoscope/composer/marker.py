"""Markers: ranges, instants and values that a program names."""

from __future__ import annotations

import functools
import threading
import time
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from .actions import ProfilerAction
from .timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from typing_extensions import Self

    from .state import State
    from .torch_profiler import TorchProfiler
    from .trace_handler import TraceHandler

P = ParamSpec("P")
T = TypeVar("T")


class MarkerWriter:
    """Passes markers on to the trace handlers, and to torch's trace if there is one.

    Args:
        torch_profiler: Records torch's trace; None if nothing does.
    """

    def __init__(self, torch_profiler: TorchProfiler | None) -> None:
        self._torch_profiler = torch_profiler
        self.trace_handlers: Sequence[TraceHandler] = ()
        self.action = ProfilerAction.SKIP
        """The action of the current batch, or of the next one."""
        self.state: State | None = None
        """The state of the training."""

    def _timestamp(self) -> Timestamp:
        return Timestamp() if self.state is None else self.state.timestamp

    def begin(self, name: str, categories: Sequence[str]) -> Any:
        """Begin a range; return the value to pass to `end`."""
        token = None if self._torch_profiler is None else self._torch_profiler.begin_marker(name, categories)
        self._duration(name, categories, is_start=True)
        return token

    def end(self, name: str, categories: Sequence[str], token: Any) -> None:
        """End a range."""
        self._duration(name, categories, is_start=False)
        if self._torch_profiler is not None and token is not None:
            self._torch_profiler.end_marker(token)

    def _duration(self, name: str, categories: Sequence[str], *, is_start: bool) -> None:
        now, timestamp = time.time_ns(), self._timestamp()
        for handler in self.trace_handlers:
            handler.process_duration_event(name, categories, is_start, timestamp, now)

    def instant(self, name: str, categories: Sequence[str]) -> None:
        """Record an instant."""
        now, timestamp = time.time_ns(), self._timestamp()
        if self._torch_profiler is not None and self._torch_profiler.tracer is not None:
            self._torch_profiler.tracer.instant(name, categories=categories)
        for handler in self.trace_handlers:
            handler.process_instant_event(name, categories, timestamp, now)

    def counter(self, name: str, categories: Sequence[str], values: Mapping[str, float], unit: str | None) -> None:
        """Record the current values."""
        now, timestamp = time.time_ns(), self._timestamp()
        if self._torch_profiler is not None and self._torch_profiler.tracer is not None:
            self._torch_profiler.tracer.counter(name, values, unit=unit)
        for handler in self.trace_handlers:
            handler.process_counter_event(name, categories, timestamp, now, dict(values))


class Marker:
    """A named range, instant or counter; `Profiler.marker` makes it.

    A range is recorded if the profiler records when it begins, no matter what it does when the range ends, so that
    each end has its begin. A range may be open several times, nested and on several threads.
    """

    def __init__(
        self,
        writer: MarkerWriter,
        name: str,
        actions: Collection[ProfilerAction],
        *,
        record_instant_on_start: bool,
        record_instant_on_finish: bool,
        categories: Sequence[str],
    ) -> None:
        self._writer = writer
        self.name, self.actions, self.categories = name, frozenset(actions), tuple(categories)
        self.record_instant_on_start, self.record_instant_on_finish = record_instant_on_start, record_instant_on_finish
        self._local = threading.local()

    # Ranges

    def start(self) -> None:
        """Begin a range.

        Raises:
            RuntimeError: It is already open on this thread.
        """
        if getattr(self._local, "started", None) is not None:
            raise RuntimeError(f"Marker {self.name!r} was started twice; finish() it first.")
        self._local.started = [self._begin()]

    def finish(self) -> None:
        """End the range that `start` began.

        Raises:
            RuntimeError: It isn't open on this thread.
        """
        open_markers = getattr(self._local, "started", None)
        if open_markers is None:
            raise RuntimeError(f"Marker {self.name!r} was finished before it was started; start() it first.")
        self._local.started = None
        self._end(open_markers[0])

    def _begin(self) -> Any:
        """Begin a range; return the value that `_end` needs, None if the range isn't recorded."""
        if not self._is_recorded():
            return None
        token = self._writer.begin(self.name, self.categories)
        if self.record_instant_on_start:
            self.instant()
        return (token,)

    def _end(self, open_marker: Any) -> None:
        if open_marker is None:
            return
        if self.record_instant_on_finish:
            self._writer.instant(self.name, self.categories)
        self._writer.end(self.name, self.categories, open_marker[0])

    def _is_recorded(self) -> bool:
        return self._writer.action in self.actions

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
        """Return a wrapper of the function that records each call as a range."""
        if func is None:
            return self

        @functools.wraps(func)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
            open_marker = self._begin()
            try:
                return func(*args, **kwargs)
            finally:
                self._end(open_marker)

        return wrapper

    # Instants and values

    def instant(self) -> None:
        """Record it as an instant."""
        if self._is_recorded():
            self._writer.instant(self.name, self.categories)

    def counter(self, values: Mapping[str, float], *, unit: str | None = None) -> None:
        """Record the current values.

        Args:
            values: Numbers by name.
            unit: Their unit, for viewers of torch's trace.
        """
        if self._is_recorded():
            self._writer.counter(self.name, self.categories, values, unit)
