"""Two sequences of units aligned: which work of one recording is which work of another, whatever code ran it.

What lies between two anchors (anchors.py) is aligned by posteriors (pair_hmm.py), by what signatures say (likeness.py).
Layers repeat, so many of these stretches occur several times, and each is computed once. Units that are left over
because they run in another order are then matched with equal ones nearby.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE
from ...errors import BadParameter
from .anchors import anchors
from .families import POINTWISE
from .guess import path_guess
from .likeness import Likeness
from .pair_hmm import probable_pairs
from .pairs import Floats, Pairs, Rows
from .units import SIGNATURE, Units

_OF_MOVED = 0.9  # posterior of a unit that is out of order: nothing around it confirms it
_FARTHEST = 50.0  # units out of order
_MOST_UNITS = 100_000  # of a side: beyond them it takes more than some seconds


@dataclass(frozen=True)
class Alignment:
    """Which units are the same work.

    Args:
        first: By unit of the first side the number of its match, or NONE: no counterpart is probable.
        second: The same of the second side. A match has one unit of one side, and one or several of the other.
        posterior: Of each match: of the least probable of its pairs.
        is_moved: Of each match, whether it is out of order.
        growth: How many times larger FLOPs and sizes are on the second side, by most of the work: its batch.
    """

    first: Rows
    second: Rows
    posterior: Floats
    is_moved: NDArray[np.bool_]
    growth: float


def align(first: Units, second: Units) -> Alignment:
    """Align the units of two sides.

    Raises:
        BadParameter: They are too large.
    """
    most = max(first.rows.size, second.rows.size)
    if most > _MOST_UNITS:
        raise BadParameter(f"Too large to align: a step has {most:,} kernels and copies; the limit is {_MOST_UNITS:,}.")
    numbers = _numbers(first, second)
    sequences = (numbers[0][first.codes], numbers[1][second.codes])
    certain = anchors(*sequences)
    likeness = Likeness(first, second)
    in_order = Pairs.concat([certain, *_between(certain, first, second, sequences, likeness)])
    others = _pairs_out_of_order(in_order, first, second, numbers)
    return _matches(in_order, others, (first.rows.size, second.rows.size), likeness.growth)


def _numbers(first: Units, second: Units) -> tuple[Rows, Rows]:
    """A number for each signature of both sides, equal for equal ones; NONE where the operator isn't known."""
    both = pl.concat([first.signatures, second.signatures])
    distinct = both.unique(maintain_order=True).with_row_index("number")
    numbers = both.join(distinct, on=list(SIGNATURE), maintain_order="left").select(
        pl.when(pl.col("operator") == "").then(NONE).otherwise(pl.col("number").cast(pl.Int64))
    )
    of_first, of_second = np.split(numbers.to_series().to_numpy(), [first.signatures.height])
    return of_first, of_second


def _between(
    certain: Pairs, first: Units, second: Units, numbers: tuple[Rows, Rows], likeness: Likeness
) -> Iterator[Pairs]:
    """The probable pairs of each stretch between two anchors; equal stretches are computed once."""
    pairs_of = dict[tuple[bytes, bytes], Pairs]()
    are_pointwise = [side.signatures["family"].is_in(POINTWISE).to_numpy() for side in (first, second)]
    for stretch, other in certain.stretches((first.codes.size, second.codes.size)):
        codes, others = first.codes[stretch], second.codes[other]
        key = (codes.tobytes(), others.tobytes())
        if key not in pairs_of:
            guess = path_guess(numbers[0][stretch], numbers[1][other])
            sizes, joins = (codes.size, others.size), (are_pointwise[0][codes], are_pointwise[1][others])
            pairs_of[key] = probable_pairs(likeness.odds(codes, others), sizes, joins, guess)
        yield pairs_of[key].shift(stretch.start, other.start)


def _pairs_out_of_order(pairs: Pairs, first: Units, second: Units, numbers: tuple[Rows, Rows]) -> Pairs:
    """Units without a pair, of equal signatures, each of which is the nearest to the other by the order of pairs."""
    left = _without_pair(first, pairs.first, numbers[0], pairs.first, pairs.second)
    others_left = _without_pair(second, pairs.second, numbers[1], pairs.second, pairs.second)
    both = _nearest(left, others_left).join(
        _nearest(others_left, left).select(index="index_right", index_right="index"), on=["index", "index_right"]
    )
    units, partners = (both[name].to_numpy() for name in ("index", "index_right"))
    return Pairs(units, partners, np.full(both.height, _OF_MOVED))


def _nearest(left: pl.DataFrame, others_left: pl.DataFrame) -> pl.DataFrame:
    """With each unit the nearest one of equal signature of the other side, if one is near."""
    nearest = left.join_asof(
        others_left, on="near", by="number", strategy="nearest", tolerance=_FARTHEST, check_sortedness=False
    )
    return nearest.filter(pl.col("index_right").is_not_null())


def _without_pair(side: Units, indices: Rows, numbers: Rows, at: Rows, near: Rows) -> pl.DataFrame:
    """Place and signature of the units of known operators without a pair, and where they would be on the second side.

    Args:
        side: Of the units.
        indices: Those with a pair.
        numbers: By signature.
        at: Places on the side, in order.
        near: Where they are on the second side.
    """
    is_left = np.ones(side.codes.size, bool)
    is_left[indices] = False
    index = np.flatnonzero(is_left)
    where = np.interp(index, at, near) if at.size else index.astype(np.float64)
    left = pl.DataFrame({"index": index, "number": numbers[side.codes[index]], "near": where})
    return left.filter(pl.col("number") != NONE).sort("near")


def _matches(in_order: Pairs, others: Pairs, sizes: tuple[int, int], growth: float) -> Alignment:
    """Pairs as matches: those that share a unit, or lie between such, are one."""
    furthest = np.maximum.accumulate(np.append(-1, in_order.second))[:-1]
    is_new = (np.diff(in_order.first, prepend=-1) > 0) & (in_order.second > furthest)
    numbers = np.append(np.cumsum(is_new) - 1, is_new.sum() + np.arange(others.first.size))
    sides = [np.full(size, NONE, np.int64) for size in sizes]
    for side, name in zip(sides, ("first", "second"), strict=True):
        side[np.append(getattr(in_order, name), getattr(others, name))] = numbers
    count = int(is_new.sum()) + others.first.size
    posterior = np.ones(count)
    np.minimum.at(posterior, numbers, np.append(in_order.posterior, others.posterior))
    return Alignment(sides[0], sides[1], posterior, np.arange(count) >= is_new.sum(), growth)
