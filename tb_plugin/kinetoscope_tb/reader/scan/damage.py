"""Kinds of damage: how often each occurred, and its diagnostic.

Each repair is listed with the writer's bug that makes it necessary, if there is one.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from ...names.regex import regex
from ...names.text import percent
from ...trace.model import Diagnostic, Fault, NumberKind
from ..input.document import MOST_VALUES, MOST_VALUES_BYTES, walk_members
from .rows import Occurrences

LOST = "damaged_events"
QUOTE, BACKSLASH, BRACKET = "unescaped_quote", "unescaped_backslash", "wrong_brackets"
WORD, HEX, EMPTY, COMMA = "bare_word", "bare_hex", "missing_value", "wrong_commas"

_END = regex(rb"[\s\]}\0]*")
_ANOTHER_DOCUMENT = regex(rb"[\s}]*[\[{]")


class _Meaning(NamedTuple):
    level: Literal["note", "warning", "loss"]
    words: str


_MEANINGS = {
    LOST: _Meaning("loss", "Damaged places in the events were skipped; their events are missing from all numbers."),
    # pytorch#146900, kineto 0184822f
    QUOTE: _Meaning("warning", "Quotes inside texts weren't escaped; they are read as part of the text."),
    # kineto#336: a Windows path that ends in a backslash
    BACKSLASH: _Meaning("warning", "Texts end in a backslash that wasn't escaped; it is read as part of the text."),
    BRACKET: _Meaning(
        "warning", "Brackets were missing, wrong or extra; events were closed where the next one begins."
    ),
    # kineto#105, 88e3332a, 06640577
    WORD: _Meaning("note", "Bare words such as inf, nan and N/A are in place of values, and count as missing."),
    # kineto dcea7f39
    HEX: _Meaning("note", "Hexadecimal numbers aren't in quotes; they are read as if they were."),
    # kineto b10f04a4, 5fa388fd
    EMPTY: _Meaning("note", "Keys without a value count as missing."),
    # kineto 753d0d31, 87c2a839
    COMMA: _Meaning("note", "Commas inside events are missing or extra; nothing is lost."),
}

_UNDERMINED: frozenset[NumberKind] = frozenset(
    {"idle", "kernel_times", "host_times", "launches", "steps", "totals", "memory"}
)
CUT_OFF = Fault(
    "The file ends amid its events, and an unknown number of later ones is missing",
    frozenset({"idle", "launches", "host_times", "steps", "totals", "memory"}),
    "Copy the file again, or let the job finish writing it.",
)
"""Of a file whose end is missing."""


def _fault_of_loss(part: float, span_ns: int) -> Fault | None:
    """What a part of the text undermines of which no event could be read: as large a part of the time."""
    if not part:
        return None
    clause = f"{percent(part)} of the file is damaged, and its events are missing"
    return Fault(clause, _UNDERMINED, "Copy the file again, or record the trace again.", round(part * span_ns))


def truncation(lost_bytes: int | None, end: int) -> list[Diagnostic]:
    """The diagnostic for a text that ends, after `end` bytes, inside the event array; none if `lost_bytes` is None."""
    if lost_bytes is None:
        return []
    words = (
        f"The file ends inside the event array: {lost_bytes} bytes of an unfinished event are left out, and later "
        "events are missing; how many is unknown. Let the job finish writing, and check the disk's free space."
    )
    is_cut = lost_bytes > 0  # else only brackets are missing, which some writers leave out
    return [Diagnostic("truncated", 1, words, end - lost_bytes, level="loss", fault=CUT_OFF if is_cut else None)]


def damage_outside_events(tail: bytes, lost_values: int, arrays: int) -> list[Diagnostic]:
    """Damage outside the event array: values that can't be read, and what follows the end of the document."""
    diagnostics = []
    if lost_values:
        words = (
            f"Metadata values aren't JSON, nest too deeply, or are more than {MOST_VALUES} or than "
            f"{MOST_VALUES_BYTES >> 20} MiB together, and are left out: facts about the device or the job may be "
            "missing."
        )
        diagnostics.append(Diagnostic("damaged_metadata", lost_values, words))
    if arrays > 1:
        words = f"The file has {arrays} arrays of events (traceEvents); they are read one after another."
        diagnostics.append(Diagnostic("several_arrays", arrays, words, level="note"))
    rest = tail[walk_members(tail, 0).following :]
    if _ANOTHER_DOCUMENT.match(rest):
        words = "The file continues after the end of the trace, perhaps with a second one; only the first was read."
        diagnostics.append(Diagnostic("second_document", 1, words, level="loss"))
    elif not _END.fullmatch(rest):
        words = f"{len(rest)} bytes after the events aren't JSON and are left out: metadata or events may be missing."
        diagnostics.append(Diagnostic("damaged_end", 1, words, level="loss" if b'"ph"' in rest else "warning"))
    return diagnostics


class Tally:
    """How often each kind of damage occurred, and where first.

    Attributes:
        noted: By rule.
        lost_bytes: How long the damaged places are of which no event could be read.
    """

    def __init__(self) -> None:
        self.noted: dict[str, Occurrences] = {}
        self.lost_bytes = 0

    def __bool__(self) -> bool:
        return bool(self.noted)

    def note(self, rule: str, count: int, first: int) -> None:
        """Count later places."""
        if count:
            self.noted.setdefault(rule, Occurrences()).add(count, first)

    def add(self, other: Tally) -> None:
        """Add the damage of a later text, or of an earlier part of the same."""
        self.lost_bytes += other.lost_bytes
        for rule, theirs in other.noted.items():
            mine = self.noted.setdefault(rule, Occurrences())
            firsts = [first for first in (mine.first, theirs.first) if first is not None]
            mine.count, mine.first = mine.count + theirs.count, min(firsts, default=None)

    def diagnostics(self, text_bytes: int, span_ns: int) -> list[Diagnostic]:
        """One for each kind that occurred, worst first.

        Args:
            text_bytes: How long the text is.
            span_ns: From the first event to the last.
        """
        faults = {LOST: _fault_of_loss(min(self.lost_bytes / max(1, text_bytes), 1.0), span_ns)}
        return [
            Diagnostic(rule, self.noted[rule].count, words, self.noted[rule].first, level, faults.get(rule))
            for rule, (level, words) in _MEANINGS.items()
            if rule in self.noted
        ]
