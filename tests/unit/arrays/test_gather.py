"""Answers per category: each once, and only for categories that occur."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.arrays.gather import (
    gather,
    gather_column,
    group_rows,
    map_categories,
    number_alike,
    number_rows_alike,
    scatter_add,
)

NAMES = pl.Series(["b", None, "a", "b"], dtype=pl.Enum(["a", "b", "unused"]))


def test_each_category_that_occurs_is_asked_once():
    calls = []
    assert map_categories(NAMES, lambda name: calls.append(name) or name == "b").tolist() == [True, False, False, True]
    assert calls == ["a", "b"]


def test_a_missing_name_has_the_missing_answer():
    assert map_categories(NAMES, len, missing=-1).tolist() == [1, -1, 1, 1]
    assert map_categories(NAMES, str.upper, missing=None).tolist() == ["B", None, "A", "B"]


def test_names_that_are_alike_are_asked_for_once():
    names = pl.Series(["n1", "b", "n3", None, "n12x"], dtype=pl.Enum(["b", "n0", "n1", "n12x", "n3"]))
    calls = []
    answers = map_categories(names, lambda name: calls.append(name) or len(name), missing=-1, alike="^n[0-9]+$")
    assert answers.tolist() == [2, 1, 2, -1, 4]
    assert calls == ["b", "n12x", "n1"]
    assert map_categories(names[1:2], len, alike="^n[0-9]+$").tolist() == [1]
    assert map_categories(names.head(0), len, alike="^n[0-9]+$").size == 0


@pytest.mark.parametrize("rest", [2, 70_000])  # many rows are looked up in compiled code
@pytest.mark.parametrize("number", [3, 300, 70_000])  # polars stores their codes in 1, 2 and 4 bytes
def test_names_are_answered_by_codes_of_any_width(number, rest):
    codes = np.append(np.arange(number), np.zeros(rest, np.int64))
    names = pl.Series(codes.astype(np.uint32)).cat.to(pl.Enum([f"{code:05}" for code in range(number)]))
    assert map_categories(names, lambda name: int(name) % 2 == 0).tolist() == (codes % 2 == 0).tolist()
    assert map_categories(names, int, missing=-1).tolist() == codes.tolist()
    assert map_categories(names, str, missing="")[number - 1 :][:3].tolist() == [f"{number - 1:05}", "00000", "00000"]


def test_columns_without_names_or_rows():
    empty = pl.Series([], dtype=pl.Enum(["a"]))
    assert map_categories(empty, len).size == 0
    nothing = pl.Series([None, None], dtype=pl.Enum([]))
    assert np.array_equal(map_categories(nothing, len), [False, False])


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2)))
def test_equal_values_have_one_number_each_in_the_order_of_their_first_rows(values):
    first, number = number_alike(np.array(values, np.int64))
    assert [values[row] for row in first] == list(dict.fromkeys(values))
    assert [values[first[n]] for n in number] == values


def test_many_distinct_values_are_numbered_too():
    values = np.arange(10_000, dtype=np.int64) % 5_000 << 40
    first, number = number_alike(values)
    assert first.tolist() == list(range(5_000))
    assert number.tolist() == [*range(5_000), *range(5_000)]


_NUMBERS = st.integers(-(2**31), 2**31 - 1) | st.integers(-1, 1)


@given(st.lists(st.tuples(_NUMBERS, _NUMBERS, _NUMBERS, st.booleans())))
def test_rows_that_are_alike_in_all_columns_have_one_number(rows):
    columns = [
        np.array([row[at] for row in rows], dtype) for at, dtype in enumerate([np.int32, np.int64, np.int32, bool])
    ]
    first, number = number_rows_alike(columns)
    assert [rows[row] for row in first] == list(dict.fromkeys(rows))
    assert [rows[first[n]] for n in number] == rows


def test_values_without_a_place_are_left_out_of_the_sums():
    place = np.array([1, -1, 1, 0], np.int32)
    assert scatter_add(place, np.array([2, 4, 8, 16]), 3).tolist() == [16, 10, 0]


@pytest.mark.parametrize("numbers", [[], [1, 0, 1, 0], [0, 1 << 20, 3, 3]])
def test_rows_come_number_by_number_in_order(numbers):
    rows, first = group_rows(np.array(numbers, np.int32))
    assert rows.tolist() == sorted(range(len(numbers)), key=lambda row: numbers[row])
    assert [numbers[row] for row in rows[first]] == sorted(set(numbers))


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int16, np.int32, np.int64, np.float64])
@pytest.mark.parametrize("of_rows", [np.int32, np.int64])
def test_values_of_rows_have_the_missing_value_where_there_is_no_row(dtype, of_rows):
    values, rows = np.array([0, 1, 1, 0]).astype(dtype), np.array([3, -1, 1, 0, -1], of_rows)
    assert gather(values, rows, dtype(1)).tolist() == np.array([0, 1, 1, 0, 1]).astype(dtype).tolist()
    assert gather(values[::2], rows[1:2] + 2, dtype(0)).tolist() == values[2:3].tolist()
    assert gather(values[:0], rows[:0]).tolist() == []
    with pytest.raises(IndexError, match="row 4 of 4"):
        gather(values, rows + 1)


def test_names_of_rows_are_missing_where_there_is_no_row():
    names = pl.Series(["a", None, "b"], dtype=pl.Enum(["a", "b"]))
    assert gather_column(names, np.array([2, -1, 1, 0], np.int32)).to_list() == ["b", None, None, "a"]
