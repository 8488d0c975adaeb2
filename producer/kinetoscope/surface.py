"""What a Tracer offers beside steps: markers, instants, counters, metadata, and torch.profiler's own results."""

from __future__ import annotations

import json
import logging
import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from torch.autograd.profiler_util import EventList

from .annotations import Annotations, Marker
from .errors import SaveError, UsageError
from .requests import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from torch.profiler import ProfilerAction, profile

    from .attendant import Attendant
    from .last_window import LastWindow
    from .recorder import Options, Recorder

_LOG = logging.getLogger("kinetoscope")

T = TypeVar("T")

_TAKEN = frozenset(
    ("kinetoscope", "traceEvents", "schemaVersion", "baseTimeNanoseconds", "deviceProperties", "distributedInfo")
)
"""Keys of a trace that aren't the program's to set."""


class Surface:
    """The part of a Tracer that doesn't change what is recorded when."""

    _annotations: Annotations
    _attendant: Attendant
    _options: Options
    _recorder: Recorder | None
    _last_recorder: Recorder | None
    _preset: dict[str, Any]
    _metadata: dict[str, Any]
    _last_window: LastWindow
    _trace_id_callback: Callable[[], str] | None
    _last_trace_id: str | None
    _enabled: bool

    def _check_place(self, what: str) -> None:
        raise NotImplementedError

    # Annotations

    def marker(
        self,
        label: str,
        *,
        categories: Collection[str] = (),
        actions: Collection[ProfilerAction] | None = None,
        args: Mapping[str, Any] | None = None,
    ) -> Marker:
        """Return a range to use in a `with` or as a decorator, again and again, also within itself and on any thread.

        Args:
            label: What it is called; any text.
            categories: Which groups it belongs to.
            actions: In which of the schedule's phases what begins is recorded; by default in warm-up and recording.
            args: What else is known of each range: it is recorded on a track of its own then.
        """
        return Marker(self._annotations, label, categories=categories, actions=actions, args=args)

    def instant(self, name: str, *, categories: Collection[str] = (), **args: Any) -> None:
        """Say that something happens now: a checkpoint, a restart, a change of the learning rate."""
        self._annotations.instant(name, tuple(categories), args)

    def counter(
        self, name: str, values: Mapping[str, Any] | None = None, /, *, unit: str | None = None, **more: Any
    ) -> None:
        """Say what some values are now, each a series of the counter: numbers, or tensors with one element.

        A tensor on a device is read only when the window is saved: until then nobody waits for the device.

        Args:
            name: What the counter is called.
            values: The value of each series.
            unit: What they are in, such as `bytes`, `bytes/s`, `fraction`, or any other word.
            more: Further values.
        """
        self._annotations.counter(name, {**(values or {}), **more}, unit)

    def add_trace(self, trace: str | os.PathLike[str] | Iterable[Mapping[str, Any]]) -> None:
        """Put what another tool recorded meanwhile into the window that is saved next, as processes of its own.

        Args:
            trace: A file in Chrome's format, plain or gzip, which must stay until the window is written; or events as
                that format has them, with `ts` in µs since 1970.
        """
        self._annotations.add_trace(trace)

    def request(self, steps: int = 3, *, warmup: int = 1, at: int | None = None, **options: bool) -> None:
        """Record the next steps, on all ranks, beside what the schedule records. Any thread may ask.

        While a window on request is planned or under way, it counts for this request too.

        Args:
            steps: How many.
            warmup: How many steps before them to profile and throw away.
            at: The first one; by default as soon as all ranks can know of it.
            options: What to record in them, where it differs from the Tracer's: `with_stack=True` and the like.

        Raises:
            UsageError: Numbers that make no sense, or a Tracer with `requests=False`.
        """
        self._attendant.request(Request(steps=steps, warmup=warmup, at=at, options=options, reason="request"))

    # Metadata

    def add_metadata(self, key: str, value: str) -> None:
        """Put a text into the file of the window that is saved next, as a key at its top.

        Raises:
            UsageError: The key is one of the trace's own.
        """
        self._metadata[_checked_key(key)] = str(value)

    def add_metadata_json(self, key: str, value: str) -> None:
        """Like `add_metadata`, for any value that JSON knows, as JSON.

        Raises:
            UsageError: The key is one of the trace's own, or the value isn't JSON.
        """
        self._metadata[_checked_key(key)] = _parsed(key, value)

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Like `add_metadata_json`, for all windows that are saved from now on.

        Raises:
            UsageError: The key is one of the trace's own, or the value isn't JSON.
        """
        self._preset[_checked_key(key)] = _parsed(key, value)

    # torch.profiler

    def set_custom_trace_id_callback(self, callback: Callable[[], str] | None) -> None:
        """Have a function name the windows that begin from now on; None gives a window the same id on all ranks."""
        self._trace_id_callback = checked_callback("callback", callback)

    def get_trace_id(self) -> str | None:
        """Return the id of the window that began last; None before the first."""
        return self._last_trace_id

    def export_chrome_trace(self, path: str | os.PathLike[str], use_python_export: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002  as in torch
        """Write the last window's trace as a file of your own too, compressed if its name ends in `.gz`.

        In `on_trace_ready` and `on_window` that is the window they are called for. Later the trace is copied that is
        saved anyway; if it is still being written, this waits. Where there is none, the log says why.

        Args:
            path: The file; one of that name is replaced.
            use_python_export: As in torch, and of no effect: the recorder writes the file.

        Raises:
            UsageError: On another thread, or before the Tracer's `with`.
        """
        if self._enabled:
            self._check_place("call export_chrome_trace()")
            try:
                self._last_window.export(Path(path))
            except (SaveError, OSError, ValueError) as error:
                _LOG.warning("export_chrome_trace() didn't write %s: %s.", path, str(error).rstrip("."))

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[Any]) -> None:  # noqa: FBT001  as in torch
        """Stop or go on collecting some activities within a window; see torch.profiler.profile.

        Raises:
            UsageError: On another thread, or outside the Tracer's `with`.
        """
        if not self._enabled:
            return
        self._check_place("toggle what is collected")
        recorder = self._recorder
        if recorder is not None and recorder.is_recording and recorder.profiler is not None:
            recorder.profiler.toggle_collection_dynamic(enable, activities)

    def key_averages(self, *args: Any, **kwargs: Any) -> Any:
        """The last window's operators by name, none where there is no window; see torch.profiler.profile.

        Raises:
            UsageError: It wasn't kept.
        """
        finished = self._finished("key_averages")
        return _no_events() if finished is None else finished.key_averages(*args, **kwargs)

    def events(self) -> Any:
        """The last window's events, none where there is no window; see torch.profiler.profile.

        Raises:
            UsageError: It wasn't kept.
        """
        finished = self._finished("events")
        return _no_events() if finished is None else finished.events()  # type: ignore[no-untyped-call]

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write the last window's call stacks as lines for flame graphs; see torch.profiler.profile.

        Raises:
            UsageError: It wasn't kept, or has no call stacks.
        """
        self._check_options("export_stacks", "with_stack")
        finished = self._finished("export_stacks")
        if finished is not None:
            finished.export_stacks(os.fspath(path), metric)

    def export_memory_timeline(self, path: str | os.PathLike[str], device: str | None = None) -> None:
        """Write what the last window's memory was used for; see torch.profiler.profile.

        Raises:
            UsageError: It wasn't kept, or has not all that is needed.
        """
        self._check_options("export_memory_timeline", "profile_memory", "record_shapes", "with_stack")
        text = os.fspath(path)
        if text.endswith(".html") and find_spec("matplotlib") is None:  # torch would write nothing and say nothing
            raise UsageError("export_memory_timeline needs matplotlib for HTML; write .json or .json.gz.")
        finished = self._finished("export_memory_timeline")
        if finished is not None:
            finished.export_memory_timeline(text, device)

    def _check_options(self, what: str, *names: str) -> None:
        missing = [name for name in names if not getattr(self._options, name)]
        if missing:
            raise UsageError(f"{what}() needs a Tracer with {', '.join(f'{name}=True' for name in missing)}.")

    def _finished(self, what: str) -> profile | None:
        """Return torch's profiler with the last window; None, with a word in the log, where a recording has none."""
        if not self._enabled:
            return None
        self._check_place(f"call {what}()")
        recorder = self._last_recorder
        if recorder is None or (recorder.finished is None and not recorder.keeps_events):
            raise UsageError(f"{what}() needs a Tracer with keep_events=True: the last window isn't in memory.")
        if recorder.finished is None:
            _LOG.warning("%s() finds no window: none is complete, or the next one has begun.", what)
        return recorder.finished


def checked_callback(name: str, callback: T) -> T:
    """Return a function of the program's, or None.

    Raises:
        UsageError: It is neither.
    """
    if callback is not None and not callable(callback):
        raise UsageError(f"{name}={callback!r} is no function.")
    return callback


def _no_events() -> Any:
    return EventList([])  # type: ignore[no-untyped-call]


def _checked_key(key: str) -> str:
    if key in _TAKEN:
        raise UsageError(f"{key!r} is a key of the trace's own; choose another one.")
    return str(key)


def _parsed(key: str, value: str) -> Any:
    try:
        return json.loads(value, parse_constant=lambda constant: _refused(key, constant))
    except (ValueError, TypeError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"The value of {key!r} is not JSON: {error}.") from error


def _refused(key: str, constant: str) -> Any:
    raise UsageError(f"The value of {key!r} is not JSON, which has no {constant}.")
