"""The named ranges of a recording: the training's steps, and the program's markers in them.

kineto writes a name into the JSON as it is: one quote makes the whole file unreadable, and of a name with a character
beyond ASCII nothing is left but `unknown` (torch 2.13). So a range is recorded under a plain name; who makes the trace
(`merge_events`) puts the program's in its place.

What is recorded is an ITT range as well, under the same name, where torch was built with ITT: VTune and its like show
it next to what they measure. While none of them watches, such a call does nothing.
"""

from __future__ import annotations

import re
import time
import unicodedata
from typing import Any

from torch.autograd.profiler import record_function
from torch.profiler import itt

_SUBSTITUTES = str.maketrans({'"': "'", "\\": "/", "\t": " ", "\n": " ", "\r": " "})
_LONGEST = 200
_MAX_NAMES = 10_000
_HAS_ITT = itt.is_available()  # type: ignore[no-untyped-call]


def plain_name(text: str) -> str:
    """Return `text` in printable ASCII without quotes and backslashes; accents are dropped, the rest becomes `?`."""
    decomposed = unicodedata.normalize("NFKD", text.translate(_SUBSTITUTES))
    bare = "".join(c for c in decomposed if not unicodedata.combining(c)).translate(_SUBSTITUTES)
    plain = re.sub(r"[^ -~]", "?", bare)[:_LONGEST].strip()
    # A marker of that name would count as a step of the training.
    return f"marker {plain}" if plain.startswith("ProfilerStep") else plain or "marker"


def itt_mark(name: str) -> None:
    """Tell VTune and its like, if one watches, that something happens now on this thread."""
    if _HAS_ITT:
        itt.mark(plain_name(name))  # type: ignore[no-untyped-call]


class MarkerNames:
    """The names of one recorder's markers: what the program calls them, and what the trace does.

    Different markers are recorded under different names, even where their plain names are the same. A program that
    makes a new name each time has 10 000 of them; the others are recorded under their plain names alone.
    """

    def __init__(self) -> None:
        self._recorded: dict[str, str] = {}
        self._categories: dict[str, tuple[str, ...]] = {}
        self._used_names: set[str] = set()

    def recorded(self, label: str, categories: tuple[str, ...] = ()) -> str:
        """Return the name under which `label` is recorded."""
        recorded_name = self._recorded.get(label)
        if recorded_name is None:
            plain = recorded_name = plain_name(label)
            if len(self._recorded) >= _MAX_NAMES:
                return plain
            count = 1
            while recorded_name in self._used_names:
                count += 1
                recorded_name = f"{plain} ~{count}"
            self._recorded[label] = recorded_name
            self._used_names.add(recorded_name)
        if categories:
            self._categories[label] = categories
        return recorded_name

    @property
    def labels(self) -> dict[str, dict[str, Any]]:
        """The program's name and the categories of each recorded one."""
        return {
            recorded: {"label": label, "categories": list(self._categories.get(label, ()))}
            for label, recorded in self._recorded.items()
        }


class Range:
    """One named range, which may be recorded in several parts."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._record: record_function | None = None
        self.was_recorded = False
        """Whether any part of it was."""
        self.is_over = False
        """Whether it is to be closed by the thread that may."""

    def begin(self) -> None:
        """Record from here on."""
        if self._record is None:
            self.was_recorded = True
            self._record = record_function(self.name)
            self._record.__enter__()  # type: ignore[no-untyped-call]
            if _HAS_ITT:
                itt.range_push(self.name)  # type: ignore[no-untyped-call]

    def end(self) -> None:
        """Record no more."""
        if self._record is not None:
            if _HAS_ITT:
                itt.range_pop()  # type: ignore[no-untyped-call]
            self._record.__exit__(None, None, None)
            self._record = None


class Ranges:
    """The ranges that are open on the thread of the training: a step, and the markers in it.

    Two ranges never overlap partly, since no viewer can draw that: a marker that is open across the end of a step, or
    of a marker around it, is recorded in parts. Nothing is recorded while `is_recording` is false.
    """

    def __init__(self) -> None:
        self.names = MarkerNames()
        self.is_recording = False
        self.step_times_ns: list[tuple[int, int, int]] = []
        """Number, start and end of each complete step that was recorded, in Unix time, until somebody clears it."""
        self._number: int | None = None
        self._start_ns = 0
        self._step: Range | None = None
        self._markers: list[Range] = []

    @property
    def is_step_open(self) -> bool:
        """Whether a step has begun and not ended."""
        return self._number is not None

    def begin_step(self, number: int) -> None:
        """Open the step's range; nothing, if one is open."""
        if self._number is None:
            if self.is_recording:
                self.pause()
            self._number, self._start_ns = number, time.time_ns()
            if self.is_recording:
                self.resume()

    def end_step(self, *, is_complete: bool = True) -> None:
        """Close the step's range. No marker is recorded until `resume` or the next step."""
        if self.is_recording and is_complete and self._number is not None:
            self.step_times_ns.append((self._number, self._start_ns, time.time_ns()))
        if self._step is not None or self._markers:
            self.pause()
        self._step = self._number = None

    def pause(self) -> None:
        """End what is recorded, without closing it, but for what is over."""
        if self._markers:
            for marker in reversed(self._markers):
                marker.end()
            self._markers = [marker for marker in self._markers if not marker.is_over]
        if self._step is not None:
            self._step.end()

    def stop(self) -> None:
        """End what is recorded, and record no more."""
        self.pause()
        self.is_recording = False

    def resume(self) -> None:
        """Record again what is open."""
        if self.is_recording:
            if self._number is not None:
                # The name by which readers of traces know a step.
                self._step = self._step or Range(f"ProfilerStep#{self._number}")
                self._step.begin()
            for marker in self._markers:
                marker.begin()

    def begin(self, label: str, categories: tuple[str, ...] = ()) -> Range:
        """Open a marker."""
        open_range = Range(self.names.recorded(label, categories))
        self._markers.append(open_range)
        if self.is_recording:
            open_range.begin()
        return open_range

    def end(self, open_range: Range) -> None:
        """Close a marker."""
        if open_range not in self._markers:
            return
        index = self._markers.index(open_range)
        inner = self._markers[index + 1 :]
        for marker in reversed(inner):
            marker.end()
        open_range.end()
        del self._markers[index]
        if self.is_recording:
            for marker in inner:
                marker.begin()

    def drop_finished(self) -> None:
        """Forget the markers that are over, as `pause` does; between two steps that aren't recorded nobody calls it."""
        if not self.is_recording:
            self.pause()

    @staticmethod
    def abandon(open_range: Range) -> None:
        """Have a marker closed with the step: it ended on a thread that must not touch it."""
        open_range.is_over = True
