"""Users' own patterns of names that are communication, one per line of a text or per option of a command.

    my_allreduce            kernels with such names
    range: my_library::     operators and annotations with such names, and the kernels that they launch directly
    # a comment

Patterns are those of Rust's regex crate, which matches in linear time: no pattern can stall the server.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module

from .regex import regex

FILE_NAME = "communication_patterns.txt"
MOST_PATTERNS, MOST_LENGTH = 64, 256
_RANGE = "range:"
_CAUSE = regex(r"^(?:regex )?error: (.+)$", re.MULTILINE)  # as the regex crate words it


@dataclass(frozen=True)
class CommunicationPatterns:
    """Regular expressions of names that are communication, in addition to the ones that Kinetoscope knows.

    Args:
        kernels: Of kernels.
        ranges: Of operators and annotations on the host.
    """

    kernels: tuple[str, ...] = ()
    ranges: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.kernels or self.ranges)

    def __add__(self, other: CommunicationPatterns) -> CommunicationPatterns:
        """These patterns, then the other ones."""
        return CommunicationPatterns(
            tuple(dict.fromkeys(self.kernels + other.kernels)), tuple(dict.fromkeys(self.ranges + other.ranges))
        )

    @property
    def digest(self) -> str:
        """A text that differs for other patterns; empty if there are none."""
        return hashlib.sha256(repr((self.kernels, self.ranges)).encode()).hexdigest()[:16] if self else ""

    def kernel_rules(self, names: Sequence[str]) -> dict[str, str]:
        """For each matching name of a kernel the rule, which names the first pattern that matches."""
        return _rules(self.kernels, names)

    def matching_ranges(self, names: Sequence[str]) -> frozenset[str]:
        """The names that a pattern of host ranges matches."""
        return frozenset(_rules(self.ranges, names))


NO_PATTERNS = CommunicationPatterns()


def _rules(patterns: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    rules: dict[str, str] = {}
    for pattern in reversed(patterns):  # so that the first pattern has the last word
        rules |= dict.fromkeys(_matches(pattern, names), f"pattern {pattern}")
    return rules


def _matches(pattern: str, names: Sequence[str]) -> list[str]:
    """The names that a pattern matches.

    Raises:
        ValueError: It can't be compiled.
    """
    module = import_module(".pattern_matches", __package__)  # with Polars, which a listing doesn't need
    names_that_match: list[str] = module.matches(pattern, names)
    return names_that_match


@dataclass(frozen=True)
class BadPattern:
    """A line that isn't a pattern: its number from 1, and what to do about it."""

    line: int
    reason: str


def parse_patterns(lines: Iterable[str]) -> tuple[CommunicationPatterns, list[BadPattern]]:
    """The patterns in the lines, and the lines that can't be used; empty lines and comments are skipped."""
    patterns, problems = CommunicationPatterns(), list[BadPattern]()
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        is_range = text.startswith(_RANGE)
        pattern = text.removeprefix(_RANGE).strip()
        if len(patterns.kernels) + len(patterns.ranges) == MOST_PATTERNS:
            problems.append(BadPattern(number, f"only {MOST_PATTERNS} patterns are used. Join some with `|`."))
            break
        if reason := _problem_of(pattern):
            problems.append(BadPattern(number, reason))
            continue
        patterns += CommunicationPatterns((), (pattern,)) if is_range else CommunicationPatterns((pattern,))
    return patterns, problems


def _problem_of(pattern: str) -> str:
    """Why a text can't be a pattern; empty if it can."""
    if not pattern:
        return f"there is no pattern after `{_RANGE}`. Write one, or delete the line."
    if len(pattern) > MOST_LENGTH:
        return f"it has {len(pattern):,} characters. Shorten it to {MOST_LENGTH}, or split it."
    try:
        matches_nothing = not _matches(pattern, [""])
    except ValueError as error:
        why = _CAUSE.findall(str(error))[-1:] or ["it can't be compiled"]
        return f"{pattern!r} isn't a regular expression: {why[0].rstrip('.')}. Correct or delete it."
    return "" if matches_nothing else f"{pattern!r} matches every name. Write a part of the names that you mean."
