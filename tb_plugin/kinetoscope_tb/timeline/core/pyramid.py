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

from ...arrays.jit import Array, Arrays, Bool, compiled

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


class Pyramid:
    """Rows of slices with their levels, which are built by default."""

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
        stored = (levels.of_row, levels.shift, levels.first, levels.slice, levels.start_ns, levels.dur_ns)
        tops = (levels.label, levels.count, levels.busy_ns)
        out = (offsets, x, width, number, label, count, busy)
        size = _fill(source, (*stored, *tops), first_row, last_row, level, begin, out)
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
    encoded = [tile_bytes(tile) for tile in tiles]
    head = np.array([len(encoded), *map(len, encoded)], "<u4")
    return b"".join([head.tobytes(), *encoded])


@compiled
def _levels(start: Array, dur: Array, label: Array, first: Array) -> Arrays:
    """Return the columns of Levels."""
    rows, size = first.size - 1, start.size
    of_row = np.zeros(rows + 1, np.int64)
    most = rows * (COARSEST - FINEST + 1)
    shift, at_level = np.empty(most, np.int64), np.zeros(most + 1, np.int64)
    place, tops, count = np.empty(size, np.uint32), np.empty(size, np.uint32), np.empty(size, np.uint32)
    starts, durs, busy = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    levels = end = 0
    for row in range(rows):
        lo, hi, is_base = first[row], first[row + 1], True
        for level in range(FINEST, COARSEST + 1):
            if hi - lo > 4 and 2 * _buckets(start if is_base else starts, lo, hi, level) <= hi - lo:
                came_from = (start, dur) if is_base else (starts, durs)
                reached = _reduce(came_from, is_base, lo, hi, level, (starts, durs, place, count, busy), end)
                shift[levels], at_level[levels + 1] = level, reached
                lo, hi, end, is_base = end, reached, reached, False
                levels += 1
        of_row[row + 1] = levels
    for i in range(end):
        tops[i] = label[place[i]]
    columns = (place[:end].copy(), starts[:end].copy(), durs[:end].copy(), tops[:end].copy())
    index = (of_row, shift[:levels].copy(), at_level[: levels + 1].copy())
    return (*index, *columns, count[:end].copy(), busy[:end].copy())


@compiled
def _buckets(start: Array, lo: int, hi: int, level: int) -> int:
    """Return in how many buckets of a level the sorted starts from `lo` up to `hi` lie."""
    buckets = 1
    for i in range(lo + 1, hi):
        buckets += start[i] >> level != start[i - 1] >> level
    return buckets


@compiled
def _reduce(source: Arrays, is_base: Bool, lo: int, hi: int, level: int, out: Arrays, end: int) -> int:
    """Write a level's entries from `end` on, from slices or from the entries before; return where they end."""
    start, dur = source
    starts, durs, place, count, busy = out
    at, before = end - 1, -1
    for i in range(lo, hi):
        bucket = start[i] >> level
        if bucket != before:
            before = bucket
            at += 1
            durs[at], count[at], busy[at] = -1, 0, 0
        if dur[i] > durs[at]:
            place[at] = i if is_base else place[i]
            starts[at], durs[at] = start[i], dur[i]
        count[at] += 1 if is_base else count[i]
        busy[at] += dur[i] if is_base else busy[i]
    return at + 1


@compiled
def _begun_before(start: Array, lo: int, hi: int, at: int) -> int:
    """Return the first place from `lo` up to `hi` whose start is at that time or later."""
    while lo < hi:
        middle = (lo + hi) // 2
        if start[middle] < at:
            lo = middle + 1
        else:
            hi = middle
    return lo


@compiled
def _fill(source: Arrays, stored: Arrays, first_row: int, last_row: int, level: int, begin: int, out: Arrays) -> int:
    """Write a tile's columns; return how many entries it has."""
    start, dur, label, first = source
    of_row, shift, level_first, starts = stored[0], stored[1], stored[2], stored[4]
    offsets, x, width, number, labels, count, busy = out
    end = begin + (BUCKETS << level)
    size = 0
    for row in range(first_row, last_row):
        offsets[row - first_row] = size
        lo = _begun_before(start, first[row], first[row + 1], begin)
        if lo > first[row] and start[lo - 1] + dur[lo - 1] > begin:
            _put(start[lo - 1], dur[lo - 1], begin, level, x, width, size)
            number[size], labels[size], count[size], busy[size] = lo - 1, label[lo - 1], 1, width[size]
            size += 1
        chosen = -1
        for k in range(of_row[row], of_row[row + 1]):
            if shift[k] <= level:
                chosen = k
        if chosen < 0:
            hi = _begun_before(start, lo, first[row + 1], end)
        else:
            lo = _begun_before(starts, level_first[chosen], level_first[chosen + 1], begin)
            hi = _begun_before(starts, lo, level_first[chosen + 1], end)
        size = _gather(source, stored, chosen >= 0, lo, hi, level, begin, out, size)
    offsets[last_row - first_row] = size
    return size


@compiled
def _gather(
    source: Arrays, stored: Arrays, is_stored: Bool, lo: int, hi: int, level: int, begin: int, out: Arrays, size: int
) -> int:
    """Write an entry per bucket of the slices, or stored entries, from `lo` up to `hi`; return where they end."""
    start, dur, label, _ = source
    _, _, _, place, starts, durs, tops, counts, totals = stored
    _, x, width, number, labels, count, busy = out
    bucket = longest = total = -1
    for i in range(lo, hi):
        if is_stored:
            begun, lasts, which, top, number_of, together = starts[i], durs[i], place[i], tops[i], counts[i], totals[i]
        else:
            begun, lasts, which, top, number_of, together = start[i], dur[i], i, label[i], 1, dur[i]
        if begun >> level != bucket:
            bucket, longest, total = begun >> level, -1, 0
            count[size] = 0
            size += 1
        at = size - 1
        count[at] += number_of
        total += together
        busy[at] = min(total >> max(0, level - 3), 0xFFFFFFFF)
        if lasts > longest:
            longest = lasts
            _put(begun, lasts, begin, level, x, width, at)
            number[at], labels[at] = which, top
    return size


@compiled
def _put(start: int, dur: int, begin: int, level: int, x: Array, width: Array, at: int) -> None:
    """Write where a slice begins and how wide it is, in quanta from `begin` on."""
    quantum = max(0, level - 3)
    left = max((start - begin) >> quantum, -0x80000000)
    x[at] = left
    width[at] = min(max(((start + dur - begin) >> quantum) - left, 0), 0xFFFFFFFF)
