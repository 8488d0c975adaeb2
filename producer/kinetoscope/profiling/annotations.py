"""The program's annotations: the markers, instants and counters of a Tracer.

A marker that the training's thread opens becomes a range of torch.profiler, among the operators that run in it. All
others, those of other threads, of coroutines, of warm-up steps and with arguments, are events outside the profiler:
among operators they might overlap partially, which no viewer can draw.
"""

from __future__ import annotations

import functools
import inspect
import logging
import os
import sys
import time
from collections import deque
from contextvars import ContextVar
from threading import get_ident
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from torch.profiler import ProfilerAction

from .. import process_id
from ..errors import UsageError
from ..events import COUNTER, INSTANT, MAX_OPEN, NATIVE, RANGE, Event, EventLog
from ..output.external_events import json_events
from .profiler_ranges import Ranges, itt_mark

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from types import FrameType

    from typing_extensions import Self

    from .profiler_ranges import Range

_LOG = logging.getLogger("kinetoscope")

T = TypeVar("T")
P = ParamSpec("P")

_MAX_EXTERNAL = 64
_ASYNCHRONOUS = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR

ACTIONS = (ProfilerAction.WARMUP, ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
"""The phases of the schedule in which a marker is recorded by default."""


class OpenMarker(NamedTuple):
    """An open marker."""

    event: Event
    range: Range | None


_new_open_marker = tuple.__new__
"""As `events.new_event`."""


class Annotations:
    """The markers, instants and counters of one Tracer. Nothing here raises into the training.

    Args:
        log: Stores the events.
        ranges: The ranges of the training's thread that torch.profiler records.
    """

    def __init__(self, log: EventLog, ranges: Ranges) -> None:
        self.log, self.ranges = log, ranges
        self.phase = ProfilerAction.NONE
        """The profiler's current phase."""
        self.units: dict[str, str] = {}
        """The unit of each counter that has one."""
        self.external_traces: deque[str | list[dict[str, Any]]] = deque(maxlen=_MAX_EXTERNAL)
        """Traces of other tools for the next saved window, paths or events; if there are too many, the last ones."""
        self.until_ns = 0
        """The end of the window that is about to be saved."""
        self._owner: tuple[int, int] | None = None
        self._has_warned = False

    def open(self, owner: tuple[int, int]) -> None:
        """Accept annotations from now on; `owner` is the process and the thread of the training."""
        self._owner = owner

    def close(self) -> None:
        """Accept no more annotations."""
        self._owner = None

    def enter(self, phase: ProfilerAction, *, begins: bool) -> None:
        """Set the profiler's phase.

        Args:
            phase: The phase from now on.
            begins: Whether a window begins with it. For the program's own events, warm-up steps belong to the window.
        """
        before, self.phase = self.phase, phase
        if before is not ProfilerAction.WARMUP and (begins or phase is ProfilerAction.WARMUP):
            self.log.begin_window(time.time_ns())
        if begins:
            self.ranges.step_times_ns.clear()

    def window(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return (metadata about a window's events, the events) of the window that ended."""
        until_ns = self.until_ns or time.time_ns()
        program_events = self.log.window_events(until_ns)
        self.log.begin_window(until_ns)  # the events' values, such as tensors on a device, aren't needed any more
        program_events["added"] = list(self.external_traces)
        self.external_traces.clear()
        details = {
            "markers": self.ranges.names.labels,
            "counters": {name: {"unit": unit} for name, unit in self.units.items()},
            "step_times_ns": [list(times) for times in self.ranges.step_times_ns],
            "dropped": program_events["dropped"],
        }
        return details, program_events

    @property
    def is_open(self) -> bool:
        """Whether annotations are accepted; never in forked processes."""
        return self._owner is not None and self._owner[0] == process_id.pid

    def begin(self, marker: Marker) -> OpenMarker | None:
        """Open a marker; None if it isn't recorded."""
        owner = self._owner
        if owner is None or owner[0] != process_id.pid:
            return None
        actions = marker.actions
        if actions is not None and self.phase not in actions:
            return None
        event = self.log.begin(marker.label, marker.categories, marker.args)
        if event is None:
            self._warn(f"Marker {marker.label!r} was left out: {MAX_OPEN} are open; some are never finished.")
            return None
        is_native = owner[1] == get_ident() and marker.args is None and not _in_coroutine()
        open_range = self.ranges.begin(marker.label, marker.categories) if is_native else None
        return _new_open_marker(OpenMarker, (event, open_range))

    def end(self, open_marker: OpenMarker | None) -> None:
        """Close a marker."""
        if open_marker is None:
            return
        event, open_range = open_marker
        kind = RANGE
        if open_range is not None:
            if self._owner is not None and self._owner != (process_id.pid, get_ident()):
                # Only the training's thread may end torch.profiler's range, so that happens later.
                self.ranges.abandon(open_range)
            else:
                self.ranges.end(open_range)
            kind = NATIVE if open_range.was_recorded else RANGE
        self.log.end(event, kind)

    def instant(self, name: str, categories: tuple[str, ...] = (), args: Mapping[str, Any] | None = None) -> None:
        """Record an instant."""
        if self.is_open:
            tid, now = self.log.tid(), time.time_ns()
            stored_args = dict(args) if args and self.phase in ACTIONS else None  # otherwise no window will contain it
            self.log.add(Event(INSTANT, name, categories, tid, now, None, stored_args))
            itt_mark(name)

    def counter(self, name: str, values: Mapping[str, Any], unit: str | None = None) -> None:
        """Record the current values of a counter."""
        if not self.is_open:
            return
        if unit is not None:
            self.units[name] = unit
        try:
            args = {str(series): _snapshot(value, may_wait=self.phase in ACTIONS) for series, value in values.items()}
        except (TypeError, ValueError, RuntimeError) as error:
            self._warn(f"Counter {name!r} was left out: {error}")
            return
        self.log.add(Event(COUNTER, name, (), self.log.tid(), time.time_ns(), None, args))

    def add_trace(self, trace: str | os.PathLike[str] | Iterable[Mapping[str, Any]]) -> None:
        """Add a trace of another tool to the next saved window."""
        if not self.is_open:
            return
        if isinstance(trace, str | os.PathLike):
            self.external_traces.append(os.path.abspath(trace))  # noqa: PTH100  nothing is looked up
            return
        try:
            self.external_traces.append(json_events(trace))
        except (TypeError, ValueError) as error:
            self._warn(f"A trace wasn't added: {error}")

    def _warn(self, problem: str) -> None:
        _LOG.log(logging.DEBUG if self._has_warned else logging.WARNING, "%s", problem)
        self._has_warned = True


def _in_coroutine() -> bool:
    """Whether a coroutine is among the callers: while it waits, others run in between.

    A running event loop alone isn't enough: it may surround a whole program, as with Playwright.
    """
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or asyncio._get_running_loop() is None:
        return False
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not frame.f_code.co_flags & _ASYNCHRONOUS:
        frame = frame.f_back
    return frame is not None


def _snapshot(value: Any, *, may_wait: bool) -> Any:
    """Return a counter's value: a tensor on a device is copied there and read when the window is saved.

    Args:
        value: A number, or a tensor with one element.
        may_wait: Whether a window with it may be saved; otherwise a tensor on a device is unknown.

    Raises:
        ValueError: A tensor of several elements.
    """
    if isinstance(value, int | float) or value is None:
        return value
    if not hasattr(value, "detach"):
        return float(value)
    if value.numel() != 1:
        raise ValueError(f"a tensor of {value.numel()} elements isn't a number")
    value = value.detach()
    if value.device.type == "cpu":
        return value.item()
    return value.clone() if may_wait and not _is_capturing(value) else None


def _is_capturing(value: Any) -> bool:
    """Whether a CUDA graph is being captured, of which a copy would become part."""
    torch = sys.modules["torch"]
    return bool(value.is_cuda and torch.cuda.is_current_stream_capturing())


_Link = tuple["Marker", "OpenMarker | None", Any]
_open: ContextVar[_Link | None] = ContextVar("kinetoscope_open", default=None)
"""The stack of open markers of this thread or task, as a linked list: (marker, open marker, the rest)."""


class Marker:
    """A named range of time, instant, or counter.

        with tracer.marker("forward"):
            ...

        @tracer.marker("evaluate", categories=("validation",))
        def evaluate(): ...

    The same marker may be open several times: nested, and in several threads and tasks.

    Args:
        annotations: Where it is recorded.
        label: Its name.
        categories: The groups that it belongs to.
        actions: The phases of the schedule in which a range that begins is recorded; by default all but NONE.
        args: More facts about each range, which then gets a separate track.
    """

    def __init__(
        self,
        annotations: Annotations,
        label: str,
        *,
        categories: Collection[str] = (),
        actions: Collection[ProfilerAction] | None = None,
        args: Mapping[str, Any] | None = None,
    ) -> None:
        self._annotations = annotations
        self.label = str(label)
        self.categories = (categories,) if isinstance(categories, str) else tuple(str(c) for c in categories)
        self.actions = None if actions is None else frozenset(actions)
        self.args = dict(args) if args else None

    def start(self) -> None:
        """Begin a range."""
        _open.set((self, self._annotations.begin(self), _open.get()))

    def finish(self) -> None:
        """End the range that began last in this thread or task."""
        link = _open.get()
        if link is not None and link[0] is self:  # as in most cases
            _open.set(link[2])
            self._annotations.end(link[1])
            return
        inner: list[_Link] = []
        while link is not None and link[0] is not self:
            inner.append(link)
            link = link[2]
        if link is None:
            return
        rest = link[2]
        for other in reversed(inner):
            rest = (other[0], other[1], rest)
        _open.set(rest)
        self._annotations.end(link[1])

    def instant(self, **args: Any) -> None:
        """Record it as an instant."""
        self._annotations.instant(self.label, self.categories, args)

    def counter(self, values: Mapping[str, Any], unit: str | None = None) -> None:
        """Record its current values."""
        self._annotations.counter(self.label, values, unit)

    def __enter__(self) -> Self:
        _open.set((self, self._annotations.begin(self), _open.get()))  # what `start` does
        return self

    def __exit__(self, _type: object, _value: object, _traceback: object) -> None:
        self.finish()

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:
        """Return a wrapper of the function that records each call as a range.

        Raises:
            UsageError: It is a generator, whose caller runs in between.
        """
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise UsageError(f"marker({self.label!r}) can't decorate a generator; use `with` inside it.")
        if inspect.iscoroutinefunction(function):
            return self._around_coroutine(function)  # type: ignore[no-any-return]

        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
            open_marker = self._annotations.begin(self)
            try:
                return function(*args, **kwargs)
            finally:
                self._annotations.end(open_marker)

        return wrapper

    def _around_coroutine(self, function: Any) -> Any:
        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            open_marker = self._annotations.begin(self)
            try:
                return await function(*args, **kwargs)
            finally:
                self._annotations.end(open_marker)

        return wrapper
