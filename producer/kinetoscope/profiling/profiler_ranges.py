"""The named ranges of a recording: the training's steps, and the program's markers in them.

kineto writes a name into the JSON unescaped: one quote makes the whole file unreadable, and a name with a non-ASCII
character becomes `unknown` (torch 2.13). So a range is recorded under a plain ASCII name, and `merge_events` replaces
it with the program's name in the trace.

Each recorded range is an ITT range as well, under the same name, if torch was built with ITT: VTune and similar tools
show it next to their own data. While none of them is attached, such a call does nothing.
"""

from __future__ import annotations

import re
import time
import unicodedata
from typing import Any

import torch
from torch.autograd.profiler import record_function
from torch.profiler import itt

_SUBSTITUTES = str.maketrans({'"': "'", "\\": "/", "\t": " ", "\n": " ", "\r": " "})
_LONGEST = 200
_MAX_NAMES = 10_000
_AUTOGRAD: Any = torch._C._autograd
_ENTER: Any = getattr(_AUTOGRAD, "_record_function_with_args_enter", None)
_EXIT: Any = getattr(_AUTOGRAD, "_record_function_with_args_exit", None)
"""What `record_function` calls in the end, for nearly the same event, in a quarter of its time."""
_HAS_ITT = itt.is_available()


def plain_name(text: str) -> str:
    """Return `text` in printable ASCII without quotes and backslashes; accents are dropped, others become `?`."""
    decomposition = unicodedata.normalize("NFKD", text.translate(_SUBSTITUTES))
    bare = "".join(c for c in decomposition if not unicodedata.combining(c)).translate(_SUBSTITUTES)
    plain = re.sub(r"[^ -~]", "?", bare)[:_LONGEST].strip()
    # A marker of that name would count as a step of the training.
    return f"marker {plain}" if plain.startswith("ProfilerStep") else plain or "marker"


def itt_mark(name: str) -> None:
    """Mark an instant on this thread for VTune and similar tools, if one is attached."""
    if _HAS_ITT:
        itt.mark(plain_name(name))


class MarkerNames:
    """The names of one recorder's markers: the program's, and the recorded ones.

    Different markers are recorded under different names, even if their plain names are the same. There can be 10,000
    of them; further markers are recorded under their plain names.
    """

    def __init__(self) -> None:
        self._recorded: dict[str, str] = {}
        self._categories: dict[str, tuple[str, ...]] = {}
        self._used_names: set[str] = set()

    def recorded_name(self, label: str, categories: tuple[str, ...] = ()) -> str:
        """Return the recorded name of `label`."""
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
        """The program's name and the categories of each recorded name."""
        return {
            recorded_name: {"label": label, "categories": list(self._categories.get(label, ()))}
            for label, recorded_name in self._recorded.items()
        }


class Range:
    """One named range, which may be recorded in several parts.

    Args:
        name: The recorded name.
        is_direct: Whether to skip `record_function`'s own Python code, which tells torch's in-process CUPTI profilers
            of the range.
    """

    __slots__ = ("_is_direct", "_record", "is_over", "name", "was_recorded")

    def __init__(self, name: str, *, is_direct: bool) -> None:
        self.name, self._is_direct = name, is_direct and _ENTER is not None
        self._record: Any = None
        self.was_recorded = False
        """Whether any part of it was recorded."""
        self.is_over = False
        """Whether it must still be closed, by the thread that may."""

    def begin(self) -> None:
        """Start a recorded part."""
        if self._record is None:
            self.was_recorded = True
            if self._is_direct:
                self._record = _ENTER(self.name)
            else:
                self._record = record_function(self.name)
                self._record.__enter__()
            if _HAS_ITT:
                itt.range_push(self.name)

    def end(self) -> None:
        """End the recorded part."""
        if self._record is not None:
            if _HAS_ITT:
                itt.range_pop()
            if self._is_direct:
                _EXIT(self._record)
            else:
                self._record.__exit__(None, None, None)
            self._record = None


class Ranges:
    """The open ranges of the training's thread: a step, and the markers in it.

    Two ranges never overlap partially, which no viewer can draw: a marker that is open across the end of a step, or
    of a marker around it, is recorded in parts. Nothing is recorded while `is_recording` is false.
    """

    def __init__(self) -> None:
        self.names = MarkerNames()
        self.is_recording = False
        self.is_direct = True
        """See `Range`."""
        self.step_times_ns: list[tuple[int, int, int]] = []
        """Number, start and end of each recorded complete step, in Unix time, until it is cleared."""
        self._number: int | None = None
        self._start_ns = 0
        self._step: Range | None = None
        self._markers: list[Range] = []

    @property
    def is_step_open(self) -> bool:
        """Whether a step is open."""
        return self._number is not None

    def begin_step(self, number: int) -> None:
        """Open the step's range, unless one is open."""
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
        """End the recorded parts of all ranges; drop the ranges that have ended."""
        if self._markers:
            for marker in reversed(self._markers):
                marker.end()
            self._markers = [marker for marker in self._markers if not marker.is_over]
        if self._step is not None:
            self._step.end()

    def stop(self) -> None:
        """End the recorded parts of all ranges, and record no more."""
        self.pause()
        self.is_recording = False

    def resume(self) -> None:
        """Record the open ranges again."""
        if self.is_recording:
            if self._number is not None:
                # The name by which viewers recognize a step.
                self._step = self._step or Range(f"ProfilerStep#{self._number}", is_direct=self.is_direct)
                self._step.begin()
            for marker in self._markers:
                marker.begin()

    def begin(self, label: str, categories: tuple[str, ...] = ()) -> Range:
        """Open a marker."""
        open_range = Range(self.names.recorded_name(label, categories), is_direct=self.is_direct)
        self._markers.append(open_range)
        if self.is_recording:
            open_range.begin()
        return open_range

    def end(self, open_range: Range) -> None:
        """Close a marker."""
        markers = self._markers
        if markers and markers[-1] is open_range:  # as in most cases
            del markers[-1]
            open_range.end()
            return
        if open_range not in markers:
            return
        index = markers.index(open_range)
        inner = self._markers[index + 1 :]
        for marker in reversed(inner):
            marker.end()
        open_range.end()
        del self._markers[index]
        if self.is_recording:
            for marker in inner:
                marker.begin()

    def drop_finished(self) -> None:
        """Drop ended markers, like `pause`, which isn't called between two steps that aren't recorded."""
        if not self.is_recording:
            self.pause()

    @staticmethod
    def abandon(open_range: Range) -> None:
        """Schedule a marker to be closed with the step: it ended on a thread that must not touch it."""
        open_range.is_over = True
