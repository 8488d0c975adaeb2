"""A report: the page in one file, together with the answers that it would request from the server.

The file needs no server and no network. The answers are packed (gzip, base64), so no text of a trace is ever markup.
Its Content-Security-Policy allows only the page's own script, and no requests.
"""

from __future__ import annotations

import gzip
import itertools
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from ..answer.pace_of_others import RANK_STEPS, WHAT_IF, what_if_in_run
from ..answer.recording import recording_answer
from ..answer.run import run_answer
from ..discovery import Listing
from ..engine.answers import Missing, cached_frames, compute, merge_run_notes
from ..engine.notes import note_of_view
from ..errors import KinetoscopeError, TraceError
from ..names import text
from ..names.text import visible
from ..pictures import Lines, parent_column
from ..trace import Trace
from ..view import catalogue
from ..views import EVERY_VIEW
from . import encode, encode_state
from .inline_page import inline_page
from .json_text import failure, json_text

if TYPE_CHECKING:
    from ..answer.model import Answer
    from ..discovery import TraceFile
    from ..distributed.run import Ranks
    from ..view import Subject, View

MOST_ROWS = 5000  # of one table
MOST_ROWS_IN_ALL = 400_000  # about 15 MB
MORE_FOR_CURVES = 10  # their columns are few, and the end of a curve must not be missing
_ELEMENT = "kinetoscope-report"
_WITHOUT_ADDRESS = "history.pushState = history.replaceState = () => {};"  # browsers refuse to write that of `srcdoc`


@dataclass(frozen=True)
class WholeRun:
    """What a report asks about a run.

    Attributes:
        ranks_of: Gives all recordings of a file's span or run.
        answer_of: Answers about the recording of another worker of a file's run; None if it can't.
    """

    ranks_of: Callable[[TraceFile, str], Ranks]
    answer_of: Callable[[TraceFile, str], Answer | None]


def report(
    recordings: Iterable[tuple[TraceFile, Trace | KinetoscopeError]],
    count: int,
    views: Mapping[str, View],
    most_rows: int = MOST_ROWS,
    run: WholeRun | None = None,
    *,
    is_framed: bool = False,
) -> str:
    """The file's text.

    Args:
        recordings: Each file with its trace, or with the reason why it can't be used; loaded one at a time.
        count: Number of recordings: the more, the fewer rows of each table are included.
        views: The catalogue.
        most_rows: Limit of the rows of a table.
        run: Their run, for the views of all ranks and for the answer; None: the report is of recordings alone.
        is_framed: Whether it becomes the `srcdoc` of a frame, which has no address of its own.
    """
    rows = max(1, min(most_rows, MOST_ROWS_IN_ALL // max(1, count * len(views))))
    of_ranks: dict[tuple[str, str], list[dict[str, Any]]] = {}
    ranks: dict[tuple[str, str], Ranks] = {}
    files, traces, headline = [], [], ""
    for file, trace in recordings:
        files.append(file)
        scopes = () if run is None or isinstance(trace, KinetoscopeError) else (("span", file.span), ("run", ""))
        for scope, part in scopes:
            if run is not None and (scope, part) not in ranks:
                ranks[scope, part] = run.ranks_of(file, scope)
                of_ranks[scope, part] = _answers(file, ranks[scope, part], views, rows, scope)
        answers = _trace_answers(file, trace, views, rows, ranks.get(("span", file.span)), is_alone=run is None)
        for scope, part in scopes:
            answers["answers"] += of_ranks[scope, part]
        summary = None if isinstance(trace, KinetoscopeError) else _summary(file, trace, run, ranks.get(("run", "")))
        headline = headline or (summary.verdict.title if summary else "")
        values = summary.values() if summary else None
        traces.append({"run": file.run, "worker": file.worker, "span": file.span, "answer": values, **answers})
    content = {"listing": encode.runs(Listing(tuple(files))), "views": catalogue(views.values()), "traces": traces}
    title = f"Kinetoscope: {', '.join(dict.fromkeys(file.run for file in files))}"
    return _page(json_text(content), title, headline, _WITHOUT_ADDRESS if is_framed else "")


def _summary(file: TraceFile, trace: Trace, run: WholeRun | None, ranks: Ranks | None) -> Answer:
    """The answer about a recording, or about its run, as `kinetoscope summary` gives it."""
    answer = recording_answer(trace, EVERY_VIEW, cached_frames).of_file(file, file.shown)
    if run is None or ranks is None:
        return answer
    return run_answer(answer, ranks, EVERY_VIEW, ranks.workers["worker"].n_unique(), partial(run.answer_of, file))


def _trace_answers(
    file: TraceFile,
    trace: Trace | KinetoscopeError,
    views: Mapping[str, View],
    most_rows: int,
    of_span: Ranks | None,
    *,
    is_alone: bool,
) -> dict[str, Any]:
    """The answers about one trace: its state, and each view with each choice of its parameters."""
    if isinstance(trace, KinetoscopeError):
        error = trace.with_path(file.shown) if isinstance(trace, TraceError) else trace
        return {"state": failure(error), "answers": []}
    health = merge_run_notes(views["health"], compute(views["health"], trace, {}), file)
    answers = _answers(file, trace, views, most_rows, "recording", of_span)
    return {"state": encode_state.state(trace, file.shown, views, health, is_alone=is_alone), "answers": answers}


def _answers(
    file: TraceFile,
    subject: Subject,
    views: Mapping[str, View],
    most_rows: int,
    scope: str,
    of_span: Ranks | None = None,
) -> list[dict[str, Any]]:
    """The answers of all views of a scope, with each choice of their parameters."""
    return [
        {"view": view.id, "parameters": choice, "answer": _answer(view, file, subject, choice, most_rows, of_span)}
        for view in views.values()
        if view.place.kind != "detail" and view.scope == scope
        for choice in _choices(view)
    ]


def _choices(view: View) -> Iterator[dict[str, str]]:
    """No parameter, and each combination of choices that isn't the default."""
    choices = [[(p.name, value) for value in p.choices] for p in view.parameters if p.kind == "choice"]
    for combination in itertools.product(*choices):
        default = {p.name: p.choices[0] for p in view.parameters if p.kind == "choice"}
        yield {name: value for name, value in combination if value != default[name]}


def _answer(
    view: View,
    file: TraceFile,
    subject: Subject,
    choice: Mapping[str, str],
    most_rows: int,
    of_span: Ranks | None,
) -> dict[str, Any]:
    result = merge_run_notes(view, compute(view, subject, view.arguments(choice)), file)
    if isinstance(result, Missing):
        return encode.view_answer(view, result)
    if view.id == WHAT_IF and of_span is not None:
        rank_steps = EVERY_VIEW[RANK_STEPS].frame(of_span, {})
        result = what_if_in_run(
            result, None, file.worker, rank_steps, lambda name, less: EVERY_VIEW[name].frame(subject, less)
        )
    notes = [note_of_view(subject, view, *choice)] if isinstance(subject, Trace) else []
    most = most_rows * MORE_FOR_CURVES if isinstance(view.table.picture, Lines) else most_rows
    first_rows = result.head(most)
    if parent := parent_column(view.table.picture):
        first_rows = first_rows.with_columns(pl.when(pl.col(parent) < most).then(pl.col(parent)))
    if first_rows.height < result.height:
        rows = f"the first {text.digits(first_rows.height)} of {text.digits(result.height)} rows"
        notes.append(f"This report holds {rows}; sums and charts cover only these.")
    return encode.view_answer(view, first_rows, " ".join(filter(None, notes)))


def _page(content: str, title: str, headline: str, preparation: str) -> str:
    """The page with its content, packed."""
    archive = b64encode(gzip.compress(content.encode(), mtime=0)).decode()
    data = f'<script type="application/gzip;base64" id="{_ELEMENT}">{archive}</script>\n'
    return inline_page(title, body=data, preparation=preparation, description=visible(headline))


def workers_of(listing: Listing, first: TraceFile) -> Sequence[TraceFile]:
    """Every recording of the run that a file belongs to."""
    return [file for file in listing.files if file.run == first.run]
