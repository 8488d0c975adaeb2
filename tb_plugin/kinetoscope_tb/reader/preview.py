"""A preview of a file while the rest of it is being read.

Kineto writes host operators first, then Python functions, and device events last: in 55 recordings from torch 1.8 to
2.11, on NVIDIA, AMD and MTIA, no kernel is in the first third of the events, and in those with Python functions none in
the first two thirds. So the start of a file is not a small recording: shares, idle times, links and self times computed
from it would be wrong. The preview has only numbers that the rest can only raise: counts of events, and total durations
by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..names.kernels import step_number
from ..trace.meta import Meta
from .frames.metadata import metadata
from .scan.ingest import RawTrace
from .scan.kinds import Kind
from .scan.rows import LAYOUTS, LONGEST_NS, Rows
from .scan.tokens import Texts

MOST_NAMES = 8
_ROWS_AT_ONCE = 1 << 18  # otherwise temporary arrays exceed the columns
_FARTHEST_NS = 2**62

KINDS = {
    "operators": (Kind.OPERATOR,),
    "annotations": (Kind.ANNOTATION,),
    "Python calls": (Kind.PYTHON,),
    "runtime calls": (Kind.RUNTIME, Kind.DRIVER),
    "kernels": (Kind.KERNEL,),
    "copies and fills": (Kind.MEMCPY, Kind.MEMSET),
    "memory events": (Kind.MEMORY,),
    "arrows": (Kind.FLOW,),
    "others": (Kind.SYNC, Kind.OTHER, Kind.UNKNOWN, Kind.END),
}
"""Display names; thread names and events without a usable time have no kind."""

_SPANNING = ("host_events", "launches", "device_events")


@dataclass(frozen=True)
class NamedTime:
    """The events of one name.

    Args:
        name: Their name.
        count: How many of them were read.
        total_ns: Sum of their durations, children included.
    """

    name: str
    count: int
    total_ns: int


@dataclass(frozen=True)
class Preview:
    """What was read so far.

    Args:
        events: How many events.
        kinds: How many of them are of each kind of KINDS.
        span_ns: From the earliest start to the latest end of operators, annotations, calls and device rows; None before
            there is any, and if no recording lasts so long: then a time is damaged.
        steps: How many different ProfilerStep ranges were read.
        step_ns: The median of how long these last on the host; None without any.
        operators, kernels: The names that last longest so far, at most MOST_NAMES.
        meta: The metadata before the events.
    """

    events: int
    kinds: dict[str, int]
    span_ns: int | None
    steps: int
    step_ns: int | None
    operators: tuple[NamedTime, ...]
    kernels: tuple[NamedTime, ...]
    meta: Meta


class _ByName:
    """Count and total duration of the events of each name, by the code of the name."""

    def __init__(self) -> None:
        self._count = np.zeros(0, np.int64)
        self._total_ns = np.zeros(0, np.int64)

    def add(self, codes: NDArray[Any], dur: NDArray[Any], n_codes: int) -> None:
        """Count events; a missing duration is negative, and counts as none."""
        new = np.zeros(n_codes - self._count.size, np.int64)
        if new.size:
            self._count, self._total_ns = np.append(self._count, new), np.append(self._total_ns, new)
        has_name = codes >= 0
        index = codes[has_name].astype(np.int64)
        np.add.at(self._count, index, 1)
        np.add.at(self._total_ns, index, np.maximum(dur[has_name], 0).astype(np.int64))

    def by_text(self, texts: Texts) -> list[NamedTime]:
        """The names that occur; different tokens may stand for the same text."""
        sums: dict[str, tuple[int, int]] = {}
        for code in np.flatnonzero(self._count).tolist():
            name = texts[code] or ""
            count, total = sums.get(name, (0, 0))
            sums[name] = count + int(self._count[code]), total + int(self._total_ns[code])
        return [NamedTime(name, count, total) for name, (count, total) in sums.items()]


class PreviewBuilder:
    """Counts the events of a file that is being read, each once, however often a preview is requested."""

    def __init__(self) -> None:
        self._done = {name: 0 for name, layout in LAYOUTS.items() if layout.is_timed}
        self._kinds = np.zeros(len(Kind), np.int64)
        self._by_name = {kind: _ByName() for kind in (Kind.OPERATOR, Kind.ANNOTATION, Kind.KERNEL)}
        self._first_ns, self._last_ns = _FARTHEST_NS, -_FARTHEST_NS
        self._meta: Meta | None = None
        self._texts = Texts([])

    def preview(self, raw_trace: RawTrace) -> Preview:
        """A preview of what was read so far; for the reading thread, between two chunks."""
        if self._meta is None:
            outside = metadata(raw_trace.head, b"")
            self._meta = Meta(outside.top)
            self._texts = Texts([], outside.labels)
        self._texts.tokens = raw_trace.events.tokens
        for name, rows_done in self._done.items():
            rows = raw_trace.events.frames[name]
            self._done[name] = total = rows["kind"].size
            for first in range(rows_done, total, _ROWS_AT_ONCE):
                self._count(name, rows, slice(first, min(first + _ROWS_AT_ONCE, total)))
        return self._preview(raw_trace.events.events, self._meta)

    def _count(self, frame: str, rows: Rows, new: slice) -> None:
        kind, dur = rows["kind"][new], rows["dur"][new]
        self._kinds += np.bincount(kind, minlength=len(Kind))
        if frame in _SPANNING:
            start = rows["ts"][new]
            has_time = start != 0  # the profiler writes 0 where it lost the time: pytorch#188481
            end = start[has_time] + np.maximum(dur[has_time], 0)
            self._first_ns = min(self._first_ns, int(start[has_time].min(initial=_FARTHEST_NS)))
            self._last_ns = max(self._last_ns, int(end.max(initial=-_FARTHEST_NS)))
        for own_kind, by_name in self._by_name.items():
            if LAYOUTS[frame].first <= own_kind <= LAYOUTS[frame].last:
                is_it = kind == own_kind
                by_name.add(rows["name"][new][is_it], dur[is_it], len(self._texts))

    def _preview(self, events: int, meta: Meta) -> Preview:
        times_of = {kind: by_name.by_text(self._texts) for kind, by_name in self._by_name.items()}
        steps = [entry for entry in times_of[Kind.ANNOTATION] if step_number(entry.name) is not None]
        lengths = sorted(entry.total_ns // entry.count for entry in steps)
        span = self._last_ns - self._first_ns
        return Preview(
            events,
            {words: int(self._kinds[list(kinds)].sum()) for words, kinds in KINDS.items()},
            span if 0 <= span <= LONGEST_NS else None,
            len(steps),
            lengths[len(lengths) // 2] if lengths else None,
            _longest(times_of[Kind.OPERATOR]),
            _longest(times_of[Kind.KERNEL]),
            meta,
        )


def _longest(times: list[NamedTime]) -> tuple[NamedTime, ...]:
    return tuple(sorted(times, key=lambda entry: (-entry.total_ns, entry.name))[:MOST_NAMES])
