"""The processes of a file that holds several, as one file of the cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, Any

from ...names.processes import Process
from .columns import Reader, Writer
from .values import BrokenEntry, sequence

MAGIC = b"kinetoscope files\n"


def write(file: IO[bytes], processes: Sequence[Process], source: dict[str, Any]) -> None:
    """Write the processes to an empty file; `source` identifies the file that holds them, as JSON values."""
    Writer(file, MAGIC).end({"source": source, "processes": [[process.id, process.worker] for process in processes]})


def read(reader: Reader) -> tuple[Process, ...]:
    """The processes in the entry.

    Raises:
        BrokenEntry: It is forged.
    """
    pairs = [sequence(pair, 2) for pair in sequence(reader.head.get("processes"))]
    if not all(isinstance(text, str) for pair in pairs for text in pair) or len(
        {process_id for process_id, _ in pairs}
    ) < len(pairs):
        raise BrokenEntry("its processes aren't apart")
    return tuple(Process(*pair) for pair in pairs)
