"""What of a run was lost or isn't written yet, where no process was left to say so in the run's manifest.

Imports nothing but the standard library.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..output.manifest import ENDED, KEPT, KILLED, RECORDING, SAVING, statuses
from ..output.spool import is_count
from ..output.writer_process import is_alive
from .journal import is_moment, recovered_journal_files
from .recover import read_journal, spools_of
from .status import rank_statuses, recover_command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .status import RankStatus

_GONE_S = 60.0


def unfinished_windows(run: Path) -> list[str]:
    """Say what of a run was lost, or isn't written yet, where nobody was left to say so in its manifest.

    Args:
        run: The run's folder.
    """
    messages = []
    known = {status["global_rank"]: status for status in statuses(run)}
    journals = {journal.rank: journal for journal in rank_statuses(run)}
    spooled = _spooled(run)
    for rank in sorted({*known, *journals, *spooled}):
        status = known.get(rank, {})
        reported = {window["span"] for window in status.get("windows", ()) if window.get("state") == KEPT}
        spans = {*_unwritten(status, journals.get(rank)), *spooled.get(rank, ())} - reported
        if spans:
            shown = ", ".join(map(str, sorted(spans)))
            messages.append(f"rank {rank}: span {shown} isn't written yet; wait, or {recover_command(run)}")
    for rank, journal in journals.items():
        state, step = known.get(rank, {}).get("state"), journal.recording_since_step
        if step is not None and state not in (ENDED, KILLED) and (journal.state == "dead" or journal.age_s > _GONE_S):
            last_seen = "it is gone" if journal.state == "dead" else f"it was last heard of {journal.age_s:.0f} s ago"
            words = f"and was recording since step {step}; {recover_command(run)} makes a trace of what is left"
            messages.append(f"rank {rank}: {last_seen}, {words}")
    return [*messages, *_lost_and_recovered(run, known)]


def _spooled(run: Path) -> dict[int, set[int]]:
    """By rank the spans of windows that lie on this machine and aren't traces, of processes that are gone.

    Where the disk of the run was full, or denied them, the run itself can't know of them.
    """
    spans_by_rank: dict[int, set[int]] = {}
    with suppress(OSError):  # recovering says why it isn't to be trusted
        for rank, spool in spools_of(run):
            jobs = [] if is_alive(spool) else spool.jobs()
            for job in jobs:
                span = job.metadata.get("steps_completed")
                if job.path is None and job.lost is None and is_count(span, 1 << 62):
                    spans_by_rank.setdefault(rank, set()).add(span)
    return spans_by_rank


def _unwritten(status: dict[str, Any], journal: RankStatus | None) -> list[int]:
    """The spans of windows of a process that is gone, of which its writer hasn't said that they are traces."""
    windows = {window["span"]: window.get("state") for window in status.get("windows", ())}
    is_gone = journal is not None and journal.state in ("dead", "ended")
    if status.get("state") not in (ENDED, KILLED) and not is_gone:
        return []
    spans = {span for span, state in windows.items() if state == SAVING}
    if journal is not None and is_gone and status.get("state", RECORDING) == RECORDING:
        saved = {value for kind, value, _ in journal.news if kind == "saved" and is_moment(value)}
        spans |= {span for span in saved if span not in windows and span > status.get("pruned_to", -1)}
    return sorted(spans)


def _lost_and_recovered(run: Path, known: dict[int, dict[str, Any]]) -> Iterator[str]:
    """Windows that were open when their process was killed, of which a trace was made of what was left."""
    for file in recovered_journal_files(run):
        try:
            journal, written_ns = read_journal(file, None), file.lstat().st_mtime_ns
        except (OSError, ValueError):  # damaged since
            continue
        rank = journal.head["global_rank"]
        status = known.get(rank, {})
        is_of_earlier = status.get("started_ns", 0) > written_ns
        if journal.window is not None and status.get("state") not in (ENDED, KILLED) and not is_of_earlier:
            yield f"rank {rank}: it was killed while it recorded, since step {journal.window}: that recording is lost"
