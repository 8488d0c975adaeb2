"""Tiles of hand-made rows."""

import numpy as np

from kinetoscope_tb.timeline.core.pyramid import Pyramid, Rows, batch_bytes
from support.slow_timeline import Drawn, decoded


def row(*slices):
    start, dur = (np.array(column, np.int64) for column in zip(*slices, strict=True))
    return Pyramid(Rows(start, dur, np.arange(start.size, dtype=np.uint32) + 100, np.array([0, start.size])))


def entries(pyramid, level, index):
    return decoded(batch_bytes([pyramid.tile(0, 1, level, index)]))[0][0]


def test_below_level_three_a_tile_has_every_nanosecond():
    assert entries(row((3, 2), (7, 0), (600, 9)), 0, 0) == [Drawn(3, 2, 0, 100, 1, 2), Drawn(7, 0, 1, 101, 1, 0)]


def test_the_longest_slice_stands_for_its_bucket():
    pyramid = row((0, 10), (20, 100), (200, 30), (300, 8))
    assert entries(pyramid, 8, 0) == [Drawn(0, 3, 1, 101, 3, 4), Drawn(9, 0, 3, 103, 1, 0)]


def test_the_slice_that_is_open_at_the_left_edge_is_there():
    pyramid = row((0, 5000), (6000, 10))
    assert entries(pyramid, 3, 1) == [Drawn(-4096, 5000, 0, 100, 1, 5000), Drawn(1904, 10, 1, 101, 1, 10)]


def test_a_slice_that_began_too_long_ago_keeps_its_end():
    pyramid = row((0, 1 << 40), (1 << 41, 1))
    (drawn,) = entries(pyramid, 0, (1 << 40) // 512 - 1)
    assert drawn.x == -(1 << 31)
    assert drawn.x + drawn.width == 512


def test_a_coarse_level_counts_all_that_it_stands_for():
    many = [(i * 300, 200) for i in range(10_000)]
    pyramid = row(*many)
    drawn = entries(pyramid, 14, 0)
    assert sum(entry.count for entry in drawn) == 10_000
    assert len(drawn) == 10_000 * 300 // 2**14 + 1
    assert pyramid.levels.slice.size < 10_000


def test_rows_may_call_their_slices_otherwise():
    rows = Rows(np.array([5]), np.array([2]), np.array([1], np.uint32), np.array([0, 1]), np.array([77], np.uint32))
    assert entries(Pyramid(rows), 0, 0) == [Drawn(5, 2, 77, 1, 1, 2)]
