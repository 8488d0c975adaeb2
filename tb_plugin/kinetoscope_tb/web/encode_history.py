"""A history as JSON values, for the page and for the command line."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..history.shares import shares
from ..history.table import HistoryRows, history_rows
from .encode import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..history.series import Series

VIEW = "history"


def history(series: Series, lines: Sequence[str]) -> dict[str, Any]:
    """Rows, changes and sentences: growths are shares of the step before, and those of the parts add up to it."""
    changes = [
        {
            "nth": after.first + 1,
            "run": series.runs[after.first].name,
            "before_ns": before.step_ns,
            "after_ns": after.step_ns,
            "growth_frac": after.step_ns / before.step_ns - 1,
            "parts": [
                {
                    "name": share.name,
                    "before_ns": share.before_ns,
                    "after_ns": share.after_ns,
                    "growth_frac": float(share.growth),
                }
                for share in shares(before, after)
            ],
        }
        for before, after in pairwise(series.levels)
    ]
    return {
        **table(HistoryRows.columns, history_rows(series)),
        "view": VIEW,
        "answers": list(lines),
        "compared": len(series.indices),
        "changes": changes,
        "spread_frac": _finite(series.spread_frac),
        "finds_frac": _finite(series.finds_frac),
    }


def _finite(value: float) -> float | None:
    return None if math.isnan(value) else value
