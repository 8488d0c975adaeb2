"""The calls behind a row of a view on each rank of a span: how many, how long, and which rank is slowest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from ...names.text import digits, enumeration, time
from ...trace import Trace
from ...trace.row_filters import Events

MOST_LISTED = 10  # ranks; of more the slowest, the median and the fastest
_ALIKE = 1.03  # slowest / median: less isn't worth a name
_MOST_NAMED = 4


@dataclass(frozen=True)
class RankCalls:
    """The calls of one rank.

    Args:
        worker: The worker that recorded it.
        label: What the page calls it.
        find: The row's key on this rank.
        calls: How many.
        total_ns: Sum of their durations.
        waits: Whether most of that time is communication, which includes waiting for other ranks.
    """

    worker: str
    label: str
    find: Mapping[str, Any]
    calls: int
    total_ns: int
    waits: bool

    @classmethod
    def of(cls, trace: Trace, worker: str, find: Mapping[str, Any], events: Events) -> RankCalls:
        """The calls of one rank: events of its trace."""
        calls = total = communication = 0
        for frame, rows in events.items():
            table, unique = getattr(trace, frame), np.unique(rows[rows >= 0])
            durations = np.maximum(table["dur_ns"].to_numpy()[unique], 0)
            calls += unique.size
            total += int(durations.sum())
            if "is_communication" in table.columns:
                communication += int(durations[table["is_communication"].to_numpy()[unique]].sum())
        label = worker if trace.meta.rank is None else f"rank {trace.meta.rank}"
        return cls(worker, label, find, calls, total, 2 * communication > total)

    def describe(self) -> dict[str, Any]:
        """As JSON values, in the form of the row's other shares."""
        amounts = {"calls": self.calls, "total_ns": self.total_ns}
        where = {"worker": self.worker, "find": self.find}
        return {"kind": "rank", "text": self.label, **amounts, "stack": None, "instances": None, **where}


def only_device(trace: Trace) -> int | None:
    """The index of the device that a trace is about; None if there are several, or none."""
    devices = trace.device_events["device"].unique()
    return int(devices[0]) if devices.len() == 1 else None


def key_on(trace: Trace, find: Mapping[str, Any], device: int | None) -> dict[str, Any]:
    """The same row on another rank: if each of both has one device, on the other's device.

    Args:
        trace: The trace of the other rank.
        find: The row's view and key.
        device: The only device of the rank that the key is of.
    """
    own = only_device(trace)
    is_moved = device is not None and own is not None and find.get("device") == device
    return {**find, "device": own} if is_moved else dict(find)


def compare_ranks(ranks: Sequence[RankCalls], unread: int) -> dict[str, Any]:
    """A sentence about the ranks, and the ranks with calls, the slowest first.

    Args:
        ranks: The ranks that were read.
        unread: How many others there are.
    """
    callers = sorted((rank for rank in ranks if rank.calls), key=lambda rank: -rank.total_ns)
    absent = [rank.label for rank in ranks if not rank.calls]
    sentences = [_slowest(callers)] if callers else []
    if absent and callers:
        few = len(absent) <= _MOST_NAMED
        sentences.append(f"Not on {enumeration(absent)}." if few else f"Not on {len(absent)} of {len(ranks)} ranks.")
    if unread:
        more = "1 more rank is not read: its trace is" if unread == 1 else f"{unread} more ranks are not read: they are"
        sentences.append(f"{more} large.")
    examples = callers
    if len(callers) > MOST_LISTED:
        slowest = MOST_LISTED - 2
        examples = [
            *callers[:slowest],
            callers[max(slowest, len(callers) // 2)],
            callers[-1],
        ]
    return {"text": " ".join(sentences), "ranks": [rank.describe() for rank in examples]}


def _slowest(callers: Sequence[RankCalls]) -> str:
    slowest, usual = callers[0], median(rank.total_ns for rank in callers)
    if len(callers) == 1:
        return f"Only on {slowest.label}."
    if slowest.total_ns <= _ALIKE * usual:
        return f"{len(callers)} ranks take about the same time: {time(usual)}."
    than = f"the median of {len(callers)} ranks"
    if len(callers) == 2:
        usual, than = callers[1].total_ns, f"that of {callers[1].label}"
    factor = digits(slowest.total_ns / usual) if usual else "many"
    name = slowest.label[:1].upper() + slowest.label[1:]
    remark = " Time in communication includes waiting for other ranks." if slowest.waits else ""
    return f"{name} takes longest: {time(slowest.total_ns)}, {factor} × {than}.{remark}"
