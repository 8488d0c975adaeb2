"""The events behind a row of the critical path's views."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from ..arrays.gather import NONE
from ..measures.time.step_subset import counted_steps
from ..trace import Trace
from ..trace.row_filters import Events, Key, is_equal
from .culprits import path_culprits, pieces_by_name
from .explanation import critical_paths
from .names import EventRows, Rows

ALL = "all"
"""In place of a step all complete ones, in place of a part all of an operator."""


def path_events(trace: Trace, key: Key) -> Events:
    """The events in which the segments of a row run; for waits, the event that waited.

    The key has some of step, start_ns, part and name; without a step, all complete steps count.
    """
    step, part, steps = key.get("step", ALL), key.get("part"), counted_steps(trace)
    if step != ALL or trace.steps["name"].to_list() == [ALL]:
        steps = np.flatnonzero(is_equal(trace.steps["name"], step)).tolist()
    pieces = pieces_by_name(trace, is_by_operator=part == ALL)
    predicates = [pl.col("step").is_in(steps)]
    if "start_ns" in key:
        starts = pl.Series(is_equal(critical_paths(trace)["start_ns"], key["start_ns"])).arg_true()
        predicates.append(pl.col("segment").is_in(starts.implode()))
    if part not in (None, ALL):
        predicates.append(pl.lit(pl.Series(is_equal(pieces["cause"], part))))
    if "name" in key:
        predicates.append(pl.lit(pl.Series(is_equal(pieces["name"], key["name"]))))
    return _events_of_pieces(trace, pieces.filter(predicates))


def culprit_events(trace: Trace, culprits: pl.Series, steps: Sequence[int]) -> Events:
    """The events in which the pieces of some culprits run in some steps; for waits, the event that waited.

    Args:
        trace: The trace.
        culprits: Rows of `who` of the path's culprits.
        steps: Rows of `steps`.
    """
    pieces = path_culprits(trace).pieces
    is_chosen = pl.col("culprit").is_in(culprits.implode()) & pl.col("step").is_in(steps)
    return _events_of_pieces(trace, pieces.filter(is_chosen))


def _events_of_pieces(trace: Trace, pieces: pl.DataFrame) -> Events:
    python, host = (pieces[name].to_numpy() for name in ("python_call", "host_event"))
    is_event = (python == NONE) & (host == NONE)
    segments = pieces["segment"].filter(pl.Series(is_event)).unique()
    events = _events(EventRows.of_path(critical_paths(trace)[segments]))
    return {**events, "python_calls": python, "host_events": np.concatenate([events["host_events"], host])}


def _events(segments: EventRows) -> dict[str, Rows]:
    on_device, in_call = segments.row >= 0, segments.call >= 0
    return {
        "device_events": segments.row[on_device],
        "launches": segments.call[in_call & ~on_device],
        "host_events": np.where(on_device | in_call, NONE, segments.event),
    }
