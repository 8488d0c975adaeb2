"""How probable it is that two units of work are the same: forward–backward over a pair hidden Markov model.

A path through both sequences matches a unit with a unit, with several consecutive ones (it fuses them, or is split into
them), or leaves units of one side alone. Its weight is the product of the odds of its matches and of what it costs to
begin, extend and end stretches that are left alone (affine gaps; R. Durbin, S. Eddy, A. Krogh, G. Mitchison, Biological
Sequence Analysis, 1998, chapter 4). The posterior of a pair is the share of the weight of all paths that match it.

Pairs whose posterior exceeds one half never contradict each other, so they are an alignment, and no path needs to be
chosen (S. Miyazawa, Protein Engineering 8, 1995).

Cells far from a guess of where the path is aren't computed where sequences are long. What is known of a cell from the
beginning is computed again from a checkpoint before it is needed, so memory grows with the square root of the length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isqrt

import numpy as np
import polars as pl

from ...arrays.gather import NONE
from ...arrays.native import Function
from .pairs import Floats, Mask, Pairs, Rows

Move = tuple[int, int]

BOUND = 0.5  # posterior: pairs above it agree with each other
_LEAST, _MOST_NEIGHBORS = 0.1, 2  # posterior, and distance, of pairs of which it isn't clear which is the right one
_ALONE = 0.05  # after a match: that units of one side, or of the other, are left alone
_STILL_ALONE = 0.75  # after a unit that is left alone: that the next one of its side is, too
_ALONE_TOO = 0.1  # after it: that units of the other side are
_AGAIN = 1 - _STILL_ALONE - _ALONE_TOO
_MOST_CELLS = 1 << 25
_TILE, _REACH, _CELLS = 64, 6, 560  # as in native/pair_hmm.c: columns with an exponent, units of a move, cells it needs
_NOWHERE = -(1 << 61)  # the exponent of zeros
_LEAST_ROWS = 64

_sum_from_begin, _sum_from_end = Function("sum_from_begin"), Function("sum_from_end")


@dataclass(frozen=True)
class MoveOdds:
    """The odds of one move, by the indices of the last units that it matches on both sides.

    Args:
        rows: By index of the first side where its row of the table begins; negative: too few units for the move.
        columns: By index of the second side the column.
        table: The rows, one behind the other; 0 where there are too few units of the second side.
    """

    rows: Rows
    columns: Rows
    table: Floats

    @classmethod
    def of(cls, numbers: Rows, others: Rows, table: Floats) -> MoveOdds:
        """The odds of a table by the numbers of what is matched on both sides; -1: there are too few units."""
        width = table.shape[1]
        rows = np.where(numbers < 0, NONE, numbers * (width + 1))
        return cls(rows, np.where(others < 0, width, others), np.pad(table, ((0, 0), (0, 1))).ravel())


Odds = Mapping[Move, MoveOdds]
"""The odds of each move: how many units of the first and of the second side it matches."""


def probable_pairs(
    odds: Odds, sizes: tuple[int, int], joins: tuple[Mask, Mask] | None = None, guess: Floats | None = None
) -> Pairs:
    """The pairs whose posterior exceeds BOUND, and those of units of which only this isn't clear: which neighbor it is.

    Args:
        odds: Of the moves.
        sizes: Of the two sequences.
        joins: Of each unit of both, whether it may be joined with a neighbor so that their partner is clear; by default
            none is.
        guess: By the number of units of the first side about how many of the second side belong to them; by default
            both sides are as long.
    """
    joins = joins or (np.zeros(sizes[0], bool), np.zeros(sizes[1], bool))
    return _Lattice(odds, sizes, np.linspace(0, sizes[1], sizes[0] + 1) if guess is None else guess).pairs(joins)


class _Weights:
    """Two weights of each cell of some rows, as multiples of powers of two: an exponent for each tile of a row."""

    def __init__(self, rows: int, width: int) -> None:
        self.match, self.alone = np.zeros((rows, width)), np.zeros((rows, width))
        self.exponents = np.full((rows, width // _TILE), _NOWHERE)
        self.arrays = self.match, self.alone, self.exponents

    def move(self, source: int, target: int) -> None:
        """Copy the rows that a neighboring block needs."""
        for array in self.arrays:
            array[target : target + _REACH] = array[source : source + _REACH]


class _Lattice:
    """The cells: a row for each number of units of the first side, of those of the second side `width` from a base on.

    Blocks of rows are computed one after the other, from the beginning and back from the end.
    """

    def __init__(self, odds: Odds, sizes: tuple[int, int], guess: Floats) -> None:
        self.rows, columns = sizes[0] + 1, sizes[1] + 1
        self.width = _in_tiles(max(_TILE, min(columns, _MOST_CELLS // self.rows)))
        self.base = _base(guess, self.width, columns)
        self.block = max(_LEAST_ROWS, 2 * isqrt(self.rows))
        starts = np.cumsum([0, *(move.table.size for move in odds.values())])[:-1].tolist()
        rows = [
            np.where(move.rows < 0, NONE, move.rows + start) for move, start in zip(odds.values(), starts, strict=True)
        ]
        self.model = (
            self.base,
            *np.array(list(odds), np.int64).T,
            np.concatenate(rows).astype(np.int32),
            np.concatenate([move.columns for move in odds.values()]).astype(np.int32),
            np.concatenate([move.table for move in odds.values()]),
            np.array([_ALONE, _STILL_ALONE, _ALONE_TOO]),
            np.zeros(_CELLS),
        )
        self.total, self.of_total = np.zeros(1), 0
        self.of_units = np.zeros(sizes[0]), np.zeros(sizes[1])

    def pairs(self, joins: tuple[Mask, Mask]) -> Pairs:
        """The probable pairs."""
        weights, begins = _Weights(self.block + _REACH, self.width), range(0, self.rows, self.block)
        checkpoints = list(self._checkpoints(weights, begins))
        if not self.total[0]:
            return Pairs.certain(*np.empty((2, 0), np.int64))
        possible = Pairs.concat(list(self._pairs_of_blocks(weights, begins, checkpoints)))
        return _probable(possible, self.of_units, joins)

    def _checkpoints(self, weights: _Weights, begins: range) -> Iterator[list[Floats]]:
        """Sum up from the beginning; yields what each block begins with."""
        for begin in begins:
            if begin:
                weights.move(self.block, 0)
            yield [array[:_REACH].copy() for array in weights.arrays]
            self._sum_from_begin(begin, weights)

    def _sum_from_begin(self, begin: int, weights: _Weights) -> None:
        end = min(begin + self.block, self.rows)
        arrays = (array.reshape(-1) for array in weights.arrays)
        self.of_total = _sum_from_begin(begin, end, self.width, self.model, *arrays, self.total)

    def _pairs_of_blocks(self, before: _Weights, begins: range, checkpoints: list[list[Floats]]) -> Iterator[Pairs]:
        """Sum up from the end; yields the pairs of each block."""
        after, posterior = _Weights(*before.match.shape), np.zeros(before.match.shape)
        last, of_total = begins[-1], self.of_total
        for begin in reversed(begins):
            end = min(begin + self.block, self.rows)
            if begin != last:
                for array, rows in zip(before.arrays, checkpoints[begin // self.block], strict=True):
                    array[:_REACH] = rows
                self._sum_from_begin(begin, before)
                after.move(0, self.block)
                posterior[self.block :] = posterior[:_REACH]
                posterior[: self.block] = 0
            facts = (before.match.reshape(-1), before.exponents.reshape(-1), self.total, of_total)
            arrays = (array.reshape(-1) for array in after.arrays)
            _sum_from_end(begin, end, self.width, self.model, *arrays, *facts, posterior.reshape(-1), self.of_units)
            first = begin and begin + _REACH  # a row before isn't complete
            yield self._possible(first, posterior[first - begin : end - begin + _REACH])

    def _possible(self, first: int, posterior: Floats) -> Pairs:
        row, index = np.nonzero(posterior > _LEAST)
        return Pairs(first + row, self.base[first + row] + index, posterior[row, index].clip(max=1.0))


def _probable(pairs: Pairs, shares: tuple[Floats, Floats], joins: tuple[Mask, Mask]) -> Pairs:
    """The pairs above the bound; and those of a unit that is matched, but it isn't clear with which of some neighbors.

    Args:
        pairs: The possible ones.
        shares: Of each unit of both sides, how probable it is that it is matched at all.
        joins: Whether it may join neighbors in this way.
    """
    frame = pl.DataFrame({"first": pairs.first, "second": pairs.second, "posterior": pairs.posterior})
    frame = frame.with_columns(may_join=pl.Series(joins[0][pairs.first] & joins[1][pairs.second]))
    is_clear, posteriors = pl.col("posterior") > BOUND, [pl.when(pl.col("posterior") > BOUND).then("posterior")]
    for unit, other, of_units in (("first", "second", shares[0]), ("second", "first", shares[1])):
        are_neighbors = pl.col("may_join").all() & (pl.col(other).max() - pl.col(other).min() <= _MOST_NEIGHBORS)
        is_unclear = ~is_clear.any() & (pl.col(f"of_{unit}").max() > BOUND) & are_neighbors
        frame = frame.with_columns(pl.Series(f"of_{unit}", of_units[frame[unit].to_numpy()]))
        posteriors.append(pl.when(is_unclear.over(unit)).then(f"of_{unit}"))
    frame = frame.with_columns(posterior=pl.max_horizontal(posteriors)).drop_nulls()
    first, second, posterior = (frame[name].to_numpy() for name in ("first", "second", "posterior"))
    return Pairs(first, second, posterior.clip(max=1.0))


def _in_tiles(size: int) -> int:
    """A size rounded up to whole tiles."""
    return -(-size // _TILE) * _TILE


def _base(guess: Floats, width: int, columns: int) -> Rows:
    """The first column of each row: half of the width before the guess, and never so much further that no path fits."""
    last = max(0, _in_tiles(columns - width))
    base = (np.rint(guess).astype(np.int64) - width // 2) // _TILE * _TILE
    base = np.maximum.accumulate(base.clip(0, last))
    base[-1] = last
    stride = _TILE * max(1, width // 2 // _TILE) * np.arange(base.size)
    from_end: Rows = np.maximum.accumulate((base - stride)[::-1])[::-1] + stride
    return from_end.clip(0, last)
