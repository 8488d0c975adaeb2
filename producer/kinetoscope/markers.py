"""The named ranges of a recording: the training's steps, and the program's markers in them.

kineto writes a name into the JSON as it is: one quote makes the whole file unreadable, and of a name with a character
beyond ASCII nothing is left but `unknown` (torch 2.13). So a range is recorded under a plain name, and the trace's
metadata says what the program called it.
"""

from __future__ import annotations

import functools
import inspect
import re
import unicodedata
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

from torch.autograd.profiler import record_function

from .errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

T = TypeVar("T")
P = ParamSpec("P")

_SUBSTITUTES = str.maketrans({'"': "'", "\\": "/", "\t": " ", "\n": " ", "\r": " "})
_LONGEST = 200


def plain_name(text: str) -> str:
    """Return `text` in printable ASCII without quotes and backslashes; accents are dropped, the rest becomes `?`."""
    decomposed = unicodedata.normalize("NFKD", text.translate(_SUBSTITUTES))
    bare = "".join(c for c in decomposed if not unicodedata.combining(c)).translate(_SUBSTITUTES)
    plain = re.sub(r"[^ -~]", "?", bare)[:_LONGEST].strip()
    # A marker of that name would count as a step of the training.
    return f"marker {plain}" if plain.startswith("ProfilerStep") else plain or "marker"


class MarkerNames:
    """The names of one recorder's markers: what the program calls them, and what the trace does.

    Different markers are recorded under different names, even where their plain names are the same.
    """

    def __init__(self) -> None:
        self._recorded: dict[str, str] = {}
        self._taken: set[str] = set()

    def recorded(self, label: str) -> str:
        """Return the name under which `label` is recorded."""
        known = self._recorded.get(label)
        if known is None:
            plain = known = plain_name(label)
            count = 1
            while known in self._taken:
                count += 1
                known = f"{plain} ~{count}"
            self._recorded[label] = known
            self._taken.add(known)
        return known

    @property
    def labels(self) -> dict[str, str]:
        """The program's name of each recorded one."""
        return {recorded: label for label, recorded in self._recorded.items()}


class Range:
    """One named range, which may be recorded in several parts."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._record: record_function | None = None

    def begin(self) -> None:
        """Record from here on."""
        if self._record is None:
            self._record = record_function(self.name)
            self._record.__enter__()  # type: ignore[no-untyped-call]

    def end(self) -> None:
        """Record no more."""
        if self._record is not None:
            self._record.__exit__(None, None, None)
            self._record = None


class Ranges:
    """The ranges that are open on the thread of the training: a step, and the markers in it.

    Two ranges never overlap partly, since no viewer can draw that: a marker that is open across the end of a step is
    recorded as one part per step. Nothing is recorded while `is_recording` is false.
    """

    def __init__(self) -> None:
        self.names = MarkerNames()
        self.is_recording = False
        self._step: Range | None = None
        self._markers: list[Range] = []

    @property
    def is_step_open(self) -> bool:
        """Whether a step has begun and not ended."""
        return self._step is not None

    def open_labels(self) -> list[str]:
        """The names of the markers that are open, the outermost first; any thread may ask."""
        return [marker.name for marker in tuple(self._markers)]

    def begin_step(self, number: int) -> None:
        """Open the step's range; nothing, if one is open."""
        if self._step is None:
            self.pause()
            # The name by which readers of traces know a step.
            self._step = Range(f"ProfilerStep#{number}")
            self.resume()

    def end_step(self) -> None:
        """Close the step's range. No marker is recorded until `resume` or the next step."""
        self.pause()
        self._step = None

    def pause(self) -> None:
        """End what is recorded, without closing it."""
        for marker in reversed(self._markers):
            marker.end()
        if self._step is not None:
            self._step.end()

    def resume(self) -> None:
        """Record again what is open."""
        if self.is_recording:
            if self._step is not None:
                self._step.begin()
            for marker in self._markers:
                marker.begin()

    def begin(self, label: str) -> Range:
        """Open a marker."""
        opened = Range(self.names.recorded(label))
        self._markers.append(opened)
        if self.is_recording:
            opened.begin()
        return opened

    def end(self, opened: Range) -> None:
        """Close a marker."""
        opened.end()
        if opened in self._markers:
            self._markers.remove(opened)


class _Markable(Protocol):
    def begin_marker(self, label: str) -> Range | None: ...

    def end_marker(self, opened: Range | None) -> None: ...


class Marker:
    """A named range of the program: `with tracer.marker("forward"): …`, or `@tracer.marker("forward")`."""

    def __init__(self, tracer: _Markable, label: str) -> None:
        self._tracer = tracer
        self._label = label
        self._opened: list[Range | None] = []

    def __enter__(self) -> Self:
        self._opened.append(self._tracer.begin_marker(self._label))
        return self

    def __exit__(self, *_: object) -> None:
        self._tracer.end_marker(self._opened.pop())

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:
        """Return the function, each call of which is a range.

        Raises:
            UsageError: It runs interleaved with others, so its calls are no ranges.
        """
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise UsageError(
                f"marker({self._label!r}) can't decorate a coroutine or a generator; use `with` inside it."
            )

        @functools.wraps(function)
        def marked(*args: P.args, **kwargs: P.kwargs) -> T:
            opened = self._tracer.begin_marker(self._label)
            try:
                return function(*args, **kwargs)
            finally:
                self._tracer.end_marker(opened)

        return marked
