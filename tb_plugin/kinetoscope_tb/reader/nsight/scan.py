"""Rows of a table, in batches of columns: integers as int64, texts as Polars strings.

A cell of another type than its column should have counts as missing. Damage costs the rows of its page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.native import Function
from ...filesystem import LONGEST, DamagedDatabase, Database, Table, page_head
from ..scan.scanner import MISSING
from .schema import ROW_BITS, SOURCES, Source

ROWS = 1 << 15

_LAST_ROW = (1 << ROW_BITS) - 1
_PAGES_BYTES = 1 << 22  # read at once, unless one page has more
_REAL, _ONE, _FIRST_TEXT = 7, 9, 13  # serial types

_read_rows = Function("read_rows")


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


def batches(database: Database, table: Table, source: Source, on_damage: Callable[[str, int], None]) -> Iterator[Batch]:
    """The rows of a table in order.

    Args:
        database: The file.
        table: Where the rows are.
        source: What is read of them.
        on_damage: Called with what is wrong and the row before it, if some rows can't be read.
    """
    last, visits = -1, bytearray(database.pages + 1)

    def note(problem: str) -> None:
        on_damage(problem, max(last, 0))

    for pages in page_groups(database.row_pages(table.root, note)):
        cells = read_cells(database, table, (*source.integers, *source.texts), pages)
        if cells.damaged:
            note(f"page {cells.damaged[0]} can't be read")
        batch = _batch(source, cells, visits, note)
        if len(batch) and (batch.row[0] <= last or (np.diff(batch.row) <= 0).any() or batch.row[-1] > _LAST_ROW):
            note("its rows aren't in order")
            return
        for first in range(0, len(batch), ROWS):
            yield batch.take(np.arange(first, min(first + ROWS, len(batch))))
        last = int(batch.row[-1]) if len(batch) else last


def row_count(database: Database, table: Table) -> int:
    """How many rows a table has, if none was deleted: its largest row number; 0 if it is damaged there."""
    return min(max(database.last_row(table), 0), _LAST_ROW)


@dataclass(frozen=True)
class Cells:
    """The rows of some pages.

    Args:
        database, table: Where they are.
        columns: The names of the columns that were read.
        pages: Number and content of each page.
        buffer: Their contents in a row.
        row: The rows' numbers.
        place: Where each row begins in the pages.
        is_spilled: Whether it goes on in other pages; then its last columns weren't read.
        kinds: The serial type of each value: [column, row].
        values: Each value; of a text, where it begins in the pages.
        damaged: Pages of which rows are missing.
    """

    database: Database
    table: Table
    columns: tuple[str, ...]
    pages: list[tuple[int, bytes]]
    buffer: bytes
    row: NDArray[np.int64]
    place: NDArray[np.int64]
    is_spilled: NDArray[np.bool_]
    kinds: NDArray[np.int64]
    values: NDArray[np.int64]
    damaged: list[int]

    def integers(self, nth: int) -> NDArray[np.int64]:
        """A column's integers; MISSING where there is none."""
        kinds = self.kinds[nth]
        if self.table.key is not None and self.table.columns[self.table.key] == self.columns[nth]:
            return self.row
        is_integer = (kinds > 0) & (kinds <= _ONE) & (kinds != _REAL)
        return np.where(is_integer, self.values[nth], MISSING)

    def is_text(self, nth: int) -> NDArray[np.bool_]:
        """Whether a column has texts."""
        kinds = self.kinds[nth]
        is_text: NDArray[np.bool_] = (kinds >= _FIRST_TEXT) & (kinds % 2 == 1)
        return is_text

    def text_bytes(self, nth: int) -> NDArray[np.int64]:
        """The length of a column's texts."""
        size: NDArray[np.int64] = np.clip((self.kinds[nth] - _FIRST_TEXT) // 2, 0, LONGEST)
        return size

    def texts(self, nth: int) -> list[str | None]:
        """A column's texts."""
        encoding, begin, end = self.database.encoding, self.values[nth], self.values[nth] + self.text_bytes(nth)
        bounds = zip(self.is_text(nth).tolist(), begin.tolist(), end.tolist(), strict=True)
        return [self.buffer[at:to].decode(encoding, "replace") if is_text else None for is_text, at, to in bounds]

    def file_offsets(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Places in the pages as offsets in the file."""
        first = (np.array([number for number, _ in self.pages], np.int64) - 1) * self.database.page_bytes
        return first[positions // self.database.page_bytes] + positions % self.database.page_bytes

    def whole_row(self, nth: int, visits: bytearray) -> dict[str, object]:
        """A spilled row, by its columns.

        Raises:
            DamagedDatabase: It can't be read.
        """
        at, offset = divmod(int(self.place[nth]), self.database.page_bytes)
        values = self.database.row_at(self.table, self.pages[at][1], offset, visits)
        return dict(zip(self.table.columns, values, strict=False))


def read_cells(database: Database, table: Table, columns: tuple[str, ...], pages: list[tuple[int, bytes]]) -> Cells:
    """Read columns of the rows in some pages; those that the table lacks are empty."""
    column_at = {name: at for at, name in enumerate(table.columns)}
    slots = np.full(max((column_at[name] for name in columns if name in column_at), default=-1) + 1, -1, np.int64)
    for nth, name in enumerate(columns):
        if name in column_at:
            slots[column_at[name]] = nth
    room = sum(_cell_count(number, page) for number, page in pages)
    row, position, is_spilled = np.empty(room, np.int64), np.empty(room, np.int64), np.zeros(room, np.uint8)
    kinds, values = np.zeros((len(columns), room), np.int64), np.zeros((len(columns), room), np.int64)
    is_damaged = np.zeros(len(pages), np.uint8)
    heads = np.array([page_head(number) for number, _ in pages], np.int64)
    buffer = b"".join(page for _, page in pages)
    n = _read_rows(
        np.frombuffer(buffer, np.uint8), database.page_bytes, database.usable_bytes, heads, slots,
        row, position, is_spilled, kinds, values, is_damaged,
    )  # fmt: skip
    damaged_pages = [pages[at][0] for at in np.flatnonzero(is_damaged)]
    return Cells(
        database,
        table,
        columns,
        pages,
        buffer,
        row[:n],
        position[:n],
        is_spilled[:n] > 0,
        kinds[:, :n],
        values[:, :n],
        damaged_pages,
    )


def page_groups(pages: Iterable[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    """Pages with about ROWS rows, and not many bytes."""
    group: list[tuple[int, bytes]] = []
    rows = size = 0
    for number, page in pages:
        count = _cell_count(number, page)
        if group and (rows + count > ROWS or size >= _PAGES_BYTES):
            yield group
            group, rows, size = [], 0, 0
        group.append((number, page))
        rows, size = rows + count, size + len(page)
    if group:
        yield group


def _cell_count(number: int, page: bytes) -> int:
    """How many rows a page says that it has."""
    return int.from_bytes(page[page_head(number) + 3 : page_head(number) + 5], "big")


def _batch(source: Source, cells: Cells, visits: bytearray, note: Callable[[str], None]) -> Batch:
    integers = {name: cells.integers(nth).copy() for nth, name in enumerate(source.integers)}
    texts = {name: cells.texts(nth) for nth, name in enumerate(source.texts, len(source.integers))}
    is_read = np.ones(cells.row.size, np.bool_)
    for at in np.flatnonzero(cells.is_spilled).tolist():
        try:
            row = cells.whole_row(at, visits)
        except DamagedDatabase as error:
            note(str(error))
            is_read[at] = False
            continue
        for name, column in integers.items():
            value = row.get(name)
            column[at] = value if isinstance(value, int) else MISSING
        for name, strings in texts.items():
            text = row.get(name)
            strings[at] = text if isinstance(text, str) else None
    batch = Batch(source, cells.row, integers, {name: pl.Series(name, texts[name], pl.String) for name in source.texts})
    return batch if is_read.all() else batch.take(np.flatnonzero(is_read))
