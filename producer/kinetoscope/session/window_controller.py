"""Opens and closes a Tracer's windows: applies each step's action to the profiler, and saves complete windows.

This runs on the training's own thread, between two steps. In most steps of a training nothing is recorded before and
after: then all of this is one call of the schedule.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Protocol

from torch.profiler import ProfilerAction

from ..errors import ProfilerBusyError, ScheduleError
from ..profiling.recorder import Recorder
from ..profiling.torch_features import has_custom_profiler
from ..profiling.trace_export import export_trace
from ..sampling.cpu_times import own_threads
from ..scheduling.schedule import is_per_epoch, is_pure, no_window_reason, validate_schedule
from .results import LastWindow

if TYPE_CHECKING:
    import os

    from torch.profiler import profile

    from ..output.spool import Job
    from ..profiling.options import Options
    from ..sampling.environment_probe import EnvironmentProbe
    from ..scheduling.schedule import Schedule, WindowLimit
    from .recording import Recording
    from .supervisor import Supervisor

_LOG = logging.getLogger("kinetoscope")

_LOOK_AHEAD = 32
"""How many steps of a pure schedule are evaluated at once: in a row a call takes 0.3 µs, in a training, whose data has
driven it from the caches, 8."""


class StepActions:
    """The actions of one Tracer's steps.

    Args:
        schedule: What to do in each step; None to record all of them.
        limit: How long a window may last.
        recording: Has the steps so far, and which ranks record.
        supervisor: Has the requests.

    Raises:
        ScheduleError: The schedule isn't a function.
    """

    def __init__(
        self, schedule: Schedule | None, limit: WindowLimit, recording: Recording, supervisor: Supervisor
    ) -> None:
        self._schedule, self._limit = validate_schedule(schedule), limit
        self._counter, self._selection = recording.counter, recording.trace_writer.selection
        self._supervisor = supervisor
        self._is_pure = is_pure(schedule) and not limit.is_set
        self.is_per_epoch = is_per_epoch(schedule)
        """Whether the schedule restarts in each epoch, with which a window then ends at the latest."""

    @property
    def has_schedule(self) -> bool:
        """Whether there is a schedule, which defines where a window ends."""
        return self._schedule is not None

    @property
    def limit_reason(self) -> str | None:
        """Why the next step isn't recorded, contrary to the schedule; None if it is."""
        return self._limit.reason

    def next(self) -> ProfilerAction:
        """Return the action of the next step.

        Raises:
            ScheduleError: The schedule returned something other than an action.
        """
        if self._schedule is None:
            return self._limit.limited_action(
                ProfilerAction.RECORD if self._selection.is_selected else ProfilerAction.NONE
            )
        counter = self._counter
        step = counter.here_in_epoch if self.is_per_epoch else counter.here
        action = self._schedule(step)
        if not isinstance(action, ProfilerAction):
            raise ScheduleError(f"The schedule returned {action!r} for step {step}; it must return a ProfilerAction.")
        if self._limit.is_set:
            action = self._limit.limited_action(action)
        if self._is_pure:
            self._supervisor.idle_until(counter.batch + self._idle_steps(self._schedule, step))
        return self._supervisor.action(counter.batch, action)

    def _idle_steps(self, schedule: Schedule, step: int) -> int:
        """Return how many steps from this one on a pure schedule leaves out; at most `_LOOK_AHEAD`."""
        none = ProfilerAction.NONE
        return next((ahead for ahead in range(_LOOK_AHEAD) if schedule(step + ahead) is not none), _LOOK_AHEAD)

    def no_window_reason(self) -> str:
        """Return why the steps so far led to no window."""
        return no_window_reason(self._schedule, self._counter.here, has_stepped=self._counter.has_stepped)


class Exporter(Protocol):
    """The part of a Tracer that exports the last window."""

    def export_chrome_trace(self, path: str | os.PathLike[str], use_python_export: bool = False) -> None:  # noqa: FBT001, FBT002  as in torch
        """Write the last window's trace."""


class WindowController:
    """Drives the profiler of one Tracer step by step, and saves complete windows.

    Args:
        recording: The recording.
        actions: What to do in each step.
        supervisor: Handles requests and signals.
        probe: Measures clocks and system counters.
        keeps_events: Whether the last window stays in memory until the next one begins.
    """

    def __init__(
        self,
        recording: Recording,
        actions: StepActions,
        supervisor: Supervisor,
        probe: EnvironmentProbe,
        *,
        keeps_events: bool,
    ) -> None:
        self._recording, self._supervisor, self._probe = recording, supervisor, probe
        self._counter, self._trace_writer = recording.counter, recording.trace_writer
        self._annotations, self._ranges = recording.annotations, recording.annotations.ranges
        self._callbacks, self._error_log = recording.callbacks, recording.error_log
        self._keeps_events = keeps_events
        self.actions = actions
        """What to do in each step."""
        self.last_window = LastWindow(recording.trace_writer)
        """The last window as a file."""
        self.is_idle = True
        """Whether no profiler runs in this step."""
        self.has_stopped = False
        """Whether nothing more is recorded, and what was recorded is with the writer process."""
        self.last_recorder: Recorder | None = None
        """The recorder; None before the first step."""
        self.last_trace_id: str | None = None
        """The id of the window that began last; None before the first."""
        self._recorder: Recorder | None = None
        self._exporter: Exporter | None = None
        self._first_action = ProfilerAction.NONE
        self._window_first = 0  # how many steps were complete at the start of the open or last window

    @property
    def is_recording(self) -> bool:
        """Whether a window is open."""
        return self._recorder is not None and self._recorder.is_recording

    @property
    def profiler(self) -> profile | None:
        """Torch's profiler while it records; else None."""
        return self._recorder.profiler if self._recorder is not None and self.is_recording else None

    @property
    def has_ended(self) -> bool:
        """Whether nothing more is recorded: any thread may then read the last window."""
        return self._recorder is None and self.last_recorder is not None

    # From step to step

    def prepare(self, exporter: Exporter) -> None:
        """Compute the action of the first step.

        Args:
            exporter: Passed to the callbacks.

        Raises:
            ScheduleError: The schedule returned something other than an action.
        """
        self._first_action, self._exporter = self.actions.next(), exporter
        hooks = (self._save, self._yield_to_other, self._give_up, self._trace_id)
        has_callbacks = self._callbacks.on_trace_ready is not None or self._callbacks.on_window is not None
        self._recorder = self.last_recorder = Recorder(
            self._recording.options, *hooks, keeps_events=self._keeps_events, has_callbacks=has_callbacks
        )

    def start(self) -> bool:
        """Apply the first step's action to the profiler; return whether a window begins with it."""
        recorder = self._recorder
        if recorder is None:
            return False
        try:
            recorder.start(self._first_action)
        except ProfilerBusyError as error:
            self._supervisor.skip_window(self._counter.batch, str(error))
        except Exception as error:  # noqa: BLE001  torch's: it can't record here
            self._give_up(error)
        return recorder.is_recording

    def begin(self, *, begins: bool) -> None:
        """Begin the first step, after `start`; `begins` if a window begins with it."""
        self._enter(ProfilerAction.NONE if self._recorder is None else self._first_action, begins=begins)

    def move(self, *, closes: bool) -> None:
        """Move to the next step; `closes` if an open window ends here."""
        recorder, end_signal = self._recorder, self._supervisor.end_signal
        if recorder is None:
            return
        if end_signal:
            self._trace_writer.reason = end_signal
            self.stop()
            return
        try:
            action = self.actions.next()
            if not self.is_idle or action is not ProfilerAction.NONE:  # in few steps of a training
                start_ns = time.monotonic_ns()
                self._turn(recorder, action, closes=closes)
                self._supervisor.add_stop(time.monotonic_ns() - start_ns)
        except Exception as error:  # noqa: BLE001  whatever it is, the training is worth more
            self._give_up(error)

    def _turn(self, recorder: Recorder, action: ProfilerAction, *, closes: bool) -> None:
        """Apply the next step's action to the profiler."""
        self._ranges.end_step()  # if nothing was recorded, it began long ago
        with (
            self._supervisor.hold_signals()
        ):  # a signal handler closes the recording, which must be in a consistent state
            self._annotations.until_ns, begins = time.time_ns(), False
            if closes or self.actions.limit_reason:
                self._trace_writer.reason = self.actions.limit_reason or "epoch"
            try:
                drops = closes and self._window_first == self._counter.batch
                begins = recorder.move(action, self._options_now(), closes=closes, drops=drops)
            except ProfilerBusyError as error:
                self._supervisor.skip_window(self._counter.batch, str(error))
            self._enter(action, begins=begins)

    def _enter(self, action: ProfilerAction, *, begins: bool) -> None:
        """Continue with the profiler's new action; `begins` if a window begins with it."""
        recorder = self._recorder
        self.is_idle = recorder is None or recorder.is_idle
        if begins or self.is_idle:
            self._trace_writer.reason, self._trace_writer.why = self._supervisor.reason, self._supervisor.why
        if begins:
            self._ranges.is_direct = not has_custom_profiler(self.profiler)
            self._supervisor.begin_window(self._counter.batch, self._options_now().to_json())
            self._window_first = self._counter.batch
        self._ranges.is_recording = recorder is not None and recorder.is_recording
        self._annotations.enter(action, begins=begins)
        self._probe.enter(action, begins=begins)
        plan = self._supervisor.plan
        self._recording.memory.enter(is_active=not self.is_idle, is_requested=plan is not None and plan.request.memory)

    def _give_up(self, error: Exception) -> None:
        """Report that the profiler failed, once, and record nothing more."""
        _LOG.debug("The profiler failed.", exc_info=error)
        problem = f"The profiler failed, so nothing more is recorded: {type(error).__name__}: {error}"
        self._supervisor.skip_window(self._counter.batch, problem)
        self.stop(has_failed=True)

    def _options_now(self) -> Options:
        plan = self._supervisor.plan
        options = self._recording.options
        return options if plan is None else options.with_switches(plan.request.options)

    def _trace_id(self) -> str:
        """Return the id of the window that begins now; torch calls this in the middle of its own code."""
        plan, callback, trace_id = self._supervisor.plan, self._callbacks.trace_id, None
        if callback is not None:
            with self._error_log.catch("custom_trace_id_callback failed"):
                trace_id = str(callback())
        if trace_id is None:
            trace_id = self._trace_writer.trace_id(str(self._counter.batch) if plan is None else plan.request.id)
        self.last_trace_id = trace_id
        return trace_id

    def _yield_to_other(self, is_recording: bool) -> None:  # noqa: FBT001  # the Recorder's way
        self._ranges.stop()
        self._supervisor.on_other_profiler(self._counter.batch, is_recording=is_recording)

    def stop(self, *, has_failed: bool = False) -> None:
        """Stop recording; an open window ends here.

        Args:
            has_failed: Whether the profiler failed, which is already in the log.
        """
        self._ranges.stop()
        self.is_idle = True
        self._annotations.until_ns = time.time_ns()
        recorder, self._recorder = self._recorder, None
        # A window that began with the end of the loop's last step is empty. With `step()`, it is unknown which step is
        # the last one: then the window is empty if nothing ran in it and the `with` ends without an exception.
        begins_here = self._counter.has_stepped and self._window_first == self._counter.batch
        is_over = begins_here and not self._ranges.is_step_open
        may_be_over = begins_here and self._trace_writer.reason == "end"
        try:
            if recorder is not None:
                with self._supervisor.hold_signals():
                    recorder.stop(drops=is_over, drops_empty=may_be_over)
        except Exception as error:  # noqa: BLE001  whatever it is, the training is worth more
            if has_failed:
                _LOG.debug("The recording couldn't be stopped.", exc_info=error)
            else:
                self._error_log.record("The recording couldn't be stopped", error)
        self._annotations.close()
        self.has_stopped = True

    def leave(self, problem: str) -> None:
        """Stop without the thread of torch's profiler, which doesn't end it: an open window is lost.

        Args:
            problem: Why, for the log and the manifest.
        """
        recorder, self._recorder = self._recorder, None
        self.is_idle = True
        if recorder is not None:
            if recorder.is_recording:
                self._supervisor.skip_window(self._window_first, problem)
            recorder.leave()
        self._annotations.close()
        self.has_stopped = True

    # Saving

    def _save(self, profiler: profile, is_as_planned: bool) -> None:  # noqa: FBT001  # the Recorder's way
        if self._trace_writer.is_excluded:
            return
        with self._error_log.catch("A recording was lost"):  # what is raised in torch's handler may crash the process
            self._save_window(profiler, is_as_planned=is_as_planned)
        self._recording.memory.save_window(self._trace_writer.reason)
        self._supervisor.note("saved", self._counter.batch)

    def _save_window(self, profiler: profile, *, is_as_planned: bool) -> None:
        self._probe.read()
        details, program_events = self._annotations.window()
        values = self._counter.progress.to_json()
        program_events["metadata"] = self._recording.metadata.take()
        program_events["own_threads"] = own_threads()
        is_complete = is_as_planned or (not self.actions.has_schedule and self._trace_writer.reason == "end")
        self._trace_writer.save(
            partial(export_trace, profiler),
            self._counter.batch,
            is_whole=not self._ranges.is_step_open,
            is_complete=is_complete,
            values=values,
            details={
                **details,
                "progress": values,
                "double_steps": self._counter.double_calls,
                "usual_step": self._supervisor.triggers.pace.to_json(),
                **self._probe.metadata(),
            },
            program_events=program_events,
            on_exported=partial(self._call_back, profiler),
        )

    def _call_back(self, profiler: profile, job: Job) -> None:
        """Call the program's callbacks while the window is complete in memory."""
        callbacks, exporter = self._callbacks, self._exporter
        with self.last_window.during_callbacks(job):
            if callbacks.on_trace_ready is not None:
                with self._error_log.catch("on_trace_ready failed"):
                    callbacks.on_trace_ready(exporter)
            if callbacks.on_window is not None and exporter is not None:
                profiler.step_num = self._counter.batch  # torch's own number counts only steps in which it was active
                profiler.export_chrome_trace = exporter.export_chrome_trace  # type: ignore[method-assign]  # saved already
                with self._error_log.catch("on_window failed"):
                    callbacks.on_window(profiler)
