"""Where in the program a thread was: the Python frames of some instants.

A frame of the program is the innermost one around an instant that belongs to no library.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, categories_of, category_codes
from ...arrays.intervals import Intervals, Ints
from ...arrays.nesting import innermost, outward
from ...names.python_frames import function_name, is_nameless, is_of_library, waiting_function, without_address
from ...trace.model import Trace
from .frames import frames_of_text

_INSTANTS = 2_000
"""Instants that are looked at in all: a share of 10 % is then known to ± 1.3 points (a binomial's two sigmas)."""


class Location(NamedTuple):
    """Where a thread is in the program.

    Attributes:
        frame: The innermost frame.
        caller: The innermost function of the program itself that has a name; empty if all belong to libraries.
        function: The public function of Python's library that waits there, such as queue.get; else empty.
    """

    frame: str
    caller: str
    function: str

    @property
    def words(self) -> str:
        """Such as `queue.get` at `next_batch (train.py:12)`."""
        inner = self.function or ("" if self.frame == self.caller else function_name(self.frame))
        caller = f"`{function_name(self.caller)}`" if self.caller else ""
        return " at ".join(part for part in (f"`{inner}`" if inner else "", caller) if part)


class _Frame(NamedTuple):
    """What a frame's name says of it."""

    name: str
    is_of_library: bool
    is_nameless: bool
    waiting_function: str

    @classmethod
    def of(cls, name: str) -> _Frame:
        frame = without_address(name)
        return cls(frame, is_of_library(frame), is_nameless(frame), waiting_function(frame))


class _Stacks:
    """The stacks of Python calls; a name is looked at once, in however many of them it is."""

    def __init__(self, calls: pl.DataFrame) -> None:
        self._parents, self._codes = calls["parent"].to_numpy(), category_codes(calls["name"])
        names = categories_of(calls["name"])
        self._frame = cache(lambda code: _Frame.of("" if code == NONE else names[code]))

    def location(self, row: int) -> Location:
        """Where a thread is that is in a call (a row), and in no call inside it."""
        frames = [self._frame(int(self._codes[at])) for at in outward(self._parents, row)]
        of_program = [n for n, frame in enumerate(frames) if not frame.is_of_library]
        with_name = (n for n in of_program if not frames[n].is_nameless)
        caller = next(with_name, of_program[0] if of_program else len(frames))
        waits = (frame.waiting_function for frame in reversed(frames[:caller]) if frame.waiting_function)
        return Location(frames[0].name, frames[caller].name if caller < len(frames) else "", next(waits, ""))


def location_at(trace: Trace, thread: int, at: int) -> Location | None:
    """Where a thread is at an instant; None if no frame is recorded there."""
    rows = calls_at(trace, thread, np.array([at], np.int64))
    return None if rows[0] == NONE else _Stacks(trace.python_calls).location(int(rows[0]))


def caller_of(trace: Trace, call: int) -> str:
    """The frame of the program that makes a runtime call (a row of launches); empty if no stack is recorded there."""
    row = trace.launches.row(call, named=True)
    location = location_at(trace, row["thread"], row["start_ns"])
    if location is not None or row["op"] == NONE:
        return location.caller if location else ""
    stack = frames_of_text(trace.host_events["call_stack"][row["op"]] or "")
    return next((frame for frame in stack if not is_of_library(frame)), "")


def locations(trace: Trace, thread: int, spans: Intervals) -> list[tuple[Location, float]]:
    """Where a thread is during some spans, with the shares of them, the largest first.

    Shares are those of evenly spread instants; what lies in no frame has no location.
    """
    instants = _spread(spans)
    if not instants.size or trace.python_calls.is_empty():
        return []
    rows = calls_at(trace, thread, instants)
    stacks, shares = _Stacks(trace.python_calls), dict[Location, float]()
    for row, count in zip(*np.unique(rows[rows != NONE], return_counts=True), strict=True):
        location = stacks.location(int(row))
        shares[location] = shares.get(location, 0.0) + float(count) / instants.size
    return sorted(shares.items(), key=lambda item: (-item[1], item[0]))


def callers(
    trace: Trace, thread: int, spans: Intervals, counts: Callable[[str], bool] = bool
) -> list[tuple[str, float]]:
    """The frames of the program that a thread is in during some spans, whatever these call, with their shares of them.

    What they call counts only if `counts` is true of the innermost frame.

    The largest comes first; what lies in no frame of the program is in none.
    """
    shares: dict[str, float] = {}
    for location, share in locations(trace, thread, spans):
        if location.caller and counts(location.frame):
            shares[location.caller] = shares.get(location.caller, 0.0) + share
    return sorted(shares.items(), key=lambda item: (-item[1], item[0]))


def _spread(spans: Intervals) -> Ints:
    """Instants spread evenly over the time that the spans cover."""
    start, end = spans
    whole = int((end - start).sum())
    count = min(_INSTANTS, whole)
    if count <= 0:
        return np.empty(0, np.int64)
    offset = ((np.arange(count) + 0.5) * (whole / count)).astype(np.int64)
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(end - start)])
    span = np.searchsorted(before, offset, "right") - 1
    instants: Ints = start[span] + offset - before[span]
    return instants


def calls_at(trace: Trace, thread: int, at: Ints, is_meant: NDArray[np.bool_] | None = None) -> NDArray[np.int32]:
    """The row of python_calls that is innermost on a thread at each instant, or NONE; instants come in order.

    Args:
        trace: The trace.
        thread: A row of its threads.
        at: The instants.
        is_meant: Which rows count; None: all.
    """
    calls = trace.python_calls
    on_thread = (calls["thread"] == thread).to_numpy()
    own = np.flatnonzero(on_thread if is_meant is None else on_thread & is_meant)
    if not own.size:
        return np.full(at.size, NONE, np.int32)
    start = calls["start_ns"].to_numpy()[own]
    end = start + calls["dur_ns"].to_numpy()[own]
    same = np.zeros(own.size, np.int32)
    row = innermost(same, start, end, np.zeros(at.size, np.int32), at)
    return np.where(row == NONE, NONE, own[np.maximum(row, 0)]).astype(np.int32)
