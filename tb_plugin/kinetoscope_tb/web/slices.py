"""The timeline's routes about slices: details of one, and search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import BadParameter
from ..timeline.details.details import details
from ..timeline.details.slice_summary import slice_summary
from ..timeline.search.search import parse_find, search
from ..views import VIEWS
from .queries import STAMPED_NAMES, current_file, query_of, time_parameter, whole_number

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

    from ..discovery import TraceFile
    from ..engine.engine import Engine
    from ..timeline.core.model import Timeline
    from ..timeline.core.pyramid import Pyramid
    from ..timeline.search.search import SearchResult
    from ..trace import Trace
    from .responses import Handler

DIRECTIONS = ("next", "previous")
MOST_SEARCHES = 3  # search results cached per trace: each may have all slices


def _slice(engine: Engine, request: Request) -> object:
    query = query_of(request, (*STAMPED_NAMES, "slice"))
    number = whole_number(query, "slice", "the number of a slice")
    file = current_file(engine, query)
    return {"state": "ready", **engine.about(file, _details, number)}


def _details(trace: Trace, timeline: Timeline, number: int) -> dict[str, Any]:
    if number >= timeline.size:
        raise BadParameter(f"There is no slice {number}; the trace has {timeline.size}, counted from 0.")
    return details(trace, timeline, number, [view for view in VIEWS.values() if not view.is_missing(trace)])


def _find(engine: Engine, request: Request) -> object:
    query = query_of(request, (*STAMPED_NAMES, "find"), optional=("at_ns", "direction", "place"))
    target = _requested_hit(query)
    matches = search_slices(engine, current_file(engine, query), query["find"])
    return {"state": "ready", **_hits(matches, target)}


def _requested_hit(query: dict[str, str]) -> tuple[str, int | None] | None:
    """(direction or "place", the time or place) of the requested hit; None if none is requested.

    Raises:
        BadParameter: A value isn't possible, or they don't go together.
    """
    direction = query.get("direction", "next")
    if direction not in DIRECTIONS:
        raise BadParameter(f"direction={direction!r} isn't possible; choose one of {', '.join(DIRECTIONS)}.")
    if "place" in query:
        if "at_ns" in query or "direction" in query:
            raise BadParameter("Give place, or at_ns and direction; not both.")
        return "place", whole_number(query, "place", "the number of hits before the requested one")
    at = time_parameter(query, "at_ns") if "at_ns" in query else None
    return (direction, at) if "direction" in query or at is not None else None


def _hits(matches: SearchResult, target: tuple[str, int | None] | None) -> dict[str, Any]:
    index = -1
    if target is not None:
        which, at = target
        index = matches.place_after(at) if which == "next" else matches.place_before(at)
        index = at if which == "place" and at is not None else index
    hit = int(matches.by_start[1][index]) if 0 <= index < matches.numbers.size else -1
    return {
        "count": int(matches.numbers.size),
        "names": matches.names(),
        "histogram": matches.histogram(),
        "slice": slice_summary(matches.timeline, hit),
        "place": index if hit >= 0 else None,
    }


def search_slices(engine: Engine, file: TraceFile, find: str) -> SearchResult:
    """The slices of a file that match a find; cached, so that tiles of them don't search again.

    Raises:
        BadParameter: The find isn't valid.
    """
    query = parse_find(find, VIEWS)
    return engine.about(file, _search, query, most=MOST_SEARCHES)


def _search(trace: Trace, timeline: Timeline, find: str) -> SearchResult:
    return search(trace, timeline, find, VIEWS)


def matching_pyramid(engine: Engine, file: TraceFile, find: str) -> Pyramid:
    """The slices of a file that match a find, at any zoom.

    Raises:
        BadParameter: The find isn't valid.
    """
    matches = search_slices(engine, file, find)
    return engine.about(file, _pyramid, matches, most=MOST_SEARCHES)


def _pyramid(_trace: Trace, _timeline: Timeline, matches: SearchResult) -> Pyramid:
    return matches.pyramid()


ROUTES: dict[str, Handler] = {
    "/timeline/slice": _slice,
    "/timeline/find": _find,
}
