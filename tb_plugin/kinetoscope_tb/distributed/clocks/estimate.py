"""How far the clocks of ranks are apart, told from collectives that end on all of their ranks at about the same time.

Each rank's time t is t + shift (+ drift × t) on the common axis; each collective c ends there at one unknown time. The
shifts that leave the least between both are found by least squares, over and over with less weight for ends that stay
far off (Tukey's biweight), so that some collectives which end raggedly move nothing. The collectives' own ends are
eliminated, so what is solved is as large as the number of clocks; and it is solved by conjugate gradients, which never
write down the equations: of a thousand ranks that takes a moment.

Collectives that run on the host (gloo) end when the system lets a thread run, milliseconds apart: there ranks of one
machine are taken to share its clock, and only machines are set against each other. Ranks that no chain of collectives
ties together are put beside each other by their wall clocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...names.collectives import SYNCHRONISING

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

FEWEST_FOR_DRIFT = 12
MOST_ENDS = 1 << 20
_ROUNDS = 8
_TUKEY = 4.685  # × the scale: 95 % as good as plain least squares on Gaussian noise
_LITTLE = 1e-10
_EXACT = 1e-11  # of what is left to solve
_STANDS_OUT = 5.0  # standard errors of a slope
_SCALE = 1.4826  # from the median of absolute deviations to a standard deviation

CLOCKS = {
    "member": pl.Int32,
    "shift_ns": pl.Int64,  # to add to its times, for the axis of the first member
    "drift": pl.Float64,  # how much its clock runs slow: ns per ns, around `middle_ns`
    "middle_ns": pl.Int64,  # of its own times
    "collectives": pl.Int64,  # how many told it
    "residual_ns": pl.Float64,  # the median distance of its ends from the common ones; null: no collective tells
    "error_ns": pl.Float64,  # three standard errors of the shift
    "island": pl.Int32,  # members of one are tied together by collectives
}


@dataclass(frozen=True)
class _Ends:
    """Ends of collectives: by which clock, of which collective, and when in its time; of each collective its group."""

    clock: Rows
    match: Rows
    at: Floats
    group: Rows
    clocks: int

    @property
    def matches(self) -> int:
        """How many collectives."""
        return self.group.size

    @cached_property
    def sync_points(self) -> tuple[Rows, Rows, Rows]:
        """(clock, collective) of each pair that there is, once, and of each end which one it is."""
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
    """Shifts, drifts, three standard errors of each shift, and how far each end is from its collective's common one."""

    shift: Floats
    drift: Floats
    error: Floats
    residual: Floats


def clocks(calls: pl.DataFrame, origin_ns: Sequence[int], machine: Sequence[str | None]) -> pl.DataFrame:
    """The frame CLOCKS: one row per member.

    Args:
        calls: CALLS with `member` and `match`.
        origin_ns: Unix time of each member's origin.
        machine: Whose clock each member is known to share; None: it has one of its own.
    """
    unit, base = _units(origin_ns, machine)
    member, ends = _ends(calls, unit, base)
    island = _islands(ends)
    fit = _fit(ends, island)
    wall = np.array([origin - origin_ns[0] for origin in origin_ns], np.int64)
    first = np.full(ends.clocks, len(origin_ns))
    np.minimum.at(first, unit, np.arange(unit.size))  # the member whose times are those of the clock
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
    told = members.join(spread, "member", "left", maintain_order="left").with_columns(
        pl.col("collectives").fill_null(0)
    )
    return told.select(*CLOCKS).cast(pl.Schema(CLOCKS))


def _units(origin_ns: Sequence[int], machine: Sequence[str | None]) -> tuple[Rows, Rows]:
    """(the number of each member's clock, what to add to its times for those of the first member of that clock)."""
    first: dict[object, int] = {}
    keys = [name if name is not None else member for member, name in enumerate(machine)]
    firsts = [first.setdefault(key, member) for member, key in enumerate(keys)]
    numbers = {member: number for number, member in enumerate(first.values())}
    base = [origin_ns[member] - origin_ns[of] for member, of in enumerate(firsts)]
    return np.array([numbers[of] for of in firsts], np.int64), np.array(base, np.int64)


def _ends(calls: pl.DataFrame, unit: Rows, base: Rows) -> tuple[Rows, _Ends]:
    """(whose each is, the ends of synchronising collectives): not more than are solved in a moment, evenly by group."""
    units = int(unit.max(initial=-1)) + 1
    known = calls.filter(
        pl.col("match").is_not_null() & (pl.col("dur_ns") >= 0) & pl.col("kind").is_in(SYNCHRONISING)
    ).filter(pl.len().over("match") > 1)
    if known.height > MOST_ENDS:
        every = known.group_by("match").agg(pl.col("group").first(), size=pl.len()).sort("group", "match")
        share = MOST_ENDS // every["group"].n_unique()
        nth, count = pl.int_range(pl.len()).over("group"), pl.len().over("group")
        most = pl.max_horizontal(4, share // pl.col("size").max().over("group"))
        kept = every.filter((count <= most) | ((nth * most) // count != ((nth - 1) * most) // count))
        known = known.join(kept, "match", "semi", maintain_order="left")
    number = known["match"].rank("dense").cast(pl.Int64).to_numpy() - 1
    member = known["member"].cast(pl.Int64).to_numpy()
    at = ((known["start_ns"] + known["dur_ns"]).to_numpy() + base[member]).astype(np.float64)
    group = np.zeros(int(number.max(initial=-1)) + 1, np.int64)
    group[number] = known["group"].to_numpy()
    return member, _Ends(unit[member], number, at, group, units)


def _islands(ends: _Ends) -> Rows:
    """Of each clock the first one that a chain of collectives ties it to, itself if there is none."""
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
    """Shifts relative to the first clock of each island, and drifts where they stand out of the noise."""
    weight, one = np.ones(ends.at.size), np.ones(ends.at.size)
    away = ends.at - ends.middle[ends.clock]
    shift, drift, residual = np.zeros(ends.clocks), np.zeros(ends.clocks), np.zeros(ends.at.size)
    can_drift = np.bincount(ends.clock, minlength=1).max() >= FEWEST_FOR_DRIFT
    for turn in range(_ROUNDS if ends.at.size else 0):
        at = ends.at + drift[ends.clock] * away + shift[ends.clock]
        shift = shift + _solved(ends, at, weight, one, island)
        residual = _residual(ends, ends.at + drift[ends.clock] * away + shift[ends.clock], weight)
        scale = max(1.0, _SCALE * float(np.median(np.abs(residual))))
        if turn < _ROUNDS // 2:  # least absolute deviations first: a few wild ends don't lead astray
            weight = 1 / np.maximum(np.abs(residual), scale / 4)
            weight /= weight.max()
        else:
            weight = np.square(np.clip(1 - np.square(residual / (_TUKEY * scale)), 0, None))
        if not can_drift:
            continue
        at = ends.at + shift[ends.clock]
        drift = _standing_out(ends, away, _solved(ends, at, weight, away, island), weight, scale)
    return _Fit(shift, drift, _errors(ends, residual, weight, island), residual)


def _solved(ends: _Ends, at: Floats, weight: Floats, lever: Floats, island: Rows) -> Floats:
    """By weighted least squares, what times the lever to add to each clock's times; 0 for the first of an island.

    The lever is 1 for shifts, and the time from the middle for drifts.
    """
    pull: NDArray[Any] = np.bincount(ends.clock, weight * lever * (at - _common(ends, at, weight)), ends.clocks)
    equations = _Equations.of(ends, weight, lever, island)
    return equations.solved(-pull)


@dataclass(frozen=True)
class _Equations:
    """The normal equations without the collectives' own ends: own × what is asked for − what its collectives take.

    Attributes:
        ends: Of which.
        own: Of each clock the weight of its ends.
        pull: Of each sync point of a clock with a collective its weight ÷ the root of the collective's.
        diagonal: Of the equations.
        is_free: Whether a clock is moved; else others are told by it, or nothing tells it.
    """

    ends: _Ends
    own: Floats
    pull: Floats
    diagonal: Floats
    is_free: NDArray[np.bool_]

    @classmethod
    def of(cls, ends: _Ends, weight: Floats, lever: Floats, island: Rows) -> _Equations:
        """Return those of ends with these weights."""
        clock, match, of_end = ends.sync_points
        total = np.maximum(np.bincount(ends.match, weight, ends.matches), 1e-12)
        own: NDArray[Any] = np.bincount(ends.clock, weight * lever * lever, ends.clocks)
        pull = np.bincount(of_end, weight * lever, clock.size) / np.sqrt(total[match])
        diagonal: NDArray[Any] = own - np.bincount(clock, pull * pull, ends.clocks)
        is_free = (island != np.arange(ends.clocks)) & (diagonal > _LITTLE * own)
        return cls(ends, own, pull, diagonal, is_free)

    def times(self, values: Floats) -> Floats:
        """The left side; a little is added to the diagonal.

        So clocks whose every tie got no weight stay where they are. What that takes from the others the next round
        adds.
        """
        clock, match, _ = self.ends.sync_points
        taken = np.bincount(match, self.pull * values[clock], self.ends.matches)
        left = (self.own + _LITTLE * self.diagonal) * values - np.bincount(
            clock, self.pull * taken[match], self.ends.clocks
        )
        return np.where(self.is_free, left, 0.0)

    def solved(self, right: Floats) -> Floats:
        """What the equations hold for, by conjugate gradients scaled by the diagonal; 0 for clocks that aren't free."""
        scale = np.where(self.is_free, 1 / np.where(self.is_free, self.diagonal, 1.0), 0.0)
        found, rest = np.zeros(right.size), np.where(self.is_free, right, 0.0)
        step = scale * rest
        size = enough = float(rest @ step)
        enough *= _EXACT**2
        for _ in range(2 * right.size):
            if size <= enough or size <= 0:
                break
            along = self.times(step)
            length = size / float(step @ along)
            found += length * step
            rest -= length * along
            scaled = scale * rest
            size, before = float(rest @ scaled), size
            step = scaled + size / before * step
        return found

    def spread(self) -> Floats:
        """The root of the inverse's diagonal, for clocks that are free; NaN for others."""
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
        free, found = np.flatnonzero(self.is_free), np.full(self.own.size, np.nan)
        found[free] = np.sqrt(np.maximum(np.diag(np.linalg.inv(normal[np.ix_(free, free)])), 0))
        return found


def _common(ends: _Ends, at: Floats, weight: Floats) -> Floats:
    """The common end of the collective of each end."""
    total = np.maximum(np.bincount(ends.match, weight, ends.matches), 1e-12)
    mean: Floats = (np.bincount(ends.match, weight * at, ends.matches) / total)[ends.match]
    return mean


def _residual(ends: _Ends, at: Floats, weight: Floats) -> Floats:
    return at - _common(ends, at, weight)


def _errors(ends: _Ends, residual: Floats, weight: Floats, island: Rows) -> Floats:
    """Three standard errors of each shift against the first clock of its island; NaN where nothing tells.

    That is the square root of the inverse's diagonal, times the spread of the ends, for as many ends as are left when
    each collective and each clock has taken one.
    """
    equations = _Equations.of(ends, weight, np.ones(ends.at.size), island)
    freedom = ends.at.size - ends.matches - int(equations.is_free.sum())
    error = np.where(island == np.arange(ends.clocks), 0.0, np.nan)
    if freedom > 0 and equations.is_free.any():
        noise = max(1.0, _SCALE * float(np.median(np.abs(residual)))) * np.sqrt(ends.at.size / freedom)
        error = np.where(equations.is_free, 3 * noise * equations.spread(), error)
    return error


def _standing_out(ends: _Ends, away: Floats, drift: Floats, weight: Floats, scale: float) -> Floats:
    """The drifts that stand out of the noise; 0 for others."""
    lever = np.bincount(ends.clock, weight * away * away, ends.clocks)
    counts = np.bincount(ends.clock, weight > 0, ends.clocks)
    return np.where((np.abs(drift) * np.sqrt(lever) > _STANDS_OUT * scale) & (counts >= FEWEST_FOR_DRIFT), drift, 0.0)
