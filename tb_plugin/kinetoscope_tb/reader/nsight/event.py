"""One row of the database as JSON, for the details of an event: all its columns, and the texts of its numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from ...errors import TraceError
from ...filesystem import DamagedDatabase, Database, Table
from . import schema
from .strings import Strings

_TEXTS = ("demangledName", "shortName", "mangledName", "nameId", "textId", "jsonTextId")


def row_as_json(path: str, offset: int) -> bytes:
    """The row of an event.

    Raises:
        TraceError: The database can't be read, or has no such row.
    """
    table, number = schema.place_of(offset)
    with closing(Database(path)) as database:
        try:
            tables = database.schema().tables
            values = database.row(tables[table], number) if table in tables else None
        except DamagedDatabase as error:
            raise TraceError(path, f"the row can't be read: {error}.") from error
        if values is None:
            raise TraceError(path, f"table {table} has no row {number}: the file was changed since it was read.")
        pairs = zip(tables[table].columns, values, strict=False)
        row = {name: value for name, value in pairs if value is not None and not isinstance(value, bytes)}
        texts = _texts(database, tables, {name: row[name] for name in _TEXTS if isinstance(row.get(name), int)})
    names = [text for text in (row.get("text"), *texts.values()) if text is not None]
    args: Mapping[str, Any] = {name: texts.get(name) or value for name, value in row.items()}
    event = {"name": names[0] if names else table, "table": table, "row": number, "args": args}
    return json.dumps(event, ensure_ascii=False).encode("utf-8", "replace")


def _texts(database: Database, tables: Mapping[str, Table], numbers: Mapping[str, int]) -> dict[str, str]:
    """The texts of numbers of StringIds, without those that can't be read."""
    if schema.STRINGS not in tables or not numbers:
        return {}
    texts = Strings(database, tables[schema.STRINGS], lambda _: None).texts(numbers.values())
    return {name: texts[number] for name, number in numbers.items() if number in texts}
