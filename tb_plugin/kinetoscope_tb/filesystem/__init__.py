"""Folders and files as they lie on this disk or anywhere else that fsspec reaches.

What the bytes mean is the reader's business, which files are traces is discovery's.

urls           a URL → its file system, or which package is missing; errors of every library in words
folders        what lies under a path
files          a file as bytes
regular_files  a file that is no pipe and no device
atomic_write   a file that is written whole or not at all
prefetch       a remote file, fetched ahead of whoever reads it
"""

from __future__ import annotations

from .atomic_write import atomic_write
from .files import StoredFile, file_identity, stored_bytes
from .folders import Entry, Folder, entry_at, folders
from .urls import is_url, last_part, words

__all__ = [
    "Entry",
    "Folder",
    "StoredFile",
    "atomic_write",
    "entry_at",
    "file_identity",
    "folders",
    "is_url",
    "last_part",
    "stored_bytes",
    "words",
]
