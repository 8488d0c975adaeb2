"""Comparisons as JSON values, for the page and for the command line."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..compare.changes import ID as CHANGES
from ..compare.changes import Changes
from ..compare.step_difference import ID as STEP_DIFFERENCE
from ..compare.step_difference import ROWS_ID, StepDifference, StepDifferenceRows
from ..engine.answers import Missing
from ..pictures import parent_column
from ..view import column_descriptions
from .encode import column_values, table, view_answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..compare.changes import ChangeList
    from ..compare.comparison import Comparison
    from ..compare.step_difference import Difference
    from ..view import View


def comparison(view: View, result: Comparison | Missing) -> dict[str, Any]:
    """A view of two traces, compared."""
    if isinstance(result, Missing):
        return view_answer(view, result)
    rows = result.table
    return {
        "state": "ready",
        "view": view.id,
        "compared": [column.name for column in result.columns],
        "basis": {**asdict(result.basis), "words": result.basis.words},
        "key": list(rows.key),
        "weight": rows.weight,
        "parent": parent_column(rows.picture),
        "columns": column_descriptions(rows.columns),
        "data": column_values(result.frame),
    }


def changes(result: ChangeList) -> dict[str, Any]:
    """What changed most between two traces."""
    basis = {**asdict(result.basis), "words": result.basis.words}
    return {"view": CHANGES, "headline": result.headline, "basis": basis, **table(Changes.columns, result.frame)}


def step_difference(result: Difference) -> dict[str, Any]:
    """Why a step takes longer; the times of the rows add up to those of the steps."""
    steps = {
        side: {"name": account.step, "ns": account.length_ns, "matched_frac": share}
        for side, account, share in zip(("base", "new"), (result.base, result.new), result.matched_frac, strict=True)
    }
    words = {"headline": result.headline, "coverage": result.coverage}
    return {"view": STEP_DIFFERENCE, **words, "steps": steps, **table(StepDifference.columns, result.frame)}


def step_difference_rows(result: Difference, term: Mapping[str, str]) -> dict[str, Any]:
    """What the terms with these values consist of."""
    return {"view": ROWS_ID, **table(StepDifferenceRows.columns, result.rows(term))}
