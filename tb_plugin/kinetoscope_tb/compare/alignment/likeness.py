"""The odds that two units, or one and several, are the same work, by their signatures: natural logarithms, summed up.

Evidence is worth what chance makes of it: equal FLOPs that all units have say little, equal ones that two units have
say a lot. What a side doesn't know is no evidence. Operators and sizes count half, since families and FLOPs say in part
the same. Other FLOPs or another size are other work, unless they differ by the one factor by which most of the work
does: then the batches do. Where a compiler says which operators it fused, these are evidence, too.

A unit that fuses several does their FLOPs together, reads the largest of their tensors, and takes no longer than they
do. So does one that is split, the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from .families import odds_of_families, odds_of_piece
from .pair_hmm import Move, MoveOdds, Odds
from .pairs import Floats, Mask, Rows
from .units import UNKNOWN, Units, base_operator

MOST_FUSED = 6  # units: unfused attention has about as many

_EQUAL, _MOST_EVIDENCE = (
    0.9,
    3.0,
)  # the share of equal values among pairs that are the same work; the most that one says
_NEARLY = 0.02  # of a value: how much equal ones may differ
_OTHER_OPERATOR, _OTHER_FLOP, _OTHER_SIZE, _OTHER_ROLE = -2.0, -9.0, -7.0, -2.0
_OTHER_PIECE, _UNKNOWN_PIECE = (
    -6.0,
    -3.5,
)  # a piece of another operator, or of an unknown one where that of the whole is known
_SAID, _DENIED, _PIECE_SAID, _PIECE_DENIED = 2.5, -3.0, 0.5, -4.5  # what the compiler says that it fused
_SIMILAR_TIME, _OTHER_TIME, _SPREAD = 0.5, -2.0, 0.7
_LEAST_OF_PIECES, _MOST_OF_PIECES = 0.1, 1.3  # of the time of the pieces: what the unit that fuses them takes
_OF_TORCH = "aten::"
_MOST_CELLS = 1 << 21  # of a table
_MOST_KINDS = 64  # of units of an operator on a side, by which the growth is found
_LEAST_GAIN = 0.1  # of units: what a factor between both sides pairs of them


@dataclass(frozen=True)
class _Kinds:
    """The kinds of units of a side, a row per signature. Negative: unknown.

    Args:
        family, operator: Numbers that are the same on both sides.
        flop, size: As in SIGNATURE; of helpers no FLOPs.
        ns: Typical duration, as a share of the side's time.
        is_helper: As in SIGNATURE.
        is_vague: Whether the operator may be a fused one, so that another one is no evidence.
        worth: Of family, operator, flop and size: the evidence that an equal value is.
        growth: How much larger FLOPs and sizes are on the other side, where they depend on the batch.
        base_operators, fused_operators: A column per operator: whether it is the unit's, and whether it is fused there.
    """

    family: Rows
    operator: Rows
    flop: Floats
    size: Floats
    ns: Floats
    is_helper: Mask
    is_vague: Mask
    worth: pl.DataFrame
    growth: float
    base_operators: Mask
    fused_operators: Mask


class Likeness:
    """Odds for the units of two sides; `growth` is how much larger FLOPs and sizes are on the second one."""

    def __init__(self, first: Units, second: Units) -> None:
        both = pl.concat(
            [_with_counts(side).with_columns(side=pl.lit(nth)) for nth, side in enumerate((first, second))]
        )
        self._families = both["family"].unique(maintain_order=True).to_list()
        numbers = both.with_columns(
            family=pl.col("family").cast(pl.Enum(self._families)).to_physical().cast(pl.Int64),
            is_vague=~pl.col("operator").str.starts_with(_OF_TORCH) | (pl.col("family") == "attention"),
            operator=pl.when(pl.col("operator") == "").then(UNKNOWN).otherwise(pl.col("operator").rank("dense")),
            flop=pl.when("is_helper").then(UNKNOWN).otherwise("flop"),
        )
        worth = numbers.select(_worth(name) for name in ("family", "operator", "flop", "size"))
        self.growth = _growth(numbers)
        words = _words(both)
        self._kinds = tuple(
            _kinds(numbers, worth, side, growth, words) for side, growth in ((0, self.growth), (1, 1 / self.growth))
        )

    def odds(self, first: Rows, second: Rows) -> Odds:
        """The odds for two sequences of signatures; of long ones without the longest fusions."""
        moves: dict[Move, MoveOdds] = {(1, 1): MoveOdds.of(first, second, np.exp(self._of_units()))}
        for count in range(2, MOST_FUSED + 1):
            for side, (wholes, pieces) in enumerate(((first, second), (second, first))):
                numbers, runs = _runs(pieces, count)
                if not 0 < runs.shape[0] * self._kinds[side].family.size <= _MOST_CELLS:
                    continue
                table = np.exp(self._of_fusions(side, runs))
                if side == 0:
                    moves[1, count] = MoveOdds.of(wholes, numbers, table)
                else:
                    moves[count, 1] = MoveOdds.of(numbers, wholes, table.T)
        return moves

    def _of_units(self) -> Floats:
        """The odds of each kind of unit of the first side and each of the second."""
        own, other = self._kinds
        apart = np.log(other.ns / own.ns[:, None]) / _SPREAD
        odds = self._of_names(0) + self._of_amounts(0, other.flop, other.size)
        odds += np.where(own.is_helper[:, None] == other.is_helper, 0.0, _OTHER_ROLE)
        return odds + np.maximum(_OTHER_TIME, _SIMILAR_TIME - apart**2 / 2)

    def _of_fusions(self, side: int, runs: Rows) -> Floats:
        """The odds that a kind of unit of a side fuses a run of units of the other one.

        Args:
            side: 0 or 1.
            runs: The kinds of the units of each run.
        """
        own, other = self._kinds[side], self._kinds[1 - side]
        pieces = self._of_pieces(side)[:, runs]  # kinds × runs × indices
        names = self._of_names(side) + np.where(self._is_other(side), _OTHER_PIECE, 0.0)
        best = (names[:, runs] - pieces).max(axis=2)  # the piece that gives the whole its name is no further one
        share = own.ns[:, None] / other.ns[runs].sum(axis=1)
        odds: Floats = best + pieces.sum(axis=2) + self._of_amounts(side, *_together(other, runs))
        odds += np.where((share < _LEAST_OF_PIECES) | (share > _MOST_OF_PIECES), _OTHER_TIME, 0.0)
        return odds

    def _of_names(self, side: int) -> Floats:
        """The evidence of families and operators, for kinds of units of a side and of the other one."""
        own, other = self._kinds[side], self._kinds[1 - side]
        table = np.array([[odds_of_families(name, second) for second in self._families] for name in self._families])
        is_equal = own.family[:, None] == other.family
        odds = np.where(is_equal, own.worth["family"].to_numpy()[:, None], table[own.family[:, None], other.family])
        is_known = (own.operator[:, None] >= 0) & (other.operator >= 0)
        is_same = is_known & (own.operator[:, None] == other.operator)
        odds += np.where(is_same, own.worth["operator"].to_numpy()[:, None] / 2, 0.0)
        odds += np.where(self._is_other(side), _OTHER_OPERATOR, 0.0)
        is_said, is_denied = self._compiler_says(side)
        return odds + np.where(is_said, _SAID, np.where(is_denied, _DENIED, 0.0))

    def _compiler_says(self, side: int) -> tuple[Mask, Mask]:
        """Where the compiler says what it fused: whether units of both sides have an operator in common, or none."""
        own, other = self._kinds[side], self._kinds[1 - side]
        words, other_words = own.fused_operators | own.base_operators, other.fused_operators | other.base_operators
        is_said = np.add.outer(own.fused_operators.any(axis=1), other.fused_operators.any(axis=1))
        is_said &= np.multiply.outer(words.any(axis=1), other_words.any(axis=1))
        is_common = words.astype(np.float32) @ other_words.T.astype(np.float32) > 0
        return is_said & is_common, is_said & ~is_common

    def _is_other(self, side: int) -> Mask:
        """Whether the operators of kinds of units of a side and of the other one are known to differ."""
        own, other = self._kinds[side], self._kinds[1 - side]
        differs: Mask = (own.operator[:, None] >= 0) & (other.operator >= 0) & (own.operator[:, None] != other.operator)
        differs &= ~(own.is_vague[:, None] | other.is_vague)
        return differs

    def _of_pieces(self, side: int) -> Floats:
        """What each kind of unit of the other side costs as a further piece of a kind of a side."""
        own, other = self._kinds[side], self._kinds[1 - side]
        table = np.array([[odds_of_piece(whole, piece) for piece in self._families] for whole in self._families])
        costs = table[own.family[:, None], other.family]
        costs = np.where(self._is_other(side), np.minimum(costs, _OTHER_PIECE), costs)
        is_unknown = (own.operator[:, None] >= 0) & (other.operator < 0)
        costs = np.where(is_unknown, np.minimum(costs, _UNKNOWN_PIECE), costs)
        is_said, is_denied = self._compiler_says(side)
        return np.where(is_said, _PIECE_SAID, np.where(is_denied, np.minimum(costs, _PIECE_DENIED), costs))

    def _of_amounts(self, side: int, flop: Floats, size: Floats) -> Floats:
        """The evidence of FLOPs, or where they aren't known of sizes."""
        own = self._kinds[side]
        of_flop = _evidence(own.flop, own.worth["flop"], flop, own.growth, _OTHER_FLOP)
        of_size = _evidence(own.size, own.worth["size"] / 2, size, own.growth, _OTHER_SIZE)
        return np.where((own.flop[:, None] >= 0) & (flop >= 0), of_flop, of_size)


def _with_counts(side: Units) -> pl.DataFrame:
    """The signatures with the number of their units, and their typical duration as a share of the time."""
    count = np.bincount(side.codes, minlength=side.signatures.height)
    ns = np.maximum(side.typical_ns, 1.0)
    return side.signatures.with_columns(count=pl.Series(count), ns=pl.Series(ns / max(1.0, float(ns @ count))))


def _worth(name: str) -> pl.Expr:
    """The evidence that an equal value is: the logarithm of how much likelier it is than by chance."""
    is_known = pl.col(name) >= 0
    chance = pl.col("count").sum().over(name) / pl.col("count").filter(is_known).sum()
    return pl.when(is_known).then((_EQUAL / chance).log().clip(0.0, _MOST_EVIDENCE)).otherwise(0.0).alias(name)


def _growth(numbers: pl.DataFrame) -> float:
    """The factor from the amounts of the first side to those of the second that pairs most units which 1 doesn't pair.

    Units of equal operators may be a pair. 1 if no factor pairs a tenth of the units further.
    """
    frequent = pl.col("count").rank("ordinal", descending=True).over("operator", "is_helper", "side") <= _MOST_KINDS
    units = numbers.filter((pl.col("operator") >= 0) & frequent).with_row_index("unit")
    pairs = units.filter(side=0).join(units.filter(side=1), on=["family", "operator", "is_helper"])
    ratios = [
        pairs.filter((pl.col(name) > 0) & (pl.col(f"{name}_right") > 0)).select(
            "unit",
            paired=pl.min_horizontal("count", "count_right"),
            ratio=pl.col(f"{name}_right") / pl.col(name),
        )
        for name in ("flop", "size")
    ]
    class_of_ratio = (pl.col("ratio").log() / _NEARLY).round().cast(pl.Int64).alias("class")
    of_units = pl.concat(ratios).group_by("unit", class_of_ratio).agg(pl.col("paired").max(), pl.col("ratio").median())
    without = of_units.filter(pl.col("class") == 0).select("unit", without="paired")
    gains = (
        of_units.join(without, on="unit", how="left")
        .group_by("class")
        .agg(
            (pl.col("paired") - pl.col("without").fill_null(0)).clip(lower_bound=0).sum().alias("gain"),
            pl.col("ratio").median(),
        )
    )
    best = gains.sort(pl.col("gain"), pl.col("class").abs(), descending=[True, False])
    least = _LEAST_GAIN * int(units.filter(side=0)["count"].sum())
    is_larger = best.height and best["gain"][0] >= least
    return float(best["ratio"][0]) if is_larger else 1.0


def _words(signatures: pl.DataFrame) -> tuple[Mask, Mask]:
    """A column per operator: whether it is that of a signature, where torch says it, and whether it is fused there."""
    operators = [
        {base_operator(name)} if name.startswith(_OF_TORCH) else set[str]() for name in signatures["operator"].to_list()
    ]
    of_compiler = [set(names.split("+")) - {""} for names in signatures["fused"].to_list()]
    columns = sorted(set().union(*operators, *of_compiler))
    of_operators, of_fused = (
        np.array([[word in words for word in columns] for words in part], bool).reshape(len(part), len(columns))
        for part in (operators, of_compiler)
    )
    return of_operators, of_fused


def _kinds(numbers: pl.DataFrame, worth: pl.DataFrame, side: int, growth: float, words: tuple[Mask, Mask]) -> _Kinds:
    is_own = numbers["side"] == side
    own = numbers.filter(is_own)
    family, operator = (own[name].cast(pl.Int64).to_numpy() for name in ("family", "operator"))
    flop, size, ns = (own[name].cast(pl.Float64).to_numpy() for name in ("flop", "size", "ns"))
    is_helper, is_vague = (own[name].to_numpy() for name in ("is_helper", "is_vague"))
    of_side = (part[is_own.to_numpy()] for part in words)
    return _Kinds(family, operator, flop, size, ns, is_helper, is_vague, worth.filter(is_own), growth, *of_side)


def _evidence(own: Floats, worth: pl.Series, other: Floats, growth: float, otherwise: float) -> Floats:
    """The evidence of values that are nearly equal, also after they grew, or of others; none where one is unknown."""
    is_equal = _nearly_equal(own[:, None], other) | _nearly_equal(growth * own[:, None], other)
    is_known = (own[:, None] >= 0) & (other >= 0)
    return np.where(is_known, np.where(is_equal, worth.to_numpy()[:, None], otherwise), 0.0)


def _nearly_equal(own: Floats, other: Floats) -> Mask:
    is_equal: Mask = np.abs(own - other) <= _NEARLY * np.maximum(own, other)
    return is_equal


def _runs(codes: Rows, count: int) -> tuple[Rows, Rows]:
    """(by the index of its last unit the number of the run of `count` units, or -1; the signatures of each run)."""
    if codes.size < count:
        return np.full(codes.size, UNKNOWN), np.empty((0, count), np.int64)
    runs, numbers = np.unique(np.lib.stride_tricks.sliding_window_view(codes, count), axis=0, return_inverse=True)
    return np.concatenate([np.full(count - 1, UNKNOWN), numbers.ravel()]), runs


def _together(kinds: _Kinds, runs: Rows) -> tuple[Floats, Floats]:
    """The known FLOPs of runs of units, and the size of their largest tensors; negative: unknown."""
    flop, size = kinds.flop[runs], kinds.size[runs]
    return np.where((flop >= 0).any(axis=1), np.maximum(flop, 0).sum(axis=1), float(UNKNOWN)), size.max(axis=1)
