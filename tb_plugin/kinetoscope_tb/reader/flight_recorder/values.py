"""Values of a dump: whatever a file holds, as numbers and texts of limited size."""

from __future__ import annotations

import math

_WORD, _MOST_DIGITS, _LARGEST = 200, 19, 1 << 63
_LIBRARY = ("/torch/", "/site-packages/", "/dist-packages/", "\\torch\\", "\\site-packages\\", "<frozen ")
_STANDARD_LIBRARY = ("/lib/python3.", "\\Lib\\")


def integer(value: object) -> int | None:
    """A number, or a text of one, of 64 bits."""
    if isinstance(value, str) and len(value) <= _MOST_DIGITS + 1 and value.removeprefix("-").isdecimal():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -_LARGEST <= value < _LARGEST:
        return None
    return value


def number(value: object) -> float:
    """A finite number that isn't negative; else 0."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST
    return max(0.0, float(value)) if is_number and math.isfinite(value) else 0.0  # type: ignore[arg-type]


def text(value: object) -> str:
    """A text, cut; empty if it isn't one."""
    return value[:_WORD] if isinstance(value, str) else ""


def text_list(values: object) -> tuple[str, ...]:
    """Texts, cut."""
    return tuple(map(text, values)) if isinstance(values, list | tuple) else ()


def is_library(file: str) -> bool:
    """Whether a source file is torch's, another library's or Python's own."""
    return any(part in file for part in (*_LIBRARY, *_STANDARD_LIBRARY))


def source_line(file: str, line: int) -> str:
    """Such as train.py:88; of a very long path the end."""
    return f"{file[-_WORD:]}:{line}"
