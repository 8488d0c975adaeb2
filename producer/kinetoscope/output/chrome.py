"""The process that writes Chrome JSON files: it is given a job as JSON on standard input.

A rank's file is an array with one event a line, on Unix time in µs. The process of an event is the global rank, so that
markers and torch's operators share one row; what isn't the recorded process itself, such as a GPU, keeps a process of
its own. torch's times count from `baseTimeNanoseconds`, which must be added: what leaves it out puts markers and
operators decades apart (torch since 2.4).

The machine's file has all ranks' events of all windows. Each process that finds the files of a window complete adds
them, once, under a lock; events that are there already stay as they are. A rank's file that is to be removed
stays until it is in the machine's file, whichever rank's process puts it there. This module never imports torch.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ..atomic_write import atomic_file, replace_file
from ..errors import SaveError
from .upload import upload

_BLOCK = 1 << 20
_SPACE = re.compile(r"[\s,]*")
_EVENTS = re.compile(r'"traceEvents"\s*:\s*\[')
_BASE = re.compile(r'"baseTimeNanoseconds"\s*:\s*"?(-?\d+)')
_OFFSET = re.compile(r'"clock"\s*:\s*\{[^{}]*?"offset_ns"\s*:\s*(-?\d+)')
_BACKWARD = "autograd::engine::evaluate_function"
_PROCESSES_PER_RANK = 1000
_OTHERS = 1_000_000  # ranks come before


class Source:
    """Another profiler's trace: an object with `traceEvents`, or an array, also one that was cut off; plain or gzip.

    Args:
        path: The file.
        parse_float: Makes a number of a text with a point; by default a float.

    Attributes:
        base_ns: Unix time of its zero.
        offset_ns: How far this machine's clock is ahead of rank 0's; None if nobody measured it.
    """

    def __init__(self, path: Path, parse_float: Callable[[str], Any] | None = None) -> None:
        self.path = path
        self._decoder = json.JSONDecoder(parse_float=parse_float)
        self.base_ns = 0
        self.offset_ns: int | None = None

    def events(self) -> Iterator[dict[str, Any]]:
        """Each event, as far as the file can be read; the attributes are known from the first one on.

        Raises:
            OSError: The file can't be read.
        """
        with _open_text(self.path) as file:
            text = self._head(file)
            at = 0
            while True:
                at = _SPACE.match(text, at).end()  # type: ignore[union-attr]  # matches nothing too
                try:
                    event, at = self._decoder.raw_decode(text, at)
                except ValueError:
                    block = file.read(_BLOCK)
                    if not block or text[at : at + 1] == "]":
                        return
                    text, at = text[at:] + block, 0
                    continue
                if isinstance(event, dict):
                    yield event

    def _head(self, file: IO[str]) -> str:
        """Read up to the first event; return what was read beyond it."""
        text = ""
        while block := file.read(_BLOCK):
            text += block
            begin = text.lstrip("\ufeff \t\r\n")
            if begin.startswith("["):
                return begin[1:]
            match = _EVENTS.search(text)
            if match:
                head = text[: match.start()]
                base, offset = _BASE.search(head), _OFFSET.search(head)
                self.base_ns = int(base[1]) if base else 0
                self.offset_ns = int(offset[1]) if offset else None
                return text[match.end() :]
        return ""


@contextmanager
def _open_text(path: Path) -> Iterator[IO[str]]:
    with path.open("rb") as file:
        is_packed = file.read(2) == b"\x1f\x8b"
    with gzip.open(path, "rt") if is_packed else path.open(encoding="utf-8", errors="replace") as text:
        yield text


class RankFile:
    """The lines of one rank's file.

    Args:
        rank: Over the whole job.
        pid: Of the process that was recorded.
    """

    def __init__(self, rank: int, pid: int) -> None:
        self._rank = rank
        self._processes: dict[object, int] = {pid: rank}
        self._backward: set[object] = set()
        self.dropped = 0
        """Events of no process or thread."""
        self.problems: list[str] = []
        """What couldn't be read, and why."""

    def lines(self, program_events: Iterable[Mapping[str, Any]], sources: Iterable[Source]) -> Iterator[str]:
        """Return each event as JSON.

        Args:
            program_events: The program's own events, with `ns` for their Unix time.
            sources: What other profilers wrote.
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
        for place, (pid, number) in enumerate(self._processes.items()):
            if number != self._rank:
                name = {"name": f"rank {self._rank} · {pid if isinstance(pid, str) else f'device {pid}'}"}
                yield _metadata("process_name", number, name)
                order = self._rank * _PROCESSES_PER_RANK + place
                yield _metadata("process_sort_index", number, {"sort_index": order})

    def _lines_of(self, source: Source) -> Iterator[str]:
        try:
            for event in source.events():
                if "pid" in event and "tid" in event:
                    yield self._line(event, source.base_ns)
                else:
                    self.dropped += 1
        except (OSError, EOFError, zlib.error) as error:  # what was read of it so far is good
            self.problems.append(f"{source.path}: {error}")

    def _line(self, event: dict[str, Any], base_ns: int) -> str:
        pid = event["pid"]
        if pid not in self._processes:
            self._processes[pid] = _OTHERS + self._rank * _PROCESSES_PER_RANK + len(self._processes)
        event["pid"] = number = self._processes[pid]
        if event.get("ph") == "M":
            event.pop("ts", None)
            if str(event.get("name", "")).startswith("process_"):
                return ""  # the rank's own say it
            return json.dumps(event)
        if str(event.get("name", "")).startswith(_BACKWARD) and number == self._rank:
            self._backward.add(event["tid"])
        if "id" in event:
            event["id"] = f"{self._rank}:{event['id']}"
        return _with_time(event, base_ns + nanoseconds(event.get("ts", 0)))


def nanoseconds(microseconds: float) -> int:
    """A time in µs as whole ns; exact up to 2^43 µs, which kineto's times stay below."""
    whole = int(microseconds)
    return whole * 1000 + round((microseconds - whole) * 1000)


def _with_time(event: Mapping[str, Any], unix_ns: int) -> str:
    """The event with its time in µs; as a text, since a double holds Unix time in µs to a quarter only."""
    rest = {key: value for key, value in event.items() if key != "ts"}
    return f'{json.dumps(rest)[:-1]}, "ts": {unix_ns // 1000}.{unix_ns % 1000:03d}}}'


def _metadata(name: str, pid: int, args: Mapping[str, Any], tid: object = 0) -> str:
    return json.dumps({"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args})


_TIME = re.compile(r'"ts": (\d+)\.(\d{3})\}$')


def shift_line(line: str, by_ns: int) -> str:
    """A line of a rank's file on a clock that differs by so much."""
    match = _TIME.search(line) if by_ns else None
    if match is None:
        return line
    ns = int(match[1] + match[2]) + by_ns
    return f'{line[: match.start()]}"ts": {ns // 1000}.{ns % 1000:03d}}}'


def _lines_of(path: Path) -> Iterator[str]:
    """The events of a file that this module wrote, on rank 0's clock as far as it was measured."""
    offset_ns = 0
    with path.open(encoding="utf-8") as file:
        for line in file:
            if '"clock_offset_ns"' in line:
                offset_ns = json.loads(line.strip().rstrip(","))["args"]["value"]
    with path.open(encoding="utf-8") as file:
        for line in file:
            event = line.strip().rstrip(",")
            if event.startswith("{"):
                yield shift_line(event, -offset_ns)


def _write(target: Path, lines: Iterable[str]) -> None:
    """Write an array; its name appears when it is whole."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(target) as file:
        separator = "[\n"
        for line in filter(None, lines):
            file.stream.write((separator + line).encode())
            separator = ",\n"
        file.stream.write(b"\n]\n" if separator != "[\n" else b"[]\n")
        file.force_to_disk()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Be the only one of this machine who changes the merged file."""
    with (folder / ".merging").open("w") as file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        except ImportError:  # Windows
            pass
        yield


class Merge:
    """The file of a machine's ranks, and which files are in it; to be used under the lock.

    Args:
        folder: Where the files are.
        merged: The machine's file.
    """

    def __init__(self, folder: Path, merged: str) -> None:
        self._folder, self._target = folder, folder / merged
        name = Path(merged).name
        self.records = self._merged_record, self._surplus = folder / f".{name}.merged", folder / f".{name}.surplus"

    def add(self, files: Sequence[str]) -> bool:
        """Add the files of one window, if all are there and nobody has; return whether it did."""
        paths, merged_names = [self._folder / name for name in files], _names_in(self._merged_record)
        if not all(path.exists() for path in paths) or files[0] in merged_names:
            return False
        before = _plain_lines(self._target) if self._target.exists() and merged_names else iter(())
        _write(self._target, (line for part in (before, *map(_lines_of, paths)) for line in part))
        _write_names(self._merged_record, [*merged_names, *files])
        return True

    def remove(self, files: Iterable[str]) -> None:
        """Remove files that are in the machine's file; the others when they are."""
        merged_names, surplus = set(_names_in(self._merged_record)), [*_names_in(self._surplus), *files]
        for name in surplus:
            if name in merged_names:
                (self._folder / name).unlink(missing_ok=True)
        _write_names(self._surplus, [name for name in surplus if name not in merged_names])


def _names_in(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def _write_names(path: Path, names: Iterable[str]) -> None:
    replace_file(path, "".join(f"{name}\n" for name in names).encode())


def merge(folder: Path, files: Sequence[str], merged: str) -> bool:
    """Add the files of one window to the merged one, if all are there and nobody has; return whether it did."""
    with _locked(folder):
        return Merge(folder, merged).add(files)


def forget(folder: Path, merged: str) -> None:
    """Begin a machine's file anew, where an earlier training may have left one."""
    for path in (folder / merged, *Merge(folder, merged).records):
        path.unlink(missing_ok=True)


def remove(folder: Path, files: Sequence[str], merged: str | None) -> None:
    """Remove a rank's files, but none before it is in the merged one."""
    if merged is None:
        for name in files:
            (folder / name).unlink(missing_ok=True)
    else:
        with _locked(folder):
            Merge(folder, merged).remove(files)


def _plain_lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            event = line.strip().rstrip(",")
            if event.startswith("{"):
                yield event


def work(job: Mapping[str, Any]) -> list[str]:
    """Do a job; what went wrong, in words.

    Args:
        job: `folder`, `file`, `rank`, `pid`, `events`, `sources`, `files_of_node`, `merged` or None, `remote` and
            `merged_remote` or None, `overwrite`, `remove`: files to remove at the end, `temporary`: the
            sources that go with them.
    """
    folder = Path(job["folder"])
    target, surplus = folder / job["file"], list(job["remove"])
    problems: list[str] = []
    is_merged = False
    try:
        rank = RankFile(job["rank"], job["pid"])
        problems = rank.problems
        _write(target, rank.lines(job["events"], [Source(Path(path)) for path in job["sources"]]))
        is_merged = job["merged"] is not None and merge(folder, job["files_of_node"], job["merged"])
        copies = [(target, job["remote"])] + ([(folder / job["merged"], job["merged_remote"])] if is_merged else [])
        for path, url in copies:
            if url is not None:
                upload(path, url, overwrite=job["overwrite"] or path != target)
    except (OSError, SaveError) as error:
        problems.append(f"kinetoscope: {target}: {error}")
        surplus = [name for name in surplus if name != job["file"]]  # it is nowhere else
    try:
        if surplus or is_merged:
            remove(folder, surplus, job["merged"])
        for path in job["temporary"]:
            Path(path).unlink(missing_ok=True)
    except OSError as error:
        problems.append(f"kinetoscope: {folder}: {error}")
    return problems


def main() -> None:
    """Be the process."""
    sys.stderr.writelines(f"{line}\n" for line in work(json.load(sys.stdin)))
