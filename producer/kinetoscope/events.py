"""The program's own events: markers, instants and counters, in memory until a window is saved.

Events are tuples with Unix times in nanoseconds, the clock of kineto's files: their `ts` in microseconds plus
`baseTimeNanoseconds`. They are stored in bounded ring buffers, one per thread, and encoded by the process that finishes
the file; this module imports nothing but the standard library.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

RANGE = "range"
"""A range that torch.profiler doesn't record."""
NATIVE = "native"
"""A range that torch.profiler records too: it goes into the journal, but not into the trace a second time."""
INSTANT = "instant"
COUNTER = "counter"

MAX_PER_THREAD = 1 << 16
MAX_OPEN = 1 << 12
_MAX_RINGS = 256


class Event(NamedTuple):
    """One event.

    Args:
        kind: `RANGE`, `NATIVE`, `INSTANT` or `COUNTER`.
        name: The program's name for it.
        categories: The categories of a marker.
        tid: The native id of its thread, which kineto writes too.
        start_ns: Unix time.
        dur_ns: The duration of a range; None for all others.
        args: The value of each series of a counter, None if unknown; for other kinds, the program's arguments.
    """

    kind: str
    name: str
    categories: tuple[str, ...]
    tid: int
    start_ns: int
    dur_ns: int | None = None
    args: dict[str, Any] | None = None

    @property
    def end_ns(self) -> int:
        """When it ends."""
        return self.start_ns + (self.dur_ns or 0)


new_event = tuple.__new__
"""Makes an `Event` of all its values in a third of its own constructor's time: `new_event(Event, (kind, …))`."""


class _Ring:
    """The latest events of one thread."""

    def __init__(self, size: int) -> None:
        self.thread = threading.current_thread()
        self.tid = threading.get_native_id()
        self.events: deque[Event] = deque(maxlen=size)
        self.lost = 0


class _Local(threading.local):
    """Each thread's ring."""

    ring: _Ring | None = None


class EventLog:
    """The events of a process. Any thread may add events; none waits for another.

    Args:
        size: How many events of each thread are retained.
    """

    def __init__(self, size: int = MAX_PER_THREAD) -> None:
        self._size = size
        self._local = _Local()
        self._rings: list[_Ring] = []
        self._open: dict[int, Event] = {}
        self._since_ns = 0
        self.listener: Callable[[Event], None] | None = None
        """Called with each event on the thread that adds it; of its args, only with a counter's numbers."""

    def tid(self) -> int:
        """Return this thread's native id, without a system call after the first time."""
        return (self._local.ring or self._new_ring()).tid

    def begin(self, name: str, categories: tuple[str, ...], args: dict[str, Any] | None) -> Event | None:
        """Open a range of this thread: until it is ended, `window_events` returns it with its duration so far.

        Returns None if so many are open that they are evidently never ended.
        """
        if len(self._open) >= MAX_OPEN:
            return None
        tid = (self._local.ring or self._new_ring()).tid
        event = new_event(Event, (RANGE, name, categories, tid, time.time_ns(), 0, args))
        self._open[id(event)] = event
        return event

    def end(self, event: Event, kind: str) -> None:
        """Add the range that `begin` registered, which ends now."""
        self._open.pop(id(event), None)
        _kind, name, categories, tid, start_ns, _dur_ns, args = event
        dur_ns = time.time_ns() - start_ns
        self.add(new_event(Event, (kind, name, categories, tid, start_ns, dur_ns if dur_ns > 0 else 0, args)))

    def add(self, event: Event) -> None:
        """Add an event; if there are too many, the thread's oldest one is dropped."""
        ring = self._local.ring or self._new_ring()
        events = ring.events
        if len(events) == self._size and events[0].end_ns >= self._since_ns:
            ring.lost += 1
        events.append(event)
        if self.listener is not None:
            self.listener(event if event.args is None else _without_objects(event))

    def begin_window(self, since_ns: int) -> None:
        """Drop events that ended before `since_ns`."""
        self._since_ns = since_ns
        for ring in list(self._rings):
            ring.lost = 0
            while ring.events and ring.events[0].end_ns < since_ns:
                ring.events.popleft()

    def open_names(self) -> list[str]:
        """Return the names of all open ranges, in the order of their start."""
        return [event.name for event in self.open_ranges()]

    def open_ranges(self) -> list[Event]:
        """Return all open ranges, in the order of their start."""
        return list(self._open.values())

    def window_events(self, until_ns: int) -> dict[str, Any]:
        """Return the window's events as JSON values for `chrome_events`, and how many were dropped.

        A range that is still open has its duration so far. A counter's tensor is read only now.
        """
        since_ns, events = self._since_ns, []
        for ring in list(self._rings):
            events += _copy_ring(ring.events)
        events += [
            event._replace(dur_ns=until_ns - event.start_ns, args={**(event.args or {}), "finished": False})
            for event in list(self._open.values())
        ]
        inside = [event for event in events if event.end_ns >= since_ns and event.start_ns <= until_ns]
        return {
            "pid": os.getpid(),
            "since_ns": since_ns,
            "until_ns": until_ns,
            "threads": {str(ring.tid): ring.thread.name for ring in list(self._rings)},
            "events": [_to_json(event) for event in sorted(inside, key=lambda event: event.start_ns)],
            "dropped": sum(ring.lost for ring in list(self._rings)),
        }

    def _new_ring(self) -> _Ring:
        ring = self._local.ring = _Ring(self._size)
        if len(self._rings) >= _MAX_RINGS:  # threads that have ended; running ones keep theirs
            self._rings = [r for r in self._rings if r.thread.is_alive()][-_MAX_RINGS + 1 :]
        self._rings.append(ring)
        return ring


def _without_objects(event: Event) -> Event:
    """Return an event without the program's objects. A tensor on a device isn't read for this, to avoid waiting."""
    if event.kind != COUNTER or event.args is None:
        return event._replace(args=None)
    return event._replace(args={k: v if isinstance(v, int | float) else None for k, v in event.args.items()})


def _copy_ring(events: deque[Event]) -> list[Event]:
    """Return the events of a ring that another thread may be adding to."""
    while True:
        try:
            return list(events)
        except RuntimeError:  # changed during iteration; its thread adds only a few events in this time
            continue


def _to_json(event: Event) -> list[Any]:
    """Return the event as JSON values: non-finite numbers become None, objects their strings."""
    args = event.args
    if args is not None:
        read = _number if event.kind == COUNTER else _value
        args = {str(key): read(value) for key, value in args.items()}
    return [*event[:6], args]


def _number(value: Any) -> float | None:
    """Return a counter's value; None for an invalid one: infinite, or a tensor of several elements."""
    try:
        number = value if isinstance(value, int) else float(value)
        return number if math.isfinite(number) else None
    except (TypeError, ValueError, RuntimeError, OverflowError):  # the last one: an int too large for a float
        return None


def _value(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    try:
        return str(value)
    except Exception as error:  # noqa: BLE001  an object of the program whose str() fails
        return f"({type(value).__name__}: {type(error).__name__})"


# Chrome's JSON

_FIRST_LANE = 1 << 30
"""Beyond Linux's thread ids (at most 2^22): tracks for ranges that torch.profiler doesn't record."""


def chrome_events(program_events: Mapping[str, Any], base_ns: int) -> Iterator[str]:
    """Return the events of `window_events` as Chrome JSON, one object per string.

    Ranges get separate tracks next to their thread's, as many as they need to never overlap partially, which they might
    on one track with the profiler's operators. Instants and counters are on the thread itself. A range that extends
    beyond the window is clipped and has its whole start and duration in its args.

    Args:
        program_events: From `window_events`, possibly after a round trip through JSON.
        base_ns: The file's `baseTimeNanoseconds`.
    """
    events = [Event(*row) for row in program_events.get("events", ())]
    if not events:
        return
    pid, threads = program_events["pid"], program_events["threads"]
    lanes: dict[tuple[int, int], int] = {}
    for tid in sorted({event.tid for event in events if event.kind == INSTANT}):
        yield from _thread(pid, tid, threads.get(str(tid), f"thread {tid}"), tid)
    cut = [
        _clip(event, program_events["since_ns"], program_events["until_ns"]) for event in events if event.kind == RANGE
    ]
    for event, lane in _assign_lanes(cut):
        track = lanes.setdefault((event.tid, lane), _FIRST_LANE + len(lanes))
        yield _json({"ph": "X", "cat": "user_annotation"}, event, pid, track, base_ns)
    for (tid, lane), track in lanes.items():
        name = threads.get(str(tid), f"thread {tid}")
        yield from _thread(pid, track, f"{name} markers" + (f" {lane + 1}" if lane else ""), tid)
    for event in events:
        inside = program_events["since_ns"] <= event.start_ns <= program_events["until_ns"]
        if event.kind == INSTANT and inside:
            yield _json({"ph": "i", "s": "t", "cat": "user_instant"}, event, pid, event.tid, base_ns)
        elif event.kind == COUNTER and inside:
            yield _json({"ph": "C"}, event, pid, event.tid, base_ns)


def display_name(label: str) -> str:
    """Return a marker's name in a trace: the program's name, but never a step's name or an empty one."""
    text = label.encode("utf-8", "replace").decode()  # a lone surrogate isn't valid text
    if not text.strip():
        return "marker"
    # A marker of that name would count as a step of the training.
    return f"marker {text}" if text.lstrip().startswith("ProfilerStep") else text


def _clip(event: Event, since_ns: int, until_ns: int) -> Event:
    start = max(event.start_ns, since_ns)
    end = max(start, min(event.end_ns, until_ns))
    if (start, end) == (event.start_ns, event.end_ns):
        return event
    args = {**(event.args or {}), "whole_start_ns": event.start_ns, "whole_dur_ns": event.dur_ns}
    return event._replace(start_ns=start, dur_ns=end - start, args=args)


def _assign_lanes(ranges: list[Event]) -> Iterator[tuple[Event, int]]:
    """Yield each range with the first lane of its thread in which it overlaps no other range partially."""
    open_ends: dict[int, list[list[int]]] = {}
    for event in sorted(ranges, key=lambda event: (event.start_ns, -event.end_ns)):
        lanes = open_ends.setdefault(event.tid, [])
        for lane, ends in enumerate(lanes):
            while ends and ends[-1] <= event.start_ns:
                ends.pop()
            if not ends or event.end_ns <= ends[-1]:
                ends.append(event.end_ns)
                yield event, lane
                break
        else:
            lanes.append([event.end_ns])
            yield event, len(lanes) - 1


def _json(head: dict[str, Any], event: Event, pid: int, tid: int, base_ns: int) -> str:
    values: dict[str, Any] = {**head, "name": display_name(event.name), "pid": pid, "tid": tid}
    args = dict(event.args or {})
    if event.categories:
        args["categories"] = ",".join(event.categories)
    if args:
        values["args"] = args
    text = json.dumps(values, allow_nan=False)[:-1] + f', "ts": {microseconds(event.start_ns - base_ns)}'
    return text + ("}" if event.dur_ns is None else f', "dur": {microseconds(event.dur_ns)}}}')


def microseconds(ns: int) -> str:
    """Format nanoseconds as a JSON number of microseconds, exactly: a float would lose the last digits."""
    whole, rest = divmod(abs(ns), 1000)
    return f"{'-' if ns < 0 else ''}{whole}.{rest:03d}"


def _thread(pid: int, tid: int, name: str, sort_index: int) -> Iterator[str]:
    head = {"ph": "M", "pid": pid, "tid": tid, "ts": 0}
    yield json.dumps({**head, "name": "thread_name", "args": {"name": name}})
    yield json.dumps({**head, "name": "thread_sort_index", "args": {"sort_index": sort_index}})
