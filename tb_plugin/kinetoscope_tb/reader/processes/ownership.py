"""The process of each event of a file.

A process is one that has operators, or without any operator in the file, calls that launch device work. Other events
(of GPUs, "Spans", helpers of a loader) belong to one of these: in a file that was appended from several, to the one in
whose section they are; else to the one whose launches they continue.

Sections end with kineto's "Record Window End", so that even two processes with one number can be distinguished, as
is common in containers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.gather import NONE, group_rows, rows_by_id
from ...errors import TraceError
from ...names.regex import regex
from ..frames.threads import text_places
from ..scan.kinds import Kind
from ..scan.rows import LAYOUTS, Rows, SortedEvents
from ..scan.tokens import Texts, distinct_codes

Ints = NDArray[Any]
Mask = NDArray[np.bool_]

MOST_PROCESSES = 256
"""In a file. An event may be compared with each of them, so that this limits the work for an event."""

ALL = -2
"""The owner of what every process has: the name of a GPU that several use."""

_END = "Record Window End"
_ON_HOST = ("host_events", "launches", "memory", "python_calls")
_PLACED = tuple(name for name, layout in LAYOUTS.items() if "pid" in layout.codes)
_LABEL = regex(r"\[([^\[\]]{1,64})\] (.*)", re.DOTALL)
_LEAST_SHARE = 0.05  # of the likeliest process' matches: fewer are launches from before the recording
_BACKWARD_COST = 10  # how much less likely work is so long before a launch than behind it
_LATEST_NS = 2**61
_FAR_NS = 10**10  # the distance of a kernel from a process without its launch


def label_of(pid: str) -> tuple[str, str]:
    """(the label in front of a pid, the pid), as SGLang's merger writes them: `[TP00] 4711`."""
    match = _LABEL.fullmatch(pid)
    return (match[1], match[2]) if match else ("", pid)


@dataclass(frozen=True)
class Owners:
    """The processes of a file, in its order, and the events that each has.

    Args:
        pids: Their numbers as the file has them; two may have the same.
        of_rows: For each frame and event the index of its process, or ALL.
        is_appended: Whether the file has them one after the other, so that its metadata are those of the first.
    """

    pids: Sequence[str]
    of_rows: Mapping[str, Ints]
    is_appended: bool

    @classmethod
    def of(cls, events: SortedEvents, pids: Sequence[str], of_rows: Mapping[str, Ints], *, is_appended: bool) -> Owners:
        """The same, where `of_rows` lacks the frame that has no pids: its rows belong to other events."""
        at, owner = (
            np.concatenate([column[name] for name in ("host_events", "device_events")])
            for column in ({name: _offset(rows) for name, rows in events.frames.items()}, of_rows)
        )
        order = np.argsort(at)
        offset = _offset(events.frames["collectives"])
        row = order[np.searchsorted(at[order], offset)] if at.size else np.empty(0, np.int64)
        return cls(pids, {**of_rows, "collectives": owner[row]}, is_appended)

    def has_work(self, nth: int) -> bool:
        """Whether a process used a device."""
        return bool((self.of_rows["device_events"] == nth).any())


def owners_of(events: SortedEvents, texts: Texts, path: str) -> Owners | None:
    """The processes of a file; None if it holds at most one.

    Raises:
        TraceError: They are more than MOST_PROCESSES.
    """
    ends = _ends_of_sections(events.frames["others"], texts)
    on_host = {
        code for name in ("host_events", "launches") for code in distinct_codes(events.frames[name]["pid"], len(texts))
    }
    if len({texts[code] for code in on_host}) < 2 and len(ends) < 2:
        return None
    frame, mask = _operators(events)
    rows = events.frames[frame]
    pid, offset = rows["pid"][mask], _offset(rows)[mask]
    number_of: dict[str, int] = {}
    pid_number = text_places(pid, texts, number_of)
    section = np.searchsorted(ends, offset)
    if (section == len(ends)).any():  # these marks don't end the sections
        section = np.zeros_like(section)
    keys = _keys(pid_number, section, offset)
    if len(keys) > MOST_PROCESSES:
        advice = f"Merge at most {MOST_PROCESSES} into a file, or open the files that were merged."
        raise TraceError(path, f"operators of {len(keys)} processes are in this file. {advice}")
    if len(keys) < 2:
        return None
    return _Assignment(events, texts, number_of, ends, keys).owners()


def _operators(events: SortedEvents) -> tuple[str, Mask]:
    """The frame and the rows that make a process one of the file's."""
    is_operator = events.frames["host_events"]["kind"] == Kind.OPERATOR
    if is_operator.any():
        return "host_events", is_operator
    correlations = events.frames["device_events"]["correlation"]
    return "launches", np.isin(events.frames["launches"]["correlation"], correlations[correlations > 0])


def _ends_of_sections(others: Rows, texts: Texts) -> Ints:
    codes = [code for code in distinct_codes(others["name"], len(texts)) if texts[code] == _END]
    return np.sort(others["offset"][np.isin(others["name"], codes)].astype(np.int64))


def _keys(pid_number: Ints, section: Ints, offset: Ints) -> list[tuple[int, int]]:
    """(the place of its number, its section) of each process, in the order of the file; NONE if it has only one.

    A single operator is none: its number may be damaged.
    """
    width = int(section.max(initial=0)) + 1
    codes, first, count = np.unique(pid_number * np.int64(width) + section, return_index=True, return_counts=True)
    at, nth = np.divmod(codes, width)
    nth[np.bincount(at)[at] == 1] = NONE
    several = np.flatnonzero(count > 1)
    in_order = several[np.argsort(offset[first[several]], kind="stable")]
    return list(zip(at[in_order].tolist(), nth[in_order].tolist(), strict=True))


def _offset(rows: Rows) -> Ints:
    return rows["offset"].astype(np.int64)


class _Assignment:
    """Finds the process of each event.

    Args:
        events: The events.
        texts: Of their codes.
        places: A place for each pid.
        ends: Where sections end.
        keys: (place, section) of each process.
    """

    def __init__(
        self, events: SortedEvents, texts: Texts, number_of: dict[str, int], ends: Ints, keys: list[tuple[int, int]]
    ) -> None:
        self._events, self._frames, self._ends, self._keys = events, events.frames, ends, keys
        self._place = {name: text_places(self._frames[name]["pid"], texts, number_of) for name in _PLACED}
        self._pids = list(number_of)
        self._own = {name: self._by_number(name) for name in _PLACED}
        self._labels = self._by_label()

    def owners(self) -> Owners:
        """The processes, and which events each has."""
        starts = self._starts()
        of_rows = {} if starts is None else {name: self._by_section(name, starts) for name in _PLACED}
        is_appended = bool(of_rows) and self._is_launched_by(of_rows["device_events"])
        if not is_appended:
            of_rows = self._by_links()
        pids = [self._pids[number] for number, _ in self._keys]
        return Owners.of(self._events, pids, of_rows, is_appended=is_appended)

    def _offset(self, frame: str) -> Ints:
        return _offset(self._frames[frame])

    def _by_number(self, frame: str) -> Ints:
        """The process whose number an event has, else NONE."""
        pid_number, offset = self._place[frame], self._offset(frame)
        keys = np.array(self._keys, np.int64)
        owner_of = np.full(len(self._pids), NONE, np.int32)
        whole = np.flatnonzero(keys[:, 1] == NONE)
        owner_of[keys[whole, 0]] = whole
        owner: Ints = owner_of[pid_number]
        if (
            whole.size == len(keys) or offset.size != pid_number.size
        ):  # other formats have names outside of their events
            return owner
        width = len(self._ends) + 1
        codes = np.where(keys[:, 1] == NONE, NONE, keys[:, 0] * width + keys[:, 1])
        order = np.argsort(codes)
        code = pid_number * np.int64(width) + np.searchsorted(self._ends, offset)
        index = order[np.minimum(np.searchsorted(codes[order], code), order.size - 1)]
        return np.where(codes[index] == code, index, owner).astype(np.int32)

    def _by_label(self) -> Ints:
        """For each pid the only process with the same label, else NONE."""
        labels = [label_of(self._pids[number])[0] for number, _ in self._keys]
        owner_of = {label: nth for nth, label in enumerate(labels) if label and labels.count(label) == 1}
        return np.array([owner_of.get(label_of(pid)[0], NONE) for pid in self._pids], np.int32)

    def _starts(self) -> Ints | None:
        """Where the section of each process begins; None if their events alternate."""
        first, last = np.full(len(self._keys), np.iinfo(np.int64).max), np.full(len(self._keys), -1)
        for name in _ON_HOST:
            owner, offset = self._own[name], self._offset(name)
            np.minimum.at(first, owner[owner >= 0], offset[owner >= 0])
            np.maximum.at(last, owner[owner >= 0], offset[owner >= 0])
        if (first[1:] <= last[:-1]).any():
            return None
        between = (self._start_between(n, int(last[n - 1]), int(first[n])) for n in range(1, len(self._keys)))
        return np.array([0, *between])

    def _start_between(self, nth: int, after: int, before: int) -> int:
        """Where a section begins: behind the mark of the one before, at the latest with its first certain event."""
        ends = self._ends[(self._ends > after) & (self._ends < before)]
        if ends.size:
            return int(ends[-1]) + 1
        start = before
        for name in _PLACED:
            offset = self._offset(name)
            if offset.size != self._place[name].size:
                continue
            is_sure = (self._own[name] == nth) | (self._labels[self._place[name]] == nth)
            sure = offset[is_sure & (offset > after) & (offset < before)]
            start = min(start, int(sure.min(initial=before)))
        return start

    def _by_section(self, frame: str, starts: Ints) -> Ints:
        own, offset = self._own[frame], self._offset(frame)
        if offset.size != own.size:  # names that other formats have outside of their events
            return np.where(own < 0, ALL, own)
        return np.where(own < 0, np.searchsorted(starts, offset, side="right") - 1, own)

    def _is_launched_by(self, owner: Ints) -> bool:
        """Whether the launches of device work belong to the process that has the work, as far as they are there."""
        is_known, is_own = np.zeros(owner.size, bool), np.zeros(owner.size, bool)
        for index, distance in self._distances(np.arange(owner.size)):
            is_near = distance < _FAR_NS
            is_known |= is_near
            is_own |= is_near & (owner == index)
        return bool((is_known & ~is_own).sum() <= _LEAST_SHARE * is_known.sum())

    def _by_links(self) -> dict[str, Ints]:
        """The process of each event, from the launches that device work continues, where events alternate."""
        of_rows = {name: self._own[name].copy() for name in _PLACED}
        of_pid = self._labels.copy()
        self._assign_work(of_pid, of_rows["device_events"])
        for name in _PLACED:
            owner = of_rows[name]
            is_open = owner < 0
            owner[is_open] = of_pid[self._place[name][is_open]]
        self._assign_rest(of_rows)
        return of_rows

    def _assign_work(self, of_pid: Ints, owner: Ints) -> None:
        """Assign each GPU to the process whose launches its work continues; if several use it, each work to its own.

        Args:
            of_pid: The process of each number, which is set for GPUs of one process.
            owner: The process of each work, which is set for GPUs of several.
        """
        pid_number = self._place["device_events"]
        rows = np.flatnonzero((owner < 0) & (of_pid[pid_number] == NONE))
        nearest, candidates = np.zeros(rows.size, np.int32), np.zeros(rows.size, np.int32)
        least = np.full(rows.size, _FAR_NS)
        for index, distance in self._distances(rows):
            nearest[distance < least] = index
            candidates += distance < _FAR_NS
            np.minimum(least, distance, out=least)
        of_work, first = group_rows(pid_number[rows])
        for work in np.split(of_work, first[1:]) if rows.size else []:
            alone = np.bincount(nearest[work[candidates[work] == 1]], minlength=1)
            likely = np.flatnonzero(alone > _LEAST_SHARE * alone.max())
            if likely.size > 1:
                owner[rows[work]] = nearest[work]
            else:
                of_pid[pid_number[rows[work[0]]]] = likely[0] if likely.size else np.bincount(nearest[work]).argmax()

    def _distances(self, rows: Ints) -> Iterator[tuple[int, Ints]]:
        """For each process how long each work begins after the launch with its correlation; _FAR_NS without one."""
        work, launches = self._frames["device_events"], self._frames["launches"]
        correlation, ts = work["correlation"][rows].astype(np.int64), work["ts"][rows]
        of_process, first = group_rows(self._own["launches"] + 1)  # those of no process are the first, if there are any
        for mine in np.split(of_process, first[1:]) if of_process.size else []:
            index = int(self._own["launches"][mine[0]])
            if index < 0:
                continue
            row = rows_by_id(launches["correlation"][mine].astype(np.int64), np.where(correlation, correlation, NONE))
            after = ts - launches["ts"][mine][row]
            is_launched = (row >= 0) & (np.abs(after) < _FAR_NS // _BACKWARD_COST)
            yield index, np.where(is_launched, np.where(after < 0, -_BACKWARD_COST * after, after), _FAR_NS)

    def _assign_rest(self, of_rows: dict[str, Ints]) -> None:
        """Assign what is left: arrows' ends to their work, others by time or to the process of the event before."""
        work = _places_in_time(self._frames["device_events"], self._place["device_events"])
        owner_of = dict(zip(work, of_rows["device_events"].tolist(), strict=True))
        for name in ("flows", "syncs"):
            rows = np.flatnonzero(of_rows[name] < 0)
            at = _places_in_time(self._frames[name], self._place[name], rows)
            of_rows[name][rows] = [owner_of.get(key, NONE) for key in at]
        rows = np.flatnonzero(of_rows["others"] < 0)
        of_rows["others"][rows] = self._by_extent(rows)
        names = [name for name in _PLACED if self._offset(name).size == of_rows[name].size]
        offset, owner = (np.concatenate(c) for c in zip(*((self._offset(n), of_rows[n]) for n in names), strict=True))
        certain = np.flatnonzero(owner >= 0)[np.argsort(offset[owner >= 0])]
        for name in _PLACED:
            rows = np.flatnonzero(of_rows[name] < 0)
            if name not in names or name == "names":
                of_rows[name][rows] = ALL
                continue
            before = np.searchsorted(offset[certain], self._offset(name)[rows], side="right") - 1
            of_rows[name][rows] = owner[certain[np.maximum(before, 0)]]

    def _by_extent(self, rows: Ints) -> Ints:
        """The process that began and ended when some other events did."""
        others = self._frames["others"]
        begin, end = np.full(len(self._keys), _LATEST_NS), np.full(len(self._keys), -_LATEST_NS)
        for name in ("host_events", "launches"):
            frame, owner = self._frames[name], self._own[name]
            mine = owner >= 0
            np.minimum.at(begin, owner[mine], frame["ts"][mine])
            np.maximum.at(end, owner[mine], frame["ts"][mine] + np.maximum(frame["dur"][mine].astype(np.int64), 0))
        start, dur = others["ts"][rows], np.maximum(others["dur"][rows].astype(np.int64), 0)
        nearest, least = np.zeros(rows.size, np.int32), np.full(rows.size, np.iinfo(np.int64).max)
        for index in range(len(self._keys)):
            from_begin, from_end = np.abs(start - begin[index]), np.abs(start + dur - end[index])
            distance = np.where(dur > 0, from_begin // 2 + from_end // 2, np.minimum(from_begin, from_end))
            nearest[distance < least] = index
            np.minimum(least, distance, out=least)
        return nearest


def _places_in_time(rows: Rows, pid_number: Ints, subset: Ints | None = None) -> list[tuple[int, int, int]]:
    """(pid, tid, time) of some events."""
    at = np.arange(pid_number.size) if subset is None else subset
    columns = (pid_number[at].tolist(), rows["tid"][at].tolist(), rows["ts"][at].tolist())
    return list(zip(*columns, strict=True))
