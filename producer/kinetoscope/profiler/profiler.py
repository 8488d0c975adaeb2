"""`profile`: the class of torch.profiler, which records with a `Tracer`; torch's module of this name has it, too.

A `profile` is a torch.profiler.profile for `isinstance`, and for subclasses. But torch's own `__init__` doesn't run for
it: what records is another torch.profiler.profile, which the Tracer makes and drives, and from which all attributes
that aren't here are read.
"""

from __future__ import annotations

import json
import warnings
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any

import torch.profiler
from torch.profiler import ExecutionTraceObserver, ProfilerAction, ProfilerActivity, supported_activities
from torch.profiler import profiler as torch_module

from ..argument_checks import checked_callback, explain_unknown
from ..handler import file_template, local_folder, refuse_trace_handler
from ..output.name_template import TRACE
from ..profiling.options import PROFILER_ARGUMENTS, Options
from ..scheduling.schedule import validate_schedule
from ..tracer import Tracer, current
from .continued_runs import ContinuedRun, continued_run
from .tensorboard import as_tensorboard_handler, tensorboard_trace_handler
from .torch_names import torch_name

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

    from ..profiling.options import Activities
    from ..scheduling.schedule import Schedule

LOGDIR = "runs"
"""Where traces go that no `tensorboard_trace_handler` has a folder for."""

_FLAGS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
_HANDLER = "tensorboard_trace_handler('runs')"
_FACTORIES: dict[object, str] = {
    tensorboard_trace_handler: _HANDLER,
    torch.profiler.tensorboard_trace_handler: _HANDLER,
}
_REPLACEMENTS = {
    **{name: f"kinetoscope.Tracer({name}=…)" for name in signature(Tracer).parameters},
    **dict.fromkeys(("logdir", "log_dir", "dir_name", "worker_name", "use_gzip"), f"on_trace_ready={_HANDLER}"),
    **dict.fromkeys(("wait", "warmup", "active", "repeat", "skip_first"), "schedule=schedule(wait=…, active=…)"),
}


def __getattr__(name: str) -> Any:
    """Return another name of torch.profiler.profiler."""
    return torch_name(__name__, torch_module, name)


class _TorchProfile(torch.profiler.profile):
    """torch's profiler that records for a `profile`, whose subclass may extend how a window begins and ends."""

    def __init__(self, front: profile, **arguments: Any) -> None:
        self._front = front
        super().__init__(**arguments)
        front._torch_profile = self

    def prepare_trace(self) -> None:
        self._front._call_for_torch("prepare_trace")

    def start_trace(self) -> None:
        self._front._call_for_torch("start_trace")

    def stop_trace(self) -> None:
        self._front._call_for_torch("stop_trace")


class profile(torch.profiler.profile):  # noqa: N801  torch's name
    """torch.profiler.profile with its arguments and defaults, recorded by a Tracer.

    It records into `runs`, or where `tensorboard_trace_handler` says. The last window stays in memory until the next
    one begins, as in torch. All profiles of a process with one logdir, and all starts of one profile, record into one
    run. `tracer` is the Tracer that records; None before the start.

    Attributes that only torch's profiler has, such as `profiler`, `action_map` and `use_device`, are those of the one
    that records.

    Raises:
        UsageError: Invalid arguments.
    """

    @explain_unknown("profile", _REPLACEMENTS)
    def __init__(
        self,
        *,
        activities: Activities | None = None,
        schedule: Schedule | None = None,
        on_trace_ready: Callable[[Any], object] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        if use_cuda is not None:
            warnings.warn("`use_cuda` is deprecated, use `activities` instead", FutureWarning, stacklevel=3)
            activities = _with_cuda(activities, is_on=use_cuda)
        self.tracer: Tracer | None = None
        self._torch_profile: _TorchProfile | None = None
        self._requested_activities = None if activities is None else list(activities)
        self.activities = _activity_set(self._requested_activities)
        self.schedule = validate_schedule(schedule) or torch_module._default_schedule_fn
        self.record_steps = schedule is not None
        self.on_trace_ready = checked_callback("on_trace_ready", on_trace_ready, _FACTORIES)
        refuse_trace_handler(on_trace_ready)
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.with_stack, self.with_flops, self.with_modules = with_stack, with_flops, with_modules
        self.experimental_config, self.acc_events = experimental_config, acc_events
        self.execution_trace_observer = execution_trace_observer or _observer_of_the_environment()
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.preset_metadata: dict[str, str] = {}
        self._next_metadata: dict[str, str] = {}
        self._is_running = self._is_block = self._is_called_by_torch = False
        self._step_num = 0
        self._end: BaseException | None = None
        self._earlier_traces: tuple[Path, ...] = ()
        self._saving_handler: object = None
        self._run: ContinuedRun | None = None
        Options(**self._options())  # raises for invalid ones now, not when the training is running

    def __getattr__(self, name: str) -> Any:
        is_initialized = "_torch_profile" in vars(self)
        if is_initialized and not name.startswith("__") and hasattr(self._torch(), name):
            return getattr(self._torch(), name)
        hint = f"; its `tracer` has, once it has started: tracer.{name}" if hasattr(Tracer, name) else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    def _torch(self) -> _TorchProfile:
        """Return torch's profiler that records; before the start, one that never does."""
        if self._torch_profile is None:
            arguments = Options(**self._options()).arguments(str)
            schedule = self.schedule if self.record_steps else None
            return _TorchProfile(self, schedule=schedule, **arguments)
        return self._torch_profile

    def _options(self) -> dict[str, Any]:
        """Return the arguments of torch's profiler as those of `Options`."""
        arguments = PROFILER_ARGUMENTS & vars(self).keys()
        return {
            "activities": self._requested_activities,
            **{flag: getattr(self, flag) for flag in _FLAGS},
            "profiler": {name: getattr(self, name) for name in sorted(arguments)},
        }

    @property  # type: ignore[override]
    def current_action(self) -> ProfilerAction:
        """What the profiler does in this step; RECORD_AND_SAVE may be set to end the window with it."""
        return self._torch().current_action

    @current_action.setter
    def current_action(self, action: ProfilerAction) -> None:
        self._torch().current_action = action  # type: ignore[assignment]

    @property
    def step_num(self) -> int:
        """The number of the current step; a training that resumes may set it."""
        return self.tracer.schedule_step if self.tracer is not None and self._is_running else self._step_num

    @step_num.setter
    def step_num(self, step: int) -> None:
        self._step_num = step
        if self.tracer is not None and self._is_running:
            self.tracer.schedule_step = step

    @property
    def saved_traces(self) -> tuple[Path, ...]:
        """The files written so far, oldest first; after the end all of them."""
        return (*self._earlier_traces, *(() if self.tracer is None else self.tracer.saved_traces))

    # Starting and stopping

    def __enter__(self) -> Self:
        self._is_block = True
        self.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self._end = exc_val
        self.stop()

    def start(self) -> None:
        """Start recording; does nothing if it has started."""
        self._note_end()
        if self._is_running:
            return
        self._earlier_traces = self.saved_traces
        self._run = continued_run(self._logdir())
        self.tracer = self._new_tracer(self._run)
        self.tracer.schedule_step = self._step_num
        for key, value in self.preset_metadata.items():
            self.tracer.preset_metadata_json(key, value)
        while self._next_metadata:
            self.tracer.add_metadata_json(*self._next_metadata.popitem())
        self._is_running = True
        try:
            (Tracer.__enter__ if self._is_block else Tracer.start)(self.tracer)
        except BaseException:
            self._is_running = False
            raise
        self._run.begin(self.tracer)

    def stop(self) -> None:
        """End the recording, and wait until its traces are written; does nothing if it has ended."""
        error, self._end, self._is_block = self._end, None, False
        if not self._is_running or self.tracer is None:
            return
        self.tracer.__exit__(None if error is None else type(error), error, None)
        self._note_end()

    def _note_end(self) -> None:
        """Take over the number of the step if the recording has ended, here or because another one began."""
        if self._is_running and self.tracer is not None and self._run is not None and current() is not self.tracer:
            self._step_num, self._is_running = self.tracer.schedule_step, False
            self._run.end(self.tracer)

    def step(self) -> None:
        """End a step. With a schedule, the first one also starts a recording that hasn't started, as in torch."""
        if self.tracer is None and self.record_steps:
            self.start()
        if self.tracer is not None and self._is_running:
            self.tracer.step()
        else:
            self._step_num += 1

    def _logdir(self) -> Path:
        handler = as_tensorboard_handler(self.on_trace_ready)
        return local_folder(LOGDIR if handler is None else handler.dir_name)

    def _new_tracer(self, run: ContinuedRun) -> Tracer:
        handler = self._saving_handler = as_tensorboard_handler(self.on_trace_ready)
        return Tracer(
            self._logdir(),
            run=run.run,
            file=TRACE if handler is None else file_template(handler.worker_name, use_gzip=handler.use_gzip),
            schedule=self.schedule if self.record_steps else None,
            on_trace_ready=self._on_window,
            profile_class=partial(_TorchProfile, self),
            keep_events=True,
            progress=run.next_progress(),
            **self._options(),
        )

    def _on_window(self, tracer: Tracer) -> None:
        """Call the program's `on_trace_ready`, unless all it does is to save the window."""
        if self._run is not None:
            self._run.last_span = tracer.completed_steps
        if as_tensorboard_handler(self.on_trace_ready) != self._saving_handler or self._saving_handler is None:
            self._trace_ready()

    # How a window begins and ends: torch's profiler calls these, and what a subclass adds to them

    def prepare_trace(self) -> None:
        """Prepare a window; if the program calls this, `start_trace` does it."""
        if self._is_called_by_torch:
            super(_TorchProfile, self._torch()).prepare_trace()

    def start_trace(self) -> None:
        """Begin a window; if the program calls this, start recording."""
        if self._is_called_by_torch:
            super(_TorchProfile, self._torch()).start_trace()
        else:
            self.start()

    def stop_trace(self) -> None:
        """End a window; if the program calls this, end the recording."""
        if self._is_called_by_torch:
            super(_TorchProfile, self._torch()).stop_trace()
        else:
            self.stop()

    def _call_for_torch(self, method: str) -> None:
        self._is_called_by_torch = True
        try:
            getattr(self, method)()
        finally:
            self._is_called_by_torch = False

    # Results and metadata

    def key_averages(self, *args: Any, **kwargs: Any) -> Any:
        """Return the last window's operators by name; see torch.profiler.profile."""
        return self._running_tracer().key_averages(*args, **kwargs)

    def events(self) -> Any:
        """Return the last window's events; see torch.profiler.profile."""
        return self._running_tracer().events()

    def export_chrome_trace(self, path: str | os.PathLike[str], use_python_export: bool = False) -> None:  # noqa: FBT001, FBT002  as in torch
        """Write the last window's trace also to a file of your choice; see `Tracer.export_chrome_trace`."""
        self._running_tracer().export_chrome_trace(path, use_python_export)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write the last window's call stacks as lines for flame graphs; see torch.profiler.profile."""
        self._running_tracer().export_stacks(path, metric)

    def export_memory_timeline(self, path: str | os.PathLike[str], device: str | None = None) -> None:
        """Write the last window's memory timeline; see torch.profiler.profile."""
        self._running_tracer().export_memory_timeline(path, device)

    def _running_tracer(self) -> Tracer:
        """Return the Tracer.

        Raises:
            AssertionError: There is none yet; torch's exception for this.
        """
        if self.tracer is None:
            raise AssertionError("The profiler must have started before its results can be read.")
        return self.tracer

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[Any]) -> None:  # noqa: FBT001  as in torch
        """Stop or resume collecting some activities within a window; see torch.profiler.profile."""
        if self.tracer is not None and self._is_running:
            self.tracer.toggle_collection_dynamic(enable, activities)

    def add_metadata(self, key: str, value: str) -> None:
        """Add a text to the next saved window; see `Tracer.add_metadata`."""
        self.add_metadata_json(key, json.dumps(str(value)))

    def add_metadata_json(self, key: str, value: str) -> None:
        """Add a value, as JSON, to the next saved window; see `Tracer.add_metadata_json`."""
        if self.tracer is not None and self._is_running:
            self.tracer.add_metadata_json(key, value)
        else:
            self._next_metadata[key] = value

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Add a value, as JSON, to all windows saved from now on; see `Tracer.preset_metadata_json`."""
        self.preset_metadata[key] = value
        if self.tracer is not None and self._is_running:
            self.tracer.preset_metadata_json(key, value)

    def set_custom_trace_id_callback(self, callback: Callable[[], str] | None) -> None:
        """Set a function that returns the ids of later windows."""
        self.custom_trace_id_callback = callback
        if self.tracer is not None:
            self.tracer.set_custom_trace_id_callback(callback)

    def get_trace_id(self) -> str | None:
        """Return the id of the last window that began; None before the first."""
        return None if self.tracer is None else self.tracer.get_trace_id()


def _activity_set(activities: Iterable[Any] | None) -> set[ProfilerActivity]:
    """Return the activities as torch's attribute has them."""
    items = supported_activities() if activities is None else activities
    return {activity for item in items for activity in (item if isinstance(item, dict) else [item])}


def _with_cuda(activities: Iterable[Any] | None, *, is_on: bool) -> list[Any]:
    """Return the activities with or without CUDA."""
    items = list(supported_activities() if activities is None else activities)
    if is_on:
        return items if ProfilerActivity.CUDA in _activity_set(items) else [*items, ProfilerActivity.CUDA]
    return [item for item in items if ProfilerActivity.CUDA not in _activity_set([item])]


def _observer_of_the_environment() -> Any:
    """Return the observer that ENABLE_PYTORCH_EXECUTION_TRACE asks for, in torch 2.7 and later; None for none."""
    build = getattr(ExecutionTraceObserver, "build_execution_trace_obs_from_env", None)
    return None if build is None else build()
