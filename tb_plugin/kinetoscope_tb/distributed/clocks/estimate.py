"""Offsets between the clocks of ranks, estimated from collectives that end on all ranks at about the same time.

Each rank's time t is t + shift (+ drift × t) on the common axis; each collective ends there at one unknown time. The
shifts are found by iteratively reweighted least squares with less weight for outliers (Tukey's biweight), so that
collectives with ragged ends have no influence. The collectives' own ends are eliminated, so there are as many unknowns
as clocks; conjugate gradients solve them without storing the matrix: a thousand ranks take a moment.

Collectives on the host (gloo) end when the system schedules a thread, milliseconds apart: there, ranks of one machine
are assumed to share its clock, and only machines are compared. Ranks that no chain of collectives connects are aligned
by their wall clocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...names.collectives import SYNCHRONIZING

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

FEWEST_FOR_DRIFT = 12
MOST_ENDS = 1 << 20
_ROUNDS = 8
_TUKEY = 4.685  # × the scale: 95 % as good as plain least squares on Gaussian noise
_LITTLE = 1e-10
_EXACT = 1e-11  # of the initial residual
_STANDS_OUT = 5.0  # standard errors of a slope
_SCALE = 1.4826  # from the median of absolute deviations to a standard deviation

CLOCKS = {
    "member": pl.Int32,
    "shift_ns": pl.Int64,  # to add to its times, for the axis of the first member
    "drift": pl.Float64,  # how much its clock runs slow: ns per ns, around `middle_ns`
    "middle_ns": pl.Int64,  # of its own times
    "collectives": pl.Int64,  # number of collectives in the estimate
    "residual_ns": pl.Float64,  # the median distance of its ends from the common ones; null: no collectives
    "error_ns": pl.Float64,  # three standard errors of the shift
    "island": pl.Int32,  # members of one are connected by collectives
}


@dataclass(frozen=True)
class _Ends:
    """Ends of collectives: the clock, the collective and the clock's time of each; and the group of each collective."""

    clock: Rows
    match: Rows
    at: Floats
    group: Rows
    clocks: int

    @property
    def matches(self) -> int:
        """Number of collectives."""
        return self.group.size

    @cached_property
    def sync_points(self) -> tuple[Rows, Rows, Rows]:
        """(clock, collective) of each pair that occurs, and the pair's number of each end."""
        pairs, of_end = np.unique(self.match * max(1, self.clocks) + self.clock, return_inverse=True)
        match, clock = np.divmod(pairs, max(1, self.clocks))
        return clock, match, of_end

    @property
    def middle(self) -> Floats:
        """The middle of each clock's times."""
        first, last = np.full(self.clocks, np.inf), np.full(self.clocks, -np.inf)
        np.minimum.at(first, self.clock, self.at)
        np.maximum.at(last, self.clock, self.at)
        is_known = np.isfinite(first)
        return np.round((np.where(is_known, first, 0.0) + np.where(is_known, last, 0.0)) / 2)


@dataclass(frozen=True)
class _Fit:
    """Shifts, drifts, three standard errors of each shift, and each end's distance from its collective's common end."""

    shift: Floats
    drift: Floats
    error: Floats
    residual: Floats


def clocks(calls: pl.DataFrame, origin_ns: Sequence[int], machine: Sequence[str | None]) -> pl.DataFrame:
    """The frame CLOCKS: one row per member.

    Args:
        calls: CALLS with `member` and `match`.
        origin_ns: Unix time of each member's origin.
        machine: Name of the machine whose clock each member shares; None: it has its own clock.
    """
    unit, base = _units(origin_ns, machine)
    member, ends = _ends(calls, unit, base)
    island = _islands(ends)
    fit = _fit(ends, island)
    wall = np.array([origin - origin_ns[0] for origin in origin_ns], np.int64)
    first = np.full(ends.clocks, len(origin_ns))
    np.minimum.at(first, unit, np.arange(unit.size))  # the member whose times the clock has
    residuals = pl.DataFrame({"member": member, "residual": np.abs(fit.residual)})
    spread = residuals.group_by("member").agg(
        collectives=pl.len().cast(pl.Int64), residual_ns=pl.col("residual").median()
    )
    members = pl.DataFrame(
        {
            "member": np.arange(unit.size),
            "shift_ns": base + (wall[first[island]] + np.round(fit.shift).astype(np.int64))[unit],
            "drift": fit.drift[unit],
            "error_ns": pl.Series(fit.error[unit], nan_to_null=True),
            "middle_ns": ends.middle.astype(np.int64)[unit] - base,
            "island": first[island[unit]],
        }
    )
    estimates = members.join(spread, "member", "left", maintain_order="left").with_columns(
        pl.col("collectives").fill_null(0)
    )
    return estimates.select(*CLOCKS).cast(pl.Schema(CLOCKS))


def _units(origin_ns: Sequence[int], machine: Sequence[str | None]) -> tuple[Rows, Rows]:
    """(the number of each member's clock, the offset of its times from the first member of that clock)."""
    first: dict[object, int] = {}
    keys = [name if name is not None else member for member, name in enumerate(machine)]
    firsts = [first.setdefault(key, member) for member, key in enumerate(keys)]
    numbers = {member: number for number, member in enumerate(first.values())}
    base = [origin_ns[member] - origin_ns[of] for member, of in enumerate(firsts)]
    return np.array([numbers[of] for of in firsts], np.int64), np.array(base, np.int64)


def _ends(calls: pl.DataFrame, unit: Rows, base: Rows) -> tuple[Rows, _Ends]:
    """(member of each end, the ends of synchronizing collectives): at most MOST_ENDS, evenly sampled by group."""
    units = int(unit.max(initial=-1)) + 1
    ends = calls.filter(
        pl.col("match").is_not_null() & (pl.col("dur_ns") >= 0) & pl.col("kind").is_in(SYNCHRONIZING)
    ).filter(pl.len().over("match") > 1)
    if ends.height > MOST_ENDS:
        collectives = ends.group_by("match").agg(pl.col("group").first(), size=pl.len()).sort("group", "match")
        share = MOST_ENDS // collectives["group"].n_unique()
        nth, count = pl.int_range(pl.len()).over("group"), pl.len().over("group")
        most = pl.max_horizontal(4, share // pl.col("size").max().over("group"))
        sample = collectives.filter((count <= most) | ((nth * most) // count != ((nth - 1) * most) // count))
        ends = ends.join(sample, "match", "semi", maintain_order="left")
    number = ends["match"].rank("dense").cast(pl.Int64).to_numpy() - 1
    member = ends["member"].cast(pl.Int64).to_numpy()
    at = ((ends["start_ns"] + ends["dur_ns"]).to_numpy() + base[member]).astype(np.float64)
    group = np.zeros(int(number.max(initial=-1)) + 1, np.int64)
    group[number] = ends["group"].to_numpy()
    return member, _Ends(unit[member], number, at, group, units)


def _islands(ends: _Ends) -> Rows:
    """For each clock the first one that a chain of collectives connects it to (connected components)."""
    label = np.arange(ends.clocks)
    while ends.matches:
        of_match = np.full(ends.matches, ends.clocks)
        np.minimum.at(of_match, ends.match, label[ends.clock])
        lower = label.copy()
        np.minimum.at(lower, ends.clock, of_match[ends.match])
        if (lower == label).all():
            break
        label = lower
    return label


def _fit(ends: _Ends, island: Rows) -> _Fit:
    """Shifts relative to the first clock of each island, and significant drifts."""
    weight, shift_lever = np.ones(ends.at.size), np.ones(ends.at.size)
    away = ends.at - ends.middle[ends.clock]
    shift, drift, residual = np.zeros(ends.clocks), np.zeros(ends.clocks), np.zeros(ends.at.size)
    can_drift = np.bincount(ends.clock, minlength=1).max() >= FEWEST_FOR_DRIFT
    for turn in range(_ROUNDS if ends.at.size else 0):
        at = ends.at + drift[ends.clock] * away + shift[ends.clock]
        shift = shift + _coefficients(ends, at, weight, shift_lever, island)
        residual = _residual(ends, ends.at + drift[ends.clock] * away + shift[ends.clock], weight)
        scale = max(1.0, _SCALE * float(np.median(np.abs(residual))))
        if turn < _ROUNDS // 2:  # least absolute deviations first, which outliers hardly affect
            weight = 1 / np.maximum(np.abs(residual), scale / 4)
            weight /= weight.max()
        else:
            weight = np.square(np.clip(1 - np.square(residual / (_TUKEY * scale)), 0, None))
        if not can_drift:
            continue
        at = ends.at + shift[ends.clock]
        drift = _standing_out(ends, away, _coefficients(ends, at, weight, away, island), weight, scale)
    return _Fit(shift, drift, _errors(ends, residual, weight, island), residual)


def _coefficients(ends: _Ends, at: Floats, weight: Floats, lever: Floats, island: Rows) -> Floats:
    """The weighted least-squares coefficient of the lever for each clock; 0 for the first of an island.

    The lever is 1 for shifts, and the time from the middle for drifts.
    """
    pull: NDArray[Any] = np.bincount(ends.clock, weight * lever * (at - _common(ends, at, weight)), ends.clocks)
    equations = _Equations.of(ends, weight, lever, island)
    return equations.solve(-pull)


@dataclass(frozen=True)
class _Equations:
    """The normal equations with the collectives' own ends eliminated (Schur complement).

    Attributes:
        ends: The ends of collectives.
        own: The weight of each clock's ends.
        pull: For each pair of clock and collective its weight ÷ the root of the collective's weight.
        diagonal: Of the equations.
        is_free: Whether a clock is an unknown; others are references, or have no data.
    """

    ends: _Ends
    own: Floats
    pull: Floats
    diagonal: Floats
    is_free: NDArray[np.bool_]

    @classmethod
    def of(cls, ends: _Ends, weight: Floats, lever: Floats, island: Rows) -> _Equations:
        """Return the equations of ends with these weights."""
        clock, match, of_end = ends.sync_points
        total = np.maximum(np.bincount(ends.match, weight, ends.matches), 1e-12)
        own: NDArray[Any] = np.bincount(ends.clock, weight * lever * lever, ends.clocks)
        pull = np.bincount(of_end, weight * lever, clock.size) / np.sqrt(total[match])
        diagonal: NDArray[Any] = own - np.bincount(clock, pull * pull, ends.clocks)
        is_free = (island != np.arange(ends.clocks)) & (diagonal > _LITTLE * own)
        return cls(ends, own, pull, diagonal, is_free)

    def times(self, values: Floats) -> Floats:
        """The product of matrix and vector; a little is added to the diagonal.

        So clocks whose ends all have no weight stay where they are. The next iteration corrects the effect on others.
        """
        clock, match, _ = self.ends.sync_points
        collective_sums = np.bincount(match, self.pull * values[clock], self.ends.matches)
        left = (self.own + _LITTLE * self.diagonal) * values - np.bincount(
            clock, self.pull * collective_sums[match], self.ends.clocks
        )
        return np.where(self.is_free, left, 0.0)

    def solve(self, right: Floats) -> Floats:
        """The solution, by conjugate gradients preconditioned with the diagonal; 0 for clocks that aren't free."""
        scale = np.where(self.is_free, 1 / np.where(self.is_free, self.diagonal, 1.0), 0.0)
        solution, rest = np.zeros(right.size), np.where(self.is_free, right, 0.0)
        step = scale * rest
        size = enough = float(rest @ step)
        enough *= _EXACT**2
        for _ in range(2 * right.size):
            if size <= enough or size <= 0:
                break
            along = self.times(step)
            length = size / float(step @ along)
            solution += length * step
            rest -= length * along
            preconditioned_rest = scale * rest
            size, before = float(rest @ preconditioned_rest), size
            step = preconditioned_rest + size / before * step
        return solution

    def spread(self) -> Floats:
        """The square root of the inverse's diagonal for free clocks; NaN for others."""
        clock, match, _ = self.ends.sync_points
        normal: NDArray[Any] = np.diag(self.own + _LITTLE * self.diagonal)
        group = self.ends.group[match]
        order = np.argsort(group, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
            clocks, column = np.unique(clock[rows], return_inverse=True)
            first, row = np.unique(match[rows], return_inverse=True)
            pulls = np.zeros((first.size, clocks.size))
            pulls[row, column] = self.pull[rows]
            normal[np.ix_(clocks, clocks)] -= pulls.T @ pulls
        free, spreads = np.flatnonzero(self.is_free), np.full(self.own.size, np.nan)
        spreads[free] = np.sqrt(np.maximum(np.diag(np.linalg.inv(normal[np.ix_(free, free)])), 0))
        return spreads


def _common(ends: _Ends, at: Floats, weight: Floats) -> Floats:
    """The common end of the collective of each end."""
    total = np.maximum(np.bincount(ends.match, weight, ends.matches), 1e-12)
    mean: Floats = (np.bincount(ends.match, weight * at, ends.matches) / total)[ends.match]
    return mean


def _residual(ends: _Ends, at: Floats, weight: Floats) -> Floats:
    return at - _common(ends, at, weight)


def _errors(ends: _Ends, residual: Floats, weight: Floats, island: Rows) -> Floats:
    """Three standard errors of each shift against the first clock of its island; NaN if unknown.

    That is the square root of the inverse's diagonal times the spread of the ends, with one degree of freedom less for
    each collective and each free clock.
    """
    equations = _Equations.of(ends, weight, np.ones(ends.at.size), island)
    freedom = ends.at.size - ends.matches - int(equations.is_free.sum())
    error = np.where(island == np.arange(ends.clocks), 0.0, np.nan)
    if freedom > 0 and equations.is_free.any():
        noise = max(1.0, _SCALE * float(np.median(np.abs(residual)))) * np.sqrt(ends.at.size / freedom)
        error = np.where(equations.is_free, 3 * noise * equations.spread(), error)
    return error


def _standing_out(ends: _Ends, away: Floats, drift: Floats, weight: Floats, scale: float) -> Floats:
    """The significant drifts; 0 for others."""
    lever = np.bincount(ends.clock, weight * away * away, ends.clocks)
    counts = np.bincount(ends.clock, weight > 0, ends.clocks)
    return np.where((np.abs(drift) * np.sqrt(lever) > _STANDS_OUT * scale) & (counts >= FEWEST_FOR_DRIFT), drift, 0.0)
