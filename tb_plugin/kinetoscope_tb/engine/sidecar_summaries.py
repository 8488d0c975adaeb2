"""Summaries stored next to their recordings, so that the run opens elsewhere without reading the recordings.

Only `kinetoscope index --beside` writes them. Each is checked against its recording: if the recording has changed, or
another version of Kinetoscope wrote the summary, the recording is read.
"""

from __future__ import annotations

import shutil
import tempfile
import zlib
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import TraceError
from ..filesystem import atomic_write, entry_at, is_url, last_part
from .cache import pack
from .cache.summary_entry import MOST_BYTES, PackedSummary
from .cache.values import BrokenEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType

    from typing_extensions import Self

    from ..discovery import TraceFile

_AT_ONCE = 8  # recordings that are checked at once: remote requests are slow


def pack_of(path: str) -> str:
    """The path of the summaries of a recording's folder."""
    if is_url(path):
        return f"{path.rpartition('/')[0]}/{pack.FILE_NAME}"
    return str(Path(path).with_name(pack.FILE_NAME))


def sidecar_summaries(
    files: Iterable[TraceFile], on_problem: Callable[[str], None]
) -> Iterator[tuple[TraceFile, PackedSummary]]:
    """The recordings with current summaries next to them; `on_problem` is called with why others can't be used."""
    by_pack: dict[tuple[str, str], list[TraceFile]] = defaultdict(list)
    for file in files:
        by_pack[pack_of(file.path), file.patterns.digest].append(file)
    for (path, patterns), mine in by_pack.items():
        pack_path = _shown_pack_of(mine[0])
        try:
            records = pack.records_in(path, patterns)
            if records is None:
                continue
            current = _current_files(mine, records)
            candidates = [file for file in mine if _name(file) in records]
            if len(current) < len(candidates):
                example = next(file for file in candidates if _name(file) not in current)
                count = len(candidates) - len(current)
                on_problem(f"{pack_path} has summaries of {count} recordings that changed since: {example.shown} …")
            for record, summary in pack.summaries_in(path, (records[name] for name in current)):
                if isinstance(summary, PackedSummary):
                    yield current[record.name], summary
                else:
                    on_problem(f"The summary of {record.name} in {pack_path} is impossible: {summary}.")
        except BrokenEntry as error:
            on_problem(f"{pack_path} can't be used: {error}.")
        except TraceError as error:
            on_problem(f"{pack_path} can't be read: {error.problem}")


def _name(file: TraceFile) -> str:
    """The name of a recording in a pack: of its file, with the process if that holds several."""
    name = last_part(file.path)
    return name if file.process is None else f"{name}#{file.process}"


def _shown_pack_of(file: TraceFile) -> str:
    """The display name of a pack, without this machine's folders."""
    folder, slash, _ = file.shown.rpartition("/")
    return f"{folder}{slash}{pack.FILE_NAME}"


def _current_files(files: Sequence[TraceFile], records: dict[str, pack.Record]) -> dict[str, TraceFile]:
    """The files, by name, that match their summaries: unchanged since, or exact copies."""
    pairs = [(file, records[_name(file)]) for file in files if _name(file) in records]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        are_current = pool.map(_is_current, pairs)
        return {record.name: file for (file, record), is_current in zip(pairs, are_current, strict=True) if is_current}


def _is_current(pair: tuple[TraceFile, pack.Record]) -> bool:
    file, record = pair
    if file.bytes != record.bytes:
        return False
    if file.stamp[-1] and pack.as_stored(file.stamp) == record.stamp:
        return True
    try:
        return pack.content_key(file.path, file.bytes) == record.key
    except TraceError:  # reading it will report why
        return False


class SidecarWriter:
    """Writes summaries into the folders of their recordings, after all are computed.

    Until then they are in a temporary folder, so that memory doesn't grow with their number.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="kinetoscope-")
        self._places: dict[str, list[tuple[TraceFile, pack.Record]]] = defaultdict(list)
        self._problems: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    def add(self, file: TraceFile, summary: PackedSummary) -> None:
        """Add a summary."""
        if len(summary.data) > MOST_BYTES:  # readers would refuse it
            self._problems.append(f"The summary of {file.shown} is too large to be stored next to it.")
            return
        records = self._places[pack_of(file.path)]
        with self._spool(pack_of(file.path)).open("ab") as spool:
            if not records:
                spool.write(pack.MAGIC)
            start = spool.tell()
            spool.write(summary.data)
        checksum, stamp = zlib.crc32(summary.data), pack.as_stored(file.stamp)
        records.append((file, pack.Record(_name(file), file.bytes, stamp, "", start, len(summary.data), checksum)))

    def write(self) -> list[str]:
        """Write one file into each folder; return the problems."""
        problems = list(self._problems)
        for path, pairs in self._places.items():
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                records = [record for record in pool.map(_with_key, pairs) if record is not None]
            try:
                with atomic_write(path) as file, self._spool(path).open("rb") as spool:
                    shutil.copyfileobj(spool, file, 1 << 20)
                    pack.write_end(file, records, pairs[0][0].patterns.digest)
            except OSError as error:
                problems.append(f"{path} can't be written: {error.strerror or error}.")
        return problems

    def _spool(self, path: str) -> Path:
        number = list(self._places).index(path)
        return Path(self._folder.name, str(number))


def _with_key(pair: tuple[TraceFile, pack.Record]) -> pack.Record | None:
    """None if the recording changed while it was summarized, or is gone."""
    file, record = pair
    entry = entry_at(file.path)
    if entry is None or entry.stamp != file.stamp:
        return None
    try:
        return replace(record, key=pack.content_key(file.path, file.bytes))
    except TraceError:
        return None
