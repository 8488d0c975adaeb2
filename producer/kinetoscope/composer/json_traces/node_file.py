"""The file of a machine's ranks: all their events of all windows.

Each process that finds all files of a window complete adds them, once, under a lock; events that are in the file
already don't change. A rank's file that should be removed stays until it is in the machine's file, no matter which
rank's process adds it. This module never imports torch.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ...atomic_write import replace_file
from .rank_file import write_array

if sys.platform != "win32":
    import fcntl

_TIME = re.compile(r'"ts": (\d+)\.(\d{3})\}$')


def shift_line(line: str, by_ns: int) -> str:
    """Return a line of a rank's file with its time shifted by some nanoseconds."""
    match = _TIME.search(line) if by_ns else None
    if match is None:
        return line
    ns = int(match[1] + match[2]) + by_ns
    return f'{line[: match.start()]}"ts": {ns // 1000}.{ns % 1000:03d}}}'


def _lines_of(path: Path) -> Iterator[str]:
    """Return the events of a rank's file, on rank 0's clock if the offset was measured."""
    offset_ns = 0
    with path.open(encoding="utf-8") as file:
        for line in file:
            if '"clock_offset_ns"' in line:
                offset_ns = json.loads(line.strip().rstrip(","))["args"]["value"]
    with path.open(encoding="utf-8") as file:
        for line in file:
            event = line.strip().rstrip(",")
            if event.startswith("{"):
                yield shift_line(event, -offset_ns)


@contextmanager
def _folder_lock(folder: Path) -> Iterator[None]:
    """Hold the lock that lets only one process of this machine change the merged file."""
    with (folder / ".merging").open("w") as file:
        if sys.platform != "win32":
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


class NodeFile:
    """The file of a machine's ranks, and which rank files are in it; use it under the lock.

    Args:
        folder: Where the files are.
        target: The machine's file.
    """

    def __init__(self, folder: Path, target: str) -> None:
        self._folder, self._target = folder, folder / target
        name = Path(target).name
        self.records = self._merged_record, self._surplus = folder / f".{name}.merged", folder / f".{name}.surplus"

    def add(self, files: Sequence[str]) -> bool:
        """Add the files of one window if all exist and none is in it yet; return whether it did."""
        paths, merged_names = [self._folder / name for name in files], _names_in(self._merged_record)
        if not all(path.exists() for path in paths) or files[0] in merged_names:
            return False
        before = _plain_lines(self._target) if self._target.exists() and merged_names else iter(())
        write_array(self._target, (line for part in (before, *map(_lines_of, paths)) for line in part))
        _write_names(self._merged_record, [*merged_names, *files])
        return True

    def remove(self, files: Iterable[str]) -> None:
        """Remove files that are in the machine's file; the others later, when they are."""
        merged_names, surplus = set(_names_in(self._merged_record)), [*_names_in(self._surplus), *files]
        for name in surplus:
            if name in merged_names:
                (self._folder / name).unlink(missing_ok=True)
        _write_names(self._surplus, [name for name in surplus if name not in merged_names])


def _names_in(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def _write_names(path: Path, names: Iterable[str]) -> None:
    replace_file(path, "".join(f"{name}\n" for name in names).encode())


def merge_window(folder: Path, files: Sequence[str], target: str) -> bool:
    """Add the files of one window to the merged file if all exist and none is in it yet; return whether it did."""
    with _folder_lock(folder):
        return NodeFile(folder, target).add(files)


def discard_node_file(folder: Path, target: str) -> None:
    """Delete a machine's file that an earlier training may have left."""
    for path in (folder / target, *NodeFile(folder, target).records):
        path.unlink(missing_ok=True)


def remove_rank_files(folder: Path, files: Sequence[str], target: str | None) -> None:
    """Remove a rank's files, but none before it is in the merged file."""
    if target is None:
        for name in files:
            (folder / name).unlink(missing_ok=True)
    else:
        with _folder_lock(folder):
            NodeFile(folder, target).remove(files)


def _plain_lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            event = line.strip().rstrip(",")
            if event.startswith("{"):
                yield event
