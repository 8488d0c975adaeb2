"""Blocks of a Perfetto trace → sorted events, packet after packet, with one scanner.

Later packets refer to earlier ones, so packets are scanned in order; sorting the events into frames runs in parallel.
"""

from __future__ import annotations

import json
import zlib
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...errors import NotATrace
from ...trace.model import Diagnostic
from ..scan import scanner as s
from ..scan.chunk import new_out, tokens_of
from ..scan.columns import ARG_AT, key_table
from ..scan.counters import CounterLines
from ..scan.damage import CUT_OFF, LOST
from ..scan.ingest import RawFile, RawTrace
from ..scan.rows import Occurrences, Part, SortedEvents, sorted_out
from ..scan.tokens import Texts
from . import wire as w
from .arrows import Links
from .message import BrokenMessage, data, values
from .slices import Slices
from .state import State

_KEYS = key_table()
_AT = {arg.column: at for at, arg in ARG_AT.items()}
_COLUMNS = w.Columns(**{name: _AT[name] for name in w.Columns._fields})
_TEXT_BYTES, _MOST_TEXT_BYTES, _TEXT_PER_BYTE = 1 << 22, 1 << 28, 16
_RECORDS = 1 << 15
_AHEAD = 2
_MOST_INFLATED = 1 << 26
_LATEST = 2**62
_NOTED: dict[str, tuple[Literal["note", "warning", "loss"], str]] = {
    "damaged_state": (
        "loss",
        "Packets with names, tracks or clocks are damaged; events may lack these.",
    ),
    "unknown_texts": (
        "loss",
        "Events refer to texts that no packet before them defines, because it was lost or damaged: they have no name, "
        "category or argument there.",
    ),
    "dropped_packets": (
        "loss",
        "The program that recorded dropped packets, so events are missing. Record with a larger buffer, or less.",
    ),
    "other_packets": (
        "note",
        "Packets other than slices, instants, counters and device work (such as scheduling or memory) aren't shown. "
        "Open the file in ui.perfetto.dev for those.",
    ),
    "compressed_packets": ("loss", "Compressed packets can't be decompressed; their events are missing."),
}
_LACKS = (
    "torch's Perfetto files have no ranks, device properties, memory events, forward-backward links, directions of "
    "copies and static shared memory, and they cut work where other work begins on its stream. Record JSON for these."
)


class Ingestion:
    """One file being read."""

    def __init__(self) -> None:
        self.result = RawTrace()
        self.state = State()
        self._slices, self._links = Slices(), Links()
        self._out, self._idle = new_out(), deque([new_out() for _ in range(_AHEAD)])
        self._records = _new_records()
        self._scanner = w.Scanner(self._records, _KEYS, _COLUMNS)
        self._counts = np.zeros(w.N_STATE, np.int64)
        self._text = np.empty(_TEXT_BYTES, np.uint8)
        self._places: list[NDArray[np.int64]] = []
        self._noted = {name: Occurrences() for name in _NOTED}
        self._inserted = 0  # bytes of decompressed packets beyond those of the packets that held them
        self._parts: deque[tuple[s.Out, Future[Part]]] = deque()
        self._begin()

    def scan(self, pool: Executor, text: bytes, base: int, *, is_last: bool, is_inner: bool = False) -> int:
        """Read the whole packets of a text; return how much of it that is.

        Args:
            pool: Sorts the events.
            text: What follows the last scan.
            base: Its offset in the file; those of events count decompressed packets in place of compressed ones.
            is_last: Whether nothing follows.
            is_inner: Whether it was decompressed.
        """
        array = np.frombuffer(text, np.uint8)
        at, knows_state = 0, False
        while True:
            before, rows = at, int(self._out.state[s.EVENTS])
            at = self._scanner.scan(
                array, at, array.size, base + self._inserted, self.state.tables(), self._text, self._out, self._counts,
                is_last=is_last, knows_state=knows_state,
            )  # fmt: skip
            status, knows_state = self._counts[w.STATUS], False
            if status == w.STATE:
                at, knows_state = self._read_state(pool, text, at, base, is_inner=is_inner)
            elif status == w.GROW:
                self.state.make_room(w.field(array, at, array.size)[2] - at)
            elif status == w.FULL:
                self._flush(pool)
                if at == before and rows == 0 and not self._grow(array, at):
                    at = self._skip(array, at, base)
            else:
                self._note_places()
                return int(at)

    def finish(self, pool: Executor) -> list[Diagnostic]:
        """Take what is left, and everything that isn't known before the end of the file."""
        self._flush(pool)
        while self._parts:
            self._append()
        events, flags = self.result.events, self.state.sequence_rows()[w.SEQ_FLAGS]
        in_order = w.BEGIN_FLAGGED | w.END_BARE
        sequences = np.flatnonzero((flags & (in_order | w.END_FLAGGED)) == in_order)
        damage = np.concatenate([np.empty(0, np.int64), *self._places])
        diagnostics = self._slices.close(events, sequences, damage)
        lost_links = self._links.add_to(events)
        if lost_links:
            diagnostics.append(
                Diagnostic("lost_links", lost_links, "Links lead to device work that isn't in the file.")
            )
        events.append(_names(self.state, events))
        if sequences.size:
            diagnostics.append(Diagnostic("perfetto_lacks", 1, _LACKS, level="note"))
        return diagnostics + self._diagnostics()

    def _begin(self) -> None:
        for array in (self._out.slots, self._out.arg_counts, self._out.state[: s.SEED]):
            array[:] = 0
        self._counts[: w.LOST] = 0
        self.state.forget_codes()

    def _read_state(self, pool: Executor, text: bytes, at: int, base: int, *, is_inner: bool) -> tuple[int, bool]:
        """Read a packet that later ones refer to, or that holds compressed ones: (where to go on, whether in it)."""
        start, end = w.field(np.frombuffer(text, np.uint8), at, len(text))[1:]
        packet = text[start:end]
        try:
            self.state.read(packet, int(self._counts[w.SEQUENCE]))
            stream = data(values(packet), 50)
        except BrokenMessage:
            self._noted["damaged_state"].add(1, base + at)
            stream = b""
        if not stream:
            return at, True
        inner = b"" if is_inner else _inflate(stream)
        if not inner:
            self._noted["compressed_packets"].add(1, base + at)
            return end, False
        read = self.scan(pool, inner, base + at, is_last=True, is_inner=True)
        if read < len(inner):
            self.result.tally.note(LOST, 1, base + at)
        self._inserted += len(inner) - (end - at)
        return end, False

    def _note_places(self) -> None:
        counts = self._counts
        if counts[w.LOST]:
            self.result.tally.note(LOST, int(counts[w.LOST]), int(counts[w.FIRST_LOST]))
            self._places.append(self._records.places[0, : counts[w.LOST]].copy())
            counts[w.LOST] = 0

    def _grow(self, array: NDArray[np.uint8], at: int) -> bool:
        """Make room for a packet that needs more of it; return whether that may help."""
        size = min(_TEXT_PER_BYTE * (w.field(array, at, array.size)[2] - at) + _TEXT_BYTES, _MOST_TEXT_BYTES)
        if self._text.size >= size:
            return False
        self._text = np.empty(size, np.uint8)
        return True

    def _skip(self, array: NDArray[np.uint8], at: int, base: int) -> int:
        """Leave out a packet that has more values than any event."""
        self.result.tally.note(LOST, 1, base + at)
        return w.field(array, at, array.size)[2]

    def _flush(self, pool: Executor) -> None:
        """Hand the events of this scan over to be sorted into frames."""
        counts, out, records, origin = self._counts, self._out, self._records, self.state.origin_ns
        self._note_places()
        n = int(out.state[s.EVENTS])
        for rows, table, count in (
            (self._slices.begins, records.begins, counts[w.BEGINS]),
            (self._slices.ends, records.ends, counts[w.ENDS]),
        ):
            if count:
                rows.append(_with_times_from(table[:, :count].copy(), origin))
        self.state.note_labels(records.labels[:, : counts[w.LABELS]])
        for pairs, table, count in (
            (self._links.launches, records.launches, counts[w.LAUNCHES]),
            (self._links.waits, records.waits, counts[w.WAITS]),
            (self._links.stages, records.stages, counts[w.STAGES]),
        ):
            if count:
                pairs.append(np.stack([out.offsets[table[0, :count]], table[1, :count]]))
        if n:
            tokens = tokens_of(out, self._text.data)
            samples = records.counters[:, : counts[w.COUNTERS]]
            lines = CounterLines(out.offsets[samples[0]], _counter_text(samples))
            self._parts.append((out, pool.submit(_sort, out, tokens, lines, origin)))
            if not self._idle:
                self._append()
            self._out = self._idle.popleft()
        self._begin()

    def _append(self) -> None:
        out, part = self._parts.popleft()
        self.result.events.append(part.result())
        self._idle.append(out)

    def _diagnostics(self) -> list[Diagnostic]:
        counts = self._counts
        for name, count, first in (
            ("unknown_texts", w.UNKNOWN_TEXTS, w.FIRST_UNKNOWN_TEXT),
            ("other_packets", w.FOREIGN, w.FIRST_FOREIGN),
            ("dropped_packets", w.DROPPED, w.FIRST_DROPPED),
            ("damaged_state", w.DAMAGED_STATE, w.FIRST_DAMAGED_STATE),
        ):
            if counts[count]:
                self._noted[name].add(int(counts[count]), int(counts[first]))
        return [
            Diagnostic(name, occurrences.count, _NOTED[name][1], occurrences.first, _NOTED[name][0])
            for name, occurrences in self._noted.items()
            if occurrences.count
        ]


def ingest(blocks: Iterable[bytes], path: str, progress: Callable[[RawTrace], None]) -> RawFile:
    """Read all packets.

    Args:
        blocks: The file, decompressed.
        path: Its name in messages.
        progress: Called after each block with the result so far.

    Raises:
        NotATrace: No packet can be read.
    """
    ingestion = Ingestion()
    result = ingestion.result
    rest, base, least_bytes = b"", 0, 0
    scan: Future[int] | None = None
    with ThreadPoolExecutor(2, "kinetoscope-perfetto") as pool:  # one scans, one sorts; this one reads ahead
        for block in blocks:
            if scan:
                read = scan.result()
                base, rest = base + read, rest[read:]
                least_bytes = 2 * len(rest)  # so that the cost of a long packet is proportional to its length
                result.head, result.end = _head(ingestion.state), base + len(rest)
                progress(result)
            rest = rest + block if rest else block
            is_enough = len(rest) >= least_bytes
            scan = pool.submit(ingestion.scan, pool, rest, base, is_last=False) if is_enough else None
        if scan:
            read = scan.result()
            base, rest = base + read, rest[read:]
        result.end = base + len(rest)
        read = ingestion.scan(pool, rest, base, is_last=True)
        diagnostics = ingestion.finish(pool)
    cut = len(rest) - read
    result.head, result.tail = _head(ingestion.state), b"]}"
    if cut:
        words = (
            f"The file ends inside a packet: its last {cut} bytes are left out, and later events are missing; how "
            "many is unknown. Let the job finish writing, and check the disk's free space."
        )
        diagnostics.append(Diagnostic("truncated", 1, words, base + read, level="loss", fault=CUT_OFF))
    if not result.events.events and (cut or result.tally):
        raise NotATrace(
            path,
            "it begins like a Perfetto trace, but none of its events can be read. Copy the file, or record, again.",
        )
    return RawFile(result, diagnostics)


def _head(state: State) -> bytes:
    return b'{"baseTimeNanoseconds": %d, "traceEvents": [' % state.base_ns


def _new_records() -> w.Records:
    return w.Records(*(np.empty((fields, _RECORDS), np.int64) for fields in (5, 5, 3, 3, 3, 3, 4, 3)))


def _with_times_from(rows: NDArray[np.int64], origin: int) -> NDArray[np.int64]:
    """The begins or ends with times since the origin; damaged ones stay far away."""
    rows[4] = np.clip(rows[4], -_LATEST, _LATEST) - origin
    return rows


def _sort(out: s.Out, tokens: list[bytes], lines: CounterLines, origin: int) -> Part:
    """The events of a scan, sorted into frames, with times since the origin."""
    ts = out.times[0, : int(out.state[s.EVENTS])]
    is_timed = np.abs(ts) < _LATEST
    ts[:] = np.where(is_timed, ts - origin, s.MISSING)
    return sorted_out(out, tokens, 0, lines)


def _counter_text(samples: NDArray[np.int64]) -> bytes:
    """The samples as arguments of events in JSON, a line each: the series has no name, as in torch's JSON."""
    is_float = pl.Series(samples[1] == 1)
    integers, floats = pl.Series(samples[2]), pl.Series(samples[2].copy().view(np.float64))
    number = pl.when(floats.is_finite()).then(floats.cast(pl.String)).otherwise(pl.lit("NaN"))
    value = pl.when(is_float).then(number).otherwise(integers.cast(pl.String))
    line = pl.concat_str(pl.lit('{"args":{"":'), value, pl.lit("}}\n"))
    return str(pl.select(line.str.join("")).item()).encode()


def _names(state: State, events: SortedEvents) -> Part:
    """The names of processes, threads and streams as events of phase M."""
    texts = Texts(events.tokens)
    for frame in ("device_events", "others", "flows"):
        frame_rows = events.frames[frame]
        for pid, tid in pl.DataFrame({"pid": frame_rows["pid"], "tid": frame_rows["tid"]}).unique().rows():
            name = state.lanes.get(texts[tid] or "")
            if name:
                state.names.setdefault((texts[pid] or "", texts[tid] or ""), name)
    tokens = [b'"process_name"', b'"thread_name"']
    rows: list[tuple[int, ...]] = []
    for (pid, tid), name in state.names.items():
        of_row = [_token(pid), _token(tid), _token(name)]
        rows.append((int(tid != ""), *(len(tokens) + i for i in range(3))))
        tokens += of_row
    codes = np.array(rows, np.int64).reshape(-1, 4).T
    columns = dict(zip(("name", "pid", "tid", "label"), codes, strict=True))
    empty_parts = (Occurrences(), Occurrences(), CounterLines(np.empty(0, np.int64), b""))
    return Part(0, tokens, {"names": columns}, *empty_parts)


def _token(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")


def _inflate(stream: bytes) -> bytes:
    """Packets that Perfetto compressed with zlib; none if they can't be decompressed, or are unreasonably many."""
    try:
        inflater = zlib.decompressobj()
        inner = inflater.decompress(stream, _MOST_INFLATED)
    except zlib.error:
        return b""
    return b"" if inflater.unconsumed_tail else inner
