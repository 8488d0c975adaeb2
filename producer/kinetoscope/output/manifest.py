"""The outcome of a run's windows and memory snapshots on every rank: `run.json` in the run's folder.

Each process has its own status file below `.work/status`, written by its writer process; after writing one, a process
compiles all of them. There is no lock, since those of shared file systems can't be trusted: after compiling, a process
checks whether a status has changed meanwhile, and if so compiles again. So the last one to replace `run.json` has seen
all statuses.

`docs/run-json.md` describes the file. This module imports nothing but the standard library: the viewer uses it too.
"""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from ..atomic_write import write_json
from ..path_below import PathBelow
from ..untrusted_files import read_json
from .spool import MOST_RANKS, SNAPSHOT, is_count

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

NAME = "run.json"
SCHEMA = 1
_MAX_ROUNDS = 20
_MANY, _PAUSE_A_RANK_S, _LONGEST_PAUSE_S = 64, 0.005, 5.0
_MIN_WINDOWS, _MAX_OUTCOMES, _MAX_SNAPSHOTS = 100, 2_000_000, 100_000
_VERSIONS = ("version", "torch_version", "cuda_version", "python_version")
_SHARED = ("run", "attempt", *_VERSIONS, "argv", "schedule", "options")
_OF_A_RANK = (
    "host",
    "cluster",
    "pid",
    "local_rank",
    "node_rank",
    "state",
    "reason",
    "problem",
    "doubt",
    "recording_since_step",
    "steps_completed",
    "ending",
    "queue",
    "left_out",
)
_OF_A_WINDOW = ("step_first", "step_last", "started_ns", "ended_ns")

# States of a process, and of a window on a rank.
RECORDING, ENDED, KILLED, SILENT = "recording", "ended", "killed", "silent"
SAVING, SAVED, PARTIAL, KEPT, LOST, MISSING = "saving", "saved", "partial", "kept", "lost", "missing"


def status_folder(run: Path) -> PathBelow:
    """The folder of the processes' statuses."""
    return PathBelow(run, ".work", "status")


def _status_file(run: Path, rank: int) -> PathBelow:
    return status_folder(run) / f"rank{rank}.json"


def _is_of_later_recording(stored_status: dict[str, Any], status: dict[str, Any]) -> bool:
    """Whether the existing status is of a later recording: a process of the earlier one may still be uploading."""
    is_same = all(stored_status.get(key) == status.get(key) for key in ("attempt", "queue"))
    return not is_same and _started_ns(stored_status) > _started_ns(status)


def _with_outcomes(later: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    """Return the status of a later recording of the same process with the newest outcomes of an earlier one."""
    status_with_outcomes = dict(later)
    for kind, key in (("windows", "span"), ("snapshots", "file")):
        outcomes = {record.get(key): record for record in _dicts(status.get(kind))}
        before = _dicts(later.get(f"earlier_{kind}"))
        status_with_outcomes[f"earlier_{kind}"] = [outcomes.get(record.get(key), record) for record in before]
    return status_with_outcomes


def _started_ns(status: dict[str, Any]) -> int:
    started_ns = status.get("started_ns")
    return started_ns if is_count(started_ns, 1 << 63) else 0


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def earlier_traces(run: Path, rank: int, attempt: object) -> list[dict[str, Any]]:
    """Return the files of a rank's earlier attempts in the run's folder, oldest first: `file` and `bytes` of each.

    Those of memory snapshots have their `kind`. They are in the rank's own status, if that is another attempt's. Files
    that aren't uploaded yet are left out.
    """
    status = read_json(_status_file(run, rank))
    if not isinstance(status, dict):
        return []
    before = _dicts(status.get("earlier"))
    if status.get("attempt") == attempt:
        return before
    snapshots = [{**snapshot, "kind": SNAPSHOT} for snapshot in _dicts(status.get("snapshots"))]
    records = [*_dicts(status.get("windows")), *snapshots]
    saved_records = [w for w in records if w.get("state") in (SAVED, PARTIAL) and not w.get("pruned")]
    uploaded_records = [w for w in saved_records if (_dict(w.get("upload"))).get("state", "uploaded") == "uploaded"]
    kept_keys = ("file", "bytes", "kind")
    return [*before, *({key: record[key] for key in kept_keys if key in record} for record in uploaded_records)]


def earlier_records(run: Path, rank: int, status: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return what this rank's process recorded into the run before the recording of a status.

    They are in the rank's own status, if that is of the same attempt.

    Returns:
        `earlier_windows` and `earlier_snapshots`.
    """
    stored_status = read_json(_status_file(run, rank))
    records = {}
    for kind in ("windows", "snapshots"):
        is_same = isinstance(stored_status, dict) and stored_status.get("attempt") == status.get("attempt")
        before = _dicts(stored_status.get(f"earlier_{kind}")) if is_same else []
        is_later = is_same and stored_status.get("queue") != status["queue"]
        records[f"earlier_{kind}"] = [*before, *_dicts(stored_status.get(kind))] if is_later else before
    return records


def write_status(run: Path, rank: int, status: dict[str, Any]) -> None:
    """Write a process's status, and compile the manifest; do nothing if a later attempt has begun in this folder.

    Raises:
        OSError: The run's folder doesn't allow it.
    """
    status_folder(run).make()
    own = _status_file(run, rank)
    stored_status = _dict(read_json(own))
    if _is_of_later_recording(stored_status, status):
        if stored_status.get("attempt") != status.get("attempt"):
            return
        status = _with_outcomes(stored_status, status)
    write_json(own, status)
    size = status.get("world_size")
    if is_count(size, MOST_RANKS) and size > _MANY:
        time.sleep(min(_LONGEST_PAUSE_S, size * _PAUSE_A_RANK_S))
        written_ns = own.stat().st_mtime_ns
        if any(path.stat().st_mtime_ns > written_ns for path in status_folder(run).children("rank*.json")):
            return  # a process that wrote later compiles: a thousand ranks needn't each read a thousand files
    compile_run(run)


def compile_run(run: Path) -> None:
    """Compile `run.json` from all statuses.

    Raises:
        OSError: The run's folder doesn't allow it.
    """
    compiled_statuses: list[Any] = []
    for _ in range(_MAX_ROUNDS):
        before, compiled_statuses = compiled_statuses, statuses(run)
        if compiled_statuses == before:
            break
        if compiled_statuses:
            write_json(run / NAME, manifest(compiled_statuses))


def statuses(run: Path) -> list[dict[str, Any]]:
    """Return the processes' statuses by rank, without invalid files."""
    valid = (_validate(read_json(path)) for path in status_folder(run).children("rank*.json"))
    return sorted((status for status in valid if status is not None), key=lambda status: status["global_rank"])


def _validate(status: Any) -> dict[str, Any] | None:
    """Return a status with only its valid values; None if it isn't a status.

    Any process that can write to the run's folder may have written it.
    """
    if not isinstance(status, dict) or not is_count(status.get("global_rank"), MOST_RANKS):
        return None
    size, ranks, attempt = status.get("world_size"), status.get("ranks"), status.get("attempt")
    all_windows = [*_dicts(status.get("earlier_windows")), *_dicts(status.get("windows"))]
    windows = [window for window in all_windows if is_count(window.get("span"), 1 << 63)]
    return {
        **status,
        "world_size": size if is_count(size, MOST_RANKS) else None,
        "attempt": attempt if isinstance(attempt, str) else None,
        "started_ns": _started_ns(status),
        "ranks": None if ranks is None else _ranks_in(ranks),
        "pruned_to": status["pruned_to"] if is_count(status.get("pruned_to"), 1 << 63) else -1,
        "left_out": _dicts(status.get("left_out")),
        "windows": [{**window, "ranks": _ranks_in(window.get("ranks"))} for window in windows],
        "snapshots": [
            snapshot
            for snapshot in (*_dicts(status.get("earlier_snapshots")), *_dicts(status.get("snapshots")))
            if is_count(snapshot.get("span"), 1 << 63) and isinstance(snapshot.get("file"), str)
        ],
    }


def _ranks_in(value: Any) -> list[int] | None:
    """Return the ranks of a list; None if it isn't one."""
    return [rank for rank in value if is_count(rank, MOST_RANKS)] if isinstance(value, list) else None


def manifest(process_statuses: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the manifest of the newest attempt among the statuses of at least one process, of `statuses`."""
    newest = max(process_statuses, key=_started_ns).get("attempt")
    current = {status["global_rank"]: status for status in process_statuses if status.get("attempt") == newest}
    first = current[min(current)]
    size = max(first.get("world_size") or 1, max(current) + 1)
    expected_ranks = _expected_ranks(current.values(), range(size))
    return {
        "schema": SCHEMA,
        **{key: first.get(key) for key in _SHARED},
        "world_size": size,
        "ranks_expected": expected_ranks,
        "updated_ns": time.time_ns(),
        "ranks": [_rank(rank, current.get(rank)) for rank in sorted({*expected_ranks, *current})],
        "windows": _windows(current, expected_ranks),
        "snapshots": _snapshots(current),
    }


def _snapshots(current: dict[int, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the memory snapshots of all ranks, in order; if there are too many, the newest."""
    snapshots = [
        {"rank": rank, **{key: value for key, value in snapshot.items() if value is not None}}
        for rank, status in current.items()
        for snapshot in status.get("snapshots", ())
    ]
    snapshots.sort(key=lambda snapshot: (snapshot["span"], snapshot["rank"], snapshot["file"]))
    return snapshots[-_MAX_SNAPSHOTS:]


def _windows(current: dict[int, dict[str, Any]], expected_ranks: list[int]) -> list[dict[str, Any]]:
    """Return the windows over all ranks, in order; if there are too many, the newest."""
    by_span: dict[int, dict[int, dict[str, Any]]] = defaultdict(dict)
    for rank, status in current.items():
        for window in status["windows"]:
            by_span[window["span"]][rank] = window
    most = max(_MIN_WINDOWS, _MAX_OUTCOMES // max(1, len(expected_ranks)))
    return [_window(span, by_span[span], current, expected_ranks) for span in sorted(by_span)[-most:]]


def _expected_ranks(sources: Iterable[dict[str, Any]], otherwise: Iterable[int]) -> list[int]:
    """Return the ranks that should record, as far as each process knows; `otherwise` if none knows."""
    reports = [source["ranks"] for source in sources if isinstance(source.get("ranks"), list)]
    return sorted({rank for ranks in reports for rank in ranks} if reports else otherwise)


def _rank(rank: int, status: dict[str, Any] | None) -> dict[str, Any]:
    if status is None:
        return {"rank": rank, "state": SILENT, "reason": "no process of this rank has reported anything"}
    return {"rank": rank, **{key: status.get(key) for key in _OF_A_RANK}}


def _window(
    span: int, by_rank: dict[int, dict[str, Any]], statuses: dict[int, dict[str, Any]], expected_ranks: Iterable[int]
) -> dict[str, Any]:
    """Return one window over all ranks, which all identify it by the steps completed at its end."""
    first = by_rank[min(by_rank)]
    ranks = {rank: _window_outcome(by_rank[rank]) for rank in by_rank}
    for rank in _expected_ranks(by_rank.values(), expected_ranks):
        if rank not in ranks:
            ranks[rank] = _absence(statuses.get(rank), first)
    return {
        "span": span,
        **{key: first.get(key) for key in _OF_A_WINDOW},
        "ranks": {str(rank): ranks[rank] for rank in sorted(ranks)},
    }


def _window_outcome(window: dict[str, Any]) -> dict[str, Any]:
    apart = {"span", "ranks", *_OF_A_WINDOW}
    return {key: value for key, value in window.items() if key not in apart and value is not None}


def _is_about(step: Any, window: dict[str, Any], warmup: int) -> bool:
    """Whether an event before a step prevented the recording of a window, which ends with its `step_last`."""
    first, last = window.get("step_first"), window.get("step_last")
    if not (isinstance(step, int) and isinstance(first, int) and isinstance(last, int)):
        return False
    return first - warmup <= step <= last


def _absence(status: dict[str, Any] | None, window: dict[str, Any]) -> dict[str, Any]:
    if status is None:
        problem = "nothing was reported: it can't reach this folder, or died early"
        return {"state": MISSING, "problem": problem}
    if window["span"] <= status.get("pruned_to", -1):
        return {"state": SAVED, "pruned": True}  # so long ago that the rank's records don't have it any more
    schedule = status.get("schedule")
    warmup = schedule.get("warmup", 1) if isinstance(schedule, dict) else 1
    warmup = warmup if is_count(warmup) else 1
    for skipped_window in status.get("left_out") or ():
        if _is_about(skipped_window.get("step"), window, warmup):
            return {"state": MISSING, "problem": skipped_window.get("problem")}
    if status.get("state") == RECORDING:
        return {"state": SAVING}
    return {"state": MISSING, "problem": status.get("problem") or f"it had {status.get('state')} before"}
