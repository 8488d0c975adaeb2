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
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from torch.profiler import ProfilerAction

from .annotations import Annotations
from .attendant import Attendant
from .destination import Destination
from .errors import ProfilerBusyError, UsageError
from .events import EventLog
from .handler import TraceHandler, folder
from .identity import Run, current_place
from .instruments import Instruments
from .last_window import LastWindow
from .losses import Losses
from .markers import Ranges
from .progress import Progress, ProgressCounter
from .recorder import Activities, Options, Recorder
from .saving import Saving
from .scalars import Curves
from .schedule import WindowLimit, checked_schedule, description, is_per_epoch, shortfall
from .selection import Ranks, Selection
from .surface import checked_callback
from .system import KINDS, SystemCounters
from .template import TRACE
from .triggers import on_request
from .windows import Windows

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path
    from types import TracebackType

    from torch.profiler import profile
    from typing_extensions import Self

    from .schedule import Schedule

_LOG = logging.getLogger("kinetoscope")


class Tracer(Windows):
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
        ranks: Those that record, all by default: numbers, `0,8-15`, `per-node`, `per-group:tp`, or a function of one.
        remote: The URL of a folder that is to be like the logdir, such as `s3://bucket/runs`; each trace is copied
            there when it is written.
        keep: How many of each rank's newest traces stay in the run's folder; -1 for all. With `remote`, those that
            aren't copied yet stay too. With `overwrite`, those of earlier attempts count, too.
        overwrite: Whether to record into the run's folder even if it holds traces; those of the same names are
            replaced.
        file: What a trace is called in its run's folder, with Composer's variables (`template`); what ends in `.gz` is
            compressed.
        remote_file: The URL of each trace's copy, with the same variables, instead of `remote`.
        on_saved: Is called with each trace's path, and what run.json says of it, between two steps or at the end.
        on_trace_ready: Is given the Tracer when a window is complete, while its events are in memory, as
            torch.profiler.profile gives itself: for `key_averages()`, `export_chrome_trace()` and the like.
        on_window: The same, but is given torch's profiler.
        scalars: Whether rank 0 writes curves of all steps and windows for TensorBoard's Scalars tab, beside the traces;
            `all` if the other ranks are to write those of their steps, too.
        activities: Like the ones below, as torch.profiler.profile defines it.
        record_shapes: Sizes of the operators' inputs.
        profile_memory: Allocations and releases.
        with_stack: Python calls, and each operator's call stack; makes traces many times larger.
        with_flops: An estimate of operations in matrix products and convolutions.
        with_modules: Names of modules (TorchScript only).
        experimental_config: torch's own further settings.
        execution_trace_observer: torch's observer to run beside the profiler.
        requests: Whether to record on request, too: a file, `kinetoscope trigger`, or the page's Capture.
        signal: A signal that asks for a window, too, by name or number, such as `SIGUSR2`. None is installed otherwise:
            trainers and launchers have their own, as Lightning has SIGUSR1 under SLURM.
        slow_step: Record the next steps after one that took so many times the usual, such as 3; None for never.
        rescue: Whether to save what is recorded before SIGTERM, SIGHUP (but not under SLURM, where it may ask a job to
            requeue itself) or Ctrl-C end the process, and to keep a small file beside the traces, from which
            `kinetoscope recover` makes a trace after SIGKILL.
        acc_events: Whether `events()` and `key_averages()` add up all windows.
        custom_trace_id_callback: Makes each window's trace id; by default all ranks give a window the same one.
        post_processing_timeout_s: After how long `events()` and `key_averages()` give what they have.
        keep_events: Whether the last window stays in memory until the next one begins, for `key_averages()`,
            `events()`, `export_stacks()` and `export_memory_timeline()`; by default where there is no schedule.
        max_window_s: A window that lasts longer ends at the next boundary of two steps.
        system: Which counters of the system to record in windows: `cpu`, `memory`, `disk` and `network` of the machine,
            by one process of it, what this `process` uses, and the `gpu`'s power, clock, temperature and memory.
        system_interval_s: How many seconds apart.
        progress: What was complete before: where a resumed training goes on.

    Raises:
        UsageError: Arguments that can't work.
    """

    _live: ClassVar[Tracer | None] = None
    _owner: tuple[int, int] | None = None
    _recorder: Recorder | None = None
    _last_recorder: Recorder | None = None

    def __init__(
        self,
        logdir: str | os.PathLike[str] = "runs",
        *,
        run: str | None = None,
        schedule: Schedule | None = None,
        enabled: bool = True,
        ranks: Ranks | None = None,
        remote: str | None = None,
        keep: int = -1,
        overwrite: bool = False,
        file: str = TRACE,
        remote_file: str | None = None,
        on_saved: Callable[[Path, Mapping[str, Any]], None] | None = None,
        on_trace_ready: Callable[[Tracer], object] | None = None,
        on_window: Callable[[profile], object] | None = None,
        scalars: bool | Literal["all"] = True,
        activities: Activities | None = None,
        record_shapes: bool = True,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: object = None,
        execution_trace_observer: object = None,
        requests: bool = True,
        signal: str | int | None = None,
        slow_step: float | None = None,
        rescue: bool = True,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        keep_events: bool | None = None,
        max_window_s: float | None = None,
        system: Collection[str] = KINDS,
        system_interval_s: float = 0.5,
        progress: Progress | None = None,
    ) -> None:
        self._schedule, self._enabled = checked_schedule(schedule), enabled
        self._is_per_epoch = is_per_epoch(schedule)
        self._options = Options(
            activities=None if activities is None else tuple(activities),
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            experimental_config=experimental_config,
            execution_trace_observer=execution_trace_observer,
            acc_events=acc_events,
            post_processing_timeout_s=post_processing_timeout_s,
        )
        self._losses = Losses()
        target, facts = folder(logdir), {"schedule": description(schedule)}
        destination = Destination(file=file, remote=remote, remote_file=remote_file, keep=keep, overwrite=overwrite)
        name, self._selection = Run(run, target, overwrite=overwrite), Selection(ranks)
        self._saving = Saving(target, name, self._losses, facts, destination, self._saved, self._selection)
        self._set_callbacks(on_saved, on_trace_ready, on_window, custom_trace_id_callback)
        self._ranges = Ranges()
        self._annotations = Annotations(EventLog(), self._ranges)
        self._attendant = Attendant(
            self._saving,
            self._losses,
            listens=requests,
            signal=signal,
            rescues=rescue,
            slow_step=slow_step,
            open_markers=self._annotations.log.open_names,
            began=lambda: (self._counter.batch, self._counter.last_ns),
        )
        self._curves = Curves(self._saving.settled, self._attendant.takers, wanted=enabled and scalars)
        self._annotations.log.listener = self._attendant.annotated
        counters = SystemCounters(self._annotations.log, self._annotations.units, system, system_interval_s)
        self._instruments = Instruments(self._losses, counters, self._selection)
        self._counter, self._limit = ProgressCounter(progress), WindowLimit(max_window_s)
        self._keeps_events, self._window_first = schedule is None if keep_events is None else keep_events, 0
        self._preset, self._metadata = {}, {}

    def _set_callbacks(
        self,
        on_saved: Callable[[Path, Mapping[str, Any]], object] | None,
        on_trace_ready: Callable[[Tracer], object] | None,
        on_window: Callable[[profile], object] | None,
        custom_trace_id_callback: Callable[[], str] | None,
    ) -> None:
        if isinstance(on_trace_ready, TraceHandler):
            raise UsageError("A Tracer saves its windows itself: trace_handler() is for torch.profiler.profile.")
        self._on_saved = checked_callback("on_saved", on_saved)
        self._on_trace_ready = checked_callback("on_trace_ready", on_trace_ready)
        self._on_window = checked_callback("on_window", on_window)
        self._trace_id_callback = checked_callback("custom_trace_id_callback", custom_trace_id_callback)
        self._last_trace_id, self._last_window = None, LastWindow(self._saving)

    @property
    def saved_traces(self) -> tuple[Path, ...]:
        """The files that are written, oldest first; after the `with` all of them."""
        if self._owner == _here():
            self._saving.listen()
        return tuple(self._saving.saved)

    # Starting and stopping

    def __enter__(self) -> Self:
        if not self._enabled:
            return self
        if self._owner is not None:
            raise UsageError("A Tracer records once; make a new one.")
        live = Tracer._live
        if live is not None and live._owner is not None and live._owner[0] == os.getpid():
            raise ProfilerBusyError("Another Tracer is active in this process; there can be only one.")
        action = self._action()
        hooks = (self._save, self._give_way, self._give_up, self._trace_id)
        recorder = Recorder(self._options, *hooks, keeps_events=self._keeps_events)
        self._recorder = self._last_recorder = recorder
        self._owner = _here()
        Tracer._live = self
        atexit.register(self._at_exit)
        try:
            begins = self._start(recorder, action)
            self._saving.settle()
            self._instruments.settle()
            self._annotations.open(self._owner)
            self._attendant.begin(self._close)
            self._begin_window(ProfilerAction.NONE if self._recorder is None else action, begins=begins)
            self._counter.begin()
            self._ranges.begin_step(self.completed_steps)
        except BaseException as error:  # Ctrl-C, mostly: the `with` isn't entered, so it never ends
            self._close(f"exception: {type(error).__name__}")
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._enabled and not self._is_forked:
            self._check_place("end")
            self._close("end" if kind is None else f"exception: {kind.__name__}")

    @property
    def _is_forked(self) -> bool:
        """Whether this is a process that the recording one forked, which leaves its blocks too: nothing is its own."""
        return self._owner is not None and self._owner[0] != os.getpid()

    def _at_exit(self) -> None:
        """Stop a recording that the program left open: torch crashes over it while the interpreter shuts down."""
        if self._owner == _here():
            self._close("exit")

    def start(self) -> None:
        """Begin, as the `with` does; for programs without one."""
        self.__enter__()

    def stop(self) -> None:
        """End, as `close` does; torch.profiler's name for it."""
        self.close()

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
        with self._attendant.held():  # a signal that ends the process meanwhile finds all said
            atexit.unregister(self._at_exit)
            Tracer._live = None
            self._saving.reason = self._attendant.told_to_end or reason
            self._stop()
            self._attendant.end(self._saving.reason)
            shortfall, steps = self._shortfall(), self.completed_steps
            self._saving.end(reason=self._saving.reason, problem=shortfall, steps_completed=steps)
        self._attendant.leave()
        self._saving.close(timeout_s)
        with self._losses.kept_away("The curves of steps couldn't be ended"):
            self._curves.close()
        self._instruments.close()  # last: a signal that comes while it waits finds all else done
        saved, lost = len(self._saving.saved), self._saving.lost
        if shortfall is not None:
            _LOG.warning("%s.", shortfall)
        elif lost > 1:
            _LOG.warning("%d recordings were lost, %d saved.", lost, saved)

    def _shortfall(self) -> str | None:
        """Say why no window was recorded though nothing failed; None if one was, or something did."""
        if self._saving.recorded or self._losses.count or self._schedule is on_request:
            return None
        if not self._selection.is_here:
            return self._selection.why_nobody(current_place())
        return shortfall(self._schedule, self._counter.here, has_stepped=self._has_stepped)

    def _look(self) -> None:
        with self._losses.kept_away("The recording is not looked after"):
            self._saving.settle()
            self._instruments.settle()
            self._ranges.forget()
            self._attendant.look()
            self._curves.look()
            self._saving.listen()
        self._attendant.step_begins()

    def _saved(self, path: Path, window: Mapping[str, Any]) -> None:
        self._curves.window(path, int(window.get("span") or 0))
        if self._on_saved is not None:
            self._on_saved(path, window)

    def _check_place(self, what: str) -> None:
        if self._owner == (os.getpid(), threading.get_ident()):
            return
        if self._owner is None:
            raise UsageError(f"A Tracer can't {what} outside its `with`.")
        raise UsageError(f"Only the thread that entered a Tracer can {what}: torch.profiler belongs to it.")


def _here() -> tuple[int, int]:
    return os.getpid(), threading.get_ident()
