"""What Perfetto's packets refer to: interned texts, tracks, sequences and clocks, in the arrays that the scanner reads.

A sequence is the packets of one writer. Its texts are valid until it clears its state; a new scope then begins.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import wire as w
from .message import BrokenMessage, data, fields, number, signed, values

_FIRST_SIZE = 1 << 10
_MOST_DEVICES, _MOST_CLOCKS, _MOST_LEVELS = 256, 1 << 10, 64
_GPU_PROCESS = re.compile(r"GPU (\d{1,9})")
_NOT_A_PROCESS = 2**31 - 1  # torch's pid of "Overhead", -1 in its JSON
_LANE = re.compile(r"\[(\d{1,18})\] ")
_REALTIME = 1
_FAR_NS = 2**62

# Torch 2.15's stages of devices: (category in its JSON, name of rows without one).
_STAGES = {
    "Kernel": ("kernel", ""),
    "Memcpy": ("gpu_memcpy", "Memcpy"),
    "Memset": ("gpu_memset", "Memset"),
    "Annotation": ("gpu_user_annotation", ""),
    "EventRecord": ("graph_event_node", "EventRecord"),
    "HostNode": ("graph_host_node", "HostNode"),
}
_TEXT_FIELDS = (w.CATEGORIES, w.NAMES, w.ANNOTATION_NAMES, w.KERNELS, w.KERNEL_ARGUMENTS)


class _Table:
    """Rows of numbers and their hash table; both double when they are full."""

    def __init__(self, rows: int) -> None:
        self.array: NDArray[np.int64] = np.zeros((rows, _FIRST_SIZE), np.int64)
        self.slots = np.full(4 * _FIRST_SIZE, -1, np.int32)
        self.count = 0

    def add(self, row: tuple[int, ...]) -> bool:
        """Append a row, its values as 64 signed bits; return whether the table grew, and must be hashed again."""
        grows = bool(self.count == self.array.shape[1])
        if grows:
            self.array = np.concatenate([self.array, np.zeros_like(self.array)], axis=1)
            self.slots = np.full(4 * self.array.shape[1], -1, np.int32)
        self.array[:, self.count] = [signed(value) for value in row]
        self.count += 1
        return grows


@dataclass
class _Track:
    """A track descriptor, and those of its thread and process if it has them."""

    uuid: int
    parent: int = 0
    name: str = ""
    pid: int | None = None
    tid: int | None = None
    is_counter: bool = False


@dataclass
class State:
    """Everything that later packets refer to."""

    base_ns: int | None = None
    origin_ns: int = 0
    names: dict[tuple[str, str], str] = field(default_factory=dict)  # (pid, tid) → name; tid "" names the process
    lanes: dict[str, str] = field(default_factory=dict)  # tid → name, of streams and lanes of any device
    _entry_of: dict[bytes, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._entries, self._interned = _Table(3), _Table(7)
        self._tracks, self._sequences = _Table(5), _Table(9)
        self._sequence_of: dict[int, int] = {}
        self._clocks: dict[tuple[int, int], int] = {}
        self._clock_table = np.zeros((6, 64), np.int64)
        self._counts = np.zeros(1, np.int64)
        self._described: dict[int, _Track] = {}
        self._scopes = 0
        self._strings = np.zeros(_FIRST_SIZE, np.uint8)
        self._length = 0
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

    def sequence_rows(self) -> NDArray[np.int64]:
        """The sequences as the scanner has left them."""
        rows: NDArray[np.int64] = self._sequences.array[:, : self._sequences.count]
        return rows

    def token(self, sequence: int, kind: int, iid: int) -> bytes | None:
        """The JSON token of a text that a packet of this sequence refers to; a slow search."""
        table, rows = self._interned, self._sequences.array
        scope = rows[w.SEQ_SCOPE, self._sequence(sequence)]
        key = np.array([[scope], [kind], [signed(iid)]])
        places = np.flatnonzero((table.array[:3, : table.count] == key).all(axis=0))
        return self._token_at(int(table.array[w.TEXT_ENTRY, places[-1]])) if places.size else None

    def place(self, uuid: int) -> tuple[bytes, bytes]:
        """The tokens of a track's pid and tid."""
        table = self._tracks
        places = np.flatnonzero(table.array[w.TRACK_UUID, : table.count] == signed(uuid))
        if not places.size:
            return b'""', b'""'
        pid, tid = (int(table.array[row, places[-1]]) for row in (w.TRACK_PID, w.TRACK_TID))
        return self._token_at(pid), self._token_at(tid)

    def _token_at(self, entry: int) -> bytes:
        start, length, _ = self._entries.array[:, entry].tolist()
        return self._strings[start : start + length].tobytes()

    def forget_codes(self) -> None:
        """Begin a scan: no entry has a code in it yet."""
        self._entries.array[2] = -1

    def entry(self, token: bytes) -> int:
        """The entry of a JSON token."""
        known = self._entry_of.get(token)
        if known is None:
            known = self._entry_of[token] = self._entries.count
            self._entries.add((self._length, len(token), -1))
            end = self._length + len(token)
            if end > self._strings.size:
                self._strings = np.concatenate([self._strings, np.zeros(end, np.uint8)])
            self._strings[self._length : end] = np.frombuffer(token, np.uint8)
            self._length = end
        return known

    def text(self, raw: bytes | str) -> int:
        """The entry of a text; bytes that aren't UTF-8 stay as they are, for the reader of texts to judge."""
        if isinstance(raw, str):
            return self.entry(json.dumps(raw, ensure_ascii=False).encode("utf-8", "replace"))
        escaped = json.dumps(raw.decode("latin-1"), ensure_ascii=False).encode("latin-1")
        return self.entry(escaped)

    def read(self, packet: bytes) -> None:
        """Read what a packet says about later ones."""
        parts = values(packet)
        sequence = self._sequence(number(parts, 10))
        if number(parts, 13) & 1 or number(parts, 41):
            self._clear(sequence)
        if 6 in parts:
            self._read_clocks(data(parts, 6), number(parts, 10))
        for kind, value in fields(packet):
            if not isinstance(value, bytes):
                continue
            try:
                self._read_part(kind, value, sequence)
            except BrokenMessage:
                continue
        if self.base_ns is None and 8 in parts and not self._clocks:
            self.base_ns = 0

    def _read_part(self, kind: int, value: bytes, sequence: int) -> None:
        rows = self._sequences.array
        if kind == 12:
            self._read_texts(value, int(rows[w.SEQ_SCOPE, sequence]))
        elif kind == 59:
            defaults = values(value)
            rows[w.SEQ_CLOCK, sequence] = number(defaults, 58)
            rows[w.SEQ_TRACK, sequence] = signed(number(values(data(defaults, 11)), 11))
        elif kind == 60:
            self._read_track(value)
        elif kind == 44:
            thread = values(value)
            pid, tid = str(number(thread, 1)), str(number(thread, 2))
            rows[w.SEQ_PID, sequence], rows[w.SEQ_TID, sequence] = self.entry(pid.encode()), self.entry(tid.encode())
            self._name(pid, tid, data(thread, 5))
        elif kind == 43:
            process = values(value)
            self._name(str(number(process, 1)), "", data(process, 6))

    def _sequence(self, sequence: int) -> int:
        """The row of a sequence."""
        table = self._sequences
        known = self._sequence_of.setdefault(sequence, table.count)
        if known < table.count:
            return known
        self._scopes += 1
        nothing = self.text("")
        first = 0 if table.add((sequence, self._scopes, 0, 0, 0, 0, 0, nothing, nothing)) else table.count - 1
        w.place_ids(table.slots, table.array[0], first, table.count)
        return table.count - 1

    def _clear(self, sequence: int) -> None:
        self._scopes += 1
        rows = self._sequences.array
        rows[w.SEQ_SCOPE, sequence] = self._scopes
        rows[w.SEQ_TRACK, sequence] = rows[w.SEQ_CLOCK, sequence] = 0

    def _read_clocks(self, snapshot: bytes, sequence: int) -> None:
        """Set each clock against BOOTTIME, or against the first one without it. REALTIME gives the Unix time."""
        clocks = [values(value) for kind, value in fields(snapshot) if kind == 1 and isinstance(value, bytes)]
        times = {number(clock, 1): signed(number(clock, 2)) for clock in clocks}
        if not times:
            return
        reference = times.get(w.BOOTTIME, next(iter(times.values())))
        if self.base_ns is None:
            self.origin_ns = reference if abs(reference) < _FAR_NS else 0
            self.base_ns = times.get(_REALTIME, 0) if _REALTIME in times else 0
        for clock in clocks:
            self._set_clock(number(clock, 1), sequence, clock, reference)

    def _set_clock(self, clock: int, sequence: int, message: dict[int, Any], reference: int) -> None:
        key = (signed(sequence) if clock >= 64 else 0, clock)
        if clock == w.BOOTTIME or (key not in self._clocks and len(self._clocks) >= _MOST_CLOCKS):
            return
        row = self._clocks.setdefault(key, len(self._clocks))
        if row == self._clock_table.shape[1]:
            self._clock_table = np.concatenate([self._clock_table, np.zeros_like(self._clock_table)], axis=1)
        unit = number(message, 4) or 1
        time = signed(number(message, 2))
        offset = signed(reference - time * unit)
        self._clock_table[:, row] = [key[0], signed(clock), offset, signed(unit), number(message, 3) & 1, time]
        self._counts[0] = len(self._clocks)

    def _read_texts(self, interned: bytes, scope: int) -> None:
        for kind, value in fields(interned):
            if not isinstance(value, bytes):
                continue
            try:
                one = values(value)
            except BrokenMessage:
                continue
            iid = number(one, 1)
            if kind in _TEXT_FIELDS:
                text = data(one, 3 if kind == w.KERNELS else 2)
                is_registers = kind == w.KERNEL_ARGUMENTS and text == b"registers_per_thread"
                self._intern(scope, kind, iid, self.text(text), int(is_registers))
            elif kind == w.GPU_SPECIFICATIONS:
                self._intern_stage(scope, iid, data(one, 2).decode("utf-8", "replace"))
            elif kind == w.GPU_COUNTERS:
                self._intern_counters(scope, iid, one)

    def _intern(
        self, scope: int, kind: int, iid: int, entry: int, what: int = 0, name: int = -1, place: int = -1
    ) -> None:
        table = self._interned
        first = 0 if table.add((scope, kind, iid, entry, what, name, place)) else table.count - 1
        w.place_interned(table.slots, table.array, first, table.count)

    def _intern_stage(self, scope: int, iid: int, name: str) -> None:
        """A stage or a queue: which one it is, only its use shows."""
        category, fixed = _STAGES.get(name, ("", name))
        lane = _LANE.match(name)
        kind = self.text(category) if category else w.RENDER_STAGE
        place = self.entry(b"%d" % int(lane[1])) if lane else self.text(name)
        if lane:
            self.lanes[str(int(lane[1]))] = name[lane.end() :]
        self._intern(scope, w.GPU_SPECIFICATIONS, iid, self.text(name), kind, self.text(fixed) if fixed else -1, place)

    def _intern_counters(self, scope: int, iid: int, one: dict[int, Any]) -> None:
        device = self.text(f"GPU {number(one, 3)} Counters")
        self._intern(scope, w.GPU_COUNTERS, iid, device, place=device)
        for kind, value in fields(data(one, 2)):
            if kind == 1 and isinstance(value, bytes):
                spec = values(value)
                key = signed(iid << 32 | number(spec, 1))
                self._intern(scope, w.COUNTER_NAMES, key, self.text(data(spec, 2)))

    def _read_track(self, descriptor: bytes) -> None:
        one = values(descriptor)
        process, thread = values(data(one, 3)), values(data(one, 4))
        track = _Track(number(one, 1), number(one, 5), data(one, 2).decode("utf-8", "replace"))
        track.is_counter = 8 in one
        if 4 in one:
            track.pid, track.tid = signed(number(thread, 1), 32), signed(number(thread, 2))
            self._name(str(track.pid), str(track.tid), data(thread, 5) or data(one, 2))
        if 3 in one:
            track.pid = signed(number(process, 1), 32)
            self._name(str(track.pid), "", data(process, 6) or data(one, 2))
        self._described[track.uuid] = track
        self._add_track(track)

    def _name(self, pid: str, tid: str, name: bytes) -> None:
        if name:
            self.names[pid, tid] = name.decode("utf-8", "replace")

    def _add_track(self, track: _Track) -> None:
        """Enter a track: a thread's, a process', a counter's, or one that a program named."""
        above = track
        for _ in range(_MOST_LEVELS):
            if above.pid is not None or above.parent not in self._described:
                break
            above = self._described[above.parent]
        pid = "" if above.pid is None else str(above.pid)
        tid = track.name if track.tid is None else str(track.tid)
        if not tid and track.pid is None:
            tid = f"track {track.uuid}"
        category = -1
        name = self.names.get((pid, ""), "")
        if above.pid == _NOT_A_PROCESS:
            pid, category = "-1", self.text("overhead")
        elif (gpu := _GPU_PROCESS.fullmatch(name)) and int(gpu[1]) == above.pid and track.tid is not None:
            category = self.text("cuda_sync")
        named = self.text(track.name) if track.is_counter and track.name else -1
        table = self._tracks
        first = (
            0 if table.add((track.uuid, self._place_of(pid), self._place_of(tid), category, named)) else table.count - 1
        )
        w.place_ids(table.slots, table.array[0], first, table.count)

    def _place_of(self, text: str) -> int:
        return self.entry(text.encode()) if re.fullmatch(r"-?\d{1,19}", text) else self.text(text)
