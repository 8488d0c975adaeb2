"""The cost of recording, and pauses of Python."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import numpy as np
import polars as pl

from ..arrays.gather import map_categories
from ..arrays.intervals import length_within
from ..measures.time.breakdown import intervals_of
from . import text
from .facts import Facts
from .model import Advice

_TOO_LARGE = 0.10  # of the steps: then host times are unreliable
_COLLECTS = re.compile(r"Python GC|built-in (?:method|function) collect|\bgc\.collect|\bgc\.py")
_STARTS_WORKERS = re.compile(r"torch/utils/data/dataloader\.py\(\d+\): (?:_get_iterator|__iter__)$")


def profiler(facts: Facts) -> Iterator[Advice]:
    """The profiler and the driver took much of the steps for recording."""
    rows = facts.trace.others
    rows = rows.filter((pl.col("category").cast(pl.String).str.to_lowercase() == "overhead") & (pl.col("dur_ns") > 0))
    lengths = length_within(intervals_of(rows), facts.windows.start, facts.windows.end)
    if not facts.is_worth(lengths, _TOO_LARGE):
        return
    cost = facts.mean(lengths)
    names = rows.group_by(pl.col("name").cast(pl.String)).agg(pl.col("dur_ns").sum()).sort("dur_ns", descending=True)
    yield Advice(
        "profiler_overhead",
        f"Recording took {facts.percent(cost)} of {facts.every}, so host times are unreliable.",
        f"{facts.part(cost)} went to {text.listed(names['name'].head(3).to_list())}, "
        "work of the profiler or the driver for the recording.",
        "Record fewer steps, after more warm-up, with fewer options; then check again.",
        None,
        "high",
        "health",
    )


def _has(pattern: re.Pattern[str], name: str) -> bool:
    return bool(pattern.search(name))


def pauses(facts: Facts) -> Iterator[Advice]:
    """Garbage collection, and restarts of the DataLoader's workers, from Python frames."""
    trace = facts.trace
    calls = trace.python_calls
    for rule, pattern, what, action in (
        (
            "garbage_collection",
            _COLLECTS,
            "Python's garbage collection",
            "Collect between steps only: `gc.disable()` after `gc.freeze()`, and `gc.collect()` every hundredth step.",
        ),
        (
            "worker_start",
            _STARTS_WORKERS,
            "Starting the DataLoader's workers",
            "Keep the workers between epochs: `DataLoader(…, persistent_workers=True)`.",
        ),
    ):
        active = [
            intervals_of(frame, map_categories(frame["name"], partial(_has, pattern)))
            for frame in (calls, trace.others)
        ]
        lengths = sum((length_within(part, facts.windows.start, facts.windows.end) for part in active), np.int64(0))
        if facts.has_device:
            lengths = np.minimum(lengths, facts.late.host + facts.late.loading)
        lengths = np.asarray(lengths)
        if not facts.is_worth(lengths):
            continue
        saving = facts.mean(lengths)
        yield Advice(
            rule,
            f"{what} takes {facts.percent(saving)} of {facts.every}.",
            f"{facts.part(saving)}{facts.recurs(lengths)}.",
            action,
            saving,
            "medium",
            "steps",
        )
