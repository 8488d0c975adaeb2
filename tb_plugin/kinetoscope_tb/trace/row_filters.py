"""Rows of a trace's frames by their values, to resolve rows of a view to events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE, categories_of, map_categories, texts
from ..names.kernels import STEPS, step_number
from .model import Trace
from .results import once_per_recording, once_per_trace

Key = Mapping[str, Any]
"""The values of the key columns of a view's row; None where a value is missing."""
Events = Mapping[str, NDArray[np.integer]]
"""Row numbers by the name of the trace's frame; negative numbers are ignored."""


def is_equal(values: pl.Series, value: Any) -> NDArray[np.bool_]:
    """Whether each value equals `value`; nothing equals None."""
    if value is None:
        return np.zeros(values.len(), bool)
    # An expression can also compare with a number that is too large for the column.
    return values.to_frame("value").select(pl.col("value") == pl.lit(value))["value"].fill_null(value=False).to_numpy()


def name_mask(names: pl.Series, is_meant: Callable[[str], bool]) -> NDArray[np.bool_]:
    """Which rows of an enum column have a name of which something is true; it must be the same for all steps.

    Long recordings have more names of steps than others.
    """
    return np.asarray(map_categories(names, is_meant, alike=STEPS), bool)


@once_per_recording
def is_operator(trace: Trace) -> NDArray[np.bool_]:
    """Of each row of host_events, whether it is an operator; nobody may change it."""
    return _fixed_mask(trace.host_events["kind"] == "operator")


@once_per_trace
def is_operator_of_all(trace: Trace) -> NDArray[np.bool_]:
    """The same of each row of all_host_events."""
    if trace.replayed is None:
        return is_operator(trace)
    return _fixed_mask(trace.all_host_events["kind"] == "operator")


@once_per_recording
def is_step(trace: Trace) -> NDArray[np.bool_]:
    """Of each row of host_events, whether its name is that of a step; nobody may change it."""
    mask = name_mask(trace.host_events["name"], lambda name: step_number(name) is not None)
    mask.flags.writeable = False
    return mask


@once_per_recording
def device_ends(trace: Trace) -> NDArray[np.int64]:
    """When each row of device_events ends, in ns; nobody may change it.

    The critical path and the idle causes of one answer ask for it half a dozen times. The ends of host_events, which
    are more, aren't cached: those who need them ask once.
    """
    start, dur = (trace.device_events[name].to_numpy() for name in ("start_ns", "dur_ns"))
    ends: NDArray[np.int64] = start + dur
    ends.flags.writeable = False
    return ends


def _fixed_mask(column: pl.Series) -> NDArray[np.bool_]:
    mask = np.array(column.to_numpy(), bool)  # a copy: the memory of Polars' arrays isn't counted as a result's
    mask.flags.writeable = False
    return mask


def rows_where(frame: pl.DataFrame, **values: Any) -> NDArray[np.int32]:
    """The rows of a frame with these values; None matches missing values, which are NONE in integer columns."""
    predicates = [pl.lit(value=True)]
    for name, value in values.items():
        is_text = isinstance(frame.schema[name], pl.Enum)
        if value is None:
            predicates.append(pl.col(name).is_null() if is_text else pl.col(name) == NONE)
        elif is_text and value not in categories_of(frame[name]):
            predicates.append(pl.lit(value=False))
        else:
            predicates.append(pl.col(name) == value)
    return frame.select(pl.arg_where(pl.all_horizontal(predicates))).to_series().to_numpy().astype(np.int32)


def values_at(frame: pl.DataFrame, row: int, *names: str) -> dict[str, Any]:
    """The values of a row in some columns, as `rows_where` takes them: None for NONE in a column of integers."""
    values = {name: frame[name][row] for name in names}
    is_missing = {name: frame.schema[name].is_integer() and value == NONE for name, value in values.items()}
    return {name: None if is_missing[name] else value for name, value in values.items()}


def calls_of_event(trace: Trace, frame: str, row: int) -> Iterator[tuple[str, int]]:
    """The event itself, then, of device work, the calls that a graph replays around it, the innermost first.

    These are rows of all_host_events and of all_python_calls.
    """
    yield frame, row
    calls = trace.replayed if frame == "device_events" else None
    call = NONE if calls is None else int(calls.innermost[row])
    while calls is not None and call >= 0:
        is_module = bool(calls.is_module[call])
        before = int((calls.is_module[:call] == is_module).sum())
        name = "python_calls" if is_module else "host_events"
        yield name, getattr(trace, name).height + before
        call = int(calls.parent[call])


def has_op(trace: Trace, frame: pl.DataFrame, name: str | None) -> NDArray[np.bool_]:
    """Whether each row's operator has this name; None: whether its operator is unknown."""
    op = frame["op"].to_numpy()
    return (
        op < 0 if name is None else (texts(trace.all_host_events["name"], op) == name).fill_null(value=False).to_numpy()
    )


def device_of_work(trace: Trace, frame: str, row: int) -> Key | None:
    """The device that ran a row of device_events."""
    return {"device": trace.device_events["device"][row]} if frame == "device_events" else None


def device_work(trace: Trace, key: Key) -> Events:
    """The work of a device, or of one of its streams; with a step, only rows that overlap its window."""
    conditions = {name: key[name] for name in ("device", "stream") if key.get(name) is not None}
    rows, events = rows_where(trace.device_events, **conditions), trace.device_events
    if key.get("step") not in (None, "all"):
        step = trace.steps.filter(pl.col("name") == key["step"])
        start, dur = (events[name].to_numpy()[rows] for name in ("start_ns", "dur_ns"))
        begin, end = (step[side].to_numpy() for side in ("start_ns", "end_ns"))
        rows = rows[(start < end[0]) & (start + dur > begin[0])] if step.height else rows[:0]
    return {"device_events": rows}
