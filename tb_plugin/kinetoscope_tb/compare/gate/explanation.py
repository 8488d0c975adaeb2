"""The rows that changed with the gated number: they explain, they never decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from ...table import DURATION, NUMBER, TEXT, Column, Table
from ...trace import Trace
from ...view import View
from ..changes import KINDS
from .corrections import benjamini_hochberg
from .numbers import named_values
from .permutation import p_value

FALSE_SHARE = 0.05  # of the rows that are called real, at most so many aren't, on average
_MOST_TESTED, _MOST_SHOWN = 60, 12


class ChangedRows(Table):
    """The rows that changed, largest change first."""

    key, weight = ("kind", "name"), "delta_ns"

    kind = Column(TEXT, "category, kernel or operator.")
    name = Column(TEXT, "Its name.")
    base_ns = Column(DURATION, "Mean time per step in the recordings of the base.", adds_up=False)
    new_ns = Column(DURATION, "Mean time per step in those of the new side.", adds_up=False)
    delta_ns = Column(DURATION, "New − base.", adds_up=False)
    p = Column(NUMBER, "Two-sided p-value of the permutation test, adjusted by Benjamini and Hochberg.")
    verdict = Column(TEXT, "real: adjusted p of at most 5 %. not certain: above.")


def explaining_rows(views: Mapping[str, View], trace: Trace) -> pl.DataFrame:
    """Time per step by category, kernel and operator of a trace: `kind`, `name`, `value` in ns."""
    frames = []
    for view_id, kind in KINDS.items():
        view = views[view_id]
        column = next(column for column in view.table.columns if column.name == view.table.weight)
        rows = named_values(view, trace, column)
        if rows["value"].is_null().all():  # operators without device time
            column = next((c for c in view.table.columns if c.name == "host_self_ns"), column)
            rows = named_values(view, trace, column)
        frames.append(rows.select(pl.lit(kind).alias("kind"), "name", pl.col("value").fill_null(0.0)))
    return pl.concat(frames).filter(pl.col("name").is_not_null() & (pl.col("name") != "Step"))


def changed_rows(base: Sequence[pl.DataFrame], new: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """`ChangedRows`: the largest changes among the rows that take longest, each with its adjusted p-value."""
    names, values = _matrix([*base, *new])
    if names.is_empty():
        return pl.DataFrame(schema=ChangedRows.schema())
    order = np.argsort(-values.mean(axis=1), kind="stable")[:_MOST_TESTED]  # chosen without looking at the sides
    sides = values[order][:, : len(base)], values[order][:, len(base) :]
    p = [
        min(1.0, 2 * min(p_value(before, after), p_value(after, before))) for before, after in zip(*sides, strict=True)
    ]
    means = [side.mean(axis=1).round().astype(np.int64) for side in sides]
    rows = names[order].with_columns(
        pl.Series("base_ns", means[0]),
        pl.Series("new_ns", means[1]),
        pl.Series("delta_ns", means[1] - means[0]),
        pl.Series("p", benjamini_hochberg(p)),
    )
    different_rows = rows.filter(pl.col("delta_ns") != 0).with_columns(
        verdict=pl.when(pl.col("p") <= FALSE_SHARE).then(pl.lit("real")).otherwise(pl.lit("not certain"))
    )
    by = [pl.col("verdict") == "real", pl.col("delta_ns").abs(), pl.col("kind"), pl.col("name")]
    return ChangedRows.of(different_rows.sort(by, descending=[True, True, False, False]).head(_MOST_SHOWN))


def _matrix(frames: Sequence[pl.DataFrame]) -> tuple[pl.DataFrame, np.ndarray]:
    """The names of all rows, and their values: rows × recordings, 0 where a recording has no such row."""
    numbered_frames = [frame.with_columns(pl.lit(column).alias("column")) for column, frame in enumerate(frames)]
    rows = pl.concat(numbered_frames)
    names = rows.select("kind", "name").unique(maintain_order=True).with_row_index("row")
    cells = rows.join(names, on=["kind", "name"])
    values = np.zeros((names.height, len(frames)))
    values[cells["row"].to_numpy(), cells["column"].to_numpy()] = cells["value"].to_numpy()
    return names.drop("row"), values
