"""Allocations: each piece of memory that was taken, with its release, its lifetime and who asked for it.

A release belongs to the last allocation of its address on its device. What is unmatched is kept and told apart, since
a recording sees a part of a process: `FATES` says how.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather, map_categories
from ...arrays.jit import Array, compiled
from ...arrays.nesting import nearest
from ...trace.model import Trace
from .levels import DeviceMemory

FATES = (
    "released",  # both ends were recorded
    "never released",  # no release was recorded up to the end
    "address reused",  # another allocation has the address: the release was not recorded
    "allocated earlier",  # only the release was recorded: before the recording, or unseen
    "no address",  # records have no address (torch before 1.10): allocations and releases can't be matched
    "out of memory",  # a request that the device had no memory for
)
RELEASED, KEPT, RETAKEN, OLDER, UNTOLD, FAILED = range(len(FATES))

_ALLOCATORS = ("aten::empty", "aten::new_empty", "aten::resize_")

SCHEMA = {
    "device": pl.String,  # its name
    "fate": pl.Int8,  # a place in FATES
    "size_bytes": pl.Int64,
    "at_ns": pl.Int64,  # when the record was made that tells of it, of two the first
    "taken_ns": pl.Int64,
    "gone_ns": pl.Int64,  # released; of what was retaken, when that happened at the latest
    "row": pl.Int64,  # that record: a row of `trace.memory`
    "taken": pl.Int64,  # the record's place among those of the device
    "gone": pl.Int64,
}
"""One row is one piece of memory, unmatched release or failed request; NONE where an end is unknown. Order: device,
then the record that tells of it."""


def allocations(memories: Iterable[DeviceMemory]) -> pl.DataFrame:
    """The allocations of some devices, as `SCHEMA` describes them; records of no bytes tell of none."""
    return pl.concat([pl.DataFrame(schema=SCHEMA), *map(_of_device, memories)])


def _of_device(memory: DeviceMemory) -> pl.DataFrame:
    change = memory.change_bytes
    is_told = memory.address != NONE
    known = np.flatnonzero(is_told)
    by_address = known[np.argsort(memory.address[known], kind="stable")]
    other, is_retaken = _pairs(memory.address, memory.time_ns, change, by_address)
    fate = np.select(
        [memory.is_failure, ~is_told, change < 0, is_retaken, other >= 0],
        [FAILED, UNTOLD, OLDER, RETAKEN, RELEASED],
        default=KEPT,
    )
    tells = memory.is_failure | (change > 0) | ((change < 0) & (other < 0))
    place = np.flatnonzero(tells)
    taken = np.where(change[place] > 0, place, NONE)
    gone = np.where(change[place] < 0, place, other[place])
    return pl.DataFrame(
        {
            "device": pl.repeat(memory.name, place.size, dtype=pl.String, eager=True),
            "fate": fate[place],
            "size_bytes": np.where(memory.is_failure, memory.asked_bytes, np.abs(change))[place],
            "at_ns": memory.time_ns[place],
            "taken_ns": gather(memory.time_ns, taken),
            "gone_ns": gather(memory.time_ns, gone),
            "row": memory.row[place],
            "taken": taken,
            "gone": gone,
        },
        schema=SCHEMA,
    )


def alive_at(found: pl.DataFrame, record: int) -> pl.DataFrame:
    """Which allocations of one device were there after a record of it; -1: none of the recording."""
    gone = pl.col("gone")
    return found.filter((pl.col("taken") >= 0) & (pl.col("taken") <= record) & ((gone < 0) | (gone > record)))


def askers(trace: Trace) -> NDArray[np.int32]:
    """For each host event the operator that asked for the memory taken in it, or NONE: a row of host_events.

    That is the innermost operator, or what called it where it is one that only allocates, such as aten::empty.
    """
    host = trace.host_events
    parent = host["parent"].to_numpy()
    is_op = (host["kind"] == "operator").to_numpy()
    allocates = map_categories(host["name"], lambda name: name.startswith(_ALLOCATORS)).astype(bool)
    above = gather(nearest(is_op, parent), parent)
    asking = nearest(is_op & ~allocates, parent)
    alone: NDArray[np.int32] = nearest(is_op & (above < 0), parent)
    return np.where(asking >= 0, asking, alone)


@compiled
def _pairs(address: Array, time: Array, change: Array, order: Array) -> tuple[Array, Array]:
    """For each record the place of its other end, and whether an allocation ends by another's at its address.

    `order` sorts the records by address, then as they come.
    """
    other = np.full(address.size, NONE, np.int64)
    is_retaken = np.zeros(address.size, np.bool_)
    held = NONE
    for k in range(order.size):
        record = order[k]
        if k and address[record] != address[order[k - 1]]:
            held = NONE
        following = order[k + 1] if k + 1 < order.size else record
        if (
            change[record] > 0
            and held >= 0
            and change[following] < 0
            and address[following] == address[record]
            and time[following] == time[record]
        ):
            order[k], order[k + 1] = following, record  # another thread's release, which the file tells later
            record = following
        if change[record] > 0:
            if held >= 0:
                other[held] = record
                is_retaken[held] = True
            held = record
        elif change[record] < 0 and held >= 0:
            other[held] = record
            other[record] = held
            held = NONE
    return other, is_retaken
