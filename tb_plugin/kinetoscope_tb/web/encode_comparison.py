"""Comparisons as JSON values, for the page and for the command line."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..compare.changes import ID as CHANGES
from ..compare.changes import Changes
from ..engine.answers import Missing
from ..pictures import parent_column
from ..view import column_descriptions
from .encode import column_values, table, view_answer

if TYPE_CHECKING:
    from ..compare.changes import ChangeList
    from ..compare.comparison import Comparison
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
