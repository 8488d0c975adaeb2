"""The scanner of Perfetto's protobuf: bytes of packets → arrays, in one pass.

It fills the same `Out` as the scanner of JSON, so that everything behind it is shared: a text becomes the JSON token
that a writer of JSON would have written. What packets refer to is in `Tables`, which Python fills (state.py): packets
that change it are left to the caller. Field numbers are those of Perfetto's protos/perfetto/trace, and of torch 2.15's
extensions. Numba compiles everything here; it is all in one file (and inlined.py)
because numba's cache is valid until the file of the outermost function changes.
"""

# ruff: noqa: SIM109  # `in` builds a tuple, which numba compiles to slower code
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..scan.scanner import CODE, EVENTS, INTEGER, MISSING, Keys, Out
from ..scan.scanner import TOKENS as _TOKENS
from .inlined import _append, _compiled, _forget, _hash, _inlined, _item, _key_slot, _token_code

MORE, FULL, STATE = range(3)
"""Why a scan stopped: no further whole packet; no room left; a packet that changes the tables."""

_N_COUNTS = 21
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
) = range(_N_COUNTS)
"""The places in `state`. LOST: damaged places; IS_LOST: whether the last one still lasts. UNKNOWN_TEXTS: references to
texts that no packet defined. FOREIGN: packets of kinds that aren't shown. DROPPED: sequences say that packets before
were dropped. CLOCK_ROW: the incremental clock that a packet advanced, or -1, and its time before.
LOST_WORK: see _MOST_LOST_WORK."""

# Behind them, the fields of the packet that is being read: its own, and those of the event in it.
_TIME, _HAS_TIME, _CLOCK, _SEQUENCE, _FLAGS, _EVENT, _EVENT_END, _WORK, _WORK_END, _SAMPLES, _SAMPLES_END = range(
    _N_COUNTS, _N_COUNTS + 11
)
_CHANGES, _IS_FOREIGN, _IS_DROPPED, _FIRST_OF_EVENT = range(_N_COUNTS + 11, _N_COUNTS + 15)
_KIND, _UUID, _NAME, _NAME_START, _NAME_END, _CATEGORY, _CATEGORY_START, _CATEGORY_END = range(
    _FIRST_OF_EVENT, _FIRST_OF_EVENT + 8
)
_VALUE_KIND, _VALUE, _HAS_LINKS, N_STATE = range(_FIRST_OF_EVENT + 8, _FIRST_OF_EVENT + 12)
_ID, _DUR, _GPU, _QUEUE, _STAGE, _KERNEL, _STAGE_NAME = range(_FIRST_OF_EVENT, _FIRST_OF_EVENT + 7)

LONGEST_PACKET = 1 << 26

SEQ_ID, SEQ_SCOPE, SEQ_TRACK, SEQ_CLOCK, SEQ_GROUP, SEQ_ENDED, SEQ_FLAGS, SEQ_PID, SEQ_TID = range(9)
"""The rows of `Tables.sequences`; SEQ_CLOCK is the default clock, SEQ_FLAGS which of the flags below occurred."""
BEGIN_FLAGGED, END_FLAGGED, END_BARE = 1, 2, 4

CLOCK_SEQ, CLOCK_ID, CLOCK_OFFSET, CLOCK_UNIT, CLOCK_INCREMENTAL, CLOCK_LAST = range(6)
TRACK_UUID, TRACK_PID, TRACK_TID, TRACK_CATEGORY, TRACK_NAME = range(5)
TEXT_SCOPE, TEXT_FIELD, TEXT_ID, TEXT_ENTRY, TEXT_KIND, TEXT_NAME, TEXT_PLACE = range(7)
"""The rows of `Tables.interned`. TEXT_KIND and TEXT_NAME: the category and the fixed name of a stage, or -1; TEXT_KIND
of an argument of kernels: 1 for registers. TEXT_PLACE: the tid of a queue, the pid of a device's counters."""

BOOTTIME = 6
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
)
X, INSTANT, COUNTER, FLOW_BEGIN, FLOW_END, KERNEL, FLOW, EMPTY, RENDER_STAGE, MEMCPY, MEMSET = range(len(CONSTANTS))
"""The first entries of the table of texts."""

CATEGORIES, NAMES, ANNOTATION_NAMES, ANNOTATION_VALUES = 1, 2, 3, 29
GPU_CONTEXTS, GPU_SPECIFICATIONS, GPU_COUNTERS, KERNELS, KERNEL_ARGUMENTS = 23, 24, 47, 1000, 1001
COUNTER_NAMES = -47  # of the counters of a GPU: by (descriptor << 32 | counter)

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4
_MOST_TAG = 1 << 32
_DEEPEST = 30
PACKET = 10  # the tag of Trace.packet, with its length
_NEAR = 1 << 20  # a packet that damage precedes is believed to be one if it isn't longer
_MOST_FIELDS = 256  # that are looked at there
_MOST_LOST_WORK = 1 << 28  # bytes of broken packets that are searched for whole ones: then their lengths are believed
_LONGEST_TAG = 10
_MINUS, _QUOTE, _BACKSLASH, _COMMA, _COLON, _ZERO, _BLANK = 45, 34, 92, 44, 58, 48, 32
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_NO_ELEMENTS = np.frombuffer(b"[]", np.uint8)  # an empty list is written as no value; the shape of a number in a list
_NULL = np.frombuffer(b"null", np.uint8)
_TRUE = np.frombuffer(b"true", np.uint8)
_FALSE = np.frombuffer(b"false", np.uint8)
_DEVICE_ID = np.frombuffer(b"device id", np.uint8)
_STREAM_ID = np.frombuffer(b"stream id", np.uint8)
_DEVICE = np.frombuffer(b"device", np.uint8)
_STREAM = np.frombuffer(b"stream", np.uint8)
_HOST_FUNCTION = np.frombuffer(b"host fn", np.uint8)
_HOST_NODE = np.frombuffer(b'"HostNode: ', np.uint8)
_TEN = np.uint64(10)


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
    clocks: Any  # [CLOCK_…, index]; those that aren't BOOTTIME
    devices: Any  # entries of the pids of devices
    counts: Any  # [clocks]


class Records(NamedTuple):
    """What a scan finds besides the events."""

    begins: Any  # [offset, sequence, group, track, ts; nth]
    ends: Any  # the same
    counters: Any  # [row, is it a float, its bits]
    launches: Any  # [row, id of the device work]
    waits: Any  # [row, id of the work that it waited for]
    stages: Any  # [row, id]
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


@_inlined
def _varint(b: Any, i: Any, end: Any) -> Any:
    """(value as 64 signed bits, index after it); the index is -1 if there is none."""
    if i < end and _item(b, i) < 128:
        return np.int64(_item(b, i)), i + 1
    x, shift = np.int64(0), np.int64(0)
    while i < end and shift < 70:
        c = np.int64(_item(b, i))
        i += 1
        x |= (c & 127) << shift
        if c < 128:
            return x, i
        shift += 7
    return np.int64(0), -1


@_compiled
def varint(b: Any, i: Any, end: Any) -> Any:
    """The same as _varint, for Python."""
    return _varint(b, i, end)


@_inlined
def _field(b: Any, i: Any, end: Any) -> Any:
    """The field at i: (its tag, its value if it is a varint or else where it begins, the index after it or -1)."""
    tag, i = _varint(b, i, end)
    if i < 0 or tag < 8 or tag >= _MOST_TAG:
        return np.int64(0), np.int64(0), -1
    wire = tag & 7
    if wire == _VARINT:
        value, i = _varint(b, i, end)
        return tag, value, i
    if wire == _BYTES:
        length, i = _varint(b, i, end)
        if i < 0 or length < 0 or length > end - i:
            return tag, np.int64(0), -1
        return tag, np.int64(i), i + length
    if wire == _FIXED64 and end - i >= 8:
        return tag, np.int64(i), i + 8
    if wire == _FIXED32 and end - i >= 4:
        return tag, np.int64(i), i + 4
    return tag, np.int64(0), -1


@_compiled
def field(b: Any, i: Any, end: Any) -> Any:
    """The same, not inlined: where it is called seldom, and from Python."""
    return _field(b, i, end)


@_compiled
def _is_packet(b: Any, i: Any, end: Any) -> bool:
    """Whether b[i:end] begins like the fields of a packet: with the time, the sequence or the track that they have."""
    known = False
    for _ in range(_MOST_FIELDS):
        if i >= end:
            return known
        tag, _value, i = field(b, i, end)
        if i < 0:
            return False
        known |= tag == 64 or tag == 80 or tag == 482
    return known


@_compiled
def looks_like_packets(b: Any, i: Any, end: Any, is_last: bool) -> Any:  # noqa: FBT001
    """Whether a packet begins at i, and another after it, unless it is the last: 1 or 0; -1 if more bytes will show.

    It is used behind damage, where any byte may look like the beginning of a packet, so long ones aren't believed.
    """
    if i >= end:
        return 0 if is_last else -1
    if _item(b, i) != PACKET:
        return 0
    length, start = _varint(b, i + 1, end)
    if start < 0:
        return 0 if is_last or end - i > _LONGEST_TAG else -1
    if length <= 0 or length > _NEAR:
        return 0
    after = start + length
    if after > end or (after == end and not is_last):
        return 0 if is_last else -1
    if not _is_packet(b, start, after):
        return 0
    return 1 if after == end or _item(b, after) == PACKET else 0


@_compiled
def next_packet(b: Any, i: Any, end: Any, is_last: bool) -> Any:  # noqa: FBT001
    """Where packets can be read again, or more bytes will show whether they can; `end` if nowhere."""
    while i < end:
        if _item(b, i) == PACKET and looks_like_packets(b, i, end, is_last) != 0:
            return i
        i += 1
    return end


@_compiled
def _may_go_on(b: Any, i: Any, end: Any) -> bool:
    """Whether the field at i, which isn't whole, may be so with more bytes."""
    if end - i < 2 * _LONGEST_TAG:
        return True
    tag, start = _varint(b, i, end)
    if start < 0 or tag & 7 != _BYTES or tag < 8 or tag >= _MOST_TAG:
        return False
    length, start = _varint(b, start, end)
    return bool(start > 0 and 0 <= length <= LONGEST_PACKET)


@_inlined
def _eight_bytes(b: Any, i: Any) -> Any:
    """A fixed64 as a signed number."""
    x = np.int64(0)
    for k in range(8):
        x |= np.int64(_item(b, i + k)) << np.int64(8 * k)
    return x


@_inlined
def _slot_of(a: Any, b: Any, c: Any, mask: Any) -> Any:
    h = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(b) * np.uint64(0xD6E8FEB86659FD93)
    h = (h ^ np.uint64(c)) * np.uint64(0xFF51AFD7ED558CCD)
    return np.int64((h ^ (h >> np.uint64(33))) & np.uint64(mask))


@_compiled
def place_interned(slots: Any, interned: Any, index: Any) -> None:
    """Enter the row `index` of the table into its hash table; a later definition replaces an earlier one."""
    scope, kind, iid = interned[TEXT_SCOPE, index], interned[TEXT_FIELD, index], interned[TEXT_ID, index]
    slot = _slot_of(scope, kind, iid, slots.size - 1)
    while slots[slot] >= 0:
        k = slots[slot]
        if interned[TEXT_SCOPE, k] == scope and interned[TEXT_FIELD, k] == kind and interned[TEXT_ID, k] == iid:
            break
        slot = (slot + 1) & (slots.size - 1)
    slots[slot] = index


@_compiled
def place_id(slots: Any, ids: Any, index: Any) -> None:
    """The same for a table with one number as its key: the ids' row."""
    slot = _slot_of(ids[index], 0, 0, slots.size - 1)
    while slots[slot] >= 0 and ids[slots[slot]] != ids[index]:
        slot = (slot + 1) & (slots.size - 1)
    slots[slot] = index


@_compiled
def _interned(t: Tables, scope: Any, kind: Any, iid: Any) -> Any:
    """The row of an interned text, or -1."""
    mask = t.slots.size - 1
    slot = _slot_of(scope, kind, iid, mask)
    while t.slots[slot] >= 0:
        k = t.slots[slot]
        if t.interned[TEXT_ID, k] == iid and t.interned[TEXT_FIELD, k] == kind and t.interned[TEXT_SCOPE, k] == scope:
            return np.int64(k)
        slot = (slot + 1) & mask
    return np.int64(-1)


@_compiled
def _by_id(slots: Any, table: Any, key: Any) -> Any:
    mask = slots.size - 1
    slot = _slot_of(key, 0, 0, mask)
    while slots[slot] >= 0:
        if table[0, slots[slot]] == key:
            return np.int64(slots[slot])
        slot = (slot + 1) & mask
    return np.int64(-1)


@_compiled
def _new_code(text: Any, at: Any, end: Any, out: Out, state: Any) -> Any:
    """The code of the token text[at:end], which stays in `text` if it is new."""
    before = out.state[_TOKENS]
    code = _token_code(text, at, end, _hash(text, at, end), out)
    if code < 0:
        state[NEEDS_ROOM] = 1
    elif out.state[_TOKENS] > before:
        state[USED] = end
    return np.int64(code)


@_compiled
def _entry_code(t: Tables, entry: Any, text: Any, out: Out, state: Any) -> Any:
    """The code of an entry that this scan uses for the first time."""
    start, length, at = t.entries[0, entry], t.entries[1, entry], state[USED]
    if at + length > text.size:
        state[NEEDS_ROOM] = 1
        return np.int64(-1)
    for k in range(length):
        text[at + k] = _item(t.strings, start + k)
    code = _new_code(text, at, at + length, out, state)
    t.entries[2, entry] = code
    return np.int64(code)


@_compiled
def _interned_entry(t: Tables, scope: Any, kind: Any, iid: Any, state: Any, at: Any) -> Any:
    """The entry of a text that an event refers to, or -1, which is counted."""
    k = _interned(t, scope, kind, iid)
    if k < 0:
        if state[UNKNOWN_TEXTS] == 0:
            state[FIRST_UNKNOWN_TEXT] = at
        state[UNKNOWN_TEXTS] += 1
        return np.int64(-1)
    return np.int64(t.interned[TEXT_ENTRY, k])


@_compiled
def _write_text(b: Any, i: Any, end: Any, text: Any, at: Any) -> Any:
    """Write b[i:end] as a JSON string; returns the index after it. The caller sees that there is room."""
    text[at] = _QUOTE
    at += 1
    while i < end:
        c = _item(b, i)
        if c == _QUOTE or c == _BACKSLASH:
            text[at] = _BACKSLASH
            text[at + 1] = c
            at += 2
        elif c < _BLANK:
            text[at], text[at + 1], text[at + 2], text[at + 3] = _BACKSLASH, 117, _ZERO, _ZERO
            text[at + 4], text[at + 5] = _HEX[c >> 4], _HEX[c & 15]
            at += 6
        else:
            text[at] = c
            at += 1
        i += 1
    text[at] = _QUOTE
    return at + 1


@_compiled
def _write_number(value: Any, is_signed: bool, text: Any, at: Any) -> Any:  # noqa: FBT001
    """Write an integer."""
    x = np.uint64(value)
    if is_signed and value < 0:
        text[at] = _MINUS
        at += 1
        x = np.uint64(0) - x
    n, rest = 1, x // _TEN
    while rest > np.uint64(0):
        rest //= _TEN
        n += 1
    for k in range(n):
        text[at + n - 1 - k] = np.uint8(x % _TEN) + np.uint8(_ZERO)
        x //= _TEN
    return at + n


@_compiled
def _write_constant(what: Any, text: Any, at: Any) -> Any:
    for k in range(what.size):
        text[at + k] = what[k]
    return at + what.size


@_compiled
def _write_float(bits: Any, text: Any, at: Any) -> Any:
    """Write a float: in up to 17 decimals if that gives exactly it, else its 17 digits with an exponent."""
    x = np.int64(bits)
    exponent = (x >> np.int64(52)) & np.int64(2047)
    if exponent == 2047:
        return _write_constant(_NULL, text, at)
    fraction = np.float64(x & np.int64((1 << 52) - 1)) / 4503599627370496.0
    value = fraction * 2.0**-1022 if exponent == 0 else (1.0 + fraction) * 2.0 ** np.float64(exponent - 1023)
    if x < 0:
        text[at] = _MINUS
        at += 1
    power, scaled = 0, value
    while power < 17 and value < 1e16 and (scaled != np.floor(scaled) or np.floor(scaled) / 10.0**power != value):
        power += 1
        scaled = value * 10.0**power
        if scaled > 9e17:
            break
    shift = 0
    while scaled >= 9e17:
        scaled /= 10.0
        shift += 1
    at = _write_number(np.int64(np.floor(scaled + 0.5)), True, text, at)  # noqa: FBT003
    if power or shift:
        text[at] = 101
        at = _write_number(np.int64(shift - power), True, text, at + 1)  # noqa: FBT003
    return at


@_compiled
def _named_value(b: Any, i: Any, end: Any) -> Any:
    """The name of an annotation b[i:end]: (where it begins and ends, -1 if it is interned; the interned one's id)."""
    start, stop, iid = np.int64(-1), np.int64(-1), np.int64(0)
    while i < end:
        tag, value, i = field(b, i, end)
        if i < 0:
            return np.int64(-2), np.int64(0), np.int64(0)
        if tag == 82:
            start, stop = value, np.int64(i)
        elif tag == 8:
            iid = value
    return start, stop, iid


@_compiled
def _write_key(b: Any, i: Any, end: Any, t: Tables, scope: Any, text: Any, at: Any, limit: Any) -> Any:
    """Write the name of the annotation b[i:end] as the key of an object; returns the index after it."""
    start, stop, iid = _named_value(b, i, end)
    k = _interned(t, scope, ANNOTATION_NAMES, iid) if start == -1 else -1
    if start >= 0:
        at = _write_text(b, start, stop, text, at)
    elif k >= 0 and at + t.entries[1, t.interned[TEXT_ENTRY, k]] < limit:
        entry = t.interned[TEXT_ENTRY, k]
        for n in range(t.entries[1, entry]):
            text[at + n] = _item(t.strings, t.entries[0, entry] + n)
        at += t.entries[1, entry]
    else:
        text[at], text[at + 1] = _QUOTE, _QUOTE
        at += 2
    text[at] = _COLON
    return at + 1


@_compiled
def _write_scalar(b: Any, tag: Any, value: Any, end: Any, text: Any, at: Any) -> Any:
    """Write a boolean, number or text of an annotation; returns the index after it."""
    if tag == 16:
        return _write_constant(_TRUE if value else _FALSE, text, at)
    if tag == 41:
        return _write_float(_eight_bytes(b, value), text, at)
    if tag == 50:
        return _write_text(b, value, end, text, at)
    return _write_number(value, tag == 32, text, at)


@_compiled
def _write_value(b: Any, i: Any, end: Any, t: Tables, scope: Any, text: Any, at: Any, stack: Any) -> Any:
    """Write the value of the annotation b[i:end] as JSON; returns the index after it, or -1 if it is broken.

    `stack` holds of each open list or object where it continues and ends, and its closing bracket. Values nested deeper
    than that has room become null, as those of kinds that have no JSON do. The caller sees that there is room for six
    times the bytes; a name from a table might need more, so it is left out where less than that would remain.
    """
    depth, limit = 0, text.size - 6 * (end - i) - 64
    stack[0, 0], stack[1, 0], stack[2, 0] = i, end, 0
    while depth >= 0:
        i, end, closing = stack[0, depth], stack[1, depth], stack[2, depth]
        if i >= end:
            if closing > 1:
                text[at] = closing
                at += 1
            elif closing == 0:
                is_element = depth > 0 and stack[2, depth - 1] == 93
                at = _write_constant(_NO_ELEMENTS if is_element else _NULL, text, at)
            depth -= 1
            continue
        tag, value, i = field(b, i, end)
        if i < 0:
            return -1
        stack[0, depth] = i
        if tag == 90 or tag == 98:
            bracket = 125 if tag == 90 else 93
            if closing != 0 and closing != bracket:
                continue
            text[at] = _COMMA if closing else bracket - 2
            at += 1
            stack[2, depth] = bracket
            if tag == 90:
                at = _write_key(b, value, i, t, scope, text, at, limit)
            if depth + 1 < stack.shape[1]:
                depth += 1
                stack[0, depth], stack[1, depth], stack[2, depth] = value, i, 0
            else:
                at = _write_constant(_NULL, text, at)
        elif closing == 0 and (tag == 16 or tag == 24 or tag == 32 or tag == 41 or tag == 50):
            stack[2, depth] = 1
            at = _write_scalar(b, tag, value, i, text, at)
    return at


@_inlined
def _integer(b: Any, i: Any, end: Any) -> Any:
    """The integer that the text b[i:end] spells; -1 if it isn't a plain one."""
    negative = i < end and _item(b, i) == _MINUS
    i += negative
    if i == end or end - i > 18:
        return np.int64(-1)
    x = np.int64(0)
    while i < end:
        digit = np.int64(_item(b, i)) - _ZERO
        if digit < 0 or digit > 9:
            return np.int64(-1)
        x = x * 10 + digit
        i += 1
    return -x if negative else x


@_inlined
def _float_as_integer(bits: Any) -> Any:
    """The integer part of a float, by its bits; -1 beyond 2^62."""
    exponent = ((bits >> np.int64(52)) & np.int64(2047)) - 1023
    if exponent >= 62:
        return np.int64(-1)
    if exponent < 0:
        return np.int64(0)
    mantissa = (bits & np.int64((1 << 52) - 1)) | np.int64(1 << 52)
    x = mantissa << np.int64(exponent - 52) if exponent >= 52 else mantissa >> np.int64(52 - exponent)
    return -x if bits < 0 else x


@_inlined
def _is(b: Any, i: Any, end: Any, what: Any) -> Any:
    if end - i != what.size:
        return False
    k = 0
    while k < what.size and _item(b, i + k) == what[k]:
        k += 1
    return k == what.size


@_inlined
def _slot_of_name(b: Any, start: Any, stop: Any, iid: Any, t: Tables, scope: Any, keys: Keys) -> Any:
    """The slot of an argument's name among the keys, by its text or else by its id; -1 if it has none."""
    if start >= 0:
        return _key_slot(b, start, stop, 1, keys) if stop > start else np.int64(-1)
    k = _interned(t, scope, ANNOTATION_NAMES, iid)
    entry = t.interned[TEXT_ENTRY, k] if k >= 0 else np.int64(0)
    at, size = t.entries[0, entry] + 1, t.entries[1, entry] - 2
    return _key_slot(t.strings, at, at + size, 1, keys) if k >= 0 and size > 0 else np.int64(-1)


@_inlined
def _read_annotation(
    b: Any, i: Any, end: Any, t: Tables, scope: Any, keys: Keys, row: Any, text: Any, out: Out, state: Any, stack: Any
) -> Any:
    """Read an argument of a slice; returns -1 if it is broken."""
    none: Any = np.int64(-1)
    first, start, stop, iid = i, none, none, np.int64(0)
    kind_of_value, number, number_end = np.int64(0), np.int64(0), np.int64(0)
    while i < end:
        tag, value, i = _field(b, i, end)
        if i < 0:
            return -1
        if tag == 82:
            start, stop = value, np.int64(i)
        elif tag == 8:
            iid = value
        elif tag == 16 or tag == 24 or tag == 32 or tag == 41 or tag == 50:
            kind_of_value, number, number_end = tag, value, np.int64(i)
    i = first
    slot = _slot_of_name(b, start, stop, iid, t, scope, keys)
    if slot < 0 or keys.lengths[slot] < 0:
        return 0
    kind, column = keys.kinds[slot], keys.columns[slot]
    if kind == INTEGER:
        if kind_of_value == 41:
            number = _float_as_integer(_eight_bytes(b, number))
        elif kind_of_value == 50:
            number = _integer(b, number, number_end)
        if kind_of_value:
            _append(out, column, row, number if kind_of_value != 24 or number >= 0 else -1)
    elif kind == CODE:
        at = state[USED]
        if text.size - at < 12 * (end - i) + 128:
            state[NEEDS_ROOM] = 1
            return 0
        after = _write_value(b, i, end, t, scope, text, at, stack)
        if after < 0:
            return -1
        if text[at] != 110:  # null
            _append(out, column, row, _new_code(text, at, after, out, state))
    return 0


@_inlined
def _read_extra(
    b: Any, i: Any, end: Any, keys: Keys, columns: Columns, row: Any, text: Any, out: Out, state: Any
) -> Any:
    """Read one of the texts that come with device work: name 1, value 2. Returns its column, 0, or -1 if it is broken.

    A mark may have the name of a property, such as `stream`; the properties themselves are `stream id` and `device id`.
    """
    zero: Any = np.int64(0)
    key, key_end, start, stop = zero, zero, zero, zero
    while i < end:
        tag, value, i = _field(b, i, end)
        if i < 0:
            return -1
        if tag == 10:
            key, key_end = value, np.int64(i)
        elif tag == 18:
            start, stop = value, np.int64(i)
    if key_end <= key:
        return 0
    if _is(b, key, key_end, _HOST_FUNCTION) and text.size - state[USED] >= 6 * (stop - start) + 64:
        at = _write_constant(_HOST_NODE, text, state[USED])
        after = _write_text(b, start, stop, text, at - 1)
        text[at - 1] = _BLANK
        out.codes[2, row] = _new_code(text, state[USED], after, out, state)
        return 0
    if _is(b, key, key_end, _STREAM_ID):
        _append(out, columns.original_stream, row, _integer(b, start, stop))
        return 0
    if _is(b, key, key_end, _DEVICE_ID):
        _append(out, columns.device, row, _integer(b, start, stop))
        return 0
    slot = _key_slot(b, key, key_end, 1, keys)
    if keys.lengths[slot] < 0 or _is(b, key, key_end, _STREAM) or _is(b, key, key_end, _DEVICE):
        return 0
    if keys.kinds[slot] == INTEGER:
        _append(out, keys.columns[slot], row, _integer(b, start, stop))
        return np.int64(keys.columns[slot])
    if keys.kinds[slot] == CODE:
        at = state[USED]
        if text.size - at < 6 * (stop - start) + 64:
            state[NEEDS_ROOM] = 1
            return 0
        after = _write_text(b, start, stop, text, at)
        _append(out, keys.columns[slot], row, _new_code(text, at, after, out, state))
    return 0


@_inlined
def _new_row(out: Out, offset: Any, length: Any, ts: Any, dur: Any) -> Any:
    row = out.state[EVENTS]
    for column in range(out.codes.shape[0]):
        out.codes[column, row] = -1
    out.times[0, row] = ts
    out.times[1, row] = dur
    out.offsets[row] = offset
    out.lengths[row] = length
    return np.int64(row)


@_compiled
def _place(
    out: Out, row: Any, phase: Any, category: Any, name: Any, pid: Any, tid: Any, t: Tables, text: Any, state: Any
) -> None:
    """Set the texts of an event by their entries."""
    out.codes[0, row], out.codes[1, row], out.codes[2, row] = phase, category, name
    out.codes[3, row], out.codes[4, row] = pid, tid
    for column in range(5):
        entry = out.codes[column, row]
        if entry >= 0:
            code = t.entries[2, entry]
            out.codes[column, row] = code if code >= 0 else _entry_code(t, entry, text, out, state)


@_inlined
def _record(table: Any, state: Any, count: Any, a: Any, b: Any, c: Any) -> None:
    n = state[count]
    if n >= table.shape[1]:
        state[NEEDS_ROOM] = 1
        return
    table[0, n], table[1, n], table[2, n] = a, b, c
    state[count] = n + 1


@_compiled
def _record_ids(b: Any, value: Any, i: Any, tag: Any, table: Any, state: Any, count: Any, row: Any) -> Any:
    """Note a repeated varint, packed or not; returns -1 if it is broken."""
    if tag & 7 == _VARINT:
        _record(table, state, count, row, value, 0)
        return 0
    at = value
    while at < i:
        one, at = _varint(b, at, i)
        if at < 0:
            return -1
        _record(table, state, count, row, one, 0)
    return 0


@_compiled
def _flow_row(flow: Any, phase: Any, row: Any, t: Tables, columns: Columns, text: Any, out: Out, state: Any) -> None:
    """Add the end of an arrow that an event names."""
    if out.state[EVENTS] + 1 >= out.offsets.size:
        state[NEEDS_ROOM] = 1
        return
    at = _new_row(out, out.offsets[row], out.lengths[row], out.times[0, row], MISSING)
    _place(out, at, phase, FLOW, FLOW, -1, -1, t, text, state)
    out.codes[3, at], out.codes[4, at] = out.codes[3, row], out.codes[4, row]
    _append(out, columns.id, at, flow & np.int64(2**63 - 1))
    out.state[EVENTS] = at + 1


@_inlined
def _read_event_fields(b: Any, i: Any, end: Any, track: Any, state: Any) -> Any:
    """Read the plain fields of a track event into the state; returns -1 if it is broken."""
    state[_KIND], state[_UUID], state[_NAME], state[_HAS_LINKS] = 0, track, -1, 0
    state[_NAME_START], state[_CATEGORY], state[_CATEGORY_START], state[_VALUE_KIND] = -1, -1, -1, -1
    while i < end:
        tag, value, i = _field(b, i, end)
        if i < 0:
            return -1
        if tag == 72:
            state[_KIND] = value
        elif tag == 88:
            state[_UUID] = value
        elif tag == 80:
            state[_NAME] = value
        elif tag == 186:
            state[_NAME_START], state[_NAME_END] = value, i
        elif tag == 24 and state[_CATEGORY] < 0:
            state[_CATEGORY] = value
        elif tag == 26 and state[_CATEGORY] < 0 and i > value:
            state[_CATEGORY] = _varint(b, value, i)[0]
        elif tag == 178 and state[_CATEGORY_START] < 0:
            state[_CATEGORY_START], state[_CATEGORY_END] = value, i
        elif tag == 240:
            state[_VALUE_KIND], state[_VALUE] = 0, value
        elif tag == 353:
            state[_VALUE_KIND], state[_VALUE] = 1, _eight_bytes(b, value)
        elif tag == 24002 or tag == 377 or tag == 378 or tag == 385 or tag == 386 or tag == 288 or tag == 336:
            state[_HAS_LINKS] = 1
    return 0


@_inlined
def _note_slice(offset: Any, seq: Any, sequences: Any, table: Any, count: Any, state: Any) -> None:
    """Note the begin or end of a slice, and to which group of its sequence it belongs."""
    n, is_end = state[count], state[_KIND] == _END
    if n >= table.shape[1]:
        state[NEEDS_ROOM] = 1
        return
    if not is_end and sequences[SEQ_ENDED, seq]:
        sequences[SEQ_GROUP, seq] += 1
    sequences[SEQ_ENDED, seq] = is_end
    if state[_FLAGS] & 2:
        sequences[SEQ_FLAGS, seq] |= END_FLAGGED if is_end else BEGIN_FLAGGED
    elif is_end:
        sequences[SEQ_FLAGS, seq] |= END_BARE
    table[0, n], table[1, n], table[2, n] = offset, seq, sequences[SEQ_GROUP, seq]
    table[3, n], table[4, n] = state[_UUID], state[_TIME]
    state[count] = n + 1


@_inlined
def _place_event(b: Any, row: Any, seq: Any, offset: Any, t: Tables, text: Any, out: Out, state: Any) -> None:
    """Set the name, category and place of a track event."""
    scope, track = t.sequences[SEQ_SCOPE, seq], _by_id(t.track_slots, t.tracks, state[_UUID])
    pid = t.tracks[TRACK_PID, track] if track >= 0 else t.sequences[SEQ_PID, seq]
    tid = t.tracks[TRACK_TID, track] if track >= 0 else t.sequences[SEQ_TID, seq]
    name, category = np.int64(-1), np.int64(-1)
    if state[_NAME] > 0:
        name = _interned_entry(t, scope, NAMES, state[_NAME], state, offset)
    if state[_CATEGORY] > 0:
        category = _interned_entry(t, scope, CATEGORIES, state[_CATEGORY], state, offset)
    phase = X if state[_KIND] == _BEGIN else INSTANT if state[_KIND] == _INSTANT else COUNTER
    writes_name, writes_category = name < 0 and state[_NAME_START] >= 0, category < 0 and state[_CATEGORY_START] >= 0
    if track >= 0 and category < 0 and not writes_category and phase == X:
        category = t.tracks[TRACK_CATEGORY, track]
    if track >= 0 and name < 0 and not writes_name:
        name = t.tracks[TRACK_NAME, track]
    _place(out, row, phase, category, name, pid, tid, t, text, state)
    if text.size - state[USED] < 6 * (out.lengths[row] + 64):
        state[NEEDS_ROOM] = 1
        return
    for column in range(1, 3):
        if writes_category if column == 1 else writes_name:
            start, end = (_CATEGORY_START, _CATEGORY_END) if column == 1 else (_NAME_START, _NAME_END)
            at = state[USED]
            after = _write_text(b, state[start], state[end], text, at)
            out.codes[column, row] = _new_code(text, at, after, out, state)


@_inlined
def _read_links(
    b: Any,
    tag: Any,
    value: Any,
    i: Any,
    row: Any,
    t: Tables,
    r: Records,
    columns: Columns,
    text: Any,
    out: Out,
    state: Any,
) -> Any:
    """Read a field that links a track event: to device work (24002), or by flows. Returns -1 if it is broken."""
    phase = FLOW_BEGIN if tag == 377 or tag == 378 or tag == 288 else FLOW_END
    at = value
    if tag == 288 or tag == 336:
        _flow_row(value, phase, row, t, columns, text, out, state)
    elif tag != 24002:
        while at + 8 <= i:
            _flow_row(_eight_bytes(b, at), phase, row, t, columns, text, out, state)
            at += 8
    else:
        while at < i:
            inner, one, at = field(b, at, i)
            if at < 0:
                return -1
            is_id = inner == 8 or inner == 10
            if is_id and _record_ids(b, one, at, inner, r.launches, state, LAUNCHES, row) < 0:
                return -1
    return 0


@_inlined
def _read_track_event(
    b: Any,
    offset: Any,
    length: Any,
    seq: Any,
    t: Tables,
    r: Records,
    keys: Keys,
    columns: Columns,
    text: Any,
    out: Out,
    state: Any,
    stack: Any,
) -> Any:
    """Read a slice's begin or end, an instant or a counter; returns -1 if it is broken."""
    i, end, scope = state[_EVENT], state[_EVENT_END], t.sequences[SEQ_SCOPE, seq]
    if _read_event_fields(b, i, end, t.sequences[SEQ_TRACK, seq], state) < 0:
        return -1
    kind = state[_KIND]
    if kind == _BEGIN:
        _note_slice(offset, seq, t.sequences, r.begins, BEGINS, state)
    elif kind == _END:
        _note_slice(offset, seq, t.sequences, r.ends, ENDS, state)
        return 0
    elif kind != _INSTANT and (kind != _COUNTER or state[_VALUE_KIND] < 0):
        return 0
    row = _new_row(out, offset, length, state[_TIME], MISSING)
    _place_event(b, row, seq, offset, t, text, out, state)
    out.state[EVENTS] = row + 1
    if kind == _COUNTER:
        _record(r.counters, state, COUNTERS, row, state[_VALUE_KIND], state[_VALUE])
    while i < end:
        tag, value, i = _field(b, i, end)
        is_link = tag == 24002 or tag == 377 or tag == 378 or tag == 385 or tag == 386 or tag == 288 or tag == 336
        if tag == 34:
            if _read_annotation(b, value, i, t, scope, keys, row, text, out, state, stack) < 0:
                return -1
        elif is_link and _read_links(b, tag, value, i, row, t, r, columns, text, out, state) < 0:
            return -1
    return 0


@_compiled
def _dimensions(b: Any, i: Any, end: Any, text: Any, at: Any) -> Any:
    """Write x 1, y 2, z 3 as a list; returns the index after it, or -1."""
    x, y, z = np.int64(0), np.int64(0), np.int64(0)
    while i < end:
        tag, value, i = field(b, i, end)
        if i < 0:
            return -1
        if tag == 8:
            x = value
        elif tag == 16:
            y = value
        elif tag == 24:
            z = value
    text[at] = 91
    at = _write_number(x, True, text, at + 1)  # noqa: FBT003
    text[at], text[at + 1] = _COMMA, _BLANK
    at = _write_number(y, True, text, at + 2)  # noqa: FBT003
    text[at], text[at + 1] = _COMMA, _BLANK
    at = _write_number(z, True, text, at + 2)  # noqa: FBT003
    text[at] = 93
    return at + 1


@_inlined
def _read_launch(
    b: Any, i: Any, end: Any, t: Tables, scope: Any, columns: Columns, row: Any, text: Any, out: Out, state: Any
) -> Any:
    """Read how a kernel was launched: grid 1, block 2, arguments 3; returns -1 if it is broken."""
    while i < end:
        tag, value, i = field(b, i, end)
        if i < 0:
            return -1
        if tag == 10 or tag == 18:
            at = state[USED]
            if text.size - at < 128:
                state[NEEDS_ROOM] = 1
                return 0
            after = _dimensions(b, value, i, text, at)
            if after < 0:
                return -1
            column = columns.grid if tag == 10 else columns.block
            _append(out, column, row, _new_code(text, at, after, out, state))
        elif tag == 26:
            name, number, at = np.int64(0), np.int64(0), value
            while at < i:
                inner, one, at = field(b, at, i)
                if at < 0:
                    return -1
                if inner == 8:
                    name = one
                elif inner == 32 or inner == 24:
                    number = one
            k = _interned(t, scope, KERNEL_ARGUMENTS, name)
            if k >= 0 and t.interned[TEXT_KIND, k] == 1:
                _append(out, columns.registers_per_thread, row, number)
    return 0


@_inlined
def _read_stage_fields(b: Any, i: Any, end: Any, state: Any) -> Any:
    """Read the plain fields of device work into the state; returns -1 if it is broken."""
    for k in range(_ID, _STAGE_NAME + 1):
        state[k] = 0
    while i < end:
        tag, value, i = _field(b, i, end)
        if i < 0:
            return -1
        if tag == 8:
            state[_ID] = value
        elif tag == 16:
            state[_DUR] = value
        elif tag == 88:
            state[_GPU] = value
        elif tag == 104:
            state[_QUEUE] = value
        elif tag == 112:
            state[_STAGE] = value
        elif tag == 152:
            state[_KERNEL] = value
        elif tag == 160:
            state[_STAGE_NAME] = value
    return 0


@_inlined
def _place_stage(row: Any, seq: Any, offset: Any, t: Tables, text: Any, out: Out, state: Any) -> Any:
    """Set the name, category and place of device work; returns the entry of its name."""
    scope, gpu = t.sequences[SEQ_SCOPE, seq], state[_GPU]
    of_stage = _interned(t, scope, GPU_SPECIFICATIONS, state[_STAGE]) if state[_STAGE] else np.int64(-1)
    of_queue = _interned(t, scope, GPU_SPECIFICATIONS, state[_QUEUE]) if state[_QUEUE] else np.int64(-1)
    category, name = np.int64(RENDER_STAGE), np.int64(-1)
    if of_stage >= 0:
        category, name = t.interned[TEXT_KIND, of_stage], t.interned[TEXT_NAME, of_stage]
    if state[_STAGE_NAME] > 0:
        name = _interned_entry(t, scope, NAMES, state[_STAGE_NAME], state, offset)
    elif state[_KERNEL] > 0 and category == KERNEL:
        name = _interned_entry(t, scope, KERNELS, state[_KERNEL], state, offset)
    tid = t.interned[TEXT_PLACE, of_queue] if of_queue >= 0 else np.int64(-1)
    pid = t.devices[gpu] if 0 <= gpu < t.devices.size else np.int64(-1)
    _place(out, row, X, category, name, pid, tid, t, text, state)
    return name


@_inlined
def _read_stage(
    b: Any,
    offset: Any,
    length: Any,
    seq: Any,
    t: Tables,
    r: Records,
    keys: Keys,
    columns: Columns,
    text: Any,
    out: Out,
    state: Any,
) -> Any:
    """Read work of a device; returns -1 if it is broken."""
    i, end = state[_WORK], state[_WORK_END]
    if _read_stage_fields(b, i, end, state) < 0:
        return -1
    row = _new_row(out, offset, length, state[_TIME], state[_DUR])
    name = _place_stage(row, seq, offset, t, text, out, state)
    out.state[EVENTS] = row + 1
    if state[_ID]:
        _record(r.stages, state, STAGES, row, state[_ID], 0)
    has_graph, has_node, has_bytes = False, False, False
    while i < end:
        tag, value, i = field(b, i, end)
        result = np.int64(0)
        if tag == 50:
            result = _read_extra(b, value, i, keys, columns, row, text, out, state)
            has_graph |= result == columns.graph_id
            has_node |= result == columns.graph_node_id
            has_bytes |= result == columns.bytes
        elif tag == 144 or tag == 146:
            result = np.int64(_record_ids(b, value, i, tag, r.waits, state, WAITS, row))
        elif tag == 170:
            scope = t.sequences[SEQ_SCOPE, seq]
            result = np.int64(_read_launch(b, value, i, t, scope, columns, row, text, out, state))
        if result < 0:
            return -1
    if has_graph and not has_node:  # torch leaves out zeros
        _append(out, columns.graph_node_id, row, 0)
    if not has_bytes and (name == MEMCPY or name == MEMSET):
        _append(out, columns.bytes, row, 0)
    return 0


@_inlined
def _read_samples(
    b: Any,
    i: Any,
    end: Any,
    start: Any,
    offset: Any,
    ts: Any,
    seq: Any,
    t: Tables,
    r: Records,
    text: Any,
    out: Out,
    state: Any,
) -> Any:
    """Read samples of a device's counters; each is a row, at the offset of the sample. Returns -1 if it is broken."""
    first, scope, descriptor = i, t.sequences[SEQ_SCOPE, seq], np.int64(0)
    while i < end:
        tag, value, i = field(b, i, end)
        if i < 0:
            return -1
        if tag == 32:
            descriptor = value
    k = _interned(t, scope, GPU_COUNTERS, descriptor)
    pid = t.interned[TEXT_PLACE, k] if k >= 0 else np.int64(EMPTY)
    i = first
    while i < end:
        at = i
        tag, value, i = field(b, i, end)
        if tag != 18:
            continue
        counter, kind, number, j = np.int64(0), -1, np.int64(0), value
        while j < i:
            inner, one, j = field(b, j, i)
            if j < 0:
                return -1
            if inner == 8:
                counter = one
            elif inner == 16:
                kind, number = 0, one
            elif inner == 25:
                kind, number = 1, _eight_bytes(b, one)
        if out.state[EVENTS] + 1 >= out.offsets.size:
            state[NEEDS_ROOM] = 1
            return 0
        row = _new_row(out, offset + at - start, i - at, ts, MISSING)
        name = _interned_entry(t, scope, COUNTER_NAMES, descriptor << np.int64(32) | counter, state, offset)
        _place(out, row, COUNTER, -1, name, pid, EMPTY, t, text, state)
        out.state[EVENTS] = row + 1
        if kind >= 0:
            _record(r.counters, state, COUNTERS, row, kind, number)
    return 0


@_compiled
def _clock(t: Tables, clock: Any, seq: Any, ts: Any, state: Any) -> Any:
    """The time in the clock that all others were set against; MISSING if nothing says how."""
    for k in range(t.counts[0]):
        if t.clocks[CLOCK_ID, k] == clock and (t.clocks[CLOCK_SEQ, k] == seq or clock < 64):
            if t.clocks[CLOCK_INCREMENTAL, k]:
                state[CLOCK_ROW], state[CLOCK_BEFORE] = k, t.clocks[CLOCK_LAST, k]
                t.clocks[CLOCK_LAST, k] += ts
                ts = t.clocks[CLOCK_LAST, k]
            return np.int64(ts * t.clocks[CLOCK_UNIT, k] + t.clocks[CLOCK_OFFSET, k])
    return np.int64(MISSING)


@_inlined
def _changes_tables(tag: Any, value: Any) -> bool:
    """Whether this field of a packet changes what others refer to (or, 50, has packets inside)."""
    return bool(
        tag == 50  # clock_snapshot
        or tag == 98  # interned_data
        or tag == 474  # trace_packet_defaults
        or tag == 482  # track_descriptor
        or tag == 354  # thread_descriptor
        or tag == 346  # process_descriptor
        or tag == 402  # compressed_packets
        or (tag == 104 and value & 1)
        or (tag == 328 and value)  # incremental_state_cleared
    )


@_inlined
def _read_packet_fields(b: Any, i: Any, end: Any, state: Any) -> Any:
    """Read the plain fields of a packet into the state; returns -1 if it is broken."""
    for k in range(_TIME, _IS_DROPPED + 1):
        state[k] = 0
    while i < end:
        tag, value, i = _field(b, i, end)
        if i < 0:
            return -1
        if tag == 64:
            state[_TIME], state[_HAS_TIME] = value, 1
        elif tag == 80:
            state[_SEQUENCE] = value
        elif tag == 90:
            state[_EVENT], state[_EVENT_END] = value, i
        elif tag == 426:
            state[_WORK], state[_WORK_END] = value, i
        elif tag == 418:
            state[_SAMPLES], state[_SAMPLES_END] = value, i
        elif tag == 464:
            state[_CLOCK] = value
        elif tag == 336:
            state[_IS_DROPPED] = value != 0
        elif _changes_tables(tag, value):
            state[_CHANGES] = 1
        elif tag & 7 == _BYTES:
            state[_IS_FOREIGN] = 1
        if tag == 104:
            state[_FLAGS] = value
    return 0


@_inlined
def _count(state: Any, count: Any, first: Any, offset: Any) -> None:
    if state[count] == 0:
        state[first] = offset
    state[count] += 1


@_inlined
def _read_packet(
    b: Any,
    i: Any,
    end: Any,
    pos: Any,
    base: Any,
    knows_state: bool,  # noqa: FBT001
    t: Tables,
    r: Records,
    keys: Keys,
    columns: Columns,
    text: Any,
    out: Out,
    state: Any,
    stack: Any,
) -> Any:
    """Read a packet: 0, -1 if it is broken, 1 if it changes the tables and Python hasn't read it yet."""
    if _read_packet_fields(b, i, end, state) < 0:
        return -1
    seq = _by_id(t.sequence_slots, t.sequences, state[_SEQUENCE])
    if (state[_CHANGES] or seq < 0) and not knows_state:
        return 1
    offset, length = base + pos, end - pos
    if state[_IS_DROPPED]:
        _count(state, DROPPED, FIRST_DROPPED, offset)
    if not (state[_EVENT_END] or state[_WORK_END] or state[_SAMPLES_END]):
        if state[_IS_FOREIGN] and not state[_CHANGES]:
            _count(state, FOREIGN, FIRST_FOREIGN, offset)
        return 0
    clock = state[_CLOCK] if state[_CLOCK] else t.sequences[SEQ_CLOCK, seq]
    if not state[_HAS_TIME]:
        state[_TIME] = MISSING
    elif clock and clock != BOOTTIME:
        state[_TIME] = _clock(t, clock, state[_SEQUENCE], state[_TIME], state)
    result = 0
    if state[_EVENT_END]:
        result = _read_track_event(b, offset, length, seq, t, r, keys, columns, text, out, state, stack)
    if state[_WORK_END] and result == 0:
        result = _read_stage(b, offset, length, seq, t, r, keys, columns, text, out, state)
    if state[_SAMPLES_END] and result == 0:
        samples, samples_end, ts = state[_SAMPLES], state[_SAMPLES_END], state[_TIME]
        result = _read_samples(b, samples, samples_end, pos, offset, ts, seq, t, r, text, out, state)
    return result


@_inlined
def _undo(t: Tables, out: Out, rows: Any, saved: Any, state: Any) -> None:
    """Forget the rows and records of a packet."""
    while out.state[EVENTS] > rows:
        out.state[EVENTS] -= 1
        _forget(out, out.state[EVENTS])
    _forget(out, rows)
    for k in range(BEGINS, LOST):
        state[k] = saved[k]
    if state[CLOCK_ROW] >= 0:
        t.clocks[CLOCK_LAST, state[CLOCK_ROW]] = state[CLOCK_BEFORE]


@_inlined
def _note_damage(offset: Any, length: Any, places: Any, state: Any) -> None:
    """Count damage where something whole precedes it, and the work of searching in it."""
    if not state[IS_LOST]:
        if state[LOST] < places.shape[1]:
            places[0, state[LOST]] = offset
        _count(state, LOST, FIRST_LOST, offset)
        state[IS_LOST] = 1
    state[LOST_WORK] += max(length, 0)


@_compiled
def scan(
    b: Any,
    pos: Any,
    end: Any,
    base: Any,
    is_last: bool,  # noqa: FBT001
    knows_state: bool,  # noqa: FBT001
    t: Tables,
    r: Records,
    keys: Keys,
    columns: Columns,
    text: Any,
    out: Out,
    state: Any,
    saved: Any,
    stack: Any,
) -> Any:
    """Read the packets in b[pos:end], and return the first byte that wasn't read.

    `base`: the offset of b in the file. `is_last`: nothing follows. `knows_state`: the caller has read what the first
    packet changes. `saved` and `stack` are scratch.
    """
    state[STATUS] = MORE
    while pos < end:
        if out.state[EVENTS] + 8 >= out.offsets.size:
            state[STATUS] = FULL
            return pos
        if state[IS_LOST]:
            pos = next_packet(b, pos, end, is_last)
            if pos == end or looks_like_packets(b, pos, end, is_last) < 0:
                return pos
        tag, start, after = field(b, pos, end)
        if after < 0 and not is_last and _may_go_on(b, pos, end):
            return pos
        result = -1
        if after > 0 and tag == PACKET:
            for k in range(BEGINS, LOST):
                saved[k] = state[k]
            rows = out.state[EVENTS]
            state[NEEDS_ROOM], state[CLOCK_ROW] = 0, -1
            result = _read_packet(b, start, after, pos, base, knows_state, t, r, keys, columns, text, out, state, stack)
            if state[NEEDS_ROOM] or result != 0:
                _undo(t, out, rows, saved, state)
            if result == 1 or (state[NEEDS_ROOM] and result == 0):
                state[STATUS] = STATE if result == 1 else FULL
                return pos
        elif after > 0 and tag & 7 == _BYTES:  # an unknown field of the file
            seems = 1 if after == end and is_last else looks_like_packets(b, after, end, is_last)
            if seems < 0:
                return pos
            result = seems - 1
        knows_state = False
        if result == 0:
            state[IS_LOST] = 0
            pos = after
            continue
        if is_last and after < 0 and _item(b, pos) == PACKET and next_packet(b, pos + 1, end, is_last) == end:
            return pos
        _note_damage(base + pos, after - pos, r.places, state)
        pos = after if state[LOST_WORK] > _MOST_LOST_WORK and after > 0 else pos + 1
    return pos
