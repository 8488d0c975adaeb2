"""The step times of all ranks in their last minutes, on one clock."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kinetoscope.output.ring import LastMinutes

from ..names.text import visible
from .hangs.titles import ranks_title
from .last_minutes import open_markers

_MINUTES_NS = 600_000_000_000
_MOST_BINS = 300
_MOST_RANKS, _MOST_MARKS = 8, 2
Step = tuple[int, int, int]


@dataclass(frozen=True)
class StepCurves:
    """Curves of step times; each value holds until the next time.

    Args:
        begin_ns: The first time, in ns since 1970.
        times_ns: Since then, ascending.
        curves: By name the values at these times: of up to eight ranks the slowest step of each around then, of more
            ranks the fastest, the median and the slowest one; None where no step had ended.
        marks: Which ranges of the program began around each time, with their ranks, such as a checkpoint; else None.
    """

    begin_ns: int
    times_ns: tuple[int, ...]
    curves: Mapping[str, tuple[int | None, ...]]
    marks: tuple[str | None, ...] = ()


def step_curves(minutes: Mapping[int, LastMinutes]) -> StepCurves | None:
    """The curves of the last ten minutes that all ranks together have; None without a step."""
    steps = {rank: last.steps for rank, last in sorted(minutes.items()) if last.steps}
    if not steps:
        return None
    end_ns = max(of_rank[-1][2] for of_rank in steps.values())
    begin_ns = max(end_ns - _MINUTES_NS, min(of_rank[0][1] for of_rank in steps.values()))
    bin_ns = max(1, -(-(end_ns - begin_ns) // _MOST_BINS))
    count = max(0, end_ns - begin_ns) // bin_ns + 1
    by_rank = {rank: _slowest_in_bins(of_rank, begin_ns, bin_ns, count) for rank, of_rank in steps.items()}
    curves = {f"rank {rank}": tuple(bins) for rank, bins in by_rank.items()}
    times_ns = tuple(nth * bin_ns for nth in range(count))
    curves_to_show = curves if len(curves) <= _MOST_RANKS else _spread([*by_rank.values()])
    return StepCurves(begin_ns, times_ns, curves_to_show, _marks_in_bins(minutes, begin_ns, bin_ns, count))


def _marks_in_bins(
    minutes: Mapping[int, LastMinutes], begin_ns: int, bin_ns: int, count: int
) -> tuple[str | None, ...]:
    """What began in each bin, or is open since before: a range of the same name on several ranks is one."""
    ranks: dict[int, dict[str, set[int]]] = {}
    open_names = {visible(name) for last in minutes.values() for name in open_markers(last)}
    for rank, last in minutes.items():
        for start_ns, seen_ns, name in last.markers:
            nth = max(0, start_ns - begin_ns) // bin_ns
            if nth < count and seen_ns >= begin_ns:
                ranks.setdefault(nth, {}).setdefault(visible(name), set()).add(rank)
    texts = {
        nth: [f"{name}{' (open)' * (name in open_names)} on {ranks_title(sorted(of))}:" for name, of in names.items()]
        for nth, names in ranks.items()
    }
    return tuple("; ".join(texts[nth][:_MOST_MARKS]) if nth in texts else None for nth in range(count))


def _slowest_in_bins(steps: Sequence[Step], begin_ns: int, bin_ns: int, count: int) -> list[int | None]:
    bins: list[int | None] = [None] * count
    for _, start_ns, end_ns in steps:
        if end_ns < begin_ns or end_ns < start_ns:
            continue
        first, last = max(0, start_ns - begin_ns) // bin_ns, (end_ns - begin_ns) // bin_ns
        for nth in range(first, min(last, count - 1) + 1):
            bins[nth] = max(bins[nth] or 0, end_ns - start_ns)
    return bins


def _spread(ranks: Sequence[Sequence[int | None]]) -> dict[str, tuple[int | None, ...]]:
    at_times = [[value for value in at_time if value is not None] for at_time in zip(*ranks, strict=True)]
    return {
        "slowest": tuple(max(values, default=None) for values in at_times),
        "median": tuple(statistics.median_low(values) if values else None for values in at_times),
        "fastest": tuple(min(values, default=None) for values in at_times),
    }
