"""Kinds of damage: how often each was met, and what it means in words.

Each repair is listed with the writer that makes it necessary, if it is a writer's fault.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from ...trace.model import Diagnostic
from ..input.document import MOST_VALUES
from .rows import Noted

LOST = "damaged_events"
QUOTE, BACKSLASH, BRACKET = "unescaped_quote", "unescaped_backslash", "wrong_brackets"
WORD, HEX, EMPTY, COMMA = "bare_word", "bare_hex", "missing_value", "wrong_commas"

_ANOTHER_DOCUMENT = re.compile(rb"[\s}]*[\[{]")


class _Meaning(NamedTuple):
    level: Literal["note", "warning", "loss"]
    words: str


_MEANINGS = {
    LOST: _Meaning("loss", "Damaged places in the events were skipped; what they held is missing from all numbers."),
    # pytorch#146900, kineto 0184822f
    QUOTE: _Meaning("warning", "Quotes inside texts weren't escaped; they were kept as part of the text."),
    # kineto#336: a Windows path that ends in a backslash
    BACKSLASH: _Meaning("warning", "Texts end in a backslash that wasn't escaped; it was kept as part of the text."),
    BRACKET: _Meaning(
        "warning", "Brackets were missing, wrong or too many; events were closed where the next one begins."
    ),
    # kineto#105, 88e3332a, 06640577
    WORD: _Meaning("note", "Bare words such as inf, nan and N/A stand in place of values, and count as missing."),
    # kineto dcea7f39
    HEX: _Meaning("note", "Hexadecimal numbers aren't in quotes; they are read as if they were."),
    # kineto b10f04a4, 5fa388fd
    EMPTY: _Meaning("note", "Keys without a value count as missing."),
    # kineto 753d0d31, 87c2a839
    COMMA: _Meaning("note", "Commas are missing or too many inside events; nothing is lost by it."),
}


def truncation(lost_bytes: int | None, end: int) -> list[Diagnostic]:
    """What it means that the text ends, after `end` bytes, inside the event array; None: it doesn't."""
    if lost_bytes is None:
        return []
    words = (
        f"The file ends inside the event array: {lost_bytes} bytes of an unfinished event are left out, and "
        "whatever came after them was never written. Let the job finish writing, and check the disk's free space."
    )
    return [Diagnostic("truncated", 1, words, end - lost_bytes, level="loss")]


def damage_outside_events(tail: bytes, lost_values: int) -> list[Diagnostic]:
    """What is wrong beside the events: values that can't be read, and something behind the end of the document."""
    diagnostics = []
    if lost_values:
        words = (
            f"Values beside the events aren't JSON, nest too deeply, or are more than {MOST_VALUES}, and are left out: "
            "facts about the device or the job may be missing."
        )
        diagnostics.append(Diagnostic("damaged_metadata", lost_values, words))
    if _ANOTHER_DOCUMENT.match(tail):
        words = "There is more in the file after the end of the trace, perhaps a second one; only the first was read."
        diagnostics.append(Diagnostic("second_document", 1, words, level="loss"))
    return diagnostics


class Tally:
    """How often each kind of damage was met, and where first."""

    def __init__(self) -> None:
        self.noted: dict[str, Noted] = {}

    def __bool__(self) -> bool:
        return bool(self.noted)

    def note(self, rule: str, count: int, first: int) -> None:
        """Count later places."""
        if count:
            self.noted.setdefault(rule, Noted()).add(count, first)

    def add(self, other: Tally) -> None:
        """Count what was met in a text behind this one's, or before it in the same."""
        for rule, noted in other.noted.items():
            mine = self.noted.setdefault(rule, Noted())
            firsts = [first for first in (mine.first, noted.first) if first is not None]
            mine.count, mine.first = mine.count + noted.count, min(firsts, default=None)

    def diagnostics(self) -> list[Diagnostic]:
        """One for each kind that was met, worst first."""
        return [
            Diagnostic(rule, self.noted[rule].count, words, self.noted[rule].first, level)
            for rule, (level, words) in _MEANINGS.items()
            if rule in self.noted
        ]
