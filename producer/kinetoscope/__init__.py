"""Records PyTorch profiler traces, one file per rank and window, without hurting the training.

    from kinetoscope import Tracer, cyclic

    with Tracer("runs", schedule=cyclic(wait=10, warmup=2, active=3)) as tracer:
        for batch in tracer.steps(loader):
            with tracer.marker("forward"):
                loss = model(batch)
            ...

Where things are; each imports only from below:

    selftest/        the command that kills small trainings to see what survives on a disk
    integrations/    callbacks for Lightning, Transformers, Accelerate, MMEngine, Composer, torchtitan, IPython
    composer/        MosaicML Composer's Profiler and its parts, recorded by a Tracer
    profiler/        torch.profiler under its own names, recorded by a Tracer
    tracer.py        the facade: makes the parts of a recording and hands calls to them
    handler.py       `trace_handler`, for programs that keep their own torch.profiler
    session/         a recording: counts steps, opens and closes windows, watches over signals, requests and hangs
    profiling/       torch.profiler itself: the recorder, ranges and annotations, other profilers in the process
    journal/         a process's journal while it runs, its status, and recovery after a crash
    sampling/        clocks between machines, system counters, curves of steps
    signals/         ending signals, steps that hang, stacks and states of threads, the background thread
    output/          from the profiler's file to a trace: spool, writer process, merged events, `run.json`, uploads
    scheduling/      the schedule, and windows on request that all ranks agree on
    job/             the rank, the job's store, the run's name and attempt, the mesh, which ranks record
    *.py             the base: errors, file names, atomic and safe files, events, progress

Importing the package imports neither torch nor the recorder: the viewer uses `kinetoscope.naming` without them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ._version import __version__

if TYPE_CHECKING:
    from .errors import ProfilerBusyError, RecorderError, SaveError, ScheduleError, UsageError
    from .handler import trace_handler
    from .profiling.memory_history import MemoryHistory
    from .scheduling.schedule import Cyclic, cyclic, on_request
    from .tracer import Tracer, current

__all__ = [
    "Cyclic",
    "MemoryHistory",
    "ProfilerBusyError",
    "RecorderError",
    "SaveError",
    "ScheduleError",
    "Tracer",
    "UsageError",
    "__version__",
    "current",
    "cyclic",
    "on_request",
    "trace_handler",
]

_MODULES = {
    "Cyclic": ".scheduling.schedule",
    "MemoryHistory": ".profiling.memory_history",
    "ProfilerBusyError": ".errors",
    "RecorderError": ".errors",
    "SaveError": ".errors",
    "ScheduleError": ".errors",
    "Tracer": ".tracer",
    "UsageError": ".errors",
    "current": ".tracer",
    "cyclic": ".scheduling.schedule",
    "load_ipython_extension": ".integrations.ipython",  # what `%load_ext kinetoscope` calls
    "on_request": ".scheduling.schedule",
    "trace_handler": ".handler",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in _MODULES:
        hint = f"; to read traces: kinetoscope_tb.{name}" if name in ("open", "traces") else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
    value = getattr(import_module(_MODULES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
