"""Records a training: which steps, under which names, into which files.

Everything here runs on the training's own thread, between two steps: torch.profiler belongs to the thread that started
it and crashes on any other. An error of a recording never reaches the training: it is logged once, and the training
continues. Only invalid calls raise.

`Tracer` is a facade. It owns the parts and delegates to them: `StepLoop` counts, `WindowController` opens and closes
windows, `Supervisor` handles signals, requests and hangs, and `TraceWriter` saves traces.
"""

from __future__ import annotations

import atexit
import logging
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from torch.profiler import profile
from torch.profiler import tensorboard_trace_handler as torch_handler

from .argument_checks import checked_callback, explain_unknown
from .error_log import ErrorLog
from .errors import ProfilerBusyError, UsageError
from .events import EventLog
from .handler import local_folder, refuse_trace_handler, trace_handler
from .job.rank_info import current_rank_info
from .job.run_name import Run
from .job.selection import Ranks, Selection
from .output.destination import Destination
from .output.name_template import TRACE
from .output.trace_writer import TraceWriter
from .profiling.annotations import Annotations, Marker
from .profiling.memory_history import MemoryHistory
from .profiling.options import PROFILER_ARGUMENTS, Activities, Options
from .profiling.other_profilers import PATIENCE_S
from .profiling.profiler_ranges import Ranges
from .profiling.torch_features import TorchFeatures
from .progress import Progress, ProgressCounter
from .sampling.environment_probe import EnvironmentProbe
from .sampling.scalars import Curves
from .sampling.system_sampler import KINDS, SystemSampler
from .scheduling.budget import Budget, budget_from
from .scheduling.request import Request
from .scheduling.schedule import WindowLimit, describe_schedule, on_request
from .session.ending import ending, uncaught_exception
from .session.memory_recorder import MemoryRecorder
from .session.recording import Recording, WindowCallbacks
from .session.results import ProfilerResults
from .session.step_loop import StepLoop
from .session.supervisor import Supervisor
from .session.window_controller import StepActions, WindowController
from .signals.hang_detector import DEFAULT_AFTER_S

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from types import TracebackType

    from torch.profiler import ProfilerAction
    from typing_extensions import Self

    from .scheduling.schedule import Schedule
    from .session.step_loop import Count

_LOG = logging.getLogger("kinetoscope")

T = TypeVar("T")

_PAUSE_S = 0.01
_START_S = 5.0
"""How long the start of a recording waits for a logdir that doesn't answer."""

REPLACEMENTS = {
    **dict.fromkeys(("use_cuda", "use_cpu"), "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"),
    **dict.fromkeys(("use_gzip", "worker_name", "filename"), "file='rank{rank}.{batch}.pt.trace.json.gz'"),
    **dict.fromkeys(("dir_name", "dirpath", "log_dir", "folder", "dir", "path"), "logdir='runs'"),
    **dict.fromkeys(("wait", "warmup", "active", "repeat", "skip_first"), "schedule=cyclic(wait=…, active=…)"),
    **{name: f"profiler={{'{name}': …}}" for name in sorted(PROFILER_ARGUMENTS)},
    "run_name": "run='…'",
    "num_traces_to_keep": "keep=…",
    "remote_file_name": "remote_file='…'",
}
"""What to write instead of the keywords of torch.profiler, its handler, and Composer."""

_FACTORIES: dict[object, str] = {
    torch_handler: "tensorboard_trace_handler('runs')",
    trace_handler: "trace_handler('runs')",
}


class Tracer:
    """Records traces of a training, one file per rank and window.

        with Tracer("runs", schedule=cyclic(wait=10, warmup=2, active=3)) as tracer:
            for batch in tracer.steps(loader):
                ...

    Args:
        logdir: The folder that TensorBoard reads. Traces go to `{logdir}/{run}/rank{rank}.{steps}.pt.trace.json.gz`.
        run: The run's name; by default the launcher's name of the job, else the time. If the logdir has an earlier
            attempt of that name, it is `{run}.1`, and so on. Each Tracer is a run, so make one for all epochs; a `Run`
            of this process is continued instead.
        schedule: What to do in each step: `cyclic(...)`, `torch.profiler.schedule(...)`, or any such function. Without
            one, everything inside the `with` is one window.
        budget: What recording may cost: a share of the training's time, such as `0.5%`, bytes a day, such as
            `2 GB/day`, or both with a comma between. The Tracer then chooses which steps to record, in place of a
            schedule: the first steady ones, those that have become slower, those with inputs of a new size, and those
            after torch.compile compiled again.
        enabled: False makes a Tracer that does nothing.
        ranks: The ranks that record, by default all: numbers, `0,8-15`, `per-node`, `per-group:tp`, or a function of
            a rank.
        remote: The URL of a folder that mirrors the logdir, such as `s3://bucket/runs`; each trace is copied there
            when it is written.
        keep: How many of each rank's newest traces stay in the run's folder; -1 for all. With `remote`, those that
            aren't copied yet stay too. With `overwrite`, those of earlier attempts count too.
        overwrite: Record into the run's folder even if it has traces; those of the same names are replaced.
        file: The name of a trace in its run's folder, with Composer's variables such as `{rank}`. One that ends in
            `.gz` is compressed; one that ends in neither `.json` nor `.gz` gets `.pt.trace.json.gz`.
        remote_file: The URL of each trace's copy, with the same variables, instead of `remote`.
        on_saved: Called with each trace's path and its entry in run.json, between two steps or at the end.
        on_trace_ready: Called with the Tracer when a window is complete, while its events are in memory, as
            torch.profiler.profile does: for `key_averages()`, `export_chrome_trace()` and the like.
        on_window: The same, but called with torch's profiler.
        scalars: Write curves of all steps and windows for TensorBoard's Scalars tab, on rank 0; `"all"` for the steps
            of every rank.
        activities: Like the next five, as in torch.profiler.profile.
        record_shapes: Sizes of the operators' inputs.
        profile_memory: Allocations and releases.
        with_stack: Python calls, and so each operator's call stack; makes traces many times larger. The file has the
            stacks as text, too, if the program may read torch's events (`keep_events`, a callback), and `with_modules`.
        with_flops: Estimated FLOPs of matrix products and convolutions.
        with_modules: Names of modules (TorchScript only).
        profiler: Further arguments of torch.profiler.profile: `experimental_config`, `execution_trace_observer`,
            `acc_events`, `custom_trace_id_callback` and `post_processing_timeout_s`.
        profile_class: A subclass of torch.profiler.profile that records instead, for devices that need one.
        trace_only: Build no Python events when a window ends, which saves time: there is no `key_averages()`. It needs
            torch 2.13; with an older one, the log says so and nothing changes, as for the next four.
        all_threads: Record the operators of all threads, not only of the one that steps and of autograd's; torch 2.7.
            torch records no allocations then.
        in_process_cupti: Record GPU work with torch's own CUPTI backend (2.13, 2.14: CUPTI monitor; 2.15: Cuspy)
            instead of kineto.
        graph_dependencies: Record which nodes of CUDA graphs wait for which; with that backend, from torch 2.14. The
            graphs must be captured inside the Tracer's `with`.
        gpu_counters: What that backend samples, from torch 2.14: `environment` for power, temperature, clocks and fans,
            or names of CUPTI's metrics, such as `sm__cycles_active.avg.pct_of_peak_sustained_elapsed`.
        memory_history: Record what torch's allocator does on CUDA, XPU or NPU devices, and save it as a memory snapshot
            at the end of each window and when an allocation fails: `always`, `windows` (the history of each window
            only), or a `MemoryHistory` with the number of entries and the stacks.
        requests: Accept requests: a file, `kinetoscope trigger`, or the page's Capture.
        signal: A signal that requests a window, by name or number, such as `SIGUSR2`. By default none is installed,
            since trainers and launchers use such signals, for example Lightning SIGUSR1 under SLURM.
        slow_step: Record the next steps after one that took this many times the usual time, such as 3; None for never.
        hang_after_s: When a step lasts longer than this, and than ten usual steps, write what this rank is in for
            `kinetoscope why`: torch's flight recorder, stacks and states of threads, to `{run}/hang`. The first step
            has four times as long. None for never.
        save_on_signal: Save what is recorded before SIGTERM, Ctrl-C or SIGHUP ends the process (not SIGHUP under SLURM,
            which may use it to requeue the job), and keep the journal from which `kinetoscope recover` makes a trace
            after SIGKILL.
        keep_events: Keep the last window in memory until the next one begins, for `key_averages()`, `events()`,
            `export_stacks()` and `export_memory_timeline()`; on by default if there is no schedule.
        max_window_s: A longer window ends at the end of a step.
        system: The system counters to record in windows: `cpu`, `memory`, `disk` and `network` of the machine, on one
            process per machine, this `process`, and the `gpu`'s power, clock, temperature and memory.
        system_interval_s: Seconds between two samples.
        progress: Where a resumed training continues.

    Raises:
        UsageError: Invalid arguments.
    """

    _live: ClassVar[Tracer | None] = None

    @explain_unknown("Tracer", REPLACEMENTS)
    def __init__(
        self,
        logdir: str | os.PathLike[str] = "runs",
        *,
        run: str | Run | None = None,
        schedule: Schedule | None = None,
        budget: str | None = None,
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
        profiler: Mapping[str, Any] | None = None,
        profile_class: Callable[..., profile] = profile,
        trace_only: bool = False,
        all_threads: bool = False,
        in_process_cupti: bool = False,
        graph_dependencies: bool = False,
        gpu_counters: Collection[str] = (),
        memory_history: MemoryHistory | Literal["always", "windows"] | None = None,
        requests: bool = True,
        signal: str | int | None = None,
        slow_step: float | None = None,
        hang_after_s: float | None = DEFAULT_AFTER_S,
        save_on_signal: bool = True,
        keep_events: bool | None = None,
        max_window_s: float | None = None,
        system: Collection[str] = KINDS,
        system_interval_s: float = 0.5,
        progress: Progress | None = None,
    ) -> None:
        self._schedule, self._budget = _schedule_and_budget(schedule, budget)
        options = Options(
            activities=None if activities is None else tuple(activities),
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            profiler={} if profiler is None else profiler,
            profile_class=profile_class,
            features=TorchFeatures(
                trace_only=trace_only,
                all_threads=all_threads,
                in_process_cupti=in_process_cupti,
                graph_dependencies=graph_dependencies,
                gpu_counters=tuple(gpu_counters),
            ),
        )
        self._enabled, self._error_log = enabled, ErrorLog()
        self._selection, self._curves = Selection(ranks), Curves(scalars=enabled and scalars)
        destination = Destination(file=file, remote=remote, remote_file=remote_file, keep=keep, overwrite=overwrite)
        counter = ProgressCounter(progress)
        self._trace_writer = trace_writer = self._make_trace_writer(logdir, run, destination, on_saved)
        self._recording = recording = Recording(
            options=options.supported_options() if enabled else options,
            counter=counter,
            annotations=Annotations(EventLog(), Ranges()),
            callbacks=_window_callbacks(on_trace_ready, on_window, options.profiler.get("custom_trace_id_callback")),
            trace_writer=trace_writer,
            memory=MemoryRecorder(memory_history, counter, trace_writer, self._error_log),
            error_log=self._error_log,
        )
        self._owner, self._counter, self._annotations = recording.owner, counter, recording.annotations
        self._supervisor = Supervisor(
            recording, accepts_requests=requests, signal=signal, guards_signals=save_on_signal, slow_step=slow_step
        )
        self._supervisor.report_hangs(hang_after_s)
        self._make_probe(system, system_interval_s)
        keeps_events = self._schedule is None and not trace_only if keep_events is None else keep_events
        self._make_loop(WindowLimit(max_window_s), keeps_events=keeps_events)

    def _make_trace_writer(
        self,
        logdir: str | os.PathLike[str],
        run: str | Run | None,
        destination: Destination,
        on_saved: Callable[[Path, Mapping[str, Any]], None] | None,
    ) -> TraceWriter:
        folder = local_folder(logdir)
        return TraceWriter(
            run if isinstance(run, Run) else Run(run, folder, overwrite=destination.overwrite),
            self._error_log,
            destination,
            facts={"schedule": describe_schedule(self._schedule) if self._budget is None else str(self._budget)},
            on_saved=partial(self._on_saved, checked_callback("on_saved", on_saved)),
            selection=self._selection,
        )

    def _make_probe(self, system: Collection[str], interval_s: float) -> None:
        sampler = SystemSampler(self._annotations.log, self._annotations.units, system, interval_s)
        self._probe = EnvironmentProbe(self._error_log, sampler, self._selection)

    def _make_loop(self, limit: WindowLimit, *, keeps_events: bool) -> None:
        recording, supervisor = self._recording, self._supervisor
        if self._budget is not None:
            supervisor.record_by_budget(self._budget)
        self._curves.attach(self._trace_writer.rank_and_folder, supervisor.step_consumers)
        actions = StepActions(self._schedule, limit, recording, supervisor)
        self._controller = WindowController(recording, actions, supervisor, self._probe, keeps_events=keeps_events)
        self._results = ProfilerResults(recording, self._controller, is_enabled=self._enabled)
        chores: tuple[Callable[[], None], ...] = (
            self._trace_writer.resolve,
            self._probe.start,
            self._annotations.ranges.drop_finished,
            supervisor.open_journal,
            self._curves.poll,
            recording.memory.flush,
            self._trace_writer.poll,
        )
        if supervisor.budgeted_windows is not None:
            chores = (*chores, supervisor.budgeted_windows.poll)
        self._loop = StepLoop(recording, self._controller, supervisor, chores)

    @property
    def saved_traces(self) -> tuple[Path, ...]:
        """The files written so far, oldest first; after the `with` all of them."""
        if self._owner.is_here:
            self._trace_writer.poll()
        return tuple(self._trace_writer.saved)

    @property
    def saved_snapshots(self) -> tuple[Path, ...]:
        """The memory snapshots written so far, oldest first; after the `with` all of them."""
        if self._owner.is_here:
            self._trace_writer.poll()
        return tuple(self._trace_writer.saved_snapshots)

    # Starting and stopping

    def __enter__(self) -> Self:
        self._begin(is_block=True)
        return self

    def start(self) -> None:
        """Start recording without a `with`; `stop` ends it.

        If another Tracer was started so on this thread and not stopped, as when a notebook's cell is interrupted and
        run again, it ends here, and its recording is saved.

        Raises:
            ProfilerBusyError: Another Tracer's `with` is open, or another thread has started one.
        """
        self._begin(is_block=False)

    def _begin(self, *, is_block: bool) -> None:
        if not self._enabled:
            return
        if self._owner.ids is not None:
            raise UsageError("A Tracer records once; make a new one.")
        _make_way()
        self._controller.prepare(self)
        ids = self._owner.take(self._on_thread_end, is_block=is_block)
        Tracer._live = self
        atexit.register(self._at_exit)
        try:
            begins = self._controller.start()
            self._trace_writer.resolve(timeout_s=_START_S)
            self._probe.start()
            self._annotations.open(ids)
            self._recording.memory.start()
            self._supervisor.begin(self._close)
            self._controller.begin(begins=begins)
            self._counter.begin()
            self._annotations.ranges.begin_step(self._counter.batch)
        except BaseException as error:  # mostly Ctrl-C: the `with` wasn't entered, so __exit__ isn't called
            self._close(f"exception: {type(error).__name__}", error=error)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._enabled and not self._owner.is_forked:
            reason = "end" if kind is None else f"exception: {kind.__name__}"
            try:
                self._close_anywhere(reason, error=error)
            except UsageError as problem:
                if kind is None:
                    raise
                _LOG.warning("%s", problem)  # the program's own exception is worth more

    def stop(self) -> None:
        """Like `close`, under torch.profiler's name; if this Tracer isn't active, the log says so."""
        if not self._enabled or self._owner.is_forked or Tracer._live is self:
            self.close()
            return
        state = "was never started" if self._owner.ids is None else "has ended already"
        other = current()
        active = "" if other is None else f" The active one was started at {other._owner.program_line}."
        _LOG.warning("stop() does nothing: this Tracer %s.%s", state, active)

    def close(self, timeout_s: float | None = None) -> None:
        """End the recording, and wait until its traces are written, like the end of the `with`.

        On another thread than the one that started it, this waits until that thread ends a step, where it can stop
        torch's profiler.

        Args:
            timeout_s: The maximum wait for the traces, by default two minutes. A process that outlives this one writes
                the rest.

        Raises:
            UsageError: On another thread, and the one that started it ends no step in time. The recording ends when
                it does, or when that thread ends.
        """
        if self._enabled and self._owner.ids is not None and not self._owner.is_forked:
            self._close_anywhere("end", timeout_s)

    def _close_anywhere(self, reason: str, timeout_s: float | None = None, error: BaseException | None = None) -> None:
        if self._owner.ids is None:
            self._owner.check("end")
        elif self._owner.is_here or Tracer._live is not self or self._has_stopped_elsewhere(reason):
            self._close(reason, timeout_s, error=error)
        else:
            raise UsageError(
                f"Only the thread that started this Tracer, at {self._owner.program_line}, can stop torch's profiler. "
                "The recording ends when that thread ends a step, or ends itself. To record on request of any thread, "
                "give the Tracer schedule=on_request, and call request() instead of start() and stop()."
            )

    def _has_stopped_elsewhere(self, reason: str) -> bool:
        """Tell the thread that owns the profiler to stop it at the end of its step; return whether it did."""
        self._supervisor.end_after_step(self._supervisor.end_signal or reason)
        deadline = time.monotonic() + PATIENCE_S
        while not self._controller.has_stopped:
            if not self._counter.has_stepped or not self._owner.is_thread_alive or time.monotonic() > deadline:
                return False
            time.sleep(_PAUSE_S)
        return True

    def _on_thread_end(self) -> None:
        """Stop a recording that its thread, which alone can, left open."""
        if Tracer._live is self:
            if self._supervisor.end_signal is None:
                _LOG.warning(
                    "The thread that started a Tracer at %s has ended without stop(): the recording ends here.",
                    self._owner.program_line,
                )
            self._close("thread end")

    def _at_exit(self) -> None:
        """Stop a recording that the program left open: otherwise torch crashes while the interpreter shuts down."""
        if self._owner.is_here or (self._owner.is_alive and self._has_stopped_elsewhere("exit")):
            self._close("exit", error=uncaught_exception())
        elif self._owner.is_alive:
            problem = (
                f"The window is lost: the thread that started the Tracer, at {self._owner.program_line}, didn't stop "
                "it, and no other thread can stop torch's profiler. schedule=on_request with request() works from any "
                "thread."
            )
            self._close("exit", leaves_profiler=problem, error=uncaught_exception())

    def _close(
        self,
        reason: str,
        timeout_s: float | None = None,
        *,
        leaves_profiler: str | None = None,
        error: BaseException | None = None,
    ) -> None:
        """Close it, once.

        Args:
            reason: Why.
            timeout_s: The maximum wait for the traces.
            leaves_profiler: Why torch's profiler can't be stopped; None if it can.
            error: The exception that ends the program's block, or the program.
        """
        trace_writer, supervisor = self._trace_writer, self._supervisor
        with supervisor.hold_signals():  # so that a signal can't end the process before everything is reported
            if not self._owner.release():
                return  # a signal closed it, or the program
            atexit.unregister(self._at_exit)
            trace_writer.reason = supervisor.end_signal or reason
            facts: dict[str, Any] = {}
            with self._error_log.catch("How the recording ended is unknown"):  # an exception may be of any kind
                frame = sys._getframe(1) if reason.startswith("sig") else None
                facts = ending(error or sys.exc_info()[1], frame, supervisor.signal_ns)
                supervisor.note("ending", facts)
            if leaves_profiler is None:
                self._controller.stop()
            else:
                self._controller.leave(leaves_profiler)
            Tracer._live = None  # not before: no other Tracer may start in a callback
            self._recording.memory.close()
            is_good = "exception" not in facts and not trace_writer.reason.startswith("sig")
            supervisor.end(trace_writer.reason, is_good=is_good, calls=facts.get("calls", ()))
            no_window_reason = self._no_window_reason()
            trace_writer.end(
                reason=trace_writer.reason,
                problem=no_window_reason,
                steps_completed=self._counter.batch,
                ending=facts,
            )
        supervisor.uninstall()
        trace_writer.close(timeout_s)
        supervisor.release()
        with self._error_log.catch("The curves of steps couldn't be closed"):
            self._curves.close()
        self._probe.close()  # last: it may wait, and a signal may come meanwhile
        if no_window_reason is not None:
            _LOG.warning("%s.", no_window_reason)
        elif trace_writer.lost_count > 1:
            _LOG.warning("%d recordings were lost, %d saved.", trace_writer.lost_count, len(trace_writer.saved))

    def _no_window_reason(self) -> str | None:
        """Return why no window was recorded although nothing failed; None if one was recorded, or something failed."""
        if self._trace_writer.recorded or self._error_log.count:
            return None
        if self._schedule is on_request and self._supervisor.budgeted_windows is None:
            return None
        if not self._selection.is_selected:
            return self._selection.empty_reason(current_rank_info())
        windows = self._supervisor.budgeted_windows
        return self._controller.actions.no_window_reason() if windows is None else windows.no_window_reason()

    def _on_saved(
        self, callback: Callable[[Path, Mapping[str, Any]], object] | None, path: Path, window: Mapping[str, Any]
    ) -> None:
        """Add a saved trace to the curves and to what recording cost, and call the program's callback."""
        self._curves.window(path, int(window.get("span") or 0))
        if self._supervisor.budgeted_windows is not None:
            self._supervisor.budgeted_windows.add_saved(window)
        if callback is not None:
            callback(path, window)

    # Steps and epochs

    @property
    def progress(self) -> Progress:
        """The training's progress."""
        return self._counter.progress

    @property
    def completed_steps(self) -> int:
        """How many steps are complete, including those before a resumed training continued."""
        return self._counter.batch

    @property
    def step_num(self) -> int:
        """The same, under torch.profiler's name."""
        return self._counter.batch

    @property
    def schedule_step(self) -> int:
        """The current step's number for the schedule: 0 where this Tracer, or its training, started.

        Set it to continue a schedule elsewhere, as torch.profiler's programs set `step_num` when they resume.
        """
        return self._counter.here

    @schedule_step.setter
    def schedule_step(self, step: int) -> None:
        self._loop.continue_at(step)

    def steps(self, loader: Iterable[T], *, samples: Count[T] = None, tokens: Count[T] = None) -> Iterator[T]:
        """Yield the loader's batches; a step is complete when the loop requests the next one.

        When there are no more, an epoch is complete. The wait for each batch is recorded as torch's DataLoader does.

        Args:
            loader: The batches.
            samples: How many samples a batch has, or a function of the batch that returns it.
            tokens: The same for tokens.
        """
        return self._loop.steps(loader, samples, tokens) if self._enabled else iter(loader)

    def step(self, *, samples: int | None = None, tokens: int | None = None) -> None:
        """End a step. Call it at the top level of a loop, where no other range is open.

        Args:
            samples: How many samples its batch had.
            tokens: How many tokens.

        Raises:
            UsageError: On another thread, outside the Tracer's `with`, or in a hook of an optimizer.
        """
        if self._enabled:
            self._loop.end_step(samples, tokens)

    def begin_step(self) -> None:
        """Begin a step, if it doesn't begin with the end of the previous one; does nothing if a step is open."""
        if self._enabled:
            self._loop.begin_step()

    def epoch(self, *, goes_on: bool = True) -> None:
        """End an epoch. Does nothing if no step was complete since the last one, because `steps` ends epochs too.

        Args:
            goes_on: Whether the next step has begun already: False if `begin_step` will begin it.
        """
        if self._enabled:
            self._loop.end_epoch(goes_on=goes_on)

    # Annotations

    def marker(
        self,
        label: str,
        *,
        categories: Collection[str] = (),
        actions: Collection[ProfilerAction] | None = None,
        args: Mapping[str, Any] | None = None,
    ) -> Marker:
        """Return a range to use in a `with` or as a decorator, any number of times, also nested and on any thread.

        Args:
            label: Its name; any text.
            categories: The groups that it belongs to.
            actions: The phases of the schedule in which a range that begins is recorded; by default warm-up and
                recording.
            args: More facts about each range, which then gets a separate track.
        """
        return Marker(self._annotations, label, categories=categories, actions=actions, args=args)

    def instant(self, name: str, *, categories: Collection[str] = (), **args: Any) -> None:
        """Record an instant: a checkpoint, a restart, a change of the learning rate."""
        self._annotations.instant(name, tuple(categories), args)

    def counter(
        self, name: str, values: Mapping[str, Any] | None = None, /, *, unit: str | None = None, **more: Any
    ) -> None:
        """Record the current values of a counter, one per series: numbers, or tensors with one element.

        A tensor on a device is read only when the window is saved, to avoid a synchronization.

        Args:
            name: The name of the counter.
            values: The value of each series.
            unit: Their unit, such as `bytes`, `bytes/s`, `fraction`, or any other word.
            more: More values.
        """
        self._annotations.counter(name, {**(values or {}), **more}, unit)

    def add_trace(self, trace: str | os.PathLike[str] | Iterable[Mapping[str, Any]]) -> None:
        """Add another tool's trace to the next saved window, as separate processes.

        Args:
            trace: A file in Chrome's format, plain or gzip, which must exist until the window is written; or events in
                that format, with `ts` in µs since 1970.
        """
        self._annotations.add_trace(trace)

    def request(
        self, steps: int = 3, *, warmup: int = 1, at: int | None = None, memory: bool = False, **options: bool
    ) -> None:
        """Record the next steps on all ranks, in addition to the schedule; from any thread.

        If a requested window is planned or open, it counts for this request too.

        Args:
            steps: How many steps to record.
            warmup: How many steps before them to profile and discard.
            at: The first step; by default as soon as all ranks can know of the request.
            memory: Record the history of allocations too, and save a memory snapshot at the end.
            options: Options that differ from the Tracer's, such as `with_stack=True`.

        Raises:
            UsageError: Invalid numbers, or a Tracer with `requests=False`.
        """
        request = Request(steps=steps, warmup=warmup, at=at, memory=memory, options=options, reason="request")
        self._supervisor.request(request)

    # Metadata

    def add_metadata(self, key: str, value: str) -> None:
        """Add a text to the next saved window, as a top-level key of its file.

        Raises:
            UsageError: The key is reserved.
        """
        self._recording.metadata.add(key, value)

    def add_metadata_json(self, key: str, value: str) -> None:
        """Like `add_metadata`, for any value, as JSON.

        Raises:
            UsageError: The key is reserved, or the value isn't JSON.
        """
        self._recording.metadata.add_json(key, value)

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Like `add_metadata_json`, for all windows saved from now on.

        Raises:
            UsageError: The key is reserved, or the value isn't JSON.
        """
        self._recording.metadata.preset_json(key, value)

    # torch.profiler

    def set_custom_trace_id_callback(self, callback: Callable[[], str] | None) -> None:
        """Set a function that returns the ids of later windows; None gives a window the same id on all ranks."""
        self._recording.callbacks.trace_id = checked_callback("callback", callback)

    def get_trace_id(self) -> str | None:
        """Return the id of the last window that began; None before the first."""
        return self._controller.last_trace_id

    def export_chrome_trace(self, path: str | os.PathLike[str], use_python_export: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002  as in torch
        """Write the last window's trace also to a file of your choice, compressed if its name ends in `.gz`.

        In `on_trace_ready` and `on_window` that is the window they are called for. Later, the saved trace is copied; if
        it is still being written, this waits. If there is none, the log says why.

        Args:
            path: The file; an existing one is replaced.
            use_python_export: As in torch, but without effect: the recorder writes the file.

        Raises:
            UsageError: On another thread while it records, or before the Tracer's `with`.
        """
        if self._enabled:
            if not self._controller.has_ended:
                self._owner.check("call export_chrome_trace()")
            self._controller.last_window.export_or_log(Path(path))

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[Any]) -> None:  # noqa: FBT001  as in torch
        """Stop or resume collecting some activities within a window; see torch.profiler.profile.

        Raises:
            UsageError: On another thread, or outside the Tracer's `with`.
        """
        if self._enabled:
            self._owner.check("change what is collected")
            if self._controller.profiler is not None:
                self._controller.profiler.toggle_collection_dynamic(enable, activities)

    def key_averages(self, *args: Any, **kwargs: Any) -> Any:
        """Return the last window's operators by name, none if there is no window; see torch.profiler.profile.

        Raises:
            UsageError: It isn't in memory.
        """
        return self._results.key_averages(*args, **kwargs)

    def events(self) -> Any:
        """Return the last window's events, none if there is no window; see torch.profiler.profile.

        Raises:
            UsageError: It isn't in memory.
        """
        return self._results.events()

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write the last window's call stacks as lines for flame graphs; see torch.profiler.profile.

        Raises:
            UsageError: It isn't in memory, or has no call stacks.
        """
        self._results.export_stacks(path, metric)

    def export_memory_timeline(self, path: str | os.PathLike[str], device: str | None = None) -> None:
        """Write the last window's memory timeline; see torch.profiler.profile.

        Raises:
            UsageError: It isn't in memory, or lacks an option that is needed.
        """
        self._results.export_memory_timeline(path, device)


def current() -> Tracer | None:
    """Return the active Tracer of this process; None if there is none."""
    tracer = Tracer._live
    return tracer if tracer is not None and tracer._owner.is_alive else None


def _make_way() -> None:
    """End the active Tracer, if there is one, for another one.

    Raises:
        ProfilerBusyError: Its `with` is open, another thread owns it, or it is calling the program.
    """
    tracer = current()
    if tracer is None:
        return
    owner, program_line, is_over = tracer._owner, tracer._owner.program_line, tracer._controller.has_stopped
    is_abandoned = owner.is_here and not owner.is_block and not tracer._controller.last_window.is_in_callback
    if not is_over and not is_abandoned:
        raise ProfilerBusyError(
            "Another Tracer is active in this process; there can be only one. "
            f"It was started at {program_line}; kinetoscope.current().stop() ends it."
        )
    if not is_over:
        _LOG.warning(
            "The Tracer that was started at %s wasn't stopped. It ends now, since another one starts; its recording is "
            "saved.",
            program_line,
        )
    tracer._close("another Tracer")


def _schedule_and_budget(schedule: Schedule | None, budget: str | None) -> tuple[Schedule | None, Budget | None]:
    """Return the schedule, and the budget or None; with one, requests alone begin windows.

    Raises:
        UsageError: It isn't one, or there is a schedule, too.
    """
    if budget is None:
        return schedule, None
    if schedule is not None and schedule is not on_request:
        raise UsageError("budget=… chooses the steps to record, and so does schedule=…: give the Tracer one of them.")
    return on_request, budget_from(budget)


def _window_callbacks(
    on_trace_ready: Callable[[Tracer], object] | None,
    on_window: Callable[[profile], object] | None,
    trace_id: Callable[[], str] | None,
) -> WindowCallbacks:
    """Return the functions that are called for each window.

    Raises:
        UsageError: One of them isn't callable.
    """
    refuse_trace_handler(on_trace_ready)
    return WindowCallbacks(
        checked_callback("on_trace_ready", on_trace_ready, _FACTORIES),
        checked_callback("on_window", on_window),
        checked_callback("custom_trace_id_callback", trace_id),
    )
