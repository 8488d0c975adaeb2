"""Summaries of many recordings as one file, which lies beside them and may come from another machine.

    magic · summaries · footer · length of the footer (8) · its checksum (4) · magic

The footer is JSON: which version made them, and of each recording its name, size, stamp, key, and where its summary is.
A recording's stamp is the same as long as nobody touched it; its key also when it was copied.
"""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import IO, Any

from ..errors import TraceError
from ..storage import StoredFile, entry_at, stored_bytes
from .entry import TAIL_BYTES, BrokenEntry, footer_length, footer_of, write_footer
from .summary_entry import PackedSummary
from .version import sources_version

MAGIC = b"kinetoscope packs\n"
FILE_NAME = "kinetoscope.summaries"
_ENDS = 1 << 16  # bytes of a recording's begin and of its end that its key is of


@dataclass(frozen=True)
class Place:
    """A summary in a pack.

    Args:
        name: Of its recording, which lies in the same folder.
        bytes: Its size.
        stamp: What changes when it does, as its place tells.
        key: `content_key` of it.
        start: Where its summary lies in the pack.
        length: How long that is.
        checksum: Its CRC-32.
    """

    name: str
    bytes: int
    stamp: Any
    key: str
    start: int
    length: int
    checksum: int


def content_key(path: str, size: int) -> str:
    """What two recordings of one size have in common only if they are copies: a digest of their ends.

    The begin of a recording tells who made it and when, and a compressed one ends in the checksum of all of it.

    Raises:
        TraceError: The file can't be read.
    """
    last = max(0, size - _ENDS)
    digest = hashlib.sha256(f"{size} ".encode())
    digest.update(stored_bytes(path, 0, _ENDS))
    digest.update(stored_bytes(path, last, size - last))
    return digest.hexdigest()


def write_end(file: IO[bytes], places: Iterable[Place]) -> None:
    """End a pack."""
    write_footer(file, {"version": sources_version(), "places": [asdict(place) for place in places]}, MAGIC)


def places_in(path: str) -> dict[str, Place] | None:
    """The summaries of a pack by the names of their recordings; None if there is no pack.

    Raises:
        BrokenEntry: It is none, or was damaged, or another version of Kinetoscope made it.
        TraceError: It can't be read.
    """
    entry = entry_at(path)
    if entry is None:
        return None
    size = entry.bytes or 0
    if size < TAIL_BYTES:
        raise BrokenEntry("it is too short")
    end = stored_bytes(path, max(0, size - TAIL_BYTES), TAIL_BYTES)
    length = footer_length(end, MAGIC) + TAIL_BYTES + len(MAGIC)
    if length > size:
        raise BrokenEntry("it is too short")
    footer = footer_of(io.BytesIO(stored_bytes(path, size - length, length)), MAGIC)
    if footer.get("version") != sources_version():
        raise BrokenEntry("another version of Kinetoscope made it")
    try:
        places = [Place(**{**place, "name": str(place["name"])}) for place in footer["places"]]
        if not all(isinstance(number, int) for p in places for number in (p.bytes, p.start, p.length, p.checksum)):
            raise BrokenEntry("its footer isn't one")
    except (TypeError, LookupError) as error:
        raise BrokenEntry("its footer isn't one") from error
    return {place.name: place for place in places}


def summaries_in(path: str, places: Iterable[Place]) -> Iterator[tuple[Place, PackedSummary]]:
    """Some summaries of a pack, in the order in which they lie there; the file is read once, from front to back.

    Raises:
        BrokenEntry: One was damaged, or made up.
        TraceError: The file can't be read.
    """
    file, at = StoredFile(path), 0
    try:
        for place in sorted(places, key=lambda place: place.start):
            if place.start < at or place.length < 0:
                raise BrokenEntry("its summaries overlap")
            _read(file, place.start - at)
            kept = PackedSummary(_read(file, place.length))
            at = place.start + place.length
            if zlib.crc32(kept.data) != place.checksum:
                raise BrokenEntry(f"what it tells of {place.name} was damaged")
            _ = kept.summary  # what can't be used is told here
            yield place, kept
    finally:
        file.close()


def _read(file: StoredFile, count: int) -> bytes:
    parts = []
    while count > 0:
        data = file.read(min(count, 1 << 20))
        if not data:
            raise TraceError(file.path, "the file ends too early.")
        parts.append(data)
        count -= len(data)
    return b"".join(parts)


def as_stored(stamp: Any) -> Any:
    """A stamp as a pack gives it back."""
    return json.loads(json.dumps(stamp, default=str))
