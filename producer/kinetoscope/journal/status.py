"""The state of each rank of a run, according to its journal.

Anyone who can write to the run's folder can write a journal: each value is checked before it is used. This module
imports nothing but the standard library.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import statistics
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..errors import UsageError
from ..output.scratch import spool_folders
from ..output.spool import MOST_RANKS, Spool, is_count
from ..process_id import is_running, is_stopped
from ..scheduling.consensus import plan_from
from ..scheduling.request import WORK
from .ending import Ending, ending_of
from .journal import (
    MOST_NEWS,
    RECOVERED,
    TAIL_BYTES,
    header_of,
    is_step,
    journal_file,
    journal_files,
    latest_of,
    lines_of,
    recovered_journal_files,
)
from .reports import NOTHING, reports

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..path_below import PathBelow
    from .reports import ProcessId, Report

SILENT_S = 15.0
_SLOW_S, _TIMES_USUAL = 2.0, 3.0
_MOST_TEXT = 1000
_MOST_PID = 1 << 31
_MOST_STEPS = 1 << 62

State = Literal["running", "silent", "dead", "ended"]


@dataclass(frozen=True, kw_only=True)
class RankStatus:
    """One process of a run.

    Args:
        rank: Its global rank.
        world_size: The number of ranks.
        host: The machine it runs on.
        pid: Its process id there.
        state: `running`; `silent`: it didn't write for 15 seconds; `dead`: it ended without closing its recording;
            `ended`: it closed it.
        reason: Why it ended.
        ending: How it ended, as far as that is known; None for a process that runs.
        ignored_signal: The signal to which it didn't react before it was killed, in lower case; None for none.
        completed: How many steps were complete when it last wrote; None before the first.
        step_s: How long the last step took.
        usual_step_s: How long a step usually takes: the median of the last ones; None before the first.
        current_step_s: How long the current step takes so far; None if none is complete, or the process has ended.
        saved_steps: How many steps were complete at the end of its last window that is a trace or will be; 0 for none.
        recording_since_step: The first step of the window that is open, or was when the process ended; None if none.
        is_recording: Whether a window is open.
        is_recovered: Whether `recover` has made a trace of its journal.
        listens: Whether it accepts requests.
        records: Whether it is selected to record; False for one that records only if a request names it.
        doubt: Why it isn't certain that it belongs to the job of the other ranks; None if it is.
        is_stopped: Whether it is stopped, as by SIGSTOP or a debugger; None if it isn't a process of this machine.
        age_s: Seconds since it wrote.
        written_ns: When it last wrote, in Unix time.
        news: The last news: kind, value and Unix time in nanoseconds.
    """

    rank: int
    world_size: int
    host: str
    pid: int
    state: State
    reason: str | None
    ending: Ending | None
    ignored_signal: str | None
    completed: int | None
    step_s: float | None
    usual_step_s: float | None
    current_step_s: float | None
    saved_steps: int
    recording_since_step: int | None
    is_recording: bool
    is_recovered: bool
    listens: bool
    records: bool
    doubt: str | None
    is_stopped: bool | None = None
    age_s: float
    written_ns: int
    news: tuple[tuple[str, Any, int], ...] = field(default=())

    @property
    def hang(self) -> dict[str, Any] | None:
        """Where the current step hangs; None if it doesn't, or has ended since."""
        values = [value for kind, value, _ in self.news if kind == "hanging"]
        return values[-1] if values and values[-1]["step"] == (self.completed or 0) and self.state != "ended" else None

    @property
    def left_out(self) -> tuple[dict[str, Any], ...]:
        """The windows that it skipped: about which step each would have begun, and why."""
        return tuple(value for kind, value, _ in self.news if kind == "left out")

    @property
    def slow_step(self) -> str | None:
        """The current step, if it takes much longer than usual, such as `step 8 since 16 s, usually 0.05 s`."""
        now_s, usual_s = self.current_step_s, self.usual_step_s
        if now_s is None or usual_s is None or now_s < max(_SLOW_S, _TIMES_USUAL * usual_s):
            return None
        return f"step {self.completed} since {now_s:.0f} s, usually {usual_s:.2g} s"

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**asdict(self), "news": [list(piece) for piece in self.news]}


def rank_statuses(run: Path, *, now_s: float | None = None) -> list[RankStatus]:
    """Return the status of a run's ranks, in order; unreadable journals are left out.

    Args:
        run: The run's folder.
        now_s: Unix time.
    """
    newest: dict[int, tuple[int, RankStatus]] = {}
    process_reports, now_s = reports(run), time.time() if now_s is None else now_s
    for file in (*journal_files(run), *recovered_journal_files(run)):
        try:
            status = _status(file, process_reports, now_s)
            written_ns = file.stat().st_mtime_ns
        except (OSError, ValueError):  # damaged, or removed just now
            continue
        if status.rank not in newest or newest[status.rank][0] < written_ns:
            newest[status.rank] = (written_ns, status)
    return [newest[rank][1] for rank in sorted(newest)]


def last_steps(run: Path, rank: int) -> tuple[tuple[int, int, int], ...]:
    """Return number, start and end in Unix ns of the last steps in a rank's journal: some hundred to some thousand.

    Args:
        run: The run's folder.
        rank: The rank.
    """
    try:
        lines = lines_of(journal_file(run, rank), TAIL_BYTES)
    except OSError:
        return ()
    return tuple((line[1], line[2], line[3]) for line in lines if line[0] == "s" and is_step(line[1:]))


def is_writable(run: Path) -> bool:
    """Whether this user can write to a run's folder."""
    return os.access(run, os.W_OK | os.X_OK)


def unwritable_runs(logdir: Path) -> list[Path]:
    """Return the folders of runs at or below a logdir that this machine records into, and can't write into.

    Raises:
        OSError: Others may write to the folder of the spools, or it can't be read.
    """
    folders = set()
    for folder in spool_folders():
        spool = Spool(folder)
        process = spool.process()
        run = None if process is None else Path(process["folder"])
        if run is not None and run.is_relative_to(logdir.absolute()) and not (run / WORK).is_dir():
            folders.add(run)
    return sorted(folders)


def recover_command(run: Path) -> str:
    """Return the command that recovers a run's traces on this machine."""
    output = "" if is_writable(run) else " --output DIR"
    return f"kinetoscope recover {shlex.quote(str(run))}{output}"


def _status(file: PathBelow, process_reports: Mapping[ProcessId, Report], now_s: float) -> RankStatus:
    head = read_header(file)
    report = process_reports.get((head["global_rank"], head["host"], head["pid"]), NOTHING)
    lines = lines_of(file, TAIL_BYTES)
    step, pieces = latest_of(lines)
    news = [piece for piece in pieces if is_valid_news(piece[0], piece[1])]
    end_reason = next((str(line[1])[:_MOST_TEXT] for line in reversed(lines) if line[0] == "e" and len(line) > 1), None)
    end, is_recovered = report.end if end_reason is None else end_reason, file.name.endswith(RECOVERED)
    written_ns = file.stat().st_mtime_ns
    age_s = max(0.0, now_s - written_ns / 1e9)
    is_dead = is_recovered or report.ending is not None
    state: State = "ended" if end is not None else "dead" if is_dead else _state(head, age_s)
    endings = [ending_of(value) for kind, value, _ in news if kind == "ending"]
    since, steps_s = report.still_open(open_window(news)), _step_durations_s(lines, step)
    completed_steps = max(0 if step is None else step[0] + 1, report.completed)
    is_current = step is not None and state in ("running", "silent") and completed_steps == step[0] + 1
    return RankStatus(
        rank=head["global_rank"],
        world_size=head["world_size"],
        host=head["host"],
        pid=head["pid"],
        state=state,
        reason=end,
        ending=(endings[-1] if endings else None) or report.ending,
        ignored_signal=report.signal if end is None else None,
        completed=completed_steps or None,
        step_s=steps_s[-1] if steps_s else None,
        usual_step_s=statistics.median(steps_s) if steps_s else None,
        current_step_s=max(0.0, now_s - step[2] / 1e9) if step is not None and is_current else None,
        saved_steps=report.saved_steps,
        recording_since_step=None if end is not None or is_recovered else since,
        is_recording=end is None and not is_recovered and since is not None,
        is_recovered=is_recovered,
        listens=end is None and bool(head.get("listens")),
        records=head.get("records") is not False,
        doubt=head["doubt"] if isinstance(head.get("doubt"), str) else None,
        is_stopped=is_stopped(head["pid"]) if state in ("running", "silent") and _is_here(head) else None,
        age_s=age_s,
        written_ns=written_ns,
        news=tuple(piece for piece in news if piece[0] != "ending")[-MOST_NEWS:],
    )


def _step_durations_s(lines: Sequence[list[Any]], last: list[int] | None) -> list[float]:
    """Return the durations of the last steps, the newest at the end."""
    steps = [line[1:] for line in lines if line[0] == "s" and is_step(line[1:])]
    if last is not None and (not steps or steps[-1] != last):
        steps.append(last)
    return [max(0, end_ns - start_ns) / 1e9 for _, start_ns, end_ns in steps]


def read_header(file: PathBelow) -> dict[str, Any]:
    """Return a journal's header with valid `global_rank`, `world_size`, `host` and `pid`.

    Raises:
        OSError: It can't be read.
        ValueError: It has no valid header.
    """
    head = header_of(file)
    if head is None:
        raise ValueError("its first line doesn't say who wrote it")
    rank, size = head.get("global_rank"), head.get("world_size")
    if not is_count(rank, MOST_RANKS) or not is_count(size, MOST_RANKS) or not size:
        raise ValueError(f"its first line has rank {str(rank)[:40]} of {str(size)[:40]}")
    if not isinstance(head.get("host"), str) or not is_count(head.get("pid"), _MOST_PID):
        raise ValueError("its first line doesn't say which process wrote it")
    return head


def open_window(news: Sequence[tuple[str, Any, int]]) -> int | None:
    """Return the first step of the window that isn't saved yet; None if none is open."""
    windows = [(kind, value) for kind, value, _ in news if kind in ("recording", "saved")]
    if not windows or windows[-1][0] != "recording" or not isinstance(windows[-1][1], dict):
        return None
    step = windows[-1][1].get("step")
    return step if is_count(step, _MOST_STEPS) else 0


def is_valid_news(kind: str, value: Any) -> bool:
    """Whether a piece of news has the form that a recorder writes; kinds that aren't read may have any form."""
    if kind == "plan":
        return _is_plan(value)
    if kind not in ("hanging", "left out"):
        return True
    if not isinstance(value, dict) or not is_count(value.get("step"), _MOST_STEPS):
        return False
    if kind == "left out":
        return isinstance(value.get("problem"), str)
    return isinstance(value.get("stack"), list) and is_count(value.get("seconds"), _MOST_STEPS)


def _is_plan(value: Any) -> bool:
    try:
        plan_from(json.dumps(value))
    except (UsageError, RecursionError):
        return False
    return isinstance(value["request"], dict) and {"id", "steps", "ranks"} <= set(value["request"])


def _is_here(head: dict[str, Any]) -> bool:
    return bool(head["host"] == socket.gethostname())


def _state(head: dict[str, Any], age_s: float) -> State:
    if _is_here(head) and not is_running(int(head["pid"])):
        return "dead"
    return "running" if age_s < SILENT_S else "silent"
