"""Tiles as bytes: 32-bit numbers in little endian, so that a browser reads them without looking at each.

A batch: how many tiles, the bytes of each, then the tiles. A tile: how many rows, how many entries, where each row's
entries begin (one more than there are rows), then a column each of x (signed), width, slice, label, count, busy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .pyramid import Tile


def tile_bytes(tile: Tile) -> bytes:
    """One tile."""
    head = np.array([tile.offsets.size - 1, tile.x.size], np.uint32)
    columns = (tile.offsets, tile.x, tile.width, tile.slice, tile.label, tile.count, tile.busy)
    return b"".join(column.astype(column.dtype.newbyteorder("<"), copy=False).tobytes() for column in (head, *columns))


def batch_bytes(tiles: Sequence[Tile]) -> bytes:
    """Several tiles, in their order."""
    encoded = [tile_bytes(tile) for tile in tiles]
    head = np.array([len(encoded), *map(len, encoded)], "<u4")
    return b"".join([head.tobytes(), *encoded])
