"""How the average step changed, as a sentence that says what is known before what isn't.

Outliers are the steps whose modified z-score exceeds 3.5 (B. Iglewicz and D. Hoaglin, How to Detect and Handle
Outliers, 1993): 0.6745 × the distance from the median ÷ the median absolute deviation; and that differ from the median
by at least 5 %, so that steps of almost equal length have none.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..measures.memory.snapshots import chosen_snapshots
from ..measures.recording.contents import has_snapshot_alone
from ..measures.time.step_subset import counted_steps, has_steps
from ..names import text
from ..trace import Trace
from .statistics import Spread, margin

Floats = NDArray[np.float64]

_MODIFIED_Z, _OF_NORMAL = 3.5, 0.6745
_LEAST_FRAC = 0.05
_MOST_DIGITS = 5  # of values that differ by little
MANIFOLD = 10  # a larger ratio is no percentage
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


def headline(base: Trace, new: Trace, why_uncertain: str, why_only_shares: str = "") -> str:
    """Such as: The average step: 177.6 → 141.1 ms, −20.6 %, not certain: 2 of 6 steps are outliers; median … ms.

    Args:
        base: The trace to compare with.
        new: The trace that may have changed.
        why_uncertain: In what the work of the sides differs; empty if in nothing known.
        why_only_shares: Why their times can't be compared; empty if they can.
    """
    if has_snapshot_alone(base) and has_snapshot_alone(new):
        return f"{_peaks(base, new)}{_losses(base, new)}"
    if has_snapshot_alone(base) or has_snapshot_alone(new):
        return "One side is a memory snapshot, the other a trace: they have nothing to compare."
    return f"{_of_traces(base, new, why_uncertain, why_only_shares)}{_losses(base, new)}"


def _of_traces(base: Trace, new: Trace, why_uncertain: str, why_only_shares: str) -> str:
    if why_only_shares:
        return f"Times can't be compared: {why_only_shares}. Shares and means per call can."
    before, after = lengths(base), lengths(new)
    what = "average step" if has_steps(base) else "whole recording"
    change = f"The {what}: {pair_of_times(before.mean(), after.mean())}, {growth_text(before.mean(), after.mean())}"
    if not has_steps(base):
        return f"{change}. Neither recording marks steps; they may hold different amounts of work."
    if why_uncertain:
        return f"{change}, not certain: {why_uncertain}."
    return f"{change}{_certainty(before, after)}"


def _losses(base: Trace, new: Trace) -> str:
    """What couldn't be read of the sides: a change may be what is missing."""
    return "".join(
        f" Data of the {side} recording is gone, so what changed may be what is missing: {loss.consequence}"
        for side, trace in (("base", base), ("new", new))
        for loss in [diagnostic for diagnostic in trace.diagnostics if diagnostic.level == "loss"][:1]
    )


def _peaks(base: Trace, new: Trace) -> str:
    """How the memory at the peaks of all devices of two memory snapshots changed."""
    before, after = (
        sum(snapshot.levels(snapshot.peak)[0] for snapshot in chosen_snapshots(trace, None)) for trace in (base, new)
    )
    sizes = f"{text.memory_size(before)} → {text.memory_size(after)}"
    return f"Allocated at the peak: {sizes}, {growth_text(before, after)}. Snapshots may cover different work."


def lengths(trace: Trace) -> Floats:
    """The lengths of the counted steps, in ns."""
    steps = trace.steps[counted_steps(trace)]
    return (steps["end_ns"] - steps["start_ns"]).to_numpy().astype(np.float64)


def outliers(steps: Floats) -> int:
    """The number of steps whose lengths are outliers."""
    median = np.median(steps)
    away = np.abs(steps - median)
    limit = max(_MODIFIED_Z / _OF_NORMAL * float(np.median(away)), _LEAST_FRAC * float(median))
    return int((away > limit).sum())


def _certainty(before: Floats, after: Floats) -> str:
    """The rest of the sentence: whether the variation between the steps explains the change, and what is typical."""
    change = np.array([after.mean() - before.mean()])
    limit = float(margin(Spread.of(before[None, :]), Spread.of(after[None, :]), change)[0])
    delta = abs(float(change[0]))
    median = f"median {pair_of_times(float(np.median(before)), float(np.median(after)))}"
    if np.isnan(limit):
        sides_of_one = [side for steps, side in ((before, "base"), (after, "new")) if steps.size < 2]
        sides = "both sides have" if len(sides_of_one) == 2 else f"the {sides_of_one[0]} side has"
        return f", not certain: {sides} only one complete step, so how much steps vary is unknown."
    if delta > limit:
        return f", more than the steps vary; a second recording of the same code may differ as much; {median}."
    if delta == 0:
        return "."
    odd = [(outliers(steps), steps.size, side) for steps, side in ((before, "base"), (after, "new"))]
    counts_by_side = [f"{count} of {size} {side} steps" for count, size, side in odd if count]
    single = sum(count for count, *_ in odd) == 1
    if counts_by_side:
        return (
            f", not certain: {' and '.join(counts_by_side)} {'is an outlier' if single else 'are outliers'}; {median}."
        )
    least = pair_of_times(limit)
    return f", not certain: with these steps a change below {least} can be chance; {median}."


def pair_of_times(*values: float) -> str:
    """Values in the unit of the largest, with more digits only where they differ by less: 178 → 141 ms."""
    largest = max(map(abs, values))
    size, unit = next((u for u in _UNITS if largest >= u[0]), _UNITS[-1])
    texts: list[str] = []
    for digits in range(text.DIGITS, _MOST_DIGITS + 1):
        texts = [text.few_digits(value / size, significant=digits) for value in values]
        if len(set(texts)) == len(set(values)):
            break
    return f"{' → '.join(texts)} {unit}"


def growth_text(base: float, new: float) -> str:
    """Such as −20.6 %, or ×12.3 where percents are hard to read."""
    if not base:
        return "from nothing"
    if new / base >= MANIFOLD:
        return f"×{text.few_digits(new / base, 1)}"
    growth = new / base - 1
    percent = text.few_digits(100 * abs(growth), 1)
    sign = "" if percent == "0" else "−" if growth < 0 else "+"
    return f"{sign}{percent} %"
