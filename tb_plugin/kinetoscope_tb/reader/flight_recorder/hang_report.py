"""What `Tracer` adds to a dump while a step lasts too long: where its rank is. The writer is `session.hang_reports`.

Anyone may have written the file: each value is checked, and one that isn't valid is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .values import integer, is_library, number, text

FOLDER, KEY = "hang", "kinetoscope_hang"
END = "end"
"""The reason of a report by a rank that ended badly."""
_MOST_LINES, _MOST_MARKERS = 64, 64
_MOST_RANKS = 1 << 20
_OPERATIONS = ("send", "recv")
WAITS = ("read", "write", "flush", "lock", "connect")
"""The operations that a thread may wait for: `signals.system_calls` of the recorder writes them."""
_WRAPPERS = ("wrapper", "_wrap", "inner", "decorator")


@dataclass(frozen=True)
class StackLine:
    """A line of a call stack.

    Args:
        file: The source file.
        line: The line.
        function: Module and name of the function that the line is in.
        seconds: How long the thread was at this line, at least.
    """

    file: str
    line: int
    function: str
    seconds: float

    @property
    def is_user(self) -> bool:
        """Whether it isn't torch's, another library's or the recorder's."""
        return not is_library(self.file) and not self.function.startswith("kinetoscope.")

    @property
    def is_wrapper(self) -> bool:
        """Whether its function is one of those that decorators put around another one."""
        return "<locals>" in self.function or self.function.rpartition(".")[2] in _WRAPPERS


@dataclass(frozen=True)
class Activity:
    """What a rank's own code is in.

    Args:
        function: The function: of a library that the code calls, else the code's own.
        file: The source file of the code.
        line: The line of the code.
        seconds: How long it was there, at least.
    """

    function: str
    file: str
    line: int
    seconds: float


@dataclass(frozen=True)
class HangReport:
    """What a rank is in while a step lasts too long.

    Args:
        world_size: The number of ranks.
        written_ns: When it was written, in ns since 1970.
        step: The step's number.
        step_s: For how long the step lasts.
        usual_s: How long a step usually lasts; None if that isn't known.
        reason: `step`, the signal to which the process doesn't react, or `end`.
        stack: Of the training's thread, the innermost line first.
        message: The send or receive that this thread is in, which gloo's recorder lacks: (send or recv, the other rank;
            None if it may be any); None if it is in none.
        state: The kernel's letter for this thread; empty if it isn't known.
        waits_in: The kernel's function that this thread waits in; empty if it isn't known.
        waits_for: What its system call waits for: (one of WAITS, a path, `pipe:[…]`, `socket:[…]` or `host:port`); None
            if that isn't known.
        markers: Name and duration in seconds of each open marker.
        last_saved: The last trace that was saved; empty if there is none.
    """

    world_size: int
    written_ns: int
    step: int
    step_s: float
    usual_s: float | None
    reason: str
    stack: tuple[StackLine, ...]
    message: tuple[str, int | None] | None
    state: str
    waits_in: str
    waits_for: tuple[str, str] | None
    markers: tuple[tuple[str, float], ...]
    last_saved: str

    @property
    def activity(self) -> Activity | None:
        """What the program's own code is in; None if the stack has none of its lines."""
        return activity(self.stack)


def activity(stack: Sequence[StackLine]) -> Activity | None:
    """What the program's own code is in; None if the stack, innermost line first, has none of its lines."""
    nth = next((nth for nth, line in enumerate(stack) if line.is_user), None)
    if nth is None:
        return None
    own = stack[nth]
    calls = [line.function for line in stack[:nth] if not line.is_wrapper]
    function = calls[-1] if calls else own.function.removeprefix("__main__.")
    return Activity(function, own.file, own.line, own.seconds)


def hang_report(value: object) -> HangReport | None:
    """The report that a value of JSON stands for; None if it isn't one."""
    if not isinstance(value, dict):
        return None
    step, written_ns = _mapping(value.get("step")), integer(value.get("written_ns"))
    step_number, world_size = integer(step.get("number")), integer(value.get("world_size"))
    if written_ns is None or step_number is None or world_size is None or not 0 < world_size <= _MOST_RANKS:
        return None
    main_thread = _main_thread(value.get("threads"))
    return HangReport(
        world_size,
        written_ns,
        step_number,
        number(step.get("seconds")),
        number(step.get("usual_s")) or None,
        text(value.get("reason")),
        _stack(value.get("stack")),
        _message(value.get("message"), world_size),
        text(main_thread.get("state"))[:1],
        text(main_thread.get("waits_in")),
        _waits_for(main_thread.get("waits_for")),
        _markers(value.get("markers")),
        text(value.get("last_saved")),
    )


def _stack(value: object) -> tuple[StackLine, ...]:
    lines = []
    for item in _items(value, _MOST_LINES):
        file, line, function, seconds = item if isinstance(item, list) and len(item) == 4 else (None,) * 4
        if isinstance(file, str) and isinstance(function, str) and integer(line) is not None:
            lines.append(StackLine(file, integer(line) or 0, text(function), number(seconds)))
    return tuple(lines)


def _markers(value: object) -> tuple[tuple[str, float], ...]:
    markers = map(_mapping, _items(value, _MOST_MARKERS))
    return tuple((name, number(marker.get("seconds"))) for marker in markers if (name := text(marker.get("name"))))


def _message(value: object, world_size: int) -> tuple[str, int | None] | None:
    facts = _mapping(value)
    operation, peer = facts.get("operation"), integer(facts.get("peer"))
    if operation not in _OPERATIONS:
        return None
    return str(operation), peer if peer is not None and 0 <= peer < world_size else None


def _main_thread(threads: object) -> Mapping[str, Any]:
    return next((t for item in _items(threads, 1 << 8) if (t := _mapping(item)).get("name") == "MainThread"), {})


def _waits_for(value: object) -> tuple[str, str] | None:
    facts = _mapping(value)
    operation, file = facts.get("operation"), text(facts.get("file"))
    return (str(operation), file) if operation in WAITS and file else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(value: object, most: int) -> list[Any]:
    return value[:most] if isinstance(value, list) else []
