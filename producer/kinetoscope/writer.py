"""From a finished recording to a file that readers may trust.

The profiler exports to node-local scratch, since it writes slowly, line by line and not atomically. The file is then
compressed, with the metadata in it, under a hidden name beside its final one, forced to disk and renamed. A reader
sees a whole file or none, whatever happens in between.
"""

from __future__ import annotations

import gzip
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import SaveError
from .metadata import splice

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Traces repeat themselves: level 4 is within a few percent of level 9 at a third of its time.
_LEVEL = 4


def save(export: Callable[[str], object], target: Path, metadata: Mapping[str, Any]) -> None:
    """Let `export` write a trace and put it at `target`, metadata included.

    Raises:
        SaveError: It didn't work; there is no trace of the attempt.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="kinetoscope-") as scratch:
            raw = Path(scratch) / "trace.json"
            export(str(raw))
            _check(raw)
            finish(raw, target, metadata)
    except (OSError, RuntimeError, ValueError) as error:
        # RuntimeError is what kineto raises, ValueError what JSON does not take.
        raise SaveError(f"{target} wasn't written: {error}") from error


def _check(raw: Path) -> None:
    """Notice what kineto doesn't report: on a full disk or in a missing folder it writes nothing or a part."""
    if not raw.is_file():
        raise SaveError(f"the profiler wrote nothing into {raw.parent.parent}; is that disk full?")
    with raw.open("rb") as file:
        file.seek(max(0, raw.stat().st_size - 64))
        if not file.read().rstrip().endswith(b"}"):
            raise SaveError(f"the profiler wrote only a part into {raw.parent.parent}; is that disk full?")


def finish(raw: Path, target: Path, metadata: Mapping[str, Any]) -> None:
    """Compress `raw` to `target`, metadata included, in one visible step.

    Raises:
        OSError: The disk or the folder doesn't allow it.
        SaveError: `raw` is not a trace.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    hidden = target.with_name(f".{target.name}.tmp-{os.getpid()}")
    try:
        with hidden.open("wb") as file:
            with (
                raw.open("rb") as source,
                gzip.GzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=file, mtime=0) as packed,
            ):
                splice(source, packed, metadata)
            file.flush()
            os.fsync(file.fileno())
        hidden.replace(target)
    finally:
        hidden.unlink(missing_ok=True)
