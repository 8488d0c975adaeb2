"""How likely work of one family is that of another, or a piece of it: natural logarithms of odds.

To leave a unit alone on each side costs about −7, and on one side about −4 (pair_hmm.py): work that is less likely the
same than that isn't matched.
"""

from __future__ import annotations

POINTWISE = ("cast", "layout", "elementwise", "other")
_MATRIX = ("matmul", "convolution", "attention")
_TRANSFER = ("copy", "fill")

_OTHER_POINTWISE, _OTHER_WORK, _OTHER_SERVICE = -0.5, -7.0, -12.0
_PIECE, _PIECE_OF_ATTENTION, _OTHER_PIECE = -1.0, -0.5, -6.0


def odds_of_families(name: str, other: str) -> float:
    """The odds that work of a family is work of another one: fusing makes one pointwise family of another."""
    pair = (name, other)
    if all(family in POINTWISE for family in pair):
        return _OTHER_POINTWISE
    computes = all(family in (*POINTWISE, *_MATRIX) for family in pair)
    copies = any(family in _TRANSFER for family in pair) and any(family in POINTWISE for family in pair)
    return _OTHER_WORK if computes or copies else _OTHER_SERVICE


def odds_of_piece(whole: str, piece: str) -> float:
    """The odds that work of a family has a further piece of another one.

    What is pointwise fits into all that computes, and products fit into attention; a split unit has equal pieces.
    """
    if piece in _MATRIX and whole == "attention":
        return _PIECE_OF_ATTENTION
    if piece == whole or (piece in POINTWISE and whole in (*POINTWISE, *_MATRIX)):
        return _PIECE
    return _OTHER_PIECE
