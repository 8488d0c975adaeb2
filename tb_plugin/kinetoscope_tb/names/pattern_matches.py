"""Which names a user's pattern matches: `communication_patterns` imports this where there is a pattern."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl


def matches(pattern: str, names: Sequence[str]) -> list[str]:
    """The names that a pattern matches.

    Raises:
        ValueError: It can't be compiled.
    """
    column = pl.Series(names, dtype=pl.String)
    try:
        return column.filter(column.str.contains(pattern)).to_list()
    except pl.exceptions.PolarsError as error:
        raise ValueError(str(error)) from error
