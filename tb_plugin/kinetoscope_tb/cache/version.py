"""Which code makes the traces: an entry that another version wrote is never looked at."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
MODULES = (
    *("intervals.py", "kernel_names.py", "call_names.py", "tensor_cores.py", "tables.py", "errors.py"),
    *("compiling.py", "private_folders.py"),
)
SOURCES = ("reader", "trace", "timeline", "dependencies", "ranks", "cache", "storage", *MODULES)
"""All that reading a trace runs; a test holds that it imports nothing else."""


@lru_cache(maxsize=1)
def sources_version() -> str:
    """A digest of the sources: the same on all machines that have this version of Kinetoscope.

    Raises:
        OSError: The sources can't be read, as in a frozen application.
    """
    digest = hashlib.sha256()
    for name in SOURCES:
        path = PACKAGE / name
        for source in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(f"\0{source.relative_to(PACKAGE).as_posix()}\0".encode())
            digest.update(source.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()
