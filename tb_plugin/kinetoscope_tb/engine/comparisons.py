"""How comparisons of two recordings are computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..compare.changes import changes
from ..compare.comparison import compare, compare_runs
from ..compare.step_difference import step_difference
from ..errors import BadParameter
from ..measures.recording.contents import has_device_events
from ..trace import Trace
from .answers import Missing

if TYPE_CHECKING:
    from ..compare.changes import ChangeList
    from ..compare.comparison import Comparison
    from ..compare.step_difference import Difference
    from ..view import Subject, View


def compute_comparison(
    view: View, base: Subject, new: Subject, arguments: Mapping[str, object], columns: Sequence[str] = ()
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


def compute_step_difference(base: Trace, new: Trace) -> Difference:
    """Why the step of a trace takes longer than that of another.

    Raises:
        BadParameter: A trace has no device work.
    """
    if not (has_device_events(base) and has_device_events(new)):
        raise BadParameter("step_difference aligns what devices ran; a recording without device work can't be aligned.")
    return step_difference(base, new)
