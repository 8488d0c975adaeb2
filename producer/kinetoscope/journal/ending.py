"""How a process of a run ended, as it or its writer process wrote it: `session.ending`, `output.process_watch`.

Anyone who can write to the run's folder can write it: each value is checked before it is used. This module imports
nothing but the standard library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..output.spool import is_count
from ..output.window_records import signal_name

_MOST = 1 << 62
_LONGEST_TEXT, _LONGEST_MESSAGE, _MOST_CALLS = 300, 4000, 64


@dataclass(frozen=True)
class ErrorText:
    """An exception.

    Args:
        type: Its class, with the module unless it is Python's own.
        message: Its message, without secrets.
    """

    type: str
    message: str


@dataclass(frozen=True)
class Ending:
    """How a process ended.

    Args:
        ns: When, in Unix time.
        exception: What ended the recording or the program; None for nothing.
        cause: The exception because of which that one was raised, if there is one.
        calls: Where the program was, or where the exception was raised: file, line and function, the innermost first.
        exit_code: The exit code; None if it isn't known.
        signal: The number of the signal that killed it; None for none.
        oom_kills: How many processes the kernel's out-of-memory killer ended in its control group within the last
            seconds.
        errno: The error of the operating system, of an OSError.
        is_exact: Whether it ended just then, not up to a second later.
    """

    ns: int
    exception: ErrorText | None = None
    cause: ErrorText | None = None
    calls: tuple[tuple[str, int, str], ...] = ()
    exit_code: int | None = None
    signal: int | None = None
    oom_kills: int = 0
    errno: int | None = None
    is_exact: bool = True

    @property
    def signal_name(self) -> str:
        """Such as SIGKILL; empty if no signal killed it."""
        return "" if self.signal is None else signal_name(self.signal)


def ending_of(value: object) -> Ending | None:
    """Return the end that a value of JSON stands for; None if it isn't one."""
    if not isinstance(value, dict) or not is_count(value.get("ns"), _MOST):
        return None
    return Ending(
        value["ns"],
        _error_text(value.get("exception")),
        _error_text(value.get("cause")),
        _calls(value.get("calls")),
        exit_code=_count(value.get("exit_code")),
        signal=_count(value.get("signal")),
        oom_kills=_count(value.get("oom_kills")) or 0,
        errno=_count(value.get("errno")),
    )


def _count(value: Any) -> int | None:
    return value if is_count(value, 1 << 32) else None


def _error_text(value: object) -> ErrorText | None:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return None
    message = value.get("message")
    return ErrorText(value["type"][:_LONGEST_TEXT], message[:_LONGEST_MESSAGE] if isinstance(message, str) else "")


def _calls(value: object) -> tuple[tuple[str, int, str], ...]:
    calls = []
    for item in value[:_MOST_CALLS] if isinstance(value, list) else ():
        file, line, function = item if isinstance(item, list) and len(item) == 3 else (None,) * 3
        if isinstance(file, str) and isinstance(function, str) and is_count(line, _MOST):
            calls.append((file[:_LONGEST_TEXT], line, function[:_LONGEST_TEXT]))
    return tuple(calls)
