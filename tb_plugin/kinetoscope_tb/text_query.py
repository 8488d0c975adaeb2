"""Text filters as in the page's tables: `words that must occur -words that must not re:a pattern`."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
from numpy.typing import NDArray

from .errors import BadParameter

_PARTS = re.compile(r"(?s)(.*?)(?:(?:^|\s)re:(.*))?")


def texts_with(words: str, texts: list[str]) -> NDArray[np.bool_]:
    """Mask of the texts that match the words, ignoring case.

    Raises:
        BadParameter: What follows `re:` is no valid pattern. Patterns are those of Rust's regex crate, which match in
            linear time: no lookaround, no backreferences.
    """
    plain, pattern = _split(words)
    column = pl.Series(texts, dtype=pl.String)
    lower = column.str.to_lowercase()
    is_match = np.ones(len(texts), bool)
    for word in plain.lower().split():
        if word.startswith("-"):
            is_match &= ~_contain(lower, word[1:]) if len(word) > 1 else True
        else:
            is_match &= _contain(lower, word)
    if pattern:
        try:
            is_match &= column.str.contains(f"(?i){pattern}").to_numpy()
        except pl.exceptions.ComputeError as error:
            raise BadParameter(f"re:{pattern} isn't a pattern: {_reason(str(error))}.") from None
    return is_match


def _reason(error: str) -> str:
    """The line in which Rust's regex crate says what is wrong, without the expression that Polars adds."""
    lines = [line for line in error.splitlines() if line.startswith("error: ")]
    return lines[-1].removeprefix("error: ") if lines else error.partition("\n")[0]


def _split(words: str) -> tuple[str, str]:
    parts = _PARTS.fullmatch(words)
    return (parts[1], (parts[2] or "").strip()) if parts else (words, "")


def _contain(texts: pl.Series, word: str) -> NDArray[np.bool_]:
    is_match: NDArray[np.bool_] = texts.str.contains(word, literal=True).to_numpy()
    return is_match
