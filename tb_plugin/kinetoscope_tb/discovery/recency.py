"""Which run and which recording is the newest, by the dates in their names, the recorder's clock, or the files' times.

Copying a folder gives all its files one modification time, so a date in a name and the time that the recorder wrote
come first. The spans of a worker are mostly numbers of steps, which grow.
"""

from __future__ import annotations

import re
from datetime import datetime, timezone
from functools import lru_cache

from ..names.natural_sort import Key, natural_key
from ..names.regex import regex

_MOST_REMEMBERED = 1 << 14  # names, each parsed once per listing otherwise

# 20261123, 2026-11-23_14-05-09, 20261123-140509, and Hydra's 2026-11-23/14-05-09
_DATE = regex(
    r"(?<!\d)(20\d\d)([-_.]?)(\d\d)\2(\d\d)(?:[-_.T/ ]*(\d\d)[-_:.h]?(\d\d)(?:[-_:.m]?(\d\d))?)?(?!\d)", re.ASCII
)
_SINCE_1970 = regex(r"(?<!\d)(\d{10}|\d{13}|\d{16}|\d{19})(?!\d)", re.ASCII)  # in s, ms, µs or ns
_NS_DIGITS = 19


@lru_cache(_MOST_REMEMBERED)
def moment_in(name: str) -> int:
    """The last date in a name, or the time since 1970, in ns since 1970; 0 if it has none.

    A date without a time of day is its beginning, in UTC: dates are only compared with one another.
    """
    moments = [moment for match in _DATE.finditer(name) if (moment := _of_date(match))]
    times = [int(match[1].ljust(_NS_DIGITS, "0")) for match in _SINCE_1970.finditer(name)]
    return (moments or times or [0])[-1]


def _of_date(match: re.Match[str]) -> int:
    year, _, month, day, hour, minute, second = match.groups(default="0")
    try:
        moment = datetime(*map(int, (year, month, day, hour, minute, second)), tzinfo=timezone.utc)  # type: ignore[misc, arg-type]
    except ValueError:  # such as 20261399
        return 0
    return int(moment.timestamp()) * 10**9


def run_recency(run: str, span: str, started_ns: int, modified_ns: int) -> tuple[int, int, int, Key]:
    """A key of a recording: the run that has the greatest is the newest."""
    moment = moment_in(run) or moment_in(span) or started_ns or modified_ns
    return moment, started_ns, modified_ns, natural_key(run)


def span_recency(span: str, started_ns: int, modified_ns: int) -> tuple[int, int, int, Key]:
    """A key that is greatest for the newest recording of a worker."""
    number = int(span) if span.isdecimal() else 0
    return moment_in(span) or started_ns, number, modified_ns, natural_key(span)
