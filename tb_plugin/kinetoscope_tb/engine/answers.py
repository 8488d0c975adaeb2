"""What a question is answered with when it isn't answered with a table, and how the answer is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from .workers import is_done

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future

    import polars as pl

    from ..compare import Comparison
    from ..discovery import TraceFile
    from ..reader import Preview
    from ..trace import Trace
    from ..view import Recorded, Shared, View


Result = TypeVar("Result")


@dataclass(frozen=True)
class LoadingProgress:
    """How far an answer is; numbers that aren't known yet are None."""

    stage: str
    fraction: float | None = None
    bytes_per_second: float | None = None
    seconds_left: float | None = None


class NotReady(Exception):
    """The answer is being computed: ask again.

    Whatever the engine is asked raises it, and whoever encodes answers catches it. It is no `KinetoscopeError`: nothing
    went wrong.
    """

    def __init__(self, progress: LoadingProgress) -> None:
        super().__init__(progress.stage)
        self.progress = progress


def result_within(future: Future[Result], seconds: float, stage: str) -> Result:
    """What a future returns or raises, if it is done within that time.

    Raises:
        NotReady: It isn't; `stage` says what is being done.
    """
    if not is_done(future, seconds):
        raise NotReady(LoadingProgress(stage))
    return future.result()


def ask_all(*questions: Callable[[], Any]) -> list[Any]:
    """The answers to several questions, all of which are begun before the first that isn't ready is reported.

    Raises:
        NotReady: One of them isn't ready.
    """
    answers, waiting = [], None
    for question in questions:
        try:
            answers.append(question())
        except NotReady as not_ready:
            waiting = waiting or not_ready
    if waiting is not None:
        raise waiting
    return answers


@dataclass(frozen=True)
class Partial:
    """What is known of a file while it is read; no view is ever made of it.

    Args:
        fraction: How much of the file that is.
        preview: What that part holds.
    """

    fraction: float
    preview: Preview


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


def merge_run_notes(view: View, answer: pl.DataFrame | Missing, file: TraceFile) -> pl.DataFrame | Missing:
    """Trace health, followed by what the recorder says about the run; any other view as it is.

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
    from ..compare import compare

    if view.comparable_columns and view.is_missing(base) and view.is_missing(new):
        return Missing(view.hint)
    return compare(view, base, new, arguments=arguments, columns=columns)
