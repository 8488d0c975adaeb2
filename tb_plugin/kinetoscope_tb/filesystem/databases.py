"""SQLite databases that others wrote: opened read-only and immutable, so that nothing is written next to them.

Only ordinary tables count. Views, virtual tables and computed columns could run expressions of the file's author.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ..errors import TraceError
from .files import stored_bytes
from .urls import is_url

MAGIC = b"SQLite format 3\0"
Columns = dict[str, frozenset[str]]
DatabaseErrors = (sqlite3.Error, UnicodeDecodeError)
"""What sqlite3 raises for damaged files; the second where its message quotes a schema that isn't UTF-8."""

_NORMAL = 0  # of a column: neither hidden nor computed


def begins_database(start: bytes) -> bool:
    """Whether a file with these first bytes is an SQLite database."""
    return start.startswith(MAGIC)


def open_database(path: str) -> sqlite3.Connection:
    """Open a local database. Texts are bytes, since they may not be UTF-8.

    Raises:
        TraceError: It can't be opened.
    """
    if is_url(path):
        raise TraceError(path, "SQLite databases are read from local disks only. Download the file first.")
    if not begins_database(stored_bytes(path, 0, len(MAGIC))):
        raise TraceError(path, "SQLite databases can't be read while they are compressed. Unpack the file first.")
    try:
        address = f"{Path(path).absolute().as_uri()}?mode=ro&immutable=1"
        connection = sqlite3.connect(address, uri=True, isolation_level=None)
    except DatabaseErrors as error:
        raise TraceError(path, f"the SQLite database can't be opened: {error}.") from error
    connection.text_factory = bytes
    return connection


def ordinary_tables(connection: sqlite3.Connection) -> Columns:
    """The names of all ordinary tables with row numbers, and of their columns.

    Raises:
        DatabaseErrors: The database is damaged.
    """
    listed = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    tables = {}
    for name, sql in listed:
        if not (isinstance(name, bytes) and isinstance(sql, bytes)) or _is_special(sql):
            continue
        columns = connection.execute(
            "SELECT name, hidden FROM pragma_table_xinfo(?)", (name.decode("utf-8", "replace"),)
        )
        by_name = {column.decode("utf-8", "replace"): hidden for column, hidden in columns}
        if all(hidden == _NORMAL for hidden in by_name.values()):
            tables[name.decode("utf-8", "replace")] = frozenset(by_name)
    return tables


def _is_special(sql: bytes) -> bool:
    """Whether a table is virtual, or has no row numbers."""
    words = sql.upper()
    return words.startswith(b"CREATE VIRTUAL") or b"WITHOUT" in words.rpartition(b")")[2]
