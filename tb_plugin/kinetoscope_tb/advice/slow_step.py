"""A step without a device that takes much longer than all others, and the operators that take longer in it.

The same work may take longer at first: libraries are loaded, kernels generated and memory taken at the first call.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..names import text
from .facts import Facts

_LONGER = 1.5  # times the longest other step
_MOST = 0.5  # of what the step takes longer
_PART = 0.2  # of that: an operator that is worth a name
_FEW = 3  # operators


class SlowOperators(NamedTuple):
    """What takes longer in some steps.

    Attributes:
        names: The operators, the one that takes longest first; none if many take a little longer each.
        numbers: How long each takes there, and in the median other step, in words.
    """

    names: tuple[str, ...]
    numbers: str

    @property
    def clause(self) -> str:
        """That most of the difference is in them, as the end of a sentence; empty without any."""
        return f", most of the difference in {text.listed([f'`{name}`' for name in self.names])}" if self.names else ""


def slow_step(facts: Facts) -> int | None:
    """The one counted step without a device that takes much longer than any other, if there is one."""
    if facts.has_device or facts.has_iterations or facts.count < 2:
        return None
    lengths = np.where(facts.counted, facts.length, 0)
    *_, second, longest = np.sort(lengths)
    return int(lengths.argmax()) if longest >= _LONGER * second else None


def slow_operators(facts: Facts, is_slow: NDArray[np.bool_]) -> SlowOperators:
    """The few operators that take most of what some steps take longer than the median other one.

    Args:
        facts: Of the trace.
        is_slow: For each step whether it is one of these.
    """
    others = facts.counted & ~is_slow
    host = facts.trace.host_events.filter(pl.col("kind") == "operator", pl.col("step") >= 0)
    sums = host.group_by("name", "step").agg(pl.col("self_ns").sum())
    by_name = (
        sums.with_columns(pl.col("name").cast(pl.String)).pivot("step", index="name", values="self_ns").sort("name")
    )
    steps = by_name.drop("name").fill_null(0)
    numbers = np.array(steps.columns, np.int64)
    times = steps.to_numpy().astype(np.float64).reshape(by_name.height, numbers.size)
    if not (is_slow[numbers].any() and others[numbers].any()):
        return SlowOperators((), "")
    there, elsewhere = times[:, is_slow[numbers]].mean(axis=1), np.median(times[:, others[numbers]], axis=1)
    more_ns = float(facts.length[is_slow].mean() - np.median(facts.length[others]))
    longer = there - elsewhere
    rows = [row for row in np.argsort(-longer, kind="stable")[:_FEW] if longer[row] >= _PART * more_ns]
    if longer[rows].sum() < _MOST * more_ns:
        return SlowOperators((), "")
    names = tuple(by_name["name"].gather(rows).to_list())
    sentences = [
        f"`{name}` takes {text.time(float(there[row]))} there, {text.time(float(elsewhere[row]))} elsewhere"
        for name, row in zip(names, rows, strict=True)
    ]
    return SlowOperators(names, "; ".join(sentences) + ".")
