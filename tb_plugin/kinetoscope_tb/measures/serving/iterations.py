"""Iterations of a server: each is one pass through the model for the requests that the scheduler chose.

Three sources, the first that has any: annotations that the server wrote, its Python function that runs an iteration,
and the order of calls and kernels (inference).

An iteration lasts on the host until the next one begins, since a server samples and schedules in between; its *cycle*
is the window of such a step (trace/steps.py): it ends with the device work launched until then, and begins no earlier
than the previous cycle ended. So cycles leave no gap. Its *window* ends as soon as the host has left what marks it and
the device work launched inside that has ended.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather, map_categories, scatter_add
from ...arrays.nesting import nearest
from ...names.calls import launches_graph
from ...names.iterations import SERVERS, IterationName, iteration_function, iteration_name
from ...names.kernel_families import attention_phase
from ...trace.model import Trace
from ...trace.results import once_per_recording
from ...trace.row_filters import device_ends
from ...trace.steps import HostSteps, step_windows
from ..recording.contents import has_iterations
from .inference import inferred_extents
from .steadiness import parts

SOURCES = ("annotation", "Python call", "structure")
CONFIDENCE = {"annotation": "recorded", "Python call": "high", "structure": "medium"}

_MARKS = {
    "name": pl.String,  # of the annotation or function; null if inferred
    "frame": pl.String,  # host_events or python_calls, where its row is; null if inferred
    "row": pl.Int32,
    "engine": pl.String,
    "source": pl.String,
    "phase": pl.String,
    "batch": pl.Int64,  # null: not known
    "tokens": pl.Int64,
    "thread": pl.Int32,
    "host_start_ns": pl.Int64,
    "host_end_ns": pl.Int64,
    "is_cut": pl.Boolean,
}


@dataclass(frozen=True)
class Iterations:
    """The iterations of a recording.

    Args:
        frame: One row per iteration in order of time: _MARKS, and start_ns, end_ns (its window), next_ns (the end of
            its cycle), device_rows, graph_launches (both of the cycle), part (steadiness.PARTS).
        device: The iteration of each row of device_events, by its launch in the cycle; NONE if it is of none.
        bounds: Start and end of the recording, with all device work.
    """

    frame: pl.DataFrame
    device: NDArray[np.int32]
    bounds: tuple[int, int]


def server_engine(trace: Trace) -> str:
    """The server whose iterations a recording has, `inferred` if only their structure shows; empty if none."""
    engines = server_iterations(trace).frame["engine"]
    return next((engine for engine in engines.unique(maintain_order=True) if engine in SERVERS), "")


def host_cycles(frame: pl.DataFrame) -> HostSteps:
    """The iterations on the host, each until the next one begins."""
    start, end = (frame[name].to_numpy() for name in ("host_start_ns", "host_end_ns"))
    names = tuple(map(str, range(frame.height)))
    return HostSteps(names, start, np.append(start[1:], end[-1:]), frame["is_cut"].to_numpy())


@once_per_recording
def server_iterations(trace: Trace) -> Iterations:
    """The iterations of a recording; none if it has neither marks nor the structure of a server."""
    marks = _marks(trace) if has_iterations(trace) else pl.DataFrame(schema=_MARKS)
    cycles = host_cycles(marks)
    device, graphs = _device_work(trace, cycles)
    frame = _with_windows(trace, marks, cycles, device, graphs)
    if marks.is_empty():
        return Iterations(frame, device, trace.window)
    frame = frame.with_columns(_phases(trace, frame, device))
    frame = frame.with_columns(part=pl.Series(parts(frame), dtype=pl.String))
    ends = device_ends(trace)
    bounds = (
        min(trace.window[0], int(frame["start_ns"][0])),
        max(trace.window[1], int(frame["end_ns"][-1]), int(ends.max(initial=0))),
    )
    return Iterations(frame, device, bounds)


def marks(iterations: Iterations, which: pl.Series) -> dict[str, NDArray[np.int32]]:
    """The rows of the trace that mark some iterations, by the name of their frame; inferred ones have none."""
    rows = iterations.frame.filter(which).drop_nulls("row").partition_by("frame", as_dict=True)
    return {str(frame): part["row"].to_numpy() for (frame,), part in rows.items()}


def iteration_of(trace: Trace, frame: str, row: int) -> int:
    """The iteration that an event marks, or that launched it; NONE if there is none."""
    iterations = server_iterations(trace)
    if frame == "device_events":
        return int(iterations.device[row])
    numbers = iterations.frame.select(pl.arg_where((pl.col("frame") == frame) & (pl.col("row") == row))).to_series()
    return int(numbers[0]) if numbers.len() else NONE


def _marks(trace: Trace) -> pl.DataFrame:
    """The iterations (_MARKS) of the one thread that runs most of them, in order of time."""
    for marks in (_annotation_marks, _function_marks, _structure_marks):
        frame = marks(trace)
        if not frame.is_empty():
            main = frame.group_by("thread").len().sort("len", "thread", descending=[True, False])["thread"][0]
            return frame.filter(pl.col("thread") == main).sort("host_start_ns", maintain_order=True)
    return pl.DataFrame(schema=_MARKS)


def _annotation_marks(trace: Trace) -> pl.DataFrame:
    """The outermost annotations that mark iterations. Their engine is that of the innermost mark.

    ATOM writes its own inside vLLM's, and SGLang has run with annotations in vLLM's form around its own.
    """
    host = trace.host_events
    engines = map_categories(host["name"], lambda name: getattr(iteration_name(name), "engine", ""), missing="")
    is_mark = (engines != "") & (host["kind"] == "annotation").to_numpy()
    rows = _outermost(is_mark, host["parent"].to_numpy())
    marks = np.flatnonzero(is_mark)
    next_mark = np.append(rows, engines.size)[1:]
    last_inside = marks[np.searchsorted(marks, next_mark) - 1]
    frame = _marks_of(host, rows, "host_events", "annotation", ~host["is_finished"].to_numpy()[rows])
    return frame.with_columns(engine=pl.Series(engines[last_inside], dtype=pl.String))


def _function_marks(trace: Trace) -> pl.DataFrame:
    """The outermost calls of functions that run an iteration."""
    calls = trace.python_calls
    is_mark = map_categories(calls["name"], lambda name: iteration_function(name) is not None).astype(bool)
    rows = _outermost(is_mark, calls["parent"].to_numpy())
    return _marks_of(calls, rows, "python_calls", "Python call", np.zeros(rows.size, bool))


def _outermost(is_mark: NDArray[np.bool_], parent: NDArray[np.int32]) -> NDArray[np.int64]:
    around = gather(nearest(is_mark, parent), parent)
    return np.flatnonzero(is_mark & (around == NONE))


def _marks_of(
    frame: pl.DataFrame, rows: NDArray[np.int64], of: str, source: str, is_cut: NDArray[np.bool_]
) -> pl.DataFrame:
    if not rows.size:
        return pl.DataFrame(schema=_MARKS)
    events = frame[rows]
    names = events["name"].cast(pl.String).to_list()
    descriptions = [iteration_name(name) or IterationName(iteration_function(name) or "", "other") for name in names]
    end = events["start_ns"] + events["dur_ns"]
    columns = {
        "name": names,
        "frame": [of] * rows.size,
        "row": rows,
        "engine": [name.engine for name in descriptions],
        "source": [source] * rows.size,
        "phase": [name.phase for name in descriptions],
        "batch": [name.batch for name in descriptions],
        "tokens": [name.tokens for name in descriptions],
        "thread": events["thread"],
        "host_start_ns": events["start_ns"],
        "host_end_ns": end,
        "is_cut": is_cut,
    }
    return pl.DataFrame(columns, schema=_MARKS)


def _structure_marks(trace: Trace) -> pl.DataFrame:
    extents = inferred_extents(trace)
    if extents is None:
        return pl.DataFrame(schema=_MARKS)
    size = extents.start.size
    columns = {
        "engine": ["inferred"] * size,
        "source": ["structure"] * size,
        "phase": ["other"] * size,
        "thread": [extents.thread] * size,
        "host_start_ns": extents.start,
        "host_end_ns": extents.end,
        "is_cut": [False] * size,
    }
    return pl.DataFrame({name: columns.get(name, [None] * size) for name in _MARKS}, schema=_MARKS)


def _device_work(trace: Trace, host: HostSteps) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The iteration of each device row, and the number of graph launches of each iteration.

    As for steps: that of its call, on any thread, or of its operator if no call is known.
    """
    if not host.names:
        return np.full(trace.device_events.height, NONE, np.int32), np.empty(0, np.int64)
    calls, ranges = (
        host.find_steps(start, start + frame["dur_ns"].to_numpy())
        for frame, start in ((f, f["start_ns"].to_numpy()) for f in (trace.launches, trace.host_events))
    )
    launch, op = trace.device_events["launch"].to_numpy(), trace.recorded_op.to_numpy()
    device = np.where(launch >= 0, gather(calls, launch), gather(ranges, op)).astype(np.int32)
    graphs = map_categories(trace.launches["name"], launches_graph).astype(np.int64)
    return device, scatter_add(calls, graphs, len(host.names))


def _with_windows(
    trace: Trace, marks: pl.DataFrame, cycles: HostSteps, device: NDArray[np.int32], graphs: NDArray[np.int64]
) -> pl.DataFrame:
    """Add the windows, the ends of the cycles, and how much was launched."""
    if marks.is_empty():
        columns = ("start_ns", "end_ns", "next_ns", "device_rows", "graph_launches")
        none = {name: pl.Series(name, [], pl.Int64) for name in columns}
        return marks.with_columns(**none, part=pl.Series("part", [], pl.String))
    rows, size = trace.device_events, marks.height
    launch_ns = gather(trace.launches["start_ns"].to_numpy(), rows["launch"].to_numpy())
    windows = step_windows(cycles, rows.with_columns(step=pl.Series(device)), launch_ns)
    host_end = marks["host_end_ns"].to_numpy()
    op_start = gather(trace.host_events["start_ns"].to_numpy(), trace.recorded_op.to_numpy())
    since = np.where(launch_ns == NONE, op_start, launch_ns)
    inside = np.where(since < gather(host_end, device), device, NONE)
    ends = host_end.copy()
    np.maximum.at(ends, inside[inside >= 0], (rows["start_ns"] + rows["dur_ns"]).to_numpy()[inside >= 0])
    start, next_ns = (windows[name].to_numpy() for name in ("start_ns", "end_ns"))
    return marks.with_columns(
        start_ns=pl.Series(start),
        end_ns=pl.Series(np.clip(ends, start, next_ns)),
        next_ns=pl.Series(next_ns),
        device_rows=pl.Series(np.bincount(device[device >= 0], minlength=size).astype(np.int64)),
        graph_launches=pl.Series(graphs),
    )


def _phases(trace: Trace, frame: pl.DataFrame, device: NDArray[np.int32]) -> pl.Series:
    """The phases: stated ones, and elsewhere that of the attention kernels, if their names say so."""
    shown_by = (None, "prefill", "decode")
    codes = map_categories(trace.device_events["name"], lambda name: shown_by.index(attention_phase(name)), missing=0)
    rows = [np.bincount(device[(codes == code) & (device >= 0)], minlength=frame.height) for code in (1, 2)]
    prefill, decode = (count > 0 for count in rows)
    by_attention = np.select([prefill & decode, prefill, decode], ["mixed", "prefill", "decode"], "other")
    is_stated = (frame["source"] == "annotation").to_numpy() | (frame["phase"] != "other").to_numpy()
    return pl.Series("phase", np.where(is_stated, frame["phase"].to_numpy(), by_attention), dtype=pl.String)
