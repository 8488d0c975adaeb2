"""Answers other than tables (not ready, partial, missing), and how answers are computed."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from .workers import is_done

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from ..discovery import TraceFile
    from ..reader import Preview
    from ..trace import Trace
    from ..view import Subject, View


Result = TypeVar("Result")


@dataclass(frozen=True)
class LoadingProgress:
    """Progress toward an answer; unknown numbers are None."""

    stage: str
    fraction: float | None = None
    bytes_per_second: float | None = None
    seconds_left: float | None = None


class NotReady(Exception):
    """The answer is being computed; ask again later.

    Every question to the engine may raise it; the encoder of answers catches it. It isn't a `KinetoscopeError` because
    nothing went wrong.
    """

    def __init__(self, progress: LoadingProgress) -> None:
        super().__init__(progress.stage)
        self.progress = progress


def result_within(future: Future[Result], seconds: float, stage: str) -> Result:
    """The result of a future, or its exception, if it is done within that time.

    Raises:
        NotReady: It isn't done; `stage` names the current work.
    """
    if not is_done(future, seconds):
        raise NotReady(LoadingProgress(stage))
    return future.result()


def ask_all(*questions: Callable[[], Any]) -> list[Any]:
    """The answers to several questions; all are started before `NotReady` of the first is raised.

    Raises:
        NotReady: One of them isn't ready.
    """
    answers, first_not_ready = [], None
    for question in questions:
        try:
            answers.append(question())
        except NotReady as not_ready:
            first_not_ready = first_not_ready or not_ready
    if first_not_ready is not None:
        raise first_not_ready
    return answers


def wait_for_answer(question: Callable[[], Result]) -> Result:
    """The answer to a question, asked until it is ready."""
    while True:
        with suppress(NotReady):
            return question()


@dataclass(frozen=True)
class Partial:
    """What is known of a file while it is read; views are never computed from it.

    Args:
        fraction: The part of the file that was read.
        preview: A preview of that part.
    """

    fraction: float
    preview: Preview


@dataclass(frozen=True)
class Missing:
    """The trace has no data for the view; the hint says how to record it."""

    hint: str


def compute(view: View, subject: Subject, arguments: Mapping[str, object]) -> pl.DataFrame | Missing:
    """The view of the trace, or of the run.

    Raises:
        BadParameter: The trace has no such phase or step.
    """
    if view.is_missing(subject):
        return Missing(view.hint_for(subject))
    if view.is_of_advice and subject.meta.is_large:
        _compute_meanwhile(subject)
    return view.frame(subject, arguments)


def answer(subject: Subject, view: View, *arguments: tuple[str, object]) -> pl.DataFrame | Missing:
    """The same as a function of hashable arguments, by which results are cached."""
    return compute(view, subject, dict(arguments))


def cached_frames(trace: Trace, views: Sequence[View]) -> Iterator[pl.DataFrame | None]:
    """The views of the trace, each computed once for all who ask; None if the trace has no data for it.

    Of a large trace, another thread computes them until they are asked for, after the graph that advice simulates and
    the diagnostics that it is judged by. Those of others are computed at once: before there is a graph, which takes
    memory.
    """
    results = [(trace if view.reads_captures else trace.recording).results for view in views]
    frames = (of_owner.get(answer, view).result() for of_owner, view in zip(results, views, strict=True))
    with_data = (None if isinstance(frame, Missing) else frame for frame in frames)
    if not trace.meta.is_large:
        return iter(list(with_data))
    of_views = (partial(of_owner.get, answer, view) for of_owner, view in zip(results, views, strict=True))
    _compute_meanwhile(trace, of_views)
    return with_data


def _compute_meanwhile(trace: Trace, of_views: Iterable[Callable[[], object]] = ()) -> None:
    module = import_module(".meanwhile", __package__)  # 22 modules, which small traces' views don't need
    module.compute_meanwhile(trace, of_views)


def merge_run_notes(view: View, answer: pl.DataFrame | Missing, file: TraceFile) -> pl.DataFrame | Missing:
    """Trace health with the recorder's notes about the run appended; other views unchanged.

    The notes aren't cached with the trace: another rank may be lost long after this one was read.
    """
    if view.id != "health" or not file.notes or isinstance(answer, Missing):
        return answer
    rows = [(note.rule, note.level, note.ranks, note.text, None) for note in file.notes]
    both = pl.concat([answer, pl.DataFrame(rows, schema=answer.schema, orient="row")])
    return both.sort(pl.col("level").replace_strict({"loss": 0, "warning": 1, "note": 2}), maintain_order=True)
