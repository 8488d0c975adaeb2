"""Kinetoscope's exceptions.

KinetoscopeError            str(error): what went wrong, where, and what to do; safe to show to users
├── LogdirError             a logdir can't be listed
│   └── MissingPath         there is no such file or folder; also a FileNotFoundError
├── TraceError(path)        one trace file can't be used; the others still can
│   └── NotATrace           the file has no trace events
├── MissingData             a recording has no data for a view
└── RequestError            the question isn't valid
    ├── NotFound            there is no such run, worker, span, view or file
    ├── BadParameter        a parameter that the view doesn't have, or a value that it doesn't accept
    └── Changed             the file has changed since the question's numbers were issued
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

_WORD_BEGINS = re.compile("(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")  # NotATrace, NotJSON
MOST_NAME = 500  # characters of a requested name in a message


class KinetoscopeError(Exception):
    """What went wrong, where, and what to do about it."""

    status = 500  # of the HTTP response

    @property
    def code(self) -> str:
        """The class name in snake case, for programs; people read the message."""
        return _WORD_BEGINS.sub("_", type(self).__name__.lstrip("_")).lower()


class LogdirError(KinetoscopeError):
    """A logdir that can't be listed."""


class MissingPath(LogdirError, FileNotFoundError):
    """There is no such file or folder."""


class TraceError(KinetoscopeError):
    """A trace file that can't be used.

    Args:
        path: The file, as the user knows it.
        problem: What is wrong and what to do, as one or two sentences without the path.
    """

    status = 200  # an answer about this file, not a fault of the request

    def __init__(self, path: str, problem: str) -> None:
        printable = path.encode(errors="backslashreplace").decode()  # it may not be UTF-8, but its message is
        super().__init__(f"{printable}: {problem}")
        self.path, self.problem = path, problem

    def __reduce__(self) -> tuple[type[TraceError], tuple[str, str]]:
        return type(self), (self.path, self.problem)  # it comes from other processes too

    def with_path(self, path: str) -> TraceError:
        """The same error with another path, such as one that may be shown elsewhere."""
        return type(self)(path, self.problem)


class NotATrace(TraceError):
    """A file without trace events."""


class MissingData(KinetoscopeError):
    """A recording without data for a view; the page shows a card instead."""

    def __init__(self, view: str, hint: str) -> None:
        super().__init__(f"The recording has no data for the view {view!r}. {hint}")


class RequestError(KinetoscopeError):
    """A question that isn't valid."""

    status = 400


class NotFound(RequestError):
    """There is no such thing under this logdir."""

    status = 404

    def __init__(self, what: str, name: str, candidates: Iterable[str]) -> None:
        names = sorted(candidates)
        near = get_close_matches(name[:MOST_NAME], names, 1)
        choices = f"there is {', '.join(names[:8])}{' …' if len(names) > 8 else ''}" if names else "there is none"
        there = f"did you mean {near[0]!r}?" if near and len(names) > 8 else f"{choices}."
        super().__init__(f"There is no {what} {name[:MOST_NAME]!r}; {there}")


class BadParameter(RequestError):
    """A parameter that a view doesn't have, or a value that it doesn't accept."""


class Changed(RequestError):
    """A question about an earlier state of a file."""

    status = 409
