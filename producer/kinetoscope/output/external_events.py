"""Events of other tools that a program adds to a window: files in Chrome's format, or events as Python values.

They stay separate from the recording: their processes get new numbers, since a device or thread of the same number
isn't the same one, and their category becomes `added`, since another tool's kernel isn't one that was recorded here;
the original values are in `args`. Their times are shifted to the recording's zero: those of a file count from its
`baseTimeNanoseconds`, or else from 1970.

This module imports nothing but the standard library.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..events import microseconds
from .chrome import ChromeTrace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

CATEGORY = "added"
_FIRST_PROCESS = 1 << 31
_PER_TRACE = 1 << 16


def json_events(events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a copy of events as JSON values.

    Raises:
        TypeError: A value that isn't an event.
        ValueError: A number that JSON can't represent.
    """
    plain = json.loads(json.dumps([dict(event) for event in events], default=str, allow_nan=False))
    if not all(isinstance(event.get("ph"), str) for event in plain):
        raise TypeError("an event needs a phase, 'ph'")
    return list(plain)


def external_events(program_events: Mapping[str, Any], base_ns: int, unreadable: list[str]) -> Iterator[str]:
    """Yield each event in the window as JSON; a duration that extends beyond the window is clipped.

    Args:
        program_events: From `EventLog.window_events`: the window's Unix time; in `added`, paths of files, and lists
            from `json_events` with times in µs since 1970.
        base_ns: The recording's zero in Unix time.
        unreadable: Is filled with messages about traces that can't be read.
    """
    for number, trace in enumerate(program_events.get("added", ())):
        window = program_events["since_ns"] - base_ns, program_events["until_ns"] - base_ns
        processes = _Processes(_FIRST_PROCESS + number * _PER_TRACE)
        if isinstance(trace, list):
            yield from filter(None, (_shift_and_clip(event, processes, -base_ns, window) for event in trace))
            continue
        source, count = ChromeTrace(Path(trace), parse_float=Decimal), 0
        try:
            for event in source.events():
                count += 1
                text = _shift_and_clip(event, processes, source.base_ns - base_ns, window)
                if text is not None:
                    yield text
        except (OSError, EOFError) as error:
            unreadable.append(f"{trace}: {error}")
            continue
        if not count:
            unreadable.append(f"{trace}: it has no events")


class _Processes:
    """Assigns numbers to the processes of one trace."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._numbers: dict[str, int] = {}

    def number(self, pid: object) -> int:
        return self._numbers.setdefault(str(pid), self._first + len(self._numbers))


def _shift_and_clip(event: Mapping[str, Any], processes: _Processes, by_ns: int, window: tuple[int, int]) -> str | None:
    """Return the event with its times shifted; None if it is invalid, has an invalid time, or is outside the window."""
    if not isinstance(event.get("ph"), str):
        return None
    times: dict[str, int] = {}
    args = dict(event["args"]) if isinstance(event.get("args"), dict) else {}
    if event["ph"] != "M":
        try:
            times = {name: round(Decimal(str(event[name])) * 1000) for name in ("ts", "dur") if name in event}
        except (InvalidOperation, OverflowError, ValueError):
            return None
        start = times.get("ts", 0) + by_ns
        begin, end = max(start, window[0]), min(start + max(0, times.get("dur", 0)), window[1])
        if begin > end:
            return None
        if "dur" in times and end - begin != times["dur"]:
            args |= {"whole_dur_ns": times["dur"]}
            times["dur"] = end - begin
        times["ts"] = begin
    rest = {key: value for key, value in event.items() if key not in ("ts", "dur", "cat", "args")}
    if event["ph"] not in ("M", "C"):
        rest["cat"] = CATEGORY
        args |= {"category": event["cat"]} if event.get("cat") else {}
    if "id" in rest:  # ids of flows and async spans are local to a trace
        rest["id"] = f"{CATEGORY}-{processes.number('')}-{rest['id']}"
    rest |= {"pid": processes.number(event.get("pid", 0)), **({"args": args} if args else {})}
    text = json.dumps(_finite(rest), allow_nan=False)[:-1]
    return text + "".join(f', "{name}": {microseconds(ns)}' for name, ns in times.items()) + "}"


def _finite(value: Any) -> Any:
    """Return the value in strict JSON: non-finite numbers become null."""
    if isinstance(value, dict):
        return {str(key): _finite(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    if isinstance(value, Decimal | float):
        return float(value) if math.isfinite(value) else None
    return value
