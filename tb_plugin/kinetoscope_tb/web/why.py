"""The route `why`: what `kinetoscope why` says of a run, and the step times of its ranks."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..discovery.jobs import job_called
from ..distributed.deaths.evidence import EndRow
from ..distributed.step_curves import step_curves
from ..distributed.why import NOTHING_OPEN, Answer, answer_why
from ..distributed.why_text import minutes_columns, rank_columns, values
from ..errors import LogdirError, NotFound
from ..reader.flight_recorder.files import read_folder
from .queries import query_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from werkzeug.wrappers import Request

    from ..engine.engine import Engine
    from ..text_table import TextColumn

HANGS, ENDED, LIVES = "Why it hangs", "Why it ended", "Last minutes"
_NO_JOB = "No Tracer has recorded into this run, or its folder isn't on this machine's disks."


def why(engine: Engine, request: Request) -> object:
    """Why the job of a run stands still or ended, and its last minutes."""
    query = query_of(request, (), optional=("run",))
    try:
        folder = read_folder(str(job_called(engine.logdirs, query.get("run", "")).folder), engine.parsed_files)
    except (NotFound, LogdirError):
        return {"state": "missing", "hint": _NO_JOB}
    answer, curves = answer_why(folder), step_curves(folder.minutes)
    return {
        **values(answer),
        "title": _title(answer),
        "is_running": any(status.state in ("running", "silent") for status in folder.statuses),
        "tables": [_table(rank_columns(answer)), _table(minutes_columns(answer.minutes))],
        "steps": None if curves is None else asdict(curves),
    }


def _title(answer: Answer) -> str:
    if answer.outcome == NOTHING_OPEN:
        return LIVES
    return ENDED if any(isinstance(row, EndRow) for row in answer.rows) else HANGS


def _table(columns: Sequence[TextColumn]) -> list[dict[str, Any]]:
    return [{"name": column.header, "cells": column.cells, "is_number": column.is_number} for column in columns]
