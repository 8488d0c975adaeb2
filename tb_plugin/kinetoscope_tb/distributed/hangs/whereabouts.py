"""Where a rank's own code is, from what `Tracer` wrote while the step lasted too long, and from the run's journals."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kinetoscope.journal.status import RankStatus

from ...names.text import enumeration, time
from ...reader.flight_recorder.hang_report import Activity, HangReport
from ...reader.flight_recorder.schema import Dump
from ...reader.flight_recorder.values import source_line
from .titles import instant, ranks_title
from .verdict import CULPRIT, Verdict

_MOST_RANKS = 4
_UNINTERRUPTIBLE = "D"
_TERMINALS = ("/dev/pts/", "/dev/tty", "/dev/console")
_WAITS = {
    "read": "in a read from",
    "write": "in a write to",
    "flush": "in a flush of",
    "lock": "waiting for the lock on",
    "connect": "connecting to",
}
_FULL_PIPE = ("pipe_write", "anon_pipe_write", "fifo_pipe_write")  # Linux, fs/pipe.c; the last two in newer ones


def activity_clause(verdict: Verdict) -> str:
    """Such as "; it has been in torch.serialization.load (train.py:88) for 141 s"; empty if it isn't known."""
    state = verdict.graph.job.ranks.get(verdict.ranks[0]) if len(verdict.ranks) == 1 else None
    report = state.dump.report if state and verdict.outcome == CULPRIT else None
    if report is None or (activity := report.activity) is None:
        return ""
    where = f"; it has been in {activity.function} ({short_line(activity)}){_duration(activity.seconds)}"
    if wait := wait_words(report):
        return f"{where}{wait}"
    is_stuck = report.state == _UNINTERRUPTIBLE
    return f"{where}, in the kernel's {report.waits_in or 'uninterruptible sleep'}" if is_stuck else where


def wait_words(report: HangReport) -> str:
    """Such as ", in a read from /data/7.tar"; empty if nothing is known that says something to the reader."""
    if report.waits_in in _FULL_PIPE:
        return ", in a write to a full pipe"
    if report.waits_for is None:
        return ""
    operation, file = report.waits_for
    if _is_terminal(report):
        return f", in a write to {file}, a terminal that takes no more output"
    kind = file.partition(":[")[0]
    is_nameless = kind != file and kind in ("pipe", "socket")
    is_known = is_nameless or file.startswith("/") or file.rpartition(":")[2].isdecimal()
    return f", {_WAITS[operation]} {f'a {kind}' if is_nameless else file}" if is_known else ""


def _is_terminal(report: HangReport) -> bool:
    """Whether it waits for a terminal to take its output."""
    operation, file = report.waits_for or ("", "")
    return operation == "write" and file.startswith(_TERMINALS)


def activity_clauses(verdict: Verdict) -> list[str]:
    """Such as "ranks 0–2 have been in load_batch (train.py:88) for 41 s", for each line at which ranks are."""
    ranks_of: dict[str, list[int]] = {}
    longest_s: dict[str, float] = {}
    for rank, state in sorted(verdict.graph.job.ranks.items()):
        report = state.dump.report
        if report is None or report.reason != "step":
            continue
        activity = report.activity
        where = f"in {activity.function} ({short_line(activity)})" if activity else f"in step {report.step}"
        ranks_of.setdefault(where, []).append(rank)
        longest_s[where] = max(longest_s.get(where, 0.0), activity.seconds if activity else report.step_s)
    return [
        f"{ranks_title(ranks)} {'has' if len(ranks) == 1 else 'have'} been {where}{_duration(longest_s[where])}"
        for where, ranks in [*ranks_of.items()][:_MOST_RANKS]
    ]


def step_clause(verdict: Verdict) -> str:
    """Such as "; step 812 has taken 41 s so far, usually 15.1 ms"; empty without a report."""
    reports_of_steps = [state.dump.report for state in verdict.graph.job.ranks.values() if state.dump.report]
    if not reports_of_steps:
        return ""
    report = max(reports_of_steps, key=lambda report: report.step_s)
    usual = f", usually {time(report.usual_s * 1e9)}" if report.usual_s else ""
    return f"; step {report.step} has taken {report.step_s:.0f} s so far{usual}"


def _duration(seconds: float) -> str:
    return f" for {seconds:.0f} s" if seconds >= 1 else ""


def short_line(activity: Activity) -> str:
    """Where a rank's own code is, without the folder: such as train.py:88."""
    return source_line(re.split(r"[/\\]", activity.file)[-1], activity.line)


def function_and_line(dump: Dump) -> tuple[str, str]:
    """What a rank's own code is in, as function and file:line; empty texts if it isn't known."""
    activity = dump.report.activity if dump.report else None
    return (activity.function, source_line(activity.file, activity.line)) if activity else ("", "")


def reports(verdict: Verdict) -> Iterator[str]:
    """A sentence for each rank in question of which there is a report."""
    for rank in verdict.ranks[:_MOST_RANKS]:
        state = verdict.graph.job.ranks.get(rank)
        if state is not None and state.dump.report is not None:
            yield _report(rank, state.dump.report)


def _report(rank: int, report: HangReport) -> str:
    activity = report.activity
    where = f"in {activity.function} ({source_line(activity.file, activity.line)})" if activity else "in a library"
    kernel = f"; the kernel has its main thread in {report.waits_in} ({report.state})" if report.waits_in else ""
    if report.waits_in in _FULL_PIPE:
        kernel += ": the pipe that it writes to, often its own output, is read too slowly, or by nobody"
    elif _is_terminal(report):
        kernel += ": the terminal is paused, as by Ctrl-S (Ctrl-Q goes on), or what shows it doesn't read it"
    else:
        kernel += wait_words(report)
    markers = f"; open markers: {enumeration([name for name, _ in report.markers])}" if report.markers else ""
    last_saved = f"; last saved: {report.last_saved}" if report.last_saved else ""
    step = f"At {instant(report.written_ns)} rank {rank} had been in step {report.step} for {report.step_s:.0f} s"
    return f"{step}, {where}{kernel}{markers}{last_saved}."


def ranks_without_report(verdict: Verdict) -> Iterator[str]:
    """A sentence for each rank that wrote nothing although the run has a journal of it."""
    statuses = [status for status in verdict.statuses if status.rank in verdict.graph.job.silent]
    for status in statuses[:_MOST_RANKS]:
        process = f"process {status.pid} on {status.host}"
        yield f"Rank {status.rank} ({process}) wrote no report of this step. {_life(status)}"


def _life(status: RankStatus) -> str:
    if status.state == "ended":
        return f"It closed its recording: {status.reason}."
    if status.state == "dead":
        return "Its process is gone, and had not closed its recording."
    alive = f"It {'was alive' if status.state == 'running' else 'last wrote its journal'} {status.age_s:.0f} s ago"
    if status.is_stopped:
        return f"{alive}, and is stopped: by SIGSTOP, by a debugger, or by Ctrl-Z in its terminal."
    is_stopped = "" if status.is_stopped is False else "it is stopped, or "
    return (
        f"{alive}: {is_stopped}code in C holds Python's lock, or its steps are not that long yet. On that machine, "
        f"/proc/{status.pid}/status and py-spy tell."
    )
