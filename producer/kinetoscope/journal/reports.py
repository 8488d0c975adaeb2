"""What processes have reported to their writers, which is newer than their journals.

A journal lags by a second, and can't be written at all on a full disk. What a process reports to its writer
is on the machine's own disk, and the writer puts it into the run's folder.

Anyone who can write to the run's folder can write a status: each value is checked before it is used. This module
imports nothing but the standard library.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..output.manifest import ENDED, KEPT, PARTIAL, SAVED, SAVING, statuses
from ..output.scratch import spool_folders
from ..output.spool import TRACE, Spool, is_count
from .ending import Ending, ending_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MOST = 1 << 62
_MOST_TEXT = 1000

ProcessId = tuple[Any, Any, Any]
"""Rank, host and process id."""


@dataclass(frozen=True)
class Report:
    """What one process has reported.

    Args:
        end: Why it closed its recording; None if it didn't.
        completed: How many steps were complete, as far as it said.
        window_first: The first step of its last window that isn't open any more; -1 if there is none.
        saved_steps: How many steps were complete at the end of its last window that is a trace or will be.
        saved_until_ns: When that was, in Unix time; 0 if there is none.
        ending: How it ended, as far as it or its writer process said.
        signal: The signal to which it didn't react, in lower case; None for none.
    """

    end: str | None = None
    completed: int = 0
    window_first: int = -1
    saved_steps: int = 0
    saved_until_ns: int = 0
    ending: Ending | None = None
    signal: str | None = None

    def still_open(self, window: int | None) -> int | None:
        """Return the first step of a window that was open by the journal; None if it isn't open any more."""
        return None if window is None or self.end is not None or window <= self.window_first else window


NOTHING = Report()


def reports(run: Path) -> dict[ProcessId, Report]:
    """Return what each process of a run has reported: in the run's folder, or in a spool of this user's machine."""
    by_process: dict[ProcessId, Report] = {}
    for status in statuses(run):
        _add(by_process, status, status["windows"])
    with suppress(OSError):  # `kinetoscope recover` says why they can't be read
        for _, spool in spools_of(run):
            process = spool.process() or {}
            traces = (job for job in spool.jobs() if job.kind == TRACE)
            jobs = ({**job.metadata, "state": None if job.lost else KEPT} for job in traces)
            _add(by_process, process, jobs)
    return by_process


def spools_of(run: Path) -> Iterator[tuple[int, Spool]]:
    """Return this user's spools of a run, with their ranks.

    Raises:
        OSError: Others may write to the folder of the spools, or it can't be read.
    """
    for folder in spool_folders():
        spool = Spool(folder)
        process = spool.process()
        if process is not None and Path(process["folder"]).resolve() == run.resolve():
            yield process["global_rank"], spool


def _add(by_process: dict[ProcessId, Report], process: dict[str, Any], windows: Iterable[dict[str, Any]]) -> None:
    """Add what is known of a process and its windows."""
    rank, host, pid = process.get("global_rank"), process.get("host"), process.get("pid")
    if not isinstance(host, str) or not is_count(pid):
        return
    window_list, before = list(windows), by_process.get((rank, host, pid), NOTHING)
    existing_windows = [window for window in window_list if window.get("state") in (SAVING, SAVED, PARTIAL, KEPT)]
    reason = process.get("reason")
    end = (reason[:_MOST_TEXT] if isinstance(reason, str) else "end") if process.get("state") == ENDED else before.end
    spans = [*_counts(window_list, "steps_completed"), *_counts(window_list, "span")]
    by_process[rank, host, pid] = Report(
        end,
        completed=max([before.completed, *_counts([process], "steps_completed"), *spans]),
        window_first=max([before.window_first, *_counts(window_list, "step_first")]),
        saved_steps=max(
            [before.saved_steps, *_counts(existing_windows, "steps_completed"), *_counts(existing_windows, "span")]
        ),
        saved_until_ns=max([before.saved_until_ns, *_counts(existing_windows, "ended_ns")]),
        ending=ending_of(process.get("ending")) or before.ending,
        signal=reason[:_MOST_TEXT] if isinstance(reason, str) and end is None else before.signal,
    )


def _counts(records: Iterable[dict[str, Any]], name: str) -> list[int]:
    return [record[name] for record in records if is_count(record.get(name), _MOST)]
