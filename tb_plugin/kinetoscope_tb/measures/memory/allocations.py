"""Allocations with their releases, lifetimes and requesting operators.

A release belongs to the last allocation of its address on its device. Since a trace covers only a part of a process,
some allocations and releases have no match: `FATES` lists the cases.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather, map_categories
from ...arrays.native import Array, Function
from ...arrays.nesting import nearest
from ...trace.model import Trace
from ...trace.row_filters import is_operator
from .levels import DeviceMemory

_pair_allocations = Function("pair_allocations")

FATES = (
    "released",  # allocation and release were recorded
    "never released",  # no release was recorded up to the end
    "address reused",  # another allocation has the address: the release was not recorded
    "allocated earlier",  # only the release was recorded: the allocation was earlier, or not recorded
    "no address",  # records have no address (torch before 1.10): allocations and releases can't be matched
    "out of memory",  # a failed request
)
RELEASED, ALIVE, REUSED, EARLIER, NO_ADDRESS, FAILED = range(len(FATES))

_ALLOCATORS = ("aten::empty", "aten::new_empty", "aten::resize_")

SCHEMA = {
    "device": pl.String,  # its name
    "fate": pl.Int8,  # an index of FATES
    "size_bytes": pl.Int64,
    "at_ns": pl.Int64,  # time of its first record
    "allocated_ns": pl.Int64,
    "released_ns": pl.Int64,  # of its release; if its address was reused, the latest possible time
    "row": pl.Int64,  # its first record: a row of `trace.memory`
    "allocated": pl.Int64,  # index of the record among those of the device
    "released": pl.Int64,
}
"""One row is one allocation, unmatched release or failed request; NONE where an end is unknown. Order: device, then
first record."""


def allocations(memories: Iterable[DeviceMemory]) -> pl.DataFrame:
    """The allocations of some devices, as SCHEMA; records of 0 bytes are ignored."""
    return pl.concat([pl.DataFrame(schema=SCHEMA), *map(_of_device, memories)])


def _of_device(memory: DeviceMemory) -> pl.DataFrame:
    change = memory.change_bytes
    has_address = memory.address != NONE
    rows_with_address = np.flatnonzero(has_address)
    by_address = rows_with_address[np.argsort(memory.address[rows_with_address], kind="stable")]
    other, is_reused = _pairs(memory.address, memory.time_ns, change, by_address)
    fate = np.select(
        [memory.is_failure, ~has_address, change < 0, is_reused, other >= 0],
        [FAILED, NO_ADDRESS, EARLIER, REUSED, RELEASED],
        default=ALIVE,
    )
    tells = memory.is_failure | (change > 0) | ((change < 0) & (other < 0))
    records = np.flatnonzero(tells)
    allocation = np.where(change[records] > 0, records, NONE)
    release = np.where(change[records] < 0, records, other[records])
    return pl.DataFrame(
        {
            "device": pl.repeat(memory.name, records.size, dtype=pl.String, eager=True),
            "fate": fate[records],
            "size_bytes": np.where(memory.is_failure, memory.requested_bytes, np.abs(change))[records],
            "at_ns": memory.time_ns[records],
            "allocated_ns": gather(memory.time_ns, allocation),
            "released_ns": gather(memory.time_ns, release),
            "row": memory.row[records],
            "allocated": allocation,
            "released": release,
        },
        schema=SCHEMA,
    )


def alive_at(pieces: pl.DataFrame, record: int) -> pl.DataFrame:
    """The allocations of one device that were alive after a record of it; -1: before its first record."""
    release = pl.col("released")
    return pieces.filter(
        (pl.col("allocated") >= 0) & (pl.col("allocated") <= record) & ((release < 0) | (release > record))
    )


def askers(trace: Trace) -> NDArray[np.int32]:
    """For each host event the operator that requested the memory allocated in it, or NONE: a row of host_events.

    That is the innermost operator, or its caller if it only allocates, such as aten::empty.
    """
    host = trace.host_events
    parent = host["parent"].to_numpy()
    is_op = is_operator(trace)
    allocates = map_categories(host["name"], lambda name: name.startswith(_ALLOCATORS)).astype(bool)
    above = gather(nearest(is_op, parent), parent)
    requester = nearest(is_op & ~allocates, parent)
    alone: NDArray[np.int32] = nearest(is_op & (above < 0), parent)
    return np.where(requester >= 0, requester, alone)


def _pairs(address: Array, time: Array, change: Array, order: Array) -> tuple[Array, Array]:
    """For each record the index of its other end, and whether another allocation reuses its address.

    `order` sorts the records by address, then by time.
    """
    other, is_reused = np.full(address.size, NONE, np.int64), np.zeros(address.size, np.bool_)
    _pair_allocations(address, time, change, order, other, is_reused)
    return other, is_reused
