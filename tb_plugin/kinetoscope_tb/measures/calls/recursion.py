"""Calls that lie in another call of the same name: of these, the outer one has the time of both."""

from __future__ import annotations

import polars as pl

from ...arrays.nesting import outermost_alike


def without_recursion(calls: pl.DataFrame) -> pl.DataFrame:
    """Those of some calls that lie in none of the same name on their thread, so that times of a name add up.

    Args:
        calls: With `name`, `thread`, `start_ns` and `dur_ns`, in the order of a trace.
    """
    name, thread = calls["name"], calls["thread"].to_numpy()
    code = name.to_physical() if name.dtype == pl.Enum else name.rank("dense")
    end = (calls["start_ns"] + calls["dur_ns"]).to_numpy()
    code = (code.cast(pl.Int64) + 1).fill_null(0)  # calls without a name are alike
    return calls.filter(pl.Series(outermost_alike(thread, code.to_numpy(), end), dtype=pl.Boolean))
