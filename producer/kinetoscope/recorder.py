"""torch.profiler, driven around the places where it crashes or loses a recording.

All of these were seen on torch 2.13: two profilers that overlap end in a segmentation fault; so does a recording that
nobody stops before the interpreter exits, and an exception in the handler of a finished window when the next one
follows directly; a schedule that goes from recording to nothing throws the recording away.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from inspect import signature
from types import FrameType
from typing import Any

import torch
from torch.optim import optimizer
from torch.profiler import ProfilerAction, profile, supported_activities

from .errors import ProfilerBusyError
from .foreign import ForeignProfilers

Activities = Iterable[Any]  # of ProfilerActivity, or of {ProfilerActivity: [names of event types]} from torch 2.13

_KNOWS_TRACE_IDS = "custom_trace_id_callback" in signature(profile.__init__).parameters
_IDLE = (ProfilerAction.NONE, ProfilerAction.WARMUP)
_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to record: the arguments of torch.profiler.profile, under their names there."""

    activities: Activities | None = None
    record_shapes: bool = True
    profile_memory: bool = False
    with_stack: bool = False
    with_flops: bool = False
    with_modules: bool = False
    experimental_config: object = None
    execution_trace_observer: object = None
    acc_events: bool = False
    custom_trace_id_callback: Callable[[], str] | None = None
    post_processing_timeout_s: float | None = None

    def arguments(self, trace_id: Callable[[], str]) -> dict[str, Any]:
        """Return the arguments for torch.profiler.profile; `trace_id` names a window where the program doesn't."""
        arguments = dict(vars(self))
        if self.custom_trace_id_callback is None and _KNOWS_TRACE_IDS:
            arguments["custom_trace_id_callback"] = trace_id
        for name in ("custom_trace_id_callback", "post_processing_timeout_s"):
            if arguments[name] is None:  # torch 2.4 doesn't know it
                del arguments[name]
        if self.activities is not None:
            arguments["activities"] = list(self.activities)
        if self.with_stack and self.experimental_config is None:
            arguments["experimental_config"] = _verbose_config()
        return arguments

    def changed(self, switches: Mapping[str, bool]) -> Options:
        """Return them with some of the switches set otherwise."""
        return replace(self, **dict[str, Any](switches))

    def to_json(self) -> dict[str, Any]:
        """Return what was recorded as JSON values."""
        return options_of(vars(self), self.activities)


def options_of(source: Mapping[str, Any], activities: Activities | None) -> dict[str, Any]:
    """Return the options among a profiler's attributes, as JSON values."""
    flags = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
    listed = supported_activities() if activities is None else activities  # type: ignore[no-untyped-call]
    return {
        "activities": sorted(
            _name(activity) for item in listed for activity in (item if isinstance(item, dict) else [item])
        ),
        **{flag: bool(source.get(flag)) for flag in flags},
    }


def _name(activity: object) -> str:
    return str(getattr(activity, "name", activity))


def _verbose_config() -> object:
    """Return the setting without which operators carry no call stack; None where this torch hasn't it."""
    try:
        from torch._C._profiler import _ExperimentalConfig

        return _ExperimentalConfig(verbose=True)
    except (ImportError, TypeError):
        return None


def is_profiler_active() -> bool:
    """Whether any profiler is recording on this thread; False too where this torch doesn't tell."""
    enabled = getattr(torch.autograd, "_profiler_enabled", None)
    return enabled is not None and bool(enabled())


def is_inside_optimizer() -> bool:
    """Whether an optimizer's step is under way, whose range would overlap that of a step that ends in it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        # torch.optim wraps every step() in a function that opens the range and calls the hooks.
        if frame.f_code.co_name == "wrapper" and frame.f_code.co_filename == optimizer.__file__:
            return True
        frame = frame.f_back
    return False


def _import_ahead() -> None:
    """Import what torch imports while it records.

    With call stacks, the code of a module that is imported inside a window is freed before its name is written: what
    stands in the file then is whatever lies there, and mostly isn't UTF-8 (torch 2.13).
    """
    with suppress(ImportError):
        import_module("torch.profiler._cupti_monitor")


class Recorder:
    """One thread's profiler: goes from step to step, is told what to do in each, and hands out finished windows.

    Args:
        options: What to record.
        on_window: Is given torch's profiler when a window has ended, and whether it ended where it was meant to;
            exports it and must not raise.
        on_foreign: Is called before a window ends because the program starts a profiler of its own; is told whether
            any of it is recorded.
        trace_id: Returns what the window is called that is about to begin; must not raise.
        keeps_events: Whether the last window stays in memory until the next one begins, for `finished`.
    """

    def __init__(
        self,
        options: Options,
        on_window: Callable[[profile, bool], None],
        on_foreign: Callable[[bool], None],
        trace_id: Callable[[], str],
        *,
        keeps_events: bool = False,
    ) -> None:
        self._options = options
        self._on_window, self._on_foreign, self._trace_id = on_window, on_foreign, trace_id
        self._foreign = ForeignProfilers(self._give_way, lambda: self._is_open)
        self._is_as_planned = False
        self.keeps_events = keeps_events or options.acc_events
        self._is_dropped = False
        self.finished: profile | None = None
        """torch's profiler with the last window, where it is kept and the next one hasn't begun."""
        self._planned = ProfilerAction.NONE
        self._action = ProfilerAction.NONE
        self._is_blocked = False
        self._profiler: profile | None = None

    @property
    def is_recording(self) -> bool:
        """Whether what happens now will be in a trace."""
        return self._action in _RECORDING and not self._is_blocked

    @property
    def is_idle(self) -> bool:
        """Whether the profiler does nothing in this step: no `move` is needed if it needn't in the next one either."""
        return self._action is ProfilerAction.NONE and not self._is_blocked

    @property
    def _is_open(self) -> bool:
        """Whether our profiler has torch's session, or has prepared one."""
        return self._profiler is not None and self._action is not ProfilerAction.NONE and not self._is_blocked

    def start(self, action: ProfilerAction) -> None:
        """Begin the first step, which is to be treated like `action`.

        Raises:
            ProfilerBusyError: Another profiler is recording.
        """
        self._foreign.begin()
        if is_profiler_active() or (self._foreign.is_active and action is not ProfilerAction.NONE):
            self._foreign.end()
            raise ProfilerBusyError("Another profiler is recording in this process; stop it before you start a Tracer.")
        _import_ahead()
        self._renew(action)

    @property
    def profiler(self) -> profile | None:
        """Torch's profiler, which only its own thread may touch."""
        return self._profiler

    def move(self, action: ProfilerAction, options: Options, *, closes: bool = False, drops: bool = False) -> bool:
        """Go on to the next step, which is to be treated like `action`; return whether a recording begins with it.

        A recording that is under way goes on with the options that it began with.

        Args:
            action: What to do in it.
            options: What to record in it.
            closes: Whether a recording that is under way is complete, even if the next step is recorded, too.
            drops: Whether what is complete now holds nothing and is thrown away.

        Raises:
            ProfilerBusyError: Another profiler is recording; this window is left out.
        """
        if closes and self._action is ProfilerAction.RECORD:
            self._action = ProfilerAction.RECORD_AND_SAVE
            if self._profiler is not None and self._profiler.current_action is ProfilerAction.RECORD:
                self._profiler.current_action = ProfilerAction.RECORD_AND_SAVE
        before, self._is_dropped = self._action, drops
        begins = before is not ProfilerAction.RECORD and action in _RECORDING
        self._action = action
        if self._is_blocked and (before is ProfilerAction.RECORD_AND_SAVE or action is ProfilerAction.NONE):
            self._is_blocked = False
            before = ProfilerAction.NONE
        if self._is_blocked or self._profiler is None:
            return False
        with self._foreign.none_in():
            return self._turn(self._profiler, before, action, options) and begins

    def _turn(self, profiler: profile, before: ProfilerAction, action: ProfilerAction, options: Options) -> bool:
        """Go from one action to the next; return whether that was possible.

        Raises:
            ProfilerBusyError: Another profiler is recording; this window is left out.
        """
        if self._foreign.is_waiting and before in (ProfilerAction.WARMUP, ProfilerAction.RECORD):
            self._action = before
            self._give_way()
            self._action = action
            return False
        is_taken = before in _IDLE and is_profiler_active()
        if before is not ProfilerAction.RECORD and action is not ProfilerAction.NONE:
            is_taken |= self._foreign.is_active
        if is_taken and before in _IDLE and action is not ProfilerAction.NONE:
            self._block(before)
        if before is ProfilerAction.RECORD and action in _IDLE and profiler.current_action is before:
            profiler.current_action = ProfilerAction.RECORD_AND_SAVE  # torch would throw the recording away
        self._is_as_planned = True
        try:
            is_open = before in (ProfilerAction.WARMUP, ProfilerAction.RECORD)
            self._go_on(profiler, ProfilerAction.NONE if is_taken else action, options, is_open=is_open)
        finally:
            self._is_as_planned = False
        if is_taken and action is not ProfilerAction.NONE:
            self._block(ProfilerAction.NONE)
        return True

    def _go_on(self, profiler: profile, action: ProfilerAction, options: Options, *, is_open: bool) -> None:
        if is_open or action is ProfilerAction.NONE or options == self._options:
            self._planned = action
            if self.finished is not None and action is not ProfilerAction.NONE:
                self._forget()
            profiler.step()
            return
        self._planned = ProfilerAction.NONE  # a profiler's options last as long as it does
        profiler.step()
        self._profiler = None
        profiler.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        self._forget()
        self._options = options
        self._renew(action)

    def stop(self, *, drops: bool = False) -> None:
        """End the recording; a window that is open ends here, or holds nothing and is thrown away."""
        self._foreign.end()
        profiler, self._profiler, self._action = self._profiler, None, ProfilerAction.NONE
        self._planned, self._is_dropped = ProfilerAction.NONE, drops
        if profiler is not None:
            with self._foreign.none_in():
                profiler.__exit__(None, None, None)  # type: ignore[no-untyped-call]

    def _renew(self, action: ProfilerAction) -> None:
        self._planned = self._action = action
        self._profiler = profile(
            schedule=lambda _step: self._planned, on_trace_ready=self._ready, **self._options.arguments(self._trace_id)
        )
        self._profiler.record_steps = False  # the steps' ranges are the Tracer's: it knows which step is the last
        with self._foreign.none_in():
            self._profiler.start()

    def _block(self, before: ProfilerAction) -> None:
        """Leave this window out: what was prepared for it is forgotten, not started."""
        action = self._action
        if before is ProfilerAction.WARMUP:
            self._renew(ProfilerAction.NONE)
        self._action, self._is_blocked = action, True
        raise ProfilerBusyError("Another profiler is recording in this process; this window is left out.")

    def _give_way(self) -> None:
        """End the window, since another profiler is about to begin; the rest of it is left out."""
        action, profiler = self._action, self._profiler
        if profiler is None or action is ProfilerAction.NONE or self._is_blocked:
            return
        self._on_foreign(action in _RECORDING)
        if action in _RECORDING:
            with self._foreign.none_in():
                profiler.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        self._renew(ProfilerAction.NONE)
        self._action, self._is_blocked = action, True

    def _ready(self, profiler: profile) -> None:
        if not self._is_dropped:
            self._on_window(profiler, self._is_as_planned)
        if self.keeps_events and not self._is_dropped and self._planned is ProfilerAction.NONE:
            self.finished = profiler
        else:
            self._forget(profiler)

    def _forget(self, profiler: profile | None = None) -> None:
        """Free a window's events, which also keeps torch from warning at each further one that it will do so."""
        profiler, self.finished = profiler or self.finished, None
        if profiler is not None and not self._options.acc_events:
            profiler.profiler = None
