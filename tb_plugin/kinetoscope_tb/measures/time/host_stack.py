"""What a thread did at an instant: the innermost of its Python calls, ranges and runtime calls.

Ranges of steps say nothing about what the thread did, so they are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather, map_categories
from ...arrays.intervals import Intervals, Ints, cut, distinct, length_within
from ...arrays.nesting import innermost, nearest, nest
from ...names.kernels import step_number
from ...names.python_frames import is_of_library
from ...trace.model import Trace
from ..calls.call_tree import interleaved
from ..python.frames import functions, parsed

Rows = NDArray[np.int32]
KINDS = ("function", "module", "operator", "annotation", "runtime call")
FRAMES = ("python_calls", "host_events", "launches")
"""The frames of the trace that a stack has rows of; `HostStack.frame` is an index of them."""

_MODULE = "nn.Module: "
_PYTHON, _HOST, _CALL = range(len(FRAMES))


class Doing(NamedTuple):
    """Pieces of intervals on threads, each with what the thread did; the pieces of an interval add up to it.

    Attributes:
        interval: The number of the interval.
        start: When the piece begins.
        end: When it ends.
        row: The innermost row of the stack, or NONE.
    """

    interval: NDArray[np.int64]
    start: Ints
    end: Ints
    row: Rows


@dataclass(frozen=True)
class HostStack:
    """Rows of three frames on one axis per thread, in order of time, the outer ones first.

    Attributes:
        frame: The frame of each row: Python calls, host events or launches.
        row: Its row there.
        thread: Its thread.
        start: When it begins.
        end: When it ends.
    """

    frame: NDArray[np.uint8]
    row: Rows
    thread: Rows
    start: Ints
    end: Ints

    @classmethod
    def of(cls, trace: Trace, threads: Rows, within: Intervals) -> HostStack:
        """The rows of some threads that overlap a union of intervals."""
        is_step = map_categories(trace.host_events["name"], lambda name: step_number(name) is not None)
        frames = [getattr(trace, name) for name in FRAMES]
        some = [_overlapping(frame, threads, within) for frame in frames]
        some[_HOST] = some[_HOST][~is_step[some[_HOST]]]
        columns = [_columns(frame, rows) for frame, rows in zip(frames, some, strict=True)]
        order = interleaved(*columns[_PYTHON], *columns[_HOST])
        thread, start, end = (np.concatenate(pair)[order] for pair in zip(*columns[:_CALL], strict=True))
        last = interleaved(thread, start, end, *columns[_CALL])
        order = np.concatenate([order, np.arange(order.size, last.size, dtype=np.int32)])[last]
        thread, start, end = (np.concatenate(three)[order] for three in zip(*columns, strict=True))
        frame = np.repeat(np.arange(3, dtype=np.uint8), [rows.size for rows in some])[order]
        return cls(frame, np.concatenate(some)[order], thread, start, end)

    def pieces(self, thread: Rows, start: Ints, end: Ints) -> Doing:
        """Cut intervals, each on one thread, where what the thread did changes.

        The threads are laid one behind the other on a common axis, so that one pass cuts the intervals of all.
        """
        first, last = (int(start.min()), int(end.max())) if start.size else (0, 0)
        width = last - first + 1
        base, own = (at.astype(np.int64) * width - first for at in (thread, self.thread))
        begins, ends = (own + np.clip(at, first, last) for at in (self.start, self.end))
        borders = distinct(np.concatenate([begins, ends]))
        piece, begin, stop, span = cut(start + base, end + base, (borders[:-1], borders[1:]))
        at_thread = (borders // width).astype(np.int32)
        row = innermost(self.thread, begins, ends, at_thread, borders)
        return Doing(piece, begin - base[piece], stop - base[piece], gather(row, span).astype(np.int32))

    @cached_property
    def parent(self) -> Rows:
        """The row around each row, or NONE."""
        parent: Rows = nest(self.thread, self.start, self.end)[0]
        return parent

    def descriptions(self, trace: Trace) -> pl.DataFrame:
        """What each row is: `host`, `kind`, `op` (the operator around a runtime call) and `source`, as enums or null.

        The source is the innermost frame of the program around the row; without any, the innermost one with a file.
        """
        is_op = self._kinds(trace) == KINDS.index("operator")
        around = np.where(self.frame == _CALL, gather(nearest(is_op, self.parent), self.parent), NONE).astype(np.int32)
        op = np.where(around == NONE, NONE, gather(self.row, around)).astype(np.int32)
        return pl.DataFrame(
            {
                "host": self._names(trace),
                "kind": pl.Series(KINDS, dtype=pl.Enum(KINDS)).gather(self._kinds(trace)),
                "op": trace.host_events["name"].gather(pl.Series(op).replace(NONE, None)).cast(pl.Categorical),
                "source": self._sources(trace),
            }
        )

    def _kinds(self, trace: Trace) -> NDArray[np.int64]:
        """The number of each row's kind."""
        python, host = (np.where(self.frame == frame, self.row, NONE) for frame in (_PYTHON, _HOST))
        module = gather(trace.python_calls["module_id"].to_numpy() != NONE, python, missing=False)
        is_op = gather((trace.host_events["kind"] == "operator").to_numpy(), host, missing=False)
        kind: NDArray[np.int64] = np.choose(self.frame, [np.where(module, 1, 0), np.where(is_op, 2, 3), 4])
        return kind

    def _names(self, trace: Trace) -> pl.Series:
        """The name of each row; a Python function's without its file."""
        place, texts = functions(trace.python_calls["name"])
        names = parsed(pl.Series(texts, dtype=pl.String))["function"].str.strip_prefix(_MODULE)
        parts = [names.gather(pl.Series(place[self.row[self.frame == _PYTHON]]).replace(NONE, None))]
        for frame, rows in ((_HOST, trace.host_events), (_CALL, trace.launches)):
            parts.append(rows["name"].gather(self.row[self.frame == frame]).cast(pl.String))
        order = np.argsort(np.argsort(self.frame, kind="stable"), kind="stable")
        return pl.concat(parts).gather(order).cast(pl.Categorical)

    def _sources(self, trace: Trace) -> pl.Series:
        """`file.py:12 function` of the frame of the program around each row, or null."""
        place, texts = functions(trace.python_calls["name"])
        frames = parsed(pl.Series(texts, dtype=pl.String))
        has_file = np.append(frames["file"].is_not_null().to_numpy(), False)
        is_own = has_file & np.array([not is_of_library(text) for text in texts] + [False])
        code = np.where(self.frame == _PYTHON, gather(place, np.where(self.frame == _PYTHON, self.row, NONE)), NONE)
        own, any_file = (nearest(answer[code], self.parent) for answer in (is_own, has_file))
        row = np.where(own == NONE, any_file, own).astype(np.int32)
        text = frames.select(pl.format("{}:{} {}", "file", "line", "function")).to_series()
        return text.gather(pl.Series(gather(code, row)).replace(NONE, None)).cast(pl.Categorical)


def _overlapping(frame: pl.DataFrame, threads: Rows, within: Intervals) -> Rows:
    """The rows of some threads that overlap a union of intervals."""
    start = frame["start_ns"].to_numpy()
    overlaps = length_within(within, start, start + frame["dur_ns"].to_numpy()) > 0
    return np.flatnonzero(overlaps & np.isin(frame["thread"].to_numpy(), threads)).astype(np.int32)


def _columns(frame: pl.DataFrame, rows: Rows) -> tuple[Rows, Ints, Ints]:
    start = frame["start_ns"].to_numpy()[rows]
    return frame["thread"].to_numpy()[rows], start, start + frame["dur_ns"].to_numpy()[rows]
