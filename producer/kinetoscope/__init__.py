"""Records PyTorch profiler traces, one file per rank and window, without hurting the training.

    from kinetoscope import Tracer, cyclic

    with Tracer("runs", schedule=cyclic(wait=10, warmup=2, active=3)) as tracer:
        for batch in tracer.steps(loader):
            with tracer.marker("forward"):
                loss = model(batch)
            ...

Importing the package imports neither torch nor any of its own modules: `kinetoscope.naming` is for readers too.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .errors import ProfilerBusyError, RecorderError, SaveError, ScheduleError, UsageError
    from .handler import trace_handler
    from .schedule import Cyclic, cyclic
    from .tracer import Tracer
    from .triggers import on_request

__version__ = "0.1.0"

__all__ = [
    "Cyclic",
    "ProfilerBusyError",
    "RecorderError",
    "SaveError",
    "ScheduleError",
    "Tracer",
    "UsageError",
    "cyclic",
    "on_request",
    "trace_handler",
]

_MODULES = {
    "Cyclic": ".schedule",
    "ProfilerBusyError": ".errors",
    "RecorderError": ".errors",
    "SaveError": ".errors",
    "ScheduleError": ".errors",
    "Tracer": ".tracer",
    "UsageError": ".errors",
    "cyclic": ".schedule",
    "on_request": ".triggers",
    "trace_handler": ".handler",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
