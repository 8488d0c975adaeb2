"""Composer's profiler, as its documentation describes it, for any training loop.

    from kinetoscope.composer import JSONTraceHandler, Profiler, State, cyclic_schedule

    profiler = Profiler(schedule=cyclic_schedule(wait=1, warmup=1, active=4), trace_handlers=JSONTraceHandler())
    with State(run_name="my-run", profiler=profiler) as state:
        for epoch in range(2):
            for batch in state.steps(loader):
                with profiler.marker("forward"):
                    ...

Where Composer's code contradicts its documentation, this follows the documentation. Composer itself isn't needed; its
Trainer drives the same classes through `kinetoscope.integrations.composer`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .actions import ProfilerAction
    from .json_traces.handler import JSONTraceHandler
    from .marker import Marker
    from .profiler import Profiler
    from .schedule import cyclic_schedule
    from .state import Callback, State
    from .system_profiler import SystemProfiler
    from .timestamp import Count, Timestamp
    from .torch_profiler import TorchProfiler
    from .trace_handler import TraceHandler

__all__ = [
    "Callback",
    "Count",
    "JSONTraceHandler",
    "Marker",
    "Profiler",
    "ProfilerAction",
    "State",
    "SystemProfiler",
    "Timestamp",
    "TorchProfiler",
    "TraceHandler",
    "cyclic_schedule",
]

_MODULES = {
    "Callback": ".state",
    "Count": ".timestamp",
    "JSONTraceHandler": ".json_traces.handler",
    "Marker": ".marker",
    "Profiler": ".profiler",
    "ProfilerAction": ".actions",
    "State": ".state",
    "SystemProfiler": ".system_profiler",
    "Timestamp": ".timestamp",
    "TorchProfiler": ".torch_profiler",
    "TraceHandler": ".trace_handler",
    "cyclic_schedule": ".schedule",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: the process that writes JSON traces must not import torch."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
