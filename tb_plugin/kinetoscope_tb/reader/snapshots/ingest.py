"""The pickle of a snapshot → records of its events, blocks, segments and annotations, in one compiled pass.

torch 1.12 to 2.0 wrote a list of segments, later ones a dict (torch/csrc/cuda/memory_snapshot.cpp);
CUDA, XPU and NPU use the same keys. A field that a version doesn't have is missing; a key that isn't known is left out.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from itertools import chain

import numpy as np

from ...errors import NotATrace
from ...filesystem import begins_page
from ...names.regex import regex
from ...trace.model import Diagnostic
from ..pickles.machine import Machine, PickleError, Schema
from ..scan.ingest import RawFile, RawTrace
from .columns import SnapshotFrames, frames_of
from .word_columns import WordColumn

_HEAD = b'{"memorySnapshot": true, "traceEvents": ['
_BASE64 = regex(rb'"base64"\s*:\s*"')
_NO_BASE64 = regex(rb"[^A-Za-z0-9+/=]")


class RecordKind(IntEnum):
    """The dicts of a snapshot."""

    FRAME = 0
    EVENT = 1
    ANNOTATION = 2
    SEGMENT = 3
    BLOCK = 4
    HISTORY = 5


FIELDS = {
    RecordKind.FRAME: ("filename", "line", "name"),
    RecordKind.EVENT: (
        *("action", "addr", "size", "stream", "time_us", "frames", "device_free", "pool_id", "compile_context"),
        "user_metadata",
    ),
    RecordKind.ANNOTATION: ("stage", "name", "device", "time_us"),
    RecordKind.SEGMENT: (
        *("device", "address", "total_size", "allocated_size", "active_size", "requested_size", "stream"),
        *("segment_type", "segment_pool_id", "is_expandable", "frames", "blocks"),
    ),
    RecordKind.BLOCK: ("address", "size", "requested_size", "state", "frames", "history"),
    RecordKind.HISTORY: ("addr", "real_size", "frames"),
}
_REQUIRED = {
    RecordKind.FRAME: ("filename", "line"),
    RecordKind.EVENT: ("action", "size"),
    RecordKind.ANNOTATION: ("stage", "name"),
    RecordKind.SEGMENT: ("total_size", "blocks"),
    RecordKind.BLOCK: ("size", "state"),
    RecordKind.HISTORY: ("addr", "real_size"),
}
SCHEMA = Schema(tuple(FIELDS.values()), tuple(_REQUIRED.values()))


class RecordMachine(Machine):
    """A machine whose records are taken out as they come, so that memory follows the columns."""

    def __init__(self) -> None:
        super().__init__(SCHEMA)
        self.records = {kind: {name: WordColumn() for name in FIELDS[kind]} for kind in RecordKind}

    def make_room(self) -> None:
        """Take the records."""
        records = self.taken_records()
        for kind in map(RecordKind, np.flatnonzero(np.bincount(records[:, 0])).tolist()):
            rows = records[records[:, 0] == kind]
            for number, column in enumerate(self.records[kind].values(), 1):
                column.append(rows[:, number])


def ingest(blocks: Iterable[bytes], path: str, progress: Callable[[None], None]) -> RawFile:
    """Read a snapshot.

    Args:
        blocks: Its text.
        path: Its name in messages.
        progress: Called after each block.

    Raises:
        NotATrace: It has no segments and no events.
    """
    stream = iter(blocks)
    start = next(stream, b"")
    machine, problem = RecordMachine(), ""
    try:
        for block in _pickle_blocks(chain([start], stream), is_page=begins_page(start)):
            machine.feed(block)
            progress(None)
            if machine.is_over:
                break
    except PickleError as error:
        problem = str(error)
    is_whole = machine.is_over
    if not is_whole:
        machine.end()
    machine.make_room()
    machine.free_memo()
    frames = frames_of(machine, {kind.name.lower(): columns for kind, columns in machine.records.items()})
    if frames.is_empty:
        reason = f": {problem}" if problem else ", or it was truncated before them"
        raise NotATrace(path, f"it is a pickle without segments and events of a memory snapshot{reason}.")
    diagnostics = _diagnostics(machine, frames, problem, is_whole=is_whole)
    return RawFile(RawTrace(head=_HEAD, tail=b"]}"), diagnostics, frames)


def _pickle_blocks(blocks: Iterable[bytes], *, is_page: bool) -> Iterator[bytes]:
    """The pickle in blocks: the file itself, or base64 in a page that `torch.cuda._memory_viz` wrote."""
    yield from _base64_text(blocks) if is_page else blocks


def _base64_text(blocks: Iterable[bytes]) -> Iterator[bytes]:
    text, has_begun = b"", False
    for block in blocks:
        text += block
        if not has_begun:
            match = _BASE64.search(text)
            if match is None:
                text = text[-64:]
                continue
            text, has_begun = text[match.end() :], True
        end = _NO_BASE64.search(text)
        whole = text[: end.start()] if end else text
        count = len(whole) - len(whole) % 4
        yield binascii.a2b_base64(whole[:count])
        if end:
            return
        text = whole[count:]


def _diagnostics(machine: Machine, frames: SnapshotFrames, problem: str, *, is_whole: bool) -> list[Diagnostic]:
    diagnostics = []
    if problem:
        words = (
            f"The snapshot was read up to a place that isn't plain data: {problem}. Nothing of the file was run. What "
            "follows is missing; record the snapshot again."
        )
        diagnostics.append(Diagnostic("refused_pickle", 1, words, machine.read_bytes, level="loss"))
    elif not is_whole:
        words = (
            f"The snapshot ends too early, at byte {machine.read_bytes}: what follows is missing, so its segments and "
            "its events may not add up. Record it again, and let the job finish writing."
        )
        diagnostics.append(Diagnostic("truncated", 1, words, machine.read_bytes, level="loss"))
    if machine.left_out_frames:
        words = "Stacks of over 1,000 frames are shown with their innermost 1,000."
        diagnostics.append(Diagnostic("cut_stacks", machine.left_out_frames, words, level="note"))
    if frames.unread:
        words = "Entries of the snapshot have another form than torch writes; they are left out."
        diagnostics.append(Diagnostic("unread_entries", frames.unread, words))
    return diagnostics
