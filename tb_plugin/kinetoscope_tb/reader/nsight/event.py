"""One row of the database as JSON, for the details of an event: all its columns, and the texts of its numbers."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from ...errors import TraceError
from ...filesystem import DatabaseErrors, open_database, ordinary_tables
from . import schema

_TEXTS = ("demangledName", "shortName", "mangledName", "nameId", "textId", "jsonTextId")
_LONGEST = 1 << 16


def row_as_json(path: str, offset: int) -> bytes:
    """The row of an event.

    Raises:
        TraceError: The database can't be read, or has no such row.
    """
    table, number = schema.place_of(offset)
    with closing(open_database(path)) as connection:
        try:
            columns = sorted(filter(str.isidentifier, ordinary_tables(connection).get(table, ())))
            shown = ", ".join(f'substr("{name}", 1, {_LONGEST}), typeof("{name}")' for name in columns) or "NULL"
            query = f'SELECT {shown} FROM "{table}" WHERE rowid = ?'  # noqa: S608  # identifiers alone
            cells = connection.execute(query, (number,)).fetchone()
            if cells is None:
                raise TraceError(path, f"table {table} has no row {number}: the file was changed since it was read.")
            pairs = zip(columns, cells[::2], cells[1::2], strict=True)
            row = {name: _shown(value, kind) for name, value, kind in pairs if value is not None}
            texts = {name: _text(connection, row[name]) for name in _TEXTS if name in row}
        except DatabaseErrors as error:
            raise TraceError(path, f"the row can't be read: {error}.") from error
    names = [text for text in (row.get("text"), *texts.values()) if text is not None]
    args: Mapping[str, Any] = {name: texts.get(name) or value for name, value in row.items()}
    event = {"name": names[0] if names else table, "table": table, "row": number, "args": args}
    return json.dumps(event, ensure_ascii=False).encode("utf-8", "replace")


def _shown(value: Any, kind: bytes) -> Any:
    """A cell; substr() makes texts of numbers."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    if kind == b"integer":
        return int(text)
    return float(text) if kind == b"real" else text


def _text(connection: sqlite3.Connection, number: Any) -> str | None:
    query = f"SELECT value FROM {schema.STRINGS} WHERE id = ?"  # noqa: S608  # a name of ours
    row = connection.execute(query, (number,)).fetchone()
    return row[0].decode("utf-8", "replace") if row and isinstance(row[0], bytes) else None
