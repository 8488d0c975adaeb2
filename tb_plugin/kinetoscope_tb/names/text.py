"""Numbers for sentences: few digits with a unit, shares in percent."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal

from .regex import regex

DIGITS = 3
MOST_DIGITS = 15  # that a float holds
_TINY_SHARE = 0.001  # a smaller one is shown as "<0.1 %"

_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_RATES = ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s"))
_FILE_SIZES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_SHARES = {1 / 4: "A quarter", 1 / 3: "A third", 1 / 2: "Half", 2 / 3: "Two thirds", 3 / 4: "Three quarters"}
_CONTROL = regex(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_EXACT = Context(prec=400, rounding=ROUND_HALF_UP)  # holds any float's digits
_MOST = 0.5
_NEAR = 0.01  # maximum distance from a share to use its name


def few_digits(value: float, most_decimals: int = MOST_DIGITS, significant: int = DIGITS) -> str:
    """The value with three significant digits, no zeros at the end of its decimals, and every digit before the point.

    Halves are rounded up, as JavaScript rounds them: the page shows the same digits (frontend/src/format/numbers.ts).
    """
    if not math.isfinite(value):
        return str(value)
    exact = Decimal(float(value))
    decimals = max(0, min(most_decimals, significant - 1 - exact.adjusted())) if value else 0
    text = f"{exact.quantize(Decimal(1).scaleb(-decimals), context=_EXACT):f}"
    text = text.rstrip("0").rstrip(".") if decimals else text
    return text if text.strip("-0.") else "0"


def time(ns: float) -> str:
    """Such as 59.3 ms."""
    size, unit = next((u for u in _UNITS if abs(ns) >= u[0]), _UNITS[-1])
    return f"{digits(ns / size)} {unit}"


def time_range(low_ns: float, high_ns: float) -> str:
    """Such as 6.9 to 8.1 ms; 0 has no unit."""
    low, high = time(low_ns), time(high_ns)
    number, unit = low.split(" ")
    return f"{number if not low_ns or high.endswith(f' {unit}') else low} to {high}"


def digits(value: float) -> str:
    """Three significant digits, thin spaces between thousands from five digits on."""
    text = few_digits(value)
    return f"{int(text):,}".replace(",", "\u202f") if abs(value) >= 10_000 else text


def percent(share: float) -> str:
    """Such as 33.4 % or <0.1 %; only a whole is 100 %."""
    return f"{percent_number(share)} %"


def percent_number(share: float) -> str:
    """The number of a share: at most one decimal."""
    if 0 < share < _TINY_SHARE / 2:
        return f"<{100 * _TINY_SHARE:.1f}"
    return few_digits(100 * share if share >= 1 else min(100 * share, 99.9), 1)


def signed_percent(growth: float) -> str:
    """A growth in a table, such as +6 % or -20.6 %."""
    number = few_digits(100 * growth, 1)
    return f"{'' if number == '0' or growth < 0 else '+'}{number} %"


def share(part: float) -> str:
    """The beginning of a sentence: "A third", or "37.2 %"."""
    return next((word for value, word in _SHARES.items() if abs(part - value) <= _NEAR), percent(part))


def most_or_percent(share: float) -> str:
    """How much of something, such as "most" or 37.2 %."""
    return "most" if share >= _MOST else percent(share)


def part_of_time(share: float) -> str:
    """How much of a time that was just said: "most of it", or "37.2 % of that time", which may be a share itself."""
    return "most of it" if share >= _MOST else f"{percent(share)} of that time"


def often(count: float) -> str:
    """A mean count, such as 8.2 or 1 478."""
    return digits(count) if count == int(count) or count >= 10 else few_digits(count, 1)


def times(count: float, noun: str) -> str:
    """Such as 1 call, 12.5 calls."""
    return f"{often(count)} {noun}{'' if count == 1 else 's'}"


def file_size(count: float) -> str:
    """A size as programs for files show it, such as 512 B, 30.5 kB or 1.2 MB."""
    size, unit = next(((size, unit) for size, unit in _FILE_SIZES if count >= size), (1, "B"))
    return f"{count:.0f} B" if size == 1 else f"{few_digits(count / size, 1)} {unit}"


def byte_rate(bytes_per_s: float) -> str:
    """Such as 24.8 GB/s."""
    size, unit = next((rate for rate in _RATES if bytes_per_s >= rate[0]), _RATES[-1])
    return f"{digits(bytes_per_s / size)} {unit}"


def memory_size(count: float) -> str:
    """A size of memory in binary units, such as 512 B, 1.5 MiB or 80 GiB."""
    shift = next((shift for shift in (30, 20, 10) if count >= 1 << shift), 0)
    unit = {30: "GiB", 20: "MiB", 10: "KiB", 0: "B"}[shift]
    return f"{count:.0f} B" if not shift else f"{digits(count / (1 << shift))} {unit}"


def as_clause(sentence: str) -> str:
    """The sentence as a clause within another one; an abbreviation such as GPU stays."""
    return sentence if sentence[1:2].isupper() else sentence[:1].lower() + sentence[1:]


def capitalize(clause: str) -> str:
    """The clause as a sentence begins; but for its first letter it stays as it is, other than by `str.capitalize`."""
    return clause[:1].upper() + clause[1:]


def enumeration(items: list[str]) -> str:
    """Such as a, b and c; nothing for none."""
    return "".join(items) if len(items) < 2 else f"{', '.join(items[:-1])} and {items[-1]}"


def code(name: str) -> str:
    """A name from a trace as code in a sentence: in backticks, of which it has none itself."""
    return "`" + name.replace("`", "'") + "`"


def visible(text: str) -> str:
    """The text on one line, without control sequences: a name from a trace mustn't control the terminal."""
    return _CONTROL.sub(lambda m: m[0].encode("unicode_escape").decode(), text)
