"""Traces of processes that were killed.

Complete recordings are finished. For a window that was never saved, the steps, markers and counters of the process's
journal become a trace, on the same clock as the others.

The run's folder may come from another user. Unfinished recordings are found only in this user's own scratch folder
(`scratch`), never through the run; nothing is written outside the run's folder or the one that the user names; and
copies go only where the user allows.

This module imports nothing but the standard library.
"""

from __future__ import annotations

import gzip
import itertools
import json
import math
import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..atomic_write import replace_file
from ..naming import TraceName, file_name, worker_of_rank
from ..output.manifest import KEPT, SAVING, statuses
from ..output.merge_events import KEY
from ..output.scratch import VARIABLE, scratch_root
from ..output.spool import Spool, discard_abandoned_spools
from ..output.writer_process import finish_spool, is_alive
from ..untrusted_files import read_plain
from .journal import RECOVERED, is_time_ns, journal_files, latest_of, lines_of, older_file
from .reports import NOTHING, reports, spools_of
from .status import SILENT_S, is_valid_news, open_window, rank_statuses, read_header

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from ..path_below import PathBelow
    from .reports import ProcessId, Report

_LINE_LENGTHS = {"s": 4, "m": 5, "o": 3, "i": 4, "c": 4, "n": 4, "l": 3, "e": 3}
_MOST_TEXT = 500


@dataclass(frozen=True)
class RecoveredJournal:
    """The result of recovering one journal.

    Args:
        journal_path: The file.
        trace: The recovered trace; None if there is none.
        problem: Why there is none.
        steps: How many steps the trace has.
    """

    journal_path: Path
    trace: Path | None = None
    problem: str = ""
    steps: int = 0


@dataclass(frozen=True)
class FinishedSpool:
    """The result of finishing a process's unfinished recordings.

    Args:
        rank: Its rank; None if unknown.
        windows: Its windows, as in the run's manifest.
        problem: Why some recordings couldn't be finished.
    """

    rank: int | None
    windows: tuple[dict[str, Any], ...] = ()
    problem: str = ""

    @property
    def pending_copies(self) -> tuple[str, ...]:
        """The URLs of copies that weren't made because the user didn't allow them."""
        uploads = (window.get("upload") or {} for window in self.windows)
        return tuple(str(upload.get("url")) for upload in uploads if upload.get("state") == "waiting")


def finish_spools(run: Path, *, url_prefixes: Collection[str] = (), output: Path | None = None) -> list[FinishedSpool]:
    """Make traces of unfinished recordings of this machine, where their raw files are.

    Args:
        run: The run's folder.
        url_prefixes: The allowed prefixes of the URLs of copies.
        output: The folder of the traces, instead of the run's.
    """
    results, problem, ranks = [], "", set()
    try:
        discard_abandoned_spools()
        spools = list(spools_of(run))
    except OSError as error:
        spools, problem = [], f"{error}; {VARIABLE} names another folder"
    for rank, spool in spools:
        ranks.add(rank)
        if spool.is_empty():
            if output is None and not is_alive(spool):  # it isn't reported as killed yet
                _finish(rank, spool, url_prefixes, None)
        else:  # a writer process that was killed may not have reported it
            results.append(_finish(rank, spool, url_prefixes, output))
    for status in statuses(run):
        records = (*status["windows"], *status["snapshots"])
        if status["global_rank"] not in ranks and any(record.get("state") in (SAVING, KEPT) for record in records):
            where = problem or _location_of(status)
            results.append(FinishedSpool(status["global_rank"], problem=f"what remains of it {where}"))
    return results


def can_recover(run: Path) -> bool:
    """Whether this machine has anything of a run that `finish_spools` or `recover_journals` would make a trace of."""
    with suppress(OSError):  # `recover` says why they can't be read
        if any(spool.jobs() and not is_alive(spool) for _, spool in spools_of(run)):
            return True
    process_reports = reports(run)
    dead = {(status.host, status.pid) for status in rank_statuses(run) if status.state == "dead"}
    for file in journal_files(run):
        with suppress(OSError, ValueError):  # damaged: nothing can be made of it
            journal = read_journal(file, older_file(file), process_reports)
            if (journal.head["host"], journal.head["pid"]) in dead and _is_unsaved(journal) and journal.has_content:
                return True
    return False


def _is_unsaved(journal: Journal) -> bool:
    """Whether a process that records ended without closing its recording, if it has ended."""
    return not journal.is_closed and _has_recorded(journal)


def _location_of(status: dict[str, Any]) -> str:
    """Say where a process's unfinished recordings are, according to its status, which is untrusted."""
    host, spool = str(status.get("host"))[:_MOST_TEXT], str(status.get("queue"))[:_MOST_TEXT]
    if host != socket.gethostname():
        return f"is on {host}; recover it there"
    root = scratch_root()
    return (
        f"isn't in {root}, this user's folder for recordings. It was in {spool}: if that is yours and still there, and "
        f"the job ran with another temporary folder or another {VARIABLE}, set {VARIABLE} to its parent folder"
    )


def _finish(rank: int, spool: Spool, url_prefixes: Collection[str], output: Path | None) -> FinishedSpool:
    try:
        windows = finish_spool(spool.folder, url_prefixes=url_prefixes, output=output)
        refused_jobs = spool.refused_jobs()
    except OSError as error:
        return FinishedSpool(rank, problem=f"{spool.folder}: {error.strerror or error}")
    if windows is None:
        return FinishedSpool(rank, problem="a process is still writing its traces")
    problems = [f"{window['file']}: {window['problem']}" for window in windows if window["state"] == KEPT]
    return FinishedSpool(
        rank, tuple(windows), "; ".join([*problems, *(f"left alone: {text}" for text in refused_jobs)])
    )


@dataclass(frozen=True)
class Journal:
    """The content of one journal.

    Args:
        head: Its header, which describes the process.
        lines: Its lines after the last window that is a trace or will be, the oldest first.
        completed: How many steps were complete at its end.
        window: The first step of the window that was open at its end; None if none was.
        open_markers: The labels of the markers that were open at its end, the outermost first.
        hanging: Where its last step hung; None if it didn't.
        is_closed: Whether its process closed its recording.
    """

    file: PathBelow
    head: dict[str, Any]
    lines: list[list[Any]]
    completed: int
    window: int | None
    open_markers: list[str]
    hanging: Any
    is_closed: bool

    @property
    def has_content(self) -> bool:
        """Whether it has anything that no other trace has; counters alone are too little."""
        has_events = any(line[0] in ("s", "m", "i") for line in self.lines)
        return self.window is not None or has_events or bool(self.open_markers) or self.hanging is not None


def recover_journals(run: Path, *, force: bool = False, output: Path | None = None) -> list[RecoveredJournal]:
    """Recover a trace from each journal whose process has ended, and remove the journal.

    Args:
        run: The run's folder.
        force: Whether to recover also if it is unknown whether the process has ended.
        output: The folder of the traces, instead of the run's; the journals then stay.
    """
    alive = {(status.host, status.pid): status for status in rank_statuses(run)}
    journals, results, process_reports = [], [], reports(run)
    for file in journal_files(run):
        try:
            journals.append(read_journal(file, older_file(file), process_reports))
        except (OSError, ValueError) as error:
            results.append(RecoveredJournal(file.path, problem=f"it can't be read: {_error_text(error)}"))
    peers = _peers(run, journals)
    for journal in journals:
        status = alive.get((journal.head["host"], journal.head["pid"]))
        is_alive = status is not None and status.state in ("running", "silent") and not force
        if not _is_unsaved(journal):
            continue
        if status is not None and is_alive:
            last_sign = f"its process {status.pid} on {status.host} wrote {status.age_s:.0f} s ago"
            advice = "wait until it has ended" if status.age_s < SILENT_S else "if it is gone, use --force"
            results.append(RecoveredJournal(journal.file.path, problem=f"{last_sign}; {advice}"))
        elif journal.has_content:
            results.append(_recover(run, journal, peers, output))
        elif output is None:
            with suppress(OSError):
                _retire(journal.file)
    return results


def _error_text(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def read_journal(file: PathBelow, older: PathBelow | None, process_reports: Mapping[ProcessId, Report]) -> Journal:
    """Read a journal.

    Args:
        file: The journal.
        older: Its older part, if it grew too large.
        process_reports: What the processes have reported, from `reports`.

    Raises:
        OSError: It can't be read.
        ValueError: It has no valid header.
    """
    head = read_header(file)
    lines = [*(lines_of(older) if older is not None and older.exists() else []), *lines_of(file)]
    lines = list(_without_summaries(line for line in lines if _is_whole(line)))
    step, news = latest_of(lines)
    numbers = [line[1] for line in lines if line[0] == "s"] + ([] if step is None else [step[0]])
    report = process_reports.get((head["global_rank"], head["host"], head["pid"]), NOTHING)
    open_line = next((line for line in reversed(lines) if line[0] == "o"), None)
    window = report.still_open(open_window(news))
    return Journal(
        file,
        head,
        [line for line in lines if not _is_saved(line, report) or _opens(line, window)],
        max(max(numbers, default=-1) + 1, report.completed),
        window,
        open_markers=[str(label) for label in open_line[1]] if open_line else [],
        hanging=next((v for kind, v, ns in reversed(news) if kind == "hanging" and ns > report.saved_until_ns), None),
        is_closed=report.end is not None or any(line[0] == "e" for line in lines),
    )


def _is_whole(line: list[Any]) -> bool:
    """Whether a line is valid."""
    if len(line) != _LINE_LENGTHS.get(line[0]) or not all(is_time_ns(time) for time in _times(line)):
        return False
    if line[0] == "s":
        return is_time_ns(line[1])
    if line[0] in ("m", "i"):
        return is_time_ns(line[2])
    if line[0] == "o":
        return isinstance(line[1], list)
    return line[0] != "n" or (isinstance(line[1], str) and is_valid_news(line[1], line[2]))


def _without_summaries(lines: Iterable[list[Any]]) -> Iterator[list[Any]]:
    """Replace each summary by the step and the news in it, whose own lines may be lost; each stands once."""
    identities = set()
    for line in lines:
        for piece in _pieces(line) if line[0] == "l" else [line]:
            identity = _identity(piece)
            if identity is None or identity not in identities:
                identities.add(identity)
                yield piece


def _pieces(summary: list[Any]) -> Iterator[list[Any]]:
    """Return the lines that a summary repeats: news, and the last step."""
    step, news = latest_of([summary])
    for kind, value, ns in news:
        if is_valid_news(kind, value):
            yield ["n", kind, value, ns]
    if step is not None:
        yield ["s", *step]


def _identity(line: list[Any]) -> tuple[Any, ...] | None:
    """Return the number and the end of a step, or the kind and the time of news; None for other lines."""
    return (line[0], line[1], line[-1]) if line[0] in ("s", "n") else None


def _is_saved(line: list[Any], report: Report) -> bool:
    """Whether a line is about the time of a window that is a trace or will be, or before it."""
    if line[0] == "s":
        return bool(line[1] < report.saved_steps)
    return all(time <= report.saved_until_ns for time in _times(line))


def _opens(line: list[Any], window: int | None) -> bool:
    """Whether a line reports the opening of the window with this first step: it may be the only line of the window."""
    return (
        window is not None and line[:2] == ["n", "recording"] and open_window([(line[1], line[2], line[3])]) == window
    )


def _times(line: list[Any]) -> list[Any]:
    """Return the times in a line, in Unix time in nanoseconds."""
    if line[0] == "m" and is_time_ns(line[3]) and isinstance(line[4], int):
        return [line[3], line[3] + line[4]]
    return {"s": line[2:4], "m": line[3:5], "c": line[2:3], "l": []}.get(line[0], line[-1:])


def _has_recorded(journal: Journal) -> bool:
    """Whether a process is selected to record, or a request named it."""
    was_requested = any(kind == "recording" for kind, *_ in latest_of(journal.lines)[1])
    return journal.head.get("records") is not False or was_requested


@dataclass(frozen=True)
class _Peers:
    """The progress of the other processes in the same windows: all recordings of a window get one span.

    Args:
        saved: First step and span of each window that is saved or will be.
        completed: By first step of a window that was open at the end, the most steps that any process completed.
    """

    saved: list[tuple[int, int]]
    completed: dict[int, int]

    def span_of(self, journal: Journal) -> int:
        """Return the span of a process's open window: that of its peers' window, else the most steps of any of them."""
        first = journal.window
        if first is None:
            return journal.completed
        spans = [(first - begin, span) for begin, span in self.saved if begin <= first < span]
        return min(spans)[1] if spans else max(self.completed.get(first, 0), journal.completed)


def _peers(run: Path, journals: Sequence[Journal]) -> _Peers:
    windows = [window for status in statuses(run) for window in status["windows"]]
    saved_windows = [
        (w["step_first"], w["span"]) for w in windows if is_time_ns(w.get("step_first")) and is_time_ns(w["span"])
    ]
    completed_steps: dict[int, int] = {}
    for journal in journals:
        if journal.window is not None:
            completed_steps[journal.window] = max(completed_steps.get(journal.window, 0), journal.completed)
    return _Peers(saved_windows, completed_steps)


def _recover(run: Path, journal: Journal, peers: _Peers, output: Path | None) -> RecoveredJournal:
    times = [time for line in journal.lines for time in _times(line)]
    if not times:
        return RecoveredJournal(journal.file.path, problem="it has no events")
    steps = sum(line[0] == "s" for line in journal.lines)
    try:
        trace = json.dumps(_trace(journal, min(times)), allow_nan=False).encode()
        name = TraceName(worker_of_rank(journal.head["global_rank"]), peers.span_of(journal))
        target = _write_trace(output or run, name, gzip.compress(trace, mtime=0))
        if output is None:
            _retire(journal.file)
    except OSError as error:
        return RecoveredJournal(journal.file.path, problem=f"{_error_text(error)}: {output or run}")
    except (ValueError, RecursionError) as error:  # its header has values that strict JSON can't represent
        return RecoveredJournal(journal.file.path, problem=f"it can't be read: {error}")
    return RecoveredJournal(journal.file.path, target, steps=steps)


def _retire(file: PathBelow) -> None:
    """Mark a journal as recovered.

    Raises:
        OSError: The folder doesn't allow it.
    """
    file.replace(file.name.removesuffix(".jsonl") + RECOVERED)
    older_file(file).unlink()


def _write_trace(folder: Path, name: TraceName, data: bytes) -> Path:
    """Write a trace under a free name: a window that ended at the same step was saved completely.

    Raises:
        OSError: The folder doesn't allow it.
    """
    for number in itertools.count():
        suffix = f".recovered~{number}" if number > 1 else ".recovered" * number
        path = folder / file_name(TraceName(f"{name.worker}{suffix}", name.span))
        if not os.path.lexists(path):
            replace_file(path, data, forces_to_disk=True)
            return path
        if _has_content(path, data):
            return path
    raise AssertionError


def _has_content(path: Path, data: bytes) -> bool:
    try:
        return read_plain(path, len(data)) == data
    except OSError:
        return False


def _trace(journal: Journal, base_ns: int) -> dict[str, Any]:
    head, lines = journal.head, journal.lines
    rank, pid = head["global_rank"], head["pid"]
    tid = head["tid"] if is_time_ns(head.get("tid")) else pid
    steps = [line for line in lines if line[0] == "s"]
    last_ns = max(time for line in lines for time in _times(line))
    metadata = {
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
        "is_window_lost": journal.window is not None,
        "open_markers": journal.open_markers,
        "hanging": journal.hanging,
    }
    events = [event for line in lines for event in _events(line, pid, tid, base_ns)]
    return {
        "schemaVersion": 1,
        "distributedInfo": {"rank": rank, "world_size": head["world_size"]},
        KEY: metadata,
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
    """Microseconds with up to three decimals: a double is exact to 15 digits, enough for ten days."""
    return ns / 1000
