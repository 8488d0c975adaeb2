"""Rows of a tree by the way that leads to them, so that the same place of two trees is the same row."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..pictures import parent_column
from ..table import ID, TEXT, Table

PATH = "path of the row"  # no column of a table is called so


def labels(table: type[Table]) -> list[str]:
    """The key columns that say what a row of a tree is; numbers of rows and of objects differ between recordings."""
    kinds = {c.name: c.kind for c in table.columns}
    return [name for name in table.key if kinds[name] is not ID]


def shown_names(table: type[Table]) -> list[str]:
    """The columns that say to people which row it is: the key; in a tree, whose key may be a number, all texts."""
    if not parent_column(table.picture):
        return list(table.key)
    own = labels(table)
    return [c.name for c in table.columns if c.name in own or c.kind is TEXT]


def _parent_column(table: type[Table]) -> str:
    """The column with the row number of the enclosing row, of a table whose rows are a tree."""
    column = parent_column(table.picture)
    if column is None:
        raise TypeError(f"The rows of {table.__name__} are no tree")
    return column


def with_path(frame: pl.DataFrame, table: type[Table]) -> pl.DataFrame:
    """The frame of a tree with a number for each row that the same labels from the root down give in any frame.

    Of siblings with the same labels the first is one row, the second another.
    """
    column = _parent_column(table)
    parent = frame[column].fill_null(-1).to_numpy()
    nth = pl.int_range(pl.len()).over([column, *labels(table)]).alias("nth")
    own = frame.select(pl.struct(*labels(table), nth).hash(seed=1)).to_series().to_numpy()
    path = np.zeros(frame.height, np.uint64)
    reached = parent < 0
    level = np.flatnonzero(reached)
    path[level] = own[level]
    while level.size:
        is_above = np.zeros(frame.height, bool)
        is_above[level] = True
        level = np.flatnonzero(~reached & is_above[np.maximum(parent, 0)])
        path[level] = _mixed(path[parent[level]], own[level])
        reached[level] = True
    return frame.with_columns(pl.Series(PATH, path))


def _mixed(above: NDArray[np.uint64], own: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A number that depends on both and on their order."""
    mixed: NDArray[np.uint64] = (above * np.uint64(0x9E3779B97F4A7C15)) ^ own ^ (above >> np.uint64(29))
    return mixed


def parents(joined: pl.DataFrame, sides: list[tuple[pl.DataFrame, type[Table]]]) -> pl.Series:
    """The row of the joined frame that is around each row, by way of the sides' own parents; null at a root."""
    above = pl.concat(
        frame.select(
            PATH,
            pl.col(PATH).gather(pl.col(_parent_column(table))).alias("above"),
        )
        for frame, table in sides
    ).unique(PATH, keep="first")
    rows = joined.select(pl.col(PATH).alias("above")).with_row_index("row")
    found = joined.select(PATH).join(above, on=PATH, how="left", maintain_order="left")
    return found.join(rows, on="above", how="left", maintain_order="left")["row"].cast(pl.Int64)
