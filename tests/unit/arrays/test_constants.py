"""Columns with the same value in every row are one value, and read like any other column."""

import os
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from kinetoscope_tb.arrays.constants import frame_of, per_value, repeat_value, stores_one, with_constants

ROWS = 1_000
ENUM = pl.Enum(["a", "b"])
CONSTANT = {
    "integer": pl.repeat(-1, ROWS, dtype=pl.Int64, eager=True),
    "narrow": pl.repeat(7, ROWS, dtype=pl.Int32, eager=True),
    "nan": pl.repeat(float("nan"), ROWS, dtype=pl.Float64, eager=True),
    "enum": pl.repeat("b", ROWS, dtype=ENUM, eager=True),
    "missing": pl.repeat(None, ROWS, dtype=ENUM, eager=True),
    "boolean": pl.repeat(True, ROWS, dtype=pl.Boolean, eager=True),
}
ORDER = pl.Series("row", np.arange(ROWS))


@pytest.mark.parametrize("name", CONSTANT)
def test_a_column_with_one_value_takes_no_memory_per_row_and_is_the_same_column(name):
    frame = pl.DataFrame({"row": ORDER, name: CONSTANT[name]})
    smaller = with_constants(frame)
    assert smaller.estimated_size() <= ORDER.estimated_size() + 64
    assert_frame_equal(smaller, frame)


@pytest.mark.parametrize("name", CONSTANT)
def test_selected_rows_of_it_are_those_of_the_column(name):
    frame = pl.DataFrame({"row": ORDER, name: CONSTANT[name]})
    rows = np.arange(0, ROWS, 3)
    for select in (lambda f: f[rows], lambda f: f.filter(pl.col("row") % 3 == 0), lambda f: f.sort("row")[10:20]):
        assert_frame_equal(select(with_constants(frame)), select(frame))


@pytest.mark.parametrize("at", [0, 1, ROWS // 2, ROWS - 2, ROWS - 1])
@pytest.mark.parametrize(("value", "other"), [(-1, 0), (1, None), (None, 1), (float("nan"), 1.0), (float("nan"), None)])
def test_one_other_value_anywhere_is_seen(at, value, other):
    values = [value] * ROWS
    values[at] = other
    frame = pl.DataFrame({"row": ORDER, "value": values})
    assert_frame_equal(with_constants(frame), frame)


@pytest.mark.parametrize("rows", range(12))
def test_short_frames_are_the_same(rows):
    frame = pl.DataFrame({name: column[:rows] for name, column in CONSTANT.items()})
    assert_frame_equal(with_constants(frame), frame)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_frame_is_looked_through_without_filling_in_its_constants():
    rows, columns = 2_000_000, 16  # 256 MB, if they are filled in
    constants = {f"constant {i}": repeat_value(np.array([i]), rows) for i in range(columns)}
    frame = frame_of({"row": np.arange(rows), **constants}, rows)
    before = resident_bytes()
    assert with_constants(frame).columns == frame.columns
    assert resident_bytes() - before < 8 * rows * columns / 2


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_frame_without_columns_is_the_same():
    assert with_constants(pl.DataFrame()).shape == (0, 0)


def test_a_function_of_one_stored_value_is_computed_once():
    seen = []

    def doubled(values):
        seen.append(values.size)
        return 2 * values

    result = per_value(doubled, repeat_value(np.array([4]), 1000))
    assert (seen, result.tolist()) == ([1], [8] * 1000)
    assert stores_one(result)
    assert per_value(doubled, np.array([4, 5])).tolist() == [8, 10]
    assert per_value(doubled, repeat_value(np.array([4]), 0)).tolist() == []


def test_a_frame_stores_one_value_once():
    dense = np.arange(100_000)
    columns = {
        "one": repeat_value(np.array([4]), dense.size),
        "dense": dense,
        "text": pl.Series(["a"], dtype=pl.Enum(["a"])),
    }
    frame = frame_of(columns, dense.size)
    assert frame.columns == ["one", "dense", "text"]
    assert frame.schema == {"one": pl.Int64, "dense": pl.Int64, "text": pl.Enum(["a"])}
    assert frame.row(99_999) == (4, 99_999, "a")
    assert frame.select("one", "text").estimated_size() < 100


@pytest.mark.parametrize("height", [2, 3, ROWS - 1, ROWS])
def test_a_frame_may_have_nothing_else(height):
    frame = frame_of({"a": repeat_value(np.array([4]), height), "b": pl.Series([None], dtype=pl.Int64)}, height)
    assert frame.rows() == [(4, None)] * height


@pytest.mark.parametrize("height", [0, 1])
def test_a_frame_of_one_row_or_none(height):
    some = np.arange(height)
    frame = frame_of(
        {"one": repeat_value(np.array([4]), height), "dense": some, "text": pl.Series(["a"])[:height]}, height
    )
    assert frame.rows() == [(4, 0, "a")][:height]
