"""Folders and files as they lie on this disk or anywhere else that fsspec reaches.

What the bytes mean is the reader's business, which files are traces is discovery's.

places      a URL → its file system, or which package is missing; errors of every library in words
folders     what lies under a path
files       a file as bytes
regular     a file that is no pipe and no device
replacing   a file that is written
ahead       a remote file, fetched ahead of whoever reads it
"""

from __future__ import annotations

from .files import StoredFile, file_identity, stored_bytes
from .folders import Entry, Folder, entry_at, folders
from .places import is_url, last_part, words
from .regular import check_replaceable
from .replacing import replaced

__all__ = [
    "Entry",
    "Folder",
    "StoredFile",
    "check_replaceable",
    "entry_at",
    "file_identity",
    "folders",
    "is_url",
    "last_part",
    "replaced",
    "stored_bytes",
    "words",
]
