"""What a question is answered with when it isn't answered with a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from ..compare import Comparison
    from ..trace import Trace
    from ..views import Recorded, View


@dataclass(frozen=True)
class Loading:
    """The answer is being made; numbers that aren't known yet are None."""

    stage: str
    fraction: float | None = None
    bytes_per_second: float | None = None
    seconds_left: float | None = None


@dataclass(frozen=True)
class Missing:
    """The trace doesn't hold what the view needs; the hint says how to record it."""

    hint: str


def compute(view: View, recorded: Recorded, arguments: Mapping[str, object]) -> pl.DataFrame | Missing:
    """What the view says of the trace, or of the run."""
    return Missing(view.hint) if view.is_missing(recorded) else view.table.of(view.run(recorded, **arguments))


def compute_comparison(
    view: View, base: Trace, new: Trace, arguments: Mapping[str, object], columns: Sequence[str] = ()
) -> Comparison | Missing:
    """What the view says of both traces, side by side.

    Raises:
        BadParameter: The view, or a column of it, can't be compared.
    """
    from ..compare import compare

    if view.is_missing(base) and view.is_missing(new):
        return Missing(view.hint)
    return compare(view, base, new, arguments=arguments, columns=columns)
