"""A recording's steps, markers and counters, written to a small file next to the traces while it runs.

A process that is killed with SIGKILL, or by the kernel's out-of-memory killer, saves nothing but this file, from which
`kinetoscope recover` makes a trace. The file also shows that a job is alive, and its progress.

`{run}/.work/rank{r}.jsonl` has a JSON value per line, the first an object that describes the process. The others are
lists:

    ["s", number, start_ns, end_ns]         a step
    ["m", label, tid, start_ns, dur_ns]     a marker
    ["o", [label, …], ns]                   markers that are open, the outermost first
    ["i", label, tid, ns]                   an instant
    ["c", name, ns, {series: number}]       a counter
    ["n", kind, value, ns]                  news: `recording`, `saved`, `plan`, `missed`, `refused`, `hanging`,
                                            `left out`
    ["l", [number, start_ns, end_ns], [[kind, value, ns], …]]
                                            the last step, null if there was none, and the last news again
    ["e", reason, ns]                       the process closed its recording

Times are Unix time in nanoseconds. The last line may be truncated. New lines are written every second, five times a
second while a step hangs; without any, the file is touched every two seconds. When it grows beyond `MOST_BYTES` it
becomes `rank{r}.1.jsonl`, replacing an older one. An `l` line begins each such file and is repeated every 32 KiB, so
that the last 64 KiB always have the process's progress, however many counters there are. A process that is stopped may
lack its last steps here: the writer process then writes its ring.

Anyone who can write to the run's folder can write this file: its content is untrusted.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from ..atomic_write import replace_file
from ..events import COUNTER, INSTANT, Event
from ..naming import journal_name
from ..path_below import PathBelow
from ..scheduling.request import WORK
from ..untrusted_files import append_plain, open_plain, touch_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ..progress import Step

_LOG = logging.getLogger("kinetoscope")

MOST_BYTES = 4 << 20
RECOVERED = ".recovered"
"""The suffix of a journal of which there is a trace."""
TAIL_BYTES = 1 << 16
"""This much of the end is sure to have the last step and the last news."""
_LONGEST_LINE = 1 << 16
_MOST_READ_BYTES = 64 << 20  # even a file that exceeded its limit in one write is smaller
_LATEST_EVERY_BYTES, _MOST_LATEST_BYTES = 1 << 15, 1 << 14
_TOUCH_S = 1.5  # at the second call of `write`, one a second
_MOST_WAITING = 100_000
_EVENTS = ("m", "i", "c")
MOST_NEWS = 20
"""How many pieces of news `status` shows."""


_encode = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), default=str).encode


def journal_file(run: Path, rank: int) -> PathBelow:
    """The journal of a rank."""
    return PathBelow(run, WORK, journal_name(rank))


def older_file(journal_path: PathBelow) -> PathBelow:
    """The older part of a journal, from before it grew too large."""
    return journal_path.with_name(f"{_stem(journal_path)}.1.jsonl")


def _stem(file: PathBelow) -> str:
    return file.name.removesuffix(".jsonl")


def journal_files(run: Path) -> list[PathBelow]:
    """Return the journals of a run, also of processes that have ended."""
    return [file for file in PathBelow(run, WORK).children("rank*.jsonl") if not file.name.endswith(".1.jsonl")]


def recovered_journal_files(run: Path) -> list[PathBelow]:
    """Return the journals that were recovered into a trace."""
    return PathBelow(run, WORK).children(f"rank*{RECOVERED}")


def header_of(file: PathBelow) -> dict[str, Any] | None:
    """Return the header of a journal, which describes its process; None if it has none.

    Raises:
        OSError: It can't be read.
    """
    with open_plain(file) as stream:
        head = _value(stream.readline(_LONGEST_LINE))
    return head if isinstance(head, dict) else None


def lines_of(file: PathBelow, most_bytes: int | None = None) -> list[list[Any]]:
    """Return the lines of a journal after its first, without damaged or truncated ones.

    Args:
        file: The journal.
        most_bytes: How much of its end to read; None for all.

    Raises:
        OSError: It can't be read, or is larger than a recorder writes.
    """
    with open_plain(file) as stream:
        size = os.fstat(stream.fileno()).st_size
        if most_bytes is None and size > _MOST_READ_BYTES:
            raise OSError(f"it has {size >> 20} MiB, more than a recorder writes")
        start = 0 if most_bytes is None else max(0, size - most_bytes)
        stream.seek(start)
        lines = stream.read(_MOST_READ_BYTES).splitlines()
    values = [_value(line) for line in lines[bool(start) :]]
    return [value for value in values if isinstance(value, list) and value and isinstance(value[0], str)]


def latest_of(lines: Sequence[list[Any]]) -> tuple[list[int] | None, list[tuple[str, Any, int]]]:
    """Return number, start and end of the last step in some lines, and the news in order; invalid ones are ignored.

    Args:
        lines: From `lines_of`.
    """
    step: list[int] | None = None
    news: dict[tuple[str, int], Any] = {}
    for line in lines:
        if line[0] == "s" and is_step(line[1:]):
            step = line[1:]
        elif line[0] == "n" and _is_news(line[1:]):
            news[line[1], line[3]] = line[2]
        elif line[0] == "l" and len(line) == 3:
            step = line[1] if is_step(line[1]) else step
            pieces = line[2] if isinstance(line[2], list) else ()
            news |= {(piece[0], piece[2]): piece[1] for piece in pieces if _is_news(piece)}
    in_order = sorted(news.items(), key=lambda piece: piece[0][1])
    return step, [(kind, value, ns) for (kind, ns), value in in_order]


def is_step(value: Any) -> bool:
    """Whether a value is number, start and end of a step."""
    return isinstance(value, list) and len(value) == 3 and all(is_time_ns(number) for number in value)


def _is_news(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and isinstance(value[0], str) and is_time_ns(value[2])


def is_time_ns(value: object) -> bool:
    """Whether a value can be a Unix time in nanoseconds, or another integer of that size."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62


def has_ended(file: PathBelow) -> bool:
    """Whether a journal's process closed its recording.

    Raises:
        OSError: It can't be read.
    """
    return any(line[0] == "e" for line in lines_of(file, TAIL_BYTES))


def _value(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _preserve(file: PathBelow) -> None:
    """Preserve the journal of an earlier process that was killed."""
    try:
        if has_ended(file):
            return
    except FileNotFoundError:
        return
    except OSError:  # something else has its name
        pass
    aside = file.with_name(f"{_stem(file)}.left-{time.time_ns()}.jsonl")
    if older_file(file).exists():
        older_file(file).replace(older_file(aside).name)
    file.replace(aside.name)


class JournalWriter:
    """Writes one process's journal.

    The training's thread only appends to a list; the background thread writes it out.

    Args:
        header: The first line, which describes the process.
        open_markers: Returns the labels of the open markers, the outermost first.
        has_events: Returns whether to write the program's events.
    """

    def __init__(
        self,
        header: Mapping[str, Any],
        open_markers: Callable[[], list[str]],
        has_events: Callable[[], bool] = lambda: True,
    ) -> None:
        self._header, self._has_events = dict(header), has_events
        self._open_markers = open_markers
        self._waiting: deque[tuple[Any, ...]] = deque(maxlen=_MOST_WAITING)
        self._news: deque[tuple[Any, ...]] = deque(maxlen=MOST_NEWS)
        self._latest: dict[str, tuple[Any, ...]] = {}  # by kind, the newest at the end
        self._step: tuple[Any, ...] | None = None
        self._written_open: list[str] = []
        self._file: PathBelow | None = None
        self._is_begun = False
        self._touched_s = 0.0
        self._bytes = self._bytes_since_latest = 0

    def add(self, *line: Any) -> None:
        """Append a line to the buffer. Any thread may call it."""
        self._waiting.append(line)

    @property
    def take(self) -> Callable[[Step], None]:
        """Appends a step to the buffer. Implemented in C, since it is called at each step."""
        return self._waiting.append

    @property
    def take_event(self) -> Callable[[Event], None]:
        """Appends an event of the program to the buffer. Implemented in C, since it is called at each marker."""
        return self._waiting.append

    def note(self, kind: str, value: object) -> None:
        """Add a piece of news."""
        line = ("n", kind, value, time.time_ns())
        self._news.append(line)
        self._latest.pop(kind, None)
        self._latest[kind] = line
        self._waiting.append(line)

    def open(self, run: Path, rank: int, facts: Mapping[str, Any]) -> None:
        """Set the file's path, now that the run's folder and the rank are known."""
        self._header |= facts
        self._file = journal_file(run, rank)

    @property
    def is_open(self) -> bool:
        """Whether the file's path is set."""
        return self._file is not None

    def write(self) -> None:
        """Write the buffer to the file.

        Raises:
            OSError: The folder doesn't allow it.
        """
        file = self._file
        if file is None:
            return
        if not self._is_begun:
            file.parent.make()
            _preserve(file)
            self._begin(file)
        text = "".join(self._lines())
        now = time.monotonic()
        if text:
            self._append(file, text)
        elif now - self._touched_s >= _TOUCH_S:
            touch_plain(file)
        else:
            return
        self._touched_s = now

    def close(self, reason: str) -> None:
        """Write that the recording was closed, and keep only the last step and news: there is nothing to recover.

        Raises:
            OSError: The folder doesn't allow it.
        """
        file, self._file = self._file, None
        if file is None:
            return
        file.parent.make()
        if not self._is_begun:  # it ended before the first line was written
            _preserve(file)
        steps = [line[1:4] for line in list(self._waiting) if line[0] == "s"]
        self._waiting.clear()
        last = steps[-1] if steps else self._step
        step = "" if last is None else _step_text(*last)
        news = "".join(map(_text, self._news))
        text = _text(self._header) + news + step + _text(("e", reason, time.time_ns()))
        replace_file(file, text.encode("ascii"))
        older_file(file).unlink()

    def _lines(self) -> list[str]:
        labels = self._open_markers()
        if labels != self._written_open:
            self._written_open = labels
            self.add("o", labels, time.time_ns())
        lines, has_events = [], self._has_events()
        while self._waiting:
            line = _event_line(self._waiting.popleft())
            if line[0] == "s":
                self._step = line[1:4]
            elif not has_events and line[0] in _EVENTS:
                continue
            lines.append(_step_text(*line[1:4]) if line[0] == "s" else _text(line))
            self._bytes_since_latest += len(lines[-1])
            if self._bytes_since_latest >= _LATEST_EVERY_BYTES:
                lines.append(self._latest_text())
                self._bytes_since_latest = 0
        return lines

    def _latest_text(self) -> str:
        """Return the last step, and as many of the last news as fit, beginning with the last of each kind."""
        line_by_id: dict[int, tuple[Any, ...]] = {}
        room = _MOST_LATEST_BYTES
        for line in (*reversed(list(self._latest.values())), *reversed(self._news)):
            size = 0 if id(line) in line_by_id else len(_text(line))
            if size <= room:
                room -= size
                line_by_id[id(line)] = line
        news = [line[1:] for line in sorted(line_by_id.values(), key=lambda line: line[3])]
        return _text(("l", self._step, news))

    def _append(self, file: PathBelow, text: str) -> None:
        data = text.encode("ascii")
        try:
            if self._bytes + len(data) > MOST_BYTES:
                file.replace(older_file(file).name)
                self._begin(file)
            append_plain(file, data)
        except FileNotFoundError:  # the file was removed
            file.parent.make()
            self._begin(file)
            append_plain(file, data)
        self._bytes += len(data)

    def _begin(self, file: PathBelow) -> None:
        text = _text(self._header) + (self._latest_text() if self._step or self._latest else "")
        replace_file(file, text.encode("ascii"))
        self._bytes = len(text)
        self._is_begun = True


def _event_line(line: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the line of an event of the program; others as they are."""
    if not isinstance(line, Event):
        return line
    if line.kind == COUNTER:
        return ("c", line.name, line.start_ns, line.args or {})
    if line.kind == INSTANT:
        return ("i", line.name, line.tid, line.start_ns)
    return ("m", line.name, line.tid, line.start_ns, line.dur_ns)


def _step_text(number: int, start_ns: int, end_ns: int) -> str:
    """Like `_text`, for a step, in a fifth of the time: most lines are steps, and encoding holds the GIL."""
    return f'["s",{number},{start_ns},{end_ns}]\n'


def _text(value: Any) -> str:
    """Return one line of JSON. Other objects become strings: a program's counter may be of any type."""
    return _encode(value) + "\n"
