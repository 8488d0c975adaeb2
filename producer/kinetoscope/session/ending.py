"""How a recording ends in its own process: when, at which line, and with which exception.

`kinetoscope why` compares these of all ranks: it names who failed first, and what the others did then.
"""

from __future__ import annotations

import sys
import time
import traceback
from typing import TYPE_CHECKING, Any

from ..output.redaction import redacted_text
from ..signals.call_stacks import MOST_FRAMES, Call, call_of, call_stack

if TYPE_CHECKING:
    from types import FrameType

_LONGEST_MESSAGE = 2000


def ending(error: BaseException | None, frame: FrameType | None, signal_ns: int | None) -> dict[str, Any]:
    """Return the facts about an end.

    Args:
        error: The exception that ends it; None for none.
        frame: Where the program is when a signal ends it; None if it isn't one.
        signal_ns: When the signal came, in Unix time; None if it was handled at once, or there is none.
    """
    facts = {} if error is None else _exception_facts(error)
    if frame is not None:
        facts["calls"] = [list(call) for call in call_stack(frame)]
    return {**facts, "ns": time.time_ns() if signal_ns is None else signal_ns}


def uncaught_exception() -> BaseException | None:
    """Return the exception that ends the program, while it exits; None if none does.

    The interpreter notes it before it calls the functions of `atexit`. A console's may be of long ago.
    """
    return None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)


def _exception_facts(error: BaseException) -> dict[str, Any]:
    cause = _first_cause(error)
    facts: dict[str, Any] = {"exception": {"type": _type_name(error), "message": _message(error)}}
    facts["calls"] = [list(call) for call in _calls(error)]
    if cause is not error:
        facts["cause"] = {"type": _type_name(cause), "message": _message(cause)}
    if isinstance(error, OSError) and error.errno is not None:
        facts["errno"] = error.errno
    if isinstance(error, SystemExit):
        facts["exit_code"] = 0 if error.code is None else error.code if isinstance(error.code, int) else 1
    return facts


def _calls(error: BaseException) -> list[Call]:
    """Return the calls from where the exception was raised to where it is now, the innermost first."""
    calls = [call_of(frame, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    return calls[::-1][:MOST_FRAMES]


def _first_cause(error: BaseException) -> BaseException:
    """Return the exception because of which this one was raised, as Python reports them."""
    seen_ids = {id(error)}
    while (cause := error.__cause__ or (None if error.__suppress_context__ else error.__context__)) is not None:
        if id(cause) in seen_ids:
            break
        seen_ids.add(id(cause))
        error = cause
    return error


def _type_name(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _message(error: BaseException) -> str:
    """Return the message without secrets; of a very long one, begin and end."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  an exception of the program, whose message fails
        return ""
    half = _LONGEST_MESSAGE // 2
    return redacted_text(text if len(text) <= _LONGEST_MESSAGE else f"{text[:half]} … {text[-half:]}")
