"""Rows of a table, in batches of columns: integers as int64, texts as Polars strings.

A cell of another type than its column should have counts as missing. Damage ends a table, not the file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...filesystem import DatabaseErrors
from ..scan.scanner import MISSING
from .schema import ROW_BITS, SOURCES, Source

ROWS = 1 << 15
_LAST_ROW = (1 << ROW_BITS) - 1


@dataclass(frozen=True)
class Batch:
    """Some rows of a table.

    Args:
        source: The table.
        row: Their row numbers.
        integers: Each integer column of the source; MISSING where there is no integer.
        texts: Each text column; null where there is no text.
    """

    source: Source
    row: NDArray[np.int64]
    integers: dict[str, NDArray[np.int64]]
    texts: dict[str, pl.Series]

    @property
    def offset(self) -> NDArray[np.int64]:
        """The offset of each row's event."""
        return self.row + (SOURCES.index(self.source) << ROW_BITS)

    def __getitem__(self, column: str) -> NDArray[np.int64]:
        return self.integers[column]

    def __len__(self) -> int:
        return self.row.size

    def take(self, rows: NDArray[np.int64]) -> Batch:
        """Some of the rows."""
        integers = {name: values[rows] for name, values in self.integers.items()}
        return Batch(
            self.source, self.row[rows], integers, {name: text.gather(rows) for name, text in self.texts.items()}
        )


def row_count(connection: sqlite3.Connection, table: str) -> int:
    """How many rows a table has, if none was deleted: its largest row number; 0 if it is damaged there."""
    try:
        (last,) = connection.execute(f'SELECT max(rowid) FROM "{table}"').fetchone()  # noqa: S608  # a name of ours
    except DatabaseErrors:
        return 0
    return min(max(last or 0, 0), _LAST_ROW)


def batches(
    connection: sqlite3.Connection, source: Source, columns: frozenset[str], on_damage: Callable[[str, int], None]
) -> Iterator[Batch]:
    """The rows of a table in order.

    Args:
        connection: The database.
        source: What is read; its table exists.
        columns: The columns that the table has.
        on_damage: Called with what is wrong and the row before it, if the rest of the table can't be read.
    """
    integers = [name for name in source.integers if name in columns]
    texts = [name for name in source.texts if name in columns]
    shown = [f'CASE typeof("{name}") WHEN \'integer\' THEN "{name}" ELSE {MISSING} END' for name in integers]
    shown += [f'CASE typeof("{name}") WHEN \'text\' THEN "{name}" END' for name in texts]
    query = f'SELECT {", ".join(["rowid", *shown])} FROM "{source.table}" NOT INDEXED'  # noqa: S608  # names of ours
    last = -1
    for rows, problem in _chunks(connection, query):
        batch = _batch(source, integers, texts, rows) if rows else None
        if batch and (batch.row[0] <= last or (np.diff(batch.row) <= 0).any() or batch.row[-1] > _LAST_ROW):
            on_damage("its rows aren't in order", max(last, 0))
            return
        if batch:
            last = int(batch.row[-1])
            yield batch
        if problem:
            on_damage(problem, max(last, 0))


def _chunks(connection: sqlite3.Connection, query: str) -> Iterator[tuple[list[tuple[object, ...]], str]]:
    """Some rows at a time, and what is wrong with those behind them; empty if nothing is."""
    listed: list[tuple[object, ...]] = []
    try:
        rows = connection.execute(query)
        while True:
            listed = []
            listed.extend(islice(rows, ROWS))  # keeps what came before an error
            if not listed:
                return
            yield listed, ""
    except DatabaseErrors as error:
        yield listed, str(error)


def _batch(source: Source, integers: list[str], texts: list[str], rows: list[tuple[object, ...]]) -> Batch:
    n = 1 + len(integers)
    numbers = np.array([row[:n] for row in rows] if texts else rows, np.int64).T
    read = dict(zip(integers, numbers[1:], strict=True))
    nothing = np.full(len(rows), MISSING)
    strings = {
        name: pl.Series(name, [_decoded(row[n + nth]) for row in rows], pl.String) for nth, name in enumerate(texts)
    }
    return Batch(
        source,
        numbers[0],
        {name: read.get(name, nothing) for name in source.integers},
        {name: strings.get(name, pl.Series(name, [None] * len(rows), pl.String)) for name in source.texts},
    )


def _decoded(text: object) -> str | None:
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else None
