"""A trace restricted to some of its steps, so that views can be computed for these steps alone.

`rows_of_steps` selects the rows that belong to the steps: host rows inside their host intervals, device rows that were
launched there (or, without a known launch, began in their windows). `windows_of_steps` selects every row that is active
in the steps' windows, whichever step it belongs to. Both retain the file's metadata and diagnostics.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather, scatter_add
from ...arrays.nesting import add_up, nearest
from ...errors import BadParameter
from ...trace.model import POINTERS, ReplayedCalls, Trace
from ...trace.row_filters import Events

Mask = NDArray[np.bool_]
Rows = NDArray[np.int32]

_TIMED = ("host_events", "launches", "device_events", "memory", "python_calls", "flows", "syncs", "others")
_MOST_LISTED = 20
_ON_DEVICES = ("device_events", "syncs")


def has_steps(trace: Trace) -> bool:
    """Whether the trace marks steps."""
    return trace.steps["name"].to_list() != ["all"]


def counted_steps(trace: Trace) -> list[int]:
    """The steps that averages cover: the complete ones, or all if none is complete."""
    complete = np.flatnonzero(trace.steps["is_complete"].to_numpy())
    return [int(step) for step in (complete if complete.size else range(trace.steps.height))]


def restrict_to_steps(trace: Trace, within: str, phase: str | None, step: str | None) -> Trace:
    """The trace of some steps: the counted ones of a server's phase, or the one of this name.

    Args:
        trace: The whole trace.
        within: `rows` that belong to the steps, or all that is active in their `windows`.
        phase: Of a server's iterations.
        step: The name of a step.

    Raises:
        BadParameter: The trace has no such phase or step.
    """
    steps = _steps_of(trace, phase, step)
    return rows_of_steps(trace, steps) if within == "rows" else windows_of_steps(trace, steps)


def events_of_phase(trace: Trace, events: Events, within: str, phase: str) -> Events:
    """Those of some events that a trace restricted to a server's phase has.

    Raises:
        BadParameter: The trace has no such phase.
    """
    is_chosen = _step_mask(trace, _steps_of(trace, phase, None))
    belongs = _belongs if within == "rows" else _in_windows
    rows_by_frame = {name: np.asarray(rows, np.int64) for name, rows in events.items()}
    rows_by_frame = {name: rows[rows >= 0] for name, rows in rows_by_frame.items()}
    return {name: rows[belongs(trace, name, is_chosen)[rows]] for name, rows in rows_by_frame.items()}


def _steps_of(trace: Trace, phase: str | None, step: str | None) -> list[int]:
    """The counted steps of a server's phase, or the one of this name."""
    frame = trace.steps.with_row_index("at")
    if phase is not None:
        frame = frame.filter(phase=phase)
        if frame.is_empty():
            raise _no_such("phase", phase, trace.steps["phase"])
        frame = frame.filter("is_complete") if frame["is_complete"].any() else frame
    if step is not None:
        frame = frame.filter(name=step)
        if frame.is_empty():
            raise _no_such("step", step, trace.steps["name"])
    numbers: list[int] = frame["at"].to_list()
    return numbers


def _no_such(name: str, value: str, values: pl.Series) -> BadParameter:
    options = values.drop_nulls().unique(maintain_order=True).to_list()
    choices = f"choose one of {', '.join(options[:_MOST_LISTED])}" if options else f"it has no {name}s"
    return BadParameter(f"{name}={value!r} isn't in this trace; {choices}{' …' * (len(options) > _MOST_LISTED)}.")


def rows_of_steps(trace: Trace, steps: Sequence[int]) -> Trace:
    """The trace with the rows that belong to these steps; without marked steps, all of it."""
    if not has_steps(trace):
        return trace
    is_chosen = _step_mask(trace, steps)
    masks = {name: _belongs(trace, name, is_chosen) for name in _TIMED}
    return _select_rows(trace, {**masks, "steps": is_chosen})


def belongs_to_steps(trace: Trace, frame: str, steps: Sequence[int]) -> Mask:
    """Which rows of a frame `rows_of_steps` picks."""
    if not has_steps(trace):
        return np.ones(getattr(trace, frame).height, bool)
    return _belongs(trace, frame, _step_mask(trace, steps))


def windows_of_steps(trace: Trace, steps: Sequence[int]) -> Trace:
    """The trace with the rows that are active in the windows of these steps; without marked steps, all of it."""
    if not has_steps(trace):
        return trace
    is_chosen = _step_mask(trace, steps)
    return _select_rows(trace, {**{name: _in_windows(trace, name, is_chosen) for name in _TIMED}, "steps": is_chosen})


def _in_windows(trace: Trace, name: str, is_chosen: Mask) -> Mask:
    """Which rows of a frame are active in the windows of the steps."""
    starts, ends = (trace.steps[name].to_numpy()[is_chosen] for name in ("start_ns", "end_ns"))
    start, end = _times(getattr(trace, name))
    after = np.searchsorted(ends, start, "right")  # the first window that ends after the row begins
    is_active: Mask = (after < ends.size) & (np.maximum(end, start + 1) > gather(starts, after.clip(0, ends.size - 1)))
    return is_active


def _step_mask(trace: Trace, steps: Sequence[int]) -> Mask:
    is_chosen = np.zeros(trace.steps.height, bool)
    is_chosen[list(steps)] = True
    return is_chosen


def _times(frame: pl.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    start = frame["start_ns"].to_numpy()
    return start, start + frame["dur_ns"].to_numpy() if "dur_ns" in frame.columns else start


def _belongs(trace: Trace, name: str, is_chosen: Mask) -> Mask:
    """Which rows of a frame belong to the steps: by their step column, or else by their start."""
    frame = getattr(trace, name)
    if name in ("host_events", "launches"):
        return gather(is_chosen, frame["step"].to_numpy(), missing=False)
    if name != "device_events":
        return gather(is_chosen, _steps_around(trace, name, slice(None)), missing=False)
    step = frame["step"].to_numpy()
    rows = np.flatnonzero((step < 0) & (frame["launch"].to_numpy() < 0))  # launches between steps belong to none
    belongs: Mask = gather(is_chosen, step, missing=False)
    belongs[rows] = gather(is_chosen, _steps_around(trace, name, rows), missing=False)
    return belongs


def _steps_around(trace: Trace, name: str, rows: slice | NDArray[np.intp]) -> Rows:
    """The step that some rows of a frame are in by their times, or NONE."""
    start, end = (times[rows] for times in _times(getattr(trace, name)))
    first, last = ("start_ns", "end_ns") if name in _ON_DEVICES else ("host_start_ns", "host_end_ns")
    starts, ends = trace.steps[first].to_numpy(), trace.steps[last].to_numpy()
    step = (np.searchsorted(starts, start, "right") - 1).astype(np.int32)
    until = end if name == "python_calls" else start + 1
    return np.where((step >= 0) & (until <= gather(ends, step, NONE)), step, np.int32(NONE))


def _select_rows(trace: Trace, masks: dict[str, Mask]) -> Trace:
    """The trace with the selected rows of each frame; pointers to dropped rows become NONE."""
    collectives = trace.collectives
    masks["collectives"] = gather(masks["host_events"], collectives["host_event"].to_numpy(), missing=False) | gather(
        masks["device_events"], collectives["device_event"].to_numpy(), missing=False
    )
    new_rows = {name: _new_numbers(mask) for name, mask in masks.items()}
    whole = {name: getattr(trace, name) for name in masks}
    whole["device_events"] = trace.device_events.with_columns(op=trace.recorded_op)
    frames: dict[str, Any] = {name: _rows_of(frame, name, masks[name], new_rows) for name, frame in whole.items()}
    part = dataclasses.replace(trace, **frames)
    return (part if trace.replayed is None else _with_replays(part, trace, masks, new_rows)).as_part_of(trace)


def _new_numbers(mask: Mask) -> Rows:
    """The new number of each row; NONE: dropped."""
    return np.where(mask, np.cumsum(mask) - 1, NONE).astype(np.int32)


def _rows_of(frame: pl.DataFrame, name: str, mask: Mask, new_rows: Mapping[str, Rows]) -> pl.DataFrame:
    """The selected rows of a frame of this name; `new_rows` has the new row numbers of the frames that it points to."""
    if not mask.size:
        return frame
    pointers = {
        column: gather(new_rows[target], frame[column].to_numpy()[mask])
        for column, target in POINTERS.get(name, {}).items()
        if target in new_rows
    }
    if "depth" in frame.columns:
        pointers["depth"] = _depths(frame, mask)
    return frame.filter(pl.Series(mask)).with_columns(**{c: pl.Series(v) for c, v in pointers.items()})


def _with_replays(part: Trace, trace: Trace, masks: Mapping[str, Mask], new_rows: Mapping[str, Rows]) -> Trace:
    """The selected rows of a trace with the replayed calls around its device rows."""
    calls, on_device = trace.replayed, masks["device_events"]
    if calls is None:
        return part
    innermost = calls.innermost[on_device]
    is_needed = add_up(calls.parent, scatter_add(innermost, np.ones(innermost.size), calls.parent.size)) > 0
    number = _new_numbers(is_needed)
    host = np.append(masks["host_events"], is_needed[~calls.is_module])
    python = np.append(masks["python_calls"], is_needed[calls.is_module])
    all_hosts, all_calls = _new_numbers(host), _new_numbers(python)
    op = pl.Series(gather(all_hosts, trace.device_events["op"].to_numpy()[on_device]))
    fewer = ReplayedCalls(
        _rows_of(calls.host_events, "host_events", host, {**new_rows, "host_events": all_hosts}),
        _rows_of(calls.python_calls, "python_calls", python, {**new_rows, "python_calls": all_calls}),
        part.device_events["op"],
        calls.is_module[is_needed],
        gather(number, calls.parent[is_needed]),
        gather(new_rows["launches"], calls.launch[is_needed]),
        gather(number, innermost),
        calls.origin[is_needed],
    )
    device = part.device_events.with_columns(op=op)
    return dataclasses.replace(part, device_events=device, replayed=fewer)


def _depths(frame: pl.DataFrame, mask: Mask) -> NDArray[np.int16]:
    """Nesting depths of the selected rows."""
    parent, depth = frame["parent"].to_numpy(), frame["depth"].to_numpy()
    is_root = mask & ~gather(mask, parent, missing=False)
    root = nearest(is_root, parent)[mask]
    depths: NDArray[np.int16] = (depth[mask] - gather(depth, root, 0)).clip(0).astype(np.int16)  # replayed ones have 0
    return depths
