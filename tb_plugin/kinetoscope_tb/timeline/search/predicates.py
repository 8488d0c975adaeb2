"""Slices by exact values of their attributes.

null as a value means unknown: {"op": null} is device work without a known operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.gather import gather
from ...trace import Trace
from ...trace.row_filters import has_op, rows_where
from ..area.groups import By, groups
from ..area.slices import spans_on_streams
from ..core.model import FRAMES, Timeline

Slices = NDArray[np.integer] | NDArray[np.bool_]
Value = Any  # str, int or None
SIDES = ("device", "host")
_TEXT, _NUMBER = (str, type(None)), (int, type(None))


def slices_with(trace: Trace, timeline: Timeline, predicates: Mapping[str, Value]) -> Iterator[Slices]:
    """For each predicate the slices that satisfy it: their numbers, or a mask of all slices."""
    collective = {name: predicates[name] for name in _COLLECTIVE if name in predicates}
    if collective:
        yield _of_collective(trace, timeline, collective)
    for name, value in predicates.items():
        if name in _OF_VALUE:
            yield _OF_VALUE[name][1](trace, timeline, value)


def _of_shapes(trace: Trace, timeline: Timeline, shapes: Value) -> Slices:
    return timeline.slices_of("host_events", rows_where(trace.host_events, kind="operator", input_shapes=shapes))


def _of_op(trace: Trace, timeline: Timeline, name: Value) -> Slices:
    parts = [
        timeline.slices_of(frame, np.flatnonzero(has_op(trace, getattr(trace, frame), name)))
        for frame in ("device_events", "launches")
    ]
    return np.concatenate(parts)


def _of_tracks(attribute: str) -> Callable[[Trace, Timeline, Value], Slices]:
    def slices(_trace: Trace, timeline: Timeline, value: Value) -> Slices:
        is_on_track = np.zeros(timeline.size, bool)
        for number, track in enumerate(timeline.tracks):
            if getattr(track, attribute) == value:
                is_on_track[timeline.slices_on(number)] = True
        return is_on_track

    return slices


def _on_thread(trace: Trace, timeline: Timeline, name: Value) -> Slices:
    return _of_tracks("name")(trace, timeline, name) & ~spans_on_streams(timeline)


def _of_side(_trace: Trace, timeline: Timeline, side: Value) -> Slices:
    is_on_stream = np.array([track.stream is not None for track in timeline.tracks], bool)
    slices = np.repeat(is_on_stream, [track.slices for track in timeline.tracks])
    return slices if side == "device" else ~slices


def _in_group(by: By) -> Callable[[Trace, Timeline, Value], Slices]:
    """The slices of a group of an area's table."""

    def slices(trace: Trace, timeline: Timeline, name: Value) -> Slices:
        of = groups(trace, timeline, by)
        is_in_group = np.isin(of.code, [code for code, text in enumerate(of.names) if text == (name or "")])
        return is_in_group & ~spans_on_streams(timeline)

    return slices


def _of_step(trace: Trace, timeline: Timeline, name: Value) -> Slices:
    names, parts = trace.steps["name"], list[NDArray[np.int32]]()
    for frame in ("host_events", "launches", "device_events"):
        step = getattr(trace, frame)["step"].to_numpy()
        is_so = step < 0 if name is None else gather((names == name).to_numpy(), step, missing=False)
        parts.append(timeline.slices_of(frame, np.flatnonzero(is_so)))
    return np.concatenate(parts)


def _of_collective(trace: Trace, timeline: Timeline, predicates: Mapping[str, Value]) -> Slices:
    """The operators and kernels with these recorded values, and the work launched by such operators."""
    collectives = trace.collectives
    rows = rows_where(collectives, **{_COLLECTIVE[name]: value for name, value in predicates.items()})
    host, device = (collectives[name].to_numpy()[rows] for name in ("host_event", "device_event"))
    rows_launched = np.flatnonzero(np.isin(trace.device_events["op"].to_numpy(), host[host >= 0]))
    device = np.concatenate([device, rows_launched])
    return np.concatenate([timeline.slices_of("host_events", host), timeline.slices_of("device_events", device)])


def slices_at_byte(trace: Trace, timeline: Timeline, offset: Value) -> NDArray[np.int32]:
    """The slice of the event at a byte of the file; for a memory record, the operator that was open."""
    parts = [timeline.slices_of(frame, rows_where(getattr(trace, frame), offset=offset)) for frame in FRAMES]
    ops = trace.memory["op"].to_numpy()[rows_where(trace.memory, offset=offset)]
    return np.concatenate([*parts, timeline.slices_of("host_events", ops)])


def _reaching_beyond(_trace: Trace, timeline: Timeline, at: Value) -> Slices:
    end = timeline.start_ns + timeline.dur_ns
    mask: NDArray[np.bool_] = (end > at) | (timeline.start_ns >= at)
    return mask


_OF_VALUE: dict[str, tuple[Any, Callable[[Trace, Timeline, Value], Slices]]] = {
    "input_shapes": (_TEXT, _of_shapes),
    "op": (_TEXT, _of_op),
    "device": (_NUMBER, _of_tracks("device")),
    "stream": (_NUMBER, _of_tracks("stream")),
    "side": (str, _of_side),
    "thread": (str, _of_tracks("tid")),
    "process": (str, _of_tracks("pid")),
    "in_thread": (_TEXT, _on_thread),
    "in_process": (_TEXT, _of_tracks("process")),
    "in_operator": (_TEXT, _in_group("operator")),
    "in_module": (_TEXT, _in_group("module")),
    "in_annotation": (_TEXT, _in_group("annotation")),
    "step": (_TEXT, _of_step),
    "offset": (int, slices_at_byte),
    "from_ns": (int, _reaching_beyond),
    "to_ns": (int, lambda _, timeline, at: timeline.start_ns < at),
    "least_ns": (int, lambda _, timeline, dur: timeline.dur_ns >= dur),
    "below_ns": (int, lambda _, timeline, dur: timeline.dur_ns < dur),
}
_COLLECTIVE = {"collective": "name", "group": "group", "nth": "nth"}
VALUES: dict[str, Any] = {
    **{name: types for name, (types, _) in _OF_VALUE.items()},
    "collective": _TEXT,
    "group": _TEXT,
    "nth": _NUMBER,
}
"""The possible predicates, with the types of their values."""
