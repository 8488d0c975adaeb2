"""Device work whose launching calls aren't recorded: whether most idle time is around it, and how to record them."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ..arrays.gather import NONE
from ..measures.recording.lost_launches import kernel_launches, lone_rows, missing_work
from ..names import text
from .facts import Facts

BLOCKED = "blocked copy"
UNKNOWN = (BLOCKED, "unexplained", "not shown")
"""Causes of parts of gaps that say what is known, but not why the device didn't work."""
_WITH_CALLS = (
    "torch.profiler does with `ProfilerActivity.CPU` and the device's activity together, unless a filter leaves them "
    "out."
)
_WORDS_OF_KINDS = {"memcpy": "copies", "memset": "fills"}
_FEWER = "Record fewer steps at a time, so that the profiler's buffers hold all runtime calls."
_LINK_LAUNCHES = (
    "Check what wrote or converted the file: its GPU events and the calls that launch them don't have the same "
    "`correlation`."
)
_MANY = 2  # times as many launches without work as work without a launch
_MOST = 0.5


def lacks_launches(facts: Facts) -> bool:
    """Whether most of the idle time of unknown cause is around work whose launch isn't recorded.

    Not where even more launches have no work: then work is missing, too, and the device may not be idle.
    """
    if missing_work(facts.trace).sum() > _MANY * lone_rows(facts.trace).sum():
        return False
    return facts.share(facts.mean(facts.unlinked_idle)) > _MOST * sum(facts.idle.get(cause, 0.0) for cause in UNKNOWN)


def link_launches(facts: Facts) -> str:
    """How to know which calls launch work."""
    rows, kinds = facts.trace.device_events, _unlinked_kinds(facts)
    is_linked = rows["launch"] != NONE
    if kinds and not (is_linked & rows["kind"].is_in(kinds)).any():
        return f"Record the runtime calls that make {_work_of(kinds)}, too: {_WITH_CALLS}"
    if not kinds and not kernel_launches(facts.trace).any():
        return f"Record the runtime calls that launch work, too: {_WITH_CALLS}"
    return _FEWER if is_linked.any() else _LINK_LAUNCHES


def why_unknown(facts: Facts, part: str) -> str:
    """That nothing can be said of such idle time, as a sentence; `part` says how much it is."""
    is_busy, its = ("are", "their") if facts.waits == "wait" else ("is", "its")
    return f"Why {facts.device} {is_busy} idle for {part} isn't known: {_calls_unknown(facts, its)} isn't recorded."


def why_not_recorded(facts: Facts, part: str) -> str:
    """The same of time in which devices may be idle or not."""
    return f"For {part} it isn't known why {facts.device} ran nothing: {_calls_unknown(facts, 'the')} isn't recorded."


def _calls_unknown(facts: Facts, whose: str) -> str:
    """What isn't recorded of such work, such as: which calls launched its copies."""
    return f"which calls launched {whose} {_work_of(_unlinked_kinds(facts))}"


def lone_work(facts: Facts) -> str:
    """Such work with its number, such as: 22 361 copies."""
    count, kinds = int(lone_rows(facts.trace).sum()), _unlinked_kinds(facts)
    return f"{text.digits(count)} {_work_of(kinds) if kinds else 'GPU events'}"


def _unlinked_kinds(facts: Facts) -> list[str]:
    """The kinds of work whose launch isn't recorded, if that is nothing but copies and fills; else none."""
    kinds = facts.trace.device_events["kind"].filter(pl.Series(lone_rows(facts.trace)))
    names = sorted(kinds.unique().cast(pl.String))
    return names if set(names) <= _WORDS_OF_KINDS.keys() else []


def _work_of(kinds: Sequence[str]) -> str:
    """Such work in words."""
    return text.enumeration([_WORDS_OF_KINDS[kind] for kind in kinds]) if kinds else "work"
