"""The timeline as a file for other viewers: compact JSON in Chrome's format, compressed with gzip.

The file has what a viewer can draw: slices on threads on which they nest, so that none is dropped (see nesting.py);
memory levels as counters, instead of an instant for each allocation; the program's own counters; times of all workers
on one clock. A slice that is partly in the range is written as a whole.

Text is written and compressed portion by portion, so a trace of any size takes little memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, get_args

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from ...arrays.gather import NONE
from ...measures.recording.contents import has_memory
from ...timeline.core.model import Timeline, Track
from ...timeline.counters.user_counters import user_counters
from ...trace import Trace
from .arguments import ArgumentTexts
from .arrows import arrows
from .counters import memory_counters, user_counter_events
from .events import Texts, events, heads, json_text, names
from .nesting import Threads, begun_before, portion

Extra = Literal["args", "memory", "flows"]
EXTRAS: tuple[Extra, ...] = get_args(Extra)
Ints = NDArray[np.int64]

AT_ONCE = 1 << 17  # slices
FIRST_NUMBER = 1_000_001
"""Processes, threads and arrows are numbered from here, with distinct numbers: Perfetto takes a thread with the number
of its process for the main one, and our reader takes a small process number for that of a device."""

_SAMPLED, _SAMPLES = 1 << 16, 4  # slices from which the size of a long file is estimated, and in how many parts
_LEVEL = 2  # isal's; 3 is slower and no smaller on this text
_GZIP = 31
_PACKED_AT_ONCE = 1 << 20  # bytes: if isal gets little input at first, it compresses the rest of that block badly
_PART_NAMES = {"annotations": "annotations · ", "python": "Python · ", "waits": "waits · ", "other": "other · "}


@dataclass(frozen=True)
class Source:
    """One worker's recording.

    Args:
        shift_ns: Added to its times to put them on the common clock.
        label: Prefix of its process names; empty for a single source.
    """

    trace: Trace
    timeline: Timeline
    shift_ns: int = 0
    label: str = ""


@dataclass(frozen=True)
class Window:
    """The range to write: all that is open at any moment in [from_ns, to_ns); None for no limit."""

    from_ns: int | None = None
    to_ns: int | None = None

    def shift(self, by_ns: int) -> Window:
        """The same window on another clock."""
        return Window(*(None if at is None else at + by_ns for at in (self.from_ns, self.to_ns)))

    def rows(self, timeline: Timeline, track: Track) -> tuple[Ints, Ints]:
        """(the first slice to write of each lane, the end)."""
        start, dur = timeline.start_ns, timeline.dur_ns
        bounds = timeline.pyramid.rows.first[track.first_row : track.first_row + track.lanes + 1]
        lo, hi = bounds[:-1].copy(), bounds[1:].copy()
        if self.to_ns is not None:
            hi = begun_before(start, lo, hi, self.to_ns)
        if self.from_ns is not None:
            first_after = begun_before(start, lo, hi, self.from_ns)
            before = np.maximum(first_after - 1, 0)
            lo = np.where((first_after > lo) & (start[before] + dur[before] > self.from_ns), before, first_after)
        return lo, hi


def recorded_tracks(timeline: Timeline) -> list[Track]:
    """The tracks of what the file holds; projected annotations would be written as if they were recorded."""
    return [track for track in timeline.tracks if track.part != "projected"]


def slices_in(source: Source, window: Window) -> int:
    """Number of slices to write."""
    its = window.shift(-source.shift_ns)
    rows = (its.rows(source.timeline, track) for track in recorded_tracks(source.timeline))
    return sum(int((hi - lo).sum()) for lo, hi in rows)


@dataclass(frozen=True)
class Size:
    """The size of a file; for long files an estimate from parts of it."""

    slices: int
    bytes: int
    is_exact: bool


def size(source: Source, window: Window, extras: Collection[Extra] = ()) -> Size:
    """The size of one source in the file."""
    slices = slices_in(source, window)
    if slices <= _SAMPLED:
        return Size(slices, sum(map(len, export_pieces([source], window, extras))), is_exact=True)
    parts = list(_parts(source, window, _SAMPLED / slices))
    sample_slices = sum(slices_in(source, part) for part in parts)
    written_bytes = sum(len(piece) for part in parts for piece in export_pieces([source], part, extras))
    return Size(slices, slices * written_bytes // max(sample_slices, 1), is_exact=False)


def _parts(source: Source, window: Window, share: float) -> Iterator[Window]:
    """Short parts of a window, spread over it, which together are about this share of it."""
    first, last = (at + source.shift_ns for at in source.timeline.window)
    first = first if window.from_ns is None else max(first, window.from_ns)
    last = last if window.to_ns is None else min(last, window.to_ns)
    length = max(1, int((last - first) * share) // _SAMPLES)
    for i in range(_SAMPLES):
        at = first + (last - first) * (2 * i + 1) // (2 * _SAMPLES)
        yield Window(at - length // 2, at - length // 2 + length)


def export_pieces(sources: Sequence[Source], window: Window, extras: Collection[Extra] = ()) -> Iterator[bytes]:
    """The bytes of the file, piece by piece.

    Args:
        sources: The recordings; the clock of the first is the file's.
        window: On the common clock.
        extras: What else is written: `args`, the arguments of slices; `memory`, memory levels; `flows`, arrows from
            calls to the work they launched and from forward operators to their backward.
    """
    packer = isal_zlib.compressobj(_LEVEL, wbits=_GZIP)
    texts_to_pack: list[bytes] = []
    for text in _texts(sources, window, extras):
        texts_to_pack.append(text)
        if sum(map(len, texts_to_pack)) >= _PACKED_AT_ONCE:
            yield packer.compress(b"".join(texts_to_pack))
            texts_to_pack = []
    yield packer.compress(b"".join(texts_to_pack)) + packer.flush()


def _texts(sources: Sequence[Source], window: Window, extras: Collection[Extra]) -> Iterator[bytes]:
    first_ns = min(source.shift_ns for source in sources)
    base = sources[0].trace.origin_ns - sources[0].shift_ns + first_ns
    yield f'{{"schemaVersion":1,"displayTimeUnit":"ms","baseTimeNanoseconds":{base},"traceEvents":['.encode()
    numbers = iter(range(FIRST_NUMBER, 1 << 31))
    writers = (_Writer(source, source.shift_ns - first_ns, window, extras, numbers) for source in sources)
    parts = filter(None, chain.from_iterable(writer.texts() for writer in writers))
    yield next(parts, b"").removeprefix(b",")
    yield from parts
    yield b"\n]}\n"


class _Writer:
    """Writes one source.

    Args:
        shift_ns: From the source's times to the file's.
        numbers: Source of the ids of processes, threads and arrows.
    """

    def __init__(
        self, source: Source, shift_ns: int, window: Window, extras: Collection[Extra], numbers: Iterator[int]
    ) -> None:
        self._source, self._shift_ns, self._extras = source, shift_ns, extras
        self._window = window.shift(-source.shift_ns)
        self._numbers = numbers
        self._timeline = source.timeline
        self._names, self._heads = names(source.timeline.labels), heads(source.trace)
        self._args = ArgumentTexts(source.trace, source.timeline) if "args" in extras else None
        self._processes: dict[str, int] = {}
        self._places: list[tuple[int, int]] = []  # process and thread of each thread
        self._place_of = np.full(self._timeline.size if "flows" in extras else 0, NONE, np.int32)  # each slice's

    def texts(self) -> Iterator[bytes]:
        """All events; each begins with a comma."""
        for track in recorded_tracks(self._timeline):
            yield from self._track(track)
        trace, window = self._source.trace, self._window
        if "memory" in self._extras and has_memory(trace):
            yield from self._process("memory")
            pid = self._processes["memory"]
            yield from memory_counters(trace, (window.from_ns, window.to_ns), pid, self._shift_ns)
        for series in user_counters(trace):
            names = (name for name in self._processes if name.startswith(f"{series.process} · "))
            process = next(names, series.process)
            yield from self._process(process)
            at = self._processes[process]
            yield from user_counter_events(series, (window.from_ns, window.to_ns), at, self._shift_ns)
        if "flows" in self._extras:
            threads = Texts.of(map(_on, self._places))
            yield from arrows(trace, self._timeline, (self._place_of, threads), self._numbers, self._shift_ns)

    def _track(self, track: Track) -> Iterator[bytes]:
        """The slices of a track, then the names of the threads that they are on."""
        lo, hi = self._window.rows(self._timeline, track)
        if not (lo < hi).any():
            return
        yield from self._process(track.process)
        threads, place_numbers = Threads(), dict[int, int]()
        while (lo < hi).any():
            cut = portion(self._timeline.start_ns, lo, hi, AT_ONCE)
            slices, lane = _in_order(self._timeline, lo, cut)
            start, dur = self._timeline.start_ns[slices], self._timeline.dur_ns[slices]
            thread = threads.of(start, start + dur, lane)
            threads_here, which = np.unique(thread, return_inverse=True)
            for k in threads_here.tolist():
                if k not in place_numbers:
                    place_numbers[k] = len(self._places)
                    self._places.append((self._processes[track.process], next(self._numbers)))
            place_number = np.array([place_numbers[k] for k in threads_here.tolist()], np.int32)[which]
            if self._place_of.size:
                self._place_of[slices] = place_number
            yield self._events(track, slices, place_number, (start + self._shift_ns, dur))
            lo = cut
        for k, at in sorted(place_numbers.items()):
            name = _PART_NAMES.get(track.part, "") + track.name + (f" ({k + 1})" if k else "")
            yield _metadata_event("thread", *self._places[at], name)

    def _events(self, track: Track, slices: Ints, place_number: NDArray[np.int32], times: tuple[Ints, Ints]) -> bytes:
        """Some slices of a track."""
        tails, tail = Texts.of([_tail(track)]), np.zeros(slices.size, np.int64)
        if self._args is not None:
            tails, tail = self._args.of(slices, _arguments(track)), np.arange(slices.size)
        code = self._heads.code[self._timeline.event[slices]]
        texts = (self._heads.texts, self._names, Texts.of(map(_on, self._places)), tails)
        codes = (code, self._timeline.label[slices], place_number, tail)
        return events(texts, codes, self._heads.is_instant, times)

    def _process(self, name: str) -> Iterator[bytes]:
        """The event that names a process, if it isn't written yet."""
        if name not in self._processes:
            pid = self._processes[name] = next(self._numbers)
            yield _metadata_event("process", pid, 0, " · ".join(filter(None, (self._source.label, name))))


def _in_order(timeline: Timeline, lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """(the slices of some lanes from `lo` up to `hi` in the order start, longest first, lane; the lane of each)."""
    slices = np.concatenate([np.arange(a, b) for a, b in zip(lo.tolist(), hi.tolist(), strict=True)])
    lane = np.repeat(np.arange(lo.size), hi - lo)
    order = np.lexsort((-timeline.dur_ns[slices], timeline.start_ns[slices]))
    return slices[order], lane[order]


def _on(thread: tuple[int, int]) -> str:
    """The members of an event that place it on a process and thread, up to its time."""
    return f',"pid":{thread[0]},"tid":{thread[1]},"ts":'


def _arguments(track: Track) -> str:
    """The arguments by which readers, ours included, recognize the stream of a slice."""
    return ",".join(
        f'"{name}":{number}' for name in ("device", "stream") if (number := getattr(track, name)) is not None
    )


def _tail(track: Track) -> str:
    """The end of an event without other arguments."""
    arguments = _arguments(track)
    return f',"args":{{{arguments}}}}}' if arguments else "}"


def _metadata_event(what: str, pid: int, tid: int, name: str) -> bytes:
    """The events that name a process or thread and set its position; the thread of a process is 0."""
    where, order = f',\n{{"ph":"M","pid":{pid},"tid":{tid},"name":"{what}_', tid or pid
    event = f'{where}name","args":{{"name":{json_text(name)}}}}}'
    return f'{event}{where}sort_index","args":{{"sort_index":{order}}}}}'.encode("utf-8", "replace")
