"""Events that were recorded twice: the second copy is left out where the two can't be different events.

A thread makes one call at a time and a stream runs one row at a time, so rows that agree in name, place, start,
duration and correlation are one event, unless they last too short for the clock to tell them apart. Operators nest, and
may begin and end with their only child: two of them are one event only if they have the same External id, which torch
counts up with each call, or the same number of a Python frame.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from .model import Diagnostic

_CLOCK_NS = 1_000  # times of torch before 2.4 are in whole microseconds
_SAME = {  # what two copies agree in: the last one is a number that isn't used twice, and must be known
    "host_events": ("name", "kind", "thread", "start_ns", "dur_ns", "external_id"),
    "launches": ("name", "thread", "start_ns", "dur_ns", "correlation"),
    "device_events": ("name", "device", "stream", "start_ns", "dur_ns", "correlation"),
    "python_calls": ("name", "thread", "start_ns", "dur_ns", "python_id"),
}
_Frames = Mapping[str, pl.DataFrame]


def without_duplicates(frames: _Frames) -> tuple[_Frames, tuple[Diagnostic, ...]]:
    """The frames without second copies, and how many there were."""
    copies = {name: _second_copies(frames[name], columns) for name, columns in _SAME.items()}
    lost_offsets = [frames[name]["offset"].to_numpy()[is_copy] for name, is_copy in copies.items()]
    offsets = np.concatenate(lost_offsets)
    if not offsets.size:
        return frames, ()
    once = {name: frames[name].filter(pl.Series(~is_copy)) for name, is_copy in copies.items()}
    collectives = frames["collectives"]
    metadata = collectives.filter(pl.Series(~np.isin(collectives["offset"].to_numpy(), offsets)))
    words = (
        "Events were recorded twice, with the same name, place, time and number: the second copy of each is left out. "
        "Two profilers, or a tool that merged files, wrote both."
    )
    diagnostic = Diagnostic("events_twice", int(offsets.size), words, int(offsets.min()))
    return {**frames, **once, "collectives": metadata}, (diagnostic,)


def _second_copies(rows: pl.DataFrame, columns: tuple[str, ...]) -> NDArray[np.bool_]:
    """Which rows are a copy of an earlier one. Only rows that begin together are compared, which are few."""
    *_, number = columns
    start, dur, numbers = (rows[name].to_numpy() for name in ("start_ns", "dur_ns", number))
    together = np.zeros(start.size, bool)
    together[1:] = start[1:] == start[:-1]
    together[:-1] |= together[1:]
    candidates = np.flatnonzero(together & (dur > _CLOCK_NS) & (numbers >= 0))
    is_copy = np.zeros(start.size, bool)
    if candidates.size:
        candidate_rows = rows.select(columns)[candidates]
        is_copy[candidates] = ~candidate_rows.select(pl.struct(columns).is_first_distinct()).to_series().to_numpy()
    return is_copy
