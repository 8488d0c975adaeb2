"""What `kinetoscope why` says of a run, and the step times of its ranks, as the page shows them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..distributed.deaths.evidence import EndRow
from ..distributed.step_curves import step_curves
from ..distributed.why import NOTHING_OPEN, SILENT, SUSPENDED, Answer, answer_why
from ..distributed.why_text import minutes_columns, rank_columns, values
from ..reader.flight_recorder.files import read_folder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ..engine.parsed_files import ParsedFiles
    from ..text_table import TextColumn

HANGS, ENDED, LIVES = "Why it hangs", "Why it ended", "Last minutes"


def why_answer(path: Path, parsed_files: ParsedFiles) -> dict[str, Any]:
    """Why the job that records into a folder stands still or ended, and its last minutes.

    Raises:
        LogdirError: There is no such folder.
    """
    folder = read_folder(str(path), parsed_files)
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
    is_alive = answer.kind in (SILENT, SUSPENDED)
    return ENDED if not is_alive and any(isinstance(row, EndRow) for row in answer.rows) else HANGS


def _table(columns: Sequence[TextColumn]) -> list[dict[str, Any]]:
    return [{"name": column.header, "cells": column.cells, "is_number": column.is_number} for column in columns]
