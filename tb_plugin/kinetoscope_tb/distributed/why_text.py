"""The answer of `why` for programs, and its tables as text: one for the command line and the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ..names.text import memory_size, percent, time, visible
from ..text_table import MISSING, TextColumn
from .deaths.evidence import EndRow
from .hangs.evidence import Row
from .hangs.titles import instant, rank_ranges
from .last_minutes import MinutesRow
from .why import CANNOT_TELL, CULPRIT, NOTHING_OPEN, SLOW_WORK, STOPPED_FROM_OUTSIDE, Answer

EXIT_STATUS = {NOTHING_OPEN: 0, SLOW_WORK: 0, STOPPED_FROM_OUTSIDE: 0, CULPRIT: 2, CANNOT_TELL: 3}
_LONGEST_EXCEPTION = 60
_TEXTS = ("last steps", "markers")
_NUMBERS = ("rank", "steps", "saved")
_DISPENSABLE = (
    "saved",
    "exception",
    "in",
    "line",
    "memory",
    "grown",
    "available",
    "cores",
    "busy",
    "device memory",
    "power",
    "temperature",
    "clock",
    "disk",
    "network",
    "markers",
)


def values(answer: Answer) -> dict[str, Any]:
    """The answer as values of JSON."""
    return {
        "state": "ready",
        "outcome": answer.outcome,
        "kind": answer.kind,
        "exit_status": EXIT_STATUS[answer.outcome],
        "culprits": list(answer.culprits),
        "suspects": list(answer.suspects),
        "sentence": answer.sentence,
        "ranks": [asdict(row) for row in answer.rows],
        "evidence": list(answer.evidence),
        "last_minutes": [asdict(row) for row in answer.minutes],
        "files": [asdict(problem) for problem in answer.problems],
    }


def _exception_text(exception: str) -> str:
    return exception if len(exception) <= _LONGEST_EXCEPTION else f"{exception[: _LONGEST_EXCEPTION - 1]}…"


def rank_columns(answer: Answer) -> list[TextColumn]:
    """The columns of the table of ranks; those that are empty in all rows may be left out."""
    ends = [row for row in answer.rows if isinstance(row, EndRow)]
    waits = [row for row in answer.rows if isinstance(row, Row)]
    cells_of = _cells_of_ends(ends) if ends else _cells_of_waits(waits)
    return _useful_columns(
        [TextColumn(name, [*map(visible, cells)], name in _NUMBERS) for name, cells in cells_of.items()]
    )


def _useful_columns(columns: list[TextColumn]) -> list[TextColumn]:
    return [column for column in columns if column.header not in _DISPENSABLE or not column.is_empty]


def _cells_of_ends(table: Sequence[EndRow]) -> dict[str, list[str]]:
    return {
        "rank": [str(row.rank) for row in table],
        "host": [row.host or MISSING for row in table],
        "end": [row.end for row in table],
        "at": [instant(row.ended_ns or 0) or MISSING for row in table],
        "steps": [MISSING if row.steps is None else str(row.steps) for row in table],
        "saved": [str(row.saved_steps) if row.saved_steps else MISSING for row in table],
        "exception": [_exception_text(row.exception) or MISSING for row in table],
        "in": [row.function or MISSING for row in table],
        "line": [row.line or MISSING for row in table],
    }


def _cells_of_waits(table: Sequence[Row]) -> dict[str, list[str]]:
    return {
        "rank": [str(row.rank) for row in table],
        "group": [row.group or MISSING for row in table],
        "last completed": [row.last_completed or MISSING for row in table],
        "open": [row.open for row in table],
        "since": [instant(row.since_ns or 0) or MISSING for row in table],
        "waits for": [rank_ranges(row.waits_for) or MISSING for row in table],
        "in": [row.function or MISSING for row in table],
        "line": [row.line or MISSING for row in table],
    }


def minutes_columns(table: Sequence[MinutesRow]) -> list[TextColumn]:
    """The columns of the last minutes; `ended` is relative to the last end of a step."""
    end_ns = max((row.ended_ns for row in table), default=0)
    cells_of: dict[str, list[str]] = {
        "rank": [str(row.rank) for row in table],
        "last step": [str(row.last_step) for row in table],
        "ended": [f"{(row.ended_ns - end_ns) / 1e9:.3f} s" for row in table],
        "usual": [time(row.usual_ns) for row in table],
        "last steps": [", ".join(map(time, row.last_steps_ns)) for row in table],
        "memory": [_size(row.memory_bytes) for row in table],
        "grown": [_size(row.grown_bytes) for row in table],
        "available": [_size(row.available_bytes) for row in table],
        "cores": [MISSING if row.cores is None else f"{row.cores:.1f}" for row in table],
        "busy": [MISSING if row.busy_share is None else percent(row.busy_share) for row in table],
        "device memory": [_size(row.device_bytes) for row in table],
        "power": [MISSING if row.power_w is None else f"{row.power_w:.0f} W" for row in table],
        "temperature": [MISSING if row.temperature_c is None else f"{row.temperature_c:.0f} °C" for row in table],
        "clock": [_clock(row) for row in table],
        "disk": [_byte_rate(row.disk_bytes_per_s) for row in table],
        "network": [_byte_rate(row.network_bytes_per_s) for row in table],
        "markers": [visible(", ".join(row.markers)) or MISSING for row in table],
    }
    return _useful_columns([TextColumn(name, cells, name not in _TEXTS) for name, cells in cells_of.items()])


def _clock(row: MinutesRow) -> str:
    if row.clock_mhz is None:
        return MISSING
    return f"{row.clock_mhz} MHz{' (throttled)' if row.is_throttled else ''}"


def _byte_rate(bytes_per_s: float | None) -> str:
    return MISSING if bytes_per_s is None else f"{memory_size(round(bytes_per_s))}/s"


def _size(count: int | None) -> str:
    if count is None:
        return MISSING
    return f"-{memory_size(-count)}" if count < 0 else memory_size(count)
