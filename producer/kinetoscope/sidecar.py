"""What is known of a recording's steps, markers and counters while it runs, in a small file beside the traces.

A process that is killed with SIGKILL, or by the kernel for want of memory, saves nothing: what is left of it is this
file, from which `kinetoscope recover` makes a trace. It is also how others see that a job is alive and how far it is.

`{run}/.work/rank{r}.jsonl` has a JSON value per line, the first an object that says who writes. The others are lists:

    ["s", number, start_ns, end_ns]         a step
    ["m", label, tid, start_ns, dur_ns]     a marker
    ["o", [label, …], ns]                   markers that are open, the outermost first
    ["i", label, tid, ns]                   an instant
    ["c", name, ns, {series: number}]       a counter
    ["n", kind, value, ns]                  news: `recording`, `saved`, `plan`, `missed`, `refused`, `hanging`,
                                            `left out`
    ["e", reason, ns]                       the process closed its recording in good order

Times are Unix time in nanoseconds. The last line may be cut off. The file is touched every two seconds. When it grows
beyond `MOST_BYTES` it becomes `rank{r}.1.jsonl`, in the place of an older one.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from .requests import WORK

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from .progress import Step

_LOG = logging.getLogger("kinetoscope")

MOST_BYTES = 4 << 20
_LONGEST_LINE = 1 << 16
_TOUCH_S = 2.0
_MOST_WAITING = 100_000
MOST_NEWS = 20
"""How many pieces of news those who watch a job are shown."""


_encoded = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), default=str).encode


def sidecar_file(run: Path, rank: int) -> Path:
    """The sidecar of a rank."""
    return run / WORK / f"rank{rank}.jsonl"


def older_file(sidecar: Path) -> Path:
    """What a sidecar held before it grew too large."""
    return sidecar.with_name(f"{sidecar.stem}.1.jsonl")


def sidecars(run: Path) -> list[Path]:
    """The sidecars of a run, also of processes that are gone."""
    found = (run / WORK).glob("rank*.jsonl")
    return sorted(file for file in found if not file.stem.endswith(".1"))


def header_of(file: Path) -> dict[str, Any] | None:
    """Who wrote a sidecar; None if it doesn't say.

    Raises:
        OSError: It can't be read.
    """
    with file.open("rb") as stream:
        head = _value(stream.readline(_LONGEST_LINE))
    return head if isinstance(head, dict) else None


def lines_of(file: Path, most_bytes: int | None = None) -> list[list[Any]]:
    """The lines of a sidecar after its first; what is damaged or cut off is left out.

    Args:
        file: The sidecar.
        most_bytes: How much of its end to read; None for all.

    Raises:
        OSError: It can't be read.
    """
    with file.open("rb") as stream:
        if most_bytes is not None:
            stream.seek(max(0, file.stat().st_size - most_bytes))
        values = [_value(line) for line in stream.read().splitlines()]
    return [value for value in values if isinstance(value, list) and value and isinstance(value[0], str)]


def has_ended(file: Path) -> bool:
    """Whether a sidecar's process closed its recording in good order.

    Raises:
        OSError: It can't be read.
    """
    return any(line[0] == "e" for line in lines_of(file, _LONGEST_LINE))


def _value(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _set_aside(file: Path) -> None:
    """Keep what a process left that was killed here before."""
    if not file.exists() or has_ended(file):
        return
    aside = file.with_name(f"{file.stem}.left-{time.time_ns()}.jsonl")
    if older_file(file).exists():
        older_file(file).replace(older_file(aside))
    file.replace(aside)


class Sidecar:
    """Writes one process's sidecar.

    The training's thread only appends to a list; the watching thread writes it out.

    Args:
        header: The first line: who writes.
        open_markers: Returns the labels of the markers that are open now, the outermost first.
    """

    def __init__(self, header: Mapping[str, Any], open_markers: Callable[[], list[str]]) -> None:
        self._header = dict(header)
        self._open_markers = open_markers
        self._waiting: deque[tuple[Any, ...]] = deque(maxlen=_MOST_WAITING)
        self._news: deque[tuple[Any, ...]] = deque(maxlen=MOST_NEWS)
        self._step: tuple[Any, ...] | None = None
        self._shown_open: list[str] = []
        self._file: Path | None = None
        self._is_begun = False
        self._touched = 0.0
        self._bytes = 0

    def add(self, *line: Any) -> None:
        """Take a line. Any thread may call it; it does nothing but keep it."""
        self._waiting.append(line)

    @property
    def take(self) -> Callable[[Step], None]:
        """Takes a step as `add` does its lines, and is no function of Python's: it is called at each step."""
        return self._waiting.append

    def note(self, kind: str, value: object) -> None:
        """Take a piece of news."""
        line = ("n", kind, value, time.time_ns())
        self._news.append(line)
        self._waiting.append(line)

    def open(self, run: Path, rank: int, facts: Mapping[str, Any]) -> None:
        """Say where the file shall be, now that the run's folder and the rank are known."""
        self._header |= facts
        self._file = sidecar_file(run, rank)

    @property
    def is_open(self) -> bool:
        """Whether it is known where the file shall be."""
        return self._file is not None

    def write(self) -> None:
        """Write what was added since.

        Raises:
            OSError: The folder doesn't allow it.
        """
        file = self._file
        if file is None:
            return
        if not self._is_begun:
            file.parent.mkdir(parents=True, exist_ok=True)
            _set_aside(file)
            self._begin(file)
        text = "".join(self._lines())
        now = time.monotonic()
        if text:
            self._append(file, text)
        elif now - self._touched >= _TOUCH_S:
            os.utime(file)
        else:
            return
        self._touched = now

    def close(self, reason: str) -> None:
        """Say that the recording was closed, and keep but the last step and news: there is nothing to recover.

        Raises:
            OSError: The folder doesn't allow it.
        """
        file, self._file = self._file, None
        if file is None:
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        steps = [line[1:4] for line in list(self._waiting) if line[0] == "s"]
        self._waiting.clear()
        last = steps[-1] if steps else self._step
        step = "" if last is None else _step_text(*last)
        news = "".join(map(_text, self._news))
        self._replace(file, _text(self._header) + news + step + _text(("e", reason, time.time_ns())))
        older_file(file).unlink(missing_ok=True)

    def _lines(self) -> list[str]:
        shown = self._open_markers()
        if shown != self._shown_open:
            self._shown_open = shown
            self.add("o", shown, time.time_ns())
        lines = []
        while self._waiting:
            line = self._waiting.popleft()
            if line[0] == "s":
                self._step = line[1:4]
            lines.append(_step_text(*line[1:4]) if line[0] == "s" else _text(line))
        return lines

    def _append(self, file: Path, text: str) -> None:
        data = text.encode("ascii")
        if self._bytes + len(data) > MOST_BYTES:
            file.replace(older_file(file))
            self._begin(file)
        with file.open("ab") as stream:
            stream.write(data)
        self._bytes += len(data)

    def _begin(self, file: Path) -> None:
        self._bytes = self._replace(file, _text(self._header))
        self._is_begun = True

    @staticmethod
    def _replace(file: Path, text: str) -> int:
        unfinished = file.with_name(f".{file.name}.tmp-{os.getpid()}")
        try:
            unfinished.write_text(text, encoding="ascii")
            unfinished.replace(file)
        finally:
            unfinished.unlink(missing_ok=True)
        return len(text)


def _step_text(number: int, start_ns: int, end_ns: int) -> str:
    """Return `_text` of a step, as most lines are, in a fifth of the time, since it holds the interpreter."""
    return f'["s",{number},{start_ns},{end_ns}]\n'


def _text(value: Any) -> str:
    """One line of JSON. What isn't JSON becomes text: a program's counter may hold anything."""
    return _encoded(value) + "\n"
