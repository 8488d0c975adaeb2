"""Drives torch.profiler, avoiding the situations in which it crashes or loses a recording.

All of these were seen with torch 2.13: two overlapping profilers end in a segmentation fault; so does a recording that
isn't stopped before the interpreter exits, and an exception in the handler of a finished window if the next one follows
directly; a schedule that goes from RECORD to NONE discards the recording.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from types import FrameType
from typing import Any

import torch
from torch.optim import optimizer
from torch.profiler import ProfilerAction, profile
from torch.profiler.profiler import PROFILER_STEP_NAME

from ..errors import ProfilerBusyError
from .options import Options
from .other_profilers import OtherProfilers
from .teardown import flush_output, skip_destructors, skip_destructors_when_forked

_AUTOGRAD: Any = torch.autograd  # its module exports more than it declares

_IDLE = (ProfilerAction.NONE, ProfilerAction.WARMUP)
_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)

_left: list[Recorder] = []
"""Those whose thread didn't end them: Python must not delete their profilers."""


def is_profiler_active() -> bool:
    """Whether any profiler is recording on this thread; False if this torch can't tell."""
    is_enabled = getattr(torch.autograd, "_profiler_enabled", None)
    return is_enabled is not None and bool(is_enabled())


def is_empty(profiler: profile) -> bool:
    """Whether a profiler's window has no operator and no range but those of steps; False if torch can't tell.

    With `trace_only` it can't: its results have no events then, whatever the window has.
    """
    results = None if profiler.profiler is None else profiler.profiler.kineto_results
    if getattr(profiler.experimental_config, "trace_only", False):
        return False
    return results is not None and not any(map(_is_content, results.events()))


def _is_content(event: Any) -> bool:
    kind = event.activity_type() if hasattr(event, "activity_type") else "cpu_op"  # torch 2.6 has none
    return kind in ("cpu_op", "user_annotation") and not event.name().startswith(PROFILER_STEP_NAME)


def _end_prepared(profiler: profile) -> None:
    """End a session that is prepared but not started, as torch does when a profiler stops in its warm-up.

    With torch 2.9 and before, no profiler of the process could start any more.
    """
    session = profiler.profiler
    stats = getattr(session, "_stats", None)
    if session is None or not session.entered or session.kineto_results is not None or is_profiler_active():
        return
    if getattr(stats, "profiler_prepare_call_duration_us", 0) > 0:  # else it failed, and its start would crash
        _AUTOGRAD._enable_profiler(session.config(), session.kineto_activities)
        _AUTOGRAD._disable_profiler()
        session.entered = False


def is_inside_optimizer() -> bool:
    """Whether the caller is inside an optimizer's step, whose range would overlap that of a step that ends in it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        # torch.optim wraps every step() in a function that opens the range and calls the hooks.
        if frame.f_code.co_name == "wrapper" and frame.f_code.co_filename == optimizer.__file__:
            return True
        frame = frame.f_back
    return False


def _import_ahead() -> None:
    """Import the module that torch imports while it records.

    With call stacks, the code of a module that is imported inside a window is freed before its name is written: the
    name in the file is then arbitrary memory, mostly not UTF-8 (torch 2.13).
    """
    with suppress(ImportError):
        import_module("torch.profiler._cupti_monitor")


class Recorder:
    """One thread's profiler: moves from step to step with the given actions, and hands out finished windows.

    Args:
        options: What to record.
        on_window: Called with torch's profiler when a window has ended, and whether it ended as planned; exports it
            and must not raise.
        on_other_profiler: Called before a window ends because the program starts its own profiler, with whether any
            of the window is recorded.
        on_failure: Called with torch's exception if ending the window fails while the program starts its own profiler,
            which must not fail.
        trace_id: Returns the id of the window that is about to begin; must not raise.
        keeps_events: Whether the last window stays in memory until the next one begins, for `last_profile`.
        has_callbacks: Whether `on_window` shows the program torch's events.
    """

    def __init__(
        self,
        options: Options,
        on_window: Callable[[profile, bool], None],
        on_other_profiler: Callable[[bool], None],
        on_failure: Callable[[Exception], None],
        trace_id: Callable[[], str],
        *,
        keeps_events: bool = False,
        has_callbacks: bool = False,
    ) -> None:
        self._options = options
        self._on_window, self._on_other_profiler, self._on_failure = on_window, on_other_profiler, on_failure
        self._trace_id = trace_id
        self._others = OtherProfilers(self._yield, self._is_open)
        self._is_as_planned = False
        self.keeps_events = keeps_events or options.acc_events
        self._reads_events = self.keeps_events or has_callbacks
        self._is_dropped = self._drops_empty = False
        self.last_profile: profile | None = None
        """torch's profiler with the last window, during callbacks, and with `keeps_events` until the next one."""
        self._planned = ProfilerAction.NONE
        self._action = ProfilerAction.NONE
        self._is_blocked = False
        self._has_failed = False
        self._profiler: profile | None = None
        self._executor: ThreadPoolExecutor | None = None

    @property
    def is_recording(self) -> bool:
        """Whether current events will be in a trace."""
        return self._action in _RECORDING and not self._is_blocked

    @property
    def is_idle(self) -> bool:
        """Whether the profiler does nothing in this step: if it does nothing in the next one either, skip `move`."""
        return self._action is ProfilerAction.NONE and not self._is_blocked

    def _is_open(self) -> bool:
        """Whether our profiler has torch's session, or has prepared one."""
        return self._profiler is not None and self._action is not ProfilerAction.NONE and not self._is_blocked

    @property
    def _is_cut_short(self) -> bool:
        """Whether the program has set `current_action` of torch's profiler, so that the window ends with this step."""
        is_last = self._profiler is not None and self._profiler.current_action is ProfilerAction.RECORD_AND_SAVE
        return is_last and self._action is ProfilerAction.RECORD

    def start(self, action: ProfilerAction) -> None:
        """Begin the first step, with an action.

        Raises:
            ProfilerBusyError: Another profiler is recording; the window that would begin is left out.
        """
        self._others.begin()
        _import_ahead()
        self._start_executor()
        if action is not ProfilerAction.NONE and (is_profiler_active() or self._others.is_active):
            self._action = action
            self._block(ProfilerAction.WARMUP)
        self._renew(action)

    @property
    def profiler(self) -> profile | None:
        """Torch's profiler, which only its thread may touch."""
        return self._profiler

    def move(self, action: ProfilerAction, options: Options, *, closes: bool = False, drops: bool = False) -> bool:
        """Move to the next step, with an action; return whether a recording begins with it.

        An open recording keeps the options that it began with.

        Args:
            action: What to do in the step.
            options: What to record in it.
            closes: Whether an open recording is complete, even if the next step is recorded, too.
            drops: Whether the recording that is complete now is empty and discarded.

        Raises:
            ProfilerBusyError: Another profiler is recording; this window is left out.
        """
        if self._is_cut_short:
            self._action = ProfilerAction.RECORD_AND_SAVE
        if closes and self._action is ProfilerAction.RECORD:
            self._action = ProfilerAction.RECORD_AND_SAVE
            if self._profiler is not None and self._profiler.current_action is ProfilerAction.RECORD:
                self._profiler.current_action = ProfilerAction.RECORD_AND_SAVE
        previous, self._is_dropped = self._action, drops
        begins = previous is not ProfilerAction.RECORD and action in _RECORDING
        self._action = action
        if self._is_blocked and (previous is ProfilerAction.RECORD_AND_SAVE or action is ProfilerAction.NONE):
            self._is_blocked = False
            previous = ProfilerAction.NONE
        if self._is_blocked or self._profiler is None:
            return False
        with self._others.own_block():
            return self._turn(self._profiler, previous, action, options) and begins

    def _turn(self, profiler: profile, previous: ProfilerAction, action: ProfilerAction, options: Options) -> bool:
        """Move from one action to the next; return whether that was possible.

        Raises:
            ProfilerBusyError: Another profiler is recording; this window is left out.
        """
        if self._others.is_waiting and previous in (ProfilerAction.WARMUP, ProfilerAction.RECORD):
            self._action = previous
            self._yield()
            self._action = action
            return False
        is_busy = previous in _IDLE and is_profiler_active()
        if previous is not ProfilerAction.RECORD and action is not ProfilerAction.NONE:
            is_busy |= self._others.is_active
        if is_busy and previous in _IDLE and action is not ProfilerAction.NONE:
            self._block(previous)
        if previous is ProfilerAction.RECORD and action in _IDLE and profiler.current_action is previous:
            profiler.current_action = ProfilerAction.RECORD_AND_SAVE  # torch would discard the recording
        self._is_as_planned = self._has_failed = True
        try:
            is_open = previous in (ProfilerAction.WARMUP, ProfilerAction.RECORD)
            self._advance(profiler, ProfilerAction.NONE if is_busy else action, options, is_open=is_open)
            self._has_failed = False
        finally:
            self._is_as_planned = False
        if is_busy and action is not ProfilerAction.NONE:
            self._block(ProfilerAction.NONE)
        return True

    def _advance(self, profiler: profile, action: ProfilerAction, options: Options, *, is_open: bool) -> None:
        if action is not ProfilerAction.NONE:
            skip_destructors_when_forked()
        if is_open or action is ProfilerAction.NONE or options == self._options:
            self._planned = action
            if self.last_profile is not None and action is not ProfilerAction.NONE:
                self._forget()
            profiler.step()
            return
        self._planned = ProfilerAction.NONE  # a profiler's options last as long as it does
        profiler.step()
        self._profiler = None
        profiler.__exit__(None, None, None)
        self._forget()
        self._options = options
        self._renew(action)

    def stop(self, *, drops: bool = False, drops_empty: bool = False) -> None:
        """End the recording; a window that is open ends here.

        Args:
            drops: Whether to discard it.
            drops_empty: Whether to discard it if nothing ran in it.
        """
        self._others.end()
        profiler, self._profiler, self._action = self._profiler, None, ProfilerAction.NONE
        self._planned, self._is_dropped, self._drops_empty = ProfilerAction.NONE, drops, drops_empty
        try:
            if profiler is not None:
                self._exit(profiler)
        finally:
            if self._executor is not None:
                self._executor.shutdown()  # no thread may be in C++ code when the interpreter ends

    def leave(self) -> None:
        """End without torch's profiler, which only its thread may touch: an open window is lost.

        The profiler remains until the process ends.
        """
        self._others.end()
        if not self.is_idle:
            _left.append(self)
            sys.setprofile(None)  # torch's own function, if it records call stacks
            flush_output()
            skip_destructors()

    def _exit(self, profiler: profile) -> None:
        with self._others.own_block():
            try:
                if not self._has_failed:
                    profiler.__exit__(None, None, None)
            finally:
                self._end_session(profiler)

    def _end_session(self, profiler: profile) -> None:
        """Clean up after a failure: torch crashes if its own end is called after an incomplete start.

        The recording is saved if there is one, for example if the program's observer raised before torch's own end.
        """
        session = profiler.profiler
        if session is None or session.kineto_results is not None or self._others.is_active:
            return
        if is_profiler_active():
            session.__exit__(None, None, None)
            self._on_trace_ready(profiler)
        else:
            with suppress(RuntimeError):
                _end_prepared(profiler)
        session.entered = False  # so that it doesn't look like a running one

    def _renew(self, action: ProfilerAction) -> None:
        self._planned = self._action = action
        self._profiler = self._options.profile_class(
            schedule=self._planned_action,
            on_trace_ready=self._on_trace_ready,
            **self._options.arguments(self._trace_id, reads_events=self._reads_events),
        )
        self._profiler.record_steps = False  # the Tracer records the steps' ranges: it knows which step is the last
        self._has_failed = True
        if action is not ProfilerAction.NONE:
            skip_destructors_when_forked()
        with self._others.own_block():
            self._profiler.start()
        self._has_failed = False

    def _planned_action(self, _step: int) -> ProfilerAction:
        return self._planned

    def _block(self, previous: ProfilerAction) -> None:
        """Skip this window: a prepared session is discarded, not started."""
        action = self._action
        if previous is ProfilerAction.WARMUP:
            self._discard_prepared()
            self._renew(ProfilerAction.NONE)
        self._action, self._is_blocked = action, True
        raise ProfilerBusyError("Another profiler is recording in this process; this window is left out.")

    def _yield(self) -> None:
        """End the window because another profiler is about to begin; the rest of it is left out."""
        action, profiler = self._action, self._profiler
        if profiler is None or action is ProfilerAction.NONE or self._is_blocked:
            return
        try:
            self._end_early(profiler, action)
        except Exception as error:  # noqa: BLE001  torch's, in the middle of the program's own call
            self._has_failed = True
            self._on_failure(error)

    def _end_early(self, profiler: profile, action: ProfilerAction) -> None:
        self._on_other_profiler(action in _RECORDING)
        if action in _RECORDING:
            with self._others.own_block():
                profiler.__exit__(None, None, None)
        else:
            self._discard_prepared()
        self._renew(ProfilerAction.NONE)
        self._action, self._is_blocked = action, True

    def _discard_prepared(self) -> None:
        if self._profiler is not None and not self._others.is_active:
            with self._others.own_block():
                _end_prepared(self._profiler)

    def _on_trace_ready(self, profiler: profile) -> None:
        self.last_profile = profiler
        self._is_dropped |= self._drops_empty and is_empty(profiler)
        if not self._is_dropped:
            self._on_window(profiler, self._is_as_planned)
        if self._is_dropped or not self.keeps_events or self._planned is not ProfilerAction.NONE:
            self._forget()

    def _forget(self) -> None:
        """Free a window's events, which also avoids a warning of torch's at each further window."""
        profiler, self.last_profile = self.last_profile, None
        if profiler is not None and not self._options.acc_events:
            events, profiler.profiler = [profiler.profiler], None
            self._free(events)

    def _free(self, events: list[Any]) -> None:
        """Free a window's events on another thread: that takes torch up to half as long as the rest of a save.

        It holds the GIL meanwhile, but the training continues where it doesn't need the GIL: in a backward pass, or
        while it waits for a device.
        """
        try:
            if self._executor is None:
                raise RuntimeError
            self._executor.submit(events.clear)
        except RuntimeError:  # no thread, or the interpreter is ending
            events.clear()

    def _start_executor(self) -> None:
        """Start the thread now: otherwise a save would wait for its start."""
        executor = ThreadPoolExecutor(1, thread_name_prefix="kinetoscope-free")
        with suppress(RuntimeError):  # no more threads
            executor.submit(bool)
            self._executor = executor
