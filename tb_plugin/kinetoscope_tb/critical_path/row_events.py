"""The events behind a row of the critical path's views."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from ..arrays.gather import NONE
from ..measures.time.step_subset import counted_steps
from ..trace import Trace
from ..trace.row_filters import Events, Key, is_equal
from .classes import CLASSES
from .culprits import path_culprits
from .explanation import path_explanation
from .names import NAMELESS, Names, Places, Rows


def path_events(trace: Trace, key: Key) -> Events:
    """The events in which the segments of a row run; for waits, the event that waited.

    The key has some of step, start_ns, part and name; without a step, all complete steps count.
    """
    path = path_explanation(trace).path.filter(_predicates(trace, key))
    places = Places.of_path(path)
    if "name" in key:
        names = Names.of(trace)
        segment_names = names.text(names.merged_names(places))
        if key.get("part") not in CLASSES:
            segment_names = pl.select(pl.coalesce(names.text(names.operators(places)), segment_names)).to_series()
        places = Places.of_path(path.filter(pl.Series(is_equal(segment_names.fill_null(NAMELESS), key["name"]))))
    return _events(places)


def culprit_events(trace: Trace, culprits: pl.Series, steps: Sequence[int]) -> Events:
    """The events in which the pieces of some culprits run in some steps; for waits, the event that waited.

    Args:
        trace: The trace.
        culprits: Rows of `who` of the path's culprits.
        steps: Rows of `steps`.
    """
    pieces = path_culprits(trace).pieces
    pieces = pieces.filter(pl.col("culprit").is_in(culprits.implode()), pl.col("step").is_in(steps))
    python, host = (pieces[name].to_numpy() for name in ("python_call", "host_event"))
    is_event = (python == NONE) & (host == NONE)
    segments = pieces["segment"].filter(pl.Series(is_event)).unique()
    events = _events(Places.of_path(path_explanation(trace).path[segments]))
    return {**events, "python_calls": python, "host_events": np.concatenate([events["host_events"], host])}


def _events(places: Places) -> dict[str, Rows]:
    on_device, in_call = places.row >= 0, places.call >= 0
    return {
        "device_events": places.row[on_device],
        "launches": places.call[in_call & ~on_device],
        "host_events": np.where(on_device | in_call, NONE, places.event),
    }


def _predicates(trace: Trace, key: Key) -> list[pl.Expr]:
    step, part, steps = key.get("step", "all"), key.get("part"), counted_steps(trace)
    if step != "all" or trace.steps["name"].to_list() == ["all"]:
        steps = np.flatnonzero(is_equal(trace.steps["name"], step)).tolist()
    predicates = [pl.col("step").is_in(steps)]
    predicates += [pl.col("start_ns").eq_missing(pl.lit(key["start_ns"], pl.Int64))] if "start_ns" in key else []
    predicates += [pl.col("class") == CLASSES.index(part)] if part in CLASSES else []
    return predicates
