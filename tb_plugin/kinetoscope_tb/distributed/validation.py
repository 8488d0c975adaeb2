"""Validates a summary: anybody who can write to a logdir may have written it, and traces may have odd values.

Views of many ranks combine all traces, so impossible values in one would break the views of all. Values that pass can
be added and compared in 64 bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import polars as pl

from ..arrays.gather import NONE
from ..trace.meta import MOST_RANKS, clock_offset
from .model import FRAMES, Summary

LARGEST_NS = 1 << 60  # 36 years
_ORIGIN_RANGE = -LARGEST_NS, 1 << 62  # of Unix times; the difference of two fits in 63 bits
_LARGEST = {
    "bytes": 1 << 50,
    "calls": 1 << 50,
    "peer": MOST_RANKS,
    "size": MOST_RANKS,
    "nth": 1 << 60,
    "offset": 1 << 60,
    "launches": 1 << 40,
    "threads": 1 << 62,
    "elements": 1 << 62,
    "input": 1 << 31,
    "copied_bytes": 1 << 50,
}
_MISSABLE = {"bytes", "peer", "size", "nth", "offset", "dur_ns", "exposed_ns"}
_SIGNED = {"start_ns"}
_TEXTS = {"steps": ("step",), "calls": ("kind",), "traffic": ("kind",), "inputs": ("operator",)}
_RANKS = re.compile(r"([0-9]{1,7})(?:-([0-9]{1,7})(?:/([0-9]{1,7}))?)?")
_POINTERS = {
    ("calls", "group"): "groups",
    ("calls", "step"): "steps",
    ("inputs", "step"): "steps",
    ("segments", "step"): "steps",
    ("segments", "sync_point"): "calls",
    ("segments", "since"): "calls",
}
_REQUIRED = {("segments", "step"), ("inputs", "step")}  # pointers that are never NONE


def problem_of(summary: Summary) -> str:
    """Why a summary is unusable; empty if it is valid."""
    return next(_problems(summary), "")


def _problems(summary: Summary) -> Iterator[str]:
    yield from _of_facts(summary.facts)
    for name in FRAMES:
        frame: pl.DataFrame = getattr(summary, name)
        for column in frame.get_columns() if frame.height else ():
            yield from _of_column(name, column, summary)
    for text in summary.groups["ranks"].to_list():
        if text is not None and not 0 < _count(text) <= MOST_RANKS:
            yield f"the ranks of a group are {text[:40]!a}"


def _of_facts(facts: Any) -> Iterator[str]:
    if not isinstance(facts, dict):
        yield "it doesn't describe the trace"
        return
    origin, window, ranks = facts.get("origin_ns"), facts.get("window"), facts.get("ranks")
    for problem in facts.get("impossible") or ():
        yield str(problem)
    if not _is_whole(origin, *_ORIGIN_RANGE):
        yield f"its clock began at {_short_text(origin)} ns"
    if facts.get("rank") is not None and not _is_whole(facts["rank"], 0, MOST_RANKS - 1):
        yield f"its rank is {_short_text(facts['rank'])}"
    if facts.get("world_size") is not None and not _is_whole(facts["world_size"], 1, MOST_RANKS):
        yield f"the size of its job is {_short_text(facts['world_size'])}"
    if ranks is not None and not (isinstance(ranks, list) and len(ranks) <= MOST_RANKS and all(map(_is_rank, ranks))):
        yield "its list of recording ranks is invalid"
    if window is not None and not (isinstance(window, list) and len(window) == 2 and all(map(_is_time, window))):
        yield f"it was recorded at {_short_text(window)} ns"
    clock = clock_offset(facts.get("clock"))
    if clock is not None and not all(map(_is_time, clock)):
        yield f"its clock is {clock[0]} ns ahead"
    devices = facts.get("devices")
    if not (isinstance(devices, list) and all(map(_is_device, devices))):
        yield "its list of devices is invalid"
    for name in ("backend", "host", "torch", "cuda", "driver"):
        if not isinstance(facts.get(name), str | None):
            yield f"its {name} is {_short_text(facts[name])}"


def _of_column(frame: str, column: pl.Series, summary: Summary) -> Iterator[str]:
    name, kind = column.name, FRAMES[frame][column.name]
    if kind is pl.String:
        if name in _TEXTS.get(frame, ()) and column.null_count():
            yield f"a {name} has no name"
        return
    if kind is pl.Boolean:
        return
    values = column.to_numpy()
    target = _POINTERS.get((frame, name))
    is_missable = target is not None or name in _MISSABLE
    least = NONE if is_missable and (frame, name) not in _REQUIRED else 0
    most = getattr(summary, target).height - 1 if target is not None else _LARGEST.get(name, LARGEST_NS)
    low, high = int(values.min()), int(values.max())
    if low < (-most if name in _SIGNED else least) or high > most:
        yield f"its {frame} have {high if high > most else low} as {name}"


def _count(text: str) -> int:
    """Number of ranks in a text of `GROUPS`; 0 if the text is invalid."""
    parts = [_RANKS.fullmatch(part) for part in text.split(",")]
    if not all(parts):
        return 0
    numbers = [(int(p[1]), int(p[2] or p[1]), int(p[3] or 1)) for p in parts if p]
    return sum(len(range(first, last + 1, stride)) for first, last, stride in numbers if stride)


def _is_device(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and _is_whole(value[0], -(1 << 31), 1 << 31)
        and isinstance(value[1], str | None)
    )


def _is_time(value: Any) -> bool:
    return _is_whole(value, -LARGEST_NS, LARGEST_NS)


def _is_rank(value: Any) -> bool:
    return _is_whole(value, 0, MOST_RANKS - 1)


def _is_whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _short_text(value: Any) -> str:
    """A short text for any value."""
    return "too large a number" if isinstance(value, int) and abs(value) >= 1 << 200 else ascii(value)[:40]
