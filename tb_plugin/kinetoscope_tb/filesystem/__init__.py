"""Local folders and files, and remote ones through fsspec.

The reader interprets their content; discovery decides which files are traces.

urls           a URL → its file system, or which package is missing; messages for the errors of every library
folders        the folders and files under a path
files          a file as bytes
regular_files  opens files, but no pipes and devices
atomic_write   writes a file completely or not at all
databases      SQLite databases, read-only
prefetch       a remote file, fetched ahead of its reader
"""

from __future__ import annotations

from .atomic_write import atomic_write
from .databases import Columns, DatabaseErrors, begins_database, open_database, ordinary_tables
from .files import StoredFile, file_identity, stored_bytes
from .folders import Entry, Folder, entry_at, folders
from .urls import is_url, last_part, words

__all__ = [
    "Columns",
    "DatabaseErrors",
    "Entry",
    "Folder",
    "StoredFile",
    "atomic_write",
    "begins_database",
    "entry_at",
    "file_identity",
    "folders",
    "is_url",
    "last_part",
    "open_database",
    "ordinary_tables",
    "stored_bytes",
    "words",
]
