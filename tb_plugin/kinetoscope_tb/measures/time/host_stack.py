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

from ...arrays.gather import NONE, categories_of, category_codes, gather, number_alike
from ...arrays.intervals import Intervals, Ints, cut, distinct, length_within
from ...arrays.nesting import innermost, nearest, nest
from ...names.python_frames import function_name, is_of_library
from ...trace.model import Trace
from ...trace.row_filters import is_operator, is_step
from ..calls.call_tree import merge_order
from ..python.frames import functions, parse_frames
from ..serving.iteration_labels import labels_of_iterations

Rows = NDArray[np.int32]
KINDS = ("function", "module", "operator", "annotation", "runtime call")
FRAMES = ("python_calls", "host_events", "launches")
"""The frames of the trace that a stack has rows of; `HostStack.frame` is an index of them."""

_MODULE = "nn.Module: "
_PYTHON, _HOST, _CALL = range(len(FRAMES))


class StackPieces(NamedTuple):
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
        frames = [getattr(trace, name) for name in FRAMES]
        rows_by_frame = [_overlapping_rows(frame, threads, within) for frame in frames]
        rows_by_frame[_HOST] = rows_by_frame[_HOST][~is_step(trace)[rows_by_frame[_HOST]]]
        columns = [_columns(frame, rows) for frame, rows in zip(frames, rows_by_frame, strict=True)]
        order = merge_order(*columns[_PYTHON], *columns[_HOST])
        thread, start, end = (np.concatenate(pair)[order] for pair in zip(*columns[:_CALL], strict=True))
        last = merge_order(thread, start, end, *columns[_CALL])
        order = np.concatenate([order, np.arange(order.size, last.size, dtype=np.int32)])[last]
        thread, start, end = (np.concatenate(three)[order] for three in zip(*columns, strict=True))
        frame = np.repeat(np.arange(3, dtype=np.uint8), [rows.size for rows in rows_by_frame])[order]
        return cls(frame, np.concatenate(rows_by_frame)[order], thread, start, end)

    def pieces(self, thread: Rows, start: Ints, end: Ints) -> StackPieces:
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
        return StackPieces(piece, begin - base[piece], stop - base[piece], gather(row, span).astype(np.int32))

    def pieces_or_of_main(self, thread: Rows, main: int, start: Ints, end: Ints) -> StackPieces:
        """The same, with what the main thread did while a thread has nothing recorded."""
        own = self.pieces(thread, start, end)
        of_thread = thread[own.interval]
        blank = np.flatnonzero((own.row == NONE) & (of_thread != NONE) & (of_thread != main))
        if not blank.size:
            return own
        of_main = self.pieces(np.full(blank.size, main, np.int32), own.start[blank], own.end[blank])
        count = np.ones(own.row.size, np.int64)
        count[blank] = np.bincount(of_main.interval, minlength=blank.size)
        piece = np.repeat(np.arange(count.size), count)
        is_filled = np.zeros(count.size, np.bool_)
        is_filled[blank] = True
        rows = np.flatnonzero(is_filled[piece])
        columns = StackPieces(own.interval[piece], own.start[piece], own.end[piece], own.row[piece])
        columns.start[rows], columns.end[rows], columns.row[rows] = of_main.start, of_main.end, of_main.row
        return columns

    def annotations(self, trace: Trace) -> NDArray[np.bool_]:
        """Which rows are annotations."""
        is_of_host = (trace.host_events["kind"] == "annotation").to_numpy()
        return gather(is_of_host, np.where(self.frame == _HOST, self.row, np.int32(NONE)), missing=False)

    @cached_property
    def parent(self) -> Rows:
        """The row around each row, or NONE."""
        parent: Rows = nest(self.thread, self.start, self.end)[0]
        return parent

    def descriptions(self, trace: Trace) -> tuple[Rows, pl.DataFrame]:
        """What each row is: the number of its description, and the descriptions.

        Iterations of a server are one name per phase, as in the view of annotations.
        These are `host`, `kind`, `op` (the operator around a runtime call) and `source`, as texts or null. The source
        is the innermost frame of the program around the row; without any, the innermost one with a file.
        """
        function, texts = functions(trace.python_calls["name"])
        frames = parse_frames(pl.Series(texts, dtype=pl.String))
        kinds = self._kinds(trace)
        ops = trace.host_events["name"]
        op = gather(category_codes(ops), self._operators(kinds))
        source = self._sources(function, texts, frames)
        names = [
            pl.Series(map(function_name, frames["function"].str.strip_prefix(_MODULE)), dtype=pl.String),
            categories_of(ops).replace(labels_of_iterations(trace)),
            categories_of(trace.launches["name"]),
        ]
        name = self._names(trace, function, [part.len() for part in names])
        many = categories_of(ops).len() + 1, len(texts) + 1
        first, number = number_alike(((name * len(KINDS) + kinds) * many[0] + op + 1) * many[1] + source + 1)
        descriptions = pl.DataFrame(
            {
                "host": pl.concat(names).gather(pl.Series(name[first]).replace(NONE, None)),
                "kind": pl.Series(KINDS, dtype=pl.String).gather(kinds[first]),
                "op": categories_of(ops).gather(pl.Series(op[first], dtype=pl.Int64).replace(NONE, None)),
                "source": pl.Series(texts, dtype=pl.String).gather(
                    pl.Series(source[first], dtype=pl.Int64).replace(NONE, None)
                ),
            }
        )
        return number, descriptions

    def _kinds(self, trace: Trace) -> NDArray[np.int64]:
        """The number of each row's kind."""
        python, host = (np.where(self.frame == frame, self.row, NONE) for frame in (_PYTHON, _HOST))
        module = gather(trace.python_calls["module_id"].to_numpy() != NONE, python, missing=False)
        is_op = gather(is_operator(trace), host, missing=False)
        kind: NDArray[np.int64] = np.choose(self.frame, [np.where(module, 1, 0), np.where(is_op, 2, 3), 4])
        return kind

    def _operators(self, kinds: NDArray[np.int64]) -> Rows:
        """The row of host_events of the operator around each runtime call; NONE for other rows."""
        around = gather(nearest(kinds == KINDS.index("operator"), self.parent), self.parent)
        return gather(self.row, np.where(self.frame == _CALL, around, np.int32(NONE)))

    def _names(self, trace: Trace, function: Rows, sizes: list[int]) -> NDArray[np.int64]:
        """The number of each row's name: of functions, then of host events, then of calls; NONE without a name."""
        number = np.full(self.row.size, NONE, np.int64)
        of_frames = (function, category_codes(trace.host_events["name"]), category_codes(trace.launches["name"]))
        for frame, codes in enumerate(of_frames):
            rows = np.flatnonzero(self.frame == frame)
            code = codes[self.row[rows]]
            number[rows] = np.where(code == NONE, NONE, code + sum(sizes[:frame]))
        return number

    def _sources(self, function: Rows, texts: list[str], frames: pl.DataFrame) -> Rows:
        """The function of the frame of the program around each row, or NONE."""
        has_file = np.append(frames["file"].is_not_null().to_numpy(), False)
        is_own = has_file & np.array([not is_of_library(text) for text in texts] + [False])
        code = gather(function, np.where(self.frame == _PYTHON, self.row, np.int32(NONE)))
        own, any_file = (nearest(answer[code], self.parent) for answer in (is_own, has_file))
        return gather(code, np.where(own == NONE, any_file, own))


def _overlapping_rows(frame: pl.DataFrame, threads: Rows, within: Intervals) -> Rows:
    """The rows of some threads that overlap a union of intervals."""
    start = frame["start_ns"].to_numpy()
    overlaps = length_within(within, start, start + frame["dur_ns"].to_numpy()) > 0
    return np.flatnonzero(overlaps & np.isin(frame["thread"].to_numpy(), threads)).astype(np.int32)


def _columns(frame: pl.DataFrame, rows: Rows) -> tuple[Rows, Ints, Ints]:
    start = frame["start_ns"].to_numpy()[rows]
    return frame["thread"].to_numpy()[rows], start, start + frame["dur_ns"].to_numpy()[rows]
