"""Composer's Profiler: a schedule, and the recorders that follow it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .actions import RECORDING, ProfilerAction
from .marker import Marker, MarkerWriter
from .schedule import action_of
from .state import Callback
from .system_profiler import SystemProfiler
from .torch_profiler import MEMORY_NEEDS, TorchProfiler
from .trace_handler import TraceHandler

if TYPE_CHECKING:
    from .state import State


class Profiler:
    """Records a training according to a schedule.

    Args:
        schedule: Is called before each batch with the state; returns what to do with it; see `cyclic_schedule`.
        trace_handlers: One or several `TraceHandler`, which write the markers.
        sys_prof_cpu: Whether to record CPU utilization.
        sys_prof_memory: Whether to record memory.
        sys_prof_disk: Whether to record disks.
        sys_prof_net: Whether to record networks.
        sys_prof_stats_thread_interval_seconds: Seconds between two samples.
        torch_prof_folder: See `TorchProfiler`, where this and all below have the same names without `torch_prof_`.
        torch_prof_filename: The name of a trace.
        torch_prof_remote_file_name: The name of its remote copy; may be a URL, such as `s3://bucket/path/to/file`.
        torch_prof_memory_filename: The name of the memory timeline; None for none.
        torch_prof_memory_remote_file_name: The name of its remote copy.
        torch_prof_overwrite: Whether the folder may have older traces.
        torch_prof_use_gzip: Whether traces are compressed.
        torch_prof_record_shapes: Sizes of the operators' inputs.
        torch_prof_profile_memory: Allocations and releases.
        torch_prof_with_stack: Call stacks.
        torch_prof_with_flops: Estimates of operations.
        torch_prof_num_traces_to_keep: How many local traces to keep; -1 for all.

    Raises:
        ValueError: The memory timeline needs options that are off.
    """

    def __init__(
        self,
        schedule: Callable[[State], ProfilerAction],
        trace_handlers: TraceHandler | Sequence[TraceHandler] = (),
        sys_prof_cpu: bool = True,
        sys_prof_memory: bool = False,
        sys_prof_disk: bool = False,
        sys_prof_net: bool = False,
        sys_prof_stats_thread_interval_seconds: float = 0.5,
        torch_prof_folder: str = "{run_name}/torch_traces",
        torch_prof_filename: str = "rank{rank}.{batch}.pt.trace.json",
        torch_prof_remote_file_name: str | None = "{run_name}/torch_traces/rank{rank}.{batch}.pt.trace.json",
        torch_prof_memory_filename: str | None = None,
        torch_prof_memory_remote_file_name: str
        | None = "{run_name}/torch_memory_traces/rank{rank}.{batch}.pt.memory_trace.html",
        torch_prof_overwrite: bool = False,
        torch_prof_use_gzip: bool = False,
        torch_prof_record_shapes: bool = False,
        torch_prof_profile_memory: bool = True,
        torch_prof_with_stack: bool = False,
        torch_prof_with_flops: bool = True,
        torch_prof_num_traces_to_keep: int = -1,
    ) -> None:
        self.schedule = schedule
        self._markers: dict[str, Marker] = {}
        self.system_profiler = (
            SystemProfiler(
                sys_prof_cpu, sys_prof_memory, sys_prof_disk, sys_prof_net, sys_prof_stats_thread_interval_seconds
            )
            if sys_prof_cpu or sys_prof_memory or sys_prof_disk or sys_prof_net
            else None
        )
        options = {
            "record_shapes": torch_prof_record_shapes,
            "profile_memory": torch_prof_profile_memory,
            "with_stack": torch_prof_with_stack,
            "with_flops": torch_prof_with_flops,
        }
        missing = [name for name in MEMORY_NEEDS if not options[name]]
        if torch_prof_memory_filename is not None and missing:
            arguments = ", ".join(f"torch_prof_{name}=True" for name in missing)
            raise ValueError(f"torch_prof_memory_filename needs {arguments}.")
        self.torch_profiler = None
        if any(options.values()):
            self.torch_profiler = TorchProfiler(
                torch_prof_folder,
                torch_prof_filename,
                torch_prof_remote_file_name,
                memory_filename=torch_prof_memory_filename,
                memory_remote_file_name=torch_prof_memory_remote_file_name,
                overwrite=torch_prof_overwrite,
                use_gzip=torch_prof_use_gzip,
                num_traces_to_keep=torch_prof_num_traces_to_keep,
                **options,
            )

        self._writer = MarkerWriter(self.torch_profiler)
        self.trace_handlers = trace_handlers

    @property
    def action(self) -> ProfilerAction:
        """The action of the current batch, or of the next one."""
        return self._writer.action

    @action.setter
    def action(self, action: ProfilerAction) -> None:
        self._writer.action = action

    @property
    def trace_handlers(self) -> Sequence[TraceHandler]:
        """The handlers that write the markers."""
        return self._writer.trace_handlers

    @trace_handlers.setter
    def trace_handlers(self, handlers: TraceHandler | Sequence[TraceHandler]) -> None:
        self._writer.trace_handlers = [handlers] if isinstance(handlers, TraceHandler) else list(handlers)

    @property
    def state(self) -> State:
        """The training's state.

        Raises:
            RuntimeError: No state is bound yet.
        """
        if self._writer.state is None:
            raise RuntimeError("This Profiler has no state yet: call bind_to_state(), or pass it to a State.")
        return self._writer.state

    def bind_to_state(self, state: State) -> None:
        """Record the training of this state. `State(profiler=…)` calls it."""
        self._writer.state, state.profiler = state, self
        # The clock first, so that all others see the batch's action; torch's profiler before the handlers of its files.
        state.callbacks[:0] = [
            _Clock(self),
            *([self.torch_profiler] if self.torch_profiler else []),
            *([self.system_profiler] if self.system_profiler else []),
            *self.trace_handlers,
        ]

    def update_action(self) -> None:
        """Get the next batch's action from the schedule; after the last batch of an epoch there is none."""
        length = self.state.dataloader_len
        if length is not None and self.state.timestamp.batch_in_epoch >= length:
            self.action = ProfilerAction.SKIP
            return
        self.action = action_of(self.schedule, self.state)

    def marker(
        self,
        name: str,
        actions: Sequence[ProfilerAction] = RECORDING,
        record_instant_on_start: bool = False,
        record_instant_on_finish: bool = False,
        categories: Sequence[str] = (),
    ) -> Marker:
        """Return the marker of this name; the first call makes it.

        The arguments of a later call replace those of earlier ones, unless they are None.

        Args:
            name: The name of the marker.
            actions: The actions during which it is recorded.
            record_instant_on_start: Whether to record an instant at its begin, too.
            record_instant_on_finish: Whether to record an instant at its end, too.
            categories: The groups that it belongs to.

        Raises:
            RuntimeError: The Profiler isn't bound to a state.
        """
        _ = self.state
        marker = self._markers.get(name)
        if marker is None:
            marker = self._markers[name] = Marker(
                self._writer,
                name,
                actions,
                record_instant_on_start=record_instant_on_start,
                record_instant_on_finish=record_instant_on_finish,
                categories=categories,
            )
        else:
            marker.actions = marker.actions if actions is RECORDING else frozenset(actions)
            marker.categories = tuple(categories) or marker.categories
            marker.record_instant_on_start |= record_instant_on_start
            marker.record_instant_on_finish |= record_instant_on_finish
        return marker

    def record_chrome_json_trace_file(self, filepath: str | Path) -> None:
        """Pass a trace of another profiler on to all trace handlers."""
        for handler in self.trace_handlers:
            handler.process_chrome_json_trace_file(Path(filepath))


class _Clock(Callback):
    """Calls the schedule once for each batch."""

    def __init__(self, profiler: Profiler) -> None:
        self._profiler = profiler

    def init(self, state: State, logger: Any = None) -> None:
        self._profiler.update_action()

    def batch_end(self, state: State, logger: Any = None) -> None:
        self._profiler.update_action()

    def epoch_end(self, state: State, logger: Any = None) -> None:
        self._profiler.update_action()

    def close(self, state: State, logger: Any = None) -> None:
        self._profiler.action = ProfilerAction.SKIP
