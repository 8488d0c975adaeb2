"""How ranks ended, as text."""

from __future__ import annotations

import re

from kinetoscope.journal.ending import ErrorText

from ..hangs.titles import instant
from .deaths import ABORT, CRASH, EXIT, GONE, KILLED, OUT_OF_MEMORY, STOPPED, UNKNOWN, Death
from .exceptions import PEER_LOST, TIMEOUT

_LONGEST_MESSAGE = 300
_OTHER_PROCESSES = re.compile(r" (?:Process \d+ has|Including non-PyTorch memory)")
"""What follows the size of a failed allocation and of the device in torch's message."""
_FIXED = {
    KILLED: "was killed by SIGKILL",
    OUT_OF_MEMORY: "was killed by the kernel's out-of-memory killer",
    UNKNOWN: "ended without a word",
    GONE: "has been silent",
    PEER_LOST: "lost the connection to another rank",
    TIMEOUT: "waited for another rank until a timeout",
}


def end_title(death: Death) -> str:
    """How a rank ended, as a clause without its subject, such as "was killed by SIGKILL"."""
    ending = death.ending
    if death.kind in _FIXED:
        return _FIXED[death.kind]
    if death.kind in (CRASH, ABORT):
        return f"crashed with {ending.signal_name}"
    if death.kind == STOPPED:
        return f"was stopped by {_signal(death)}"
    if death.kind == EXIT and ending.exception is None:
        return f"ended with exit code {ending.exit_code}"
    if death.kind == EXIT:
        return f"called sys.exit with code {ending.exit_code}"
    return f"raised {error_title(ending.exception).rstrip('.')}" if ending.exception else "raised an exception"


def _signal(death: Death) -> str:
    if death.ending.signal is not None:
        return death.ending.signal_name
    is_interrupt = death.ending.exception is not None and death.ending.exception.type == "KeyboardInterrupt"
    reason = death.status.ignored_signal or death.status.reason or ""
    return "Ctrl-C" if is_interrupt else reason.upper() if reason.startswith("sig") else "a signal"


def error_title(error: ErrorText) -> str:
    """Such as KeyError: 'x'; of a message of many lines the first, and the last of another process's traceback."""
    lines = [line.strip() for line in error.message.splitlines() if line.strip()]
    message = _OTHER_PROCESSES.split(lines[0])[0] if lines else ""
    if len(lines) > 1 and "Original Traceback" in error.message:
        message = f"{message.rstrip('.')}: {lines[-1]}"
    message = message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}…"
    return f"{error.type}: {message}" if message else error.type


def moment(death: Death) -> str:
    """When a rank ended, such as " at 2026-11-26 07:42:53 UTC"; empty if it isn't known."""
    when = instant(death.ns)
    word = "since" if death.kind == GONE else "at" if death.is_exact else "after"
    return f" {word} {when}" if when else ""
