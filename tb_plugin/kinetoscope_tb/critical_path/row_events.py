"""The events behind a row of the critical path's views."""

from __future__ import annotations

import numpy as np
import polars as pl

from ..arrays.gather import NONE
from ..measures.time.step_subset import counted_steps
from ..trace import Trace
from ..trace.row_filters import Events, Key, is_equal
from .classes import CLASSES
from .explanation import path_explanation
from .names import NAMELESS, Names, Places


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
