"""Levels of detail: what to draw of many slices where several share a pixel.

Level L cuts time into buckets of 2^L ns. For the slices of one row that begin in a bucket it stores the longest, with
its real start and duration, their number and their total duration. So every slice is covered by a rectangle.

A level is stored if it has at most half of the entries of the one stored before; a finer one answers for it otherwise.
The stored levels of a row have fewer entries than the row has slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arrays.native import Array, Arrays, Function

_build_levels = Function("build_levels")
_fill_tile = Function("fill_tile")

FINEST = 8  # the first level that is stored: buckets of 256 ns, about as long as the shortest slices
COARSEST = 50  # buckets of 13 days
BUCKETS = 512  # of a tile; 2^9


@dataclass(frozen=True)
class Rows:
    """Slices row by row, by start; slices of one row don't overlap. All times in ns, none below 0.

    Args:
        start_ns, dur_ns, label: Of each slice; `label` is passed through to the tile.
        first: Where each row begins, and the number of slices at the end: one more than there are rows.
        number: The number of each slice in tiles; by default its index.
    """

    start_ns: NDArray[np.int64]
    dur_ns: NDArray[np.int64]
    label: NDArray[np.uint32]
    first: NDArray[np.int64]
    number: NDArray[np.uint32] | None = None


@dataclass(frozen=True)
class Levels:
    """Stored levels: of row r those from `of_row[r]` up to `of_row[r + 1]`, with entries from `first[k]` on.

    Args:
        of_row: Where each row's levels begin, and their number at the end.
        shift: The L of each level; rising within a row.
        first: Where each level's entries begin, and their number at the end.
        slice: Of each entry: the place of the longest slice among the slices.
        start_ns, dur_ns, label: Copied from that slice, for locality when a tile is read.
        count: How many slices begin in the bucket.
        busy_ns: How long they last together.
    """

    of_row: NDArray[np.int64]
    shift: NDArray[np.int64]
    first: NDArray[np.int64]
    slice: NDArray[np.uint32]
    start_ns: NDArray[np.int64]
    dur_ns: NDArray[np.int64]
    label: NDArray[np.uint32]
    count: NDArray[np.uint32]
    busy_ns: NDArray[np.int64]


@dataclass(frozen=True)
class Tile:
    """What to draw of some rows in 512 buckets of 2^L ns from `begin_ns` on: an entry for each bucket with a start.

    The slice that is open when the tile begins comes first in its row, with count 1 if it is the only such entry.

    Args:
        offsets: Where each row's entries begin, and their number at the end.
        x, width: In quanta of 2^(L-3) ns (1 ns below level 3) from `begin_ns`; where a slice began too long ago for 32
            bits its start is cut, its end isn't.
        slice, label, count: Of the longest slice of the bucket, and how many it stands for.
        busy: How long those last together, in quanta.
    """

    begin_ns: int
    offsets: NDArray[np.uint32]
    x: NDArray[np.int32]
    width: NDArray[np.uint32]
    slice: NDArray[np.uint32]
    label: NDArray[np.uint32]
    count: NDArray[np.uint32]
    busy: NDArray[np.uint32]


@dataclass(init=False, eq=False)
class Pyramid:
    """Rows of slices with their levels, which are built by default."""

    rows: Rows
    levels: Levels

    def __init__(self, rows: Rows, levels: Levels | None = None) -> None:
        self.rows = rows
        self.levels = levels or Levels(*_levels(rows.start_ns, rows.dur_ns, rows.label, rows.first))

    def tile(self, first_row: int, last_row: int, level: int, index: int) -> Tile:
        """The tile at `index` of this level, for the rows from `first_row` up to, not including, `last_row`."""
        begin = index * BUCKETS << level
        rows, levels = self.rows, self.levels
        most = int(np.minimum(np.diff(rows.first[first_row : last_row + 1]), BUCKETS).sum()) + last_row - first_row
        offsets = np.empty(last_row - first_row + 1, np.uint32)
        x = np.empty(most, np.int32)
        width, number, label, count, busy = (np.empty(most, np.uint32) for _ in range(5))
        source = (rows.start_ns, rows.dur_ns, rows.label, rows.first)
        arrays = (levels.of_row, levels.shift, levels.first, levels.slice, levels.start_ns, levels.dur_ns)
        tops = (levels.label, levels.count, levels.busy_ns)
        out = (offsets, x, width, number, label, count, busy)
        size = _fill_tile(source, arrays, tops, first_row, last_row, level, begin, out)
        cut = [column[:size] for column in out[1:]]
        if rows.number is not None:
            cut[2] = rows.number[cut[2]]
        return Tile(begin, offsets, *cut)  # type: ignore[arg-type]


def tile_bytes(tile: Tile) -> bytes:
    """A tile as bytes: counts of rows and entries, offsets of rows, then x (signed), width, slice, label, count, busy.

    All are 32-bit numbers in little endian, so that a browser maps them without parsing.
    """
    head = np.array([tile.offsets.size - 1, tile.x.size], np.uint32)
    columns = (tile.offsets, tile.x, tile.width, tile.slice, tile.label, tile.count, tile.busy)
    return b"".join(column.astype(column.dtype.newbyteorder("<"), copy=False).tobytes() for column in (head, *columns))


def batch_bytes(tiles: Sequence[Tile]) -> bytes:
    """Several tiles in order: how many, the bytes of each, then the tiles."""
    blobs = [tile_bytes(tile) for tile in tiles]
    head = np.array([len(blobs), *map(len, blobs)], "<u4")
    return b"".join([head.tobytes(), *blobs])


def _levels(start: Array, dur: Array, label: Array, first: Array) -> Arrays:
    """Return the columns of Levels."""
    rows, size = first.size - 1, start.size
    most = rows * (COARSEST - FINEST + 1)
    of_row, shift, at_level = np.empty(rows + 1, np.int64), np.empty(most, np.int64), np.empty(most + 1, np.int64)
    number, tops, count = (np.empty(size, np.uint32) for _ in range(3))
    starts, durs, busy = (np.empty(size, np.int64) for _ in range(3))
    index, columns = (of_row, shift, at_level), (number, starts, durs, tops, count, busy)
    end = _build_levels(start, dur, label, first, index, columns)
    levels = of_row[-1]
    cut = (column[:end].copy() for column in columns)
    return (of_row, shift[:levels].copy(), at_level[: levels + 1].copy(), *cut)
