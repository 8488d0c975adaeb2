"""torch.profiler under its own names: a program that imports them from here records with a Tracer.

    from kinetoscope.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

`profile` and `tensorboard_trace_handler` are ours; the others are torch's.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch.profiler import (
    DeviceType,
    ExecutionTraceObserver,
    ProfilerAction,
    ProfilerActivity,
    itt,
    kineto_available,
    record_function,
    schedule,
    supported_activities,
)
from torch.profiler import tensorboard_trace_handler as _torch_s_handler

from .handler import file_template
from .output.name_template import TRACE
from .tracer import Tracer

if TYPE_CHECKING:
    from .profiling.options import Activities
    from .scheduling.schedule import Schedule

__all__ = [
    "DeviceType",
    "ExecutionTraceObserver",
    "ProfilerAction",
    "ProfilerActivity",
    "itt",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

LOGDIR = "runs"
"""Where traces go that no `tensorboard_trace_handler` has a folder for."""


@dataclass(frozen=True)
class TensorBoardHandler:
    """What `tensorboard_trace_handler` returns.

    `profile` records into its folder. A handler of the program's own that calls it writes a file as torch's does.
    """

    dir_name: str
    worker_name: str | None
    use_gzip: bool

    def __call__(self, profiler: Any) -> None:
        """Write a profiler's last window."""
        _torch_s_handler(self.dir_name, self.worker_name, self.use_gzip)(profiler)


def tensorboard_trace_handler(
    dir_name: str | os.PathLike[str],
    worker_name: str | None = None,
    use_gzip: bool = False,  # noqa: FBT001, FBT002  as in torch
) -> TensorBoardHandler:
    """Return what has `profile` record into `dir_name`: `{dir_name}/{run}/{worker_name}.{steps}.pt.trace.json`.

    Args:
        dir_name: The folder that TensorBoard reads.
        worker_name: This process's name; by default its rank, `rank3`.
        use_gzip: Whether traces are compressed.

    Raises:
        UsageError: A name that no file can have.
    """
    file_template(worker_name, use_gzip=use_gzip)
    return TensorBoardHandler(os.fspath(dir_name), worker_name, use_gzip)


def profile(
    *,
    activities: Activities | None = None,
    schedule: Schedule | None = None,
    on_trace_ready: Callable[[Any], object] | None = None,
    record_shapes: bool = False,
    profile_memory: bool = False,
    with_stack: bool = False,
    with_flops: bool = False,
    with_modules: bool = False,
    experimental_config: object = None,
    execution_trace_observer: object = None,
    acc_events: bool = False,
    use_cuda: bool | None = None,
    custom_trace_id_callback: Callable[[], str] | None = None,
    post_processing_timeout_s: float | None = None,
) -> Tracer:
    """Return a Tracer with the arguments of torch.profiler.profile, and its defaults.

    It records into `runs`, or where `tensorboard_trace_handler` says. The last window stays in memory until the next
    one begins, as in torch.

    Raises:
        UsageError: Invalid arguments.
    """
    if use_cuda is not None:
        warnings.warn("`use_cuda` is deprecated, use `activities` instead", FutureWarning, stacklevel=2)
        others = set(supported_activities() if activities is None else activities) - {ProfilerActivity.CUDA}  # type: ignore[no-untyped-call]
        activities = others | {ProfilerActivity.CUDA} if use_cuda else others
    place, file = LOGDIR, TRACE
    if isinstance(on_trace_ready, TensorBoardHandler):
        place, file = (
            on_trace_ready.dir_name,
            file_template(on_trace_ready.worker_name, use_gzip=on_trace_ready.use_gzip),
        )
        on_trace_ready = None
    return Tracer(
        place,
        file=file,
        activities=activities,
        schedule=schedule,
        on_trace_ready=on_trace_ready,
        record_shapes=record_shapes,
        profile_memory=profile_memory,
        with_stack=with_stack,
        with_flops=with_flops,
        with_modules=with_modules,
        profiler={
            "experimental_config": experimental_config,
            "execution_trace_observer": execution_trace_observer,
            "acc_events": acc_events,
            "custom_trace_id_callback": custom_trace_id_callback,
            "post_processing_timeout_s": post_processing_timeout_s,
        },
        keep_events=True,
    )
