"""The timeline's routes about a row of a view: its calls, the same row on other ranks, and the advice about it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl

from ..advice.about_row import advice_about
from ..advice.trace_advice import trace_advice
from ..diagnostics.diagnose import diagnose
from ..engine.answers import Missing
from ..errors import BadParameter
from ..measures.time.idle_causes import split_gaps_of_devices
from ..table import TEXT
from ..text_query import texts_with
from ..timeline.details.rank_calls import RankCalls, compare_ranks, key_on, only_device
from ..timeline.details.row_facts import row_facts
from ..timeline.search.search import events_of_row, parse_find
from ..view import Head
from ..views import EVERY_VIEW, VIEWS
from .queries import STAMPED_NAMES, current_file, query_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from werkzeug.wrappers import Request

    from ..advice.model import Advice
    from ..discovery import TraceFile
    from ..engine.engine import Engine
    from ..timeline.core.model import Timeline
    from ..trace import Trace
    from ..view import View
    from .responses import Handler

MOST_RANKS = 64
MOST_BYTES_TO_READ = 64 << 20  # of other ranks' stored files that neither memory nor the cache has


def _find_of(engine: Engine, request: Request) -> tuple[TraceFile, str]:
    """The file of a request, and the row's view and key as canonical JSON.

    Raises:
        BadParameter: It isn't the key of a row of a view.
    """
    query = query_of(request, (*STAMPED_NAMES, "find"))
    find = parse_find(query["find"], VIEWS)
    if "view" not in json.loads(find):
        raise BadParameter("find has no view here; it is the key of a row of a view.")
    return current_file(engine, query), find


def _row(engine: Engine, request: Request) -> object:
    file, find = _find_of(engine, request)
    return {"state": "ready", **engine.about(file, _row_facts, find)}


def _row_facts(trace: Trace, timeline: Timeline, find: str) -> dict[str, Any]:
    key = json.loads(find)
    views = [view for view in VIEWS.values() if not view.is_missing(trace)]
    return row_facts(trace, timeline, events_of_row(trace, VIEWS[key["view"]], key), views)


def _ranks(engine: Engine, request: Request) -> object:
    file, find = _find_of(engine, request)
    recordings = engine.recordings_of_span(file)
    if len(recordings) < 2 or not _is_on_other_ranks(VIEWS[json.loads(find)["view"]]):
        return {"state": "ready", "text": "", "ranks": []}
    selection = engine.readable_soon(recordings, MOST_BYTES_TO_READ)[:MOST_RANKS]
    ranks = engine.about_each(selection, _calls_of_rank, find, only_device(engine.trace(file)))
    return {"state": "ready", **compare_ranks(ranks, len(recordings) - len(selection))}


def _is_on_other_ranks(view: View) -> bool:
    """Whether the key of a row of the view means the same on each rank, and its events need no long computation."""
    keys = {column.name: column.kind.name for column in view.table.columns if column.name in view.table.key}
    return bool(view.comparable_columns) and view.shares is None and keys.get("device", "id") == "id"


def _calls_of_rank(trace: Trace, worker: str, find: str, device: int | None) -> RankCalls:
    key = key_on(trace, json.loads(find), device)
    return RankCalls.of(trace, worker, key, events_of_row(trace, VIEWS[key["view"]], key))


def _advice(engine: Engine, request: Request) -> object:
    file, find = _find_of(engine, request)
    words = _words_of_row(engine, file, json.loads(find))
    advice = engine.about(file, _advice_about, find, words, shares=split_gaps_of_devices)
    return {"state": "ready", "advice": [{"rule": item.rule, "title": item.title} for item in advice]}


def _words_of_row(engine: Engine, file: TraceFile, find: Mapping[str, Any]) -> str:
    """All texts of a row of a view, on a line each."""
    view = VIEWS[find["view"]]
    frame = engine.frame(view, file, {})
    if isinstance(frame, Missing):
        return ""
    same = pl.all_horizontal(pl.col(name).eq_missing(pl.lit(find.get(name))) for name in view.table.key)
    texts = [column.name for column in view.table.columns if column.kind is TEXT]
    rows = frame.filter(same).select(texts).head(1).rows()
    return "\n".join(text for row in rows for text in row if text)


def _advice_about(trace: Trace, _timeline: Timeline, find: str, words: str) -> list[Advice]:
    key = json.loads(find)
    view = VIEWS[key["view"]]
    # Rows about gaps stand for the work around them, and rows of heads for whole devices.
    events = {} if view.entry == "Idle" or isinstance(view.place, Head) else events_of_row(trace, view, key)

    def is_named(advice: Advice) -> bool:
        is_here = bool(advice.filter) and EVERY_VIEW[advice.view].entry == view.entry
        return is_here and bool(texts_with(advice.filter, [words])[0])

    return advice_about(trace, trace_advice(trace, diagnose), events, is_named)


ROUTES: dict[str, Handler] = {
    "/timeline/row": _row,
    "/timeline/row/ranks": _ranks,
    "/timeline/row/advice": _advice,
}
