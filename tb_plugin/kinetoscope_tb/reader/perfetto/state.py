"""What Perfetto's packets refer to: interned texts, tracks, sequences and clocks, in the arrays that the scanner reads.

A sequence is the packets of one writer. Its texts are valid until it clears its state; a new scope then begins.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...names.regex import regex
from ..scan.tokens import text_of
from . import wire as w
from .message import BrokenMessage, as_signed, data, fields, number, values

_FIRST_SIZE = 1 << 10
_MOST_ESCAPED = 18  # bytes of JSON per byte of a packet: a text may be written thrice, each byte as six
_MOST_DEVICES, _MOST_CLOCKS = 256, 1 << 10
_INTERNED_DATA = 12
_LANE = regex(r"\[(\d{1,18})\] ")

# Torch 2.15's stages of devices: (category in its JSON, name of rows without one).
_STAGES = {
    "Kernel": ("kernel", ""),
    "Memcpy": ("gpu_memcpy", "Memcpy"),
    "Memset": ("gpu_memset", "Memset"),
    "Annotation": ("gpu_user_annotation", ""),
    "EventRecord": ("graph_event_node", "EventRecord"),
    "HostNode": ("graph_host_node", "HostNode"),
}


class _Table:
    """Rows of numbers and their hash table; both double when they are full.

    Args:
        rows: Numbers per row.
        counts: Where the number of used rows is, which the scanner changes too.
        place: Its place there.
    """

    def __init__(self, rows: int, counts: NDArray[np.int64], counter: int) -> None:
        self.array: NDArray[np.int64] = np.zeros((rows, _FIRST_SIZE), np.int64)
        self.slots = np.full(4 * _FIRST_SIZE, -1, np.int32)
        self._counts, self._place = counts, counter

    @property
    def count(self) -> int:
        """How many rows are used."""
        return int(self._counts[self._place])

    def add(self, row: tuple[int, ...]) -> int:
        """Append a row, its values as 64 signed bits; return the first row that must be hashed."""
        before = self.count
        grows = before == self.array.shape[1]
        if grows:
            self.grow()
        self.array[:, before] = [as_signed(value) for value in row]
        self._counts[self._place] = before + 1
        return 0 if grows else before

    def grow(self) -> None:
        """Double the room, with nothing hashed."""
        self.array = np.concatenate([self.array, np.zeros_like(self.array)], axis=1)
        self.slots = np.full(4 * self.array.shape[1], -1, np.int32)


@dataclass
class State:
    """Everything that later packets refer to."""

    names: dict[tuple[str, str], str] = field(default_factory=dict)  # (pid, tid) → name; tid "" names the process
    lanes: dict[str, str] = field(default_factory=dict)  # tid → name, of streams and lanes of any device
    _entry_of: dict[bytes, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._counts = np.zeros(w.IS_GPU + _MOST_DEVICES, np.int64)
        self._entries = _Table(3, self._counts, w.N_ENTRIES)
        self._interned = _Table(7, self._counts, w.N_INTERNED)
        self._sequences = _Table(9, self._counts, w.N_SEQUENCES)
        self._tracks = _Table(w.TRACK_FIELDS, self._counts, w.N_TRACKS)
        self._clock_table = np.zeros((w.CLOCK_FIELDS, _MOST_CLOCKS), np.int64)
        self._strings = np.zeros(_FIRST_SIZE, np.uint8)
        for token in w.CONSTANTS:
            self.entry(token)
        self._devices = np.array([self.entry(b"%d" % i) for i in range(_MOST_DEVICES)], np.int64)

    def tables(self) -> w.Tables:
        """The arrays of the scanner; valid until the next packet is read here."""
        return w.Tables(
            self._strings,
            self._entries.array,
            self._interned.slots,
            self._interned.array,
            self._tracks.slots,
            self._tracks.array,
            self._sequences.slots,
            self._sequences.array,
            self._clock_table,
            self._devices,
            self._counts,
        )

    @property
    def base_ns(self) -> int:
        """The Unix time at which times begin; 0 if it isn't known."""
        return int(self._counts[w.BASE_NS])

    @property
    def origin_ns(self) -> int:
        """What the clock of events showed then."""
        return int(self._counts[w.ORIGIN_NS])

    def sequence_rows(self) -> NDArray[np.int64]:
        """The sequences as the scanner has left them."""
        rows: NDArray[np.int64] = self._sequences.array[:, : self._sequences.count]
        return rows

    def token(self, sequence: int, kind: int, iid: int) -> bytes | None:
        """The JSON token of a text that a packet of this sequence refers to; a slow search."""
        table, rows = self._interned, self._sequences.array
        sequences = np.flatnonzero(rows[w.SEQ_ID, : self._sequences.count] == as_signed(sequence))
        scope = rows[w.SEQ_SCOPE, sequences[0]] if sequences.size else -1
        key = np.array([[scope], [kind], [as_signed(iid)]])
        hits = np.flatnonzero((table.array[:3, : table.count] == key).all(axis=0))
        return self._token_at(int(table.array[w.TEXT_ENTRY, hits[-1]])) if hits.size else None

    def pid_and_tid(self, uuid: int) -> tuple[bytes, bytes]:
        """The tokens of a track's pid and tid."""
        table = self._tracks
        hits = np.flatnonzero(table.array[w.TRACK_UUID, : table.count] == as_signed(uuid))
        if not hits.size:
            return b'""', b'""'
        pid, tid = (int(table.array[row, hits[-1]]) for row in (w.TRACK_PID, w.TRACK_TID))
        return self._token_at(pid), self._token_at(tid)

    def _token_at(self, entry: int) -> bytes:
        start, length, _ = self._entries.array[:, entry].tolist()
        return self._strings[start : start + length].tobytes()

    def forget_codes(self) -> None:
        """Begin a scan: no entry has a code in it yet."""
        self._entries.array[2] = -1

    def entry(self, token: bytes) -> int:
        """The entry of a JSON token."""
        index = self._entry_of.get(token)
        if index is None:
            index = self._entry_of[token] = self._entries.count
            start = int(self._counts[w.N_BYTES])
            end = start + len(token)
            self._entries.add((start, len(token), -1))
            if end > self._strings.size:
                self._strings = np.concatenate([self._strings, np.zeros(end, np.uint8)])
            self._strings[start:end] = np.frombuffer(token, np.uint8)
            self._counts[w.N_BYTES] = end
        return index

    def text(self, raw: bytes | str) -> int:
        """The entry of a text; bytes that aren't UTF-8 stay as they are, for the reader of texts to judge."""
        if isinstance(raw, str):
            return self.entry(json.dumps(raw, ensure_ascii=False).encode("utf-8", "replace"))
        token = json.dumps(raw.decode("latin-1"), ensure_ascii=False).encode("latin-1")
        return self.entry(token)

    def make_room(self, packet_bytes: int) -> None:
        """Make room for what the scanner enters of a packet."""
        for table in (self._entries, self._interned, self._tracks, self._sequences):
            if 2 * table.count >= table.array.shape[1]:
                table.grow()
        w.place_interned(self._interned.slots, self._interned.array, 0, self._interned.count)
        for table in (self._tracks, self._sequences):
            w.place_ids(table.slots, table.array[0], 0, table.count)
        least_size = int(self._counts[w.N_BYTES]) + _MOST_ESCAPED * packet_bytes + _FIRST_SIZE
        if least_size > self._strings.size:
            self._strings = np.concatenate([self._strings, np.zeros(least_size, np.uint8)])

    def read(self, packet: bytes, sequence: int) -> None:
        """Read the stages and the counters that a packet names; the scanner reads everything else.

        Args:
            packet: Its fields.
            sequence: The row of its sequence.
        """
        scope = int(self._sequences.array[w.SEQ_SCOPE, sequence])
        for kind, value in fields(packet):
            if kind == _INTERNED_DATA and isinstance(value, bytes):
                self._read_texts(value, scope)

    def note_labels(self, labels: NDArray[np.int64]) -> None:
        """Take the names of processes and threads that a scan found."""
        for is_thread, pid, tid, entry in labels.T.tolist():
            self.names[str(pid), str(tid) if is_thread else ""] = text_of(self._token_at(entry))

    def _read_texts(self, block: bytes, scope: int) -> None:
        for kind, value in fields(block):
            if not isinstance(value, bytes):
                continue
            try:
                message = values(value)
            except BrokenMessage:
                continue
            iid = number(message, 1)
            if kind == w.GPU_SPECIFICATIONS:
                self._intern_stage(scope, iid, data(message, 2).decode("utf-8", "replace"))
            elif kind == w.GPU_COUNTERS:
                self._intern_counters(scope, iid, message)

    def _intern(
        self, scope: int, kind: int, iid: int, entry: int, what: int = 0, name: int = -1, position: int = -1
    ) -> None:
        table = self._interned
        first = table.add((scope, kind, iid, entry, what, name, position))
        w.place_interned(table.slots, table.array, first, table.count)

    def _intern_stage(self, scope: int, iid: int, name: str) -> None:
        """A stage or a queue: which one it is, only its use shows."""
        category, fixed_name = _STAGES.get(name, ("", name))
        lane = _LANE.match(name)
        kind = self.text(category) if category else w.RENDER_STAGE
        position = self.entry(b"%d" % int(lane[1])) if lane else self.text(name)
        if lane:
            self.lanes[str(int(lane[1]))] = name[lane.end() :]
        self._intern(
            scope,
            w.GPU_SPECIFICATIONS,
            iid,
            self.text(name),
            kind,
            self.text(fixed_name) if fixed_name else -1,
            position,
        )

    def _intern_counters(self, scope: int, iid: int, message: dict[int, Any]) -> None:
        device = self.text(f"GPU {number(message, 3)} Counters")
        self._intern(scope, w.GPU_COUNTERS, iid, device, position=device)
        for kind, value in fields(data(message, 2)):
            if kind == 1 and isinstance(value, bytes):
                spec = values(value)
                key = as_signed(iid << 32 | number(spec, 1))
                self._intern(scope, w.COUNTER_NAMES, key, self.text(data(spec, 2)))
