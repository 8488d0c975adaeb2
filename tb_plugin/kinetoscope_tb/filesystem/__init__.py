"""Local folders and files, and remote ones through fsspec.

The reader interprets their content; discovery decides which files are traces.

urls           a URL → its file system, or which package is missing; messages for the errors of every library
folders        the folders and files under a path
files          a file as bytes
regular_files  opens files, but no pipes and devices
atomic_write   writes a file completely or not at all
databases      SQLite databases: their tables, and rows of them
table_definitions  the columns of a table of SQLite
prefetch       a remote file, fetched ahead of its reader
"""

from __future__ import annotations

from .atomic_write import atomic_write
from .databases import LONGEST, DamagedDatabase, Database, Schema, begins_database, page_head
from .files import StoredFile, begins_page, begins_snapshot, begins_speedscope, file_identity, stored_bytes
from .folders import Entry, Folder, dangling_link, entry_at, exists, folders, names_in
from .table_definitions import Table
from .urls import is_url, last_part, printable, words

__all__ = [
    "LONGEST",
    "DamagedDatabase",
    "Database",
    "Entry",
    "Folder",
    "Schema",
    "StoredFile",
    "Table",
    "atomic_write",
    "begins_database",
    "begins_page",
    "begins_snapshot",
    "begins_speedscope",
    "dangling_link",
    "entry_at",
    "exists",
    "file_identity",
    "folders",
    "is_url",
    "last_part",
    "names_in",
    "page_head",
    "printable",
    "stored_bytes",
    "words",
]
