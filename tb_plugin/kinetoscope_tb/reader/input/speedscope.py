"""speedscope's files, such as py-spy's, as the text of a trace: a call is an event.

The format is speedscope's own (jlfwong/speedscope), which a dozen profilers write: frames,
and profiles that refer to them. An evented profile has the begin and the end of each call; a sampled one has a stack
for each moment, and calls are what follows from them. py-spy writes one sampled profile for each thread. None says when
it was recorded.

A call's name is that of torch's Python calls, `file.py(12): function`, where file and line are known.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain
from typing import Any, TypeGuard

from ...errors import NotATrace
from ...names.regex import regex
from ...trace.model import Diagnostic
from .encodings import whole_characters

_MOST_BYTES = 64 << 20  # of the text, which is parsed whole, into up to 25 times as much memory
_MOST_CALLS, _MOST_DEPTH, _LONGEST = 1 << 22, 1 << 10, 400
_MOST_DIGITS = 18
_UNITS_NS = {"nanoseconds": 1, "microseconds": 10**3, "milliseconds": 10**6, "seconds": 10**9}
_MOST_NS = 2**61
_EVENTS_AT_ONCE = 1 << 14
_EXPORTER = regex(r"([A-Za-z][\w.-]{0,39})(?:@.*)?")


def calls_as_events(blocks: Iterable[bytes], path: str, diagnostics: list[Diagnostic]) -> Iterator[bytes]:
    """The blocks of a speedscope file as those of a trace.

    Args:
        blocks: Its text.
        path: Its name in messages.
        diagnostics: Gets what is wrong in it.

    Raises:
        NotATrace: It can't be read.
    """
    yield from _Calls(_document(blocks, path), diagnostics).blocks()


def _document(blocks: Iterable[bytes], path: str) -> Mapping[str, Any]:
    parts, size = [], 0
    for block in blocks:
        parts.append(block)
        size += len(block)
        if size > _MOST_BYTES:
            raise NotATrace(path, f"it is too large for a speedscope file: over {_MOST_BYTES >> 20} MiB. Record less.")
    try:
        document = json.loads(b"".join(parts), parse_float=Decimal, parse_int=_integer, parse_constant=lambda _: None)
    except (ValueError, RecursionError, ArithmeticError) as error:
        raise NotATrace(path, "it is a speedscope file, but damaged: its JSON can't be read to its end.") from error
    if not isinstance(document, dict):
        raise NotATrace(path, "it is no speedscope file, although it names its schema.")
    return document


def _integer(digits: str) -> int | None:
    return int(digits) if len(digits) <= _MOST_DIGITS else None


@dataclass
class _Thread:
    """The calls of a profile that are open.

    Args:
        frames: How many frames there are to refer to.
        now: The last moment, in ns.
        odd: How many values are impossible, and left out.
    """

    frames: int
    now: int
    stack: list[tuple[int, int]] = field(default_factory=list)
    odd: int = 0

    def is_frame(self, value: object) -> TypeGuard[int]:
        """Whether a value refers to a frame."""
        is_right = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < self.frames
        self.odd += not is_right
        return is_right

    def close_to(self, depth: int) -> Iterator[tuple[int, int, int]]:
        """(frame, begin, end) of the calls that end now, so that `depth` are left."""
        while len(self.stack) > depth:
            frame, begin = self.stack.pop()
            yield frame, begin, self.now


class _Calls:
    """The calls of a file as events.

    Args:
        document: The file.
        diagnostics: Gets what is wrong in it.
    """

    def __init__(self, document: Mapping[str, Any], diagnostics: list[Diagnostic]) -> None:
        self._profiles = [entry for entry in _list(document.get("profiles")) if isinstance(entry, dict)]
        exporter = _EXPORTER.fullmatch(str(document.get("exporter") or ""))
        self._exporter = json.dumps(exporter[1] if exporter else "speedscope")
        content = document.get("shared")
        self._names = [_name(frame) for frame in _list(content.get("frames") if isinstance(content, dict) else None)]
        self._diagnostics = diagnostics
        self._odd = self._timeless = 0

    def blocks(self) -> Iterator[bytes]:
        """The text of a trace."""
        yield b'{"speedscope":true,"traceEvents":['
        separator: str = ""
        lines: list[str] = []
        for count, event in enumerate(self._events(), 1):
            lines.append(separator + event)
            separator = ",\n"
            if len(lines) == _EVENTS_AT_ONCE:
                yield "".join(lines).encode()
                lines = []
            if count == _MOST_CALLS:
                self._note("too_many_calls", 1, f"Calls after the first {_MOST_CALLS:,} are left out.", "loss")
                break
        yield "".join(lines).encode() + b"]}"
        self._note_problems()

    def _events(self) -> Iterator[str]:
        yield f'{{"ph":"M","name":"process_name","pid":0,"args":{{"name":{self._exporter}}}}}'
        for number, profile in enumerate(self._profiles):
            scale = _UNITS_NS.get(str(profile.get("unit")))
            if scale is None:
                self._timeless += 1
                continue
            ids = f'"pid":0,"tid":{number}'
            label = json.dumps({"name": _text(profile.get("name")) or f"profile {number + 1}"})
            yield f'{{"ph":"M","name":"thread_name",{ids},"args":{label}}}'
            thread = _Thread(len(self._names), _ns(profile.get("startValue"), scale) or 0)
            calls = _of_samples if profile.get("type") == "sampled" else _of_events
            for frame, begin, end in chain(calls(profile, thread, scale), thread.close_to(0)):
                times = (
                    f'"ts":{begin // 1000}.{begin % 1000:03},"dur":{(end - begin) // 1000}.{(end - begin) % 1000:03}'
                )
                yield f'{{"ph":"X","cat":{self._exporter},"name":{self._names[frame]},{ids},{times}}}'
            self._odd += thread.odd

    def _note_problems(self) -> None:
        if any(profile.get("type") == "sampled" for profile in self._profiles):
            words = "Calls are put together from samples: those between two samples are missing, and calls of the same "
            words += "function in a row look like one."
            self._note("sampled_calls", len(self._profiles), words, "note")
        if self._timeless:
            words = "Profiles whose unit isn't a time, such as bytes, aren't drawn."
            self._note("profile_without_time", self._timeless, words, "warning")
        if self._odd:
            self._note("odd_samples", self._odd, "Impossible frames, times and ends of calls are left out.", "warning")

    def _note(self, rule: str, count: int, words: str, level: Any) -> None:
        self._diagnostics.append(Diagnostic(rule, count, words, level=level))


def _of_samples(profile: Mapping[str, Any], thread: _Thread, scale: int) -> Iterator[tuple[int, int, int]]:
    """(frame, begin, end) of the calls that stacks at successive moments show."""
    samples, weights = _list(profile.get("samples")), _list(profile.get("weights"))
    thread.odd += abs(len(samples) - len(weights))
    elapsed: int | Decimal = 0
    begin = thread.now
    for sample, weight in zip(samples, weights, strict=False):
        if (length := _ns(weight, scale)) is None:
            thread.odd += 1
            continue
        stack = [frame for frame in _list(sample)[:_MOST_DEPTH] if thread.is_frame(frame)]
        depth = _common(thread.stack, stack)
        yield from thread.close_to(depth)
        thread.stack += [(frame, thread.now) for frame in stack[depth:]]
        elapsed += weight if length else 0
        thread.now = begin + (_ns(elapsed, scale) or 0)


def _common(stack: Sequence[tuple[int, int]], frames: Sequence[int]) -> int:
    """How many of the outer calls go on."""
    pairs = enumerate(zip(stack, frames, strict=False))
    return next(
        (depth for depth, ((open_frame, _), frame) in pairs if open_frame != frame), min(len(stack), len(frames))
    )


def _of_events(profile: Mapping[str, Any], thread: _Thread, scale: int) -> Iterator[tuple[int, int, int]]:
    """(frame, begin, end) of calls whose begin and end are listed; an end also ends what is open inside."""
    for event in _list(profile.get("events")):
        entry = event if isinstance(event, dict) else {}
        at, frame = _ns(entry.get("at"), scale), entry.get("frame")
        if at is None or at < thread.now or not thread.is_frame(frame):
            thread.odd += 1
            continue
        thread.now = at
        if entry.get("type") == "O" and len(thread.stack) < _MOST_DEPTH:
            thread.stack.append((frame, at))
            continue
        depth = next((level for level in reversed(range(len(thread.stack))) if thread.stack[level][0] == frame), None)
        if entry.get("type") != "C" or depth is None:
            thread.odd += 1
            continue
        thread.odd += len(thread.stack) - depth - 1
        yield from thread.close_to(depth)


def _ns(value: object, scale: int) -> int | None:
    """A time in ns; None for what is no time."""
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)) or not 0 <= value < _MOST_NS:
        return None
    at = round(value * scale)
    return at if at < _MOST_NS else None


def _name(frame: object) -> str:
    """The name of a call, as JSON."""
    entry = frame if isinstance(frame, dict) else {}
    name, file, line = _text(entry.get("name")) or "?", _text(entry.get("file")), entry.get("line")
    is_place = file and isinstance(line, int) and not isinstance(line, bool)
    return json.dumps(f"{file}({line}): {name}" if is_place else name)


def _text(value: object) -> str:
    return whole_characters(value)[:_LONGEST] if isinstance(value, str) else ""


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
