"""What a trace has: predicates for `View.needs`, each looked up once, since the page asks for all with every state.

Captures of its graphs may have what MAY_BE_IN_CAPTURES lists where the trace itself has none.
"""

from __future__ import annotations

import polars as pl

from ...errors import KinetoscopeError
from ...names.iterations import show_iterations
from ...trace import Trace
from ...trace.model import LIGHTNING
from ...trace.results import once_per_trace
from ...trace.row_filters import is_operator
from ..calls.matrix_work import FORMULAS


@once_per_trace
def has_work(trace: Trace) -> bool:
    """Whether there is any host range, call or device row."""
    return any(frame.height for frame in (trace.host_events, trace.launches, trace.device_events))


@once_per_trace
def has_lanes(trace: Trace) -> bool:
    """Whether there is any event with a duration."""
    is_others = trace.meta.foreign_writer is not None and bool((trace.others["dur_ns"] >= 0).any())
    return is_others or has_work(trace) or has_python_calls(trace)


@once_per_trace
def has_operators(trace: Trace) -> bool:
    """Whether there is any operator."""
    has_own = bool(is_operator(trace).any())
    return has_own or any(map(has_operators, trace.captures.traces))


@once_per_trace
def has_input_shapes(trace: Trace) -> bool:
    """Whether there is any operator with the shapes of its inputs."""
    has_own = trace.host_events["input_shapes"].null_count() < trace.host_events.height
    return has_own or any(map(has_input_shapes, trace.captures.traces))


@once_per_trace
def has_rated_operators(trace: Trace) -> bool:
    """Whether there is any operator whose FLOPs can be counted, or kernels and the shapes that tell their bytes."""
    has_own = bool(trace.host_events["name"].unique().cast(pl.String).is_in(list(FORMULAS)).any())
    has_bytes = has_kernels(trace) and has_input_shapes(trace)
    return has_own or has_bytes or any(map(has_rated_operators, trace.captures.traces))


@once_per_trace
def has_annotations(trace: Trace) -> bool:
    """Whether there is any annotation of a host thread."""
    return bool((trace.host_events["kind"] == "annotation").any())


@once_per_trace
def has_modules(trace: Trace) -> bool:
    """Whether there is any call of a module."""
    names = trace.host_events["name"].unique().cast(pl.String)
    has_own = bool((trace.python_calls["module_id"] >= 0).any() or names.str.starts_with(LIGHTNING).any())
    return has_own or any(map(has_modules, trace.captures.traces))


def has_python_calls(trace: Trace) -> bool:
    """Whether there is any call of a Python function."""
    return not trace.python_calls.is_empty()


@once_per_trace
def has_stacks(trace: Trace) -> bool:
    """Whether there are Python calls around operators."""
    texts = trace.host_events["call_stack"].unique().cast(pl.String)
    return has_python_calls(trace) or bool((texts.drop_nulls() != "").any())


def has_device_events(trace: Trace) -> bool:
    """Whether there is any kernel, copy or fill."""
    return not trace.device_events.is_empty()


@once_per_trace
def has_kernels(trace: Trace) -> bool:
    """Whether there is any kernel."""
    return bool((trace.device_events["kind"] == "kernel").any())


@once_per_trace
def has_copies(trace: Trace) -> bool:
    """Whether there is any device row that isn't a kernel."""
    return bool((trace.device_events["kind"] != "kernel").any())


@once_per_trace
def has_linked_work(trace: Trace) -> bool:
    """Whether there is any device row of which the launching call is known."""
    return bool((trace.device_events["launch"] >= 0).any())


@once_per_trace
def has_launches(trace: Trace) -> bool:
    """Whether there is any call that launches device work."""
    return has_linked_work(trace) or any(_calls(trace, name) for name in ("Launch", "Memcpy", "Memset"))


@once_per_trace
def has_graphs(trace: Trace) -> bool:
    """Whether there is any launch of a CUDA or HIP graph."""
    return bool((trace.device_events["graph_id"] >= 0).any()) or _calls(trace, "GraphLaunch")


@once_per_trace
def has_marks(trace: Trace) -> bool:
    """Whether there is any mark of a graph's node."""
    notes = trace.captures.node_notes
    frames = [trace.device_events] if notes is None else [trace.device_events, notes]
    return any(frame["mark"].null_count() < frame.height for frame in frames)


@once_per_trace
def has_communication(trace: Trace) -> bool:
    """Whether there is device or host communication with other ranks."""
    return any(bool(rows["is_communication"].any()) for rows in (trace.device_events, trace.host_events))


def has_memory(trace: Trace) -> bool:
    """Whether there is any allocation or release."""
    return not trace.memory.is_empty()


@once_per_trace
def has_memory_categories(trace: Trace) -> bool:
    """Whether there is any allocation whose category is known: with an address, or in a memory timeline."""
    has_addresses = bool((~trace.memory["address"].is_in([0, -1])).any())
    return has_addresses or trace.meta.top.get("memoryTimeline") is True


def has_snapshot(trace: Trace) -> bool:
    """Whether there is any event or segment of a memory snapshot."""
    return not (trace.snapshot_events.is_empty() and trace.snapshot_segments.is_empty())


def has_snapshot_alone(trace: Trace) -> bool:
    """Whether there is a memory snapshot, and nothing of a trace."""
    return has_snapshot(trace) and trace.host_events.is_empty() and trace.device_events.is_empty()


def is_trace(trace: Trace) -> bool:
    """Whether it isn't a memory snapshot alone."""
    return not has_snapshot_alone(trace)


@once_per_trace
def has_snapshot_failure(trace: Trace) -> bool:
    """Whether there is any allocation of a memory snapshot that failed."""
    return bool((trace.snapshot_events["action"] == "oom").any())


@once_per_trace
def has_gpu_counters(trace: Trace) -> bool:
    """Whether there is any counter of a device."""
    processes = trace.counters["process"].unique().cast(pl.String)
    return bool(processes.str.contains(r"^GPU \d+ Counters$").any())


@once_per_trace
def has_iterations(trace: Trace) -> bool:
    """Whether there is any iteration of a server, marked or not.

    Raises:
        KinetoscopeError: The user's own pattern of their names isn't one.
    """
    annotations = trace.host_events.select("name", "kind").filter(pl.col("kind") == "annotation")
    frames = (annotations, trace.python_calls, trace.host_events, trace.device_events)
    names = [frame["name"].unique().cast(pl.String).drop_nulls().to_list() for frame in frames]
    try:
        return show_iterations(*names, graphs=_calls(trace, "GraphLaunch"))
    except ValueError as error:
        raise KinetoscopeError(str(error)) from error


def has_device_iterations(trace: Trace) -> bool:
    """Whether there is any iteration of a server, and any work of a device."""
    return has_device_events(trace) and has_iterations(trace)


MAY_BE_IN_CAPTURES = (has_operators, has_input_shapes, has_modules, has_rated_operators, has_marks)
"""What captures, or the notes next to them, may have where the trace itself has none."""


def _calls(trace: Trace, function: str) -> bool:
    names = trace.launches["name"].unique().cast(pl.String)
    return bool(names.str.contains(function, literal=True).any())


def missing_part(trace: Trace) -> str:
    """That a part of a snapshot is missing, as the beginning of a sentence; empty if it is whole."""
    rules = {diagnostic.rule for diagnostic in trace.diagnostics if diagnostic.level == "loss"}
    if not rules:
        return ""
    return "This snapshot is cut" if "truncated" in rules else "Only a part of this snapshot could be read"
