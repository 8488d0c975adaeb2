"""Columns in which every row has the same value, most often a missing one."""

from __future__ import annotations

import polars as pl

_SAMPLES = 4  # rows that rule most columns out


def with_constants(frame: pl.DataFrame) -> pl.DataFrame:
    """The same frame, with each such column as a scalar column of Polars: one value, not one per row.

    Polars fills in the rows when a column is used as a series, and keeps them with the frame. Selecting, filtering and
    concatenating frames leaves it a scalar.
    """
    if frame.height <= _SAMPLES:
        return frame
    samples = frame[:: frame.height // _SAMPLES]
    candidates = [column.name for column in samples if column.n_unique() == 1]
    if not candidates:
        return frame
    is_constant = frame.select(pl.col(candidates).eq_missing(pl.col(candidates).first()).all())
    constants = [column.name for column in is_constant if column.all()]
    return frame.with_columns(pl.col(constants).first()) if constants else frame
