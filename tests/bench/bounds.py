"""The lines of the benchmark: the median of some rounds with quartiles, its ratio to a bound, and the bounds missed."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence

MISSED: list[str] = []


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """The lower quartile, the median and the upper quartile; three times the same value if it is the only one."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    return low, middle, high


def line(name: str, values: Sequence[float], bound: float | None, unit: str, *, at_least: bool = False) -> str:
    """A line: quartiles, the ratio to the bound if there is one, and whether it is reached; if not, `report_missed` lists it."""
    low, middle, high = quartiles(values)
    if bound is None:
        return f"  {name:<34} {middle:7.3f} {unit} ({low:.3f} to {high:.3f})"
    ratio = middle / bound
    is_reached = ratio >= 1 if at_least else ratio <= 1
    text = (
        f"{name:<34} {middle:7.3f} {unit} ({low:.3f} to {high:.3f}), {ratio:.2f} × the bound"
        f" ({'at least' if at_least else 'at most'} {bound:g} {unit})"
    )
    if not is_reached:
        MISSED.append(text)
    return f"  {text}{'' if is_reached else ': NOT reached'}"


def report_missed() -> None:
    """Print the bounds that were missed since the program began."""
    print(f"\n{len(MISSED)} bounds missed" + (":" if MISSED else ""))
    for text in MISSED:
        print(f"  {text}")
    sys.stdout.flush()
