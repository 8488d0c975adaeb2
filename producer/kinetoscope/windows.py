"""How a Tracer goes from window to window: the schedule's and requests' words become the profiler's actions.

The training's own thread does it, at the boundary of two steps. In most steps of a training nothing is recorded before
and after: then all of this is one question to the schedule.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from torch.profiler import ProfilerAction, profile

from .errors import ProfilerBusyError, ScheduleError
from .loop import Loop

if TYPE_CHECKING:
    from collections.abc import Callable

    from .instruments import Instruments
    from .jobs import Job
    from .last_window import LastWindow
    from .losses import Losses
    from .recorder import Options, Recorder
    from .saving import Saving
    from .schedule import Schedule, WindowLimit
    from .selection import Selection


_LOG = logging.getLogger("kinetoscope")


class Windows(Loop):
    """The part of a Tracer that records: it says what the profiler does in each step, and saves what is complete."""

    _schedule: Schedule | None
    _selection: Selection
    _limit: WindowLimit
    _losses: Losses
    _saving: Saving
    _instruments: Instruments
    _on_window: Callable[[profile], object] | None
    _on_trace_ready: Callable[[Any], object] | None
    _trace_id_callback: Callable[[], str] | None
    _last_trace_id: str | None
    _last_window: LastWindow
    _window_first: int
    """How many steps were complete when the window began that is open, or was last."""

    # From step to step

    def _move(self, *, closes: bool) -> None:
        recorder, told_to_end = self._recorder, self._attendant.told_to_end
        if recorder is None:
            return
        if told_to_end:
            self._saving.reason = told_to_end
            self._stop()
            return
        try:
            action = self._action()
            if not self._is_idle or action is not ProfilerAction.NONE:  # in few steps of a training
                self._turn(recorder, action, closes=closes)
        except Exception as error:  # noqa: BLE001  whatever it is, the training is worth more
            self._give_up(error)

    def _start(self, recorder: Recorder, action: ProfilerAction) -> bool:
        """Let the profiler do something in the first step; return whether a window begins with it."""
        try:
            recorder.start(action)
        except ProfilerBusyError as error:
            self._attendant.left_out(self.completed_steps, str(error))
        except Exception as error:  # noqa: BLE001  torch's: it can't record here
            self._give_up(error)
        return recorder.is_recording

    def _give_up(self, error: Exception) -> None:
        """Say that the profiler failed, once, and record nothing more."""
        _LOG.debug("The profiler failed.", exc_info=error)
        words = f"The profiler failed, so nothing more is recorded: {type(error).__name__}: {error}"
        self._attendant.left_out(self.completed_steps, words)
        self._stop(has_failed=True)

    def _turn(self, recorder: Recorder, action: ProfilerAction, *, closes: bool) -> None:
        """Let the profiler do something in the step that is over, or in the next one."""
        self._ranges.end_step()  # where nothing was recorded, it is one that began long ago
        with self._attendant.held():  # a signal's handler closes what is open, so it finds nothing half done
            self._annotations.until_ns, begins = time.time_ns(), False
            if closes or self._limit.reason:
                self._saving.reason = self._limit.reason or "epoch"
            try:
                drops = closes and self._window_first == self._counter.batch
                begins = recorder.move(action, self._options_now(), closes=closes, drops=drops)
            except ProfilerBusyError as error:
                self._attendant.left_out(self.completed_steps, str(error))
            self._begin_window(action, begins=begins)

    def _begin_window(self, action: ProfilerAction, *, begins: bool) -> None:
        """Go on with what the profiler does from now on; `begins` if a window begins with it."""
        recorder = self._recorder
        self._is_idle = recorder is None or recorder.is_idle
        if begins or self._is_idle:
            self._saving.reason = self._attendant.reason
        if begins:
            self._attendant.window_begins(self.completed_steps, self._options_now().to_json())
            self._window_first = self._counter.batch
        self._ranges.is_recording = recorder is not None and recorder.is_recording
        self._annotations.enter(action, begins=begins)
        self._instruments.enter(action, begins=begins)

    def _action(self) -> ProfilerAction:
        if self._schedule is None:
            return self._limit.limited(ProfilerAction.RECORD if self._selection.is_here else ProfilerAction.NONE)
        counter = self._counter
        step = counter.here_in_epoch if self._is_per_epoch else counter.here
        action = self._schedule(step)
        if not isinstance(action, ProfilerAction):
            raise ScheduleError(f"The schedule returned {action!r} for step {step}; it must return a ProfilerAction.")
        if self._limit.is_set:
            action = self._limit.limited(action)
        return self._attendant.action(counter.batch, action)

    def _options_now(self) -> Options:
        plan = self._attendant.plan
        return self._options if plan is None else self._options.changed(plan.request.options)

    def _trace_id(self) -> str:
        """Return what the window is called that begins now; torch asks in the middle of its own code."""
        plan, callback = self._attendant.plan, self._trace_id_callback
        own = None
        if callback is not None:
            with self._losses.kept_away("custom_trace_id_callback failed"):
                own = str(callback())
        if own is None:
            own = self._saving.trace_id(str(self.completed_steps) if plan is None else plan.request.id)
        self._last_trace_id = own
        return own

    def _stop(self, *, has_failed: bool = False) -> None:
        self._ranges.stop()
        self._is_idle = True
        self._annotations.until_ns = time.time_ns()
        recorder, self._recorder = self._recorder, None
        # A window that began with the end of the loop's last step holds nothing. In a loop of the program's own, nobody
        # tells that it was the last one: there nothing ran in the window, and the `with` is left in good order.
        begins_here = self._has_stepped and self._window_first == self._counter.batch
        is_over = begins_here and not self._ranges.is_step_open
        may_be_over = begins_here and self._saving.reason == "end"
        try:
            if recorder is not None:
                with self._attendant.held():
                    recorder.stop(drops=is_over, drops_empty=may_be_over)
        except Exception as error:  # noqa: BLE001  whatever it is, the training is worth more
            if has_failed:  # which is said already
                _LOG.debug("The recording couldn't be stopped.", exc_info=error)
            else:
                self._losses.keep_away("The recording couldn't be stopped", error)
        self._annotations.close()

    # Saving

    def _save(self, profiler: profile, is_as_planned: bool) -> None:  # noqa: FBT001  # the Recorder's way
        if self._saving.is_unwanted:
            return
        with self._losses.kept_away("A recording was lost"):  # what is raised in torch's handler may crash the process
            self._save_window(profiler, is_as_planned=is_as_planned)
        self._attendant.note("saved", self.completed_steps)

    def _hand_out(self, profiler: profile, job: Job) -> None:
        """Call those whom the program wants to see a window, while all of it is there."""
        with self._last_window.at_hand(job):
            if self._on_trace_ready is not None:
                with self._losses.kept_away("on_trace_ready failed"):
                    self._on_trace_ready(self)
            if self._on_window is not None:
                profiler.step_num = self.completed_steps  # torch's own counts those only in which it did something
                profiler.export_chrome_trace = self.export_chrome_trace  # type: ignore[method-assign]  # saved already
                with self._losses.kept_away("on_window failed"):
                    self._on_window(profiler)

    def _save_window(self, profiler: profile, *, is_as_planned: bool) -> None:
        self._instruments.read()
        told, own = self._annotations.window()
        values = self.progress.to_json()
        own["metadata"] = {**self._preset, **self._metadata}
        self._metadata.clear()
        self._saving.save(
            partial(profile.export_chrome_trace, profiler),
            self.completed_steps,
            is_whole=not self._ranges.is_step_open,
            is_complete=is_as_planned or (self._schedule is None and self._saving.reason == "end"),
            values=values,
            told={**told, "progress": values, **self._instruments.told()},
            own=own,
            on_exported=lambda job: self._hand_out(profiler, job),
        )

    def _give_way(self, is_recording: bool) -> None:  # noqa: FBT001  # the Recorder's way
        self._ranges.stop()
        self._attendant.gives_way(self.completed_steps, is_recording=is_recording)
