"""The timeline's answers, computed the obvious way: one slice after the other, one bucket after the other."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import NamedTuple

BUCKETS = 512


class Drawn(NamedTuple):
    """One entry of a tile, with times in quanta from the tile's start."""

    x: int
    width: int
    slice: int
    label: int
    count: int
    busy: int


def tile(slices, level, index):
    """The entries of one row in a tile; `slices` are (start, dur, number, label), sorted by start, without overlaps."""
    begin, end = index * BUCKETS << level, (index + 1) * BUCKETS << level
    quantum = max(0, level - 3)
    entries = []
    for start, dur, number, label in slices:
        if start < begin < start + dur:
            width = min(((start + dur - begin) >> quantum) - max((start - begin) >> quantum, -(1 << 31)), (1 << 32) - 1)
            entries.append(Drawn(max((start - begin) >> quantum, -(1 << 31)), width, number, label, 1, width))
    buckets = {}
    for one in slices:
        if begin <= one[0] < end:
            buckets.setdefault(one[0] >> level, []).append(one)
    for _, inside in sorted(buckets.items()):
        start, dur, number, label = max(inside, key=lambda one: one[1])  # the first of several that are as long
        x = (start - begin) >> quantum
        width = ((start + dur - begin) >> quantum) - x
        busy = min(sum(one[1] for one in inside) >> quantum, (1 << 32) - 1)
        entries.append(Drawn(x, min(width, (1 << 32) - 1), number, label, len(inside), busy))
    return entries


def decoded(batch):
    """The tiles of a batch of bytes: per tile, per row, its entries."""
    (count,) = struct.unpack_from("<I", batch)
    sizes = struct.unpack_from(f"<{count}I", batch, 4)
    at, tiles = 4 + 4 * count, []
    for size in sizes:
        rows, entries = struct.unpack_from("<II", batch, at)
        offsets = struct.unpack_from(f"<{rows + 1}I", batch, at + 8)
        first = at + 8 + 4 * (rows + 1)
        columns = [
            struct.unpack_from(f"<{entries}{kind}", batch, first + 4 * entries * place)
            for place, kind in enumerate("iIIIII")
        ]
        drawn = [Drawn(*entry) for entry in zip(*columns, strict=True)]
        tiles.append([drawn[a:b] for a, b in pairwise(offsets)])
        at += size
    assert at == len(batch)
    return tiles
