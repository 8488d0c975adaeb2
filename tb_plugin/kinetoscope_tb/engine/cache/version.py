"""The version of the code that reads traces: entries of other versions are never used."""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path

from ...names.iterations import USER_PATTERN

PACKAGE = Path(__file__).parents[2]
SOURCES = (
    *("reader", "trace", "measures", "timeline", "critical_path", "distributed", "engine/cache", "filesystem"),
    *("arrays", "names", "table.py", "errors.py"),
)
"""All modules that run when a trace is read; a test ensures that they import nothing else."""


def sources_version() -> str:
    """A digest of the sources, and of the user's pattern of iterations, which are the steps of a server's recording.

    It is the same on all machines that have this version of Kinetoscope and this pattern.

    Raises:
        OSError: The sources can't be read, as in a frozen application.
    """
    pattern = os.environ.get(USER_PATTERN, "")
    return _sources_digest() + (f":{hashlib.sha256(pattern.encode()).hexdigest()[:16]}" if pattern else "")


@lru_cache(maxsize=1)
def _sources_digest() -> str:
    """The same of the sources alone.

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
