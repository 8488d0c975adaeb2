"""Statistics of counters within a range of time."""

from __future__ import annotations

import numpy as np

from ..counters.counters import Counter

Statistics = dict[str, float | None]


def counter_values(counter: Counter, from_ns: int, to_ns: int) -> Statistics:
    """The counter from `from_ns` up to, not including, `to_ns`: its mean over time, its least, most, first and last.

    Each is None where the counter has no value in that time. A time without a value doesn't count.
    """
    at, value = counter.curve
    begin, end = max(from_ns, int(at[0])), min(to_ns, counter.end)
    first, stop = max(int(np.searchsorted(at, begin, "right")) - 1, 0), int(np.searchsorted(at, end))
    values = value[first:stop]
    edges = np.append(np.maximum(at[first:stop], begin), end)
    lasts = np.diff(edges)
    holds = (lasts > 0) & np.isfinite(values)
    if end <= begin or not holds.any():
        return dict.fromkeys(("mean", "least", "most", "first", "last"))
    values, lasts = values[holds], lasts[holds]
    least, most = float(values.min()), float(values.max())
    with np.errstate(over="ignore"):  # rounding may pass the largest double; the limits below hold
        mean = float((values * (lasts / lasts.sum())).sum())
    return {
        "mean": min(max(mean, least), most),
        "least": least,
        "most": most,
        "first": float(values[0]),
        "last": float(values[-1]),
    }
