"""Slow, obvious re-implementations of what the package computes fast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Interval = tuple[int, int]


def first_active(groups: Sequence[Sequence[Interval]], window: Interval) -> list[int]:
    """For each group how many instants of the window it is the first active one at; last, the instants of none."""
    counts = [0] * (len(groups) + 1)
    for t in range(*window):
        active = (i for i, group in enumerate(groups) if any(start <= t < end for start, end in group))
        counts[next(active, len(groups))] += 1
    return counts


def parents(ranges: Sequence[Interval]) -> list[int]:
    """For each range of one thread, in order of start and longest first, the shortest earlier one that holds it, or -1.

    Holds: it ends after the range begins, and no earlier than the range ends.
    """
    rows = []
    for i, (start, end) in enumerate(ranges):
        around = [j for j in range(i) if ranges[j][1] > start and ranges[j][1] >= end]
        rows.append(around[-1] if around else -1)
    return rows


def busy(ranges: Sequence[Interval]) -> int:
    """At how many instants any range is open."""
    return len({t for start, end in ranges for t in range(start, end)})


def lifetimes(records: Sequence[tuple[int, int, int, int, int]]) -> list[tuple[str, int, int, int]]:
    """Each piece of memory as (fate, size, when it was taken, when it was gone) from records in the order of the truth.

    A record is (time, thread, address, change, total); -1 is an end that wasn't recorded.
    """
    held: dict[int, tuple[int, int]] = {}
    rows = []
    for at, _, address, change, _ in records:
        before = held.pop(address, None)
        if change > 0:
            if before:
                rows.append(("address reused", before[1], before[0], at))
            held[address] = (at, change)
        elif before:
            rows.append(("released", before[1], before[0], at))
        else:
            rows.append(("allocated earlier", -change, -1, at))
    return [*rows, *(("never released", size, at, -1) for at, size in held.values())]


def memory_by_operator(trace: Any, from_ns: int | None, to_ns: int | None) -> list[tuple[Any, ...]]:
    """Rows of the view without its calls: each record counts for its operator, and once for each call around it.

    A repetition is no call: what is in it counts for the call that it repeats.
    """
    host, found = trace.host_events.rows(named=True), {}
    for record in trace.memory.rows(named=True):
        if (from_ns is not None and record["start_ns"] < from_ns) or (
            to_ns is not None and record["start_ns"] >= to_ns
        ):
            continue
        device = "cpu" if record["device_type"] == 0 else f"cuda:{max(record['device'], 0)}"
        around, row = [], record["op"]
        while row >= 0:
            if host[row]["kind"] == "operator" and not host[row]["is_repeat"]:
                around.append(host[row]["name"])
            row = host[row]["parent"]
        amounts = record["bytes"], int(record["bytes"] > 0), max(record["bytes"], 0)
        for place, name in enumerate(around or ["[no operator]"]):
            sums = found.setdefault((device, name), [0] * 6)
            for i, amount in enumerate(amounts):
                sums[2 * i] += amount
                sums[2 * i + 1] += amount if place == 0 else 0
    return [(*key, *sums) for key, sums in found.items() if any(sums)]


def launch_outcome(call: Interval, first: Interval, before: Sequence[Interval]) -> tuple[int, bool]:
    """The delay of a call whose work begins with `first`, and whether the stream's work before that had ended."""
    return max(first[0] - call[1], 0), all(end <= call[1] for _, end in before)


def bin_of(duration: int) -> Interval:
    """From when to when the histogram's bin of a duration goes."""
    edges = [0]
    power = 100
    while True:
        for edge in (power, 2 * power, 5 * power):
            if duration < edge:
                return edges[-1], edge
            edges.append(edge)
        power *= 10
