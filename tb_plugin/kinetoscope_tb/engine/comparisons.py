"""How comparisons of two recordings are computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..compare.changes import changes
from ..compare.comparison import compare, compare_runs
from ..trace import Trace
from .answers import Missing

if TYPE_CHECKING:
    from ..compare.changes import ChangeList
    from ..compare.comparison import Comparison
    from ..view import Recorded, View


def compute_comparison(
    view: View, base: Recorded, new: Recorded, arguments: Mapping[str, object], columns: Sequence[str] = ()
) -> Comparison | Missing:
    """The view of both traces, or of both runs if it is about all ranks, compared.

    Raises:
        BadParameter: The view, or a column of it, can't be compared.
    """
    if not (isinstance(base, Trace) and isinstance(new, Trace)):
        if view.is_missing(base) and view.is_missing(new):
            return Missing(view.hint)
        return compare_runs(view, base, new, arguments=arguments, columns=columns)
    if view.comparable_columns and view.is_missing(base) and view.is_missing(new):
        return Missing(view.hint_for(base))
    return compare(view, base, new, arguments=arguments, columns=columns)


def compute_changes(views: Mapping[str, View], base: Trace, new: Trace) -> ChangeList:
    """What changed most between both traces."""
    return changes(views, base, new)
