"""Traces of processes that were killed, from what their sidecars hold: steps, markers and counters, on the same clock.

Imports nothing but the standard library.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .finisher import finish_left_over
from .jobs import PROCESS, Queue, read_json
from .manifest import KEPT, SAVING, status_folder
from .metadata import KEY
from .naming import TraceName, file_name, worker_of_rank
from .sidecar import header_of, lines_of, older_file, sidecars
from .status import SILENT_S, rank_statuses

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LINE_LENGTHS = {"s": 4, "m": 5, "o": 3, "i": 4, "c": 4, "n": 4, "e": 3}


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
        rank: Its rank.
        windows: What the run's manifest says of its windows.
        problem: Why nothing was done.
    """

    rank: int
    windows: tuple[dict[str, Any], ...] = ()
    problem: str = ""


def finished(run: Path) -> list[Finished]:
    """Make traces of what profilers wrote and nobody finished; those of this machine, since their raw files lie on it.

    Args:
        run: The run's folder.
    """
    results = []
    for path in sorted(status_folder(run).glob("rank*.json")):
        told = read_json(path)
        if not isinstance(told, dict):
            continue
        rank, host, queue = told.get("global_rank", -1), told.get("host"), Path(str(told.get("queue")))
        is_known = any(_is_half_done(window) for window in told.get("windows", ()))
        if host == socket.gethostname() and _is_queue_of(queue, run):
            if Queue(queue).jobs():  # a finisher that was killed may not have said so
                results.append(_finished(rank, queue))
        elif is_known:
            where = f"is gone: {queue}" if host == socket.gethostname() else f"lies on {host}; recover it there"
            results.append(Finished(rank, problem=f"what was left of it {where}"))
    return results


def _is_half_done(window: Any) -> bool:
    return isinstance(window, dict) and window.get("state") in (SAVING, KEPT)


def _is_queue_of(queue: Path, run: Path) -> bool:
    """Whether a folder is what it is said to be. Its files say what to write where, so it has to be ours."""
    try:
        is_ours = not hasattr(os, "getuid") or queue.stat().st_uid == os.getuid()
    except OSError:
        return False
    process = read_json(queue / PROCESS)
    return is_ours and isinstance(process, dict) and Path(str(process.get("folder"))).resolve() == run.resolve()


def _finished(rank: int, queue: Path) -> Finished:
    try:
        windows = finish_left_over(queue)
    except OSError as error:
        return Finished(rank, problem=f"{queue}: {error.strerror}")
    if windows is None:
        return Finished(rank, problem="a process is still at work on its traces")
    return Finished(rank, tuple(windows))


def recovered(run: Path, *, force: bool = False) -> list[Recovered]:
    """Make a trace of each sidecar whose process is gone, and take the sidecar away.

    Args:
        run: The run's folder.
        force: Also of processes of which nobody knows whether they are gone.
    """
    states = {(status.host, status.pid): status for status in rank_statuses(run)}
    results = []
    for file in sidecars(run):
        try:
            results.append(_recovered(run, file, states, force=force))
        except (OSError, ValueError, KeyError, TypeError) as error:
            results.append(Recovered(file, problem=f"it can't be read: {error}"))
    return [result for result in results if result.trace or result.problem]


def _recovered(run: Path, file: Path, states: dict[tuple[str, int], Any], *, force: bool) -> Recovered:
    head = header_of(file)
    if head is None:
        return Recovered(file, problem="its first line doesn't say who wrote it")
    lines = _whole(lines_of(file))
    if any(line[0] == "e" for line in lines) or not _has_recorded(head, lines):
        return Recovered(file)
    status = states.get((str(head["host"]), int(head["pid"])))
    if status is not None and status.state in ("running", "silent") and not force:
        heard = f"its process {status.pid} on {status.host} wrote {status.age_s:.0f} s ago"
        advice = "wait until it has ended" if status.age_s < SILENT_S else "if it is gone, use --force"
        return Recovered(file, problem=f"{heard}; {advice}")
    older = older_file(file)
    lines = [*(_whole(lines_of(older)) if older.exists() else []), *lines]
    steps = [line for line in lines if line[0] == "s"]
    times = [time for line in lines for time in _times(line)]
    if not times:
        return Recovered(file, problem="it holds nothing that has a time")
    completed = max((line[1] + 1 for line in steps), default=0)
    target = _free(run, worker_of_rank(int(head["global_rank"])), completed)
    _write(target, _trace(head, lines, min(times)))
    file.replace(file.with_suffix(".recovered"))
    older.unlink(missing_ok=True)
    return Recovered(file, target, steps=len(steps))


def _has_recorded(head: dict[str, Any], lines: Sequence[list[Any]]) -> bool:
    """Whether a process is one of those that record, or was asked to."""
    return head.get("records") is not False or any(line[:2] == ["n", "recording"] for line in lines)


def _whole(lines: Sequence[list[Any]]) -> list[list[Any]]:
    """The lines that are as they should be."""
    return [line for line in lines if len(line) == _LINE_LENGTHS.get(line[0]) and _has_times(line)]


def _has_times(line: list[Any]) -> bool:
    return all(isinstance(time, int) and not isinstance(time, bool) and 0 <= time < 1 << 62 for time in _times(line))


def _times(line: list[Any]) -> list[Any]:
    """The moments that a line tells, Unix time in nanoseconds."""
    if line[0] == "m" and isinstance(line[3], int) and isinstance(line[4], int):
        return [line[3], line[3] + line[4]]
    return {"s": line[2:4], "m": line[3:5], "c": line[2:3]}.get(line[0], line[-1:])


def _free(run: Path, worker: str, completed: int) -> Path:
    """A name that no trace has: a window that ended at the same step was saved whole."""
    path = run / file_name(TraceName(worker, completed))
    return run / file_name(TraceName(f"{worker}.recovered", completed)) if path.exists() else path


def _trace(head: dict[str, Any], lines: Sequence[list[Any]], base_ns: int) -> dict[str, Any]:
    rank, pid, tid = int(head["global_rank"]), int(head["pid"]), int(head.get("tid", head["pid"]))
    steps = [line for line in lines if line[0] == "s"]
    last_ns = max(time for line in lines for time in _times(line))
    # What was open, and nothing closed since, ran until the last that is known.
    opened = next((line for line in reversed(lines) if line[0] == "o"), None)
    told = {
        **head,
        "reason": "killed",
        "is_complete": False,
        "is_recovered": True,
        "step_first": steps[0][1] if steps else None,
        "step_last": steps[-1][1] if steps else None,
        "is_last_step_whole": True,
        "steps_completed": steps[-1][1] + 1 if steps else 0,
        "started_ns": base_ns,
        "ended_ns": last_ns,
        "open_markers": list(opened[1]) if opened else [],
        "hanging": next((line[2] for line in reversed(lines) if line[:2] == ["n", "hanging"]), None),
    }
    events = [event for line in lines for event in _events(line, pid, tid, base_ns)]
    return {
        "schemaVersion": 1,
        "distributedInfo": {"rank": rank, "world_size": int(head["world_size"])},
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
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _us(ns: int) -> float:
    """Microseconds with up to three decimals: JSON shows them exactly up to 15 digits, which last for ten days."""
    return ns / 1000


def _write(target: Path, trace: dict[str, Any]) -> None:
    """Write it whole or not at all.

    Raises:
        OSError: The folder doesn't allow it.
    """
    hidden = target.with_name(f".{target.name}.tmp-{os.getpid()}")
    try:
        with hidden.open("wb") as file:
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
                packed.write(json.dumps(trace, allow_nan=False).encode())
            file.flush()
            os.fsync(file.fileno())
        hidden.replace(target)
    finally:
        hidden.unlink(missing_ok=True)
