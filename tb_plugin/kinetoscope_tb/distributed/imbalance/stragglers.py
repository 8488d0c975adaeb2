"""Which ranks are slow, beyond what noise explains, and which wait for them.

The measure is a rank's own time in a step: the step without the exposed time in which it waited for others. In
synchronous training all steps are as long as that of the slowest rank, and the slowest waits least. A rank that waits
for a slow one in one group and so comes late to the next isn't slow: its own time is like that of the others.

In each step, a rank's excess is its own time minus the median of the other ranks' own times. Its typical excess is the
mean over the steps without outliers. It is a straggler if that exceeds the threshold, the largest of

* 2 % of the average step: less isn't worth a search;
* what noise reaches on any rank in one of a hundred runs: the spread from step to step, as the standard error of a
  mean, times Student's quantile for the degrees of freedom of that spread;
* the same quantile times the spread of the typical excesses over the ranks, from FEW_RANKS ranks on: some ranks are
  always a bit slower than others.

The spread is that of the other ranks, since a rank that is late in some steps only varies most itself: of their
excesses among themselves. Two ranks have a single other one. Its own times vary with the work of a step too, which both
share; then the spread of the excess is smaller, and counts. Outliers never count (`spread_without_outliers`).

A rank is slow in a step if its excess there exceeds what noise reaches in any step of any rank, and 5 % of the step; a
straggler, which noise doesn't explain, if it exceeds 5 % of the step or half of its typical excess.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from .statistics import EFFICIENCY, SPREAD, mean_without_outliers, quantile, spread_without_outliers
from .step_times import PARTS, own_parts

Floats = NDArray[np.float64]

FALSE_ALARMS = 0.01  # share of runs in which noise alone may name a rank
LEAST_FRAC, LEAST_ONCE_FRAC = 0.02, 0.05
FEW_RANKS = 8
FEWEST_STEPS = 3
_WORK = ("launches", "threads", "elements", "copied_bytes")
CAUSES = dict(
    zip(
        PARTS,
        ("computation", "moving data", "copies", "data loading", "garbage collection", "the host"),
        strict=True,
    )
)

VERDICTS: dict[str, Any] = {
    "member": pl.Int32,
    "ranks": pl.Int64,  # that are compared
    "steps": pl.Int64,
    "without_waiting_ns": pl.Int64,  # mean over the steps
    "others_ns": pl.Int64,  # the median of that of the other ranks
    "wait_ns": pl.Int64,
    "excess_ns": pl.Int64,  # typical; negative: faster than the others
    "slow_steps": pl.Int64,  # in which it is slow
    "threshold_ns": pl.Int64,
    "cost_ns": pl.Int64,  # mean time beyond the slowest rank that isn't slow then
    "verdict": pl.String,
    "cause": pl.String,
    "part_ns": pl.Int64,  # the cause's part of the excess
    "late_steps": pl.List(pl.String),  # the names of the slow steps
    "late_own_ns": pl.Int64,  # median over the slow steps, of the own time and of the excess; null: none is slow
    "late_excess_ns": pl.Int64,
    "launches_frac": pl.Float64,  # kernels or operators in the slow steps / those of the others; null: unknown
    "threads_frac": pl.Float64,  # likewise of the threads of the kernels
    "elements_frac": pl.Float64,  # the same of the elements of their inputs
    "copied_bytes_frac": pl.Float64,  # the same of what is copied between host and device
    "pageable_ns": pl.Int64,  # how much longer copies to or from pageable memory take in the slow steps
}


@dataclass(frozen=True)
class _Matrix:
    """Own times [rank, step]; NaN where a rank has no such step."""

    members: list[int]
    steps: list[str]
    own: Floats
    wait: Floats
    total: Floats
    parts: dict[str, Floats]
    work: dict[str, Floats]
    pageable: Floats


def verdicts(rows: pl.DataFrame) -> pl.DataFrame:
    """The frame VERDICTS of ranks' step rows; empty without two comparable ranks, three steps, and a rank with two.

    Traces of several places are judged together: their steps are more steps of the same workers. `member` is the
    worker's first trace. Stages of a pipeline do different work: each rank is compared with those of its own stage.
    """
    return pl.concat([pl.DataFrame(schema=VERDICTS), *(_of_stage(part) for _, part in rows.group_by("stage"))])


def late_ranks(judgments: pl.DataFrame, step_ns: float) -> pl.DataFrame:
    """The rows of VERDICTS of ranks that others wait for, the most expensive first.

    Args:
        judgments: VERDICTS, maybe with more columns.
        step_ns: The average step: what a rank costs that is slow at times must be worth a search.
    """
    costs = pl.col("cost_ns") >= LEAST_FRAC * step_ns
    is_late = (pl.col("verdict") == "straggler") | ((pl.col("verdict") == "slow at times") & costs)
    return judgments.filter(is_late).sort("cost_ns", "excess_ns", descending=True)


def differences(rows: pl.DataFrame, member: int) -> dict[str, Any] | None:
    """`ranks` and the columns of VERDICTS from `cause` on for one rank, as if it was late in all its steps, if few.

    Args:
        rows: `step_rows`.
        member: The rank's trace.

    Returns:
        None where the rank has no step in common with others of its stage, or no wait is known.
    """
    stages = [part for _, part in rows.group_by("stage") if member in part["member"]]
    matrix = _matrix(pl.concat(stages)) if stages else None
    if matrix is None or member not in matrix.members or len(matrix.members) < 2:
        return None
    row = matrix.members.index(member)
    over = excess(matrix.own)
    is_late = ~np.isnan(over) & (np.arange(len(over)) == row)[:, None]
    of_rank = {name: values[row] for name, values in _in_late_steps(matrix, over, is_late).items()}
    return {"ranks": len(matrix.members), **of_rank}


def _of_stage(rows: pl.DataFrame) -> pl.DataFrame:
    matrix = _matrix(rows)
    if len(matrix.members) < 2 or matrix.own.shape[1] < FEWEST_STEPS:
        return pl.DataFrame(schema=VERDICTS)
    return _judge(matrix)


def _matrix(rows: pl.DataFrame) -> _Matrix:
    """Of the complete steps that two ranks have in common, with a known wait."""
    rows_with_wait = own_parts(rows.filter("is_complete"))
    first = rows_with_wait.group_by("worker").agg(first=pl.col("member").min())
    rows_with_wait = rows_with_wait.join(first, "worker").with_columns(
        column=pl.struct("place", "step").rank("dense") - 1
    )
    return _matrix_of(rows_with_wait.filter(pl.len().over("column") > 1))


def _matrix_of(rows: pl.DataFrame) -> _Matrix:
    members = sorted(set(rows["first"].to_list()))
    columns = sorted(set(rows["column"].to_list()))
    row = np.searchsorted(members, rows["first"].to_numpy())
    column = np.searchsorted(columns, rows["column"].to_numpy())

    def spread(name: str) -> Floats:
        values = np.full((len(members), len(columns)), np.nan)
        values[row, column] = rows[name].to_numpy()
        return values

    names = rows.unique("column").sort("column")["step"].to_list()
    own, wait, total = (spread(name) for name in ("without_waiting_ns", "wait_ns", "total_ns"))
    parts, work = ({name: spread(name) for name in columns} for columns in (PARTS, _WORK))
    return _Matrix(members, names, own, wait, total, parts, work, spread("pageable_ns"))


def excess(own: Floats) -> Floats:
    """[rank, step] minus the median of the other ranks in that step."""
    ranks = own.shape[0]
    order = np.sort(own, axis=0)  # NaN last
    count = np.sum(~np.isnan(own), axis=0)
    position = np.argsort(np.argsort(own, axis=0), axis=0)
    steps = np.arange(own.shape[1])[None, :]

    def without(nth: NDArray[np.int64]) -> Floats:
        """The nth smallest of the others."""
        value: Floats = order[np.minimum(nth + (position <= nth), ranks - 1), steps]
        return value

    others = np.maximum(count - 1, 1)[None, :] + np.zeros_like(position)
    median = (without((others - 1) // 2) + without(others // 2)) / 2
    return np.where(count[None, :] > 1, own - median, np.nan)


def _judge(matrix: _Matrix) -> pl.DataFrame:
    over = excess(matrix.own)
    typical = mean_without_outliers(over)
    steps = np.sum(~np.isnan(over), axis=1)
    step_ns = step_length(matrix.total)
    limit, step_limit = _thresholds(matrix.own, over, typical, step_ns)
    if not np.isfinite(limit).any():
        return pl.DataFrame(schema=VERDICTS)
    is_slow = (typical > limit) & (steps >= FEWEST_STEPS)
    least = np.minimum(LEAST_ONCE_FRAC * step_ns, typical / 2)
    is_late = over > np.where(is_slow, least, step_limit)[:, None]
    cost = _cost(matrix.own, is_late)
    mean, wait = np.nanmean(matrix.own, axis=1), np.nanmean(matrix.wait, axis=1)
    waits = is_late.any() & (wait > np.min(limit))
    verdict = np.select([is_slow, is_late.any(axis=1), waits], ["straggler", "slow at times", "waits"], "in step")
    return pl.DataFrame(
        {
            "member": matrix.members,
            "ranks": len(matrix.members),
            "steps": steps,
            "without_waiting_ns": mean.round().astype(np.int64),
            "others_ns": (mean - excess(mean[:, None])[:, 0]).round().astype(np.int64),
            "wait_ns": wait.round().astype(np.int64),
            "excess_ns": typical.round().astype(np.int64),
            "slow_steps": is_late.sum(axis=1),
            "threshold_ns": np.where(np.isfinite(limit), limit, np.nan).round(),
            "cost_ns": cost.round().astype(np.int64),
            "verdict": verdict.tolist(),
            **_in_late_steps(matrix, over, is_late),
        },
        schema=VERDICTS,
        strict=False,
    )


def step_length(total: Floats) -> float:
    """The average step of the rank with the longest; [rank, step].

    What delays a rank is in one of its steps and maybe in the next one of the others: the longest rank of each step
    would count it twice.
    """
    return float(np.max(np.nanmean(total, axis=1)))


def _cost(own: Floats, is_late: NDArray[np.bool_]) -> Floats:
    """Mean time of each rank beyond the slowest one that isn't slow in that step; of the only slow one if all are."""
    others = np.where(is_late & ~is_late.all(axis=0), np.nan, own)
    slowest = np.max(others, axis=0, initial=-np.inf, where=~np.isnan(others))
    counts = np.isfinite(own) & np.isfinite(slowest)
    beyond = np.where(counts, np.maximum(own - slowest, 0), 0)
    mean: Floats = beyond.sum(axis=1) / np.maximum(counts.sum(axis=1), 1)
    return mean


def _thresholds(own: Floats, over: Floats, typical: Floats, step_ns: float) -> tuple[Floats, Floats]:
    """(the typical excess, the excess of one step) of each rank that noise doesn't explain; infinite if unknown."""
    ranks, steps = over.shape
    among_ranks = 0.0
    if ranks >= FEW_RANKS:
        apart = SPREAD * float(np.median(np.abs(typical - np.median(typical))))
        among_ranks = quantile(FALSE_ALARMS / ranks, EFFICIENCY * ranks) * apart
    noise = np.full((2, ranks), np.inf)
    for rank in range(ranks):
        spreads = [(spread, freedom) for spread, freedom in _noise(own, over, rank) if freedom]
        tail = FALSE_ALARMS / ranks
        for spread, freedom in spreads:
            limits = quantile(tail, freedom) / np.sqrt(steps), quantile(tail / steps, freedom)
            noise[:, rank] = np.minimum(noise[:, rank], spread * np.array(limits))
    return (
        np.maximum(noise[0], max(LEAST_FRAC * step_ns, among_ranks)),
        np.maximum(noise[1], max(LEAST_ONCE_FRAC * step_ns, among_ranks)),
    )


def _noise(own: Floats, over: Floats, rank: int) -> list[tuple[float, float]]:
    """(standard deviation, degrees of freedom): by how much noise makes a rank's excess vary, as the others show it."""
    others = np.delete(own, rank, axis=0)
    if len(others) > 1:
        spread, freedom = spread_without_outliers(excess(others))
        return [(spread, freedom * (len(others) - 1) / len(others))]  # their excesses add up to about 0
    spread, freedom = spread_without_outliers(others)
    return [(spread * np.sqrt(2), freedom), spread_without_outliers(over[[rank]])]


def _in_late_steps(matrix: _Matrix, over: Floats, is_late: NDArray[np.bool_]) -> dict[str, list[Any]]:
    """The columns of VERDICTS about each rank's slow steps; the cause is the part with the largest excess in them."""
    over_of_parts = {name: excess(values) for name, values in matrix.parts.items()}
    own, beyond = _median_where(matrix.own, is_late), _median_where(over, is_late)
    parts = {name: _median_where(values, is_late) for name, values in over_of_parts.items()}
    most = [None if own[rank] is None else max(PARTS, key=lambda n: parts[n][rank] or 0) for rank in range(len(own))]
    work = {name: _median_where(_of_others(values), is_late) for name, values in matrix.work.items()}
    return {
        "cause": [name and CAUSES[name] for name in most],
        "part_ns": [name and parts[name][rank] for rank, name in enumerate(most)],
        "late_steps": [[matrix.steps[step] for step in np.flatnonzero(late)] for late in is_late],
        "late_own_ns": own,
        "late_excess_ns": beyond,
        **{f"{name}_frac": values for name, values in work.items()},
        "pageable_ns": _median_where(excess(matrix.pageable), is_late),
    }


def _median_where(values: Floats, where: NDArray[np.bool_]) -> list[float | None]:
    """The median of each row's chosen values; None if there is none."""
    rows = [row[mask & ~np.isnan(row)] for row, mask in zip(values, where, strict=True)]
    return [float(np.median(row)) if row.size else None for row in rows]


def _of_others(amounts: Floats) -> Floats:
    """[rank, step] divided by the median of the other ranks in that step; NaN where either is 0, which is unknown."""
    others = amounts - excess(amounts)
    ratio: Floats = np.divide(amounts, others, out=np.full(amounts.shape, np.nan), where=(others > 0) & (amounts > 0))
    return ratio
