"""What became of a run's windows on every rank: `run.json` in the run's folder.

Each process has a status of its own below `.work/status`, written by its finisher; whoever writes one then compiles
them all. There is no lock, since shared file systems have none that can be trusted: who has compiled looks whether a
status has changed meanwhile, and if so compiles again. So the last one to replace `run.json` has seen all.

`docs/run-json.md` describes the file. This module imports nothing but the standard library: the viewer reads with it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from .jobs import read_json, write_json

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

NAME = "run.json"
SCHEMA = 1
_MOST_ROUNDS = 20
_MANY, _PAUSE_A_RANK_S, _LONGEST_PAUSE_S = 64, 0.005, 5.0
_VERSIONS = ("version", "torch_version", "cuda_version", "python_version")
_SHARED = ("run", "attempt", *_VERSIONS, "argv", "schedule", "options")
_OF_A_RANK = (
    "host",
    "pid",
    "local_rank",
    "node_rank",
    "state",
    "reason",
    "problem",
    "steps_completed",
    "queue",
    "left_out",
)
_OF_A_WINDOW = ("step_first", "step_last", "started_ns", "ended_ns")

# What a process is doing, and what became of a window on a rank.
RECORDING, ENDED, KILLED, SILENT = "recording", "ended", "killed", "silent"
SAVING, SAVED, PARTIAL, KEPT, LOST, MISSING = "saving", "saved", "partial", "kept", "lost", "missing"


def status_folder(run: Path) -> Path:
    """Where the processes' statuses are."""
    return run / ".work" / "status"


def _status_file(run: Path, rank: int) -> Path:
    return status_folder(run) / f"rank{rank}.json"


def _is_of_later_attempt(found: Any, status: dict[str, Any]) -> bool:
    """Whether what is there tells of an attempt that began later: a slow copy of the one before outlives it."""
    if not isinstance(found, dict) or found.get("attempt") == status.get("attempt"):
        return False
    return (found.get("started_ns") or 0) > (status.get("started_ns") or 0)


def earlier_traces(run: Path, rank: int, attempt: object) -> list[dict[str, Any]]:
    """Return what earlier attempts of a rank saved into the run's folder, oldest first: each one's `file` and `bytes`.

    As the rank's own status tells, if that is another attempt's. What waits for its copy elsewhere is left out.
    """
    status = read_json(_status_file(run, rank))
    if not isinstance(status, dict):
        return []
    before = [each for each in status.get("earlier") or () if isinstance(each, dict)]
    if status.get("attempt") == attempt:
        return before
    windows = [window for window in status.get("windows") or () if isinstance(window, dict)]
    saved = [w for w in windows if w.get("state") in (SAVED, PARTIAL) and not w.get("pruned")]
    done = [w for w in saved if (w.get("upload") or {}).get("state", "uploaded") == "uploaded"]
    return [*before, *({"file": window.get("file"), "bytes": window.get("bytes")} for window in done)]


def write_status(run: Path, rank: int, status: dict[str, Any]) -> None:
    """Write a process's status, and compile the run; nothing if a later attempt has begun in this folder.

    Raises:
        OSError: The run's folder doesn't allow it.
    """
    folder = status_folder(run)
    folder.mkdir(parents=True, exist_ok=True)
    own = _status_file(run, rank)
    if _is_of_later_attempt(read_json(own), status):
        return
    write_json(own, status)
    size = status.get("world_size") or 1
    if size > _MANY:
        time.sleep(min(_LONGEST_PAUSE_S, size * _PAUSE_A_RANK_S))
        written_ns = own.stat().st_mtime_ns
        if any(path.stat().st_mtime_ns > written_ns for path in folder.glob("rank*.json")):
            return  # whoever wrote later compiles: a thousand ranks need not each read a thousand files
    compile_run(run)


def compile_run(run: Path) -> None:
    """Write `run.json` anew from all statuses.

    Raises:
        OSError: The run's folder doesn't allow it.
    """
    seen: list[Any] = []
    for _ in range(_MOST_ROUNDS):
        before, seen = seen, _statuses(run)
        if seen == before:
            break
        if seen:
            write_json(run / NAME, manifest(seen))


def _statuses(run: Path) -> list[dict[str, Any]]:
    found = [read_json(path) for path in status_folder(run).glob("rank*.json")]
    valid = [status for status in found if isinstance(status, dict) and isinstance(status.get("global_rank"), int)]
    return sorted(valid, key=lambda status: status["global_rank"])


def manifest(statuses: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the manifest of the newest attempt among the statuses of at least one process."""
    newest = max(statuses, key=lambda status: status.get("started_ns") or 0).get("attempt")
    current = {status["global_rank"]: status for status in statuses if status.get("attempt") == newest}
    first = current[min(current)]
    size = max(first.get("world_size") or 1, max(current) + 1)
    expected = _expected(current.values(), range(size))
    return {
        "schema": SCHEMA,
        **{key: first.get(key) for key in _SHARED},
        "world_size": size,
        "ranks_expected": expected,
        "updated_ns": time.time_ns(),
        "ranks": [_rank(rank, current.get(rank)) for rank in sorted({*expected, *current})],
        "windows": [
            _window(key, current, expected)
            for key in sorted({window["span"] for status in current.values() for window in status["windows"]})
        ],
    }


def _expected(told: Iterable[dict[str, Any]], otherwise: Iterable[int]) -> list[int]:
    """The ranks that shall record, by what each process knows of them; `otherwise` if none says so."""
    known = [each["ranks"] for each in told if isinstance(each.get("ranks"), list)]
    found = {rank for ranks in known for rank in ranks} if known else otherwise
    return sorted(rank for rank in found if isinstance(rank, int))


def _rank(rank: int, status: dict[str, Any] | None) -> dict[str, Any]:
    if status is None:
        return {"rank": rank, "state": SILENT, "reason": "no process of this rank has reported anything"}
    return {"rank": rank, **{key: status.get(key) for key in _OF_A_RANK}}


def _window(span: int, statuses: dict[int, dict[str, Any]], expected: Iterable[int]) -> dict[str, Any]:
    """One window over all ranks: they all call it by the steps completed at its end."""
    told = {rank: window for rank, status in statuses.items() for window in status["windows"] if window["span"] == span}
    first = told[min(told)]
    ranks = {rank: _outcome(told[rank]) for rank in told}
    for rank in _expected(told.values(), expected):
        if rank not in ranks:
            ranks[rank] = _absence(statuses.get(rank), first)
    return {
        "span": span,
        **{key: first.get(key) for key in _OF_A_WINDOW},
        "ranks": {str(rank): ranks[rank] for rank in sorted(ranks)},
    }


def _outcome(window: dict[str, Any]) -> dict[str, Any]:
    apart = {"span", "ranks", *_OF_A_WINDOW}
    return {key: value for key, value in window.items() if key not in apart and value is not None}


def _is_about(step: Any, window: dict[str, Any], warmup: int) -> bool:
    """Whether what happened before a step kept a window from being recorded, which ends with its `step_last`."""
    first, last = window.get("step_first"), window.get("step_last")
    if not (isinstance(step, int) and isinstance(first, int) and isinstance(last, int)):
        return False
    return first - warmup <= step <= last


def _absence(status: dict[str, Any] | None, window: dict[str, Any]) -> dict[str, Any]:
    if status is None:
        problem = "nothing was reported: it can't reach this folder, or died early"
        return {"state": MISSING, "problem": problem}
    if window["span"] <= status.get("pruned_to", -1):
        return {"state": SAVED, "pruned": True}  # so long ago that the rank doesn't tell of it any more
    schedule = status.get("schedule")
    warmup = schedule.get("warmup", 1) if isinstance(schedule, dict) else 1
    for left in status.get("left_out") or ():
        if _is_about(left.get("step"), window, warmup):
            return {"state": MISSING, "problem": left.get("problem")}
    if status.get("state") == RECORDING:
        return {"state": SAVING}
    return {"state": MISSING, "problem": status.get("problem") or f"it had {status.get('state')} before"}
