"""What a question is answered with when it isn't answered with a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future

    import polars as pl

    from ..compare import Comparison
    from ..discovery import TraceFile
    from ..reader import Beginning
    from ..trace import Trace
    from ..views import Recorded, Shared, View


Result = TypeVar("Result")


@dataclass(frozen=True)
class Loading:
    """The answer is being made; numbers that aren't known yet are None."""

    stage: str
    fraction: float | None = None
    bytes_per_second: float | None = None
    seconds_left: float | None = None


@dataclass(frozen=True)
class Partial:
    """What is known of a file while it is read; no view is ever made of it.

    Args:
        fraction: How much of the file that is.
        beginning: What that part holds.
    """

    fraction: float
    beginning: Beginning


@dataclass(frozen=True)
class Missing:
    """The trace doesn't hold what the view needs; the hint says how to record it."""

    hint: str


def compute(view: View, recorded: Recorded, arguments: Mapping[str, object]) -> pl.DataFrame | Missing:
    """What the view says of the trace, or of the run."""
    return Missing(view.hint) if view.is_missing(recorded) else view.table.of(view.run(recorded, **arguments))


def compute_after(shared: Future[Shared] | None, compute: Callable[..., Result], *arguments: object) -> Result:
    """What a function returns, as soon as what it begins with is made."""
    if shared is not None:
        shared.result()
    return compute(*arguments)


def with_notes(view: View, answer: pl.DataFrame | Missing, file: TraceFile) -> pl.DataFrame | Missing:
    """Trace health, with what the file's recorder says of the run behind it; any other view as it is.

    It is no part of what is computed of a trace: another rank may be lost long after this one was read.
    """
    if view.id != "health" or not file.notes or isinstance(answer, Missing):
        return answer
    import polars as pl

    rows = [(note.rule, note.level, note.ranks, note.text, None) for note in file.notes]
    both = pl.concat([answer, pl.DataFrame(rows, schema=answer.schema, orient="row")])
    return both.sort(pl.col("level").replace_strict({"loss": 0, "warning": 1, "note": 2}), maintain_order=True)


def compute_comparison(
    view: View, base: Trace, new: Trace, arguments: Mapping[str, object], columns: Sequence[str] = ()
) -> Comparison | Missing:
    """What the view says of both traces, side by side.

    Raises:
        BadParameter: The view, or a column of it, can't be compared.
    """
    from ..compare import compare, is_comparable

    if is_comparable(view) and view.is_missing(base) and view.is_missing(new):
        return Missing(view.hint)
    return compare(view, base, new, arguments=arguments, columns=columns)
