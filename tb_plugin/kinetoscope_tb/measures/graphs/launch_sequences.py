"""Launches in the order of the host, with the operators and modules around them: of graph captures and of eager work.

A capture runs nothing: its launches become the nodes of a graph, in this order. ROCm's profilers record the kernel of
each (`args.kernel`), CUPTI only the call. Eager launches have the names of the kernels that they ran.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather, gather_column, map_categories
from ...arrays.nesting import innermost, nearest
from ...names.calls import launches_graph
from ...names.python_frames import is_of_library
from ...names.regex import regex
from ...trace.model import Trace
from ...trace.results import once_per_recording
from ..calls.call_tree import CallForest, Ints, Rows
from ..python.call_stacks import stacks_as_text

KERNEL, MEMCPY, MEMSET = range(3)
COPIES = {"memcpy": MEMCPY, "memset": MEMSET}
_BEGINS, _ENDS = "StreamBeginCapture", "StreamEndCapture"
_LAUNCHES = regex(r"(?:Launch(?:Cooperative)?Kernel|cuLaunch$)|hipModuleLaunch|hipExtLaunch|musaLaunch")
_FRAME = regex(r"\(\d+\): ")
_DEEPEST = 512  # levels of calls around a launch

NODES = {
    "sequence": pl.Int32,
    "kernel": pl.String,  # null: not recorded, or a copy
    "kind": pl.Int8,  # KERNEL, MEMCPY or MEMSET
    "call": pl.Int32,  # the innermost operator, annotation or module around it: a row of calls, or NONE
    "line": pl.String,  # the innermost frame of the program around it; null: not recorded
}
CALLS = {
    "is_module": pl.Boolean,
    "is_outer": pl.Boolean,  # it began before the capture: the replay has a call of its own around it
    "name": pl.String,
    "kind": pl.String,
    "input_shapes": pl.String,
    "input_types": pl.String,
    "concrete_inputs": pl.String,
    "call_stack": pl.String,
    "is_repeat": pl.Boolean,
    "is_communication": pl.Boolean,
    "module_id": pl.Int64,
    "parent": pl.Int32,  # the row here around it, or NONE; it comes first
}
SEQUENCES = {
    "is_capture": pl.Boolean,  # whether it is all of a capture, not eager work, of which a graph may be any part
    "range": pl.String,  # the outermost annotation around it; null: none
}


@dataclass(frozen=True)
class LaunchSequences:
    """The sequences of launches of one recording.

    Args:
        nodes: One row per kernel, copy or fill, in the order of their launches (NODES).
        calls: The calls around them (CALLS).
        sequences: SEQUENCES; the rows of `nodes` of one sequence lie together.
    """

    nodes: pl.DataFrame
    calls: pl.DataFrame
    sequences: pl.DataFrame


@dataclass(frozen=True)
class _Launches:
    """Launches in order: rows of launches, sequence, kind, kernel, and when the capture around each began."""

    launch: Ints
    sequence: Ints
    kind: Ints
    kernel: pl.Series
    capture_start: Ints


@once_per_recording
def captured_sequences(trace: Trace) -> LaunchSequences:
    """What the captures in a recording launched: one sequence per capture, in order of time."""
    launches = trace.launches
    begins = map_categories(launches["name"], lambda name: _BEGINS in name)
    ends = map_categories(launches["name"], lambda name: _ENDS in name)
    if not begins.any():
        return _with_calls(trace, _launches_that_never_ran(trace), is_capture=False)
    kind, ran = _kinds(trace), np.zeros(launches.height, bool)
    rows = trace.device_events["launch"].to_numpy()
    ran[rows[rows >= 0]] = True
    is_node = (kind >= 0) & ~ran
    window = _windows(launches, np.flatnonzero(begins), np.flatnonzero(ends))
    at = np.flatnonzero(is_node & (window >= 0))
    order = np.lexsort((at, launches["start_ns"].to_numpy()[at], window[at]))
    at = at[order]
    starts = launches["start_ns"].to_numpy()[np.flatnonzero(begins)]
    starts = np.sort(starts, kind="stable")
    _, sequence = np.unique(window[at], return_inverse=True)
    kernel = launches["kernel"].gather(at).cast(pl.String)
    return _with_calls(trace, _Launches(at, sequence, kind[at], kernel, starts[window[at]]), is_capture=True)


@once_per_recording
def eager_sequences(trace: Trace) -> LaunchSequences:
    """What each thread launched outside of graphs, by the kernels that ran: one sequence per thread."""
    device = trace.device_events
    replays = map_categories(trace.launches["name"], launches_graph).astype(bool)
    launch = device["launch"].to_numpy()
    is_eager = (launch >= 0) & ~gather(replays, launch, missing=True) & (device["graph_id"] < 0).to_numpy()
    rows = np.flatnonzero(is_eager)
    rows = rows[np.argsort(launch[rows], kind="stable")]
    thread = trace.launches["thread"].to_numpy()[launch[rows]]
    _, sequence = np.unique(thread, return_inverse=True)
    kind = device["kind"].to_physical().to_numpy()[rows].astype(np.int64)
    kernel = device["name"].gather(rows).cast(pl.String)
    capture_start = np.full(rows.size, np.iinfo(np.int64).min)
    return _with_calls(
        trace, _Launches(launch[rows].astype(np.int64), sequence, kind, kernel, capture_start), is_capture=False
    )


def _kinds(trace: Trace) -> NDArray[np.int64]:
    """What each call launches: KERNEL, MEMCPY, MEMSET, or NONE."""

    def kind(name: str) -> int:
        if _LAUNCHES.search(name):
            return KERNEL
        lower = name.lower()
        return next((code for part, code in COPIES.items() if part in lower), NONE)

    kinds: NDArray[np.int64] = map_categories(trace.launches["name"], kind, missing=NONE)
    return np.where(trace.launches["kernel"].is_not_null().to_numpy(), KERNEL, kinds)


def _launches_that_never_ran(trace: Trace) -> _Launches:
    """Launches of named kernels that never ran, of a recording that doesn't show where captures begin."""
    ran = np.zeros(trace.launches.height, bool)
    rows = trace.device_events["launch"].to_numpy()
    ran[rows[rows >= 0]] = True
    at = np.flatnonzero(trace.launches["kernel"].is_not_null().to_numpy() & ~ran)
    _, sequence = np.unique(trace.launches["thread"].to_numpy()[at], return_inverse=True)
    kernel = trace.launches["kernel"].gather(at).cast(pl.String)
    capture_start = np.full(at.size, np.iinfo(np.int64).min)
    return _Launches(at, sequence, np.full(at.size, KERNEL), kernel, capture_start)


def _windows(launches: pl.DataFrame, begins: Ints, ends: Ints) -> Ints:
    """The capture of each call, by number in order of time, or NONE: of its own thread, else the only one at that time.

    While a capture lasts, other threads may launch for it: autograd's do.
    """
    start, thread = launches["start_ns"].to_numpy(), launches["thread"].to_numpy()
    begins = begins[np.argsort(start[begins], kind="stable")]
    own, others = np.full(start.size, NONE), np.full(start.size, NONE)
    by_time = np.argsort(start, kind="stable")
    sorted_start = start[by_time]
    last_end = np.iinfo(np.int64).min
    for number, begin in enumerate(begins.tolist()):
        after = ends[(thread[ends] == thread[begin]) & (start[ends] >= start[begin])]
        end = int(start[after].min()) if after.size else np.iinfo(np.int64).max
        inside = by_time[np.searchsorted(sorted_start, start[begin]) : np.searchsorted(sorted_start, end, "right")]
        same = thread[inside] == thread[begin]
        own[inside[same]] = number
        others[inside[~same]] = number if start[begin] >= last_end else NONE
        last_end = max(last_end, end)
    return np.where(own >= 0, own, others)


def _with_calls(trace: Trace, launches: _Launches, *, is_capture: bool) -> LaunchSequences:
    """Add the calls around launches."""
    if not launches.launch.size:
        return LaunchSequences(pl.DataFrame(schema=NODES), pl.DataFrame(schema=CALLS), pl.DataFrame(schema=SEQUENCES))
    count = int(launches.sequence.max(initial=NONE)) + 1
    module = np.flatnonzero(trace.python_calls["module_id"].to_numpy() >= 0).astype(np.int32)
    forest = CallForest.of(trace, module, np.arange(trace.host_events.height, dtype=np.int32))
    at = forest.at(trace.launches["thread"].to_numpy(), trace.launches["start_ns"].to_numpy())[launches.launch]
    is_needed, is_outer = _around(forest, at, launches.capture_start)
    rows = np.flatnonzero(is_needed)
    call_of_row = np.full(forest.row.size, NONE, np.int32)
    call_of_row[rows] = np.arange(rows.size)
    nodes = pl.DataFrame(
        {
            "sequence": launches.sequence,
            "kernel": launches.kernel.zip_with(pl.Series(launches.kind == KERNEL), pl.Series([None], dtype=pl.String)),
            "kind": launches.kind,
            "call": gather(call_of_row, at),
            "line": _lines(trace)[launches.launch],
        }
    ).cast(NODES)  # type: ignore[arg-type]
    calls = _calls(trace, forest, rows, is_outer[rows], call_of_row)
    first = np.searchsorted(launches.sequence, np.arange(count))
    sequences = pl.DataFrame(
        {"is_capture": [is_capture] * count, "range": ranges_around(trace, launches.launch[first])}
    )
    return LaunchSequences(nodes, calls, sequences.cast(SEQUENCES))  # type: ignore[arg-type]


def _around(forest: CallForest, at: Rows, capture_start: Ints) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(rows of the forest around any launch, those of them that began before its capture)."""
    is_needed, is_outer = np.zeros(forest.row.size, bool), np.zeros(forest.row.size, bool)
    for _ in range(_DEEPEST):
        is_known = at >= 0
        at, capture_start = at[is_known], capture_start[is_known]
        if not at.size:
            break
        is_needed[at] = True
        is_outer[at[forest.start[at] < capture_start]] = True
        pairs = np.unique(np.column_stack([forest.parent[at].astype(np.int64), capture_start]), axis=0)
        at, capture_start = pairs[:, 0].astype(np.int32), pairs[:, 1]
    return is_needed, is_outer


def _calls(
    trace: Trace, forest: CallForest, rows: Ints, is_outer: NDArray[np.bool_], call_of_row: Rows
) -> pl.DataFrame:
    is_module = forest.is_python[rows]
    host = pl.Series(np.where(is_module, NONE, forest.host[rows]), dtype=pl.Int64).replace(NONE, None)
    python = pl.Series(np.where(is_module, forest.row[rows], NONE), dtype=pl.Int64).replace(NONE, None)
    ranges, modules = trace.host_events, trace.python_calls
    texts = ("kind", "input_shapes", "input_types", "concrete_inputs")
    names = (frame["name"].gather(at).cast(pl.String) for frame, at in ((ranges, host), (modules, python)))
    columns = {
        "is_module": is_module,
        "is_outer": is_outer,
        "name": pl.select(pl.coalesce(*names)).to_series(),
        **{name: ranges[name].gather(host).cast(pl.String) for name in texts},
        **{name: ranges[name].gather(host).fill_null(value=False) for name in ("is_repeat", "is_communication")},
        "call_stack": stacks_as_text(trace, forest.host[rows]),
        "module_id": modules["module_id"].gather(python).fill_null(NONE),
        "parent": gather(call_of_row, forest.parent[rows]),
    }
    return pl.DataFrame(columns).cast(CALLS).select(list(CALLS))  # type: ignore[arg-type]


def _lines(trace: Trace) -> pl.Series:
    """Of each launch, the innermost frame of the program that was open; null: no frames were recorded."""
    python, launches = trace.python_calls, trace.launches
    is_own = map_categories(python["name"], _is_of_program)
    columns = (python["thread"].to_numpy(), python["start_ns"].to_numpy())
    end = columns[1] + python["dur_ns"].to_numpy()
    at = innermost(*columns, end, launches["thread"].to_numpy(), launches["start_ns"].to_numpy())
    row = gather(nearest(is_own.astype(bool), python["parent"].to_numpy()), at)
    return gather_column(python["name"], row).cast(pl.String)


def _is_of_program(frame: str) -> bool:
    return bool(_FRAME.search(frame)) and not is_of_library(frame) and not frame.startswith("triton/")


def ranges_around(trace: Trace, launch: Ints) -> pl.Series:
    """The name of the outermost annotation around each call, a row of launches or NONE; null: there is none."""
    host = trace.host_events
    is_annotation, parent = (host["kind"] == "annotation").to_numpy(), host["parent"].to_numpy()
    at = gather(nearest(is_annotation, parent), gather(trace.launches["host"].to_numpy(), launch.astype(np.int32)))
    for _ in range(_DEEPEST):
        above = gather(nearest(is_annotation, parent), gather(parent, at))
        if (above < 0).all():
            break
        at = np.where(above >= 0, above, at)
    return gather_column(host["name"], at).cast(pl.String)
