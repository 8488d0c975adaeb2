"""The collectives and transfers of one trace, one row each, from the metadata or, without any, from names.

The operator on the host has the order and most facts of a call; its kernels have its duration. If only one of them was
recorded, the row has the facts of that one.
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
from ...trace.row_filters import name_mask
from ..activity import computation_intervals
from ..model import CALLS
from ..process_groups import Groups
from .sizes import group_sizes, sizes_of

Rows = NDArray[np.int32]
Mask = NDArray[np.bool_]

_COMMS = "record_param_comms"
_BACKEND_RANGE = re.compile(r"(nccl|rccl|gloo|xccl|oneccl|ccl|hccl|ucc|mpi):(?P<what>\w+)")
_ON_HOST = re.compile(r"(gloo|mpi):")
"""Backends that move data in their own host threads, so that the host range is the transfer."""


@dataclass(frozen=True)
class CallRows:
    """The events of each call, NONE where one wasn't recorded. Order: begin of the call.

    Attributes:
        op: The operator that launched its kernels: a row of host_events.
        metadata: A row of trace.collectives.
        backend_range: A row of host_events whose name and inputs supplement the metadata.
        kernel: The first of its device rows.
        last: The device row that ended last.
        host_transfer: The row of host_events that it begins and ends with, if it has no device row.
        start: When the transfer began.
        end: When it ended.
    """

    op: Rows
    metadata: Rows
    backend_range: Rows
    kernel: Rows
    last: Rows
    host_transfer: Rows
    start: Ints
    end: Ints

    @classmethod
    def of(cls, trace: Trace) -> CallRows:
        """Return the calls of a trace."""
        calls = _call_rows(trace)
        order = np.argsort(_begin(trace, calls), kind="stable")
        return cls(**{field.name: getattr(calls, field.name)[order] for field in fields(cls)})


def calls(trace: Trace, rows: CallRows, groups: Groups) -> pl.DataFrame:
    """The frame CALLS; groups that occur are added to `groups`."""
    metadata = trace.collectives
    kinds = _kinds(trace, rows)
    is_timed = rows.end >= rows.start
    group = groups.of(trace, rows.metadata, group_sizes(trace, rows.op))
    _, _, message, dtype = sizes_of(trace, rows.metadata, rows.backend_range, kinds, groups.sizes_of(group))
    exposed_ns = (rows.end - rows.start) - length_within(computation_intervals(trace), rows.start, rows.end)
    to, come = (gather(metadata[name].to_numpy(), rows.metadata) for name in ("target_rank", "source_rank"))
    peer = np.where((kinds == "send").to_numpy(), to, np.where((kinds == "recv").to_numpy(), come, NONE))
    return pl.DataFrame(
        {
            "kind": kinds,
            "group": group,
            "nth": gather(metadata["nth"].to_numpy(), rows.metadata),
            "bytes": message,
            "dtype": dtype,
            "peer": peer,
            "start_ns": rows.start,
            "dur_ns": np.where(is_timed, rows.end - rows.start, NONE),
            "exposed_ns": np.where(is_timed, exposed_ns, NONE),
            "step": _step(trace, rows),
            "offset": _offset(trace, rows),
        },
        schema=CALLS,
    )


def _call_rows(trace: Trace) -> CallRows:
    """All calls: of operators with metadata, of a backend's ranges, and of kernels that belong to neither."""
    host, device, metadata = trace.host_events, trace.device_events, trace.collectives
    parent = host["parent"].to_numpy()
    is_call = ~map_categories(metadata["name"], lambda name: bool(NOT_A_CALL.match(name)), missing=True).astype(bool)
    with_metadata = np.flatnonzero(is_call & (metadata["host_event"].to_numpy() >= 0)).astype(np.int32)
    op_with_metadata = metadata["host_event"].to_numpy()[with_metadata]
    ranges = _backend_ranges(host)
    is_comms = name_mask(host["name"], lambda name: name == _COMMS)
    around = gather(nearest(is_comms, parent), ranges)
    ranges_alone = ~np.isin(around, op_with_metadata) | (around < 0)
    op = np.concatenate([op_with_metadata, np.where(around >= 0, around, ranges)[ranges_alone]])
    metadata_row = np.concatenate([with_metadata, np.full(int(ranges_alone.sum()), NONE, np.int32)])
    backend_range = np.concatenate([_first_inside(around, ranges, op_with_metadata), ranges[ranges_alone]])
    kernel, last, start, end, alone = _kernels_of(trace, op)
    _, first = np.unique(op, return_index=True)  # several ranges inside one operator are parts of one call
    first.sort()
    op, metadata_row, backend_range, kernel, last = (
        op[first],
        metadata_row[first],
        backend_range[first],
        kernel[first],
        last[first],
    )
    host_transfer = np.where(
        _is_timed_by_host(trace, backend_range) & (kernel < 0), np.where(backend_range >= 0, backend_range, op), NONE
    )
    start, end = _host_times(host, host_transfer, start[first], end[first])
    begin, dur = device["start_ns"].to_numpy()[alone], device["dur_ns"].to_numpy()[alone]
    none = np.full(alone.size, NONE, np.int32)
    kernel_metadata_row = _metadata_of_kernels(trace, alone)
    return CallRows(
        np.concatenate([op, none]),
        np.concatenate([metadata_row, kernel_metadata_row]),
        np.concatenate([backend_range, none]),
        np.concatenate([kernel, alone]),
        np.concatenate([last, alone]),
        np.concatenate([host_transfer.astype(np.int32), none]),
        np.concatenate([start, begin]),
        np.concatenate([end, begin + dur]),
    )


def _backend_ranges(host: pl.DataFrame) -> Rows:
    """A backend's annotations of one call each, such as nccl:all_reduce or gloo:all_reduce."""
    is_one = name_mask(host["name"], _is_backend_call)
    return np.flatnonzero(is_one).astype(np.int32)


def _is_backend_call(name: str) -> bool:
    match = _BACKEND_RANGE.match(name)
    return bool(match) and not NOT_A_CALL.match(match["what"])  # type: ignore[index]


def _is_timed_by_host(trace: Trace, backend_range: Rows) -> Mask:
    """Whether the backend's own range, or else the operator, has the duration of a call without kernels.

    It hasn't if the call only enqueues work on a device. With an unknown backend, calls count as enqueued if the device
    shows communication, or if the job's backend uses devices.
    """
    names = trace.host_events["name"]
    if trace.device_events["is_communication"].any():
        return gather(
            map_categories(names, lambda name: bool(_ON_HOST.match(name))), backend_range, missing=False
        ).astype(bool)
    is_queued = is_queued_communication(str(trace.meta.distributed_info.get("backend", "")))
    only_enqueues = gather(map_categories(names, is_queued_communication), backend_range, missing=is_queued)
    return ~only_enqueues.astype(bool)


def _first_inside(around: Rows, ranges: Rows, ops: Rows) -> Rows:
    """The first of the ranges inside each operator, or NONE."""
    first = np.full(ops.size, NONE, np.int32)
    if ranges.size and ops.size:
        order = np.argsort(around, kind="stable")
        at = np.searchsorted(around[order], ops)
        inside = at < ranges.size
        same = np.zeros(ops.size, bool)
        same[inside] = around[order][at[inside]] == ops[inside]
        first[same] = ranges[order][at[same]]
    return first


def _kernels_of(trace: Trace, ops: Rows) -> tuple[Rows, Rows, Ints, Ints, Rows]:
    """Per operator the first and the last kernel, their start and end; and the kernels without such an operator.

    A kernel's launching operator may be nested in the call's operator, or around it if the call is an annotation.
    """
    device = trace.device_events
    rows = np.flatnonzero(device["is_communication"].to_numpy()).astype(np.int32)
    is_op = np.zeros(trace.host_events.height, bool)
    is_op[ops] = True
    open_then = gather(trace.launches["host"].to_numpy(), device["launch"].to_numpy()[rows])
    innermost = np.where(open_then >= 0, open_then, trace.recorded_op.to_numpy()[rows])
    holder = gather(nearest(is_op, trace.host_events["parent"].to_numpy()), innermost)
    call_of_op = np.full(trace.host_events.height + 1, NONE, np.int32)
    call_of_op[ops] = np.arange(ops.size, dtype=np.int32)
    call = call_of_op[holder]
    begin = device["start_ns"].to_numpy()[rows]
    ends = begin + device["dur_ns"].to_numpy()[rows]
    kernel, last = np.full(ops.size, NONE, np.int32), np.full(ops.size, NONE, np.int32)
    start, end = np.full(ops.size, np.iinfo(np.int64).max), np.full(ops.size, NONE, np.int64)
    mine = call >= 0
    kernel[call[mine][::-1]] = rows[mine][::-1]  # rows are sorted by start: the first one is written last
    by_end = np.argsort(ends, kind="stable")
    by_end = by_end[mine[by_end]]
    last[call[by_end]] = rows[by_end]
    np.minimum.at(start, call[mine], begin[mine])
    np.maximum.at(end, call[mine], ends[mine])
    start[kernel < 0] = 0
    return kernel, last, start, end, rows[~mine]


def _metadata_of_kernels(trace: Trace, kernels: Rows) -> Rows:
    """The metadata of kernels themselves: rows of trace.collectives, or NONE."""
    metadata_row = np.full(trace.device_events.height + 1, NONE, np.int32)
    rows = trace.collectives["device_event"].to_numpy()
    real = np.flatnonzero(rows >= 0)
    metadata_row[rows[real]] = real.astype(np.int32)
    return metadata_row[kernels]


def _host_times(host: pl.DataFrame, row: Rows, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Start and end of the host's range if there is one, else the given ones."""
    begin = host["start_ns"].to_numpy()
    return (
        np.where(row >= 0, gather(begin, row, 0), start),
        np.where(row >= 0, gather(begin + host["dur_ns"].to_numpy(), row), end),
    )


def _begin(trace: Trace, rows: CallRows) -> Ints:
    """When the program made the call, or else when its kernel began."""
    host = gather(trace.host_events["start_ns"].to_numpy(), np.where(rows.op >= 0, rows.op, rows.backend_range), -1)
    launch = gather(trace.device_events["launch"].to_numpy(), rows.kernel)
    launch_start = gather(trace.launches["start_ns"].to_numpy(), launch, -1)
    return np.where(host >= 0, host, np.where(launch_start >= 0, launch_start, rows.start))


def _kinds(trace: Trace, rows: CallRows) -> pl.Series:
    """The kind according to the metadata, else to the host's range, else to the kernel."""
    host = trace.host_events["name"]
    names = (
        texts(trace.collectives["name"], rows.metadata),
        texts(host, np.where(rows.backend_range >= 0, rows.backend_range, rows.op)),
        texts(trace.device_events["name"], rows.kernel),
    )
    kinds = [_kinds_of_names(series) for series in names]
    return kinds[0].fill_null(kinds[1]).fill_null(kinds[2]).fill_null(UNKNOWN)


def _kinds_of_names(names: pl.Series) -> pl.Series:
    """The kind of each name, or null."""
    kinds = {name: kind for name in names.drop_nulls().unique() if (kind := kind_of(name)) != UNKNOWN}
    if not kinds:
        return pl.Series([None] * names.len(), dtype=pl.String)
    return names.replace_strict(kinds, default=None, return_dtype=pl.String)


def _step(trace: Trace, rows: CallRows) -> NDArray[np.int32]:
    """The step in which the call was made."""
    begin, steps = _begin(trace, rows), trace.steps
    step = (np.searchsorted(steps["host_start_ns"].to_numpy(), begin, "right") - 1).astype(np.int32)
    return np.where(begin < gather(steps["host_end_ns"].to_numpy(), step), step, NONE).astype(np.int32)


def _offset(trace: Trace, rows: CallRows) -> Ints:
    """Offset of its kernel's event, or else of its range's."""
    host = gather(
        trace.host_events["offset"].to_numpy(), np.where(rows.backend_range >= 0, rows.backend_range, rows.op)
    )
    device = gather(trace.device_events["offset"].to_numpy(), rows.kernel)
    return np.where(device >= 0, device, host)
