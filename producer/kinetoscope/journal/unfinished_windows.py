"""Windows of a run that were lost or aren't written yet, but aren't in its manifest because their process was killed.

This module imports nothing but the standard library.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..output.manifest import ENDED, KEPT, KILLED, RECORDING, SAVING, statuses
from ..output.spool import SNAPSHOT, TRACE, is_count
from ..output.writer_process import is_alive
from ..process_id import is_stopped
from ..scheduling.request import WORK
from .journal import is_time_ns, recovered_journal_files
from .recover import read_journal
from .reports import reports, spools_of
from .status import rank_statuses, recover_command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .status import RankStatus

_GONE_S = 60.0


def unfinished_windows(run: Path) -> list[str]:
    """Describe a run's lost or unwritten windows that its manifest doesn't list, because their process was killed.

    Args:
        run: The run's folder.
    """
    messages = []
    status_by_rank = {status["global_rank"]: status for status in statuses(run)}
    journals = {journal.rank: journal for journal in rank_statuses(run)}
    spool_spans, stopped_writers = _spool_spans(run), _stopped_writers(run)
    for rank in sorted({*status_by_rank, *journals, *spool_spans}):
        status = status_by_rank.get(rank, {})
        reported_spans = {window["span"] for window in status.get("windows", ()) if window.get("state") == KEPT}
        spans = {*_unwritten_spans(status, journals.get(rank)), *spool_spans.get(rank, ())} - reported_spans
        if spans:
            span_list = ", ".join(map(str, sorted(spans)))
            writer = stopped_writers.get(rank)
            advice = (
                f"; wait, or {recover_command(run)}"
                if writer is None
                else f": process {writer}, which writes it, is stopped; `kill -CONT {writer}` continues it"
            )
            messages.append(f"rank {rank}: span {span_list} isn't written yet{advice}")
    for rank, journal in journals.items():
        state, step = status_by_rank.get(rank, {}).get("state"), journal.recording_since_step
        if step is not None and state not in (ENDED, KILLED) and (journal.state == "dead" or journal.age_s > _GONE_S):
            fate = (
                "its process is gone" if journal.state == "dead" else f"it was last heard of {journal.age_s:.0f} s ago"
            )
            words = f"and was recording since step {step}; {recover_command(run)} recovers a trace of it"
            messages.append(f"rank {rank}: {fate}, {words}")
    return [*messages, *_unwritten_snapshots(run), *_unwritable(run), *_lost_and_recovered(run, status_by_rank)]


def _unwritten_snapshots(run: Path) -> Iterator[str]:
    """Say which memory snapshots on this machine aren't in the run's folder although their process has ended."""
    with suppress(OSError):  # as in `_spool_spans`
        for rank, spool in spools_of(run):
            for job in [] if is_alive(spool) else spool.jobs():
                if job.kind == SNAPSHOT and job.path is None and job.lost is None:
                    yield f"rank {rank}: {job.file} isn't written yet; wait, or {recover_command(run)}"


def _unwritable(run: Path) -> Iterator[str]:
    """Say which processes of this machine found when they began that they can't write into the run's folder."""
    with suppress(OSError):  # as in `_spool_spans`
        for rank, spool in [] if (run / WORK).is_dir() else spools_of(run):
            problem = (spool.process() or {}).get("folder_problem")
            if problem:
                yield f"rank {rank}: nothing can be written into {run}: {problem}"


def _stopped_writers(run: Path) -> dict[int, int]:
    """Return by rank the writer processes of this machine that are stopped, as by SIGSTOP."""
    with suppress(OSError):  # as in `_spool_spans`
        writers = {rank: (spool.process() or {}).get("writer") for rank, spool in spools_of(run)}
        return {rank: pid for rank, pid in writers.items() if is_count(pid) and is_stopped(pid)}
    return {}


def _spool_spans(run: Path) -> dict[int, set[int]]:
    """Return by rank the spans of windows on this machine that aren't traces yet and whose process has ended.

    If the run's disk was full or not writable, the run itself doesn't list them.
    """
    spans_by_rank: dict[int, set[int]] = {}
    with suppress(OSError):  # `kinetoscope recover` reports why it isn't trusted
        for rank, spool in spools_of(run):
            jobs = [] if is_alive(spool) else spool.jobs()
            for job in jobs:
                span = job.metadata.get("steps_completed")
                if job.kind == TRACE and job.path is None and job.lost is None and is_count(span, 1 << 62):
                    spans_by_rank.setdefault(rank, set()).add(span)
    return spans_by_rank


def _unwritten_spans(status: dict[str, Any], journal: RankStatus | None) -> list[int]:
    """Return the spans of an ended process's windows that its writer hasn't reported as traces."""
    windows = {window["span"]: window.get("state") for window in status.get("windows", ())}
    is_gone = journal is not None and journal.state in ("dead", "ended")
    if status.get("state") not in (ENDED, KILLED) and not is_gone:
        return []
    spans = {span for span, state in windows.items() if state == SAVING}
    if journal is not None and is_gone and status.get("state", RECORDING) == RECORDING:
        saved_spans = {value for kind, value, _ in journal.news if kind == "saved" and is_time_ns(value)}
        spans |= {span for span in saved_spans if span not in windows and span > status.get("pruned_to", -1)}
    return sorted(spans)


def _lost_and_recovered(run: Path, status_by_rank: dict[int, dict[str, Any]]) -> Iterator[str]:
    """Return the windows that were open when their process was killed and were recovered from its journal."""
    process_reports = reports(run)
    for file in recovered_journal_files(run):
        try:
            journal, written_ns = read_journal(file, None, process_reports), file.stat().st_mtime_ns
        except (OSError, ValueError):  # damaged since
            continue
        rank = journal.head["global_rank"]
        status = status_by_rank.get(rank, {})
        is_of_earlier = status.get("started_ns", 0) > written_ns
        if journal.window is not None and status.get("state") not in (ENDED, KILLED) and not is_of_earlier:
            yield f"rank {rank}: it was killed while it recorded, since step {journal.window}: that recording is lost"
