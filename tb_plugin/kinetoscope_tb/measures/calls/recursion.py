"""Calls that lie in another call of the same name: of these, the outer one has the time of both."""

from __future__ import annotations

import polars as pl


def without_recursion(calls: pl.DataFrame) -> pl.DataFrame:
    """Those of some calls that lie in none of the same name on their thread, so that times of a name add up.

    Args:
        calls: With `name`, `thread`, `start_ns` and `dur_ns`, in the order of a trace.
    """
    end = pl.col("start_ns") + pl.col("dur_ns")
    before = end.cum_max().shift(1).over("name", "thread")
    return calls.filter(before.is_null() | (end > before))
