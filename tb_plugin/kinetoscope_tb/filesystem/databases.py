"""SQLite databases that others wrote, read by code whose work is linear in the file.

SQLite's own library isn't used: on a crafted file its work has no limit and can't be canceled, already when it reads
the schema. Here a walk through a tree visits each page once, a page gives no more bytes than it has, nothing of the
file is executed, and nothing is written next to it. Only ordinary tables are read: views, virtual tables and computed
columns are expressions of the file's author.

Format: sqlite.org/fileformat2.html. As with `immutable=1`, a journal or a write-ahead log next to the file is ignored.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..errors import TraceError
from .files import stored_bytes
from .regular_files import open_regular
from .table_definitions import Table, ordinary_table
from .urls import is_url, words

MAGIC = b"SQLite format 3\0"
LONGEST = 1 << 16
"""Bytes of a text or blob that are read; the rest of a longer one is left out."""


_ROWS_PAGE, _INNER_PAGE = 13, 5
_FIRST_PAGE = 1
_HEADER_BYTES = 100
_MOST_LEVELS = 20  # SQLite's limit
_MOST_SCHEMA_BYTES = 1 << 20  # of the pages with the schema; Nsight Systems' has some 50 KiB
_ENCODINGS = {1: "utf-8", 2: "utf-16-le", 3: "utf-16-be"}
_INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_REAL, _ZERO, _ONE, _FIRST_BLOB = 7, 8, 9, 12

OnDamage = Callable[[str], None]


class DamagedDatabase(Exception):
    """What is wrong with a part of a database."""


def begins_database(start: bytes) -> bool:
    """Whether a file with these first bytes is an SQLite database."""
    return start.startswith(MAGIC)


@dataclass(frozen=True)
class Schema:
    """What a database says that it holds.

    Args:
        tables: The ordinary tables, by name.
        unreadable: Why each other table or view can't be read, by name.
    """

    tables: dict[str, Table] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """One row as it is stored.

    Args:
        row: Its number.
        payload_bytes: The size of its record.
        local: The part of the record in the page.
        overflow: The page with the next part, or 0.
    """

    row: int
    payload_bytes: int
    local: bytes
    overflow: int


class Database:
    """An open local database.

    Attributes:
        page_bytes: Size of a page.
        usable_bytes: How much of a page SQLite uses.
        encoding: Of texts.

    Raises:
        TraceError: It can't be opened.
    """

    def __init__(self, path: str) -> None:
        if is_url(path):
            raise TraceError(path, "SQLite databases are read from local disks only. Download the file first.")
        header = stored_bytes(path, 0, _HEADER_BYTES)
        if not begins_database(header):
            raise TraceError(path, "SQLite databases can't be read while they are compressed. Unpack the file first.")
        self.path = path
        size = int.from_bytes(header[16:18], "big")
        self.page_bytes = 1 << 16 if size == 1 else size
        self.usable_bytes = self.page_bytes - int.from_bytes(header[20:21], "big")
        self.encoding = _ENCODINGS.get(int.from_bytes(header[56:60], "big"), "utf-8")
        if size not in (1, *(1 << bits for bits in range(9, 16))) or self.usable_bytes < 480:
            raise TraceError(path, "the SQLite database is damaged from the start. Copy or export the file again.")
        try:
            self._file = open_regular(path)
            self.pages = self._file.seek(0, 2) // self.page_bytes
        except OSError as error:
            raise TraceError(path, f"the file can't be opened: {words(error, path)}.") from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def bytes_at(self, start: int, count: int) -> bytes:
        """Some bytes of the file; fewer at its end."""
        self._file.seek(start)
        return self._file.read(count)

    def page(self, number: int) -> bytes:
        """A page of the file.

        Raises:
            DamagedDatabase: The file has no such page.
        """
        data = self.bytes_at((number - 1) * self.page_bytes, self.page_bytes) if 0 < number <= self.pages else b""
        if len(data) < self.page_bytes:
            raise DamagedDatabase(f"page {number} is missing")
        return data

    def schema(self) -> Schema:
        """The tables of the database.

        Raises:
            DamagedDatabase: The schema can't be read.
        """
        schema, seen_pages = Schema(), bytearray(self.pages + 1)
        for number, page in self.row_pages(_FIRST_PAGE, _fail, _MOST_SCHEMA_BYTES // self.page_bytes):
            for cell in self._cells(number, page):
                kind, name, _, root, sql = [*self._values(cell, seen_pages), *[None] * 5][:5]
                if kind not in ("table", "view") or not isinstance(name, str):
                    continue
                table = ordinary_table(sql) if kind == "table" and isinstance(sql, str) else "it is a view"
                if isinstance(table, str) or not isinstance(root, int):
                    schema.unreadable[name] = table if isinstance(table, str) else "it has no pages"
                else:
                    schema.tables[name] = Table(root, *table)
        return schema

    def row_pages(self, root: int, on_damage: OnDamage, most: int | None = None) -> Iterator[tuple[int, bytes]]:
        """The pages with the rows of a table, in order: (number, content).

        Args:
            root: The first page of its tree.
            on_damage: Called with what is wrong, if a part of the tree can't be read.
            most: Limit of the number of pages of the tree.
        """
        seen_pages, stack = bytearray(self.pages + 1), [iter((root,))]
        while stack:
            number = next(stack[-1], None)
            if number is None:
                stack.pop()
                continue
            try:
                page = self._visit(number, seen_pages)
                is_inner = page[page_head(number)] == _INNER_PAGE
                if is_inner and len(stack) == _MOST_LEVELS:
                    raise DamagedDatabase("its pages are nested too deeply")
                if is_inner:
                    stack.append(iter(self._children(number, page)))
            except DamagedDatabase as error:
                on_damage(str(error))
                continue
            if most is not None and (most := most - 1) < 0:
                on_damage("it has more pages than any that is read")
                return
            if not is_inner:
                yield number, page

    def rows(self, table: Table, on_damage: OnDamage) -> Iterator[tuple[int, list[Any]]]:
        """The rows of a table: (row number, value per column); a slow way, for small tables.

        Values are integers, floats, texts, bytes and None; those of columns that a row lacks are missing at its end.
        """
        seen_pages = bytearray(self.pages + 1)
        for number, page in self.row_pages(table.root, on_damage):
            try:
                for cell in self._cells(number, page):
                    yield cell.row, self._row(table, cell, seen_pages)
            except DamagedDatabase as error:
                on_damage(str(error))

    def row(self, table: Table, row: int) -> list[Any] | None:
        """The values of one row; None if there is no such row.

        Raises:
            DamagedDatabase: It can't be read.
        """
        number = table.root
        for _ in range(_MOST_LEVELS):
            page = self.page(number)
            if page[page_head(number)] != _INNER_PAGE:
                match = next((cell for cell in self._cells(number, page) if cell.row == row), None)
                return None if match is None else self._row(table, match, bytearray(self.pages + 1))
            children, keys = self._children(number, page), self._keys(number, page)
            number = next((child for child, key in zip(children, keys, strict=False) if row <= key), children[-1])
        raise DamagedDatabase("its pages are nested too deeply")

    def last_row(self, table: Table) -> int:
        """The largest row number of a table; 0 if it has no rows, or is damaged there."""
        number = table.root
        try:
            for _ in range(_MOST_LEVELS):
                page = self.page(number)
                if page[page_head(number)] != _INNER_PAGE:
                    return max((cell.row for cell in self._cells(number, page)), default=0)
                number = self._children(number, page)[-1]
        except DamagedDatabase:
            pass
        return 0

    def row_at(self, table: Table, page: bytes, at: int, seen_pages: bytearray) -> list[Any]:
        """The values of the row that begins at a place of a page.

        Args:
            seen_pages: Pages with parts of rows that were read before; no page is read twice.

        Raises:
            DamagedDatabase: It can't be read.
        """
        return self._row(table, self._cell(page, at), seen_pages)

    def _row(self, table: Table, cell: Cell, seen_pages: bytearray) -> list[Any]:
        values = self._values(cell, seen_pages)
        if table.key is not None and table.key < len(values):
            values[table.key] = cell.row
        return values

    def _visit(self, number: int, seen_pages: bytearray) -> bytes:
        page = self.page(number)
        if seen_pages[number]:
            raise DamagedDatabase(f"page {number} is used twice")
        seen_pages[number] = 1
        return page

    def _cell_offsets(self, number: int, page: bytes, head_bytes: int) -> tuple[int, ...]:
        """Where the cells of a page begin."""
        head = page_head(number)
        count = int.from_bytes(page[head + 3 : head + 5], "big")
        begin = head + head_bytes
        if begin + 2 * count > self.usable_bytes:
            raise DamagedDatabase(f"page {number} has more rows than fit")
        return struct.unpack_from(f">{count}H", page, begin)

    def _children(self, number: int, page: bytes) -> list[int]:
        last = page_head(number) + 8
        offsets = [*self._cell_offsets(number, page, 12), last]
        return [int.from_bytes(page[at : at + 4], "big") for at in offsets]

    def _keys(self, number: int, page: bytes) -> list[int]:
        """The last row number below each child of a page but the last."""
        return [_to_signed(_varint(page, at + 4)[0]) for at in self._cell_offsets(number, page, 12)]

    def _cells(self, number: int, page: bytes) -> Iterator[Cell]:
        """The rows of a page.

        Raises:
            DamagedDatabase: It isn't a page of rows, or they overlap.
        """
        if page[page_head(number)] != _ROWS_PAGE:
            raise DamagedDatabase(f"page {number} has no rows")
        left = self.usable_bytes
        for at in self._cell_offsets(number, page, 8):
            cell = self._cell(page, at)
            left -= len(cell.local)
            if left < 0:
                raise DamagedDatabase(f"rows of page {number} overlap")
            yield cell

    def _cell(self, page: bytes, position: int) -> Cell:
        size, at = _varint(page, position)
        row, at = _varint(page, at)
        local = self._local_bytes(size)
        end = at + local
        if end + 4 * (local < size) > self.usable_bytes:
            raise DamagedDatabase("a row ends outside of its page")
        overflow = int.from_bytes(page[end : end + 4], "big") if local < size else 0
        return Cell(_to_signed(row), size, page[at:end], overflow)

    def _local_bytes(self, size: int) -> int:
        """How much of a record is in its own page."""
        usable = self.usable_bytes
        most, least = usable - 35, (usable - 12) * 32 // 255 - 23
        if size <= most:
            return size
        local = least + (size - least) % (usable - 4)
        return local if local <= most else least

    def _values(self, cell: Cell, seen_pages: bytearray) -> list[Any]:
        record = cell.local if not cell.overflow else self._record(cell, seen_pages)
        head_bytes, at = _varint(record, 0)
        values, begin = [], head_bytes
        while at < head_bytes:
            kind, at = _varint(record, at)
            size = _stored_bytes(kind)
            if begin + size > len(record):
                raise DamagedDatabase("a row is shorter than its columns")
            values.append(self._value(kind, record[begin : begin + min(size, LONGEST)]))
            begin += size
        return values

    def _record(self, cell: Cell, seen_pages: bytearray) -> bytes:
        parts, left, number = [cell.local], cell.payload_bytes - len(cell.local), cell.overflow
        while left > 0:
            page = self._visit(number, seen_pages)
            number = int.from_bytes(page[:4], "big")
            parts.append(page[4 : min(self.usable_bytes, 4 + left)])
            left -= len(parts[-1])
        return b"".join(parts)

    def _value(self, kind: int, data: bytes) -> Any:
        if kind in _INTEGER_BYTES:
            return int.from_bytes(data, "big", signed=True)
        if kind == _REAL:
            return struct.unpack(">d", data)[0]
        if kind in (_ZERO, _ONE):
            return kind - _ZERO
        if kind < _FIRST_BLOB:
            return None
        return data.decode(self.encoding, "replace") if kind % 2 else data


def page_head(number: int) -> int:
    """Where a page's own header begins: the first page has the file's header before it."""
    return _HEADER_BYTES if number == _FIRST_PAGE else 0


def _fail(problem: str) -> None:
    raise DamagedDatabase(problem)


def _stored_bytes(kind: int) -> int:
    """The size of a value of a serial type."""
    return (kind - _FIRST_BLOB) // 2 if kind >= _FIRST_BLOB else _INTEGER_BYTES.get(kind, 8 if kind == _REAL else 0)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """(the number at `at`, the index after it): seven bits a byte, eight in the ninth."""
    value = 0
    for nth, byte in enumerate(data[at : at + 9]):
        if nth == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 127
        if byte < 128:
            return value, at + nth + 1
    raise DamagedDatabase("a number is cut off")


def _to_signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
