"""Links between launches and device work, and between nodes of a graph → the arrows that torch's JSON has for them.

A launch lists the work that it launched (torch's extension 3000), and work lists the work that it waited for
(event_wait_ids). JSON has arrows of category `ac2g` instead: their id is the correlation, or 2^40 and more between two
rows of devices.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather, rows_by_id
from ..scan.counters import CounterLines
from ..scan.kinds import Kind
from ..scan.rows import Occurrences, Part, SortedEvents

_FIRST_EDGE = 2**40
_TOKENS = [b'"ac2g"', b'"s"', b'"f"']
_PLACED = ("launches", "device_events", "others")


@dataclass
class Links:
    """All links of a file: pairs of the offset of an event and an id of device work."""

    launches: list[NDArray[np.int64]] = field(default_factory=list)
    waits: list[NDArray[np.int64]] = field(default_factory=list)
    stages: list[NDArray[np.int64]] = field(default_factory=list)

    def add_to(self, events: SortedEvents) -> int:
        """Add the arrows to the events; return how many links lead to work that isn't in the file."""
        launches, waits, stages = (_pairs(parts) for parts in (self.launches, self.waits, self.stages))
        self.launches, self.waits, self.stages = [], [], []
        launch_work, wait_work = _work(stages, launches[1]), _work(stages, waits[1])
        lost_count = int((launch_work < 0).sum() + (wait_work < 0).sum())
        begins = np.concatenate([launches[0], wait_work])  # work that another waited for comes before it
        ends = np.concatenate([launch_work, waits[0]])
        is_edge = np.arange(begins.size) >= launch_work.size
        begin, end = _columns_at(events, begins), _columns_at(events, ends)
        rows_linked = np.flatnonzero(begin["found"] & end["found"])
        if rows_linked.size:
            number = _FIRST_EDGE + np.cumsum(is_edge) - 1
            ids = np.where(is_edge, number, begin["correlation"])
            begin["ts"] = begin["ts"] + np.where(is_edge, begin["dur"].clip(0), 0)
            is_first = np.ones(rows_linked.size, bool)  # one launch may begin much work: its arrows begin once
            is_first[1:] = (begin["offset"][rows_linked][1:] != begin["offset"][rows_linked][:-1]) | is_edge[
                rows_linked
            ][1:]
            _append(events, ids, begin, end, rows_linked, rows_linked[is_first])
        return lost_count


def _pairs(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate(parts, axis=1) if parts else np.empty((2, 0), np.int64)


def _work(stages: NDArray[np.int64], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The offset of the work with each id, or -1; of several, the first."""
    offsets: NDArray[np.int64] = gather(stages[0], rows_by_id(stages[1], ids), NONE)
    return offsets


def _columns_at(events: SortedEvents, offsets: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """The place, time and correlation of the events at these offsets, and whether they are in a frame."""
    columns = {name: np.full(offsets.size, NONE, np.int64) for name in ("ts", "dur", "pid", "tid", "correlation")}
    columns |= {"offset": offsets, "found": np.zeros(offsets.size, bool)}
    for frame in _PLACED:
        rows = events.frames[frame]
        at = rows["offset"].astype(np.int64)
        if not at.size:
            continue
        index = np.minimum(np.searchsorted(at, offsets), at.size - 1)
        here = np.flatnonzero(at[index] == offsets)
        columns["found"][here] = True
        for name in ("ts", "dur", "pid", "tid", "correlation"):
            if name in rows:
                columns[name][here] = rows[name][index[here]]
    return columns


def _append(
    events: SortedEvents,
    ids: NDArray[np.int64],
    begin: dict[str, NDArray[Any]],
    end: dict[str, NDArray[Any]],
    rows_linked: NDArray[Any],
    first: NDArray[Any],
) -> None:
    code_of = {token: code for code, token in enumerate(events.tokens)}
    tokens = list(dict.fromkeys([*events.tokens, *_TOKENS]))
    category, phase_s, phase_f = (code_of.get(token, tokens.index(token)) for token in _TOKENS)
    size = first.size + rows_linked.size
    columns: dict[str, NDArray[Any]] = {
        name: np.concatenate([begin[name][first], end[name][rows_linked]]) for name in ("pid", "tid", "ts", "offset")
    }
    columns["id"] = np.concatenate([ids[first], ids[rows_linked]])
    columns["phase"] = np.repeat([phase_s, phase_f], [first.size, rows_linked.size])
    columns["category"] = np.full(size, category)
    columns["dur"] = np.full(size, NONE)
    columns["length"] = np.zeros(size, np.int32)
    columns["kind"] = np.full(size, Kind.FLOW, np.int8)
    empty_parts = (Occurrences(), Occurrences(), CounterLines(np.empty(0, np.int64), b""))
    events.append(Part(size, tokens, {"flows": columns}, *empty_parts))
