"""Traces of processes that were killed.

Recordings that were complete are finished. Of what was never saved, steps, markers and counters become a trace, from
what the process's sidecar holds, on the same clock as the others.

The run's folder may come from somebody else. Which recordings remain to be finished, this user's own scratch folder
says (`scratch`), never the run; nothing is written outside the run's folder or the one that the user names; and copies
go only where the user says.

Imports nothing but the standard library.
"""

from __future__ import annotations

import gzip
import itertools
import json
import math
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .finisher import finish_left_over, is_alive
from .jobs import Queue
from .manifest import KEPT, SAVING, statuses
from .metadata import KEY
from .naming import TraceName, file_name, worker_of_rank
from .plain_files import read_plain, replace_plain
from .scratch import VARIABLE, queue_folders, scratch_root
from .sidecar import is_moment, latest_of, lines_of, older_file, sidecars
from .status import SILENT_S, checked_header, is_as_noted, open_window, rank_statuses

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_LINE_LENGTHS = {"s": 4, "m": 5, "o": 3, "i": 4, "c": 4, "n": 4, "l": 3, "e": 3}
_MOST_TEXT = 500


@dataclass(frozen=True)
class Recovered:
    """What became of one sidecar.

    Args:
        sidecar: The file.
        trace: What was made of it; None if nothing was.
        problem: Why nothing was.
        steps: How many steps the trace holds.
    """

    sidecar: Path
    trace: Path | None = None
    problem: str = ""
    steps: int = 0


@dataclass(frozen=True)
class Finished:
    """What became of the recordings that a process left half done.

    Args:
        rank: Its rank; None where nobody knows it.
        windows: What the run's manifest says of its windows.
        problem: Why not everything was done.
    """

    rank: int | None
    windows: tuple[dict[str, Any], ...] = ()
    problem: str = ""

    @property
    def waiting_copies(self) -> tuple[str, ...]:
        """The URLs that traces were to be copied to, which nobody has allowed here."""
        uploads = (window.get("upload") or {} for window in self.windows)
        return tuple(str(upload.get("url")) for upload in uploads if upload.get("state") == "waiting")


def finished(run: Path, *, places: Collection[str] = (), output: Path | None = None) -> list[Finished]:
    """Make traces of what profilers wrote and nobody finished; those of this machine, since their raw files lie on it.

    Args:
        run: The run's folder.
        places: Where copies may go: what their URLs begin with.
        output: Where traces are put, instead of the run's folder.
    """
    results, problem, ranks = [], "", set()
    try:
        queues = list(queues_of(run))
    except OSError as error:
        queues, problem = [], f"{error}; {VARIABLE} names another folder"
    for rank, queue in queues:
        ranks.add(rank)
        if queue.is_empty():
            if output is None and not is_alive(queue):  # nobody has said yet that it was killed
                _finished(rank, queue, places, None)
        else:  # a finisher that was killed may not have said so
            results.append(_finished(rank, queue, places, output))
    for status in statuses(run):
        if status["global_rank"] not in ranks and any(w.get("state") in (SAVING, KEPT) for w in status["windows"]):
            where = problem or _place_of(status)
            results.append(Finished(status["global_rank"], problem=f"what was left of it {where}"))
    return results


def queues_of(run: Path) -> Iterator[tuple[int, Queue]]:
    """This user's queues of a run, with their ranks.

    Raises:
        OSError: Others may write to the folder of the queues, or it can't be read.
    """
    for folder in queue_folders():
        queue = Queue(folder)
        process = queue.process()
        if process is not None and Path(process["folder"]).resolve() == run.resolve():
            yield process["global_rank"], queue


def _place_of(status: dict[str, Any]) -> str:
    """Where a status says that the rest of its process lies: words for people, who may believe them or not."""
    host, queue = str(status.get("host"))[:_MOST_TEXT], str(status.get("queue"))[:_MOST_TEXT]
    if host != socket.gethostname():
        return f"lies on {host}; recover it there"
    root = scratch_root()
    return (
        f"isn't in {root}, this user's folder for recordings. It was in {queue}: if that is yours and still there, and "
        f"the job ran with another temporary folder or another {VARIABLE}, name the folder that holds it by {VARIABLE}"
    )


def _finished(rank: int, queue: Queue, places: Collection[str], output: Path | None) -> Finished:
    try:
        windows = finish_left_over(queue.folder, places=places, output=output)
        refused = queue.refused()
    except OSError as error:
        return Finished(rank, problem=f"{queue.folder}: {error.strerror or error}")
    if windows is None:
        return Finished(rank, problem="a process is still at work on its traces")
    lost = [f"{window['file']}: {window['problem']}" for window in windows if window["state"] == KEPT]
    return Finished(rank, tuple(windows), "; ".join([*lost, *(f"left alone: {text}" for text in refused)]))


@dataclass(frozen=True)
class Journal:
    """What one sidecar holds.

    Args:
        head: Who wrote it.
        lines: What was written, the oldest first.
        completed: How many steps were complete at its end.
        window: The step with which the window began that was open at its end; None if none was.
    """

    file: Path
    head: dict[str, Any]
    lines: list[list[Any]]
    completed: int
    window: int | None

    @property
    def is_closed(self) -> bool:
        """Whether its process closed its recording in good order."""
        return any(line[0] == "e" for line in self.lines)


def recovered(run: Path, *, force: bool = False, output: Path | None = None) -> list[Recovered]:
    """Make a trace of each sidecar whose process is gone, and take the sidecar away.

    Args:
        run: The run's folder.
        force: Also of processes of which nobody knows whether they are gone.
        output: Where traces are put, instead of the run's folder; the sidecars stay then.
    """
    alive = {(status.host, status.pid): status for status in rank_statuses(run)}
    journals, results = [], []
    for file in sidecars(run):
        try:
            journals.append(read_journal(file, older_file(file)))
        except (OSError, ValueError) as error:
            results.append(Recovered(file, problem=f"it can't be read: {_words(error)}"))
    peers = _peers(run, journals)
    for journal in journals:
        status = alive.get((journal.head["host"], journal.head["pid"]))
        is_alive = status is not None and status.state in ("running", "silent") and not force
        if journal.is_closed or not _has_recorded(journal):
            continue
        if status is not None and is_alive:
            heard = f"its process {status.pid} on {status.host} wrote {status.age_s:.0f} s ago"
            advice = "wait until it has ended" if status.age_s < SILENT_S else "if it is gone, use --force"
            results.append(Recovered(journal.file, problem=f"{heard}; {advice}"))
        else:
            results.append(_recovered(run, journal, peers, output))
    return results


def _words(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def read_journal(file: Path, older: Path | None) -> Journal:
    """Read a sidecar.

    Args:
        file: The sidecar.
        older: What it held before it grew too large, if anything.

    Raises:
        OSError: It can't be read.
        ValueError: It doesn't say who wrote it.
    """
    head = checked_header(file)
    lines = [*(lines_of(older) if older is not None and older.exists() else []), *lines_of(file)]
    lines = [line for line in lines if _is_whole(line)]
    step, news = latest_of(lines)
    numbers = [line[1] for line in lines if line[0] == "s"] + ([] if step is None else [step[0]])
    return Journal(file, head, lines, max(numbers, default=-1) + 1, open_window(news))


def _is_whole(line: list[Any]) -> bool:
    """Whether a line is as it should be."""
    if len(line) != _LINE_LENGTHS.get(line[0]) or not all(is_moment(time) for time in _times(line)):
        return False
    if line[0] == "s":
        return is_moment(line[1])
    if line[0] in ("m", "i"):
        return is_moment(line[2])
    if line[0] == "o":
        return isinstance(line[1], list)
    return line[0] != "n" or (isinstance(line[1], str) and is_as_noted(line[1], line[2]))


def _times(line: list[Any]) -> list[Any]:
    """The moments that a line tells, Unix time in nanoseconds."""
    if line[0] == "m" and is_moment(line[3]) and isinstance(line[4], int):
        return [line[3], line[3] + line[4]]
    return {"s": line[2:4], "m": line[3:5], "c": line[2:3], "l": []}.get(line[0], line[-1:])


def _has_recorded(journal: Journal) -> bool:
    """Whether a process is one of those that record, or was asked to."""
    is_asked = any(kind == "recording" for kind, *_ in latest_of(journal.lines)[1])
    return journal.head.get("records") is not False or is_asked


@dataclass(frozen=True)
class _Peers:
    """How far the other processes came in the same windows: all recordings of a window belong to one span.

    Args:
        saved: First step and span of each window that was saved or is to be.
        completed: By the first step of a window that was open at the end, the most steps that any process completed.
    """

    saved: list[tuple[int, int]]
    completed: dict[int, int]

    def span_of(self, journal: Journal) -> int:
        """The span of what a process was recording: that of its peers' window, else where the last of them stood."""
        first = journal.window
        if first is None:
            return journal.completed
        spans = [(first - begin, span) for begin, span in self.saved if begin <= first < span]
        return min(spans)[1] if spans else max(self.completed.get(first, 0), journal.completed)


def _peers(run: Path, journals: Sequence[Journal]) -> _Peers:
    windows = [window for status in statuses(run) for window in status["windows"]]
    saved = [(w["step_first"], w["span"]) for w in windows if is_moment(w.get("step_first")) and is_moment(w["span"])]
    completed: dict[int, int] = {}
    for journal in journals:
        if journal.window is not None:
            completed[journal.window] = max(completed.get(journal.window, 0), journal.completed)
    return _Peers(saved, completed)


def _recovered(run: Path, journal: Journal, peers: _Peers, output: Path | None) -> Recovered:
    times = [time for line in journal.lines for time in _times(line)]
    if not times:
        return Recovered(journal.file, problem="it holds nothing that has a time")
    steps = sum(line[0] == "s" for line in journal.lines)
    try:
        trace = json.dumps(_trace(journal, min(times)), allow_nan=False).encode()
        name = TraceName(worker_of_rank(journal.head["global_rank"]), peers.span_of(journal))
        target = _written(output or run, name, gzip.compress(trace, mtime=0))
        if output is None:
            journal.file.replace(journal.file.with_suffix(".recovered"))
            older_file(journal.file).unlink(missing_ok=True)
    except OSError as error:
        return Recovered(journal.file, problem=f"{_words(error)}: {output or run}")
    except (ValueError, RecursionError) as error:  # its first line holds what JSON has no words for
        return Recovered(journal.file, problem=f"it can't be read: {error}")
    return Recovered(journal.file, target, steps=steps)


def _written(folder: Path, name: TraceName, data: bytes) -> Path:
    """Write a trace under a name that no other one has: a window that ended at the same step was saved whole.

    Raises:
        OSError: The folder doesn't allow it.
    """
    for number in itertools.count():
        suffix = f".recovered~{number}" if number > 1 else ".recovered" * number
        path = folder / file_name(TraceName(f"{name.worker}{suffix}", name.span))
        if not os.path.lexists(path):
            replace_plain(path, data, forces_to_disk=True)
            return path
        if _holds(path, data):
            return path
    raise AssertionError


def _holds(path: Path, data: bytes) -> bool:
    try:
        return read_plain(path, len(data)) == data
    except OSError:
        return False


def _trace(journal: Journal, base_ns: int) -> dict[str, Any]:
    head, lines = journal.head, journal.lines
    rank, pid = head["global_rank"], head["pid"]
    tid = head["tid"] if is_moment(head.get("tid")) else pid
    steps = [line for line in lines if line[0] == "s"]
    last_ns = max(time for line in lines for time in _times(line))
    # What was open, and nothing closed since, ran until the last that is known.
    opened = next((line for line in reversed(lines) if line[0] == "o"), None)
    hanging = [value for kind, value, _ in latest_of(lines)[1] if kind == "hanging"]
    told = {
        **head,
        "reason": "killed",
        "is_complete": False,
        "is_recovered": True,
        "step_first": steps[0][1] if steps else None,
        "step_last": steps[-1][1] if steps else None,
        "is_last_step_whole": True,
        "steps_completed": journal.completed,
        "started_ns": base_ns,
        "ended_ns": last_ns,
        "open_markers": [str(label) for label in opened[1]] if opened else [],
        "hanging": hanging[-1] if hanging else None,
    }
    events = [event for line in lines for event in _events(line, pid, tid, base_ns)]
    return {
        "schemaVersion": 1,
        "distributedInfo": {"rank": rank, "world_size": head["world_size"]},
        KEY: told,
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": base_ns,
        "traceEvents": [*_names(rank, pid, tid), *events],
    }


def _names(rank: int, pid: int, tid: int) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": f"rank {rank} (recovered)"}}
    yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": f"thread {tid} (training)"}}


def _events(line: list[Any], pid: int, tid: int, base_ns: int) -> Iterator[dict[str, Any]]:
    kind = line[0]
    if kind == "s":
        yield _slice(f"ProfilerStep#{line[1]}", pid, tid, line[2] - base_ns, line[3] - line[2])
    elif kind == "m":
        yield _slice(str(line[1]), pid, line[2], line[3] - base_ns, line[4])
    elif kind == "i":
        instant = {"ph": "i", "s": "t", "cat": "user_annotation", "name": str(line[1]), "pid": pid, "tid": line[2]}
        yield {**instant, "ts": _us(line[3] - base_ns)}
    elif kind == "c" and isinstance(line[3], dict):
        numbers = {name: value for name, value in line[3].items() if _is_number(value)}
        if numbers:
            yield {"ph": "C", "name": str(line[1]), "pid": pid, "ts": _us(line[2] - base_ns), "args": numbers}


def _slice(name: str, pid: int, tid: object, start_ns: int, dur_ns: int) -> dict[str, Any]:
    times = {"ts": _us(start_ns), "dur": _us(max(0, dur_ns))}
    return {"ph": "X", "cat": "user_annotation", "name": name, "pid": pid, "tid": tid, **times}


def _is_number(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63


def _us(ns: int) -> float:
    """Microseconds with up to three decimals: JSON shows them exactly up to 15 digits, which last for ten days."""
    return ns / 1000
