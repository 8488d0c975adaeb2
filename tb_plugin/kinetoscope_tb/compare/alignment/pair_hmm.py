"""How probable it is that two units of work are the same: forward–backward over a pair hidden Markov model.

A path through both sequences matches a unit with a unit, with several consecutive ones (it fuses them, or is split into
them), or leaves units of one side alone. Its weight is the product of the odds of its matches and of what it costs to
begin, extend and end stretches that are left alone (affine gaps; R. Durbin, S. Eddy, A. Krogh, G. Mitchison, Biological
Sequence Analysis, 1998, chapter 4). The posterior of a pair is the share of the weight of all paths that match it.

Pairs whose posterior exceeds one half never contradict each other, so they are an alignment, and no path needs to be
chosen (S. Miyazawa, Protein Engineering 8, 1995).

All cells of an anti-diagonal are computed at once. Far from the diagonal nothing is computed where sequences are long.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .pairs import Floats, Pairs, Rows

Move = tuple[int, int]

BOUND = 0.5  # posterior: pairs above it agree with each other
_ALONE = 0.05  # after a match: that units of one side, or of the other, are left alone
_STILL_ALONE = 0.75  # after a unit that is left alone: that the next one of its side is, too
_ALONE_TOO = 0.1  # after it: that units of the other side are
_AGAIN = 1 - _STILL_ALONE - _ALONE_TOO
_MOST_CELLS = 1 << 24
_LARGE, _SMALL = 1e150, 1e-150
_MOST_EXPONENT = 700.0  # of what exp can represent


@dataclass(frozen=True)
class MoveOdds:
    """The odds of one move, by the indices of the last units that it matches on both sides.

    Args:
        rows: By index of the first side where its row of the table begins.
        columns: By index of the second side the column.
        table: The rows, one behind the other; 0 where there are too few units for the move.
    """

    rows: Rows
    columns: Rows
    table: Floats

    @classmethod
    def of(cls, numbers: Rows, others: Rows, table: Floats) -> MoveOdds:
        """The odds of a table by the numbers of what is matched on both sides; -1: there are too few units."""
        height, width = table.shape
        rows = np.where(numbers < 0, height, numbers) * (width + 1)
        return cls(rows, np.where(others < 0, width, others), np.pad(table, (0, 1)).ravel())

    def at(self, first: slice, second: slice) -> Floats:
        """The odds where the last units are these, pairwise."""
        odds: Floats = self.table.take(self.rows[first] + self.columns[second])
        return odds


Odds = Mapping[Move, MoveOdds]
"""The odds of each move: how many units of the first and of the second side it matches."""


def probable_pairs(odds: Odds, sizes: tuple[int, int]) -> Pairs:
    """The pairs whose posterior exceeds BOUND, of two sequences of these sizes."""
    return _Lattice(odds, *sizes).pairs()


@dataclass(frozen=True)
class _Weights:
    """Weights of an anti-diagonal by state, each as an array with room on both sides for cells of its neighbors.

    Args:
        low: Number of units of the first side at the first cell.
        match: Of paths whose last unit is matched.
        alone: Of those whose last unit is one of the first side, left alone.
        other: The same of the second side.
        before: The weights at a match that begins here.
    """

    low: int
    match: Floats
    alone: Floats
    other: Floats
    before: Floats

    def rescale(self, factor: float) -> None:
        """Multiply all weights."""
        for weights in (self.match, self.alone, self.other, self.before):
            weights *= factor


class _Lattice:
    """The cells: units of the first side, units of the second. An anti-diagonal has those of an equal sum.

    Of an anti-diagonal there are cells from `low` to `high` units of the first side: all, or those near the diagonal.
    Weights are scaled so that they don't overflow: `scale` has the logarithm of the factor by which those stored in
    `before` are too small.
    """

    def __init__(self, odds: Odds, first: int, second: int) -> None:
        self.odds, self.longest = odds, max(map(sum, odds))
        sums = np.arange(first + second + 1)
        reach, middle = _MOST_CELLS // (2 * sums.size), sums * first // (first + second)
        self.low = np.maximum(np.maximum(0, sums - second), middle - reach)
        self.high = np.minimum(np.minimum(first, sums), middle + reach)
        self.width = int((self.high - self.low).max()) + 1
        self.scale = np.zeros(sums.size)
        self.before, self.posterior = np.zeros((sums.size, self.width)), np.zeros((sums.size, self.width))
        self.total, self.total_scale = 0.0, 0.0

    def pairs(self) -> Pairs:
        """The pairs above the bound."""
        self._sum_from_begin()
        self._sum_from_end()
        diagonal, index = np.nonzero(self.posterior > BOUND)
        first = self.low[diagonal] + index
        order = np.lexsort((diagonal - first, first))
        diagonal, index, first = diagonal[order], index[order], first[order]
        return Pairs(first - 1, diagonal - first - 1, self.posterior[diagonal, index].clip(max=1.0))

    def _empty(self) -> Floats:
        return np.zeros(self.width + 2 * (self.longest + 1))

    def _at(self, low: int, cells: slice) -> slice:
        """Where the weights of some cells are in an array whose first cell has `low` units of the first side."""
        shift = self.longest + 1 - low
        return slice(cells.start + shift, cells.stop + shift)

    def _cells(self, diagonal: int, move: Move = (0, 0)) -> slice:
        """The cells of an anti-diagonal that a move can end at."""
        low, high = max(int(self.low[diagonal]), move[0]), min(int(self.high[diagonal]), diagonal - move[1])
        return slice(low, max(low, high + 1))

    def _odds_at(self, diagonal: int, move: Move, cells: slice) -> Floats:
        """The odds of a move that ends at these cells."""
        last = diagonal - cells.start - 1  # index of the last unit of the second side at the first of the cells
        stop = last - (cells.stop - cells.start)
        return self.odds[move].at(slice(cells.start - 1, cells.stop - 1), slice(last, stop if stop >= 0 else None, -1))

    def _sum_from_begin(self) -> None:
        """Sum up the weights of all paths from the beginning to each cell."""
        recent: deque[_Weights] = deque(maxlen=self.longest)
        logarithm = 0.0
        for diagonal, low in enumerate(self.low.tolist()):
            here = _Weights(low, *(self._empty() for _ in range(4)))
            cells, own = self._cells(diagonal), self._at(low, self._cells(diagonal))
            if diagonal:
                last = recent[-1]
                self._add_matches(diagonal, here, recent)
                back = self._at(last.low, slice(cells.start - 1, cells.stop - 1))
                here.alone[own] = _ALONE * last.match[back] + _STILL_ALONE * last.alone[back]
                same = self._at(last.low, cells)
                here.other[own] = (
                    _ALONE * last.match[same] + _STILL_ALONE * last.other[same] + _ALONE_TOO * last.alone[same]
                )
            else:
                here.match[own] = 1.0
            here.before[own] = (
                (1 - 2 * _ALONE) * here.match[own] + _AGAIN * here.alone[own] + (1 - _STILL_ALONE) * here.other[own]
            )
            recent.append(here)
            largest = float(here.before.max())
            if not _SMALL < largest < _LARGE and largest > 0:
                logarithm += np.log(largest)
                for weights in recent:
                    weights.rescale(1 / largest)
            self.scale[diagonal] = logarithm
            self.before[diagonal, : cells.stop - cells.start] = here.before[own]
        self.total = sum(float(weights[own][-1]) for weights in (here.match, here.alone, here.other))
        self.total_scale = logarithm

    def _add_matches(self, diagonal: int, here: _Weights, recent: deque[_Weights]) -> None:
        for move in self.odds:
            cells = self._cells(diagonal, move)
            if sum(move) <= len(recent) and cells.start < cells.stop:
                begin = recent[-sum(move)]
                before = begin.before[self._at(begin.low, slice(cells.start - move[0], cells.stop - move[0]))]
                here.match[self._at(here.low, cells)] += self._odds_at(diagonal, move, cells) * before

    def _sum_from_end(self) -> None:
        """Sum up the weights of all paths from each cell to the end, and with them the posteriors."""
        count = self.low.size
        ahead = deque(
            self._empty() for _ in range(self.longest + 1)
        )  # by anti-diagonal: from a match that begins there
        lows = self.low.tolist()
        alone, other, later_low, logarithm = self._empty(), self._empty(), lows[-1], 0.0
        for diagonal in range(count - 1, -1, -1):
            low, cells = lows[diagonal], self._cells(diagonal)
            own = self._at(low, cells)
            after = ahead.popleft()[own]
            ahead.append(self._empty())
            to_alone = alone[self._at(later_low, slice(cells.start + 1, cells.stop + 1))]
            to_other = other[self._at(later_low, cells)]
            states = [self._empty() for _ in range(3)]
            match, alone, other = states
            match[own] = (1 - 2 * _ALONE) * after + _ALONE * (to_alone + to_other)
            alone[own] = _AGAIN * after + _STILL_ALONE * to_alone + _ALONE_TOO * to_other
            other[own] = (1 - _STILL_ALONE) * after + _STILL_ALONE * to_other
            if diagonal == count - 1:
                for weights in states:
                    weights[own] = 1.0
            largest = float(match.max())
            if not _SMALL < largest < _LARGE and largest > 0:
                logarithm += np.log(largest)
                for weights in (*states, *ahead):
                    weights /= largest
            later_low = low
            self._take_matches(diagonal, match, logarithm, ahead)

    def _take_matches(self, diagonal: int, match: Floats, logarithm: float, ahead: deque[Floats]) -> None:
        """Pass on what follows each match to where the match begins, and count its posterior."""
        for move in self.odds:
            cells, begin = self._cells(diagonal, move), diagonal - sum(move)
            if cells.start >= cells.stop:
                continue
            weights = self._odds_at(diagonal, move, cells) * match[self._at(int(self.low[diagonal]), cells)]
            starts = slice(cells.start - move[0], cells.stop - move[0])
            ahead[sum(move) - 1][self._at(int(self.low[begin]), starts)] += weights
            factor = np.exp(min(_MOST_EXPONENT, self.scale[begin] + logarithm - self.total_scale)) / self.total
            self._count(diagonal, move, cells, weights * self._values_at(self.before, begin, starts) * factor)

    def _values_at(self, values: Floats, diagonal: int, cells: slice) -> Floats:
        """What is stored of some cells; 0 of those that are too far from the diagonal."""
        indices = np.arange(cells.start, cells.stop) - self.low[diagonal]
        is_stored = (indices >= 0) & (indices <= self.high[diagonal] - self.low[diagonal])
        return np.where(is_stored, values[diagonal, np.where(is_stored, indices, 0)], 0.0)

    def _count(self, diagonal: int, move: Move, cells: slice, posterior: Floats) -> None:
        """Add the posterior of a move to those of the pairs that it consists of."""
        for back in range(max(move)):
            at = diagonal - back
            indices = np.arange(cells.start, cells.stop) - (back if move[0] > 1 else 0) - self.low[at]
            is_stored = (indices >= 0) & (indices <= self.high[at] - self.low[at])
            self.posterior[at, indices[is_stored]] += posterior[is_stored]
