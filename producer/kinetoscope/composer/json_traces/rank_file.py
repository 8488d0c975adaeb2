"""A rank's file of one window: its own events and those of other profilers, as a Chrome JSON array.

It has one event per line, on Unix time in µs. The process of an event is the global rank, so that markers and torch's
operators share a row; a GPU, or anything else that isn't the recorded process, is a process of its own. torch's times
count from `baseTimeNanoseconds`, which must be added: without it, markers and operators are decades apart (torch since
2.4). This module never imports torch.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...atomic_write import atomic_file
from ...output.chrome import ChromeTrace, nanoseconds

_BACKWARD = "autograd::engine::evaluate_function"
_PROCESSES_PER_RANK = 1000
_OTHERS = 1_000_000  # ranks come before


class RankFile:
    """The lines of one rank's file.

    Args:
        rank: Over the whole job.
        pid: The recorded process.
    """

    def __init__(self, rank: int, pid: int) -> None:
        self._rank = rank
        self._processes: dict[object, int] = {pid: rank}
        self._backward: set[object] = set()
        self.dropped = 0
        """Number of events without a process or thread."""
        self.problems: list[str] = []
        """Messages about sources that couldn't be read."""

    def lines(self, program_events: Iterable[Mapping[str, Any]], sources: Iterable[ChromeTrace]) -> Iterator[str]:
        """Return each event as JSON.

        Args:
            program_events: The program's own events, with their Unix time as `ns`.
            sources: Traces of other profilers.
        """
        yield _metadata("process_name", self._rank, {"name": f"rank {self._rank}"})
        yield _metadata("process_sort_index", self._rank, {"sort_index": self._rank * _PROCESSES_PER_RANK})
        yield _metadata("global_rank", self._rank, {"value": self._rank})
        for event in sorted(program_events, key=lambda event: int(event["ns"])):
            values = {key: value for key, value in event.items() if key != "ns"}
            yield _with_time({**values, "pid": self._rank}, event["ns"])
        for source in sources:
            yield from self._lines_of(source)
            if source.offset_ns is not None:
                yield _metadata("clock_offset_ns", self._rank, {"value": source.offset_ns})
        for tid in self._backward:
            yield _metadata("thread_sort_index", self._rank, {"sort_index": 1}, tid)
        for index, (pid, number) in enumerate(self._processes.items()):
            if number != self._rank:
                name = {"name": f"rank {self._rank} · {pid if isinstance(pid, str) else f'device {pid}'}"}
                yield _metadata("process_name", number, name)
                order = self._rank * _PROCESSES_PER_RANK + index
                yield _metadata("process_sort_index", number, {"sort_index": order})

    def _lines_of(self, source: ChromeTrace) -> Iterator[str]:
        try:
            for event in source.events():
                if "pid" in event and "tid" in event:
                    yield self._line(event, source.base_ns)
                else:
                    self.dropped += 1
        except (OSError, EOFError, zlib.error) as error:  # the events read so far are good
            self.problems.append(f"{source.path}: {error}")

    def _line(self, event: dict[str, Any], base_ns: int) -> str:
        pid = event["pid"]
        if pid not in self._processes:
            self._processes[pid] = _OTHERS + self._rank * _PROCESSES_PER_RANK + len(self._processes)
        event["pid"] = number = self._processes[pid]
        if event.get("ph") == "M":
            event.pop("ts", None)
            if str(event.get("name", "")).startswith("process_"):
                return ""  # the rank's own metadata replaces it
            return json.dumps(event)
        if str(event.get("name", "")).startswith(_BACKWARD) and number == self._rank:
            self._backward.add(event["tid"])
        if "id" in event:
            event["id"] = f"{self._rank}:{event['id']}"
        return _with_time(event, base_ns + nanoseconds(event.get("ts", 0)))


def _with_time(event: Mapping[str, Any], unix_ns: int) -> str:
    """Return the event as JSON with its time in µs, as exact digits: a double resolves Unix time only to 0.25 µs."""
    rest = {key: value for key, value in event.items() if key != "ts"}
    return f'{json.dumps(rest)[:-1]}, "ts": {unix_ns // 1000}.{unix_ns % 1000:03d}}}'


def _metadata(name: str, pid: int, args: Mapping[str, Any], tid: object = 0) -> str:
    return json.dumps({"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args})


def write_array(target: Path, lines: Iterable[str]) -> None:
    """Write lines as a JSON array; the file appears under its name when it is complete."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(target) as file:
        separator = "[\n"
        for line in filter(None, lines):
            file.stream.write((separator + line).encode())
            separator = ",\n"
        file.stream.write(b"\n]\n" if separator != "[\n" else b"[]\n")
        file.force_to_disk()
