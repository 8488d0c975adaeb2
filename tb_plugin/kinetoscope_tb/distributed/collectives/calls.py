"""The collectives and transfers of one recording, one row each, from the metadata where there is any, else from names.

A call is known by its operator on the host, which fixes the order and says the most, and by its kernels, which say how
long it took. Where only one of both was recorded, the row says what that one knows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather, map_categories, texts
from ...arrays.intervals import Ints, length_within
from ...arrays.nesting import nearest
from ...names.collectives import NOT_A_CALL, UNKNOWN, kind_of
from ...names.kernels import is_queued_communication
from ...trace import Trace
from ..activity import computing
from ..model import CALLS
from ..process_groups import Groups
from .sizes import sizes_of

Rows = NDArray[np.int32]
Mask = NDArray[np.bool_]

_COMMS = "record_param_comms"
_BACKEND_RANGE = re.compile(r"(nccl|rccl|gloo|xccl|oneccl|ccl|hccl|ucc|mpi):(?P<what>\w+)")
_ON_HOST = re.compile(r"(gloo|mpi):")
"""Backends that move the data in their own threads, so that the host range is how long it takes."""


@dataclass(frozen=True)
class CallRows:
    """Calls before they are rows: what tells each of them, NONE where it wasn't recorded. Order: begin of the call.

    Attributes:
        op: The operator that kernels hang on: a row of host_events.
        said: A row of trace.collectives.
        named: A row of host_events whose name and inputs tell what the metadata doesn't.
        kernel: The first of its device rows.
        last: The one of them that ended last.
        timed: The row of host_events that it begins and ends with, if that is no device row.
        start: When it began to move data.
        end: When it had.
    """

    op: Rows
    said: Rows
    named: Rows
    kernel: Rows
    last: Rows
    timed: Rows
    start: Ints
    end: Ints

    @classmethod
    def of(cls, trace: Trace) -> CallRows:
        """Return the calls of a trace."""
        found = _call_rows(trace)
        order = np.argsort(_begin(trace, found), kind="stable")
        return cls(**{field.name: getattr(found, field.name)[order] for field in fields(cls)})


def calls(trace: Trace, found: CallRows, groups: Groups) -> pl.DataFrame:
    """The frame CALLS; `groups` gets the groups that occur."""
    said = trace.collectives
    kinds = _kinds(trace, found)
    is_timed = found.end >= found.start
    _, _, message, dtype = sizes_of(trace, found.said, found.named, kinds)
    exposed = (found.end - found.start) - length_within(computing(trace), found.start, found.end)
    to, come = (gather(said[name].to_numpy(), found.said) for name in ("target_rank", "source_rank"))
    peer = np.where((kinds == "send").to_numpy(), to, np.where((kinds == "recv").to_numpy(), come, NONE))
    return pl.DataFrame(
        {
            "kind": kinds,
            "group": groups.of(trace, found.said),
            "nth": gather(said["nth"].to_numpy(), found.said),
            "bytes": message,
            "dtype": dtype,
            "peer": peer,
            "start_ns": found.start,
            "dur_ns": np.where(is_timed, found.end - found.start, NONE),
            "exposed_ns": np.where(is_timed, exposed, NONE),
            "step": _step(trace, found),
            "offset": _offset(trace, found),
        },
        schema=CALLS,
    )


def _call_rows(trace: Trace) -> CallRows:
    """Every call: those of operators with metadata, those of a backend's ranges, and kernels that belong to neither."""
    host, device, said = trace.host_events, trace.device_events, trace.collectives
    parent = host["parent"].to_numpy()
    is_call = ~map_categories(said["name"], lambda name: bool(NOT_A_CALL.match(name)), missing=True).astype(bool)
    told = np.flatnonzero(is_call & (said["host_event"].to_numpy() >= 0)).astype(np.int32)
    op_told = said["host_event"].to_numpy()[told]
    ranges = _backend_ranges(host)
    is_comms = map_categories(host["name"], lambda name: name == _COMMS).astype(bool)
    around = gather(nearest(is_comms, parent), ranges)
    ranges_alone = ~np.isin(around, op_told) | (around < 0)
    op = np.concatenate([op_told, np.where(around >= 0, around, ranges)[ranges_alone]])
    said_of = np.concatenate([told, np.full(int(ranges_alone.sum()), NONE, np.int32)])
    named = np.concatenate([_first_inside(around, ranges, op_told), ranges[ranges_alone]])
    kernel, last, start, end, alone = _kernels_of(trace, op)
    _, first = np.unique(op, return_index=True)  # several ranges inside one operator are parts of one call
    first.sort()
    op, said_of, named, kernel, last = op[first], said_of[first], named[first], kernel[first], last[first]
    timed = np.where(_is_timed_by_host(trace, named) & (kernel < 0), np.where(named >= 0, named, op), NONE)
    start, end = _host_times(host, timed, start[first], end[first])
    begin, dur = device["start_ns"].to_numpy()[alone], device["dur_ns"].to_numpy()[alone]
    none = np.full(alone.size, NONE, np.int32)
    told_by = _said_of_kernels(trace, alone)
    return CallRows(
        np.concatenate([op, none]),
        np.concatenate([said_of, told_by]),
        np.concatenate([named, none]),
        np.concatenate([kernel, alone]),
        np.concatenate([last, alone]),
        np.concatenate([timed.astype(np.int32), none]),
        np.concatenate([start, begin]),
        np.concatenate([end, begin + dur]),
    )


def _backend_ranges(host: pl.DataFrame) -> Rows:
    """Annotations in which a backend does one call, such as nccl:all_reduce or gloo:all_reduce."""
    is_one = map_categories(host["name"], _is_backend_call).astype(bool)
    return np.flatnonzero(is_one).astype(np.int32)


def _is_backend_call(name: str) -> bool:
    found = _BACKEND_RANGE.match(name)
    return bool(found) and not NOT_A_CALL.match(found["what"])  # type: ignore[index]


def _is_timed_by_host(trace: Trace, named: Rows) -> Mask:
    """Whether the backend's own range, or without one the operator, is how long a call without kernels takes.

    It isn't where the work goes into a device's queue: there it is how long it took to put it in. Where the backend
    isn't known and the device shows communication, or the job talks through a device, it is taken to be so.
    """
    names = trace.host_events["name"]
    if trace.device_events["is_communication"].any():
        return gather(map_categories(names, lambda name: bool(_ON_HOST.match(name))), named, missing=False).astype(bool)
    is_queued = is_queued_communication(str(trace.meta.distributed.get("backend", "")))
    queued = gather(map_categories(names, is_queued_communication), named, missing=is_queued)
    return ~queued.astype(bool)


def _first_inside(around: Rows, ranges: Rows, ops: Rows) -> Rows:
    """The first of the ranges inside each operator, or NONE."""
    found = np.full(ops.size, NONE, np.int32)
    if ranges.size and ops.size:
        order = np.argsort(around, kind="stable")
        at = np.searchsorted(around[order], ops)
        inside = at < ranges.size
        same = np.zeros(ops.size, bool)
        same[inside] = around[order][at[inside]] == ops[inside]
        found[same] = ranges[order][at[same]]
    return found


def _kernels_of(trace: Trace, ops: Rows) -> tuple[Rows, Rows, Ints, Ints, Rows]:
    """Per operator the first and the last kernel, when that began and this ended; and the kernels of no such operator.

    A kernel may hang on a range below or around the operator: what torch launched from is the innermost operator.
    """
    device = trace.device_events
    rows = np.flatnonzero(device["is_communication"].to_numpy()).astype(np.int32)
    is_op = np.zeros(trace.host_events.height, bool)
    is_op[ops] = True
    holder = gather(nearest(is_op, trace.host_events["parent"].to_numpy()), device["op"].to_numpy()[rows])
    place = np.full(trace.host_events.height + 1, NONE, np.int32)
    place[ops] = np.arange(ops.size, dtype=np.int32)
    call = place[holder]
    begin = device["start_ns"].to_numpy()[rows]
    ends = begin + device["dur_ns"].to_numpy()[rows]
    kernel, last = np.full(ops.size, NONE, np.int32), np.full(ops.size, NONE, np.int32)
    start, end = np.full(ops.size, np.iinfo(np.int64).max), np.full(ops.size, NONE, np.int64)
    mine = call >= 0
    kernel[call[mine][::-1]] = rows[mine][::-1]  # rows are in order of their start: the first stays
    by_end = np.argsort(ends, kind="stable")
    by_end = by_end[mine[by_end]]
    last[call[by_end]] = rows[by_end]
    np.minimum.at(start, call[mine], begin[mine])
    np.maximum.at(end, call[mine], ends[mine])
    start[kernel < 0] = 0
    return kernel, last, start, end, rows[~mine]


def _said_of_kernels(trace: Trace, kernels: Rows) -> Rows:
    """What the metadata says of kernels themselves: rows of trace.collectives, or NONE."""
    place = np.full(trace.device_events.height + 1, NONE, np.int32)
    rows = trace.collectives["device_event"].to_numpy()
    real = np.flatnonzero(rows >= 0)
    place[rows[real]] = real.astype(np.int32)
    return place[kernels]


def _host_times(host: pl.DataFrame, row: Rows, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """When the host's range began and ended, where there is one; else as told."""
    begin = host["start_ns"].to_numpy()
    return (
        np.where(row >= 0, gather(begin, row, 0), start),
        np.where(row >= 0, gather(begin + host["dur_ns"].to_numpy(), row), end),
    )


def _begin(trace: Trace, found: CallRows) -> Ints:
    """When the program made the call, as far as that is known; else when its kernel began."""
    host = gather(trace.host_events["start_ns"].to_numpy(), np.where(found.op >= 0, found.op, found.named), -1)
    launch = gather(trace.device_events["launch"].to_numpy(), found.kernel)
    launched = gather(trace.launches["start_ns"].to_numpy(), launch, -1)
    return np.where(host >= 0, host, np.where(launched >= 0, launched, found.start))


def _kinds(trace: Trace, found: CallRows) -> pl.Series:
    """The metadata's word, else that of the host's range, else that of the kernel."""
    host = trace.host_events["name"]
    names = (
        texts(trace.collectives["name"], found.said),
        texts(host, np.where(found.named >= 0, found.named, found.op)),
        texts(trace.device_events["name"], found.kernel),
    )
    kinds = [_kinds_of_names(each) for each in names]
    return kinds[0].fill_null(kinds[1]).fill_null(kinds[2]).fill_null(UNKNOWN)


def _kinds_of_names(names: pl.Series) -> pl.Series:
    """The kind that each name tells, or null."""
    known = {name: kind for name in names.drop_nulls().unique() if (kind := kind_of(name)) != UNKNOWN}
    if not known:
        return pl.Series([None] * names.len(), dtype=pl.String)
    return names.replace_strict(known, default=None, return_dtype=pl.String)


def _step(trace: Trace, found: CallRows) -> NDArray[np.int32]:
    """The step in which the call was made."""
    begin, steps = _begin(trace, found), trace.steps
    step = (np.searchsorted(steps["host_start_ns"].to_numpy(), begin, "right") - 1).astype(np.int32)
    return np.where(begin < gather(steps["host_end_ns"].to_numpy(), step), step, NONE).astype(np.int32)


def _offset(trace: Trace, found: CallRows) -> Ints:
    """Of its kernel's event, else of its range's."""
    host = gather(trace.host_events["offset"].to_numpy(), np.where(found.named >= 0, found.named, found.op))
    device = gather(trace.device_events["offset"].to_numpy(), found.kernel)
    return np.where(device >= 0, device, host)
