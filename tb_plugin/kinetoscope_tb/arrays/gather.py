"""Lookups by name, id or row number for a whole column at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from .native import SEED, Function

_answers_of_codes = Function("answers_of_codes")
_gather_values = Function("gather_values")
_mark_codes = Function("mark_codes")
_number_values = Function("number_values")
_scatter_add = Function("scatter_add")

NONE = -1
"""The missing row number, and the missing value of any integer column."""

_ROWS_AT_ONCE = 1 << 16  # numpy converts indices to int64: so many of them fit into a cache
_FEW = 100  # values that are taken out of a column in less time than a query of Polars
_MOST_KEYS = 1 << 62
_TABLE_AT_LEAST, _TABLE_PER_VALUE = 1 << 16, 16  # beyond this, sorting is faster than a table


def map_categories(
    names: pl.Series, answer: Callable[[str], Any], *, missing: Any = False, alike: str = ""
) -> NDArray[Any]:
    """Return `answer(name)` for each row of an enum column, computed once per name that occurs.

    Args:
        names: The column.
        answer: The answer for a name.
        missing: The answer for null.
        alike: A regular expression: names that it matches have the same answer, computed once for all of them.
    """
    categories = categories_of(names)
    physical = names.to_physical()
    if physical.null_count():
        physical = physical.cast(pl.UInt32).fill_null(len(categories))
    codes = physical.to_numpy()
    occurs = np.zeros(len(categories) + 1, bool)
    if codes.size > _ROWS_AT_ONCE:
        _mark_codes(codes.view(np.uint8), codes.itemsize, occurs.view(np.uint8))
    else:
        occurs[codes] = True
    present = np.flatnonzero(occurs[:-1])
    example, is_alike = present[:0], np.zeros(len(categories), bool)
    if alike:
        is_alike = categories.str.contains(alike).to_numpy()
        example = present[is_alike[present]][:1]
        present = np.append(present[~is_alike[present]], example)
    is_few = present.size < _FEW
    present_names = [categories[code] for code in present.tolist()] if is_few else categories[present].to_list()
    answers = np.array([*map(answer, present_names), missing])
    by_code = np.full(occurs.size, answers[-1], answers.dtype)
    by_code[present] = answers[:-1]
    if example.size:
        by_code[:-1][is_alike] = by_code[example]
    rows = np.empty(codes.size, answers.dtype)
    if answers.dtype == bool and codes.size > _ROWS_AT_ONCE:
        _answers_of_codes(codes.view(np.uint8), codes.itemsize, by_code, rows.view(np.uint8))
        return rows
    for first in range(0, codes.size, _ROWS_AT_ONCE):
        rows[first : first + _ROWS_AT_ONCE] = by_code[codes[first : first + _ROWS_AT_ONCE]]
    return rows


def categories_of(names: pl.Series) -> pl.Series:
    """All names that an enum column may have, in the order of their codes."""
    return cast("pl.Enum", names.dtype).categories


def category_codes(names: pl.Series) -> NDArray[np.int32]:
    """The code of the category of each row of an enum column, or NONE."""
    codes = names.to_physical().cast(pl.Int32)
    return (codes.fill_null(NONE) if codes.null_count() else codes).to_numpy()


def enum_of(codes: NDArray[np.signedinteger[Any]], categories: list[str]) -> pl.Series:
    """Return the category of each code as an enum column; null for NONE."""
    dtype = pl.Enum(categories)
    if not categories:
        return pl.Series([None], dtype=dtype).new_from_index(0, codes.size)
    physical, is_known = pl.Series(codes.astype(np.uint32)), pl.Series(codes >= 0)
    if not is_known.all():
        physical = pl.select(pl.when(is_known).then(physical)).to_series()
    return physical.cat.to(dtype)


def texts(names: pl.Series, rows: NDArray[Any]) -> pl.Series:
    """Return `names[rows]` of an enum column as texts, with null where a row is NONE."""
    return gather_column(names, rows).cast(pl.String)


def rows_by_id(ids: NDArray[np.int64], queries: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the first row with each queried id, or NONE; negative ids have no row."""
    rows = np.full(queries.size, NONE, np.int32)
    order = None if (ids[1:] >= ids[:-1]).all() else np.argsort(ids, kind="stable").astype(np.int32)
    in_order = ids if order is None else ids[order]
    if not ids.size or in_order[-1] < 0:
        return rows
    for first in range(0, queries.size, _ROWS_AT_ONCE):
        batch = queries[first : first + _ROWS_AT_ONCE]
        at = np.minimum(np.searchsorted(in_order, batch), ids.size - 1)
        row = at if order is None else order[at]
        rows[first : first + batch.size] = np.where((batch >= 0) & (in_order[at] == batch), row, NONE)
    return rows


def gather(values: NDArray[Any], rows: NDArray[np.signedinteger[Any]], missing: Any = NONE) -> NDArray[Any]:
    """Return `values[rows]`, with `missing` where a row is NONE.

    Raises:
        IndexError: There is no such row.
    """
    if not values.size:
        return np.full(rows.size, missing, values.dtype)
    values_of_rows, instead = np.empty(rows.size, values.dtype), np.array([missing], values.dtype)
    rows = rows.astype(np.int32, casting="same_kind", copy=False)
    columns = (np.ascontiguousarray(values).view(np.uint8), values.itemsize, rows, instead.view(np.uint8))
    if _gather_values(*columns, values_of_rows.view(np.uint8)) == NONE:
        raise IndexError(f"row {rows.max()} of {values.size}")
    return values_of_rows


def gather_column(column: pl.Series, rows: NDArray[np.signedinteger[Any]]) -> pl.Series:
    """Return a column of a frame at some rows; null where a row is NONE."""
    indices = pl.Series(rows, dtype=pl.Int64)
    return column.gather(indices.replace(NONE, None) if (rows == NONE).any() else indices)


def distinct_values(values: NDArray[np.signedinteger[Any]]) -> NDArray[np.signedinteger[Any]]:
    """Return the distinct values in order; no value is negative."""
    occurs = _occurrence_table(values)
    return np.unique(values) if occurs is None else np.flatnonzero(occurs)


def factorize(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return (the distinct values in order, the index of each value among them); no value is negative."""
    occurs = _occurrence_table(values)
    if occurs is None:
        return np.unique(values, return_inverse=True)
    return np.flatnonzero(occurs), (np.cumsum(occurs, dtype=np.int32) - 1)[values]


def _occurrence_table(values: NDArray[np.signedinteger[Any]]) -> NDArray[np.bool_] | None:
    """Whether each number up to the largest value occurs; None where sorting the values is faster."""
    most = int(values.max(initial=0)) + 1
    if most > max(_TABLE_AT_LEAST, _TABLE_PER_VALUE * values.size):
        return None
    occurs = np.zeros(most, bool)
    for first in range(0, values.size, _ROWS_AT_ONCE):
        occurs[values[first : first + _ROWS_AT_ONCE]] = True
    return occurs


def group_rows(number: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return (the rows number by number, each in order; where in them each number begins); 0 is the first number."""
    if int(number.max(initial=0)) < 1 << 15:
        number = number.astype(np.int16)  # numpy sorts these by radix
    rows = np.argsort(number, kind="stable").astype(np.int32)
    return rows, np.flatnonzero(np.diff(number[rows], prepend=-1))


def number_alike(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return (the first row of each distinct value, in order; for each row the number of its value among these).

    For few distinct values of any size; `factorize` is faster where values are small.
    """
    numbers = np.empty(values.size, np.int32)
    room = 1 << 10
    while True:
        first = np.empty(room, np.int64)
        count = _number_values(values, SEED, np.full(2 * room, NONE, np.int32), first, numbers)
        if count >= 0:
            return first[:count], numbers
        room *= 8


def number_rows_alike(columns: Iterable[NDArray[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The same of rows that are alike in several columns, whose values have 32 bits at most."""
    key, keys = np.zeros(1, np.int64), 1
    for column in columns:
        least = column.min(initial=0).astype(np.int64)
        values = int(column.max(initial=0) - least) + 1
        if keys * values > _MOST_KEYS:
            first, number = number_alike(key)
            key, keys = number.astype(np.int64), first.size
        key = key * values + (column - least)
        keys *= values
    return number_alike(key)


def fraction(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """`part` ÷ `whole`; missing where `whole` is 0.

    The whole itself is exactly 1: Polars multiplies a column by the reciprocal of a single value.
    """
    return pl.when((whole > 0) & (part == whole)).then(1.0).when(whole > 0).then(part / whole)


def scatter_add(index: NDArray[np.int32], value: NDArray[Any], size: int) -> NDArray[np.int64]:
    """The sum of the values of each place; values at NONE are left out."""
    total = np.zeros(size, np.int64)
    _scatter_add(index.astype(np.int32, copy=False), value.astype(np.int64, copy=False), total)
    return total
