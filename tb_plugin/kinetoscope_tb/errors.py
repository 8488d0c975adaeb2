"""Everything that is raised on purpose.

KinetoscopeError            str(error) says what went wrong, where, and what to do; it is safe to show
├── LogdirError             a logdir can't be listed
├── TraceError(path)        one trace file can't be used; the others still can
│   └── NotATrace           the file holds no trace events
├── MissingData             a recording lacks what a view needs
└── RequestError            the question can't be answered as asked
    ├── NotFound            there is no such run, worker, span, view or file
    ├── BadParameter        a parameter that the view doesn't have, or a value that it doesn't take
    └── Changed             the file isn't the one any more that the question is about
"""

from __future__ import annotations

from collections.abc import Iterable

MOST_NAME = 500  # characters of a name that somebody asked for, in a message


class KinetoscopeError(Exception):
    """What went wrong, where, and what to do about it."""

    status = 500  # of the HTTP response

    @property
    def code(self) -> str:
        """The class name in snake case: what a program compares, while people read the message."""
        name = type(self).__name__
        return "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")


class LogdirError(KinetoscopeError):
    """A logdir that can't be listed."""


class TraceError(KinetoscopeError):
    """A trace file that can't be used.

    Args:
        path: The file, as the user knows it.
        problem: What is wrong and what to do, as one or two sentences without the path.
    """

    status = 200  # an answer about this file, not a fault of the request

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path, self.problem = path, problem

    def __reduce__(self) -> tuple[type[TraceError], tuple[str, str]]:
        return type(self), (self.path, self.problem)  # it comes from other processes too

    def renamed(self, path: str) -> TraceError:
        """The same about a file under another name, such as one that may leave this machine."""
        return type(self)(path, self.problem)


class NotATrace(TraceError):
    """A file that holds no trace events."""


class MissingData(KinetoscopeError):
    """A recording that lacks what a view needs; programs get this where the page shows a card."""

    def __init__(self, view: str, hint: str) -> None:
        super().__init__(f"The recording has nothing for the view {view!r}. {hint}")


class RequestError(KinetoscopeError):
    """A question that can't be answered as asked."""

    status = 400


class NotFound(RequestError):
    """There is no such thing under this logdir."""

    status = 404

    def __init__(self, what: str, name: str, existing: Iterable[str]) -> None:
        names = sorted(existing)
        there = f"there is {', '.join(names[:8])}{' …' if len(names) > 8 else ''}" if names else "there is none"
        super().__init__(f"There is no {what} {name[:MOST_NAME]!r}; {there}.")


class BadParameter(RequestError):
    """A parameter that a view doesn't have, or a value that it doesn't take."""


class Changed(RequestError):
    """A question about a file as it was before it changed."""

    status = 409
