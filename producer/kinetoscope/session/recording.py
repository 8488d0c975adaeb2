"""What the parts of one Tracer have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..error_log import ErrorLog
from .owner import Owner
from .trace_metadata import TraceMetadata

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch.profiler import profile

    from ..output.trace_writer import TraceWriter
    from ..profiling.annotations import Annotations
    from ..profiling.options import Options
    from ..progress import ProgressCounter
    from .memory_recorder import MemoryRecorder


@dataclass
class WindowCallbacks:
    """The program's functions that are called for each window; None for none.

    Args:
        on_trace_ready: Called with the Tracer when a window is complete.
        on_window: Called with torch's profiler when a window is complete.
        trace_id: Returns the window's trace id.
    """

    on_trace_ready: Callable[[Any], object] | None
    on_window: Callable[[profile], object] | None
    trace_id: Callable[[], str] | None


@dataclass(frozen=True, kw_only=True)
class Recording:
    """One Tracer's recording: what its step loop, its windows, its results and their supervisor work on.

    Args:
        options: What to record.
        counter: The steps and epochs so far.
        annotations: The program's markers and counters, and the ranges of the training's thread.
        trace_writer: Saves windows.
        memory: The history of allocations.
        callbacks: The program's functions.
        error_log: Records errors.
        metadata: The program's own keys of the traces.
        owner: The process and the thread that record.
    """

    options: Options
    counter: ProgressCounter
    annotations: Annotations
    trace_writer: TraceWriter
    memory: MemoryRecorder
    callbacks: WindowCallbacks
    error_log: ErrorLog
    metadata: TraceMetadata = field(default_factory=TraceMetadata)
    owner: Owner = field(default_factory=Owner)
