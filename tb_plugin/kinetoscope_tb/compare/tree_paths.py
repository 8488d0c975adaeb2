"""Rows of a tree by their path from the root, so that the same place in two trees is the same row."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..pictures import parent_column
from ..table import ID, TEXT, Table

PATH = "path of the row"  # no table has a column of this name


def labels(table: type[Table]) -> list[str]:
    """The key columns that identify a row of a tree; numbers of rows and of objects differ between traces."""
    kinds = {c.name: c.kind for c in table.columns}
    return [name for name in table.key if kinds[name] is not ID]


def shown_names(table: type[Table]) -> list[str]:
    """The columns that show which row it is.

    They are the key; where a hash is part of it, also the names and places that it stands for; in a tree, whose key may
    be a number, all texts.
    """
    if not parent_column(table.picture):
        has_hash = any(c.shown_as == "hash" and c.name in table.key for c in table.columns)
        name_columns = [c.name for c in table.columns if has_hash and c.shown_as in ("name", "place")]
        return [*name_columns, *table.key]
    own = labels(table)
    return [c.name for c in table.columns if c.name in own or c.kind is TEXT]


def _parent_column(table: type[Table]) -> str:
    """The column with the row number of the parent row, of a table whose rows are a tree."""
    column = parent_column(table.picture)
    if column is None:
        raise TypeError(f"The rows of {table.__name__} aren't a tree")
    return column


def with_path(frame: pl.DataFrame, table: type[Table]) -> pl.DataFrame:
    """Add a hash of the labels from the root down, which is the same in any frame.

    Siblings with the same labels are distinguished by their order.
    """
    column = _parent_column(table)
    parent = frame[column].fill_null(-1).to_numpy()
    nth = pl.int_range(pl.len()).over([column, *labels(table)]).alias("nth")
    own = frame.select(pl.struct(*labels(table), nth).hash(seed=1)).to_series().to_numpy()
    path = np.zeros(frame.height, np.uint64)
    is_reached = parent < 0
    level = np.flatnonzero(is_reached)
    path[level] = own[level]
    while level.size:
        is_above = np.zeros(frame.height, bool)
        is_above[level] = True
        level = np.flatnonzero(~is_reached & is_above[np.maximum(parent, 0)])
        path[level] = _mix(path[parent[level]], own[level])
        is_reached[level] = True
    return frame.with_columns(pl.Series(PATH, path))


def _mix(above: NDArray[np.uint64], own: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A hash of both that depends on their order."""
    hashes: NDArray[np.uint64] = (above * np.uint64(0x9E3779B97F4A7C15)) ^ own ^ (above >> np.uint64(29))
    return hashes


def parents(comparison: pl.DataFrame, sides: list[tuple[pl.DataFrame, type[Table]]]) -> pl.Series:
    """The row number of each row's parent in the joined frame, from the sides' own parents; null at a root."""
    above = pl.concat(
        frame.select(
            PATH,
            pl.col(PATH).gather(pl.col(_parent_column(table))).alias("above"),
        )
        for frame, table in sides
    ).unique(PATH, keep="first")
    rows = comparison.select(pl.col(PATH).alias("above")).with_row_index("row")
    parent_paths = comparison.select(PATH).join(above, on=PATH, how="left", maintain_order="left")
    return parent_paths.join(rows, on="above", how="left", maintain_order="left")["row"].cast(pl.Int64)
