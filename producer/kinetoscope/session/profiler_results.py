"""torch.profiler's own results of the last window, while it is in memory."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.autograd.profiler_util import EventList

from ..errors import UsageError
from ..profiling.memory_picture import write_memory_picture

if TYPE_CHECKING:
    from torch.profiler import profile

    from ..profiling.options import Options
    from .owner import Owner
    from .window_controller import WindowController

_LOG = logging.getLogger("kinetoscope")


class ProfilerResults:
    """The results of one Tracer's last window.

    Args:
        controller: Has torch's profiler.
        options: What is recorded.
        owner: The process and thread that may call this.
        is_enabled: Whether the Tracer records at all; otherwise there are no results.
    """

    def __init__(self, controller: WindowController, options: Options, owner: Owner, *, is_enabled: bool) -> None:
        self._controller, self._options, self._owner, self._is_enabled = controller, options, owner, is_enabled

    def key_averages(self, *args: Any, **kwargs: Any) -> Any:
        """Return the operators by name, none if there is no window.

        Raises:
            UsageError: The window isn't in memory.
        """
        last = self._last_profile("key_averages")
        return _no_events() if last is None else last.key_averages(*args, **kwargs)

    def events(self) -> Any:
        """Return the events, none if there is no window.

        Raises:
            UsageError: The window isn't in memory.
        """
        last = self._last_profile("events")
        return _no_events() if last is None else last.events()  # type: ignore[no-untyped-call]

    def export_stacks(self, path: str | os.PathLike[str], metric: str) -> None:
        """Write the call stacks as lines for flame graphs.

        Raises:
            UsageError: The window isn't in memory, or has no call stacks.
        """
        self._check_options("export_stacks", "with_stack")
        last = self._last_profile("export_stacks")
        if last is not None:
            last.export_stacks(os.fspath(path), metric)

    def export_memory_timeline(self, path: str | os.PathLike[str], device: str | None) -> None:
        """Write the memory timeline.

        Raises:
            UsageError: The window isn't in memory, or lacks an option that is needed.
        """
        self._check_options("export_memory_timeline", "profile_memory", "record_shapes", "with_stack")
        last = self._last_profile("export_memory_timeline")
        if last is None:
            return
        if os.fspath(path).endswith(".html"):  # for which torch needs matplotlib
            write_memory_picture(last, Path(path), device)
        else:
            last.export_memory_timeline(os.fspath(path), device)

    def _check_options(self, what: str, *names: str) -> None:
        missing = [name for name in names if not getattr(self._options, name)]
        if missing:
            raise UsageError(f"{what}() needs a Tracer with {', '.join(f'{name}=True' for name in missing)}.")

    def _last_profile(self, what: str) -> profile | None:
        """Return torch's profiler with the last window; None, with a log message, if there is no window."""
        if not self._is_enabled:
            return None
        if not self._controller.has_ended:
            self._owner.check(f"call {what}()")
        if self._options.features.trace_only:
            raise UsageError(f"{what}() needs a Tracer without trace_only=True: torch builds no events with it.")
        recorder = self._controller.last_recorder
        if recorder is None or (recorder.last_profile is None and not recorder.keeps_events):
            raise UsageError(f"{what}() needs a Tracer with keep_events=True: the last window isn't in memory.")
        if recorder.last_profile is None:
            _LOG.warning("%s() finds no window: none is complete, or the next one has begun.", what)
        return recorder.last_profile


def _no_events() -> Any:
    return EventList([])  # type: ignore[no-untyped-call]
