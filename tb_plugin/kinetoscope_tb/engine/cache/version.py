"""The version of the code that reads traces: entries of other versions are never used."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2]
SOURCES = (
    *("reader", "trace", "measures", "timeline", "critical_path", "distributed", "engine/cache", "filesystem"),
    *("arrays", "names", "table.py", "errors.py"),
)
"""All modules that run when a trace is read; a test ensures that they import nothing else."""


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
