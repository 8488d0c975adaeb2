"""What a table is: named columns, each with a kind and a definition.

The kind of a column fixes its dtype, its unit and the suffix of its name; a wrong suffix fails at import.
The definition is written once, here in Python: tooltips, the command line and docs/metrics.md print it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl


@dataclass(frozen=True)
class Kind:
    """How a column is stored and what its values mean."""

    name: str
    dtype: pl.DataType
    suffix: str = ""


TEXT = Kind("text", pl.String())
BOOL = Kind("bool", pl.Boolean())
ID = Kind("id", pl.Int64())  # a number that names something: a device, a stream
COUNT = Kind("count", pl.Int64())
NUMBER = Kind("number", pl.Float64())  # a ratio that may exceed 1, such as blocks per SM
INSTANT = Kind("instant", pl.Int64(), "_ns")  # since the trace's origin
DURATION = Kind("duration", pl.Int64(), "_ns")
BYTES = Kind("bytes", pl.Int64(), "_bytes")
FRACTION = Kind("fraction", pl.Float64(), "_frac")  # 0 to 1, never per cent

KINDS = (TEXT, BOOL, ID, COUNT, NUMBER, INSTANT, DURATION, BYTES, FRACTION)
_PREFIXES = {BOOL: ("is_", "has_", "uses_", "tc_")}


class Column:
    """One column of a `Table`; its name is the attribute it is assigned to."""

    name: str

    def __init__(self, kind: Kind, doc: str) -> None:
        self.kind, self.doc = kind, doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name


class Table:
    """Base of every table that a view returns. A subclass says in its docstring what one row is.

    `key` names the columns that make a row the same row in another trace, `weight` the column that says which rows
    matter, `charts` the columns whose largest rows are worth a picture.
    """

    columns: ClassVar[tuple[Column, ...]]
    key: ClassVar[tuple[str, ...]] = ()
    weight: ClassVar[str | None] = None
    charts: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        if not cls.__doc__:
            raise TypeError(f"{cls.__name__} must say in its docstring what one row is")
        cls.columns = tuple(c for base in reversed(cls.__mro__) for c in vars(base).values() if isinstance(c, Column))
        for column in cls.columns:
            _check_name(cls.__name__, column)
        unknown = {*cls.key, *cls.charts, *filter(None, [cls.weight])} - set(cls.schema())
        if unknown:
            raise TypeError(f"{cls.__name__} has no column {', '.join(sorted(unknown))}")

    @classmethod
    def schema(cls) -> pl.Schema:
        """Column names and dtypes, in order."""
        return pl.Schema({c.name: c.kind.dtype for c in cls.columns})

    @classmethod
    def of(cls, frame: pl.DataFrame) -> pl.DataFrame:
        """Return `frame` if it is exactly this table.

        Raises:
            AssertionError: A column is missing, extra, out of order or of another dtype; that is a bug of the view.
        """
        if frame.schema != cls.schema():
            raise AssertionError(f"{cls.__name__}: expected {cls.schema()}, got {frame.schema}")
        return frame


def _check_name(table: str, column: Column) -> None:
    suffixes = {kind.suffix for kind in KINDS} - {"", column.kind.suffix}
    if not column.name.endswith(column.kind.suffix):
        raise TypeError(f"{table}.{column.name} is a {column.kind.name}: its name must end in {column.kind.suffix!r}")
    if column.name.endswith(tuple(suffixes)):
        raise TypeError(f"{table}.{column.name} is a {column.kind.name}, and its name has another kind's suffix")
    if not column.name.startswith(_PREFIXES.get(column.kind, "")):
        raise TypeError(f"{table}.{column.name} is a bool: its name must begin with is_, has_ or uses_")
    if not column.doc.endswith("."):
        raise TypeError(f"{table}.{column.name} needs a definition that is a sentence")
