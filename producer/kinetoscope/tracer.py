"""Records a training: which steps, under which names, into which files.

The training's own thread does everything here, at the boundary of two steps; torch.profiler belongs to the thread
that started it and crashes in the hands of another. Nothing that goes wrong with a recording reaches the training: it
is logged once, and the training goes on. Only calls that can't work are raised.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from torch.autograd.profiler import record_function
from torch.profiler import ProfilerAction, profile

from .attendant import Attendant
from .batches import length, wait_name
from .errors import ProfilerBusyError, ScheduleError, UsageError
from .handler import folder
from .identity import Run
from .losses import Losses
from .markers import Marker, Range, Ranges
from .recorder import Activities, Options, Recorder, is_inside_optimizer
from .requests import Request
from .saving import Destination, Saving
from .schedule import description, steps_needed
from .triggers import on_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

    from .schedule import Schedule

_LOG = logging.getLogger("kinetoscope")

_CHECKED_STEPS = 3
"""Whoever steps at a wrong place does so from the first step on."""

T = TypeVar("T")


class Tracer:
    """Records traces of a training, one file per rank and window.

        with Tracer("runs", schedule=cyclic(wait=10, warmup=2, active=3)) as tracer:
            for batch in tracer.steps(loader):
                ...

    Args:
        logdir: The folder that TensorBoard is given. Traces go to `{logdir}/{run}/rank{rank}.{steps}.pt.trace.json.gz`.
        run: The run's name; by default what the launcher calls the job, else the time. Where the logdir has an earlier
            attempt of that name, it is `{run}.1`, and so on.
        schedule: What to do in each step: `cyclic(...)`, `torch.profiler.schedule(...)`, or any such function. Without
            one, all that happens inside the `with` is one window.
        enabled: False makes a Tracer that does nothing at all.
        remote: The URL of a folder that is to be like the logdir, such as `s3://bucket/runs`; each trace is copied
            there when it is written.
        keep: How many of the newest traces of each process stay in the logdir; -1 for all. With `remote`, those that
            aren't copied yet stay too.
        overwrite: Whether to record into the run's folder even if it holds traces; those of the same names are
            replaced.
        on_saved: Is called with each trace's path, and what run.json says of it, between two steps or at the end.
        activities: Like the ones below, as torch.profiler.profile defines it.
        record_shapes: Sizes of the operators' inputs.
        profile_memory: Allocations and releases.
        with_stack: Python calls, and each operator's call stack; makes traces many times larger.
        with_flops: An estimate of operations in matrix products and convolutions.
        with_modules: Names of modules (TorchScript only).
        experimental_config: torch's own further settings.
        execution_trace_observer: torch's observer to run beside the profiler.
        requests: Whether to record on request, too: a file, SIGUSR1, `kinetoscope trigger`, or the page's Capture.
        slow_step: Record the next steps after one that took so many times the usual, such as 3; None for never.
        rescue: Whether to save what is recorded before SIGTERM, SIGHUP or Ctrl-C end the process, and to keep a small
            file beside the traces, from which `kinetoscope recover` makes a trace after SIGKILL.

    Raises:
        UsageError: Arguments that can't work.
    """

    _live: ClassVar[Tracer | None] = None

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        *,
        run: str | None = None,
        schedule: Schedule | None = None,
        enabled: bool = True,
        remote: str | None = None,
        keep: int = -1,
        overwrite: bool = False,
        on_saved: Callable[[Path, Mapping[str, Any]], None] | None = None,
        activities: Activities | None = None,
        record_shapes: bool = True,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: object = None,
        execution_trace_observer: object = None,
        requests: bool = True,
        slow_step: float | None = None,
        rescue: bool = True,
    ) -> None:
        if schedule is not None and not callable(schedule):
            raise ScheduleError(
                f"schedule={schedule!r} is no function of the step's number; try cyclic(wait=…, active=…)."
            )
        self._schedule, self._enabled = schedule, enabled
        self._options = Options(
            activities=None if activities is None else tuple(activities),
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            experimental_config=experimental_config,
            execution_trace_observer=execution_trace_observer,
        )
        self._losses = Losses()
        target, facts = folder(logdir), {"schedule": description(schedule)}
        destination = Destination(remote=remote, keep=keep, overwrite=overwrite)
        name = Run(run, target, overwrite=overwrite)
        self._saving = Saving(target, name, self._losses, facts, destination, on_saved)
        self._ranges = Ranges()
        self._attendant = Attendant(
            self._saving,
            self._losses,
            listens=requests,
            rescues=rescue,
            slow_step=slow_step,
            open_markers=self._ranges.open_labels,
        )
        self._owner: tuple[int, int] | None = None
        self._recorder: Recorder | None = None
        self._completed = 0

    @property
    def saved_traces(self) -> tuple[Path, ...]:
        """The files that are written, oldest first; after the `with` all of them."""
        if self._owner == _here():
            self._saving.listen()
        return tuple(self._saving.saved)

    @property
    def completed_steps(self) -> int:
        """How many steps are complete."""
        return self._completed

    # Starting and stopping

    def __enter__(self) -> Self:
        if not self._enabled:
            return self
        if self._owner is not None:
            raise UsageError("A Tracer records once; make a new one.")
        live = Tracer._live
        if live is not None and live._owner is not None and live._owner[0] == os.getpid():
            raise ProfilerBusyError("Another Tracer is active in this process; there can be only one.")
        action = self._action(0)
        recorder = Recorder(self._options, self._save, self._give_way)
        recorder.start(action)
        self._recorder, self._owner = recorder, _here()
        Tracer._live = self
        atexit.register(self._at_exit)
        self._saving.settle()
        self._attendant.begin(self._close)
        self._begin_window(0)
        self._ranges.is_recording = recorder.is_recording
        self._ranges.begin_step(0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._enabled:
            self._check_place("end")
            self._close("end" if kind is None else f"exception: {kind.__name__}")

    def _at_exit(self) -> None:
        """Stop a recording that the program left open: torch crashes over it while the interpreter shuts down."""
        if self._owner == _here():
            self._close("exit")

    def close(self, timeout_s: float | None = None) -> None:
        """End the recording, and wait until its traces are written; the end of the `with` does so too.

        Args:
            timeout_s: How long at most; by default two minutes. What isn't written then is written all the same, by a
                process that outlives this one.
        """
        if self._enabled and self._owner is not None:
            self._check_place("end")
            self._close("end", timeout_s)

    def _close(self, reason: str, timeout_s: float | None = None) -> None:
        if Tracer._live is not self:
            return  # a signal closed it, or the program
        atexit.unregister(self._at_exit)
        Tracer._live = None
        self._saving.reason = self._attendant.told_to_end or reason
        self._stop()
        self._attendant.end(self._saving.reason)
        shortfall = self._shortfall()
        self._saving.close(timeout_s, reason=self._saving.reason, problem=shortfall, steps_completed=self._completed)
        saved, lost = len(self._saving.saved), self._losses.count
        if shortfall is not None:
            _LOG.warning("%s.", shortfall)
        elif lost > 1:
            _LOG.warning("%d recordings were lost, %d saved.", lost, saved)

    def _stop(self) -> None:
        self._ranges.pause()
        self._ranges.is_recording = False
        recorder, self._recorder = self._recorder, None
        with self._losses.kept_away("The recording couldn't be stopped"):
            if recorder is not None:
                with self._attendant.held():
                    recorder.stop()

    def _shortfall(self) -> str | None:
        """Say why no window was recorded though nothing failed; None if one was, or something did."""
        if self._saving.recorded or self._losses.count or self._schedule is on_request:
            return None
        made = f"the loop made {self._completed}"
        if not self._completed:
            made += "; call step() after each, or loop over steps(loader)"
        needed = steps_needed(self._schedule)
        wanted = "recorded none of the steps" if needed is None else f"needs {needed} steps"
        return f"0 windows: the schedule {wanted}, {made}"

    # Steps

    def steps(self, loader: Iterable[T]) -> Iterator[T]:
        """Return the loader's batches; when the loop comes back for the next one, a step is complete.

        The wait for each batch is recorded the way torch's DataLoader records its own.
        """
        if not self._enabled:
            return iter(loader)
        self._check_place("count steps")
        return self._counted(loader)

    def _counted(self, loader: Iterable[T]) -> Iterator[T]:
        iterator, expected, seen = iter(loader), length(loader), 0
        wait = wait_name(iterator)
        while True:
            if seen != expected:  # after the last batch, there is only the news that there are no more
                self._ranges.begin_step(self._completed)
            is_marked = wait is not None and self._ranges.is_recording
            try:
                with record_function(str(wait)) if is_marked else nullcontext():
                    batch = next(iterator)
            except StopIteration:
                return
            self._ranges.begin_step(self._completed)
            yield batch
            seen += 1
            self._advance(goes_on=seen != expected)

    def step(self) -> None:
        """Say that a step is complete. Only at the top level of a loop, where no other range of the step is open."""
        if self._enabled:
            self._check_place("count steps")
            if self._completed < _CHECKED_STEPS and is_inside_optimizer():
                raise UsageError(
                    "step() was called by a hook of an optimizer, in the middle of its step; call it at the top level "
                    "of the loop, after optimizer.step()."
                )
            self._advance(goes_on=True)

    def _advance(self, *, goes_on: bool) -> None:
        self._check_place("count steps")
        self._ranges.end_step()
        self._completed += 1
        recorder, attendant = self._recorder, self._attendant
        attendant.stepped(self._completed - 1, is_idle=recorder is None or recorder.is_idle)
        if attendant.told_to_end and recorder is not None:
            self._saving.reason = attendant.told_to_end
            self._stop()
        elif recorder is not None:
            with self._losses.kept_away("The profiler failed, so nothing more is recorded", give_up=self._stop):
                try:
                    action = self._action(self._completed)
                    with attendant.held():
                        begins = recorder.move(action, self._options_now())
                    if begins:
                        self._begin_window(self._completed)
                except ProfilerBusyError as error:
                    self._losses.note(str(error))
                self._ranges.is_recording = recorder.is_recording
            self._saving.settle()
            self._saving.listen()
        attendant.step_begins()
        if goes_on:
            self._ranges.begin_step(self._completed)
        else:
            self._ranges.resume()

    def _action(self, step: int) -> ProfilerAction:
        if self._schedule is None:
            return ProfilerAction.RECORD
        action = self._schedule(step)
        if not isinstance(action, ProfilerAction):
            raise ScheduleError(f"The schedule returned {action!r} for step {step}; it must return a ProfilerAction.")
        return self._attendant.action(step, action)

    def _options_now(self) -> Options:
        plan = self._attendant.plan
        return self._options if plan is None else self._options.changed(plan.request.options)

    def _begin_window(self, step: int) -> None:
        plan = self._attendant.plan
        self._saving.reason = "schedule" if plan is None else plan.request.reason
        self._saving.begin_window(step, self._options_now().to_json())
        if self._recorder is not None and self._recorder.is_recording:
            self._attendant.note("recording", {"step": step, "request": None if plan is None else plan.request.id})

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

    # Markers

    def marker(self, label: str) -> Marker:
        """Return a range to use in a `with` or as a decorator, again and again, also within itself.

        Only what the thread of the training spends in it is recorded.
        """
        return Marker(self, label)

    def begin_marker(self, label: str) -> Range | None:
        """Open a marker; None on a thread that isn't recorded."""
        if self._recorder is None or self._owner != _here():
            return None
        return self._ranges.begin(label)

    def end_marker(self, opened: Range | None) -> None:
        """Close a marker that `begin_marker` opened."""
        if opened is not None:
            self._ranges.end(opened)

    # Saving

    def _save(self, profiler: profile, is_as_planned: bool) -> None:  # noqa: FBT001  # the Recorder's way
        ranges = self._ranges
        self._saving.save(
            profiler.export_chrome_trace,
            self._completed,
            ranges.names.labels,
            is_whole=not ranges.is_step_open,
            is_complete=is_as_planned or (self._schedule is None and self._saving.reason == "end"),
        )
        self._attendant.note("saved", self._completed)

    def _give_way(self) -> None:
        self._ranges.pause()
        self._ranges.is_recording = False
        self._saving.reason = "another profiler"
        self._losses.note("The program started a profiler of its own inside a window, which ended there.")

    def _check_place(self, what: str) -> None:
        if self._owner is None:
            raise UsageError(f"A Tracer can't {what} outside its `with`.")
        if self._owner != _here():
            raise UsageError(f"Only the thread that entered a Tracer can {what}: torch.profiler belongs to it.")


def _here() -> tuple[int, int]:
    return os.getpid(), threading.get_ident()
