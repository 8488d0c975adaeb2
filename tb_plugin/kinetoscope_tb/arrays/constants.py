"""Columns in which every row has the same value, most often a missing one.

As an array, such a column may store the value once (its stride is 0); as a Polars column, it may be a scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

_FEWEST = 1_000  # rows; to look for constants in a smaller frame takes longer than it saves
_SAMPLES = 4  # rows that rule most columns out

Values = NDArray[Any]


def repeat_value(value: Values, size: int) -> Values:
    """An array of a size that stores its value, the only one of the array, once; it can't be written."""
    values: Values = np.ndarray(size, value.dtype, value, strides=(0,))  # np.broadcast_to takes four times as long
    values.flags.writeable = False
    return values


def stores_one(values: Values) -> bool:
    """Whether an array stores one value for all rows."""
    return values.strides == (0,) and values.size > 0


def per_value(function: Callable[[Values], Values], values: Values) -> Values:
    """`function(values)`, which has a result for each value; if one is stored for all rows, so is the result."""
    return repeat_value(function(values[:1]), values.size) if stores_one(values) else function(values)


def frame_of(columns: Mapping[str, Values | pl.Series], height: int) -> pl.DataFrame:
    """A frame; in a large one, arrays that store one value for all rows, and series of length 1, are scalar columns."""
    if height < _FEWEST:
        return pl.DataFrame({name: _in_all_rows(values, height) for name, values in columns.items()})
    constants = {
        name: pl.lit(pl.Series(values[:1])).first()
        for name, values in columns.items()
        if (len(values) == 1 if isinstance(values, pl.Series) else stores_one(values))
    }
    rows = {name: values for name, values in columns.items() if name not in constants}
    frame = pl.DataFrame(rows or {"": np.empty(height, np.int8)})
    return frame.with_columns(**constants).select(*columns)


def _in_all_rows(values: Values | pl.Series, height: int) -> Values | pl.Series:
    is_one = isinstance(values, pl.Series) and len(values) == 1
    return values.new_from_index(0, height) if is_one else values  # type: ignore[union-attr]


def with_arrays(frame: pl.DataFrame, **columns: Values) -> pl.DataFrame:
    """The frame with columns that it lacks; Polars' `with_columns` plans a query for that."""
    return frame.hstack([pl.Series(name, values) for name, values in columns.items()])


def with_constants(frame: pl.DataFrame) -> pl.DataFrame:
    """The same frame, if it is large with each such column as a scalar column of Polars: one value, not one per row.

    Polars fills in the rows when a column is used as a series, and keeps them with the frame. Selecting, filtering and
    concatenating frames leaves it a scalar.
    """
    if frame.height < _FEWEST:
        return frame
    samples = frame[:: frame.height // _SAMPLES]  # of the whole frame, looking at a column would fill it in
    candidates = [column.name for column in samples if column.n_unique() == 1]
    if not candidates:
        return frame
    is_constant = frame.select(pl.col(candidates).eq_missing(pl.col(candidates).first()).all())
    constants = [column.name for column in is_constant if column.all()]
    return frame.with_columns(pl.col(constants).first()) if constants else frame
