"""Which ranks are slow, beyond what noise explains, and which wait for them.

The measure is a rank's own time in a step: the step without the exposed time in which it waited for others. In
synchronous training all steps are as long as that of the slowest rank, and the slowest waits least. A rank that waits
for a slow one in one group and so comes late to the next isn't slow: its own time is like that of the others.

In each step, a rank's excess is its own time minus the median of the other ranks' own times. Its typical excess is the
median over the steps. It is a straggler if that exceeds the threshold, the largest of

* 2 % of the median step: less isn't worth a search;
* what noise reaches on any rank in one of a hundred runs: the spread of excesses from step to step (1.4826 × the median
  absolute change ÷ √2, which outliers don't affect; for few steps the standard deviation), as the standard error of a
  median, times Student's quantile for the degrees of freedom of that spread (37 % of those of a standard deviation if
  estimated by medians);
* the same quantile times the spread of the typical excesses over the ranks, from FEW_RANKS ranks on: some ranks are
  always a bit slower than others.

A single step of a rank is an outlier if its excess exceeds what noise reaches in any step of any rank, and 5 % of the
step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from .statistics import EFFICIENCY, OF_MEDIAN, SPREAD, quantile, spread_of
from .step_times import PARTS, own_parts

Floats = NDArray[np.float64]

FALSE_ALARMS = 0.01  # share of runs in which noise alone may name a rank
LEAST_FRAC, LEAST_ONCE_FRAC = 0.02, 0.05
FEW_RANKS = 8
FEWEST_STEPS = 3
CAUSES = dict(
    zip(
        PARTS,
        ("computation", "moving data", "copies", "data loading", "the host"),
        strict=True,
    )
)

VERDICTS = {
    "member": pl.Int32,
    "steps": pl.Int64,
    "without_waiting_ns": pl.Int64,  # median over the steps
    "wait_ns": pl.Int64,
    "excess_ns": pl.Int64,  # median; negative: faster than the others
    "slow_steps": pl.Int64,  # whose excess exceeds the threshold
    "threshold_ns": pl.Int64,
    "cost_ns": pl.Int64,  # mean time beyond the slowest rank that isn't a straggler
    "verdict": pl.String,
    "cause": pl.String,
    "part_ns": pl.Int64,  # the cause's part of the excess
}


@dataclass(frozen=True)
class _Matrix:
    """Own times [rank, step]; NaN where a rank has no such step."""

    members: list[int]
    own: Floats
    wait: Floats
    total: Floats
    parts: dict[str, Floats]


def verdicts(rows: pl.DataFrame) -> pl.DataFrame:
    """The frame VERDICTS of ranks' step rows; empty without two comparable ranks, three steps, and a rank with two.

    Traces of several places are judged together: their steps are more steps of the same workers. `member` is the
    worker's first trace.
    """
    rows_with_wait = own_parts(rows.filter("is_complete"))
    first = rows_with_wait.group_by("worker").agg(first=pl.col("member").min())
    rows_with_wait = rows_with_wait.join(first, "worker").with_columns(
        column=pl.struct("place", "step").rank("dense") - 1
    )
    shared = rows_with_wait.filter(pl.len().over("column") > 1)
    matrix = _matrix(shared)
    if len(matrix.members) < 2 or matrix.own.shape[1] < FEWEST_STEPS:
        return pl.DataFrame(schema=VERDICTS)
    return _judge(matrix)


def _matrix(rows: pl.DataFrame) -> _Matrix:
    members = sorted(set(rows["first"].to_list()))
    columns = sorted(set(rows["column"].to_list()))
    row = np.searchsorted(members, rows["first"].to_numpy())
    column = np.searchsorted(columns, rows["column"].to_numpy())

    def spread(name: str) -> Floats:
        values = np.full((len(members), len(columns)), np.nan)
        values[row, column] = rows[name].to_numpy()
        return values

    parts = {name: spread(name) for name in PARTS}
    return _Matrix(members, spread("without_waiting_ns"), spread("wait_ns"), spread("total_ns"), parts)


def excess(own: Floats) -> Floats:
    """[rank, step] minus the median of the other ranks in that step."""
    ranks = own.shape[0]
    order = np.sort(own, axis=0)  # NaN last
    count = np.sum(~np.isnan(own), axis=0)
    place = np.argsort(np.argsort(own, axis=0), axis=0)
    steps = np.arange(own.shape[1])[None, :]

    def without(nth: NDArray[np.int64]) -> Floats:
        """The nth smallest of the others."""
        picked: Floats = order[np.minimum(nth + (place <= nth), ranks - 1), steps]
        return picked

    others = np.maximum(count - 1, 1)[None, :] + np.zeros_like(place)
    median = (without((others - 1) // 2) + without(others // 2)) / 2
    return np.where(count[None, :] > 1, own - median, np.nan)


def _judge(matrix: _Matrix) -> pl.DataFrame:
    over = excess(matrix.own)
    spread, freedom = spread_of(over)
    if not freedom:
        return pl.DataFrame(schema=VERDICTS)
    typical = np.nanmedian(over, axis=1)
    steps = np.sum(~np.isnan(over), axis=1)
    least = float(np.nanmedian(matrix.total))
    named, alone = _thresholds(over, typical, least, spread, freedom)
    is_slow = (typical > named) & (steps >= FEWEST_STEPS)
    cost = _cost(matrix.own, is_slow)
    stands_out = (over > alone) & ~is_slow[:, None]
    wait = np.nanmedian(matrix.wait, axis=1)
    waits = bool(is_slow.any()) & ~is_slow & (wait > named)
    verdict = np.select([is_slow, stands_out.any(axis=1), waits], ["straggler", "slow at times", "waits"], "in step")
    cause, part = _causes(matrix, is_slow, stands_out)
    return pl.DataFrame(
        {
            "member": matrix.members,
            "steps": steps,
            "without_waiting_ns": np.nanmedian(matrix.own, axis=1).round().astype(np.int64),
            "wait_ns": wait.round().astype(np.int64),
            "excess_ns": typical.round().astype(np.int64),
            "slow_steps": np.where(is_slow, (over > named).sum(axis=1), stands_out.sum(axis=1)),
            "threshold_ns": np.full(steps.size, round(named)),
            "cost_ns": cost.round().astype(np.int64),
            "verdict": verdict.tolist(),
            "cause": cause,
            "part_ns": part,
        },
        schema=VERDICTS,
        strict=False,
    )


def _cost(own: Floats, is_slow: NDArray[np.bool_]) -> Floats:
    """Mean time of each rank beyond the slowest one that isn't slow, over the steps that such a rank has."""
    others = own if is_slow.all() else own[~is_slow]
    slowest = np.max(others, axis=0, initial=-np.inf, where=~np.isnan(others))
    counts = np.isfinite(own) & np.isfinite(slowest)
    beyond = np.where(counts, np.maximum(own - slowest, 0), 0)
    mean: Floats = beyond.sum(axis=1) / np.maximum(counts.sum(axis=1), 1)
    return mean


def _thresholds(over: Floats, typical: Floats, step_ns: float, spread: float, freedom: float) -> tuple[float, float]:
    """(the typical excess, the excess of one step) that noise doesn't explain; see `spread_of`."""
    ranks, steps = over.shape
    of_ranks = 0.0
    if ranks >= FEW_RANKS:
        of_ranks = SPREAD * float(np.median(np.abs(typical - np.median(typical))))
    t = quantile(FALSE_ALARMS / ranks, freedom)
    among_ranks = quantile(FALSE_ALARMS / ranks, EFFICIENCY * ranks) * of_ranks
    named = max(LEAST_FRAC * step_ns, t * OF_MEDIAN * spread / np.sqrt(steps), among_ranks)
    alone = max(LEAST_ONCE_FRAC * step_ns, quantile(FALSE_ALARMS / over.size, freedom) * spread, among_ranks)
    return named, alone


def _causes(
    matrix: _Matrix, is_slow: NDArray[np.bool_], stands_out: NDArray[np.bool_]
) -> tuple[list[str | None], list[int | None]]:
    """In the slow steps, the part of the own time with the largest excess, and that excess."""
    over = {name: excess(values) for name, values in matrix.parts.items()}
    causes: list[str | None] = []
    parts: list[int | None] = []
    for rank, (slow, once) in enumerate(zip(is_slow, stands_out, strict=True)):
        counted = np.ones_like(once) if slow else once
        if not counted.any():
            causes.append(None)
            parts.append(None)
            continue
        most = {name: float(np.nanmedian(values[rank][counted])) for name, values in over.items()}
        name = max(most, key=lambda part: most[part])
        causes.append(CAUSES[name])
        parts.append(round(most[name]))
    return causes, parts
