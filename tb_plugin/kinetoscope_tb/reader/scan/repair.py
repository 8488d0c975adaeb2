"""Repairs damaged places in the event array, if it is certain where an event begins and ends.

Most damage is a quote inside a string that wasn't escaped (pytorch#146900), or that sanitizing stripped of its
backslash (kineto 0184822f). The text after it identifies such a quote: after a string only a comma, a colon or a
closing bracket may come, and after that comma the next key or value. Missing brackets are inserted, wrong ones
replaced. This is plain Python; its cost is proportional to the damaged text alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from ...names.regex import regex
from .damage import BACKSLASH, BRACKET, QUOTE

_DEEPEST = 62  # as in scan
_LONGEST = 1 << 24
_MOST_TRIES = 64
# Blanks here are those of the scanner, so that it can read the repaired text. No two repetitions that match the same
# bytes follow each other: a failing match would try each way to share them (catastrophic backtracking).
_KEY = rb'"(?:[^"\\]|\\.){0,200}"[\0- ]*:'
_BROKEN_KEY = rb'(?:"(?:ph|cat|name|pid|tid|ts|dur|args|id)"|\w{1,40}"?[\0- ]*:)'  # without its colon or a quote
_SWALLOWED = regex(rb',[\0- ]*"(?:ph|cat|name|pid|tid|ts|dur|args|id)"[\0- ]*:')  # in a text: it has no end
_MEMBER = regex(_KEY + rb"[\0- ]*", re.DOTALL)
_GAP = regex(rb"[\0- ,]*")
_BARE = regex(rb'[^\0- ,\]}"\[{:]*')
_LOST_BRACE = regex(rb'[^{"\0- ]?[\0- ]*(?=' + _KEY + rb")", re.DOTALL)
_NEXT_OBJECT = regex(rb",[\0- ]*(?=\{)")
_ARRAY_END = regex(rb'\}[\0- ]*(?=\][\0- ]*(?:\}|,[\0- ]*"))')
_DOCUMENT_END = regex(rb'\}[\0- ]*(?=\][\0- ]*(?:,[\0- ]*"[^{}\[\]]*)?(?:\}[\0- ]*)?$)')
_PUNCTUATION = regex(rb"[\0- ,\[\]{}:]*")
# What comes after the closing quote of a string that is a value of an object, or an element of a list.
_NEXT_MEMBER = rb",[\0- ,]*(?:" + _KEY + rb"|" + _BROKEN_KEY + rb"|\}|$)"
_AFTER_OBJECT = rb"\}[\0- ]*(?:[\]}]|,[\0- ,]*(?:(?:\{[\0- ]*)?" + _KEY + rb"|\[|$)|$)"
_AFTER_MEMBER = regex(rb"[\0- ]*(?:" + _NEXT_MEMBER + rb"|" + _AFTER_OBJECT + rb"|$)", re.DOTALL)
_ELEMENT = rb'["\[{\]]|-?\d|(?:true|false|null|nan|NaN|-?inf|-?Infinity)\b'
_AFTER_ELEMENT = regex(rb"[\0- ]*(?:,[\0- ,]*(?:" + _ELEMENT + rb"|$)|[\]}][\0- ]*(?:[,\]}]|$)|$)")
# The same after a quote that has a backslash before it: it closes the string if the text behind can't be inside one.
_SURELY_AFTER = regex(rb"[\0- ]*(?:,[\0- ]*" + _KEY + rb"|\}[\0- }]*(?:,[\0- ]*)?$)", re.DOTALL)


class _Unreadable(Exception):
    """The text is ambiguous."""


@dataclass(frozen=True)
class RepairedEvent:
    """An event that was damaged.

    Args:
        start, stop: Its position in the damaged text.
        text: Its repaired text, which the scanner can read.
        rules: What was repaired.
    """

    start: int
    stop: int
    text: bytes
    rules: frozenset[str]


@dataclass
class _Reading:
    """One attempt to read an object; `edits` are the places where the text must change."""

    text: bytes
    at: int
    may_end: bool  # the text may end inside the object: another one follows, so its end is lost
    edits: list[tuple[int, bytes]] = field(default_factory=list)  # text to insert, by place
    rules: set[str] = field(default_factory=set)
    has_phase: bool = False

    def insert(self, at: int, piece: bytes, rule: str) -> None:
        self.edits.append((at, piece))
        self.rules.add(rule)

    def object(self, open_brackets: bytes) -> None:
        """Read the object whose members begin at `at`."""
        while not self._ends(b"}", b"]", open_brackets):
            member = _MEMBER.match(self.text, self.at)
            if not member:
                raise _Unreadable
            if len(open_brackets) == 1 and member[0].startswith(b'"ph"'):
                self.has_phase = True
            self.at = member.end()
            self._value(_AFTER_MEMBER, open_brackets)

    def _list(self, open_brackets: bytes) -> None:
        while not self._ends(b"]", b"}", open_brackets):
            before = self.at
            self._value(_AFTER_ELEMENT, open_brackets)
            if self.at == before:
                raise _Unreadable

    def _ends(self, own: bytes, others: bytes, open_brackets: bytes) -> bool:
        """Whether the object or list ends here. One that ends without its bracket gets it."""
        self.at = _GAP.match(self.text, self.at).end()  # type: ignore[union-attr]  # matches nothing too
        here = self.text[self.at : self.at + 1]
        if here == own:
            self.at += 1
            return True
        is_others = here == others and (b"{" if others == b"}" else b"[") in open_brackets[:-1]
        if is_others or (not here and self.may_end):
            self.insert(self.at, own, BRACKET)
            return True
        if not here or here == others:
            raise _Unreadable
        return False

    def _value(self, after_string: re.Pattern[bytes], open_brackets: bytes) -> None:
        here = self.text[self.at : self.at + 1]
        if here == b'"':
            self._string(after_string)
        elif here in (b"{", b"["):
            if len(open_brackets) > _DEEPEST:
                raise _Unreadable
            self.at += 1
            (self.object if here == b"{" else self._list)(open_brackets + here)
        else:
            self.at = _BARE.match(self.text, self.at).end()  # type: ignore[union-attr]
            if self.text[self.at : self.at + 1] in (b'"', b"[", b"{", b":"):
                raise _Unreadable

    def _string(self, after: re.Pattern[bytes]) -> None:
        start = quote = self.at
        while True:
            first = quote + 1
            quote = self.text.find(b'"', first)
            if quote < 0:
                raise _Unreadable
            content = self.text[first:quote]
            is_escaped = (len(content) - len(content.rstrip(b"\\"))) % 2 == 1
            if is_escaped and _SURELY_AFTER.match(self.text, quote + 1):
                self.insert(quote, b"\\", BACKSLASH)
                break
            if not is_escaped:
                if after.match(self.text, quote + 1):
                    break
                self.insert(quote, b"\\", QUOTE)
        if _SWALLOWED.search(self.text, start, quote):
            raise _Unreadable
        self.at = quote + 1


def repair_events(text: bytes, *, may_end: bool = True) -> tuple[list[RepairedEvent], int]:
    """(the events in a damaged text that could be repaired, how many parts of it could not).

    Args:
        text: From the damage to the start of the next intact event.
        may_end: Whether the last event may lack its end. Not at the end of a file, where it was never written.
    """
    events: list[RepairedEvent] = []
    lost_count, at = 0, 0
    while lost_count < _MOST_TRIES:
        at = _GAP.match(text, at).end()  # type: ignore[union-attr]
        event = _event(text, at, may_end) if len(text) - at < _LONGEST else None
        if event:
            events.append(event)
            at = event.stop
            continue
        if _PUNCTUATION.fullmatch(text, at):
            break
        lost_count += 1
        next_object = _NEXT_OBJECT.search(text, at)
        if not next_object:
            break
        at = next_object.end()
    return events, lost_count


def _event(text: bytes, start: int, may_end: bool) -> RepairedEvent | None:  # noqa: FBT001
    """The event that begins at `start`, even if its opening brace is lost."""
    reading = _Reading(text, start + 1, may_end)
    if text[start : start + 1] != b"{":
        lost_brace = _LOST_BRACE.match(text, start)
        if not lost_brace:
            return None
        reading.at = start = lost_brace.end()
        reading.insert(start, b"{", BRACKET)
    try:
        reading.object(b"{")
    except _Unreadable:
        return None
    if not reading.has_phase:
        return None
    cuts = [start, *(at for at, _ in reading.edits), reading.at]
    insertions = [*(new for _, new in reading.edits), b""]
    pieces = [text[i:j] + new for i, j, new in zip(cuts, cuts[1:], insertions, strict=False)]
    return RepairedEvent(start, reading.at, b"".join(pieces), frozenset(reading.rules))


def damage_end(text: bytes, *, is_cut: bool) -> int | None:
    """Where reading can continue after damage at the start of a file's last text; None if nowhere.

    Args:
        text: The rest of the file.
        is_cut: Whether the damage is an event without an end. Most likely it was never completely written.
    """
    if is_cut:
        end = _DOCUMENT_END.search(text)
        return end.end() if end else None
    event = _event(text, 0, may_end=False) if len(text) < _LONGEST else None
    if event:
        return event.stop
    ends = [m.end() for m in (_NEXT_OBJECT.search(text, 1), _ARRAY_END.search(text)) if m]
    return min(ends, default=None)


@dataclass(frozen=True)
class RepairedText:
    """A text with its damaged places replaced by repaired events, and the map to the original offsets."""

    text: bytes
    _new: NDArray[np.int64]  # where each segment begins in `text`
    _old: NDArray[np.int64]  # and where in the original
    _length: NDArray[np.int64]  # of the original event; -1 for a segment that was copied

    @classmethod
    def of(cls, text: memoryview, repairs: Sequence[tuple[int, int, Sequence[RepairedEvent]]]) -> RepairedText:
        """Insert the events at their positions: (start, stop, events) in ascending order."""
        segments: list[tuple[bytes, int, int]] = []
        at = 0
        for start, stop, events in repairs:
            segments.append((bytes(text[at:start]), at, -1))
            for event in events:
                segments += [(event.text, start + event.start, event.stop - event.start), (b",", start, -1)]
            at = stop
        segments.append((bytes(text[at:]), at, -1))
        new = [0, *accumulate(len(segment) for segment, _, _ in segments)][:-1]
        _, old, lengths = zip(*segments, strict=True)
        arrays = (np.array(values, np.int64) for values in (new, old, lengths))
        return cls(b"".join(segment for segment, _, _ in segments), *arrays)

    def offset(self, at: int) -> int:
        """The original offset of the event that begins here in `text`."""
        return int(self.positions(np.array([at]), np.zeros(1, np.int32))[0][0])

    def positions(
        self, offsets: NDArray[np.int64], lengths: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Offsets and lengths in the original of events that begin at these offsets of `text`."""
        segment = np.searchsorted(self._new, offsets, "right") - 1
        is_repaired = self._length[segment] >= 0
        old = self._old[segment] + np.where(is_repaired, 0, offsets - self._new[segment])
        return old, np.where(is_repaired, self._length[segment], lengths).astype(np.int32)
