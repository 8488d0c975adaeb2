"""torch.profiler under its own names: a program that imports them from here records with a Tracer.

    from kinetoscope.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

`profile` and `tensorboard_trace_handler` are ours; all others are those of the installed torch.
"""

from __future__ import annotations

from typing import Any

import torch.profiler
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
from torch.profiler.profiler import PROFILER_STEP_NAME, _KinetoProfile

from .profiler import profile
from .tensorboard import tensorboard_trace_handler
from .torch_names import torch_name

__all__ = [
    "PROFILER_STEP_NAME",
    "DeviceType",
    "ExecutionTraceObserver",
    "ProfilerAction",
    "ProfilerActivity",
    "_KinetoProfile",
    "itt",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


def __getattr__(name: str) -> Any:
    """Return a name that only some versions of torch.profiler have."""
    return torch_name(__name__, torch.profiler, name)
