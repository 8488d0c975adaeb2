"""Raw JSON tokens → texts and numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...names.regex import regex
from ..input.encodings import decode, whole_characters

_ESCAPE = regex(r'(\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))|\\')
_BARE_SHAPES = regex(r"[\d,;\s]*")
_LONGEST_LIST = 1 << 20  # characters: the longest real ones are some KiB
_NUMBER_AT_MOST = 400  # characters: a longer number is nonsense, and slow to convert


def text_of(token: bytes) -> str:
    """The text of a token.

    A string is without quotes and escapes, a list has one space after each comma, anything else is unchanged. Bytes
    that aren't UTF-8 (kineto#80) are decoded as cp1252 or replaced, lone surrogates are replaced; a backslash that
    escapes nothing (kineto#336: Windows paths) stands for itself. A list of over 1 MiB is cut, also in a string, since
    an object per item takes many times its text.
    """
    text = _decode(token)
    return text[:_LONGEST_LIST] if text[:1] == "[" else text


def _decode(token: bytes) -> str:
    text = decode(token)
    if text[:1] == "[":
        return _list_text(text)
    if len(text) < 2 or text[0] != '"':
        return text
    if "\\" not in text:
        return text[1:-1]
    try:
        value = json.loads(_ESCAPE.sub(lambda m: m[1] or "\\\\", text), strict=False)
    except ValueError:
        return text[1:-1]
    return whole_characters(str(value))


def _list_text(text: str) -> str:
    """Normalize spaces in lists, in which writers differ."""
    if len(text) > _LONGEST_LIST:
        return whole_characters(text)
    try:
        return whole_characters(json.dumps(json.loads(text, strict=False), ensure_ascii=False))
    except (ValueError, RecursionError):
        return text


def shapes_text(text: str) -> str:
    """Normalized input shapes: torch_npu's _torch_op_bean.py writes 4,8;8,8 with blanks for [[4, 8], [8, 8]]."""
    if text[:1] == "[" or not _BARE_SHAPES.fullmatch(text):
        return text
    shapes = text.split(";") if text else []
    return "[" + ", ".join(f"[{', '.join(shape.replace(',', ' ').split())}]" for shape in shapes) + "]"


def decimal_of(token: bytes) -> Decimal | None:
    """The number in the token, exactly, in whatever form: "7", 1e6, 0x1f; None for NaN, inf, N/A and other texts."""
    text = token[:_NUMBER_AT_MOST].decode("utf-8", "replace").strip('" ')
    try:
        if text[:2].lower() == "0x":
            return Decimal(int(text, 16))
        value = Decimal(text)
    except (InvalidOperation, ValueError):
        return None
    return value if value.is_finite() and abs(value.adjusted()) < 30 else None


def integer_of(token: bytes, thousandfold: int = 1) -> int | None:
    """The number times `thousandfold`, truncated; None if it isn't a number or exceeds 64 bits."""
    value = decimal_of(token)
    if value is None:
        return None
    integer = int(value * thousandfold)
    return integer if -(2**63) < integer < 2**63 else None


def float_of(token: bytes) -> float:
    """The number in the token; NaN for a text, and for inf, which old torch writes (kineto 06640577)."""
    try:
        value = float(token.strip(b'"'))
    except ValueError:
        return float("nan")
    return value if isfinite(value) else float("nan")


def leading_digits(text: str) -> int | None:
    """The first number in a text such as "stream 7 annotations"."""
    digits = re.search(r"\d{1,18}", text)
    return int(digits[0]) if digits else None


class Texts:
    """The texts of codes, each decoded when it is first used; code -1 is None.

    Args:
        tokens: The raw JSON token of each code.
        spelt: Replacements of some texts.
    """

    def __init__(self, tokens: Sequence[bytes], spellings: Mapping[str, str] | None = None) -> None:
        self.tokens = tokens
        self._spelt = spellings or {}
        self._texts: dict[int, str | None] = {-1: None}

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, code: int) -> str | None:
        text = self._texts.get(code)
        if text is None and code >= 0:
            text = text_of(self.tokens[code])
            text = self._texts[code] = self._spelt.get(text, text)
        return text


def distinct_codes(codes: NDArray[Any], n_codes: int) -> list[int]:
    """The codes that occur, -1 first if it does."""
    occurs = np.zeros(n_codes + 1, bool)
    occurs[codes] = True  # -1 is the last place
    return [-1] * bool(occurs[-1]) + np.flatnonzero(occurs[:-1]).tolist()
