"""What the verdict on the end of a job rests on: a row per rank, and sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kinetoscope.journal.status import RankStatus

from ...names.text import enumeration
from ...reader.flight_recorder.values import source_line
from .deaths import Death
from .sentences import advice
from .titles import end_title, error_title
from .verdict import DeathVerdict

_MOST_CALLS, _MOST_LINES = 4, 6


@dataclass(frozen=True)
class EndRow:
    """How a rank ended.

    Args:
        rank: The rank.
        host: Its machine.
        end: How it ended, or what it does; empty if nothing is known of it.
        ended_ns: When, in ns since 1970; None if it lives, or that isn't known.
        steps: How many steps it completed; None before the first.
        saved_steps: How many steps were complete at the end of its last window that is a trace; 0 for none.
        exception: The exception that ended it; empty for none.
        function: What its code was in; empty if it isn't known.
        line: Where its code was; empty if it isn't known.
    """

    rank: int
    host: str
    end: str
    ended_ns: int | None = None
    steps: int | None = None
    saved_steps: int = 0
    exception: str = ""
    function: str = ""
    line: str = ""


def rows(verdict: DeathVerdict) -> list[EndRow]:
    """A row per rank, also for those of which nothing is known."""
    deaths = {death.rank: death for death in verdict.deaths}
    statuses = {status.rank: status for status in verdict.statuses}
    ranks = sorted({*statuses, *verdict.world})
    return [_row(rank, deaths.get(rank), statuses.get(rank)) for rank in ranks]


def _row(rank: int, death: Death | None, status: RankStatus | None) -> EndRow:
    if status is None:
        return EndRow(rank, "", "left nothing")
    if death is None:
        end = "closed its recording" if status.state == "ended" else "is running"
        return EndRow(rank, status.host, end, None, status.completed, status.saved_steps)
    activity, exception = death.activity, death.ending.exception
    return EndRow(
        rank,
        status.host,
        end_title(death).partition(":")[0],
        death.ns,
        status.completed,
        status.saved_steps,
        error_title(exception) if exception else "",
        activity.function if activity else "",
        source_line(activity.file, activity.line) if activity else "",
    )


def evidence(verdict: DeathVerdict) -> list[str]:
    """Where the first rank ended, what is saved, and what to do."""
    lines = [] if verdict.first is None else [*_of_death(verdict.first)]
    return [*lines, *_saved_windows(verdict), *filter(None, [advice(verdict)])]


def _of_death(death: Death) -> Iterator[str]:
    ending, calls = death.ending, [call for call in death.calls if call.is_user][:_MOST_CALLS]
    if death.status.host:
        yield f"Rank {death.rank} was process {death.status.pid} on {death.status.host}."
    if calls:
        locations = [f"{_name(call.function)} ({source_line(call.file, call.line)})" for call in calls]
        yield f"It was in {', called from '.join(locations)}."
    if ending.exception is not None:
        yield from _more_lines(ending.exception.message)
    if ending.cause is not None and ending.cause != ending.exception:
        yield f"The first exception behind it is {error_title(ending.cause).rstrip('.')}."


def _more_lines(message: str) -> list[str]:
    """The last lines of a message of several lines, such as another process's traceback."""
    lines = [f"  {line.rstrip()}" for line in message.splitlines() if line.strip()]
    return lines[1:][-_MOST_LINES:]


def _name(function: str) -> str:
    return function.rpartition(".")[2]


def _saved_windows(verdict: DeathVerdict) -> Iterator[str]:
    steps_saved = sorted({status.saved_steps for status in verdict.statuses if status.saved_steps})
    if steps_saved:
        yield f"Saved: windows up to step {enumeration([str(steps - 1) for steps in steps_saved[-2:]])}."
