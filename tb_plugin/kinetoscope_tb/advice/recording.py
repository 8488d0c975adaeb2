"""The cost of recording, and pauses of Python."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from ..arrays.gather import map_categories
from ..arrays.intervals import length_within
from ..measures.recording.options import how_to_record_less
from ..measures.time.breakdown import intervals_of
from ..names import text
from ..names.python_frames import is_explicit_collection
from .culprit import in_program
from .facts import Facts
from .model import Advice, Culprit, Fact

_TOO_LARGE = 0.10  # of the steps: then host times are unreliable
_MOST = 0.5
_CALLED = "; the program calls `gc.collect()` itself"
_CALL_LESS = (
    "Call `gc.collect()` less often, such as in every hundredth step; `gc.freeze()` before the loop leaves out what "
    "stays for good."
)


def profiler(facts: Facts) -> Iterator[Advice]:
    """The profiler and the driver took much of the steps for recording."""
    rows = facts.trace.others
    rows = rows.filter((pl.col("category").cast(pl.String).str.to_lowercase() == "overhead") & (pl.col("dur_ns") > 0))
    lengths = length_within(intervals_of(rows), facts.windows.start, facts.windows.end)
    if not facts.is_worth(lengths, _TOO_LARGE):
        return
    names = rows.group_by(pl.col("name").cast(pl.String)).agg(pl.col("dur_ns").sum()).sort("dur_ns", descending=True)
    yield Advice(
        "profiler_overhead",
        f"Recording took {facts.of_steps(lengths)}, so host times are unreliable.",
        f"{facts.part_of(lengths)} went to {text.enumeration(names['name'].head(3).to_list())}, "
        "work of the profiler or the driver for the recording.",
        f"{text.capitalize(how_to_record_less(facts.trace))}, after more warm-up; then check again.",
        None,
        "high",
        "health",
    )


def pauses(facts: Facts) -> Iterator[Advice]:
    """Garbage collection, and restarts of the DataLoader's workers, from Python frames."""
    if facts.has_device:
        collections, starts = facts.late.collecting, facts.late.starting
    else:
        collections, starts = (facts.host_time.lengths[part] for part in ("collecting", "starting"))
    for rule, part, lengths, what, action in (
        (
            "garbage_collection",
            "collecting",
            collections,
            "Python's garbage collection",
            "Collect between steps only: `gc.disable()` after `gc.freeze()`, and `gc.collect()` every hundredth step.",
        ),
        (
            "worker_start",
            "starting",
            starts,
            "Starting the DataLoader's workers",
            "Keep the workers between epochs: `DataLoader(…, persistent_workers=True)`.",
        ),
    ):
        if not facts.is_worth(lengths):
            continue
        where, culprit = ("", Culprit()) if facts.has_device else in_program(facts, facts.host_spans[part])
        is_called = part == "collecting" and _is_explicit(facts)
        yield Advice(
            rule,
            f"{what} takes {facts.of_steps(lengths)}{where}.",
            f"{facts.part_of(lengths)}{facts.recurs(lengths)}{_CALLED if is_called else ''}.",
            _CALL_LESS if is_called else action,
            None,
            "medium",
            "steps",
            "",
            facts.mean(lengths),
            facts.host_candidate(text.as_clause(what), facts.host_spans[part]),
            culprit,
            fact=_calls_of_collect(facts) if is_called else None,
        )


def _calls_of_collect(facts: Facts) -> Fact:
    """How often the program calls for garbage collection."""
    calls = facts.trace.python_calls
    start = calls["start_ns"].to_numpy()[map_categories(calls["name"], is_explicit_collection)]
    per_step = length_within((start, start + 1), facts.windows.start, facts.windows.end)
    often = text.times(float(per_step[facts.is_counted].mean()), "time")
    return Fact("The program calls `gc.collect()` itself.", f"It does so {often} {facts.per}.")


def _is_explicit(facts: Facts) -> bool:
    """Whether the program itself calls for garbage collection for most of the time that this takes."""
    calls = facts.trace.python_calls
    spans = intervals_of(calls, map_categories(calls["name"], is_explicit_collection))
    inside = length_within(spans, facts.windows.start, facts.windows.end)
    whole = length_within(facts.host_spans["collecting"], facts.windows.start, facts.windows.end)
    return facts.mean(inside) >= _MOST * facts.mean(whole)
