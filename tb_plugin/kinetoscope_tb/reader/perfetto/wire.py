"""The scanner of Perfetto's protobuf: bytes of packets → arrays, in one pass (tb_plugin/native/perfetto.c).

It fills the same `Out` as the scanner of JSON, so that everything behind it is shared: a text becomes the JSON token
that a writer of JSON would have written. What packets refer to is in `Tables`: the scanner enters sequences and
texts, Python everything else (state.py), and makes room.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from ...arrays.native import SEED, Array, BoundFunction, Function
from ..scan.scanner import Keys, Out

MORE, FULL, STATE, GROW = range(4)
"""Why a scan stopped: no further whole packet; no room for events; a packet with tracks, clocks or processes, which
Python reads; no room in the tables."""

(
    STATUS,
    USED,
    NEEDS_ROOM,
    BEGINS,
    ENDS,
    COUNTERS,
    LAUNCHES,
    WAITS,
    STAGES,
    LABELS,
    LOST,
    FIRST_LOST,
    IS_LOST,
    UNKNOWN_TEXTS,
    FIRST_UNKNOWN_TEXT,
    FOREIGN,
    FIRST_FOREIGN,
    DROPPED,
    FIRST_DROPPED,
    CLOCK_ROW,
    CLOCK_BEFORE,
    LOST_WORK,
    SEQUENCE,
    DAMAGED_STATE,
    FIRST_DAMAGED_STATE,
) = range(25)
"""The places in `state`. LOST: damaged places; IS_LOST: whether the last one still lasts. UNKNOWN_TEXTS: references to
texts that no packet defined. FOREIGN: packets of kinds that aren't shown. DROPPED: sequences say that packets before
were dropped. CLOCK_ROW: the incremental clock that a packet advanced, or -1, and its time before.
LOST_WORK: how many bytes of broken packets were searched for whole ones. SEQUENCE: the row of its sequence.
DAMAGED_STATE: packets with damaged texts, tracks or clocks."""

N_STATE = FIRST_DAMAGED_STATE + 1

N_CLOCKS, N_ENTRIES, N_INTERNED, N_TRACKS, N_SEQUENCES, N_SCOPES, N_BYTES, IS_TIMED, HAS_BASE, BASE_NS, ORIGIN_NS = (
    range(11)
)
IS_GPU = ORIGIN_NS + 1
"""The places in `Tables.counts`: used rows and scopes, the used bytes of `strings`, whether an event had a time and a
snapshot of clocks came. BASE_NS is the Unix time of the first one, ORIGIN_NS what the clock of events showed. From
IS_GPU on: whether a process is a GPU."""

PACKET = 10  # the tag of Trace.packet, with its length
LONGEST_PACKET = 1 << 26
_SNIFFED = 1 << 16  # bytes that show what a file is

SEQ_ID, SEQ_SCOPE, SEQ_TRACK, SEQ_CLOCK, SEQ_GROUP, SEQ_ENDED, SEQ_FLAGS, SEQ_PID, SEQ_TID = range(9)
"""The rows of `Tables.sequences`; SEQ_CLOCK is the default clock, SEQ_FLAGS which of the flags below occurred."""
BEGIN_FLAGGED, END_FLAGGED, END_BARE = 1, 2, 4

CLOCK_FIELDS = 6
TRACK_UUID, TRACK_PID, TRACK_TID = range(3)
TRACK_FIELDS = 8
TEXT_SCOPE, TEXT_FIELD, TEXT_ID, TEXT_ENTRY, TEXT_KIND, TEXT_NAME, TEXT_PLACE = range(7)
"""The rows of `Tables.interned`. TEXT_KIND and TEXT_NAME: the category and the fixed name of a stage, or -1; TEXT_KIND
of an argument of kernels: 1 for registers. TEXT_PLACE: the tid of a queue, the pid of a device's counters."""

CONSTANTS = (
    b'"X"',
    b'"i"',
    b'"C"',
    b'"s"',
    b'"f"',
    b'"kernel"',
    b'"flow"',
    b'""',
    b'"gpu_render_stage"',
    b'"Memcpy"',
    b'"Memset"',
    b'"overhead"',
    b'"cuda_sync"',
)
X, INSTANT, COUNTER, FLOW_BEGIN, FLOW_END, KERNEL, FLOW, EMPTY, RENDER_STAGE, MEMCPY, MEMSET, OVERHEAD, CUDA_SYNC = (
    range(len(CONSTANTS))
)
"""The first entries of the table of texts."""

CATEGORIES, NAMES, ANNOTATION_NAMES, ANNOTATION_VALUES = 1, 2, 3, 29
GPU_CONTEXTS, GPU_SPECIFICATIONS, GPU_COUNTERS, KERNELS, KERNEL_ARGUMENTS = 23, 24, 47, 1000, 1001
COUNTER_NAMES = -47  # of the counters of a GPU: by (descriptor << 32 | counter)


def begins_perfetto(start: bytes) -> bool:
    """Whether a file with these first bytes is a Perfetto trace, perhaps a damaged one."""
    data = np.frombuffer(start[:_SNIFFED], np.uint8)
    if looks_like_packets(data, 0, data.size, is_last=True) == 1:
        return True
    text = start.lstrip()
    if not text or text.startswith((b"{", b"[", b"<", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        return False
    if start[0] == PACKET:
        length, begin = varint(data, 1, data.size)
        if begin > 0 and 0 < length <= LONGEST_PACKET and field(data, begin, data.size)[0]:
            return True
    return next_packet(data, 0, data.size, is_last=True) < data.size


class Tables(NamedTuple):
    """What packets refer to; an entry is a JSON token in `strings`."""

    strings: Any  # uint8
    entries: Any  # [start, length, code in this scan or -1; entry]
    slots: Any  # hash table of the interned texts: index or -1
    interned: Any  # [TEXT_…, index]
    track_slots: Any
    tracks: Any  # [TRACK_…, index]
    sequence_slots: Any
    sequences: Any  # [SEQ_…, index]
    clocks: Any  # [its sequence, id, offset, unit, is it incremental, its last time; index]; without BOOTTIME
    devices: Any  # entries of the pids of devices
    counts: Any  # [N_…]


class Records(NamedTuple):
    """What a scan finds besides the events."""

    begins: Any  # [offset, sequence, group, track, ts; nth]
    ends: Any  # the same
    counters: Any  # [row, is it a float, its bits]
    launches: Any  # [row, id of the device work]
    waits: Any  # [row, id of the work that it waited for]
    stages: Any  # [row, id]
    labels: Any  # [is it a thread, pid, tid, entry]: the names of processes and threads
    places: Any  # [offset of a damaged place]


class Columns(NamedTuple):
    """The columns of arguments that aren't found by their key."""

    device: int
    original_stream: int
    grid: int
    block: int
    registers_per_thread: int
    bytes: int
    id: int
    graph_id: int
    graph_node_id: int


_scan, _varint, _field = Function("scan_packets"), Function("varint"), Function("field")
_looks_like_packets, _next_packet = Function("looks_like_packets"), Function("next_packet")
_place_interned, _place_ids = Function("place_interned"), Function("place_ids")


def varint(text: Array, i: int, end: int) -> tuple[int, int]:
    """(value as 64 signed bits, index after it); the index is -1 if there is none."""
    value = np.empty(1, np.int64)
    after = _varint(text, i, end, value)
    return int(value[0]), after


def field(text: Array, i: int, end: int) -> tuple[int, int, int]:
    """The field at i: (its tag, its value if it is a varint or else where it begins, the index after it or -1)."""
    values = np.empty(2, np.int64)
    after = _field(text, i, end, values)
    return int(values[0]), int(values[1]), after


def looks_like_packets(text: Array, i: int, end: int, *, is_last: bool) -> int:
    """Whether a packet begins at i, and another after it, unless it is the last: 1 or 0; -1 if more bytes will show."""
    return _looks_like_packets(text, i, end, is_last)


def next_packet(text: Array, i: int, end: int, *, is_last: bool) -> int:
    """Where packets can be read again, or more bytes will show whether they can; `end` if nowhere."""
    return _next_packet(text, i, end, is_last)


def place_interned(slots: Array, table: Array, first: int, last: int) -> None:
    """Enter rows of the table of texts into its hash table; a later definition replaces an earlier one."""
    _place_interned(slots, table, first, last, SEED)


def place_ids(slots: Array, ids: Array, first: int, last: int) -> None:
    """The same for a table with one number as its key: the ids' row."""
    _place_ids(slots, ids, first, last, SEED)


class Scanner:
    """Scans texts one after the other.

    Args:
        records, keys, columns: See there.
    """

    def __init__(self, records: Records, keys: Keys, columns: Columns) -> None:
        self._constant = (*records, *keys, np.array(columns, np.int64))
        self._changing: tuple[Array, ...] = ()
        self._scan: Function | BoundFunction = _scan

    def scan(
        self,
        text: Array,
        pos: int,
        end: int,
        base: int,
        tables: Tables,
        tokens: Array,
        out: Out,
        state: Array,
        *,
        is_last: bool,
        knows_state: bool,
    ) -> int:
        """Read the packets in text[pos:end], and return the first byte that wasn't read.

        Args:
            text: Bytes.
            pos, end: The part that is read.
            base: The offset of the text in the file.
            tables, out: See there.
            tokens: Where texts are written that aren't in `tables`.
            state: See STATUS.
            is_last: Whether nothing follows.
            knows_state: Whether the caller has read what the first packet changes.
        """
        arrays = (*tables, tokens, *out, state)
        if len(arrays) != len(self._changing) or not all(map(operator.is_, arrays, self._changing)):
            self._scan = _scan.bound(tables, self._constant, tokens, out, state)
            self._changing = arrays
        return self._scan(text, pos, end, base, is_last, knows_state)
