"""Merges the traces of several ranks into one file, so that Perfetto and chrome://tracing show them side by side.

Each file is read as a stream, one event at a time, so that the size of the ranks doesn't matter. Three things change in
an event: its time, because each file has its own zero and each rank its own clock; its process, because two machines
may use the same number and every rank calls its first GPU 0; and what links events, arrows, correlations and External
ids, which are only unique within a file.

The list `merged` behind the events has each worker's own numbers of processes, metadata and clock, from which the
reader restores the ranks. `mergedWorkers` in front of them names the workers for a listing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import IO, Any

from ..discovery import TraceFile
from ..errors import TraceError
from ..reader.frames.metadata import metadata
from ..reader.input.document import top_values
from ..reader.input.encodings import whole_characters
from ..reader.input.source import Source
from ..reader.processes.merge_record import OF_WORKER
from ..reader.scan.chunk import event_texts
from ..reader.scan.ingest import default_threads, ingest, split_head
from ..reader.scan.strict_json import strict_event
from ..reader.writer_fingerprint import Samples
from ..trace.meta import Meta

_BLOCK_BYTES = 4 << 20
_PIDS_PER_FILE = 1000
_SORT_KEYS_PER_FILE = 10_000_000
_LATEST_US = 2**53
_HEXADECIMAL = re.compile(r"(?:0[xX])?[0-9a-fA-F]{1,16}")
_IDS_PER_FILE = 1 << 42  # 1024 files stay below 2^53, what a double holds exactly
_LINKS = ("correlation", "External id", "external id", "wait_on_cuda_event_record_corr_id")
"""Arguments that are unique within a file; 0 links nothing."""


@dataclass
class MergeResult:
    """A merged file.

    Attributes:
        workers: For each file its worker, and how it was put on the common clock.
        events: Number of events.
        skipped: Number of events left out because they aren't objects with a process.
    """

    workers: list[dict[str, Any]] = field(default_factory=list)
    events: int = 0
    skipped: int = 0


@dataclass(frozen=True)
class _Frame:
    """A file's zero: Unix time of its own machine, and how far that machine's clock is ahead."""

    base_ns: int
    offset_ns: int | None
    error_ns: int | None

    @property
    def zero_ns(self) -> int:
        """The file's zero on the common clock."""
        return self.base_ns - (self.offset_ns or 0)


def merge(
    files: Sequence[TraceFile], out: IO[bytes], note: Callable[[TraceFile], None] = lambda _: None
) -> MergeResult:
    """Write the events of all files into one.

    Args:
        files: The traces, of different workers, in display order.
        out: Where the JSON text is written.
        note: Called with each file before its events are read.

    Raises:
        TraceError: A file can't be read.
        OSError: `out` can't be written.
    """
    several = [file.shown for file in files if file.process is not None]
    if several:
        raise TraceError(several[0], "it holds several ranks already. Merge the files of single ranks.")
    result = MergeResult()
    frames = [_frame(file.path) for file in files]
    zero_ns = min(frame.zero_ns for frame in frames)
    workers = json.dumps([file.worker for file in files]).encode()
    out.write(b'{"schemaVersion": 1, "displayTimeUnit": "ms", "baseTimeNanoseconds": %d, ' % zero_ns)
    out.write(b'"mergedWorkers": %s, "traceEvents": [' % workers)
    for index, (file, frame) in enumerate(zip(files, frames, strict=True)):
        note(file)
        writer = _Writer(out, result, file.worker, index, frame.zero_ns - zero_ns)
        samples = Samples()
        top, _ = top_values(*_read(file.path, writer, samples))
        writer.finish()
        result.workers.append(
            {
                "worker": file.worker,
                "file": file.shown,
                "base_ns": frame.base_ns,
                "clock_offset_ns": frame.offset_ns,
                "clock_error_ns": frame.error_ns,
                "processes": {str(new): str(old) for old, new in writer.processes.items()},
                "metadata": top,
                "fingerprint": {name: sorted(values) for name, values in vars(samples.fingerprint()).items()},
            }
        )
    out.write(b'\n], "merged": ' + _json(result.workers) + b"}\n")
    return result


def _read(path: str, into: Any, samples: Samples) -> tuple[bytes, bytes]:
    """Append the texts of a file's events, a few at a time; return the text before and after the events."""
    with Source(path, _BLOCK_BYTES) as blocks:
        ingestion = ingest(
            samples.pass_on(blocks), path, default_threads(), lambda _: None, into=into, collect=event_texts
        )
    return ingestion.head, ingestion.tail


def _frame(path: str) -> _Frame:
    """The file's clock, from the text before its events if that is enough."""
    with Source(path, 1 << 16) as blocks:
        head, tail = split_head(iter(blocks), path)[0], b""
    if head.lstrip().startswith(b"{") and b'"baseTimeNanoseconds"' not in head:
        head, tail = _read(path, _Nothing(), Samples())  # traces recorded on demand have it after the events
    outside = metadata(head, tail)
    if outside.impossible:
        problems = "; ".join(outside.impossible)
        raise TraceError(path, f"it can't be merged because of impossible metadata: {problems}. Leave it out.")
    return _Frame(outside.base_ns, *(Meta(outside.top).clock or (None, None)))


def _json(event: Any) -> bytes:
    """A value as JSON; a number that no double can represent is null."""
    try:
        text = json.dumps(event, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(event), ensure_ascii=False)
    return whole_characters(text).encode()


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return {key: _finite(item) for key, item in value.items()} if isinstance(value, Mapping) else value


class _Nothing:
    """Discards events."""

    def append(self, _: Iterable[bytes]) -> None:
        """Forget them."""


class _Writer:
    """Rewrites the events of one file."""

    def __init__(self, out: IO[bytes], result: MergeResult, worker: str, index: int, shift_ns: int) -> None:
        self._out, self._result, self._worker, self._index, self._shift_ns = out, result, worker, index, shift_ns
        self.processes: dict[object, int] = {}
        """The number in the merged file by the one in the original."""
        self._written: set[tuple[str, int]] = set()

    def append(self, texts: Iterable[bytes]) -> None:
        """Write some events."""
        for text in texts:
            event = json.loads(strict_event(text))
            pid = event.get("pid")
            if pid is None or isinstance(pid, dict | list | float):
                self._result.skipped += 1
                continue
            self._write(self._rewrite(event, pid))

    def _write(self, event: Mapping[str, Any]) -> None:
        separator = b",\n" if self._result.events else b"\n"
        self._out.write(separator + _json(event))
        self._result.events += 1

    def _rewrite(self, event: dict[str, Any], pid: object) -> dict[str, Any]:
        event["pid"] = self._process(pid)
        if event.get("ph") == "M":
            return self._metadata(event)
        if isinstance(event.get("ts"), int | float) and abs(event["ts"]) < _LATEST_US:
            event["ts"] = microseconds(nanoseconds(event["ts"]) + self._shift_ns)
        if "id" in event:
            event["id"] = self._arrow(event["id"])
        args = event.get("args")
        if isinstance(args, dict):
            self._move_links(args)
        return event

    def _move_links(self, args: dict[str, Any]) -> None:
        """Make the numbers that link events distinct from those of other files."""
        for name in _LINKS:
            if isinstance(args.get(name), int) and 0 < args[name] < _IDS_PER_FILE:
                args[name] += self._index * _IDS_PER_FILE

    def finish(self) -> None:
        """Name the processes for which the file has no name or no position."""
        for pid, number in self.processes.items():
            name = pid if isinstance(pid, str) else f"process {pid}"
            order = (self._index + 1) * _SORT_KEYS_PER_FILE - 1
            for kind, args in (
                ("process_name", {"name": f"{self._worker}{OF_WORKER}{name}"}),
                ("process_sort_index", {"sort_index": order}),
            ):
                if (kind, number) not in self._written:
                    self._write({"ph": "M", "name": kind, "pid": number, "tid": 0, "args": args})

    def _process(self, pid: object) -> int:
        """A number for the process that no other file uses."""
        return self.processes.setdefault(pid, self._index * _PIDS_PER_FILE + len(self.processes) + 1)

    def _metadata(self, event: dict[str, Any]) -> dict[str, Any]:
        """Add the rank to names; group processes by rank, in their own order."""
        event.pop("ts", None)
        args = event.get("args")
        if not isinstance(args, dict):
            return event
        if event.get("name") == "process_name" and isinstance(args.get("name"), str):
            args["name"] = f"{self._worker}{OF_WORKER}{args['name']}"
            self._written.add(("process_name", event["pid"]))
        order = args.get("sort_index")
        if event.get("name") == "process_sort_index" and isinstance(order, int):
            args["sort_index"] = self._index * _SORT_KEYS_PER_FILE + min(max(order, 0), _SORT_KEYS_PER_FILE - 1)
            self._written.add(("process_sort_index", event["pid"]))
        return event

    def _arrow(self, number: object) -> object:
        """The arrow's id, distinct from those of other files; text is hexadecimal, as Perfetto interprets it."""
        if isinstance(number, str):
            number = int(number, 16) if _HEXADECIMAL.fullmatch(number) else number
        if isinstance(number, int) and 0 <= number < _IDS_PER_FILE:
            return self._index * _IDS_PER_FILE + number
        return f"{self._index}:{number}"


def nanoseconds(microseconds: float) -> int:
    """A time in µs with up to three decimals as integer ns.

    Exact as long as a double resolves 0.001, which it does up to 2^43 µs; kineto's times stay below 7.9e12.
    """
    whole = int(microseconds)
    return whole * 1000 + round((microseconds - whole) * 1000)


def microseconds(ns: int) -> int | float:
    """Integer ns as a JSON number of µs."""
    return ns // 1000 if ns % 1000 == 0 else ns / 1000
